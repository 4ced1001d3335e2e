"""Content: which page had this body first, exactly by digest, or nearly by simhash.

Simhashes are in tables of blocks, in the shard's store. Two fingerprints of 64 bits that differ in at most three have
one of their four blocks of 16 bits in common (Manku, Jain and Das Sarma 2007, section 3). So each is kept under its
four blocks; a question looks at four entries of the store.
"""

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec
from xxhash import xxh3_64_digest

from gossamer.model.digests import Sketch
from gossamer.model.visits import Original
from gossamer.state.epoch import Epochs
from gossamer.state.schema import CONTENT
from gossamer.url.site import site_partition
from gossamer.url.url import Url


class OriginalRecord(msgspec.Struct, array_like=True, frozen=True):
    """What is kept of an `Original`."""

    url: str
    fetched_at: float
    record_id: str
    links: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(OriginalRecord).decode


class ExactContentSeen:
    """Remembers the first holder of each digest within a host, a site or the shard. A put and a get a page."""

    def __init__(self, epochs: Epochs, scope: str, split: frozenset[str] = frozenset()) -> None:
        """`split` are sites whose hosts have a partition each: a shard compares those that it has."""
        self._epochs = epochs
        self._owner = _owner_by(scope, split)

    def find(self, digest: bytes, url: Url) -> Original | None:
        """Return who had it first, or None."""
        value = self._epochs.get("content", self._owner(url) + digest)
        if value is None:
            return None
        holder = _decode(value)
        return Original(holder.url, holder.fetched_at, holder.record_id, holder.links)

    def remember(self, digest: bytes, url: Url, original: Original) -> None:
        """Note the first holder, after `find` found none: this does not look again."""
        value = _encode(OriginalRecord(original.url, original.fetched_at, original.record_id, original.links))
        self._epochs.put("content", self._owner(url) + digest, value)


OWNERS_MAX = 1024
"""Hosts or sites whose beginning of keys is kept in memory: a host's pages come one after another."""
BITS_MAX = 3
"""Of difference: what four blocks can find without fail."""
SHINGLES_MIN = 24
"""Of fewer a simhash says nothing: two menus differ in less."""
ENTRIES_MAX = 64
"""Pages under one block; the oldest make room. At a million pages of one owner 16 are expected."""
BLOCKS = 4

_ENTRY = struct.Struct("<QHQ")
"""Simhash, partition, fingerprint."""
_TABLE = b"\0near"
"""Exact and near share a family; no digest is as short as what follows this."""


def without(
    key: bytes,
    value: bytes,
    has_url: Callable[[str], bool],
    has: Callable[[int, int], bool],
    heirs: Mapping[str, Original],
) -> bytes:
    """Return what an entry of either test says without some pages; nothing if it speaks of these alone. `has_url`
    knows them by address, `has` by partition and fingerprint; `heirs` have their payloads now, by the record before.
    """
    if key[-8:-3] == _TABLE and len(value) % _ENTRY.size == 0:
        left = [entry for entry in _ENTRY.iter_unpack(value) if not has(entry[1], entry[2])]
        return b"".join([_ENTRY.pack(*entry) for entry in left])
    holder = _decode(value)
    if not has_url(holder.url):
        return value
    heir = heirs.get(holder.record_id)
    return _encode(OriginalRecord(heir.url, heir.fetched_at, heir.record_id, holder.links)) if heir is not None else b""


class NearContentSeen:
    """Remembers the simhashes of pages unlike all before, within a host, a site or the shard.

    A near-duplicate is not remembered itself, so a flood of them takes no room. Costs four gets and, for a page unlike
    all others, four puts: about 12 µs. In memory is only what the open epoch holds: at most 5 KB for such a page.
    """

    def __init__(
        self, epochs: Epochs, scope: str, bits_max: int = BITS_MAX, split: frozenset[str] = frozenset()
    ) -> None:
        """`split` as in `ExactContentSeen`."""
        assert bits_max <= BITS_MAX, "more bits than the tables can promise to find"
        self._epochs = epochs
        self._owner = _owner_by(scope, split)
        self._bits_max = bits_max

    def find(self, sketch: Sketch, url: Url) -> tuple[int, int] | None:
        """Return partition and fingerprint of the URL whose content is nearest, within `bits_max` bits, or None."""
        if sketch.shingles < SHINGLES_MIN:
            return None
        nearest, least = None, self._bits_max + 1
        for value in self._epochs.get_many("content", self._keys(sketch.simhash, url)):
            for simhash, partition, fingerprint in _ENTRY.iter_unpack(value or b""):
                bits = (simhash ^ sketch.simhash).bit_count()
                if bits < least and fingerprint != url.fingerprint:
                    nearest, least = (partition, fingerprint), bits
        return nearest

    def remember(self, sketch: Sketch, url: Url) -> None:
        """Note a page after `find` found none like it. Durable with the epoch."""
        if sketch.shingles < SHINGLES_MIN:
            return
        entry = _ENTRY.pack(sketch.simhash, url.partition, url.fingerprint)
        keys = self._keys(sketch.simhash, url)
        for key, value in zip(keys, self._epochs.get_many("content", keys), strict=True):
            kept = (value or b"")[-(ENTRIES_MAX - 1) * _ENTRY.size :]
            self._epochs.put("content", key, kept + entry)

    def _keys(self, simhash: int, url: Url) -> list[bytes]:
        owner = self._owner(url)
        return [
            owner + _TABLE + bytes((block,)) + (simhash >> 16 * block & 0xFFFF).to_bytes(2) for block in range(BLOCKS)
        ]


def _owner_by(scope: str, split: frozenset[str]) -> Callable[[Url], bytes]:
    """Return what says how the keys of those contents begin that a URL's content is compared with."""
    if scope == "shard":
        return lambda _: CONTENT
    if scope == "host":
        return lambda url: _begin(url.partition, url.host)
    if split:
        return lambda url: _begin(site_partition(url.site, url.partition, split), url.site)
    return lambda url: _begin(url.partition, url.site)


@lru_cache(maxsize=OWNERS_MAX)
def _begin(partition: int, owner: str) -> bytes:
    return partition.to_bytes(2) + xxh3_64_digest(owner.encode())
