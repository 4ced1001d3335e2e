"""Options of the crawl as a whole."""

from __future__ import annotations

import difflib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gossamer.model.live import BASIC, BASIC_LIVE, LIVE

Level = Literal["debug", "info", "warning", "error", "critical", "off"]
ROOMS = (
    "api",
    "config",
    "control",
    "crawl",
    "fetch",
    "frontier",
    "process",
    "resolve",
    "robots",
    "scope",
    "seeds",
    "watch",
)


class LimitsOptions(BaseModel):
    """Where the crawl ends even though there is more. None: no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    max_pages: int | None = Field(
        None, ge=1, description="Documents to fetch (outcome `fetched`), never exceeded", json_schema_extra=BASIC_LIVE
    )
    max_time_s: float | None = Field(
        None, gt=0, description="Seconds of crawling, over all runs", json_schema_extra=BASIC_LIVE
    )
    max_bytes: int | None = Field(
        None,
        ge=1,
        description="Bytes received, by robots.txt requests and failures too; what is under way is finished",
        json_schema_extra=BASIC_LIVE,
    )


class WatchOptions(BaseModel):
    """What the crawl watches of itself and of its machine: see docs/how-to/monitoring.md."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    look_s: float = Field(1.0, ge=0.05, description="Between two looks, in seconds", json_schema_extra=LIVE)
    stall_s: float = Field(
        5.0, ge=0.5, description="The event loop standing still for so long is a stall", json_schema_extra=LIVE
    )
    commit_s_max: float = Field(10.0, gt=0, description="A commit that takes longer is stuck", json_schema_extra=LIVE)
    disk_free_bytes_min: int = Field(
        256 << 20,
        ge=0,
        description="With less room on a disk the crawl pauses; with a quarter more than that it goes on",
        json_schema_extra=BASIC_LIVE,
    )
    memory_share_max: float = Field(
        0.95,
        gt=0,
        description="Share of memory.budget_bytes from which on requests become fewer and commits earlier",
        json_schema_extra=LIVE,
    )
    files_share_max: float = Field(
        0.9, gt=0, le=1, description="Share of the open files allowed from which on requests become fewer",
        json_schema_extra=LIVE,
    )  # fmt: skip
    clock_jump_s_min: float = Field(
        2.0, gt=0, description="Setting the system's clock by more than this is told", json_schema_extra=LIVE
    )


class LogsOptions(BaseModel):
    """What stands in `logs/`, and how much: see docs/how-to/monitoring.md."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    level: Level = Field("info", description="Least level that is written", json_schema_extra=BASIC_LIVE)
    levels: dict[str, Level] = Field(
        default_factory=dict,
        description="The same by room: fetch, resolve, robots, scope, process, seeds, watch, config …",
        json_schema_extra=LIVE,
    )
    file_bytes_max: int = Field(
        64 << 20, ge=1 << 10, description="A file that would be longer is begun anew", json_schema_extra=LIVE
    )
    files_kept: int = Field(3, ge=0, le=100, description="Files before the one that grows", json_schema_extra=LIVE)

    @field_validator("levels")
    @classmethod
    def _stages(cls, levels: dict[str, Level]) -> dict[str, Level]:
        for room in levels:
            if room not in ROOMS:
                near = difflib.get_close_matches(room, ROOMS, n=1)
                raise ValueError(
                    f"no room {room!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(ROOMS)}")
                )
        return levels


class CrawlOptions(BaseModel):
    """How the shard runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    mode: Literal["batch", "continuous", "offline"] = Field(
        "batch",
        description="batch: each URL once, then the end; continuous: pages again and again, without end; offline: what "
        "is given, links recorded and none followed",
        json_schema_extra=BASIC,
    )
    concurrency: int = Field(256, ge=1, le=16_384, description="Requests at once", json_schema_extra=BASIC_LIVE)
    patience_s: float | None = Field(
        600.0,
        ge=0,
        description="The crawl ends when all that is left waits for longer than this, in seconds (Retry-After, "
        "Crawl-delay, failing servers), or than your own longest delay; `resume` continues. none: it always waits, as "
        "a continuous crawl does",
        json_schema_extra=BASIC_LIVE,
    )
    commit_s: float = Field(
        1.0, gt=0, description="Longest time between two commits, in seconds", json_schema_extra=BASIC_LIVE
    )
    commit_pages: int = Field(
        2_000, ge=1, description="Visits after which a commit comes early", json_schema_extra=LIVE
    )
    epoch_bytes_max: int = Field(
        32 << 20, ge=1 << 20, description="Memory of what waits for a commit, at which the commit comes early"
    )
    stop_s: float = Field(
        10.0, ge=0, description="How long a stop waits for what is in flight, in seconds", json_schema_extra=BASIC_LIVE
    )
    errors_max: int = Field(
        20, ge=1, description="Errors of our own within errors_s that end the crawl", json_schema_extra=LIVE
    )
    module_failures_max: int = Field(
        100,
        ge=0,
        description="Pages on which a processing module may fail from the start of a run without having worked on one; "
        "then the crawl stops and is saved. 0: never",
        json_schema_extra=LIVE,
    )
    errors_s: float = Field(60.0, gt=0, description="See errors_max", json_schema_extra=LIVE)
    request_s_max: float = Field(
        300.0, gt=0, description="No request is waited for longer, whatever its module says", json_schema_extra=LIVE
    )
    process_s_max: float = Field(30.0, gt=0, description="Time to decode and process one page before it is suspected")
    process_copies: bool = Field(
        True,
        description="Process exact copies like other pages. false: a page whose content another URL had before, on any "
        "host, is archived and not processed any further: no modules, no links (Mercator); what is found depends on "
        "which copy came first. seen.content_scope is then `shard` unless it is set",
        json_schema_extra=BASIC,
    )
    follow_copies: bool = Field(
        True,
        description="Follow the links of an exact copy on the same host where they lead elsewhere than the original's; "
        "false: none of them, and what is found depends on which copy came first",
        json_schema_extra=BASIC,
    )
