"""Door: what the frontier asks of whoever lends addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gossamer.frontier.bench import Bench
from gossamer.frontier.host import Place


class AddressDoor(Protocol):
    """Lends addresses that several shards may use at once. Absent where there is one shard."""

    def want(self, address: str, now: float) -> float | None:
        """Return from when on an address may be asked; None when it must be borrowed first: `opened` will be told."""
        ...

    def may_ask(self, address: str, now: float) -> bool:
        """Say whether a request to an address may begin now."""
        ...

    def began(self, address: str) -> None:
        """Note that a request to an address goes out."""
        ...

    def ended(self, address: str, rest_until: float) -> None:
        """Note that it ended, and until when the address rests."""
        ...

    def leave(self, address: str) -> None:
        """Say that nobody here uses an address any more."""
        ...


class Shared:
    """The bench's addresses, as far as they are borrowed: not those that a host has for itself by agreement."""

    def __init__(self, bench: Bench, door: AddressDoor) -> None:
        self._bench = bench
        self._door = door

    def open(self, address: str, rest_until: float) -> None:
        """Let the hosts at an address have their turns, when it has rested."""
        self._bench.unshut(address, rest_until)

    def shut(self, address: str) -> None:
        """Let the hosts at an address wait, each alone."""
        place = self._bench.at(address)
        if place is not None:
            self._bench.shut(place)

    def borrow(self, place: Place, now: float) -> None:
        """See that an address that a host is at can be asked."""
        if place.name != place.address:
            return
        at = self._door.want(place.address, now)
        if at is None:
            self._bench.shut(place)
        else:
            self._bench.unshut(place.address, at)

    def begin(self, place: Place, now: float) -> bool:
        """Say whether a request may go out now, and note it then."""
        if place.name != place.address:
            return True
        if not self._door.may_ask(place.address, now):
            self._bench.shut(place)
            return False
        self._door.began(place.address)
        return True

    def ended(self, place: Place, rest_until: float) -> None:
        """Note that a request ended."""
        if place.name == place.address:
            self._door.ended(place.address, rest_until)

    def leave(self, places: Sequence[Place]) -> None:
        """Give back what nobody here uses."""
        for place in places:
            if place.name == place.address:
                self._door.leave(place.address)
