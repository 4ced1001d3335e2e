"""Options of the crawl as a whole."""

from typing import Annotated, Literal

from gossamer.options import Key, Section, nearest

AUTO_MAX = 2_048
AUTO_FIRST = 64
"""Most requests at once that a crawl finds useful by itself, and those before anything is measured."""
Level = Literal["debug", "info", "warning", "error", "critical", "off"]
PACKAGES = (
    "api", "config", "control", "crawl", "fetch", "frontier", "process", "resolve", "robots", "scope", "seeds", "watch",
)  # fmt: skip


class LimitsOptions(Section, frozen=True):
    """When the crawl ends although URLs are left. None: no limit."""

    max_pages: Annotated[
        int | None, Key("Documents to fetch (outcome `fetched`), never exceeded", ge=1, basic=True, live=True)
    ] = None
    max_time_s: Annotated[float | None, Key("Seconds of all runs, with pauses", gt=0, basic=True, live=True)] = None
    max_bytes: Annotated[
        int | None,
        Key(
            "Bytes received, compressed as they came, including robots.txt requests and failures. Bodies under way are "
            "cut off, and their URLs stay queued; what the system has buffered meanwhile comes on top",
            ge=1,
            basic=True,
            live=True,
        ),
    ] = None


class WatchOptions(Section, frozen=True):
    """Watchdogs of the crawl and of its machine: see docs/how-to/monitoring.md."""

    look_s: Annotated[float, Key("Seconds between two checks", ge=0.05, le=60, live=True)] = 1.0
    stall_s: Annotated[
        float, Key("Seconds without progress of the event loop that count as a stall", ge=0.5, live=True)
    ] = 5.0
    commit_s_max: Annotated[float, Key("A commit that takes longer raises the alarm", gt=0, live=True)] = 10.0
    disk_free_bytes_min: Annotated[
        int, Key("With less free space on a disk the crawl pauses; with a quarter more it continues", ge=0, live=True)
    ] = 256 << 20
    memory_share_max: Annotated[
        float,
        Key("Share of memory.budget_bytes above which a crawl requests less and commits earlier", gt=0, live=True),
    ] = 0.95
    files_share_max: Annotated[
        float, Key("Share of the limit of open files above which the crawl sends fewer requests", gt=0, le=1, live=True)
    ] = 0.9
    clock_jump_s_min: Annotated[
        float, Key("A change of the system's clock by more than this is logged", gt=0, live=True)
    ] = 2.0


def _require_package(package: str) -> None:
    if package not in PACKAGES:
        hint = nearest(package, PACKAGES, f"there are {', '.join(PACKAGES)}")
        raise ValueError(f"no package {package!r} writes to the log{hint}")


class LogsOptions(Section, frozen=True):
    """Content and size of `logs/`: see docs/how-to/monitoring.md."""

    level: Annotated[Level, Key("Lowest level that is written", basic=True, live=True)] = "info"
    levels: Annotated[
        dict[str, Level],
        Key("Lowest level by package: fetch, resolve, robots, scope, seeds …", live=True, names=_require_package),
    ] = {}
    file_bytes_max: Annotated[int, Key("A new file starts before one gets longer than this", ge=1 << 10, live=True)] = (
        64 << 20
    )
    files_kept: Annotated[int, Key("Older log files that are kept", ge=0, le=100, live=True)] = 3


class CrawlOptions(Section, frozen=True):
    """How the crawl runs."""

    mode: Annotated[
        Literal["batch", "continuous", "offline"],
        Key(
            "batch: fetch each URL once, then end; continuous: visit pages repeatedly, without end; offline: fetch "
            "only the given URLs, and record links without following them",
            basic=True,
        ),
    ] = "batch"
    render: Annotated[
        Literal["never", "auto", "always"],
        Key(
            "Whether pages are rendered in a browser, to find what their scripts add: see [render]. auto: pages "
            "that gain from it, as samples show",
            basic=True,
        ),
    ] = "never"
    concurrency: Annotated[
        int | Literal["auto"],
        Key(
            "Requests at once; auto: as many as are useful, and memory permits", ge=1, le=16_384, basic=True, live=True
        ),
    ] = 256
    patience_s: Annotated[
        float | None,
        Key(
            "The crawl ends when all remaining URLs must wait for longer than this, in seconds (Retry-After, "
            "Crawl-delay, failing servers), or than your own longest delay; `resume` continues. none: it always "
            "waits, as a continuous crawl does",
            ge=0,
            basic=True,
            live=True,
        ),
    ] = 600.0
    commit_s: Annotated[float, Key("Longest time between two commits, in seconds", gt=0, le=3_600, live=True)] = 1.0
    commit_pages: Annotated[int, Key("Visits after which a commit comes early", ge=1, live=True)] = 2_000
    epoch_bytes_max: Annotated[int, Key("Memory of uncommitted work where a commit comes early", ge=1 << 20)] = 32 << 20
    stop_s: Annotated[float, Key("How long a stop waits for requests in flight, in seconds", ge=0, live=True)] = 10.0
    errors_max: Annotated[int, Key("Internal errors within errors_s that end the crawl", ge=1, live=True)] = 20
    module_failures_max: Annotated[
        int,
        Key(
            "Pages on which a processing module may fail from the start of a run without having worked on one; then "
            "the crawl stops and is saved. 0: never",
            ge=0,
            live=True,
        ),
    ] = 100
    errors_s: Annotated[float, Key("See errors_max", gt=0, live=True)] = 60.0
    request_s_max: Annotated[float, Key("Longest wait for a request of any protocol module", gt=0, live=True)] = 300.0
    process_s_max: Annotated[
        float, Key("Time to decode and process one page, in seconds, before it counts as hanging", gt=0)
    ] = 30.0
    process_copies: Annotated[
        bool,
        Key(
            "Process exact copies like other pages. false: a page whose content another URL had before, on any host, "
            "is archived and not processed any further: no modules, no links (Mercator); what is found depends on "
            "which copy came first. seen.content_scope is then `shard` unless it is set"
        ),
    ] = True
    follow_copies: Annotated[
        bool,
        Key(
            "Follow the links of an exact copy on the same host where they lead elsewhere than the original's; false: "
            "none of them, and what is found depends on which copy came first"
        ),
    ] = True

    @property
    def concurrency_max(self) -> int:
        """The most requests that may ever be under way at once."""
        return AUTO_MAX if self.concurrency == "auto" else self.concurrency

    def concurrency_of(self, found: int) -> int:
        """Return the requests at once of a crawl that begins; `found` is what it found useful before, 0 for nothing."""
        return (found or AUTO_FIRST) if self.concurrency == "auto" else self.concurrency
