"""State: the record of one page between its visits, and sums over all pages that may be revisited.

Both are committed with the epoch; the sums are never recomputed from pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec.structs import replace

from gossamer.features.revisit.policies import VisitHistory
from gossamer.features.revisit.rhythm import Census, Pool, Rhythm
from gossamer.model.pages import Original
from gossamer.model.words import instant
from gossamer.state.epoch import Epochs
from gossamer.state.redo import Redo
from gossamer.state.schema import REVISIT_STATE
from gossamer.url.url import Url

SPANS_MAX = 1_000


class Calendar(msgspec.Struct, array_like=True):
    """Number of due pages by span of time; as many spans as the longest interval has."""

    span_s: float
    spans: dict[int, int] = msgspec.field(default_factory=dict)

    def add(self, at: float, by: int = 1) -> None:
        """Count a page that is due at `at`."""
        self._change(int(at / self.span_s), by)

    def remove(self, at: float) -> None:
        """Remove a page; `at` must be the time with which it was added."""
        self.add(at, -1)

    def take_in(self, other: Calendar, sign: int = 1) -> None:
        """Add all pages of another calendar with the same length of spans, or with -1 subtract them."""
        assert other.span_s == self.span_s, "spans of two lengths cannot be added"
        for span, count in other.spans.items():
            self._change(span, sign * count)

    def before(self, at: float) -> int:
        """Return how many pages are due before `at`, to within a span's length."""
        last = int(at / self.span_s)
        return sum(count for span, count in self.spans.items() if span < last)

    def _change(self, span: int, by: int) -> None:
        count = self.spans.get(span, 0) + by
        if count:
            self.spans[span] = count
        else:
            self.spans.pop(span, None)


def span_of(interval_s_mean: float, interval_s_max: float) -> float:
    """Return a length of spans that is fine enough for the mean interval, and keeps their number bounded."""
    return max(interval_s_mean / 24.0, interval_s_max / SPANS_MAX)


FAMILY = "revisit"
PROMISE_SHARE = 0.9
"""A page with a promise is due after this share of the age; the rest is for politeness."""
RECENT_MAX = 12
Kind = Literal["first", "changed", "same", "failed", "gone"]


class Memory(msgspec.Struct, array_like=True):
    """The record of one page. About 350 bytes on disk."""

    address: str
    """The address as fetched, to which the validators belong."""
    first_at: float
    visited_at: float
    """Time of the last visit that got the page."""
    due_at: float = 0.0
    """When it is due; 0: it was given up."""
    interval_s: float = 0.0
    visits: int = 0
    changes: int = 0
    changed_at: float = 0.0
    """Time of the last change, dated or seen."""
    failures: int = 0
    """Consecutive failures."""
    change_rate: float = 0.0
    importance: float = 1.0
    counted: bool = False
    """Whether it is in the census, with these numbers."""
    freshness: float = 0.0
    """Expected share of time in which our copy is up to date."""
    promise: int = -1
    """Number of the pattern of `max_age_s` that it matches."""
    digest: int = 0
    payload: bytes = b""
    etag: str = ""
    last_modified: str = ""
    original: tuple[str, float, str] | None = None
    """Address, time and record of the archived response."""
    announced_at: float = 0.0
    """The last change that a hint announced."""
    announces_all: bool = False
    """Whether hints announce every change."""
    hint_s: float = 0.0
    fixed_s: float = 0.0
    said_importance: float = 1.0
    depth: int = 0
    history: VisitHistory = msgspec.field(default_factory=VisitHistory)
    recent: list[tuple[float, Kind]] = msgspec.field(default_factory=list)
    """The last visits: times and results."""
    items: tuple[int, int] = (0, 0)
    """`Sight.items` of the last visit; zeros also in records of releases that did not compare items."""

    @property
    def held(self) -> Original | None:
        return Original(*self.original) if self.original is not None else None

    def note(self, at: float, kind: Kind) -> None:
        """Add a visit to `recent`, which keeps the last few."""
        self.recent = [*self.recent[1 - RECENT_MAX :], (at, kind)]


encode_memory = msgspec.msgpack.Encoder().encode
"""Returns the stored form of a record. About 2 µs."""
decode_memory = msgspec.msgpack.Decoder(Memory).decode
"""Returns a record from its stored form. About 3 µs."""


def memory_key(url: Url) -> bytes:
    """Return the key of a page's memory."""
    return url.partition.to_bytes(2) + url.fingerprint.to_bytes(8)


