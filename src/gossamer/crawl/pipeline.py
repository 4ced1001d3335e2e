"""Pipeline: one visit, from the frontier back to the frontier, on an event loop.

    discover → admit → route → dedupe → enqueue → select → permit → fetch → digest → process → record → commit
       ↑                                                                                  │
       └────────────────────────────── links found in the page ──────────────────────────┘

`lease` leads a visit from select to record, and `discover` takes its links back. Both carry out what others decide:
`crawl.ring` up to the result of a request, `crawl.outcomes` from there on. `crawl.commit` makes it durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import msgspec

from gossamer.cluster.exchange import Exchange
from gossamer.crawl.examine import Examined, page_of
from gossamer.crawl.logs import Logs
from gossamer.crawl.options import CrawlOptions
from gossamer.crawl.outcomes import Outcomes, is_fatal
from gossamer.crawl.pending_scope import SCOPE, PendingScope
from gossamer.crawl.permit import Errands
from gossamer.crawl.revisiting import Revisiting
from gossamer.crawl.ring import Retries, Ring, Step
from gossamer.crawl.stages import Stages
from gossamer.crawl.tally import Tally
from gossamer.frontier.host import Lease
from gossamer.model.links import ANNOUNCING, SITEMAP_FILE, Link
from gossamer.model.outcomes import WITH_CONTENT
from gossamer.model.revisits import Held, Notice
from gossamer.model.visits import Errand, Failure, Reply, Request
from gossamer.ports import NEW, SHORTER
from gossamer.revisit.hints import SitemapHints
from gossamer.url.url import Url
from gossamer.world.clock import Clock

HUB_BYTES_MAX = 65_536
"""What is read of a hub's answer: it says why it refuses."""
ADMITTED_MAX = 32_768
"""Links that the filters let in lately, which are remembered: about 5 MB."""
PATH_BITS = 16
"""A path is remembered as its depth, and its hops in so many bits."""
SITEMAP_GATHER_S = 10.0
"""A sitemap that was read before more hosts named it is read again after so long: hosts that name it by then share that
visit."""


