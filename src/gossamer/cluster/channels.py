"""Channels: the links that go from shard to shard, numbered per pair of shards.

The outbox keeps links of other shards' sites on disk until their receiver has them for good. Sending says how far each
receiver is and what goes to it next. What comes from other shards is in `inbox`.
"""

from array import array
from collections import deque
from collections.abc import Callable, Container, Iterator
from typing import Final

import msgspec

from gossamer.cluster.frames import FRAME_BYTES_MAX, FramePacker, Position, encode
from gossamer.model.decodable import decodable
from gossamer.model.links import Link
from gossamer.state.epoch import Epochs
from gossamer.state.schema import BATCHES, OUTBOX


class Channel(msgspec.Struct, array_like=True):
    """What is in the outbox for one receiver: the batches from `first` to `last`; none when `first` is beyond it."""

    first: int = 1
    last: int = 0
    seeds: int = 0
    """The last one with a seed or a root in it."""
    links: int = 0
    """Put in, ever."""
    bytes: int = 0


@decodable
class OutboxRecord(msgspec.Struct, array_like=True):
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
        self._kept = OutboxRecord() if stored is None else msgspec.msgpack.decode(stored, type=OutboxRecord)
        self._changed = stored is None
        if rolled_back_at is not None:
            # No earlier start can have had this one: they were begun earlier.
            self._kept.incarnation = max(self._kept.incarnation + 1, int(rolled_back_at * 1000))
            epochs.put("meta", OUTBOX, encode(self._kept))  # In the next commit, also one before the first `cut`.
        self._packing: dict[int, FramePacker] = {}
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

    def packing(self, to: int) -> FramePacker:
        """Return the batch to add to, for one receiver; call `grown` afterwards."""
        packing = self._packing.get(to)
        if packing is None:
            packing = self._packing[to] = FramePacker()
        elif packing.full:
            self._put(to, packing)
            packing = self._packing[to] = FramePacker()
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
            data = self._epochs.get("outbox", batch_key(to, number))
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


class Repacked:
    """The outbox of a shard whose neighbours change: the same links in new batches, each for who has them now.

    The new batches stand beside the old ones, under numbers of their own, and count when `finish`'s value is kept.
    """

    def __init__(self, kept: OutboxRecord, put: Callable[[dict[bytes, bytes]], None], *, keep: bool) -> None:
        """`keep`: what is in the outbox stays, and the rest is added to it."""
        self._put = put
        self._kept = OutboxRecord(kept.incarnation + 1)
        for to, one in kept.channels.items():
            first = one.first if keep else one.last + 1
            self._kept.channels[to] = Channel(first, one.last, one.seeds, one.links, one.bytes)
        self._packing: dict[int, FramePacker] = {}

    def to(self, to: int) -> FramePacker:
        """Return the batch to add to."""
        packing = self._packing.setdefault(to, FramePacker())
        if packing.full:
            self._write(to, packing)
            packing = self._packing[to] = FramePacker()
        return packing

    def finish(self) -> OutboxRecord:
        """Put what is left; return what is to be kept."""
        for to, packing in self._packing.items():
            self._write(to, packing)
        return self._kept

    def _write(self, to: int, packing: FramePacker) -> None:
        channel = self._kept.channels.setdefault(to, Channel())
        channel.last += 1
        channel.seeds = channel.last if packing.seeds else channel.seeds
        self._put({batch_key(to, channel.last): encode(packing.batch)})


def batch_key(to: int, number: int) -> bytes:
    """Return where the store keeps a batch. A batch has links of many partitions; it is the shard's, not theirs."""
    return BATCHES + to.to_bytes(2) + number.to_bytes(8)


_NO_NUMBER: Final = 1 << 62
WINDOW_BYTES_MAX: Final = 4 << 20
"""Unacknowledged bytes to one shard."""
PROBES: Final = 4
"""Multiple of `resend_s` after which a shard that has taken all batches, but not confirmed them as safe, is probed."""


