"""Popular: recently offered URLs, in a table of fixed size in front of the backend that keeps all URLs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gossamer.model.counters import Counters
from gossamer.stages.seen.offers import HOPS_MAX, way_of
from gossamer.url.url import Url

POPULAR_BYTES = 12
"""Memory of one URL."""
WAITS = 1 << 31
"""Added to the path of a held URL: longer than any path, so that the URL is no hit."""
TOGETHER_MIN = 20
"""Number of links from which one vectorized lookup is cheaper than single ones."""


class Popular:
    """Fingerprints and the shortest paths to them. The last bits of a fingerprint select its slot; a new entry replaces
    the old one.

    Each change of a path is written here too, so the table is always up to date.
    """

    __slots__ = ("_fingerprints", "_fingerprints_at_once", "_mask", "_ways", "_ways_at_once", "asked", "misses")

    def __init__(self, urls_max: int) -> None:
        """`urls_max` is rounded down to a power of two; below 2 nothing is remembered."""
        places = 1 << max(urls_max.bit_length() - 1, 0)
        self._mask = places - 1
        self.asked = self.misses = 0
        # The system allocates pages of zeros when they are first touched, so a small crawl uses little of the table.
        self._fingerprints_at_once = np.zeros(places, np.uint64)
        self._ways_at_once = np.zeros(places, np.uint32)
        # The same memory as a view, which is five times as fast for single entries.
        self._fingerprints = self._fingerprints_at_once.data
        self._ways = self._ways_at_once.data
        # Slot 0 must not match fingerprint 0: 2**64 - 1 belongs to another slot.
        self._fingerprints[0] = (1 << 64) - 1

    def __len__(self) -> int:
        return len(self._fingerprints)

    def unknown(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return every URL's path, and the indexes of the URLs that are not in the table with that path or a shorter
        one.

        60 links of one page take 10 µs.
        """
        if depths.count(depths[0]) == len(urls) and hops.count(hops[0]) == len(urls):
            # Nearly always, since these are the links of one page.
            way = way_of(depths[0], hops[0])
            ways = [way] * len(urls)
            unknown = self._unknown_by(urls, way)
        else:
            ways = [way_of(depth, hop) for depth, hop in zip(depths, hops, strict=True)]
            unknown = [index for index, way in enumerate(ways) if not self._holds(urls[index].fingerprint, way)]
        self.asked += len(urls)
        self.misses += len(unknown)
        return ways, unknown

    def forget(self) -> None:
        """Clear the table, after paths may have changed elsewhere."""
        self._fingerprints_at_once.fill(0)
        self._fingerprints[0] = (1 << 64) - 1

    def count(self, into: Counters) -> None:
        """Set the counts of URLs that were found in the table, and that were not."""
        into.urls_hits = self.asked - self.misses
        into.urls_misses = self.misses

    def way(self, fingerprint: int) -> int | None:
        """Return the shortest path to a URL, if it is in the table."""
        at = fingerprint & self._mask
        return self._ways[at] if self._fingerprints[at] == fingerprint else None

    def note(self, fingerprint: int, way: int) -> None:
        """Store the shortest path to a URL that was just looked up."""
        at = fingerprint & self._mask
        if self._mask:
            self._fingerprints[at] = fingerprint
            self._ways[at] = way

    def settle(self, fingerprints: NDArray[np.uint64], ways: NDArray[np.uint32]) -> None:
        """Set the paths of URLs that were held. 10 ms for a million."""
        places = (fingerprints & np.uint64(self._mask)).view(np.int64)
        waits = self._fingerprints_at_once.take(places) == fingerprints
        waits &= self._ways_at_once.take(places) >= WAITS
        self._ways_at_once[places[waits]] = ways[waits]

    def _unknown_by(self, urls: Sequence[Url], way: int) -> list[int]:
        if len(urls) < TOGETHER_MIN:
            hops = way & HOPS_MAX
            mask = self._mask
            at_place = self._fingerprints
            ways = self._ways
            return [
                index
                for index, url in enumerate(urls)
                if at_place[at := url.fingerprint & mask] != url.fingerprint
                or ways[at] > way
                or ways[at] & HOPS_MAX > hops
            ]
        fingerprints = np.array([url.fingerprint for url in urls], np.uint64)
        places = (fingerprints & np.uint64(self._mask)).view(np.int64)
        known = self._ways_at_once.take(places)
        unknown = self._fingerprints_at_once.take(places) != fingerprints
        unknown |= known > way
        unknown |= (known & HOPS_MAX) > (way & HOPS_MAX)
        found: list[int] = unknown.nonzero()[0].tolist()
        return found

    def _holds(self, fingerprint: int, way: int) -> bool:
        at = fingerprint & self._mask
        known = self._ways[at]
        return self._fingerprints[at] == fingerprint and known <= way and known & HOPS_MAX <= way & HOPS_MAX
