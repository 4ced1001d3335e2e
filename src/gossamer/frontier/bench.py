"""Bench: the workbench, a heap of addresses each with a heap of its hosts (as in BUbiNG). Time is an argument.

A host is offered only when its own gate and its address's are open; the one that has been free for longest comes
first. Every change of a host's turn makes a new heap entry with a new stamp, and older entries are dropped when they
come up, so each operation costs O(log n).
"""

from __future__ import annotations

import heapq
from itertools import count

from gossamer.frontier.host import Host, Place, Turn


class Bench:
    """Hosts in memory, by the time at which they may be asked."""

    def __init__(self, per_address: int) -> None:
        self._per_address = per_address
        self._places: dict[str, Place] = {}
        self._turns: list[tuple[float, int, int, Place]] = []
        self._unplaced: list[Turn] = []
        self._order = count()

    def place(self, address: str, fingerprint: int, rest_until: float) -> Place:
        """Return the place of an address, new ones resting until `rest_until`."""
        place = self._places.get(address)
        if place is None:
            place = self._places[address] = Place(address, fingerprint, rest_until)
        return place

    def settle(self, host: Host, place: Place | None) -> None:
        """Move a host to an address, or to none when it must be looked up."""
        if host.place is not place:
            if host.place is not None:
                host.place.users -= 1
            if place is not None:
                place.users += 1
            host.place = place
        self.withdraw(host)

    def offer(self, host: Host, at: float) -> None:
        """Let a host have its turn at `at`; an earlier offer of it counts no more."""
        host.stamp += 1
        host.turn_at = at
        turn = (at, next(self._order), host.stamp, host)
        if host.place is None:
            heapq.heappush(self._unplaced, turn)
        else:
            heapq.heappush(host.place.hosts, turn)
            self._offer_place(host.place)

    def withdraw(self, host: Host) -> None:
        """Take a host's offer back."""
        host.stamp += 1
        host.turn_at = None

    def take(self, now: float) -> Host | None:
        """Return a host whose turn it is, or None. Its address counts as in use until `release`."""
        unplaced = self._unplaced
        while unplaced and (unplaced[0][0] <= now or unplaced[0][2] != unplaced[0][3].stamp):
            _, _, stamp, host = heapq.heappop(unplaced)
            if stamp == host.stamp:
                self.withdraw(host)
                return host
        turns = self._turns
        while turns and (turns[0][0] <= now or turns[0][2] != turns[0][3].stamp):
            _, _, stamp, place = heapq.heappop(turns)
            if stamp != place.stamp:
                continue
            taken = self._take_at(place, now)
            self._offer_place(place)
            if taken is not None:
                return taken
        return None

    def occupy(self, place: Place) -> None:
        """Count a request to an address."""
        place.out += 1
        if place.out == self._per_address:
            place.stamp += 1  # Its turn counts no more; `release` gives it a new one.

    def release(self, place: Place, rest_until: float) -> None:
        """Give an address back; it rests until `rest_until`."""
        place.out -= 1
        place.rest_until = max(place.rest_until, rest_until)
        self._offer_place(place)

    def next_at(self) -> float | None:
        """Return when the next turn comes, or None when nobody waits for one but those whose address is in use."""
        self._prune()
        instants = [heap[0][0] for heap in (self._unplaced, self._turns) if heap]
        return min(instants) if instants else None

    def _take_at(self, place: Place, now: float) -> Host | None:
        hosts = place.hosts
        while hosts and (hosts[0][0] <= now or hosts[0][2] != hosts[0][3].stamp):
            _, _, stamp, host = heapq.heappop(hosts)
            if stamp == host.stamp:
                self.withdraw(host)
                return host
        return None

    def _offer_place(self, place: Place) -> None:
        hosts = place.hosts
        while hosts and hosts[0][2] != hosts[0][3].stamp:
            heapq.heappop(hosts)
        place.stamp += 1
        if hosts and (not self._per_address or place.out < self._per_address):
            at = max(hosts[0][0], place.rest_until)
            heapq.heappush(self._turns, (at, next(self._order), place.stamp, place))

    def _prune(self) -> None:
        while self._unplaced and self._unplaced[0][2] != self._unplaced[0][3].stamp:
            heapq.heappop(self._unplaced)
        while self._turns:
            _, _, stamp, place = self._turns[0]
            if stamp == place.stamp and place.hosts and place.hosts[0][2] == place.hosts[0][3].stamp:
                break
            heapq.heappop(self._turns)
            if stamp == place.stamp:  # The host that this turn was for has been withdrawn since.
                self._offer_place(place)

    def forget_rested(self, now: float) -> None:
        """Drop places that nobody uses and that have rested: keeps memory to the hosts on the bench."""
        idle = [p for p in self._places.values() if not p.users and not p.out and p.rest_until <= now]
        for place in idle:
            del self._places[place.address]
