"""Pipeline: one visit, from the frontier back to the frontier, on an event loop: the ring of ARCHITECTURE.md.

`lease` leads a visit from select to record, and `engine.discover` queues its links. The pipeline carries out decisions
of `engine.ring`, up to a request's result, and of `engine.outcomes`, after it. `engine.commit` makes results durable.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from math import inf
from typing import Any

import msgspec

from gossamer.engine.counters import CrawlCounters
from gossamer.engine.discover import Discovery
from gossamer.engine.documents import SMALL_RULES_BYTES, DocumentReader, may_be_slow
from gossamer.engine.logs import Logs
from gossamer.engine.middleware import Prerequisites
from gossamer.engine.options import CrawlOptions
from gossamer.engine.outcomes import Outcomes, is_document
from gossamer.engine.ring import Retries, Ring, RingStep
from gossamer.engine.stages import Stages
from gossamer.model.errors import ComponentError, is_fatal
from gossamer.model.links import OUTLINK, SITEMAP_FILE, Link, Prerequisite
from gossamer.model.visits import EARLY_SHARE, Failure, Reply, Request
from gossamer.stages.frontier.host import ADDRESS, Lease, VisitLease
from gossamer.url.url import Url
from gossamer.world.clock import Clock

UNANSWERED_S = 30.0
"""A request that is ended early, because no page waits for its resource, counts as unanswered after this time."""
OUTLINK_BYTES_MAX = 65_536
"""Bytes that are read of a page outside the scope, to recognize bot protection, which the status does not show."""


class Pipeline:
    """Leads leases through the components of a shard. Every lease is returned, also after an error."""

    def __init__(
        self, stages: Stages, retries: Retries, options: CrawlOptions, clock: Clock, logs: Logs, counters: CrawlCounters
    ) -> None:
        self.stages = stages
        self._outcomes = Outcomes(stages, retries, logs, counters)
        self._retries = retries
        self._options = options
        self._clock = clock
        self._logs = logs
        self._counters = counters
        self.concurrency = options.concurrency_max
        """Requests that may go out at once; fewer than configured while memory or open files are short."""
        self.judges_again = False
        """Whether filters have changed since some URLs were queued; then they are applied again before each request."""
        self.commit: Callable[[], Awaitable[None]] = _no_commit
        """Closes the open epoch, and returns once it is durable."""
        self.discovery = Discovery(
            stages, self._outcomes.widen, self._outcomes.widen_here, clock, counters, follows=options.mode != "offline"
        )
        self.documents = DocumentReader(stages, self._outcomes, self.discovery, clock, logs, self._handle_error)
        self.lookups = 0
        """Visits that wait for the address of their host."""
        self._unlocated: deque[Url] = deque()
        """A URL of each host that waits until fewer addresses are looked up."""
        self._under_way: set[int] = set()
        """Fingerprints of leased URLs, if a URL may be queued more than once."""
        self._middlewares = stages.middlewares
        self.prerequisites = Prerequisites(
            stages.middlewares, stages.frontier.control, stages.excludes, self._look_into_sitemaps, stages.exchange
        )
        self._ring = Ring(
            stages.frontier,
            stages.middlewares,
            self.prerequisites,
            stages.resolver.cached,
            self._outcomes.failure,
            self._why_rejected_now,
        )

    def reconfigure(self, retries: Retries, options: CrawlOptions) -> None:
        """Apply new options."""
        self._retries = retries
        self._options = options
        self._outcomes.reconfigure(retries)
        self.discovery.judge_again()

    # ---- select → permit → fetch → digest → process → record

    def lease(self, lease: Lease, now: float) -> Coroutine[Any, Any, None] | None:
        """Handle a lease that was selected at `now`; return a coroutine if it needs waiting, else None.

        Neither this method nor the coroutine raises, except for a cancellation: an internal error ends as
        `internal_error`.
        """
        try:
            if self.discovery.counts_links and lease.is_visit and self._is_repeated(lease):
                self.stages.frontier.drop(lease, now)
                return None
            step = self._ring.decide(lease, now)
        except Exception as error:  # noqa: BLE001 - one page's bad luck must not end the others' crawl
            self._handle_error(lease, error)
            return None
        if step is RingStep.DONE:
            return None
        if step is RingStep.RESOLVE and lease.is_visit and self.lookups >= self.concurrency:
            self._ring.park(lease, ADDRESS, now)
            self._unlocated.append(lease.url)
            return None
        if self.discovery.counts_links:
            self._under_way.add(lease.url.fingerprint)
        if step is RingStep.FETCH:
            return self._request(lease)
        self.lookups += 1
        return self._resolve(lease)

    def locate_more(self, now: float) -> None:
        """Lease hosts that wait for their address, as many as may be looked up now."""
        for _ in range(min(len(self._unlocated), self.concurrency - self.lookups)):
            self.stages.frontier.control.locate(self._unlocated.popleft(), now)

    def _is_repeated(self, lease: VisitLease) -> bool:
        """Return whether a URL that was queued again with a more urgent level is finished or in flight already."""
        if lease.visit.revisit:
            return False
        return lease.url.fingerprint in self._under_way or self.stages.history.get(lease.url).final

    async def _resolve(self, lease: Lease) -> None:
        try:
            found = await self.stages.resolver.resolve(lease.url.host)
            if isinstance(found, Failure) and found.retry:
                found = msgspec.structs.replace(found, is_alone=self._is_alone())
            self._ring.on_resolved(lease, found, self._clock.now())
        except Exception as error:  # noqa: BLE001 - as in `lease`
            self._handle_error(lease, error)
        finally:
            self.lookups -= 1
            self._under_way.discard(lease.url.fingerprint)

    async def _request(self, lease: Lease) -> None:
        middlewares = self._middlewares
        try:
            try:
                if middlewares.before_begin and lease.is_visit:
                    for prepare in middlewares.before_begin:
                        await prepare(lease.url, self.commit)
                started = self._clock.now()
                if not self._ring.begin(lease, started):
                    middlewares.note_unsent(lease.url)
                    return
                result = await self._fetch(lease, started)
                if isinstance(result, Failure) and (result.by_proxy or result.at_limit):
                    return  # It stays queued, and costs no attempt.
                if middlewares.received:
                    result = self._receive(lease.url, result)
                if lease.is_visit:
                    await self._settle(lease, result)
                else:
                    await self._settle_prerequisite(lease.prerequisite, result)
            finally:
                if middlewares.releases and lease.is_visit:
                    self.prerequisites.end_visit(lease.url, self._clock.now())
        except Exception as error:  # noqa: BLE001 - as in `lease`
            self._handle_error(lease, error)
        finally:
            self._under_way.discard(lease.url.fingerprint)

    async def _settle(self, lease: VisitLease, result: Reply | Failure) -> None:
        documents = self.documents
        is_slow = isinstance(result, Reply) and may_be_slow(result)
        if is_slow:
            await documents.turn(lease.url)
        elif isinstance(result, Failure) or not is_document(result):
            await documents.conclude(lease, partial(self._outcomes.settle, lease, result))
            return
        if documents.is_late():
            return  # It stays queued, like cancelled visits.
        now = self._clock.now()
        settled = self._outcomes.settle(lease, result, now)
        if isinstance(settled, Reply):
            await documents.read(lease, settled, is_slow=is_slow)
        else:
            with documents.loop_share.measured():
                self.discovery.follow(settled, lease.url, now)

    async def _settle_prerequisite(self, prerequisite: Prerequisite, result: Reply | Failure) -> None:
        if isinstance(result, Reply) and may_be_slow(result, SMALL_RULES_BYTES):
            await self.documents.loop_share.turn()  # Its host waits for it anyway.
        if not self.documents.is_late():
            with self.documents.loop_share.measured():
                self._answer(prerequisite, result)

    def _receive(self, url: Url, result: Reply | Failure) -> Reply | Failure:
        """Pass a reply through the middleware, which may replace it."""
        reply = result.came if isinstance(result, Failure) else result
        if reply is None:
            return result
        for receive in self._middlewares.received:
            reply = receive(url, reply, self._clock.now())
        return msgspec.structs.replace(result, came=reply) if isinstance(result, Failure) else reply

    def _why_rejected_now(self, lease: VisitLease) -> str:
        """Return why the filters reject a queued URL now, by its shortest known path; empty if they do not."""
        if not self.judges_again:
            return ""
        visit = self._outcomes.recorder.visit(lease)
        link = Link(lease.url, visit.link_type, visit.depth, visit.hops, visit.referrer, visit.seed)
        _, reason = self.stages.chain.rejects_again(link)
        return reason

    async def _fetch(self, lease: Lease, started: float) -> Reply | Failure:
        """Send the one request that the gates permit, and release the gates when it has ended."""
        result: Reply | Failure = Failure("internal_error", "the request was not finished", host_level=True)
        limit_s = self._options.request_s_max
        try:
            async with asyncio.timeout(limit_s) as limit:
                ends_at = limit.when()
                if not lease.is_visit:
                    self._middlewares.of(lease.prerequisite.owner).bound(lease.prerequisite, limit)
                request = self._make_request(lease, started)
                for route in self._middlewares.routes:
                    request = route(lease.url, request, started)
                result = await self._send(lease, request)
        except TimeoutError:
            error = f"no end of it within {limit_s:g} s"
            result = Failure("timeout", error, retry=True, host_level=True, started_at=started, ip=lease.address)
            if limit.when() != ends_at and self._clock.now() - started < UNANSWERED_S:
                self._ring.abandon(lease, started, self._clock.now())
        except asyncio.CancelledError:
            self._ring.abandon(lease, started, self._clock.now())
            raise
        finally:
            if not lease.is_ended:
                self._release_gates(lease, result, started, self._clock.now())
        return result

    def _is_alone(self) -> bool:
        """Return whether the crawl has one host, which has not answered yet."""
        frontier = self.stages.frontier
        return not frontier.counts.answers and frontier.hosts_left == 1 and self.stages.exchange.is_alone

    def _send(self, lease: Lease, request: Request) -> Awaitable[Reply | Failure]:
        """Send a request. Until a host answers, one of several addresses, or that of the only host, is left early."""
        if self.stages.frontier.counts.answers or not (lease.host.has_others or self._is_alone()):
            return self.stages.protocols.fetch(request)
        return self._send_first(lease, request)

    async def _send_first(self, lease: Lease, request: Request) -> Reply | Failure:
        """Send a request that is left early while no host has answered."""
        is_alone = self._is_alone()
        share = self._first_byte_share(lease) if is_alone else inf
        request = msgspec.structs.replace(request, has_others=True, first_byte_share=share)
        result = await self.stages.protocols.fetch(request)
        if isinstance(result, Reply):
            return result
        return msgspec.structs.replace(result, has_others=lease.host.has_others or result.has_others, is_alone=is_alone)

    def _first_byte_share(self, lease: Lease) -> float:
        """Return how long the only host of a crawl may be silent. It may be slow, so the last attempt waits longest."""
        ends_url = lease.is_visit and not self._retries.has_attempts_left(lease.visit)
        return 1.0 if ends_url or self.stages.frontier.gives_up_next(lease) else EARLY_SHARE

    def _release_gates(self, lease: Lease, result: Reply | Failure, started: float, now: float) -> None:
        if not (isinstance(result, Failure) and result.by_proxy):
            contact = self._ring.on_fetched(lease, result, started, now)
            self._counters.count_bytes(contact.wire_bytes, now)
            return
        self._ring.unsent(lease, result, now)
        if not any(note(lease.url, result.error, now) for note in self._middlewares.proxy_failures):
            self._counters.proxy_failed(result.error, now, others_pass=result.others_pass)
        self._middlewares.note_unsent(lease.url)

    def _make_request(self, lease: Lease, now: float) -> Request:
        url = lease.url
        visit = None
        port = self.stages.namer.port(url)
        if lease.is_visit:
            visit = lease.visit
            # The last attempt is not ended early, so that a slow host loses no page. A robots.txt is requested again.
            yields = self.concurrency if self._retries.has_attempts_left(visit) else 0
            wanted = self.stages.chain.media_types
            most = OUTLINK_BYTES_MAX if visit.link_type == OUTLINK else 0
            again = visit.attempt > 1
            request = Request(url.text, lease.address, port, (), most, wanted, fresh=again, concurrency=yields)
        elif lease.prerequisite.is_about_origin:
            request = Request(url.text, lease.address, port, concurrency=self.concurrency)
        else:
            owner = self._middlewares.of(lease.prerequisite.owner)
            return owner.fetch(lease.prerequisite, Request(url.text, lease.address, port), now)
        for change in self._middlewares.requests:
            request = change(url, visit, request, now)
        assert (request.ip, request.port) == (lease.address, port), "a middleware changed the address of a request"
        return request

    def _answer(self, prerequisite: Prerequisite, result: Reply | Failure) -> None:
        """Pass on the result of a prerequisite fetch. A document that crashed this process permits nothing."""
        owner = self._middlewares.of(prerequisite.owner)
        body = b""
        reply = result if isinstance(result, Reply) else result.came
        if reply is not None and owner.archived_as:
            self.stages.archive.add_prerequisite(reply, prerequisite.origin.text, owner.archived_as)
        if owner.reads_body and isinstance(result, Reply) and 200 <= result.status < 300:
            if self.stages.quarantine.suspects(prerequisite.url.fingerprint):
                result = Failure("process_crashed", "a process died of it", ip=result.ip)
            else:
                text = msgspec.structs.replace(result, media_type="text/plain")  # Its Content-Type does not matter.
                content = self.stages.examiner.content(text, prerequisite.url.fingerprint)
                body = content.body
                if content.error and body != result.body:  # The compressed body ends early.
                    result = msgspec.structs.replace(result, truncated=result.truncated or "unspecified")
        self._ring.answer(prerequisite, body, result, self._clock.now())

    def _look_into_sitemaps(self, origin: Url) -> None:
        stages = self.stages
        now = self._clock.now()
        if stages.chain.is_elsewhere(origin) or not stages.roots.touches(origin):
            return
        links, again = stages.hints.named(origin, stages.robots.sitemaps(origin))
        self.discovery.discover(links)
        self._outcomes.read_again(again, now)

    def discover_remote_links(self, links: Sequence[Link]) -> None:
        """Discover the links that other shards sent."""
        again = [link for link in links if link.link_type == SITEMAP_FILE and self.stages.hints.vouched(link)]
        self.discovery.discover(links)
        self._outcomes.read_again(again, self._clock.now())

    def take_back(self, *, idle: bool) -> int:
        """Queue held links whose answers have come; return their number. See `Discovery.take_back`."""
        links = self.discovery.take_back(idle=idle)
        try:
            self.discovery.requeue(links)
        except Exception as error:
            if is_fatal(error):
                raise
            for link in links:
                try:
                    self.discovery.requeue([link])
                except Exception as error:  # noqa: BLE001 - an internal error with one link must not stop the others
                    self._logs.critical("internal_error", error, url=link.url.text)
                    self._counters.count_error(error, self._clock.now())
        return len(links)

    def _handle_error(self, lease: Lease, error: Exception) -> None:
        if is_fatal(error):
            self._counters.fatal(error)  # Not this page's fault, so it stays queued.
        else:
            self._fail(lease, error)

    def _fail(self, lease: Lease, error: Exception) -> None:
        """Log an internal error with its URL; the crawl goes on."""
        self._logs.critical("internal_error", error, url=lease.url.text)
        now = self._clock.now()
        self._counters.count_error(error, now)
        if not lease.is_ended:
            self.stages.frontier.ended(lease, None, now)
        if not lease.is_visit:
            if isinstance(error, ComponentError) and not self._counters.totals.attempts:
                self._counters.fatal(error)  # The first hosts would wait for robots.txt, each time longer.
            self._ring.answer(lease.prerequisite, b"", Failure("internal_error", str(error)), now)
        elif not lease.is_finished:
            self._outcomes.recorder.internal_error(lease, error, now)
        else:  # Its row is written.
            self._counters.totals.unfollowed += 1


async def _no_commit() -> None:
    raise AssertionError("a request that must not be repeated needs a commit")
