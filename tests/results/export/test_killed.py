"""Every export killed at every kind of moment: the same command finishes it, and the result is the same."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from gossamer.results.export.export import FORMATS
from tests.crash.forks import Forks, forks

KILLS = 9
SEVERAL = "markdown,jsonl,bulk"
SMALL = {  # So that notes, spills, segments and files come often.
    "batch_rows": 10,
    "checkpoint_bytes": 9_000,
    "segment_bytes_max": 8_000,
    "pages_a_checkpoint": 20,
    "memory_bytes_min": 1,
    "memory_bytes_max": 300_000,
    "file_rows_max": 200,
    "pages_a_part": 20,
    "pages_a_commit": 15,
    "shard_bytes": 20_000,
    "bulk_bytes_max": 9_000,
}


SORTED = ("parquet", "cdxj")


class Exporter:
    """A process that makes exports and dies of some."""

    def __init__(self, program: Forks, crawl: Path, folder: Path) -> None:
        self._program = program
        self._crawl = crawl
        self._folder = folder

    def __call__(self, to: str, target: Path, fatal: int = 0) -> str:
        answer = self._folder / "steps"
        budget = {} if to in SORTED else {"memory_bytes_max": 128_000_000}  # A database cannot do with so little.
        if to in ("duckdb", "sqlite"):
            budget["checkpoint_bytes"] = 1_500  # It is compared with rows as they are in memory.
        return self._program(
            **{**SMALL, **budget}, crawl=str(self._crawl), to=to, target=str(target), fatal=fatal, answer=str(answer)
        )

    @property
    def steps(self) -> int:
        """How many steps the last whole export took."""
        return int((self._folder / "steps").read_text())


@pytest.fixture(scope="module")
def exporter(crawled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    with forks("tests.results.export.killing") as program:
        yield Exporter(program, crawled, tmp_path_factory.mktemp("exporter"))


def dump(file: Path) -> list[str]:
    """The rows of a database, table by table; nothing for another file."""
    head = file.read_bytes()[:16]
    if head.startswith(b"SQLite format 3"):
        return list(sqlite3.connect(file).iterdump())
    if head[8:12] != b"DUCK":
        return []
    with duckdb.connect(str(file), read_only=True) as database:
        tables = [str(name) for (name,) in database.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return [str(row) for name in sorted(tables) for row in sorted(database.sql(f"FROM {name}").fetchall(), key=str)]


def contents(target: Path) -> dict[str, str]:
    """Every file that the export made, by its digest; of a database what it holds, since its pages lie as they came."""
    if target.is_file() and (dumped := dump(target)):
        return {"": hashlib.sha256("\n".join(dumped).encode()).hexdigest()}
    files = [target] if target.is_file() else sorted(path for path in target.rglob("*") if path.is_file())
    return {str(path.relative_to(target)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.promise(
    "Files and exports", "An export is whole or absent under its name; a killed one continues and ends the same."
)
@pytest.mark.parametrize(
    "to",
    [FORMATS[0], *(pytest.param(to, marks=[pytest.mark.heavy, pytest.mark.long]) for to in (*FORMATS[1:], SEVERAL))],
)
def test_killed_at_any_step_it_goes_on_and_ends_the_same(to: str, exporter: Exporter, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    assert exporter(to, whole) == "done"
    steps, expected = exporter.steps, contents(whole)
    assert steps >= 12, "there is something to kill"
    for number in range(KILLS):
        target = tmp_path / f"killed-{number}"
        fatal = 1 + number * (steps - 1) // (KILLS - 1)
        assert exporter(to, target, fatal) == "killed"
        assert not target.exists() or contents(target) == expected, "half of it looks finished"
        assert exporter(to, target) == "done"
        assert contents(target) == expected, f"killed at step {fatal} of {steps}"
        assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith((".", target.name))) == [
            target.name
        ]


@pytest.mark.heavy
@pytest.mark.parametrize("to", FORMATS)
def test_killed_again_and_again_it_still_ends(to: str, exporter: Exporter, tmp_path: Path) -> None:
    whole, target = tmp_path / "whole", tmp_path / "target"
    assert exporter(to, whole) == "done"
    fatal = max(25, exporter.steps // 4)
    lives = 0
    while exporter(to, target, fatal) == "killed":
        lives += 1
        assert lives < 100, "it makes no way"
    assert lives >= 1
    assert contents(target) == contents(whole)
