"""Database: all tables of a crawl in one file of DuckDB or SQLite, with comments, indexes and views."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.model.decodable import decodable
from gossamer.results.export.source import RowSource, first_line, literal, open_database, plain, quote
from gossamer.results.export.tables import Advance
from gossamer.results.export.work import CHECKPOINT_BYTES, ExportFolder
from gossamer.stages.archive.schema import ITEMS, unify_schemas

FORMATS = ("duckdb", "sqlite")
KEPT = ("out.wal", "out-journal")
"""Names in the folder of an export that hold what a database has committed, or has to take back."""
_UNSIGNED = pa.uint64()
_PROGRESS = "export_progress"
"""Table with the position of each table, while the export is under way."""
_DISK_FULL = (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.TransactionException)
_COMPLETE = -1
"""Position of a table that has all its rows."""


class View(msgspec.Struct, frozen=True):
    """A view over the tables."""

    says: str
    sql: str
    columns: dict[str, str] = {}
    """Comments of its columns, but for those that are columns of a table."""


@decodable
class DatabaseNotes(msgspec.Struct, frozen=True):
    """Comments of tables and of their columns, and views by name."""

    tables: dict[str, str]
    columns: dict[str, dict[str, str]]
    views: dict[str, View]

    def comment(self, table: str, column: str | None = None) -> str:
        """Return the comment of a column, or of the table; empty for one that a module of others added."""
        kind = "items" if table.startswith(ITEMS) else table
        known = self.columns["modules"] | self.columns.get(kind, {})
        return self.tables.get(kind, "") if column is None else known.get(column, "")

    def comment_of_view(self, name: str, column: str) -> str:
        """Return the comment of a view's column: its own, or that of the table's column."""
        return self.views[name].columns.get(column) or self.comment("pages", column) or self.comment("links", column)


def read_notes() -> DatabaseNotes:
    """Return the comments and views of `database.toml`."""
    return msgspec.toml.decode(files(__package__).joinpath("database.toml").read_bytes(), type=DatabaseNotes)


def export_database(
    work: ExportFolder,
    to: str,
    sources: Mapping[str, RowSource],
    memory_bytes_max: int,
    advance: Callable[[str, int], Advance],
) -> dict[str, int]:
    """Write the tables into the file `out`, one after the other; return their rows. Goes on where it stopped: what was
    added and how far it came are one transaction. About 6 µs a row of `pages` in DuckDB, 25 µs in SQLite. Raises
    OSError: the disk is full; what was committed stays.
    """
    comments = read_notes()
    counts: dict[str, int] = {}
    with _open(work.out, to, memory_bytes_max) as database:
        database.run(f"CREATE TABLE IF NOT EXISTS {_PROGRESS} (name TEXT PRIMARY KEY, position BIGINT, columns TEXT)")
        for table, source in sources.items():
            if source.schema.names:  # A share may have no file of a module's table.
                _fill(database, table, source, comments, advance(table, source.rows))
                counts[table] = database.run(f"SELECT count(*) FROM {_name(table)}")[0][0]  # noqa: S608
        if work.order.share is None:
            _finish(database, {table: source.schema for table, source in sources.items()}, comments)
            database.run(f"DROP TABLE {_PROGRESS}")
    return counts


def join_databases(shares: Sequence[Path], target: Path, to: str, memory_bytes_max: int) -> None:
    """Write the tables of all shares' databases into that of the crawl. About 3 µs a row of `pages` in SQLite, 5 µs in
    DuckDB. Raises OSError: the disk is full.
    """
    for left in target.parent.glob(f"{target.name}*"):  # Of a call that was killed.
        left.unlink()
    comments = read_notes()
    with _open(target, to, memory_bytes_max) as database:
        found: dict[str, list[pa.Schema]] = {}
        for share in shares:
            for table, schema in _attach(database, share):
                found.setdefault(table, []).append(schema)
        schemas = {table: unify_schemas(held) for table, held in found.items()}
        for table, schema in schemas.items():
            database.make_table(table, schema, comments)
        for share in shares:
            for table, schema in _attach(database, share):
                names = ", ".join(map(quote, schema.names))
                database.run(f"INSERT INTO {_name(table)} ({names}) SELECT {names} FROM share.{_name(table)}")  # noqa: S608
        _finish(database, schemas, comments)
    shutil.rmtree(target.with_name("spilled"), ignore_errors=True)


@contextmanager
def _open(file: Path, to: str, memory_bytes_max: int) -> Iterator[Database]:
    """Open a database; a full disk becomes an OSError."""
    try:
        with closing(DuckDatabase(file, memory_bytes_max) if to == "duckdb" else SqliteDatabase(file)) as database:
            yield database
    except (*_DISK_FULL, sqlite3.OperationalError) as error:
        raise OSError(f"{file}: {first_line(str(error))}") from error


def _attach(database: Database, file: Path) -> Iterator[tuple[str, pa.Schema]]:
    """Yield the tables of the database of a share, which is attached as `share` until the next."""
    database.run(f"ATTACH {literal(file)} AS share")
    for table, columns in database.run(f"SELECT name, columns FROM share.{_PROGRESS}"):  # noqa: S608
        yield table, pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(columns)))
    database.run("DETACH share")


def _finish(database: Database, schemas: Mapping[str, pa.Schema], comments: DatabaseNotes) -> None:
    """Make indexes and views."""
    for table in schemas:
        for column in database.indexes.get(table, ()):
            database.run(f"CREATE INDEX IF NOT EXISTS {quote(f'{table}_{column}')} ON {_name(table)} ({quote(column)})")
    if {"pages", "links"} <= set(schemas):
        pages = ", ".join(map(quote, schemas["pages"].names))
        for name, view in comments.views.items():
            database.add_view(name, view.sql.format(pages=pages), comments)


def _fill(database: Database, table: str, source: RowSource, comments: DatabaseNotes, advance: Advance) -> None:
    """Write a table, from where an earlier call stopped."""
    noted = database.run(f"SELECT position FROM {_PROGRESS} WHERE name = {literal(table)}")  # noqa: S608
    if not noted:
        database.run("BEGIN")
        database.run(f"DROP TABLE IF EXISTS {_name(table)}")
        database.make_table(table, source.schema, comments)
        columns = source.schema.serialize().to_pybytes().hex()
        database.run(f"INSERT INTO {_PROGRESS} VALUES ({literal(table)}, 0, '{columns}')")  # noqa: S608
        database.run("COMMIT")
    held: list[pa.RecordBatch] = []
    start = noted[0][0] if noted else 0
    if start == _COMPLETE:
        return
    for position, batch in source.batches(start):
        held.append(batch)
        if sum(one.nbytes for one in held) >= CHECKPOINT_BYTES:
            _commit(database, table, held, position)
            held = []
        advance(position)
    _commit(database, table, held, _COMPLETE)


def _commit(database: Database, table: str, batches: Sequence[pa.RecordBatch], position: int) -> None:
    database.run("BEGIN")
    database.append(table, batches)
    database.run(f"UPDATE {_PROGRESS} SET position = {position} WHERE name = {literal(table)}")  # noqa: S608
    database.run("COMMIT")


def _name(table: str) -> str:
    """Return the name of a table as SQL: `items_NAME` for `items/NAME`."""
    return quote(table.replace("/", "_"))


class DuckDatabase:
    """A file of DuckDB, with comments on tables, columns and views."""

    indexes: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Columns that have an index, by table: DuckDB needs none."""

    def __init__(self, file: Path, memory_bytes_max: int) -> None:
        # DuckDB of other programs is older, and refuses files of newer formats.
        settings: dict[str, int | str] = {"threads": 2, "storage_compatibility_version": "v1.0.0"}
        self._database = open_database(memory_bytes_max, file.with_name("spilled"), str(file), **settings)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return self._database.execute(sql).fetchall()

    def make_table(self, table: str, schema: pa.Schema, comments: DatabaseNotes) -> None:
        """Make a table without rows."""
        name = _name(table)
        self._database.register("rows", _plain_schema(schema).empty_table())
        self.run(f"CREATE TABLE {name} AS FROM rows")
        self._database.unregister("rows")
        self.run(f"COMMENT ON TABLE {name} IS {literal(comments.comment(table))}")
        for column in schema.names:
            if says := comments.comment(table, column):
                self.run(f"COMMENT ON COLUMN {name}.{quote(column)} IS {literal(says)}")

    def append(self, table: str, batches: Sequence[pa.RecordBatch]) -> None:
        """Add rows to a table."""
        if batches:
            # The values of dictionaries differ from batch to batch.
            self._database.register("rows", pa.Table.from_batches(batches).cast(_plain_schema(batches[0].schema)))
            self.run(f"INSERT INTO {_name(table)} FROM rows")
            self._database.unregister("rows")

    def add_view(self, name: str, sql: str, comments: DatabaseNotes) -> None:
        """Make a view."""
        self.run(f"CREATE OR REPLACE VIEW {quote(name)} AS {sql}")
        self.run(f"COMMENT ON VIEW {quote(name)} IS {literal(comments.views[name].says)}")
        for column, *_ in self._database.execute(f"FROM {quote(name)} LIMIT 0").description or ():
            if says := comments.comment_of_view(name, column):
                self.run(f"COMMENT ON COLUMN {quote(name)}.{quote(column)} IS {literal(says)}")

    def close(self) -> None:
        self._database.close()


