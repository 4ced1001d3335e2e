"""Integrity: the checks at each opening of a crawl: its store can be read and has not lost commits, and all files of
its last commit exist with the right length.
"""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from gossamer.assembly.home import Home, homes, store_sizes
from gossamer.cluster.partitions import FILE as PARTITIONS
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import Config
from gossamer.model.errors import ConfigError, Damage, DamagedError, DamageKind, require_none
from gossamer.model.paths import is_of_crawl
from gossamer.model.words import shell_word
from gossamer.stages.archive.seals import INDEX, faults_of_index
from gossamer.stages.archive.segments import table_of
from gossamer.state.epoch import load
from gossamer.state.journals import DIFFERS, STATE, ManifestEntry, Phase, differs, lacking
from gossamer.state.redo import DamagedStoreError
from gossamer.state.schema import MANIFEST
from gossamer.state.slots import progress
from gossamer.state.store import Store
from gossamer.world.clock import pause
from gossamer.world.files import GoneError

SHOWN_CHARACTERS = 200
TRIES = 100
TRY_S = 0.05
"""Attempts to read the store of a running crawl, and the time between two attempts."""
FORGETTING = "state/forget.json"
"""The plan of a removal of pages; the file is deleted when the removal is complete."""
WARCS = "warc/"
TABLE_LOGS = "state/tables/"
SEARCH_LOGS = "state/search/"
SEEN = "state/seen/"


class _Planned(msgspec.Struct):
    pattern: str


def half_forgotten(directory: Path) -> str:
    """Return a line about an interrupted removal of pages, with the command that finishes it; empty without one."""
    try:
        planned = msgspec.json.decode((directory / FORGETTING).read_bytes(), type=_Planned)
    except FileNotFoundError:
        return ""
    except msgspec.MsgspecError as error:
        return f"{directory / FORGETTING} cannot be read ({error}): repeat the `gossamer forget` that was interrupted"
    return (
        f"{directory}: the removal of {planned.pattern} was interrupted; "
        f"`gossamer forget {shell_word(directory)} '{planned.pattern}'` finishes it"
    )


def refuse_half_forgotten(directory: Path) -> None:
    """Raise ConfigError if a removal of pages was interrupted."""
    if says := half_forgotten(directory):
        raise ConfigError(says)


def require_division(home: Home) -> PartitionMap | None:
    """Return the partition map of a crawl, if it has one. Raises ConfigError: it has another number of shards."""
    partitions = PartitionMap.load(home.directory)
    divided = home.shards
    if partitions is not None:
        divided = partitions.shards
    elif Home(home.directory).is_there:
        divided = 1
    if divided != home.shards:
        raise ConfigError(
            f"{home.directory} is divided among {divided} shards, not {home.shards}; "
            f"`gossamer scale {shell_word(home.directory)} --workers {home.shards}` moves what must move"
        )
    return partitions


def open_store(config: Config, home: Home, *, writable: bool = True) -> Store:
    """Open a shard's store. Raises DamagedError: the store cannot be read, or has lost commits; ConfigError: it has
    files that this user may not read; OSError: another process holds the store, or the disk fails.
    """
    try:
        store = Store(home.store, *store_sizes(config), writable=writable)
    except DamagedStoreError as error:
        raise store_damage(home, error) from error
    except OSError as error:
        if os.strerror(errno.EACCES) not in str(error):
            raise
        back = f"chown -R {os.geteuid()} {shell_word(home.directory)}"
        raise ConfigError(f"{home.store} has files of another user; to give them back: {back}") from error
    if lacking := missing_commits(home, store):
        store.close()
        raise DamagedError(f"{home.store} is damaged: it {lacking}; {restoring(home.directory)}")
    return store


def running_store(config: Config, home: Home, *, strict: bool = False) -> Store:
    """Open the store of a running crawl for reading, at its last commit. Blocks for at most 5 s: files may disappear
    while they are opened, and a commit that is being applied cannot be read. Raises OSError: it could not be read
    within that time.
    """
    for left in reversed(range(TRIES)):
        try:
            return Store(home.store, *store_sizes(config), writable=False, strict=strict)
        except OSError:
            if not left:
                raise
        pause(TRY_S)
    raise AssertionError("the last try returns or raises")


def missing_commits(home: Home, store: Store) -> str:
    """Return what is wrong with a store that has lost commits, as the rest of a sentence; empty if it has not. A
    write-ahead log that was cut or damaged ends without an error, so the number of the last durable commit is also
    noted in the slots.
    """
    known = progress(home.state)
    return f"ends with commit {store.epoch:,} and {known:,} were made" if store.epoch < known else ""


def store_damage(home: Home, error: DamagedStoreError | GoneError) -> DamagedError:
    """Return the error for a store that cannot be read, or for it or another file that is gone."""
    if isinstance(error, GoneError):
        return DamagedError(str(error))
    return DamagedError(f"{home.store} is damaged ({fault_of(home, error)}); {restoring(home.directory)}")


def fault_of(home: Home, error: DamagedStoreError) -> str:
    """Return the fault of a shard's store, without its name."""
    return str(error.strerror).removeprefix(f"cannot open the store {home.store}: ")


def restoring(directory: Path) -> str:
    """Return the remedy for a damaged store."""
    return (
        "restore a checkpoint (docs/how-to/checkpoints.md) or start another crawl with -o; report, search and export "
        f"work from the other files of {directory} once {directory}/state is moved away"
    )


