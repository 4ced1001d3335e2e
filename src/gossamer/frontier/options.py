"""Options of the frontier: how polite, how many, how often again."""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from gossamer.model.options import BASIC, BASIC_LIVE, LIVE, Section
from gossamer.url.site import HOST_BYTES_MAX, site_of

_is_host = re.compile(rf"(?!.{{{HOST_BYTES_MAX + 1}}})(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])").fullmatch
"""As `Url.host` has it: no port, and other alphabets in their ASCII form."""

DELAY_S_MAX = 31_536_000.0
"""A year: no host waits longer, and instants can be written."""

Preset = Literal["polite", "gentle", "broad", "weak", "own"]


class PolitenessOptions(Section):
    """How long a host is left alone. A preset fills every key that is not given."""

    preset: Preset = Field(
        "polite", description="polite, gentle, broad, weak or own; sets the keys below", json_schema_extra=BASIC_LIVE
    )
    delay_s_min: float | None = Field(
        None,
        ge=0,
        le=DELAY_S_MAX,
        description="Minimum delay between requests to one host, in seconds",
        json_schema_extra=BASIC_LIVE,
    )
    delay_s_max: float | None = Field(
        None,
        ge=0,
        le=DELAY_S_MAX,
        description="Maximum delay computed from fetch times, in seconds",
        json_schema_extra=BASIC_LIVE,
    )
    delay_factor: float | None = Field(
        None,
        ge=0,
        description="Delay as a multiple of the mean of the last fetch times, up to five",
        json_schema_extra=BASIC_LIVE,
    )
    per_host: int | None = Field(
        None, ge=1, le=256, description="Requests at once to one host", json_schema_extra=BASIC_LIVE
    )
    per_address: int | None = Field(
        None, ge=0, description="Requests at once to one IP address; 0 for no limit", json_schema_extra=BASIC_LIVE
    )
    address_delay_s: float | None = Field(
        None,
        ge=0,
        le=DELAY_S_MAX,
        description="Minimum delay between requests to one IP address, in seconds",
        json_schema_extra=BASIC_LIVE,
    )
    per_site: int = Field(
        0, ge=0, description="Requests at once to all hosts of one registrable domain; 0 for no limit"
    )
    site_delay_s: float = Field(
        0.0,
        ge=0,
        le=DELAY_S_MAX,
        allow_inf_nan=False,
        description="Minimum delay between requests to one registrable domain, in seconds",
    )
    crawl_delay_s_max: float = Field(
        300.0, ge=0, le=DELAY_S_MAX, description="A longer Crawl-delay closes the host", json_schema_extra=LIVE
    )
    retry_after_s_max: float = Field(
        86_400.0, ge=0, le=DELAY_S_MAX, description="A longer Retry-After closes the host", json_schema_extra=LIVE
    )
    backoff_s_first: float = Field(
        30.0,
        ge=0,
        le=DELAY_S_MAX,
        description="Delay after a 429 or 503 without Retry-After; doubles",
        json_schema_extra=LIVE,
    )
    backoff_s_max: float = Field(
        3_600.0,
        ge=0,
        le=DELAY_S_MAX,
        description="Longest delay after a 429 or 503 without Retry-After",
        json_schema_extra=LIVE,
    )


