"""Journals: append-only files whose committed length is in the store.

Phases of a journal: `open` (grows), `closed` (complete, still under its working name), `final` (renamed), then perhaps
`uploaded` (an object store holds it too) or `away` (only the object store holds it), or dropped (its content was
rewritten to other files). Each phase after the first takes effect with a commit. So after a crash the manifest gives
the name, length and place of each valid file; everything else in the journals' directories is cut or removed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec

from gossamer.state.sums import Sums, crc, crc_of
from gossamer.world.files import AppendFile, sync_directory

BUFFER_BYTES_MAX = 1 << 20
STATE = "state/"
"""Directory of the files that only the crawl itself reads."""


class Phase(enum.IntEnum):
    """Phase of a journal's life."""

    OPEN = 0
    CLOSED = 1
    FINAL = 2
    UPLOADED = 3
    AWAY = 4


class ManifestEntry(msgspec.Struct, array_like=True, frozen=True):
    """One line of the manifest. `name` is relative to the crawl's directory and is the final name."""

    name: str
    phase: int
    length: int
    digest: str = ""
    """SHA-256 in hexadecimal; empty until it is computed, some time after the file is final."""
    crc: int | None = None
    """CRC-32 of the first `length` bytes; None in crawls of versions that did not record it."""


class Journal:
    """One append-only file. Appending costs a copy; the disk is touched at 1 MiB and at the commit."""

    def __init__(self, name: str, file: AppendFile, length: int, crc_before: int | None = 0) -> None:
        self.name = name
        """Its final name, relative to the crawl's directory."""
        self.length = length
        """Bytes appended so far, buffered ones included."""
        self.crc = crc_before
        """CRC-32 of what was handed to the system; None if the beginning is not known."""
        self._file = file
        self._buffer = bytearray()
        self._written = length
        self._committed = length, crc_before

    def append(self, data: bytes) -> int:
        """Take `data` and return the offset at which it begins. Durable with the next commit.

        Raises:
            OSError: the disk is full; nothing of `data` counts then.
        """
        offset = self.length
        self._buffer += data
        self.length += len(data)
        if len(self._buffer) >= BUFFER_BYTES_MAX:
            try:
                self.flush()
            except OSError:
                # The caller learns that `data` was not taken, and can retry.
                del self._buffer[len(self._buffer) - len(data) :]
                self.length = offset
                raise
        return offset

    def rewind(self, length: int) -> None:
        """Take back what was appended beyond `length`, since the last cut: half of what belongs together."""
        assert length <= self.length, "nothing can be taken back that was not appended"
        if length >= self._written:
            del self._buffer[length - self._written :]
        else:
            self._buffer.clear()
            self._file.truncate(length)
            self._written = length
            at, self.crc = self._committed
            for piece in self._file.pieces(at, length) if self.crc is not None else ():
                self.crc = crc(piece, self.crc or 0)
        self.length = length

    def flush(self) -> None:
        """Hand what is buffered to the system. After an error the buffer still holds what is not written."""
        pending, self._buffer = self._buffer, bytearray()
        try:
            self._file.write(pending)
        except OSError:
            # A half-written tail would shift every later offset.
            self._file.truncate(self._written)
            self._buffer = pending + self._buffer
            raise
        self._written += len(pending)
        if self.crc is not None:
            self.crc = crc(pending, self.crc)

    def cut(self) -> None:
        """Hand everything to the system; `length` and `crc` are those of the file from here on."""
        self.flush()
        self._committed = self.length, self.crc

    def sync(self) -> None:
        self._file.sync()

    def close_file(self) -> None:
        self._file.close()


