"""Renderer: pages through a pool of browsers. A browser that hangs or dies costs its page another try.

No host keeps browsers from others: the host whose pages have held browsers for the shortest time is next. Where pages
of several hosts come, a host has at most one browser, and leaves one free, until some of its pages in a row were quick.
A page that failed is tried again when no other page waits.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from gossamer.features.render.behaviors import BehaviorFile
from gossamer.features.render.browser import Browser, BrowserError, program_of
from gossamer.features.render.options import RenderOptions
from gossamer.features.render.page import Dom, PageError, Rendering, Supply
from gossamer.model.errors import CrawlFailedError
from gossamer.model.visits import Reply
from gossamer.world.process import DirectoryLock

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
    """Statistics of a host's pages."""

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


STARTS_MAX: Final = 3
"""Browsers in a row that do not start, after which the crawl ends: its pages would all be incomplete."""
PAGES_EACH_MAX: Final = 200
"""A browser is replaced after this number of pages: what they left in it goes with it."""
PLACE_POLL_S: Final = 0.1


class Renderer:
    """Renders `render.browsers` pages at once, each in a browser that it has alone, in a separate context."""

    def __init__(
        self, options: RenderOptions, behaviors: Sequence[BehaviorFile] = (), places: Sequence[Path] = ()
    ) -> None:
        """`places` are files of locks, one for each browser that the shards on this machine may have at once."""
        self._options = options
        self._places = places
        self._behaviors = tuple(behaviors)
        self._shares = BrowserShares(options.browsers)
        self._idle: list[tuple[Browser, int]] = []
        self._busy: set[Browser] = set()
        self._ended_cpu_s = 0.0
        self._failed_starts = 0

    @property
    def cpu_s(self) -> float:
        """Processor seconds of all browsers so far; a fifth of a second behind."""
        alive = [*self._busy, *(browser for browser, _ in self._idle)]
        return self._ended_cpu_s + sum(browser.cpu_s for browser in alive)

    async def render(self, document: Reply, supply: Supply, host: str) -> Dom:
        """Return the page that scripts make of a document. Waits for a browser, as the shares of hosts permit.

        Raises PageError: it is not rendered; CrawlFailedError: no browser starts.
        """
        for attempt in range(1, self._options.attempts_max + 1):
            async with self._shares.turn(host, is_again=attempt > 1) as share, self._place():
                try:
                    return await self._render(document, supply, share)
                except BrowserError as error:
                    if attempt == self._options.attempts_max:
                        raise PageError(error.reason, f"{error} ({attempt} attempts)") from error
        raise AssertionError("there is one attempt at the least")

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Wait for a place of this machine. The kernel frees those of a shard that is killed."""
        locks = [DirectoryLock(path) for path in self._places]
        try:
            while locks and not any(lock.acquire(0.0) for lock in locks):  # noqa: ASYNC110 - other processes free them
                await asyncio.sleep(PLACE_POLL_S)
            yield
        finally:
            for lock in locks:
                lock.release()

    async def close(self) -> None:
        for browser in [*self._busy, *(browser for browser, _ in self._idle)]:
            await self._end(browser)
        self._idle.clear()

    async def _render(self, document: Reply, supply: Supply, share: HostShare) -> Dom:
        browser, pages = await self._take_browser()
        self._busy.add(browser)
        now = asyncio.get_running_loop().time
        began = now()
        began_cpu_s = browser.cpu_s
        keep = False
        failed = True
        is_quick = False
        try:
            dom = await Rendering(browser, document, self._options, supply, self._behaviors).dom()
            failed = False
            is_quick = not dom.cut and browser.cpu_s - began_cpu_s <= QUICK_S
            keep = pages + 1 < PAGES_EACH_MAX and not self._places
            return dom
        except PageError:
            failed = False
            keep = not (browser.ended or self._places)
            raise
        finally:
            share.note(now() - began, now(), is_quick=is_quick, failed=failed)
            self._busy.discard(browser)
            if keep:
                self._idle.append((browser, pages + 1))
            else:
                # Also where the crawl is stopped meanwhile: then nothing else would end it.
                await asyncio.shield(self._end(browser))

    async def _take_browser(self) -> tuple[Browser, int]:
        while self._idle:
            browser, pages = self._idle.pop()
            if not browser.ended:
                return browser, pages
            await self._end(browser)
        try:
            browser = await Browser.start(self._options)
        except BrowserError as error:
            self._failed_starts += 1
            if self._failed_starts >= STARTS_MAX:
                raise CrawlFailedError(
                    f"crawl.render: no browser starts ({error}); see that `{program_of(self._options)} "
                    "--headless about:blank` runs as the user of `render.user`, or crawl with --render never"
                ) from error
            raise
        self._failed_starts = 0
        return browser, 0

    async def _end(self, browser: Browser) -> None:
        await browser.close()
        self._ended_cpu_s += browser.cpu_s
        browser.cpu_s = 0.0