def losses(config: Config, home: Home, manifest: Iterable[ManifestEntry]) -> list[Damage]:
    """Return the damage of files in a shard's last commit that are missing or have another length. About 2 µs a file.

    WARC files that an object store has may be missing. Finished files are not checked if shards have checkpoints
    elsewhere, which have these files.
    """
    journals = home.journals()
    elsewhere = bool(config.state.checkpoint_uri) and home.shards > 1
    found = []
    for entry, path, what in lacking(manifest, journals.path):
        is_uploaded = entry.phase == Phase.UPLOADED
        if what == "is missing" and is_uploaded and entry.name.startswith(WARCS):
            continue
        # Nor are closed files, which have no final name yet: the restored checkpoint may have them.
        if elsewhere and entry.phase >= Phase.CLOSED and not entry.name.startswith(STATE):
            continue
        copy = f"copy it back from {config.archive.store}" if is_uploaded else ""
        found.append(damage_of(home.directory, entry.name, path, what, copy))
    return found


def changes(home: Home, manifest: Iterable[ManifestEntry]) -> list[Damage]:
    """Return the finished files that hold other bytes than were written. Blocks: about 0.1 ms a MB."""
    path = home.journals().path
    return [
        damage_of(home.directory, entry.name, path(entry.name), DIFFERS)
        for entry in manifest
        if path(entry.name).exists() and differs(entry, path(entry.name))
    ]


def damage_of(directory: Path, name: str, path: Path, what: str, copy: str = "") -> Damage:
    """Return the damage of a file with `name` in the manifest; `copy` says where an intact copy is."""
    kind, affects = _effect_of(name)
    return Damage(str(path), kind, what, affects, copy or _remedy(directory, kind))


def _effect_of(name: str) -> tuple[DamageKind, str]:
    if name.startswith(WARCS):
        return "warc", f"the archived responses of the rows of `pages` with warc_file '{Path(name).name}'"
    if name.startswith(TABLE_LOGS):
        return "journal", f"rows of `{table_of(Path(name).name)}` that are not in Parquet files yet"
    if name.startswith(SEARCH_LOGS):
        return "journal", "pages that are not in the search index yet"
    if name.startswith(SEEN):
        return "seen", "which URLs were seen: without it they are fetched again"
    table = name.rpartition("/")[0]
    return "table", f"rows of `{table}`, which report, exports and index.cdxj lack without it"


def _remedy(directory: Path, kind: DamageKind) -> str:
    sound = "put a sound copy in its place"
    if kind == "seen":
        return f"{sound}, or restore a checkpoint (docs/how-to/checkpoints.md)"
    return (
        f"{sound}, or restore a checkpoint (docs/how-to/checkpoints.md), or remove it and go on without it: "
        f"gossamer verify {shell_word(directory)} --accept-loss"
    )


def manifest_of(store: Store) -> list[ManifestEntry]:
    """Return the manifest of the last commit. Raises DamagedError: it names a file that no crawl writes."""
    manifest = load(store, MANIFEST, list[ManifestEntry])
    for entry in manifest:
        if not is_of_crawl(entry.name):
            raise DamagedError(
                f"the manifest names a file {entry.name[:SHOWN_CHARACTERS]!r}, which is outside the crawl's folders: "
                "no crawl wrote this state; restore a checkpoint that you trust, or start another crawl with -o"
            )
    return manifest


def accept_loss(config: Config, home: Home) -> list[str]:
    """Remove missing files from a shard's manifest, in a separate commit, and return their names. The crawl must not
    run. Files of `seen/` are not removed, because the crawl cannot go on without them.
    """
    with closing(open_store(config, home)) as store:
        manifest = manifest_of(store)
        gone = {
            entry.name
            for entry, _, what in lacking(manifest, home.journals().path)
            if what == "is missing" and not entry.name.startswith(SEEN)
        }
        if gone:
            _commit_manifest(store, [entry for entry in manifest if entry.name not in gone])
        return sorted(gone)


def note_elsewhere(config: Config, home: Home, elsewhere: Mapping[str, tuple[Phase, str]]) -> None:
    """Enter which finished files of a restored shard are in a store alone: by name, the phase and the SHA-256."""
    with closing(open_store(config, home)) as store:
        manifest = {entry.name: entry for entry in manifest_of(store)}
        for name, (phase, digest) in elsewhere.items():
            if name in manifest:
                manifest[name] = msgspec.structs.replace(manifest[name], phase=phase, digest=digest)
        _commit_manifest(store, list(manifest.values()))


def _commit_manifest(store: Store, entries: Sequence[ManifestEntry]) -> None:
    store.put("meta", {MANIFEST: msgspec.msgpack.encode(entries)})


def require_files(config: Config, directory: Path) -> None:
    """Check the files of all shards of a crawl that does not run; shards whose state is elsewhere are skipped. Raises
    DamagedError: a file is missing or has another length; the line names the first; ConfigError: the map of partitions
    cannot be read.
    """
    found: list[Damage] = []
    if PartitionMap.load(directory) is None and config.cluster.workers > 1 and (directory / "state/shard-0").exists():
        remedy = "put a sound copy in its place, or restore a checkpoint (docs/how-to/checkpoints.md)"
        path = str(directory / PARTITIONS)
        found.append(Damage(path, "partitions", "is missing", "which shard has which URLs", remedy))
    for home in homes(directory, config.cluster.workers):
        if home.is_there:
            with closing(open_store(config, home)) as store:
                found += losses(config, home, manifest_of(store))
    require_sound(directory, found)


def require_sound(directory: Path, found: Sequence[Damage]) -> None:
    """Raise DamagedError for the first damage."""
    require_none(found, f"gossamer verify {shell_word(directory)}")


def view_losses(directory: Path) -> list[Damage]:
    """Return the damage of views, which are recorded beside the manifest, that are missing or have another size."""
    index = directory / INDEX
    remedy = f"`gossamer resume {shell_word(directory)}` rebuilds it from `pages`"
    faults = faults_of_index(index)
    return [Damage(str(index), "index", what, "replay and look-ups by URL", remedy) for what in faults]
