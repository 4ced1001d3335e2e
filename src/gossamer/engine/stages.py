"""Stages: the components that a visit passes in a shard, and the record of its attempt that they keep."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from gossamer.cluster.exchange import Exchange
from gossamer.engine.counters import CrawlCounters
from gossamer.engine.examine import Examiner
from gossamer.engine.history import PageHistory, attempt_row, page_record
from gossamer.engine.logs import Logs
from gossamer.engine.middleware import Middlewares
from gossamer.engine.pending_scope import PendingScope
from gossamer.features.copies import CopyMarks
from gossamer.features.isolation import IsolatedModules
from gossamer.features.permit import Exclusions
from gossamer.features.quarantine import Quarantine
from gossamer.features.revisit.hints import SitemapHints
from gossamer.features.revisit.revisiting import Revisiting
from gossamer.features.traps import Trapping
from gossamer.model.errors import is_fatal, is_mistake
from gossamer.model.links import NOT_SEED, Found, Link, Notice, RevisitPlan, Visit
from gossamer.model.pages import Original, PageRow, Visited, digest_text
from gossamer.model.visits import Reply
from gossamer.ports import ContentSeen, PrerequisiteArchive, Prioritizer, ProtocolModule, Resolver, UrlSeen
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease
from gossamer.stages.robots.robots import SiteRobots
from gossamer.stages.scope.chain import Chain
from gossamer.stages.scope.roots import Roots
from gossamer.url.name import Namer

if TYPE_CHECKING:
    from gossamer.features.render.rendering import PageRendering


class Stages(msgspec.Struct, frozen=True):
    """The components of a shard that a visit passes, in order."""

    namer: Namer
    chain: Chain
    roots: Roots
    url_seen: UrlSeen
    prioritizer: Prioritizer
    frontier: Frontier
    resolver: Resolver
    exclusions: Exclusions
    robots: SiteRobots
    middlewares: Middlewares
    protocols: ProtocolModule
    content_seen: ContentSeen
    examiner: Examiner
    quarantine: Quarantine
    archive: PrerequisiteArchive
    digest_algorithm: str
    """Algorithm of payload digests, by hashlib's name."""
    history: PageHistory
    copies: CopyMarks
    trapping: Trapping
    pending_scope: PendingScope
    """Links that may still come into scope."""
    isolated: IsolatedModules | None = None
    """Modules in separate processes; None if there are none."""
    revisiting: Revisiting | None = None
    """Revisits pages; None except in a continuous crawl."""
    hints: SitemapHints | None = None
    """Hints of sitemaps and feeds; None if these are not read."""
    exchange: Exchange | None = None
    """Exchange with other shards; None if there is only one shard."""
    rendering: PageRendering | None = None
    """Renders pages; None if no page is rendered."""

    def visit_again(self, link: Link, now: float, not_before: float = 0.0) -> None:
        """Queue a URL again whose visit has ended."""
        if self.revisiting is not None:
            self.revisiting.revisits.note(Notice(link.url, "sitemap", due_now=True, not_before=not_before), now)
            return
        record = self.history.get(link.url)
        if record is not None and record.final and self.chain.explain(link) in {None, *self.chain.by_place}:
            self.history.put(link.url, msgspec.structs.replace(record, final=False))
            self.frontier.add(link, self.level(link), now)

    def level(self, link: Link) -> int:
        """Return the level of a link. Raises RuntimeError: the prioritizer failed."""
        try:
            level = self.prioritizer.level(link)
            if not isinstance(level, int):
                raise TypeError(f"it returned a {type(level).__name__}, not a level from 0 to 7")
        except BaseException as error:
            if not is_mistake(error):
                raise
            name = type(self.prioritizer).__name__
            raise RuntimeError(
                f"the prioritizer {name} failed on {link.url.text}: {type(error).__name__}: {error}"
            ) from error
        return level


