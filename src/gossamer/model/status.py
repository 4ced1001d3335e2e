"""Status: counts, rates and state of a crawl. Its fields are in the status of one shard, of all, and in the API."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gossamer.model.decodable import decodable
from gossamer.model.standing import Awaited, Lasting
from gossamer.model.words import counted, duration, shell_word, size

Together = Literal["total", "most"]
"""How the values of several shards become one: added up, by their parts (`model.counters.total`); the largest."""
DETAIL_COST_MAX = 0.01
"""Largest share of the time for looking through the hosts in memory."""
DETAIL_S_MAX = 30.0
RECENT_CHARACTERS_MAX = 300
"""Characters of a title, an error and the like in lists of the last attempts."""


def _meta(together: Together | None = None, says: str | None = None) -> Meta:
    return Meta(description=says, extra={"together": together})


class Alarm(msgspec.Struct, frozen=True):
    """Something that people should know while it lasts."""

    name: str
    """loop, commit, disk, open_files, memory, clock or files."""
    since: float
    """Wall time."""
    says: str
    """A sentence: what is the matter, what the crawl does about it, what ends it."""


class WaitingReason(msgspec.Struct, frozen=True):
    """Why nothing happens."""

    kind: str
    """operator, disk, commit, reader, limit, uploads, answer, lookup or host."""
    says: str
    """For people."""
    host: str = ""
    since: float | None = None
    until: float | None = None
    """Wall time at which the crawl continues by itself; None: when that happens is not up to the crawl."""


class Closing(msgspec.Struct, frozen=True, kw_only=True):
    """A host to which no more requests are sent."""

    host: str
    reason: str


class FailingProxy(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy of a pool, by label and address, that is left out since its first failure in a row."""

    proxy: str
    since: float
    until: float
    reason: str


class SeedState(msgspec.Struct, frozen=True):
    """A seed that was not fetched."""

    url: str
    state: str
    reason: str


class SeedsState(msgspec.Struct, frozen=True):
    """The URLs that a crawl begins with."""

    count: int
    any_fetched: bool
    not_fetched: list[SeedState]
    """Those of the first ones that are not fetched, or not yet."""


class ShardHealth(msgspec.Struct, kw_only=True):
    """The state of one shard. Of one shard among several there are also some of its counts."""

    shard: int
    state: str
    epoch: int | UnsetType = UNSET
    commits: int | UnsetType = UNSET
    commit_s: float | UnsetType = UNSET
    commit_s_total: float | UnsetType = UNSET
    commit_under_way_s: float | UnsetType = UNSET
    commit_stage: str | UnsetType = UNSET
    loop_lag_s: float | UnsetType = UNSET
    memory_bytes: int | UnsetType = UNSET
    open_files: int | UnsetType = UNSET
    alarms: list[str] | UnsetType = UNSET
    pages: int | UnsetType = UNSET
    queued: int | UnsetType = UNSET
    in_flight: int | UnsetType = UNSET
    pages_s: float | UnsetType = UNSET
    wire_bytes: int | UnsetType = UNSET
    runs: int | UnsetType = UNSET
    node: str | UnsetType = UNSET
    deaths: int | UnsetType = UNSET
    heard_s: Annotated[float | UnsetType, _meta(says="Age of its figures in seconds, while it is silent.")] = UNSET
    failing_s: Annotated[float | UnsetType, _meta(says="For how long it has failed to run, while it does.")] = UNSET
    failure: Annotated[str | UnsetType, _meta(says="Why it fails to run, while it does.")] = UNSET
    idle: Annotated[bool | UnsetType, _meta(says="It has no URLs: no site of the crawl is its own.")] = UNSET


class MachineState(msgspec.Struct, kw_only=True):
    """A machine of a cluster: what its shards use of it."""

    machine: str
    address: str = ""
    shards: list[int] = []
    pages_s: float = 0.0
    memory_bytes: int = 0
    disk_free_bytes: int | None = None
    heard_s: Annotated[float, _meta(says="Age of the oldest figures in seconds, while a shard is silent.")] = 0.0


