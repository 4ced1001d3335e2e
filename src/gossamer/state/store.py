"""Store: one RocksDB per shard, in families, and how an epoch becomes durable in it.

Every key of every family begins with two bytes of partition, so that partitions can move between shards.

A commit must be atomic, synced, and must not hold up the event loop. One synced write of a large batch holds the
interpreter lock for the whole fsync (measured: 10 to 40 ms), so the epoch goes in as a *redo record* instead: its
operations are put under keys of their own with unsynced writes and one `flush_wal(sync)`, which releases the lock.
From that moment the epoch is committed. Only then are the operations applied to their families, in slices of at most
2 ms; the last slice says so. A restart that finds a redo record without that word applies it again: every operation
is a put or a delete, so twice is as good as once.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path

import msgspec
from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    ColumnFamily,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
)

from gossamer.state.schema import APPLIED, COMMITTED, FAMILIES, LAST, REDO, under
from gossamer.world.clock import give_way, pause
from gossamer.world.files import NO_ROOM, sync_directory

ASKED_BY_KEY = ("seen", "host", "queue", "content", "page", "account")
"""Families whose keys are asked for one by one."""
KEPT_LONG = ("content", "page", "scope", "trap")
"""Families that are written once and read seldom, and so are worth zstd. The others are rewritten and read often: there
lz4 takes about half the time for reads and compaction, and from a seventh (`seen`) to seven tenths (`queue`) more disk.
"""
REWRITTEN = ("queue", "host")
"""Families whose keys come and go all over their range, so that to compact files of level 0 writes the next level
anew, nearly whole.
"""
LEVEL0_FILES = 8
"""Of those families, before they are compacted: twice RocksDB's, and half the work; who asks looks at four filters
more.
"""
SLICE_OPERATIONS_MAX = 2000
"""About 1 ms of applying, 0.6 µs each."""
PART_OPERATIONS_MAX = 100
"""Operations of one family that are taken together; a slice may be larger than its bound by so many."""
PART_BYTES_MAX = 64 << 10
SLICE_BYTES_MAX = 512 << 10
"""Large values take about 2 ms a MiB with the interpreter lock held."""

FLUSHING_MAX = 2
"""Full write buffers of a family that wait for the disk, beyond which a commit waits too."""
LEVEL0_FILES_MAX = 24
"""Files that wait for compaction, beyond which a commit waits too."""
BACKGROUND_WAIT_S, BACKGROUND_WAIT_S_MAX = 0.005, 60.0

_UNREADABLE = ("Corruption", "No such file or directory", "missing", "mismatch", "does not exist", "Not implemented")
"""What RocksDB says of a store whose files are missing or hold other bytes than it wrote."""


class DamagedStoreError(OSError):
    """The store cannot be read: files of it are missing, or hold other bytes than were written."""


Operations = tuple[int, list[bytes], list[bytes | None]]
"""Family number, keys, their values in the same order; None deletes."""
Range = tuple[int, bytes, bytes]
"""Family number, first key, first key that stays."""


class Committed(msgspec.Struct, array_like=True, frozen=True):
    """The last word of a redo record."""

    epoch: int
    chunks: int


class Chunk(msgspec.Struct, array_like=True, frozen=True):
    """A slice of an epoch: ranges go before puts."""

    ranges: list[Range]
    operations: list[Operations]


_encoder = msgspec.msgpack.Encoder()
_chunk_decoder = msgspec.msgpack.Decoder(Chunk)


class Store:
    """What is committed. Reading is for the loop, `commit` and `apply` are for one thread at a time."""

    def __init__(
        self,
        path: Path,
        cache_bytes: int = 96 << 20,
        write_buffer_bytes: int = 48 << 20,
        background_bytes_s: int = 128 << 20,
        *,
        writable: bool = True,
        strict: bool = False,
    ) -> None:
        """Open or make the store and finish what a crash left half-applied.

        One that is not `writable` is opened for questions alone, where it was closed in order. With `strict` a record
        of the write-ahead log that is not what was written is an error, wherever it is but at the very end.

        Raises:
            OSError: another process holds it, the disk does not answer, or it is not `writable` and was not closed.
        """
        self._writable = writable
        self._undo = ExitStack()
        if writable:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path = self._undo.enter_context(_linked(path))
        fresh = not (path / "CURRENT").exists()
        # One for all families: each takes what it needs of it.
        cache = Cache(cache_bytes)
        options = _options(cache, write_buffer_bytes)
        options.set_ratelimiter(background_bytes_s, 100_000, 10)
        if strict:
            options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
        families = {name: _options(cache, write_buffer_bytes) for name in FAMILIES}
        # Many questions are about keys that are not there, or not there yet: spare the walk through memory.
        for name in ASKED_BY_KEY:
            families[name].set_memtable_prefix_bloom_ratio(0.05)
            families[name].set_memtable_whole_key_filtering(True)
        for name in REWRITTEN:
            families[name].set_level_zero_file_num_compaction_trigger(LEVEL0_FILES)
        for name in KEPT_LONG:
            families[name].set_bottommost_compression_type(DBCompressionType.zstd())
        try:
            access = AccessType.read_write() if writable else AccessType.read_only(False)
            self._db = Rdict(str(path), options, column_families=families, access_type=access)
        except Exception as error:  # rocksdict raises bare Exception for all that RocksDB reports.
            self._undo.close()
            raise _refusal(f"cannot open the store {path}", error) from error
        self._families = {name: self._db.get_column_family(name) for name in FAMILIES}
        self._handles: list[ColumnFamily] = [self._db.get_column_family_handle(name) for name in FAMILIES]
        self._meta = self._families["meta"]
        self._to_apply: tuple[int, list[Chunk]] = (0, [])
        """The epoch that was committed last, and what of it is not applied yet."""
        if fresh:
            sync_directory(path.parent)
        with refusals(f"cannot open the store {path}"):
            self.epoch = self._recover()
        """Number of the last committed epoch; 0 in a new store."""

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return a committed value. About 1 µs when cached."""
        try:
            value: bytes | None = self._families[family].get(key)
        except Exception as error:
            raise _refusal("cannot read the store", error) from error
        return value

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return committed values in the order of `keys`: one call, about 0.8 µs a key."""
        try:
            return list(self._families[family].get(list(keys)) or ())
        except Exception as error:
            raise _refusal("cannot read the store", error) from error

    def scan(self, family: str, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield committed pairs from `begin` up to but without `end`: a seek (about 20 µs), then 1 µs each."""
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        iterator = self._families[family].iter(options)
        iterator.seek(begin)
        while iterator.valid():
            yield iterator.key(), iterator.value()
            iterator.next()
        with refusals("cannot read the store"):
            iterator.status()  # A block that cannot be read ends the iteration as the last key does.

    def commit(self, epoch: int, ranges: Sequence[Range], changes: Mapping[int, Mapping[bytes, bytes | None]]) -> int:
        """Make an epoch durable and return the number of its chunks. Blocks for one fsync, off the GIL.

        Raises:
            OSError: the disk refuses. Write nothing more then; the next opening tells which epoch was the last.
        """
        chunks: list[Chunk] = []
        with refusals("cannot commit"):
            for chunk in _chunks(ranges, changes):
                self._wait_for_background()
                self._put_meta(_redo_key(epoch, len(chunks)), _encoder.encode(chunk))
                chunks.append(chunk)
                give_way()
            self._put_meta(COMMITTED, _encoder.encode(Committed(epoch, len(chunks))))
            self._db.flush_wal(True)
        self.epoch = epoch
        self._to_apply = epoch, chunks
        return len(chunks)

    def apply(self, epoch: int) -> None:
        """Bring the epoch that was just committed to its families, giving way to the loop between slices.

        Raises:
            OSError: the disk refuses. The epoch is committed all the same, and applied when the store is next opened.
        """
        committed, chunks = self._to_apply
        assert committed == epoch, "only what was just committed can be applied"
        self._to_apply = epoch, []
        with refusals("cannot apply a commit"):
            for chunk in chunks:
                self._wait_for_background()
                self._db.write(self._batch(chunk))
                give_way()
            self._forget_redo(epoch, len(chunks))

    def checkpoint(self, path: Path) -> None:
        """Make a consistent copy by hard links. Milliseconds; holds the GIL (27 ms measured)."""
        Checkpoint(self._db).create_checkpoint(str(path))

    def check(self) -> int:
        """Read everything, and every key once more by itself, so that each block and filter is compared with its
        checksum; return how many keys there are. Blocks: about 3 µs a key.

        Raises:
            DamagedStoreError: something is not what was written.
        """
        keys = 0
        for family in FAMILIES:
            pairs = self.scan(family, b"", LAST)
            while part := [key for key, _ in islice(pairs, SLICE_OPERATIONS_MAX)]:
                self.get_many(family, part)
                keys += len(part)
        return keys

    def close(self) -> None:
        """Flush and let go. Whatever was committed is safe without it."""
        # A disk that refused a commit refuses this too, and that was the error to hear of.
        if self._writable:
            with suppress(Exception):
                self._db.flush_wal(True)
        self._handles.clear()
        for family in self._families.values():
            with suppress(Exception):
                family.close()
        self._families.clear()
        del self._meta
        with suppress(Exception):
            self._db.close()
        self._undo.close()

    def _recover(self) -> int:
        word = self._meta.get(COMMITTED)
        committed = msgspec.msgpack.decode(word, type=Committed) if word is not None else Committed(0, 0)
        if word is not None and self._meta.get(APPLIED) != word:
            if not self._writable:
                raise OSError(errno.EROFS, "its last commit has to be finished first, and it cannot be written")
            for number in range(committed.chunks):
                chunk = self._meta.get(_redo_key(committed.epoch, number))
                if chunk is None:
                    raise DamagedStoreError(errno.EIO, "part of the last commit is missing")
                self._db.write(self._batch(_chunk_decoder.decode(chunk)))
            self._forget_redo(committed.epoch, committed.chunks)
        for key in [key for key, _ in self.scan("meta", *under(REDO))] if self._writable else ():
            self._meta.delete(key)  # Half a redo record: an epoch that never was.
        return committed.epoch

    def _wait_for_background(self) -> None:
        """Let flushes and compaction catch up, here and now: a write that RocksDB itself holds back holds the
        interpreter lock for as long, and with it the loop (measured: 3 s).
        """
        waited_s = 0.0
        while waited_s < BACKGROUND_WAIT_S_MAX and any(self._lags(family) for family in self._families.values()):
            pause(BACKGROUND_WAIT_S)
            waited_s += BACKGROUND_WAIT_S

    def _lags(self, family: Rdict) -> bool:
        flushing = family.property_int_value("rocksdb.num-immutable-mem-table") or 0
        files = family.property_value("rocksdb.num-files-at-level0") or "0"
        return flushing > FLUSHING_MAX or int(files) > LEVEL0_FILES_MAX

    def _forget_redo(self, epoch: int, chunks: int) -> None:
        batch = WriteBatch(raw_mode=True)
        meta = self._handles[FAMILIES.index("meta")]
        for number in range(chunks):
            batch.delete(_redo_key(epoch, number), meta)
        batch.put(APPLIED, _encoder.encode(Committed(epoch, chunks)), meta)
        self._db.write(batch)

    def _put_meta(self, key: bytes, value: bytes) -> None:
        self._meta.put(key, value)

    def _batch(self, chunk: Chunk) -> WriteBatch:
        batch = WriteBatch(raw_mode=True)
        for family, begin, end in chunk.ranges:
            batch.delete_range(begin, end, self._handles[family])
        put, delete = batch.put, batch.delete
        for family, keys, values in chunk.operations:
            handle = self._handles[family]
            for key, value in zip(keys, values, strict=True):
                if value is None:
                    delete(key, handle)
                else:
                    put(key, value, handle)
        return batch


