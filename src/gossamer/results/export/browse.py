"""Browse: parts of a crawl's tables for people who look at it: versions, items, a host over time, a comparison."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from gossamer.model import archived
from gossamer.model.outcomes import SUCCEEDED, WITH_CONTENT
from gossamer.model.words import iso_time
from gossamer.results.export.bodies import RecordPlace
from gossamer.results.export.changes import database_of, pages_in
from gossamer.results.export.source import open_view, quote
from gossamer.results.export.work import ExportPiece
from gossamer.results.report.sections import step_length_s
from gossamer.results.report.tables import queries
from gossamer.stages.archive.schema import ITEM, ITEM_PLACES, ITEMS

_SQL = queries(__package__, "browse.sql")
PERIODS_MAX = 48
COMPARISON_BYTES_MAX = 320_000_000


class ArchivedVisit(msgspec.Struct, frozen=True):
    """A row of `pages` with the places of its content."""

    place: RecordPlace | None
    key: str
    at: int
    """Microseconds since 1970."""
    url: str
    outcome: str
    status: int | None
    title: str
    digest: str
    body_bytes: int
    media_type: str
    warc_type: str
    redirect_to: str
    duplicate_of: str
    rendered: str
    original: RecordPlace | None = None
    """Where the payload is if the record at `place` is a revisit."""


def _texts(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


_OF_KEY = f"{_SQL['visit']}, count(*) OVER () FROM pages WHERE key = ? ORDER BY fetched_at DESC, attempt DESC LIMIT ?"
_NEAREST = f"""
    {_SQL["visit"]} FROM pages
    WHERE key IN (SELECT unnest(?)) AND (outcome = 'redirected' OR (warc_offset IS NOT NULL AND
        (outcome IN ({_texts(WITH_CONTENT)}) OR (outcome = 'http_error' AND body_bytes > 0))))
    QUALIFY row_number() OVER (PARTITION BY key ORDER BY outcome = 'http_error', outcome = 'redirected',
        abs(epoch_us(fetched_at) - ?), url) = 1"""
_HISTORY = "SELECT epoch_us(fetched_at) // ?, outcome::VARCHAR, count(*) FROM pages WHERE host = ? GROUP BY 1, 2"
_CONFIRMED = f"""
    {_SQL["visit"]} FROM pages
    WHERE outcome = 'fetched' AND warc_offset IS NOT NULL AND key IN (SELECT unnest(?))
    QUALIFY row_number() OVER (PARTITION BY key, digest ORDER BY fetched_at DESC) = 1"""


class Browsed(AbstractContextManager["Browsed"]):
    """A crawl's table of pages, open for questions. Each reads the columns that it needs: 0.1 s a million rows."""

    def __init__(self, pieces: Sequence[ExportPiece], folder: Path) -> None:
        """Take the files of the table, and a folder for what does not fit in memory. Raises DamagedError."""
        self._database = pages_in(pieces, folder)
        self._database.execute("PRAGMA threads = 1")  # The other processors are the crawl's.

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def versions(self, key: str) -> tuple[list[ArchivedVisit], int]:
        """Return the attempts at a URL, the newest first and `VERSIONS_MAX` + 1 at most, and their number."""
        rows = self._database.execute(_OF_KEY, [key, archived.VERSIONS_MAX + 1]).fetchall()
        return self._with_originals([_visit(row[:-1]) for row in rows]), rows[0][-1] if rows else 0

    def nearest(self, keys: Iterable[str], at: int) -> dict[str, ArchivedVisit]:
        """Return for each key that has one the version with content nearest to an instant, a redirect, or an error."""
        rows = self._database.execute(_NEAREST, [sorted(keys), at]).fetchall()
        return {visit.key: visit for visit in self._with_originals([_visit(row) for row in rows])}

    def history(self, host: str) -> archived.HostHistory:
        """Return how requests to a host ended, in `PERIODS_MAX` periods at most."""
        begin, end = self._database.execute(
            "SELECT min(epoch_us(fetched_at)), max(epoch_us(fetched_at)) FROM pages WHERE host = ?", [host]
        ).fetchall()[0]
        if begin is None:
            return archived.HostHistory(host=host, step_s=1.0, periods=(), outcomes={})
        step_s = max(1.0, step_length_s((end - begin) / 1e6, PERIODS_MAX))
        rows = self._database.execute(_HISTORY, [round(step_s * 1e6), host]).fetchall()
        periods: dict[int, list[int]] = {}
        outcomes: dict[str, int] = {}
        for number, outcome, count in rows:
            periods.setdefault(number, [0, 0])[outcome not in SUCCEEDED] += count
            outcomes[outcome] = outcomes.get(outcome, 0) + count
        found = tuple(
            archived.HostPeriod(at=number * step_s, answered=answered, failed=failed)
            for number, (answered, failed) in sorted(periods.items())
        )
        ordered = dict(sorted(outcomes.items(), key=lambda one: (-one[1], one[0])))
        return archived.HostHistory(host=host, step_s=step_s, periods=found, outcomes=ordered)

    def _with_originals(self, visits: list[ArchivedVisit]) -> list[ArchivedVisit]:
        """Add the places of payloads of revisits. A version that was not modified is read as the one it confirms."""
        if keys := {visit.key for visit in visits if visit.outcome == "not_modified"}:
            rows = self._database.execute(_CONFIRMED, [sorted(keys)]).fetchall()
            confirmed = {(visit.key, visit.digest): visit for visit in map(_visit, rows)}
            visits = [_confirming(visit, confirmed.get((visit.key, visit.digest))) for visit in visits]
        wanted = {visit.digest for visit in visits if visit.warc_type == "revisit"}
        rows = self._database.execute(_SQL["originals"], [sorted(wanted)]).fetchall() if wanted else []
        found = {digest: RecordPlace(at["f"], at["o"], at["l"]) for digest, at in rows}
        return [
            msgspec.structs.replace(visit, original=found.get(visit.digest)) if visit.warc_type == "revisit" else visit
            for visit in visits
        ]


