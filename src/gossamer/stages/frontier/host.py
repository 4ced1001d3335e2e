"""Host: a host in memory, its address, its site, and its leases."""

from collections import deque
from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec

from gossamer.model.links import Prerequisite
from gossamer.stages.frontier.politeness import Politeness
from gossamer.stages.frontier.record import HostRecord, QueueBlock, QueuedUrl
from gossamer.stages.frontier.tokens import SiteTokens
from gossamer.url.url import Url

ROBOTS = "robots.txt"
UNREAD = "its last page to be read"
ADDRESS = "its address, after other lookups"
"""Reasons for which a host is parked."""


class Reading(msgspec.Struct, gc=False):
    """The state of one level in memory: new URLs of the open epoch, and how far the level was read."""

    fresh: list[QueueBlock] | None = None
    """Blocks of the open epoch, or None; new URLs are appended to the last one."""
    block: int = 0
    """Number of the block that was read last, or that is read next."""
    next: int = -1
    """Number of the next URL to read into the window; below 0: nothing was read yet."""
    ends: list[int] = []
    """For each block that was read, from the one with the queue's head on: the number after its last URL."""


class Host:
    """One host: its record and, while it is on the workbench, its window and its place."""

    __slots__ = (
        "address_unused", "answered_by", "aside_again_at", "contacted", "dirty", "due_next", "due_out", "failed_at",
        "fingerprint", "has_failed", "has_others", "is_new", "leased", "located_until", "on_workbench", "out", "parked",
        "partition", "place", "prefix", "prerequisites", "probe_from", "probing", "readings", "record",
        "revisits_leased", "rules", "site", "site_name", "stamp", "turn_at", "turns", "window",
    )  # fmt: skip

    def __init__(self, record: HostRecord, partition: int, prefix: bytes, fingerprint: int, rules: Politeness) -> None:
        self.record = record
        self.rules = rules
        """Rules for this host; replaced when options change."""
        self.partition = partition
        self.prefix = prefix
        self.fingerprint = fingerprint
        self.window: list[QueuedUrl] | None = None
        """URLs read from disk, in the order of their leases; None: empty."""
        self.readings: dict[int, Reading] = {}
        """By level, only for levels with state in memory."""
        self.due_next = 0.0
        """No URL is due before this time; 0: not known yet, infinite: all due URLs are leased or in the window."""
        self.due_out: set[bytes] | None = None
        """Keys of due URLs that are in the window or leased; None: empty."""
        self.prerequisites: list[Prerequisite] | None = None
        """Waiting prerequisite fetches; None: empty."""
        self.out = 0
        """Leases whose gates are not released yet (`Frontier.ended`)."""
        self.leased = 0
        """Leased URLs whose visit is not concluded, also after its gates were released."""
        self.revisits_leased = 0
        """The part of `leased` that is revisits."""
        self.probing: set[str] | None = None
        """Origins with a probe in flight, a single URL that shows whether they answer; None: empty."""
        self.probe_from = 0.0
        """Before this time probes wait while other URLs can be requested."""
        self.aside_again_at = 0.0
        """Before this time no more URLs are set aside, because many just were."""
        self.parked = ""
        """Why it is parked (`ROBOTS`, `UNREAD`, `ADDRESS`): only prerequisite fetches are leased. Empty: not parked."""
        self.dirty = False
        self.contacted = False
        """Whether the host got a request, or a hint changed its record, since the last cut."""
        self.is_new = False
        """Whether no epoch has its record yet."""
        self.on_workbench = False
        self.stamp = 0
        """Grows with every change of the host's turn, so that outdated entries in the heaps are recognized."""
        self.turn_at: float | None = None
        """When it is offered next; None if it is not."""
        self.place: AddressPlace | None = None
        self.site: Site | None = None
        """Its site, while the host is on the workbench."""
        self.site_name = ""
        """Name of its site, from its first URL: to compute it costs 1.5 µs."""
        self.turns = 0
        """URLs leased since it entered the workbench."""
        self.located_until = 0.0
        self.address_unused = False
        """Whether no request went to its address since the lookup: the next may, even if the address has expired."""
        self.answered_by = ""
        """Its address that answered last; empty: none in this process."""
        self.failed_at = ""
        """Its address that failed last; empty: none in this process."""
        self.has_failed = False
        """Whether its last request failed."""
        self.has_others = False
        """Whether it has other addresses than the one to request, as far as the lookups say."""

    def note_contact(self, address: str, kind: str) -> None:
        """Note how a contact with one of its addresses ended. After a failure it is looked up again."""
        if kind == "failed":
            self.has_failed = True
            self.failed_at = address or self.failed_at
            self.located_until = 0.0
            self.address_unused = False
        elif kind != "left":
            self.has_failed = False
            self.answered_by = address

    def next_prerequisite(self) -> Prerequisite:
        """Remove the oldest waiting prerequisite fetch and return it; there must be one."""
        assert self.prerequisites
        prerequisite = self.prerequisites.pop(0)
        self.prerequisites = self.prerequisites or None
        return prerequisite

    @property
    def idle(self) -> bool:
        """Whether the host can be dropped from memory: the disk has all its state."""
        return not (self.on_workbench or self.dirty or self.out or self.leased or self.prerequisites or self.parked)

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def most(self) -> int:
        """Limit of concurrent requests: one if robots.txt sets a delay, because that is between any two requests."""
        return 1 if self.record.crawl_delay_s else self.rules.per_host


