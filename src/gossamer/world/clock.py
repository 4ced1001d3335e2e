"""Clock: wall time without jumps while the process lives, sleeping until such a time, and measuring work."""

import time
from collections.abc import Sequence
from typing import Protocol

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Time as the crawl sees it; tests use a simulated one."""

    def now(self) -> float:
        """Seconds since 1970, UTC; never goes back."""

    def work_s(self) -> float:
        """Processor time of the calling thread in seconds, to measure a piece of work independently of other load."""

    def process_work_s(self) -> float:
        """Processor time of all threads of this process in seconds."""

    async def sleep_until(self, instant: float) -> None:
        """Return no earlier than `instant`."""


class WallClock:
    """Wall time at the start, continued by a monotonic clock.

    A change of the system time must not make requests early, nor stall the crawl for hours.
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - steady_s()

    def now(self) -> float:
        return time.clock_gettime(_STEADY) + self._offset_s  # Called a dozen times per page.

    work_s = staticmethod(time.thread_time)
    process_work_s = staticmethod(time.process_time)

    async def sleep_until(self, instant: float) -> None:
        import asyncio  # noqa: PLC0415 - the supervisor has a clock and no loop

        await asyncio.sleep(max(0.0, instant - self.now()))


def steady_s() -> float:
    """Return seconds of a monotonic clock that, if the system has one, also runs while the machine sleeps."""
    return time.clock_gettime(_STEADY)


Absences = Sequence[tuple[float, float]]
"""Periods in which no process of a crawl ran: begin and end of each in wall time."""


def absent_s(absences: Absences, begin: float, end: float) -> float:
    """Return the seconds between two wall times in which no process of the crawl ran."""
    return sum([max(0.0, min(end, back) - max(begin, gone)) for gone, back in absences])


elapsed_s = time.perf_counter
"""Returns seconds since some instant, precise enough to measure a call; not wall time."""
processor_s = time.thread_time
"""Returns the seconds of processor time that the calling thread has used."""


def give_way() -> None:
    """Let the event loop's thread have the interpreter now, not at the end of the 5 ms switch interval."""
    time.sleep(0)


def pause(seconds: float) -> None:
    """Sleep in the calling thread. Not for the event loop's thread."""
    time.sleep(seconds)
