"""Places: which shard has each partition, as one shard knows it, and the moves of partitions between running shards.

A move transfers a run of partitions from one shard to another while both crawl. It has a version, which grows with each
move of a partition. The giver first sends copies of the keys, in parts, while it crawls on. The last part gives the
partitions away: one commit deletes the keys, and puts the changes since the earlier parts into the outbox. The receiver
puts the keys into its store in the same commit as the position of the parts; they are valid with the last part. Parts
arrive in order, and may be repeated after the giver was restarted, or restored from a checkpoint: the version shows
which were taken.
"""

from array import array
from collections.abc import Iterator, Sequence

import msgspec

from gossamer.cluster.frames import MovePart
from gossamer.cluster.partitions import PartitionMap
from gossamer.model.decodable import decodable
from gossamer.state.epoch import Epochs
from gossamer.state.schema import PLACES
from gossamer.url.site import PARTITIONS


class Move(msgspec.Struct, array_like=True, frozen=True):
    """A run of partitions that goes from one shard to another."""

    version: int
    first: int
    end: int
    """First partition after the run."""
    sender: int
    to: int


class MovedRun(msgspec.Struct, array_like=True, frozen=True):
    """The owner of a run of partitions since a version."""

    version: int
    first: int
    end: int
    owner: int


@decodable
class PlacesRecord(msgspec.Struct, array_like=True):
    """The stored state."""

    moved: list[MovedRun] = msgspec.field(default_factory=list)
    """Runs that this shard gave or took, by the last move of each partition."""
    given_at: dict[int, int] = msgspec.field(default_factory=dict)
    """By receiver: the last epoch that gave it partitions."""
    taking: list[MovedRun] = msgspec.field(default_factory=list)
    """Moves of which parts have arrived, but not the last one."""
    welcomed: int = 0
    """Shards with lower numbers than this have got the state from before their start."""


