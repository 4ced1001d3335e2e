"""The queue builder lists what a crawl would have queued, each URL once, whatever was killed."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.config import configure
from gossamer.model.errors import ConfigError
from gossamer.results.offline import steps
from gossamer.results.offline.build import ALL, SegmentBuilt, SegmentOrder, build
from gossamer.results.offline.segment import Segment
from gossamer.results.offline.steps import BuildRequest
from tests.results.offline.made import web, write
from tests.results.offline.reference import Index, expected

pytestmark = pytest.mark.promise("Offline crawls", "A build lists what a crawl would queue.")

Row = tuple[str, int, int, int, str, str, int]
SETTINGS = (
    ("scope.scope=any",),
    ("scope.scope=any", "scope.depth_max=2"),
    ("scope.scope=host", "scope.depth_max=3", "scope.hops_max=1"),
    ("scope.scope=domain", 'scope.exclude=["p1[0-5]$"]', "scope.hops_max=2"),
    ("scope.scope=any", 'scope.exclude=["%7E"]', "scope.depth_max=1"),
)


def rows_of(*paths: Path) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for path in paths:
        with closing(Segment(path)) as segment:
            for part in segment.links():
                for one, level, listed in zip(part.links, part.levels, part.listed, strict=True):
                    assert one.url.key not in found, "a URL is listed once"
                    assert one.url.fingerprint
                    row = (one.url.text, level, one.depth, one.hops, one.link_type, one.referrer, listed)
                    found[one.url.key] = row
    return found


def built(
    folder: Path,
    name: str = "next.parquet",
    sets: tuple[str, ...] = SETTINGS[0],
    wish: BuildRequest = ALL,
    **more: object,
) -> SegmentBuilt:
    return build(SegmentOrder((folder,), folder / name, sets=sets, wish=wish, **more))  # type: ignore[arg-type]


@pytest.mark.heavy
@pytest.mark.parametrize("sets", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_it_lists_what_a_simple_reference_lists(
    tmp_path: Path, seed: int, sets: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rounds on random tables: all that is new, with the least way of all links that are followed, and no more."""
    dice = random.Random(seed)
    monkeypatch.setattr(steps, "BUFFER_BYTES_MIN", dice.choice([1_000, 4_000, 8_000_000]))
    monkeypatch.setattr(steps, "BASE_BYTES", 1 << 40)
    index, config = Index(), configure(None, sets=sets)
    pages, links = web(dice, 120, 40)
    for round_number in range(2):
        folder = write(tmp_path / str(round_number), pages, links, dice.choice([7, 50]))
        wanted = expected(pages, links, config, index, retries=1)
        order = SegmentOrder(
            (folder,), tmp_path / f"{round_number}.parquet", tmp_path / "known", sets=sets, wish=BuildRequest(retries=1)
        )
        assert build(order).urls == len(wanted)
        found = rows_of(tmp_path / f"{round_number}.parquet")
        assert found.keys() == wanted.keys()
        for key, (text, level, depth, hops, kind, referrer, listed) in found.items():
            one = wanted[key]
            assert (depth, hops, listed, level) == (
                one.depth,
                one.hops,
                one.listed,
                min(depth, 7) if kind != "seed" else 0,
            )
            assert (text, kind, referrer) in one.shortest
        more, new = web(random.Random(100 + seed), 120, 40)
        pages, links = more, new


PAGE = {
    "url": "http://a.example/", "key": "http://a.example/", "fetched_at": datetime(2026, 1, 1, tzinfo=UTC),
    "outcome": "fetched", "status": 200, "depth": 0, "link_type": "seed", "redirect_to": "", "attempt": 1,
}  # fmt: skip
LINK = {
    "from_url": "http://a.example/", "to_url": "http://a.example/x", "to_key": "http://a.example/x",
    "link_type": "anchor", "nofollow": False,
}  # fmt: skip


def built_of(folder: Path, pages: list[dict[str, Any]], links: list[dict[str, Any]]) -> int:
    """Build from tables that another program wrote."""
    for name, found in (("pages", pages), ("links", links)):
        (folder / "in" / name).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(found), folder / "in" / name / "a.parquet")
    return build(SegmentOrder((folder / "in",), folder / "next.parquet", sets=("scope.scope=any",))).urls


def test_tables_of_another_program_are_read(tmp_path: Path) -> None:
    empty = {name: None for name in PAGE if name not in ("url", "outcome")}
    assert built_of(tmp_path, [PAGE, PAGE | {"url": "http://a.example/y"} | empty], [LINK]) == 1


@pytest.mark.parametrize("name", [*PAGE, *LINK])
@pytest.mark.parametrize("how", ["lacks", "is null", "is a list"])
def test_tables_of_another_program_that_do_not_fit_are_reported_in_one_line(
    tmp_path: Path, name: str, how: str
) -> None:
    row = PAGE if name in PAGE else LINK
    others = {key: value for key, value in row.items() if key != name}
    worse = {"lacks": others, "is null": row | {name: None}, "is a list": row | {name: [1]}}[how]
    rows = [row, worse] if how == "is null" else [worse]
    tables = ([PAGE], rows) if row is LINK else (rows, [LINK])
    if how == "is null" and name not in ("url", "outcome", "from_url", "to_url"):
        assert built_of(tmp_path, *tables) == 1
        return
    with pytest.raises(ConfigError, match=rf"a\.parquet.* {name}\b") as raised:
        built_of(tmp_path, *tables)
    assert "\n" not in str(raised.value)
