"""Walked: what random walks know of the pages they were at, in the shard's store; durable with the epoch.

Keys, after two bytes of partition: `p` and the URL's fingerprint for a page; `n` and a host for how many of its pages
are known; `i`, host and a number for the fingerprint of one of them. Under the shard's own partition: `h` and a number
for each known host, so that a host, and then one of its pages, is drawn with four reads among however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gossamer.state.epoch import Epochs
from gossamer.state.schema import PARTITIONED, WALK_COUNTS, WALKED_HOSTS, WALKERS
from gossamer.url.url import Url
from gossamer.world.dice import Dice


class WalkedPage(msgspec.Struct, array_like=True):
    """A page that was walked to, or a seed to begin at."""

    url: str
    depth: int = 0
    seed: int = 0
    visits: int = 0
    """How often a walker arrived."""
    outcome: str = ""
    """How its request ended; empty for a seed that no walker came to so far."""
    links: list[str] = msgspec.field(default_factory=list)
    """Distinct pages that it links to and that are ours, or as many of them by chance as are kept."""


class Walker(msgspec.Struct, array_like=True):
    """One walk."""

    at: tuple[int, int] | None = None
    """Partition and fingerprint of its page; None: it begins anew."""
    awaits: str = ""
    """The page that is being fetched for it."""


class WalkCounts(msgspec.Struct, array_like=True):
    """How far all walks together have come."""

    steps: int = 0
    restarts: int = 0
    hosts: int = 0
    """Hosts that a walk may begin anew at."""
    fetched: int = 0
    """Different pages that were fetched."""


_encode = msgspec.msgpack.Encoder().encode
_decode_page = msgspec.msgpack.Decoder(WalkedPage).decode
_decode_walker = msgspec.msgpack.Decoder(Walker).decode
_decode_place = msgspec.msgpack.Decoder(tuple[int, str]).decode


class Walked:
    """Pages by URL, and by chance. About 3 µs a read or change, and 0.1 µs for each link kept."""

    def __init__(self, epochs: Epochs, dice: Dice) -> None:
        self._epochs = epochs
        self._dice = dice
        stored = epochs.get("walk", WALK_COUNTS)
        self.counts = WalkCounts() if stored is None else msgspec.msgpack.decode(stored, type=WalkCounts)

    def page(self, partition: int, fingerprint: int) -> WalkedPage | None:
        """Return what is known of a page."""
        stored = self._epochs.get("walk", _page_key(partition, fingerprint))
        return _decode_page(stored) if stored is not None else None

    def put(self, url: Url, page: WalkedPage) -> None:
        """Remember a page with this epoch."""
        self._epochs.put("walk", _page_key(url.partition, url.fingerprint), _encode(page))

    def begin_at(self, url: Url) -> None:
        """Let walks begin anew at a page: to be said once of each."""
        prefix = url.partition.to_bytes(2)
        known = prefix + b"n" + url.host.encode()
        stored = self._epochs.get("walk", known)
        number = int.from_bytes(stored) if stored is not None else 0
        if not number:
            self._epochs.put("walk", WALKED_HOSTS + self.counts.hosts.to_bytes(8), _encode((url.partition, url.host)))
            self.counts.hosts += 1
        self._epochs.put("walk", known, (number + 1).to_bytes(8))
        self._epochs.put("walk", _index_key(url.partition, url.host, number), url.fingerprint.to_bytes(8))

    def draw(self) -> tuple[int, int] | None:
        """Return a random page of a random host, as partition and fingerprint; None while none is known."""
        if not self.counts.hosts:
            return None
        stored = self._epochs.get("walk", WALKED_HOSTS + self._dice.below(self.counts.hosts).to_bytes(8))
        assert stored is not None
        partition, host = _decode_place(stored)
        pages = self._epochs.get("walk", partition.to_bytes(2) + b"n" + host.encode())
        assert pages is not None
        number = self._dice.below(int.from_bytes(pages))
        fingerprint = self._epochs.get("walk", _index_key(partition, host, number))
        assert fingerprint is not None
        return partition, int.from_bytes(fingerprint)

    def walkers(self, count: int) -> list[Walker]:
        """Return the walkers as the last epoch has them, new ones where there are fewer."""
        found = []
        for number in range(count):
            stored = self._epochs.get("walk", WALKERS + number.to_bytes(2))
            found.append(Walker() if stored is None else _decode_walker(stored))
        return found

    def cut(self, walkers: list[Walker]) -> None:
        """Give the open epoch where everybody is. A few bytes each."""
        for number, walker in enumerate(walkers):
            self._epochs.put("walk", WALKERS + number.to_bytes(2), _encode(walker))
        self._epochs.put("walk", WALK_COUNTS, _encode(self.counts))


def has_walked(epochs: Epochs) -> bool:
    """Say whether a crawl with a commit is a walk: each of its commits has the counts."""
    return epochs.get("walk", WALK_COUNTS) is not None


def all_pages(epochs: Epochs) -> Iterator[tuple[int, WalkedPage]]:
    """Yield fingerprint and record of every page. One pass over all that was walked."""
    for key, value in epochs.scan("walk", *PARTITIONED):
        if key[2:3] == b"p":
            yield int.from_bytes(key[3:]), _decode_page(value)


def _page_key(partition: int, fingerprint: int) -> bytes:
    return partition.to_bytes(2) + b"p" + fingerprint.to_bytes(8)


def _index_key(partition: int, host: str, number: int) -> bytes:
    return partition.to_bytes(2) + b"i" + host.encode() + b"\0" + number.to_bytes(8)
