"""Tables: a crawl's Parquet files as DuckDB views, asked within a bound of memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

NEAR = "near_duplicate_of"
"""A column that crawls have which looked for near duplicates."""


class Tables:
    """Answers questions in SQL about `pages` and `links`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, pages: Sequence[str], links: Sequence[str]) -> None:
        self._connection = connection
        self.has_links = bool(links)
        # Segments of one crawl may differ in their last columns.
        seen = connection.read_parquet(list(pages), union_by_name=True)
        more = "" if NEAR in seen.columns else f", NULL::VARCHAR AS {NEAR}"
        seen.create_view("rows")
        times = "epoch(fetched_at) AS began_s, epoch(fetched_at) + fetch_s AS ended_s"
        connection.execute(f"CREATE VIEW pages AS SELECT *{more}, {times} FROM rows")  # noqa: S608 - all ours
        if links:
            connection.read_parquet(list(links), union_by_name=True).create_view("links")

    def all(self, query: str, **names: object) -> list[tuple[Any, ...]]:
        """Return all rows; names stand in braces in the query and are ours."""
        return self._connection.execute(query.format(**names)).fetchall()

    def one(self, query: str, **names: object) -> tuple[Any, ...]:
        """Return the only row."""
        rows = self.all(query, **names)
        assert len(rows) == 1, "an aggregate always has one row"
        return rows[0]


@contextmanager
def opened(directory: Path, memory_bytes_max: int) -> Iterator[Tables | None]:
    """Open a crawl's finished tables; None when there are none. What does not fit in memory goes to a temporary
    folder.
    """
    pages = sorted(str(path) for path in (directory / "pages").glob("*.parquet"))
    links = sorted(str(path) for path in (directory / "links").glob("*.parquet"))
    if not pages:
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
        with duckdb.connect(":memory:", config=config) as connection:
            yield Tables(connection, pages, links)