class Places:
    """The map as one shard knows it. Own moves are durable with its commits; the rest comes from the coordinator."""

    def __init__(self, shard: int, partitions: PartitionMap, epochs: Epochs, *, needs_cover: bool, fresh: bool) -> None:
        """`needs_cover`: only a checkpoint is safe, not a commit. `fresh`: the store was just restored from a
        checkpoint, so everything in it is safe.
        """
        self.shard = shard
        self.owners = array("H", partitions.owners)
        """Owner of each partition."""
        self._versions = array("Q", bytes(8 * PARTITIONS))
        self._epochs = epochs
        self._needs_cover = needs_cover
        stored = epochs.get("meta", PLACES)
        self._changed = stored is None
        kept = PlacesRecord(welcomed=partitions.shards)
        self._kept = kept = kept if stored is None else msgspec.msgpack.decode(stored, type=PlacesRecord)
        self.shards = max(partitions.shards, shard + 1, kept.welcomed)
        """Known number of shards."""
        for place in self._kept.moved:
            self._set(place)
        self.serial = 0
        """Serial number up to which the coordinator's map is known, since this start."""
        self._safe: set[int] = set()
        """Versions of taken moves that are in the state from which this shard would be restored."""
        self._marks: list[tuple[int, set[int]]] = [(epochs.number - 1, {one.version for one in self._kept.moved})]
        self._taken: set[int] = set()
        self._cut: set[int] = set()
        self.held: dict[int, int] = {to: epoch for to, epoch in kept.given_at.items() if needs_cover and not fresh}
        """By receiver: the epoch that a checkpoint must have before the receiver gets more batches, so that partitions
        that were given away never reappear in an older state of this shard."""
        if fresh or not needs_cover:
            self.on_checkpoint(epochs.number)

    def has(self, partition: int) -> bool:
        return self.owners[partition] == self.shard

    @property
    def travelling(self) -> list[tuple[int, int]]:
        """Runs of partitions, as [first, end), of which this shard has some keys but not all."""
        return [(run.first, run.end) for run in self._kept.taking]

    def is_new(self, move: Move) -> bool:
        """Return whether a move is not made yet, and not superseded by a later one."""
        return self._versions[move.first] < move.version

    def to_welcome(self, shards: int) -> range:
        """Return the numbers of new shards below `shards`, and mark them as known with the open epoch."""
        found = range(self._kept.welcomed, shards)
        if found:
            self._kept.welcomed = shards
            self._changed = True
            self.shards = max(self.shards, shards)
        return found

    # ---- giving

    def give(self, move: Move) -> None:
        """Give partitions away, with the open epoch: they belong to the receiver from now on."""
        self._note(MovedRun(move.version, move.first, move.end, move.to))
        self._kept.given_at[move.to] = self._epochs.number
        if self._needs_cover:
            self.held[move.to] = self._epochs.number

    # ---- taking

    def awaits(self, part: MovePart) -> bool:
        """Return whether a part is of a move that was not taken yet."""
        return self._versions[part.first] < part.version

    def takes(self, part: MovePart) -> None:
        """Note that a part has arrived, with the open epoch."""
        run = MovedRun(part.version, part.first, part.end, self.shard)
        if run not in self._kept.taking:
            self._kept.taking.append(run)
            self._changed = True

    def took(self, part: MovePart) -> None:
        """Note the last part of a move, with the open epoch: its partitions are ours from now on."""
        self._kept.taking = [run for run in self._kept.taking if run.version != part.version]
        self._note(MovedRun(part.version, part.first, part.end, self.shard))
        self._taken.add(part.version)

    def safe_versions(self, moves: Sequence[Move]) -> list[int]:
        """Return the versions of those moves to this shard that no restart can undo."""
        return [move.version for move in moves if move.to == self.shard and move.version in self._safe]

    @property
    def waits_for_checkpoint(self) -> bool:
        """Whether given or taken partitions wait for a checkpoint."""
        return bool(self.held) or any(versions for _, versions in self._marks)

    # ---- what others do

    def learn(self, places: Sequence[MovedRun], known: int, serial: int) -> bool:
        """Learn the owners of partitions from the coordinator: its moves from number `known` up to `serial`. Return
        whether anything is new. Moves meant for the previous process, which knew more, are sent again.
        """
        if known > self.serial or serial <= self.serial:
            return False
        for place in places:
            for partition in range(place.first, place.end):
                if self._versions[partition] < place.version:
                    assert self.owners[partition] != self.shard, f"{place} moved from here, and this state is older"
                    self._set(MovedRun(place.version, partition, partition + 1, place.owner))
        self.serial = serial
        return True

    # ---- the epoch

    def cut(self) -> None:
        """Write changes of the record to the open epoch."""
        self._cut = self._taken
        self._taken = set()
        if self._changed:
            self._epochs.put("meta", PLACES, msgspec.msgpack.encode(self._kept))
            self._changed = False

    def on_commit(self, epoch: int) -> None:
        """Note that all changes up to the last `cut` are durable."""
        if self._cut:
            self._marks.append((epoch, self._cut))
            self._cut = set()
        if not self._needs_cover:
            self.on_checkpoint(epoch)

    def on_checkpoint(self, epoch: int) -> None:
        """Note that this shard would be restored with an epoch and all earlier ones."""
        while self._marks and self._marks[0][0] <= epoch:
            self._safe |= self._marks.pop(0)[1]
        self.held = {to: since for to, since in self.held.items() if since > epoch}

    def _note(self, place: MovedRun) -> None:
        self._kept.moved = [*without(self._kept.moved, place.first, place.end), place]
        self._set(place)
        self._changed = True

    def _set(self, place: MovedRun) -> None:
        for partition in range(place.first, place.end):
            self.owners[partition] = place.owner
            self._versions[partition] = place.version
        self.shards = max(self.shards, place.owner + 1)


def without(places: Sequence[MovedRun], first: int, end: int) -> Iterator[MovedRun]:
    """Yield the parts of runs that are outside [`first`, `end`)."""
    for place in places:
        for begin, stop in ((place.first, min(place.end, first)), (max(place.first, end), place.end)):
            if begin < stop:
                yield MovedRun(place.version, begin, stop, place.owner)
