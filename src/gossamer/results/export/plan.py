"""Plan: the pages whose content an export writes, each with the places where its body may lie.

Made once by one question to the tables, in bounded memory, and kept as a Parquet file: what comes later streams.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.model.errors import ConfigError
from gossamer.model.pages import RENDERINGS
from gossamer.results.export.bodies import FRONT, ArchivedPage, MarkdownPage, RecordPlace, front_of
from gossamer.results.export.source import RowSource, first_line, literal, open_database, open_view, require_sound
from gossamer.results.export.work import ExportPiece, Share
from gossamer.results.report.tables import queries
from gossamer.world.files import publish

_SQL = queries(__package__, "plan.sql")
ROW_GROUP_ROWS = 20_000
ROW_GROUP_BYTES = 16_000_000
COLUMNS = (
    "url", "key", "host", "site", "title", "fetched_at", "status", "media_type", "charset", "depth", "referrer",
    "link_type", "digest", "duplicate_of", "body_bytes",
)  # fmt: skip
MORE = ("language", "usage_search", "usage_ai_train", "usage_ai_input", "usage_archive", "usage_reason", "rendered")
"""Columns that some crawls lack."""
ORIGINAL = "warc_original"
"""Column of a part of a crawl's pages: where the payload of a revisit is, which another page may have."""
_FOUND_COLUMNS = ("main_text", "markdown", "text_method", *FRONT)
_FOUND = ", ".join(f"{name} := latest.{name}" for name in _FOUND_COLUMNS)
_FOUND = f"CASE WHEN latest.markdown IS NOT NULL THEN struct_pack({_FOUND}, heading_ids := {{heading_ids}}) END"
ANCHORS_MAX = 20
ANCHOR_CHARACTERS_MAX = 100


class PlanProgress(msgspec.Struct):
    """Progress of an export that writes pages in the order of a plan."""

    position: int = 0
    """Pages of the plan that are written."""


class Planned(msgspec.Struct, frozen=True):
    """One page to write. Fields are those of its row in `pages`."""

    url: str
    key: str
    host: str
    site: str
    title: str
    fetched_at: str
    """As `2026-01-01T00:00:00.250000Z`."""
    status: int
    media_type: str
    charset: str
    depth: int
    referrer: str
    link_type: str
    digest: str
    duplicate_of: str
    body_bytes: int
    language: str
    """As detected in the crawl; empty where it was not."""
    usage_search: str
    usage_ai_train: str
    usage_ai_input: str
    usage_archive: str
    usage_reason: str
    found: MarkdownPage | None
    """Its content as the crawl found it, in a plan that has contents."""
    document: str
    """Its text, where the crawl found that in a document that is no page, such as a PDF."""
    anchors: str
    """Texts of links to it, where the plan has them."""
    at: int
    """`fetched_at` in microseconds since 1970."""
    place: RecordPlace
    original: RecordPlace | None
    """Place of the payload if the record is a revisit."""
    rendered: str = ""

    @property
    def record(self) -> ArchivedPage:
        """Place and type of the page's record, for `RecordBodies`."""
        is_rendered = self.rendered in RENDERINGS
        return ArchivedPage(self.place, self.original, self.url, self.media_type, is_rendered=is_rendered)