def _chunks(ranges: Sequence[Range], changes: Mapping[int, Mapping[bytes, bytes | None]]) -> Iterator[Chunk]:
    """Cut an epoch into parts that each hold up the loop for a moment only. About 0.1 µs an operation."""
    first = list(ranges)
    operations: list[Operations] = []
    count = size = 0
    for family, changed in changes.items():
        for keys, values, part_bytes in _parts(changed):
            if operations and size + part_bytes > SLICE_BYTES_MAX:
                yield Chunk(first, operations)
                first, operations, count, size = [], [], 0, 0
            operations.append((family, keys, values))
            count += len(keys)
            size += part_bytes
            if count >= SLICE_OPERATIONS_MAX or size >= SLICE_BYTES_MAX:
                yield Chunk(first, operations)
                first, operations, count, size = [], [], 0, 0
    if operations or first:
        yield Chunk(first, operations)


def _parts(changed: Mapping[bytes, bytes | None]) -> Iterator[tuple[list[bytes], list[bytes | None], int]]:
    """Yield keys, values, and how many bytes the values are; large values come alone."""
    pairs = iter(changed.items())
    while part := list(islice(pairs, PART_OPERATIONS_MAX)):
        keys, values = [key for key, _ in part], [value for _, value in part]
        size = sum([len(value) for value in values if value is not None])
        if size <= PART_BYTES_MAX:
            yield keys, values, size
            continue
        for key, value in part:
            yield [key], [value], len(value) if value is not None else 0


