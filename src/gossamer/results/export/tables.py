"""Tables: as Parquet, sorted by host, so that a question about one reads little; as JSON lines or CSV (RFC 4180)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.model.decodable import decodable
from gossamer.results.export.sorting import SortedRun, Sorter
from gossamer.results.export.source import RowSource
from gossamer.results.export.work import CHECKPOINT_BYTES, ExportFolder
from gossamer.stages.archive.segments import stem_of
from gossamer.world.files import AppendFile, sync_file

ROW_GROUP_ROWS_MAX = 50_000
ROW_GROUP_BYTES_MAX = 16_000_000
FILE_ROWS_MAX = 5_000_000
FILE_BYTES_MAX = 256_000_000
FROM_HOST = "from_host"
"""Column that is added to `links`: the host of `from_url`, by which the table is sorted."""
_KEYS = {"pages": ("host", "url", "fetched_at"), "links": (FROM_HOST, "from_url")}
_HOST = r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^:/?#]*)"

Advance = Callable[[int], None]
"""Called with the rows read so far, of the current table."""


@decodable
class ParquetProgress(msgspec.Struct):
    """Progress of a table: rows read into runs, then rows of each run in finished files."""

    table: str = ""
    position: int = 0
    runs: list[SortedRun] = []
    consumed: list[int] = []
    files: int = 0
    done: list[str] = []
    """Tables that are finished."""


def export_parquet(work: ExportFolder, table: str, source: RowSource, memory_bytes_max: int, advance: Advance) -> int:
    """Write one table as `out/TABLE/TABLE-000001.parquet` and so on; return its rows. Goes on where it stopped.

    Costs about 3 µs a row of `links` and 15 µs a row of `pages`; memory is bounded by `memory_bytes_max`. Raises
    OSError: the disk is full; what was done stays done.
    """
    step = work.step(ParquetProgress)
    folder = work.out / table
    if table in step.done:
        return _rows_within(folder)
    if step.table != table:
        step = ParquetProgress(table, done=step.done)
    folder.mkdir(parents=True, exist_ok=True)
    sorter = Sorter(work.folder / f"runs-{stem_of(table)}", keys_of(table, source.schema), memory_bytes_max, step.runs)
    if not step.consumed:
        _sort(work, step, sorter, source, advance)
    schema = source.schema
    if table == "links" and FROM_HOST not in schema.names:
        schema = schema.insert(0, pa.field(FROM_HOST, pa.dictionary(pa.int32(), pa.string())))
    _merge(work, step, sorter, folder, schema, memory_bytes_max)
    work.save(ParquetProgress(done=[*step.done, table]))
    sorter.runs = []
    sorter.sweep()
    return _rows_within(folder)


def _rows_within(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.iterdir())


def keys_of(table: str, schema: pa.Schema) -> list[str]:
    """Return the columns by which a table is sorted; the first column if there is no host."""
    known = [name for name in _KEYS.get(table, ("host", "url")) if name in schema.names or name == FROM_HOST]
    return known or schema.names[:1]


def hosts_of(urls: pa.Array) -> pa.Array:
    """Return the host of each address, without port, as `pages` has it."""
    return pc.struct_field(pc.extract_regex(pc.cast(urls, pa.string()), _HOST), "host")


def _sort(work: ExportFolder, step: ParquetProgress, sorter: Sorter, source: RowSource, advance: Advance) -> None:
    def spill(*, is_last: bool = False) -> None:
        sorter.spill()
        if is_last:
            step.consumed = [0] * len(sorter.runs)
        step.position = position
        step.runs = sorter.runs
        work.save(step)
        sorter.sweep()

    position = step.position
    for position, batch in source.batches(step.position):
        if step.table == "links":
            batch = batch.add_column(0, FROM_HOST, hosts_of(batch["from_url"]))
        if sorter.add(batch):
            spill()
        advance(position)
    spill(is_last=True)


def _merge(
    work: ExportFolder, step: ParquetProgress, sorter: Sorter, folder: Path, schema: pa.Schema, bytes_max: int
) -> None:
    if not step.runs:  # A table without rows has its columns nevertheless.
        _write_file(folder / f"{stem_of(step.table)}-000001.parquet", schema, iter(()))
        return
    merged = sorter.merge(step.consumed)
    group_bytes = min(ROW_GROUP_BYTES_MAX, bytes_max // 8)
    waiting = next(merged, None)
    while waiting is not None:
        target = folder / f"{stem_of(step.table)}-{step.files + 1:06d}.parquet"
        written = _Filled(waiting, merged)
        _write_file(target, schema, _groups(written, group_bytes))
        waiting = written.following
        step.files += 1
        step.consumed = written.consumed
        work.save(step)


class _Filled:
    """The merged tables that go into one file."""

    def __init__(self, first: tuple[pa.Table, list[int]], rest: Iterator[tuple[pa.Table, list[int]]]) -> None:
        self.following: tuple[pa.Table, list[int]] | None = first
        self.consumed = first[1]
        self._rest = rest

    def __iter__(self) -> Iterator[pa.Table]:
        rows = size = 0
        while self.following is not None and rows < FILE_ROWS_MAX and size < FILE_BYTES_MAX:
            table, self.consumed = self.following
            rows += table.num_rows
            size += table.nbytes // _PACKED
            yield table
            self.following = next(self._rest, None)


_PACKED = 4
"""Parquet with zstd takes about a quarter of what the rows take in memory."""


def _groups(tables: Iterator[pa.Table] | _Filled, bytes_max: int) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        at = 0
        while at < table.num_rows:
            room = ROW_GROUP_ROWS_MAX - rows
            part = table.slice(at, room)
            held.append(part)
            at += part.num_rows
            rows += part.num_rows
            size += part.nbytes
            if rows >= ROW_GROUP_ROWS_MAX or size >= bytes_max:
                yield pa.concat_tables(held)
                held = []
                rows = 0
                size = 0
    if held:
        yield pa.concat_tables(held)


def _write_file(target: Path, schema: pa.Schema, groups: Iterator[pa.Table]) -> None:
    """Write one file; it is valid once the state records it."""
    with pq.ParquetWriter(target, schema, compression="zstd", write_page_checksum=True) as writer:
        for group in groups:
            writer.write_table(group.cast(schema), row_group_size=ROW_GROUP_ROWS_MAX)
    sync_file(target)


class LinesProgress(msgspec.Struct):
    """Progress of a file of lines: rows read, bytes on disk, rows written."""

    position: int = 0
    length: int = 0
    rows: int = 0


def _json_lines(batch: pa.RecordBatch) -> bytes:
    """One object a row, in UTF-8; times are text as `2026-01-01T00:00:00.250000Z`. About 10 µs a row of `pages`."""
    names = batch.schema.names
    encode = msgspec.json.encode
    rows = zip(*map(_values, batch.columns), strict=True)
    return b"".join([encode(dict(zip(names, row, strict=True))) + b"\n" for row in rows])


def export_rows(work: ExportFolder, to: str, source: RowSource, advance: Advance) -> int:
    """Write the table, at most as many rows as the order says; return its rows. In memory: one batch. Raises OSError:
    the disk is full.
    """
    step = work.step(LinesProgress)
    with closing(AppendFile(work.text, step.length)) as file:
        for data in _pieces(to, source, step, work.order.limit):
            file.write(data)
            step.length += len(data)
            if file.unsynced_bytes >= CHECKPOINT_BYTES:
                file.sync()
                work.save(step)
            advance(step.position)
        file.sync()
        work.save(step)
    return step.rows


def stream_rows(out: BinaryIO, to: str, source: RowSource, limit: int) -> int:
    """Write the table to a stream, at most `limit` rows (0: all); return its rows."""
    step = LinesProgress()
    out.writelines(_pieces(to, source, step, limit))
    out.flush()
    return step.rows


def _pieces(to: str, source: RowSource, step: LinesProgress, limit: int) -> Iterator[bytes]:
    """Yield the file from where `step` says, which goes on with it."""
    if not step.position:
        yield _records([source.schema.names]) if to == "csv" else b""
    for position, found in source.batches(step.position):
        batch = found.slice(0, limit - step.rows) if limit else found
        step.position = position
        step.rows += batch.num_rows
        yield FORMS[to](batch)
        if 0 < limit <= step.rows:
            return


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ")
    elif pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values: list[Any] = column.to_pylist()
    return values


def _csv_rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    columns = []
    for column in batch.columns:
        values = _values(column)
        if pa.types.is_boolean(column.type):
            values = [None if value is None else str(value).lower() for value in values]
        elif pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            values = [None if value is None else msgspec.json.encode(value).decode() for value in values]
        columns.append(values)
    return zip(*columns, strict=True)


def _records(rows: Any) -> bytes:
    """Return records (RFC 4180): CRLF, quotes where they are needed, null as nothing. Values are as they were found."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


FORMS: dict[str, Callable[[pa.RecordBatch], bytes]] = {
    "jsonl": _json_lines, "csv": lambda batch: _records(_csv_rows(batch)),
}  # fmt: skip
"""Ways to write the rows of a batch."""