def make_plan(
    target: Path,
    pieces: Sequence[ExportPiece],
    where: str,
    memory_bytes_max: int,
    links: Sequence[ExportPiece] | None = None,
    *,
    every: bool = False,
    contents: bool = False,
    share: Share | None = None,
) -> None:
    """Write the plan, unless it is there; for an index, with anchor texts and without pages that are gone, if the files
    of `links` are given; with `every` version of a page, the `contents` that modules found, for a `share` of pages.

    About 3 µs a row of `pages`; what does not fit in memory goes beside it. Raises ConfigError: the condition is
    invalid.
    """
    if target.exists():
        return
    known = RowSource(pieces, where, "pages").schema.names  # Refuses what is no condition on single rows.
    new = target.with_name(target.name + ".new")
    if not any(piece.rows for piece in pieces):
        pq.write_table(pa.table({"url": pa.array([], pa.string())}), new)
        publish(new, target)
        return
    require_sound([*pieces, *(links or ())])
    folder = target.with_name("spilled")
    with open_database(memory_bytes_max, folder, threads=2, preserve_insertion_order=False) as tables:
        open_view(tables, "pages", pieces)
        joined = ""
        if open_view(tables, "links", links or ()) is not None:
            joined = _SQL["anchors"].format(characters_max=ANCHOR_CHARACTERS_MAX, texts_max=ANCHORS_MAX)
        ids = "latest.heading_ids" if "heading_ids" in known else "''"
        is_found = contents and set(known).issuperset(_FOUND_COLUMNS)
        found = _FOUND.format(heading_ids=ids) if is_found else "NULL"
        question = _SQL["question"].format(
            anchors="coalesce(said.words, '')" if joined else "''",
            joined=joined,
            where=where or ("true" if links is None else _SQL["there"]),
            own=share.condition if share is not None else "true",
            every=str(every),
            original=f"latest.{ORIGINAL}" if ORIGINAL in known else "firsts.at",
            columns=", ".join(_column_sql(name, known) for name in (*COLUMNS, *MORE)),
            document=_SQL["document"] if "main_text" in known else "''",
            found=found,
            target=literal(new),
            group_rows=ROW_GROUP_ROWS,
            group_bytes=ROW_GROUP_BYTES,
        )
        try:
            tables.execute(question)
        except duckdb.OutOfMemoryException as error:
            raise ConfigError(f"--memory: the tables need more to be put in order; {first_line(str(error))}") from error
    publish(new, target)


def _column_sql(name: str, known: Sequence[str]) -> str:
    """Return the SQL that selects a column, which may be one that some crawls lack."""
    if name in _DICTIONARIES:
        return f"latest.{name}::VARCHAR AS {name}"
    if name not in MORE:
        return f"latest.{name}"
    return f"coalesce(latest.{name}::VARCHAR, '') AS {name}" if name in known else f"'' AS {name}"


_DICTIONARIES = frozenset(("host", "site", "media_type", "charset", "link_type"))
"""Columns of few distinct values, which tables keep as dictionaries."""


def read_plan(plan: Path, start: int = 0) -> Iterator[tuple[int, Planned]]:
    """Yield the pages from a position on, each with the position behind it."""
    source = RowSource([ExportPiece(str(plan), plan.stat().st_size, pq.read_metadata(plan).num_rows)])
    for end, batch in source.batches(start):
        at = end - batch.num_rows
        for row in _values(batch):
            at += 1
            if at > start:
                yield at, row


def rows_of(plan: Path) -> int:
    """Return how many pages a plan has."""
    return int(pq.read_metadata(plan).num_rows)


def _values(batch: pa.RecordBatch) -> Iterator[Planned]:
    columns = [
        pc.strftime(one, "%Y-%m-%dT%H:%M:%SZ").to_pylist() if pa.types.is_timestamp(one.type) else one.to_pylist()
        for one in batch.columns
    ]
    for values in zip(*columns, strict=True):
        row = dict(zip(batch.schema.names, values, strict=True))
        place = RecordPlace(row.pop("file"), row.pop("offset"), row.pop("length"))
        first = RecordPlace(row.pop("original_file"), row.pop("original_offset"), row.pop("original_length"))
        found = row.pop("found", None)  # A plan of an earlier version has none.
        content = found and MarkdownPage(
            found["markdown"],
            found["text_method"] or "",
            front_of(found),
            found["main_text"] or "",
            heading_ids=found["heading_ids"] or "",
        )
        yield Planned(**row, found=content, place=place, original=first if first.file else None)
