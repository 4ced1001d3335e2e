"""Changes: what appeared, changed and vanished, and the versions of one page, from the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from gossamer.archive.views.source import require_sound
from gossamer.archive.views.work import Piece

KINDS = ("appeared", "changed", "vanished")
MEMORY_BYTES = 256_000_000
ROWS_AT_ONCE = 2_000


class Change(msgspec.Struct, frozen=True):
    """One visit that found something, or one version of a page."""

    at: str
    """As `2026-01-01T00:00:00.250000Z`."""
    change: str
    """`appeared`, `changed`, `vanished`; for versions also `same`, or empty for an attempt without a result."""
    url: str
    outcome: str
    status: int | None
    title: str
    digest: str
    """Of the payload as sent; of a page that was not modified, that of the version that stands."""
    body_bytes: int
    warc_file: str
    warc_offset: int | None
    warc_length: int | None
    warc_type: str
    """`response`, or `revisit`: then the body stands in the record that this one refers to."""
    compared: str = ""
    """By what the crawl compares versions now: `revisit.change`. With `words` edits of digits alone are no change."""

    def as_object(self) -> dict[str, object]:
        """Return all fields by name."""
        return msgspec.structs.asdict(self)


# A batch crawl sees each page once and leaves the column empty: what it fetched appeared.
_CHANGES = """
    SELECT {columns} FROM (
        SELECT *, CASE WHEN coalesce(change, '') <> '' THEN change
            WHEN outcome = 'fetched' THEN 'appeared' ELSE '' END AS kind
        FROM pages WHERE epoch_us(fetched_at) >= {since}
    )
    WHERE kind IN ('appeared', 'changed', 'vanished') ORDER BY fetched_at, url"""
_VERSIONS = (
    "SELECT {columns} FROM (SELECT *, coalesce(change, '') AS kind FROM pages) WHERE key = ? ORDER BY fetched_at"
)
_COLUMNS = (
    "epoch_us(fetched_at)", "kind", "url", "outcome::VARCHAR", "status", "title", "digest", "body_bytes",
    "warc_file::VARCHAR", "warc_offset", "warc_length", "warc_type::VARCHAR",
)  # fmt: skip


def changes_of(pieces: Sequence[Piece], since_s: float, folder: Path) -> Iterator[Change]:
    """Yield what appeared, changed or vanished since an instant, in the order of time. In bounded memory; what does
    not fit is sorted in `folder`.
    """
    with _opened(pieces, folder) as database:
        question = _CHANGES.format(columns=", ".join(_COLUMNS), since=round(since_s * 1_000_000))
        yield from _rows(database.execute(question))


def versions_of(pieces: Sequence[Piece], key: str, folder: Path) -> Iterator[Change]:
    """Yield all attempts at one URL, by its canonical key, in the order of time."""
    with _opened(pieces, folder) as database:
        yield from _rows(database.execute(_VERSIONS.format(columns=", ".join(_COLUMNS)), [key]))


def _opened(pieces: Sequence[Piece], folder: Path) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{MEMORY_BYTES}B",
            "temp_directory": str(folder / "spilled"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )
    database.execute("SET TimeZone = 'UTC'")
    require_sound(pieces)
    files = [piece.path for piece in pieces if piece.rows]
    if not files:
        empty = ", ".join(f"NULL AS {name}" for name in (*_PLAIN, "key", "change"))
        database.execute(f"CREATE VIEW pages AS SELECT {empty} WHERE false")
        return database
    rows = database.read_parquet(files, union_by_name=True)
    rows.create_view("rows")
    more = "" if "change" in rows.columns else ", NULL::VARCHAR AS change"
    database.execute(f"CREATE VIEW pages AS SELECT *{more} FROM rows")  # noqa: S608 - all ours
    return database


_PLAIN = (
    "fetched_at", "url", "outcome", "status", "title", "digest", "body_bytes", "warc_file", "warc_offset",
    "warc_length", "warc_type",
)  # fmt: skip


def _rows(answer: duckdb.DuckDBPyConnection) -> Iterator[Change]:
    while rows := answer.fetchmany(ROWS_AT_ONCE):
        for row in rows:
            yield _change(row)


def _change(row: tuple[Any, ...]) -> Change:
    at = f"{datetime.fromtimestamp(row[0] / 1e6, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
    texts = [value or "" for value in (row[1], row[2], row[3], row[5], row[6], row[8], row[11])]
    kind, url, outcome, title, digest, warc_file, warc_type = texts
    return Change(
        at, kind, url, outcome, row[4], title, digest, row[7] or 0, warc_file, row[9], row[10], warc_type,
    )  # fmt: skip
