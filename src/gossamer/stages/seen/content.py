"""Content: which page first had the same body, by digest, or nearly the same, by simhash.

Simhashes are in tables of blocks, in the shard's store. Two simhashes of 64 bits that differ in at most three bits have
one of their four blocks of 16 bits in common (Manku, Jain and Das Sarma 2007, section 3). So each is stored under its
four blocks, and a lookup reads four entries of the store.
"""

import struct
from collections.abc import Callable
from functools import lru_cache

import msgspec
from xxhash import xxh3_64_digest

from gossamer.model.pages import Original, Sketch
from gossamer.state.epoch import Epochs
from gossamer.state.schema import CONTENT
from gossamer.url.site import site_partition
from gossamer.url.url import Url

_decode = msgspec.msgpack.Decoder(Original).decode


def sketch(body: bytes, charset: str = "", address: str = "", *, lowest: bool = True) -> Sketch:
    """Return `shingles.sketch` of a page. The first imports numpy, which many short crawls do without."""
    from gossamer.stages.seen import shingles  # noqa: PLC0415 - most pages have no sketch

    return shingles.sketch(body, charset, address, lowest=lowest)


class ExactContentSeen:
    """The original, the first page with a digest, within a host, a site or the shard. A get and a put per page."""

    def __init__(self, epochs: Epochs, scope: str, split: frozenset[str] = frozenset()) -> None:
        """`split` are sites whose hosts have a partition each: for them a shard compares only the hosts that it has."""
        self._epochs = epochs
        self._owner = _owner_by(scope, split)

    def find(self, digest: bytes, url: Url) -> Original | None:
        """Return the original of a content that `url` has, or None."""
        value = self._epochs.get("content", self._owner(url) + digest)
        return None if value is None else _decode(value)

    def remember(self, digest: bytes, url: Url, original: Original) -> None:
        """Store the original, after `find` returned None: this does not check again."""
        self._epochs.put("content", self._owner(url) + digest, msgspec.msgpack.encode(original))


OWNERS_MAX = 1024
"""Hosts or sites whose key prefix is cached: a host's pages come one after another."""
BITS_MAX = 3
"""Largest difference in bits that four blocks always find."""
SHINGLES_MIN = 24
"""Pages with fewer shingles have no meaningful simhash: two menus may differ in less."""
ENTRIES_MAX = 64
"""Pages per block; the oldest are dropped. With a million pages of one owner, 16 are expected."""
BLOCKS = 4
_ENTRY = struct.Struct("<QHQ")
"""Simhash, partition, fingerprint."""
_TABLE = b"\0near"
"""Separates near entries from exact ones of the same family: digests are longer than what follows this in a key."""


def without(
    key: bytes, data: bytes, has_url: Callable[[str], bool], has: Callable[[int, int], bool], heirs: dict[str, Original]
) -> bytes:
    """Return an entry of either test without some pages; empty if no other page is left. `has_url` selects these pages
    by address, `has` by partition and fingerprint; `heirs` are the records that hold their payloads now, by the id of
    the record before.
    """
    if key[-8:-3] == _TABLE and len(data) % _ENTRY.size == 0:
        left = [entry for entry in _ENTRY.iter_unpack(data) if not has(entry[1], entry[2])]
        return b"".join([_ENTRY.pack(*entry) for entry in left])
    holder = _decode(data)
    if not has_url(holder.url):
        return data
    heir = heirs.get(holder.record_id)
    if heir is None:
        return b""
    return msgspec.msgpack.encode(Original(heir.url, heir.fetched_at, heir.record_id, holder.links))


class NearContentSeen:
    """Simhashes of pages that differed from all pages before, within a host, a site or the shard.

    Near-duplicates are not stored, so a flood of them takes no space. Costs four gets and, for a page that differs from
    all others, four puts: about 12 µs. Only the open epoch takes memory: at most 5 KB for such a page.
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
        nearest = None
        least = self._bits_max + 1
        for value in self._epochs.get_many("content", self._keys(sketch.simhash, url)):
            for simhash, partition, fingerprint in _ENTRY.iter_unpack(value or b""):
                bits = (simhash ^ sketch.simhash).bit_count()
                if bits < least and fingerprint != url.fingerprint:
                    nearest = (partition, fingerprint)
                    least = bits
        return nearest

    def remember(self, sketch: Sketch, url: Url) -> None:
        """Store a page's simhash, after `find` returned None. Durable with the epoch."""
        if sketch.shingles < SHINGLES_MIN:
            return
        entry = _ENTRY.pack(sketch.simhash, url.partition, url.fingerprint)
        keys = self._keys(sketch.simhash, url)
        for key, value in zip(keys, self._epochs.get_many("content", keys), strict=True):
            kept = (value or b"")[-(ENTRIES_MAX - 1) * _ENTRY.size :]
            self._epochs.put("content", key, kept + entry)

    def _keys(self, simhash: int, url: Url) -> list[bytes]:
        owner = self._owner(url)
        return [owner + _TABLE + bytes((n,)) + (simhash >> 16 * n & 0xFFFF).to_bytes(2) for n in range(BLOCKS)]


def _owner_by(scope: str, split: frozenset[str]) -> Callable[[Url], bytes]:
    """Return a function from a URL to the key prefix of the contents that its content is compared with."""
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
