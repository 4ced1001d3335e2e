"""Options of the frontier: how polite, how many, how often again; and the rules of politeness that they make."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from gossamer.model.patterns import regular
from gossamer.options import Key, NamedSection, Section
from gossamer.stages.frontier.politeness import Politeness
from gossamer.url.site import HOST_BYTES_MAX, site_of

_is_host = re.compile(rf"(?!.{{{HOST_BYTES_MAX + 1}}})(?:[a-z0-9_-]++(?:\.[a-z0-9_-]++)*|\[[0-9a-f:.]+\])").fullmatch
"""Matches a host as in `Url.host`: no port, and other alphabets in their ASCII form."""


def require_host(name: str) -> None:
    """Raise ValueError for text that no host in a URL can be."""
    if not _is_host(name):
        raise ValueError(f"{name!r} is no host's name; write it as in a URL, in small letters: example.org")


DELAY_S_MAX = 31_536_000.0
"""A year: no host waits longer, and times stay within what can be formatted."""

Preset = Literal["polite", "gentle", "broad", "weak", "own"]

_OF_PRESETS = ("delay_s_min", "delay_s_max", "delay_factor", "per_host", "per_address", "address_delay_s")
_PRESETS = {
    "polite": (1.0, 60.0, 10.0, 1, 1, 0.1),
    "gentle": (15.0, 60.0, 10.0, 1, 1, 0.1),
    "broad": (70.0, 70.0, 0.0, 1, 1, 0.1),
    "weak": (0.0, 0.0, 0.0, 1, 1, 0.0),
    "own": (0.0, 0.0, 0.0, 8, 0, 0.0),
}


class PolitenessOptions(Section, frozen=True):
    """Delays and concurrent requests. A preset sets every key that is not given."""

    preset: Annotated[Preset, Key("polite, gentle, broad, weak or own; sets the keys below", basic=True, live=True)] = (
        "polite"
    )
    delay_s_min: Annotated[
        float | None,
        Key("Minimum delay between requests to one host, in seconds", ge=0, le=DELAY_S_MAX, basic=True, live=True),
    ] = None
    delay_s_max: Annotated[
        float | None,
        Key("Maximum delay computed from fetch times, in seconds", ge=0, le=DELAY_S_MAX, basic=True, live=True),
    ] = None
    delay_factor: Annotated[
        float | None,
        Key("Delay as a multiple of the mean of the last fetch times, up to five", ge=0, basic=True, live=True),
    ] = None
    per_host: Annotated[int | None, Key("Requests at once to one host", ge=1, le=256, basic=True, live=True)] = None
    per_address: Annotated[
        int | None, Key("Requests at once to one IP address; 0 for no limit", ge=0, basic=True, live=True)
    ] = None
    address_delay_s: Annotated[
        float | None,
        Key("Minimum delay between requests to one address, in seconds", ge=0, le=DELAY_S_MAX, basic=True, live=True),
    ] = None
    per_site: Annotated[int, Key("Requests at once to all hosts of one registrable domain; 0 for no limit", ge=0)] = 0
    site_delay_s: Annotated[
        float,
        Key("Minimum delay between requests to one registrable domain, in seconds", ge=0, le=DELAY_S_MAX, live=True),
    ] = 0.0
    crawl_delay_s_max: Annotated[
        float, Key("A longer Crawl-delay closes the host", ge=0, le=DELAY_S_MAX, live=True)
    ] = 300.0
    retry_after_s_max: Annotated[
        float, Key("A longer Retry-After closes the host", ge=0, le=DELAY_S_MAX, live=True)
    ] = 86_400.0
    backoff_s_first: Annotated[
        float, Key("Delay after a 429 or 503 without Retry-After; doubles", ge=0, le=DELAY_S_MAX, live=True)
    ] = 30.0
    backoff_s_max: Annotated[
        float, Key("Longest delay after a 429 or 503 without Retry-After", ge=0, le=DELAY_S_MAX, live=True)
    ] = 3_600.0


class FrontierOptions(Section, frozen=True):
    """The order of URLs, hosts in memory, and retries."""

    active_hosts_max: Annotated[int, Key("Maximum number of hosts in memory", ge=1, live=True)] = 100_000
    active_hosts_first: Annotated[
        int, Key("Hosts in memory at the beginning; more are added when requests wait for hosts", ge=1)
    ] = 1_000
    active_site_hosts_first: Annotated[
        int,
        Key(
            "Hosts of one registrable domain in memory at once to begin with; one more for each 16 pages of it that "
            "were fetched, up to half of active_hosts_max. The others wait on disk in their turn",
            ge=1,
            live=True,
        ),
    ] = 32
    active_hosts_bytes_max: Annotated[int, Key("Memory of those hosts and their URLs", ge=1 << 20)] = 40 << 20
    window_s_max: Annotated[
        float, Key("URLs of one host in memory: enough for this many seconds of visits, at least one", gt=0)
    ] = 180.0
    window_urls_max: Annotated[int, Key("URLs of one host in memory at once", ge=1)] = 16
    strategy: Annotated[
        Literal["sweep", "walk"],
        Key("sweep: every URL once; walk: random walks, for samples (section walk)", basic=True),
    ] = "sweep"
    priority: Annotated[
        Literal["breadth_first", "best_first", "in_links", "rank", "opic", "larger_sites", "combined"],
        Key("The order of URLs; components.prioritizer replaces it", basic=True),
    ] = "breadth_first"
    scores: Annotated[
        dict[str, int],
        Key("By regular expression (RE2), how many levels more urgent, or less, a match is", basic=True, check=regular),
    ] = {}
    ranks_file: Annotated[str, Key("File of gossamer rank, with priority rank", path="read")] = ""
    importance_bytes: Annotated[int, Key("Memory for counts of links to pages, with priority in_links", ge=1_024)] = (
        8 << 20
    )
    level_bias: Annotated[
        float, Key("How much likelier a level is than the next less urgent one", ge=1, le=1_000_000)
    ] = 2.0
    records_cached_max: Annotated[int, Key("Records of waiting hosts kept in memory", ge=100)] = 18_000
    sleep_s_min: Annotated[float, Key("A host with a longer delay leaves memory", ge=0, live=True)] = 120.0
    attempts_max: Annotated[int, Key("Requests for a URL before its failure is final", ge=1, basic=True, live=True)] = 3
    retry_s_first: Annotated[
        float, Key("Wait before a URL's second attempt, and of an origin that never answered; doubles", ge=0, live=True)
    ] = 30.0
    retry_s_max: Annotated[float, Key("Longest wait before another attempt", ge=0, live=True)] = 3_600.0
    host_failures_max: Annotated[
        int, Key("Failures in a row before an origin that answered before waits", ge=1, live=True)
    ] = 5
    host_sleep_s_first: Annotated[float, Key("First wait of such an origin; doubles", ge=0, live=True)] = 60.0
    host_sleep_s_max: Annotated[float, Key("Longest wait of such an origin", ge=0, live=True)] = 3_600.0
    host_sleeps_max: Annotated[int, Key("Waits in a row before such an origin is given up", ge=0, live=True)] = 5
    errors_remembered_s: Annotated[
        float, Key("How long an origin given up stays closed, and failures in state.hosts_store count later", ge=0)
    ] = 86_400.0
    unanswered_s_max: Annotated[
        float,
        Key(
            "An origin that never answered is given up when it failed for this long (a continuous crawl: 86400); "
            "where robots.txt is obeyed, robots.robots_wait_max_s comes first",
            ge=0,
            live=True,
        ),
    ] = 600.0
    unanswered_failures_max: Annotated[
        int,
        Key(
            "Failures in a row before an origin that never answered is given up (failures to fetch robots.txt count "
            "while no host at all has answered); 0, as in a continuous crawl: by unanswered_s_max alone",
            ge=0,
            live=True,
        ),
    ] = 5
    hosts_min: Annotated[
        int, Key("With fewer hosts that have URLs left, get more seeds, or stop and save these URLs", ge=0, basic=True)
    ] = 0
    more_seeds_command: Annotated[
        tuple[str, ...],
        Key("Run when fewer than hosts_min hosts are left; prints more seeds, one URL a line", basic=True),
    ] = ()
    more_seeds_s_max: Annotated[float, Key("How long that command may take, in seconds", gt=0)] = 60.0


class HostOverride(Section, frozen=True):
    """Settings of one host; a key that is not given is as for all hosts."""

    delay_s: Annotated[
        float | None,
        Key(
            "Delay after requests to it, in seconds, if no Crawl-delay or Retry-After is longer",
            ge=0,
            le=DELAY_S_MAX,
            basic=True,
        ),
    ] = None
    per_host: Annotated[
        int | None, Key("Requests at once to it; its address then has no other limit", ge=1, le=256, basic=True)
    ] = None
    pages: Annotated[int | None, Key("Requests for its URLs in a round, as budget.host_pages", ge=1, basic=True)] = None


class HostsOptions(NamedSection, frozen=True):
    """Settings for single hosts: each key is a host's name, its value a table."""

    overrides: Annotated[dict[str, HostOverride], Key("By host.", names=require_host, live=True)] = {}


