"""Faults: faults of a crawled site: its links, titles, headings, canonical addresses, languages, sitemaps, copies."""

import pkgutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import duckdb
import msgspec

from gossamer.model.outcomes import ANSWERED
from gossamer.results.export.changes import database_of
from gossamer.results.export.source import open_view
from gossamer.results.export.work import ExportPiece
from gossamer.results.report.tables import queries
from gossamer.stages.process.audit import NO_PLACE

TABLES = ("pages", "links", "fragments", "sitemap_versions")
"""Tables of a crawl that are read, where it has them."""
Severity = Literal["error", "warning", "notice", ""]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "notice")
CLICKS_MAX = 4
"""Clicks from the start within which every page should be."""


class FaultKind(msgspec.Struct, frozen=True):
    """One kind of fault."""

    severity: Severity
    """Empty: it is no fault."""
    heading: str
    advice: str
    """How to mend it."""


_KINDS = pkgutil.get_data("gossamer.results.export", "faults.toml") or b""
KINDS = msgspec.toml.decode(_KINDS, type=dict[str, FaultKind])
"""Kinds of fault, the worst first; the last two are no faults."""


class SiteFault(msgspec.Struct, frozen=True):
    """One fault of a site."""

    kind: str
    """One of `KINDS`. `not_checked` and `not_reached` are no faults: their links may be sound."""
    url: str
    detail: str = ""
    pages: list[str] = []
    """Pages that link or redirect to it, or that share its title."""

    @property
    def severity(self) -> Severity:
        """How bad it is; empty for what is no fault."""
        return KINDS[self.kind].severity


def faults_of_site(tables: Mapping[str, Sequence[ExportPiece]], folder: Path) -> list[SiteFault]:
    """Return the faults of a crawled site, by kind, then by URL. `tables` has the files of `pages` and `links`, and
    those of `TABLES` that the module `audit` made.

    About 20 µs a row. Rows that do not fit in memory go to `folder`; faults are held.
    """
    if not any(piece.rows for piece in tables["pages"]):
        return []
    questions = dict(queries(__package__, "faults.sql"))
    with database_of([piece for pieces in tables.values() for piece in pieces], folder) as database:
        _open_tables(database, tables)
        database.execute(questions.pop("tables"))
        database.execute(questions.pop("start"))
        click = questions.pop("click")
        for _ in range(CLICKS_MAX):
            database.execute(click)
        found = [
            SiteFault(kind, url, said or "", pages or [])
            for kind, question in questions.items()
            for url, said, pages in database.execute(question).fetchall()
        ]
    order = {kind: number for number, kind in enumerate(KINDS)}
    return sorted(found, key=lambda one: (order[one.kind], one.url, one.detail))


def _open_tables(database: duckdb.DuckDBPyConnection, tables: Mapping[str, Sequence[ExportPiece]]) -> None:
    """Name the tables that the crawl has."""
    for name in TABLES:
        open_view(database, name, tables.get(name, ()))
    database.execute("SET VARIABLE answered = ?", [ANSWERED])
    database.execute("SET VARIABLE no_place = ?", [NO_PLACE.pattern])
