"""A duplicate URL eliminator for `components.url_seen`: the shortest path to each URL, in the crawl's store.

gossamer crawl https://docs.example.org/ --contact you@example.org --set components.url_seen=url_seen.py:StoredUrls
"""

import struct
from collections.abc import Sequence

from gossamer.ports import KNOWN, NEW, SHORTER
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url

WAY = struct.Struct(">HB")
DEPTH_MAX = 65_535
HOPS_MAX = 255


class StoredUrls:
    """Keeps depth and hops by fingerprint. What one commit adds is held in memory, and stored when the epoch closes."""

    def __init__(self, *, epochs: Epochs) -> None:
        self._epochs = epochs
        self._held: dict[bytes, tuple[int, int]] = {}

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> list[int]:
        return [self._offer(*one) for one in zip(urls, depths, hops, strict=True)]

    def way(self, url: Url) -> tuple[int, int] | None:
        key = _key(url)
        if key in self._held:
            return self._held[key]
        stored = self._epochs.get("seen", key)
        if stored is None:
            return None
        depth, hops = WAY.unpack(stored)
        return depth, hops

    def cut(self, now: float) -> None:
        """Store what is held: the crawl calls this when an epoch closes."""
        for key, (depth, hops) in self._held.items():
            self._epochs.put("seen", key, WAY.pack(min(depth, DEPTH_MAX), min(hops, HOPS_MAX)))
        self._held.clear()

    def close(self) -> None:
        """Close what was opened; here nothing."""

    def _offer(self, url: Url, depth: int, hops: int) -> int:
        known = self.way(url)
        if known is None:
            self._held[_key(url)] = (depth, hops)
            return NEW
        least = (min(depth, known[0]), min(hops, known[1]))
        if least == known:
            return KNOWN
        self._held[_key(url)] = least
        return SHORTER


def _key(url: Url) -> bytes:
    """Return a key that moves with the URL's partition, and that no other component has."""
    return url.partition.to_bytes(2) + b"stored" + url.fingerprint.to_bytes(8)
