"""A crawl whose modules look at pages in a pool of processes leaves what one leaves whose modules run inside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.features.isolation import PAGES_WAITING_MAX
from tests.ring.crawls import OWN, Crawled, crawl, rows
from tests.ring.hostile import Answer, HostileServer, whole
from tests.stages.process.test_content_modules import ARTICLE, METADATA

PAGES = 24
CHOSEN = (
    'process.modules=["main_text", "markdown", "language", "metadata", "tags"]',
    "process.text=true",
    'extract.headings={items="h1,h2", fields={words="", link={css="a", attribute="href", type="url"}}}',
    "fetch.body_memory_bytes_max=30000",
)
"""Everything that reads a page as a whole; the largest page goes to disk."""
POOL = 'process.isolated=["main_text", "markdown", "metadata", "tags", "items"]'
EVERYTHING = (
    'process.isolated=["links", "title_and_text", "header_links", "directives", "main_text", "markdown", "language", '
    '"metadata", "tags", "items"]'
)
VOLATILE = {"fetched_at", "fetch_s", "wire_bytes", "warc_file", "warc_offset", "warc_length", "ip"}


def page_of(number: int) -> bytes:
    """Return a page unlike the others, with what modules differ by."""
    links = "".join(f'<a href="/{target}">to {target}</a> ' for target in range(number, min(number + 4, PAGES)))
    words = " ".join(f"Wort{(number * 31 + one) % 97}" for one in range(30 + 20 * number))
    table = f"<table><tr><th>a<th>b<tr><td>{number}<td>{words[:40]}</table>"
    body = f"<main><h1>Seite {number} <a href=/h{number}>h</a></h1><h2>zwei</h2><p>{words} süß</p>{table}</main>"
    if number == 5:
        body = "<div>" * 1_200 + body  # Too deep for main text.
    if number == 6:
        body = ""  # No main text at all.
    if number == 7:
        body += f"<p>{'lang und länger ' * 4_000}</p>"
    return f"<!doctype html><title>T{number}</title><nav>{links}</nav>{body}<footer>Ende</footer>".encode(
        "windows-1252" if number % 3 else "utf-8"
    )


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    answers = {f"/{number}": whole(page_of(number)) for number in range(PAGES)}
    paths = "".join(f"<a href=/{name}>{name}</a>" for name in (*range(PAGES), "article", "plain", "x"))
    answers["/"] = whole(METADATA.replace("<base href=/b/>", "").encode() + paths.encode())
    answers |= {"/article": whole(ARTICLE.encode()), "/plain": whole(b"nur Text, und nicht wenig davon", "text/plain")}
    xhtml = b"<html><head><title>X</title></head><body><p>XHTML</p></body></html>"
    answers["/x"] = whole(xhtml, "application/xhtml+xml")
    with HostileServer(answers) as server:
        yield server


def left_by(crawled: Crawled) -> dict[str, list[str]]:
    """Return the tables of a crawl without what differs from run to run."""
    assert crawled.end == "finished"
    assert crawled.critical() == ""
    return {
        table: sorted(
            repr(sorted((name, value) for name, value in row.items() if name not in VOLATILE))
            for row in rows(crawled.directory / table)
        )
        for table in ("pages", "links", "tags", "items/headings")
    }


SLOW = """
import os, time
from gossamer import processing_module

@processing_module("text/html", isolated=True)
def slow(page, findings):
    time.sleep(0.02)
    with open(os.environ["GOSSAMER_TEST_READ"], "ab") as file:
        file.write(b".")
"""


@pytest.mark.promise("Bounds", "A host gets no more requests while a page of it waits to be read.")
def test_pages_are_not_fetched_faster_than_a_pool_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, unread = tmp_path / "read", list[int]()
    read.touch()
    monkeypatch.setenv("GOSSAMER_TEST_READ", str(read))
    (tmp_path / "slow.py").write_text(SLOW)
    links = b"".join(b"<a href=/%d>x</a>" % number for number in range(40))

    def page() -> list[bytes]:
        unread.append(sum(n for path, n in server.counts.items() if path != "/robots.txt") - read.stat().st_size)
        return [b"<title>%d</title>" % len(unread), links]

    answers = {path: Answer(page) for path in ("/", *(f"/{number}" for number in range(40)))}
    with HostileServer(answers) as server:
        modules = f"process.modules=['{tmp_path}/slow.py:slow']"
        crawled = crawl((server.root,), tmp_path / "c", *OWN, "politeness.per_host=1", modules)
    assert crawled.end == "finished"
    assert read.stat().st_size == len(unread) == 41
    assert max(unread) <= 1 + PAGES_WAITING_MAX + 2, "and one that waits for a place, and one that is under way"


@pytest.mark.heavy
@pytest.mark.promise(
    "Components and Python",
    "A built-in processing module finds the same in an isolated process as in that of the crawl.",
)
@pytest.mark.long
def test_a_pool_leaves_the_tables_that_modules_inside_leave(server: HostileServer, tmp_path: Path) -> None:
    inside = crawl((server.root,), tmp_path / "inside", *OWN, *CHOSEN)
    pool = crawl((server.root,), tmp_path / "pool", *OWN, *CHOSEN, POOL, "process.isolated_processes=2")
    everything = crawl((server.root,), tmp_path / "all", *OWN, *CHOSEN, EVERYTHING, "process.isolated_processes=3")

    expected = left_by(inside)
    assert len(expected["pages"]) > PAGES
    assert len(expected["items/headings"]) > PAGES
    assert {row["text_method"] for row in inside.rows} >= {"main", "visible", "plain"}
    assert {row["language"] for row in inside.rows} >= {"de"}
    assert left_by(pool) == expected
    assert left_by(everything) == expected
    assert [pool.status[name] for name in ("modules", "text_methods")] == [
        inside.status[name] for name in ("modules", "text_methods")
    ]
