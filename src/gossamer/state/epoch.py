"""Epoch: the work since the last commit, and the reads that see through it.

Three layers answer a read, the newest first: the open epoch, the one that is being committed, the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gossamer.state.store import FAMILIES, Range, Store

_NUMBER = {name: number for number, name in enumerate(FAMILIES)}


class Changes:
    """What one epoch puts, deletes and clears."""

    __slots__ = ("families", "ranges")

    def __init__(self) -> None:
        self.families: dict[int, dict[bytes, bytes | None]] = {number: {} for number in range(len(FAMILIES))}
        self.ranges: list[Range] = []

    def __len__(self) -> int:
        return len(self.ranges) + sum(map(len, self.families.values()))

    def covers(self, family: int, key: bytes) -> bool:
        """Say whether a range of this epoch cleared `key`."""
        return any(number == family and begin <= key < end for number, begin, end in self.ranges)


class Epochs:
    """The shard's state as the loop sees it. All methods but `commit` and `apply` are for the loop alone.

    One epoch is open; at most one is closing. Nothing in `Changes` that is closing is changed any more, so the
    commit's thread may read it without a lock.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open = Changes()
        self._closing: Changes | None = None
        self.number = store.epoch + 1
        """Number of the open epoch."""

    @property
    def size(self) -> int:
        """Operations in the open epoch."""
        return len(self._open)

    def put(self, family: str, key: bytes, value: bytes) -> None:
        self._open.families[_NUMBER[family]][key] = value

    def delete(self, family: str, key: bytes) -> None:
        self._open.families[_NUMBER[family]][key] = None

    def delete_range(self, family: str, begin: bytes, end: bytes) -> None:
        """Clear the keys in [`begin`, `end`); what is put later stays. Costs a pass over the open epoch."""
        number = _NUMBER[family]
        changed = self._open.families[number]
        for key in [key for key in changed if begin <= key < end]:
            del changed[key]
        self._open.ranges.append((number, begin, end))

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return the newest value, or None."""
        number = _NUMBER[family]
        for changes in (self._open, self._closing):
            if changes is not None:
                changed = changes.families[number]
                if key in changed:
                    return changed[key]
                if changes.ranges and changes.covers(number, key):
                    return None
        return self._store.get(family, key)

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the newest values in the order of `keys`; those of the store in one call."""
        number = _NUMBER[family]
        found: list[bytes | None] = [None] * len(keys)
        asked: list[int] = []
        newest = self._open.families[number]
        newer = self._closing.families[number] if self._closing is not None else {}
        cleared = bool(self._open.ranges) or (self._closing is not None and bool(self._closing.ranges))
        for index, key in enumerate(keys):
            if key in newest:
                found[index] = newest[key]
            elif cleared and self._open.covers(number, key):
                pass
            elif key in newer:
                found[index] = newer[key]
            elif not (cleared and self._closing is not None and self._closing.covers(number, key)):
                asked.append(index)
        if asked:
            values = self._store.get_many(family, [keys[index] for index in asked])
            for index, value in zip(asked, values, strict=True):
                found[index] = value
        return found

    def scan(self, family: str, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the newest pairs of a range in the order of keys. The epochs' part is sorted first: keep ranges small.

        The epoch must not be changed while the iterator is in use.
        """
        number = _NUMBER[family]
        over: dict[bytes, bytes | None] = {}
        for changes in (self._closing, self._open):
            if changes is not None:
                if changes.ranges:
                    for key in [key for key in over if changes.covers(number, key)]:
                        over[key] = None
                over.update((key, value) for key, value in changes.families[number].items() if begin <= key < end)
        cleared = [
            (low, high)
            for changes in (self._open, self._closing)
            if changes is not None
            for family_number, low, high in changes.ranges
            if family_number == number
        ]
        below = self._store.scan(family, begin, end)
        if cleared:
            below = (pair for pair in below if not any(low <= pair[0] < high for low, high in cleared))
        return _merged(below, over) if over else below

    def cut(self) -> int:
        """Close the open epoch, begin the next, return the closed one's number."""
        assert self._closing is None, "one epoch is closing already"
        self._closing, self._open = self._open, Changes()
        number = self.number
        self.number += 1
        return number

    def commit(self, number: int) -> None:
        """Make the closing epoch durable. For the commit's thread; one fsync."""
        assert self._closing is not None
        self._store.commit(number, self._closing.ranges, self._closing.families)

    def apply(self, number: int) -> None:
        """Bring the closing epoch to its families. For the commit's thread."""
        assert self._closing is not None
        self._store.apply(number, self._closing.ranges, self._closing.families)

    def settle(self) -> None:
        """Forget the closing epoch: the store has it all."""
        self._closing = None


def _merged(below: Iterator[tuple[bytes, bytes]], over: dict[bytes, bytes | None]) -> Iterator[tuple[bytes, bytes]]:
    keys = sorted(over)
    at = 0
    for key, value in below:
        while at < len(keys) and keys[at] < key:
            newer = over[keys[at]]
            if newer is not None:
                yield keys[at], newer
            at += 1
        if at < len(keys) and keys[at] == key:
            continue  # The newer one comes by itself.
        yield key, value
    for key in keys[at:]:
        newer = over[key]
        if newer is not None:
            yield key, newer
