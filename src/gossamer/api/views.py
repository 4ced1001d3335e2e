"""Views: exports of a crawl, made of its files whether it runs or not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import BinaryIO

from gossamer.archive.views.export import MEMORY_BYTES, Committed, Crawl, Exported, Progress, export, stream, untold
from gossamer.assembly.views import committed_files, export_means
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.world.clock import WallClock

_LOGS, _SUFFIX = "state/tables/", ".journal"
_WARCS = "warc/"


def export_of(
    directory: Path,
    to: str,
    target: Path,
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
    return export(
        crawl_in(directory),
        to,
        target,
        export_means(reopen(directory / "crawl.toml")),
        table=table,
        where=where,
        memory_bytes_max=memory_bytes_max,
        progress=progress,
    )


def stream_of(directory: Path, to: str, out: BinaryIO, *, table: str = "", where: str = "") -> Exported:
    """Write a table of a crawl as JSON lines or CSV to an open stream. Raises ConfigError as `export_of`."""
    with tempfile.TemporaryDirectory(prefix="gossamer-export-") as folder:
        return stream(crawl_in(directory), to, out, Path(folder), table=table, where=where)


def crawl_in(directory: Path) -> Crawl:
    """Return a crawl as it stands, for views of it.

    Raises:
        ConfigError: there is none.
    """
    if not (directory / "crawl.toml").exists():
        raise ConfigError(f"{directory} holds no crawl (it has no crawl.toml)")
    now = WallClock().now()
    entries = committed_files(reopen(directory / "crawl.toml"), directory)
    if entries is None:
        return Crawl(directory, running=True, now=now)
    logs = []
    for entry, path in entries:
        if entry.name.startswith(_LOGS):
            stem = entry.name.removeprefix(_LOGS).removesuffix(_SUFFIX)
            table = stem.partition("-")[0]
            path = path if path.exists() else path.with_name(path.name + ".open")
            logs.append(Committed(path, entry.length, table, directory / table / f"{stem}.parquet"))
    warcs = [(entry.name, entry.length) for entry, _ in entries if entry.name.startswith(_WARCS)]
    return Crawl(directory, running=False, logs=logs, warc_lengths=warcs or None, now=now)
