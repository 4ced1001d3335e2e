"""Popular: recently offered URLs, in a table of fixed size in front of the backend that keeps all URLs."""

from __future__ import annotations

from collections.abc import Sequence
from mmap import mmap
from typing import TYPE_CHECKING

from gossamer.model.counters import Counters
from gossamer.stages.seen.offers import HOPS_MAX, ways_of
from gossamer.url.url import Url

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POPULAR_BYTES = 12
"""Memory of one URL."""
WAITS = 1 << 31
"""Added to the path of a held URL: longer than any path, so that the URL is no hit."""


class Popular:
    """Fingerprints and the shortest paths to them. The last bits of a fingerprint select its slot; a new entry replaces
    the old one.

    Each change of a path is written here too, so the table is always up to date.
    """

    __slots__ = ("_fingerprints", "_mask", "_ways", "asked", "misses")

    def __init__(self, urls_max: int) -> None:
        """`urls_max` is rounded down to a power of two; below 2 nothing is remembered."""
        places = 1 << max(urls_max.bit_length() - 1, 0)
        self._mask = places - 1
        self.asked = self.misses = 0
        self.forget()

    def __len__(self) -> int:
        return len(self._fingerprints)

    def unknown(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return every URL's path, and the indexes of the URLs that are not in the table with that path or a shorter
        one.

        60 links of one page take 9 µs.
        """
        ways = ways_of(depths, hops)
        mask = self._mask
        at_place = self._fingerprints
        known = self._ways
        unknown = [
            index
            for index, (url, way) in enumerate(zip(urls, ways, strict=True))
            if at_place[at := url.fingerprint & mask] != url.fingerprint
            or ((held := known[at]) != way and (held > way or held & HOPS_MAX > way & HOPS_MAX))
        ]
        self.asked += len(urls)
        self.misses += len(unknown)
        return ways, unknown

    def unknown_among(self, fingerprints: NDArray[np.uint64], ways: NDArray[np.uint32]) -> NDArray[np.intp]:
        """Do the same as `unknown`, for fingerprints and paths in arrays: 60 links of one page take 6 µs. Lookups in a
        table that is larger than the processor's cache wait for memory together here, and one after the other there.
        """
        import numpy as np  # noqa: PLC0415 - only the backend that holds URLs has a use for it

        places = (fingerprints & np.uint64(self._mask)).view(np.int64)
        held = np.asarray(self._ways).take(places)
        is_known = np.asarray(self._fingerprints).take(places) == fingerprints
        is_known &= (held <= ways) & (held & HOPS_MAX <= ways & HOPS_MAX)
        unknown = np.flatnonzero(~is_known)
        self.asked += len(fingerprints)
        self.misses += len(unknown)
        return unknown

    def forget(self) -> None:
        """Clear the table, after paths may have changed elsewhere."""
        # The system allocates pages of zeros when they are first touched, so a small crawl uses little of the table.
        self._fingerprints = memoryview(mmap(-1, 8 * (self._mask + 1))).cast("Q")
        self._ways = memoryview(mmap(-1, 4 * (self._mask + 1))).cast("I")
        # Slot 0 must not match fingerprint 0: 2**64 - 1 belongs to another slot.
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
        import numpy as np  # noqa: PLC0415 - only the backend that holds URLs has a use for it

        table = np.asarray(self._ways)
        places = (fingerprints & np.uint64(self._mask)).view(np.int64)
        waits = np.asarray(self._fingerprints).take(places) == fingerprints
        waits &= table.take(places) >= WAITS
        table[places[waits]] = ways[waits]
