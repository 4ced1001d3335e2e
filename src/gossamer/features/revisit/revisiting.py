"""Revisiting: how a continuous crawl visits pages again: conditional requests, changes, next due times, and due times
for pages that a batch crawl fetched before.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.engine.commit import Storage
from gossamer.engine.copies import is_text
from gossamer.engine.history import read_page_record
from gossamer.features.revisit.schedule import Schedule
from gossamer.features.revisit.state import Memory
from gossamer.model.links import OUTLINK, Link, Notice, RevisitPlan, Visit
from gossamer.model.pages import Archived, Findings, Original, Sight, Sketch, Visited
from gossamer.model.visits import NOT_MODIFIED, Reply, Request, conditions
from gossamer.ports import Conclusion, VisitMiddleware
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import VisitLease
from gossamer.state.schema import ENROLLED, PARTITIONED
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.clock import Clock
from gossamer.world.dice import Dice

Sketcher = Callable[[bytes, str, str], Sketch]
TextOf = Callable[[bytes], bytes]
VALIDATOR_CHARACTERS_MAX = 1_000
"""Longer validators are taken for errors and not sent back."""


class Revisiting(VisitMiddleware):
    """Connects the ring to the schedule. Costs about 150 µs a visit beside the schedule, for the digest of words."""

    name = "revisits"
    is_continuous = True

    def __init__(
        self, plan: Schedule, frontier: Frontier, change: str, sketcher: Sketcher, text_of: TextOf, *, conditional: bool
    ) -> None:
        """`change` is what counts as a change: of `words`, `text` or `payload`."""
        self.revisits = plan
        self.frontier = frontier
        self._change = change
        self._sketcher = sketcher
        self._text_of = text_of
        self._conditional = conditional
        self._held: dict[int, Memory] = {}
        """By fingerprint of a URL that is being requested: what its request is conditional on."""

    def request(self, url: Url, visit: Visit | None, request: Request, now: float) -> Request:
        memory = self._validators(visit) if visit is not None else None
        if memory is None:
            return request
        self._held[url.fingerprint] = memory
        more = conditions(memory.etag, memory.last_modified)
        return msgspec.structs.replace(request, headers=request.headers + more)

    def release(self, url: Url) -> tuple[Url, ...]:
        self._held.pop(url.fingerprint, None)
        return ()

    def settle(self, visit: Visit, reply: Reply, now: float) -> Conclusion | None:
        memory = self._held.get(visit.url.fingerprint) if reply.status == NOT_MODIFIED else None
        if memory is None:
            return None
        return Conclusion("not_modified", "", revisit_of=memory.held, digest=memory.payload)

    def _validators(self, visit: Visit) -> Memory | None:
        """Return the validators for a visit's request; None if it is unconditional (RFC 9110, section 13.1)."""
        if not (self._conditional and visit.revisit and visit.url.text.startswith(("http://", "https://"))):
            return None
        memory = self.revisits.last_visit(visit.url)
        return memory if memory is not None and (memory.etag or memory.last_modified) else None

    def retry(self, lease: VisitLease, again: RevisitPlan, now: float) -> None:
        """Queue the URL of a visit again."""
        self.frontier.retry(lease, again, now)

    def visit_again(self, link: Link, now: float, not_before: float) -> None:
        """Make a page due again."""
        self.revisits.note(Notice(link.url, "repeat", due_now=True, not_before=not_before), now)

    def compare(self, visit: Visit, visited: Visited) -> Sight:
        """Return the observation of a visit, and write the change into its row."""
        sight = self._sight(visit, visited)
        visited.row.change = self.revisits.change(sight)
        return sight

    def prepare(self, lease: VisitLease, visited: Visited) -> Callable[[Archived, float], None]:
        """Write what has changed into the row of a visit; return what ends the visit once the row is archived."""
        sight = self.compare(lease.visit, visited)
        return lambda archived, now: self._conclude(lease, visited, sight, archived, now)

    def _conclude(self, lease: VisitLease, visited: Visited, sight: Sight, archived: Archived, now: float) -> None:
        """Schedule the next visit by what a visit saw, and return its URL to the frontier: due again, or finished."""
        row = visited.row
        reply = visited.reply
        if row.outcome == "fetched" and reply is not None and not reply.truncated:
            original = visited.revisit_of or Original(row.url, row.fetched_at, archived.record_id)
            sight = msgspec.structs.replace(sight, original=original)
        due_at = self.revisits.note_visit(sight)
        if due_at is None:
            self.frontier.finish(lease, visited.row.outcome, now)
        else:
            self.frontier.finish_until(lease, visited.row.outcome, due_at, now)

    def _sight(self, visit: Visit, visited: Visited) -> Sight:
        row = visited.row
        reply = visited.reply
        is_rendered = visited.rendered is not None
        etag = last_modified = ""
        # A 304 says nothing of what scripts load into a page.
        if row.outcome == "fetched" and reply is not None and not is_rendered:
            etag = _validator(reply.header("etag"))
            last_modified = _validator(reply.header("last-modified"))
        # Redirects to several places may have one body.
        has_payload = reply is not None and reply.body_bytes and row.outcome != "redirected"
        return Sight(
            visit.url, row.outcome, row.fetched_at, row.status, self._digest(visited), etag, last_modified, None,
            visited.digest if has_payload else b"", visit.depth,
            self.frontier.revisits_per_s(visit.url), items_digest(visited.findings),
            is_rendered,
        )  # fmt: skip

    def _digest(self, visited: Visited) -> int:
        """Return the digest of the part of a page's content in which a difference counts as a change."""
        row = visited.row
        content = visited.content
        if row.outcome == "redirected":
            return xxh3_64_intdigest(row.redirect_to.encode())
        if content is None or content.file is not None or self._change == "payload" or not is_text(row.media_type):
            return xxh3_64_intdigest(visited.digest)
        if self._change == "words":
            words = self._sketcher(content.body, row.charset, row.url).digest
            if words:
                return words
        return xxh3_64_intdigest(b" ".join(self._text_of(content.body).split()))


