"""Database: DuckDB over the crawl's tables, in bounded memory and without loading extensions."""

from __future__ import annotations

from pathlib import Path

import duckdb


def open_database(
    memory_bytes_max: int, spilled: Path | None, file: str = ":memory:", **settings: bool | int
) -> duckdb.DuckDBPyConnection:
    """Return an empty database. It writes to `spilled` what does not fit into memory; nothing where that is None."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory_bytes_max}B",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        **settings,
    }
    if spilled is not None:
        config["temp_directory"] = str(spilled)
    return duckdb.connect(file, config=config)
