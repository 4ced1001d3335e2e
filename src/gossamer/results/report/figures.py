"""Figures: what a report says, as values."""

from collections.abc import Mapping

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.standing import Awaited, Lasting
from gossamer.model.status import SeedState


class Count(msgspec.Struct, frozen=True):
    """How often something occurs."""

    name: str
    count: int
    share: float
    """Of the whole that the list is about, 0 to 1."""


class HostFigures(msgspec.Struct, frozen=True):
    """One host's part in the crawl."""

    host: str
    attempts: int
    fetched: int
    wire_bytes: int
    mean_fetch_s: float


class Domain(msgspec.Struct, frozen=True):
    """A top-level domain's part in the crawl."""

    name: str
    hosts: int
    pages: int
    """Fetched."""


class Trouble(msgspec.Struct, frozen=True):
    """Attempts that ended in one kind of error, with examples."""

    outcome: str
    kind: str
    """The error's text with its numbers left out, or the HTTP status."""
    count: int
    url: str
    error: str
    more: tuple[str, ...] = ()
    """URLs of more examples."""


class TimelineStep(msgspec.Struct, frozen=True):
    """Visits that ended within one step of time."""

    at_s: float
    """The step's begin, in seconds since the first attempt."""
    attempts: int
    pages: int
    wire_bytes: int
    commit_s: float = 0.0
    """The longest commit."""
    queued: int = 0
    """URLs that were not finished at its last commit, or at the one before the step."""


class Silence(msgspec.Struct, frozen=True):
    """A time in which no attempt ended: a stall, a pause, or waiting for the only hosts that are left."""

    at_s: float
    """Since the first attempt."""
    lasted_s: float


class Commits(msgspec.Struct, frozen=True):
    """How long commits took, in seconds; the percentile is an estimate (t-digest)."""

    count: int = 0
    mean_s: float = 0.0
    p99_s: float = 0.0
    max_s: float = 0.0
    cut_max_s: float = 0.0
    """The longest that one stalled the crawl itself; the rest goes on beside it."""


class TimelineFigures(msgspec.Struct, frozen=True):
    """How the crawl went, over time."""

    step_s: float = 0.0
    steps: tuple[TimelineStep, ...] = ()
    """All of one length and in order, empty ones included."""
    silences: tuple[Silence, ...] = ()
    """The longest, longest first; shorter ones than `silence_s_min` are not looked for."""
    silent_s: float = 0.0
    """All silences together."""
    silence_s_min: float = 0.0
    commits: Commits = Commits()


class Bucket(msgspec.Struct, frozen=True):
    """Count sizes from `least` to below twice that, in order without gaps; `least` 0 is size 0 alone."""

    least: int
    count: int
    sum: int
    """Of their sizes."""


class FetchTimes(msgspec.Struct, frozen=True):
    """How long fetches took, in seconds; percentiles are estimates (t-digest), the rest is exact."""

    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    max: float = 0.0


class Gaps(msgspec.Struct, frozen=True):
    """Seconds from the end of one request to the start of the next to the same host, or the same address.

    Of rows in `pages` alone: requests for robots.txt lie between some of them.
    """

    counted: int = 0
    least: float = 0.0
    median: float = 0.0
    """Within a twelfth of it."""
    mean: float = 0.0
    overlaps: int = 0
    """Requests that began before the one before them had ended."""
    at_once_max: int = 0
    """The most requests at the same time; 1 without overlaps."""


class PolitenessSummary(msgspec.Struct, frozen=True):
    """URLs that robots.txt forbade, and delays between requests."""

    robots_denied: int = 0
    robots_denied_hosts: int = 0
    robots_unreachable: int = 0
    excluded: int = 0
    busy: int = 0
    """Answers 429 and 503."""
    host_gaps: Gaps = Gaps()
    address_gaps: Gaps = Gaps()


class Uses(msgspec.Struct, frozen=True):
    """Whether owners allow a use: pages by their answer, of those that were fetched and those that were not kept."""

    purpose: str
    allowed: int
    refused: int
    unknown: int


class CopyFigures(msgspec.Struct, frozen=True):
    """Contents that came more than once."""

    url: str
    """URL of the original."""
    copies: int
    body_bytes: int
    """Of all copies together."""


