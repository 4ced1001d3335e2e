"""Delivery: passes finished visits to the iterator over pages, each after the commit that holds it."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from gossamer.model.pages import Visited

PAGES_HELD_MAX = 2_000
BYTES_HELD_MAX = 128 << 20
"""Both limits bound the visits that wait for their commit or reader. Visits already in flight are added."""


class Delivery:
    """Holds finished visits until they are read. While it is full, the crawl starts no visits.

    Nothing blocks on the reader: commits go on, and unread visits stay here after the crawl ends.
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
        """Visits held, committed or not."""
        self.held_bytes = 0
        self.on_room: Callable[[], object] = int
        """Called when it is no longer full."""

    @property
    def full(self) -> bool:
        """Whether no more visits should start."""
        return self.pages >= self._pages_max or self.held_bytes >= self._bytes_max

    @property
    def filling(self) -> bool:
        """Whether a commit should come early, because the open epoch holds a large part of the visits that may wait."""
        return 4 * len(self._open) >= self._pages_max or 4 * self._open_bytes >= self._bytes_max

    def add(self, visited: Visited) -> None:
        """Add a visit of the open epoch."""
        if not self._unwanted:
            self._open.append(visited)
            self._open_bytes += _weight(visited)
            self.pages += 1
            self.held_bytes += _weight(visited)

    def take(self) -> list[Visited]:
        """Return the visits of the epoch that closes now; pass them to `release` after the commit."""
        closing = self._open
        self._open = []
        self._open_bytes = 0
        return closing

    async def release(self, visits: Sequence[Visited]) -> None:
        """Make these visits available to the reader."""
        if not self._unwanted:
            self._ready.extend(visits)
            self._news.set()

    async def next(self) -> Visited | None:
        """Wait for the next visit and return it; None at the end."""
        while not self._ready:
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        was_full = self.full
        visited = self._ready.popleft()
        self.pages -= 1
        self.held_bytes -= _weight(visited)
        if was_full and not self.full:
            self.on_room()
        return visited

    def end(self) -> None:
        """End: no more visits will be added."""
        self._ended = True
        self._news.set()

    def drop(self) -> None:
        """Drop all current and later visits, because the reader has left."""
        self._unwanted = True
        self._open.clear()
        self._ready.clear()
        self.pages = self.held_bytes = self._open_bytes = 0
        self.on_room()


def _weight(visited: Visited) -> int:
    # A body on disk counts too, since each such page holds an open file.
    body = visited.reply.body_bytes if visited.reply is not None else 0
    return body + (visited.content.body_bytes if visited.content is not None else 0)
