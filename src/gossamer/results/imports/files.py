"""Files: sources opened for reading, on disk, in a package, or in an object store."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import BinaryIO, cast

from gossamer.results.imports.capture import Source
from gossamer.world.inputs import open_input

BUFFER_BYTES = 1 << 18


class FilePart(io.RawIOBase):
    """A part of a file as a file; closes it."""

    def __init__(self, file: BinaryIO, begin: int, length: int) -> None:
        self._file = file
        self._begin = begin
        self._length = length
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._length)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, into: bytearray | memoryview) -> int:  # type: ignore[override]
        view = memoryview(into)
        self._file.seek(self._begin + self._at)
        data = self._file.read(max(0, min(len(view), self._length - self._at)))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def open_source(source: Source) -> BinaryIO:
    """Open a source at its first byte. Raises OSError."""
    file = open_place(source.place)
    if source.is_deflated:
        return cast("BinaryIO", zipfile.ZipFile(file).open(source.name.rpartition("!")[2]))
    if source.begin or source.length >= 0:
        length = source.length if source.length >= 0 else source.size - source.begin
        return cast("BinaryIO", io.BufferedReader(FilePart(file, source.begin, length), BUFFER_BYTES))
    return file


def open_place(place: str) -> BinaryIO:
    """Open a file. Raises OSError."""
    return open_input(Path(place))
