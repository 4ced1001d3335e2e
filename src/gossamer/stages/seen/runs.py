"""Runs: sorted fingerprints with their paths in immutable files, and the merge of several files into one; and a
filter in memory that tells which URLs were certainly never seen, for any number of URLs.

A file has blocks of 4 KiB, then the first fingerprint of each block, then a Bloom filter, then a trailer. The parts
after the blocks (about 0.7 bytes a URL) are in memory, so a lookup reads at most one block, and mostly none if the URL
is not in the file. Blocks are read into a buffer, not mapped, so that a damaged disk causes an error instead of a
signal, memory stays bounded, and the checksum of each block is verified.
"""

import os
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from gossamer.stages.seen.offers import HOPS_MAX
from gossamer.world.clock import give_way
from gossamer.world.files import make_directory, publish

BLOCK_URLS = 372
BLOCK_BYTES = 4096
FILTER_BITS = 4
"""Bits per URL in the filter of a run, which is read after the filter of all URLs and avoids five of six reads."""
SLICE_BLOCKS = 64
"""Blocks of the largest run that are merged at a time: 24,000 URLs, about 2 ms."""
MAGIC = b"gossamer run 1\0\0"

_BLOCK = np.dtype(
    [
        ("fingerprints", "<u8", (BLOCK_URLS,)),
        ("depths", "<u2", (BLOCK_URLS,)),
        ("hops", "u1", (BLOCK_URLS,)),
        ("check", "<u4"),
    ]
)
_DEPTHS_AT = 8 * BLOCK_URLS
_HOPS_AT = 10 * BLOCK_URLS
_CHECK_AT = 11 * BLOCK_URLS
_TAIL = struct.Struct("<16sQQQ")
"""Magic, number of URLs, words of the filter, checksum of the part in memory."""

assert _BLOCK.itemsize == BLOCK_BYTES

Fingerprints = NDArray[np.uint64]
Ways = NDArray[np.uint32]
Slice = tuple[Fingerprints, Ways]
"""Sorted distinct fingerprints, and the path to each."""
NOWHERE = 0xFFFFFFFF
"""In place of the path to a fingerprint that is in no run: longer than any path."""


