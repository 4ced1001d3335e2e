"""Stages: the components that a visit passes in a shard, and the record of its attempt that they keep."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from gossamer import ports
from gossamer.engine.copies import CopyMarks
from gossamer.engine.counters import CrawlCounters
from gossamer.engine.examine import Examiner
from gossamer.engine.history import PageHistory, UrlMemory, attempt_row, page_record
from gossamer.engine.logs import Logs
from gossamer.engine.middleware import Middlewares
from gossamer.engine.optional import BrowserRendering, Ending, Hints, Isolation, ShardExchange
from gossamer.engine.pending_scope import PendingScope
from gossamer.engine.quarantine import Quarantine
from gossamer.engine.traps import Trapping
from gossamer.model.errors import is_fatal, is_mistake
from gossamer.model.links import NOT_SEED, Found, Link, RevisitPlan, Visit
from gossamer.model.pages import Archived, Original, PageRow, Visited, digest_text
from gossamer.model.standing import DownloadHistory
from gossamer.model.visits import Reply
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import VisitLease
from gossamer.stages.frontier.record import LEVELS
from gossamer.stages.robots.robots import SiteRobots
from gossamer.stages.scope.chain import Chain
from gossamer.stages.scope.roots import Roots
from gossamer.url.name import Namer
from gossamer.url.url import Url


class Stages(msgspec.Struct, frozen=True):
    """The components of a shard that a visit passes, in order."""

    namer: Namer
    chain: Chain
    roots: Roots
    url_seen: ports.UrlSeen
    prioritizer: ports.Prioritizer
    frontier: Frontier
    resolver: ports.Resolver
    excludes: Callable[[Url], bool]
    """Says whether a URL must not be requested at all."""
    robots: SiteRobots
    middlewares: Middlewares
    protocols: ports.ProtocolModule
    content_seen: ports.ContentSeen
    examiner: Examiner
    quarantine: Quarantine
    archive: ports.PrerequisiteArchive
    digest_algorithm: str
    """Algorithm of payload digests, by hashlib's name."""
    history: PageHistory
    copies: CopyMarks
    trapping: Trapping
    exchange: ShardExchange
    """Exchange with other shards, if there are some."""
    pending_scope: PendingScope
    """Links that may still come into scope."""
    hints: Hints
    """Hints of sitemaps and feeds."""
    isolated: Isolation
    """Modules in separate processes."""
    rendering: BrowserRendering
    ending: Ending
    """How the visits of pages end."""


def levels_by(prioritizer: ports.Prioritizer, urls: UrlMemory, frontier: Frontier) -> Callable[[Link], int]:
    """Return a function from a link to its level, within bounds. It raises RuntimeError if the prioritizer fails."""
    name = type(prioritizer).__name__
    choose = prioritizer.level
    if isinstance(prioritizer, ports.HistoryPrioritizer):
        choose = partial(_level_by_history, prioritizer, urls, frontier)

    def level_of(link: Link) -> int:
        try:
            level: object = choose(link)
            if not isinstance(level, int):
                raise TypeError(f"it returned a {type(level).__name__}, not a level from 0 to 7")
        except BaseException as error:
            if not is_mistake(error):
                raise
            raise RuntimeError(
                f"the prioritizer {name} failed on {link.url.text}: {type(error).__name__}: {error}"
            ) from error
        return max(0, min(level, LEVELS - 1))

    return level_of


def _level_by_history(prioritizer: ports.HistoryPrioritizer, urls: UrlMemory, frontier: Frontier, link: Link) -> int:
    last_visit = urls.history.last_visit
    referrer = urls.namer.name(link.referrer) if link.referrer else None
    past = DownloadHistory(last_visit(link.url), last_visit(referrer), frontier.standing(link.url))
    return prioritizer.level_by_history(link, past)


class BatchEnding:
    """Ends visits of a batch crawl: URLs are finished."""

    is_continuous = False

    def __init__(self, urls: UrlMemory, chain: Chain, frontier: Frontier, prioritizer: ports.Prioritizer) -> None:
        self._history = urls.history
        self._chain = chain
        self._frontier = frontier
        self._level_of = levels_by(prioritizer, urls, frontier)

    def prepare(self, lease: VisitLease, visited: Visited) -> Callable[[Archived, float], None]:
        def finish(_: Archived, now: float) -> None:
            self._frontier.finish(lease, visited.row.outcome, now)

        return finish

    def retry(self, lease: VisitLease, again: RevisitPlan, now: float) -> None:
        self._frontier.retry(lease, again, now)

    def visit_again(self, link: Link, now: float, not_before: float) -> None:
        record = self._history.get(link.url)
        if record.final and self._chain.explain(link) in {"", *self._chain.by_place}:
            self._history.put(link.url, msgspec.structs.replace(record, final=False))
            self._frontier.add(link, self._level_of(link), now)


