"""Epoch: the work since the last commit, and the reads that see through it.

Three layers answer a read, the newest first: the open epoch, the one that is being committed, the store.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from gossamer.state.redo import Range, Redo
from gossamer.state.schema import FAMILIES
from gossamer.state.store import Store

Kind = TypeVar("Kind")
_NUMBER = {name: number for number, name in enumerate(FAMILIES)}
_SCANNED = frozenset(_NUMBER[name] for name in ("ready", "sleep", "due", "deferred", "waiting", "scope"))
"""Families that are scanned while an epoch grows: without an index, the scans would have a quadratic cost."""
OPERATION_BYTES = 200
"""Memory of an operation beside the bytes of its key and value: two objects and a dictionary slot."""
_ABSENT = bytes((0,)) + b"absent"
"""Marks a value that the epochs do not have. Compared by identity."""


class Cleared:
    """Ranges of keys, kept disjoint and in order. A lookup costs O(log n)."""

    __slots__ = ("begins", "ends")

    def __init__(self) -> None:
        self.begins: list[bytes] = []
        self.ends: list[bytes] = []

    def add(self, begin: bytes, end: bytes) -> None:
        """Add [`begin`, `end`), and merge it with the ranges that it touches."""
        if begin >= end:
            return
        low = bisect_left(self.ends, begin)
        high = bisect_right(self.begins, end)
        if low < high:
            begin = min(begin, self.begins[low])
            end = max(end, self.ends[high - 1])
        self.begins[low:high] = [begin]
        self.ends[low:high] = [end]

    def covers(self, key: bytes) -> bool:
        """Return whether `key` is in a range."""
        at = bisect_right(self.begins, key) - 1
        return at >= 0 and key < self.ends[at]


class Changes:
    """Keys that one epoch puts, deletes and clears."""

    __slots__ = ("_sorted", "cleared", "families", "memory_bytes")

    def __init__(self) -> None:
        self.families: dict[int, dict[bytes, bytes | None]] = {number: {} for number in range(len(FAMILIES))}
        self.memory_bytes = 0
        """Approximate memory of the changes; a key that is put twice counts twice."""
        self.cleared: dict[int, Cleared] = {}
        """Per family. Entries of `families` are later than these ranges."""
        self._sorted: dict[int, dict[bytes, list[bytes]]] = {number: {} for number in _SCANNED}
        """Per scanned family and partition: the keys of `families`, for scans."""

    def __len__(self) -> int:
        return sum(len(cleared.begins) for cleared in self.cleared.values()) + sum(map(len, self.families.values()))

    @property
    def ranges(self) -> list[Range]:
        """Return all cleared ranges."""
        return [
            (family, begin, end)
            for family, cleared in self.cleared.items()
            for begin, end in zip(cleared.begins, cleared.ends, strict=True)
        ]

    def set(self, family: int, key: bytes, value: bytes | None) -> None:
        """Put a value, or None to delete."""
        changed = self.families[family]
        if key not in changed:
            self.memory_bytes += len(key) + OPERATION_BYTES
            if family in _SCANNED:
                insort(self._sorted[family].setdefault(key[:2], []), key)
        if value:
            self.memory_bytes += len(value)
        changed[key] = value

    def clear(self, family: int, begin: bytes, end: bytes) -> None:
        """Delete all keys in [`begin`, `end`), including those that were put before."""
        changed = self.families[family]
        gone = self.between(family, begin, end)
        for key in gone:
            del changed[key]
        if family in _SCANNED:
            partitions = self._sorted[family]
            for partition in {key[:2] for key in gone}:
                partitions[partition] = [key for key in partitions[partition] if key in changed]
        self.cleared.setdefault(family, Cleared()).add(begin, end)

    def between(self, family: int, begin: bytes, end: bytes) -> list[bytes]:
        """Return the keys in [`begin`, `end`) that were put or deleted, in order."""
        if family not in _SCANNED:
            return sorted(key for key in self.families[family] if begin <= key < end)
        partitions = self._sorted[family]
        first = begin[:2]
        last = end[:2]
        if int.from_bytes(last) - int.from_bytes(first) > 1:
            wanted = sorted(partition for partition in partitions if first <= partition <= last)
        else:
            wanted = sorted({first, last})
        found = []
        for partition in wanted:
            keys = partitions.get(partition, [])
            found += keys[bisect_left(keys, begin) : bisect_left(keys, end)]
        return found


class Epochs:
    """The shard's state as the loop sees it. All methods but `commit` and `apply` are for the loop alone.

    One epoch is open; at most one is closing. The `Changes` of the closing epoch do not change any more, so the
    commit's thread may read them without a lock.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open = Changes()
        self._closing: Changes | None = None
        self.number = store.epoch + 1
        """Number of the open epoch."""
        self._read = dict.fromkeys(range(len(FAMILIES)), 0)
        """By family number: how many keys `get_many` looked up in the store."""

    def keys_read(self, family: str) -> int:
        """Return how many keys of a family `get_many` found in no epoch and looked up in the store."""
        return self._read[_NUMBER[family]]

    @property
    def size(self) -> int:
        """Operations in the open epoch."""
        return len(self._open)

    @property
    def memory_bytes(self) -> int:
        """Approximate memory of the open epoch."""
        return self._open.memory_bytes

    def put(self, family: str, key: bytes, value: bytes) -> None:
        number = _NUMBER[family]
        changes = self._open
        if number in _SCANNED:
            changes.set(number, key, value)
            return
        changed = changes.families[number]  # Inlined `Changes.set`: each page puts a few values.
        changes.memory_bytes += len(value) if key in changed else len(value) + len(key) + OPERATION_BYTES
        changed[key] = value

    def put_many(self, family: str, pairs: Mapping[bytes, bytes]) -> None:
        """Put several values. Not for families that are scanned while an epoch grows."""
        number = _NUMBER[family]
        assert number not in _SCANNED
        self._open.families[number].update(pairs)
        self._open.memory_bytes += sum(map(len, pairs)) + sum(map(len, pairs.values()))
        self._open.memory_bytes += len(pairs) * OPERATION_BYTES

    def delete(self, family: str, key: bytes) -> None:
        self._open.set(_NUMBER[family], key, None)

    def delete_range(self, family: str, begin: bytes, end: bytes) -> None:
        """Clear the keys in [`begin`, `end`); later puts stay."""
        self._open.clear(_NUMBER[family], begin, end)

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return the newest value, or None."""
        number = _NUMBER[family]
        for changes in (self._open, self._closing):
            if changes is not None:
                changed = changes.families[number]
                if key in changed:
                    return changed[key]
                if number in changes.cleared and changes.cleared[number].covers(key):
                    return None
        return self._store.get(family, key)

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the newest values in the order of `keys`; the store is read in one call."""
        number = _NUMBER[family]
        found: list[bytes | None] = [self._open.families[number].get(key, _ABSENT) for key in keys]
        cleared = self._open.cleared.get(number)
        if self._closing is None and not self._open.cleared and found.count(_ABSENT) == len(found):
            self._read[number] += len(keys)
            return self._store.get_many(family, keys)  # The usual case when most keys are new.
        asked = [index for index, value in enumerate(found) if value is _ABSENT]
        if asked and cleared is not None:
            asked = _not_cleared(asked, keys, found, cleared)
        if asked and self._closing is not None:
            newer = self._closing.families[number]
            for index in asked:
                found[index] = newer.get(keys[index], _ABSENT)
            asked = [index for index in asked if found[index] is _ABSENT]
            cleared = self._closing.cleared.get(number)
            if asked and cleared is not None:
                asked = _not_cleared(asked, keys, found, cleared)
        if asked:
            self._read[number] += len(asked)
            values = self._store.get_many(family, [keys[index] for index in asked])
            for index, value in zip(asked, values, strict=True):
                found[index] = value
        return found

    def scan(self, family: str, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the newest pairs of a range in the order of keys. The changes of the epochs are collected first.

        The epoch must not be changed while the iterator is in use.
        """
        number = _NUMBER[family]
        over: dict[bytes, bytes | None] = {}
        below = self._store.scan(family, begin, end)
        for changes in (self._closing, self._open):
            if changes is None:
                continue
            if (cleared := changes.cleared.get(number)) is not None:
                below = _skip_cleared(below, cleared)
                over = {key: value for key, value in over.items() if not cleared.covers(key)}
            changed = changes.families[number]
            for key in changes.between(number, begin, end):
                over[key] = changed[key]
        return _merge(below, over) if over else below

    def changes(
        self, family: str, begin: bytes, end: bytes
    ) -> tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes | None]]]:
        """Return the changes of the open epoch in a range: the ranges it cleared, and the keys it put or deleted (None)
        after that, in order. For families that are not scanned, this passes over all changes of the epoch.
        """
        number = _NUMBER[family]
        changes = self._open
        cleared = changes.cleared.get(number, Cleared())
        ranges = [
            (max(first, begin), min(last, end))
            for first, last in zip(cleared.begins, cleared.ends, strict=True)
            if max(first, begin) < min(last, end)
        ]
        return ranges, [(key, changes.families[number][key]) for key in changes.between(number, begin, end)]

    def replacements(self, family: str, begin: bytes, end: bytes) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Yield the old and the new value of each key that the open epoch changed in a range; None: no value. Only
        while no epoch is closing. Costs a read of the store for each key.
        """
        assert self._closing is None, "the store has not all of what was before"
        cleared, changed = self.changes(family, begin, end)
        before = self._store.get_many(family, [key for key, _ in changed])
        yield from zip(before, (value for _, value in changed), strict=True)
        again = {key for key, _ in changed}
        for first, last in cleared:
            yield from ((value, None) for key, value in self._store.scan(family, first, last) if key not in again)

    def cut(self) -> int:
        """Close the open epoch, begin the next, return the closed one's number."""
        assert self._closing is None, "one epoch is closing already"
        self._closing, self._open = self._open, Changes()
        number = self.number
        self.number += 1
        return number

    def commit(self, number: int) -> None:
        """Make the closing epoch durable with one fsync. For the commit's thread."""
        assert self._closing is not None
        self._store.commit(number, self._closing.ranges, self._closing.families)

    def apply(self, number: int) -> None:
        """Apply the changes of the closing epoch to the store's families. For the commit's thread."""
        assert self._closing is not None
        self._store.apply(number)

    def settle(self) -> None:
        """Drop the changes of the closing epoch: the store has them."""
        self._closing = None

    def close_at_once(self) -> int:
        """Close the open epoch, commit and apply it, all in this thread; return its number."""
        number = self.cut()
        self.commit(number)
        self.apply(number)
        self.settle()
        return number


def load(kept: Redo | Epochs, key: bytes, kind: type[Kind]) -> Kind:
    """Return the decoded value of a key of the shard, or an empty one of its kind."""
    value = kept.get("meta", key)
    return kind() if value is None else msgspec.msgpack.decode(value, type=kind)


def begun_with(epochs: Epochs, key: bytes, first: bytes) -> bytes:
    """Return the value with which a crawl began: the stored one of a key, or `first`, which is stored then."""
    begun = epochs.get("meta", key)
    if begun is None:
        epochs.put("meta", key, first)
        return first
    return begun


def _not_cleared(asked: list[int], keys: Sequence[bytes], found: list[bytes | None], cleared: Cleared) -> list[int]:
    """Set the values of cleared keys in `found` to None; return the indexes of the other keys."""
    left = []
    for index in asked:
        if cleared.covers(keys[index]):
            found[index] = None
        else:
            left.append(index)
    return left


def _skip_cleared(pairs: Iterator[tuple[bytes, bytes]], cleared: Cleared) -> Iterator[tuple[bytes, bytes]]:
    return (pair for pair in pairs if not cleared.covers(pair[0]))


def _merge(below: Iterator[tuple[bytes, bytes]], over: dict[bytes, bytes | None]) -> Iterator[tuple[bytes, bytes]]:
    keys = sorted(over)
    at = 0
    for key, value in below:
        while at < len(keys) and keys[at] < key:
            newer = over[keys[at]]
            if newer is not None:
                yield keys[at], newer
            at += 1
        if at < len(keys) and keys[at] == key:
            continue  # The newer value is yielded in its turn.
        yield key, value
    for key in keys[at:]:
        newer = over[key]
        if newer is not None:
            yield key, newer
