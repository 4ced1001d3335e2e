"""Mapping: which shard has which partition of a crawl, from what its directory says."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gossamer.cluster.moves import MovesRecord, map_now
from gossamer.cluster.partitions import RECORD_FILE, PartitionMap
from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError


@decodable
class MovesKept(msgspec.Struct):
    """The part of `CoordinatorRecord` that is about moves: a plain crawl does not load the rest."""

    moves: MovesRecord = msgspec.field(default_factory=MovesRecord)


def map_in(directory: Path) -> PartitionMap | None:
    """Return the map of a crawl's directory, with what was moved since the crawl was last started; None if it has one
    shard and never had more.
    """
    found = PartitionMap.load(directory)
    return found if found is None else map_now(found, moves_in(directory))


def moves_in(directory: Path) -> MovesRecord:
    """Return what the coordinator of a crawl keeps, or kept, of moves.

    Raises:
        ConfigError: the record cannot be read.
    """
    path = directory / RECORD_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=MovesKept).moves if path.exists() else MovesRecord()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no record of a coordinator ({error}); restore it from a copy") from error
