"""Limits: what hosts share: the delay of their site, and addresses that several shards lease."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from gossamer.frontier.host import AddressPlace, Host, Site
from gossamer.frontier.options import FrontierOptions
from gossamer.frontier.workbench import Workbench
from gossamer.url.site import site_of

PAGES_A_HOST = 16
"""Fetched pages for which one more host of their site enters the workbench."""
LINKING_HOSTS = 4
"""Additional hosts for each other site that links to theirs, where links between sites are counted."""
BENCH_SHARE = 0.5
"""Largest share of the full workbench for one site that has earned more than its first places."""
TURNS_MAX = 64
"""URLs of a host that are leased before another waiting host of its site takes its place."""


class Sites:
    """Maps hosts to sites, and limits the hosts of each site on the workbench.

    A site may have `hosts_first` hosts on the workbench, and more as its pages are fetched. The others wait in the
    index under their site, so that one site's hosts fill neither the workbench nor the index of ready hosts.

    The delay of a site needs no journal: at the start of a process every site waits as if it had been requested at that
    instant, and the previous process made no later request.
    """

    def __init__(
        self,
        bench: Workbench,
        resting_until: float,
        options: FrontierOptions,
        linking: Callable[[int, str], float] | None = None,
        waiting: Iterable[tuple[int, str]] = (),
    ) -> None:
        """`linking` returns how many other sites link to one, by partition and name; None if that is not counted.
        `waiting` are partition and name of a host of each site of which hosts wait since an earlier process.
        """
        self._bench = bench
        self._resting_until = resting_until
        self._linking = linking
        self.reconfigure(options)
        self._thinned: OrderedDict[str, Site] = OrderedDict()
        """Sites of which hosts wait and that may have room for one."""
        for partition, host in waiting:
            site = self._of(host, partition)
            site.crowded = True
            self._thinned[site.name] = site

    def reconfigure(self, options: FrontierOptions) -> None:
        """Apply other options from now on."""
        self._hosts_first = options.active_site_hosts_first
        self._hosts_max = max(self._hosts_first, int(BENCH_SHARE * options.active_hosts_max))

    def enter(self, host: Host) -> None:
        """Give a host its site. A few µs, at each activation."""
        host.site = self._of(host.name, host.partition)
        host.site.users += 1

    def leave(self, host: Host) -> None:
        """Take a host from its site."""
        site = host.site
        if site is not None:
            self._bench.leave_site(site)
            host.site = None
            if site.crowded:
                self._thinned[site.name] = site

    def has_room(self, host: Host) -> bool:
        """Say whether another host of a host's site may come to the workbench."""
        site = self._bench.find_site(site_of(host.name))
        return site is None or site.users < self._room(site)

    def is_here(self, host: Host) -> bool:
        """Say whether hosts of a host's site are on the workbench."""
        site = self._bench.find_site(site_of(host.name))
        return site is not None and site.users > 0

    def crowd(self, host: Host) -> str:
        """Note that a host waits for a place of its site; return the site's name."""
        site = self._of(host.name, host.partition)
        site.crowded = True
        if site.users < self._room(site):
            self._thinned[site.name] = site
        return site.name

    def ended(self, host: Host, outcome: str) -> None:
        """Count a URL of a host that is finished: with the pages of a site grows its room."""
        site = host.site
        if site is not None and outcome == "fetched":
            site.pages += 1
            if site.crowded and site.pages % PAGES_A_HOST == 0:
                self._thinned[site.name] = site

    def thinned(self) -> Site | None:
        """Return a site that has room for a host of those that wait, each in its turn."""
        while self._thinned:
            name, site = self._thinned.popitem(last=False)
            if site.crowded and site.users < self._room(site):
                self._thinned[name] = site
                return site
        return None

    @property
    def may_have(self) -> bool:
        """There may be such a site; `thinned` finds out."""
        return bool(self._thinned)

    def emptied(self, site: Site) -> None:
        """Note that no host of a site waits any more."""
        site.crowded = False
        self._thinned.pop(site.name, None)
        if not site.users:
            self._bench.left_site(site)

    def _of(self, host: str, partition: int) -> Site:
        name = site_of(host)
        site = self._bench.find_site(name)
        if site is None:
            site = self._bench.site(name, self._resting_until)
            site.partition = partition
            if self._linking is not None:
                site.pages = int(PAGES_A_HOST * LINKING_HOSTS * self._linking(partition, name))
        return site

    def _room(self, site: Site) -> int:
        return min(self._hosts_first + site.pages // PAGES_A_HOST, self._hosts_max)


class AddressLeases(Protocol):
    """Leases of addresses that several shards may use at once. Absent where there is one shard."""

    def want(self, address: str, now: float) -> float | None:
        """Return from when on an address may be requested; None when it must be leased first: `opened` is called."""
        ...

    def may_ask(self, address: str, now: float) -> bool:
        """Say whether a request to an address may begin now."""
        ...

    def began(self, address: str) -> None:
        """Note that a request to an address goes out."""
        ...

    def ended(self, address: str, rest_until: float) -> None:
        """Note the end of a request, and the delay of the address."""
        ...

    def leave(self, address: str) -> None:
        """Say that no host here uses an address any more."""
        ...


class SharedAddresses:
    """The workbench's addresses, as far as they are leased: not those that a host has for itself by agreement."""

    def __init__(self, workbench: Workbench, leases: AddressLeases) -> None:
        self._bench = workbench
        self._leases = leases

    def open(self, address: str, rest_until: float) -> None:
        """Let the hosts at an address have their turns, once its delay is over."""
        self._bench.unshut(address, rest_until)

    def shut(self, address: str) -> None:
        """Let the hosts at an address wait, each alone."""
        place = self._bench.at(address)
        if place is not None:
            self._bench.shut(place)

    def borrow(self, place: AddressPlace, now: float) -> None:
        """See that an address that a host is at can be asked."""
        if place.name != place.address:
            return
        at = self._leases.want(place.address, now)
        if at is None:
            self._bench.shut(place)
        else:
            self._bench.unshut(place.address, at)

    def begin(self, place: AddressPlace, now: float) -> bool:
        """Say whether a request may go out now, and note it then."""
        if place.name != place.address:
            return True
        if not self._leases.may_ask(place.address, now):
            self._bench.shut(place)
            return False
        self._leases.began(place.address)
        return True

    def ended(self, place: AddressPlace, rest_until: float) -> None:
        """Note that a request ended."""
        if place.name == place.address:
            self._leases.ended(place.address, rest_until)

    def leave(self, places: Sequence[AddressPlace]) -> None:
        """Return the leases of addresses that no host here uses."""
        for place in places:
            if place.name == place.address:
                self._leases.leave(place.address)
