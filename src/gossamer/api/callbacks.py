"""Callbacks: what other servers tell a running crawl: hubs of WebSub, and senders of Webmention's notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from xxhash import xxh3_128

from gossamer.assembly.ring import CrawlRing
from gossamer.engine.counters import Telemetry
from gossamer.features.revisit.schedule import Schedule
from gossamer.features.revisit.websub import Check, Subscription, Subscriptions
from gossamer.model.links import FEED, Link, Notice
from gossamer.model.visits import Failure
from gossamer.url.url import Url
from gossamer.world.loop import wait_at_most

if TYPE_CHECKING:
    from gossamer.features.mentions.mentions import Answer, Mentions

LOOK_S = 1.0
GATHER_S = 0.05
"""Pings that come within this share one commit."""
LEAVE_S_MAX = 10.0
CHALLENGE_CHARACTERS_MAX = 4_096


class Callbacks:
    """The subscriber's side of WebSub, for an HTTP server. Call all methods on the crawl's loop."""

    def __init__(self, hubs: Subscriptions, schedule: Schedule, ring: CrawlRing, telemetry: Telemetry) -> None:
        self._hubs = hubs
        self._schedule = schedule
        self._ring = ring
        self._clock = telemetry.clock
        self._logs = telemetry.logs
        self._pinged = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._then: Callable[[], None] | None = None

    async def run(self) -> None:
        """Send the subscription requests that become due, until cancelled."""
        while True:
            if self._then is not None:
                await self._leave(self._then)
            self._pinged.clear()
            if await wait_at_most(LOOK_S, self._pinged.wait()):
                await asyncio.sleep(GATHER_S)
                await self._settle()
            else:
                await self._ask()

    def leave(self, then: Callable[[], None]) -> None:
        """Unsubscribe from all hubs, wait a moment for their confirmations, and call `then`."""
        self._then = then
        self._pinged.set()

    async def _leave(self, then: Callable[[], None]) -> None:
        clock = self._clock
        ends_at = clock.now() + LEAVE_S_MAX
        self._hubs.leave(clock.now())
        while self._hubs.leaving and clock.now() < ends_at:
            await self._ask()
            await asyncio.sleep(GATHER_S)
        self._then = None
        then()

    def intent(self, token: str, query: Mapping[str, str]) -> tuple[int, str]:
        """Return status and text of the answer to a hub's GET (sections 5.2 and 5.3)."""
        now = self._clock.now()
        mode = query.get("hub.mode", "")
        topic = query.get("hub.topic", "")
        if mode == "denied":
            known = self._hubs.deny(token, topic, query.get("hub.reason", ""), now)
            return (200, "") if known else (404, "no such subscription\n")
        challenge = query.get("hub.challenge", "")
        if not challenge or len(challenge) > CHALLENGE_CHARACTERS_MAX:
            return 404, "nothing to confirm\n"
        if not self._hubs.verify(token, mode, topic, query.get("hub.lease_seconds", ""), now):
            return 404, "that is not what we asked for\n"
        self._logs.info("websub_verified", url=topic, mode=mode)
        return 200, challenge

    def notification(self, token: str, signature: str) -> Notification | None:
        """Begin to receive a hub's POST; None without a subscription for `token`: the answer is 410 then."""
        one = self._hubs.get(token)
        return Notification(self, one, Check(one.secret, signature)) if one is not None else None

    def subscriptions(self) -> list[dict[str, object]]:
        """Return the subscriptions for display, without callback addresses and secrets."""
        return [
            {
                "topic": one.topic, "hub": one.hubs[one.hub], "pending": one.pending, "lease_until": one.lease_until,
                "denied": one.denied, "error": one.error, "pings": one.pings, "pinged_at": one.pinged_at,
                "signed": bool(one.secret),
            }
            for one in self._hubs.all()
        ]  # fmt: skip

    async def on_ping(self, one: Subscription, digest: bytes) -> None:
        """Make the pages of a verified ping due, durably. `digest` is that of its content, empty if it has none."""
        now = self._clock.now()
        due = self._hubs.note_ping(one, digest, now)
        unknown = [url for url in due.pages if not self._is_due(url, due.at, now)]
        self._ring.pipeline.discovery.discover([Link(url, FEED, 0) for url in unknown])
        self._ring.loop.stir()
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(durable)
        self._pinged.set()
        await durable

    def _is_due(self, url: Url, at: float, now: float) -> bool:
        return self._schedule.note(Notice(url, "websub", changed_at=at, due_now=True, not_before=at), now)

    async def _settle(self) -> None:
        waiting = self._waiting
        self._waiting = []
        await self._ring.loop.commit()
        for durable in waiting:
            if not durable.done():
                durable.set_result(None)

    async def _ask(self) -> None:
        clock = self._clock
        hosts = self._ring.frontier.control
        prerequisites = self._hubs.due(clock.now())
        if not prerequisites:
            return
        await self._ring.loop.commit()  # A hub must learn no address that could be forgotten.
        for prerequisite in prerequisites:
            if not hosts.run_prerequisite(prerequisite, clock.now()):
                self._hubs.answered(prerequisite, Failure("host_closed", "the hub's host is closed"), b"", clock.now())
        self._ring.loop.stir()


class Notification:
    """One POST while it is received: call `update` with each piece, then `end`. Nothing of the body is kept."""

    def __init__(self, callbacks: Callbacks, one: Subscription, check: Check) -> None:
        self._callbacks = callbacks
        self._one = one
        self._check = check
        self._digest = xxh3_128()
        self._is_empty = True

    def update(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._check.update(piece)
        self._digest.update(piece)
        self._is_empty = self._is_empty and not piece

    async def end(self) -> bool:
        """Return whether its signature is valid; if so, its topic is now due, durably."""
        if not self._check.is_right():
            return False
        await self._callbacks.on_ping(self._one, b"" if self._is_empty else self._digest.digest())
        return True


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
            if not control.run_prerequisite(prerequisite, now) and prerequisite.owner == self._mentions.name:
                self._mentions.answered(prerequisite, Failure("host_closed", "its host is closed"), b"", now)
        if prerequisites:
            self._ring.loop.stir()

    def _follow(self) -> None:
        """Visit the sources of verified links that are in scope: at once where they are known, else as of a feed."""
        now = self._clock.now()
        recrawl = self._ring.features.recrawl
        for source, target in self._mentions.take_verified(now):
            self._logs.info("webmention_verified", url=source.text, target=target.text)
            notice = Notice(source, "webmention", changed_at=now, due_now=True, not_before=now)
            if recrawl is None or not recrawl.schedule.note(notice, now):
                self._ring.pipeline.discovery.discover([Link(source, FEED, 0, 0, target.text)])
                self._ring.loop.stir()
