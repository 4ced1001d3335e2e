"""Disk: what of a crawl's directory survives a kill, and what a power cut; and writes and syncs that fail.

The files are real, and no sync reaches the disk of the machine: a `ModelDisk` replaces `os` in `gossamer.world.files`,
through which the crawl syncs, and notes what would survive. After a kill all that was written is there. After a power
cut a file has what was synced, and of what was written since some or nothing; a directory has the names that it had
when it was synced, or those of now.

The store is a model below the real redo record: ordered tables, and a log that a power cut shortens.
"""

from __future__ import annotations

import os
import shutil
import stat
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gossamer.state.redo import Chunk, Redo
from gossamer.state.schema import FAMILIES
from gossamer.world.dice import Dice

PAGE_BYTES = 4096
"""The system writes whole pages."""
_NUMBER = {name: number for number, name in enumerate(FAMILIES)}


class _ModelFile:
    """A file, under any number of names."""

    __slots__ = ("synced",)

    def __init__(self, synced: bytes = b"") -> None:
        self.synced = synced


Names = dict[str, _ModelFile | None]
"""What a directory holds; None stands for a directory."""


class ModelDisk:
    """The directory of a crawl, and its store."""

    def __init__(self, root: Path, dice: Dice, step: Callable[[], None], refuses: Callable[[str], int]) -> None:
        """Take a directory that is empty or missing. `step` is called before and after each call that changes what
        survives; `refuses` returns the error with which such a call fails, or 0.
        """
        self.root = root
        self.platter = Platter()
        self._means = dice, step, refuses
        self._dice, self._step, self._refuses = self._means
        self._files: dict[int, _ModelFile] = {}
        self._held: list[int] = []
        """Descriptors that keep the numbers of files from being given to others."""
        self._synced: dict[str, Names] = {}
        """The names that survive, per directory, by its path below the root."""

    def let_go(self) -> None:
        """Close the files that are held."""
        while self._held:
            os.close(self._held.pop())

    # ---- what `gossamer.world.files` takes from `os`

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def write(self, descriptor: int, data: memoryview) -> int:
        """Write all; or some of it, where the process is killed or the disk refuses."""
        try:
            self.touch("write")
        except BaseException:
            os.write(descriptor, data[: self._dice.below(len(data) + 1)])
            raise
        return os.write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        """Note that the bytes of a file, or the names in a directory, survive."""
        self.touch("fsync")
        found = os.fstat(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_relative_to(self.root):
            if stat.S_ISDIR(found.st_mode):
                self._synced[self._below(path)] = self._names(path)
            else:
                self._file(path, found.st_ino).synced = path.read_bytes()
        self._step()

    def touch(self, call: str) -> None:
        """Let a step pass before a call.

        Raises:
            OSError: the disk refuses.
        """
        self._step()
        if number := self._refuses(call):
            raise OSError(number, os.strerror(number))

    def open_store(self, path: Path, *_sizes: int) -> ModelStore:
        """Open or make the store, where it would be: its directory says that there is one."""
        fresh = not (path / "CURRENT").exists()
        if fresh:
            path.mkdir(parents=True, exist_ok=True)
            (path / "CURRENT").touch()
            self._synced[self._below(path)], self.platter = self._names(path), Platter()
        self.platter.sync()  # RocksDB writes what it finds in its log into a table, and syncs that.
        return ModelStore(path, self.platter, self.touch, fresh=fresh)

    # ---- what a later process finds

    def copy_after_kill(self, root: Path, *without: str) -> ModelDisk:
        """Return a copy as a killed process leaves it, without the files of some names."""
        after = ModelDisk(root, *self._means)
        after.platter, after._synced = self.platter.copy(), dict(self._synced)
        if self.root.exists():
            shutil.copytree(self.root, root, ignore=shutil.ignore_patterns(*without))
            for path in root.rglob("*"):
                file = self._files.get((self.root / path.relative_to(root)).stat().st_ino)
                if file is not None:
                    after._file(path, path.stat().st_ino, file)
        return after

    def cut(self, root: Path) -> ModelDisk:
        """Return a copy as a power cut leaves it."""
        after = ModelDisk(root, *self._means)
        root.mkdir(parents=True)
        self._restore("", after)
        after.platter = self.platter.cut(self._dice)
        return after

    def _restore(self, below: str, after: ModelDisk) -> None:
        here = self.root / below
        there = after.root / below
        now = self._names(here) if here.is_dir() else {}
        kept = now if self._dice.below(2) else self._synced.get(below, {})
        for name, file in sorted(kept.items()):
            if file is None:
                (there / name).mkdir()
                self._restore(f"{below}/{name}".lstrip("/"), after)
            else:
                data = self._after_power_cut(file, here / name if now.get(name) is file else None)
                (there / name).write_bytes(data)
                after._file(there / name, (there / name).stat().st_ino, _ModelFile(data))
        after._synced[below] = after._names(there)

    def _after_power_cut(self, file: _ModelFile, path: Path | None) -> bytes:
        """Return what a file holds after a power cut: what was synced, what was written, or a part of that."""
        chance = self._dice.below(4)
        synced = file.synced
        if path is None or not chance or (written := path.read_bytes()) == synced:
            return synced
        if chance == 1:
            return written
        if chance == 2:  # The new length, and nothing in it.
            return synced.ljust(len(written), b"\0")
        at = self._dice.below(len(written) + 1)
        if at > len(synced):
            return written[:at].ljust(self._dice.below(2) * len(written), b"\0")
        at -= at % PAGE_BYTES
        return written[:at] + synced[at:]

    # ---- files by their numbers

    def _names(self, folder: Path) -> Names:
        with os.scandir(folder) as entries:
            return {
                entry.name: None if entry.is_dir() else self._file(Path(entry.path), entry.inode()) for entry in entries
            }

    def _file(self, path: Path, number: int, known: _ModelFile | None = None) -> _ModelFile:
        if number not in self._files:
            self._held.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            self._files[number] = known or _ModelFile()
        return self._files[number]

    def _below(self, path: Path) -> str:
        return "" if path == self.root else str(path.relative_to(self.root))


class _Table:
    """The keys of a family, in order."""

    __slots__ = ("keys", "values")

    def __init__(self, values: dict[bytes, bytes], keys: list[bytes]) -> None:
        self.values = values
        self.keys = keys

    def set(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            if self.values.pop(key, None) is not None:
                del self.keys[bisect_left(self.keys, key)]
            return
        if key not in self.values:
            insort(self.keys, key)
        self.values[key] = value

    def clear(self, begin: bytes, end: bytes) -> None:
        first = bisect_left(self.keys, begin)
        last = bisect_left(self.keys, end)
        for key in self.keys[first:last]:
            del self.values[key]
        del self.keys[first:last]


class Platter:
    """What is written of a store: what is synced, and the writes since."""

    def __init__(self, synced: list[_Table] | None = None) -> None:
        self.tables = synced or [_Table({}, []) for _ in FAMILIES]
        """As they are read."""
        self._synced = _copy_tables(self.tables)
        self._since: list[Chunk] = []

    def write(self, chunk: Chunk) -> None:
        """Apply a chunk."""
        _apply(self.tables, chunk)
        self._since.append(chunk)

    def sync(self) -> None:
        """Have all that was written survive a power cut."""
        for chunk in self._since:
            _apply(self._synced, chunk)
        self._since.clear()

    def copy(self) -> Platter:
        """Return what a killed process leaves."""
        return Platter(_copy_tables(self.tables))

    def cut(self, dice: Dice) -> Platter:
        """Return what a power cut leaves: what was synced, and the first of the writes since."""
        after = Platter(_copy_tables(self._synced))
        for chunk in self._since[: dice.below(len(self._since) + 1)]:
            after.write(chunk)
        after.sync()
        return after


def _apply(tables: list[_Table], chunk: Chunk) -> None:
    for family, begin, end in chunk.ranges:
        tables[family].clear(begin, end)
    for family, keys, values in chunk.operations:
        for key, value in zip(keys, values, strict=True):
            tables[family].set(key, value)


def _copy_tables(tables: list[_Table]) -> list[_Table]:
    return [_Table(table.values.copy(), table.keys.copy()) for table in tables]


class ModelStore(Redo):
    """A store on a platter. `touch` is called with "write" and "fsync" before these."""

    def __init__(self, path: Path, platter: Platter, touch: Callable[[str], None], *, fresh: bool) -> None:
        self._platter = platter
        self._touch = touch
        super().__init__(path, fresh=fresh)

    def get(self, family: str, key: bytes) -> bytes | None:
        return self._platter.tables[_NUMBER[family]].values.get(key)

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return committed values in the order of `keys`."""
        values = self._platter.tables[_NUMBER[family]].values
        return [values.get(key) for key in keys]

    def scan(self, family: str, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        table = self._platter.tables[_NUMBER[family]]
        keys = table.keys[bisect_left(table.keys, begin) : bisect_left(table.keys, end)]
        yield from [(key, table.values[key]) for key in keys]

    def close(self) -> None:
        """Nothing is held."""

    def _write(self, chunk: Chunk) -> None:
        self._touch("write")
        self._platter.write(chunk)

    def _sync(self) -> None:
        self._touch("fsync")
        self._platter.sync()
        self._touch("")

    def _wait_for_background(self) -> None:
        """Nothing is in the background."""
