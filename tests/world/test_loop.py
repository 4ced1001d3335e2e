"""The share of the loop: what the console may take of it, whatever is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gossamer.world.loop import BURST_S, UNBROKEN_S, LoopShare, wait_at_most


class Clock:
    """Time that passes only when somebody works or the test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def work(self, lasted_s: float) -> None:
        self.now_s += lasted_s


def test_work_is_paid_for_before_more_begins() -> None:
    clock = Clock()
    share = LoopShare(0.2, clock)
    assert share.wait_s() == 0.0
    with share.measured():
        clock.work(1.0)
    assert share.wait_s() == pytest.approx((1.0 - BURST_S) / 0.2)
    clock.now_s += 4.5
    assert share.wait_s() == pytest.approx(0.0)
    assert share.spent_s == pytest.approx(1.0)


@pytest.mark.promise("Console", "No client keeps others out or takes more than its share of the crawl's event loop.")
def test_over_any_time_no_more_than_the_share_is_spent() -> None:
    clock = Clock()
    share = LoopShare(0.2, clock)
    began, jobs = clock(), 0
    while clock() - began < 100.0:
        if (wait_s := share.wait_s()) > 0:
            clock.now_s += wait_s
        with share.measured():
            clock.work(0.013)
        jobs += 1
    assert jobs * 0.013 == pytest.approx(20.0, rel=0.02)


def test_only_the_steps_of_work_are_counted_not_its_waits() -> None:
    clock = Clock()
    share = LoopShare(0.5, clock)

    async def run() -> str:
        ready = asyncio.Event()

        async def work() -> str:
            clock.work(0.01)
            await ready.wait()
            clock.work(0.02)
            return "done"

        task = asyncio.create_task(share.run(work()))
        await asyncio.sleep(0)
        clock.now_s += 50.0  # Somebody else's.
        ready.set()
        return await task

    assert asyncio.run(run()) == "done"
    assert share.spent_s == pytest.approx(0.03)


def test_work_of_many_that_come_at_once_is_spread_over_iterations_of_the_loop() -> None:
    clock = Clock()
    share = LoopShare(10.0, clock)
    iterations = [0]
    work: list[int] = []

    async def count() -> None:
        while True:
            iterations[0] += 1
            await asyncio.sleep(0)

    async def one() -> None:
        await share.turn()
        with share.measured():
            clock.work(UNBROKEN_S)
        work.append(iterations[0])

    async def all_of_them() -> None:
        counting = asyncio.create_task(count())
        await asyncio.gather(*(one() for _ in range(20)))
        counting.cancel()

    asyncio.run(all_of_them())
    assert max(work.count(iteration) for iteration in work) <= 2


def raising(error: BaseException) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        await asyncio.sleep(0)
        raise error

    return work


def test_errors_and_cancellations_pass_through() -> None:
    async def run() -> None:
        share = LoopShare(1.0, asyncio.get_running_loop().time)
        with pytest.raises(KeyError):
            await share.run(raising(KeyError("x"))())  # type: ignore[arg-type]
        cleaned = []

        async def endless() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append(True)

        task = asyncio.create_task(share.run(endless()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cleaned == [True]
        async with asyncio.timeout(60):
            with pytest.raises(TimeoutError):
                await share.run(timed_out())

    async def timed_out() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    asyncio.run(run())


def test_work_that_waits_for_its_turn_and_is_cancelled_is_never_begun() -> None:
    clock = Clock()
    share = LoopShare(0.2, clock)
    share.spend(1_000.0)
    begun = []

    async def work() -> None:
        begun.append(True)

    async def run() -> None:
        task = asyncio.create_task(share.run(work()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert begun == []


def test_a_wait_ends_with_its_work_or_its_limit() -> None:
    async def whole() -> None:
        done = asyncio.Event()
        assert not await wait_at_most(0.01, done.wait())
        done.set()
        assert await wait_at_most(60.0, done.wait())

    asyncio.run(whole())