class Journals:
    """All journals of one shard, and the manifest that the commit stores.

    On the loop: `create`, `append`, `close`, `drop`, `cut` (which closes the epoch's view). In the commit's
    thread: `sync`. After the commit, on the loop: `settle`.
    """

    def __init__(self, directory: Path, state: Path | None = None, shard: int | None = None) -> None:
        """`directory` is the crawl's. `state` is the folder of files named `state/…`, if it is elsewhere. `shard` is
        set if several shards write to the same directory: file names have its number.
        """
        self.directory = directory
        self.shard = shard
        self._state = state if state is not None else directory / STATE
        self.stray = "*" if shard is None else f"*-{shard:03d}-[0-9]*"
        """Pattern of file names that only these journals use."""
        self._open: dict[str, Journal] = {}
        self._manifest: dict[str, ManifestEntry] = {}
        self._dropped: list[str] = []
        self._adopted: set[str] = set()
        self._leaving: set[str] = set()
        self._cut_journals: list[Journal] = []
        self._changed_directories: set[Path] = set()
        self._used: set[Path] = set()
        """Directories in which this process made files."""

    def path(self, name: str) -> Path:
        """Return the path of a file, by its name in the manifest."""
        return self._state / name.removeprefix(STATE) if name.startswith(STATE) else self.directory / name

    def recover(self, manifest: Iterable[ManifestEntry], owned: Iterable[str] = ()) -> None:
        """Bring the files to the committed state: cut what is open, rename what is closed, remove the rest.

        `owned` names directories (relative) in which only files of the manifest count; stray `*.open` files
        there belong to an epoch that never was.
        """
        self._manifest = {entry.name: entry for entry in manifest}
        for entry in list(self._manifest.values()):
            if entry.phase == Phase.OPEN:
                file = AppendFile(self._working(entry.name), entry.length)
                self._open[entry.name] = Journal(entry.name, file, entry.length, entry.crc)
            elif entry.phase == Phase.CLOSED:
                self._finalize(entry)
            elif entry.phase == Phase.AWAY:
                self.path(entry.name).unlink(missing_ok=True)
        for directory in owned:
            for stray in self.path(directory).glob(self.stray + ".open"):
                if f"{directory}/{stray.name.removesuffix('.open')}" not in self._open:
                    stray.unlink()

    def create(self, name: str) -> Journal:
        """Begin a new journal; while it grows its file is called `name` + `.open`."""
        assert name not in self._manifest, f"journal {name} exists"
        path = self._working(name)
        if path.parent not in self._used:
            # It is made now, or was by a process that was killed before the directory's name was synced.
            self._used.add(path.parent)
            self._changed_directories.add(path.parent.parent)
        journal = Journal(name, AppendFile(path), 0)
        self._open[name] = journal
        self._manifest[name] = ManifestEntry(name, Phase.OPEN, 0, crc=0)
        self._changed_directories.add(path.parent)
        return journal

    def opened(self, prefix: str) -> list[Journal]:
        """Return the open journals whose name begins with `prefix`, oldest name first; not those closed already."""
        return [
            self._open[name]
            for name in sorted(self._open)
            if name.startswith(prefix) and self._manifest[name].phase == Phase.OPEN
        ]

    def finals(self, prefix: str) -> list[ManifestEntry]:
        """Return the finished files whose name begins with `prefix`: only these may be read, copied or replaced."""
        return [
            entry
            for name, entry in sorted(self._manifest.items())
            if name.startswith(prefix) and entry.phase >= Phase.FINAL
        ]

    def to_upload(self) -> list[ManifestEntry]:
        """Return the finished files that are to be copied elsewhere and were not yet, oldest name first.

        Never those of `state/`, nor one whose place in the manifest is not committed: it may come to be another.
        """
        return [
            entry
            for name, entry in sorted(self._manifest.items())
            if entry.phase == Phase.FINAL and name not in self._adopted and not name.startswith(STATE)
        ]

    def uploads(self) -> list[ManifestEntry]:
        """Return the files that an object store holds, with their digests."""
        return [entry for _, entry in sorted(self._manifest.items()) if entry.phase >= Phase.UPLOADED]

    def uploaded(self, name: str, digest: str, *, keep: bool) -> None:
        """Note that an object store holds a finished file, verified. Without `keep`, the local file is removed after
        the commit. A file that was dropped meanwhile is ignored.
        """
        entry = self._manifest.get(name)
        if entry is None:
            return
        assert entry.phase == Phase.FINAL, f"{name} is not finished, or was uploaded before"
        phase = Phase.UPLOADED if keep else Phase.AWAY
        self._manifest[name] = ManifestEntry(name, phase, entry.length, digest, entry.crc)
        if not keep:
            self._leaving.add(name)

    def files(self) -> list[str]:
        """Return every local file of the manifest, under its present name. An upload, or the owner, may have moved
        finished files away.
        """
        return [
            name + ".open" if name in self._open else name
            for name, entry in sorted(self._manifest.items())
            if entry.phase < Phase.FINAL or self.path(name).exists()
        ]

    def close(self, journal: Journal) -> None:
        """Say that nothing more will be appended. The commit makes it `closed`, settling renames it."""
        self._manifest[journal.name] = ManifestEntry(journal.name, Phase.CLOSED, journal.length, crc=journal.crc)

    def drop(self, name: str) -> None:
        """Say that a final file is no longer needed; it is removed once that is committed."""
        del self._manifest[name]
        self._adopted.discard(name)
        self._dropped.append(name)

    def adopt(self, name: str, sums: Sums) -> None:
        """Enter a finished file that was made aside (a view, such as a Parquet file) into the manifest."""
        self._manifest[name] = ManifestEntry(name, Phase.FINAL, sums.length, sums.sha256, sums.crc)
        self._adopted.add(name)

    def unsealed(self, passing: AbstractSet[str] = frozenset()) -> ManifestEntry | None:
        """Return the oldest finished file whose SHA-256 is not known; never one of `state/`, which does not stay, nor
        one of `passing`.
        """
        for name, entry in sorted(self._manifest.items()):
            is_open = entry.phase == Phase.FINAL and not entry.digest
            if is_open and not name.startswith(STATE) and name not in passing:
                return entry
        return None

    def sealed(self, name: str, digest: str) -> None:
        """Enter the SHA-256 of a finished file; of one that was dropped or uploaded meanwhile it is not needed."""
        entry = self._manifest.get(name)
        if entry is not None and not entry.digest:
            self._manifest[name] = msgspec.structs.replace(entry, digest=digest)

    def cut(self) -> list[ManifestEntry]:
        """Flush every open journal and return the manifest that the closing epoch commits."""
        for name, journal in self._open.items():
            journal.cut()
            self._manifest[name] = ManifestEntry(name, self._manifest[name].phase, journal.length, crc=journal.crc)
        self._cut_journals = list(self._open.values())
        return list(self._manifest.values())

    def sync(self) -> None:
        """Make what `cut` saw durable. Blocks; for the commit's thread."""
        for journal in self._cut_journals:
            journal.sync()
        self._sync_directories()

    def settle(self, committed: Iterable[ManifestEntry]) -> None:
        """Do what the commit allows: rename the closed, remove the dropped and what is kept elsewhere."""
        for entry in committed:
            if entry.phase == Phase.CLOSED and self._manifest.get(entry.name) == entry:
                self._open.pop(entry.name).close_file()
                self._finalize(entry)
            elif entry.phase == Phase.AWAY and entry.name in self._leaving:
                self.path(entry.name).unlink(missing_ok=True)
                self._leaving.discard(entry.name)
        names = {entry.name for entry in committed}
        self._adopted -= names
        kept = []
        for name in self._dropped:
            if name in names:
                kept.append(name)  # Dropped after this epoch was cut.
            else:
                self.path(name).unlink(missing_ok=True)
        self._dropped = kept

    def close_files(self) -> None:
        """Close all files without a flush. Blocks: the names of the last finished files become durable."""
        for journal in self._open.values():
            journal.close_file()
        self._open.clear()
        self._sync_directories()

    def _sync_directories(self) -> None:
        directories, self._changed_directories = self._changed_directories, set()
        for directory in directories:
            sync_directory(directory)

    def _finalize(self, entry: ManifestEntry) -> None:
        working, final = self._working(entry.name), self.path(entry.name)
        if working.exists():
            file = AppendFile(working, entry.length)  # Cut what a lost epoch may have added.
            file.close()
            working.replace(final)
        # On the loop: the next commit's thread waits for the disk, before it commits that the file is final. A process
        # that was killed may have renamed it, and not have come so far. After a restore it may be in the store alone.
        if final.exists():
            self._changed_directories.add(final.parent)
        self._manifest[entry.name] = msgspec.structs.replace(entry, phase=Phase.FINAL)

    def _working(self, name: str) -> Path:
        return self.path(name + ".open")


