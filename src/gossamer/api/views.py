"""Views: exports of a crawl, made of its files whether it runs or not."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from gossamer.api.given import directory_of
from gossamer.archive.views.export import MEMORY_BYTES, Exported, Progress, export, stream, unfinished, untold
from gossamer.assembly.views import crawl_in, export_means
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError, CrawlFailedError


def export_of(
    directory: str | Path,
    to: str,
    target: str | Path,
    *,
    table: str = "",
    where: str = "",
    memory_bytes_max: int = MEMORY_BYTES,
    progress: Progress = untold,
) -> Exported:
    """Make an export of a crawl, or finish one that was begun. See `archive.views.export.export`.

    Raises:
        ConfigError: there is no crawl, or what was asked for cannot be.
        OSError: the disk is full; another call goes on.
    """
    directory = directory_of(directory)
    return export(
        crawl_in(directory),
        to,
        directory_of(target, "target"),
        export_means(reopen(directory / "crawl.toml")),
        table=table,
        where=where,
        memory_bytes_max=memory_bytes_max,
        progress=progress,
    )


def unfinished_of(directory: Path, folder: Path, tables: Sequence[str] = ("pages", "links", "epochs")) -> str:
    """Write the rows of tables that a crawl, running or not, has in logs alone to `folder`, as Parquet. Return why that
    could not be done; else an empty text.
    """
    try:
        crawl = crawl_in(directory)
        for table in tables:
            unfinished(crawl, table, folder)
    except (ConfigError, CrawlFailedError, OSError) as error:
        return str(error)
    return ""


def stream_of(directory: Path, to: str, out: BinaryIO, *, table: str = "", where: str = "") -> Exported:
    """Write a table of a crawl as JSON lines or CSV to an open stream. Raises ConfigError as `export_of`."""
    with tempfile.TemporaryDirectory(prefix="gossamer-export-") as folder:
        return stream(crawl_in(directory), to, out, Path(folder), table=table, where=where)
