"""Journals: append-only files whose committed length is in the store.

Phases of a journal: `open` (grows), `closed` (complete, still with its working name), `final` (renamed), then perhaps
`uploaded` (an object store has a copy), `away` (only the object store has it) or `saved` (only a checkpoint elsewhere
has it), or dropped (its content was rewritten to other files). Each phase after the first takes effect with a commit.
So after a crash the manifest gives the name, length and place of each valid file; everything else in the journals'
directories is cut or removed.
"""

import enum
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

import msgspec

from gossamer.state.sums import Sums, crc, crc_of
from gossamer.world.files import AppendFile, GoneError, require_there, sync_directory

BUFFER_BYTES_MAX = 1 << 20
STATE = "state/"
"""Directory of files that only the crawl itself reads."""


class Phase(enum.IntEnum):
    """Phase of a journal's life."""

    OPEN = 0
    CLOSED = 1
    FINAL = 2
    UPLOADED = 3
    AWAY = 4
    SAVED = 5


class ManifestEntry(msgspec.Struct, array_like=True, frozen=True):
    """One line of the manifest. `name` is relative to the crawl's directory and is the final name."""

    name: str
    phase: int
    length: int
    digest: str = ""
    """SHA-256 in hexadecimal; empty until it is computed, some time after the file is final."""
    crc: int = 0
    """CRC-32 of the first `length` bytes."""


