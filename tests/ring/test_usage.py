"""A crawl with a purpose over HTTP: requests, rows, WARC records, exports and reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator

from tests.commands import run
from tests.ring.crawls import OWN, Crawled, crawl
from tests.ring.hostile import HostileServer, whole

ROBOTS = b"User-agent: *\nContent-Usage: search=y, train-ai=y\nContent-Usage: /no/ search=n, train-ai=n\n"
TDMREP = b'[{"location": "/reserved/", "tdm-reservation": 1}]'
LINKS = b"<title>Start</title><a href=/no/x>n</a><a href=/reserved/x>r</a><a href=/secret>s</a><a href=/plain>p</a>"
ANSWERS = {
    "/robots.txt": whole(ROBOTS, "text/plain"),
    "/.well-known/tdmrep.json": whole(TDMREP, "application/json"),
    "/": whole(LINKS),
    "/no/x": whole(b"<title>No</title>"),
    "/reserved/x": whole(b"<title>Reserved</title>"),
    "/secret": whole(b"<title>Secret words</title><meta name=robots content='noai, noindex'>"),
    "/plain": whole(b"<title>Plain</title><meta name=robots content=noarchive><p>Some text."),
}


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer(ANSWERS) as server:
        yield server


@pytest.fixture(scope="module")
def crawled(server: HostileServer, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return crawl((server.root,), tmp_path_factory.mktemp("made") / "crawl", *OWN, 'operator.purpose=["ai-train"]')


def path(url: object) -> str:
    return "/" + str(url).partition("://")[2].partition("/")[2]


def test_what_the_site_and_the_page_refuse(crawled: Crawled) -> None:
    assert crawled.critical() == ""
    assert {path(row["url"]): row["outcome"] for row in crawled.rows} == {
        "/": "fetched",
        "/no/x": "usage_denied",
        "/reserved/x": "usage_denied",
        "/secret": "usage_withheld",
        "/plain": "fetched",
    }
    assert crawled.status["outcomes"] == {"fetched": 2, "usage_denied": 2, "usage_withheld": 1}
    row = next(row for row in crawled.rows if path(row["url"]) == "/plain")
    assert (row["usage_search"], row["usage_ai_train"], row["usage_ai_input"], row["usage_archive"]) == (
        "allowed", "allowed", "unknown", "refused",
    )  # fmt: skip


def test_nothing_of_a_page_that_was_not_kept_is_on_disk(crawled: Crawled) -> None:
    bodies = {}
    stories = {}
    for file in (crawled.directory / "warc").glob("*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                uri = path(record.headers.get("WARC-Target-URI", ""))
                kind = record.headers["WARC-Type"]
                if kind == "response":
                    bodies[uri] = record.reader.read()
                elif kind == "metadata":
                    stories[uri] = record.reader.read().decode()
    assert bodies["/secret"] == b""
    assert bodies["/.well-known/tdmrep.json"] == TDMREP
    assert set(bodies) == {"/robots.txt", "/.well-known/tdmrep.json", "/", "/secret", "/plain"}
    assert "usageStatement: meta robots: noarchive\r\n" in stories["/plain"]
    assert (
        "usage: search, ai-train allowed by robots.txt Content-Usage: search=y, train-ai=y; archive"
        in stories["/plain"]
    )
    row = next(row for row in crawled.rows if path(row["url"]) == "/secret")
    assert (row["title"], row["text_method"]) == ("", "")


def test_why_names_the_document(crawled: Crawled, server: HostileServer) -> None:
    status, out, err = run("why", str(crawled.directory), server.root + "reserved/x")
    assert status == 0, err
    assert "ai-train refused by tdmrep.json tdm-reservation: 1 for /reserved/" in out


def test_export_and_report_by_the_command_line(crawled: Crawled, tmp_path: Path) -> None:
    status, out, err = run(
        "export", str(crawled.directory), "--to", "markdown", "-o", str(tmp_path / "corpus"), "--permitted", "train-ai"
    )
    assert (status, out) == (0, ""), err
    assert "2 allowed, 1 refused" in err
    lines = [json.loads(line) for line in (tmp_path / "corpus/permitted.jsonl").read_bytes().splitlines()]
    assert [(path(line["url"]), line["exported"]) for line in lines] == [
        ("/", True), ("/plain", True), ("/secret", False),
    ]  # fmt: skip
    status, out, _ = run(
        "export", str(crawled.directory), "--to", "jsonl", "-o", "-", "--permitted", "archive", "--unknown"
    )
    assert [path(json.loads(line)["url"]) for line in out.splitlines()] == ["/"]
    status, out, err = run("report", str(crawled.directory), "--json")
    report = json.loads(out)
    assert report["uses"][1] == {"purpose": "ai-train", "allowed": 2, "refused": 1, "unknown": 0}
    assert {one["name"]: one["count"] for one in report["statements"]} == {
        "robots.txt Content-Usage": 3,
        "meta robots": 2,
    }


def test_an_unknown_purpose_is_one_line(crawled: Crawled, tmp_path: Path) -> None:
    status, _, err = run(
        "export", str(crawled.directory), "--to", "csv", "-o", str(tmp_path / "x"), "--permitted", "training"
    )
    assert (status, err.count("\n")) == (2, 1)
    assert "known are search, ai-train, ai-input, archive" in err


def test_directives_for_the_crawls_own_tokens_are_obeyed(tmp_path: Path) -> None:
    def leading(name: str, to: str) -> object:
        return whole(f"<title>{to}</title><meta name='{name}' content=nofollow><a href={to}>x</a>".encode())

    pages = {
        "/": whole(b"<a href=/own>o</a><a href=/further>f</a><a href=/other>x</a>"),
        "/own": leading("MyBot", "/own-hidden"),
        "/further": leading("anybot", "/further-hidden"),
        "/other": leading("gossamer", "/other-free"),
    }
    with HostileServer(pages) as server:
        made = crawl((server.root,), tmp_path, *OWN, 'robots.product_token="mybot"', 'robots.agents=["anybot"]')
    assert {path(row["url"]) for row in made.rows} == {"/", "/own", "/further", "/other", "/other-free"}
