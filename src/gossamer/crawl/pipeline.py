"""Pipeline: THE RING. One visit, from the frontier back to the frontier; nothing else knows the whole.

    discover → admit → route → dedupe → enqueue → select → permit → fetch → digest → process → record → commit
       ↑                                                                                  │
       └────────────────────────────── links found in the page ──────────────────────────┘

`Pipeline.turn` is the way from select to record, `discover` the way back. The commit is `crawl.commit`.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

import msgspec

from gossamer.crawl.errands import Errands
from gossamer.crawl.examine import Examined, Examiner
from gossamer.crawl.history import History, page_record
from gossamer.crawl.logs import Logs
from gossamer.crawl.options import CrawlOptions
from gossamer.crawl.permit import Permit
from gossamer.crawl.quarantine import Quarantine
from gossamer.crawl.retries import Retries
from gossamer.crawl.rows import attempt_row, digest_text
from gossamer.crawl.tally import Tally
from gossamer.model.links import SEED_ARGUMENT, Found, Link
from gossamer.model.visits import (
    Again,
    Contact,
    Errand,
    Failure,
    Findings,
    Original,
    PageRow,
    Reply,
    Request,
    Visit,
    Visited,
)
from gossamer.ports import (
    Archive,
    Chain,
    ContentSeen,
    HostControl,
    L,
    LinkSink,
    LinkWatcher,
    Located,
    Namer,
    Prioritizer,
    ProtocolModule,
    Resolver,
    Roots,
    UrlSeen,
    VisitSource,
)
from gossamer.url.url import Url
from gossamer.world.clock import Clock

NEW, SHORTER = 1, 2
REDIRECTS = frozenset((301, 302, 303, 307, 308))
AGAIN = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Statuses that may be gone next time."""
BUSY = frozenset((429, 503))
DISK_ERRORS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG))
DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21, "ftps": 990, "gopher": 70}


@dataclass(frozen=True, slots=True)
class Rooms(Generic[L]):
    """What a shard is made of, in the order in which data meets it."""

    namer: Namer
    chain: Chain
    roots: Roots
    url_seen: UrlSeen
    prioritizer: Prioritizer
    sink: LinkSink
    source: VisitSource[L]
    hosts: HostControl
    resolver: Resolver
    permit: Permit
    protocols: ProtocolModule
    content_seen: ContentSeen
    examiner: Examiner
    quarantine: Quarantine
    redirect_target: Callable[[Reply], str | None]
    retry_after_s: Callable[[Reply, float], float | None]
    archive: Archive
    digest_algorithm: str
    """Of payloads, as hashlib names it."""
    history: History
    watcher: LinkWatcher | None = None
    """Sees every link of a fetched page that is ours, known or not."""