class FingerprintRun:
    """One file, open for lookups."""

    __slots__ = ("_fd", "_firsts", "bytes", "path", "urls", "word_count", "words")

    def __init__(self, path: Path) -> None:
        """Open a finished file. Raises OSError: the file cannot be read, or is damaged."""
        self.path = path
        self.bytes = path.stat().st_size
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            tail = os.pread(self._fd, _TAIL.size, max(0, self.bytes - _TAIL.size))
            _require_sound(len(tail) == _TAIL.size and tail.startswith(MAGIC), path)
            _, self.urls, self.word_count, check = _TAIL.unpack(tail)
            blocks = -(-self.urls // BLOCK_URLS)
            index = os.pread(self._fd, 8 * (blocks + self.word_count), blocks * BLOCK_BYTES)
            _require_sound(xxh3_64_intdigest(index) == check, path)
        except BaseException:
            os.close(self._fd)
            raise
        self._firsts = _numbers(index[: 8 * blocks])
        self.words = _numbers(index[8 * blocks :])

    def may_hold(self, fingerprint: int, mask: int) -> bool:
        """Return whether a fingerprint may be in the run; False is certain. 0.15 µs."""
        word: int = self.words[(fingerprint >> 32) * self.word_count >> 32]
        return word & mask == mask

    def find(self, fingerprint: int) -> int | None:
        """Return the path to a fingerprint, or None. Reads one block: 3 µs if it is in the page cache. Raises OSError:
        the file cannot be read, or is damaged.
        """
        block = bisect_right(self._firsts, fingerprint) - 1
        if block < 0:
            return None
        data = os.pread(self._fd, BLOCK_BYTES, block * BLOCK_BYTES)
        whole = len(data) == BLOCK_BYTES
        _require_sound(whole and _check(memoryview(data)) == int.from_bytes(data[_CHECK_AT:], "little"), self.path)
        held = min(BLOCK_URLS, self.urls - block * BLOCK_URLS)
        fingerprints = _numbers(data[: 8 * held])
        at = bisect_left(fingerprints, fingerprint)
        if at == held or fingerprints[at] != fingerprint:
            return None
        depth_at = _DEPTHS_AT + 2 * at
        return data[depth_at + 1] << 16 | data[depth_at] << 8 | data[_HOPS_AT + at]

    def bounds(self) -> list[int]:
        """Return fingerprints that cut the run into slices of a bounded size."""
        return list(self._firsts[SLICE_BLOCKS::SLICE_BLOCKS])

    def slices(self) -> Iterator[Slice]:
        """Yield all entries in order."""
        for begin, end in pairwise([0, *self.bounds(), 1 << 64]):
            yield self.between(begin, end)

    def between(self, begin: int, end: int) -> Slice:
        """Return the entries in [`begin`, `end`). For the merging thread; disk reads release the GIL."""
        first = max(bisect_right(self._firsts, begin) - 1, 0)
        last = bisect_left(self._firsts, end)
        data = os.pread(self._fd, (last - first) * BLOCK_BYTES, first * BLOCK_BYTES)
        blocks = np.frombuffer(data, _BLOCK)
        view = memoryview(data)
        sound = len(blocks) == last - first and all(
            _check(view[at : at + BLOCK_BYTES]) == check
            for at, check in zip(range(0, len(data), BLOCK_BYTES), blocks["check"].tolist(), strict=True)
        )
        _require_sound(sound, self.path)
        held = min(len(blocks) * BLOCK_URLS, self.urls - first * BLOCK_URLS)
        fingerprints = blocks["fingerprints"].reshape(-1)[:held]
        ways = blocks["depths"].reshape(-1)[:held].astype(np.uint32) << 8 | blocks["hops"].reshape(-1)[:held]
        return _cut(fingerprints, ways, begin, end)

    def close(self) -> None:
        os.close(self._fd)


def merge(runs: Sequence[FingerprintRun], fresh: Slice) -> Iterator[Slice]:
    """Yield the union of runs and fresh entries, in slices; for several paths to a URL, the least depth and hops.

    Takes memory for a few slices, for runs of any size. About 0.15 µs a URL.
    """
    bounds = max(runs, key=lambda run: run.urls).bounds() if runs else []
    for begin, end in pairwise([0, *bounds, 1 << 64]):
        yield _unite([run.between(begin, end) for run in runs] + [_cut(*fresh, begin, end)])
        give_way()


def least_ways(runs: Sequence[FingerprintRun], wanted: Fingerprints) -> Ways:
    """Return the shortest path to each of some sorted fingerprints; `NOWHERE` if no run has it.

    Reads, in order, each slice of the runs that may have one of them. About 0.01 µs for each URL of the runs.
    """
    known = np.full(len(wanted), NOWHERE, np.uint32)
    for run in runs:
        for begin, end in pairwise([0, *run.bounds(), 1 << 64]):
            first, last = _range(wanted, begin, end)
            if first == last:
                continue
            fingerprints, ways = run.between(begin, end)
            if len(fingerprints):
                at = np.minimum(np.searchsorted(fingerprints, wanted[first:last]), len(fingerprints) - 1)
                found = np.flatnonzero(fingerprints[at] == wanted[first:last])
                known[first + found] = _least(known[first + found], ways[at[found]])
            give_way()
    return known


def is_shorter(ways: Ways, known: Ways) -> NDArray[np.bool_]:
    """Return for each path whether it has less depth, or fewer hops, than the known one."""
    return (ways >> 8 < known >> 8) | (ways & HOPS_MAX < known & HOPS_MAX)


def write_run(path: Path, slices: Iterable[Slice], urls_max: int) -> None:
    """Write a run to a temporary file, sync and rename it. `urls_max`, an upper bound of its URLs, sizes the filter.
    Raises OSError: the disk is full.
    """
    make_directory(path.parent)
    aside = path.with_name(path.name + ".new")
    words = np.zeros(max(1, urls_max * FILTER_BITS // 64), np.uint64)
    firsts: list[Fingerprints] = []
    urls = 0
    with aside.open("wb") as file:
        rest: Slice = (np.empty(0, np.uint64), np.empty(0, np.uint32))
        for fingerprints, ways in slices:
            urls += len(fingerprints)
            mark(words, fingerprints)
            fingerprints = np.concatenate([rest[0], fingerprints])
            ways = np.concatenate([rest[1], ways])
            whole = len(fingerprints) // BLOCK_URLS * BLOCK_URLS
            firsts.append(_write_blocks(file, fingerprints[:whole], ways[:whole]))
            rest = fingerprints[whole:], ways[whole:]
        firsts.append(_write_blocks(file, *rest))
        index = np.concatenate(firsts).astype("<u8").tobytes() + words.astype("<u8").tobytes()
        file.write(index)
        file.write(_TAIL.pack(MAGIC, urls, len(words), xxh3_64_intdigest(index)))
    publish(aside, path)


def _write_blocks(file: BinaryIO, fingerprints: Fingerprints, ways: Ways) -> Fingerprints:
    count = -(-len(fingerprints) // BLOCK_URLS)
    missing = count * BLOCK_URLS - len(fingerprints)
    blocks = np.zeros(count, _BLOCK)
    blocks["fingerprints"] = np.pad(fingerprints, (0, missing)).reshape(count, BLOCK_URLS)
    blocks["depths"] = np.pad(ways >> 8, (0, missing)).reshape(count, BLOCK_URLS)
    blocks["hops"] = np.pad(ways & HOPS_MAX, (0, missing)).reshape(count, BLOCK_URLS)
    view = memoryview(blocks.tobytes())
    blocks["check"] = [_check(view[at : at + BLOCK_BYTES]) for at in range(0, len(view), BLOCK_BYTES)]
    file.write(blocks.tobytes())
    return fingerprints[::BLOCK_URLS]


def _unite(parts: Sequence[Slice]) -> Slice:
    fingerprints = np.concatenate([part[0] for part in parts])
    ways = np.concatenate([part[1] for part in parts])
    if not len(fingerprints):
        return fingerprints, ways
    order = np.argsort(fingerprints, kind="stable")
    fingerprints = fingerprints[order]
    ways = ways[order]
    starts = np.flatnonzero(np.concatenate(([True], fingerprints[1:] != fingerprints[:-1])))
    depths = np.minimum.reduceat(ways >> 8, starts)
    hops = np.minimum.reduceat(ways & HOPS_MAX, starts)
    return fingerprints[starts], (depths << 8 | hops).astype(np.uint32)


def _least(ways: Ways, known: Ways) -> Ways:
    least: Ways = np.minimum(ways >> 8, known >> 8) << 8 | np.minimum(ways & HOPS_MAX, known & HOPS_MAX)
    return least


def _cut(fingerprints: Fingerprints, ways: Ways, begin: int, end: int) -> Slice:
    first, last = _range(fingerprints, begin, end)
    return fingerprints[first:last], ways[first:last]


def _range(fingerprints: Fingerprints, begin: int, end: int) -> tuple[int, int]:
    first = int(np.searchsorted(fingerprints, np.uint64(begin)))
    last = int(np.searchsorted(fingerprints, np.uint64(end))) if end < 1 << 64 else len(fingerprints)
    return first, last


def _numbers(data: bytes) -> Sequence[int]:
    numbers = memoryview(data).cast("Q")
    if sys.byteorder == "little":
        return numbers
    swapped = array("Q", numbers)
    swapped.byteswap()
    return swapped


def _check(block: memoryview) -> int:
    return xxh3_64_intdigest(block[:_CHECK_AT]) & 0xFFFFFFFF


def _require_sound(sound: bool, path: Path) -> None:
    if not sound:
        raise OSError(f"{path} is damaged: restore the crawl from a checkpoint")


_MASKS = array("Q", (1 << (bits & 63) | 1 << (bits >> 6) for bits in range(4096)))
_MASK_TABLE = np.frombuffer(_MASKS, np.uint64)


def mask_of(fingerprint: int) -> int:
    """Return the four bits of a fingerprint in its word."""
    return _MASKS[fingerprint & 4095] | _MASKS[fingerprint >> 12 & 4095]


def _masks_of(fingerprints: Fingerprints) -> Fingerprints:
    """Return `mask_of` each fingerprint."""
    low = (fingerprints & 4095).view(np.int64)
    high = (fingerprints >> 12 & 4095).view(np.int64)
    masks: Fingerprints = _MASK_TABLE.take(low) | _MASK_TABLE.take(high)
    return masks


def mark(words: NDArray[np.uint64], fingerprints: Fingerprints) -> None:
    """Set the bits of sorted fingerprints: their words are sorted too, so each word is written once."""
    if not len(fingerprints):
        return
    at = (fingerprints >> np.uint64(32)) * np.uint64(len(words)) >> np.uint64(32)
    masks = _masks_of(fingerprints)
    starts = np.flatnonzero(np.diff(at, prepend=at[0] + np.uint64(1)))
    words[at[starts]] |= np.bitwise_or.reduceat(masks, starts)


class UrlFilter:
    """Promises: `may_have` is True for every added URL, and for 4 % of others with eight bits a URL.

    A blocked Bloom filter (Putze, Sanders and Singler 2007): the four bits of a fingerprint are in one word, so that a
    lookup is one access to memory. When it has as many URLs as it was made for, a second part of the same size is
    added, and so on, each as large as all parts before it.
    """

    def __init__(self, urls_max: int, bits: int) -> None:
        """Memory is reserved for `urls_max` URLs of `bits` each."""
        self._bits = bits
        self._urls = 0
        self._parts: list[tuple[memoryview, int]] = []
        """Words of each part, and their number."""
        self._extend(urls_max)

    def may_have(self, fingerprints: Fingerprints) -> NDArray[np.bool_]:
        """Return for each fingerprint whether it may have been added; False is certain. 8 µs, and 0.02 µs each."""
        masks = _masks_of(fingerprints)
        high = fingerprints >> 32
        found = np.zeros(len(fingerprints), np.bool_)
        for words, count in self._parts:
            at = (high * count >> 32).view(np.int64)
            found |= np.asarray(words).take(at) & masks == masks
        return found

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

    def _extend(self, urls: int) -> None:
        self._urls_max = self._urls + urls
        self._words = np.zeros(max(1, urls * self._bits // 64), np.uint64)
        self._parts.append((self._words.data, len(self._words)))
