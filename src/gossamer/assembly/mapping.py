"""Mapping: the partition map of a crawl, from the files in its directory, and the state of a shard that is added."""

from contextlib import ExitStack
from pathlib import Path

import msgspec

from gossamer.assembly.home import Home, last_incarnation, lock_directory
from gossamer.assembly.integrity import open_store
from gossamer.cluster.frames import encode
from gossamer.cluster.moves import MovesRecord, map_now
from gossamer.cluster.partitions import RECORD_FILE, PartitionMap
from gossamer.config import Config
from gossamer.engine.counters import Totals
from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError
from gossamer.state.contacts import Contacts
from gossamer.state.schema import SEEN_FORM, TOTALS
from gossamer.world.files import write_whole
from gossamer.world.process import boot_id


@decodable
class MovesKept(msgspec.Struct):
    """The part of `CoordinatorRecord` that commands write while no coordinator runs; plain crawls load no more."""

    moves: MovesRecord = msgspec.field(default_factory=MovesRecord)
    paused: bool = False
    closed: bool = False


def bring_map(directory: Path, partitions: bytes, moves: bytes) -> PartitionMap:
    """Write copies of the partition map and of the record of moves into a directory; return the resulting map. Shards
    may have completed moves that are in progress in the copy; these are started again, and are complete at once. Raises
    ConfigError: one of the copies cannot be read.
    """
    begun = PartitionMap.decode(partitions, "partitions.json beside the checkpoints")
    try:
        kept = msgspec.json.decode(moves, type=MovesRecord)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"moves.json beside the checkpoints cannot be read ({error}); restore it there") from error
    begun.save(directory)
    write_whole(directory / RECORD_FILE, msgspec.json.encode(MovesKept(kept, closed=True)))
    return map_now(begun, kept)


def map_in(directory: Path) -> PartitionMap | None:
    """Return the map of a crawl's directory, with what was moved since; None if it always had one shard."""
    found = PartitionMap.load(directory)
    return found if found is None else map_now(found, moves_in(directory))


def moves_in(directory: Path) -> MovesRecord:
    """Return the coordinator's record of moves of a crawl. Raises ConfigError: the record cannot be read."""
    path = directory / RECORD_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=MovesKept).moves if path.exists() else MovesRecord()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no record of a coordinator ({error}); restore it from a copy") from error


def begin_shard(config: Config, directory: Path, number: int) -> None:
    """Create the state of a new shard, so that its files get other names than those of an earlier shard with its
    number, and so that these files do not look as if its state were lost. An existing state is left alone. Raises
    ConfigError: another process holds the state.
    """
    home = Home(directory, number, 2)
    with ExitStack() as undo:
        undo.callback(lock_directory(directory, wait_s=0.0, state=home.state).release)
        store = open_store(config, home)
        undo.callback(store.close)
        if store.get("meta", TOTALS) is None:
            totals = Totals(incarnation=last_incarnation(directory, number))
            # It sent no request, and the contacts of an earlier one of its number went to other shards. Without a
            # journal each host that arrives waits a minute.
            Contacts(home.state, boot_id(), 0.0).close()
            store.put("meta", {TOTALS: encode(totals), SEEN_FORM: config.seen.backend.encode()})
