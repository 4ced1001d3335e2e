"""The report, from Parquet files as a crawl leaves them."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from gossamer.model.errors import DamagedError
from gossamer.model.standing import Awaited, Lasting
from gossamer.results.report.figures import CopyFigures, Count, Domain, Report, as_json
from gossamer.results.report.html import as_html
from gossamer.results.report.report import summary
from gossamer.results.report.text import as_text, printable
from tests.results.report.crawled import START, assorted, crawled, page


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("table", ["pages", "links"])
def test_a_file_that_was_cut_is_one_line(tmp_path: Path, table: str, kept: float) -> None:
    directory = assorted(tmp_path)
    file = next((directory / table).glob("*.parquet"))
    data = file.read_bytes()
    file.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(DamagedError, match="not copied whole") as refused:
        summary(directory)
    assert file.name in str(refused.value)
    assert "\n" not in str(refused.value)


def test_attempts_without_rows_are_named_and_why_where_pages_were_forgotten(tmp_path: Path) -> None:
    directory = assorted(tmp_path)
    assert summary(directory, counted=14).incomplete == ""
    lacks = "the tables hold 14 of 15 attempts; the figures lack the others"
    assert summary(directory, counted=15).incomplete == lacks
    (directory / "forgotten.jsonl").write_text("{}\n")
    assert summary(directory, counted=14).incomplete == ""
    assert summary(directory, counted=15).incomplete == f"{lacks}, among them those of forgotten pages"


def test_figures_are_right(tmp_path: Path) -> None:
    report = summary(assorted(tmp_path))
    assert (report.attempts, report.fetched, report.repeated) == (14, 10, 1)
    assert (report.hosts, report.hosts_answered, report.sites, report.links) == (4, 3, 1, 7)
    assert (report.urls, report.urls_fetched, report.visits, report.urls_revisited) == (14, 10, 13, 0)
    assert (report.duplicates, report.truncated) == (1, 1)
    assert (report.wire_bytes, report.body_bytes, report.warc_bytes) == (3 * 1000 + 11 * 100, 14 * 250, 12 * 50)
    assert report.begun_at == START
    assert report.ended_at == START + 42.0
    assert report.duration_s == 42.0
    assert report.pages_per_s == pytest.approx(10 / 42)
    assert report.fetch_s.max == 31.0
    assert report.fetch_s.p50 == pytest.approx(0.1, abs=0.05)
    assert report.outcomes[0] == Count("fetched", 10, 10 / 14)
    assert [count.name for count in report.outcomes] == ["fetched", "timeout", "http_error", "redirected"]
    assert [(count.name, count.count) for count in report.statuses] == [("200", 10), ("301", 1), ("404", 1)]
    assert [(count.name, count.count) for count in report.media_types] == [("text/html", 9), ("(none)", 1)]
    assert [count.name for count in report.depths] == ["0", "1", "2"]
    assert report.link_types == (Count("anchor", 7, 1.0),)
    assert report.domains == (Domain("org", 1, 7), Domain("com", 1, 3), Domain("(address)", 2, 0))
    assert report.copied == (CopyFigures("http://a.example.org/1", 1, 250),)
    assert report.duplicate_bytes == 250
    assert report.bits_per_s == pytest.approx(8 * report.wire_bytes / 42)
    assert [host.host for host in report.top_hosts][:2] == ["a.example.org", "b.example.com"]
    assert report.top_hosts[0].wire_bytes == 800
    assert [host.host for host in report.slowest_hosts] == ["b.example.com", "a.example.org"]
    assert report.slowest_hosts[0].mean_fetch_s == pytest.approx(37 / 4)
    assert [(t.outcome, t.kind, t.count, t.url) for t in report.troubles] == [
        ("http_error", "404", 1, "http://[::1]/9"),
        ("timeout", "later", 1, "http://b.example.com/11"),
        ("timeout", "no byte for # s", 1, "http://10.0.0.1/10"),
    ]
    assert report.troubles[2].error == "no byte for 30 s"


def test_a_crawl_without_pages_has_a_report(tmp_path: Path) -> None:
    assert summary(tmp_path) == Report()
    assert as_text(Report()) == "No pages yet.\n"
    assert summary(crawled(tmp_path, [])).attempts == 0
    assert json.loads(as_json(Report()))["outcomes"] == []


def test_without_links_the_rest_stands(tmp_path: Path) -> None:
    directory = assorted(tmp_path)
    for path in directory.glob("links/*"):
        path.unlink()
    report = summary(directory)
    assert (report.attempts, report.links, report.link_types) == (14, 0, ())


def test_urls_visits_and_attempts_are_counted_apart(tmp_path: Path) -> None:
    rows = [page(number % 13, fetched_at=START + number) for number in range(246)]
    rows += [page(99, outcome="timeout", status=None, wire_bytes=0, fetched_at=START + n, attempt=n) for n in (1, 2, 3)]
    rows.append(page(99, fetched_at=START + 9, attempt=4))
    rows.append(page(98, "gone.example", outcome="dns_error", status=None, wire_bytes=0))
    report = summary(crawled(tmp_path, rows))
    assert (report.attempts, report.visits, report.repeated, report.fetched) == (251, 248, 3, 247)
    assert (report.urls, report.urls_fetched, report.urls_revisited) == (15, 14, 13)
    assert (report.hosts, report.hosts_answered) == (2, 1)
    assert report.url_outcomes == (Count("fetched", 14, 14 / 15), Count("dns_error", 1, 1 / 15))
    assert [(count.name, count.count) for count in report.outcomes][:2] == [("fetched", 247), ("timeout", 3)]
    text = as_text(report)
    assert "14 pages fetched in 251 attempts from 1 host of 2 named" in text
    assert "15 tried, in 248 visits; 13 visited repeatedly" in text
    page_text = as_html(report, "x")
    assert "248 visits; 13 URLs revisited" in page_text
    assert "<b>14</b><span>pages fetched" in page_text


def test_the_mean_rate_is_of_the_time_of_crawling_if_that_is_known(tmp_path: Path) -> None:
    directory = assorted(tmp_path)
    of_all = summary(directory)
    assert of_all.pages_per_s == of_all.fetched / of_all.duration_s
    of_runs = summary(directory, Report(crawling_s=10.0), received=4_000)
    assert of_runs.pages_per_s == of_all.fetched / 10.0
    assert of_runs.bits_per_s == 3_200.0
    assert "of crawling" not in as_text(of_all)
    assert "3.2 kbit/s, in 10.0 s of crawling" in as_text(of_runs)
    assert "<b>10.0 s</b><span>crawling time</span>" in as_html(of_runs, "crawl")


def test_warnings_are_on_the_page(tmp_path: Path) -> None:
    page = as_html(summary(assorted(tmp_path), Report(warnings=("<b> shows a login",))), "crawl")
    assert "<p class=lacks>Warning: &lt;b&gt; shows a login</p>" in page


def test_json_is_complete_and_text_says_how_many_rows_it_leaves_out(tmp_path: Path) -> None:
    rows = [page(n, f"h.d{n}", media_type=f"text/x-{n:02}", fetched_at=START + n) for n in range(54)]
    report = summary(crawled(tmp_path, rows))
    assert (len(report.media_types), len(report.domains)) == (54, 54)
    assert as_text(report).count("… and 34 more") == as_html(report, "x").count("… and 34 more") == 2
    assert sum(count.share for count in report.media_types) == pytest.approx(1.0)


def test_json_holds_the_same(tmp_path: Path) -> None:
    report = summary(assorted(tmp_path))
    assert msgspec.json.decode(as_json(report).encode(), type=Report) == report


@pytest.mark.parametrize("width", [20, 60, 80, 120])
def test_text_keeps_to_its_width(tmp_path: Path, width: int) -> None:
    report = summary(assorted(tmp_path))
    text = as_text(report, width)
    assert "10 pages fetched in 14 attempts from 3 hosts of 4 named" in text
    assert all(cell_len(line) <= max(width, 60) for line in text.splitlines())
    for word in ("timeout", "http://10.0.0.1/10", "text/html", "b.example.com"):
        assert word in text


@pytest.mark.promise("Operation", "Text from the web never reaches a terminal unescaped.")
def test_strangers_words_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    bad = "\x1b[2J\x07\u202e\r\n\x9b"
    row = page(1, host=f"h{bad}", outcome="timeout", error=f"e{bad}", media_type=f"m{bad}")
    fetched = page(2, host="漢字漢字漢字.example", media_type=f"m{bad}")
    text = as_text(summary(crawled(tmp_path, [row, fetched])), 60)
    assert all(mark == "\n" or mark.isprintable() for mark in text)
    assert "\\x1b[2J\\x07\\u202e\\r\\n\\x9b" in text
    assert printable("plain é") == "plain é"
    assert printable("a\u3164b\U000e0120\x1b") == "a\\u3164b\\U000e0120\\x1b"


def test_memory_is_bounded_by_what_it_is_given(tmp_path: Path) -> None:
    rows = [page(number, f"host{number}.example.org") for number in range(3000)]
    report = summary(crawled(tmp_path, rows), memory_bytes_max=64_000_000)
    assert report.hosts == 3000
    assert len(report.top_hosts) == 20


def test_errors_that_differ_in_numbers_are_of_one_kind(tmp_path: Path) -> None:
    rows = [page(n, outcome="timeout", error=f"no byte for {n} s") for n in range(5)]
    rows += [page(n, outcome="http_error", status=500 + n % 2, error=f"HTTP {500 + n % 2}") for n in range(5, 8)]
    rows.append(page(0, outcome="timeout", error="no byte for 9 s"))
    report = summary(crawled(tmp_path, rows))
    troubles = report.troubles
    assert [(t.outcome, t.kind, t.count) for t in troubles] == [
        ("timeout", "no byte for # s", 6), ("http_error", "501", 2), ("http_error", "500", 1)
    ]  # fmt: skip
    assert [troubles[0].url, *troubles[0].more] == [rows[n].url for n in range(3)], "each URL once"
    assert len(troubles[2].more) == 0
    for shown in (as_text(report, 100), as_html(report, "crawl")):
        assert all(rows[n].url in shown for n in range(3))


def test_what_filters_refused_is_reported_when_it_is_known(tmp_path: Path) -> None:
    report = summary(assorted(tmp_path), rejected={"scope": 1, "exclude": 3, "depth": 0})
    assert report.rejected == (Count("exclude", 3, 0.75), Count("scope", 1, 0.25))
    assert "Links refused, by filter" in as_text(report)


def test_hosts_that_were_not_waited_for_and_idle_shards_are_named(tmp_path: Path) -> None:
    one = Awaited("a.example.org\x1b", 1_767_312_000.0, "https://a.example.org waits: <b>", 7)
    report = summary(assorted(tmp_path), Report(awaited=(one,), idle_shards=(1, 3)))
    text = as_text(report)
    assert text.startswith("Not waited for\n")
    assert "  a.example.org\\x1b     7  2026-01-02 00:00:00 UTC\n      https://a.example.org waits" in text
    assert "Idle shards, without any URL: 1, 3\n" in text
    found = json.loads(as_json(report))
    assert (found["awaited"], found["idle_shards"]) == ([msgspec.structs.asdict(one)], [1, 3])
    page = as_html(report, "crawl")
    assert "<p class=lacks>Idle shards, without any URL: 1, 3</p>" in page
    assert "https://a.example.org waits: &lt;b&gt;" in page
    lasting = Lasting(
        "docs.example\x1b", 4_000, 4_200.0, 4_000.0, "4,000 URLs take <b> long; a shorter delay would help"
    )
    report = summary(tmp_path, Report(lasting=(lasting,)))
    assert "  docs.example\\x1b: 4,000 URLs take <b> long; a shorter delay would help\n" in as_text(report)
    assert "4,000 URLs take &lt;b&gt; long;<br>a shorter delay" in as_html(report, "crawl")
    assert json.loads(as_json(report))["lasting"] == [msgspec.structs.asdict(lasting)]
    without = summary(tmp_path)
    assert "outlast" not in as_text(without) + as_html(without, "crawl")
    assert "Idle" not in as_text(without) + as_html(without, "crawl")
    assert "Not waited for" not in as_text(without) + as_html(without, "crawl")


def test_traps_and_near_duplicates_are_counted(tmp_path: Path) -> None:
    rows = [page(n, outcome="trapped", host="t.example.org") for n in range(3)] + [page(4, outcome="trapped")]
    report = summary(crawled(tmp_path, rows))
    assert (report.trapped, report.near_duplicates) == (4, 0)
    assert report.trapped_hosts == (Count("t.example.org", 3, 0.75), Count("a.example.org", 1, 0.25))


def told(report: Report) -> object:
    """All figures; sums in another order differ in their last bits."""
    return json.loads(as_json(report), parse_float=lambda number: round(float(number), 6))


def test_in_slices_the_figures_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        page(
            number,
            f"host{number % 23}.site{number % 7}.example",
            duplicate_of=f"http://a/{number % 5}" if number % 3 else "",
            outcome="fetched" if number % 4 else "timeout",
            error=f"error {'abcdefg'[number % 7]}",
            ip=f"10.0.0.{number % 3}",
            fetched_at=START + 3 * number,
        )
        for number in range(200)
    ]
    directory = crawled(tmp_path, rows)
    whole = summary(directory)
    monkeypatch.setattr("gossamer.results.report.tables.ROWS_A_SLICE", 11)
    assert told(summary(directory)) == told(whole)
    assert (whole.hosts, whole.sites, len(whole.copied), len(whole.troubles)) == (161, 1, 5, 7)
