"""Changes: what appeared, changed and vanished, versions of a page and of a robots.txt, and fields of items."""

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import chain
from pathlib import Path

import duckdb
import msgspec
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from gossamer.model.words import iso_time
from gossamer.results.export.bodies import Decode, record_of
from gossamer.results.export.source import open_database, open_view, require_sound
from gossamer.results.export.work import ExportPiece
from gossamer.results.report.tables import queries
from gossamer.stages.archive.members import HEAD_BYTES_MAX
from gossamer.stages.archive.packages import LINK_SUFFIX, stored_archives
from gossamer.stages.archive.schema import ITEM_PLACES, PAGES
from gossamer.stages.archive.segments import missing_warc, warcs_in
from gossamer.world.inputs import part_of

_SQL = queries(__package__, "changes.sql")
MEMORY_BYTES = 256_000_000
ROWS_AT_ONCE = 2_000


class ChangeRow(msgspec.Struct, frozen=True):
    """One line of a list of changes."""

    def as_object(self) -> dict[str, object]:
        """Return all fields by name."""
        return msgspec.structs.asdict(self)


class PageChange(ChangeRow, frozen=True):
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
    """Of the payload as sent; for a page that was not modified, of its last version."""
    body_bytes: int
    warc_file: str
    warc_offset: int | None
    warc_length: int | None
    warc_type: str
    """`response`, or `revisit`: then the record that this one refers to has the body."""
    compared: str = ""
    """The comparison of versions now (`revisit.change`). With `words`, edits of digits outside items do not count."""


class FieldChange(ChangeRow, frozen=True):
    """A field of an item that has another value than at the visit before."""

    at: str
    """As `2026-01-01T00:00:00.250000Z`."""
    url: str
    items: str
    """The kind of item: NAME of `items/NAME`."""
    item: str
    """Its identity on its page: the value of its identity, else its number."""
    field: str
    before: str | None
    """As text; None if there was no value."""
    after: str | None
    change: str = "field"


_COLUMNS = (
    "epoch_us(fetched_at)", "kind", "url", "outcome::VARCHAR", "status", "coalesce(title, '')", "coalesce(digest, '')",
    "coalesce(body_bytes, 0)", "coalesce(warc_file::VARCHAR, '')", "warc_offset", "warc_length",
    "coalesce(warc_type::VARCHAR, '')",
)  # fmt: skip


class RobotsVersion(ChangeRow, frozen=True):
    """One archived answer to a request for robots.txt."""

    at: str
    """As `2026-01-01T00:00:00Z`."""
    url: str
    status: int
    change: str
    """`first`, `same` or `changed`, beside the answer before from the same address."""
    diff: tuple[str, ...] = ()
    """Lines that went and came, with `-` or `+` before them."""


def robots_of(warc_folder: Path, host: str, decode: Decode) -> Iterator[RobotsVersion]:
    """Yield what a host answered for robots.txt, by time. Reads all WARC files.

    An answer other than 2xx has no lines, and is a change where the status is another. Lines are compared with the
    last file that came.
    """
    answers = sorted(chain.from_iterable(_robots_in(path, host, decode) for path in warcs_in(warc_folder)))
    before: dict[str, tuple[int, list[str]]] = {}
    for at, url, status, text in answers:
        last, known = before.get(url, (None, []))
        lines = text.splitlines() if 200 <= status < 300 else known
        before[url] = status, lines
        if last is None:
            yield RobotsVersion(at, url, status, "first")
            continue
        diff = tuple(line for line in unified_diff(known, lines, lineterm="", n=0) if not line.startswith("@@"))[2:]
        yield RobotsVersion(at, url, status, "changed" if diff or last != status else "same", diff)


