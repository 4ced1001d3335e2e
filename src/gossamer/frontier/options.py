"""Options of the frontier: how polite, how many, how often again."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Preset = Literal["polite", "gentle", "broad", "weak", "own"]


class PolitenessOptions(BaseModel):
    """How long a host is left alone. A preset fills every key that is not given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    preset: Preset = Field("polite", description="polite, gentle, broad, weak or own; sets the keys below")
    delay_s_min: float | None = Field(None, ge=0, description="Least rest of a host after a request, in seconds")
    delay_s_max: float | None = Field(None, ge=0, description="Most rest that our own reckoning asks for, in seconds")
    delay_factor: float | None = Field(None, ge=0, description="Rest as a multiple of the mean of five fetch times")
    per_host: int | None = Field(None, ge=1, le=256, description="Requests at once to one host")
    per_address: int | None = Field(None, ge=0, description="Requests at once to one IP address; 0 for no limit")
    address_delay_s: float | None = Field(None, ge=0, description="Least rest of an IP address, in seconds")
    per_site: int = Field(
        0, ge=0, description="Requests at once to all hosts of one registrable domain; 0 for no limit"
    )
    site_delay_s: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="Least rest of a registrable domain after a request, in seconds"
    )
    crawl_delay_s_max: float = Field(300.0, ge=0, description="A longer Crawl-delay closes the host")
    retry_after_s_max: float = Field(86_400.0, ge=0, description="A longer Retry-After closes the host")
    backoff_s_first: float = Field(30.0, ge=0, description="Rest after a 429 or 503 without Retry-After; doubles")
    backoff_s_max: float = Field(3_600.0, ge=0, description="Longest rest after a 429 or 503 without Retry-After")


class FrontierOptions(BaseModel):
    """How much is kept ready, and what becomes of failures."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bench_hosts_max: int = Field(100_000, ge=1, description="Hosts in memory at once, at the most")
    bench_hosts_first: int = Field(
        1_000, ge=1, description="Hosts in memory from the beginning; more come when requests wait for hosts"
    )
    bench_bytes_max: int = Field(64 << 20, ge=1 << 20, description="Memory of those hosts and their URLs")
    window_s_max: float = Field(
        180.0, gt=0, description="URLs of one host in memory for so many seconds of its visits, at least one"
    )
    window_urls_max: int = Field(16, ge=1, description="URLs of one host in memory at once")
    level_bias: float = Field(2.0, ge=1, description="How much likelier a level is than the next less urgent one")
    records_cached_max: int = Field(20_000, ge=100, description="Records of resting hosts kept in memory")
    sleep_s_min: float = Field(120.0, ge=0, description="A host that rests longer than this leaves the memory")
    attempts_max: int = Field(3, ge=1, description="Requests for one URL before its failure is final")
    retry_s_first: float = Field(30.0, ge=0, description="Wait before a URL's second attempt; doubles")
    retry_s_max: float = Field(3_600.0, ge=0, description="Longest wait before another attempt")
    host_failures_max: int = Field(5, ge=1, description="Failures of a host in a row before it is put to sleep")
    host_sleep_s_first: float = Field(60.0, ge=0, description="First sleep of a failing host; doubles")
    host_sleep_s_max: float = Field(3_600.0, ge=0, description="Longest sleep of a failing host")
    host_sleeps_max: int = Field(5, ge=0, description="Sleeps in a row before a failing host is closed")