class Pipeline:
    """Leads leases through the parts of a shard. Every lease is returned, whatever happens."""

    def __init__(
        self, stages: Stages, retries: Retries, options: CrawlOptions, clock: Clock, logs: Logs, tally: Tally
    ) -> None:
        self._stages = stages
        self._outcomes = Outcomes(stages, retries, logs, tally)
        self._options = options
        self._follows = options.mode != "offline"
        self._clock = clock
        self._logs = logs
        self._tally = tally
        self.judges_again = False
        """Filters are others than when some of what is queued was: they are asked again before each request."""
        self.is_late: Callable[[], bool] = bool
        """Says that the crawl ends and what was fetched is not to be processed any more."""
        self._admitted: dict[int, int] = {}
        """Fingerprints of links that the filters let in lately, and the depth and hops by which each came."""
        self.errands = Errands(
            stages.permit, stages.frontier.control, stages.namer.name, self._robots_failed, stages.exchange, stages.hubs
        )
        self._ring = Ring(
            stages.frontier,
            stages.permit,
            self.errands,
            stages.resolver.cached,
            self._outcomes.failure,
            self._rejected_now,
        )

    def reconfigure(self, retries: Retries, options: CrawlOptions) -> None:
        """Go by other options from now on."""
        self._options = options
        self._outcomes.reconfigure(retries)
        self._admitted.clear()

    @property
    def is_accused(self) -> bool:
        """A page is suspected of the last death: commit before another is processed."""
        return self._stages.quarantine.accused

    # ---- discover → admit → route → dedupe → enqueue

    def discover(self, links: Sequence[Link], page: Url | None = None) -> None:
        """Take links to the frontier: those that are ours and new are queued. About 3 µs a known link.

        `page` is the one that was just finished and has all these links, where there is one.
        """
        stages, now = self._stages, self._clock.now()
        if stages.pending_scope is None or not stages.pending_scope.is_open:
            admitted = self._let_in(links, page)
        else:
            admitted = self._admitted_or_kept(links, stages.pending_scope)
        if stages.exchange is not None:
            links, admitted = self._routed(links, admitted, page, stages.exchange)
        if page is not None and stages.frontier.watches_links:
            stages.frontier.linked(page, admitted)
        answers = stages.url_seen.offer(
            [link.url for link in admitted], [link.depth for link in admitted], [link.hops for link in admitted]
        )
        stages.trapping.found(links, admitted, answers)
        for link, answer in zip(admitted, answers, strict=True):
            if answer == NEW:
                stages.frontier.add(link, stages.prioritizer.level(link), now)
            if link.seed:
                self._open_seed(link, answer)
            if answer == SHORTER and self._follows:
                self._relax(link)

    def _let_in(self, links: Sequence[Link], page: Url | None) -> list[Link]:
        """Return the links that pass the filters.

        Navigation repeats on every page. What was let in before, by no longer a path, is not judged again: it was
        offered then, so whatever a filter says by now, nothing new comes of it. Seeds are judged each time: redirects
        in a circle end by their hops. So are links to another site than the page's: `own_site` rejects a link for the
        page that has it.
        """
        admitted, reason = self._admitted, self._stages.chain.reason
        if len(admitted) > ADMITTED_MAX:
            admitted.clear()
        found = []
        for link in links:
            fingerprint, path = link.url.fingerprint, link.depth << PATH_BITS | link.hops
            before = admitted.get(fingerprint)
            # Equal paths are by far the most frequent: the first comparison spares the others.
            is_known = before is not None and (before == path or _leads_no_farther(before, path))
            if not is_known or link.seed or (page is not None and link.url.site != page.site):
                if reason(link) is not None:
                    continue
                admitted[fingerprint] = path
            found.append(link)
        return found

    def _routed(
        self, links: Sequence[Link], admitted: list[Link], page: Url | None, exchange: Exchange
    ) -> tuple[Sequence[Link], list[Link]]:
        """Send what is another shard's to it; return what is ours of all links, and of those that were admitted."""
        if page is not None and self._stages.frontier.watches_links:
            exchange.linked(page, admitted)
        ours = exchange.own(admitted)
        if len(ours) < len(admitted) or len(admitted) < len(links):
            links = [link for link in links if exchange.has(link.url)]
        return links, ours

    def take_in(self, links: Sequence[Link], levels: Sequence[int]) -> None:
        """Queue a segment's URLs, as urgent as it has them, where they are ours and new. About 10 µs each."""
        stages, now = self._stages, self._clock.now()
        ours = [(link, level) for link, level in zip(links, levels, strict=True) if stages.chain.reason(link) is None]
        if stages.exchange is not None:  # Every shard is fed all of it, and takes its own.
            ours = [(link, level) for link, level in ours if stages.exchange.has(link.url)]
        answers = stages.url_seen.offer(
            [link.url for link, _ in ours], [link.depth for link, _ in ours], [link.hops for link, _ in ours]
        )
        for (link, level), answer in zip(ours, answers, strict=True):
            if answer == NEW:
                stages.frontier.add(link, level, now)

    def _admitted_or_kept(self, links: Sequence[Link], pending_scope: PendingScope) -> list[Link]:
        """Return the links that are ours, and keep those that may come into scope yet."""
        admitted = []
        for link in links:
            reason = self._stages.chain.reason(link)
            if reason is None:
                admitted.append(link)
            elif reason == SCOPE:
                pending_scope.keep(link)
        return admitted

    def widen_from_afar(self, seed: Url, target: Url, kind: int) -> None:
        """Bring into scope what the redirect of another shard's seed does, and take in what was kept for that."""
        self._outcomes.widen_here(seed, target, kind)
        if self._stages.pending_scope is not None and (regained := self._stages.pending_scope.regained()):
            self.discover(regained)

    def _open_seed(self, link: Link, answer: int) -> None:
        """Note that a seed will be fetched, or was as an ordinary link before: its redirect widens the scope."""
        stages, pending_scope = self._stages, self._stages.pending_scope
        if pending_scope is None and answer == NEW:
            return
        record = stages.history.get(link.url)
        if record is not None and record.outcome in WITH_CONTENT:
            self._tally.totals.seeds.any_fetched = True
        if pending_scope is None:
            return
        if record is None or not record.final:
            pending_scope.open(link.url, link.seed)
            return
        target = stages.namer.name(record.redirect_to) if record.redirect_to else None
        if target is not None and target.key != link.url.key:
            self._outcomes.widen(link.url, target, link.seed)
            self.discover([Link(target, "redirect", link.depth, link.hops + 1, record.url, link.seed)])
            self.discover(pending_scope.regained())

    def _relax(self, link: Link) -> None:
        """Pass a shorter way on to where a URL led when it was visited by a longer one, without asking again."""
        stages = self._stages
        record = stages.history.get(link.url)
        if record is None or not (record.outlinks or record.redirect_to):
            return  # When it is visited it will know its shortest way.
        depth, hops = stages.url_seen.way(link.url) or (link.depth, link.hops)
        if record.redirect_to:
            target = stages.namer.name(record.redirect_to)
            if target is not None and target.key != link.url.key:
                self.discover([Link(target, "redirect", depth, hops + 1, record.url, link.seed)])
            return
        named = stages.namer.names(record.outlinks)
        self.discover([Link(url, "anchor", depth + 1, 0, record.url) for url in named if url is not None])

    # ---- select → permit → fetch → digest → process → record

    def lease(self, lease: Lease) -> Coroutine[Any, Any, None] | None:
        """Deal with a lease; return what is left to be waited for, None where nothing is.

        Neither this nor what it returns raises anything but a cancellation: an error of ours ends in `internal_error`.
        """
        try:
            step = self._ring.leased(lease, self._clock.now())
        except Exception as error:  # noqa: BLE001 - one page's bad luck must not end the others' crawl
            self._caught(lease, error)
            return None
        if step is Step.DONE:
            return None
        return self._guarded(lease, step)

    async def _guarded(self, lease: Lease, step: Step) -> None:
        try:
            if step is Step.RESOLVE:
                await self._resolve(lease)
            else:
                await self._visit(lease)
        except Exception as error:  # noqa: BLE001 - as in `lease`
            self._caught(lease, error)

    async def _resolve(self, lease: Lease) -> None:
        found = await self._stages.resolver.resolve(lease.url.host)
        self._ring.resolved(lease, found, self._clock.now())

    async def _visit(self, lease: Lease) -> None:
        started = self._clock.now()
        if not self._ring.begun(lease, started):
            return
        held = self._held(lease)
        result = await self._fetch(lease, started, held)
        if self.is_late():
            return  # It stays queued, as what is cancelled does.
        if lease.errand is not None:
            self._answer(lease.errand, result)
            return
        links = self._outcomes.settle(lease, result, self._clock.now(), held)
        if links is None:
            assert isinstance(result, Reply), "a failure is no document"
            examined = await self._examine(lease, result)
            links = self._outcomes.document(lease, result, examined, self._clock.now())
        if self._follows:  # Else they are recorded; an offline round chooses among them.
            self.discover(links, lease.url)
            if self._stages.pending_scope is not None and (regained := self._stages.pending_scope.regained()):
                self.discover(regained)

    async def _examine(self, lease: Lease, reply: Reply) -> Examined | None:
        """Return what is in a document; None where a process died of it. Waits for what runs in other processes."""
        stages, url, visit = self._stages, lease.url, lease.visit
        link_type = visit.link_type if visit is not None else ""
        if stages.quarantine.suspects(url.fingerprint):
            examined = await stages.quarantine.examine(reply, url.fingerprint)
        else:
            is_left = None
            if not stages.copies.processes_all and link_type not in ANNOUNCING:  # A sitemap speaks for its host alone.
                is_left = partial(stages.copies.is_left, url, truncated=reply.truncated)
            examined = stages.examiner.examine(reply, url.fingerprint, link_type, is_left)
        if examined is None or stages.isolated is None or examined.left or not stages.isolated.wants(reply.media_type):
            return examined
        examined.errors += await stages.isolated.look(page_of(reply, examined.content), examined.findings)
        examined.ran += stages.isolated.names(reply.media_type)
        return examined

    def _rejected_now(self, lease: Lease) -> str:
        """Return why a queued URL would not be let in again; empty where it would. Judged by its shortest known way."""
        if not self.judges_again:
            return ""
        visit = self._outcomes.visit(lease)
        link = Link(lease.url, visit.link_type, visit.depth, visit.hops, visit.referrer, visit.seed)
        rejected = self._stages.chain.rejects_again(link)
        return rejected[1] if rejected is not None else ""

    def _held(self, lease: Lease) -> Held | None:
        """Return what the last visit left, where the request is to be conditional on it."""
        revisiting, visit = self._stages.revisiting, lease.visit
        return revisiting.held(visit) if revisiting is not None and visit is not None else None

    async def _fetch(self, lease: Lease, started: float, held: Held | None = None) -> Reply | Failure:
        """Send the one request that the gates let pass, and open them again when it has ended."""
        result: Reply | Failure = Failure("internal_error", "the request was not finished", host_level=True)
        try:
            async with asyncio.timeout(self._options.request_s_max):
                result = await self._stages.protocols.fetch(self._request(lease, held))
        except TimeoutError:
            result = Failure(
                "timeout", "no end of it", retry=True, host_level=True, started_at=started, ip=lease.address
            )  # fmt: skip
        except asyncio.CancelledError:
            self._ring.left(lease, started, self._clock.now())
            raise
        finally:
            if not lease.is_ended:
                contact = self._ring.fetched(lease, result, started, self._clock.now())
                self._tally.received(contact.wire_bytes)
        return result

    def _request(self, lease: Lease, held: Held | None) -> Request:
        url, visit = lease.url, lease.visit
        port = self._stages.namer.port(url)
        if lease.errand is not None and lease.errand.form:
            return Request(url.text, lease.address, port, body_bytes_max=HUB_BYTES_MAX, form=lease.errand.form)
        hints = self._stages.hints
        if hints is not None and visit is not None and visit.link_type == SITEMAP_FILE:
            most = hints.sitemap_bytes_max
            return Request(url.text, lease.address, port, Revisiting.conditions(held), body_bytes_max=most)
        wanted = self._stages.chain.media_types if visit is not None else ()
        again = visit is not None and visit.attempt > 1
        headers = Revisiting.conditions(held)
        return Request(url.text, lease.address, port, headers, media_types=wanted, fresh=again)

    def _answer(self, errand: Errand, result: Reply | Failure) -> None:
        """Hand on what an errand brought. One that our process died of says nothing: not even that all is
        allowed.
        """
        body = b""
        if errand.token:
            self._ring.answered(errand, body, result, self._clock.now())
            return
        reply = result if isinstance(result, Reply) else result.came
        if reply is not None:
            self._stages.archive.add_prerequisite(reply, errand.origin.text, "robots")
        if isinstance(result, Reply) and 200 <= result.status < 300:
            if self._stages.quarantine.suspects(errand.url.fingerprint):
                result = Failure("process_crashed", "a process died of it", ip=result.ip)
            else:
                body = self._stages.examiner.decode(result, errand.url.fingerprint)
        self._ring.answered(errand, body, result, self._clock.now())
        if isinstance(result, Reply) and self._stages.hints is not None:
            self._look_into_sitemaps(errand.origin, self._stages.hints)

    def _robots_failed(self, errand: Errand, why: str) -> None:
        self._logs.info("robots", url=errand.url.text, error=why)

    def _look_into_sitemaps(self, origin: Url, hints: SitemapHints) -> None:
        """Discover the sitemaps that an origin's robots.txt names."""
        stages, now = self._stages, self._clock.now()
        links, again = hints.named(origin, stages.permit.robots.sitemaps(origin))
        self.discover(links)
        for link in again:
            if stages.exchange is not None and not stages.exchange.has(link.url):
                continue  # Its owner looks into it in its own time.
            if stages.revisiting is not None:
                notice = Notice(link.url, "sitemap", due_now=True, not_before=now + SITEMAP_GATHER_S)
                stages.revisiting.revisits.told(notice, now)
                continue
            record = stages.history.get(link.url)
            if record is not None and record.final and stages.chain.explain(link) is None:
                stages.history.put(link.url, msgspec.structs.replace(record, final=False))
                stages.frontier.add(link, stages.prioritizer.level(link), now)

    def _caught(self, lease: Lease, error: Exception) -> None:
        if is_fatal(error):
            self._tally.fatal(error)  # Not this page's fault: it stays queued.
        else:
            self._fail(lease, error)

    def _fail(self, lease: Lease, error: Exception) -> None:
        """An error of ours: logged with its URL, and the crawl goes on."""
        url = lease.url.text
        self._logs.critical("internal_error", error, url=url)
        now = self._clock.now()
        self._tally.failed(error, now)
        if not lease.is_ended:
            self._stages.frontier.ended(lease, None, now)
        if lease.errand is not None:
            self._ring.answered(lease.errand, b"", Failure("internal_error", str(error)), now)
        elif not lease.is_finished:
            self._outcomes.internal_error(lease, error, now)


def _leads_no_farther(path: int, other: int) -> bool:
    """Say whether neither depth nor hops of a path are more than those of another."""
    mask = (1 << PATH_BITS) - 1
    return path >> PATH_BITS <= other >> PATH_BITS and path & mask <= other & mask