class FrontierOptions(Section):
    """How much is kept ready, and what becomes of failures."""

    active_hosts_max: int = Field(
        100_000, ge=1, description="Hosts in memory at once, at the most", json_schema_extra=LIVE
    )
    active_hosts_first: int = Field(
        1_000, ge=1, description="Hosts in memory from the beginning; more come when requests wait for hosts"
    )
    active_site_hosts_first: int = Field(
        32,
        ge=1,
        description="Hosts of one registrable domain in memory at once to begin with; one more for each 16 pages of it "
        "that were fetched, up to half of active_hosts_max. The others wait on disk in their turn",
        json_schema_extra=LIVE,
    )
    active_hosts_bytes_max: int = Field(40 << 20, ge=1 << 20, description="Memory of those hosts and their URLs")
    window_s_max: float = Field(
        180.0, gt=0, description="URLs of one host in memory: enough for this many seconds of visits, at least one"
    )
    window_urls_max: int = Field(16, ge=1, description="URLs of one host in memory at once")
    strategy: Literal["sweep", "walk"] = Field(
        "sweep",
        description="sweep: every URL once; walk: random walks, for samples (section walk)",
        json_schema_extra=BASIC,
    )
    priority: Literal["breadth_first", "best_first", "in_links", "rank", "opic", "larger_sites", "combined"] = Field(
        "breadth_first",
        description="What is urgent; components.prioritizer puts your own in its place",
        json_schema_extra=BASIC,
    )
    scores: dict[str, int] = Field(
        default_factory=dict,
        description="Regular expressions (RE2) and how many levels more urgent (or, below 0, less) a match makes a URL",
        json_schema_extra=BASIC,
    )
    ranks_file: str = Field("", description="File of gossamer rank, with priority rank")
    importance_bytes: int = Field(
        8 << 20, ge=1_024, description="Memory for counts of links to pages, with priority in_links"
    )
    level_bias: float = Field(
        2.0, ge=1, le=1_000_000, description="How much likelier a level is than the next less urgent one"
    )
    records_cached_max: int = Field(18_000, ge=100, description="Records of waiting hosts kept in memory")
    sleep_s_min: float = Field(
        120.0, ge=0, description="A host with a longer delay leaves memory", json_schema_extra=LIVE
    )
    attempts_max: int = Field(
        3, ge=1, description="Requests for one URL before its failure is final", json_schema_extra=BASIC_LIVE
    )
    retry_s_first: float = Field(
        30.0,
        ge=0,
        description="Wait before a URL's second attempt, and of an origin that never answered; doubles",
        json_schema_extra=LIVE,
    )
    retry_s_max: float = Field(3_600.0, ge=0, description="Longest wait before another attempt", json_schema_extra=LIVE)
    host_failures_max: int = Field(
        5, ge=1, description="Failures in a row before an origin that answered before waits", json_schema_extra=LIVE
    )
    host_sleep_s_first: float = Field(
        60.0, ge=0, description="First wait of such an origin; doubles", json_schema_extra=LIVE
    )
    host_sleep_s_max: float = Field(3_600.0, ge=0, description="Longest wait of such an origin", json_schema_extra=LIVE)
    host_sleeps_max: int = Field(
        5, ge=0, description="Waits in a row before such an origin is given up", json_schema_extra=LIVE
    )
    errors_remembered_s: float = Field(
        86_400.0,
        ge=0,
        description="How long an origin that was given up stays closed; also how long failures count for later crawls, "
        "where state.hosts_store keeps them",
    )
    unanswered_s_max: float = Field(
        600.0,
        ge=0,
        description="An origin that never answered is given up when it failed for this long (a continuous crawl: "
        "86400); where robots.txt is obeyed, robots.robots_wait_max_s comes first",
        json_schema_extra=LIVE,
    )
    unanswered_failures_max: int = Field(
        5,
        ge=0,
        description="Failures in a row before an origin that never answered is given up (failures to fetch robots.txt "
        "count while no host at all has answered); 0, as in a continuous crawl: by unanswered_s_max alone",
        json_schema_extra=LIVE,
    )
    hosts_min: int = Field(
        0,
        ge=0,
        description="When fewer hosts than this are left, ask for more seeds, or stop and save the rest",
        json_schema_extra=BASIC,
    )
    more_seeds_command: tuple[str, ...] = Field(
        (),
        description="Run when fewer than hosts_min hosts are left; prints more seeds, one URL a line",
        json_schema_extra=BASIC,
    )
    more_seeds_s_max: float = Field(60.0, gt=0, description="How long that command may take, in seconds")


class HostOverride(Section):
    """What is agreed with one host; what is not given is as for all."""

    delay_s: float | None = Field(
        None, ge=0, le=DELAY_S_MAX, allow_inf_nan=False,
        description="Its delay after each request, in seconds, which overrides the preset; a longer Crawl-delay or "
        "Retry-After still wins", json_schema_extra=BASIC)  # fmt: skip
    per_host: int | None = Field(
        None,
        ge=1,
        le=256,
        description="Requests at once to it; its address has no other gate then",
        json_schema_extra=BASIC,
    )
    pages: int | None = Field(
        None, ge=1, description="Requests for its URLs in a round, as budget.host_pages", json_schema_extra=BASIC
    )


