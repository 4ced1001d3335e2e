"""Moved: URLs of partitions that came from another shard, as keys of the store beside the tables of a backend.

Tables of fingerprints do not say to which partition one belongs, and no URL can be read from a filter. So a shard that
gives partitions away first lists the URLs that it knows there, one key each, and the keys move like all others. The
receiver looks URLs of these partitions up there too. A key takes about 27 bytes on disk, as with `rocksdb`.
"""

from collections.abc import Callable, Iterator
from typing import Final

from gossamer.state.epoch import Epochs
from gossamer.state.schema import LISTED, PARTITIONED
from gossamer.url.url import Url

SOURCES: Final = ("queue", "due", "page")
"""Families that together have each URL that was offered, in the order in which a URL gets from one to the next: what is
fetched while they are read one after the other must not be missed in both.
"""

UrlsOf = Callable[[str, bytes, bytes], list[tuple[int, int]]]
"""From family, key and value: partition and fingerprint of each URL in them."""
Cursor = tuple[int, bytes]
"""Number of the source that is next, and the first key of it that was not read yet."""


class MovedUrls:
    """The listed URLs of a shard: `moved` of a backend whose own tables stay when partitions move. A lookup costs
    1.5 µs, and nothing where no partition came from another shard.
    """

    def __init__(self, epochs: Epochs, find: Callable[[int, int], int | None]) -> None:
        """`find` returns the path (`offers.way_of`) that a backend's own tables have to a partition's fingerprint."""
        self._epochs = epochs
        self._find = find
        self.partitions = set(_partitions(epochs))
        """Partitions that may have listed URLs."""
        self.leaving: set[int] = set()
        """Partitions of which new URLs and shorter paths are listed at once."""

    def way(self, partition: int, fingerprint: int) -> int | None:
        """Return the listed path to a URL, or None."""
        if partition not in self.partitions:
            return None
        value = self._epochs.get(LISTED.family, _key(partition, fingerprint))
        return None if value is None else int.from_bytes(value)

    def note(self, url: Url, way: int) -> None:
        """List a URL if its partition is leaving."""
        if url.partition in self.leaving:
            self._epochs.put(LISTED.family, _key(url.partition, url.fingerprint), way.to_bytes(3))

    def list_known(self, first: int, end: int, cursor: Cursor, urls_max: int, urls_of: UrlsOf) -> Cursor | None:
        """List about `urls_max` more URLs of the partitions from `first` up to, but without, `end`; return where to go
        on, or None when all are listed. Begin at (0, b"").
        """
        self.leaving.update(range(first, end))
        self.partitions.update(range(first, end))
        source, begin = cursor
        begin = begin or first.to_bytes(2)
        urls: list[tuple[int, int]] = []
        for key, value in self._epochs.scan(SOURCES[source], begin, end.to_bytes(2)):
            urls += urls_of(SOURCES[source], key, value)
            if len(urls) >= urls_max:
                begin = key + b"\0"
                break
        else:
            source += 1
            begin = b""
        for partition, fingerprint in urls:
            way = self._find(partition, fingerprint) or 0
            self._epochs.put(LISTED.family, _key(partition, fingerprint), way.to_bytes(3))
        return (source, begin) if source < len(SOURCES) else None


def _key(partition: int, fingerprint: int) -> bytes:
    return partition.to_bytes(2) + LISTED.marks + fingerprint.to_bytes(8)


def _partitions(epochs: Epochs) -> Iterator[int]:
    """Yield the partitions with listed URLs. A seek for each."""
    begin = PARTITIONED[0]
    while found := next(epochs.scan(LISTED.family, begin + LISTED.marks, PARTITIONED[1]), None):
        key = found[0]
        begin = key[:2]
        if key[2:3] == LISTED.marks:
            yield int.from_bytes(begin)
        if key[2:3] >= LISTED.marks:
            begin = (int.from_bytes(begin) + 1).to_bytes(2)
