"""Counters: what the crawl counts and shows while it runs: totals, rates over time, and the last attempts."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec

from gossamer.engine.delivery import Delivery
from gossamer.engine.logs import Logs
from gossamer.engine.options import CrawlOptions
from gossamer.model.counters import Counters
from gossamer.model.decodable import decodable
from gossamer.model.errors import CrawlFailedError
from gossamer.model.modules import INVALID, ModuleCounts, ModuleError
from gossamer.model.outcomes import SUCCEEDED, WITH_CONTENT
from gossamer.model.pages import PageRow, Visited
from gossamer.model.standing import Awaited, Lasting
from gossamer.model.status import RECENT_CHARACTERS_MAX
from gossamer.model.words import counted
from gossamer.world.clock import Clock

NOTES_MAX = 1000
RATE_SAMPLES = 10
MEDIA_TYPES_MAX = 50
ERROR_CHARACTERS_MAX = 300
"""Length of a module's last error, which is shown and committed."""
SEEDS_NAMED_MAX = 10
OTHER = "other"
"""Name for further media types beyond `MEDIA_TYPES_MAX`."""
TEXT_METHODS = frozenset(("main", "visible", "plain", "document", "image"))
"""How built-in modules find text; the operator's modules may report other names."""
ELSEWHERE_REMEDY = (
    "only the page reached was fetched, not the site; to crawl it, begin with its address as a seed, or with --set "
    "scope.seed_redirects=site"
)


ALIKE_MIN = 3
"""Seeds of different sites with one answer from which on another server may answer in place of theirs."""
LED_AWAY_MIN = 30
"""Redirects in a row to one page, with any query, from which on it may be that of a login."""


class SeedCounters(msgspec.Struct):
    """The URLs that a crawl begins with: its seeds, and those of segments."""

    count: int = 0
    first: list[str] = msgspec.field(default_factory=list)
    """The first `SEEDS_NAMED_MAX` of these URLs."""
    any_fetched: bool = False
    """Whether one of these URLs, or the target of its redirects, was fetched."""
    elsewhere: int = 0
    """Pages of other sites to which seeds redirect, and whose links were not followed."""
    elsewhere_first: str = ""
    """A sentence about the first of them."""
    scripted: str = ""
    """One of these URLs whose page, which was not rendered, has few links, and scripts that may make more."""
    alike: dict[str, int] = msgspec.field(default_factory=dict)
    """How many of these URLs redirect to one other site, or have one page on several sites; by sentence."""


class Cost(msgspec.Struct):
    """Resources of its machine that a crawl used, over all runs. Processor time is of the shard's own process: reading
    pages with their rows and links (parse), the event loop beside that (fetch), and other threads (store).
    """

    cpu_fetch_s: float = 0.0
    cpu_parse_s: float = 0.0
    cpu_store_s: float = 0.0
    requests: int = 0
    """Those for robots.txt and the like included."""
    memory_bytes_max: int = 0


