"""Wall: wall time that never jumps while the process lives."""

from __future__ import annotations

import time

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_s() -> float:
    """Return seconds of a monotonic clock; where the system has one, it goes on while the machine sleeps."""
    return time.clock_gettime(_STEADY)


class WallTime:
    """Wall time at the start, continued by a monotonic clock.

    A change of the system time must not make requests early, nor stall the crawl for hours.
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - steady_s()

    def now(self) -> float:
        """Return seconds since 1970, UTC; they never go back."""
        return time.clock_gettime(_STEADY) + self._offset_s  # Asked a dozen times a page.
