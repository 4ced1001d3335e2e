"""Moves: which partitions go to which shard, and when. The coordinator's part: no I/O, no clock.

The record is saved before an instruction that depends on it is sent. An instruction is repeated until the receiver has
the partitions so safely that no restart can lose them; only then does the map assign them to the receiver. So a
restarted coordinator continues each move, and a restored shard finds the current owners of its partitions in the map.
If shards make checkpoints, the record is copied beside them before the instruction is sent. A crawl that is restored
from there, with a record older than its shards' state, repeats instructions that were already carried out.
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
from gossamer.url.site import PARTITIONS

MOVES_A_SHARD_MAX: Final = 2
"""Concurrent moves from or to one shard."""
RUN_MAX: Final = 256
"""Largest number of partitions in a move."""
URLS_A_MOVE: Final = 4_000
"""Approximate number of seen URLs in a move: large enough for few moves, small enough that none takes a second."""
URLS_A_MOVE_COPIED: Final = 1_000_000
"""The same if each move needs a checkpoint of both shards."""


class Copied(NamedTuple):
    """State of the record that is copied beside the checkpoints."""

    version: int
    """Version of the last move."""
    shards: int


class MovesRecord(msgspec.Struct):
    """The stored state of moves."""

    shards: int = 0
    """Number of shards; 0: as at the start of the crawl."""
    wanted: int = 0
    """Number of shards that should have all partitions, in equal parts; 0: no change."""
    version: int = 0
    """Version of the last move that was begun."""
    under_way: list[Move] = msgspec.field(default_factory=list)
    serial: int = 0
    """Serial number of the last completed move."""
    places: list[tuple[int, MovedRun]] = msgspec.field(default_factory=list)
    """Moved runs, each partition once, with the serial number of its last completed move."""
    balanced: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Runs, as [first, end), that moved automatically: none does again before the number of shards changes."""

    @property
    def is_moving(self) -> bool:
        """Partitions are on their way, or will be."""
        return bool(self.under_way or self.wanted)

    @property
    def is_balancing(self) -> bool:
        """Whether partitions are moving although the number of shards stays."""
        return bool(self.under_way) and not self.wanted


def map_now(partitions: PartitionMap, kept: MovesRecord) -> PartitionMap:
    """Return the current map, from the one at the start and the moves since then."""
    moves = Moves(kept, partitions)
    return PartitionMap(partitions.version, moves.kept.shards, moves.owners)


class Moves:
    """The map of a running crawl, and its pending changes."""

    def __init__(self, kept: MovesRecord, partitions: PartitionMap) -> None:
        """`partitions` is the map that the crawl was started with."""
        self.kept = kept
        kept.shards = max(kept.shards, partitions.shards)
        self.owners = array("H", partitions.owners)
        """Owner of each partition, without moves in progress."""
        self.copied: Copied | None = None
        """The copy of the record beside the shards' checkpoints; only moves in it are started. None: no checkpoints."""
        for _, place in kept.places:
            self._set(place)

    @property
    def is_copied(self) -> bool:
        """Whether all recorded moves may be started."""
        return self.copied in (None, (self.kept.version, self.kept.shards))

    @property
    def is_moving(self) -> bool:
        """Partitions are on their way, or will be."""
        return self.kept.is_moving

    def scale(self, shards: int) -> None:
        """Divide all partitions among `shards` shards. Raises ConfigError if that is not possible."""
        PartitionMap(1, self.kept.shards, self.owners).scale_to(shards)
        self.kept.shards = max(self.kept.shards, shards)
        self.kept.wanted = shards
        self.kept.balanced = []

    def orders(self, shard: int, orders: Orders, known: int) -> Orders:
        """Return a shard's instructions, with those about moves; `known`: the serial up to which it knows the map."""
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
        """Note completed moves; if `begins`, begin the next ones."""
        settled = {(report.shard, version) for report in reports for version in report.settled}
        for move in [move for move in self.kept.under_way if (move.to, move.version) in settled]:
            self._complete(move)
        if begins and self.kept.wanted:
            self._begin({report.shard: report for report in reports})

    def even(self, found: Uneven) -> int:
        """Begin moves from a busy shard to one with room, if none is in progress; return how many partitions move."""
        kept = self.kept
        giver = found.giver
        assert not kept.is_moving
        stay = {partition for first, end in kept.balanced for partition in range(first, end)}
        length = self._length(giver.urls, Counter(self.owners)[giver.shard])
        runs = runs_to_give(
            found.weights, found.most, length, lambda one: self.owners[one] == giver.shard and one not in stay
        )
        for first, end in runs:
            self._order(first, end, giver.shard, found.to)
        kept.balanced += runs
        return sum(end - first for first, end in runs)

    def _complete(self, move: Move) -> None:
        kept = self.kept
        kept.under_way.remove(move)
        kept.serial += 1
        left = [(serial, rest) for serial, place in kept.places for rest in without([place], move.first, move.end)]
        place = MovedRun(move.version, move.first, move.end, move.to)
        kept.places = [*left, (kept.serial, place)]
        self._set(place)

    def _begin(self, reports: dict[int, ShardReport]) -> None:
        kept = self.kept
        to_be = array("H", self.owners)
        for move in kept.under_way:
            to_be[move.first : move.end] = array("H", [move.to]) * (move.end - move.first)
        target = PartitionMap(1, kept.shards, to_be).scale_to(kept.wanted)
        busy = Counter(shard for move in kept.under_way for shard in (move.sender, move.to))
        held = Counter(self.owners)
        found = False
        for first, end in _runs(self.owners, to_be, target.owners):
            sender = to_be[first]
            to = target.owners[first]
            found = True
            # Partitions that are moving to a shard are not passed on before they arrive.
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
    """Return the runs of partitions, as [first, end), that must move on to another shard in `target` after the current
    moves. In each run all partitions have the same owner now, and the same owner after these moves.
    """
    places = list(zip(now, to_be, target, strict=True))
    bounds = [at for at in range(1, PARTITIONS) if places[at] != places[at - 1]]
    return [(first, end) for first, end in pairwise([0, *bounds, PARTITIONS]) if to_be[first] != target[first]]
