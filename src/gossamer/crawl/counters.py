"""Counters: what the crawl counts and shows while it runs: totals, rates over time, and the last attempts."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec

from gossamer.crawl.delivery import Delivery
from gossamer.crawl.logs import Logs
from gossamer.crawl.options import CrawlOptions
from gossamer.model.counters import Counters
from gossamer.model.decodable import decodable
from gossamer.model.errors import CrawlFailedError
from gossamer.model.modules import INVALID, ModuleCounts, ModuleError
from gossamer.model.outcomes import SUCCEEDED, WITH_CONTENT
from gossamer.model.status import RECENT_CHARACTERS_MAX
from gossamer.model.visits import Awaited, PageRow, Visited
from gossamer.world.clock import Clock

NOTES_MAX = 1000
RATE_SAMPLES = 10
MEDIA_TYPES_MAX = 50
ERROR_CHARACTERS_MAX = 300
"""Of a module's last error, which is shown and committed."""
SEEDS_NAMED_MAX = 10
OTHER = "other"
"""Name for further media types beyond `MEDIA_TYPES_MAX`."""
TEXT_METHODS = frozenset(("main", "visible", "plain"))
"""How our modules find text; a module of the operator's may name another."""


class SeedCounters(msgspec.Struct):
    """The URLs that a crawl begins with: its seeds, and those of segments."""

    count: int = 0
    first: list[str] = msgspec.field(default_factory=list)
    """The first `SEEDS_NAMED_MAX` of them."""
    any_fetched: bool = False
    """Whether one of them, or the target of its redirects, was fetched."""


@decodable
class Totals(msgspec.Struct):
    """Sums over the whole crawl, all runs of it. Committed with the epoch."""

    pages: int = 0
    """Attempts that ended in `fetched`."""
    attempts: int = 0
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    wire_bytes: int = 0
    body_bytes: int = 0
    fetch_s: float = 0.0
    elapsed_s: float = 0.0
    media_types: dict[str, int] = msgspec.field(default_factory=dict)
    """Of what was fetched, as far as there are few."""
    modules: dict[str, ModuleCounts] = msgspec.field(default_factory=dict)
    """What each processing module did."""
    text_methods: dict[str, int] = msgspec.field(default_factory=dict)
    """Of what was fetched and has a text, how that was found."""
    incarnation: int = 0
    """How often the shard was opened."""
    seeds: SeedCounters = msgspec.field(default_factory=SeedCounters)
    ended: str = ""
    """How the last run ended; empty while one goes on, and after one that died."""
    awaited: list[Awaited] = msgspec.field(default_factory=list)
    """Hosts for which the last run did not wait, where it ended by `patience`: the first of them to come."""
    rendered: dict[str, int] = msgspec.field(default_factory=dict)
    """Pages that were to be rendered, by what became of it."""
    rendering: dict[str, float] = msgspec.field(default_factory=dict)
    """What rendering took and brought: processor seconds, resources, links."""
    logins: dict[str, str] = msgspec.field(default_factory=dict)
    """Logins of the configuration that were given up, and why."""


