"""How a crawl went over time."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.model.counters import Counters
from gossamer.model.pages import EpochRow
from gossamer.results.report.figures import Cache, Commits, Dns, Report, Silence, TimelineFigures, TimelineStep
from gossamer.results.report.html import as_html
from gossamer.results.report.report import summary
from gossamer.results.report.sections import STEPS_MAX, step_length_s
from gossamer.results.report.text import as_text
from tests.results.report.crawled import START, committed, crawled, page


def course_of(directory: Path, ended_s: list[float], **fields: object) -> TimelineFigures:
    rows = [page(0, fetch_s=0.0, fetched_at=1000.0 + at_s, **fields) for at_s in ended_s]
    return summary(crawled(directory, rows)).course


def test_steps_are_even_and_hold_every_attempt(tmp_path: Path) -> None:
    course = course_of(tmp_path, [0.0, 0.5, 1.1, 59.0, 59.9, 60.0])
    assert course.step_s == 1
    assert [step.at_s for step in course.steps] == [float(n) for n in range(61)]
    assert [(step.at_s, step.attempts) for step in course.steps if step.attempts] == [(0, 2), (1, 1), (59, 2), (60, 1)]
    assert course.steps[0] == TimelineStep(0, 2, 2, 200)


def test_pages_are_those_that_were_fetched(tmp_path: Path) -> None:
    course = course_of(tmp_path, [0.0, 1.0], outcome="timeout", wire_bytes=7)
    assert {(step.attempts, step.pages, step.wire_bytes) for step in course.steps if step.attempts} == {(1, 0, 7)}


def test_silences_are_reported_longest_first(tmp_path: Path) -> None:
    course = course_of(tmp_path, [0.0, 1.0, 7.5, 8.0, 108.25, 109.0, 113.5])
    assert course.silences == (Silence(8.0, 100.25), Silence(1.0, 6.5))
    assert course.silent_s == 106.75


def test_a_crawl_that_always_went_on_has_none(tmp_path: Path) -> None:
    course = course_of(tmp_path, [n * 4.0 for n in range(50)])
    assert (course.silences, course.silent_s) == ((), 0.0)


def test_text_shows_the_course(tmp_path: Path) -> None:
    rows = [page(0, fetch_s=0.0, fetched_at=1000.0 + at_s) for at_s in (0.0, 0.1, 0.2, 50.0)]
    text = as_text(summary(crawled(tmp_path, rows)), 80)
    assert "Pages a second over time, 0.5 s a column" in text
    assert "nothing ended for 49.8 s, 0.2 s after the start" in text


def test_commits_are_reported_with_the_longest_of_each_step(tmp_path: Path) -> None:
    crawled(tmp_path, [page(0, fetch_s=0.0, fetched_at=1000.0 + at_s) for at_s in (0.0, 60.0)])
    durations = {1000.5: (0.25, 0.125), 1000.75: (0.5, 0.0625), 1030.0: (3.0, 0.25)}
    committed(tmp_path, [EpochRow(n, at, *took, n, n, n) for n, (at, took) in enumerate(durations.items())])
    report = summary(tmp_path)
    assert [(s.at_s, s.commit_s) for s in report.course.steps if s.commit_s] == [(0.0, 0.5), (30.0, 3.0)]
    assert report.course.commits == Commits(3, 1.25, 3.0, 3.0, 0.25)
    assert "3 commits took 1.25 s on average, 3.00 s at most" in as_text(report, 120)
    assert "stalled the crawl for 250.0 ms at most" in as_html(report, "a crawl")


def test_a_crawl_without_the_table_has_no_commits_to_tell(tmp_path: Path) -> None:
    assert course_of(tmp_path, [0.0, 60.0]).commits == Commits()


@pytest.mark.parametrize("duration_s", [0.0, 0.4, 11.0, 12.0, 3600.0, 86_400.0, 86_400.0 * 365, 86_400.0 * 36_500])
def test_never_more_steps_than_a_figure_can_show(duration_s: float) -> None:
    assert duration_s // step_length_s(duration_s) + 1 <= STEPS_MAX


def test_commits_of_a_version_with_fewer_counters_count_as_far_as_they_go(tmp_path: Path) -> None:
    crawled(tmp_path, [page(0, fetched_at=START, fetch_s=1.0)])
    counts = Counters(dns_lookups=2, dns_s=1.0, urls_hits=3, urls_misses=1)
    committed(tmp_path, [EpochRow(1, START + 1, 0.1, 0.1, 1, 1, 1, 0, 100, 5, 0, counts)])
    [file] = (tmp_path / "epochs").glob("*.parquet")
    pq.write_table(pq.read_table(file).drop_columns(["urls_on_disk", "requests_s"]), file)
    report = summary(tmp_path)
    assert report.dns.lookups == 2
    assert report.caches == (Cache("urls", 3, 1, 0.75),)


def test_the_queue_is_summed_over_shards_and_caches_over_commits(tmp_path: Path) -> None:
    crawled(tmp_path, [page(n, fetched_at=START + n, fetch_s=0.5) for n in range(10)])
    first = Counters(dns_lookups=2, dns_failures=1, dns_s=1.0, dns_within_1_s=2, urls_hits=3, urls_misses=1)
    second = Counters(dns_lookups=2, dns_s=4.0, dns_within_1_s=1, urls_hits=3, urls_misses=1, urls_on_disk=1)
    rows = [EpochRow(1, START + 1, 0.1, 0.1, 1, 1, 1, 0, 100, 5, 0, first)]
    rows += [EpochRow(1, START + 3, 0.1, 0.1, 1, 1, 1, 1, 20, 5, 0, second)]
    rows += [EpochRow(2, START + 5, 0.1, 0.1, 1, 1, 1, 0, 10, 5, 0)]
    committed(tmp_path, rows)
    report = summary(tmp_path)
    assert [step.queued for step in report.course.steps if step.at_s in (1.0, 2.0, 3.0, 5.0)] == [100, 100, 120, 30]
    assert report.dns == Dns(4, 1, 5.0, 1.25, 0.5, 0, 0, 3)
    assert report.caches == (Cache("urls", 6, 2, 0.75), Cache("eliminator", 7, 1, 0.875))
    text = as_text(report)
    assert "URLs queued over time" in text
    assert "4 DNS lookups, 1 without an address" in text
    assert "75.0% of 8 found in memory" in text
    assert re.search(r"seen URLs +87\.5% of 8 found in memory", text)
    assert "Queue length" in as_html(report, "x")


@pytest.mark.parametrize(
    ("last_s", "labels"),
    [
        (2.0, ["0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s"]),
        (74.0, ["0 s", "15 s", "30 s", "45 s", "1 min"]),
        (5400.0, ["0 s", "15 min", "30 min", "45 min", "1 h", "1 h 15 min", "1 h 30 min"]),
        (86400.0 * 30, ["0 s", "5 d", "10 d", "15 d", "20 d", "25 d", "30 d"]),
    ],
)
def test_a_time_axis_has_round_labels(last_s: float, labels: list[str]) -> None:
    steps = tuple(TimelineStep(at_s, 1, 1, 100) for at_s in (0.0, last_s))
    text = as_html(Report(attempts=2, course=TimelineFigures(last_s, steps), hosts=1, hosts_answered=1, sites=1), "x")
    assert re.findall(r'class="tick at"[^>]*>([^<]*)<', text)[: len(labels)] == labels


def test_the_axis_of_a_crawl_of_less_than_a_second_is_in_milliseconds() -> None:
    steps = tuple(TimelineStep(at_s, 1, 1, 100) for at_s in (0.0, 0.1))
    text = as_html(Report(attempts=2, course=TimelineFigures(0.1, steps), hosts=1, hosts_answered=1, sites=1), "x")
    assert all(f">{label} ms<" in text for label in (0, 20, 40, 60, 80, 100))
    assert "host that answered" in text
    assert "of 1 site<" in text
