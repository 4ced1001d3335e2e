"""Options of the crawl as a whole."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class LimitsOptions(BaseModel):
    """Where the crawl ends even though there is more. None: no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_pages: int | None = Field(None, ge=1, description="Documents to fetch (outcome `fetched`), never exceeded")
    max_time_s: float | None = Field(None, gt=0, description="Seconds of crawling, over all runs")
    max_bytes: int | None = Field(None, ge=1, description="Bytes received; what is under way is finished")


class CrawlOptions(BaseModel):
    """How the shard runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["batch", "continuous"] = Field(
        "batch", description="batch: each URL once, then the end; continuous: pages again and again, without end"
    )
    concurrency: int = Field(256, ge=1, le=16_384, description="Requests at once")
    commit_s: float = Field(1.0, gt=0, description="Longest time between two commits, in seconds")
    commit_pages: int = Field(2_000, ge=1, description="Visits after which a commit comes early")
    epoch_bytes_max: int = Field(
        40 << 20, ge=1 << 20, description="Memory of what waits for a commit, at which the commit comes early"
    )
    stop_s: float = Field(30.0, ge=0, description="How long a stop waits for what is in flight, in seconds")
    errors_max: int = Field(20, ge=1, description="Errors of our own within errors_s that end the crawl")
    errors_s: float = Field(60.0, gt=0, description="See errors_max")
    request_s_max: float = Field(300.0, gt=0, description="No request is waited for longer, whatever its module says")
    process_s_max: float = Field(30.0, gt=0, description="Time to decode and process one page before it is suspected")
    follow_copies: bool = Field(
        True,
        description="Follow the links of an exact copy on the same host where they lead elsewhere than the original's; "
        "false: none of them, and what is found depends on which copy came first",
    )
