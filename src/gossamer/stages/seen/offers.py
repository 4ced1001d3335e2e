"""Offers: a log of new URLs and shorter paths since the last write to files, kept in the store epoch by epoch.

The log makes the backends in memory and in files crash-safe: the offers of an epoch are one value per group of
partitions, written when the epoch is cut. They are committed or lost with that epoch, need no extra fsync, and are read
once, when a crawl is opened.

This module also has what all backends share: paths (depth and hops as one small number), and groups of 256 partitions,
so that a backend with files has few files.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Literal

from gossamer.state.epoch import Epochs
from gossamer.state.schema import PARTITIONED
from gossamer.url.site import PARTITIONS

GROUPS = 16
GROUP_SHIFT = 8
"""A URL's group is its partition shifted right by this."""
FOLDER = "state/seen"
"""Folder of all backends' files, in the crawl's directory."""

assert GROUPS << GROUP_SHIFT == PARTITIONS


DEPTH_MAX = 0xFFFF
HOPS_MAX = 0xFF


def way_of(depth: int, hops: int) -> int:
    """Return depth and hops as one number below 2**24; larger values are capped."""
    return min(depth, DEPTH_MAX) << 8 | min(hops, HOPS_MAX)


def ways_of(depths: Sequence[int], hops: Sequence[int]) -> list[int]:
    """Return `way_of` each depth and hops; there is at least one."""
    if depths.count(depths[0]) == len(depths) and hops.count(hops[0]) == len(hops):
        return [way_of(depths[0], hops[0])] * len(depths)  # Nearly always, since these are the links of one page.
    return [way_of(depth, hop) for depth, hop in zip(depths, hops, strict=True)]


def least_of(one: int, other: int) -> int:
    """Return the least depth and the least hops of two paths, each separately."""
    return min(one | HOPS_MAX, other | HOPS_MAX) & ~HOPS_MAX | min(one & HOPS_MAX, other & HOPS_MAX)


def shortest(one: int | None, other: int | None) -> int | None:
    """Return `least_of` two paths of which each may be unknown."""
    if one is None or other is None:
        return other if one is None else one
    return least_of(one, other)


def depth_and_hops(way: int) -> tuple[int, int]:
    """Return depth and hops of a number by `way_of`."""
    return way >> 8, way & HOPS_MAX


VALUE_URLS_MAX = 16_384
"""URLs of one value: 192 KiB. Putting a larger value holds up the loop."""
_ENTRY_BYTES = 12


class Offers:
    """The log of offers that changed something. About 0.1 µs and 12 bytes each."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs
        self._fingerprints = [array("Q") for _ in range(GROUPS)]
        self._ways = [array("I") for _ in range(GROUPS)]

    def note(self, group: int, fingerprint: int, way: int) -> None:
        """Log that a fingerprint is known by a path, with the open epoch."""
        self._fingerprints[group].append(fingerprint)
        self._ways[group].append(way)

    def cut(self) -> None:
        """Put the logged offers into the open epoch, before it is cut."""
        number = self._epochs.number
        for group in range(GROUPS):
            fingerprints = self._fingerprints[group]
            ways = self._ways[group]
            for part, start in enumerate(range(0, len(fingerprints), VALUE_URLS_MAX)):
                end = start + VALUE_URLS_MAX
                value = bytes_of(fingerprints[start:end]) + bytes_of(ways[start:end])
                self._epochs.put("seen", _key(group, number, part), value)
            if fingerprints:
                self._fingerprints[group], self._ways[group] = array("Q"), array("I")

    def replay(self) -> Iterator[tuple[int, array[int], array[int]]]:
        """Yield group, fingerprints and paths of all committed offers in the log, the oldest of a group first."""
        for key, value in self._epochs.scan("seen", *PARTITIONED):
            at = 8 * (len(value) // _ENTRY_BYTES)
            yield int.from_bytes(key[:2]) >> GROUP_SHIFT, array_of("Q", value[:at]), array_of("I", value[at:])

    def forget(self, group: int, through: int) -> None:
        """Drop a group's offers of epochs up to `through`: the files that the open epoch commits have them."""
        self._epochs.delete_range("seen", _key(group, 0, 0), _key(group, through + 1, 0))


def _key(group: int, epoch: int, part: int) -> bytes:
    return (group << GROUP_SHIFT).to_bytes(2) + epoch.to_bytes(8) + part.to_bytes(2)


def bytes_of(numbers: array[int]) -> bytes:
    """Return numbers in their stored form: little-endian."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def array_of(code: Literal["Q", "I"], data: bytes) -> array[int]:
    """Return the numbers of bytes by `bytes_of`."""
    numbers = array(code)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
