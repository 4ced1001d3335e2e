"""Merging and splitting segments: no URL is lost, none stands twice, no site in two parts."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.results.offline import merge as merging
from gossamer.results.offline.merge import merge, split, summary
from gossamer.results.offline.segment import Segment, SegmentInfo, SegmentWriter
from gossamer.url.name import Namer
from tests.results.offline.test_build import rows_of


def segment(path: Path, numbers: list[int], depth: int, rules: str = "") -> Path:
    """Write a segment of some of the URLs."""
    namer = Namer()
    named = [namer.name(f"http://h{n % 7}.site{n % 31}.example/{n}") for n in numbers]
    links = [
        Link(url, "anchor", depth + n % 3, n % 2, f"http://{url.host}/")
        for n, url in zip(numbers, named, strict=True)
        if url
    ]
    links.sort(key=lambda link: (link.url.partition, link.url.site))
    with SegmentWriter(path, SegmentInfo(made_by="a test", rules=rules)) as writer:
        for at in range(0, len(links), 100):
            part = links[at : at + 100]
            writer.write_links(part, [link.depth for link in part], [1] * len(part))
    return path


@pytest.mark.parametrize("rows_max", [1, 500, 400_000])
def test_merging_keeps_each_url_once_by_its_least_way(
    tmp_path: Path, rows_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "ROWS_MAX", rows_max)
    dice = random.Random(1)
    held = [dice.sample(range(3_000), 1_500) for _ in range(3)]
    paths = [segment(tmp_path / f"{n}.parquet", numbers, 5 - n) for n, numbers in enumerate(held)]
    [about] = merge(paths, tmp_path / "all.parquet")
    wanted: dict[str, tuple[int, int]] = {}
    for path in paths:
        for key, row in rows_of(path).items():
            depth, hops = wanted.get(key, (99, 99))
            wanted[key] = min(depth, row[2]), min(hops, row[3])
    found = rows_of(tmp_path / "all.parquet")
    assert {key: row[2:4] for key, row in found.items()} == wanted
    assert about.urls == len(wanted)


def test_splitting_and_merging_again_changes_nothing(tmp_path: Path) -> None:
    whole = segment(tmp_path / "whole.parquet", list(range(2_000)), 1)
    parts = split(whole, tmp_path / "part.parquet", 5)
    paths = [tmp_path / f"part-{n}-of-5.parquet" for n in range(1, 6)]
    assert [(one.part, one.parts) for one in parts] == [(n, 5) for n in range(1, 6)]
    sites = []
    for path in paths:
        with closing(Segment(path)) as one:
            sites.append({link.url.site for rows in one.links() for link in rows.links})
    assert sum(map(len, sites)) == 31 == len(set.union(*sites))
    merge(paths, tmp_path / "again.parquet")
    assert rows_of(tmp_path / "again.parquet") == rows_of(whole)


def test_what_cannot_be_merged_is_reported(tmp_path: Path) -> None:
    one, other = segment(tmp_path / "1.parquet", [1], 1), segment(tmp_path / "2.parquet", [2], 1, rules="others")
    with pytest.raises(ConfigError, match="do not mix"):
        merge([one, other], tmp_path / "all.parquet")
    with pytest.raises(ConfigError, match="exists"):
        merge([one], other)
    with pytest.raises(ConfigError, match="0 parts: expected 1 to"):
        split(one, tmp_path / "x.parquet", 0)
    with pytest.raises(ConfigError, match="there is no directory"):
        split(one, tmp_path / "none" / "x.parquet", 2)
    assert len(list(tmp_path.iterdir())) == 2


def test_show_counts_what_there_is(tmp_path: Path) -> None:
    path = segment(tmp_path / "1.parquet", list(range(1_000)), 1)
    found = summary(path, 3)
    assert (found["urls"], found["sites"], found["hosts"]) == (1_000, 31, 217)
    assert found["by_depth"] == {1: 334, 2: 333, 3: 333}
    assert found["by_link_type"] == {"anchor": 1_000}
    largest, first = found["largest_sites"], found["first"]
    assert isinstance(largest, dict)
    assert isinstance(first, list)
    assert list(largest.values()) == [33, 33, 33]
    assert len(first) == 3
