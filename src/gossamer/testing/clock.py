"""Clock: time that moves when it is told to."""

from __future__ import annotations

import asyncio


class FakeClock:
    """`world.clock.Clock` on which sleeping takes no time: `sleep_until` moves the clock there and gives way once."""

    def __init__(self, instant: float = 1_000_000.0) -> None:
        """Begin at `instant`, in seconds since 1970."""
        self.instant = instant

    def now(self) -> float:
        """Return where the clock stands; it stands still until somebody moves it."""
        return self.instant

    async def sleep_until(self, instant: float) -> None:
        """Move the clock to `instant`, unless that has passed."""
        self.instant = max(self.instant, instant)
        await asyncio.sleep(0)

    def advance(self, duration_s: float) -> None:
        """Move the clock forward by so many seconds."""
        assert duration_s >= 0, "a clock never goes back"
        self.instant += duration_s
