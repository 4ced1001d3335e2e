"""Partitions: which shard has which of the 4096 partitions. The partition of a site, or of a split site's host, is
fixed; scaling moves partitions.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from gossamer.model.errors import ConfigError
from gossamer.state.sums import crc
from gossamer.url.site import PARTITIONS
from gossamer.world.files import write_whole

FILE: Final = "state/partitions.json"
RECORD_FILE: Final = "state/coordinator.json"
"""File of the coordinator's state, including moves since the map was written."""
SHARDS_MAX: Final = 1024
"""With fewer than four partitions each, some shards would have twice the work of others."""


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the map's file."""

    version: int
    shards: int
    runs: list[tuple[int, int]]
    """First partition and owner of each run of partitions with one owner."""
    crc: int = 0
    """CRC-32 of the rest."""

    def checksum(self) -> int:
        """Return the checksum of the rest."""
        return crc(repr((self.version, self.shards, [tuple(run) for run in self.runs])).encode())


class PartitionMap:
    """The owner of each partition. An immutable value: a move makes a new map, with the next version."""

    def __init__(self, version: int, shards: int, owners: Sequence[int]) -> None:
        assert len(owners) == PARTITIONS, f"{len(owners)} partitions have owners"
        assert 0 <= min(owners) <= max(owners) < shards, "an owner is no shard"
        self.version = version
        self.shards = shards
        self.owners = array("H", owners)
        """Owner of each partition."""

    @classmethod
    def even(cls, shards: int) -> Self:
        """Return the first map of a crawl: runs of equal length. Raises ConfigError: their number is not possible."""
        if not 1 <= shards <= SHARDS_MAX:
            raise ConfigError(f"a crawl has 1 to {SHARDS_MAX} shards, not {shards}")
        return cls(1, shards, [partition * shards // PARTITIONS for partition in range(PARTITIONS)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionMap) and (self.version, self.shards, self.owners) == (
            other.version,
            other.shards,
            other.owners,
        )

    __hash__ = None  # type: ignore[assignment]

    def owner(self, partition: int) -> int:
        """Return the shard that has a partition."""
        return self.owners[partition]

    def share_out(self, partitions: Collection[int]) -> PartitionMap:
        """Return a map that divides these partitions evenly among the shards; all others keep their owners."""
        owners = array("H", self.owners)
        for place, partition in enumerate(sorted(partitions)):
            owners[partition] = place * self.shards // len(partitions)
        return PartitionMap(self.version, self.shards, owners)

    def runs(self) -> list[tuple[int, int, int]]:
        """Return first partition, first partition after it, and owner, of each run of partitions with one owner."""
        found: list[tuple[int, int, int]] = []
        for partition, owner in enumerate(self.owners):
            if found and found[-1][2] == owner:
                found[-1] = (found[-1][0], partition + 1, owner)
            else:
                found.append((partition, partition + 1, owner))
        return found

    def scale_to(self, shards: int) -> PartitionMap:
        """Return the map for another number of shards, with the fewest moves: of the partitions of removed shards, and
        of those that other shards have above an even share. A shard gives away its last partitions first. Raises
        ConfigError: the number of shards is not possible.
        """
        if not 1 <= shards <= SHARDS_MAX:
            raise ConfigError(f"a crawl has 1 to {SHARDS_MAX} shards, not {shards}")
        held: dict[int, list[int]] = {shard: [] for shard in range(max(shards, self.shards))}
        for partition, owner in enumerate(self.owners):
            held[owner].append(partition)
        least, more = divmod(PARTITIONS, shards)
        # The shards with most partitions get the larger shares, which needs the fewest moves.
        largest = sorted(range(shards), key=lambda shard: (-len(held[shard]), shard))
        share = {shard: least + (place < more) for place, shard in enumerate(largest)}
        moving = [partition for shard, own in held.items() for partition in own[share.get(shard, 0) :]]
        owners = array("H", self.owners)
        moving.sort()
        for shard in range(shards):
            missing = share[shard] - len(held[shard])
            if missing > 0:
                for partition in moving[:missing]:
                    owners[partition] = shard
                del moving[:missing]
        assert not moving, "a partition has no place"
        return PartitionMap(self.version + 1, shards, owners)

    def evenness(self, weights: Sequence[float] = ()) -> tuple[float, float]:
        """Return the maximum and the mean per shard, of partitions or of their `weights` (hosts, URLs)."""
        sums = [0.0] * self.shards
        for partition, owner in enumerate(self.owners):
            sums[owner] += weights[partition] if weights else 1.0
        return max(sums), sum(sums) / self.shards

    def encode(self) -> bytes:
        """Return the content of the map's file."""
        written = Written(self.version, self.shards, [(first, owner) for first, _, owner in self.runs()])
        return msgspec.json.encode(msgspec.structs.replace(written, crc=written.checksum())) + b"\n"

    @classmethod
    def decode(cls, encoded: bytes, name: object) -> Self:
        """Return the map that `encode` wrote. Raises ConfigError: it is not a partition map; the message has `name`."""
        try:
            written = msgspec.json.decode(encoded, type=Written)
            if written.crc != written.checksum():
                raise ValueError("its checksum differs")
            owners = array("H", bytes(2 * PARTITIONS))
            ends = [first for first, _ in written.runs[1:]] + [PARTITIONS]
            for (first, owner), end in zip(written.runs, ends, strict=True):
                for partition in range(first, end):
                    owners[partition] = owner
            return cls(written.version, written.shards, owners)
        except (msgspec.MsgspecError, AssertionError, IndexError, OverflowError, ValueError) as error:
            raise ConfigError(f"{name} is no partition map ({error}); restore it from a backup") from error

    def save(self, directory: Path) -> None:
        """Write the map into a crawl's directory; the file always has either the old map or the new one."""
        path = directory / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, self.encode())

    @classmethod
    def load(cls, directory: Path) -> Self | None:
        """Return the map of a crawl's directory; None if the crawl has one shard and never had more. Raises
        ConfigError: the file is not a partition map.
        """
        path = directory / FILE
        return cls.decode(path.read_bytes(), path) if path.exists() else None