class SqliteDatabase:
    """A file of SQLite. Comments stand in the statements that made tables and views, which SQLite keeps.

    Times are text as in JSON lines, lists and records JSON, truth values 0 and 1, and `simhash` is signed.
    """

    indexes: ClassVar[Mapping[str, Sequence[str]]] = {"pages": ("key", "url", "host"), "links": ("from_url", "to_key")}

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file, isolation_level=None)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        return self._database.execute(sql).fetchall()

    def make_table(self, table: str, schema: pa.Schema, comments: DatabaseNotes) -> None:
        columns = {
            f"{quote(field.name)} {_sqlite_type(plain(field.type))}": comments.comment(table, field.name)
            for field in schema
        }
        self.run(f"CREATE TABLE {_name(table)} {_in_parentheses(columns, comments.comment(table))}")

    def append(self, table: str, batches: Sequence[pa.RecordBatch]) -> None:
        for batch in batches:
            places = ", ".join("?" * batch.num_columns)
            rows = zip(*map(_sqlite_values, batch.columns), strict=True)
            self._database.executemany(f"INSERT INTO {_name(table)} VALUES ({places})", rows)  # noqa: S608

    def add_view(self, name: str, sql: str, comments: DatabaseNotes) -> None:
        self.run(f"DROP VIEW IF EXISTS {quote(name)}")
        found = self._database.execute(f"SELECT * FROM ({sql}) LIMIT 0").description  # noqa: S608
        columns = {quote(column): comments.comment_of_view(name, column) for column, *_ in found}
        self.run(f"CREATE VIEW {quote(name)} {_in_parentheses(columns, comments.views[name].says)} AS\n{sql}")

    def close(self) -> None:
        self._database.close()


def _in_parentheses(columns: Mapping[str, str], comment: str) -> str:
    """Return columns for a statement, each on a line with its comment, below the comment of the whole."""
    last = [*columns][-1]
    lines = [f"  {name}{',' if name != last else ''} -- {says}".removesuffix(" -- ") for name, says in columns.items()]
    return "\n".join([f"( -- {comment}", *lines, ")"])


Database = DuckDatabase | SqliteDatabase
"""An open file, in which each table has its own position in the rows that are exported."""


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with times without zone, UTC: DuckDB shows others in the reader's zone, Python needs pytz."""
    kinds = {field.name: plain(field.type) for field in schema}
    return pa.schema(
        {name: pa.timestamp(one.unit) if pa.types.is_timestamp(one) else one for name, one in kinds.items()}
    )


def _sqlite_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(kind) else "TEXT"


def _sqlite_values(column: pa.Array) -> list[Any]:
    kind = plain(column.type)
    if pa.types.is_timestamp(kind):
        column = pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ")
    elif kind == _UNSIGNED:
        column = column.view(pa.int64())
    values: list[Any] = column.to_pylist()
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return [None if value is None else msgspec.json.encode(value).decode() for value in values]
    return values
