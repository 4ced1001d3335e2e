"""Moving: carries partitions from this shard to others, and takes those that come, while the crawl goes on.

No URL of a partition is leased from the order on. When what is in flight has come back, the next commit gives it: from
then on its links go to the receiver, and its keys, some in each commit, from the store to the outbox. With the last
part the receiver has it, and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from gossamer.cluster.exchange import Exchange
from gossamer.cluster.frames import BATCH_BYTES_MAX, MoveEnd, MovePart
from gossamer.cluster.places import Giving, Move
from gossamer.crawl.pending_scope import PendingScope, open_seeds
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.moving import HOST
from gossamer.model.visits import Failure, Prerequisite
from gossamer.state.epoch import Epochs
from gossamer.state.schema import FAMILIES, partition_range

if TYPE_CHECKING:
    from gossamer.assembly.values import CrawlRing

STEP_KEYS_MAX: Final = 10_000
"""Keys that one commit gives at the most, beside the last part's: about 30 ms."""
PART_KEYS_MAX: Final = 1_000


class PartitionMoves:
    """What a shard does for the moves that the coordinator orders."""

    def __init__(
        self,
        exchange: Exchange,
        ring: CrawlRing,
        frontier: Frontier,
        epochs: Epochs,
        pending_scope: PendingScope | None,
    ) -> None:
        self._exchange = exchange
        self._places = exchange.places
        self._ring = ring
        self._loop = ring.loop
        self._frontier = frontier
        self._epochs = epochs
        self._pending_scope = pending_scope
        self._waiting: dict[int, Move] = {}
        """Moves that wait for what is in flight, by version."""
        self.step_keys_max = STEP_KEYS_MAX

    def order(self, moves: Sequence[Move]) -> None:
        """Begin those moves that are ours to give. They may be ordered again, or late."""
        for move in moves:
            if move.sender == self._exchange.shard and self._places.is_new(move) and move.version not in self._waiting:
                self._waiting[move.version] = move
                self._frontier.moves.freeze(move.first, move.end)
        if any(self._is_drained(move) for move in self._waiting.values()) or any(self._places.giving):
            self._loop.commit_soon()

    def cut(self, now: float) -> None:
        """Give, with the epoch that closes, what is ready. Only the exchange is cut later."""
        for move in [move for move in self._waiting.values() if self._is_drained(move)]:
            del self._waiting[move.version]
            if self._places.is_new(move):
                self._begin(move, now)
        left = self.step_keys_max
        for giving in self._places.giving:
            if left > 0:
                left -= self._give(giving, left, now)

    def take(self, part: MovePart, now: float) -> None:
        """Take a part of what another shard gives."""
        if not self._places.awaits(part):
            return
        self._places.takes(part)
        if part.number == 0:  # An earlier try of the giver, which was restored since, may have left some.
            for family in FAMILIES:
                for begin, end in _ranges(family, part.first, part.end):
                    self._epochs.delete_range(family, begin, end)
        for key, value in part.pairs:
            self._epochs.put(FAMILIES[part.family], key, value)
        if part.last is not None:
            self._admit(part, part.last, now)

    # ---- inside

    def _is_drained(self, move: Move) -> bool:
        """Say whether nothing of a move's partitions is in flight."""
        busy = any(move.first <= lease.host.partition < move.end for lease, _ in self._loop.under_way)
        return not busy and self._frontier.moves.is_drained(move.first, move.end)

    def _begin(self, move: Move, now: float) -> None:
        self._exchange.activity += 1
        names = self._names(move.first, move.end)
        waiting = self._frontier.moves.release(move.first, move.end)
        self._ring.scope.trapping.forget(names)
        if self._pending_scope is not None:
            self._pending_scope.moved(move.first, move.end, -1)
        self._places.give(move, self._frontier.moves.round)
        self._exchange.readdress()
        for prerequisite in waiting:
            self._redirect(prerequisite, now)

    def _redirect(self, prerequisite: Prerequisite, now: float) -> None:
        """Have the new owner of a host make a fetch that waited for its turn here."""
        if not self._exchange.has(prerequisite.origin):
            self._exchange.drop_prerequisite(prerequisite)
        elif not self._exchange.run_prerequisite(prerequisite):
            refused = Failure("host_closed", "its host moved to another shard", retry=True)
            self._ring.pipeline.prerequisites.answer(prerequisite, b"", refused, now)

    def _give(self, giving: Giving, keys_max: int, now: float) -> int:
        """Put up to `keys_max` keys into the outbox; return how many."""
        move, keys = giving.move, 0
        while giving.family < len(FAMILIES):
            family = FAMILIES[giving.family]
            for begin, end in _ranges(family, move.first, move.end):
                if pairs := list(islice(self._epochs.scan(family, begin, end), keys_max - keys)):
                    keys += len(pairs)
                    self._epochs.delete_range(family, begin, pairs[-1][0] + b"\0")
                    self._send(giving, self._travelling(family, pairs, now))
                if keys >= keys_max:
                    return keys  # There may be more in this family.
            giving.family += 1
        linking = self._frontier.reputation
        last = MoveEnd(giving.round, linking.linking_max if linking is not None else 0.0)
        self._exchange.send_part(
            move.to, MovePart(move.version, move.first, move.end, giving.part, 0, [], last)
        )  # fmt: skip
        self._places.gave(giving, is_last=True)
        return keys

    def _send(self, giving: Giving, pairs: list[tuple[bytes, bytes]]) -> None:
        move, at = giving.move, 0
        while at < len(pairs):
            some, size = at, 0
            while at < len(pairs) and at - some < PART_KEYS_MAX and size < BATCH_BYTES_MAX:
                size += len(pairs[at][0]) + len(pairs[at][1])
                at += 1
            part = MovePart(move.version, move.first, move.end, giving.part, giving.family, pairs[some:at])
            self._exchange.send_part(move.to, part)
            self._places.gave(giving, is_last=False)

    def _travelling(self, family: str, pairs: list[tuple[bytes, bytes]], now: float) -> list[tuple[bytes, bytes]]:
        if family != HOST:
            return pairs
        return [(key, self._frontier.moves.left_of(data, now)) for key, data in pairs]

    def _admit(self, part: MovePart, last: MoveEnd, now: float) -> None:
        first, end = part.first, part.end
        self._exchange.activity += 1
        self._ring.permit.robots.forget()
        if (forget := getattr(self._ring.urls.url_seen, "forget", None)) is not None:
            forget()
        self._ring.scope.trapping.admit(self._names(first, end), first, end)
        if self._pending_scope is not None:
            self._pending_scope.moved(first, end, 1)
        if (reputation := self._frontier.reputation) is not None:
            reputation.linking_max = max(reputation.linking_max, last.linking_max)
        self._frontier.moves.admit(first, end, last.round, now)
        self._places.took(part)
        self._exchange.readdress()
        self._loop.stir()

    def _names(self, first: int, end: int) -> list[str]:
        return [key[2:-1].decode() for key, _ in self._epochs.scan(HOST, *partition_range(first, end))]


def _ranges(family: str, first: int, end: int) -> list[tuple[bytes, bytes]]:
    """Return the ranges of keys that move with partitions: all of them, but for links that wait for the scope to grow.
    Those stay where they were found.
    """
    return [open_seeds(number) for number in range(first, end)] if family == "scope" else [partition_range(first, end)]
