"""Load: counts the requests of recent minutes by partition, so that partitions can move to where there is room."""

from collections import Counter
from typing import Final

LOAD_WINDOW_S: Final = 60.0
"""Counts are of one to two such times."""


class RequestLoad:
    """Requests by partition. A count costs about 0.2 µs; there is at most one for each partition."""

    def __init__(self, now: float) -> None:
        self._counts: Counter[int] = Counter()
        self._began_at = now
        self._before: Counter[int] = Counter()
        self._before_s = 0.0

    def note(self, partition: int, now: float) -> None:
        """Count a request."""
        if not 0.0 <= now - self._began_at < LOAD_WINDOW_S:
            self._roll(now)
        self._counts[partition] += 1

    def forget(self, first: int, end: int) -> None:
        """Drop the counts of partitions that move."""
        for counts in (self._counts, self._before):
            for partition in [one for one in counts if first <= one < end]:
                del counts[partition]

    def per_s(self, now: float) -> float:
        """Return requests a second of all partitions."""
        self._roll(now)
        total = self._counts.total() + self._before.total()
        return total / max(now - self._began_at + self._before_s, LOAD_WINDOW_S / 2)

    def by_partition(self, now: float) -> list[tuple[int, int]]:
        """Return partitions with requests, and their number."""
        self._roll(now)
        return sorted((self._counts + self._before).items())

    def _roll(self, now: float) -> None:
        elapsed_s = now - self._began_at
        if 0.0 <= elapsed_s < LOAD_WINDOW_S:
            return
        self._before = self._counts
        self._before_s = max(elapsed_s, 0.0)  # A clock that was set back gives no time.
        self._counts = Counter()
        self._began_at = now
