"""Waiting: there is no silent stall: a crawl that does nothing says what it waits for, and until when."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from gossamer import Crawler
from gossamer.api import status as waiting_module
from tests.api.conftest import Make, Run
from tests.api.site import Site, page, star


async def told(crawler: Crawler, wanted: Callable[[dict[str, object]], bool]) -> dict[str, object]:
    """Return the first status in which something wanted is waited for."""
    while True:
        status = crawler.status(detail=True)
        waiting = status.get("waiting")
        if isinstance(waiting, dict) and wanted(waiting):
            assert status["waiting_for"] == waiting["says"]
            return waiting
        await asyncio.sleep(0.01)


@pytest.mark.promise("Operation", "When a crawl does nothing, `status` says what it waits for and until when.")
def test_whom_it_waits_for_and_why_and_until_when(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(3)) as site:
            crawler = make(site.root, delay=1.2, per_host=1)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                waiting = await told(crawler, lambda waiting: waiting["kind"] == "host")
                assert waiting["host"] == "127.0.0.1"
                assert "politeness" in str(waiting["says"])
                assert waiting["until"] is not None
                crawler.stop(now=True)

    run(scenario())


def test_a_host_that_refuses_is_named_with_its_error_and_given_up_soon(run: Run, make: Make) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Not listening: it refuses.
        seed = f"http://127.0.0.1:{taken.getsockname()[1]}/"

        async def scenario() -> None:
            crawler = make(seed, settings={"robots.unanswered_first_s": 0.3, "robots.retry_s_max": 0.3})
            async with asyncio.TaskGroup() as group:
                ended = group.create_task(crawler.run())
                waiting = await told(crawler, lambda waiting: waiting["kind"] == "host")
                assert waiting["host"] == "127.0.0.1"
                assert "could not fetch http://127.0.0.1:" in str(waiting["says"])
                assert "connect" in str(waiting["says"]).lower()
            assert ended.result() == "finished"
            closings = crawler.status()["closings"]
            assert isinstance(closings, list)
            assert closings[0]["reason"].startswith("it never answered: ")
            assert crawler.status()["terminal_outcomes"] == {"host_closed": 1}

        run(scenario())


def test_a_slow_answer_is_reported_with_its_host(run: Run, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_module, "QUIET_S", 0.2)

    async def scenario() -> None:
        async with Site({"/": page()}) as site:
            site.open.clear()
            crawler = make(site.root)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                waiting = await told(crawler, lambda waiting: waiting["kind"] == "answer")
                assert waiting["host"] == "127.0.0.1"
                assert waiting["until"] is None
                site.open.set()

    run(scenario())


def test_a_pause_and_what_is_held_are_reported(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(30)) as site:
            crawler = make(site.root, delay=0.05, per_host=1)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(2)
                assert crawler._shard is not None
                shard = crawler._shard.ring.loop
                shard.brakes.hold("disk", "room on a disk")
                assert (await told(crawler, lambda _: True))["kind"] == "disk"
                assert crawler.status()["state"] == "paused"
                shard.pause()
                shard.brakes.release("disk")
                assert (await told(crawler, lambda _: True))["kind"] == "operator"
                asked = sum(site.counts.values())
                await asyncio.sleep(0.3)
                assert sum(site.counts.values()) <= asked + 1
                shard.unpause()
            assert crawler.status()["pages"] == 31

    run(scenario())


def test_a_paused_crawl_that_stops_is_stopping(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(5)) as site:
            site.open.clear()
            crawler = make(site.root)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(1)
                assert crawler._shard is not None
                crawler._shard.ring.loop.pause()
                assert crawler.status()["state"] == "paused"
                crawler.stop()
                assert crawler.status()["state"] == "stopping"
                crawler._shard.ring.loop.pause()
                assert crawler.status()["state"] == "stopping"
                assert crawler.status()["waiting"] is None
                site.open.set()
            assert crawler.status()["state"] == "stopped"
            assert crawler.status()["waiting_for"] == ""

    run(scenario())


def test_hosts_levels_and_types_are_reported_in_detail(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(20)) as site:
            crawler = make(site.root, per_host=1, delay=0.05)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(4)
                status = crawler.status(detail=True)
                hosts = status["hosts"]
                assert isinstance(hosts, dict)
                assert sum(hosts["limits"].values()) == 1
                assert hosts["active"][0]["host"] == "127.0.0.1"
                levels = status["levels"]
                assert isinstance(levels, dict)
                assert sum(levels.values()) == status["queued"] + status["in_flight"]  # type: ignore[operator]
            assert crawler.status()["levels"] == {}
            assert crawler.status()["media_types"] == {"text/html": 21}

    run(scenario())
