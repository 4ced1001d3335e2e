"""Delivery: passes finished visits to the iterator over pages, each after the commit that holds it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from gossamer.model.visits import Visited

PAGES_HELD_MAX = 2_000
BYTES_HELD_MAX = 128 << 20
"""Both bound the visits that wait for their commit or reader. Visits in flight at that point are added."""


class Delivery:
    """Holds finished visits until they are read. While it is full, the crawl starts no visits.

    Nothing blocks on the reader: commits go on, and visits that were not read stay here after the crawl ends.
    """

    def __init__(self, pages_max: int = PAGES_HELD_MAX, bytes_max: int = BYTES_HELD_MAX) -> None:
        self._pages_max = pages_max
        self._bytes_max = bytes_max
        self._open: list[Visited] = []
        self._open_bytes = 0
        self._ready: deque[Visited] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._unwanted = False
        self.pages = 0
        """Visits held, in commits to come and committed."""
        self.held_bytes = 0
        self.on_room: Callable[[], None] | None = None
        """Called when it is full no more."""

    @property
    def full(self) -> bool:
        """Say that nothing more should be begun."""
        return self.pages >= self._pages_max or self.held_bytes >= self._bytes_max

    @property
    def filling(self) -> bool:
        """Say that a commit should come early: the open epoch holds a good part of what may wait."""
        return 4 * len(self._open) >= self._pages_max or 4 * self._open_bytes >= self._bytes_max

    def add(self, visited: Visited) -> None:
        """Take a visit of the open epoch."""
        if not self._unwanted:
            self._open.append(visited)
            self._open_bytes += _weight(visited)
            self.pages += 1
            self.held_bytes += _weight(visited)

    def take(self) -> list[Visited]:
        """Return the visits of the epoch that closes now; they come back by `committed`."""
        closing, self._open, self._open_bytes = self._open, [], 0
        return closing

    async def committed(self, visits: Sequence[Visited]) -> None:
        """Let these be read."""
        if not self._unwanted:
            self._ready.extend(visits)
            self._news.set()

    async def next(self) -> Visited | None:
        """Return the next visit, or None when there will be no more."""
        while not self._ready:
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        was_full = self.full
        visited = self._ready.popleft()
        self.pages -= 1
        self.held_bytes -= _weight(visited)
        if was_full and not self.full and self.on_room is not None:
            self.on_room()
        return visited

    def end(self) -> None:
        """Say that no more will come."""
        self._ended = True
        self._news.set()

    def drop(self) -> None:
        """Drop all visits, now and later: the reader has left."""
        self._unwanted = True
        self._open.clear()
        self._ready.clear()
        self.pages = self.held_bytes = self._open_bytes = 0
        if self.on_room is not None:
            self.on_room()


def _weight(visited: Visited) -> int:
    # A body on disk counts too: each such page holds an open file.
    body = visited.reply.body_bytes if visited.reply is not None else 0
    return body + (visited.content.body_bytes if visited.content is not None else 0)