@decodable
class Totals(msgspec.Struct):
    """Sums over all runs of the crawl. Committed with the epoch."""

    pages: int = 0
    """Attempts that ended in `fetched`."""
    attempts: int = 0
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    wire_bytes: int = 0
    body_bytes: int = 0
    fetch_s: float = 0.0
    elapsed_s: float = 0.0
    media_types: dict[str, int] = msgspec.field(default_factory=dict)
    """Fetched pages by media type, bounded by `MEDIA_TYPES_MAX`."""
    modules: dict[str, ModuleCounts] = msgspec.field(default_factory=dict)
    """Counts of each processing module."""
    text_methods: dict[str, int] = msgspec.field(default_factory=dict)
    """Fetched pages with text, by how the text was found."""
    incarnation: int = 0
    """How often the shard was opened."""
    seeds: SeedCounters = msgspec.field(default_factory=SeedCounters)
    ended: str = ""
    """How the last run ended; empty during a run, and after a crash."""
    lasting: list[Lasting] = msgspec.field(default_factory=list)
    """When the last run ended: the hosts that would have outlasted all others."""
    awaited: list[Awaited] = msgspec.field(default_factory=list)
    """If the last run ended by `patience`: the first hosts that it did not wait for."""
    figures: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    """Further sums, by feature."""
    warned: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """Sentences that features have for the operator, by feature and subject."""
    concurrency: int = 0
    """Requests at once that `crawl.concurrency = "auto"` found useful; 0: it is not known."""
    unfollowed: int = 0
    """Pages that are recorded, but whose links were not all followed, because of an internal error."""
    cost: Cost = msgspec.field(default_factory=Cost)
    rejected: dict[str, str] = msgspec.field(default_factory=dict)
    """The first link that each filter rejected."""

    def warnings(self) -> list[str]:
        """Return warnings about the crawl so far, as sentences for the operator."""
        found = [sentence for _, of_one in sorted(self.warned.items()) for _, sentence in sorted(of_one.items())]
        if self.seeds.elsewhere:
            others = self.seeds.elsewhere - 1
            more = f", and so {'does' if others == 1 else 'do'} {others:,} more" if others else ""
            found.append(f"{self.seeds.elsewhere_first}{more}; {ELSEWHERE_REMEDY}")
        for sentence, number in self.seeds.alike.items():
            if number >= ALIKE_MIN and 2 * number >= self.seeds.count:
                may_be = "a network that wants a login, a proxy, a name server or one owner may answer for all of them"
                found.append(f"{number:,} of {self.seeds.count:,} seeds {sentence}: {may_be}")
        if self.unfollowed:
            pages = counted(self.unfollowed, "page")
            found += [f"links of {pages} were not followed because of an internal error; logs/critical.log says where"]
        return found


