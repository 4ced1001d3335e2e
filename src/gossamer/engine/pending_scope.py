"""Pending scope: links that a redirect of a seed may still bring into scope, kept until all seeds are concluded; and
the storage of the scope's roots.

A seed counts as open from its offer until its visit is concluded, also when it was known as an ordinary link before.
While any seed is open, links that only the scope rejects are kept, and offered again when a redirect brings them into
scope. When no seed is open the scope is final, and the kept links are deleted. So the pages found do not depend on the
order of replies.
"""

from collections.abc import Iterable, Iterator

import msgspec

from gossamer.model.links import NOT_SEED, Link
from gossamer.stages.scope.chain import Chain
from gossamer.stages.scope.lists import ExcludedHost
from gossamer.stages.scope.roots import Roots
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import EXCLUDED, PARTITIONED, PENDING_SCOPE, REJECTED, ROOTS, under
from gossamer.url.name import Namer
from gossamer.url.url import Url

LINKS_MAX = 100_000
"""Distinct links that are kept at once: about 15 MB on disk. Further links are rejected, as if no seed were open."""
SCOPE = "scope"
"""The filter whose rejections may be revoked."""


class PendingCounts(msgspec.Struct, array_like=True):
    """The stored counts."""

    open: int = 0
    kept: int = 0
    lost: int = 0
    """Links that were rejected because of `LINKS_MAX`."""


class PendingLink(msgspec.Struct, array_like=True, frozen=True):
    """The stored form of a link."""

    url: str
    link_type: str
    depth: int
    hops: int
    referrer: str


_decode = msgspec.msgpack.Decoder(PendingLink).decode


class PendingScope:
    """Kept links and open seeds. Durable with the epoch. While a seed is open, a link outside the scope costs 3 µs."""

    def __init__(self, epochs: Epochs, *, alone: bool = True, grows: bool = True) -> None:
        """`alone`: there are no other shards, whose seeds may widen the scope too. Where everything is in scope, it
        does not grow (`grows`), and nothing is kept.
        """
        self._epochs = epochs
        self.grows = grows
        self._final = alone
        self._committed_open = 0
        self.activity = 0
        """Grows with each seed that is opened and each move of partitions, so that reports show a change."""
        self._counts = load(epochs, PENDING_SCOPE, PendingCounts)
        self._regained: list[Link] = []
        self._changed = False

    @property
    def is_open(self) -> bool:
        """Whether the scope may still grow."""
        return self.grows and (self._counts.open > 0 or not self._final)

    @property
    def seeds_open(self) -> bool:
        """Whether seeds of this shard are open, or were at its last commit."""
        return self.grows and (self._counts.open > 0 or self._committed_open > 0)

    def set_final(self, *, final: bool) -> None:
        """Set whether the scope is final as far as seeds of other shards are concerned."""
        self._changed |= self.grows and final != self._final
        self._final = final

    def open(self, url: Url, seed: int) -> None:
        """Note that a seed will be visited."""
        if not self.grows:
            return
        self.activity += 1
        if self.seed(url) == NOT_SEED:
            self._counts.open += 1
            self._changed = True
        self._epochs.put("scope", url.store_key(b"s"), bytes((seed,)))

    def seed(self, url: Url) -> int:
        """Return the kind of open seed that a URL is, or `NOT_SEED`."""
        value = self._epochs.get("scope", url.store_key(b"s")) if self.grows and self._counts.open else None
        return value[0] if value else NOT_SEED

    def conclude(self, url: Url) -> None:
        """Note that a URL's visit is concluded."""
        if self.seed(url) != NOT_SEED:
            self._epochs.delete("scope", url.store_key(b"s"))
            self._counts.open -= 1
            self._changed = True

    def keep(self, link: Link) -> None:
        """Keep a link that the scope rejects; of several links to a URL, the one with the shortest path."""
        key = link.url.store_key(b"l")
        known = self._epochs.get("scope", key)
        if known is None:
            self._changed = True
            if self._counts.kept >= LINKS_MAX:
                self._counts.lost += 1
                return
            self._counts.kept += 1
        elif _decode(known).depth <= link.depth:
            return
        kept = PendingLink(link.url.text, link.link_type, link.depth, link.hops, link.referrer)
        self._epochs.put("scope", key, msgspec.msgpack.encode(kept))

    def widen(self, target: Url, chain: Chain, namer: Namer) -> None:
        """Find the kept links that are in scope now, after a redirect to `target` has widened it.

        A pass over the links in its partition, since a redirect brings in only pages of the target's site.
        """
        prefix = target.partition.to_bytes(2)
        self._judge_again(prefix + b"l", prefix + b"m", chain, namer)

    def widen_all(self, chain: Chain, namer: Namer) -> None:
        """As `widen`, for what other shards brought into scope before this one began: a pass over all kept links."""
        self._judge_again(*PARTITIONED, chain, namer)

    def _judge_again(self, begin: bytes, end: bytes, chain: Chain, namer: Namer) -> None:
        if not self.grows or not self._counts.kept:
            return
        found = [(key, link) for key, link in self._kept_links(begin, end, namer) if chain.explain(link) != SCOPE]
        for key, link in found:
            self._epochs.delete("scope", key)
            self._regained.append(link)
        self._counts.kept -= len(found)
        self._changed = True

    def _kept_links(self, begin: bytes, end: bytes, namer: Namer) -> Iterator[tuple[bytes, Link]]:
        for key, value in self._epochs.scan("scope", begin, end):
            if key[2:3] == b"l":
                kept = _decode(value)
                url = namer.name(kept.url)
                if url is not None:
                    yield key, Link(url, kept.link_type, kept.depth, kept.hops, kept.referrer)

    def move_partitions(self, first: int, end: int, sign: int) -> None:
        """Add (`sign` 1) the open seeds of partitions that have arrived, or subtract (-1) those of partitions that
        leave with this epoch, which is already cut.
        """
        if not self.grows:
            return
        self.activity += 1
        for partition in range(first, end):
            self._counts.open += sign * sum(1 for _ in self._epochs.scan("scope", *open_seeds(partition)))
        self._epochs.put("meta", PENDING_SCOPE, msgspec.msgpack.encode(self._counts))

    def take_regained(self) -> list[Link]:
        """Return the links that have come into scope since the last call, to be offered now."""
        found = self._regained
        self._regained = []
        return found

    def cut(self) -> None:
        """Write the counts to the open epoch; delete the kept links once the scope is final."""
        self._committed_open = self._counts.open  # Reported until the next cut, since this epoch may be lost.
        if not self._changed:
            return
        if not self.is_open and self._counts.kept:
            self._epochs.delete_range("scope", *PARTITIONED)
            self._counts.kept = 0
        self._epochs.put("meta", PENDING_SCOPE, msgspec.msgpack.encode(self._counts))
        self._changed = False


