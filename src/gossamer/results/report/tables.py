"""Tables: a crawl's Parquet files as DuckDB views, asked within a bound of memory."""

import pkgutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from gossamer.model.counters import Counters
from gossamer.model.errors import DamagedError
from gossamer.model.paths import is_of_table
from gossamer.model.usage import PURPOSES

ROWS_A_SLICE = 4_000_000
"""Rows that are grouped at a time: at most as many groups, about 100 bytes each."""
USES = {purpose: "usage_" + purpose.replace("-", "_") for purpose in PURPOSES}
RENDER_REASON = "render_reason"
"""A column that files of 1.0.0rc1 lack."""
_HOSTS = """
    CREATE TABLE hosts (
        host VARCHAR, site VARCHAR, attempts BIGINT, fetched BIGINT, bytes BIGINT, fetches BIGINT, mean_s DOUBLE,
        answers BIGINT)"""
_HOSTS_OF_SLICE = """
    INSERT INTO hosts
    SELECT host, any_value(site), count(*), count(*) FILTER (outcome = 'fetched'),
        coalesce(sum(wire_bytes), 0)::BIGINT, count(*) FILTER (fetch_s > 0),
        coalesce(avg(fetch_s) FILTER (fetch_s > 0), 0), count(*) FILTER (status IS NOT NULL OR outcome = 'fetched')
    FROM pages WHERE {slice} GROUP BY host"""


@cache
def queries(package: str, name: str) -> Mapping[str, str]:
    """Return the queries in a file of a package, by the name on the line above each, as `-- name`."""
    text = (pkgutil.get_data(package, name) or b"").decode()
    sections = (section.partition("\n") for section in text.split("\n\n-- ")[1:])
    return {found: query.rstrip() for found, _, query in sections}


class ReportTables:
    """Runs SQL queries on `pages`, `links`, `epochs`, and `hosts`, which it makes of `pages` on disk.

    Queries that group by host or content run in slices of `ROWS_A_SLICE`: the memory of a grouping grows with its
    groups, also if it spills to disk.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, pages: Sequence[str], links: Sequence[str], epochs: Sequence[str]
    ) -> None:
        self._connection = connection
        self.has_links = bool(links)
        self.has_epochs = bool(epochs)
        if epochs:
            commits = connection.read_parquet(list(epochs), union_by_name=True)
            # Commits of 1.0.0rc1 lack the counters that came later.
            more = "".join(f", 0 AS {name}" for name in Counters.__struct_fields__ if name not in commits.columns)
            commits.create_view("commits")
            connection.execute(f"CREATE VIEW epochs AS SELECT *{more} FROM commits")  # noqa: S608 - all ours
        if not pages:
            return
        # Segments of one crawl may differ in their last columns.
        seen = connection.read_parquet(list(pages), union_by_name=True)
        more = f", NULL::VARCHAR AS {RENDER_REASON}" if RENDER_REASON not in seen.columns else ""
        seen.create_view("rows")
        times = "epoch(fetched_at) AS began_s, epoch(fetched_at) + fetch_s AS ended_s"
        connection.execute(f"CREATE VIEW pages AS SELECT *{more}, {times} FROM rows")  # noqa: S608 - all ours
        if links:
            connection.read_parquet(list(links), union_by_name=True).create_view("links")
        self._slices = 1 + self.one("SELECT count(*) FROM rows")[0] // ROWS_A_SLICE
        self.all(_HOSTS)
        self.query_slices(_HOSTS_OF_SLICE, "host")

    def query_slices(self, query: str, by: str, **names: object) -> list[tuple[Any, ...]]:
        """Return the rows of all slices: `{slice}` in the query keeps all rows of one value of `by` together."""
        rows = []
        for number in range(self._slices):
            part = f"hash({by}) % {self._slices} = {number}" if self._slices > 1 else "true"
            rows += self.all(query, slice=part, **names)
        return rows

    def all(self, query: str, **names: object) -> list[tuple[Any, ...]]:
        """Return all rows. `names` fill the braces of the query; they must be trusted."""
        return self._connection.execute(query.format(**names)).fetchall()

    def one(self, query: str, **names: object) -> tuple[Any, ...]:
        """Return the only row."""
        rows = self.all(query, **names)
        assert len(rows) == 1, "an aggregate always has one row"
        return rows[0]

    def row(self, query: str) -> dict[str, Any]:
        """Return the only row, by the names of its columns."""
        found = self._connection.execute(query)
        row = found.fetchone()
        assert row is not None, "an aggregate always has one row"
        return dict(zip((name for name, *_ in found.description), row, strict=True))


@contextmanager
def open_tables(
    directory: Path,
    memory_bytes_max: int,
    wanted: Sequence[str] = ("pages", "links", "epochs"),
    unfinished: Path | None = None,
) -> Iterator[ReportTables | None]:
    """Open a crawl's tables, with those files of `unfinished` that are not finished by now; None when there are none,
    of pages where those are wanted. Data that does not fit in memory goes to a temporary folder. Raises DamagedError: a
    file of a table is damaged; the line names it.
    """
    pages, links, epochs = (
        _files(directory, unfinished, table) if table in wanted else [] for table in ("pages", "links", "epochs")
    )
    if not (pages if "pages" in wanted else epochs):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="gossamer-report-") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{memory_bytes_max}B",
            "temp_directory": folder,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        with duckdb.connect(f"{folder}/report.duckdb", config=config) as connection:
            try:
                yield ReportTables(connection, pages, links, epochs)
            except duckdb.OutOfMemoryException:
                raise
            except duckdb.Error as error:
                damaged = _first_damaged([*pages, *links, *epochs])
                if damaged is None:  # Otherwise it is an internal error.
                    raise
                raise DamagedError(
                    f"{damaged} cannot be read: it was damaged, or not copied whole; put a sound copy in its place, or "
                    f"move it away: the report then lacks its rows"
                ) from error


def _first_damaged(files: Sequence[str]) -> str | None:
    """Return the first file of which a value cannot be read. Reads all of them."""
    for file in files:
        with duckdb.connect(":memory:") as connection:
            try:
                connection.read_parquet(file).create_view("rows")
                connection.execute("SELECT max(hash(COLUMNS(*))) FROM rows").fetchall()
            except duckdb.Error:
                return file
    return None


def _files(directory: Path, unfinished: Path | None, table: str) -> list[str]:
    folders = [folder / table for folder in (unfinished, directory) if folder is not None]
    found = {path.name: str(path) for folder in folders for path in folder.glob("*.parquet")}
    return [found[name] for name in sorted(found) if is_of_table(table, name)]
