"""Pages that come in one turn of the event loop: they are read together, and each ends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gossamer.engine.documents import TOGETHER_MAX, TOGETHER_S
from gossamer.engine.examine import Examiner
from gossamer.engine.links import LINKS_AT_ONCE
from gossamer.model.links import Link
from gossamer.model.pages import Page
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.process.chain import Modules, Slices
from gossamer.stages.process.options import ProcessOptions
from gossamer.testing import page
from gossamer.url.name import Namer
from gossamer.url.url import Url
from tests.engine.ring import Ring, url_of
from tests.engine.test_pipeline import Broken, moved
from tests.stages.process.pages import standard_modules

EXAMINE = "examine_in_slices"
HOSTS = [f"http://h{n}.example/" for n in range(2 * TOGETHER_MAX + 3)]


class Heard:
    """Stands before a room and notes the calls of one of its methods; `meanwhile` happens in each."""

    def __init__(
        self, room: object, method: str, calls: list[str], meanwhile: Callable[[], None] | None = None
    ) -> None:
        self._room = room
        self._method = method
        self._calls = calls
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> object:
        found = getattr(self._room, name)
        if name != self._method:
            return found

        def heard(*given: object) -> object:
            self._calls.append(name)
            if self._meanwhile is not None:
                self._meanwhile()
            return found(*given)

        return heard


def leased(ring: Ring) -> list[asyncio.Task[None]]:
    """Begin all visits that may begin; what needs no waiting is done."""
    tasks = []
    now = ring.clock.now()
    while (lease := ring.frontier.select(now)) is not None:
        work = ring.pipeline.lease(lease, now)
        if work is not None:
            tasks.append(asyncio.get_running_loop().create_task(work))
    return tasks


async def together(ring: Ring) -> None:
    """Carry all visits that may begin through at once, until there are none."""
    while tasks := leased(ring):
        await asyncio.gather(*tasks)


def steps(calls: list[str]) -> list[tuple[str, int]]:
    """Return the calls with how many came one after another."""
    found: list[tuple[str, int]] = []
    for call in calls:
        found[-1:] = [(call, found[-1][1] + 1)] if found and found[-1][0] == call else [*found[-1:], (call, 1)]
    return found


def test_pages_pass_each_step_together_and_not_too_many_of_them(tmp_path: Path) -> None:
    with Ring(tmp_path, {host: page() for host in HOSTS}) as ring:
        calls: list[str] = []
        ring.joined(
            examiner=Heard(ring.stages.examiner, EXAMINE, calls), archive=Heard(ring.stages.archive, "add", calls)
        )
        ring.seed(*HOSTS)
        ring.run(together(ring))
        assert [ring.outcomes[host] for host in HOSTS] == ["fetched"] * len(HOSTS)
        assert ring.adds_up()
        first = [(step, TOGETHER_MAX) for _ in range(2) for step in (EXAMINE, "add")]
        assert steps(calls) == [*first, (EXAMINE, 3), ("add", 3)]


def test_results_without_a_document_pass_each_step_together(tmp_path: Path) -> None:
    with Ring(tmp_path, {host: moved(f"{host}new") for host in HOSTS[:4]}) as ring:
        calls: list[str] = []
        ring.joined(
            archive=Heard(ring.stages.archive, "add", calls), url_seen=Heard(ring.stages.url_seen, "offer", calls)
        )
        ring.seed(*HOSTS[:6])
        calls.clear()
        ring.run(together(ring))
        assert steps(calls) == [("add", 6), ("offer", 6), ("add", 4), ("offer", 4)]
        assert [ring.outcomes[host] for host in HOSTS[:6]] == ["redirected"] * 4 + ["http_error"] * 2
        assert ring.adds_up()


def test_no_page_joins_others_that_took_long(tmp_path: Path) -> None:
    with Ring(tmp_path, {host: page() for host in HOSTS[:8]}) as ring:
        calls: list[str] = []

        def takes_time() -> None:
            ring.fake_clock.advance(0.4 * TOGETHER_S)

        ring.joined(
            examiner=Heard(ring.stages.examiner, EXAMINE, calls, takes_time),
            archive=Heard(ring.stages.archive, "add", calls),
        )
        ring.seed(*HOSTS[:8])
        ring.run(together(ring))
        assert steps(calls) == [(step, pages) for pages in (3, 3, 2) for step in (EXAMINE, "add")]


@pytest.mark.parametrize(("room", "method"), [("examiner", EXAMINE), ("archive", "add"), ("url_seen", "offer")])
def test_an_internal_error_ends_one_of_them(tmp_path: Path, room: str, method: str) -> None:
    bad = "http://bad.example/bad"
    pages = {host: page("/a") for host in (*HOSTS[:3], bad)}
    with Ring(tmp_path, pages) as ring:
        ring.seed(HOSTS[0], bad, *HOSTS[1:3])
        ring.joined(**{room: Broken(getattr(ring.stages, room), method, KeyError("ours"))})
        ring.run(together(ring))
        assert [ring.outcomes[host] for host in HOSTS[:3]] == ["fetched"] * 3
        assert all(ring.outcomes[f"{host}a"] == "http_error" for host in HOSTS[:3])
        assert {event["url"] for event in ring.log("critical.log")} == {bad}
        is_recorded = ring.outcomes.get(bad) == "fetched"
        assert ring.counters.totals.unfollowed == int(is_recorded)
        assert bool(ring.counters.totals.warnings()) == is_recorded, "links that are lost are reported elsewhere too"
        assert ring.frontier.counts.pending == 0
        assert ring.adds_up()


@pytest.mark.parametrize(("room", "method"), [("archive", "add"), ("url_seen", "offer")])
def test_an_internal_error_ends_one_result_without_a_document(tmp_path: Path, room: str, method: str) -> None:
    bad = "http://bad.example/bad"
    with Ring(tmp_path, {bad: moved(f"{bad}2"), HOSTS[1]: moved(f"{HOSTS[1]}new")}) as ring:
        ring.seed(HOSTS[0], bad, HOSTS[1])
        ring.joined(**{room: Broken(getattr(ring.stages, room), method, KeyError("ours"))})
        ring.run(together(ring))
        assert [ring.outcomes[host] for host in HOSTS[:2]] == ["http_error", "redirected"]
        assert ring.outcomes[f"{HOSTS[1]}new"] == "http_error"
        assert {event["url"] for event in ring.log("critical.log")} == {bad}
        assert ring.counters.totals.unfollowed == int(ring.outcomes.get(bad) == "redirected")
        assert ring.frontier.counts.pending == 0
        assert ring.adds_up()


def test_a_page_of_many_links_is_concluded_beside_the_others(tmp_path: Path) -> None:
    many = page(*(f"/{n}" for n in range(LINKS_AT_ONCE + 1)))
    with Ring(tmp_path, {HOSTS[0]: page("/a"), HOSTS[1]: many, HOSTS[2]: page("/a")}) as ring:
        ring.seed(*HOSTS[:3])

        async def first() -> None:
            while not ring.rows:
                await asyncio.gather(*leased(ring))

        ring.run(first())
        assert [ring.outcomes[host] for host in HOSTS[:3]] == ["fetched"] * 3
        assert ring.frontier.counts.discovered == 3 + 2 + LINKS_AT_ONCE + 1


def test_the_links_of_a_page_are_named_in_slices_between_which_other_work_runs(tmp_path: Path) -> None:
    many = page(*(f"/{n}" for n in range(3 * LINKS_AT_ONCE)))
    with Ring(tmp_path, {HOSTS[0]: many}) as ring:
        turn, named = 0, []

        class Noting(Namer):
            def names(self, texts: Sequence[str]) -> list[Url | None]:
                named.append((turn, len(texts)))
                return super().names(texts)

        ring.joined(namer=Noting())
        ring.seed(HOSTS[0])

        async def concluded() -> None:
            nonlocal turn
            while not ring.rows:
                leased(ring)
                turn += 1
                await asyncio.sleep(0)

        ring.run(concluded())
        assert [number for _, number in named] == [LINKS_AT_ONCE] * 3
        assert len({turn for turn, _ in named}) == 3
        assert ring.frontier.counts.discovered == 1 + 3 * LINKS_AT_ONCE


def test_a_shorter_path_that_is_found_between_the_slices_counts(tmp_path: Path) -> None:
    many = page(*(f"/{n}" for n in range(LINKS_AT_ONCE)))
    with Ring(tmp_path, {HOSTS[0]: many}) as ring:
        url = url_of(HOSTS[0])

        class Shortening(Namer):
            def names(self, texts: Sequence[str]) -> list[Url | None]:
                if len(texts) == LINKS_AT_ONCE:
                    ring.url_seen.offer([url], [1], [0])
                return super().names(texts)

        ring.joined(namer=Shortening())
        ring.pipeline.discovery.discover([Link(url, "anchor", 5, 0)])

        async def concluded() -> None:
            while not ring.rows:
                await asyncio.gather(*leased(ring))

        ring.run(concluded())
        assert ring.url_seen.way(url_of(f"{HOSTS[0]}1")) == (2, 0)


def test_other_pages_are_read_between_the_slices_of_one_that_takes_long(tmp_path: Path) -> None:
    long, slices = HOSTS[0], 40
    with Ring(tmp_path, {host: page("/a") for host in HOSTS[:3]}) as ring:
        modules = Modules(standard_modules(ProcessOptions()), ProcessOptions())
        read: list[str] = []
        begun = 0

        def sliced(page: Page) -> Slices:
            nonlocal begun
            begun += page.url == long
            for _ in range(slices if page.url == long else 0):
                ring.fake_clock.advance(1.5 * TOGETHER_S)
                read.append(page.url)
                yield
            read.append(page.url)
            return modules.process(page)

        decoder = BoundedDecoder(FetchOptions())
        ring.joined(examiner=Examiner(decoder, sliced, ring.clock, ring.slots))
        ring.seed(*HOSTS[:3])
        ring.run(together(ring))
        assert [ring.outcomes[host] for host in HOSTS[:3]] == ["fetched"] * 3
        assert begun == 1
        assert read.count(long) == slices + 1
        assert max(read.index(host) for host in HOSTS[1:3]) <= 4, "they do not wait for its end"
        assert ring.adds_up()
        assert ring.slots.take_suspects() == []


def test_a_page_whose_slices_are_cancelled_stays_queued_and_holds_up_no_other(tmp_path: Path) -> None:
    with Ring(tmp_path, {host: page() for host in HOSTS[:2]}) as ring:
        modules = Modules(standard_modules(ProcessOptions()), ProcessOptions())

        def sliced(page: Page) -> Slices:
            while page.url == HOSTS[0]:
                ring.fake_clock.advance(TOGETHER_S)
                yield
            return modules.process(page)

        decoder = BoundedDecoder(FetchOptions())
        ring.joined(examiner=Examiner(decoder, sliced, ring.clock, ring.slots))
        ring.seed(HOSTS[0])

        async def cancelled() -> None:
            tasks = leased(ring)
            while not any(task.done() for task in tasks) and ring.clock.now() < 1.0:
                await asyncio.sleep(0)
                tasks += leased(ring)
            tasks[-1].cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            ring.seed(HOSTS[1])
            while HOSTS[1] not in ring.outcomes:
                await asyncio.gather(*leased(ring))

        ring.run(cancelled())
        assert ring.frontier.counts.pending == 1
        assert ring.adds_up()


@pytest.mark.parametrize(("place", "pending"), [(0, 1), (1, 0)])
def test_what_is_cancelled_before_it_was_read_stays_queued(tmp_path: Path, place: int, pending: int) -> None:
    """The first of those that wait would have read them all; what it reads in time has ended."""
    with Ring(tmp_path, {host: page() for host in HOSTS[:3]}) as ring:
        ring.seed(*HOSTS[:3])

        async def cancelled() -> None:
            tasks: list[asyncio.Task[None]] = []
            while len(ring.pipeline.documents.waiting) < 3:
                if all(task.done() for task in tasks):
                    tasks = leased(ring)
                await asyncio.sleep(0)
            tasks[place].cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert tasks[place].cancelled()

        ring.run(cancelled())
        assert [ring.outcomes.get(host, "") for host in HOSTS[:3]].count("fetched") == 3 - pending
        assert ring.frontier.counts.pending == pending
        assert ring.adds_up()


def test_a_page_that_may_take_long_parks_its_host_while_another_has_the_line(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        ring.seed(HOSTS[0])
        documents = ring.pipeline.documents

        async def wait() -> int:
            async with documents._line:
                waiting = asyncio.create_task(documents.turn(url_of(HOSTS[0])))
                await asyncio.sleep(0)
                parked = documents.parked
            await waiting
            return parked

        assert ring.run(wait()) == 1
        assert documents.parked == 0
