"""Channels: the links that go from shard to shard, numbered per pair of shards.

The outbox keeps links to other shards' sites on disk until the receiver has them safely. `Sending` tracks the position
of each receiver, and what to send next. `inbox` handles batches from other shards.
"""

from array import array
from collections import deque
from collections.abc import Container, Iterator
from typing import Final

import msgspec

from gossamer.cluster.frames import FRAME_BYTES_MAX, FramePacker, Position, encode
from gossamer.model.decodable import decodable
from gossamer.model.links import Link
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import BATCHES, OUTBOX


class Channel(msgspec.Struct, array_like=True):
    """The batches from `first` to `last` in the outbox for one receiver; none if `first` is greater than `last`."""

    first: int = 1
    last: int = 0
    seeds: int = 0
    """Number of the last batch with a seed or a root."""
    links: int = 0
    """Links that were ever put in."""
    bytes: int = 0


@decodable
class OutboxRecord(msgspec.Struct, array_like=True):
    """The stored state of the outbox, except its batches."""

    incarnation: int = 0
    channels: dict[int, Channel] = msgspec.field(default_factory=dict)


class Outbox:
    """Links to other shards, durable with the epoch. Only those of the open epoch are in memory."""

    def __init__(self, epochs: Epochs, rolled_back_at: float | None) -> None:
        """`rolled_back_at` is set if the store was just restored from an older checkpoint: batches sent after that
        checkpoint had numbers that are used again, so a new incarnation distinguishes them.
        """
        self._epochs = epochs
        self._kept = load(epochs, OUTBOX, OutboxRecord)
        self._changed = epochs.get("meta", OUTBOX) is None
        if rolled_back_at is not None:
            # A number derived from the time of this start is new: earlier starts had lower ones.
            self._kept.incarnation = max(self._kept.incarnation + 1, int(rolled_back_at * 1000))
            epochs.put("meta", OUTBOX, encode(self._kept))  # In the next commit, also one before the first `cut`.
        self._packing: dict[int, FramePacker] = {}
        self.memory_bytes = 0
        """Approximate memory of links that wait for the next `cut`."""

    @property
    def incarnation(self) -> int:
        """Numbers of batches are unique within one incarnation."""
        return self._kept.incarnation

    def begin_anew(self) -> None:
        """Begin another incarnation: no receiver's position counts any more."""
        self._kept.incarnation += 1
        self._changed = True

    @property
    def channels(self) -> dict[int, Channel]:
        return self._kept.channels

    def channel(self, to: int) -> Channel:
        """Return the channel to a receiver."""
        channel = self._kept.channels.get(to)
        if channel is None:
            channel = self._kept.channels[to] = Channel()
        return channel

    def packing(self, to: int) -> FramePacker:
        """Return the batch to add to, for one receiver."""
        packing = self._packing.get(to)
        if packing is None:
            packing = self._packing[to] = FramePacker()
        elif packing.full:
            self._put(to, packing)
            packing = self._packing[to] = FramePacker()
        return packing

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits for the next `cut`."""
        return not self._packing

    @property
    def has_seeds(self) -> bool:
        """Whether a seed or a root waits for the next `cut`."""
        return any(packing.seeds for packing in self._packing.values())

    def cut(self) -> dict[int, int]:
        """Put the new links into the open epoch; return the last number per receiver, to be sent after the commit."""
        for to, packing in self._packing.items():
            self._put(to, packing)
        self._packing.clear()
        self.memory_bytes = 0
        if self._changed:
            self._epochs.put("meta", OUTBOX, encode(self._kept))
            self._changed = False
        return {to: channel.last for to, channel in self._kept.channels.items()}

    def read(self, to: int, number: int, last: int, bytes_max: int = FRAME_BYTES_MAX) -> list[bytes]:
        """Return committed batches in [`number`, `last`], at least one, until they exceed `bytes_max`."""
        found: list[bytes] = []
        size = 0
        while number <= last and size < bytes_max:
            data = self._epochs.get("outbox", batch_key(to, number))
            assert data is not None, f"batch {number} for shard {to} is not in the outbox"
            found.append(data)
            size += len(data)
            number += 1
        return found

    def drop(self, to: int, through: int) -> None:
        """Delete batches up to `through`, with this epoch, because their receiver has them safely."""
        channel = self.channel(to)
        through = min(through, channel.last)
        if through < channel.first:
            return
        self._epochs.delete_range("outbox", batch_key(to, channel.first), batch_key(to, through + 1))
        channel.first = through + 1
        self._changed = True

    def _put(self, to: int, packing: FramePacker) -> None:
        channel = self.channel(to)
        channel.last += 1
        data = encode(packing.batch)
        self._epochs.put("outbox", batch_key(to, channel.last), data)
        channel.links += sum(len(run.urls) for run in packing.batch.runs)
        channel.bytes += len(data)
        if packing.seeds:
            channel.seeds = channel.last
        self._changed = True


def batch_key(to: int, number: int) -> bytes:
    """Return the key of a batch. A batch has links of many partitions, so it belongs to the shard."""
    return BATCHES + to.to_bytes(2) + number.to_bytes(8)


_NO_NUMBER: Final = 1 << 62
WINDOW_BYTES_MAX: Final = 4 << 20
"""Unacknowledged bytes to one shard."""
PROBES: Final = 4
"""Multiple of `resend_s` after which a shard that has taken all batches, but not confirmed them as safe, is probed."""


class Peer(msgspec.Struct, eq=False):
    """The state of another shard in memory."""

    next: int
    """The batch to be sent next."""
    acked: int
    """Number of the last batch that it has in a commit."""
    opening: int = -1
    incarnation: int = -1
    """Incarnation of the batches that it sends."""
    flying: deque[tuple[int, int]] = msgspec.field(default_factory=deque)
    """Number and bytes of batches that it has not acknowledged."""
    sent_at: float = 0.0
    fresh: bool = True
    """Whether it has not reported its position since it, or this process, started."""
    silent: bool = False
    """Whether the last frame to it was not answered."""
    owed: bool = True
    """Whether a frame must be sent to it to report our position or, at the start, our presence."""
    gap: bool = False
    refused: bool = False
    """Whether the inbox was full when its last frame arrived."""

    def restart(self, first: int) -> None:
        """Send again from a batch on: batches in flight count as lost."""
        self.next = first
        self.flying.clear()


class Sending:
    """Selects the batches of the outbox to send to each other shard (`Peer`)."""

    def __init__(self, outbox: Outbox, resend_s: float, held: Container[int] = ()) -> None:
        """`held`: receivers that get nothing before `free`."""
        self._outbox = outbox
        self._resend_s = resend_s
        self.sendable = {to: channel.last for to, channel in outbox.channels.items()}
        """By receiver: number of the last batch in a commit."""
        self._held = {to: channel.first - 1 for to, channel in outbox.channels.items() if to in held}
        """By receiver: number of the last batch that may be sent while later ones wait for a checkpoint."""
        self.peers: dict[int, Peer] = {}

    def peer(self, shard: int) -> Peer:
        """Return the state of a shard."""
        peer = self.peers.get(shard)
        if peer is None:
            first = self._outbox.channel(shard).first
            peer = self.peers[shard] = Peer(first, first - 1)
        return peer

    def commit(self, lasts: dict[int, int], held: Container[int]) -> None:
        """Let batches be sent up to these numbers; to receivers in `held` only those that could be before."""
        before = self.sendable
        self.sendable = lasts
        for to in [to for to in lasts if to in held]:
            self._held.setdefault(to, before.get(to, 0))

    def free(self, held: Container[int]) -> None:
        """Let all batches be sent to receivers that are no longer in `held`."""
        self._held = {to: last for to, last in self._held.items() if to in held}

    def batches(self, to: int, now: float) -> Iterator[tuple[int, list[bytes], bool]]:
        """Yield what to send to a shard now, one frame at a time: the first batch's number, the batches, and whether
        the frame requests an answer.

        A shard that does not answer, or has not reported its position yet, gets one batch at a time.
        """
        peer = self.peer(to)
        last = min(self.sendable.get(to, 0), self._held.get(to, _NO_NUMBER))
        if peer.acked < peer.next - 1 and now - peer.sent_at >= self._resend_s:
            peer.restart(max(peer.acked + 1, self._outbox.channel(to).first))
            peer.silent = True
        careful = peer.silent or peer.fresh
        window = 1 if careful else WINDOW_BYTES_MAX
        while peer.next <= last and sum([size for _, size in peer.flying]) < window:
            batches = self._outbox.read(to, peer.next, last, 1 if careful else FRAME_BYTES_MAX)
            first = peer.next
            peer.flying.extend((number, len(data)) for number, data in enumerate(batches, first))
            peer.next += len(batches)
            peer.sent_at = now
            yield first, batches, careful

    def probes(self, to: int, now: float) -> bool:
        """Return whether to ask a shard again which batches it has safely."""
        peer = self.peer(to)
        if self._outbox.channel(to).first > self.sendable.get(to, 0) or now - peer.sent_at < PROBES * self._resend_s:
            return False
        peer.sent_at = now
        return True

    def take_position(self, to: int, position: Position | None, *, gap: bool) -> None:
        """Process a shard's report of its position in our batches."""
        peer = self.peer(to)
        channel = self._outbox.channel(to)
        if position is None or position.incarnation != self._outbox.incarnation:
            if peer.fresh:
                peer.acked = channel.first - 1
                peer.fresh = False
                peer.restart(channel.first)
            return
        if peer.fresh:
            peer.acked = channel.first - 1
        peer.acked = max(peer.acked, position.committed)
        while peer.flying and peer.flying[0][0] <= position.arrived:
            peer.flying.popleft()
        if peer.fresh or gap:
            peer.restart(max(position.arrived + 1, channel.first))
            peer.fresh = False
        peer.next = max(peer.next, min(position.arrived, channel.last) + 1)
        self._outbox.drop(to, position.safe)


class RecentlySent:
    """Recently sent URLs of other shards, with their paths: 12 bytes each; a new entry replaces that in its slot."""

    def __init__(self, urls_max: int) -> None:
        places = 1 << max(urls_max.bit_length() - 1, 0)
        self._mask = places - 1
        self._fingerprints = array("Q", bytes(8 * places))
        self._ways = array("I", b"\xff" * (4 * places))

    def adds(self, link: Link) -> bool:
        """Add a link; return whether it, or a shorter path to it, is new. A replaced entry counts as new."""
        fingerprint = link.url.fingerprint
        at = fingerprint & self._mask
        depth = min(link.depth, 0xFFFFFF)
        hops = min(link.hops, 0xFF)
        if self._fingerprints[at] == fingerprint:
            way = self._ways[at]
            known_depth = way >> 8
            known_hops = way & 0xFF
            if known_depth <= depth and known_hops <= hops:
                return False
            depth = min(depth, known_depth)
            hops = min(hops, known_hops)
        self._fingerprints[at] = fingerprint
        self._ways[at] = depth << 8 | hops
        return True