class CrawlCounters:
    """Counts attempts, keeps notes for the operator, and detects too many internal errors."""

    def __init__(self, totals: Totals, options: CrawlOptions) -> None:
        self.totals = totals
        self._options = options
        self._failures: deque[float] = deque()
        self.fatal_error: BaseException | None = None
        self.failure: CrawlFailedError | None = None
        """Why the crawl ends, with its state saved, and reports a failure; None: it does not."""
        self._fetch_s_before = totals.fetch_s
        self._modules_before = {name: (one.pages, one.failed) for name, one in totals.modules.items()}
        """Pages and failures of each module before this run."""
        self.listeners: list[Callable[[str], None]] = []
        self.notes: deque[str] = deque(maxlen=NOTES_MAX)
        self.delivery = Delivery()
        """Takes visits for the iterator over pages, if there is one."""
        self.delivery.drop()
        self.in_epoch = 0
        self.timeline = Timeline()
        self.pending: Callable[[], int] = int
        """Returns how many URLs are queued or in flight."""
        self.dns_and_caches: Callable[[], Counters] = Counters
        """Returns the counts of DNS lookups and caches in this process."""
        self.recent: RecentList | None = None
        """The last attempts; None until the first request for them."""
        self.parse_s: Callable[[], float] = float
        """Returns the processor time in which pages were read."""
        self._charged = (0.0, 0.0, 0.0)
        self.last_at = 0.0
        """Approximate time at which the last attempt ended."""
        self.answered_at = 0.0
        """When the last request ended that got past the proxy, if there is one."""
        self.answered = 0
        """Requests of this process that brought bytes."""
        self.silent = 0
        """Requests of this process that brought none."""
        self.unanswered = 0
        """Requests in a row, of all hosts, that brought no byte."""
        self.unanswered_since = 0.0
        """When the first of them ended."""
        self.proxy_failing_since = 0.0
        """First failure of the proxy since a request got past it."""
        self.proxy_failed_at = 0.0
        """Last failure of the proxy."""
        self.proxy_error = ""
        """Error of the last failure of the proxy; empty: none."""
        self.passing: dict[str, str] = {}
        """Warnings that end with this process, by subject."""
        self.others_pass = False
        """Whether requests take another route than that of the proxy which failed last, and get through."""
        self._led = "", 0
        """Where the last redirects lead, all of them, and how many; pages there end no row."""
        self._samples: deque[tuple[float, int, int]] = deque(maxlen=RATE_SAMPLES)

    def reconfigure(self, options: CrawlOptions) -> None:
        """Apply new options."""
        self._options = options

    def charge(self, clock: Clock, *, opening: bool = False) -> None:
        """Add the processor time since the last call to the costs; with `opening` only note where it begins."""
        before = self._charged
        self._charged = now = (clock.process_work_s(), clock.work_s(), self.parse_s())
        if opening:
            return
        cost = self.totals.cost
        process_s, loop_s, parse_s = (after - earlier for after, earlier in zip(now, before, strict=True))
        cost.cpu_parse_s += parse_s
        cost.cpu_fetch_s += max(0.0, loop_s - parse_s)
        cost.cpu_store_s += max(0.0, process_s - loop_s)

    def sample(self, now: float) -> None:
        """Add the current counts to the timeline. Called about once a second."""
        totals = self.totals
        self._samples.append((now, totals.pages, totals.wire_bytes))
        self.timeline.add(Point(now, totals.pages, totals.attempts, totals.wire_bytes, self.pending()))

    def rates(self, now: float) -> tuple[float, float]:
        """Return pages and bytes per second over the last seconds."""
        if not self._samples:
            return 0.0, 0.0
        since, pages, wire_bytes = self._samples[0]
        lasted_s = max(now - since, 1e-3)
        return (self.totals.pages - pages) / lasted_s, (self.totals.wire_bytes - wire_bytes) / lasted_s

    def count_seeds(self, texts: Sequence[str]) -> None:
        """Count seeds, or URLs of segments."""
        seeds = self.totals.seeds
        new = [text for text in dict.fromkeys(texts) if text not in seeds.first]  # One that was typed twice is one.
        seeds.count += len(new)
        seeds.first += new[: SEEDS_NAMED_MAX - len(seeds.first)]

    def count_visit(self, visited: Visited, *, seed: bool) -> None:
        """Count a finished attempt; `seed`: its URL is a seed, or the target of a seed's redirects."""
        totals = self.totals
        row = visited.row
        if (seed or self._options.mode == "offline") and row.outcome in WITH_CONTENT:
            totals.seeds.any_fetched = True
        totals.attempts += 1
        if row.outcome == "fetched":
            totals.pages += 1
            types = totals.media_types
            kind = row.media_type
            if kind not in types and len(types) >= MEDIA_TYPES_MAX:
                kind = OTHER
            types[kind] = types.get(kind, 0) + 1
            if row.text_method:
                methods = totals.text_methods
                method = row.text_method if row.text_method in TEXT_METHODS else OTHER
                methods[method] = methods.get(method, 0) + 1
        if row.outcome == "redirected" or self._led[1]:
            self._note_redirects(row)
        totals.outcomes[row.outcome] = totals.outcomes.get(row.outcome, 0) + 1
        totals.body_bytes += row.body_bytes
        totals.fetch_s += row.fetch_s
        self.in_epoch += 1
        if self.recent is not None:
            self.recent.add(row)
        self.delivery.add(visited)

    def _note_redirects(self, row: PageRow) -> None:
        place = (row.redirect_to or row.url).partition("#")[0].partition("?")[0]
        led_to, times = self._led
        if row.outcome == "redirected":
            times = times + 1 if place == led_to else 1
            self._led = place, times
            if times == LED_AWAY_MIN:
                why = "a session may have ended, or a network may want a login"
                self.warn_for_now("redirects", f"the last {times} redirects all lead to {place}: {why}")
        elif row.outcome == "fetched" and place != led_to:
            self._led = "", 0
            self.warn_for_now("redirects", "")

    def count(self, into: Counters) -> None:
        """Set the total duration of this process's requests."""
        into.requests_s = self.totals.fetch_s - self._fetch_s_before

    def count_bytes(self, wire_bytes: int, now: float) -> None:
        """Count the bytes that a request received, including prerequisite fetches."""
        self.totals.wire_bytes += wire_bytes
        self.totals.cost.requests += 1
        self.answered_at = now
        self.answered += wire_bytes > 0
        self.silent += wire_bytes == 0
        if not self.unanswered:
            self.unanswered_since = now
        self.unanswered = 0 if wire_bytes else self.unanswered + 1

    def proxy_failed(self, error: str, now: float, *, others_pass: bool = False) -> None:
        """Note that the proxy could not be used; what the error says of it is kept as a sentence about `it`."""
        self.others_pass = others_pass
        rest = error.removeprefix("the proxy ")
        if self.answered_at >= self.proxy_failed_at:
            self.proxy_failing_since = now
        self.proxy_error = f"it {rest}" if rest != error else error
        self.proxy_failed_at = now

    def warn(self, feature: str, subject: str, sentence: str) -> None:
        """Show a sentence of a feature from now on; an empty one ends that. Durable with the next commit."""
        self._warn(self.totals.warned.setdefault(feature, {}), subject, sentence)

    def keep_warnings_of(self, features: Collection[str]) -> None:
        """Leave out the sentences of features that the crawl no longer has."""
        warned = self.totals.warned
        self.totals.warned = {feature: warned[feature] for feature in warned if feature in features}

    def warn_for_now(self, subject: str, sentence: str) -> None:
        """Show a sentence until this process ends; an empty one ends that."""
        self._warn(self.passing, subject, sentence)

    def _warn(self, warned: dict[str, str], subject: str, sentence: str) -> None:
        if not sentence:
            warned.pop(subject, None)
            return
        warned[subject] = sentence
        self.note(sentence)

    def add(self, feature: str, figure: str, more: float = 1) -> None:
        """Add to a figure of a feature."""
        figures = self.totals.figures.setdefault(feature, {})
        figures[figure] = round(figures.get(figure, 0.0) + more, 3)

    def count_error(self, error: BaseException, now: float) -> None:
        """Count an internal error; too many in close succession are fatal."""
        failures = self._failures
        failures.append(now)
        while failures and failures[0] < now - self._options.errors_s:
            failures.popleft()
        if len(failures) >= self._options.errors_max:
            self.fatal(error)

    def count_modules(self, ran: Sequence[str], errors: Sequence[ModuleError], url: str, found: Sequence[str]) -> None:
        """Count what processing modules did on a page, and which rules for items `found`. A module that fails on
        every one of the first `module_failures_max` pages of a run is broken, and ends the crawl. 0.1 µs a module.
        """
        modules = self.totals.modules
        for name in ran:
            if name not in modules:
                modules[name] = ModuleCounts()
            modules[name].pages += 1
        for name in found:
            modules[name].found += 1
        for name, of_one in groupby(errors, lambda error: error.module):
            self._module_failed(name, list(of_one)[-1], url, counted=name in ran)

    def _module_failed(self, name: str, error: ModuleError, url: str, *, counted: bool) -> None:
        counts = self.totals.modules.setdefault(name, ModuleCounts())
        counts.pages += not counted  # `columns`: a value that does not fit.
        counts.failed += 1
        counts.timeouts += error.kind == "timeout"
        counts.died += error.kind == "died"
        counts.error = error.error[:ERROR_CHARACTERS_MAX]
        counts.url = url
        most = self._options.module_failures_max
        pages, failed = self._modules_before.get(name, (0, 0))
        failed_now = counts.failed - failed
        counted = counted and error.kind != INVALID  # The page's fault.
        if counted and most and failed_now >= most and failed_now == counts.pages - pages and self.failure is None:
            self.failure = CrawlFailedError(
                f"the processing module {name} failed on all {failed_now} pages of this run ({counts.error}, last on "
                f"{url}): fix it, leave it out, or go on with --set crawl.module_failures_max=0"
            )

    def fatal(self, error: BaseException) -> None:
        """End the crawl with an error, since it cannot go on."""
        self.fatal_error = self.fatal_error or error

    def raise_fatal(self) -> None:
        """Raise the error that ends the crawl, if there is one."""
        if self.fatal_error is not None:
            raise self.fatal_error

    def note_alike(self, sentence: str) -> None:
        """Count a seed by a sentence on its answer, which seeds of other sites may have too."""
        alike = self.totals.seeds.alike
        if sentence in alike or len(alike) < SEEDS_NAMED_MAX:
            alike[sentence] = alike.get(sentence, 0) + 1

    def note_elsewhere(self, referrer: str, url: str) -> None:
        """Count a page of another site to which a seed redirects."""
        seeds = self.totals.seeds
        seeds.elsewhere += 1
        if seeds.elsewhere == 1:
            seeds.elsewhere_first = f"{referrer} redirects to another site, {url}"
            self.note(f"{seeds.elsewhere_first}; {ELSEWHERE_REMEDY}")

    def note(self, sentence: str) -> None:
        """Add a note for the operator."""
        self.notes.append(sentence)
        for listener in self.listeners:
            listener(sentence)


