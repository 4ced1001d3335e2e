"""Host: a host in memory, its address, and its leases."""

from __future__ import annotations

from collections import deque

import msgspec

from gossamer.frontier.politeness import Politeness
from gossamer.frontier.record import HostRecord, QueueBlock, QueuedUrl
from gossamer.frontier.tokens import SiteTokens
from gossamer.model.visits import Prerequisite
from gossamer.url.url import Url

ROBOTS, UNREAD = "robots.txt", "its last page to be read"
"""What a host may wait for beside its delay."""


class Reading(msgspec.Struct, gc=False):
    """What memory holds of one level: what is new in the open epoch, and how far the level was read."""

    fresh: list[QueueBlock] | None = None
    """The blocks of the open epoch, if there are any; new URLs join the last one."""
    block: int = 0
    """Number of the block that was read last, or that is next."""
    next: int = -1
    """Number of the first URL that is not in the window yet nor past it; below 0: it was not read at all."""
    ends: list[int] = []
    """Of each block that was read, from the one that holds the queue's head on, the number after its last URL."""


class Host:
    """One host: its record and, while it is on the workbench, its window and its place."""

    __slots__ = (
        "aside_again_at", "contacted", "dirty", "due_next", "due_out", "fingerprint", "is_new", "lent", "lent_again",
        "located_anew", "located_until", "on_bench", "out", "parked", "partition", "place", "prefix", "prerequisites",
        "probe_from", "probing", "readings", "record", "rules", "site", "site_name", "stamp", "turn_at", "turns",
        "window",
    )  # fmt: skip

    def __init__(self, record: HostRecord, partition: int, prefix: bytes, fingerprint: int, rules: Politeness) -> None:
        self.record = record
        self.rules = rules
        """How it is treated; another when that is changed."""
        self.partition = partition
        self.prefix = prefix
        self.fingerprint = fingerprint
        self.window: list[QueuedUrl] | None = None
        """URLs read from disk, in the order of their leases; None for an empty window."""
        self.readings: dict[int, Reading] = {}
        """By level; no level of which memory holds nothing."""
        self.due_next = 0.0
        """No URL is due before; 0 when that is not known yet, infinite when all that are due are out."""
        self.due_out: set[bytes] | None = None
        """Due URLs that are in the window or leased; None for an empty set."""
        self.prerequisites: list[Prerequisite] | None = None
        """None if there are none."""
        self.out = 0
        """Leases not yet given back."""
        self.lent = 0
        """Those of them that carry a queued URL."""
        self.lent_again = 0
        """Those of these that were visited before."""
        self.probing: set[str] | None = None
        """Origins of which one URL is out to find out whether they answer; None if there are none."""
        self.probe_from = 0.0
        """Before this instant such URLs wait as long as others can be requested."""
        self.aside_again_at = 0.0
        """Before this instant no more URLs are set aside: many were just now."""
        self.parked = ""
        """What it waits for (`ROBOTS`, `UNREAD`): only prerequisite fetches are leased then."""
        self.dirty = False
        self.contacted = False
        """Whether it got a request, or a hint changed its record, since the last cut."""
        self.is_new = False
        """No epoch holds its record yet."""
        self.on_bench = False
        self.stamp = 0
        """Grows with every change of its turn, so that older turns in the heaps are known as such."""
        self.turn_at: float | None = None
        """When it is offered next; None while it is not."""
        self.place: AddressPlace | None = None
        self.site: Site | None = None
        """Its site while it is on the workbench."""
        self.site_name = ""
        """That of its URLs, once one was seen: to find it costs 1.5 µs."""
        self.turns = 0
        """URLs leased since it entered the workbench."""
        self.located_until = 0.0
        self.located_anew = False
        """No request went to its address since that was looked up: the next one may, however short its time."""

    def next_prerequisite(self) -> Prerequisite:
        """Take the oldest of its waiting prerequisite fetches; there must be one."""
        assert self.prerequisites
        prerequisite = self.prerequisites.pop(0)
        self.prerequisites = self.prerequisites or None
        return prerequisite

    @property
    def idle(self) -> bool:
        """Nothing of it is in memory that the disk does not have."""
        return not (self.on_bench or self.dirty or self.out or self.lent or self.prerequisites or self.parked)

    @property
    def name(self) -> str:
        return self.record.name


