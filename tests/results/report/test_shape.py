"""Sizes in powers of two, and politeness."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gossamer.results.report.figures import Bucket, Gaps, Uses
from gossamer.results.report.html import as_html
from gossamer.results.report.report import summary
from gossamer.results.report.text import as_text, bucket_name, seconds
from tests.results.report.crawled import START, crawled, page


def test_documents_by_size(tmp_path: Path) -> None:
    rows = [page(n, body_bytes=size) for n, size in enumerate([0, 1, 2, 3, 4, 1023, 1024, 2**40])]
    rows.append(page(9, body_bytes=5, outcome="http_error", status=404))
    sizes = summary(crawled(tmp_path, rows)).document_sizes
    assert [bucket for bucket in sizes if bucket.count] == [
        Bucket(0, 1, 0), Bucket(1, 1, 1), Bucket(2, 2, 5), Bucket(4, 1, 4), Bucket(512, 1, 1023),
        Bucket(1024, 1, 1024), Bucket(2**40, 1, 2**40),
    ]  # fmt: skip
    assert [bucket.least for bucket in sizes] == [0, *(2**power for power in range(41))], "empty ones are there"


def test_hosts_by_pages_and_bytes(tmp_path: Path) -> None:
    rows = [page(n, "many.example.org") for n in range(5)] + [page(6, "one.example.org")]
    rows.append(page(7, "none.example.org", outcome="dns_error", wire_bytes=0))
    report = summary(crawled(tmp_path, rows))
    assert report.hosts_by_pages == (Bucket(0, 1, 0), Bucket(1, 1, 1), Bucket(2, 0, 0), Bucket(4, 1, 5))
    assert report.hosts_by_bytes[:2] == (Bucket(0, 1, 0), Bucket(1, 0, 0))
    assert report.hosts_by_bytes[-3:] == (Bucket(64, 1, 100), Bucket(128, 0, 0), Bucket(256, 1, 500))


def test_rests_are_counted_from_the_end_of_one_request_to_the_start_of_the_next(tmp_path: Path) -> None:
    at = {"ip": "127.0.0.1", "fetch_s": 0.5}
    rows = [
        page(0, fetched_at=START, **at),
        page(0, fetched_at=START + 2.0, **at),
        page(0, fetched_at=START + 2.25, **at),  # Before the one before it had ended.
        page(0, fetched_at=START + 4.25, **at),
        page(0, "b.example.com", fetched_at=START + 10.0, **at),
        page(0, fetched_at=START + 5.0, outcome="robots_denied", fetch_s=0.0),  # No request.
    ]
    politeness = summary(crawled(tmp_path, rows)).politeness
    assert politeness.host_gaps == Gaps(3, -0.25, 1.5, pytest.approx(2.75 / 3), 1, 2)
    assert (politeness.address_gaps.counted, politeness.address_gaps.overlaps) == (4, 1)
    assert (politeness.robots_denied, politeness.robots_denied_hosts) == (1, 1)


def test_requests_at_once_are_the_most_at_one_time_and_not_their_overlaps(tmp_path: Path) -> None:
    at = {"ip": "127.0.0.1", "fetch_s": 1.5}
    rows = [page(n, fetched_at=START + n, **at) for n in range(8)]
    rows += [page(n, "b.example.com", fetched_at=START + 2 * n, ip="127.0.0.2", fetch_s=2.0) for n in range(8)]
    report = summary(crawled(tmp_path, rows))
    assert report.politeness.host_gaps.overlaps == 7
    assert report.politeness.host_gaps.at_once_max == 2, "one that begins as another ends is not beside it"
    assert report.politeness.address_gaps.at_once_max == 2
    assert '<th scope=row>Most requests to one host at once</th><td data-head="">2</td>' in as_html(report, "crawl")
    assert re.search("Most requests to one host at once +2\n", as_text(report))


def test_refusals_are_counted(tmp_path: Path) -> None:
    kinds = ["robots_denied", "robots_denied", "robots_unreachable", "excluded", "http_error", "http_error"]
    rows = [page(n, outcome=kind, status=429 + n, fetch_s=0.0) for n, kind in enumerate(kinds)]
    rows[4].status, rows[5].status, rows[0].status = 429, 503, 200
    politeness = summary(crawled(tmp_path, rows)).politeness
    assert (politeness.robots_denied, politeness.robots_unreachable, politeness.excluded, politeness.busy) == (
        2,
        1,
        1,
        2,
    )


def test_words() -> None:
    assert [seconds(n) for n in (0.0004, 0.9, 2.5)] == ["0.4 ms", "900.0 ms", "2.50 s"]
    assert bucket_name(Bucket(4096, 1, 1), of_bytes=False) == "4,096"
    assert bucket_name(Bucket(4096, 1, 1), of_bytes=True) == "4.1 kB", "in the units of all other sizes"


def test_answers_and_statements_on_use_are_counted(tmp_path: Path) -> None:
    stated = "robots.txt Content-Usage: train-ai=n: x\nheader X-Robots-Tag: noai\nheader X-Robots-Tag: a"
    rows = [
        page(0, usage_ai_train="refused", usage_search="allowed", usage_statements=stated),
        page(1, usage_ai_train="refused", usage_statements="robots.txt Content-Usage: train-ai=n"),
        page(2, usage_ai_train="refused", outcome="usage_withheld", usage_statements="meta robots: noai"),
        page(3),
        page(4, outcome="http_error"),
    ]
    report = summary(crawled(tmp_path, rows))
    assert report.uses == (
        Uses("search", 1, 0, 3), Uses("ai-train", 0, 3, 1), Uses("ai-input", 0, 0, 4), Uses("archive", 0, 0, 4),
    )  # fmt: skip
    assert {one.name: one.count for one in report.statements} == {
        "robots.txt Content-Usage": 2,
        "header X-Robots-Tag": 1,
        "meta robots": 1,
    }
    assert report.statements[0].share == 0.5
    shown = as_text(report)
    assert ["ai-train", "0", "3", "1"] in [line.split() for line in shown.splitlines()]
    assert "Permitted uses" in as_html(report, "x")


def test_a_crawl_without_statements_has_no_part_about_them(tmp_path: Path) -> None:
    report = summary(crawled(tmp_path, [page(0)]))
    assert (report.uses, report.statements) == ((), ())
    assert "permitted use" not in as_text(report)