def _confirming(visit: ArchivedVisit, confirmed: ArchivedVisit | None) -> ArchivedVisit:
    if visit.outcome != "not_modified" or confirmed is None:
        return visit
    return msgspec.structs.replace(
        visit, place=confirmed.place, media_type=confirmed.media_type, warc_type=confirmed.warc_type,
        rendered=confirmed.rendered,
    )  # fmt: skip


def _visit(row: tuple[Any, ...]) -> ArchivedVisit:
    *fields, file, offset, length = row
    return ArchivedVisit(RecordPlace(file, offset, length) if offset is not None else None, *fields)


def items_in(
    tables: Mapping[str, Sequence[ExportPiece]], kind: str, limit: int, offset: int, folder: Path
) -> archived.ItemList:
    """Return a part of the items of one kind, the newest first; of the first kind where `kind` is empty. `tables` are
    the files by the name of the table. Cost: a pass over the times of the kind, and its rows up to the end of the part.
    Raises LookupError: the crawl has no such items.
    """
    kinds = tuple(
        archived.ItemKind(name.removeprefix(ITEMS), sum(one.rows for one in found)) for name, found in tables.items()
    )
    chosen = kind or (kinds[0].name if kinds else "")
    pieces = tables.get(ITEMS + chosen, ())
    if chosen and ITEMS + chosen not in tables:
        raise LookupError(chosen)
    total = sum(one.rows for one in pieces)
    with database_of(pieces, folder) as database:
        database.execute("PRAGMA threads = 1")
        rows = open_view(database, "items", pieces)
        if rows is None:
            return archived.ItemList(kinds=kinds, kind=chosen, columns=(), items=(), offset=offset, total=total)
        fields = [name for name in rows.columns if name not in (*ITEM_PLACES, "url")][: archived.COLUMNS_MAX]
        shown = "".join(f", left({quote(name)}::VARCHAR, {archived.CHARACTERS_MAX})" for name in fields)
        found = database.execute(
            f"SELECT url, epoch_us(fetched_at){shown} FROM items "  # noqa: S608 - column names are quoted
            f"ORDER BY fetched_at DESC, url, {ITEM} LIMIT {limit:d} OFFSET {offset:d}"
        ).fetchall()
    items = tuple(archived.ItemRow(url=url, at=iso_time(at / 1e6), values=tuple(values)) for url, at, *values in found)
    return archived.ItemList(kinds=kinds, kind=chosen, columns=tuple(fields), items=items, offset=offset, total=total)


def comparison_of(
    names: tuple[str, str],
    earlier: Sequence[ExportPiece],
    later: Sequence[ExportPiece],
    change: archived.Compared,
    limit: int,
    offset: int,
    folder: Path,
) -> archived.Comparison:
    """Compare the last visit to each URL in two crawls, by the files of their `pages`. Seconds per million URLs; what
    does not fit in memory goes to `folder`. Raises DamagedError: a file of a table is not what was written.
    """
    with pages_in(later, folder) as database:
        database.execute(f"PRAGMA threads = 1; PRAGMA memory_limit = '{COMPARISON_BYTES_MAX}B'")
        if open_view(database, "first_pages", earlier) is None:
            database.execute("CREATE VIEW first_pages AS SELECT * FROM pages WHERE false")
        last = _SQL["last"].format
        first, second = (last(pages=name, characters=archived.CHARACTERS_MAX) for name in ("first_pages", "pages"))
        database.execute(_SQL["compared"].format(first=first, second=second, content=_texts(WITH_CONTENT)))
        counts = dict(database.execute("SELECT change, count(*) FROM compared GROUP BY 1").fetchall())
        outcomes: dict[str, tuple[int, int]] = {}
        for place, column in enumerate(("before", "after")):
            rows = database.execute(f"SELECT {column}, count(*) FROM compared GROUP BY 1").fetchall()  # noqa: S608 - ours
            for outcome, number in rows:
                if outcome is not None:
                    one, two = outcomes.get(outcome, (0, 0))
                    outcomes[outcome] = (one, number) if place else (number, two)
        listed = database.execute(_SQL["listed"], [change, limit, offset]).fetchall()
    return archived.Comparison(
        first=names[0], second=names[1],
        counts={name: counts.get(name, 0) for name in ("new", "gone", "changed", "same")},
        outcomes=dict(sorted(outcomes.items(), key=lambda one: (-sum(one[1]), one[0]))), change=change,
        pages=tuple(
            archived.ComparedPage(url=url, title=title, before=before, after=after, status=status)
            for url, title, before, after, status in listed
        ),
        offset=offset,
    )  # fmt: skip
