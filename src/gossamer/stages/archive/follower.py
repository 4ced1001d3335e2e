"""Followers: process finished journals while a crawl goes on: checksums, Parquet, and the index of pages.

The steps and why a crash between any two does no harm: the Parquet file is written aside, synced and renamed; then
it is entered in the manifest and the log leaves it, both with the next commit; then the log is removed. Until that
commit the log counts, and making its Parquet file again gives the same file under the same name.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.model.errors import DamagedError
from gossamer.stages.archive.logs import batches, schemas, table_of
from gossamer.stages.archive.schema import ITEMS, TABLES, fit_batch, unify_schemas
from gossamer.stages.archive.tables import LOG_FOLDER, LOG_SUFFIX
from gossamer.state.journals import Journals, ManifestEntry
from gossamer.state.sums import Sums, sums_of
from gossamer.world.files import make_directory, publish


class Sealing(msgspec.Struct, frozen=True):
    """One finished file."""

    entry: ManifestEntry
    path: Path

    def make(self) -> str:
        """Return the SHA-256 in hexadecimal; empty if the file is missing. Blocks.

        An upload may have removed it meanwhile, and the files of a shard that moved stay on its previous machine.

        Raises:
            DamagedError: the file holds other bytes than were written.
            OSError: the file cannot be read.
        """
        try:
            sums = sums_of(self.path)
        except FileNotFoundError:
            return ""
        if self.entry.crc is not None and sums.crc != self.entry.crc:
            raise DamagedError(
                f"{self.path} does not hold what was written into it (its CRC-32 differs): check the disk, put a "
                "sound copy in its place, then resume"
            )
        return sums.sha256


class Sealer:
    """`archive.Following` for finished files that have no SHA-256 yet. All but `Sealing.make` runs on the loop."""

    frees_disk = False

    def __init__(self, journals: Journals) -> None:
        self._journals = journals
        self._elsewhere: set[str] = set()

    def next(self) -> Sealing | None:
        """Return the task for the oldest such file on this disk, or None. Call again after `settle`."""
        entry = self._journals.next_without_digest(self._elsewhere)
        return Sealing(entry, self._journals.path(entry.name)) if entry is not None else None

    def settle(self, sealing: Sealing, digest: str) -> None:
        """Enter the SHA-256; takes effect with the next commit."""
        if digest:
            self._journals.record_digest(sealing.entry.name, digest)
        else:
            self._elsewhere.add(sealing.entry.name)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


ROW_GROUP_ROWS_MAX = 100_000
GROUP_BYTES_MAX = 12 << 20
"""Size of a row group's rows in memory: pages with long titles make smaller groups."""


class Conversion(msgspec.Struct, frozen=True):
    """Conversion of one finished log to Parquet. Names are relative to the crawl's directory."""

    log: str
    parquet: str
    source: Path
    target: Path
    group_bytes_max: int = GROUP_BYTES_MAX

    def make(self) -> Sums:
        """Write the Parquet file and return its size and checksums. Blocks; for a thread.

        Raises:
            BrokenFrameError: the log is damaged.
            OSError: the disk is full; nothing has changed.
        """
        return make_parquet(self.source, self.target, group_bytes_max=self.group_bytes_max)


class Follower:
    """Chooses the next log, and enters the Parquet file. All but `Conversion.make` runs on the loop."""

    frees_disk = True

    def __init__(self, journals: Journals, group_bytes_max: int = GROUP_BYTES_MAX) -> None:
        self._journals = journals
        self._group_bytes_max = group_bytes_max

    def next(self) -> Conversion | None:
        """Return the task for the oldest finished log, or None. Call again after `settle`."""
        for entry in self._journals.finals(LOG_FOLDER):
            stem = entry.name.removeprefix(LOG_FOLDER).removesuffix(LOG_SUFFIX)
            parquet = f"{table_of(stem)}/{stem}.parquet"
            path = self._journals.path
            return Conversion(entry.name, parquet, path(entry.name), path(parquet), self._group_bytes_max)
        return None

    def settle(self, conversion: Conversion, sums: Sums) -> None:
        """Put the Parquet file in the log's place; takes effect with the next commit."""
        self._journals.adopt(conversion.parquet, sums)
        self._journals.drop(conversion.log)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def finish(self) -> int:
        """Convert all finished logs to Parquet and return their number. Blocks; nothing else may run."""
        made = 0
        while conversion := self.next():
            self.settle(conversion, conversion.make())
            made += 1
        return made

    def sweep(self) -> None:
        """Remove files left by a crash: half-written Parquet files, and logs that the manifest no longer has."""
        journals = self._journals
        for folder in ("*", f"{ITEMS}*"):
            for stray in journals.directory.glob(f"{folder}/.{journals.stray}.parquet.tmp"):
                stray.unlink()
        kept = {entry.name for entry in journals.finals(LOG_FOLDER)}
        for log in journals.path(LOG_FOLDER).glob(journals.stray + LOG_SUFFIX):
            if LOG_FOLDER + log.name not in kept:
                log.unlink()


def make_parquet(
    source: Path, target: Path, length: int | None = None, *, group_bytes_max: int = GROUP_BYTES_MAX
) -> Sums:
    """Turn one log, or its first bytes, into one Parquet file and return its size and checksums; the same log gives
    the same file.

    It has the columns of all frames together, so modules may be added or removed within the log. In memory: one frame
    and, three times, one group of `ROW_GROUP_ROWS_MAX` rows or `group_bytes_max`. Costs about 1 µs a row.
    """
    make_directory(target.parent)
    temporary = target.with_name(f".{target.name}.tmp")
    schema = unify_schemas(schemas(source, length), TABLES.get(target.parent.name))
    with pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer:
        waiting: list[pa.RecordBatch] = []
        rows = held_bytes = 0
        for batch in batches(source, length):
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
