"""Store: one RocksDB per shard, in families, and one for facts about hosts that outlive a crawl. `redo` describes how
an epoch becomes durable.

Every key of every family begins with two bytes of partition, so that partitions can move between shards.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path

from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    BottommostLevelCompaction,
    Cache,
    Checkpoint,
    ColumnFamily,
    CompactOptions,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
)

from gossamer.state.redo import LINKS, SLICE_OPERATIONS_MAX, Chunk, Redo, refusal, refusals
from gossamer.state.schema import FAMILIES, HOSTS_VERSION, LAST
from gossamer.world.clock import give_way, pause
from gossamer.world.files import require_there

ASKED_BY_KEY = ("seen", "host", "queue", "content", "page", "account")
"""Families with point reads."""
KEPT_LONG = ("content", "page", "scope", "trap")
"""Families that are written once and rarely read, compressed with zstd. The others are rewritten and read often: for
them lz4 takes about half the time in reads and compaction, and between 14 % (`seen`) and 70 % (`queue`) more disk.
"""
REWRITTEN = ("queue", "host")
"""Families with puts and deletes all over their range: a compaction of level 0 rewrites nearly the whole next."""
LEVEL0_FILES = 8
"""Of those families before a compaction: twice RocksDB's default, for half the work and four more filters a read."""
FLUSHING_MAX = 2
"""A commit waits while more full write buffers of a family wait to be flushed."""
LEVEL0_FILES_MAX = 24
"""A commit waits while more files wait for compaction."""
HOSTS_FORMAT = b"1"
HOSTS_WRITE_BUFFER_BYTES = 4 << 20
HOSTS_SLICE_ITEMS_MAX = 500
HOSTS_SLICE_BYTES_MAX = 512 << 10
"""Bytes of facts about hosts that are written before the event loop gets the interpreter again."""
BACKGROUND_WAIT_S = 0.005
BACKGROUND_WAIT_S_MAX = 60.0
_opened_by: dict[str, int] = {}
"""The process that opened a store first: RocksDB's threads are there, and a store in a fork of it would never close."""