class Peer:
    """What is known of another shard, in memory."""

    __slots__ = (
        "acked",
        "flying",
        "fresh",
        "gap",
        "incarnation",
        "next",
        "opening",
        "owed",
        "refused",
        "sent_at",
        "silent",
    )

    def __init__(self, first: int) -> None:
        self.opening = -1
        self.incarnation = -1
        """Of what it sends."""
        self.next = first
        """The batch to be sent next."""
        self.acked = first - 1
        """Last batch that it has in a commit."""
        self.flying: deque[tuple[int, int]] = deque()
        """Number and bytes of what it has not said to have."""
        self.sent_at = 0.0
        self.fresh = True
        """It has not reported its position since it, or this process, started."""
        self.silent = False
        """What was sent last was not answered."""
        self.owed = True
        """Our position must be sent to it; at the start, our presence."""
        self.gap = False
        self.refused = False
        """The inbox was full when its frame came."""

    def restart(self, first: int) -> None:
        """Send again from a batch on: batches in flight count as lost."""
        self.next = first
        self.flying.clear()


class Sending:
    """One `Peer` for each of the others, on top of the outbox."""

    def __init__(self, outbox: Outbox, resend_s: float, held: Container[int] = ()) -> None:
        """`held`: receivers that get nothing before `free` says so."""
        self._outbox = outbox
        self._resend_s = resend_s
        self.sendable = {to: channel.last for to, channel in outbox.channels.items()}
        """Receiver to the number of the last batch in a commit."""
        self._held = {to: channel.first - 1 for to, channel in outbox.channels.items() if to in held}
        """Receiver to the last batch that may be sent, where others wait for a checkpoint."""
        self.peers: dict[int, Peer] = {}

    def peer(self, shard: int) -> Peer:
        """Return what is known of a shard."""
        peer = self.peers.get(shard)
        if peer is None:
            peer = self.peers[shard] = Peer(self._outbox.channel(shard).first)
        return peer

    def commit(self, lasts: dict[int, int], held: Container[int]) -> None:
        """Let batches be sent up to these numbers; to receivers in `held` only those that could be before."""
        before, self.sendable = self.sendable, lasts
        for to in [to for to in lasts if to in held]:
            self._held.setdefault(to, before.get(to, 0))

    def free(self, held: Container[int]) -> None:
        """Let all be sent to receivers that are not in `held` any more."""
        self._held = {to: last for to, last in self._held.items() if to in held}

    def batches(self, to: int, now: float) -> Iterator[tuple[int, list[bytes], bool]]:
        """Yield what to send to a shard now, one frame at a time: the first batch's number, the batches, and whether
        the frame requests an answer.

        A shard that does not answer, or has not reported its position yet, gets one batch at a time.
        """
        peer, last = self.peer(to), min(self.sendable.get(to, 0), self._held.get(to, _NO_NUMBER))
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
        """Say whether a shard is to be asked once more what it has for good."""
        peer, channel = self.peer(to), self._outbox.channel(to)
        if channel.first > self.sendable.get(to, 0) or now - peer.sent_at < PROBES * self._resend_s:
            return False
        peer.sent_at = now
        return True

    def take_position(self, to: int, position: Position | None, *, gap: bool) -> None:
        """Take a shard's position in the batches that we send."""
        peer, channel = self.peer(to), self._outbox.channel(to)
        if position is None or position.incarnation != self._outbox.incarnation:
            if peer.fresh:
                peer.acked, peer.fresh = channel.first - 1, False
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
    """URLs of other shards that were sent recently, with their paths: 12 bytes each, the newest stays."""

    def __init__(self, urls_max: int) -> None:
        places = 1 << max(urls_max.bit_length() - 1, 0)
        self._mask = places - 1
        self._fingerprints = array("Q", bytes(8 * places))
        self._ways = array("I", b"\xff" * (4 * places))

    def adds(self, link: Link) -> bool:
        """Note a link; say whether it, or its way, is new. One that was forgotten counts as new."""
        fingerprint = link.url.fingerprint
        at = fingerprint & self._mask
        depth, hops = min(link.depth, 0xFFFFFF), min(link.hops, 0xFF)
        if self._fingerprints[at] == fingerprint:
            way = self._ways[at]
            known_depth, known_hops = way >> 8, way & 0xFF
            if known_depth <= depth and known_hops <= hops:
                return False
            depth, hops = min(depth, known_depth), min(hops, known_hops)
        self._fingerprints[at] = fingerprint
        self._ways[at] = depth << 8 | hops
        return True
