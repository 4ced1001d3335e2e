"""The search process: it answers, and whatever ends it harms one query alone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.model import verbs
from gossamer.results.isolated import questions
from gossamer.results.isolated.questions import FAILURES_MAX, AnswerBounds
from gossamer.results.isolated.searches import SEARCHING, Searches
from gossamer.results.search.documents import IndexedPage
from gossamer.results.search.folder import SUMS
from gossamer.results.search.index import IndexWriter
from gossamer.world import pool
from gossamer.world.process import birth_of

AT = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an index."""
    directory = tmp_path_factory.mktemp("crawl")
    writer = IndexWriter(directory / "search", 15_000_000)
    for number in range(50):
        url = f"http://a.example/{number}"
        writer.put(IndexedPage(url, url, "a.example", "a.example", f"Page {number}", "the quick\nfox", "en", "", AT))
    writer.commit("here")
    writer.close()
    return directory


@asynccontextmanager
async def searches(bounds: AnswerBounds) -> AsyncIterator[Searches]:
    found = Searches(bounds)
    try:
        yield found
    finally:
        await found.close()


def run(work: Callable[[Searches], Awaitable[None]], bounds: AnswerBounds = SEARCHING) -> None:
    async def whole() -> None:
        async with searches(bounds) as found, asyncio.timeout(60):
            await work(found)

    asyncio.run(whole())


def children() -> set[int]:
    """Return the search processes that this process has started and that live."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            words = (path.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z" and b"gossamer.results.isolated" in words and b"search" in words:
            found.add(int(path.parent.name))
    return found


def status_of(process: int) -> str:
    return Path(f"/proc/{process}/status").read_text()


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    """A directory with an index that takes as long to open as we like."""
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "meta.json").touch()
    os.mkfifo(tmp_path / "search" / SUMS)
    return tmp_path


async def taken(searches: Searches) -> None:
    """Wait until the process has taken a question."""
    await until(lambda: [one.at()[0] for one in searches._pool._processes] == [searches._pool._number])


async def until(condition: Callable[[], object]) -> None:
    """Wait until it is so; a test's own deadline ends one that never is."""
    while not condition():  # noqa: ASYNC110 - the kernel tells nobody of what is waited for here
        await asyncio.sleep(0.005)


def test_one_process_answers_many_queries_and_ends_with_its_owner(crawl: Path) -> None:
    async def work(searches: Searches) -> None:
        assert children() == set(), "it starts with the first query"
        found = await searches.search(crawl, "quick fox", limit=3)
        assert (found.total, len(found.hits), found.hits[0].snippet) == (50, 3, "the quick fox")
        assert found.hits[0].fetched_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
        [process] = children()
        assert (await searches.search(crawl, "title:7")).total == 1
        assert (children(), searches.starts, searches.asked) == ({process}, 1, 2)
        await searches.close()
        assert children() == set()

    run(work)


@pytest.mark.promise("Console", "No search query ends the process that receives it.")
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_process_that_dies_in_the_middle_costs_one_query(crawl: Path, stuck: Path, number: signal.Signals) -> None:
    async def work(searches: Searches) -> None:
        await searches.search(crawl, "fox")
        [process] = children()
        asked = asyncio.create_task(searches.search(stuck, "fox"))
        behind = asyncio.create_task(searches.search(crawl, "quick"))
        await until(lambda: searches.asked == 3)
        await taken(searches)
        os.kill(process, number)
        with pytest.raises(verbs.FailedError, match=rf"the search failed: its process died \(signal {number:d}\)"):
            await asked
        assert (await behind).total == 50
        assert (searches.failures, searches.starts) == (1, 2)
        assert f"signal {number:d}" in searches.last_failure

    run(work)


