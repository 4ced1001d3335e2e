"""Documents: handles replies that are pages: examines and concludes them, and follows their links.

Pages that arrive in one iteration of the event loop pass each step together. After the first page, code and data of a
step are in the processor's caches, which saves 10 % of the processor time of a light page (decision 18).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from gossamer.engine.examine import Examined, dead, page_of
from gossamer.engine.links import LINKS_AT_ONCE
from gossamer.engine.logs import Logs
from gossamer.engine.stages import Stages
from gossamer.model.links import ANNOUNCING, SEED, Link
from gossamer.model.visits import Reply
from gossamer.stages.frontier.host import UNREAD, VisitLease
from gossamer.url.url import Url
from gossamer.world.clock import Clock
from gossamer.world.loop import LONG_S, LONG_SHARE, LoopShare

if TYPE_CHECKING:
    from gossamer.engine.discover import Discovery
    from gossamer.engine.outcomes import Outcomes

PAGES_SHARE = 10.0
"""Seconds of reading pages per second of other work on the event loop. Many pages may arrive at once, and a large one
takes a second; without this limit requests, signals and the console would wait."""
SMALL_BYTES = 65_536
"""Uncompressed pages up to this size are read as they arrive, because waiting pages delay the detection of traps."""
SMALL_RULES_BYTES = 32_768
"""The same of robots.txt, which is not read in slices."""
BEGUN_POLL_S = 0.01
"""Interval at which a page that may take long checks whether a page examined in slices is done."""
TOGETHER_MAX = 16
TOGETHER_S = 0.01
"""Limits of pages that are read together, and of the time for that, in which requests wait."""
Conclude = Callable[[float], Sequence[Link] | Reply]
"""Ends a visit at an instant and returns the links to follow."""


class FetchedPage(msgspec.Struct, eq=False):
    """A document that is read together with others, and its results."""

    lease: VisitLease
    reply: Reply
    is_slow: bool
    """Whether reading it may take long."""
    slices: Generator[None, None, Examined]
    """The examination's remaining slices."""
    examined: Examined = msgspec.field(default_factory=dead)
    """Nothing before it is read, and if it cannot be read."""
    is_read: bool = False

    @property
    def has_many_links(self) -> bool:
        """Whether its links are too many to be handled at once."""
        return len(self.examined.findings.links) >= LINKS_AT_ONCE


