"""Conclude: captures pass the stages behind the fetch, as live pages do. Nothing is requested, retried or awaited."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.engine.examine import Examined, page_of
from gossamer.engine.history import UNVISITED, PageHistory, PageRecord, attempt_row
from gossamer.engine.middleware import Middlewares
from gossamer.engine.outcomes import REFUSALS, Outcomes
from gossamer.engine.ring import Retries
from gossamer.engine.stages import Stages
from gossamer.model.errors import is_fatal
from gossamer.model.links import NOT_SEED, SEED, SEED_ARGUMENT, Link, Prerequisite, RevisitPlan, Visit
from gossamer.model.pages import RENDERED, Archived, Findings, Original, PageRow, Rendered, Visited
from gossamer.model.visits import NOT_MODIFIED, Content, Reply, first_values
from gossamer.ports import Conclusion, ContentSeen, ExaminedPage, PrerequisiteArchive, VisitMiddleware
from gossamer.results.imports.capture import LINK_TYPE, Capture, Refused
from gossamer.results.imports.listed import ListedPage
from gossamer.results.imports.texts import complete
from gossamer.stages.frontier.host import Host, VisitLease
from gossamer.stages.frontier.options import politeness
from gossamer.stages.frontier.record import RECORD_VERSION, HostRecord, QueuedUrl
from gossamer.stages.seen.offers import DEPTH_MAX, HOPS_MAX
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice

if TYPE_CHECKING:
    from gossamer.assembly.values import Shard
    from gossamer.features.revisit.revisiting import Revisiting

ROBOTS = "/robots.txt"
OK = 200
DIGEST_MAX = 200
USAGE = tuple(name for name in PageRow.__struct_fields__ if name.startswith("usage_"))
FORESEEN_MAX = 256
DEADLY = "a process died of its page twice; it is archived unparsed"


class LatestHistory(PageHistory):
    """The page records of imported URLs: the latest capture counts, in any order of the archives."""

    def put(self, url: Url, record: PageRecord) -> None:
        """Store a record, unless that of a later capture is stored."""
        if self.get(url).at <= record.at:
            super().put(url, replace(record, final=True))


class CapturesEnd:
    """How captures end: URLs are finished, or due for a revisit in a continuous crawl."""

    is_continuous = False

    def __init__(self, revisiting: Revisiting | None, history: PageHistory) -> None:
        self._revisiting = revisiting
        self._history = history

    def prepare(self, lease: VisitLease, visited: Visited) -> Callable[[Archived, float], None]:
        revisiting = self._revisiting
        if revisiting is None:
            return lambda _archived, _now: None
        visit = lease.visit
        sight = revisiting.compare(visit, visited)
        is_first = self._history.get(visit.url) is UNVISITED

        def finish(archived: Archived, now: float) -> None:
            row = visited.row
            whole = visited.reply is not None and not visited.reply.truncated
            original = visited.revisit_of or Original(row.url, row.fetched_at, archived.record_id)
            kept = original if row.outcome == "fetched" and whole else None
            due_at = revisiting.revisits.note_visit(replace(sight, original=kept))
            if due_at is not None and is_first:  # Further captures do not queue it once more.
                revisiting.frontier.schedule_revisit(visit.url, visit.depth, visit.referrer, due_at, now)

        return finish

    def retry(self, lease: VisitLease, again: RevisitPlan, now: float) -> None:
        """Do nothing: captures were never queued, and an address that redirects to itself is known."""

    def visit_again(self, link: Link, now: float, not_before: float) -> None:
        """Do nothing: an archive is read once."""


class PlacedArchive:
    """Passes captures to the archives with their place, or with the fields that say where they come from."""

    def __init__(self, archive: PrerequisiteArchive) -> None:
        self._archive = archive
        self.place: Archived | None = None
        self.source: tuple[tuple[str, str], ...] = ()
        self.error = ""
        self.cut = archive.cut

    def add(self, visited: Visited) -> Archived | None:
        visited.place = self.place
        visited.source = self.source
        if visited.row.outcome == "redirected":
            visited.row.error = visited.row.error or self.error
        return self._archive.add(visited)

    def add_prerequisite(self, reply: Reply, via: str, link_type: str) -> None:
        """Archive a reply that is no page, if its record does not stay where it is."""
        if self.place is None:
            self._archive.add_prerequisite(reply, via, link_type)


class RevisitRecords(VisitMiddleware):
    """Concludes captures whose payload another record holds."""

    name = "revisit_records"

    def __init__(self, seen: ContentSeen, history: PageHistory, namer: Namer, usage: VisitMiddleware) -> None:
        self._seen = seen
        self._history = history
        self._namer = namer
        self._usage = usage
        self._capture: Capture | None = None
        self._conclusion: Conclusion | None = None

    def begin(self, capture: Capture, url: Url) -> Capture:
        """Take the next capture, and return it: without a head, with the status and type of its original.

        A browser or a proxy records the plain 304 by which a server confirmed what the client had: a revisit of the
        last capture before it.
        """
        self._capture = capture
        self._conclusion = None
        if capture.kind != "revisit":
            last = self._seen.find(_key(f"last {url.key}"), url) if capture.status == NOT_MODIFIED else None
            if last is not None and last.fetched_at <= capture.fetched_at:
                same: dict[str, str | int] = {"body_bytes": last.body_bytes}
                self._conclusion = Conclusion("not_modified", "", revisit_of=last, digest=last.digest, columns=same)
            return capture
        original = capture.original
        at = self._namer.name(original.url) if original is not None and original.url else None
        known = self._seen.find(_key(f"payload {capture.digest}"), at or url) or Original(url.text, capture.fetched_at)
        if original is None or not original.url:
            original = known
        if not capture.status:
            record = self._history.get(self._namer.name(original.url) or url)
            capture = replace(capture, status=record.status or OK, headers=(("Content-Type", known.sent_type),))
        is_page = 200 <= capture.status < 300
        is_same = capture.status == NOT_MODIFIED or (is_page and original.url == capture.url)
        outcome = "not_modified" if is_same else "fetched" if is_page else ""
        error = ""
        if capture.status >= 400:  # A server's page about an error, once more.
            outcome = REFUSALS.get(capture.status, "http_error")
            error = f"HTTP {capture.status}"
        if outcome:
            columns: dict[str, str | int] = {"digest": capture.digest[:DIGEST_MAX], "body_bytes": known.body_bytes}
            self._conclusion = Conclusion(outcome, error, revisit_of=original, digest=known.digest, columns=columns)
            if known.digest and not error:
                self._seen.remember(_key(f"last {url.key}"), url, known)
        return capture

    @property
    def is_confirmed(self) -> bool:
        """Whether the capture is a reply, and says no more than that the one before it still holds."""
        return self._conclusion is not None and self._capture is not None and self._capture.kind != "revisit"

    def why_repeated(self, capture: Capture, url: Url, identity: str) -> str:
        """Return why a capture that was imported before is left out; note others. Costs a get and a put."""
        record_id, _, digest = identity.partition(" ")
        key = _key(f"record {record_id} {capture.fetched_at} {digest} {url.key}")
        if self._seen.find(key, url) is not None:
            return "repeated record"
        self._seen.remember(key, url, Original(url.text, capture.fetched_at))
        return ""

    def settle(self, visit: Visit, reply: Reply, now: float) -> Conclusion | None:
        """Return the conclusion, with what a copy's site states of its use: a copy that was not read allows nothing."""
        conclusion = self._conclusion
        if conclusion is None or conclusion.outcome != "fetched":
            return conclusion
        row = attempt_row(visit, "fetched", reply.started_at)
        self._usage.settle_document(ExaminedPage(visit, reply, Content(b""), Findings(), row, is_read=False), now)
        return replace(conclusion, columns={**conclusion.columns, **{name: getattr(row, name) for name in USAGE}})

    def concluded(self, visited: Visited, now: float) -> None:
        """Store by which digest, of any kind, revisits refer to a payload, and which one a plain 304 refers to."""
        capture = self._capture
        row = visited.row
        if capture is not None and self._conclusion is None and visited.digest:
            sent = first_values(capture.headers).get("content-type", "")
            original = Original(row.url, row.fetched_at, capture.record_id, 0, visited.digest, row.body_bytes, sent)
            if capture.digest:
                self._seen.remember(_key(f"payload {capture.digest}"), visited.url, original)
            if row.outcome == "fetched":
                self._seen.remember(_key(f"last {visited.url.key}"), visited.url, original)


