"""What tables remember of a crawl, in the words in which one that runs is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.model.pages import EpochRow
from gossamer.results.report.past import ATTEMPTS_MAX, POINTS_MAX, course_until, past
from tests.results.report.crawled import START, assorted, committed, crawled, page


def commit(number: int, pages: int, shard: int = 0) -> EpochRow:
    return EpochRow(number, START + number, 0.1, 0.01, pages + 1, pages, 100 * pages, shard, queued=7 * number)


def test_nothing_is_remembered_of_a_crawl_without_tables(tmp_path: Path) -> None:
    found = past(tmp_path)
    assert (found.points, found.pages, found.errors) == ([], [], [])
    assert course_until(tmp_path, START) == []


def test_the_course_is_that_of_the_commits(tmp_path: Path) -> None:
    crawled(tmp_path, [page(number) for number in range(4)])
    committed(tmp_path, [commit(number, 10 * number) for number in range(1, 6)])
    points = past(tmp_path).points
    assert points[0] == [START, 0, 0, 0, None], "what came before the first commit has a rate"
    assert points[1:] == [[START + n, 10 * n, 10 * n + 1, 1_000 * n, 7 * n] for n in range(1, 6)]
    assert course_until(tmp_path, START + 3.5) == points[:4]


def test_the_course_of_a_long_crawl_has_few_points(tmp_path: Path) -> None:
    crawled(tmp_path, [page(1), page(2)])
    committed(tmp_path, [commit(number, number) for number in range(1, 5_000)])
    points = past(tmp_path).points
    assert len(points) <= POINTS_MAX + 2
    assert points[-1][1] == 4_999


def test_shards_are_added_up_also_where_one_is_silent(tmp_path: Path) -> None:
    crawled(tmp_path, [page(1), page(2)])
    committed(tmp_path, [commit(1, 10), commit(2, 5, shard=1), commit(3, 20), commit(4, 30)])
    assert [point[1] for point in past(tmp_path).points] == [0, 10, 15, 25, 35]
    assert [point[4] for point in past(tmp_path).points] == [None, 7, 21, 35, 42], "the last queue of each, together"


def test_hosts_and_last_attempts_are_reported(tmp_path: Path) -> None:
    found = past(assorted(tmp_path))
    hosts = {name: [one["host"] for one in found.hosts[name]] for name in ("slowest", "failing")}  # type: ignore[attr-defined]
    assert hosts["slowest"][0] == "b.example.com"
    assert set(hosts["failing"]) == {"10.0.0.1", "b.example.com", "[::1]"}
    reasons = {one["host"]: one["reason"] for one in found.hosts["failing"]}  # type: ignore[attr-defined]
    assert reasons == {"10.0.0.1": "no byte for 30 s", "b.example.com": "later", "[::1]": "http_error"}
    assert [one["outcome"] for one in found.errors] == ["http_error", "timeout", "timeout"]
    assert [one["at"] for one in found.pages] == sorted(one["at"] for one in found.pages)
    assert len(found.pages) <= ATTEMPTS_MAX
    assert found.errors[1]["error"] == "no byte for 30 s"


def test_the_reason_of_a_host_is_that_of_most_of_its_failures(tmp_path: Path) -> None:
    statuses = [404, 404, 404, 403, 403, 500]
    rows = [page(n, outcome="http_error", status=status, error=f"HTTP {status}") for n, status in enumerate(statuses)]
    [host] = past(crawled(tmp_path, rows)).hosts["failing"]  # type: ignore[attr-defined]
    assert (host["failures"], host["reason"], host["limit"]) == (6, "HTTP 404", "")


def test_what_strangers_wrote_is_bounded(tmp_path: Path) -> None:
    found = past(crawled(tmp_path, [page(1, title="t" * 9_000), page(2, outcome="timeout", error="e" * 9_000)]))
    assert len(str(found.pages[0]["title"])) == 300
    assert len(str(found.errors[0]["error"])) == 300
    assert found.errors[0]["number"] == pytest.approx(1e6 * (START + 2))
