"""Files: durable writes, and usable names for Unix sockets with long paths."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS))
"""Errors that the operator fixes at the disk: it is full, or the system has made it read-only."""
_FAULTS: Final = {
    errno.EROFS: ("cannot be written", "nothing is lost: mend it"),
    errno.EIO: ("fails", "mend or replace it"),
}
"""Faults of a disk that is not full, with their remedies."""
GONE: Final = "is gone: it was moved or removed while the crawl ran, and what came since the last commit is lost"


class GoneError(FileNotFoundError):
    """A file or folder was moved or removed while a crawl writes it, which the system does not report: data is lost."""

    def __str__(self) -> str:
        return f"{self.filename} {GONE}; put it back, and gossamer resume continues"


def unwritable(error: OSError, directory: Path) -> str:
    """Return a line for people about an error of the disk: what it means for a crawl, and the remedy."""
    what, remedy = _FAULTS.get(error.errno or 0, ("is full", "nothing is lost: make room there"))
    which = os.strerror(error.errno or 0).lower()
    return f"the disk of {directory} {what} ({which}); {remedy}"


def write_refusal(error: OSError, path: Path, remedy: str = "see that you may write there, or work on a copy") -> str:
    """Return a line for people about a file or directory that may not be written, and the remedy."""
    whose = ""
    if error.errno == errno.EACCES:  # In a container the numbers show which owner the volume needs.
        there = next(one for one in (path, *path.absolute().parents) if os.path.exists(one))  # noqa: PTH110 - no error
        whose = f" ({there} belongs to user {there.stat().st_uid}, and this runs as user {os.geteuid()})"
    return f"cannot write to {path}: {error.strerror}{whose}; {remedy}"


def keep_name(path: Path, name: str) -> str:
    """Return the name that is kept at a path: this one, unless a process has kept another there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):  # To make a link is atomic.
        path.symlink_to(name)
    return str(path.readlink())


class AppendFile:
    """A file that only grows. Nothing is durable before `sync`."""

    def __init__(self, path: Path, length: int = 0) -> None:
        """Open `path` and cut it to `length` bytes: the bytes after that were never committed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        held = os.fstat(self._fd).st_size
        if held < length:
            os.close(self._fd)
            raise OSError(f"{path} holds {held} bytes, {length} were committed")
        self.truncate(length)
        self.unsynced_bytes = 0
        """Bytes that were appended since the last `sync`."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append all of `data`."""
        view = memoryview(data)
        self.unsynced_bytes += view.nbytes
        while view:
            view = view[os.write(self._fd, view) :]

    def truncate(self, length: int) -> None:
        """Cut the file back to `length` bytes, after a write that failed half-way."""
        os.ftruncate(self._fd, length)
        os.lseek(self._fd, length, os.SEEK_SET)

    def pieces(self, begin: int, end: int) -> Iterator[bytes]:
        """Yield the bytes in [`begin`, `end`), 1 MiB at a time."""
        while begin < end and (piece := os.pread(self._fd, min(end - begin, 1 << 20), begin)):
            begin += len(piece)
            yield piece

    def sync(self) -> None:
        """Make the content survive a power cut. Blocks; releases the GIL."""
        os.fsync(self._fd)
        self.unsynced_bytes = 0

    def close(self) -> None:
        os.close(self._fd)


def require_writable(path: Path) -> None:
    """Raise PermissionError if nothing may be made in a directory."""
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def owner_of_new(directory: Path) -> int:
    """Return the user that owns what this process makes in a directory: on a share all files may have one owner."""
    with tempfile.TemporaryFile(dir=directory) as file:
        return os.fstat(file.fileno()).st_uid


def require_there(path: Path) -> None:
    """Raise GoneError if a file or folder that is being written is no longer there."""
    if not path.exists():
        raise GoneError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def sync_directory(path: Path) -> None:
    """Make the names in `path` survive a power cut: without this a new or renamed file can be lost."""
    sync_file(path)


Stamp = tuple[int, int, int]
"""Identifies a state of a file: time of change, length, inode."""


def stamp_of(path: Path) -> Stamp:
    """Return the stamp of a file; zeros for one that cannot be found."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino


def make_directory(path: Path) -> None:
    """Make a directory, and those above it that are missing, so that they survive a power cut."""
    missing = _missing(path)
    path.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync_directory(one.parent)


def there_before(path: Path) -> tuple[list[Path], list[str]]:
    """Return the directories that `make_directory` makes, innermost first, and the names in it if it exists."""
    return _missing(path), [one.name for one in path.iterdir()] if path.is_dir() else []


def _missing(path: Path) -> list[Path]:
    return [one for one in (path, *path.parents) if not one.exists()]


def remove_new(path: Path, missing: Sequence[Path], before: Iterable[str]) -> None:
    """Remove what was made since `there_before` returned `missing` and `before`."""
    for name in {one.name for one in path.iterdir()} - set(before):
        new = path / name
        if new.is_dir() and not new.is_symlink():
            shutil.rmtree(new)
        else:
            new.unlink()
    with suppress(OSError):  # Another program has put something there.
        for made in missing:
            made.rmdir()


def sync_file(path: Path) -> None:
    """Make a finished file survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_everything() -> None:
    """Make all that was written survive a power cut: for many small files at once. Blocks."""
    os.sync()


def publish(temporary: Path, final: Path) -> None:
    """Sync a complete file and rename it, so that a half-written file never has the final name."""
    sync_file(temporary)
    temporary.replace(final)
    sync_directory(final.parent)


def write_whole(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a small file so that its name always holds either the old content or all of the new.

    `private`: only its owner can read it, from the first byte on.
    """
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)  # A leftover file would keep its old mode.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    publish(temporary, path)


def reserve(descriptor: int, size_bytes: int) -> None:
    """Reserve disk space, zeroed, for a file to be mapped: touching a page without space kills the process. Raises
    OSError: there is not enough space.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size_bytes)
    else:
        os.pwrite(descriptor, bytes(size_bytes), 0)


SOCKET_PATH_BYTES_MAX = 100
"""Linux allows 107 bytes and a terminating zero, macOS 103."""


@contextmanager
def socket_name(path: Path) -> Iterator[str]:
    """Yield a name that the system accepts for a socket, valid within the context; a long path needs /proc. Raises
    OSError: there is no such directory.
    """
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