class Captures:
    """Leads captures through the stages of a shard."""

    def __init__(self, shard: Shard, refuse: Callable[[Refused], None], *, judges_scope: bool) -> None:
        """`refuse` takes captures that processes died of. With `judges_scope`, those outside the scope are left out."""
        self._refuse = refuse
        rules = politeness(shard.controls.settings.config.politeness)
        self._host = Host(HostRecord(RECORD_VERSION, ""), 0, b"", 0, rules)
        """Of the leases of all captures: it is not in the frontier."""
        pipeline = shard.ring.pipeline
        stages = pipeline.stages
        recrawl = shard.ring.features.recrawl
        self._judges_scope = judges_scope
        self._discovery = pipeline.discovery
        self._clock = shard.controls.telemetry.clock
        usage = stages.middlewares.of("usage")
        self._revisits = RevisitRecords(stages.content_seen, stages.history, stages.namer, usage)
        self._archive = PlacedArchive(stages.archive)
        self._stages: Stages = replace(
            stages,
            middlewares=Middlewares([self._revisits, usage]),
            archive=self._archive,
            history=LatestHistory(shard.kept.storage.epochs),
            ending=CapturesEnd(recrawl.revisiting if recrawl is not None else None, stages.history),
        )
        telemetry = shard.controls.telemetry
        self._outcomes = Outcomes(self._stages, Retries(1, 0.0, 0.0, Dice()), telemetry.logs, telemetry.counters)
        self._foreseen: list[tuple[Url, int, int]] = []
        self.seeds: dict[str, str] = {}

    def foresee(self, capture: Capture, depth: int | None) -> bool:
        """Note for `note_foreseen` that a capture will be imported. Return False if it is left out."""
        url = self._stages.namer.name(capture.url)
        if url is None or self.why_left_out(capture, url):
            return False
        self._foreseen.append((url, DEPTH_MAX if depth is None else depth, min(capture.hops, HOPS_MAX)))
        if len(self._foreseen) == FORESEEN_MAX:
            self.note_foreseen()
        return True

    def note_foreseen(self) -> None:
        """Note captures that will be imported, so that no link to them is queued. 20 µs less each than one by one."""
        if self._foreseen:
            self._stages.url_seen.offer(*zip(*self._foreseen, strict=True))
            self._foreseen = []

    def why_left_out(self, capture: Capture, url: Url) -> str:
        """Return the filter that rejects a capture; empty if none does. Without seeds, there is no scope yet."""
        if url.text.partition("?")[0].endswith(ROBOTS):
            return ""
        reason = self._stages.chain.explain(Link(url, LINK_TYPE, 0))
        return "" if reason == "scope" and not (self._judges_scope and self.seeds) else reason

    def examine(self, capture: Capture) -> Examined | None:
        """Return a page's examination, before it is concluded; None if it is examined only then."""
        url = self._stages.namer.name(capture.url)
        if url is None or url.key in self.seeds or self._stages.quarantine.suspects(url.fingerprint):
            return None
        if self.why_left_out(capture, url):
            return None
        try:
            return self._stages.examiner.examine(capture.reply(), url.fingerprint, capture.link_type)
        except Exception as error:
            if is_fatal(error):
                raise
            return None  # The error of the page is found again when it is concluded.

    async def conclude(
        self, capture: Capture, place: Archived | None, source: str, examined: Examined | None, shown: ListedPage
    ) -> str:
        """Import a capture with what another process found and browsers showed; return why it is left out."""
        url = self._stages.namer.name(capture.url)
        if url is None:
            return "address"
        identity = _identity(capture)
        if reason := self.why_left_out(capture, url) or self._revisits.why_repeated(capture, url, identity):
            return reason
        self._archive.place = place
        self._archive.error = capture.error
        name = source.rpartition("/")[2]
        place_fields = (("WARC-Source-URI", name), ("WARC-Source-Offset", str(capture.place.offset)))
        self._archive.source = (*place_fields, ("Gossamer-Copy-Of", identity))
        now = self._clock.now()
        if url.text == f"{url.origin}{ROBOTS}":
            self._read_robots(url, capture.reply())
            return "robots.txt"
        capture = self._revisits.begin(capture, url)
        if self._revisits.is_confirmed:  # Written as a revisit record, which readers can resolve.
            self._archive.place = None
        reply = capture.reply()
        visit = self._visit(capture, url)
        lease = VisitLease(self._host, url, url.origin, "", visit=visit)
        links = self._outcomes.settle(lease, reply, now)
        if isinstance(links, Reply):
            examined = await self._examine(visit, reply, examined)
            if examined.died:
                self._refuse(Refused(capture.place.source, source, capture.place.offset, DEADLY))
            elif capture.rendered is not None:
                examined = self._look_again(url, reply, examined, capture.rendered)
            examined.findings.title = examined.findings.title or shown.title
            complete(examined, reply.media_type, shown.text)
            links = self._outcomes.document(lease, reply, examined, now)
        self._discovery.follow(links, url, now)
        return ""

    def _visit(self, capture: Capture, url: Url) -> QueuedUrl:
        way = self._stages.url_seen.way(url)
        depth = way[0] if way is not None else DEPTH_MAX
        is_seed = url.key in self.seeds
        link_type = SEED if is_seed else capture.link_type
        if is_seed or depth == DEPTH_MAX:  # No page that was imported before links to it.
            depth = 0
        # As a revisit, it is no evidence of a trap.
        return QueuedUrl(
            url, depth, min(capture.hops, HOPS_MAX), link_type, capture.via, capture.attempt,
            SEED_ARGUMENT if is_seed else NOT_SEED, revisit=True,
        )  # fmt: skip

    async def _examine(self, visit: Visit, reply: Reply, examined: Examined | None) -> Examined:
        stages = self._stages
        fingerprint = visit.url.fingerprint
        kind = visit.link_type
        if examined is not None and examined.died:
            stages.quarantine.accuse(fingerprint, "process")
        if stages.quarantine.suspects(fingerprint):
            examined = await stages.quarantine.examine(reply, fingerprint)
        elif examined is None or (kind == SEED and not examined.died):  # Another process takes none for a seed.
            examined = stages.examiner.examine(reply, fingerprint, kind)
        if stages.isolated.wants(reply.media_type, kind) and not examined.died:
            seen = await stages.isolated.process(page_of(reply, examined.content, kind), examined.findings)
            examined.errors += seen.errors
            examined.ran += seen.ran
        return examined

    def _look_again(self, url: Url, reply: Reply, examined: Examined, rendered: Rendered) -> Examined:
        """Return the examination of a page that a browser rendered."""
        # Other archives need none of it.
        from gossamer.features.render.rendering import BOM, add_sent  # noqa: PLC0415

        seen = self._stages.examiner.process_again(reply, Content(BOM + rendered.html), url.fingerprint, url.text)
        add_sent(seen.findings, examined.findings)
        return replace(seen, sent=examined.content, rendering=RENDERED, rendered=rendered)

    def _read_robots(self, url: Url, reply: Reply) -> None:
        """Take a robots.txt as if it had been requested then."""
        stages = self._stages
        self._archive.add_prerequisite(reply, "", "robots")
        body = stages.examiner.content(reply, url.fingerprint).body if 200 <= reply.status < 300 else b""
        stages.robots.answer(Prerequisite(url, url), reply, body, reply.started_at)


def _identity(capture: Capture) -> str:
    """Return the id and the payload digest of the record that holds a capture, or from which it was copied.

    ARC and HAR files have no ids: there the status and the content stand for one.
    """
    if not (capture.copy_of or capture.record_id):
        body = capture.file.digest if capture.file is not None else capture.body
        return f"content:{hashlib.sha1(body, usedforsecurity=False).hexdigest()}:{capture.status}"
    return capture.copy_of or f"{capture.record_id} {capture.digest}"


def _key(text: str) -> bytes:
    """Return the key of a payload, or of a record, by what WARC files write of it, apart from the keys of crawls."""
    return hashlib.sha1(text.encode("utf-8", "replace"), usedforsecurity=False).digest()
