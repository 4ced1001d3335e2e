"""The partition map: who has what, how little moves, and how even it is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.api.shards import map_of
from gossamer.cluster.partitions import FILE, PartitionMap
from gossamer.config import configure
from gossamer.model.errors import ConfigError
from gossamer.url.site import PARTITIONS, partition_of


@given(st.integers(1, 1024))
def test_the_first_map_is_even_to_one_partition(shards: int) -> None:
    counts = Counter(PartitionMap.even(shards).owners)
    assert len(counts) == shards
    assert max(counts.values()) - min(counts.values()) <= 1


@given(st.integers(1, 64), st.lists(st.integers(1, 64), min_size=1, max_size=4))
@pytest.mark.heavy
def test_scaling_keeps_it_even_and_moves_no_more_than_it_must(shards: int, steps: list[int]) -> None:
    partitions = PartitionMap.even(shards)
    for step in steps:
        moved = partitions.scale_to(step)
        assert (moved.version, moved.shards) == (partitions.version + 1, step)
        counts = Counter(moved.owners)
        assert sorted(counts) == list(range(step))
        assert max(counts.values()) - min(counts.values()) <= 1
        before = Counter(partitions.owners)
        least = sum(max(0, counts[shard] - before[shard]) for shard in range(step))
        changed = sum(one != other for one, other in zip(partitions.owners, moved.owners, strict=True))
        assert changed == least, "a partition moved that need not have"
        partitions = moved


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert PartitionMap.load(tmp_path) is None
    partitions = PartitionMap.even(5).scale_to(3).scale_to(7)
    partitions.save(tmp_path)
    assert PartitionMap.load(tmp_path) == partitions


@pytest.mark.parametrize("runs", ["[[0,5]]", "[]", "[[0,0],[9999,1]]", "7"])
def test_a_broken_map_is_one_line_for_the_operator(tmp_path: Path, runs: str) -> None:
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(f'{{"version":1,"shards":2,"runs":{runs}}}')
    with pytest.raises(ConfigError, match="no partition map"):
        PartitionMap.load(tmp_path)


@pytest.mark.parametrize("shards", [0, -1, 1025])
def test_a_number_of_shards_that_cannot_be(shards: int) -> None:
    with pytest.raises(ConfigError, match="1 to 1024 shards"):
        PartitionMap.even(shards)
    with pytest.raises(ConfigError, match="1 to 1024 shards"):
        PartitionMap.even(2).scale_to(shards)


def test_many_sites_are_spread_evenly() -> None:
    weights = [0.0] * PARTITIONS
    for number in range(200_000):
        weights[partition_of(f"site{number}.example")] += 1
    for shards in (2, 8, 64):
        most, mean = PartitionMap.even(shards).evenness(weights)
        assert most / mean < 1.1


@given(st.integers(1, 64), st.sets(st.integers(0, PARTITIONS - 1)))
def test_partitions_that_are_shared_out_are_even_and_the_others_stay(shards: int, partitions: set[int]) -> None:
    even = PartitionMap.even(shards)
    found = even.share_out(partitions)
    counts = Counter(found.owners[partition] for partition in partitions)
    assert max(counts.values(), default=0) - min((counts[shard] for shard in range(shards)), default=0) <= 1
    assert all(found.owners[one] == even.owners[one] for one in range(PARTITIONS) if one not in partitions)
    assert PartitionMap.decode(found.encode(), "the map") == found


def test_a_crawl_of_few_sites_divides_them_evenly(tmp_path: Path) -> None:
    """By their hash alone, one of three shards had six of nine sites."""
    sites = [site for site in (f"site{number}.example" for number in range(60)) if partition_of(site) < PARTITIONS // 3]
    seeds = tuple(f"https://www.{site}/{page}" for site in sites[:9] for page in range(3))
    config = configure(options={"output": str(tmp_path)}, sets=["cluster.workers=3"], seeds=seeds)
    found = map_of(config, tmp_path)
    assert sorted(Counter(found.owner(partition_of(site)) for site in sites[:9]).values()) == [3, 3, 3]
    found.save(tmp_path)
    other = configure(options={"output": str(tmp_path)}, sets=["cluster.workers=3"], seeds=("https://late.example/",))
    assert map_of(other, tmp_path) == found, "the map of a crawl that has one stays"
