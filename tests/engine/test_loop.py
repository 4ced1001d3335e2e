"""The loop: limits, stops, pauses, the end, and epochs that stay small."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from gossamer.engine.delivery import Delivery
from gossamer.engine.documents import SMALL_BYTES
from gossamer.engine.loop import EPOCH_SPAN_MAX, CrawlLoop, End
from gossamer.model.pages import Page
from gossamer.model.visits import Failure, Located, Reply, Request
from gossamer.stages.process.chain import Modules, Processed
from gossamer.stages.process.options import ProcessOptions
from gossamer.testing import FakeClock, page, reply
from gossamer.testing.fakes import Answers
from gossamer.world.clock import WallClock
from gossamer.world.loop import LoopShare
from tests.engine.ring import Ring, url_of
from tests.stages.process.pages import standard_modules

ROOT = "http://a.example/"


def star(pages: int) -> dict[str, Answers]:
    """A page with so many links to pages without any."""
    return {ROOT: page(*(f"/{n}" for n in range(pages))), **{f"{ROOT}{n}": page(title=str(n)) for n in range(pages)}}


def ring_of(directory: Path, pages: dict[str, Answers], **options: Any) -> Ring:
    given: dict[str, Any] = {"polite": {"per_host": 64}, "clock": WallClock(), **options}
    return Ring(directory, pages, **given)


async def beside(shard: CrawlLoop, work: Coroutine[Any, Any, None]) -> End:
    """Run a shard, and work beside it that must end before it does."""
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(work)
        return await shard.run()


@pytest.mark.promise("Order and fairness", "A crawl ends when every host has nothing left.")
def test_it_ends_when_nothing_is_left_and_everything_is_committed(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(50)) as ring:
        ring.seed(ROOT)
        shard = ring.shard()
        assert shard.state == "starting"
        assert asyncio.run(shard.run()) == "finished"
        assert shard.state == "finished"
        assert ring.counters.totals.pages == 51
        assert ring.counters.totals.media_types == {"text/html": 51}
        assert ring.epochs.size == 0
        assert ring.archive.cut_at[-1] == 51


def test_an_empty_crawl_ends_at_once(tmp_path: Path) -> None:
    with ring_of(tmp_path, {}) as ring:
        assert asyncio.run(ring.shard().run()) == "finished"


def test_an_empty_frontier_is_not_the_end_while_more_is_to_come(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(3)) as ring:
        shard = ring.shard()
        busy = [True]

        async def seeding() -> None:
            await asyncio.sleep(0.02)
            ring.seed(ROOT)
            busy.clear()
            shard.stir()
            await asyncio.Event().wait()

        assert asyncio.run(shard.run([seeding], more_to_come=lambda: bool(busy))) == "finished"
        assert ring.counters.totals.pages == 4


def test_a_shard_is_behind_while_all_its_requests_are_out_and_more_have_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ring_of(tmp_path, star(60), crawl={"concurrency": 4}) as ring:
        ring.seed(ROOT)
        monkeypatch.setattr("gossamer.engine.loop.BEHIND_S", 0.0)
        shard = ring.shard()
        found: set[tuple[bool, bool | None]] = set()

        async def watching() -> None:
            while shard.state in ("starting", "running"):
                found.add((shard.requests == 4, shard.is_behind))
                await asyncio.sleep(0)

        assert asyncio.run(beside(shard, watching())) == "finished"
        assert found >= {(True, True), (False, False)}
        assert (True, False) not in found
        shard.pause()
        assert shard.is_behind is None


def stopped_after(ring: Ring, requests: int) -> End:
    """Run a shard, stop it when its web has answered so many requests, and return how it ended."""
    shard = ring.shard()

    async def watching() -> None:
        await ring.web.asked(requests)
        shard.stop(now=True)

    return asyncio.run(beside(shard, watching()))


@pytest.mark.promise(
    "Order and fairness", "Name servers that answer late or never do not hold up hosts that are known."
)
def test_lookups_that_take_long_leave_all_requests_to_hosts_that_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after such a host had no URLs left for a while, or its address has expired and is still in the cache."""
    lost = [f"http://lost-{number}.example/" for number in range(9)]
    old = {"http://old.example/": page("/1"), "http://old.example/1": page(title="old")}
    with ring_of(tmp_path, {**star(8), **old}, crawl={"concurrency": 2}) as ring:
        shard, waiting, resolve = ring.shard(), asyncio.Event(), ring.resolver.resolve
        under_way = most = 0

        async def resolving(host: str) -> Located | Failure:
            nonlocal under_way, most
            if "lost" not in host:
                found = await resolve(host)
                assert isinstance(found, Located)
                return structs.replace(found, expires_at=0.0) if host == "old.example" else found
            under_way += 1
            most = max(most, under_way)
            await waiting.wait()
            under_way -= 1
            return Failure("dns_error", "no answer", host_level=True)

        async def watching() -> None:
            await ring.web.asked(1)
            ring.seed(*lost)
            shard.stir()
            await ring.web.asked(11)
            limits = ring.frontier.overview(ring.clock.now(), 0)["limits"]
            assert isinstance(limits, dict)
            assert limits["lookup"] == 9
            assert "its address, after other lookups" in str(ring.explainer.why(lost[-1])["reason"])
            waiting.set()

        monkeypatch.setattr(ring.resolver, "resolve", resolving)
        ring.seed(ROOT, "http://old.example/")
        assert asyncio.run(beside(shard, watching())) == "finished"
        assert (ring.counters.totals.pages, most) == (11, 2)
        assert list(ring.outcomes.values()).count("dns_error") == 9