class CrawlCounters:
    """Counts attempts, keeps notes for the operator, and detects too many internal errors."""

    def __init__(self, totals: Totals, options: CrawlOptions) -> None:
        self.totals = totals
        self._options = options
        self._failures: deque[float] = deque()
        self.fatal_error: BaseException | None = None
        self.failure: CrawlFailedError | None = None
        """Why the crawl ends in order, with everything saved, and then reports a failure."""
        self._fetch_s_before = totals.fetch_s
        self._modules_before = {name: (one.pages, one.failed) for name, one in totals.modules.items()}
        """What there was before this run."""
        self.listeners: list[Callable[[str], None]] = []
        self.notes: deque[str] = deque(maxlen=NOTES_MAX)
        self.delivery: Delivery | None = None
        """Takes visits for the iterator over pages; None while there is none."""
        self.in_epoch = 0
        self.course = Timeline()
        self.pending: Callable[[], int] = int
        """How many URLs wait or are under way."""
        self.dns_and_caches: Callable[[], Counters] = Counters
        """Returns what DNS lookups and caches did in this process."""
        self.recent: RecentList | None = None
        """The last attempts; None until the first request for them."""
        self.last_at = 0.0
        """When the last attempt ended, about."""
        self._samples: deque[tuple[float, int, int]] = deque(maxlen=RATE_SAMPLES)

    def reconfigure(self, options: CrawlOptions) -> None:
        """Apply other options from now on."""
        self._options = options

    def sample(self, now: float) -> None:
        """Note where the counts stand; about once a second."""
        totals = self.totals
        self._samples.append((now, totals.pages, totals.wire_bytes))
        self.course.add(Point(now, totals.pages, totals.attempts, totals.wire_bytes, self.pending()))

    def rates(self, now: float) -> tuple[float, float]:
        """Return pages and bytes a second over the last seconds."""
        if not self._samples:
            return 0.0, 0.0
        since, pages, wire_bytes = self._samples[0]
        lasted_s = max(now - since, 1e-3)
        return (self.totals.pages - pages) / lasted_s, (self.totals.wire_bytes - wire_bytes) / lasted_s

    def seeded(self, texts: Sequence[str]) -> None:
        """Count URLs that the crawl begins with."""
        seeds = self.totals.seeds
        new = [text for text in dict.fromkeys(texts) if text not in seeds.first]  # One that was typed twice is one.
        seeds.count += len(new)
        seeds.first += new[: SEEDS_NAMED_MAX - len(seeds.first)]

    def ended(self, visited: Visited, *, seed: bool) -> None:
        """Count a finished attempt; `seed`: the crawl began with its URL, or a redirect led there from such a one."""
        totals, row = self.totals, visited.row
        if (seed or self._options.mode == "offline") and row.outcome in WITH_CONTENT:
            totals.seeds.any_fetched = True
        totals.attempts += 1
        if row.outcome == "fetched":
            totals.pages += 1
            types, kind = totals.media_types, row.media_type
            if kind not in types and len(types) >= MEDIA_TYPES_MAX:
                kind = OTHER
            types[kind] = types.get(kind, 0) + 1
            if row.text_method:
                methods = totals.text_methods
                method = row.text_method if row.text_method in TEXT_METHODS else OTHER
                methods[method] = methods.get(method, 0) + 1
        totals.outcomes[row.outcome] = totals.outcomes.get(row.outcome, 0) + 1
        totals.body_bytes += row.body_bytes
        totals.fetch_s += row.fetch_s
        self.in_epoch += 1
        if self.recent is not None:
            self.recent.add(row)
        if self.delivery is not None:
            self.delivery.add(visited)

    def count(self, into: Counters) -> None:
        """Say how long the requests of this process took."""
        into.requests_s = self.totals.fetch_s - self._fetch_s_before

    def received(self, wire_bytes: int) -> None:
        """Count what a request received, also one that no page asked for."""
        self.totals.wire_bytes += wire_bytes

    def rendered(self, result: str) -> None:
        """Count a page that was to be rendered."""
        counts = self.totals.rendered
        counts[result] = counts.get(result, 0) + 1

    def rendering(self, name: str, more: float) -> None:
        """Count what rendering took or brought."""
        counts = self.totals.rendering
        counts[name] = round(counts.get(name, 0.0) + more, 3)

    def failed(self, error: BaseException, now: float) -> None:
        """Count an internal error; too many in close succession are fatal."""
        failures = self._failures
        failures.append(now)
        while failures and failures[0] < now - self._options.errors_s:
            failures.popleft()
        if len(failures) >= self._options.errors_max:
            self.fatal(error)

    def processed(self, ran: Sequence[str], errors: Sequence[ModuleError], url: str) -> None:
        """Count what processing modules did on a page. One that fails on the first `module_failures_max` pages of a
        run, all of them, is broken: the crawl ends. About 0.1 µs a module.
        """
        modules = self.totals.modules
        for name in ran:
            counts = modules.get(name)
            if counts is None:
                counts = modules[name] = ModuleCounts()
            counts.pages += 1
        for name, of_one in groupby(errors, lambda error: error.module):
            self._module_failed(name, list(of_one)[-1], url, counted=name in ran)

    def _module_failed(self, name: str, error: ModuleError, url: str, *, counted: bool) -> None:
        counts = self.totals.modules.setdefault(name, ModuleCounts())
        counts.pages += not counted  # `columns`: what was found and does not fit.
        counts.failed += 1
        counts.timeouts += error.kind == "timeout"
        counts.died += error.kind == "died"
        counts.error, counts.url = error.error[:ERROR_CHARACTERS_MAX], url
        most, (pages, failed) = self._options.module_failures_max, self._modules_before.get(name, (0, 0))
        failed_now = counts.failed - failed
        counted = counted and error.kind != INVALID  # A page's mistake.
        if counted and most and failed_now >= most and failed_now == counts.pages - pages and self.failure is None:
            self.failure = CrawlFailedError(
                f"the processing module {name} failed on all {failed_now} pages of this run ({counts.error}, last on "
                f"{url}): fix it, leave it out, or go on with --set crawl.module_failures_max=0"
            )

    def fatal(self, error: BaseException) -> None:
        """Note that the crawl cannot go on."""
        self.fatal_error = self.fatal_error or error

    def login_ended(self, name: str, reason: str) -> None:
        """Note that a login was given up, durable with the next commit; without a reason, that it works."""
        if reason:
            self.totals.logins[name] = reason
            self.note(login_warning(name, reason))
        else:
            self.totals.logins.pop(name, None)

    def note(self, sentence: str) -> None:
        """Add a note for the operator."""
        self.notes.append(sentence)
        for listener in self.listeners:
            listener(sentence)