class Journal:
    """One append-only file. Appending costs a copy in memory; data is written at each MiB and at the commit."""

    def __init__(self, name: str, file: AppendFile, length: int, crc_before: int = 0) -> None:
        self.name = name
        """Its final name, relative to the crawl's directory."""
        self.length = length
        """Bytes appended so far, buffered ones included."""
        self.crc = crc_before
        """CRC-32 of the bytes that were written to the file."""
        self._file = file
        self._buffer = bytearray()
        self._written = length
        self._committed = length, crc_before

    def append(self, data: bytes) -> int:
        """Append `data` and return the offset at which it begins. Durable with the next commit. Raises OSError: the
        disk is full; no part of `data` was appended.
        """
        offset = self.length
        self._buffer += data
        self.length += len(data)
        if len(self._buffer) >= BUFFER_BYTES_MAX:
            try:
                self.flush()
            except OSError:
                # The caller sees that `data` was not appended, and can retry.
                del self._buffer[len(self._buffer) - len(data) :]
                self.length = offset
                raise
        return offset

    def rewind(self, length: int) -> None:
        """Remove what was appended beyond `length` since the last cut: part of a group that could not be completed."""
        assert length <= self.length, "nothing can be taken back that was not appended"
        if length >= self._written:
            del self._buffer[length - self._written :]
        else:
            self._buffer.clear()
            self._file.truncate(length)
            self._written = length
            at, self.crc = self._committed
            for piece in self._file.pieces(at, length):
                self.crc = crc(piece, self.crc)
        self.length = length

    def flush(self) -> None:
        """Write the buffer to the file. After an error the buffer still holds what is not written."""
        pending = self._buffer
        self._buffer = bytearray()
        try:
            self._file.write(pending)
        except OSError:
            # A half-written tail would shift every later offset.
            self._file.truncate(self._written)
            self._buffer = pending + self._buffer
            raise
        self._written += len(pending)
        self.crc = crc(pending, self.crc)

    def cut(self) -> None:
        """Write the buffer to the file, so that `length` and `crc` are those of the file."""
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
        """Glob pattern of file names that only these journals use."""
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

        `owned` names directories (relative) in which only files of the manifest count; stray `*.open` files there
        belong to an epoch that was not committed.
        """
        self._manifest = {entry.name: entry for entry in manifest}
        for entry in list(self._manifest.values()):
            if entry.phase == Phase.OPEN:
                file = AppendFile(self._working(entry.name), entry.length)
                self._open[entry.name] = Journal(entry.name, file, entry.length, entry.crc)
            elif entry.phase == Phase.CLOSED:
                self._finalize(entry)
            elif entry.phase >= Phase.AWAY:
                self.path(entry.name).unlink(missing_ok=True)
        for directory in owned:
            for stray in self.path(directory).glob(self.stray + ".open"):
                if f"{directory}/{stray.name.removesuffix('.open')}" not in self._open:
                    stray.unlink()

    def create(self, name: str) -> Journal:
        """Begin a new journal; its file is called `name` + `.open` until it is final."""
        assert name not in self._manifest, f"journal {name} exists"
        path = self._working(name)
        if path.parent not in self._used:
            # This call makes the directory, or a process did that was killed before it synced the directory's name.
            self._used.add(path.parent)
            self._changed_directories.add(path.parent.parent)
        journal = Journal(name, AppendFile(path), 0)
        self._open[name] = journal
        self._manifest[name] = ManifestEntry(name, Phase.OPEN, 0, crc=0)
        self._changed_directories.add(path.parent)
        return journal

    def open_journals(self, prefix: str) -> list[Journal]:
        """Return the open journals whose name begins with `prefix`, in the order of names; none that is closed."""
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
        """Return the finished files that are not uploaded yet, in the order of names.

        Excludes files of `state/`, and files whose manifest entry is not committed: the name may get other content.
        """
        return [
            entry
            for name, entry in sorted(self._manifest.items())
            if entry.phase == Phase.FINAL and name not in self._adopted and not name.startswith(STATE)
        ]

    def uploads(self) -> list[ManifestEntry]:
        """Return the files that an object store holds, with their digests."""
        return [entry for _, entry in sorted(self._manifest.items()) if is_uploaded(entry)]

    def mark(self, name: str, digest: str, phase: Phase) -> None:
        """Note that a store has a finished file, verified. Where `phase` says that it alone has it, the local file is
        removed after the commit. A file that was dropped or left meanwhile is ignored.
        """
        entry = self._manifest.get(name)
        if entry is None or entry.phase >= Phase.AWAY:
            return
        assert entry.phase >= Phase.FINAL, f"{name} is not finished"
        self._manifest[name] = ManifestEntry(name, phase, entry.length, digest, entry.crc)
        if phase >= Phase.AWAY:
            self._leaving.add(name)

    def files(self, committed: Iterable[ManifestEntry]) -> list[str]:
        """Return every local file of a committed manifest by its present name. Files that an upload or the user has
        moved away are not included. Call it between two commits (`Committer.hold`): only then names stay.
        """
        names = []
        for entry in committed:
            if self.path(entry.name).exists():
                names.append(entry.name)
            elif entry.phase < Phase.FINAL:
                names.append(entry.name + ".open")
        return sorted(names)

    def close(self, journal: Journal) -> None:
        """End a journal. The next commit makes it `closed`; `settle` then renames its file."""
        self._manifest[journal.name] = ManifestEntry(journal.name, Phase.CLOSED, journal.length, crc=journal.crc)

    def drop(self, name: str) -> None:
        """Mark a final file as no longer needed; it is removed after the commit."""
        del self._manifest[name]
        self._adopted.discard(name)
        self._dropped.append(name)

    def adopt(self, name: str, sums: Sums) -> None:
        """Add a finished file that was written outside the journals (such as a Parquet file) to the manifest."""
        self._manifest[name] = ManifestEntry(name, Phase.FINAL, sums.length, sums.sha256, sums.crc)
        self._adopted.add(name)

    def next_without_digest(self, passing: AbstractSet[str] = frozenset()) -> ManifestEntry | None:
        """Return the first finished file by name without known SHA-256, except temporary ones (`passing`, `state/`)."""
        for name, entry in sorted(self._manifest.items()):
            is_open = entry.phase == Phase.FINAL and not entry.digest
            if is_open and not name.startswith(STATE) and name not in passing:
                return entry
        return None

    def record_digest(self, name: str, digest: str) -> None:
        """Record the SHA-256 of a finished file. No effect on a file that was dropped or uploaded meanwhile."""
        if (entry := self._manifest.get(name)) is not None and not entry.digest:
            self._manifest[name] = msgspec.structs.replace(entry, digest=digest)

    def cut(self) -> list[ManifestEntry]:
        """Flush every open journal and return the manifest that the closing epoch commits."""
        for name, journal in self._open.items():
            journal.cut()
            self._manifest[name] = ManifestEntry(name, self._manifest[name].phase, journal.length, crc=journal.crc)
        self._cut_journals = list(self._open.values())
        return list(self._manifest.values())

    def sync(self) -> None:
        """Make what `cut` saw durable. Blocks; for the commit's thread. Raises OSError: the disk failed; GoneError: a
        file was moved or removed.
        """
        for journal in self._cut_journals:
            journal.sync()
            require_there(self._working(journal.name))
        self._sync_directories()

    def settle(self, committed: Iterable[ManifestEntry]) -> None:
        """Finish after a commit: rename closed files, remove dropped files and local copies that are not kept."""
        for entry in committed:
            if entry.phase == Phase.CLOSED and self._manifest.get(entry.name) == entry:
                self._open.pop(entry.name).close_file()
                self._finalize(entry)
            elif entry.phase >= Phase.AWAY and entry.name in self._leaving:
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
        with suppress(GoneError):  # The commit that could not be made has said so.
            self._sync_directories()

    def _sync_directories(self) -> None:
        directories = self._changed_directories
        self._changed_directories = set()
        for directory in directories:
            require_there(directory)
            sync_directory(directory)

    def _finalize(self, entry: ManifestEntry) -> None:
        working = self._working(entry.name)
        final = self.path(entry.name)
        if working.exists():
            file = AppendFile(working, entry.length)  # Cut what a lost epoch may have added.
            file.close()
            working.replace(final)
        # No sync here on the loop: the next commit's thread syncs the directory before it commits that the file is
        # final. The file may have its final name already, from a process that was killed before that commit. After a
        # restore only the object store may have it.
        if final.exists():
            self._changed_directories.add(final.parent)
        self._manifest[entry.name] = msgspec.structs.replace(entry, phase=Phase.FINAL)

    def _working(self, name: str) -> Path:
        return self.path(name + ".open")


def is_uploaded(entry: ManifestEntry) -> bool:
    """Return whether the object store of finished files has a file."""
    return Phase.UPLOADED <= entry.phase <= Phase.AWAY


def lacking(entries: Iterable[ManifestEntry], path: Callable[[str], Path]) -> Iterator[tuple[ManifestEntry, Path, str]]:
    """Yield the files of a committed manifest that are missing or have another size than committed, with their path and
    what is wrong; not those that only an object store has. `path` maps a name to a path.

    About 2 µs a file; opens no file. Only for a crawl that does not run.
    """
    for entry in entries:
        place = path(entry.name)
        working = place.with_name(place.name + ".open")
        is_working = entry.phase == Phase.OPEN or (entry.phase == Phase.CLOSED and not place.exists())
        found = working if is_working else place
        try:
            size = found.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            if entry.phase < Phase.AWAY:
                yield entry, found, "is missing"
            continue
        if size < entry.length or (size > entry.length and entry.phase > Phase.CLOSED):
            yield entry, found, f"has {size:,} bytes, {entry.length:,} were written"


DIFFERS = "does not hold what was written into it (its CRC-32 differs)"


def differs(entry: ManifestEntry, path: Path) -> bool:
    """Return whether a file of the manifest holds other bytes than were committed. Blocks: reads the whole file. Raises
    OSError: the file is missing, too short, or cannot be read.
    """
    return crc_of(path, entry.length) != entry.crc