@contextmanager
def _linked(path: Path) -> Iterator[Path]:
    """Give a folder with the same files by other names: rocksdict writes one of its own also where it only reads."""
    with tempfile.TemporaryDirectory(prefix="gossamer-store-") as name:
        for file in path.iterdir():
            if file.name == "rocksdict-config.json":
                shutil.copyfile(file, Path(name, file.name))
            elif file.name not in {"LOCK", "LOG"}:
                Path(name, file.name).symlink_to(file.absolute())
        yield Path(name)


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Make of what RocksDB reports an OSError that says what could not be done."""
    try:
        yield
    except (AssertionError, OSError):
        raise
    except Exception as error:
        raise _refusal(what, error) from error


def _refusal(what: str, error: Exception) -> OSError:
    # rocksdict raises bare Exception for all that RocksDB reports: only its words tell a full disk.
    said = " ".join(str(error).partition(" The file ")[0].split())
    number = next((number for number in NO_ROOM if os.strerror(number) in said), errno.EIO)
    is_damaged = number == errno.EIO and any(word in said for word in _UNREADABLE)
    return (DamagedStoreError if is_damaged else OSError)(number, f"{what}: {said}")


def _redo_key(epoch: int, number: int) -> bytes:
    return REDO + epoch.to_bytes(8) + number.to_bytes(4)


def _options(cache: Cache, write_buffer_bytes: int) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_db_write_buffer_size(write_buffer_bytes)
    options.set_write_buffer_size(max(1 << 20, write_buffer_bytes // 4))
    options.set_max_total_wal_size(4 * write_buffer_bytes)
    options.set_max_open_files(512)
    options.set_max_background_jobs(2)
    # RocksDB is never to hold back a write by itself: see `_wait_for_background`.
    options.set_max_write_buffer_number(FLUSHING_MAX + 6)
    options.set_level_zero_slowdown_writes_trigger(1 << 20)
    options.set_level_zero_stop_writes_trigger(1 << 20)
    options.set_soft_pending_compaction_bytes_limit(0)
    options.set_hard_pending_compaction_bytes_limit(0)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(4 << 20)
    options.set_compression_type(DBCompressionType.lz4())
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_bloom_filter(10, False)
    # In parts: a whole filter is megabytes, and a cache too small for all of them would read one a question. Parts of
    # 4 KiB make a question a quarter dearer: there are more of them to find the right one in.
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_metadata_block_size(16 << 10)
    table.set_pin_top_level_index_and_filter(True)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_format_version(5)
    options.set_block_based_table_factory(table)
    return options


def store_options(cache_bytes: int, write_buffer_bytes: int) -> Options:
    """Return options of a small store of one family that is asked by key."""
    return _options(Cache(cache_bytes), write_buffer_bytes)
