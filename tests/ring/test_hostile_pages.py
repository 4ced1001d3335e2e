"""Pages made to do harm: each costs bounded time and memory, and the others of the crawl are as they would be."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pytest

from gossamer import Crawler, processing_module
from gossamer.api import status_of
from gossamer.config import configure
from gossamer.model.pages import Findings, Page
from tests.ring.crawls import OWN, Crawled, crawl
from tests.ring.hostile import MIB, Answer, HostileServer, bomb, whole

LINKS = 100_000
GOOD = 20
PAGES = {
    "/": whole(
        b"<title>Home</title>"
         b"<a href=deep>x</a><a href=attribute>x</a><a href=bomb>x</a><a href=links>x</a><a href=fonts>x</a>"
         b"<a href=robots>x</a>"
        + b"".join(b"<a href=good%d>x</a>" % n for n in range(GOOD))
    ),
    "/deep": whole(b"<title>Deep</title>" + b"<div>" * 40_000 + b"<a href=from-deep>x</a>"),
    "/attribute": whole(b'<title>Long</title><p title="' + b"x" * (2 * MIB) + b'"><a href=from-attribute>x</a>'),
    "/bomb": Answer(bomb(10), "text/html", "gzip"),
    "/links": whole(
        b"<title>Many</title>" + b"".join(b'<a href="https://e.example/%d">x</a>' % n for n in range(LINKS))
    ),
    "/fonts": whole(b"<title>Fonts</title>" + b"".join(b"<font size=%d><p>" % (n % 7) for n in range(4000))),
    "/robots": whole(b"<title>Not it</title>"),
    "/robots.txt": Answer(
        lambda: [b"User-agent: *\nDisallow: /none\n"] + [b"Disallow: /x\n" * 80_000] * 5, "text/plain"
    ),
    **{f"/{name}": whole(b"<title>Found</title>") for name in ("from-deep", "from-attribute")},
    **{f"/good{n}": whole(b"<title>Good</title>") for n in range(GOOD)},
}  # fmt: skip


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with HostileServer(PAGES) as server:
        directory = tmp_path_factory.mktemp("hostile") / "c"
        seconds, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        crawled = crawl(
            (server.root,),
            directory,
            *OWN,
            "fetch.body_bytes_max=20000000",
            "fetch.request_s_max=60.0",
            "fetch.connect_s_max=20.0",
        )
        crawled.status["process_s"] = time.process_time() - seconds
        crawled.status["grown_kb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        crawled.notes.append(server.root)
        yield crawled


def row(crawled: Crawled, path: str) -> dict[str, object]:
    (found,) = [row for row in crawled.rows if str(row["url"]).endswith(path)]
    return found


def test_every_page_is_fetched_and_read(crawled: Crawled) -> None:
    assert crawled.end == "finished"
    assert crawled.critical() == ""
    titles = {str(row["url"]).rpartition("/")[2]: row["title"] for row in crawled.rows}
    assert titles == {
        "": "Home", "deep": "Deep", "attribute": "Long", "bomb": "Bomb", "links": "Many", "fonts": "Fonts",
        "robots": "Not it", "from-deep": "Found", "from-attribute": "Found",
        **{f"good{n}": "Good" for n in range(GOOD)},
    }  # fmt: skip
    assert set(crawled.outcomes.values()) == {"fetched"}


@pytest.mark.heavy
def test_a_bomb_is_cut_at_its_bound(crawled: Crawled) -> None:
    bombed = row(crawled, "/bomb")
    assert bombed["truncated"] == "length"
    assert bombed["body_bytes"] == 32 * MIB
    assert int(str(bombed["wire_bytes"])) > 10 * MIB


@pytest.mark.heavy
def test_of_very_many_links_as_many_are_taken_as_are_allowed(crawled: Crawled) -> None:
    assert sum(source.endswith("/links") for source, _ in crawled.links) == 50_000


@pytest.mark.promise("Bounds", "Every page takes bounded time and memory.")
def test_time_and_memory_are_bounded(crawled: Crawled) -> None:
    """All of them together; the whole of a bomb would be 10 GB and minutes, that of the nested tags half a minute."""
    assert float(str(crawled.status["process_s"])) < 40
    assert int(str(crawled.status["grown_kb"])) < 600 * 1024


AT_ONCE = 12
READ: list[str] = []


@processing_module("text/html")
def takes_long(page: Page, _: Findings) -> None:
    READ.append(page.url)
    end = time.thread_time() + 0.12
    while time.thread_time() < end:
        pass


@pytest.mark.heavy
@pytest.mark.promise("Bounds", "Pages that come at once leave the event loop to other work in between.")
@pytest.mark.long
def test_pages_that_come_at_once_leave_the_loop_to_others(tmp_path: Path) -> None:
    READ.clear()
    come = threading.Barrier(AT_ONCE)
    most = 0

    def page() -> list[bytes]:
        come.wait(60)
        return [b"<title>Found</title>", b" " * 80_000]

    async def crawled(crawler: Crawler) -> str:
        async def look() -> None:
            nonlocal most
            while True:
                before = len(READ)
                await asyncio.sleep(0)
                most = max(most, len(READ) - before)

        looking = asyncio.create_task(look())
        try:
            return await crawler.run()
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking

    with HostileServer({"/": Answer(page, "text/html")}, "0.0.0.0") as server:
        seeds = [
            f"http://127.0.0.{host}:{server.root.rstrip('/').rpartition(':')[2]}/" for host in range(2, AT_ONCE + 2)
        ]
        # Minutes for a request: one that is given up counts among those that came, and is alone when it comes again.
        sets = (*OWN, "fetch.connect_s_max=60", "fetch.request_s_max=120", f"process.modules=['{__name__}:takes_long']")
        config = configure(options={"allow_private": True}, sets=sets, seeds=seeds)
        assert asyncio.run(crawled(Crawler(output=tmp_path / "c", config=config))) == "finished"
    assert len(READ) == AT_ONCE
    assert most <= 2


@pytest.mark.heavy
@pytest.mark.promise("Bounds", "A host gets no more requests while a page of it waits to be read.")
def test_pages_are_not_fetched_faster_than_they_are_read(tmp_path: Path) -> None:
    READ.clear()
    unread: list[int] = []
    links = b"".join(b"<a href=/%d>x</a>" % number for number in range(4))

    def page() -> list[bytes]:
        unread.append(sum(n for path, n in server.counts.items() if path != "/robots.txt") - len(READ))
        return [b"<title>Found</title>", links, b" " * 40_000]

    paths = ("/", *(f"/{number}" for number in range(4)))
    with HostileServer({path: Answer(page, "text/html") for path in paths}, "0.0.0.0") as server:
        seeds = [f"http://127.0.0.{host}:{server.root.rstrip('/').rpartition(':')[2]}/" for host in (2, 3)]
        crawled = crawl(
            tuple(seeds), tmp_path / "c", *OWN, "politeness.per_host=1", f"process.modules=['{__name__}:takes_long']"
        )
    assert crawled.end == "finished"
    assert len(READ) == 10
    assert max(unread) <= 3, "one of each host, and one that came as the loop was free"


MANY = 20_000
DIRECTORY = whole(b"<title>All</title>" + b"".join(b"<a href=page%d>x</a>" % n for n in range(MANY)))


async def crawl_some(seed: str, output: Path, ends: str) -> tuple[str, list[int]]:
    """End a crawl when a quarter of the links of its first page is queued; return how, and the steps of the queue."""
    config = configure(options={"allow_private": True}, sets=OWN, seeds=(seed,))
    crawler = Crawler(output=output, config=config)
    jumps: list[int] = []

    async def look() -> None:
        before = 0
        while before < MANY / 4:
            await asyncio.sleep(0)
            queued = int(str(crawler.status().get("queued", 0)))
            jumps.append(queued - before)
            before = queued
        if ends == "killed":
            assert crawler._shard is not None
            await crawler._shard.ring.loop.commit()
            os.kill(os.getpid(), signal.SIGKILL)
        crawler.stop(now=True)

    looking = asyncio.create_task(look())
    end = await crawler.run()
    await looking
    return end, jumps


def crawl_until_killed(seed: str, output: Path) -> None:
    asyncio.run(crawl_some(seed, output, "killed"))


@pytest.mark.heavy
@pytest.mark.parametrize("ends", ["killed", "stopped"])
@pytest.mark.promise("Bounds", "Pages that come at once leave the event loop to other work in between.")
@pytest.mark.promise("Crash safety", "Of a page's links all are durable with it, or none.")
def test_the_links_of_one_page_are_queued_in_slices_within_one_epoch(tmp_path: Path, ends: str) -> None:
    with HostileServer({"/": DIRECTORY}) as server:
        if ends == "stopped":
            end, jumps = asyncio.run(crawl_some(server.root, tmp_path / "c", ends))
            assert end == "stopped"
            assert max(jumps) <= 1_000
        else:
            child = get_context("spawn").Process(target=crawl_until_killed, args=(server.root, tmp_path / "c"))
            child.start()
            child.join(60)
            assert child.exitcode == -signal.SIGKILL
    rest = status_of(tmp_path / "c")
    assert int(str(rest["queued"])) + int(str(rest["attempts"])) == MANY + 1