def login_warning(name: str, reason: str) -> str:
    """Return a login that was given up as a sentence."""
    return f"login.{name} was given up: {reason}; URLs that need it end as login_required"


RINGS = ((1.0, 300), (5.0, 120), (60.0, 180), (600.0, 144), (7200.0, 360))
"""Seconds between two points, and how many are kept: five minutes, ten minutes, three hours, a day, a month."""
RECENT_RING = 1
"""Whose rates `rates` returns."""


class Telemetry(msgspec.Struct, frozen=True):
    """What a crawl reports with: its clock, its logs and its counts."""

    clock: Clock
    logs: Logs
    counters: CrawlCounters


class Point(NamedTuple):
    """Where the counts stood."""

    at: float
    pages: int
    attempts: int
    wire_bytes: int
    pending: int


class Timeline:
    """Keeps at most 1,109 points for any length of crawl: about 130 KB. A point costs about 1 µs."""

    def __init__(self) -> None:
        # One more, since a rate needs two points.
        self._rings: list[deque[Point]] = [deque(maxlen=most + 1) for _, most in RINGS]

    def add(self, point: Point) -> None:
        """Take where the counts stand now."""
        for (step_s, _), ring in zip(RINGS, self._rings, strict=True):
            if ring and point.at - ring[-1].at < step_s:
                return
            ring.append(point)

    def points(self) -> list[Point]:
        """Return all points in order of time: of each time those of the finest ring that reaches back so far."""
        found: list[Point] = []
        for ring in self._rings:
            reaches_to = found[0].at if found else float("inf")
            found[:0] = [point for point in ring if point.at < reaches_to]
        return found

    def rates(self) -> list[tuple[float, float, float]]:
        """Return instants of the last ten minutes, with pages and bytes a second up to each."""
        ring = self._rings[RECENT_RING]
        return [
            (after.at, (after.pages - before.pages) / lasted_s, (after.wire_bytes - before.wire_bytes) / lasted_s)
            for before, after in pairwise(ring)
            if (lasted_s := after.at - before.at) > 0
        ]


KEPT_MAX = 20


class RecentList:
    """Keeps the last 20 of either kind. An attempt costs about 0.1 µs."""

    def __init__(self) -> None:
        self._last = 0
        self._well: deque[tuple[int, PageRow]] = deque(maxlen=KEPT_MAX)
        self._badly: deque[tuple[int, PageRow]] = deque(maxlen=KEPT_MAX)

    def add(self, row: PageRow) -> None:
        """Take a finished attempt."""
        self._last += 1
        (self._well if row.outcome in SUCCEEDED else self._badly).append((self._last, row))

    def since(self, after: int, most: int = KEPT_MAX) -> dict[str, object]:
        """Return attempts since that numbered `after`, at most `most` of either kind, the oldest first; how many
        there were beside them, and the number of the last one of all.
        """
        if after > self._last:
            after = 0  # Who asks saw another run.
        pages, errors = _summaries(self._well, after, most), _summaries(self._badly, after, most)
        left_out = self._last - after - len(pages) - len(errors)
        return {"last": self._last, "pages": pages, "errors": errors, "left_out": left_out}


def visit_summary(row: PageRow, number: int = 0) -> dict[str, object]:
    """Return an attempt for display. Values from servers are text, and bounded."""
    return {
        "number": number,
        "at": row.fetched_at,
        "url": row.url,
        "outcome": row.outcome,
        "status": row.status,
        "media_type": row.media_type[:RECENT_CHARACTERS_MAX],
        "body_bytes": row.body_bytes,
        "fetch_s": round(row.fetch_s, 4),
        "depth": row.depth,
        "attempt": row.attempt,
        "title": row.title[:RECENT_CHARACTERS_MAX],
        "error": row.error[:RECENT_CHARACTERS_MAX],
    }


def _summaries(rows: Iterable[tuple[int, PageRow]], after: int, most: int) -> list[dict[str, object]]:
    found = [(number, row) for number, row in rows if number > after]
    return [visit_summary(row, number) for number, row in found[-most:]]