class DocumentReader:
    """Reads documents. Each ends in `Outcomes.document`, or stays queued."""

    def __init__(
        self,
        stages: Stages,
        outcomes: Outcomes,
        discovery: Discovery,
        clock: Clock,
        logs: Logs,
        handle_error: Callable[[VisitLease, Exception], None],
    ) -> None:
        """`handle_error` handles an internal error, which ends only the page of the lease."""
        self._stages = stages
        self._outcomes = outcomes
        self._discovery = discovery
        self._clock = clock
        self._logs = logs
        self._handle_error = handle_error
        self.loop_share = LoopShare(PAGES_SHARE, clock.now, clock.work_s)
        """The share of the event loop that reading pages and prerequisite fetches may take."""
        self.waiting: list[FetchedPage] = []
        """Pages to read in this iteration of the event loop."""
        self._unsettled: list[tuple[VisitLease, Conclude]] = []
        """Visits without a document that end in this iteration of the event loop."""
        self.parked = 0
        """Fetched pages that wait for their turn to be read, at most one of a host."""
        self.is_late: Callable[[], bool] = bool
        """Returns whether the crawl is ending, so that fetched pages are no longer processed."""
        self.undivided = asyncio.Lock()
        """Held during changes that must be in one epoch."""
        self._begun: list[FetchedPage] = []
        """Pages that are examined in slices now: one, and further ones that seemed quick."""
        self._line = asyncio.Lock()
        """Held by the first of the pages that wait for their turn."""

    async def conclude(self, lease: VisitLease, conclude: Conclude) -> None:
        """End a visit without a document, together with others whose results come in this turn of the event loop."""
        self._unsettled.append((lease, conclude))
        await asyncio.sleep(0)
        some = self._unsettled
        self._unsettled = []
        if some and not self.is_late():  # Else others have ended it, or it stays queued, like cancelled visits.
            with self.loop_share.measured():
                self._conclude_together(some)

    async def turn(self, url: Url) -> None:
        """Wait for the turn of a page that may take long to read, if other pages took long."""
        await self._wait_turn(url, self._turn(), parks=self._is_busy)

    @property
    def _is_busy(self) -> bool:
        """Whether a page that may take long has to wait for its turn."""
        return bool(self._begun) or self._line.locked() or self.loop_share.is_busy

    async def _turn(self) -> None:
        """Wait for the turn of a page that may take long: first come, first served."""
        async with self._line:
            await self.loop_share.turn()
            while self._begun:
                await asyncio.sleep(BEGUN_POLL_S)
                await self.loop_share.turn()

    async def read(self, lease: VisitLease, reply: Reply, *, is_slow: bool) -> None:
        """Examine a document, conclude it and follow its links. `is_slow` is the result of `may_be_slow`."""
        stages = self._stages
        link_type = _link_type(lease)
        is_isolated = stages.isolated.wants(reply.media_type, link_type)
        if stages.rendering.is_on or is_isolated or stages.quarantine.suspects(lease.url.fingerprint):
            examined = await self._read_alone(lease, reply, is_isolated=is_isolated)
            if examined is None:
                return
        else:
            page = FetchedPage(lease, reply, is_slow, self._examining(lease.url, reply, link_type))
            if await self._read_with_others(page) or not page.is_read:
                return
            examined = page.examined
        if len(examined.findings.links) >= LINKS_AT_ONCE:
            await self._conclude_in_slices(lease, reply, examined)
            return
        with self.loop_share.measured():
            now = self._clock.now()
            self._discovery.follow(self._outcomes.document(lease, reply, examined, now), lease.url, now)

    # ---- together

    async def _read_with_others(self, page: FetchedPage) -> bool:
        """Read a page together with others that arrive in this iteration of the event loop; return False if it remains
        to be concluded. A page that may take long waits for its turn again if pages before it took long.
        """
        self.waiting.append(page)
        try:
            await asyncio.sleep(0)
            while page in self.waiting:
                is_busy = any(one.is_slow for one in self.waiting) and self._is_busy
                if page.is_slow and is_busy:
                    self.waiting.remove(page)
                    await self.turn(page.lease.url)
                    if self.is_late():
                        return True
                    self.waiting.append(page)
                    is_busy = False
                with self.loop_share.measured():
                    self._read_together([one for one in self.waiting if not (one.is_slow and is_busy)][:TOGETHER_MAX])
            if page in self._begun:
                await self._read_on(page)
                return False
        finally:
            if page in self.waiting:
                self.waiting.remove(page)
            if page in self._begun:
                self._begun.remove(page)
        return not page.has_many_links

    async def _read_on(self, page: FetchedPage) -> None:
        """Examine the rest of a page, unless the crawl is ending. Between slices other work has as long, or more."""
        spent_s = wait_s = 0.0
        while not (page.is_read or self.is_late()):
            await asyncio.sleep(wait_s)
            began_s = self._clock.work_s()
            with self.loop_share.measured():
                self._examine_until(page, began_s + TOGETHER_S)
            took_s = self._clock.work_s() - began_s
            spent_s += took_s
            wait_s = took_s / LONG_SHARE if spent_s > LONG_S else took_s

    def _examine_until(self, page: FetchedPage, ends_s: float) -> None:
        """Examine a page up to its end, or to the first slice that ends later than `ends_s`."""
        try:
            next(page.slices)
            while self._clock.work_s() < ends_s:
                next(page.slices)
        except StopIteration as end:
            page.examined = end.value
            page.is_read = True

    def _read_together(self, some: Sequence[FetchedPage]) -> None:
        """Pass pages through each step together, as `TOGETHER_S` permits, without a commit before their links."""
        pages: list[FetchedPage] = []
        ends_s = self._clock.work_s() + TOGETHER_S
        for page in some:
            if pages and self._clock.work_s() >= ends_s:
                break
            self.waiting.remove(page)
            pages.append(page)
            if self.is_late():
                continue
            try:
                self._examine_until(page, ends_s)
                if not page.is_read:
                    self._begun.append(page)
            except Exception as error:  # noqa: BLE001 - one page's bad luck must not end the others' crawl
                self._handle_error(page.lease, error)
        read = [page for page in pages if page.is_read and not page.has_many_links]
        document = self._outcomes.document
        self._conclude_together([(one.lease, partial(document, one.lease, one.reply, one.examined)) for one in read])

    def _conclude_together(self, some: Sequence[tuple[VisitLease, Conclude]]) -> None:
        now = self._clock.now()
        concluded: list[tuple[VisitLease, Sequence[Link]]] = []
        for lease, conclude in some:
            try:
                links = conclude(now)
                assert not isinstance(links, Reply), "a document among results that have none"
                concluded.append((lease, links))
            except Exception as error:  # noqa: BLE001 - one page's bad luck must not end the others' crawl
                self._handle_error(lease, error)
        for lease, links in concluded:
            try:
                self._discovery.follow(links, lease.url, now)
            except Exception as error:  # noqa: BLE001 - as above
                self._handle_error(lease, error)

    def _examining(self, url: Url, reply: Reply, link_type: str) -> Generator[None, None, Examined]:
        stages = self._stages
        examine = stages.examiner.examine_in_slices
        # Pages with the same empty document may differ when rendered. A sitemap is valid only for its host.
        if stages.copies.processes_all or stages.rendering.is_on or link_type in ANNOUNCING:
            return (yield from examine(reply, url.fingerprint, link_type))
        is_skipped_copy = partial(stages.copies.is_skipped_copy, url, truncated=reply.truncated)
        return (yield from examine(reply, url.fingerprint, link_type, is_skipped_copy))

    # ---- alone

    async def _read_alone(self, lease: VisitLease, reply: Reply, *, is_isolated: bool) -> Examined | None:
        """Examine a page that other processes or a browser read, too; None if the crawl is ending."""
        isolated = self._stages.isolated
        if is_isolated:
            await self._wait_turn(lease.url, isolated.enter(), parks=isolated.is_full)
        try:
            if self.is_late():
                return None
            examined = await self._examine(lease, reply, is_isolated=is_isolated)
        finally:
            if is_isolated:
                isolated.leave()
        if self._stages.rendering.is_on and not examined.died and not self.is_late():
            examined = await self._render(lease, reply, examined, is_isolated=is_isolated)
        return None if self.is_late() else examined

    async def _wait_turn(self, url: Url, turn: Awaitable[None], *, parks: bool) -> None:
        """Wait until a page may be read; its host is parked meanwhile, so that it takes no other host's place."""
        control = self._stages.frontier.control
        if parks:
            self.parked += 1
            control.park(url, self._clock.now(), UNREAD)
        try:
            await turn
        finally:
            if parks:
                self.parked -= 1
                control.unpark(url, self._clock.now())

    async def _conclude_in_slices(self, lease: VisitLease, reply: Reply, examined: Examined) -> None:
        """Conclude a page with many links, in slices. A commit between them would finish the page without some."""
        async with self.undivided:
            finding = self._outcomes.links_in_slices(lease, examined)
            found = None
            while found is None:
                await asyncio.sleep(0)
                if self.is_late():
                    return
                with self.loop_share.measured():
                    try:
                        next(finding)
                    except StopIteration as end:
                        found = end.value
            now = self._clock.now()
            with self.loop_share.measured():
                links = self._outcomes.document(lease, reply, examined, now, found)
            following = self._discovery.follow_in_slices(links, lease.url, now)
            is_done = False
            try:
                while not is_done:
                    await asyncio.sleep(0)
                    with self.loop_share.measured():
                        is_done = next(following, True) is True
            finally:
                for _ in following:  # The crawl is ending: finish without pauses.
                    pass

    async def _examine(self, lease: VisitLease, reply: Reply, *, is_isolated: bool) -> Examined:
        """Examine a document, or a part of it if the crawl ends. `is_isolated`: isolated modules look at it too."""
        quarantine = self._stages.quarantine
        fingerprint = lease.url.fingerprint
        if quarantine.suspects(fingerprint):
            examined = await quarantine.examine(reply, fingerprint)
        else:
            page = FetchedPage(lease, reply, is_slow=True, slices=self._examining(lease.url, reply, _link_type(lease)))
            with self.loop_share.measured():
                self._examine_until(page, self._clock.work_s() + TOGETHER_S)
            self._begun.append(page)
            try:
                await self._read_on(page)
            finally:
                self._begun.remove(page)
            examined = page.examined
        if is_isolated and not examined.died:
            await self._process_isolated(lease, reply, examined)
        return examined

    async def _render(self, lease: VisitLease, reply: Reply, examined: Examined, *, is_isolated: bool) -> Examined:
        """Render a page that is to be rendered, and return the result; else return `examined`. Waits for resources."""
        rendering = self._stages.rendering
        if not (self._outcomes.is_page(lease, reply, examined) and rendering.wants(reply, examined)):
            return examined
        if self._stages.quarantine.suspects(lease.url.fingerprint):
            return examined
        found = await rendering.render(lease.url, reply, examined)
        if found.rendered is not None:
            if is_isolated:
                await self._process_isolated(lease, reply, found)
        elif found.rendering:
            self._logs.info("not_rendered", url=lease.url.text, reason=found.rendering, error=found.rendering_error)
        return found

    async def _process_isolated(self, lease: VisitLease, reply: Reply, found: Examined) -> None:
        if not found.skipped:
            seen = await self._stages.isolated.process(page_of(reply, found.content, _link_type(lease)), found.findings)
            found.errors += seen.errors
            found.ran += seen.ran


def _link_type(lease: VisitLease) -> str:
    visit = lease.visit
    return SEED if visit.seed and visit.link_type not in ANNOUNCING else visit.link_type


def may_be_slow(reply: Reply, small_bytes: int = SMALL_BYTES) -> bool:
    """Return whether reading a page may take long."""
    return reply.file is not None or len(reply.body) > small_bytes or reply.header("content-encoding") is not None