class HostsOptions(BaseModel):
    """Hosts with rules of their own: each key is a host's name, its value a table."""

    model_config = ConfigDict(frozen=True, extra="allow")

    __pydantic_extra__: dict[str, HostOverride]

    @model_validator(mode="before")
    @classmethod
    def _names(cls, table: object) -> object:
        if not isinstance(table, dict):
            return table
        for name in table:
            if not _is_host(name):
                raise ValueError(f"{name!r} is no host's name; write it as in a URL, in small letters: example.org")
        return {name: rules for name, rules in table.items() if rules is not None}

    @property
    def overrides(self) -> dict[str, HostOverride]:
        """By host."""
        return self.__pydantic_extra__


class BudgetOverride(Section):
    """One host's or site's own budget; what is not given is as for all."""

    pages: int | None = Field(None, ge=1, description="Requests for its URLs in a round")
    bytes: int | None = Field(None, ge=1, description="Bytes received from it in a round")
    time_s: float | None = Field(None, gt=0, description="Seconds that its requests may take in a round")


class BudgetOptions(Section):
    """What one host or site may take before the others had their turn. None: no limit."""

    host_pages: int | None = Field(
        None, ge=1, description="Requests for a host's URLs in a round", json_schema_extra=BASIC_LIVE
    )
    host_bytes: int | None = Field(
        None, ge=1, description="Bytes received from a host in a round", json_schema_extra=BASIC_LIVE
    )
    host_time_s: float | None = Field(
        None, gt=0, description="Seconds that a host's requests may take in a round", json_schema_extra=LIVE
    )
    site_pages: int | None = Field(
        None, ge=1, description="Requests for URLs of all of a site's hosts in a round", json_schema_extra=BASIC_LIVE
    )
    site_bytes: int | None = Field(
        None, ge=1, description="Bytes received from a site in a round", json_schema_extra=BASIC_LIVE
    )
    site_time_s: float | None = Field(
        None, gt=0, description="Seconds that a site's requests may take in a round", json_schema_extra=LIVE
    )
    growth_max: float = Field(
        1.0, ge=1, description="How many times these the site gets that the most other sites link to; the rest between"
    )
    round_s: float | None = Field(
        None,
        gt=0,
        description="Seconds after which a round ends; none: when all other hosts are done",
        json_schema_extra=LIVE,
    )
    overrides: dict[str, BudgetOverride] = Field(
        default_factory=dict,
        description="By host, or by site with a dot before its name: pages, bytes, time_s",
        json_schema_extra=LIVE,
    )

    @field_validator("overrides")
    @classmethod
    def _names(cls, overrides: dict[str, BudgetOverride]) -> dict[str, BudgetOverride]:
        for key in overrides:
            name = key.removeprefix(".")
            if not _is_host(name):
                raise ValueError(f"{key!r} is no host's name; write it as in a URL, in small letters: example.org")
            if name != key and site_of(name) != name:
                raise ValueError(f"{key!r} is no site: the site of {name} is .{site_of(name)}")
        return overrides

    @property
    def is_set(self) -> bool:
        """Whether any host or site has a budget."""
        limits = (
            self.host_pages, self.host_bytes, self.host_time_s, self.site_pages, self.site_bytes, self.site_time_s,
        )  # fmt: skip
        return any(limit is not None for limit in limits) or bool(self.overrides)


class WalkOptions(Section):
    """How a frontier of the strategy `walk` walks."""

    walkers: int = Field(16, ge=1, le=4096, description="Walks at once")
    restart_share: float = Field(
        1 / 7, gt=0, lt=1, description="Chance to restart the walk at a page of a random known host"
    )
    steps_max: int = Field(
        20_000, ge=1, description="Steps of all walkers together, over all runs; the last is the end"
    )
    links_max: int = Field(500, ge=1, description="Links kept of one page; of more, as many by chance")