class FailedModule(msgspec.Struct, frozen=True):
    """A processing module that failed on pages."""

    name: str
    pages: int
    """That it was given."""
    failed: int
    timeouts: int
    """Among the failures."""
    died: int
    """Among the failures: its process ended."""
    error: str
    """The last one."""
    url: str
    """The page of the last one."""
    unmatched: str = ""
    """A sentence about a rule for items that found none."""


class Cache(msgspec.Struct, frozen=True):
    """How often what was looked for was in memory."""

    name: str
    hits: int
    misses: int
    share: float
    """Hits of all."""


class Dns(msgspec.Struct, frozen=True):
    """Lookups by name servers."""

    lookups: int = 0
    failures: int = 0
    lasted_s: float = 0.0
    """All lookups together."""
    mean_s: float = 0.0
    share_of_time: float = 0.0
    """Of the time of all lookups and fetches together."""
    within_10_ms: int = 0
    within_100_ms: int = 0
    within_1_s: int = 0


class Taken(msgspec.Struct, frozen=True):
    """Resources for a million pages."""

    name: str
    core_hours: float
    price: float | None = None
    """None: not published."""


class CostFigures(msgspec.Struct, frozen=True):
    """Resources of its machine that the crawl used, over all runs."""

    cpu_s: dict[str, float] = {}
    cpu_s_each: float = 0.0
    """For a page fetched."""
    requests: int = 0
    disk_bytes: int = 0
    memory_bytes_max: int = 0
    million_pages: tuple[Taken, ...] = ()