def _require_host_or_site(key: str) -> None:
    name = key.removeprefix(".")
    require_host(name)
    if name != key and site_of(name) != name:
        raise ValueError(f"{key!r} is no site: the site of {name} is .{site_of(name)}")


class BudgetOverride(Section, frozen=True):
    """Budget of one host or site; a limit that is not given is as for all."""

    pages: Annotated[int | None, Key("Requests for its URLs in a round", ge=1)] = None
    bytes: Annotated[int | None, Key("Bytes received from it in a round", ge=1)] = None
    time_s: Annotated[float | None, Key("Seconds that its requests may take in a round", gt=0)] = None


class BudgetOptions(Section, frozen=True):
    """Limits of one host or site in a round, after which others have their turn. None: no limit."""

    host_pages: Annotated[int | None, Key("Requests for a host's URLs in a round", ge=1, basic=True, live=True)] = None
    host_bytes: Annotated[int | None, Key("Bytes received from a host in a round", ge=1, basic=True, live=True)] = None
    host_time_s: Annotated[float | None, Key("Seconds a host's requests may take in a round", gt=0, live=True)] = None
    site_pages: Annotated[
        int | None, Key("Requests for URLs of all of a site's hosts in a round", ge=1, basic=True, live=True)
    ] = None
    site_bytes: Annotated[int | None, Key("Bytes received from a site in a round", ge=1, basic=True, live=True)] = None
    site_time_s: Annotated[float | None, Key("Seconds a site's requests may take in a round", gt=0, live=True)] = None
    growth_max: Annotated[
        float, Key("Budgets of a site grow with the other sites that link to it: from 1 times to this factor", ge=1)
    ] = 1.0
    round_s: Annotated[
        float | None, Key("Seconds after which a round ends; none: when all other hosts are done", gt=0, live=True)
    ] = None
    overrides: Annotated[
        dict[str, BudgetOverride],
        Key("By host, or by site with a dot before it: pages, bytes, time_s", live=True, names=_require_host_or_site),
    ] = {}

    @property
    def is_set(self) -> bool:
        """Whether any host or site has a budget."""
        limits = (
            self.host_pages, self.host_bytes, self.host_time_s, self.site_pages, self.site_bytes, self.site_time_s,
        )  # fmt: skip
        return any(limit is not None for limit in limits) or bool(self.overrides)


