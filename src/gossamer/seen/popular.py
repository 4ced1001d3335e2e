"""Popular: recently offered URLs, in a table of fixed size in front of the backend that keeps all URLs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gossamer.model.counters import Counters
from gossamer.seen.offers import HOPS_MAX, way_of
from gossamer.url.url import Url

POPULAR_BYTES = 12
"""What one URL takes in memory."""
WAITS = 1 << 31
"""Added to the path of a URL that awaits its answer: longer than any, so it is no hit."""
TOGETHER_MIN = 20
"""Number of links from which on one lookup of all is cheaper."""


class Popular:
    """Fingerprints and the shortest paths to them, each in the slot of its last bits; the newest entry stays.

    Each change of a path is written here, so the table is always right.
    """

    __slots__ = ("_fingerprints", "_fingerprints_at_once", "_mask", "_ways", "_ways_at_once", "asked", "misses")

    def __init__(self, urls_max: int) -> None:
        """`urls_max` is rounded down to a power of two; below 2 nothing is remembered."""
        places = 1 << max(urls_max.bit_length() - 1, 0)
        self._mask = places - 1
        self.asked = self.misses = 0
        # Zeros that the system makes when they are first touched: a small crawl takes as little of the table.
        self._fingerprints_at_once = np.zeros(places, np.uint64)
        self._ways_at_once = np.zeros(places, np.uint32)
        # The same memory, for looking at one place: five times as quick there.
        self._fingerprints = self._fingerprints_at_once.data
        self._ways = self._ways_at_once.data
        # No fingerprint is there yet: one that ends in zeros is not 2**64 - 1.
        self._fingerprints[0] = (1 << 64) - 1

    def __len__(self) -> int:
        return len(self._fingerprints)

    def unknown(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return every URL's way, and the places of those that are not known here by that way or a shorter one.

        60 links of one page take 10 µs.
        """
        if depths.count(depths[0]) == len(urls) and hops.count(hops[0]) == len(urls):
            # The links of one page, nearly always.
            way = way_of(depths[0], hops[0])
            ways, unknown = [way] * len(urls), self._unknown_by(urls, way)
        else:
            ways = [way_of(depth, hop) for depth, hop in zip(depths, hops, strict=True)]
            unknown = [index for index, way in enumerate(ways) if not self._holds(urls[index].fingerprint, way)]
        self.asked += len(urls)
        self.misses += len(unknown)
        return ways, unknown

    def forget(self) -> None:
        """Forget all: paths may have become shorter elsewhere."""
        self._fingerprints_at_once.fill(0)
        self._fingerprints[0] = (1 << 64) - 1

    def count(self, into: Counters) -> None:
        """Say how many URLs were known here."""
        into.urls_hits, into.urls_misses = self.asked - self.misses, self.misses

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
        """Take in the paths to URLs that awaited their answers. 10 ms for a million."""
        places = (fingerprints & np.uint64(self._mask)).view(np.int64)
        waits = self._fingerprints_at_once.take(places) == fingerprints
        waits &= self._ways_at_once.take(places) >= WAITS
        self._ways_at_once[places[waits]] = ways[waits]

    def _unknown_by(self, urls: Sequence[Url], way: int) -> list[int]:
        if len(urls) < TOGETHER_MIN:
            hops, mask, at_place, ways = way & HOPS_MAX, self._mask, self._fingerprints, self._ways
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
