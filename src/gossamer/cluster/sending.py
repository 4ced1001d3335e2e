"""Sending: how far each of the other shards is with what this one sends, and what goes to it next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from gossamer.cluster.frames import FRAME_BYTES_MAX, Position
from gossamer.cluster.outbox import Outbox

WINDOW_BYTES_MAX: Final = 4 << 20
"""On the way to one shard without a word from it."""
PROBES: Final = 4
"""A shard that has all but did not call it safe is asked again after so many times `resend_s`."""


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
        """It has not said yet where it stands since it, or we, began."""
        self.silent = False
        """What was sent last was not answered."""
        self.owed = True
        """It is to be told our position; at the start, that we are here."""
        self.gap = False
        self.refused = False
        """There was no room for what it sent."""

    def restart(self, first: int) -> None:
        """Begin again with a batch: what was on the way is not believed to have come."""
        self.next = first
        self.flying.clear()


class Sending:
    """One `Peer` for each of the others, on top of the outbox."""

    def __init__(self, outbox: Outbox, resend_s: float) -> None:
        self._outbox = outbox
        self._resend_s = resend_s
        self.sendable = {to: channel.last for to, channel in outbox.channels.items()}
        """Receiver to the number of the last batch in a commit."""
        self.peers: dict[int, Peer] = {}

    def peer(self, shard: int) -> Peer:
        """Return what is known of a shard."""
        peer = self.peers.get(shard)
        if peer is None:
            peer = self.peers[shard] = Peer(self._outbox.channel(shard).first)
        return peer

    def batches(self, to: int, now: float) -> Iterator[tuple[int, list[bytes], bool]]:
        """Yield what is to be sent to a shard now, a frame's worth at a time: the first batch's number, the batches,
        and whether an answer is asked for.

        A shard that does not answer, or has not said yet where it stands, is sent one batch at a time.
        """
        peer, last = self.peer(to), self.sendable.get(to, 0)
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

    def told(self, to: int, position: Position | None, *, gap: bool) -> None:
        """Take in where a shard stands with what we send."""
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
