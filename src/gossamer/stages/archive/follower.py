"""Followers: process finished journals while a crawl goes on: checksums, Parquet, and the index of pages.

The steps and why a crash between any two does no harm: the Parquet file is written aside, synced and renamed; then
it is entered in the manifest and the log leaves it, both with the next commit; then the log is removed. Until that
commit the log counts, and making its Parquet file again gives the same file under the same name.
"""

from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.model.errors import DamagedError
from gossamer.stages.archive.archive import FollowerTask, Following
from gossamer.stages.archive.logs import batches, schemas
from gossamer.stages.archive.schema import ITEMS, TABLES, fit_batch, unify_schemas
from gossamer.stages.archive.segments import remove_strays, table_of
from gossamer.stages.archive.tables import LOG_FOLDER, LOG_SUFFIX
from gossamer.state.journals import Journals
from gossamer.state.sums import Sums, sums_of
from gossamer.world.files import make_directory, publish


class Sealer(Following):
    """Follower of finished files that have no SHA-256 yet."""

    def __init__(self, journals: Journals) -> None:
        self._journals = journals
        self._elsewhere: set[str] = set()

    def next(self) -> FollowerTask | None:
        """Return the task for the oldest such file on this disk, or None."""
        entry = self._journals.next_without_digest(self._elsewhere)
        if entry is None:
            return None
        make = partial(seal, self._journals.path(entry.name), entry.crc)
        return FollowerTask(make, partial(self._enter, entry.name), frees_disk=False)

    def _enter(self, name: str, digest: str) -> None:
        if digest:
            self._journals.record_digest(name, digest)
        else:
            self._elsewhere.add(name)


def seal(path: Path, crc: int) -> str:
    """Return the SHA-256 of a finished file in hexadecimal; empty if it is missing. Blocks.

    An upload may have removed it meanwhile, and the files of a shard that moved stay on its previous machine. Raises
    DamagedError: the file holds other bytes than were written, by their checksum `crc`; OSError: the file cannot be
    read.
    """
    try:
        sums = sums_of(path)
    except FileNotFoundError:
        return ""
    if sums.crc != crc:
        raise DamagedError(
            f"{path} does not hold what was written into it (its CRC-32 differs): check the disk, put a "
            "sound copy in its place, then resume"
        )
    return sums.sha256


ROW_GROUP_ROWS_MAX = 100_000
GROUP_BYTES_MAX = 12 << 20
"""Size of a row group's rows in memory: pages with long titles make smaller groups."""


class Follower(Following):
    """Makes Parquet files of finished logs."""

    def __init__(self, journals: Journals, group_bytes_max: int = GROUP_BYTES_MAX) -> None:
        self._journals = journals
        self._group_bytes_max = group_bytes_max

    def next(self) -> FollowerTask | None:
        """Return the task for the oldest finished log, or None; it puts the Parquet file in the log's place."""
        for entry in self._journals.finals(LOG_FOLDER):
            stem = entry.name.removeprefix(LOG_FOLDER).removesuffix(LOG_SUFFIX)
            parquet = f"{table_of(stem)}/{stem}.parquet"
            path = self._journals.path
            make = partial(make_parquet, path(entry.name), path(parquet), group_bytes_max=self._group_bytes_max)
            return FollowerTask(make, partial(self._replace, entry.name, parquet))
        return None

    def _replace(self, log: str, parquet: str, sums: Sums) -> None:
        self._journals.adopt(parquet, sums)
        self._journals.drop(log)

    def finish(self) -> int:
        """Convert all finished logs to Parquet and return their number. Blocks; nothing else may run."""
        made = 0
        while task := self.next():
            task.settle(task.make())
            made += 1
        return made

    def sweep(self) -> None:
        """Remove files left by a crash: half-written Parquet files, and logs that the manifest no longer has."""
        journals = self._journals
        for folder in ("*", f"{ITEMS}*"):
            for stray in journals.directory.glob(f"{folder}/.{journals.stray}.parquet.tmp"):
                stray.unlink()
        remove_strays(journals, LOG_FOLDER, LOG_SUFFIX)


def make_parquet(log: Path, target: Path, length: int | None = None, *, group_bytes_max: int = GROUP_BYTES_MAX) -> Sums:
    """Turn one log, or its first bytes, into one Parquet file and return its size and checksums; the same log gives
    the same file.

    It has the columns of all frames together, so modules may be added or removed within the log. In memory: one frame
    and, three times, one group of `ROW_GROUP_ROWS_MAX` rows or `group_bytes_max`. Costs about 1 µs a row. Blocks.
    Raises BrokenFrameError: the log is damaged; OSError: the disk is full; nothing has changed.
    """
    make_directory(target.parent)
    temporary = target.with_name(f".{target.name}.tmp")
    schema = unify_schemas(schemas(log, length), TABLES.get(target.parent.name))
    with pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer:
        waiting: list[pa.RecordBatch] = []
        rows = held_bytes = 0
        for batch in batches(log, length):
            waiting.append(fit_batch(batch, schema))
            rows += batch.num_rows
            held_bytes += batch.nbytes
            if rows >= ROW_GROUP_ROWS_MAX or held_bytes >= group_bytes_max:
                _write_group(writer, waiting, schema)
                waiting = []
                rows = 0
                held_bytes = 0
        _write_group(writer, waiting, schema)
    sums = sums_of(temporary)
    publish(temporary, target)
    return sums


def _write_group(writer: pq.ParquetWriter, waiting: list[pa.RecordBatch], schema: pa.Schema) -> None:
    if waiting:
        table = pa.Table.from_batches(waiting, schema).unify_dictionaries().combine_chunks()
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS_MAX)
