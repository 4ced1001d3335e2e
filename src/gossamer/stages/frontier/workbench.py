"""Workbench: a heap of addresses, each with a heap of its hosts (as in BUbiNG). Time is an argument.

A host is returned only if the gates of host, address and site are open; the host that has been free for longest comes
first. Several hosts of one site form a line at an address, which counts as one host that is free since its last turn:
so all sites at an address get equal turns, with any number of hosts. Every change of a host's turn adds a heap entry
with a new stamp, and outdated entries are dropped when they reach the top, so each operation costs O(log n).

The site's gate is checked when a host has its turn. If the site is in use, the host waits at the site, outside the
heaps, until a request to the site ends. If the site's delay is running, the host gets its next turn at its end.
"""

import heapq
from collections import deque
from collections.abc import Sequence
from itertools import count
from math import ceil

from gossamer.stages.frontier.host import AddressPlace, Host, Site, SiteLine, Turn
from gossamer.stages.frontier.options import FrontierOptions

HOST_BYTES = 2_500
"""Memory of a host on the workbench beside its URLs: its record, its turns in the heaps, its address (measured)."""
SPAN_S = 60.0
"""Time over which rate and delay are averaged."""
SLACK = 1.5
"""Factor by which the size exceeds the recent need, for variations."""


class WorkbenchSize:
    """How many hosts the workbench holds. Only computes with numbers.

    To keep up a rate of requests, as many hosts must be in memory as wait at the same time: rate times mean delay
    (Heydon and Najork found three queues per thread enough for Mercator; BUbiNG's front grows when a fetcher waits). So
    the size grows when a request could go out and no host in memory is due but one on disk is, and shrinks to the need
    of the last minutes.

    Never more than `active_hosts_max` hosts, nor more than `active_hosts_bytes_max` can hold with their URLs.
    """

    def __init__(self, options: FrontierOptions) -> None:
        self._options = options
        self.hosts = min(
            options.active_hosts_first, options.active_hosts_max, options.active_hosts_bytes_max // HOST_BYTES + 1
        )
        """Hosts that may be on the workbench now."""
        self._since = 0.0
        self._delays_s = 0.0

    def reconfigure(self, options: FrontierOptions) -> None:
        """Apply new bounds; surplus hosts leave in their turn."""
        self._options = options
        self.hosts = min(self.hosts, options.active_hosts_max)

    def may_widen(self, active: int, window_bytes: int) -> bool:
        """Return whether there is memory for one more host, for when a request could go out and no host is due."""
        return active < self._options.active_hosts_max and (
            active < 1 or (active + 1) * HOST_BYTES + window_bytes <= self._options.active_hosts_bytes_max
        )

    def widen(self, active: int, window_bytes: int) -> bool:
        """Grow by one host if there is memory for it; return whether there is a free place now."""
        if self.may_widen(active, window_bytes):
            self.hosts = max(self.hosts, active + 1)
        return active < self.hosts

    def shrink(self) -> None:
        """Shrink by a quarter; surplus hosts leave when they have no more URLs or a long delay."""
        self.hosts = max(1, self.hosts * 3 // 4)

    def note_delay(self, delay_s: float) -> None:
        """Note that a request ended, and the delay of its host."""
        self._delays_s += delay_s

    def fit(self, now: float) -> None:
        """Shrink towards the recent need, by a tenth at a time. Call this regularly."""
        span_s = now - self._since
        if span_s < SPAN_S:
            return
        needed = ceil(SLACK * self._delays_s / span_s)  # Rate times mean delay.
        least = max(needed, min(self._options.active_hosts_first, self._options.active_hosts_max))
        if least < self.hosts:
            self.hosts = max(least, self.hosts - self.hosts // 10)
        self._since = now
        self._delays_s = 0.0


DAYS_PER_S = 16
""""Days" per second: addresses whose turn is later than the current day are in a list per day. So the heap, each
operation of which causes cache misses, has only the turns of one day (calendar queue: Brown 1988)."""
CALLED_MAX = 4
"""Waiting hosts that get a turn when a request to their site ends: for some the address may be in use meanwhile."""

PlaceTurn = tuple[float, int, int, AddressPlace]
"""Instant, order of arrival, stamp, address."""


class Workbench:
    """Hosts in memory, by the time at which they may be requested."""

    def __init__(self, per_address: int, per_site: int = 0, site_delay_s: float = 0.0) -> None:
        self._per_address = per_address
        self._per_site = per_site
        self.has_sites = bool(per_site or site_delay_s)
        """Whether there is a gate per site."""
        self._sites: dict[str, Site] = {}
        self._left: dict[str, Site] = {}
        """Sites whose last host has left since the last `forget_undelayed`."""
        self._crowded: dict[str, Site] = {}
        """Sites with waiting hosts."""
        self._places: dict[str, AddressPlace] = {}
        self._unused: dict[str, AddressPlace] = {}
        """Addresses that were added, or left by their last host, since the last `forget_undelayed`."""
        self._turns: list[PlaceTurn] = []
        """Heap of the turns up to the current day."""
        self._day = -1
        self._days: dict[int, list[PlaceTurn]] = {}
        """Turns of later days, in the order in which they were added."""
        self._ahead: list[int] = []
        """Heap of those days."""
        self._unplaced: list[Turn] = []
        self._order = count()

    def place(self, address: str, fingerprint: int, delay_until: float, own: str = "", most: int = 0) -> AddressPlace:
        """Return the place of an address; the delay of a new place ends at `delay_until`. The host `own` gets a place
        for itself with at most `most` concurrent requests, independent of other hosts there.
        """
        name = f"{address} {own}" if own else address
        place = self._places.get(name)
        if place is None:
            most = most if own else self._per_address
            place = self._places[name] = self._unused[name] = AddressPlace(
                name, address, fingerprint, delay_until, most
            )
        return place

    def at(self, address: str) -> AddressPlace | None:
        """Return the place of an address, if it has one."""
        return self._places.get(address)

    def shut(self, place: AddressPlace) -> None:
        """Give no turns to the hosts at an address until `unshut`."""
        place.shut = True
        place.stamp += 1

    def unshut(self, address: str, delay_until: float) -> None:
        """Give turns to the hosts at an address again, not before `delay_until`."""
        if (place := self._places.get(address)) is not None:
            place.shut = False
            place.delay_until = max(place.delay_until, delay_until)
            self._offer_place(place)

    def reconfigure(self, per_address: int) -> None:
        """Set the concurrent requests of every address that has no override; 0: no limit."""
        self._per_address = per_address
        for place in self._places.values():
            if place.name == place.address:
                place.most = per_address
                self._offer_place(place)

    def delay_sites(self, before_s: float, delay_s: float, now: float) -> None:
        """Apply a new delay between requests to a site. A longer one holds for sites that wait already; without a gate
        before, it is not known since when, so they wait from now on.
        """
        for site in self._sites.values() if delay_s > before_s else ():
            site.delay_until = site.delay_until + delay_s - before_s if self.has_sites else now + delay_s
        self.has_sites = bool(self._per_site or delay_s)

    def site(self, name: str, delay_until: float) -> Site:
        """Return a site; the delay of a new one ends at `delay_until`."""
        site = self._sites.get(name)
        if site is None:
            site = self._sites[name] = Site(name, delay_until)
        return site

    def sites(self) -> list[Site]:
        """Return all sites."""
        return list(self._sites.values())

    def find_site(self, name: str) -> Site | None:
        """Return a site by name, or None."""
        return self._sites.get(name)

    def leave_site(self, site: Site) -> None:
        """Remove a host from a site."""
        site.users -= 1
        if not site.users:
            self.note_empty_site(site)

    def note_empty_site(self, site: Site) -> None:
        """Note that a site has no hosts here, so that it may be dropped."""
        self._left[site.name] = site

    def settle(self, host: Host, place: AddressPlace | None) -> None:
        """Move a host to an address, or to none if it must be looked up."""
        if host.place is not place:
            if host.place is not None:
                host.place.users -= 1
                if not host.place.users:
                    self._unused[host.place.name] = host.place
            if place is not None:
                place.users += 1
            host.place = place
        self.withdraw(host)

    def offer(self, host: Host, at: float) -> None:
        """Give a host its turn at `at`, in place of its earlier turn."""
        host.stamp += 1
        host.turn_at = at
        turn = (at, next(self._order), host.stamp, host)
        place = host.place
        site = host.site
        if place is None:
            heapq.heappush(self._unplaced, turn)
            return
        if site is None or site.users < 2:
            heapq.heappush(place.hosts, turn)
        else:
            self._line_up(place, site.name, turn)
        self._offer_place(place)

    def withdraw(self, host: Host) -> None:
        """Cancel a host's turn."""
        host.stamp += 1
        host.turn_at = None

    def take(self, now: float) -> Host | None:
        """Return a host whose turn it is, or None. The caller marks its address as in use by `occupy`."""
        unplaced = self._unplaced
        while unplaced and (unplaced[0][0] <= now or unplaced[0][2] != unplaced[0][3].stamp):
            _, _, stamp, host = heapq.heappop(unplaced)
            if stamp == host.stamp:
                self.withdraw(host)
                return host
        while (placed := self._take_placed(now)) is not None:
            if not self.has_sites or placed.site is None or self._site_open(placed, placed.site, now):
                return placed
        return self.take(now) if self._crowded and self._readmit(now) else None

    def _take_placed(self, now: float) -> Host | None:
        while True:
            turns = self._turns
            while turns and (turns[0][0] <= now or turns[0][2] != turns[0][3].stamp):
                _, _, stamp, place = heapq.heappop(turns)
                if stamp != place.stamp:
                    continue
                taken = self._take_at(place, now)
                if place.hosts:
                    self._offer_place(place)
                if taken is not None:
                    return taken
            if turns or not self._ahead or self._ahead[0] > now * DAYS_PER_S:
                return None
            self._begin_day()

    def _begin_day(self) -> None:
        """Begin the next day with turns, since the current day has none left."""
        self._day = heapq.heappop(self._ahead)
        self._turns = self._days.pop(self._day)
        heapq.heapify(self._turns)

    def _site_open(self, host: Host, site: Site, now: float) -> bool:
        """Return whether a host's site may be requested; if not, let the host wait."""
        if self._is_full(site):
            if site.tokens is not None:
                site.tokens.ask(now)  # The token may arrive at once; then waiting hosts get their turn below.
            host.stamp += 1
            if site.waiting is None:
                site.waiting = deque()
            site.waiting.append((host.stamp, host))
            self._crowded[site.name] = site
            return False
        if site.delay_until > now:
            self.offer(host, site.delay_until)
            return False
        return True

    def _is_full(self, site: Site) -> bool:
        """Return whether a site has its maximum of concurrent requests, or other shards have its tokens."""
        most = self._per_site or None if site.tokens is None else site.tokens.most
        return most is not None and site.out >= most

    def reopen(self, site: Site, delay_until: float) -> None:
        """Give turns to the hosts that wait at a site, since a token has arrived; none before `delay_until`."""
        site.delay_until = max(site.delay_until, delay_until)
        if site.waiting:
            self._call(site, CALLED_MAX)

    def _readmit(self, now: float) -> bool:
        """Give turns to all hosts that wait at sites that are not in use; return whether one has its turn now.

        Needed if the hosts that got a turn when the site's last request ended have left without using it.
        """
        at_once = False
        for site in [site for site in self._crowded.values() if not self._is_full(site)]:
            at_once |= site.delay_until <= now and self._call(site, len(site.waiting or ())) > 0
        return at_once

    def site_gate(self, site: Site) -> str:
        """Return why a site may not be requested now, for people; empty if it may."""
        if not self._is_full(site):
            return ""
        if site.tokens is not None and not site.out:
            return f"the hosts of {site.name} are divided among shards, and others have their turn (url.split_sites)"
        return f"all requests that {site.name} may have at once are out (politeness.per_site = {self._per_site})"

    def _call(self, site: Site, most: int) -> int:
        """Give turns to at most `most` of the hosts that wait at a site; return to how many."""
        called = 0
        while site.waiting and called < most:
            stamp, host = site.waiting.popleft()
            if stamp == host.stamp:
                self.offer(host, max(site.delay_until, host.record.delay_until))
                called += 1
        if not site.waiting:
            site.waiting = None
            self._crowded.pop(site.name, None)
        return called

    def occupy(self, place: AddressPlace, site: Site | None = None) -> None:
        """Count a request to an address, and to a site if it has a gate."""
        if site is not None:
            site.out += 1
        place.out += 1
        if place.out == place.most:
            place.stamp += 1  # Its entry is outdated; `release` adds a new one.

    def release(self, place: AddressPlace, delay_until: float) -> None:
        """Note the end of a request to an address, whose delay ends at `delay_until`."""
        place.out -= 1
        place.delay_until = max(place.delay_until, delay_until)
        if place.hosts:
            self._offer_place(place)

    def release_site(self, site: Site, delay_until: float) -> None:
        """Note the end of a request to a site, whose delay ends at `delay_until`."""
        site.out -= 1
        site.delay_until = max(site.delay_until, delay_until)
        if site.waiting:
            self._call(site, CALLED_MAX)

    def next_at(self) -> float | None:
        """Return the time of the next turn; None if there is none, except for hosts whose address is in use."""
        self._prune()
        instants = [heap[0][0] for heap in (self._unplaced, self._turns) if heap]
        instants += [site.delay_until for site in self._crowded.values() if not self._is_full(site)]
        return min(instants) if instants else None

    def _take_at(self, place: AddressPlace, now: float) -> Host | None:
        hosts = place.hosts
        while hosts and (hosts[0][0] <= now or hosts[0][2] != hosts[0][3].stamp):
            _, _, stamp, first = heapq.heappop(hosts)
            if stamp != first.stamp:
                continue
            taken = self._take_in_line(place, first, now) if isinstance(first, SiteLine) else first
            if taken is not None:
                self.withdraw(taken)
                return taken
        return None

    def _line_up(self, place: AddressPlace, site: str, turn: Turn) -> None:
        if place.lines is None:
            place.lines = {}
        line = place.lines.get(site)
        if line is None:
            line = place.lines[site] = SiteLine(site)
        heapq.heappush(line.hosts, turn)
        self._offer_line(place, line)

    def _take_in_line(self, place: AddressPlace, line: SiteLine, now: float) -> Host | None:
        """Return the host whose turn it is in a line that reached the top, or None, and give the line its next turn."""
        taken = None
        hosts = line.hosts
        line.turn_at = None
        if _drop_stale(hosts) and hosts[0][0] <= now:
            taken = heapq.heappop(hosts)[3]
            line.taken_at = now
        self._offer_line(place, line)
        return taken

    def _offer_line(self, place: AddressPlace, line: SiteLine) -> None:
        if not _drop_stale(line.hosts):
            # The next host of this line becomes ready after the line's last turn, so the line can be dropped.
            line.stamp += 1
            assert place.lines is not None
            place.lines.pop(line.site, None)
            return
        at = max(line.hosts[0][0], line.taken_at)
        if line.turn_at != at:
            line.stamp += 1
            line.turn_at = at
            heapq.heappush(place.hosts, (at, next(self._order), line.stamp, line))

    def _settle_first(self, place: AddressPlace) -> bool:
        """Drop outdated turns until the first one at an address is valid; False if there is none."""
        hosts = place.hosts
        while hosts:
            if _counts(hosts):
                return True
            _, _, stamp, first = heapq.heappop(hosts)
            if stamp == first.stamp and isinstance(first, SiteLine):
                first.turn_at = None
                self._offer_line(place, first)
        return False

    def _offer_place(self, place: AddressPlace) -> None:
        hosts = place.hosts
        place.stamp += 1
        # Nearly always the first entry is a host with a valid turn.
        is_host = bool(hosts) and hosts[0][2] == hosts[0][3].stamp and isinstance(hosts[0][3], Host)
        if (is_host or self._settle_first(place)) and not place.shut and (not place.most or place.out < place.most):
            at = max(hosts[0][0], place.delay_until)
            turn = (at, next(self._order), place.stamp, place)
            day = int(at * DAYS_PER_S)
            if day <= self._day:
                heapq.heappush(self._turns, turn)
            elif (turns := self._days.get(day)) is not None:
                turns.append(turn)
            else:
                self._days[day] = [turn]
                heapq.heappush(self._ahead, day)

    def _prune(self) -> None:
        while self._unplaced and self._unplaced[0][2] != self._unplaced[0][3].stamp:
            heapq.heappop(self._unplaced)
        while self._turns or self._ahead:
            if not self._turns:
                self._begin_day()  # If that day is far ahead, the current day just lasts longer.
            _, _, stamp, place = self._turns[0]
            if stamp == place.stamp and _counts(place.hosts):
                break
            heapq.heappop(self._turns)
            if stamp == place.stamp:  # The host with this turn was withdrawn since.
                self._offer_place(place)

    def forget_undelayed(self, now: float) -> list[AddressPlace]:
        """Drop unused addresses and sites whose delay is over, so that memory is bounded by the workbench.

        Return the addresses. Costs O(n) in the addresses and sites that hosts have left.
        """
        unused = [place for place in self._unused.values() if not place.users]
        idle = [place for place in unused if not place.out and place.delay_until <= now]
        for place in idle:
            del self._places[place.name]
        self._unused = {place.name: place for place in unused if place.name in self._places}
        left = [site for site in self._left.values() if not site.users]
        unneeded = [site for site in left if not (site.out or site.is_crowded or site.delay_until > now)]
        for site in unneeded:
            del self._sites[site.name]
            if site.tokens is not None:
                site.tokens.leave()
            self._crowded.pop(site.name, None)  # The hosts that waited there have left the workbench.
        self._left = {site.name: site for site in left if site.name in self._sites}
        return idle


def _counts(turns: Sequence[tuple[float, int, int, Host | SiteLine]]) -> bool:
    """Return whether the first turn in a line is neither missing nor outdated."""
    if not turns:
        return False
    _, _, stamp, first = turns[0]
    return stamp == first.stamp and (not isinstance(first, SiteLine) or _counts(first.hosts))


def _drop_stale(turns: list[Turn]) -> bool:
    """Drop outdated turns from the front of a line; return whether a turn is left."""
    while turns and turns[0][2] != turns[0][3].stamp:
        heapq.heappop(turns)
    return bool(turns)