Turn = tuple[float, int, int, Host]
"""Instant, order of arrival, stamp, host."""


class SiteLine:
    """The hosts of a site at one address, if it has several there: together they get the turns of one host."""

    __slots__ = ("hosts", "site", "stamp", "taken_at", "turn_at")

    def __init__(self, site: str) -> None:
        self.site = site
        self.hosts: list[Turn] = []
        self.taken_at = 0.0
        """When one of the hosts had the last turn."""
        self.turn_at: float | None = None
        """Time of the line's entry in the address's heap; None: no valid entry."""
        self.stamp = 0


class AddressPlace:
    """One IP address."""

    __slots__ = (
        "address", "delay_until", "fingerprint", "hosts", "lines", "most", "name", "out", "shut", "stamp", "users",
    )  # fmt: skip

    def __init__(self, name: str, address: str, fingerprint: int, delay_until: float, most: int) -> None:
        self.name = name
        """Its address; with the host's name if the host has the place for itself."""
        self.address = address
        self.most = most
        """Limit of concurrent requests; 0: no limit."""
        self.fingerprint = fingerprint
        self.delay_until = delay_until
        self.hosts: list[tuple[float, int, int, Host | SiteLine]] = []
        """Heap of turns: of lines, and of hosts that are the only ones of their site here."""
        self.lines: dict[str, SiteLine] | None = None
        """Lines by site; None: empty."""
        self.out = 0
        """Requests under way."""
        self.users = 0
        """Hosts on the workbench at this address."""
        self.shut = False
        """Whether the address is not leased to this shard."""
        self.stamp = 0


class Site:
    """One registrable domain with hosts on the workbench."""

    __slots__ = ("delay_until", "name", "out", "pages", "tokens", "users", "waiting", "waits_in")

    def __init__(self, name: str, delay_until: float) -> None:
        self.name = name
        self.delay_until = delay_until
        self.out = 0
        """Requests under way."""
        self.users = 0
        """Its hosts on the workbench."""
        self.waiting: deque[tuple[int, Host]] | None = None
        """Hosts whose turn came while all requests of the site were in flight, with their stamp then; None: empty."""
        self.pages = 0
        """Pages fetched since its first host entered the workbench; linking sites add to this."""
        self.waits_in: dict[int, None] = {}
        """Partitions where more hosts of the site may wait in the index: at most one, except for a split site."""
        self.tokens: SiteTokens | None = None
        """For a split site: tokens with which this shard may use the site's gate; None: no tokens are needed."""

    @property
    def is_crowded(self) -> bool:
        """Whether more hosts of the site may wait in the index for a place on the workbench."""
        return bool(self.waits_in)


class HostLease(msgspec.Struct, eq=False, gc=False):
    """A lease of one request to a host, which is returned once.

    The URL may be fetched if `address` is set; otherwise the lease only asks for the host's address.
    """

    host: Host
    url: Url
    origin: str
    """Origin of the URL, as by `origins.key_of`."""
    address: str
    place: AddressPlace | None = None
    site: Site | None = None
    ticket: int = -1
    token: str = ""
    """For a split site: key of the token that the request uses."""
    is_ended: bool = False
    refusal: str = ""
    """Why the URL ends without a request; empty if it does not."""
    is_probe: bool = False
    """Whether this is a probe: the only visit of its origin until it is known whether that answers."""

    def choose(self, addresses: Sequence[str]) -> str:
        """Return the address to request: the one that answered last, or after a failure of the origin the next one."""
        host = self.host
        one = host.record.origin(self.origin)
        host.has_others = len(addresses) > 1 or (host.failed_at not in ("", *addresses))
        if one is None or not one.failures:
            return host.answered_by if host.answered_by in addresses else addresses[0]
        last = addresses.index(host.failed_at) if host.failed_at in addresses else one.failures - 1
        return addresses[(last + 1) % len(addresses)]


class VisitLease(HostLease, kw_only=True):
    """A lease of a queued URL, which is also returned once, to its queue or for good."""

    is_visit: ClassVar[Literal[True]] = True
    """Tells the kinds of leases apart, without a call."""
    visit: QueuedUrl
    is_finished: bool = False


class PrerequisiteLease(HostLease, kw_only=True):
    """A lease of a prerequisite fetch, which has no queued URL."""

    is_visit: ClassVar[Literal[False]] = False
    prerequisite: Prerequisite


Lease = VisitLease | PrerequisiteLease
