"""Source: the rows of a table as one stream from any files, and the database that reads them in bounded memory."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.model.errors import ConfigError, DamagedError
from gossamer.options import nearest
from gossamer.results.export.work import ExportPiece
from gossamer.stages.archive.schema import ITEMS, TABLES, column_of, fit_batch, unify_schemas
from gossamer.state.sums import crc_of

BATCH_ROWS = 8_192
READ_BYTES = 1 << 20
"""Bytes of each column's compressed data that are read at once."""
_CONDITION_BYTES_MAX = 64_000_000
_MISSING = re.compile(r'Binder Error: Referenced column "([^"]*)" not found').match


def open_database(
    memory_bytes_max: int, spilled: Path | None, file: str = ":memory:", **settings: bool | int | str
) -> duckdb.DuckDBPyConnection:
    """Return an empty database, or that of a file. It writes to `spilled`, if given, what memory cannot hold."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory_bytes_max}B",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        **settings,
    }
    if spilled is not None:
        config["temp_directory"] = str(spilled)
    return duckdb.connect(file, config=config)


def quote(name: str) -> str:
    """Return a name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: object) -> str:
    """Return a text, a path or a list of them as SQL."""
    if isinstance(text, list):
        return "[" + ", ".join(map(literal, text)) + "]"
    return "'" + str(text).replace("'", "''") + "'"


def pieces_of(paths: Iterable[Path], recorded: Mapping[str, int | None] | None = None) -> list[ExportPiece]:
    """Return finished Parquet files of a table as pieces. `recorded` has the CRC-32 of each, by its name in the crawl's
    directory: a file is read once to compare it, about 0.1 ms a MB. Raises DamagedError: a file is not what was
    written.
    """
    found = []
    for path in paths:
        folder = path.parent
        table = f"{ITEMS}{folder.name}" if folder.parent.name + "/" == ITEMS else folder.name
        crc = (recorded or {}).get(f"{table}/{path.name}")
        if crc is not None and crc_of(path) != crc:
            raise damage_error(path)
        with naming(path):
            found.append(ExportPiece(str(path), path.stat().st_size, pq.read_metadata(path).num_rows, crc))
    return found


def open_view(
    database: duckdb.DuckDBPyConnection, name: str, pieces: Sequence[ExportPiece]
) -> duckdb.DuckDBPyRelation | None:
    """Return the rows of a table, which are the view `name` from now on; None, and no view, where there are none."""
    files = [piece.path for piece in pieces if piece.rows]
    if not files:
        return None
    rows = database.read_parquet(files, union_by_name=True)
    rows.create_view(name)
    return rows


def require_sound(pieces: Sequence[ExportPiece]) -> None:
    """Read those files of which no CRC-32 is recorded, and so was not compared: for readers that do not compare the
    checksums of pages, as DuckDB. About 0.3 µs a value. Raises DamagedError: one is not what was written.
    """
    for piece in pieces:
        if piece.crc is None:
            read_through(piece.path)


