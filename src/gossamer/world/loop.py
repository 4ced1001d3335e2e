"""Loop: settings of a process that crawls: its event loop, the cyclic garbage collector, and limits on the share of the
loop's time that one kind of work takes.

The console of a running crawl has such a limit for its requests, and so has the processing of pages. Each step of work
is measured, and followed by a proportional wait.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

COLLECTOR_THRESHOLDS = (20_000, 20, 50)
"""As for `gc.set_threshold`."""


def calm_collector() -> None:
    """Exclude imported objects from the garbage collector's passes, and make these rarer.

    Nearly all objects of a crawl are freed by reference counting; the passes took 8 % of its time.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the factory of event loops: uvloop's if it is installed."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def wait_at_most(limit_s: float, work: Awaitable[object]) -> bool:
    """Wait for work, which is cancelled after `limit_s`; return whether it is done."""
    try:
        async with asyncio.timeout(limit_s):
            await work
    except TimeoutError:
        return False
    return True


BURST_S = 0.1
"""Seconds of work that may be done before the first wait: enough for a page of the console with all its files."""
LONG_S = 0.1
LONG_SHARE = 0.25
"""Work that held the loop longer than `LONG_S` gets at most `LONG_SHARE`: other work then has four times as long."""
UNBROKEN_S = 0.02
"""After so much work the next begins in another iteration of the event loop, also if the share has time left."""

Made = TypeVar("Made")


class LoopShare:
    """Bounds the loop's time for one kind of work: measures each step, and makes later work wait. Under 1 µs a step."""

    def __init__(self, share: float, now: Callable[[], float], work_s: Callable[[], float] | None = None) -> None:
        """Allow `share` seconds of work per second waited, by the clock `now`. `work_s` measures work; None: `now`."""
        self._share = share
        self._now = now
        self._work_s = work_s or now
        self._paid_at = 0.0
        """When more work may begin."""
        self._line = asyncio.Lock()
        self._unbroken_s = 0.0
        """Work since another iteration of the event loop was last waited for."""
        self.spent_s = 0.0
        """All work so far."""

    def wait_s(self) -> float:
        """Return how long the next work has to wait."""
        return max(0.0, self._paid_at - BURST_S / self._share - self._now())

    @property
    def is_busy(self) -> bool:
        """Whether the next work has to wait."""
        return self._line.locked() or self.wait_s() > 0

    def measured(self) -> MeasuredWork:
        """Measure what is done in the context, without waits in it."""
        return MeasuredWork(self, self._work_s)

    def spend(self, lasted_s: float) -> None:
        """Note that work took `lasted_s`."""
        self.spent_s += lasted_s
        self._unbroken_s += lasted_s
        share = self._share if lasted_s < LONG_S else min(self._share, LONG_SHARE)
        self._paid_at = max(self._paid_at, self._now()) + lasted_s / share

    async def turn(self) -> None:
        """Wait until more work may begin: first come, first served."""
        async with self._line:
            if self._unbroken_s >= UNBROKEN_S:
                self._unbroken_s = 0.0
                await asyncio.sleep(0)
            wait_s = self.wait_s()
            while wait_s > 0:
                await asyncio.sleep(wait_s)
                wait_s = self.wait_s()  # Other work, begun earlier, may have spent time meanwhile.

    async def run(self, work: Coroutine[Any, Any, Made]) -> Made:
        """Wait for a turn, then do the work with each of its steps measured."""
        try:
            await self.turn()
        except BaseException:
            work.close()
            raise
        return await _MeasuredSteps(work, self)


class MeasuredWork:
    """A context whose time counts as work of a share. A class: a generator would cost three times as much a page."""

    __slots__ = ("_began", "_share", "_work_s")

    def __init__(self, share: LoopShare, work_s: Callable[[], float]) -> None:
        self._share = share
        self._work_s = work_s
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = self._work_s()

    def __exit__(self, *_: object) -> None:
        self._share.spend(self._work_s() - self._began)


class _MeasuredSteps(Generic[Made]):
    """An awaitable that runs a coroutine and measures each of its steps."""

    def __init__(self, work: Coroutine[Any, Any, Made], share: LoopShare) -> None:
        self._work = work
        self._share = share

    def __await__(self) -> Generator[Any, None, Made]:
        work = self._work
        measured = self._share.measured
        error: BaseException | None = None
        while True:
            try:
                with measured():
                    awaited = work.send(None) if error is None else work.throw(error)
            except StopIteration as end:
                made: Made = end.value
                return made
            try:
                yield awaited
                error = None
            except BaseException as thrown:  # noqa: BLE001 - a cancellation belongs to the work
                error = thrown
