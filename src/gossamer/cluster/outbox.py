"""Outbox: links of other shards' sites, numbered per receiver, on disk until their receiver has them for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from gossamer.cluster.frames import FRAME_BYTES_MAX, Packing, encode
from gossamer.state.epoch import Epochs
from gossamer.state.schema import BATCHES, OUTBOX

FAMILY: Final = "outbox"


class Channel(msgspec.Struct, array_like=True):
    """What is in the outbox for one receiver: the batches from `first` to `last`; none when `first` is beyond it."""

    first: int = 1
    last: int = 0
    seeds: int = 0
    """The last one with a seed or a root in it."""
    links: int = 0
    """Put in, ever."""
    bytes: int = 0


class Kept(msgspec.Struct, array_like=True):
    """What the commit keeps of the outbox beside its batches."""

    incarnation: int = 0
    channels: dict[int, Channel] = msgspec.field(default_factory=dict)


class Outbox:
    """Durable with the epoch. In memory are the links of the open epoch alone, however long a receiver is away."""

    def __init__(self, epochs: Epochs, rolled_back_at: float | None) -> None:
        """`rolled_back_at`: the store is an older checkpoint's, restored now; what was sent after it was made is sent
        under the same numbers again, and must not be taken for the same.
        """
        self._epochs = epochs
        stored = epochs.get("meta", OUTBOX)
        self._kept = Kept() if stored is None else msgspec.msgpack.decode(stored, type=Kept)
        self._changed = stored is None
        if rolled_back_at is not None:
            # No earlier start can have had this one: they were begun earlier.
            self._kept.incarnation = max(self._kept.incarnation + 1, int(rolled_back_at * 1000))
            self._changed = True
        self._packing: dict[int, Packing] = {}
        self.memory_bytes = 0
        """Of links that wait for the next `cut`, about."""

    @property
    def incarnation(self) -> int:
        """Numbers of batches mean what they say within one incarnation."""
        return self._kept.incarnation

    @property
    def channels(self) -> dict[int, Channel]:
        return self._kept.channels

    def channel(self, to: int) -> Channel:
        """Return the channel to a receiver."""
        channel = self._kept.channels.get(to)
        if channel is None:
            channel = self._kept.channels[to] = Channel()
        return channel

    def packing(self, to: int) -> Packing:
        """Return the batch to add to, for one receiver; call `grown` afterwards."""
        packing = self._packing.get(to)
        if packing is None:
            packing = self._packing[to] = Packing()
        elif packing.full:
            self._put(to, packing)
            packing = self._packing[to] = Packing()
        return packing

    @property
    def is_empty(self) -> bool:
        """Nothing waits for the next `cut`."""
        return not self._packing

    @property
    def has_seeds(self) -> bool:
        """A seed or a root waits for the next `cut`."""
        return any(packing.seeds for packing in self._packing.values())

    def cut(self) -> dict[int, int]:
        """Give the open epoch what was put in; return the last number per receiver, to be sent once it is committed."""
        for to, packing in self._packing.items():
            self._put(to, packing)
        self._packing.clear()
        self.memory_bytes = 0
        if self._changed:
            self._epochs.put("meta", OUTBOX, encode(self._kept))
            self._changed = False
        return {to: channel.last for to, channel in self._kept.channels.items()}

    def read(self, to: int, number: int, last: int, bytes_max: int = FRAME_BYTES_MAX) -> list[bytes]:
        """Return committed batches from a number on, up to `last`; after `bytes_max` no more, but at least one."""
        found: list[bytes] = []
        size = 0
        while number <= last and size < bytes_max:
            data = self._epochs.get(FAMILY, batch_key(to, number))
            assert data is not None, f"batch {number} for shard {to} is not in the outbox"
            found.append(data)
            size += len(data)
            number += 1
        return found

    def drop(self, to: int, through: int) -> None:
        """Forget batches up to a number, with this epoch: their receiver has them for good."""
        channel = self.channel(to)
        through = min(through, channel.last)
        if through < channel.first:
            return
        self._epochs.delete_range(FAMILY, batch_key(to, channel.first), batch_key(to, through + 1))
        channel.first = through + 1
        self._changed = True

    def _put(self, to: int, packing: Packing) -> None:
        channel = self.channel(to)
        channel.last += 1
        data = encode(packing.batch)
        self._epochs.put(FAMILY, batch_key(to, channel.last), data)
        channel.links += sum(len(run.urls) for run in packing.batch.runs)
        channel.bytes += len(data)
        if packing.seeds:
            channel.seeds = channel.last
        self._changed = True


class Repacked:
    """The outbox of a shard whose neighbours change: the same links in new batches, each for who has them now.

    The new batches stand beside the old ones, under numbers of their own, and count when `finish`'s value is kept.
    """

    def __init__(self, kept: Kept, put: Callable[[dict[bytes, bytes]], None], *, keep: bool) -> None:
        """`keep`: what is in the outbox stays, and the rest is added to it."""
        self._put = put
        self._kept = Kept(kept.incarnation + 1)
        for to, one in kept.channels.items():
            first = one.first if keep else one.last + 1
            self._kept.channels[to] = Channel(first, one.last, one.seeds, one.links, one.bytes)
        self._packing: dict[int, Packing] = {}

    def to(self, to: int) -> Packing:
        """Return the batch to add to."""
        packing = self._packing.setdefault(to, Packing())
        if packing.full:
            self._write(to, packing)
            packing = self._packing[to] = Packing()
        return packing

    def finish(self) -> Kept:
        """Put what is left; return what is to be kept."""
        for to, packing in self._packing.items():
            self._write(to, packing)
        return self._kept

    def _write(self, to: int, packing: Packing) -> None:
        channel = self._kept.channels.setdefault(to, Channel())
        channel.last += 1
        channel.seeds = channel.last if packing.seeds else channel.seeds
        self._put({batch_key(to, channel.last): encode(packing.batch)})


def batch_key(to: int, number: int) -> bytes:
    """Return where the store keeps a batch. A batch has links of many partitions; it is the shard's, not theirs."""
    return BATCHES + to.to_bytes(2) + number.to_bytes(8)


def waiting(channels: Iterable[Channel]) -> int:
    """Return how many batches are in channels."""
    return sum(max(0, channel.last - channel.first + 1) for channel in channels)
