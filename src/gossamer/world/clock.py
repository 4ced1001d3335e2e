"""Clock: time as the crawl sees it, and sleeps by it."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from gossamer.world.wall import WallTime


class Clock(Protocol):
    """Time as the crawl sees it; tests use a simulated one."""

    def now(self) -> float:
        """Seconds since 1970, UTC; never goes back."""
        ...

    def work_s(self) -> float:
        """Seconds that the calling thread has worked, to measure a piece of work; a busy machine makes none longer."""
        ...

    async def sleep_until(self, instant: float) -> None:
        """Return no earlier than `instant`."""
        ...


class WallClock(WallTime):
    """The real clock."""

    def work_s(self) -> float:
        return processor_s()

    async def sleep_until(self, instant: float) -> None:
        await asyncio.sleep(max(0.0, instant - self.now()))


def elapsed_s() -> float:
    """Return seconds since some instant, precise enough to measure a call; not wall time."""
    return time.perf_counter()


def processor_s() -> float:
    """Return the seconds of processor time that the calling thread has used."""
    return time.thread_time()


def give_way() -> None:
    """Let the event loop's thread have the interpreter now, not at the end of the 5 ms switch interval."""
    time.sleep(0)


def pause(seconds: float) -> None:
    """Hold up the calling thread, which is not the loop's."""
    time.sleep(seconds)
