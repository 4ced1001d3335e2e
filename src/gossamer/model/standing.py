"""Standing: figures of hosts for a prioritizer, of pages for a revisit policy, and what people are shown of a host."""

from typing import Literal

import msgspec


class Standing(msgspec.Struct, frozen=True, gc=False):
    """A host and its site, as the crawl knows them."""

    host: str
    queued: int = 0
    """URLs of the host that are not finished."""
    requests: int = 0
    failures: int = 0
    """Consecutive failures of the host."""
    linking_sites: float = 0.0
    """Estimated number of other sites that link to the host's site; 0 if not counted."""
    cash: float = 0.0
    """OPIC cash: what links gave to the host and it has not passed on yet, as a multiple of the mean over hosts."""


class LastVisit(msgspec.Struct, frozen=True, gc=False):
    """The last attempt at a page."""

    outcome: str
    at: float
    """Wall time."""
    status: int | None = None
    attempt: int = 1
    error: str = ""


class DownloadHistory(msgspec.Struct, frozen=True, gc=False):
    """The shard's downloads that concern a link."""

    page: LastVisit | None
    """Of the page that it leads to; None: it was never visited."""
    referrer: LastVisit | None
    """Of the page that has it; None: a seed, or a page of another shard, or one that is not recorded yet."""
    host: Standing
    """Of the host to which it leads."""


class Habits(msgspec.Struct, frozen=True, gc=False):
    """How often a page changes and how important it is: the input of a revisit policy."""

    change_rate: float
    """Estimated changes per second."""
    importance: float
    interval_s: float = 0.0
    """Seconds between the last two visits; 0 before the second visit."""
    changed: bool = False
    """Whether the last visit found something new."""
    since_change_s: float | None = None
    """Seconds from the change to the last visit, if known."""


class Awaited(msgspec.Struct, frozen=True):
    """A host with URLs that can be requested later, for people."""

    host: str
    at: float
    """Wall time of its next request."""
    reason: str
    """Why it is not requested earlier."""
    queued: int


class Lasting(msgspec.Struct, frozen=True):
    """A host whose URLs take longer than those of all others."""

    host: str
    queued: int
    left_s: float
    longer_s: float
    """By how much it outlasts the others."""
    says: str
    """The same in words, and what would shorten it."""


BudgetUse = dict[str, dict[str, float] | str]
"""Of each limited quantity, what is `spent` and `of` how much; under `used_up`, the first that is used up."""


class BudgetFacts(msgspec.Struct, frozen=True):
    """Budget use of a host and its site in a round, for display."""

    round: int
    growth: float
    """Factor by which the round multiplies the configured budgets."""
    linking_sites: float
    """Estimated number of other sites that link to the site; 0 if not counted."""
    host: BudgetUse
    site: BudgetUse


class OriginFacts(msgspec.Struct, frozen=True):
    """Facts about an origin (scheme, host, port) that does not answer, for people."""

    origin: str
    state: Literal["waiting", "closed"]
    """`waiting`: it is requested again at `next_at`. `closed`: it is given up until `next_at`, and its URLs end."""
    failures: int
    """In a row."""
    first_failed_at: float
    """Wall time of the first of these failures; 0: none."""
    next_at: float
    """Wall time."""
    reason: str
    queued: int
    """URLs that are set aside until the origin answers."""


class HostFacts(msgspec.Struct, frozen=True):
    """Facts about a host, for people."""

    name: str
    queued: int = 0
    delay_until: float = 0.0
    reason: str = ""
    """Why it waits."""
    closed: str = ""
    """Why it gets no more requests."""
    crawl_delay_s: float | None = None
    requests: int = 0
    failures: int = 0
    in_flight: int = 0
    parked: str = ""
    """The reason for which its next page waits."""
    due_at: float | None = None
    """When the URL of the query is due, if it waits for its own time."""
    attempt: int = 1
    error: str = ""
    site_gate: str = ""
    """Why its registrable domain may not be requested at once, where sites have a gate."""
    deferred: bool = False
    """The host has used up its budget and waits for the next round."""
    budget: BudgetFacts | None = None
    origin: OriginFacts | None = None
    """The origin of the URL of the query, if it does not answer."""
