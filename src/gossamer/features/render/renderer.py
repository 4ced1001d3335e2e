"""Renderer: pages through a pool of browsers. A browser that hangs or dies costs its page another try."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from gossamer.features.render.behaviors import BehaviorFile
from gossamer.features.render.browser import Browser, BrowserError, program_of
from gossamer.features.render.options import RenderOptions
from gossamer.features.render.page import Dom, PageError, Rendering, Supply
from gossamer.features.render.shares import QUICK_S, BrowserShares, HostShare
from gossamer.model.errors import CrawlFailedError
from gossamer.model.visits import Reply
from gossamer.world.process import DirectoryLock

STARTS_MAX: Final = 3
"""Browsers in a row that do not start, after which the crawl ends: its pages would all be incomplete."""
PAGES_EACH_MAX: Final = 200
"""A browser is replaced after this number of pages: what they left in it goes with it."""
PLACE_POLL_S: Final = 0.1


class Renderer:
    """Renders `render.browsers` pages at once, each in a browser that it has alone, in a context of its own."""

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

        Raises:
            PageError: it is not rendered.
            CrawlFailedError: no browser starts.
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
        """End all browsers."""
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