class AgePromise(msgspec.Struct, array_like=True):
    """How a pattern's `max_age_s` was kept."""

    pattern: str
    age_s_max: float
    pages: int = 0
    kept: int = 0
    broken: int = 0
    """Visits in time (`kept`) and too late (`broken`)."""
    late_s_worst: float = 0.0
    deadlines: Calendar = msgspec.field(default_factory=lambda: Calendar(60.0))


_SUMS = ("pages", "there", "retired", "capped_hosts", "capped_per_s", "promised_per_s", "importance", "fresh")
"""Of a `RevisitState`: what is added up over pages and hosts."""


class RevisitState(msgspec.Struct, array_like=True):
    """Sums over all pages of a shard. About 10 KB."""

    due: Calendar
    census: Census = msgspec.field(default_factory=Census)
    """Pages of hosts that are not capped."""
    pool: Pool = msgspec.field(default_factory=Pool)
    price: float = 1.0
    stirred: int = 0
    """Changes of the census since the price was computed."""
    pages: int = 0
    """Pages with a due time."""
    there: int = 0
    """The part of `pages` whose last visit got the page."""
    retired: int = 0
    capped_hosts: int = 0
    capped_per_s: float = 0.0
    """Visits per second of capped hosts."""
    promised_per_s: float = 0.0
    importance: float = 0.0
    """Sums of importance over pages with content (`importance`), and of their expected fresh part (`fresh`)."""
    fresh: float = 0.0
    visits: int = 0
    changes: int = 0
    same: int = 0
    not_modified: int = 0
    late: int = 0
    """Visits later than half an interval after their due time."""
    promises: list[AgePromise] = msgspec.field(default_factory=list)

    def withdraw(self, memory: Memory, rhythm: Rhythm) -> None:
        """Remove a page from all sums, with the numbers with which it was added."""
        self.count_memory(memory, -1)
        if not memory.counted:
            return
        memory.counted = False
        if memory.promise >= 0:
            per_s = 1.0 / (PROMISE_SHARE * self.promises[memory.promise].age_s_max)
            rhythm.promised_per_s -= per_s
            self.promised_per_s -= per_s
        else:
            self.count_page(memory, rhythm, -1)

    def count_page(self, memory: Memory, rhythm: Rhythm, sign: int) -> None:
        """Add a page to the censuses, or with -1 remove it."""
        for census in [rhythm.census] if rhythm.is_capped else [rhythm.census, self.census]:
            census.add(memory.change_rate, memory.importance, sign)
        rhythm.stirred += 1
        self.stirred += 1

    def count_rhythm(self, rhythm: Rhythm, sign: int = 1) -> None:
        """Add a stored host to the sums, or with -1 remove it."""
        self.promised_per_s += sign * rhythm.promised_per_s
        self.capped_hosts += sign * rhythm.is_capped
        self.capped_per_s += sign * rhythm.spent_per_s
        if not rhythm.is_capped:
            self.census.take_in(rhythm.census, sign)

    def count_memory(self, memory: Memory, sign: int = 1) -> None:
        """Add a stored page to the sums, or with -1 remove it. Sums that hosts have are added with the hosts."""
        self.count_due(memory, sign)
        if not memory.counted:
            return
        self.there += sign
        self.importance += sign * memory.importance
        self.fresh += sign * memory.importance * memory.freshness
        if memory.promise >= 0:
            promise = self.promises[memory.promise]
            promise.pages += sign
            promise.deadlines.add(memory.visited_at + promise.age_s_max, sign)

    def count_due(self, memory: Memory, sign: int = 1) -> None:
        """Add a page to those that are due, or were given up; with -1 remove it."""
        if memory.due_at:
            self.pages += sign
            self.due.add(memory.due_at, sign)
        else:
            self.retired += sign * (memory.failures > 0)

    def take_in(self, other: RevisitState, sign: int = 1) -> None:
        """Add all pages and hosts of other sums with the same length of spans, or with -1 subtract them."""
        self.due.take_in(other.due, sign)
        self.census.take_in(other.census, sign)
        self.stirred += other.census.pages
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + sign * getattr(other, name))
        if not self.there:
            self.importance = self.fresh = 0.0  # Removes rounding errors.
        for promise in other.promises:
            mine = self.promises[self.promise_number(promise.pattern, promise.age_s_max)]
            mine.pages += sign * promise.pages
            mine.deadlines.take_in(promise.deadlines, sign)

    def spans(self) -> set[float]:
        """Return the lengths of spans of all calendars: one, except in crawls that were resumed with other options."""
        return {self.due.span_s, *(promise.deadlines.span_s for promise in self.promises)}

    def promise_number(self, pattern: str, age_s_max: float) -> int:
        """Return the number of a promise in a shard; a new promise gets the next number."""
        known = [(one.pattern, one.age_s_max) for one in self.promises]
        if (pattern, age_s_max) not in known:
            self.promises.append(AgePromise(pattern, age_s_max, deadlines=Calendar(self.due.span_s)))
            known.append((pattern, age_s_max))
        return known.index((pattern, age_s_max))

    def without_pages(self) -> RevisitState:
        """Return the sums without pages and hosts, but with the results of visits."""
        promises = [replace(one, pages=0, deadlines=Calendar(one.deadlines.span_s)) for one in self.promises]
        zero = {name: type(getattr(self, name))() for name in _SUMS}
        return replace(self, due=Calendar(self.due.span_s), census=Census(), promises=promises, **zero)

    def begin_like(self, other: RevisitState) -> None:
        """Initialize the rate of change and the price of a new shard from those of another."""
        self.due = Calendar(other.due.span_s)
        self.pool = other.pool
        self.price = other.price
        for promise in self.promises:
            promise.deadlines = Calendar(other.due.span_s)