class Recorder:
    """Ends every attempt, once: writes a row, an archive record and a page record, and counts it."""

    def __init__(self, stages: Stages, logs: Logs, counters: CrawlCounters) -> None:
        self._stages = stages
        self._logs = logs
        self._counters = counters

    def visit(self, lease: VisitLease) -> Visit:
        """Return the visit with the shortest path that is known now, since it may have waited long."""
        visit = lease.visit
        path = self._stages.url_seen.way(visit.url)
        if path is None or path == (visit.depth, visit.hops):
            return visit
        depth, hops = path
        return msgspec.structs.replace(visit, depth=min(depth, visit.depth), hops=min(hops, visit.hops))

    @staticmethod
    def reply_row(visit: Visit, reply: Reply, outcome: str) -> PageRow:
        """Return the row of an attempt that got a reply."""
        row = attempt_row(visit, outcome, reply.started_at)
        row.status = reply.status
        row.media_type = reply.media_type
        row.charset = reply.charset
        row.wire_bytes = reply.wire_bytes
        row.body_bytes = reply.body_bytes
        row.truncated = reply.truncated
        row.ip = reply.ip
        row.fetch_s = reply.fetch_s
        row.authenticated = reply.authenticated
        return row

    def digest(
        self, visit: Visit, reply: Reply, row: PageRow, links: list[Found] | None = None, keys: list[str] | None = None
    ) -> Visited:
        """Compute the digest, and find the original of an equal payload. Empty bodies are never copies."""
        algorithm = self._stages.digest_algorithm
        if reply.file is not None:
            digest = reply.file.digest
        else:
            digest = getattr(hashlib, algorithm)(reply.body, usedforsecurity=False).digest()
        row.digest = digest_text(algorithm, digest)
        original = None
        if reply.body_bytes and not reply.truncated:
            original = self._stages.content_seen.find(digest, visit.url)
        if original is not None and original.url != visit.url.text:
            row.duplicate_of = original.url
        return Visited(visit.url, row, reply, links or [], keys or [], original, digest)

    def conclude(
        self,
        lease: VisitLease,
        visited: Visited,
        now: float,
        again: RevisitPlan | None = None,
        outlinks: Sequence[str] = (),
    ) -> None:
        """Record the attempt; return the URL to the frontier, finished or for another visit. Atomic with the commit."""
        stages = self._stages
        row = visited.row
        visit = lease.visit
        is_final = again is None
        ending = stages.ending
        finish = ending.prepare(lease, visited) if again is None else lambda _, at: ending.retry(lease, again, at)
        archived = stages.archive.add(visited) or Archived()
        if self._logs.logs_visits:
            self._logs.debug("visited", url=row.url, outcome=row.outcome, status=row.status, fetch_s=row.fetch_s)
        reply = visited.reply
        may_be_original = visited.revisit_of is None and row.outcome != "challenged"
        if may_be_original and reply is not None and reply.body_bytes and not reply.truncated:
            original = Original(row.url, reply.started_at, archived.record_id)
            stages.content_seen.remember(visited.digest, visit.url, original)
        stages.history.put(visit.url, page_record(row, final=is_final, outlinks=outlinks))
        seed = not self._counters.totals.seeds.any_fetched and self.seed(visit) != NOT_SEED
        finish(archived, now)
        if is_final and stages.pending_scope.is_open:
            stages.pending_scope.conclude(visit.url)
        self._counters.count_visit(visited, seed=seed)
        for concluded in stages.middlewares.concluded:
            concluded(visited, now)

    def seed(self, visit: Visit) -> int:
        """Return the kind of seed that a visit's URL is, also if it was queued as an ordinary link, or `NOT_SEED`."""
        return visit.seed or self._stages.pending_scope.seed(visit.url)

    def internal_error(self, lease: VisitLease, error: Exception, now: float) -> None:
        """End only this page after an internal error."""
        visit = lease.visit
        row = attempt_row(visit, "internal_error", now)
        row.error = f"{type(error).__name__}: {error}"
        try:
            self.conclude(lease, Visited(visit.url, row), now)
        except Exception as again:  # noqa: BLE001 - see `Pipeline.lease`
            if is_fatal(again):
                self._counters.fatal(again)
            elif not lease.is_finished:  # Recording failed too, but the URL must end.
                self._stages.frontier.finish(lease, "internal_error", now)
