"""Mapping: which shard has which partition of a crawl, from what its directory says."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gossamer.cluster.moves import MovesRecord, map_now
from gossamer.cluster.partitions import RECORD_FILE, PartitionMap


class MovesKept(msgspec.Struct):
    """The part of `CoordinatorRecord` that is about moves: a plain crawl does not load the rest."""

    moves: MovesRecord = msgspec.field(default_factory=MovesRecord)


def map_in(directory: Path) -> PartitionMap | None:
    """Return the map of a crawl's directory, with what was moved since the crawl was last started; None if it has one
    shard and never had more.
    """
    found, path = PartitionMap.load(directory), directory / RECORD_FILE
    if found is None or not path.exists():
        return found
    return map_now(found, msgspec.json.decode(path.read_bytes(), type=MovesKept).moves)


def moves_under_way(directory: Path) -> bool:
    """Say whether partitions are on their way between shards of a crawl that may have ended."""
    path = directory / RECORD_FILE
    return path.exists() and bool(msgspec.json.decode(path.read_bytes(), type=MovesKept).moves.under_way)
