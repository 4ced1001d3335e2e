"""Popular: recently offered URLs, in a table of fixed size in front of the backend that keeps all URLs."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from mmap import mmap
from typing import TYPE_CHECKING

from gossamer.model.counters import Counters
from gossamer.stages.seen.offers import HOPS_MAX, ways_of
from gossamer.url.url import Url

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POPULAR_BYTES = 8
"""Memory of one URL."""
WAITS = 1 << 31
"""Added to the path of a held URL: longer than any path, so that the URL is no hit."""
NO_WAY = 0xFFFFFFFF
CODES_MAX = 1 << 12
"""Different paths in a table."""


class Popular:
    """Fingerprints and the shortest paths to them. The last bits select the slot; a new entry replaces the old one.

    An entry is a fingerprint XOR the code of its path. A code is shorter than the number of a slot. So an entry XOR the
    same fingerprint is the code, and XOR any other fingerprint of the slot it is larger than all codes. When there are
    more different paths than codes, the table is cleared.

    Each change of a path is written here too, so the table is always up to date.
    """

    __slots__ = ("_codes", "_codes_max", "_entries", "_mask", "_ways", "lookups", "misses")

    def __init__(self, urls_max: int) -> None:
        """`urls_max` is rounded down to a power of two; below 2 nothing is remembered."""
        places = 1 << max(urls_max.bit_length() - 1, 0)
        self._mask = places - 1
        self._codes_max = min(places, CODES_MAX)
        self.lookups = 0
        self.misses = 0
        self.forget()

    def __len__(self) -> int:
        return len(self._entries)

    def unknown(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return every URL's path, and the indexes of the URLs not in the table with that path or a shorter one.

        60 links of one page take 9 µs.
        """
        ways = ways_of(depths, hops)
        mask = self._mask
        entries = self._entries
        known = self._ways
        codes_max = self._codes_max
        unknown = [
            index
            for index, (url, way) in enumerate(zip(urls, ways, strict=True))
            if (code := entries[url.fingerprint & mask] ^ url.fingerprint) >= codes_max
            or ((held := known[code]) != way and (held > way or held & HOPS_MAX > way & HOPS_MAX))
        ]
        self.lookups += len(urls)
        self.misses += len(unknown)
        return ways, unknown

    def unknown_among(self, fingerprints: NDArray[np.uint64], ways: NDArray[np.uint32]) -> NDArray[np.intp]:
        """Do the same as `unknown`, for fingerprints and paths in arrays: 60 links of one page take 6 µs. Lookups in a
        table that is larger than the processor's cache wait for memory together here, and one after the other there.
        """
        import numpy as np  # noqa: PLC0415 - only the backend that holds URLs has a use for it

        held = np.frombuffer(self._ways, np.uint32).take(self._codes_of(fingerprints))
        unknown: NDArray[np.intp] = ((held > ways) | (held & HOPS_MAX > ways & HOPS_MAX)).nonzero()[0]
        self.lookups += len(fingerprints)
        self.misses += len(unknown)
        return unknown

    def forget(self) -> None:
        """Clear the table, after paths may have changed elsewhere."""
        # The system allocates pages of zeros when they are first touched, so a small crawl uses little of the table.
        self._entries = memoryview(mmap(-1, 8 * (self._mask + 1))).cast("Q")
        for slot in range(self._codes_max):  # Zero would be an entry of the fingerprints below `CODES_MAX`.
            self._entries[slot] = slot | 1 << 63
        self._codes: dict[int, int] = {}
        self._ways = array("I", [NO_WAY])
        """The path of each code; 0 is the code of none."""

    def count(self, into: Counters) -> None:
        """Set the counts of URLs that were found in the table, and that were not."""
        into.urls_hits = self.lookups - self.misses
        into.urls_misses = self.misses

    def way(self, fingerprint: int) -> int | None:
        """Return the shortest path to a URL, if it is in the table."""
        code = self._entries[fingerprint & self._mask] ^ fingerprint
        return self._ways[code] if 0 < code < self._codes_max else None

    def note(self, fingerprint: int, way: int) -> None:
        """Store the shortest path to a URL that was just looked up."""
        if self._mask:
            code = self._codes.get(way) or self._new_code(way)
            self._entries[fingerprint & self._mask] = fingerprint ^ code

    def settle(self, fingerprints: NDArray[np.uint64], ways: NDArray[np.uint32]) -> None:
        """Set the paths of URLs that were held. 30 ms for a million."""
        import numpy as np  # noqa: PLC0415 - only the backend that holds URLs has a use for it

        codes = self._codes_of(fingerprints)
        waits = np.flatnonzero((np.frombuffer(self._ways, np.uint32).take(codes) >= WAITS) & (codes > 0))
        settled, nth = np.unique(ways[waits], return_inverse=True)
        if len(self._ways) + len(settled) > self._codes_max:
            self.forget()
            return
        new = np.array([self._codes.get(way) or self._new_code(way) for way in settled.tolist()], np.uint64)
        waiting = fingerprints[waits]
        np.asarray(self._entries)[(waiting & self._mask).view(np.int64)] = waiting ^ new[nth]

    def _codes_of(self, fingerprints: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the code of the path to each fingerprint, 0 for those that are not in the table."""
        import numpy as np  # noqa: PLC0415 - only the backend that holds URLs has a use for it

        codes = np.asarray(self._entries).take((fingerprints & self._mask).view(np.int64)) ^ fingerprints
        codes[codes >= self._codes_max] = 0
        return codes.view(np.int64)

    def _new_code(self, way: int) -> int:
        if len(self._ways) >= self._codes_max:
            self.forget()
        code = len(self._ways)
        self._ways.append(way)
        self._codes[way] = code
        return code
