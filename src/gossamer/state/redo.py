"""Redo: how an epoch becomes durable in a store of ordered keys, and the errors of a store that fails.

A commit must be atomic and synced, and must not hold up the event loop. One synced write of a large batch holds the
interpreter lock for the whole fsync (measured: 10 to 40 ms). So the epoch is written as a *redo record* instead: its
operations go under separate keys with unsynced writes and one `flush_wal(sync)`, which releases the lock. From that
moment the epoch is committed. Only then are the operations applied to their families, in slices of at most 2 ms; the
last slice marks the record as applied. A restart that finds a redo record without that mark applies it again: every
operation is a put or a delete, so a second time changes nothing.
"""

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from gossamer.state.schema import APPLIED, COMMITTED, FAMILIES, REDO, under
from gossamer.world.clock import give_way
from gossamer.world.files import NO_ROOM, sync_directory

SLICE_OPERATIONS_MAX = 2000
"""About 1 ms of applying, 0.6 µs each."""
PART_OPERATIONS_MAX = 100
"""Operations of one family that stay together; a slice may exceed its bound by this number."""
PART_BYTES_MAX = 64 << 10
SLICE_BYTES_MAX = 512 << 10
"""Writing large values takes about 2 ms a MiB with the interpreter lock held."""
_UNREADABLE = ("Corruption", "No such file or directory", "missing", "mismatch", "does not exist", "Not implemented")
"""Words in RocksDB's errors about a store whose files are missing or hold other bytes than it wrote."""
LINKS = "gossamer-store-"
"""Prefix of the folder of links through which a store's files are read; it is deleted before an error is shown."""


class DamagedStoreError(OSError):
    """The store cannot be read: files of it are missing, or hold other bytes than were written."""


Operations = tuple[int, list[bytes], list[bytes | None]]
"""Family number, keys, and their values in the same order; None deletes a key."""
Range = tuple[int, bytes, bytes]
"""Family number, first key, and end key, which is not included."""


class CommitRecord(msgspec.Struct, array_like=True, frozen=True):
    """The end of a redo record: with it the epoch is committed."""

    epoch: int
    chunks: int


class Chunk(msgspec.Struct, array_like=True, frozen=True):
    """A slice of an epoch: its ranges are cleared before its operations."""

    ranges: list[Range]
    operations: list[Operations]


_META = FAMILIES.index("meta")
_chunk_decoder = msgspec.msgpack.Decoder(Chunk)


