"""Moves: which partitions go to which shard, and when. The coordinator's part: no I/O, no clock.

The record is saved before an order that depends on it goes out. An order is repeated until the receiver has the
partitions so that no restart of it takes them back; only then does the map say that they are there. So a coordinator
that restarts continues each move, and a shard that was restored finds in the map what became of its partitions.

Where shards make checkpoints, a copy of the record is beside these before the order goes out. A crawl that is restored
from there, and has an older record than its shards have state, orders again what they have done.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from gossamer.cluster.balance import Uneven, runs_to_give
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.places import Move, MovedRun, without
from gossamer.cluster.reports import Orders, ShardReport
from gossamer.url.url import PARTITIONS

MOVES_A_SHARD_MAX: Final = 2
"""Under way from or to one shard."""
RUN_MAX: Final = 256
"""Partitions in a move."""
URLS_A_MOVE: Final = 4_000
"""Seen URLs that a move carries, about: so large that few moves are enough, so small that none takes a second."""
URLS_A_MOVE_COPIED: Final = 1_000_000
"""The same where each move takes a checkpoint of both shards."""


class Copied(NamedTuple):
    """What a crawl would begin with that is restored from its checkpoints alone."""

    version: int
    """Of the last move."""
    shards: int


class MovesRecord(msgspec.Struct):
    """What a coordinator must find again."""

    shards: int = 0
    """Shards that there are; 0: those that the crawl was started with."""
    wanted: int = 0
    """Shards that are to have all partitions, each as many; 0: those that have them."""
    version: int = 0
    """Of the last move that was begun."""
    under_way: list[Move] = msgspec.field(default_factory=list)
    serial: int = 0
    """Of the last move that was completed."""
    places: list[tuple[int, MovedRun]] = msgspec.field(default_factory=list)
    """What was moved, each partition once, with the serial number of its last completed move."""
    balanced: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Runs that moved because one shard was behind and another one free: first, and first behind it. None of them does
    so again before the number of shards changes."""

    @property
    def is_moving(self) -> bool:
        """Partitions are on their way, or will be."""
        return bool(self.under_way or self.wanted)

    @property
    def is_balancing(self) -> bool:
        """Partitions are on their way, and the number of shards stays."""
        return bool(self.under_way) and not self.wanted


def map_now(partitions: PartitionMap, kept: MovesRecord) -> PartitionMap:
    """Return the map as it is, from the one that the crawl was started with and what was moved since."""
    moves = Moves(kept, partitions)
    return PartitionMap(partitions.version, moves.kept.shards, moves.owners)