class SandboxState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the kernel bounds what the process that reads pages can open."""

    in_force: bool
    says: str = ""
    """Why it is not."""
    enforced: tuple[str, ...] = ()
    """files, truncation, devices, signals, abstract_sockets, sockets: what the kernel of this machine can bound."""


@decodable
class Status(msgspec.Struct, kw_only=True):
    """Counts, rates and state of a crawl. At the start only `state` is certain; UNSET fields are omitted."""

    state: Annotated[str, _meta(says="starting, running, paused, stopping, finished, stopped or failed.")]
    pages: Annotated[int, _meta("total")] = 0
    attempts: Annotated[int, _meta("total")] = 0
    answers: Annotated[int, _meta("total", "Requests that a host answered, those for robots.txt included.")] = 0
    discovered: Annotated[int, _meta("total")] = 0
    terminal: Annotated[int, _meta("total", "URLs that are done with.")] = 0
    terminal_outcomes: Annotated[dict[str, int], _meta("total")] = {}
    outcomes: Annotated[dict[str, int], _meta("total")] = {}
    wire_bytes: Annotated[int, _meta("total")] = 0
    body_bytes: Annotated[int, _meta("total")] = 0
    media_types: Annotated[dict[str, int], _meta("total")] = {}
    modules: Annotated[dict[str, Any], _meta(says="What each processing module did.")] = {}
    text_methods: Annotated[
        dict[str, int],
        _meta("total", "Pages by how their text was found: main, visible (no main text), plain, document, image."),
    ] = {}
    rendered: Annotated[
        dict[str, int], _meta("total", "Pages that were to be rendered, by what became of it: rendered, or why not.")
    ] = {}
    rendering: Annotated[
        dict[str, float],
        _meta(
            "total",
            "cpu_s of browsers, links_gained, resources_requested, resources_reused, refused_REASON; with crawl.render "
            "= auto pages_signal, pages_sample and pages_gain by why they were rendered, pages_budget: those left out.",
        ),
    ] = {}
    cost: Annotated[dict[str, float], _meta("total", "Over all runs: cpu_STAGE_s, requests, memory_bytes_max.")] = {}
    disk_bytes: Annotated[int, _meta("most", "What the crawl's directory takes; of a running one in details.")] = 0
    levels: Annotated[dict[str, int], _meta("total", "Queued URLs by level, 0 the most urgent.")] = {}
    elapsed_s: Annotated[float, _meta("most")] = 0.0
    hosts_known: Annotated[int, _meta("total")] = 0
    hosts_left: Annotated[int, _meta("total")] = 0
    runs: Annotated[int, _meta("most")] = 0
    workers: int = 1
    warnings: list[str] = []
    ended: Annotated[str, _meta(says="How it ended, or failed; empty while it has not.")] = ""
    ended_says: Annotated[str, _meta(says="The same for people: limit of 100 pages reached.")] = ""
    awaited: Annotated[list[Awaited], _meta("total", "Hosts that the crawl did not wait for.")] = []
    lasting: Annotated[
        list[Lasting], _meta("total", "Hosts that outlast all others; of a running one in details.")
    ] = []
    max_pages: Annotated[int | None, _meta("most")] = None
    max_time_s: Annotated[float | None, _meta("most")] = None
    max_bytes: Annotated[int | None, _meta("most")] = None
    damage: Annotated[list[dict[str, Any]], _meta("total", "Files that are missing or cut short.")] = []
    seeds: Annotated[SeedsState | None, _meta("total")] = None
    in_flight: Annotated[int, _meta("total")] = 0
    queued: Annotated[int, _meta("total")] = 0
    hosts_active: Annotated[int, _meta("total")] = 0
    budget_round: Annotated[int | UnsetType, _meta("most", "Only where there are budgets.")] = UNSET
    hosts_deferred: Annotated[int | UnsetType, _meta("total", "Only where there are budgets.")] = UNSET
    links_held: Annotated[
        int | UnsetType, _meta("total", "Links that await the duplicate check; only with seen.backend = diskmerge.")
    ] = UNSET
    pages_s: Annotated[float, _meta("total")] = 0.0
    bytes_s: Annotated[float, _meta("total")] = 0.0
    epoch: Annotated[int, _meta("most", "The last commit.")] = 0
    rejected: Annotated[dict[str, int], _meta("total", "Links by the filter that rejected them.")] = {}
    traps: list[str] = []
    mode: str = "batch"
    revisits: Annotated[dict[str, Any] | None, _meta(says="In a continuous crawl.")] = None
    waiting_for: Annotated[str, _meta(says="When nothing happens: for what, and until when.")] = ""
    waiting: WaitingReason | None = None
    alarms: Annotated[list[Alarm], _meta("total")] = []
    counters: Annotated[dict[str, float], _meta("total", "DNS lookups and caches, in this process.")] = {}
    watch: Annotated[dict[str, Any], _meta(says="What it uses of the machine; empty when it does not run.")] = {}
    shards: list[ShardHealth] = []
    machines: Annotated[list[MachineState] | UnsetType, _meta(says="Of a cluster.")] = UNSET
    concurrency: Annotated[int, _meta("total")] = 0
    concurrency_says: Annotated[str | UnsetType, _meta(says="With crawl.concurrency = auto: of how many, why.")] = UNSET
    proxy_answers: Annotated[dict[str, int], _meta("total", "Through each proxy of a pool, by label and address.")] = {}
    proxy_failures: Annotated[dict[str, int], _meta("total", "Of proxies of a pool, by label and address.")] = {}
    proxies_failing: Annotated[list[FailingProxy], _meta("total", "Those of a pool that are left out now.")] = []
    closings: Annotated[list[Closing], _meta("total")] = []
    uploads: Annotated[dict[str, Any] | None, _meta("total", "To an object store.")] = None
    eta_s: float | None = None
    course: Annotated[list[tuple[float, float, float]] | UnsetType, _meta(says="Unix time, pages/s, bytes/s.")] = UNSET
    hosts: Annotated[dict[str, Any] | UnsetType, _meta(says="Hosts in memory, and what limits them.")] = UNSET
    changes: Annotated[list[dict[str, Any]] | UnsetType, _meta(says="Configuration that changed while it ran.")] = UNSET
    subscriptions: Annotated[list[dict[str, Any]] | UnsetType, _meta(says="To hubs.")] = UNSET
    mentions: Annotated[dict[str, int] | UnsetType, _meta(says="Notices of links (Webmention), by state.")] = UNSET
    sandbox: Annotated[SandboxState | None, _meta(says="Of `gossamer crawl`, while it runs: process.sandbox.")] = None
    bytes_between_shards: int | UnsetType = UNSET
    frames_between_shards: int | UnsetType = UNSET
    partitions_balanced: Annotated[
        int | UnsetType, _meta(says="That moved from busy shards to others (cluster.rebalance).")
    ] = UNSET

    def as_object(self) -> dict[str, object]:
        """Return it as JSON values. About 20 µs."""
        found: dict[str, object] = msgspec.to_builtins(self)
        return found


class Limit(NamedTuple):
    """A limit at which a crawl ends."""

    measured: str
    """The field of `Status` that it bounds."""
    bound: str
    """The field that has the bound."""
    option: str
    """Raises it."""
    words: Callable[[float], str]
    """Returns the bound for people."""

    def says(self, status: Status) -> str:
        """Return the limit with its bound, for people."""
        return f"limit of {self.words(getattr(status, self.bound))}"


LIMITS = (
    Limit("pages", "max_pages", "--max-pages", partial(counted, noun="page")),
    Limit("wire_bytes", "max_bytes", "--max-bytes", size),
    Limit("elapsed_s", "max_time_s", "--max-time", duration),
)


def limit_reached(status: Status) -> Limit | None:
    """Return the limit at which a crawl ended; None for another end, and where the figures do not show which."""
    if status.ended != "limit":
        return None
    for limit in LIMITS:
        bound = getattr(status, limit.bound)
        if bound is not None and getattr(status, limit.measured) >= bound:
            return limit
    return None


def limit_share(status: Status) -> float | None:
    """Return how much of the nearest limit is used up, 1 at most; None without a limit."""
    shares = [getattr(status, one.measured) / most for one in LIMITS if (most := getattr(status, one.bound))]
    return min(1.0, max(shares)) if shares else None


def left_s(status: Status) -> float | None:
    """Return the seconds until the nearest limit at the present rates; None without a limit."""
    left = []
    for limit, rate in zip(LIMITS, (status.pages_s, status.bytes_s, 1.0), strict=True):
        if (bound := getattr(status, limit.bound)) is not None and rate:
            left.append((bound - getattr(status, limit.measured)) / rate)
    return max(0.0, min(left)) if left else None


def is_resumable(status: Mapping[str, object]) -> bool:
    """Return whether a crawl that does not run would go on: of one that finished, whether anything is left."""
    is_left = status.get("queued") or status.get("links_held") or status.get("mode") == "continuous"
    return status.get("state") in ("stopped", "failed") or (status.get("state") == "finished" and bool(is_left))


def resume_command(directory: str, status: Status) -> tuple[str, str]:
    """Return the command that continues a crawl, and what follows `continues`: a limit would end it again."""
    limit = limit_reached(status)
    command = f"gossamer resume {shell_word(directory)}"
    return (f"{command} {limit.option} N", " with a higher limit N") if limit is not None else (command, "")


@cache
def fields_together(how: Together) -> tuple[str, ...]:
    """Return the fields that several shards combine in one way."""
    hints = get_type_hints(Status, include_extras=True)
    metas = ((name, meta) for name, hint in hints.items() for meta in get_args(hint) if isinstance(meta, Meta))
    return tuple(name for name, meta in metas if (meta.extra or {}).get("together") == how)


def detail_pause_s(took_s: float) -> float:
    """Return how long after a detailed status that took `took_s` the next may be made."""
    return min(took_s / DETAIL_COST_MAX, DETAIL_S_MAX)


def read_status(fields: Mapping[str, object]) -> Status:
    """Return a status that came as JSON; what is missing has its default. About 5 µs."""
    return msgspec.convert({"state": "", **fields}, Status)
