"""Inbox: batches of other shards that wait to be taken, and this shard's position with each sender, which is in the
same commit as the contents of the batches.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from gossamer.cluster.channels import Peer, Sending
from gossamer.cluster.frames import Batch, Frame, Position, decode_batch, encode
from gossamer.state.epoch import Epochs
from gossamer.state.schema import POSITIONS, under

INCARNATIONS_MAX: Final = 16
"""Incarnations of one sender whose positions are kept; the oldest are dropped. An incarnation begins when an older
checkpoint is restored.
"""
MARKS_MAX: Final = 1_000
"""Commits that wait for a checkpoint and are tracked separately; beyond this number every other one is dropped."""

Numbers = dict[int, int]
"""By incarnation: number of the last batch."""


class Inbox:
    """Positions per sender and incarnation: arrived, taken, committed, safe; none is ahead of the one before it."""

    def __init__(self, epochs: Epochs, *, needs_cover: bool) -> None:
        """`needs_cover`: a commit is safe only when a checkpoint with it is stored elsewhere."""
        self._epochs = epochs
        self._needs_cover = needs_cover
        self._taken: dict[int, Numbers] = {}
        for key, value in epochs.scan("inbox", *under(POSITIONS)):
            self._taken[int.from_bytes(key[2:4])] = msgspec.msgpack.decode(value, type=Numbers)
        self._arrived = {sender: dict(numbers) for sender, numbers in self._taken.items()}
        self._committed = {sender: dict(numbers) for sender, numbers in self._taken.items()}
        self._safe: dict[int, Numbers] = {} if needs_cover else self._committed
        self._cut: dict[int, Numbers] = {}
        self._changed: set[int] = set()
        self._marks: list[tuple[int, dict[int, Numbers]]] = []

    def next_number(self, sender: int, incarnation: int, base: int) -> int:
        """Return the number of the next batch; for an unknown incarnation, the oldest."""
        return self._arrived.setdefault(sender, {}).setdefault(incarnation, base - 1) + 1

    def note_arrival(self, sender: int, incarnation: int, number: int) -> None:
        """Note that a batch has arrived, in order, and will be taken."""
        self._arrived[sender][incarnation] = number

    def take(self, sender: int, incarnation: int, number: int) -> None:
        """Note that a batch is completely in the open epoch."""
        numbers = self._taken.setdefault(sender, {})
        numbers[incarnation] = number
        while len(numbers) > INCARNATIONS_MAX:
            del numbers[min(numbers)]
        self._changed.add(sender)

    def cut(self) -> None:
        """Put changed positions into the open epoch."""
        self._cut = {sender: dict(self._taken[sender]) for sender in self._changed}
        for sender, numbers in self._cut.items():
            self._epochs.put("inbox", POSITIONS + sender.to_bytes(2), encode(numbers))
        self._changed = set()

    def on_commit(self, epoch: int) -> set[int]:
        """Note that an epoch is durable; return the senders whose position changed."""
        self._committed.update(self._cut)
        if self._cut and self._needs_cover:
            self._marks.append((epoch, dict(self._committed)))
            if len(self._marks) > MARKS_MAX:
                del self._marks[1:-1:2]
        return set(self._cut)

    def on_checkpoint(self, epoch: int) -> None:
        """Note that a checkpoint which holds an epoch is where it will be restored from."""
        while self._marks and self._marks[0][0] <= epoch:
            self._safe = self._marks.pop(0)[1]

    def position(self, sender: int, incarnation: int) -> Position | None:
        """Return our position in a sender's incarnation; None if it is unknown."""
        arrived = self._arrived.get(sender, {}).get(incarnation)
        if arrived is None:
            return None
        committed = self._committed.get(sender, {}).get(incarnation, 0)
        return Position(incarnation, arrived, committed, self._safe.get(sender, {}).get(incarnation, 0))

    def newest(self) -> dict[int, tuple[int, int]]:
        """Return, per sender, the newest incarnation with a committed batch, and the number of the last one."""
        return {sender: max(numbers.items()) for sender, numbers in self._committed.items() if numbers}


class Arrivals:
    """Arrived batches that wait to be taken, in order and bounded."""

    def __init__(self, inbox: Inbox, sending: Sending, bytes_max: int) -> None:
        self._inbox = inbox
        self._sending = sending
        self._bytes_max = bytes_max
        self._waiting: deque[tuple[int, int, int, bytes]] = deque()
        self._bytes = 0
        self.stirred = asyncio.Event()
        """Set when there is something to take."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, frame: Frame, peer: Peer) -> int:
        """Add the batches of a frame that are next in order and fit; the sender repeats others. Return how many."""
        sender = frame.sender
        incarnation = frame.incarnation
        expected = self._inbox.next_number(sender, incarnation, frame.base)
        before = len(self._waiting)
        for number, data in enumerate(frame.batches, frame.first):
            if number < expected:
                peer.owed = True
            elif number > expected:
                peer.owed = peer.gap = True
                break
            elif self._bytes + len(data) > self._bytes_max and self._waiting:
                peer.refused = True
                break
            else:
                self._waiting.append((sender, incarnation, number, data))
                self._bytes += len(data)
                self._inbox.note_arrival(sender, incarnation, number)
                expected += 1
        if self._waiting:
            self.stirred.set()
        return len(self._waiting) - before

    def take_next(self, take: Callable[[Batch], None]) -> bool:
        """Pass the next batch to `take`, within the open epoch; return False if none waits."""
        if not self._waiting:
            return False
        sender, incarnation, number, data = self._waiting.popleft()
        self._bytes -= len(data)
        take(decode_batch(data))
        self._inbox.take(sender, incarnation, number)
        return True

    def ask_for_more(self) -> bool:
        """If there is room again, ask the refused senders to continue; return whether there were any."""
        if self._bytes > self._bytes_max // 2:
            return False
        refused = [peer for peer in self._sending.peers.values() if peer.refused]
        for peer in refused:
            peer.refused = False
            peer.owed = True
            peer.gap = True
        return bool(refused)