def count_pending(pairs: Iterable[tuple[bytes, bytes]]) -> PendingCounts:
    """Return the counts for pairs of the family `scope`."""
    counts = PendingCounts()
    for key, _ in pairs:
        counts.open += key[2:3] == b"s"
        counts.kept += key[2:3] == b"l"
    return counts


def open_seeds(partition: int) -> tuple[bytes, bytes]:
    """Return the first key and the end key (not included) of a partition's open seeds."""
    return partition.to_bytes(2) + b"s", partition.to_bytes(2) + b"t"


class ScopeMemory:
    """Loads roots and exclusions of earlier runs; stores changes with each epoch. Costs nothing without changes."""

    def __init__(
        self, epochs: Epochs, roots: Roots, excluded: ExcludedHost, counts: dict[str, int], *, alone: bool, grows: bool
    ) -> None:
        self._epochs = epochs
        self._roots = roots
        self._excluded = excluded
        self._counts = counts
        self.pending_scope = PendingScope(epochs, alone=alone, grows=grows)
        """Links that may still come into scope."""
        for _, dumped in list(epochs.scan("meta", *under(ROOTS))):
            roots.load(dumped)
        hosts = epochs.get("meta", EXCLUDED)
        if hosts is not None:
            excluded.load(hosts)
        for name, count in load(epochs, REJECTED, dict[str, int]).items():
            counts[name] = counts.get(name, 0) + count
        self._revision = excluded.revision

    def cut(self, now: float) -> None:
        """Put changes into the open epoch."""
        new = self._roots.take_new()
        if new is not None:
            self._epochs.put("meta", ROOTS + self._epochs.number.to_bytes(8), new)
        if self._excluded.revision != self._revision:
            self._revision = self._excluded.revision
            self._epochs.put("meta", EXCLUDED, self._excluded.dump())
        self.pending_scope.cut()
        self._epochs.put("meta", REJECTED, msgspec.msgpack.encode(self._counts))