class Moves:
    """The map of a running crawl, and what is to change of it."""

    def __init__(self, kept: MovesRecord, partitions: PartitionMap) -> None:
        """`partitions` is the map that the crawl was started with."""
        self.kept = kept
        kept.shards = max(kept.shards, partitions.shards)
        self.owners = array("H", partitions.owners)
        """Owner of each partition, moves under way not counted."""
        self.copied: Copied | None = None
        """What of the record has a copy beside the checkpoints of shards: only that is ordered. None: there are no
        checkpoints."""
        for _, place in kept.places:
            self._set(place)

    @property
    def is_copied(self) -> bool:
        """All that is recorded may be ordered."""
        return self.copied in (None, (self.kept.version, self.kept.shards))

    @property
    def is_moving(self) -> bool:
        """Partitions are on their way, or will be."""
        return self.kept.is_moving

    def scale(self, shards: int) -> None:
        """Have `shards` shards hold all partitions. Raises ConfigError where that cannot be."""
        PartitionMap(1, self.kept.shards, self.owners).moved_to(shards)
        self.kept.shards, self.kept.wanted = max(self.kept.shards, shards), shards
        self.kept.balanced = []

    def orders(self, shard: int, orders: Orders, known: int) -> Orders:
        """Return a shard's orders with those about moves; `known`: the serial number up to which it knows the map."""
        kept = self.kept
        version, shards = self.copied or (kept.version, kept.shards)
        return msgspec.structs.replace(
            orders,
            shards=shards,
            moves=[move for move in kept.under_way if shard in (move.sender, move.to) and move.version <= version],
            places=[place for serial, place in kept.places if serial > known],
            known=known,
            serial=kept.serial,
        )

    def take_round(self, reports: Sequence[ShardReport], *, begins: bool) -> None:
        """Note what is complete; where `begins`, begin what is next."""
        settled = {(report.shard, version) for report in reports for version in report.settled}
        for move in [move for move in self.kept.under_way if (move.to, move.version) in settled]:
            self._complete(move)
        if begins and self.kept.wanted:
            self._begin({report.shard: report for report in reports})

    def even(self, found: Uneven) -> int:
        """Begin moves from a shard that is behind to one that is free, where none is under way; return the number of
        partitions that move.
        """
        kept, giver, to = self.kept, found.giver, found.to
        assert not kept.is_moving
        stay = {partition for first, end in kept.balanced for partition in range(first, end)}
        length = self._length(giver.urls, Counter(self.owners)[giver.shard])
        runs = runs_to_give(
            giver.waiting or [], found.free + 1, length, lambda one: self.owners[one] == giver.shard and one not in stay
        )
        for first, end in runs:
            self._order(first, end, giver.shard, to)
        kept.balanced += runs
        return sum(end - first for first, end in runs)

    def _complete(self, move: Move) -> None:
        kept = self.kept
        kept.under_way.remove(move)
        kept.serial += 1
        left = [
            (serial, rest) for serial, place in kept.places for rest in without([place], move.first, move.end)
        ]  # fmt: skip
        place = MovedRun(move.version, move.first, move.end, move.to)
        kept.places = [*left, (kept.serial, place)]
        self._set(place)

    def _begin(self, reports: dict[int, ShardReport]) -> None:
        kept = self.kept
        to_be = array("H", self.owners)
        for move in kept.under_way:
            to_be[move.first : move.end] = array("H", [move.to]) * (move.end - move.first)
        target = PartitionMap(1, kept.shards, to_be).moved_to(kept.wanted)
        busy = Counter(shard for move in kept.under_way for shard in (move.sender, move.to))
        held = Counter(self.owners)
        found = False
        for first, end in _runs(self.owners, to_be, target.owners):
            sender, to = to_be[first], target.owners[first]
            found = True
            # What is on its way to a shard is not passed on before it is there.
            if sender not in reports or to not in reports or self.owners[first] != sender:
                continue
            if busy[sender] < MOVES_A_SHARD_MAX and busy[to] < MOVES_A_SHARD_MAX:
                self._order(first, min(end, first + self._length(reports[sender].urls, held[sender])), sender, to)
                busy.update((sender, to))
        if not found and not kept.under_way:
            kept.wanted = 0

    def _order(self, first: int, end: int, sender: int, to: int) -> None:
        self.kept.version += 1
        self.kept.under_way.append(Move(self.kept.version, first, end, sender, to))

    def _length(self, urls: int, partitions: int) -> int:
        """Return how many partitions go at once from a shard with `partitions` of them."""
        most = URLS_A_MOVE if self.copied is None else URLS_A_MOVE_COPIED
        return max(1, min(RUN_MAX, most * max(partitions, 1) // max(urls, 1)))

    def _set(self, place: MovedRun) -> None:
        self.owners[place.first : place.end] = array("H", [place.owner]) * (place.end - place.first)


def _runs(now: Sequence[int], to_be: Sequence[int], target: Sequence[int]) -> list[tuple[int, int]]:
    """Return the runs of partitions that are to go on from where they will be to another shard in `target`: first, and
    first behind it. In each, all partitions are at one shard now, and go to one before.
    """
    places = list(zip(now, to_be, target, strict=True))
    bounds = [at for at in range(1, PARTITIONS) if places[at] != places[at - 1]]
    return [(first, end) for first, end in pairwise([0, *bounds, PARTITIONS]) if to_be[first] != target[first]]
