"""Clock: wall time that never jumps while the process lives."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from gossamer.world.machine import steady_s


class Clock(Protocol):
    """Time as the crawl sees it; a simulated one stands in for it in tests."""

    def now(self) -> float:
        """Seconds since 1970, UTC; never goes back."""
        ...

    async def sleep_until(self, instant: float) -> None:
        """Return no earlier than `instant`."""
        ...


class WallClock:
    """The real clock: anchored once to wall time, then carried on by the clock that nobody sets.

    An operator who sets the system time must not make us early at a server, nor stall us for hours.
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - steady_s()

    def now(self) -> float:
        return steady_s() + self._offset_s

    async def sleep_until(self, instant: float) -> None:
        await asyncio.sleep(max(0.0, instant - self.now()))


def give_way() -> None:
    """Let the event loop's thread have the interpreter now, not at the end of the 5 ms switch interval."""
    time.sleep(0)


def pause(seconds: float) -> None:
    """Hold up the calling thread, which is not the loop's."""
    time.sleep(seconds)
