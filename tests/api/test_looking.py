"""What people who look on are told: the last attempts, and the course over all runs."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gossamer.api.crawler import Crawler
from gossamer.api.looking import about_of, recent_of_all
from gossamer.console import directory
from gossamer.console.directory import Directory
from tests.api.conftest import Make, Run
from tests.api.site import Site, star


async def asked(crawler: Crawler | Directory, verb: str, **fields: object) -> Any:
    answer = await crawler.ask({"verb": verb, **fields})
    assert answer["ok"], answer
    return answer["result"]


async def until_pages(crawler: Crawler, pages: int) -> None:
    while crawler.status().get("pages", 0) < pages:  # type: ignore[operator]  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.01)


def test_attempts_are_kept_from_the_first_question_on(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(300)) as site:
            crawler = make(site.root, concurrency=2)
            running = asyncio.create_task(crawler.run())
            await until_pages(crawler, 5)
            assert crawler._shard is not None
            assert crawler._shard.controls.telemetry.counters.recent is None, "no request for them so far"
            assert (await asked(crawler, "recent"))["pages"] == []
            await until_pages(crawler, 60)
            told = await asked(crawler, "recent")
            assert 0 < len(told["pages"]) <= 20
            assert told["pages"][-1]["title"].startswith("Page ")
            assert told["last"] == len(told["pages"]) + told["left_out"]
            crawler.stop(now=True)
            await running

    run(scenario())


def test_a_console_has_them_kept_from_the_start(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(20)) as site:
            crawler = make(site.root, settings={"console.port": 0})
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(10)
                site.open.clear()  # It goes on when we have looked.
                await until_pages(crawler, 1)
                assert crawler._shard is not None
                assert crawler._shard.controls.telemetry.counters.recent is not None
                site.open.set()

    run(scenario())


@pytest.mark.heavy
def test_the_course_reaches_back_over_all_runs_and_outlives_them(run: Run, make: Make, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Site(star(400)) as site:
            first = make(site.root, concurrency=1)
            running = asyncio.create_task(first.run())
            await until_pages(first, 40)
            first.stop(now=True)
            await running
            then = first.status()["pages"]
            again = Crawler.resume(tmp_path / "crawl")
            running = asyncio.create_task(again.run())
            await until_pages(again, 60)
            while len(points := (await asked(again, "course"))["points"]) < 3:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
            assert points[0][1] <= then, "what the first run did is there"
            assert all(before[0] < after[0] for before, after in pairwise(points))
            assert all(before[1] <= after[1] for before, after in pairwise(points))
            again.stop(now=True)
            await running
            pages = again.status()["pages"]
        notes: list[str] = []
        over = Directory(tmp_path / "crawl", notes.append)
        assert (await asked(over, "course"))["points"][-1][1] == pages
        assert (await asked(over, "about"))["name"] == "crawl"
        recent = await asked(over, "recent", most=5)
        assert len(recent["pages"]) == 5
        assert await asked(over, "recent", after=recent["last"]) == {**recent, "pages": [], "errors": []}
        detail = await asked(over, "status", detail=True)
        assert [host["host"] for host in detail["hosts"]["slowest"]] == ["127.0.0.1"]
        assert "hosts" not in await asked(over, "status")
        assert notes == []

    run(scenario())


def test_a_run_that_nobody_saw_is_known_when_it_is_over(
    run: Run, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "KEPT_S", 0.0)

    async def some(crawler: Crawler, pages: int) -> None:
        running = asyncio.create_task(crawler.run())
        await until_pages(crawler, pages)
        crawler.stop(now=True)
        await running

    async def scenario() -> None:
        over = Directory(tmp_path / "crawl", print)
        async with Site(star(400)) as site:
            await some(make(site.root, concurrency=1), 20)
            before = (await asked(over, "course"))["points"][-1][1]
            unseen = Crawler.resume(tmp_path / "crawl")
            await some(unseen, before + 20)
        after = (await asked(over, "course"))["points"][-1][1]
        assert before < before + 20 <= after == unseen.status()["pages"]

    run(scenario())


def test_what_a_crawl_is_does_not_need_it_to_run(run: Run, make: Make, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Site(star(2)) as site:
            await make(site.root).run()
        told = about_of(tmp_path / "crawl")
        assert {name: told[name] for name in ("name", "mode", "workers", "search", "items")} == {
            "name": "crawl", "mode": "batch", "workers": 1, "search": False, "items": False,
        }  # fmt: skip

    run(scenario())


def attempt(ended_s: float, fetch_s: float = 0.5) -> dict[str, object]:
    return {"number": 3, "at": ended_s - fetch_s, "fetch_s": fetch_s, "url": f"http://a.test/{ended_s}"}


def test_attempts_of_all_shards_come_as_one_in_the_order_of_their_ends() -> None:
    answers = [
        {"last": 9, "pages": [attempt(1.0), attempt(4.0)], "errors": [attempt(30.0, 29.5)]},
        {"last": 2, "pages": [attempt(2.0), attempt(3.0)], "errors": []},
        None,
    ]
    told = recent_of_all(answers, 0, 20)
    assert [one["number"] for one in told["pages"]] == [1_000_000, 2_000_000, 3_000_000, 4_000_000]  # type: ignore[attr-defined]
    assert told["last"] == 30_000_000
    later = recent_of_all(answers, 3_000_000, 20)
    assert [one["number"] for one in later["pages"]] == [4_000_000]  # type: ignore[attr-defined]
    assert [one["number"] for one in later["errors"]] == [30_000_000], "also what began long before it ended"  # type: ignore[attr-defined]
    assert recent_of_all([], 7, 20)["last"] == 7
