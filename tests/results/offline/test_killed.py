"""A builder killed at every kind of moment: the same command finishes its work, and the result is the same."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.crash.forks import Forks, forks
from tests.results.offline.made import web, write

pytestmark = pytest.mark.promise("Offline crawls", "A killed build of segments continues and ends the same.")


@pytest.fixture(scope="module")
def builder() -> Iterator[Forks]:
    with forks("tests.results.offline.killing") as builder:
        yield builder


def job_in(
    folder: Path, tables: list[Path], *, known: bool, bloom: float | None = None, parts: int = 1
) -> dict[str, Any]:
    return {
        "places": [str(one) for one in tables[:1]],
        "target": str(folder / "1.parquet"),
        "known": str(folder / "known") if known else "",
        "bloom": bloom,
        "sets": ["scope.scope=any", "scope.depth_max=3"],
        "per_host": 4 if known else 0,
        "parts": parts,
        "buffer_bytes": 1_000,
        "fatal": 0,
        "answer": str(folder / "answer"),
    }


def state_of(folder: Path) -> dict[str, str]:
    """Return digests of the segments and of what counts in the index; nothing else may be left."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in ("answer", "lock", "manifest.json"):
            found[str(path.relative_to(folder))] = digest_of(path)
    manifest = folder / "known" / "manifest.json"
    if manifest.exists():
        held = json.loads(manifest.read_text())
        assert held["publishing"] == []
        found["manifest"] = json.dumps(held, sort_keys=True)
    return found


def digest_of(path: Path) -> str:
    """Return a digest of a file; of a segment, of its rows, for the order names the folder."""
    data = path.read_bytes()
    if data[:4] == b"PAR1":
        data = json.dumps(pq.read_table(path).to_pylist()).encode()
    return hashlib.sha1(data).hexdigest()


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("known", "bloom", "parts", "kills"),
    [
        (True, None, 2, 4),
        pytest.param(True, None, 1, 12, marks=pytest.mark.acceptance),
        pytest.param(False, None, 2, 8, marks=pytest.mark.acceptance),
        pytest.param(True, 0.001, 1, 8, marks=pytest.mark.acceptance),
    ],
)
@pytest.mark.long
def test_a_build_that_is_killed_again_and_again_ends_as_if_it_had_not_been(
    tmp_path: Path, builder: Forks, known: bool, bloom: float | None, parts: int, kills: int
) -> None:
    """Also the build after it: nothing is listed twice, and nothing is lost."""
    dice = random.Random(f"{known} {bloom} {parts}")
    tables = [write(tmp_path / f"crawl-{n}", *web(random.Random(n), 60, 25)) for n in (1, 2)]
    whole = tmp_path / "whole"
    whole.mkdir()
    job = job_in(whole, tables, known=known, bloom=bloom, parts=parts)
    second = {**job, "places": [str(tables[1])], "target": str(whole / "2.parquet")}
    assert builder(**job) == "done"
    count = int((whole / "answer").read_text())
    assert builder(**second) == "done"
    wanted = state_of(whole)
    assert count > 50, "there are many moments"
    # The last ones are where segments get their names: of these each in turn.
    last = dice.sample(range(count - 7, count + 1), kills // 2)
    moments = [*dice.sample(range(1, count - 7), kills - kills // 2), *last]
    for moment in moments:
        folder = tmp_path / "killed"
        folder.mkdir()
        job = job_in(folder, tables, known=known, bloom=bloom, parts=parts)
        assert builder(**{**job, "fatal": moment}) == "killed", f"step {moment} of {count}"
        again = dice.randrange(1, count)
        outcome = builder(**{**job, "fatal": again})
        assert outcome in ("killed", "done")
        assert builder(**job) == "done", f"killed at {moment}, then at {again}"
        assert builder(**{**job, "places": [str(tables[1])], "target": str(folder / "2.parquet")}) == "done"
        found = state_of(folder)
        assert same(found) == same(wanted), f"killed at {moment}, then at {again}"
        shutil.rmtree(folder)


@pytest.mark.heavy
def test_a_build_that_is_killed_while_it_begins_its_index_is_repeated(tmp_path: Path, builder: Forks) -> None:
    tables = [write(tmp_path / "crawl", *web(random.Random(1), 20, 5))]
    left = set()
    for moment in range(1, 9):
        folder = tmp_path / f"killed-{moment}"
        folder.mkdir()
        job = job_in(folder, tables, known=True)
        assert builder(**{**job, "fatal": moment}) == "killed"
        left.add(tuple(sorted(path.name for path in (folder / "known").glob("*"))))
        assert builder(**job) == "done", f"killed at {moment}"
    assert ("lock", "manifest.json.new") in left


def same(state: dict[str, str]) -> dict[str, str]:
    """Return a state without the numbers of files: a killed build may have used up some."""
    kept = {name: digest for name, digest in state.items() if not name.startswith("known/") and name != "manifest"}
    kept["index"] = " ".join(sorted(digest for name, digest in state.items() if name.startswith("known/")))
    if "manifest" in state:
        kept["urls"] = str(json.loads(state["manifest"])["urls"])
    return kept
