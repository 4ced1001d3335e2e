"""Databases: the same rows as the tables, with comments, and views that both databases answer alike."""

from __future__ import annotations

import resource
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import duckdb
import pytest

from gossamer.results.export.database import read_notes
from gossamer.results.export.export import Exported
from gossamer.stages.archive.schema import EPOCHS, ITEM_PLACES, LINKS, PAGES, TABLES
from gossamer.stages.process.audit import Audit
from gossamer.stages.process.choice import MODULES
from tests.results.export.test_views import as_text, latest, rows

Exporting = Callable[..., Exported]
Ask = Callable[[str], list[tuple[Any, ...]]]


def opened(to: str, file: Path) -> Ask:
    """Return a function that answers SQL."""
    if to == "duckdb":
        database = duckdb.connect(str(file), read_only=True)
        return lambda sql: database.execute(sql).fetchall()
    return lambda sql: sqlite3.connect(f"file:{file}?mode=ro", uri=True).execute(sql).fetchall()


@pytest.mark.parametrize("to", ["duckdb", "sqlite"])
@pytest.mark.parametrize("table", ["pages", "links"])
def test_a_database_holds_every_row_and_column(
    crawled: Path, exporting: Exporting, tmp_path: Path, to: str, table: str
) -> None:
    done = exporting(to, tmp_path / "out")
    ask = opened(to, tmp_path / "out")
    expected = rows(crawled, table)
    assert done.rows[table] == len(expected)
    names = (PAGES if table == "pages" else LINKS).names
    time = "strftime(fetched_at, '%Y-%m-%dT%H:%M:%S.%fZ')" if to == "duckdb" else "fetched_at"
    shown = [time if name == "fetched_at" else name for name in names if name != "simhash"]
    found = ask(f"SELECT {', '.join(shown)} FROM {table}")
    wanted = [tuple(as_text(row)[name] for name in names if name != "simhash") for row in expected]
    assert Counter(found) == Counter(wanted)
    if table == "pages":
        hashes = [row["simhash"] for row in expected]
        signed = [one if to == "duckdb" or one is None or one < 1 << 63 else one - (1 << 64) for one in hashes]
        assert Counter(value for (value,) in ask("SELECT simhash FROM pages")) == Counter(signed)


@pytest.mark.parametrize("to", ["duckdb", "sqlite"])
def test_views_answer_what_is_asked_most(crawled: Path, exporting: Exporting, tmp_path: Path, to: str) -> None:
    exporting(to, tmp_path / "out")
    ask = opened(to, tmp_path / "out")
    pages = rows(crawled, "pages")
    newest = {str(row["key"]): row for row in sorted(pages, key=lambda row: (row["fetched_at"], row["attempt"]))}
    assert dict(ask("SELECT key, outcome FROM latest")) == {key: row["outcome"] for key, row in newest.items()}
    assert {key for (key,) in ask("SELECT key FROM latest WHERE outcome = 'fetched'")} <= set(latest(crawled))
    assert dict(ask("SELECT host, attempts FROM hosts")) == Counter(row["host"] for row in pages)
    assert dict(ask("SELECT host, pages FROM hosts WHERE pages > 0")) == Counter(
        row["host"] for row in pages if row["outcome"] in ("fetched", "not_modified")
    )
    bad = {key for key, row in newest.items() if row["outcome"] not in ("fetched", "not_modified", "redirected")}
    links = rows(crawled, "links")
    assert Counter(ask("SELECT from_url, to_url FROM broken_links")) == Counter(
        (row["from_url"], row["to_url"]) for row in links if row["to_key"] in bad
    )
    assert dict(ask("SELECT key, links FROM inlinks")) == Counter(row["to_key"] for row in links)


def test_older_versions_of_duckdb_read_a_database(exporting: Exporting, tmp_path: Path) -> None:
    exporting("duckdb", tmp_path / "out")
    header = (tmp_path / "out").read_bytes()[:20]
    assert header[8:12] == b"DUCK"
    assert int.from_bytes(header[12:20], "little") == 64, "the format of 1.0; a newer one is refused by all before it"