def lacking(entries: Iterable[ManifestEntry], path: Callable[[str], Path]) -> Iterator[tuple[ManifestEntry, Path, str]]:
    """Yield the files of a committed manifest that are missing or have another size than was committed, with what is
    wrong with each; not those that only an object store has. `path` says where a file is.

    About 2 µs a file; no file is opened. Only for a crawl that does not run.
    """
    for entry in entries:
        place = path(entry.name)
        working = place.with_name(place.name + ".open")
        found = working if entry.phase == Phase.OPEN or (entry.phase == Phase.CLOSED and not place.exists()) else place
        try:
            size = found.stat().st_size
        except FileNotFoundError:
            if entry.phase < Phase.AWAY:
                yield entry, found, "is missing"
            continue
        if size < entry.length or (size > entry.length and entry.phase > Phase.CLOSED):
            yield entry, found, f"has {size:,} bytes, {entry.length:,} were written"


DIFFERS = "does not hold what was written into it (its CRC-32 differs)"


def differs(entry: ManifestEntry, path: Path) -> bool:
    """Say whether a file of the manifest holds other bytes than were committed. Blocks: reads all of it. A crawl of a
    version that recorded no checksum is taken as it is.

    Raises:
        OSError: the file is missing, too short, or cannot be read.
    """
    return entry.crc is not None and crc_of(path, entry.length) != entry.crc