RINGS = ((1.0, 300), (5.0, 120), (60.0, 180), (600.0, 144), (7200.0, 360))
"""Seconds between two points, and number of points: five minutes, ten minutes, three hours, a day, a month."""
RECENT_RING = 1
"""Index of the ring that `rates` uses."""


class Telemetry(msgspec.Struct, frozen=True):
    """Dependencies for reporting: the crawl's clock, logs and counts."""

    clock: Clock
    logs: Logs
    counters: CrawlCounters


class Point(NamedTuple):
    """The counts at a time."""

    at: float
    pages: int
    attempts: int
    wire_bytes: int
    pending: int


class Timeline:
    """Counts over time. Keeps at most 1,109 points for a crawl of any length: 130 KB. A point costs about 1 µs."""

    def __init__(self) -> None:
        # One more point, since a rate needs two.
        self._rings: list[deque[Point]] = [deque(maxlen=most + 1) for _, most in RINGS]

    def add(self, point: Point) -> None:
        """Add the current counts."""
        for (step_s, _), ring in zip(RINGS, self._rings, strict=True):
            if ring and point.at - ring[-1].at < step_s:
                return
            ring.append(point)

    def points(self) -> list[Point]:
        """Return all points in order of time, for each time those of the finest ring that reaches back to it."""
        found: list[Point] = []
        for ring in self._rings:
            reaches_to = found[0].at if found else float("inf")
            found[:0] = [point for point in ring if point.at < reaches_to]
        return found

    def rates(self) -> list[tuple[float, float, float]]:
        """Return times of the last ten minutes, with pages and bytes per second up to each."""
        return [
            (after.at, (after.pages - before.pages) / lasted_s, (after.wire_bytes - before.wire_bytes) / lasted_s)
            for before, after in pairwise(self._rings[RECENT_RING])
            if (lasted_s := after.at - before.at) > 0
        ]


