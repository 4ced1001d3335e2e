"""Shares: which page gets the next free browser, so that no host keeps browsers from others.

The host whose pages have held browsers for the shortest time is next. Where pages of several hosts come, a host has at
most one browser, and leaves one free, until some of its pages in a row were quick. A page that failed is tried again
when no other page waits.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from gossamer.features.render.page import PageError

QUICK_S: Final = 3.0
"""Processor seconds of a quick page at most. Its requests end, too."""
TRUST_MIN: Final = 3
"""Quick pages in a row after which a host may have all browsers; four times as many after each page that failed."""
KEPT_S: Final = 60.0
"""Browsers are left to other hosts, or to those with quick pages, for this time after a page of them."""
FAILURES_MAX: Final = 5
"""Pages of a host in a row that hang or end their browsers, after which its pages are not rendered,"""
CLOSED_S: Final = 300.0
"""for this time: then one more is tried."""
HOSTS_MAX: Final = 1_000


class HostShare(msgspec.Struct):
    """What is known about the pages of a host."""

    held_s: float = 0.0
    """Seconds for which its pages have held browsers; of a host without pages, raised to that of the others."""
    running: int = 0
    failures: int = 0
    closed_until: float = 0.0
    quick: int = 0
    """Quick pages in a row; -1 if the last one was slow."""
    quick_min: int = TRUST_MIN

    @property
    def is_trusted(self) -> bool:
        return self.quick >= self.quick_min

    def note(self, held_s: float, now: float, *, is_quick: bool, failed: bool) -> None:
        """Take the result of a page."""
        self.held_s += held_s
        self.quick = max(0, self.quick) + 1 if is_quick else -1
        self.failures = self.failures + 1 if failed else 0
        if failed:
            self.quick_min *= 4
        if self.failures >= FAILURES_MAX:
            self.closed_until = now + CLOSED_S


class BrowserShares:
    """Turns of pages at `browsers` browsers. A turn costs one pass over the pages that wait."""

    def __init__(self, browsers: int) -> None:
        self._free = browsers
        self._browsers = browsers
        self._hosts: OrderedDict[str, HostShare] = OrderedDict()
        self._waiting: dict[asyncio.Future[None], tuple[HostShare, bool]] = {}
        self._floor_s = 0.0
        self._last = ""
        self._mixed_at = -KEPT_S
        self._trusted_at = -KEPT_S

    @asynccontextmanager
    async def turn(self, name: str, *, is_again: bool) -> AsyncIterator[HostShare]:
        """Wait for a browser; `PageError` if the last pages of the host hung or ended theirs."""
        host = self._host(name)
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = host, is_again
        try:
            self._next()
            await turn
            if host.closed_until > asyncio.get_running_loop().time():
                raise PageError("hangs", f"{FAILURES_MAX} pages of its host in a row did not end")
            yield host
        finally:
            del self._waiting[turn]
            if turn.done() and not turn.cancelled():
                host.running -= 1
                self._free += 1
                if host.is_trusted:
                    self._trusted_at = asyncio.get_running_loop().time()
            self._next()

    def _host(self, name: str) -> HostShare:
        if name != self._last:
            self._mixed_at = asyncio.get_running_loop().time() if self._last else -KEPT_S
            self._last = name
        host = self._hosts.setdefault(name, HostShare())
        self._hosts.move_to_end(name)
        host.held_s = max(host.held_s, self._floor_s)
        if len(self._hosts) > HOSTS_MAX:
            self._hosts.popitem(last=False)
        return host

    def _next(self) -> None:
        """Give the free browsers away."""
        now = asyncio.get_running_loop().time()
        open_turns = [(turn, *one) for turn, one in self._waiting.items() if not turn.done()]
        open_turns.sort(key=lambda one: (one[2], one[1].quick < 0, one[1].held_s))  # New hosts before slow ones.
        for turn, host, _ in open_turns:
            if self._free and self._may_begin(host, now):
                self._free -= 1
                host.running += 1
                self._floor_s = max(self._floor_s, host.held_s)
                turn.set_result(None)

    def _may_begin(self, host: HostShare, now: float) -> bool:
        if host.running and (host.failures or not host.is_trusted) and now - self._mixed_at < KEPT_S:
            return False
        if host.is_trusted:
            return True
        is_kept = self._browsers > 1 and now - self._trusted_at < KEPT_S
        return self._free > is_kept
