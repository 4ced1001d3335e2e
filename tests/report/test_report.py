"""The report, from Parquet files as a crawl leaves them."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

from gossamer.archive.schema import LINKS, PAGES
from gossamer.model.visits import PageRow
from gossamer.report.figures import Count, Report, as_json
from gossamer.report.report import summary
from gossamer.report.text import as_text, printable

START = 1_767_225_600.0


def page(number: int, host: str = "a.example.org", **fields: object) -> PageRow:
    url = f"http://{host}/{number}"
    row = PageRow(url, url, host, "example.org", START + number, "fetched", 200, "text/html")
    usual: dict[str, object] = {"wire_bytes": 100, "body_bytes": 250, "fetch_s": 0.1, "warc_length": 50}
    fields = usual | {"depth": number % 3} | fields
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def crawled(directory: Path, rows: list[PageRow], links: int = 0) -> Path:
    for folder in ("pages", "links"):
        (directory / folder).mkdir(exist_ok=True)
    half = len(rows) // 2
    for number, part in enumerate((rows[:half], rows[half:])):
        dicts = [msgspec.structs.asdict(row) | {"fetched_at": round(row.fetched_at * 1e6)} for row in part]
        plain = pa.schema([(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in PAGES])
        table = pa.Table.from_pylist(dicts, plain).cast(PAGES)
        pq.write_table(table, directory / "pages" / f"pages-000-0001-{number:06d}.parquet")
    link = {"from_url": "http://a/", "to_url": "http://b/", "to_key": "http://b/", "link_type": "anchor"}
    link |= {"anchor_text": "b", "nofollow": False}  # type: ignore[dict-item]
    table = pa.table({name: [link[name]] * links for name in LINKS.names})
    pq.write_table(table.cast(pa.schema([(name, pa.bool_() if name == "nofollow" else pa.string()) for name in link])),
                   directory / "links" / "links-000-0001-000001.parquet")  # fmt: skip
    return directory


def assorted(directory: Path) -> Path:
    rows = [page(number) for number in range(6)]
    rows += [page(number, "b.example.com", fetch_s=2.0, wire_bytes=1000) for number in range(6, 9)]
    rows += [
        page(9, "[::1]", outcome="http_error", status=404, error="", fetch_s=0.5),
        page(10, "10.0.0.1", outcome="timeout", status=None, error="no byte for 30 s", fetch_s=30.0, warc_length=None),
        page(
            11,
            "b.example.com",
            outcome="timeout",
            status=None,
            error="later",
            fetch_s=31.0,
            warc_length=None,
            attempt=2,
        ),
        page(12, duplicate_of="http://a.example.org/1", media_type=""),
        page(13, truncated="length", media_type="image/png", outcome="redirected", status=301),
    ]
    return crawled(directory, rows, links=7)


def test_figures_are_right(tmp_path: Path) -> None:
    report = summary(assorted(tmp_path))
    assert (report.attempts, report.fetched, report.repeated) == (14, 10, 1)
    assert (report.hosts, report.sites, report.links) == (4, 1, 7)
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
    assert [(count.name, count.count) for count in report.hosts_per_tld] == [("(address)", 2), ("com", 1), ("org", 1)]
    assert [host.host for host in report.top_hosts][:2] == ["a.example.org", "b.example.com"]
    assert report.top_hosts[0].wire_bytes == 800
    assert [host.host for host in report.slowest_hosts] == ["b.example.com", "a.example.org"]
    assert report.slowest_hosts[0].mean_fetch_s == pytest.approx(37 / 4)
    timeout = report.troubles[0]
    assert (timeout.outcome, timeout.count, timeout.url, timeout.error) == (
        "timeout",
        2,
        "http://10.0.0.1/10",
        "no byte for 30 s",
    )


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


def test_json_holds_the_same(tmp_path: Path) -> None:
    report = summary(assorted(tmp_path))
    assert msgspec.json.decode(as_json(report).encode(), type=Report) == report


@pytest.mark.parametrize("width", [20, 60, 80, 120])
def test_text_keeps_to_its_width(tmp_path: Path, width: int) -> None:
    report = summary(assorted(tmp_path))
    text = as_text(report, width)
    assert "10 pages fetched in 14 attempts from 4 hosts" in text
    assert all(cell_len(line) <= max(width, 60) for line in text.splitlines())
    for word in ("timeout", "http://10.0.0.1/10", "text/html", "b.example.com"):
        assert word in text


def test_strangers_words_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    bad = "\x1b[2J\x07\u202e\r\n\x9b"
    row = page(1, host=f"h{bad}", outcome="timeout", error=f"e{bad}", media_type=f"m{bad}")
    fetched = page(2, host="漢字漢字漢字.example", media_type=f"m{bad}")
    text = as_text(summary(crawled(tmp_path, [row, fetched])), 60)
    assert all(mark == "\n" or mark.isprintable() for mark in text)
    assert "\\x1b[2J\\x07\\u202e\\r\\n\\x9b" in text
    assert printable("plain é") == "plain é"


def test_memory_is_bounded_by_what_it_is_given(tmp_path: Path) -> None:
    rows = [page(number, f"host{number}.example.org") for number in range(3000)]
    report = summary(crawled(tmp_path, rows), memory_bytes_max=64_000_000)
    assert report.hosts == 3000
    assert len(report.top_hosts) == 20
