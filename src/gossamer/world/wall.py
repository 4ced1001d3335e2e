"""Wall: wall time that never jumps while the process lives."""

from __future__ import annotations

import time

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_s() -> float:
    """Return seconds by the clock that nobody sets; where the system has one, it goes on while the machine sleeps."""
    return time.clock_gettime(_STEADY)


class WallTime:
    """Anchored once to wall time, then carried on by the clock that nobody sets.

    An operator who sets the system time must not make us early at a server, nor stall us for hours.
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - steady_s()

    def now(self) -> float:
        """Return seconds since 1970, UTC; they never go back."""
        return steady_s() + self._offset_s
