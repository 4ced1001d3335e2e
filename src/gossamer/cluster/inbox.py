"""Inbox: how far this shard is with each sender, in the same commit as what the batches brought."""

from __future__ import annotations

from typing import Final

import msgspec

from gossamer.cluster.frames import Position, encode
from gossamer.state.epoch import Epochs
from gossamer.state.schema import POSITIONS, under

FAMILY: Final = "inbox"
INCARNATIONS_MAX: Final = 16
"""Of one sender whose positions are kept; the oldest go. An incarnation begins when an older checkpoint is restored."""
MARKS_MAX: Final = 1_000
"""Commits that wait for a checkpoint and are remembered apart; beyond them every other one is forgotten."""

Numbers = dict[int, int]
"""Incarnation to the number of the last batch."""


class Inbox:
    """Positions per sender and incarnation: arrived, taken, committed, safe; each behind the one before it."""

    def __init__(self, epochs: Epochs, *, needs_cover: bool) -> None:
        """`needs_cover`: a commit is not safe before a checkpoint that holds it is elsewhere."""
        self._epochs = epochs
        self._needs_cover = needs_cover
        self._taken: dict[int, Numbers] = {}
        for key, value in epochs.scan(FAMILY, *under(POSITIONS)):
            self._taken[int.from_bytes(key[2:4])] = msgspec.msgpack.decode(value, type=Numbers)
        self._arrived = {sender: dict(numbers) for sender, numbers in self._taken.items()}
        self._committed = {sender: dict(numbers) for sender, numbers in self._taken.items()}
        self._safe: dict[int, Numbers] = {} if needs_cover else self._committed
        self._cut: dict[int, Numbers] = {}
        self._changed: set[int] = set()
        self._marks: list[tuple[int, dict[int, Numbers]]] = []

    def expected(self, sender: int, incarnation: int, base: int) -> int:
        """Return the number of the batch that comes next. Of an incarnation never heard of: the oldest."""
        arrived = self._arrived.setdefault(sender, {})
        return arrived.setdefault(incarnation, base - 1) + 1

    def arrived(self, sender: int, incarnation: int, number: int) -> None:
        """Note that a batch came, in order; it will be taken."""
        self._arrived[sender][incarnation] = number

    def take(self, sender: int, incarnation: int, number: int) -> None:
        """Note that a batch is in the open epoch, whole."""
        numbers = self._taken.setdefault(sender, {})
        numbers[incarnation] = number
        while len(numbers) > INCARNATIONS_MAX:
            del numbers[min(numbers)]
        self._changed.add(sender)

    def cut(self) -> None:
        """Give the open epoch the positions that changed."""
        self._cut = {sender: dict(self._taken[sender]) for sender in self._changed}
        for sender, numbers in self._cut.items():
            self._epochs.put(FAMILY, POSITIONS + sender.to_bytes(2), encode(numbers))
        self._changed = set()

    def committed(self, epoch: int) -> set[int]:
        """Note that what was cut is durable; return whose position changed."""
        self._committed.update(self._cut)
        if self._cut and self._needs_cover:
            self._marks.append((epoch, dict(self._committed)))
            if len(self._marks) > MARKS_MAX:
                del self._marks[1:-1:2]
        return set(self._cut)

    def covered(self, epoch: int) -> None:
        """Note that a checkpoint which holds an epoch is where it will be restored from."""
        while self._marks and self._marks[0][0] <= epoch:
            self._safe = self._marks.pop(0)[1]

    def position(self, sender: int, incarnation: int) -> Position | None:
        """Return how far we are with a sender's incarnation; None when nothing is known of it."""
        arrived = self._arrived.get(sender, {}).get(incarnation)
        if arrived is None:
            return None
        committed = self._committed.get(sender, {}).get(incarnation, 0)
        return Position(incarnation, arrived, committed, self._safe.get(sender, {}).get(incarnation, 0))

    def newest(self) -> dict[int, tuple[int, int]]:
        """Return, per sender, the newest incarnation of which something is committed, and the number."""
        return {sender: max(numbers.items()) for sender, numbers in self._committed.items() if numbers}
