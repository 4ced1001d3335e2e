"""Course: how the counts of a crawl went over time, the last minutes finely and the last month coarsely."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import NamedTuple

RINGS = ((1.0, 300), (5.0, 120), (60.0, 180), (600.0, 144), (7200.0, 360))
"""Seconds between two points, and how many are kept: five minutes, ten minutes, three hours, a day, a month."""
RECENT_RING = 1
"""Whose rates `rates` returns."""


class Point(NamedTuple):
    """Where the counts stood."""

    at: float
    pages: int
    attempts: int
    wire_bytes: int
    pending: int


class Course:
    """Keeps at most 1,109 points, whatever the crawl's length: about 130 KB. A point costs about 1 µs."""

    def __init__(self) -> None:
        # One more, since a rate lies between two.
        self._rings: list[deque[Point]] = [deque(maxlen=most + 1) for _, most in RINGS]

    def add(self, point: Point) -> None:
        """Take where the counts stand now."""
        for (step_s, _), ring in zip(RINGS, self._rings, strict=True):
            if ring and point.at - ring[-1].at < step_s:
                return
            ring.append(point)

    def points(self) -> list[Point]:
        """Return all points in order of time: of each time those of the finest ring that reaches back so far."""
        found: list[Point] = []
        for ring in self._rings:
            reaches_to = found[0].at if found else float("inf")
            found[:0] = [point for point in ring if point.at < reaches_to]
        return found

    def rates(self) -> list[tuple[float, float, float]]:
        """Return instants of the last ten minutes, with pages and bytes a second up to each."""
        ring = self._rings[RECENT_RING]
        return [
            (after.at, (after.pages - before.pages) / lasted_s, (after.wire_bytes - before.wire_bytes) / lasted_s)
            for before, after in pairwise(ring)
            if (lasted_s := after.at - before.at) > 0
        ]