@pytest.mark.parametrize("to", ["duckdb", "sqlite"])
def test_a_database_for_which_there_is_no_room_is_one_line(exporting: Exporting, tmp_path: Path, to: str) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (16_384, limits[1])
    )  # The system refuses to write more, as on a full disk.
    try:
        with pytest.raises(OSError, match=r"/out: [^\n]*\Z"):
            exporting(to, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    exporting(to, tmp_path / "out")
    assert opened(to, tmp_path / "out")("SELECT count(*) > 0 FROM latest") == [(True,)]


def columns_of_modules() -> set[str]:
    """Return the columns that modules add to the table of pages."""
    return {name for place in MODULES.values() for name in getattr(resolve_name(place), "columns", {})}


def test_each_column_of_a_module_has_a_comment() -> None:
    notes = read_notes()
    assert all(notes.comment("pages", name) for name in columns_of_modules())


def test_tables_and_columns_have_their_comments(crawled: Path, exporting: Exporting, tmp_path: Path) -> None:
    notes = read_notes()
    known = notes.columns
    assert {*notes.tables} == {*TABLES, "items", "fragments"}
    assert {*known["modules"]} <= columns_of_modules()
    assert {*known["fragments"]} == {"url", *Audit.tables["fragments"]}
    assert list(known["pages"]) == PAGES.names
    assert list(known["links"]) == LINKS.names
    assert list(known["epochs"]) == EPOCHS.names
    assert list(known["items"]) == ["url", *ITEM_PLACES]
    exporting("duckdb", tmp_path / "duck")
    exporting("sqlite", tmp_path / "lite")
    said = opened("duckdb", tmp_path / "duck")(
        "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'links'"
    )
    assert dict(said) == known["links"]
    said = opened("duckdb", tmp_path / "duck")("SELECT table_name, comment FROM duckdb_tables()")
    assert {name: notes.comment(name) for name, _ in said} == dict(said)
    (made,) = opened("sqlite", tmp_path / "lite")("SELECT sql FROM sqlite_master WHERE name = 'links'")
    assert made[0].splitlines()[0].endswith(f" -- {notes.tables['links']}")
    assert [line.partition(" -- ")[2] for line in made[0].splitlines()[1:-1]] == list(known["links"].values())


@pytest.mark.promise("Files and exports", "Each column of a database's tables and views has its meaning as a comment.")
def test_columns_of_views_of_sqlite_have_their_comments(crawled: Path, exporting: Exporting, tmp_path: Path) -> None:
    exporting("sqlite", tmp_path / "lite")
    notes = read_notes()
    query = opened("sqlite", tmp_path / "lite")
    made = {name: sql.splitlines() for name, sql in query("SELECT name, sql FROM sqlite_master WHERE type = 'view'")}
    assert made.keys() == notes.views.keys()
    for name, lines in made.items():
        assert lines[0] == f'CREATE VIEW "{name}" ( -- {notes.views[name].says}'
        columns = [column for _, column, *_ in query(f"PRAGMA table_info({name})")]
        said = dict(line.split(" -- ") for line in lines[1 : lines.index(") AS")])
        assert [column.strip(' ",') for column in said] == columns
        assert list(said.values()) == [notes.comment_of_view(name, column) for column in columns]


@pytest.mark.promise("Files and exports", "Each column of a database's tables and views has its meaning as a comment.")
def test_columns_of_tables_and_views_of_duckdb_have_their_comments(
    crawled: Path, exporting: Exporting, tmp_path: Path
) -> None:
    exporting("duckdb", tmp_path / "duck")
    sql = "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
    said = {(table, column): comment for table, column, comment in opened("duckdb", tmp_path / "duck")(sql)}
    assert {place for place, comment in said.items() if not comment} == set()
    assert {"pages", "links", *read_notes().views} <= {table for table, _ in said}
    of_pages = {column: comment for (table, column), comment in said.items() if table == "pages"}
    assert {column: comment for (table, column), comment in said.items() if table == "latest"} == of_pages
    assert said["hosts", "attempts"] == "Attempts at pages of the host."
    assert said["broken_links", "from_url"] == "Page that has the link."


@pytest.mark.parametrize("to", ["duckdb", "sqlite"])
def test_one_table_with_a_condition_has_no_views(exporting: Exporting, tmp_path: Path, to: str) -> None:
    done = exporting(to, tmp_path / "out", table="links", where="nofollow")
    ask = opened(to, tmp_path / "out")
    assert [(done.rows["links"],)] == ask("SELECT count(*) FROM links WHERE nofollow")
    tables = "SELECT table_name FROM duckdb_tables()" if to == "duckdb" else "SELECT name FROM sqlite_master"
    assert all(name.startswith("links") for (name,) in ask(tables))


@pytest.mark.parametrize("to", ["duckdb", "sqlite"])
def test_a_crawl_without_rows_has_its_tables(exporting: Exporting, tmp_path: Path, to: str) -> None:
    (tmp_path / "empty").mkdir()
    assert exporting(to, tmp_path / "out", directory=tmp_path / "empty").rows == {"pages": 0, "links": 0}
    assert opened(to, tmp_path / "out")("SELECT * FROM broken_links") == []