class Redo(ABC):
    """A store with atomic epochs: after a crash each is there completely or not at all. Read on the loop; call `commit`
    and `apply` from one thread at a time.
    """

    def __init__(self, path: Path, *, fresh: bool, writable: bool = True) -> None:
        """Finish what a crash left half-applied. The subclass has opened the store in `path` already. The directory
        name of a `fresh` store becomes durable. Raises OSError: the store is not `writable`, and a commit must be
        finished first.
        """
        if fresh:
            sync_directory(path.parent)
        self._to_apply: tuple[int, list[Chunk]] = (0, [])
        """The epoch that was committed last, and its chunks that are not applied yet."""
        self.epoch = self._recover(writable=writable)
        """Number of the last committed epoch; 0 in a new store."""

    @abstractmethod
    def get(self, family: str, key: bytes) -> bytes | None:
        """Return a committed value."""

    @abstractmethod
    def scan(self, family: str, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield committed pairs from `begin` up to but without `end`."""

    @abstractmethod
    def _write(self, chunk: Chunk) -> None:
        """Write operations all or not at all. After a power cut, what was written last may be missing."""

    @abstractmethod
    def _sync(self) -> None:
        """Make all that was written survive a power cut. Blocks; releases the GIL."""

    @abstractmethod
    def _wait_for_background(self) -> None:
        """Wait until flushes and compaction have caught up, so that a write does not block."""

    def commit(self, epoch: int, ranges: Sequence[Range], changes: Mapping[int, Mapping[bytes, bytes | None]]) -> int:
        """Make an epoch durable and return the number of its chunks. Blocks for one fsync, off the GIL. Raises OSError:
        the disk failed. Write nothing more; the next opening finds the last epoch.
        """
        chunks: list[Chunk] = []
        with refusals("cannot commit"):
            for chunk in _chunks(ranges, changes):
                self._wait_for_background()
                self._write_meta({_redo_key(epoch, len(chunks)): msgspec.msgpack.encode(chunk)})
                chunks.append(chunk)
                give_way()
            self._write_meta({COMMITTED: msgspec.msgpack.encode(CommitRecord(epoch, len(chunks)))})
            self._sync()
        self.epoch = epoch
        self._to_apply = epoch, chunks
        return len(chunks)

    def apply(self, epoch: int) -> None:
        """Apply the epoch that was just committed to the families, and let the loop run between slices. Raises OSError:
        the disk refuses. The epoch stays committed, and is applied when the store is next opened.
        """
        committed, chunks = self._to_apply
        assert committed == epoch, "only what was just committed can be applied"
        self._to_apply = epoch, []
        with refusals("cannot apply a commit"):
            for chunk in chunks:
                self._wait_for_background()
                self._write(chunk)
                give_way()
            self._forget_redo(epoch, len(chunks))

    def change(self, ranges: Sequence[Range], changes: Mapping[int, Mapping[bytes, bytes | None]]) -> None:
        """Commit and apply at once, where no crawl runs. Blocks."""
        self.commit(self.epoch + 1, ranges, changes)
        self.apply(self.epoch)

    def put(self, family: str, changes: Mapping[bytes, bytes]) -> None:
        """Commit and apply keys of one family at once, where no crawl runs. Blocks."""
        self.change([], {FAMILIES.index(family): changes})

    def _recover(self, *, writable: bool) -> int:
        word = self.get("meta", COMMITTED)
        committed = msgspec.msgpack.decode(word, type=CommitRecord) if word is not None else CommitRecord(0, 0)
        if word is not None and self.get("meta", APPLIED) != word:
            if not writable:
                raise OSError(
                    errno.EROFS, "its last commit must be finished first, and the directory cannot be written"
                )
            for number in range(committed.chunks):
                chunk = self.get("meta", _redo_key(committed.epoch, number))
                if chunk is None:
                    raise DamagedStoreError(errno.EIO, "part of the last commit is missing")
                self._write(_chunk_decoder.decode(chunk))
            self._forget_redo(committed.epoch, committed.chunks)
        if writable and (half := [key for key, _ in self.scan("meta", *under(REDO))]):
            self._write_meta(dict.fromkeys(half))  # An incomplete redo record: its epoch was not committed.
        return committed.epoch

    def _forget_redo(self, epoch: int, chunks: int) -> None:
        gone = {_redo_key(epoch, number): None for number in range(chunks)}
        self._write_meta({**gone, APPLIED: msgspec.msgpack.encode(CommitRecord(epoch, chunks))})

    def _write_meta(self, changes: Mapping[bytes, bytes | None]) -> None:
        self._write(Chunk([], [(_META, list(changes), list(changes.values()))]))


def _chunks(ranges: Sequence[Range], changes: Mapping[int, Mapping[bytes, bytes | None]]) -> Iterator[Chunk]:
    """Split an epoch into chunks that each hold up the loop only briefly. About 0.1 µs an operation."""
    first = list(ranges)
    operations: list[Operations] = []
    count = size = 0
    for family, changed in changes.items():
        for keys, values, part_bytes in _parts(changed):
            if operations and (count >= SLICE_OPERATIONS_MAX or size + part_bytes > SLICE_BYTES_MAX):
                yield Chunk(first, operations)
                first = []
                operations = []
                count = 0
                size = 0
            operations.append((family, keys, values))
            count += len(keys)
            size += part_bytes
    if operations or first:
        yield Chunk(first, operations)


def _parts(changed: Mapping[bytes, bytes | None]) -> Iterator[tuple[list[bytes], list[bytes | None], int]]:
    """Yield groups of keys and values, with the bytes of the values; a large value is a group by itself."""
    pairs = iter(changed.items())
    while part := list(islice(pairs, PART_OPERATIONS_MAX)):
        keys = [key for key, _ in part]
        values = [value for _, value in part]
        size = sum([len(value) for value in values if value is not None])
        if size <= PART_BYTES_MAX:
            yield keys, values, size
            continue
        for key, value in part:
            yield [key], [value], len(value) if value is not None else 0


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Convert errors of RocksDB to OSErrors that say what could not be done, such as `cannot read the store`."""
    try:
        yield
    except (AssertionError, OSError):
        raise
    except Exception as error:
        raise refusal(what, error) from error


def refusal(what: str, error: Exception) -> OSError:
    """Return the OSError for an error of RocksDB."""
    # rocksdict raises a bare Exception for every error of RocksDB: only the text distinguishes a full disk.
    words = str(error).partition(" The file ")[0].split()
    said = " ".join(word.rpartition("/")[2] if LINKS in word else word for word in words)
    number = next((number for number in NO_ROOM if os.strerror(number) in said), errno.EIO)
    is_damaged = number == errno.EIO and any(word in said for word in _UNREADABLE)
    kind = DamagedStoreError if is_damaged else OSError
    return kind(number, f"{what}: {said}")


def _redo_key(epoch: int, number: int) -> bytes:
    return REDO + epoch.to_bytes(8) + number.to_bytes(4)