@decodable
class Report(msgspec.Struct, frozen=True):
    """A crawl in figures. Lists are in falling order. Counts are complete up to 10,000 rows; behind these, one row
    `(other)` has the rest. Lists of hosts, copies and errors name the first ones alone.
    """

    warnings: tuple[str, ...] = ()
    """Warnings for the operator, in sentences, as in the status."""
    damage: tuple[str, ...] = ()
    """A line for each file that is known to be lost: the figures lack what it holds."""
    incomplete: str = ""
    """Sentence about missing data; empty if none is known to be missing."""
    attempts: int = 0
    """Rows of `pages`."""
    attempts_counted: int | None = None
    """Attempts that the crawl itself counted up to now; None if its state was not at hand."""
    fetched: int = 0
    """Attempts with the outcome `fetched`: each download counts."""
    repeated: int = 0
    """Attempts that were not the first of their visit."""
    visits: int = 0
    """A URL's first visit and its revisits, each with all its attempts."""
    urls: int = 0
    """URLs with an attempt, by key."""
    urls_fetched: int = 0
    """URLs that were fetched at least once."""
    urls_revisited: int = 0
    """URLs with more than one visit."""
    hosts: int = 0
    """Names with an attempt, whether they exist or not."""
    hosts_answered: int = 0
    """Of these, hosts that answered a request for a page."""
    sites: int = 0
    links: int = 0
    """Rows of `links`."""
    duplicates: int = 0
    """Pages whose content was seen before."""
    duplicate_bytes: int = 0
    """Decoded content of those."""
    near_duplicates: int = 0
    """Pages marked as nearly the same as another."""
    trapped: int = 0
    truncated: int = 0
    truncated_share: float = 0.0
    """Of pages fetched, those that were cut."""
    body_bytes_mean: float = 0.0
    """Decoded size of a page fetched."""
    local_links_share: float = 0.0
    """Of links, those that stay on the host and port of their page."""
    cost: CostFigures = CostFigures()
    wire_bytes: int = 0
    """Received, heads included."""
    body_bytes: int = 0
    """Decoded content."""
    warc_bytes: int = 0
    """Response and revisit records, compressed."""
    begun_at: float | None = None
    """Wall time in seconds of the first attempt."""
    ended_at: float | None = None
    ended: str = ""
    """How the last run ended, as in the status; empty while it has not, and where the state was not at hand."""
    ended_says: str = ""
    """The same for people."""
    duration_s: float = 0.0
    """From the first attempt to the end of the last, pauses included."""
    crawling_s: float = 0.0
    """Time of all runs, as in the status; 0 where the state was not at hand, or the crawl was imported."""
    pages_per_s: float = 0.0
    """Fetched, by `crawling_s`, or else by `duration_s`."""
    bits_per_s: float = 0.0
    """Received, by the same time."""
    course: TimelineFigures = TimelineFigures()
    fetch_s: FetchTimes = FetchTimes()
    outcomes: tuple[Count, ...] = ()
    """Of attempts."""
    url_outcomes: tuple[Count, ...] = ()
    """The last of each URL; share of URLs."""
    statuses: tuple[Count, ...] = ()
    media_types: tuple[Count, ...] = ()
    """Of pages fetched; share of those."""
    depths: tuple[Count, ...] = ()
    """By depth, from 0."""
    text_methods: tuple[Count, ...] = ()
    """Of pages fetched: how their text was found, where it was looked for."""
    rendered: tuple[Count, ...] = ()
    """Of pages fetched that were to be rendered: what became of it."""
    render_reasons: tuple[Count, ...] = ()
    """Of pages fetched: why each was rendered or, over budget, not, where `crawl.render` is `auto`."""
    rendering: dict[str, float] = {}
    """Costs and gains of rendering, as in the status. Empty without the state."""
    proxies: tuple[tuple[str, int, int], ...] = ()
    """Label and address of each proxy of a pool, its answers, and its failures. Empty without the state."""
    link_types: tuple[Count, ...] = ()
    """Share of all links."""
    seeds_not_fetched: tuple[SeedState, ...] = ()
    """The first seeds, where the crawl ended and not one of them could be fetched."""
    awaited: tuple[Awaited, ...] = ()
    """Where the crawl ended by `crawl.patience_s`: hosts that it did not wait for, the next requests first."""
    lasting: tuple[Lasting, ...] = ()
    """Hosts whose URLs take longer than those of all others, the longest first."""
    idle_shards: tuple[int, ...] = ()
    """Shards without any URL: no site of the crawl is theirs. Empty where the state was not at hand."""
    rejected: tuple[Count, ...] = ()
    """Links that each filter refused; share of all refused. Empty when the state was not at hand."""
    failed_modules: tuple[FailedModule, ...] = ()
    """Processing modules that failed, by failures. Empty when the state was not at hand."""
    document_sizes: tuple[Bucket, ...] = ()
    """Pages fetched, by bytes of decoded content."""
    hosts_by_pages: tuple[Bucket, ...] = ()
    """Hosts, by pages fetched."""
    hosts_by_bytes: tuple[Bucket, ...] = ()
    """Hosts, by bytes received."""
    domains: tuple[Domain, ...] = ()
    """Top-level domains, by pages."""
    top_hosts: tuple[HostFigures, ...] = ()
    """By pages fetched."""
    slowest_hosts: tuple[HostFigures, ...] = ()
    """By mean fetch time, of hosts with at least three fetches."""
    trapped_hosts: tuple[Count, ...] = ()
    """By URLs cut off as a trap's; share of all of them."""
    politeness: PolitenessSummary = PolitenessSummary()
    uses: tuple[Uses, ...] = ()
    """For each purpose; empty if no page has a statement."""
    statements: tuple[Count, ...] = ()
    """Pages with a statement of each kind, such as `robots.txt Content-Usage`; share of pages fetched."""
    dns: Dns = Dns()
    caches: tuple[Cache, ...] = ()
    link_checks: tuple[Count, ...] = ()
    """Links submitted, by what ended their duplicate check; share of those. A link that waited counts once."""
    copied: tuple[CopyFigures, ...] = ()
    troubles: tuple[Trouble, ...] = ()


class Past(msgspec.Struct, frozen=True):
    """Figures of a crawl that does not run, in the form in which a running one reports them."""

    points: list[list[float | int | None]]
    """Counts over time: Unix time, pages, attempts, bytes received, and URLs queued: None where none were recorded."""
    hosts: dict[str, object]
    pages: list[dict[str, object]]
    """The last successful attempts, the oldest first; their numbers give the order."""
    errors: list[dict[str, object]]
    """The last failed attempts."""


def modules_with_failures(modules: Mapping[str, Mapping[str, object]]) -> list[FailedModule]:
    """Return the modules of a status that failed, and the rules for items that found nothing."""
    found = [msgspec.convert({"name": name, **one}, FailedModule) for name, one in modules.items()]
    return [one for one in found if one.failed or one.unmatched]


def as_json(report: Report) -> str:
    """Return the report as JSON, indented, fields named as here."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