@pytest.mark.promise(
    "Order and fairness", "Pages that take long to read do not keep those of other hosts from being fetched."
)
def test_pages_that_wait_to_be_read_leave_all_requests_to_other_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = {f"http://big-{number}.example/": page(title="x" * SMALL_BYTES) for number in range(3)}
    with ring_of(tmp_path, {**star(8), **big}, crawl={"concurrency": 2}) as ring:
        shard, busy, read = ring.shard(), [True], asyncio.Event()

        async def turn(_share: LoopShare) -> None:
            await read.wait()

        async def watching() -> None:
            await ring.web.asked(2)
            ring.seed(ROOT)
            shard.stir()
            await ring.web.asked(2 + 9)
            busy.clear()
            read.set()

        monkeypatch.setattr(LoopShare, "is_busy", property(lambda _share: bool(busy)))
        monkeypatch.setattr(LoopShare, "turn", turn)
        ring.seed(*big)
        assert asyncio.run(beside(shard, watching())) == "finished"
        assert ring.counters.totals.pages == 12


def test_the_last_attempt_for_a_page_is_not_ended_early(tmp_path: Path) -> None:
    """Other requests may be ended while most of those that may go out are slow."""
    tries = {"attempts_max": 3, "retry_s_first": 0.01, "retry_s_max": 0.01, "host_sleep_s_first": 0.01}
    with ring_of(tmp_path, star(0), obey=True, crawl={"concurrency": 4}, frontier=tries) as ring:
        ring.seed(ROOT)
        asked: list[tuple[str, int]] = []
        fetch = ring.web.fetch

        async def fetching(request: Request) -> Reply | Failure:
            asked.append((request.url, request.concurrency))
            result = await fetch(request)
            is_robots = request.url.endswith("/robots.txt")
            return result if is_robots else Failure("timeout", "slow", retry=True, ip=request.ip)

        ring.web.fetch = fetching  # type: ignore[method-assign]
        assert asyncio.run(ring.shard().run()) == "finished"
        assert asked == [(f"{ROOT}robots.txt", 4), (ROOT, 4), (ROOT, 4), (ROOT, 0)]


