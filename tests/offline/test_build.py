"""The queue builder lists what a crawl would have queued, each URL once, whatever was killed."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from gossamer.config import configure
from gossamer.offline import steps
from gossamer.offline.build import ALL, SegmentBuilt, SegmentOrder, build
from gossamer.offline.segment import Segment
from gossamer.offline.steps import BuildRequest
from tests.offline.made import web, write
from tests.offline.reference import Index, expected

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