encode_state = msgspec.msgpack.Encoder().encode
"""Returns the stored form of the sums. About 50 µs."""
decode_state = msgspec.msgpack.Decoder(RevisitState).decode
"""Returns the sums from their stored form."""


def recount(kept: RevisitState, rhythms: Iterable[Rhythm], memories: Iterable[Memory]) -> RevisitState:
    """Compute the sums again for these hosts and pages, and keep the results of visits. About 5 µs a page."""
    state = kept.without_pages()
    for rhythm in rhythms:
        state.count_rhythm(rhythm)
    for memory in memories:
        state.count_memory(memory)
    state.stirred = state.census.pages  # The price is computed at the next visit.
    return state


def page_facts(epochs: Epochs, url: Url) -> dict[str, object]:
    """Return the record of a page for display, times as ISO 8601 in UTC; empty if there is none."""
    data = epochs.get(FAMILY, memory_key(url))
    if data is None:
        return {}
    memory = decode_memory(data)
    facts = {
        "visits": memory.visits,
        "changes": memory.changes,
        "last_visit_at": instant(memory.visited_at),
        "changed_at": instant(memory.changed_at) if memory.changed_at else None,
        "change_rate_per_day": memory.change_rate * 86_400.0,
        "importance": memory.importance,
        "expected_freshness": memory.freshness,
        "failures_in_a_row": memory.failures,
        "given_up": not memory.due_at,
        "etag": memory.etag,
        "last_modified": memory.last_modified,
        "announced_change_at": instant(memory.announced_at) if memory.announced_at else None,
    }
    recent = [f"{instant(at)} {kind}" for at, kind in memory.recent]
    next_due = {"next_due": instant(memory.due_at)} if memory.due_at else {}
    return {**next_due, "revisits": facts, "recent_visits": recent}


def whole_facts(state: RevisitState, now: float) -> dict[str, object]:
    """Return about how fresh all pages are, and the due ones. A pass over the calendar's spans, at most a thousand."""
    return {
        "pages": state.pages,
        "given_up": state.retired,
        "overdue": state.due.before(now),
        "due_in_an_hour": state.due.before(now + 3_600.0) - state.due.before(now),
        "importance": state.importance,
        "expected_freshness": state.fresh / state.importance if state.importance > 0.0 else None,
        "visits": state.visits,
        "changes_seen": state.changes,
        "unchanged": state.same,
        "not_modified": state.not_modified,
        "late": state.late,
        "hosts_at_their_limit": state.capped_hosts,
        "promises": [
            {
                "pattern": promise.pattern,
                "max_age_s": promise.age_s_max,
                "pages": promise.pages,
                "older_now": promise.deadlines.before(now),
                "kept": promise.kept,
                "broken": promise.broken,
                "late_s_worst": promise.late_s_worst,
            }
            for promise in state.promises
        ],
    }


def load_state(kept: Redo | Epochs) -> RevisitState | None:
    """Return the stored sums; None if the crawl was never continuous."""
    data = kept.get("meta", REVISIT_STATE)
    return decode_state(data) if data is not None else None