class Store(Redo):
    """The committed state, in RocksDB."""

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

        Without `writable` the store is opened for reading, which needs that it was closed properly. With `strict` a
        damaged record of the write-ahead log is an error, except at the very end. Raises OSError: another process holds
        the store, the disk fails, or it is not `writable` and was not closed; RuntimeError: this process was forked
        from one that has opened a store.
        """
        if _opened_by.setdefault("pid", os.getpid()) != os.getpid():
            raise RuntimeError(
                "this process was forked from one that has opened a crawl, and lacks its threads: fork before that, or "
                'start processes otherwise, such as by multiprocessing.get_context("spawn")'
            )
        self._writable = writable
        self._undo = ExitStack()
        opening = f"cannot open the store {path}"
        if writable:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path = self._undo.enter_context(_link_files(path))
        self._current = path / "CURRENT"
        fresh = not self._current.exists()
        # One cache for all families: each uses as much as it needs.
        cache = Cache(cache_bytes)
        options = _options(cache, write_buffer_bytes)
        options.set_ratelimiter(background_bytes_s, 100_000, 10)
        if strict:
            options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
        families = {name: _options(cache, write_buffer_bytes) for name in FAMILIES}
        # Many lookups are for keys that do not exist (yet): the filter avoids the search in the memtable.
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
            raise refusal(opening, error) from error
        self._families = {name: self._db.get_column_family(name) for name in FAMILIES}
        self._handles: list[ColumnFamily] = [self._db.get_column_family_handle(name) for name in FAMILIES]
        with refusals(opening):
            super().__init__(path, fresh=fresh, writable=writable)

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return a committed value. About 1 µs when cached."""
        try:
            value: bytes | None = self._families[family].get(key)
        except Exception as error:
            raise refusal("cannot read the store", error) from error
        return value

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return committed values in the order of `keys`: one call, about 0.8 µs a key."""
        try:
            return list(self._families[family].get(list(keys)) or ())
        except Exception as error:
            raise refusal("cannot read the store", error) from error

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
            iterator.status()  # Iteration also ends silently at a block that cannot be read.

    def checkpoint(self, path: Path) -> None:
        """Make a consistent copy by hard links. Takes milliseconds (27 ms measured) and holds the GIL."""
        Checkpoint(self._db).create_checkpoint(str(path))

    def check(self) -> int:
        """Scan everything and look up every key, so that the checksum of each block and filter is verified; return the
        number of keys. Blocks: about 3 µs a key. Raises DamagedStoreError: a block or filter does not match its
        checksum.
        """
        keys = 0
        for family in FAMILIES:
            pairs = self.scan(family, b"", LAST)
            while part := [key for key, _ in islice(pairs, SLICE_OPERATIONS_MAX)]:
                self.get_many(family, part)
                keys += len(part)
        return keys

    def purge(self) -> None:
        """Rewrite all files without deleted and replaced values, so that neither tables nor the write-ahead log hold
        any of them. Blocks: reads and writes the whole store. Raises OSError: the disk refuses. Call it again.
        """
        with refusals("cannot compact the store"):
            self._db.flush_wal(True)
            for family in self._families.values():
                family.flush(True)
            options = CompactOptions()
            options.set_bottommost_level_compaction(BottommostLevelCompaction.force())
            for family in self._families.values():
                family.compact_range(None, None, options)

    def close(self) -> None:
        """Flush and close. Committed data is safe without it."""
        # If the disk refused a commit, it refuses this too; the first error is the one to report.
        if self._writable:
            with suppress(Exception):
                self._db.flush_wal(True)
        self._handles.clear()
        for family in self._families.values():
            with suppress(Exception):
                family.close()
        self._families.clear()
        with suppress(Exception):
            self._db.close()
        self._undo.close()

    def _wait_for_background(self) -> None:
        """Let compaction catch up: a write that RocksDB stalls holds the interpreter lock (measured: 3 s)."""
        waited_s = 0.0
        while waited_s < BACKGROUND_WAIT_S_MAX and any(self._lags(family) for family in self._families.values()):
            pause(BACKGROUND_WAIT_S)
            waited_s += BACKGROUND_WAIT_S

    def _lags(self, family: Rdict) -> bool:
        flushing = family.property_int_value("rocksdb.num-immutable-mem-table") or 0
        files = family.property_value("rocksdb.num-files-at-level0") or "0"
        return flushing > FLUSHING_MAX or int(files) > LEVEL0_FILES_MAX

    def _write(self, chunk: Chunk) -> None:
        batch = WriteBatch(raw_mode=True)
        for family, begin, end in chunk.ranges:
            batch.delete_range(begin, end, self._handles[family])
        put = batch.put
        delete = batch.delete
        for family, keys, values in chunk.operations:
            handle = self._handles[family]
            for key, value in zip(keys, values, strict=True):
                if value is None:
                    delete(key, handle)
                else:
                    put(key, value, handle)
        self._db.write(batch)

    def _sync(self) -> None:
        self._db.flush_wal(True)
        require_there(self._current)


@contextmanager
def _link_files(path: Path) -> Iterator[Path]:
    """Yield a folder with symbolic links to the same files: rocksdict writes into a folder even if it only reads."""
    with tempfile.TemporaryDirectory(prefix=LINKS) as name:
        for file in path.iterdir():
            if file.name == "rocksdict-config.json":
                shutil.copyfile(file, Path(name, file.name))
            elif file.name not in {"LOCK", "LOG"}:
                Path(name, file.name).symlink_to(file.absolute())
        yield Path(name)


def _options(cache: Cache, write_buffer_bytes: int) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_db_write_buffer_size(write_buffer_bytes)
    options.set_write_buffer_size(max(1 << 20, write_buffer_bytes // 4))
    options.set_max_total_wal_size(4 * write_buffer_bytes)
    options.set_max_open_files(512)
    options.set_max_background_jobs(2)
    # RocksDB must never stall a write by itself: see `_wait_for_background`.
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
    # Partitioned filters: a whole filter takes megabytes, and a cache too small for all filters would load one per
    # read. Partitions of 4 KiB make a read a quarter slower, since the index of partitions is larger.
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
    """Return options of a small store of one family with point reads."""
    return _options(Cache(cache_bytes), write_buffer_bytes)


class OtherVersionError(Exception):
    """The store was written in another format; the message says which."""


class HostsStore:
    """Facts about hosts, kept from crawl to crawl, and their pending changes. Keys begin with the partition of their
    site. Read on the loop; call `write` from one thread at a time.

    The facts are about the web, not about a crawl: they stay true if the epoch in which they were learned is lost. So
    the commit's thread writes them before the commit, without a sync: writes survive a killed process, and after a
    power cut every host waits its longest delay (`Contacts`). Only one crawl at a time uses the store.
    """

    def __init__(self, directory: Path, cache_bytes: int = 8 << 20) -> None:
        """Open or make the store in `directory`, whose lock the caller holds. Raises OSError: the store cannot be
        opened; OtherVersionError: the store has another format.
        """
        path = directory / "store"
        with refusals(f"cannot open the hosts store {directory}"):
            path.mkdir(parents=True, exist_ok=True)
            options = store_options(cache_bytes, HOSTS_WRITE_BUFFER_BYTES)
            self._db = Rdict(str(path), options, access_type=AccessType.read_write())
            found = self._db.get(HOSTS_VERSION)
        self.is_new = found is None
        """Whether no crawl has used the store before."""
        if found is None:
            self._db.put(HOSTS_VERSION, HOSTS_FORMAT)
        elif found != HOSTS_FORMAT:
            self._db.close()
            raise OtherVersionError(found.decode("ascii", "replace"))
        self._open: dict[bytes, bytes] = {}
        self._closing: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return the newest value: 1 to 3 µs."""
        value = self._open.get(key) or self._closing.get(key)
        if value is not None:
            return value
        stored: bytes | None = self._db.get(key)
        return stored

    def put(self, key: bytes, value: bytes) -> None:
        """Put a value; the next `cut` includes it."""
        self._open[key] = value

    def cut(self) -> None:
        """Close the set of pending changes: the next `write` writes them."""
        assert not self._closing, "what was cut before is not settled"
        self._closing = self._open
        self._open = {}

    def write(self) -> None:
        """Write the changes that were cut, durably. For the commit's thread. Raises OSError: the disk refuses."""
        batch = WriteBatch(raw_mode=True)
        items = 0
        size = 0
        with refusals("cannot write to the hosts store"):
            for key, value in self._closing.items():
                batch.put(key, value)
                items += 1
                size += len(value)
                if items >= HOSTS_SLICE_ITEMS_MAX or size >= HOSTS_SLICE_BYTES_MAX:
                    self._db.write(batch)
                    give_way()
                    batch = WriteBatch(raw_mode=True)
                    items = 0
                    size = 0
            if items:
                self._db.write(batch)

    def settle(self) -> None:
        """Drop the changes that were written: the store has them."""
        self._closing = {}

    def close(self) -> None:
        """Write the remaining changes, sync, and close."""
        try:
            self.write()
            self.settle()
            self.cut()
            self.write()
            with refusals("cannot sync the hosts store"):
                self._db.flush_wal(True)
        finally:
            self._db.close()