def read_through(path: Path | str) -> None:
    """Read all of a table's file, the checksums of its pages included. Raises DamagedError."""
    with naming(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        for _ in file.iter_batches(BATCH_ROWS):
            pass


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Return pyarrow's error about a damaged file as one line that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, ArithmeticError) as error:
        # Any of these, and an OSError without a number; those with one are the system's.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise damage_error(path) from error


def _sound(path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass batches on; name the file in errors about damage."""
    while True:
        with naming(path):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def damage_error(path: Path | str) -> DamagedError:
    """Return the error for a table's file that is damaged."""
    return DamagedError(f"{path} cannot be read: it was damaged, or not copied whole; put a sound copy in its place")


class RowSource:
    """Rows in the order of their files; a row's number in that order is a position to go on from."""

    def __init__(self, pieces: Sequence[ExportPiece], where: str = "", table: str = "") -> None:
        """Take files as they were found; `where` is an SQL condition over the columns. Where there are no files yet,
        the columns are those that `table` has. Raises ConfigError: a file has gone or has changed, or the condition is
        invalid.
        """
        self._pieces = list(pieces)
        for piece in self._pieces:
            path = Path(piece.path)
            if not path.exists() or path.stat().st_size != piece.length:
                raise ConfigError(
                    f"{path} changed since this export began; delete what the export wrote, then start it again"
                )
        first = TABLES.get(table) if not self._pieces else None
        self.schema = unify_schemas((_schema_of(piece.path) for piece in self._pieces), first)
        """All columns of all files, by name; where a file lacks one it is null."""
        self.rows = sum(piece.rows for piece in self._pieces)
        self._condition = Condition(where, self.schema) if where else None

    def batches(self, start: int = 0, columns: Sequence[str] | None = None) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows from a position on, each batch with the position behind it.

        A batch has `BATCH_ROWS` at most, and the same ones wherever it was begun.
        """
        if not self.rows:  # Without files there are no columns either.
            return
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        wanted = schema.names if self._condition is None else None
        at = 0
        for piece in self._pieces:
            if at + piece.rows <= start:
                at += piece.rows
                continue
            with naming(piece.path):
                opened = pq.ParquetFile(
                    piece.path, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True
                )
            with opened as file:
                for group in range(file.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    if at + rows <= start:
                        at += rows
                        continue
                    held = None if wanted is None else [name for name in wanted if name in file.schema_arrow.names]
                    for batch in _sound(piece.path, file.iter_batches(BATCH_ROWS, row_groups=[group], columns=held)):
                        at += batch.num_rows
                        if at > start:
                            yield at, self._filter(batch, schema)

    def _filter(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        if self._condition is not None:
            batch = batch.filter(self._condition.mask(fit_batch(batch, self.schema)))
        return fit_batch(batch, schema)


def _schema_of(path: str) -> pa.Schema:
    with naming(path):
        return pq.read_schema(path).remove_metadata()


class TableFiles:
    """Parquet files of some tables, written row group by row group. In memory: `rows_max` rows of each table."""

    def __init__(self, files: Mapping[str, tuple[Path, pa.Schema]], rows_max: int) -> None:
        self._schemas = {table: schema for table, (_, schema) in files.items()}
        self._writers = {
            table: pq.ParquetWriter(path, schema, compression="zstd") for table, (path, schema) in files.items()
        }
        self._held: dict[str, list[Sequence[Any]]] = {table: [] for table in files}
        self._rows_max = rows_max

    def add(self, table: str, row: Sequence[Any]) -> None:
        """Add a row, whose values are in the order of the columns."""
        held = self._held[table]
        held.append(row)
        if len(held) >= self._rows_max:
            self._write(table)

    def close(self) -> None:
        """Finish all files, also those without rows."""
        for table, writer in self._writers.items():
            self._write(table)
            writer.close()

    def _write(self, table: str) -> None:
        held = self._held[table]
        self._held[table] = []
        if held:
            columns = zip(zip(*held, strict=True), self._schemas[table], strict=True)
            arrays = [column_of(values, field.type) for values, field in columns]
            self._writers[table].write_batch(pa.record_batch(arrays, schema=self._schemas[table]))


class Condition:
    """An SQL condition over the rows of a table. It sees the rows and nothing else: no file, no network."""

    def __init__(self, sql: str, schema: pa.Schema) -> None:
        self._sql = sql
        # Without external access: a condition reads no files.
        self._database = open_database(_CONDITION_BYTES_MAX, None, enable_external_access=False, threads=1)
        self.mask(pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema))

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return for each row whether the condition is true; a row for which it is null is left out."""
        self._database.register("rows", pa.Table.from_batches([batch]))
        try:
            found = self._database.sql(f"SELECT coalesce(({self._sql}), false)::BOOLEAN AS wanted FROM rows")  # noqa: S608
            column = found.to_arrow_table()["wanted"].combine_chunks()
        except duckdb.Error as error:
            says = first_line(str(error))
            if missing := _MISSING(says):
                added = "columns that an export adds are in its files alone"
                says = f"no column {missing[1]}{nearest(missing[1], batch.schema.names, added)}"
            elif says.endswith('at or near ")"'):  # The condition stands between brackets.
                says = "it is not complete, or has a ) too many; write a condition such as status = 404"
            raise ConfigError(f"where {self._sql}: {says}") from error
        if len(column) != batch.num_rows:
            raise ConfigError(f"where {self._sql}: expected a condition on single rows, such as host = 'example.org'")
        return column


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's values, with or without a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def first_line(text: str) -> str:
    """Return a database's error in one line."""
    return " ".join(text.partition("\n\n")[0].split())