class Pipeline(Generic[L]):
    """Carries leases through the rooms. What was lent is given back, come what may."""

    def __init__(
        self, rooms: Rooms[L], retries: Retries, options: CrawlOptions, clock: Clock, logs: Logs, tally: Tally
    ) -> None:
        self._rooms = rooms
        self._retries = retries
        self._options = options
        self._clock = clock
        self._logs = logs
        self._tally = tally
        self._errands = Errands(rooms.permit, rooms.hosts, rooms.namer, logs)

    # ---- discover → admit → route → dedupe → enqueue

    def discover(self, links: Sequence[Link], page: Url | None = None) -> None:
        """Take links to the frontier: those that are ours and new are queued. About 3 µs a known link.

        `page` is the one that was just finished and has all these links, where there is one.
        """
        rooms, now = self._rooms, self._clock.now()
        admitted = [link for link in links if rooms.chain.reason(link) is None]
        if page is not None and rooms.watcher is not None:
            rooms.watcher.linked(page, admitted)
        if not admitted:
            return
        answers = rooms.url_seen.offer(
            [link.url for link in admitted], [link.depth for link in admitted], [link.hops for link in admitted]
        )
        for link, answer in zip(admitted, answers, strict=True):
            if answer == NEW:
                rooms.sink.add(link, rooms.prioritizer.level(link), now)
            elif answer == SHORTER:
                self._relax(link)

    def _relax(self, link: Link) -> None:
        """Pass a shorter way on to where a URL led when it was visited by a longer one, without asking again."""
        rooms = self._rooms
        record = rooms.history.get(link.url)
        if record is None or not (record.outlinks or record.redirect_to):
            return  # When it is visited it will know its shortest way.
        depth, hops = rooms.url_seen.way(link.url) or (link.depth, link.hops)
        if record.redirect_to:
            target = rooms.namer.name(record.redirect_to)
            if target is not None and target.key != link.url.key:
                self.discover([Link(target, "redirect", depth, hops + 1, record.url, link.seed)])
            return
        named = rooms.namer.names(record.outlinks)
        self.discover([Link(url, "anchor", depth + 1, 0, record.url) for url in named if url is not None])

    # ---- select → permit → fetch → digest → process → record

    async def turn(self, lease: L) -> None:
        """Carry one lease through. Never raises but for cancellation; an error of ours ends in `internal_error`."""
        try:
            await self._turn(lease)
        except Exception as error:  # noqa: BLE001 - one page's bad luck must not end the others' crawl
            self._caught(lease, error)

    def quick(self, lease: L) -> bool:
        """Do what needs no waiting: a host's address from memory, a verdict without request. False: take a turn.

        Raises as little as `turn`.
        """
        try:
            return self._quick(lease)
        except Exception as error:  # noqa: BLE001 - as in `turn`
            self._caught(lease, error)
            return True

    def _quick(self, lease: L) -> bool:
        rooms, now = self._rooms, self._clock.now()
        if not lease.address:
            located = rooms.resolver.cached(lease.url.host)
            if located is None:
                return False
            rooms.source.locate(lease, _one_of(located, lease), located.expires_at, now)
            return True
        return lease.errand is None and not self._permitted(lease, now)

    async def _turn(self, lease: L) -> None:
        if not lease.address:
            await self._locate(lease)
            return
        started = self._clock.now()
        if not self._rooms.source.begin(lease, started):
            self._rooms.source.give_back(lease, started)
            return
        result = await self._fetch(lease, started)
        if lease.errand is not None:
            self._answer(lease.errand, result)
        elif isinstance(result, Failure):
            self._settle_failure(lease, result)
        elif result.status in REDIRECTS and (target := self._target(result)) is not None:
            self._settle_redirect(lease, result, target)
        elif result.status in AGAIN and self._retries.left(_visit(lease)):
            self._settle_again(lease, result)
        else:
            await self._settle_reply(lease, result)

    async def _locate(self, lease: L) -> None:
        located = await self._rooms.resolver.resolve(lease.url.host)
        now = self._clock.now()
        if not isinstance(located, Failure):
            self._rooms.source.locate(lease, _one_of(located, lease), located.expires_at, now)
            return
        contact = Contact(0.0, "failed", error=located.error) if located.retry else None
        self._rooms.source.ended(lease, contact, now)
        if lease.errand is not None:
            self._errands.answer(lease.errand, b"", located, now)
        else:
            self._settle_failure(lease, located)

    def _permitted(self, lease: L, now: float) -> bool:
        """Ask what the site allows, now, at the last moment. What is not allowed is dealt with here."""
        rooms, url = self._rooms, lease.url
        verdict = rooms.permit.ask(url, now)
        if verdict.allowed:
            return True
        if verdict.errand is not None:
            rooms.hosts.park(url, now)
            rooms.source.give_back(lease, now)
            if not rooms.hosts.run_errand(verdict.errand, now):
                rooms.hosts.unpark(url, now)
        elif verdict.wait_until and verdict.alone:
            visit = _visit(lease)
            again = Again(url, verdict.wait_until, visit.attempt, visit.hops, verdict.reason)
            rooms.source.ended(lease, None, now)
            rooms.source.retry(lease, again, now)
        elif verdict.wait_until:
            rooms.hosts.rest(url, verdict.wait_until, verdict.reason, now)
            rooms.source.give_back(lease, now)
        else:
            rooms.source.ended(lease, None, now)
            self._settle_failure(lease, Failure(verdict.outcome, verdict.reason, started_at=now))
        return False

    async def _fetch(self, lease: L, started: float) -> Reply | Failure:
        """Send the one request that the gates let pass, and open them again when it has ended."""
        rooms, url = self._rooms, lease.url
        contact = Contact(0.0, "failed", error="the request was not finished")
        try:
            async with asyncio.timeout(self._options.request_s_max):
                result = await rooms.protocols.fetch(Request(url.text, lease.address, port_of(url)))
            contact = self._contact(result, started)
        except TimeoutError:
            result = Failure("timeout", "no end of it", retry=True, started_at=started, ip=lease.address)
        except asyncio.CancelledError:
            contact = Contact(0.0, "left", error="the crawl was stopped meanwhile")
            raise
        finally:
            now = self._clock.now()
            if not contact.fetch_s:
                contact = msgspec.structs.replace(contact, fetch_s=now - started)
            rooms.source.ended(lease, contact, now)
        return result

    def _contact(self, result: Reply | Failure, started: float) -> Contact:
        now = self._clock.now()
        # The module's own measure: how long we were busy with other pages is not the server's burden.
        fetch_s = result.fetch_s or now - started
        if isinstance(result, Failure):
            return Contact(fetch_s, "failed" if result.host_level else "answered", error=result.error)
        if result.status in BUSY:
            return Contact(
                fetch_s, "busy", self._rooms.retry_after_s(result, now), wire_bytes=result.wire_bytes
            )  # fmt: skip
        return Contact(fetch_s, "answered", wire_bytes=result.wire_bytes)

    def _answer(self, errand: Errand, result: Reply | Failure) -> None:
        """Hand on what a robots.txt request brought. One that our process died of says nothing: not even that all is
        allowed.
        """
        body = b""
        if isinstance(result, Reply) and 200 <= result.status < 300:
            if self._rooms.quarantine.suspects(errand.url.fingerprint):
                result = Failure("process_crashed", "a process died of it", ip=result.ip)
            else:
                body = self._rooms.examiner.decode(result, errand.url.fingerprint)
        self._errands.answer(errand, body, result, self._clock.now())

    # ---- the ends of a visit

    def _visit(self, lease: L) -> Visit:
        """Return the visit with the shortest way that is known by now: it may have waited long."""
        visit = _visit(lease)
        way = self._rooms.url_seen.way(visit.url)
        if way is None or way == (visit.depth, visit.hops):
            return visit
        return msgspec.structs.replace(visit, depth=min(way[0], visit.depth), hops=min(way[1], visit.hops))

    def _settle_failure(self, lease: L, failure: Failure) -> None:
        """No reply: another attempt, or the end."""
        visit = self._visit(lease)
        row = attempt_row(visit, failure.outcome, failure.started_at or self._clock.now())
        row.error, row.ip, row.fetch_s = failure.error, failure.ip, failure.fetch_s
        self._logs.info(failure.outcome, url=visit.url.text, error=failure.error, attempt=visit.attempt)
        again = self._retries.after(visit, failure.error, self._clock.now()) if failure.retry else None
        self._conclude(lease, Visited(visit.url, row), again)

    def _settle_again(self, lease: L, reply: Reply) -> None:
        """A server in trouble: kept as it is, asked again later."""
        visit = self._visit(lease)
        row = self._reply_row(visit, reply, "http_error")
        row.error = f"HTTP {reply.status}"
        self._logs.info("http_error", url=visit.url.text, error=row.error, attempt=visit.attempt)
        self._conclude(
            lease, self._digested(visit, reply, row), self._retries.after(visit, row.error, self._clock.now())
        )

    def _settle_redirect(self, lease: L, reply: Reply, target: Url) -> None:
        """A redirect is a link: its target goes through the whole ring, unless it is this very entry's next hop."""
        visit, rooms, now = self._visit(lease), self._rooms, self._clock.now()
        row = self._reply_row(visit, reply, "redirected")
        row.redirect_to = target.text
        visited = self._digested(visit, reply, row, [Found(target.text, "redirect")], [target.key])
        if target.key == visit.url.key:
            hops = _visit(lease).hops  # Of this very entry: a shorter way to it must not make a loop endless.
            within = hops < rooms.chain.hops_max
            self._conclude(lease, visited, Again(target, now, 1, hops + 1) if within else None)
            return
        if visit.seed:
            note = rooms.roots.redirected(visit.url, target, from_argument=visit.seed == SEED_ARGUMENT)
            if note:
                self._tally.note(note)
        self._conclude(lease, visited)
        link = Link(target, "redirect", visit.depth, visit.hops + 1, visit.url.text, visit.seed)
        self.discover([link], visit.url)

    async def _settle_reply(self, lease: L, reply: Reply) -> None:
        """A document, or the last word about one: digest, process, record, and its links back to discover."""
        visit, url = self._visit(lease), lease.url
        fetched = 200 <= reply.status < 300
        row = self._reply_row(visit, reply, "fetched" if fetched else "http_error")
        examined = await self._examine(reply, url, row) if fetched else None
        visit = self._visit(lease)  # A shorter way may have appeared meanwhile.
        visited = self._digested(visit, reply, row)
        links: list[Link] = []
        if examined is not None:
            links = self._linked(visit, examined.findings, visited)
            visited.content, visited.findings = examined.content, examined.findings
        elif not fetched:
            row.error = f"HTTP {reply.status}"
            self._logs.info("http_error", url=url.text, error=row.error, attempt=visit.attempt)
        self._conclude(lease, visited, outlinks=self._kept_outlinks(links))
        if row.duplicate_of and not self._options.follow_copies:
            return
        self.discover(links, url)

    async def _examine(self, reply: Reply, url: Url, row: PageRow) -> Examined | None:
        rooms = self._rooms
        if not rooms.quarantine.suspects(url.fingerprint):
            examined: Examined | None = rooms.examiner.examine(reply, url.fingerprint)
        else:
            examined = await rooms.quarantine.examine(reply, url.fingerprint)
        if examined is None:
            row.outcome, row.error = "process_crashed", "a process died of it twice; archived unparsed"
            self._logs.info(row.outcome, url=url.text, error=row.error)
            return None
        content, findings = examined.content, examined.findings
        row.body_bytes = len(content.body)
        row.truncated = row.truncated or content.truncated
        row.error = content.error
        row.title = findings.title
        row.charset = findings.charset or row.charset
        for error in examined.errors:
            self._logs.critical("module_failed", url=url.text, error_text=error)
        return examined

    def _linked(self, visit: Visit, findings: Findings, visited: Visited) -> list[Link]:
        """Name a page's links, hand them to the links table, and return those that may be followed."""
        named = self._rooms.namer.names([found.url for found in findings.links])
        links = []
        for found, url in zip(findings.links, named, strict=True):
            if url is not None:
                visited.links.append(found)
                visited.link_keys.append(url.key)
                if not (found.nofollow or findings.nofollow):
                    links.append(Link(url, found.link_type, visit.depth + 1, 0, visit.url.text))
        return links

    def _kept_outlinks(self, links: list[Link]) -> list[str]:
        chain = self._rooms.chain
        if not chain.depth_limited:
            return []
        return [link.url.text for link in links if chain.reason_but_depth(link) is None]

    def _target(self, reply: Reply) -> Url | None:
        text = self._rooms.redirect_target(reply)
        return self._rooms.namer.name(text) if text else None

    def _reply_row(self, visit: Visit, reply: Reply, outcome: str) -> PageRow:
        row = attempt_row(visit, outcome, reply.started_at)
        row.status, row.media_type, row.charset = reply.status, reply.media_type, reply.charset
        row.wire_bytes, row.body_bytes = reply.wire_bytes, len(reply.body)
        row.truncated, row.ip, row.fetch_s = reply.truncated, reply.ip, reply.fetch_s
        return row

    def _digested(
        self, visit: Visit, reply: Reply, row: PageRow, links: list[Found] | None = None, keys: list[str] | None = None
    ) -> Visited:
        """The digest stage: whose payload is this? Empty bodies are nobody's copy."""
        digest = hashlib.new(self._rooms.digest_algorithm, reply.body, usedforsecurity=False).digest()
        row.digest = digest_text(self._rooms.digest_algorithm, digest)
        original = None
        if reply.body and not reply.truncated:
            original = self._rooms.content_seen.find(digest, visit.url)
        if original is not None and original.url != visit.url.text:
            row.duplicate_of = original.url
        return Visited(visit.url, row, reply, links or [], keys or [], original, digest)

    def _conclude(self, lease: L, visited: Visited, again: Again | None = None, outlinks: Sequence[str] = ()) -> None:
        """Record the attempt and give the URL back: for good, or for another time. All or nothing is the commit's."""
        rooms, row, visit = self._rooms, visited.row, _visit(lease)
        archived = rooms.archive.add(visited)
        reply = visited.reply
        if reply is not None and reply.body and not reply.truncated and visited.revisit_of is None:
            original = Original(row.url, reply.started_at, archived.record_id)
            rooms.content_seen.remember(visited.digest, visit.url, original)
        rooms.history.put(visit.url, page_record(row, final=again is None, outlinks=outlinks))
        if again is None:
            rooms.source.finish(lease, row.outcome, self._clock.now())
        else:
            rooms.source.retry(lease, again, self._clock.now())
        self._tally.ended(visited)

    def _caught(self, lease: L, error: Exception) -> None:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            self._tally.fatal(error)  # Not this page's fault: it stays queued.
        else:
            self._fail(lease, error)

    def _fail(self, lease: L, error: Exception) -> None:
        """An error of ours: logged with its URL, and the crawl goes on."""
        url = lease.url.text
        self._logs.critical("internal_error", error, url=url)
        now = self._clock.now()
        self._tally.failed(error, now)
        if not lease.is_ended:
            self._rooms.source.ended(lease, None, now)
        if lease.errand is not None:
            self._errands.answer(lease.errand, b"", Failure("internal_error", str(error)), now)
        elif not lease.is_finished:
            self._end_as_failed(lease, error, now)

    def _end_as_failed(self, lease: L, error: Exception, now: float) -> None:
        visit = _visit(lease)
        row = attempt_row(visit, "internal_error", now)
        row.error = f"{type(error).__name__}: {error}"
        try:
            self._conclude(lease, Visited(visit.url, row))
        except Exception as again:  # noqa: BLE001 - see `turn`
            if isinstance(again, OSError) and again.errno in DISK_ERRORS:
                self._tally.fatal(again)
            elif not lease.is_finished:  # Recording is what fails; the URL must end nevertheless.
                self._rooms.source.finish(lease, "internal_error", now)


def port_of(url: Url) -> int:
    """Return the port that a URL names, or its scheme's."""
    origin = url.origin
    scheme, _, authority = origin.partition("://")
    _, colon, port = authority.rpartition(":")
    if colon and port.isdigit() and not authority.endswith("]"):
        return int(port)
    return DEFAULT_PORTS.get(scheme, 0)


def _one_of(located: Located, lease: L) -> str:
    """Return the address to try: after a failure of the host the next one has its turn."""
    return located.addresses[lease.host_failures % len(located.addresses)]


def _visit(lease: L) -> Visit:
    visit = lease.visit
    assert visit is not None, "an errand where a visit was expected"
    return visit