def items_digest(findings: Findings | None) -> tuple[int, int]:
    """Return the value of `Sight.items` for a page. Items with an identity may change places."""
    rows = {} if findings is None else findings.rows
    tables = sorted(name for name in rows if name.startswith("items/"))
    if findings is None or not tables:
        return 0, 0
    items = [sorted(rows[name], key=lambda row: str(row.get("item", ""))) for name in tables]
    return _digest_of(sorted(findings.fields)), _digest_of([tables, items])


def _digest_of(values: Sequence[object]) -> int:
    return xxh3_64_intdigest(repr(values).encode("utf-8", "surrogatepass"))


def _validator(value: str | None) -> str:
    """Return a validator that can be sent back; empty if it is not valid in a header."""
    value = (value or "").strip()
    is_sound = len(value) <= VALIDATOR_CHARACTERS_MAX and value.isascii() and value.isprintable()
    return value if is_sound else ""


SLICE = 100
PAUSE_S = 0.05
"""Pause between slices: at most some 2,000 pages a second."""
_BEGIN, _END = PARTITIONED


class Enrolment:
    """Gives due times to all pages once, and continues after a restart. Takes memory for one slice.

    Partitions that another shard sent while the crawl was a batch crawl may arrive later, and are enrolled then.
    """

    def __init__(
        self,
        storage: Storage,
        namer: Namer,
        revisiting: Revisiting,
        interval_s: float,
        clock: Clock,
        dice: Dice,
        kind_of: Callable[[str, Url], str],
    ) -> None:
        """Due times are random within `interval_s`. `kind_of` is `Chain.effective_type`."""
        self._epochs = storage.epochs
        self._namer = namer
        self._revisiting = revisiting
        self._interval_s = interval_s
        self._clock = clock
        self._dice = dice
        self._kind_of = kind_of
        self._begun_again = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether all pages are enrolled."""
        return self._cursor >= _END

    @property
    def _cursor(self) -> bytes:
        return self._epochs.get("meta", ENROLLED) or _BEGIN

    async def run(self) -> None:
        """Enrol existing pages, and those that arrive, until cancelled."""
        while True:
            if self.enrol_some():
                await asyncio.sleep(PAUSE_S)
            else:
                self._begun_again.clear()
                await self._begun_again.wait()

    def begin_again(self, partition: int) -> None:
        """Enrol pages again from a partition on, which has arrived without due times."""
        self._epochs.put("meta", ENROLLED, min(self._cursor, partition.to_bytes(2)))
        self._begun_again.set()

    def enrol_some(self) -> bool:
        """Enrol a slice; return whether there may be more. About 10 ms."""
        cursor = self._cursor
        if cursor >= _END:
            return False
        # Includes the open epoch, in which partitions arrive.
        pages = list(islice(self._epochs.scan("page", cursor, _END), SLICE + 1))
        for key, value in pages[:SLICE]:
            if len(key) == 10 and self._epochs.get("revisit", key) is None:
                self._enrol(value)
        self._epochs.put("meta", ENROLLED, pages[SLICE][0] if len(pages) > SLICE else _END)
        return True

    def _enrol(self, value: bytes) -> None:
        record = read_page_record(value)
        url = self._namer.name(record.url)
        # Pages of other shards are enrolled there before they are sent.
        if url is None or not record.final or not self._revisiting.revisits.is_ours(url):
            return
        now = self._clock.now()
        revisits = self._revisiting.revisits
        # Its content is not known, so its next visit is the first for the schedule.
        at = now + self._dice.uniform(0.0, self._interval_s)
        if revisits.enrol(Sight(url, record.outcome, record.at, record.status, depth=record.depth), at):
            link_type = "" if record.depth or record.referrer else "seed"  # Its redirect may widen the scope.
            if record.outcome != "fetched" and self._kind_of("anchor", url) == OUTLINK:
                link_type = OUTLINK
            self._revisiting.frontier.schedule_revisit(url, record.depth, record.referrer, at, now, link_type)