def _robots_in(path: Path, host: str, decode: Decode) -> Iterator[tuple[str, str, int, str]]:
    """Yield time, address, status and text of each answer in one WARC file."""
    if not path.exists():
        raise missing_warc(path)
    beginnings = tuple(f"{scheme}://{host}{end}" for scheme in ("http", "https", "ftp", "ftps") for end in ("/", ":"))

    def is_one(record: WarcRecord) -> bool:
        url = record.headers.get("WARC-Target-URI") or ""
        return url.endswith("/robots.txt") and url.startswith(beginnings) and url.count("/") == 3

    with path.open("rb") as file:
        kinds = WarcRecordType.response | WarcRecordType.resource
        is_package = path.suffix == LINK_SUFFIX
        archives = [part_of(file, one.begin, one.length) for one in stored_archives(path)] if is_package else [file]
        records = (ArchiveIterator(one, record_types=kinds, parse_http=False, func_filter=is_one) for one in archives)
        for record in chain.from_iterable(records):
            record.parse_http(max_header_len=HEAD_BYTES_MAX)
            found = record_of(record)
            text = decode(found.reply()).body.decode("utf-8", "replace")
            yield record.headers["WARC-Date"], found.url, found.status, text


def changes_of(pieces: Sequence[ExportPiece], since_s: float, folder: Path) -> Iterator[PageChange]:
    """Yield what appeared, changed or vanished since an instant, in order of time; what memory lacks is in `folder`."""
    with judged_in(pieces, folder) as database:
        question = _SQL["changes"].format(columns=", ".join(_COLUMNS), since=round(since_s * 1_000_000))
        yield from _rows(database.execute(question))


def versions_of(pieces: Sequence[ExportPiece], key: str, folder: Path) -> Iterator[PageChange]:
    """Yield all attempts at one URL, by its canonical key, in the order of time."""
    with judged_in(pieces, folder) as database:
        yield from _rows(database.execute(_SQL["versions"].format(columns=", ".join(_COLUMNS)), [key]))


def field_changes_of(pieces: Sequence[ExportPiece], items: str, since_s: float, folder: Path) -> Iterator[FieldChange]:
    """Yield what changed in fields of one kind of item since an instant, by time; sorted in `folder` if large."""
    with database_of(pieces, folder) as database:
        rows = open_view(database, "rows", pieces)
        if rows is None:
            return
        fields = [name for name in rows.columns if name not in (*ITEM_PLACES, "url")]
        since = round(since_s * 1_000_000)
        questions = [_SQL["field"].format(field=field, since=since) for field in fields]
        answer = database.execute(f"{' UNION ALL '.join(questions)} ORDER BY 1, 2, 3, 4") if questions else None
        while answer is not None and (found := answer.fetchmany(ROWS_AT_ONCE)):
            for at, url, item, field, before, after in found:
                yield FieldChange(iso_time(at / 1e6, "microseconds"), url, items, item, field, before, after)


def pages_in(pieces: Sequence[ExportPiece], folder: Path) -> duckdb.DuckDBPyConnection:
    """Return a database with the view `pages`, also where there are no rows. Raises DamagedError."""
    database = database_of(pieces, folder)
    if open_view(database, "pages", pieces) is None:
        empty = ", ".join(f"NULL AS {name}" for name in PAGES.names if name != "fetched_at")
        database.execute(f"CREATE VIEW pages AS SELECT NULL::TIMESTAMPTZ AS fetched_at, {empty} WHERE false")
    return database


def judged_in(pieces: Sequence[ExportPiece], folder: Path) -> duckdb.DuckDBPyConnection:
    """Return the same with the view `judged`: pages with their change, as noted, else beside the capture before."""
    database = pages_in(pieces, folder)
    kinds = {kind for (kind,) in database.execute("SELECT DISTINCT change FROM pages WHERE change <> ''").fetchall()}
    database.execute(f"CREATE VIEW judged AS {_SQL['noted' if kinds and 'unknown' not in kinds else 'compared']}")
    return database


def database_of(pieces: Sequence[ExportPiece], folder: Path) -> duckdb.DuckDBPyConnection:
    """Return a database without tables, in bounded memory, once the files to be read are found sound."""
    database = open_database(MEMORY_BYTES, folder / "spilled")
    database.execute("SET TimeZone = 'UTC'")
    require_sound(pieces)
    return database


def _rows(answer: duckdb.DuckDBPyConnection) -> Iterator[PageChange]:
    while rows := answer.fetchmany(ROWS_AT_ONCE):
        for at, *values in rows:
            yield PageChange(iso_time(at / 1e6, "microseconds"), *values)