def test_long_robots_txt_that_arrive_together_are_read_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither are visits started for long without a look at the sockets: each may read a robots.txt again."""
    monkeypatch.setattr("gossamer.world.loop.BURST_S", 0.0)
    monkeypatch.setattr("gossamer.engine.loop.LEASES_S_MAX", -1.0)
    hosts = [f"http://host-{number}.example" for number in range(6)]
    rules = "User-agent: *\n" + "Disallow: /x/*/y$\n" * 2_500
    pages: dict[str, Answers] = {f"{host}/robots.txt": reply(rules.encode()) for host in hosts}
    with ring_of(tmp_path, {**pages, **{f"{host}/": page() for host in hosts}}, obey=True) as ring:
        ring.seed(*(f"{host}/" for host in hosts))
        together, fetch = asyncio.Barrier(len(hosts)), ring.web.fetch
        counts = {"leases": 0, "answers": 0}
        most = {"leases": 0, "answers": 0}

        async def fetching(request: Request) -> Reply | Failure:
            result = await fetch(request)
            if request.url.endswith("/robots.txt"):
                await together.wait()
            return result

        def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
            def counting(*arguments: Any) -> Any:
                counts[name] += 1
                most[name] = max(most[name], counts[name])
                return call(*arguments)

            return counting

        async def watching() -> None:
            while shard.state in ("starting", "running"):
                counts.update(leases=0, answers=0)
                await asyncio.sleep(0)

        monkeypatch.setattr(ring.web, "fetch", fetching)
        monkeypatch.setattr(ring.pipeline, "lease", counted("leases", ring.pipeline.lease))
        monkeypatch.setattr(
            ring.pipeline.prerequisites, "answer", counted("answers", ring.pipeline.prerequisites.answer)
        )
        shard = ring.shard()
        assert asyncio.run(beside(shard, watching())) == "finished"
        assert ring.counters.totals.pages == len(hosts)
        assert most == {"leases": 1, "answers": 1}


@pytest.mark.parametrize("mode", ["batch", "continuous"])
def test_a_continuous_crawl_waits_however_long_it_takes(tmp_path: Path, mode: str) -> None:
    with ring_of(tmp_path, star(3), crawl={"mode": mode, "patience_s": 5.0}) as ring:
        shard = ring.shard()
        assert not shard.out_of_patience, "there is nothing to wait for"
        ring.seed(ROOT)
        ring.frontier.control.hold(url_of(ROOT), ring.clock.now() + 60.0, "it is busy", ring.clock.now())
        assert shard.out_of_patience == (mode == "batch")


@pytest.mark.parametrize("mode", ["batch", "continuous"])
def test_a_crawl_that_ends_with_urls_left_names_the_hosts_that_take_longest(tmp_path: Path, mode: str) -> None:
    options: dict[str, Any] = {"polite": {"delay_s_min": 2.0}, "crawl": {"mode": mode}, "limits": {"max_pages": 1}}
    with ring_of(tmp_path, star(400), clock=FakeClock(), **options) as ring:
        ring.seed(ROOT)
        assert asyncio.run(ring.shard().run()) == "limit"
        found = [(one.host, one.queued) for one in ring.counters.totals.lasting]
        assert found == ([("a.example", 400)] if mode == "batch" else [])


@pytest.mark.promise("Bounds", "Limits on pages are never exceeded.")
@pytest.mark.parametrize("concurrency", [1, 7, 64])
def test_max_pages_is_reached_and_never_passed(tmp_path: Path, concurrency: int) -> None:
    with ring_of(tmp_path, star(200), crawl={"concurrency": concurrency}, limits={"max_pages": 20}) as ring:
        ring.seed(ROOT)
        assert asyncio.run(ring.shard().run()) == "limit"
        assert ring.counters.totals.pages == 20
        assert ring.counters.totals.outcomes == {"fetched": 20}
        assert ring.web.in_flight_max <= concurrency
        assert ring.adds_up()


def test_what_is_no_page_does_not_use_the_limit_up(tmp_path: Path) -> None:
    pages = star(60) | {f"{ROOT}{n}": reply(b"", 404) for n in range(0, 60, 2)}
    with ring_of(tmp_path, pages, limits={"max_pages": 20}) as ring:
        ring.seed(ROOT)
        assert asyncio.run(ring.shard().run()) == "limit"
        assert ring.counters.totals.pages == 20


def test_max_bytes_ends_the_crawl_and_what_is_under_way_is_finished(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(200), crawl={"concurrency": 4}, limits={"max_bytes": 20_000}) as ring:
        ring.seed(ROOT)
        assert asyncio.run(ring.shard().run()) == "limit"
        assert ring.counters.totals.wire_bytes >= 20_000
        assert ring.web.in_flight == 0
        assert len(ring.web.requests) == ring.counters.totals.attempts


def test_max_time_ends_a_crawl_that_waits(tmp_path: Path) -> None:
    polite = {"preset": "polite", "delay_s_min": 60, "delay_s_max": 60}
    with ring_of(tmp_path, star(5), polite=polite, limits={"max_time_s": 0.1}) as ring:
        ring.seed(ROOT)
        assert asyncio.run(ring.shard().run()) == "limit"
        assert ring.counters.totals.elapsed_s >= 0.1


@pytest.mark.parametrize(("stop_s", "grace_s"), [(30.0, 4.0), (2.0, 2.0)])
def test_heavy_pages_do_not_carry_a_crawl_beyond_its_time(tmp_path: Path, stop_s: float, grace_s: float) -> None:
    """Each takes a second, and all replies are there at once: the loop that lends runs when they are done."""
    clock = FakeClock()
    began = clock.now()
    modules = Modules(standard_modules(ProcessOptions()), ProcessOptions())

    def heavy(seen: Page) -> Processed:
        clock.advance(1.0)
        return modules.process(seen)

    crawl, limits = {"concurrency": 64, "stop_s": stop_s}, {"max_time_s": 40.0}
    with ring_of(tmp_path, star(200), clock=clock, look=heavy, crawl=crawl, limits=limits) as ring:
        ring.seed(ROOT)
        assert asyncio.run(ring.shard().run()) == "limit"
        assert 40.0 <= clock.now() - began <= 40.0 + grace_s + 1.0
        assert ring.counters.totals.pages == len(ring.archive.added) <= 40 + grace_s + 1
        assert ring.frontier.counts.pending
        assert ring.adds_up()
        fetched = set(ring.archive.urls)
        clock.advance(10.0)
        assert ring.store.epoch
    with ring_of(tmp_path, star(200)) as ring:  # What was left is still queued, and fetched then.
        assert asyncio.run(ring.shard().run()) == "finished"
        assert set(ring.archive.urls) | fetched == {ROOT, *(f"{ROOT}{n}" for n in range(200))}
        assert not set(ring.archive.urls) & fetched


def test_a_stop_lets_what_is_in_flight_finish(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(100), crawl={"concurrency": 8}) as ring:
        ring.seed(ROOT)
        shard = ring.shard()

        async def stop() -> None:
            await ring.web.asked(1)
            ring.web.held = asyncio.Event()
            await ring.web.asked(6)
            assert shard.in_flight >= 5
            shard.stop()
            await asyncio.sleep(0)
            ring.web.held.set()

        assert asyncio.run(beside(shard, stop())) == "stopped"
        assert shard.state == "stopped"
        assert len(ring.web.requests) == ring.counters.totals.attempts == ring.counters.totals.pages
        assert ring.frontier.counts.pending
        assert ring.adds_up()


@pytest.mark.parametrize("twice", [False, True])
def test_a_stop_at_once_leaves_what_is_in_flight(tmp_path: Path, twice: bool) -> None:
    with ring_of(tmp_path, star(100), crawl={"concurrency": 8}) as ring:
        ring.seed(ROOT)
        shard = ring.shard()

        async def stop() -> None:
            await ring.web.asked(1)
            ring.web.held = asyncio.Event()
            await ring.web.asked(5)
            if twice:
                shard.stop()
                await asyncio.sleep(0.01)
            shard.stop(now=True)

        assert asyncio.run(beside(shard, stop())) == "stopped"
        assert ring.web.in_flight == 0
        fetched = ring.counters.totals.pages
        assert fetched < len(ring.web.requests)
        assert ring.adds_up()
    with ring_of(tmp_path, star(100)) as ring:
        assert ring.frontier.counts.pending == 101 - fetched
        assert asyncio.run(ring.shard().run()) == "finished"
        assert ring.frontier.counts.terminal == {"fetched": 101}


def test_a_stop_waits_no_longer_than_its_limit(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(10), crawl={"stop_s": 0.05}) as ring:
        ring.seed(ROOT)
        shard = ring.shard()
        ring.web.held = asyncio.Event()

        async def stop() -> None:
            await ring.web.asked(1)
            shard.stop()

        assert asyncio.run(beside(shard, stop())) == "stopped"
        assert ring.counters.totals.attempts == 0


def test_a_stop_before_the_start_fetches_nothing(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(3)) as ring:
        ring.seed(ROOT)
        shard = ring.shard()
        assert not shard.nothing_to_do, "a URL waits, though no request is under way"
        shard.stop()
        assert shard.state == "starting"
        assert asyncio.run(shard.run()) == "stopped"
        assert not ring.web.requests


def test_a_paused_crawl_begins_nothing_and_does_not_end(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(20), crawl={"concurrency": 4}) as ring:
        ring.seed(ROOT)
        shard = ring.shard()

        async def pause() -> None:
            await ring.web.asked(3)
            shard.pause()
            while shard.in_flight:  # noqa: ASYNC110 - what is in flight is finished
                await asyncio.sleep(0.001)
            asked = len(ring.web.requests)
            await asyncio.sleep(0.05)
            assert len(ring.web.requests) == asked
            assert shard.state == "running"
            shard.unpause()

        assert asyncio.run(beside(shard, pause())) == "finished"
        assert ring.counters.totals.pages == 21


def test_a_paused_crawl_can_be_stopped(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(3)) as ring:
        ring.seed(ROOT)
        shard = ring.shard()
        shard.pause()

        async def stop() -> None:
            await asyncio.sleep(0.01)
            shard.stop()

        assert asyncio.run(beside(shard, stop())) == "stopped"
        assert not ring.web.requests


def test_concurrency_is_a_bound(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(100), crawl={"concurrency": 5}) as ring:
        ring.seed(ROOT)
        asyncio.run(ring.shard().run())
        assert ring.web.in_flight_max == 5


@pytest.mark.promise("Bounds", "What waits for a commit or for a reader is bounded.")
def test_an_epoch_that_cannot_close_stops_growing(tmp_path: Path) -> None:
    options = {"commit_pages": 10, "commit_s": 60.0, "concurrency": 4}
    with ring_of(tmp_path, star(200), crawl=options) as ring:
        ring.seed(ROOT)
        shard = ring.shard()
        sizes = []
        ended = ring.counters.count_visit

        def counting(visited: Any, *, seed: bool) -> None:
            ended(visited, seed=seed)
            sizes.append(ring.counters.in_epoch)

        ring.counters.count_visit = counting  # type: ignore[method-assign]
        assert asyncio.run(shard.run()) == "finished"
        assert max(sizes) <= EPOCH_SPAN_MAX * 10 + 4
        assert ring.epochs.number > 200 // (EPOCH_SPAN_MAX * 10 + 4)


def test_an_epoch_that_holds_much_closes_early(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(200), crawl={"commit_pages": 10_000, "commit_s": 60.0, "concurrency": 4}) as ring:
        ring.seed(ROOT)
        shard = ring.shard()
        ring.committer.crowding = lambda: ring.counters.in_epoch / 10
        assert asyncio.run(shard.run()) == "finished"
        assert ring.epochs.number > 200 // (EPOCH_SPAN_MAX * 10 + 4)


@pytest.mark.promise("Bounds", "What waits for a commit or for a reader is bounded.")
def test_a_reader_who_does_not_come_stops_the_crawl_from_growing(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(300), crawl={"concurrency": 4, "commit_s": 0.01}) as ring:
        ring.seed(ROOT)
        shard = ring.shard()
        delivery = Delivery(pages_max=20)
        ring.counters.delivery = delivery
        ring.committer.on_committed = delivery.release
        delivery.on_room = shard.stir
        read: list[str] = []
        held: list[int] = []

        async def reader() -> None:
            while len(read) < 301:
                await asyncio.sleep(0.02 if len(read) % 50 == 0 else 0)
                visited = await delivery.next()
                assert visited is not None
                read.append(visited.row.url)
                held.append(delivery.pages)

        assert asyncio.run(beside(shard, reader())) == "finished"
        assert len(set(read)) == 301
        assert max(held) <= 20 + 4


def test_a_disk_that_refuses_ends_the_crawl_with_its_error_and_counts_nothing(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(20), crawl={"commit_s": 0.01}) as ring:
        ring.seed(ROOT)

        def full() -> None:
            raise OSError(28, "No space left on device")

        ring.journals.sync = full  # type: ignore[method-assign]
        with pytest.raises(OSError, match="No space left"):
            asyncio.run(ring.shard().run())
        assert ring.store.epoch == 0


def test_many_mistakes_of_ours_end_the_crawl_with_the_last_of_them(tmp_path: Path) -> None:
    pages = star(50) | {f"{ROOT}{n}": KeyError(str(n)) for n in range(50)}
    with ring_of(tmp_path, pages, crawl={"errors_max": 5, "concurrency": 4}) as ring:
        ring.seed(ROOT)
        with pytest.raises(KeyError):
            asyncio.run(ring.shard().run())


def test_a_companion_that_fails_ends_the_crawl_with_its_error(tmp_path: Path) -> None:
    with ring_of(tmp_path, star(50)) as ring:
        ring.seed(ROOT)

        async def failing() -> None:
            await ring.web.asked(2)
            raise LookupError("beside")

        with pytest.raises(LookupError, match="beside"):
            asyncio.run(ring.shard().run([failing]))
        assert ring.web.in_flight == 0


def test_companions_are_cancelled_at_the_end(tmp_path: Path) -> None:
    seen = []
    with ring_of(tmp_path, star(3)) as ring:
        ring.seed(ROOT)

        async def waiting() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("cancelled")

        assert asyncio.run(ring.shard().run([waiting])) == "finished"
        assert seen == ["cancelled"]


@pytest.mark.parametrize("turns", range(0, 40, 4))
def test_the_end_may_fall_into_any_moment_of_a_commit(tmp_path: Path, turns: int) -> None:
    with ring_of(tmp_path, star(5), crawl={"commit_s": 0.001}) as ring:
        ring.seed(ROOT)
        shard = ring.shard()

        async def stop() -> None:
            await ring.web.asked(1)
            for _ in range(turns):
                await asyncio.sleep(0.001)
            shard.stop()

        asyncio.run(beside(shard, stop()))
        assert ring.epochs.size == 0
        assert ring.store.epoch == ring.epochs.number - 1
