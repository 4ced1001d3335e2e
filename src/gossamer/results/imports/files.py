"""Files: archives opened for reading, on disk, in a package, or in an object store."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from msgspec.structs import replace

from gossamer.model.extras import require
from gossamer.results.imports.capture import Room, Source
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.world.inputs import open_input

if TYPE_CHECKING:
    from gossamer.stages.archive.objectstore import ObjectStore

BUFFER_BYTES = 1 << 18
AHEAD_BYTES = 4 << 20
"""Bytes of an object that are fetched at once."""
MEMBER_BYTES_MAX = 16 << 30
"""Of a deflated member of a package, which is unpacked to disk before it is read."""


class FilePart(io.RawIOBase):
    """A part of a file, or an object, as a file."""

    def __init__(self, read: Callable[[int, int], bytes | None], length: int) -> None:
        """`read` returns the bytes of a range."""
        self._read = read
        self._length = length
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._length)[whence]
        return self._at

    def readinto(self, into: bytearray | memoryview) -> int:  # type: ignore[override]
        view = memoryview(into)
        length = min(len(view), self._length - self._at)
        data = self._read(self._at, length) or b"" if length > 0 else b""
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


@contextmanager
def open_source(source: Source, room: Room) -> Iterator[BinaryIO]:
    """Open a source at its first byte.

    Raises:
        OSError, StoreError: it cannot be read.
        BadZipFile: a deflated member is damaged, or too large.
    """
    with open_place(source.place, room.store, source.size) as file:
        if source.member:
            spill = room.spills.make()
            with zipfile.ZipFile(file) as package, package.open(source.member) as member:
                while piece := member.read(BUFFER_BYTES):
                    spill.write(piece)
                    if spill.size > MEMBER_BYTES_MAX:
                        raise zipfile.BadZipFile(f"{source.member} has more than {MEMBER_BYTES_MAX >> 30} GiB")
            with spill.open() as unpacked:
                yield unpacked
        else:
            yield part_of(file, source) if source.length >= 0 else file


def part_of(file: BinaryIO, source: Source) -> BinaryIO:
    """Return the part of a package that is a source."""
    return _buffered(partial(_read_range, file, source.begin), source.length, BUFFER_BYTES)


def open_place(place: str, store: ArchiveOptions, size: int) -> BinaryIO:
    """Open a file, or an object of a known size. Raises OSError, StoreError."""
    if "://" not in place:
        return open_input(Path(place))
    root, _, name = place.rpartition("/")
    return _buffered(partial(store_at(root, store).read_range, name), size, AHEAD_BYTES)


def store_at(url: str, options: ArchiveOptions) -> ObjectStore:
    """Return the object store at an address. Raises ConfigError."""
    require("obstore", url)
    from gossamer.stages.archive.objectstore import ObjectStore  # noqa: PLC0415

    return ObjectStore(replace(options, store=url))


def sizes_at(url: str, options: ArchiveOptions) -> dict[str, int]:
    """Return the sizes of the object at an address, or of those below it, by their addresses. Raises StoreError."""
    scheme, _, path = url.partition("://")
    bucket, _, name = path.partition("/")
    root = f"{scheme}://{bucket}"
    sizes = store_at(root, options).sizes(name.rstrip("/"))
    return {f"{root}/{one}": size for one, size in sorted(sizes.items())}


def _buffered(read: Callable[[int, int], bytes | None], length: int, buffer_bytes: int) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(FilePart(read, length), buffer_bytes))


def _read_range(file: BinaryIO, begin: int, offset: int, length: int) -> bytes:
    file.seek(begin + offset)
    return file.read(length)
