"""Mentions: a running crawl's part of Webmention: notices that pages link to its pages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gossamer.assembly.ring import CrawlRing
from gossamer.engine.counters import Telemetry
from gossamer.model.links import FEED, Link, Notice
from gossamer.model.visits import Failure
from gossamer.url.url import Url

if TYPE_CHECKING:
    from gossamer.features.mentions.mentions import Answer, Mentions

LOOK_S = 1.0


class MentionReceiver:
    """Takes notices for an HTTP server, and follows those that were verified. Call all methods on the crawl's loop."""

    def __init__(self, mentions: Mentions, ring: CrawlRing, telemetry: Telemetry) -> None:
        self._mentions = mentions
        self._ring = ring
        self._clock = telemetry.clock
        self._logs = telemetry.logs

    async def run(self) -> None:
        """Request the sources of notices, and follow verified ones, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self._follow()
            self._request_due()

    async def receive(self, source: str, target: str) -> Answer:
        """Take a notice; one that will be verified is durable when this returns."""
        answer = self._mentions.receive(source, target, self._is_wanted, self._clock.now())
        if answer.status < 400:
            await self._ring.loop.commit()
        return answer

    def counts(self) -> dict[str, int]:
        """Return the number of notices by state."""
        return self._mentions.counts()

    def _is_wanted(self, url: Url) -> bool:
        return not self._ring.scope.chain.explain(Link(url, "anchor", 0))

    def _request_due(self) -> None:
        now = self._clock.now()
        prerequisites = self._mentions.due(now)
        control = self._ring.frontier.control
        for prerequisite in prerequisites:
            runs = control.run_prerequisite(prerequisite, now)
            if not runs and prerequisite.owner == self._mentions.name:
                self._mentions.answered(prerequisite, Failure("host_closed", "its host is closed"), b"", now)
        if prerequisites:
            self._ring.loop.stir()

    def _follow(self) -> None:
        """Visit the sources of verified links that are in scope: at once where they are known, else like the entries of
        a feed.
        """
        now = self._clock.now()
        recrawl = self._ring.recrawl
        for source, target in self._mentions.take_verified(now):
            self._logs.info("webmention_verified", url=source.text, target=target.text)
            notice = Notice(source, "webmention", changed_at=now, due_now=True, not_before=now)
            if recrawl is None or not recrawl.schedule.note(notice, now):
                self._ring.pipeline.discovery.discover([Link(source, FEED, 0, 0, target.text)])
                self._ring.loop.stir()
