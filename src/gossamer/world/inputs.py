"""Inputs: opens the operator's files: regular ones, and pipes where permitted, without ever blocking for good."""

import errno
import io
import os
import select
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

INPUT_BYTES_MAX: Final = 64 << 20
"""Largest file that is kept in memory."""
WRITER_S_MAX: Final = 5.0
"""How long a pipe may have no program that writes to it."""
POLL_S: Final = 0.05
BUFFER_BYTES: Final = 1 << 18
NO_FILE: Final = "it is no regular file"


def open_input(path: Path, *, pipes: bool = False) -> BinaryIO:
    """Open a file for reading. With `pipes`, a pipe too; reading it answers signals. Raises OSError: it cannot be read,
    or is not a regular file: a device such as /dev/zero has no end, and a pipe may have no beginning. /dev/null is an
    empty file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    opened = os.fstat(descriptor)
    if pipes and stat.S_ISFIFO(opened.st_mode):
        return cast("BinaryIO", io.BufferedReader(_Pipe(descriptor, path)))
    if stat.S_ISREG(opened.st_mode) or os.path.samestat(opened, Path(os.devnull).stat()):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    is_directory = stat.S_ISDIR(opened.st_mode)
    reason = os.strerror(errno.EISDIR) if is_directory else NO_FILE
    raise OSError(errno.EISDIR if is_directory else errno.EINVAL, reason, str(path))


def read_input(path: Path, bytes_max: int = INPUT_BYTES_MAX) -> bytes:
    """Return the content of a regular file. Raises OSError: as `open_input`, or it has more than `bytes_max` bytes."""
    with open_input(path) as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise OSError(errno.EFBIG, f"it has more than {bytes_max >> 20} MiB", str(path))
    return data


def input_lines(file: BinaryIO, bytes_max: int) -> Iterator[bytes]:
    """Yield the lines of a file, each with its line break. Raises OSError: a line has more than `bytes_max` bytes; no
    more of it is read.
    """
    number = 0
    while line := file.readline(bytes_max + 1):
        number += 1
        if len(line) > bytes_max:
            raise OSError(errno.EFBIG, f"line {number} is longer than {bytes_max:,} bytes")
        yield line


def part_of(file: BinaryIO, begin: int, length: int) -> BinaryIO:
    """Return a part of a file as a file."""

    def read(offset: int, count: int) -> bytes:
        file.seek(begin + offset)
        return file.read(count)

    return open_ranges(read, length)


def open_ranges(read: Callable[[int, int], bytes | None], length: int, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
    """Return a file of `length` bytes, of which `read` returns those from an offset on, up to a number of them."""
    return cast("BinaryIO", io.BufferedReader(_Ranges(read, length), buffer_bytes))


class _Ranges(io.RawIOBase):
    """A file that is read by position: any number of readers share what it is read from."""

    def __init__(self, read: Callable[[int, int], bytes | None], length: int) -> None:
        self._read = read
        self._length = length
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        at = offset + (0, self._at, self._length)[whence]
        if at < 0:
            raise ValueError("before the beginning")
        self._at = at
        return at

    def readinto(self, into: bytearray | memoryview) -> int:  # type: ignore[override]
        view = memoryview(into)
        length = min(len(view), self._length - self._at)
        data = self._read(self._at, length) or b"" if length > 0 else b""
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Pipe(io.RawIOBase):
    """The reading end of a pipe. Opening a pipe the usual way blocks until a program writes to it."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self._waits_left = round(WRITER_S_MAX / POLL_S)
        self._had_writer = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while True:
            try:
                count = os.readv(self._descriptor, [buffer])
            except BlockingIOError:
                self._had_writer = True  # It has written nothing new.
                select.select([self._descriptor], [], [], POLL_S)
                continue
            if count or self._had_writer:
                self._had_writer = True
                return count
            if not self._waits_left:
                raise OSError(errno.ETIMEDOUT, "no program writes to this pipe", str(self._path))
            self._waits_left -= 1
            select.select([], [], [], POLL_S)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()
