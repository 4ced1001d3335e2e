"""Limits: what hosts share: delay and places of their site, and addresses and sites that several shards lease."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Sequence

from gossamer.stages.frontier.host import AddressPlace, Host, Lease, Site
from gossamer.stages.frontier.index import HostIndex
from gossamer.stages.frontier.options import FrontierOptions
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.stages.frontier.tokens import Leases, SiteLimits, SiteTokens, site_of_key
from gossamer.stages.frontier.workbench import Workbench
from gossamer.url.site import site_of

PAGES_A_HOST = 16
"""Fetched pages of a site for which one more of its hosts may enter the workbench."""
LINKING_HOSTS = 4
"""Additional hosts for each other site that links to a site, if such links are counted."""
WORKBENCH_SHARE = 0.5
"""Largest share of the full workbench for one site, beyond its first places."""
TURNS_MAX = 64
"""URLs of a host that are leased before another waiting host of its site takes its place."""


class Sites:
    """Maps hosts to sites, and limits the hosts of each site on the workbench.

    A site may have `active_site_hosts_first` hosts on the workbench, and more as its pages are fetched. The others
    wait in the index under their site: one site's hosts fill neither the workbench nor the index of ready hosts.

    The delay of a site needs no journal: at the start of a process every site waits as if it had been requested at that
    instant, and the previous process made no later request.
    """

    def __init__(
        self,
        workbench: Workbench,
        index: HostIndex,
        sites_delayed_until: float,
        options: FrontierOptions,
        linking: Callable[[int, str], float] | None = None,
        waiting: Iterable[tuple[int, str]] = (),
    ) -> None:
        """`linking` returns how many other sites link to a site, by partition and name; None if that is not counted.
        `waiting` are partition and name of one host of each site with hosts that wait since an earlier process, for
        each of its partitions.
        """
        self._workbench = workbench
        self._index = index
        self._sites_delayed_until = sites_delayed_until
        self._linking = linking
        self.reconfigure(options)
        self._tokens_of: Callable[[str], SiteTokens | None] = lambda _: None
        self._thinned: OrderedDict[str, Site] = OrderedDict()
        """Sites with waiting hosts that may have a free place."""
        self._is_turn_of_waiting = False
        self.admit(waiting)

    def admit(self, waiting: Iterable[tuple[int, str]]) -> None:
        """Add sites with waiting hosts: from an earlier process, or in partitions that have arrived."""
        for partition, host in waiting:
            site = self._of(site_of(host), partition)
            site.waits_in[partition] = None
            self._thinned[site.name] = site

    def forget(self, first: int, end: int) -> None:
        """Note that hosts of some partitions no longer wait here."""
        for site in self._workbench.sites():
            for partition in [one for one in site.waits_in if first <= one < end]:
                self._note_empty(site, partition)

    def reconfigure(self, options: FrontierOptions) -> None:
        """Apply new options."""
        self._hosts_first = options.active_site_hosts_first
        self._hosts_max = max(self._hosts_first, int(WORKBENCH_SHARE * options.active_hosts_max))

    def share(self, split: Container[str], gates: SharedGates) -> None:
        """From now on, lease the gates of split sites. Call this before the first request."""
        self._tokens_of = lambda site: gates.tokens_of(site) if site in split else None
        for site in self._workbench.sites():
            site.tokens = self._tokens_of(site.name)

    def enter(self, host: Host) -> None:
        """Set the site of a host that enters the workbench. A few µs."""
        host.site = self._of(_site_name(host), host.partition)
        host.site.users += 1

    def leave(self, host: Host) -> None:
        """Remove a host from its site."""
        site = host.site
        if site is not None:
            self._workbench.leave_site(site)
            host.site = None
            if site.is_crowded:
                self._thinned[site.name] = site

    def has_room(self, host: Host) -> bool:
        """Return whether another host of a host's site may enter the workbench."""
        site = self._workbench.find_site(_site_name(host))
        return site is None or site.users < self._room(site)

    def is_here(self, host: Host) -> bool:
        """Return whether hosts of a host's site are on the workbench."""
        site = self._workbench.find_site(_site_name(host))
        return site is not None and site.users > 0

    def crowd(self, host: Host) -> str:
        """Note that a host waits for a place of its site; return the site's name."""
        site = self._of(_site_name(host), host.partition)
        site.waits_in[host.partition] = None
        if site.users < self._room(site):
            self._thinned[site.name] = site
        return site.name

    def count_outcome(self, host: Host, outcome: str) -> None:
        """Count a finished URL of a host: a site gets more places as its pages are fetched."""
        if (site := host.site) is not None and outcome == "fetched":
            site.pages += 1
            if site.is_crowded and site.pages % PAGES_A_HOST == 0:
                self._thinned[site.name] = site

    @property
    def may_have(self) -> bool:
        """Whether a host that waits may have a free place at its site; call `draw` to find it."""
        return bool(self._thinned)

    def draw_in_turn(self) -> tuple[int, str] | None:
        """Return, in every other call, a host that waits for its site, so that neither these nor ready hosts starve."""
        self._is_turn_of_waiting = not self._is_turn_of_waiting
        return self.draw() if self._is_turn_of_waiting else None

    def draw(self) -> tuple[int, str] | None:
        """Return a host that waits for its site, which has a free place, or None; sites take turns."""
        while (site := self._roomy()) is not None:
            partition = next(iter(site.waits_in))
            if (found := self._index.next_waiting(partition, site.name)) is not None:
                site.waits_in[partition] = site.waits_in.pop(partition)  # The next one comes from another partition.
                return found
            self._note_empty(site, partition)
        return None

    def _roomy(self) -> Site | None:
        """Return a site with waiting hosts and a free place, or None."""
        while self._thinned:
            name, site = self._thinned.popitem(last=False)
            if site.is_crowded and site.users < self._room(site):
                self._thinned[name] = site
                return site
        return None

    def _note_empty(self, site: Site, partition: int) -> None:
        """Note that no more hosts of a site wait in a partition."""
        site.waits_in.pop(partition, None)
        if site.is_crowded:
            return
        self._thinned.pop(site.name, None)
        if not site.users:
            self._workbench.note_empty_site(site)

    def _of(self, name: str, partition: int) -> Site:
        site = self._workbench.find_site(name)
        if site is None:
            site = self._workbench.site(name, self._sites_delayed_until)
            site.tokens = self._tokens_of(name)
            if self._linking is not None:
                site.pages = int(PAGES_A_HOST * LINKING_HOSTS * self._linking(partition, name))
        return site

    def _room(self, site: Site) -> int:
        return min(self._hosts_first + site.pages // PAGES_A_HOST, self._hosts_max)


def _site_name(host: Host) -> str:
    host.site_name = host.site_name or site_of(host.name)
    return host.site_name


class SharedGates:
    """The addresses and split sites of the workbench that need a lease: all but a host's own address by an override."""

    def __init__(self, workbench: Workbench, leases: Leases, rules: SiteLimits | None, *, addresses: bool) -> None:
        """`rules` are those of split sites; None: sites have no limits. `addresses`: addresses have limits."""
        self._workbench = workbench
        self._leases = leases
        self._rules = rules
        self._addresses = addresses

    def tokens_of(self, site: str) -> SiteTokens | None:
        """Return this shard's tokens of a split site, at first without any; None if sites have no limits."""
        return SiteTokens(site, self._rules, self._leases) if self._rules is not None else None

    def open(self, key: str, delay_until: float) -> None:
        """Give turns to the hosts at an address or of a site, which is leased now, after its delay."""
        name = site_of_key(key)
        if not name:
            self._workbench.unshut(key, delay_until)
            return
        site = self._workbench.find_site(name)
        if site is None or site.tokens is None:
            self._leases.leave(key)  # Its last host left before the token arrived.
        else:
            site.tokens.on_open(key)
            self._workbench.reopen(site, delay_until)

    def shut(self, key: str) -> None:
        """Give no turns to the hosts at an address or of a site, which is no longer leased."""
        if name := site_of_key(key):
            if (site := self._workbench.find_site(name)) is not None and site.tokens is not None:
                site.tokens.on_close(key, needed=bool(site.waiting))
        elif (place := self._workbench.at(key)) is not None:
            self._workbench.shut(place)

    def lease_address(self, place: AddressPlace, now: float) -> None:
        """Lease the address of a host that is to be requested."""
        if not self._is_leased(place):
            return
        at = self._leases.want(place.address, now)
        if at is None:
            self._workbench.shut(place)
        else:
            self._workbench.unshut(place.address, at)

    def begin(self, lease: Lease, now: float) -> bool:
        """Return whether a request may go out now; if so, note it."""
        place = lease.place
        site = lease.site
        assert place is not None, "a request goes to an address"
        is_leased = self._is_leased(place)
        if is_leased and not self._leases.may_ask(place.address, now):
            self._workbench.shut(place)
            return False
        if site is not None and site.tokens is not None:
            lease.token = site.tokens.begin(now)
            if not lease.token:
                return False
        if is_leased:
            self._leases.began(place.address)
        return True

    def end(self, lease: Lease, delay_until: float, site_delay_until: float) -> None:
        """Note that a request ended, with the ends of the delays of its address and its site."""
        place = lease.place
        site = lease.site
        if place is not None and self._is_leased(place):
            self._leases.end(place.address, delay_until)
        if site is not None and site.tokens is not None and lease.token:
            site.tokens.end(lease.token, site_delay_until)

    def leave(self, places: Sequence[AddressPlace]) -> None:
        """Give up the leases of addresses that no host here uses."""
        for place in places:
            if self._is_leased(place):
                self._leases.leave(place.address)

    def _is_leased(self, place: AddressPlace) -> bool:
        return self._addresses and place.name == place.address


def make_shared_gates(workbench: Workbench, leases: Leases, rules: FrontierRules, first: float) -> SharedGates | None:
    """Return the gates that several shards share; None if there are none. `first`: see `SiteLimits`."""
    limits = rules.politeness
    addresses = bool(limits.per_address or limits.address_delay_s)
    has_sites = rules.split and workbench.has_sites
    sites = SiteLimits(limits.per_site, limits.site_delay_s > 0.0, first) if has_sites else None
    return SharedGates(workbench, leases, sites, addresses=addresses) if addresses or sites is not None else None
