"""What processing modules add to the tables: columns of `pages`, and tables of their own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.model.pages import Findings
from gossamer.stages.archive.follower import Follower
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.schema import LINKS, PAGES, fit_batch, kind_of, unify_schemas
from gossamer.stages.archive.tables import TableWriters

from .web import Shard, visited


class Crawl:
    """Runs of a crawl in one directory, each with modules of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._runs = 0

    def run(
        self,
        *pages: Findings,
        columns: dict[str, str] | None = None,
        tables: dict[str, dict[str, str]] | None = None,
        finish: bool = True,
        cut: bool = True,
    ) -> None:
        self._runs += 1
        shard = Shard(self.directory)
        into = TableWriters(ArchiveOptions(), shard.journals, 0, self._runs if finish else 1, columns, tables)
        for number, findings in enumerate(pages):
            one = visited(f"http://example.org/{self._runs}/{number}", links=1)
            one.findings = findings
            into.add(one)
            if cut:
                into.cut()
        into.close()
        shard.commit()
        Follower(shard.journals).finish()
        shard.commit()

    def table(self, name: str) -> pa.Table:
        return pq.read_table(max((self.directory / name).glob("*.parquet")))

    def query(self, name: str, wanted: str, order: str = "url") -> list[tuple[object, ...]]:
        with duckdb.connect() as connection:
            files = [str(path) for path in (self.directory / name).glob("*.parquet")]
            seen = connection.read_parquet(files, union_by_name=True)  # noqa: F841 - named in the query
            return connection.sql(f"SELECT {wanted} FROM seen ORDER BY {order}").fetchall()


DECLARED = {"a": "int", "b": "text", "c": "float", "d": "texts", "e": "json", "f": "bool", "g": "time"}
VALUES = {"a": 7, "b": "x\ud800", "c": 0.5, "d": ["u", "v"], "e": '{"k":1}', "f": True, "g": 1_767_225_600.25}


def test_declared_columns_stand_in_every_row(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.run(Findings(columns=dict(VALUES)), Findings(), columns=DECLARED)
    table = crawl.table("pages")
    assert table.schema.names == [*PAGES.names, *DECLARED]
    first, second = table.select(list(DECLARED)).to_pylist()
    assert first == {**VALUES, "b": "x?", "g": datetime(2026, 1, 1, 0, 0, 0, 250_000, UTC)}
    assert set(second.values()) == {None}


def test_a_crawl_whose_modules_add_nothing_has_the_plain_tables(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.run(Findings(), Findings())
    assert crawl.table("pages").schema.equals(PAGES)
    assert crawl.table("links").schema.equals(LINKS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links", "pages", "state"]


def test_columns_that_nobody_declared_appear_with_their_first_value(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.run(Findings(), Findings(columns={"words": 3}), Findings(columns={"kind": "x", "words": 4.5}))
    rows = crawl.table("pages").select(["kind", "words"]).to_pylist()
    assert rows == [{"kind": None, "words": None}, {"kind": None, "words": 3.0}, {"kind": "x", "words": 4.5}]


@pytest.mark.parametrize("cut", [True, False], ids=["in frames of their own", "in one frame"])
def test_values_that_do_not_agree_become_text(tmp_path: Path, cut: bool) -> None:
    crawl = Crawl(tmp_path)
    crawl.run(*[Findings(columns={"x": value}) for value in (1, "one", ["a", "b"])], cut=cut)
    assert crawl.table("pages")["x"].to_pylist() == ["1", "one", '["a","b"]' if not cut else '["a", "b"]']


def test_modules_may_come_and_go_between_runs(tmp_path: Path) -> None:
    """Each file has its own columns; read by name they make one table."""
    crawl = Crawl(tmp_path)
    crawl.run(Findings(columns={"words": 1}), columns={"words": "int"})
    crawl.run(Findings())
    crawl.run(Findings(columns={"language": "de", "words": 2}), columns={"language": "text", "words": "int"})
    assert crawl.query("pages", "words, language") == [(1, None), (None, None), (2, "de")]


def test_a_log_that_two_runs_wrote_has_the_columns_of_both(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    for number, columns in enumerate(({"words": "int"}, {"language": "text"})):
        into = TableWriters(ArchiveOptions(), shard.journals, 0, 1, columns)
        one = visited(f"http://example.org/{number}")
        one.findings = Findings(columns={"words": 5} if number == 0 else {"language": "de"})
        into.add(one)
        into.cut()
    into.close()
    shard.commit()
    Follower(shard.journals).finish()
    (path,) = (tmp_path / "pages").glob("*.parquet")
    assert pq.read_table(path).select(["words", "language"]).to_pylist() == [
        {"words": 5, "language": None},
        {"words": None, "language": "de"},
    ]


def test_tables_of_a_modules_own(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    kinds = {"images": {"src": "text", "width": "int"}}
    rows: list[dict[str, object]] = [{"src": "a.png", "width": 5}, {"src": "b.png", "width": None}]
    crawl.run(Findings(rows={"images": rows}), Findings(rows={"images": [], "more": [{"n": 1}]}), tables=kinds)
    table = crawl.table("images")
    assert table.schema.names == ["url", "src", "width"]
    assert crawl.query("images", "url, src, width", "src") == [
        ("http://example.org/1/0", "a.png", 5),
        ("http://example.org/1/0", "b.png", None),
    ]
    assert crawl.query("more", "url, n") == [("http://example.org/1/1", 1)]


def test_a_declared_table_without_rows_leaves_no_file(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.run(Findings(), tables={"images": {"src": "text"}})
    assert not (tmp_path / "images").exists()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "int"), ([1, 2.5], "float"), ([True], "bool"), ([True, 1], "json"), (["a"], "text"),
        ([1, "a"], "json"),
        ([["a"]], "texts"), ([[]], "json"), ([["a", 1]], "json"), ([{}], "json"), ([2**70], "json"),
        ([datetime(2026, 1, 1, tzinfo=UTC)], "time"), ([], "json"),
    ],
)  # fmt: skip
def test_what_values_are(values: list[object], kind: str) -> None:
    assert kind_of(values) == kind


def test_schemas_are_united_in_order() -> None:
    one = pa.schema([("a", pa.int64()), ("b", pa.string())])
    other = pa.schema([("c", pa.bool_()), ("a", pa.float64())])
    both = unify_schemas([one, other])
    assert both == pa.schema([("a", pa.float64()), ("b", pa.string()), ("c", pa.bool_())])
    batch = fit_batch(pa.record_batch([[1], ["x"]], schema=one), both)
    assert batch.to_pylist() == [{"a": 1.0, "b": "x", "c": None}]
