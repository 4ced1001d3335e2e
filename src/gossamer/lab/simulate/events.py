"""Events: what happens when, in simulated time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

Event = Callable[[float], None]


class Events:
    """A queue of events by time; equal times in the order of their asking. About 1 µs each."""

    def __init__(self, now: float) -> None:
        self.now = now
        self._heap: list[tuple[float, int, Event]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, instant: float, event: Event) -> None:
        """Have an event happen at an instant that is not past."""
        assert instant >= self.now, "an event in the past"
        heapq.heappush(self._heap, (instant, next(self._order), event))

    @property
    def next_at(self) -> float:
        """When the next event comes; there must be one."""
        return self._heap[0][0]

    def step(self) -> None:
        """Let the next event happen."""
        self.now, _, event = heapq.heappop(self._heap)
        event(self.now)