Turn = tuple[float, int, int, Host]
"""Instant, order of arrival, stamp, host."""


class SiteLine:
    """The hosts of one site at one address, while it has several: they share the turns that one host would have."""

    __slots__ = ("hosts", "site", "stamp", "taken_at", "turn_at")

    def __init__(self, site: str) -> None:
        self.site = site
        self.hosts: list[Turn] = []
        self.taken_at = 0.0
        """When one of them had the last turn."""
        self.turn_at: float | None = None
        """Instant of its entry at the address; None while that entry does not count."""
        self.stamp = 0


class AddressPlace:
    """One IP address."""

    __slots__ = (
        "address", "fingerprint", "hosts", "lines", "most", "name", "out", "rest_until", "shut", "stamp", "users",
    )  # fmt: skip

    def __init__(self, name: str, address: str, fingerprint: int, rest_until: float, most: int) -> None:
        self.name = name
        """Its address; with its host where one has it for itself."""
        self.address = address
        self.most = most
        """Requests at once; 0: no limit."""
        self.fingerprint = fingerprint
        self.rest_until = rest_until
        self.hosts: list[tuple[float, int, int, Host | SiteLine]] = []
        """Heap of turns: of hosts that are alone of their site, and of lines."""
        self.lines: dict[str, SiteLine] | None = None
        """By site; None if there are none."""
        self.out = 0
        """Requests under way."""
        self.users = 0
        """Hosts of the workbench that are at this address."""
        self.shut = False
        """Another shard has it."""
        self.stamp = 0


class Site:
    """One registrable domain with hosts on the workbench."""

    __slots__ = ("name", "out", "pages", "rest_until", "tokens", "users", "waiting", "waits_in")

    def __init__(self, name: str, rest_until: float) -> None:
        self.name = name
        self.rest_until = rest_until
        self.out = 0
        """Requests under way."""
        self.users = 0
        """Its hosts that are on the workbench."""
        self.waiting: deque[tuple[int, Host]] | None = None
        """Hosts that came up while all its requests were out, with the stamp that they had; None: no hosts did."""
        self.pages = 0
        """Pages fetched since its first host entered the workbench; links from other sites count as some."""
        self.waits_in: dict[int, None] = {}
        """Partitions in which others of its hosts may wait in the index for a place on the workbench: one at most,
        unless it is split.
        """
        self.tokens: SiteTokens | None = None
        """Where several shards have hosts of it, what this one may use of its gate; None: all."""

    @property
    def crowded(self) -> bool:
        """Others of its hosts may wait in the index for a place on the workbench."""
        return bool(self.waits_in)


class Lease(msgspec.Struct, eq=False, gc=False):
    """One visit, leased once and returned once. Carries a queued URL or a prerequisite fetch.

    It may be fetched if `address` is set; a lease without one only requests the host's address.
    """

    host: Host
    visit: QueuedUrl | None
    """The queued URL, whose turn it is."""
    prerequisite: Prerequisite | None
    url: Url
    origin: str
    """Of the URL, as `origins.key_of` has it."""
    address: str
    is_finished: bool
    place: AddressPlace | None = None
    site: Site | None = None
    ticket: int = -1
    token: str = ""
    """Of a split site, what its request goes out by."""
    is_ended: bool = False
    refusal: str = ""
    """Why the URL ends without a request; empty if it does not."""
    is_probe: bool = False
    """The only visit of its origin, until it is known whether that answers."""

    @property
    def failures(self) -> int:
        """How often its origin failed in a row."""
        origins = self.host.record.origins
        one = origins.get(self.origin) if origins is not None else None
        return one.failures if one is not None else 0