def test_a_process_that_hangs_is_ended(crawl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(searches: Searches) -> None:
        await searches.search(crawl, "fox")
        monkeypatch.setattr(pool, "START_S_MAX", 0.0)  # It has started.
        [process] = children()
        os.kill(process, signal.SIGSTOP)
        with pytest.raises(verbs.VerbTimeoutError, match=r"longer than 0\.3 s; simplify"):
            await searches.search(crawl, "fox")
        assert children() == set()
        monkeypatch.undo()
        assert (await searches.search(crawl, "fox")).total == 50

    run(work, replace(SEARCHING, answer_s_max=0.3))


@pytest.mark.parametrize(
    ("number", "says"),
    [(signal.SIGPROF, r"more than 5 s of processor time; simplify"), (signal.SIGALRM, r"longer than 8 s; simplify")],
)
def test_a_query_that_takes_too_long_is_said_to(stuck: Path, number: signal.Signals, says: str) -> None:
    async def work(searches: Searches) -> None:
        asked = asyncio.create_task(searches.search(stuck, "fox"))
        await until(lambda: searches.asked == 1 and children())
        await taken(searches)
        [process] = children()
        os.kill(process, number)  # As the kernel does when its timer has run down.
        with pytest.raises(verbs.VerbTimeoutError, match=says):
            await asked

    run(work)


def test_a_process_that_died_while_idle_costs_no_query(crawl: Path) -> None:
    async def work(searches: Searches) -> None:
        await searches.search(crawl, "fox")
        [process] = children()
        os.kill(process, signal.SIGKILL)
        await until(lambda: not searches._pool._processes)
        assert (await searches.search(crawl, "fox")).total == 50
        assert searches.failures == 0

    run(work)


def test_processes_that_keep_dying_are_not_started_again_for_a_while(
    crawl: Path, stuck: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(searches: Searches) -> None:
        for _ in range(FAILURES_MAX):
            asked = asyncio.create_task(searches.search(stuck, "fox"))
            await until(children)
            os.kill(children().pop(), signal.SIGKILL)
            with pytest.raises(verbs.FailedError):
                await asked
        for _ in range(20):
            with pytest.raises(
                verbs.BusyError, match=rf"the search is off for \d+ s: its process failed {FAILURES_MAX}"
            ):
                await searches.search(crawl, "fox")
        assert (searches.failures, searches.starts) == (FAILURES_MAX, FAILURES_MAX)
        monkeypatch.setattr(questions, "FAILURES_S", 0.0)
        assert (await searches.search(crawl, "fox")).total == 50

    run(work)


def test_queries_that_wait_have_a_bound(crawl: Path) -> None:
    async def work(searches: Searches) -> None:
        asked = [asyncio.create_task(searches.search(crawl, "fox")) for _ in range(SEARCHING.waiting_max + 5)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(one) for one in found] == [verbs.SearchResults] * SEARCHING.waiting_max + [verbs.BusyError] * 5
        assert searches.starts == 1

    run(work)


def test_a_process_with_nothing_to_do_ends_by_itself(crawl: Path) -> None:
    async def work(searches: Searches) -> None:
        await searches.search(crawl, "fox")
        await until(lambda: not children())
        assert (await searches.search(crawl, "fox")).total == 50
        assert (searches.starts, searches.failures) == (2, 0)

    run(work, replace(SEARCHING, idle_s_max=0.05))


def test_mistakes_are_reported_as_such_and_start_nothing(crawl: Path, tmp_path: Path) -> None:
    async def work(searches: Searches) -> None:
        with pytest.raises(verbs.ConflictError, match=r"has no search index; `gossamer search .* --build` makes one"):
            await searches.search(tmp_path, "fox")
        with pytest.raises(verbs.RefusedError, match=r"5,000 characters"):
            await searches.search(crawl, "(" * 5_000)
        assert searches.starts == 0
        with pytest.raises(verbs.RefusedError, match="the query cannot be run") as refused:
            await searches.search(crawl, "text:*")
        assert refused.value.kind == "refused"
        assert (searches.starts, searches.failures) == (1, 0)

    run(work)


LIMITED = """
from gossamer.world.alarm import ProcessorLimit
from gossamer.world.process import limit_data
limit_data(100 << 20)
ProcessorLimit(0.2).begin()
{}
"""


@pytest.mark.parametrize(
    ("does", "status"), [("while True: pass", -signal.SIGPROF), ("bytearray(200 << 20)", 1), ("pass", 0)]
)
def test_the_kernel_keeps_the_limits(does: str, status: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED.format(does)], env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == status
    assert (b"MemoryError" in ended.stderr) == (status == 1)


def test_the_process_has_no_network(crawl: Path) -> None:
    """By the same call as processes of `tests/world/test_sandbox.py`: here the kernel says that this one made it."""

    async def work(searches: Searches) -> None:
        assert (await searches.search(crawl, "fox")).total == 50
        [process] = children()
        status = status_of(process)
        assert "NoNewPrivs:\t1\n" in status
        assert "Seccomp:\t2\n" in status

    run(work)


def test_a_search_process_dies_with_its_owner(crawl: Path) -> None:
    script = f"""
import asyncio, os, pathlib, signal
from gossamer.results.isolated.searches import Searches
async def main():
    searches = Searches()
    await searches.search(pathlib.Path({str(crawl)!r}), "fox")
    print(searches._pool._processes[0].process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    process = int(ended.stdout)
    while birth_of(process):
        time.sleep(0.01)