class Recorder:
    """Ends every attempt, once: writes a row, an archive record and a page record, and counts it."""

    def __init__(self, stages: Stages, logs: Logs, counters: CrawlCounters) -> None:
        self._stages = stages
        self._logs = logs
        self._counters = counters

    def visit(self, lease: Lease) -> Visit:
        """Return the visit with the shortest path that is known now, since it may have waited long."""
        visit = lease.visit
        assert visit is not None, "a prerequisite fetch where a visit was expected"
        way = self._stages.url_seen.way(visit.url)
        if way is None or way == (visit.depth, visit.hops):
            return visit
        return msgspec.structs.replace(visit, depth=min(way[0], visit.depth), hops=min(way[1], visit.hops))

    @staticmethod
    def reply_row(visit: Visit, reply: Reply, outcome: str) -> PageRow:
        """Return the row of an attempt that got a reply."""
        row = attempt_row(visit, outcome, reply.started_at)
        row.status, row.media_type, row.charset = reply.status, reply.media_type, reply.charset
        row.wire_bytes, row.body_bytes = reply.wire_bytes, reply.body_bytes
        row.truncated = reply.truncated
        row.ip = reply.ip
        row.fetch_s = reply.fetch_s
        row.authenticated = reply.authenticated
        return row

    def digested(
        self, visit: Visit, reply: Reply, row: PageRow, links: list[Found] | None = None, keys: list[str] | None = None
    ) -> Visited:
        """Compute the digest, and find the original of an equal payload. Empty bodies are never copies."""
        digest = (
            getattr(hashlib, self._stages.digest_algorithm)(reply.body, usedforsecurity=False).digest()
            if reply.file is None
            else reply.file.digest
        )
        row.digest = digest_text(self._stages.digest_algorithm, digest)
        original = None
        if reply.body_bytes and not reply.truncated:
            original = self._stages.content_seen.find(digest, visit.url)
        if original is not None and original.url != visit.url.text:
            row.duplicate_of = original.url
        return Visited(visit.url, row, reply, links or [], keys or [], original, digest)

    def conclude(
        self, lease: Lease, visited: Visited, now: float, again: RevisitPlan | None = None, outlinks: Sequence[str] = ()
    ) -> None:
        """Record the attempt and return the URL to the frontier: finished, or to be visited again. The commit makes
        this atomic.
        """
        stages = self._stages
        row = visited.row
        visit = lease.visit
        assert visit is not None, "a prerequisite fetch where a visit was expected"
        revisiting = stages.revisiting if again is None else None
        sight = revisiting.look(visit, visited) if revisiting is not None else None
        archived = stages.archive.add(visited)
        if self._logs.tells_visits:
            self._logs.debug("visited", url=row.url, outcome=row.outcome, status=row.status, fetch_s=row.fetch_s)
        reply = visited.reply
        is_content = reply is not None and reply.body_bytes and not reply.truncated and row.outcome != "challenged"
        if reply is not None and is_content and visited.revisit_of is None:
            original = Original(row.url, reply.started_at, archived.record_id)
            stages.content_seen.remember(visited.digest, visit.url, original)
        stages.history.put(visit.url, page_record(row, final=again is None, outlinks=outlinks))
        seed = not self._counters.totals.seeds.any_fetched and self.seed(visit) != NOT_SEED
        if again is None:
            if revisiting is not None and sight is not None:
                revisiting.conclude(lease, visited, sight, archived, now)
            else:
                stages.frontier.finish(lease, row.outcome, now)
            if stages.pending_scope.is_open:
                stages.pending_scope.conclude(visit.url)
        else:
            stages.frontier.retry(lease, again, now)
        self._counters.ended(visited, seed=seed)
        for concluded in stages.middlewares.concluded:
            concluded(visited, now)

    def seed(self, visit: Visit) -> int:
        """Return the kind of seed that a visit's URL is, or `NOT_SEED`; also for a seed that was queued as an ordinary
        link before.
        """
        return visit.seed or self._stages.pending_scope.seed(visit.url)

    def internal_error(self, lease: Lease, error: Exception, now: float) -> None:
        """End only this page after an internal error."""
        visit = visit_of(lease)
        row = attempt_row(visit, "internal_error", now)
        row.error = f"{type(error).__name__}: {error}"
        try:
            self.conclude(lease, Visited(visit.url, row), now)
        except Exception as again:  # noqa: BLE001 - see `Pipeline.turn`
            if is_fatal(again):
                self._counters.fatal(again)
            elif not lease.is_finished:  # Recording failed too, but the URL must end.
                self._stages.frontier.finish(lease, "internal_error", now)


def visit_of(lease: Lease) -> Visit:
    """Return the visit that a lease carries."""
    visit = lease.visit
    assert visit is not None, "a prerequisite fetch where a visit was expected"
    return visit
