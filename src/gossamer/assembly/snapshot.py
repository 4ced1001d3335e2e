"""Snapshot: a shard's last commit as immutable files, made of hard links, to be copied elsewhere."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.assembly.integrity import manifest_of
from gossamer.engine.commit import Storage
from gossamer.stages.archive.checkpoints import STORE, SnapshotFile
from gossamer.state.journals import ManifestEntry, Phase, is_uploaded


class Snapshot(msgspec.Struct, frozen=True):
    """The content of a commit, and its files."""

    epoch: int
    taken: list[SnapshotFile]
    kept: list[str]
    """Finished files that were left out because the newest checkpoint has them."""
    uploaded: list[ManifestEntry]
    """Finished files that were left out because the object store of finished files has them."""


def snapshot(storage: Storage, folder: Path, is_safe: Callable[[str], bool]) -> Snapshot:
    """Make hard links in `folder` to all files of the last commit, except finished ones that are safe elsewhere.
    Blocks; for the commit's thread, between two commits (`Committer.hold`). About 30 ms, plus a copy of open files.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    storage.store.checkpoint(folder / "store")
    taken = [SnapshotFile(STORE + path.name, path) for path in sorted((folder / "store").iterdir()) if path.is_file()]
    kept = []
    uploaded = []
    for number, entry in enumerate(manifest_of(storage.store)):
        if is_uploaded(entry):
            uploaded.append(entry)
            continue
        path = storage.journals.path(entry.name)
        link = folder / f"{number:08d}"
        if entry.phase == Phase.SAVED or (entry.phase != Phase.OPEN and is_safe(entry.name)):
            kept.append(entry.name)
        elif entry.phase == Phase.OPEN or not path.exists():
            working = path.with_name(path.name + ".open")
            with working.open("rb") as source, link.open("wb") as copy:
                _copy(source.fileno(), copy.fileno(), entry.length)
            taken.append(SnapshotFile(entry.name, link, grows=True))
        else:
            link.hardlink_to(path)
            taken.append(SnapshotFile(entry.name, link))
    return Snapshot(storage.store.epoch, taken, kept, uploaded)


def _copy(source: int, target: int, length: int) -> None:
    while length and (sent := os.sendfile(target, source, None, length)):
        length -= sent
    assert not length, "a journal is shorter than what was committed"
