"""Filter: tells in memory which URLs were certainly never seen, for any number of URLs.

A blocked Bloom filter (Putze, Sanders and Singler 2007): the four bits of a fingerprint are in one word, so that a
lookup is one access to memory. When it has as many URLs as it was made for, a second part of the same size is added,
and so on, each as large as all parts before it.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

Fingerprints = NDArray[np.uint64]
_MASKS = array("Q", (1 << (bits & 63) | 1 << (bits >> 6) for bits in range(4096)))


def mask_of(fingerprint: int) -> int:
    """Return the four bits of a fingerprint in its word."""
    return _MASKS[fingerprint & 4095] | _MASKS[fingerprint >> 12 & 4095]


def mark(words: NDArray[np.uint64], fingerprints: Fingerprints) -> None:
    """Set the bits of sorted fingerprints: their words are sorted too, so each word is written once."""
    if not len(fingerprints):
        return
    at = (fingerprints >> np.uint64(32)) * np.uint64(len(words)) >> np.uint64(32)
    masks = np.zeros(len(fingerprints), np.uint64)
    for shift in (0, 6, 12, 18):
        masks |= np.uint64(1) << (fingerprints >> np.uint64(shift) & np.uint64(63))
    starts = np.flatnonzero(np.diff(at, prepend=at[0] + np.uint64(1)))
    words[at[starts]] |= np.bitwise_or.reduceat(masks, starts)


class UrlFilter:
    """Promises: `may_have` is True for every added URL, and for 4 % of others with eight bits a URL."""

    def __init__(self, urls_max: int, bits: int) -> None:
        """Memory is reserved for `urls_max` URLs of `bits` each."""
        self._bits = bits
        self._urls = 0
        self._parts: list[tuple[memoryview, int]] = []
        """Words of each part, and their number."""
        self._extend(urls_max)

    def may_have(self, fingerprint: int) -> bool:
        """Say whether a fingerprint may have been added; False is certain. 0.4 µs."""
        mask, high = _MASKS[fingerprint & 4095] | _MASKS[fingerprint >> 12 & 4095], fingerprint >> 32
        for words, count in self._parts:  # noqa: SIM110 - a generator costs as much again
            if words[high * count >> 32] & mask == mask:
                return True
        return False

    def add(self, fingerprint: int) -> None:
        """Add a fingerprint. 0.4 µs."""
        if self._urls >= self._urls_max:
            self._extend(self._urls)
        words, count = self._parts[-1]
        at = (fingerprint >> 32) * count >> 32
        words[at] |= _MASKS[fingerprint & 4095] | _MASKS[fingerprint >> 12 & 4095]
        self._urls += 1

    def add_all(self, fingerprints: Fingerprints) -> None:
        """Add sorted fingerprints. About 0.02 µs each."""
        if self._urls >= self._urls_max:
            self._extend(self._urls)
        mark(self._words, fingerprints)
        self._urls += len(fingerprints)

    @property
    def bytes(self) -> int:
        """Memory of the filter."""
        return sum(8 * count for _, count in self._parts)

    def _extend(self, urls: int) -> None:
        self._urls_max = self._urls + urls
        self._words = np.zeros(max(1, urls * self._bits // 64), np.uint64)
        self._parts.append((self._words.data, len(self._words)))