KEPT_MAX = 20


class RecentList:
    """Keeps the last 20 successful attempts and the last 20 others. An attempt costs about 0.1 µs."""

    def __init__(self) -> None:
        self._last = 0
        self._succeeded: deque[tuple[int, PageRow]] = deque(maxlen=KEPT_MAX)
        self._others: deque[tuple[int, PageRow]] = deque(maxlen=KEPT_MAX)

    def add(self, row: PageRow) -> None:
        """Add a finished attempt."""
        self._last += 1
        kept = self._succeeded if row.outcome in SUCCEEDED else self._others
        kept.append((self._last, row))

    def since(self, after: int, most: int = KEPT_MAX) -> dict[str, object]:
        """Return the attempts after number `after`, at most `most` successful ones and `most` others, the oldest first;
        also how many were left out, and the number of the last attempt.
        """
        if after > self._last:
            after = 0  # The number is from another run.
        pages = _summaries(self._succeeded, after, most)
        errors = _summaries(self._others, after, most)
        left_out = self._last - after - len(pages) - len(errors)
        return {"last": self._last, "pages": pages, "errors": errors, "left_out": left_out}


def _summaries(rows: Iterable[tuple[int, PageRow]], after: int, most: int) -> list[dict[str, object]]:
    """Return attempts for display. Values from servers are plain text, and bounded."""
    found = [(number, row) for number, row in rows if number > after]
    return [
        {
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
        for number, row in found[-most:]
    ]