class WalkOptions(Section, frozen=True):
    """How a frontier of the strategy `walk` walks."""

    walkers: Annotated[int, Key("Walks at once", ge=1, le=4096)] = 16
    restart_share: Annotated[float, Key("Chance to restart at a page of a random known host", gt=0, lt=1)] = 1 / 7
    steps_max: Annotated[int, Key("Steps of all walkers together, over all runs; then the crawl ends", ge=1)] = 20_000
    links_max: Annotated[int, Key("Links kept of one page; of a page with more links, a random choice", ge=1)] = 500


def politeness(options: PolitenessOptions, overrides: Mapping[str, HostOverride] | None = None) -> Politeness:
    """Return the preset's rules with all keys that are set replaced, and `overrides` by host."""
    rules: dict[str, Any] = dict(zip(_OF_PRESETS, _PRESETS[options.preset], strict=True))
    if options.delay_s_min is not None:
        # Else a shorter delay of hosts would have no effect.
        rules["address_delay_s"] = min(rules["address_delay_s"], options.delay_s_min)
    if options.delay_s_min:
        # A delay is between any two requests to a host, unless several at once are wanted too.
        rules["per_host"] = 1
    given = msgspec.structs.asdict(options)
    del given["preset"]
    rules |= {name: value for name, value in given.items() if value is not None}
    for_all = Politeness(**rules)
    own = {host: _override(for_all, one, alone=options.per_host is None) for host, one in (overrides or {}).items()}
    return msgspec.structs.replace(for_all, hosts=own) if own else for_all


def _override(rules: Politeness, own: HostOverride, *, alone: bool) -> Politeness:
    """Return the rules with one host's changes; `alone`: a delay means one request at a time."""
    if own.delay_s is not None:
        rules = msgspec.structs.replace(rules, delay_s_min=own.delay_s, delay_s_max=own.delay_s, delay_factor=0.0)
        if own.delay_s and alone:
            rules = msgspec.structs.replace(rules, per_host=1)
    if own.per_host is not None:
        rules = msgspec.structs.replace(rules, per_host=own.per_host, has_own_gate=True)
    return rules
