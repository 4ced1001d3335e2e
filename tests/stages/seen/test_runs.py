"""Runs: what was written is found, several become one, and damage is noticed."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from gossamer.stages.seen.runs import (
    BLOCK_BYTES,
    BLOCK_URLS,
    NOWHERE,
    SLICE_BLOCKS,
    FingerprintRun,
    Slice,
    UrlFilter,
    least_ways,
    mask_of,
    merge,
    write_run,
)

LAST = (1 << 64) - 1
Model = dict[int, int]


def model(count: int, seed: int) -> Model:
    dice = random.Random(seed)
    return {dice.getrandbits(64): dice.randrange(1 << 24) for _ in range(count)}


def slice_of(ways: Model) -> Slice:
    fingerprints = sorted(ways)
    return np.array(fingerprints, np.uint64), np.array([ways[one] for one in fingerprints], np.uint32)


def written(path: Path, ways: Model) -> FingerprintRun:
    write_run(path, [slice_of(ways)], len(ways))
    return FingerprintRun(path)


def all_of(run: FingerprintRun) -> Model:
    fingerprints, ways = run.between(0, 1 << 64)
    return dict(zip(fingerprints.tolist(), ways.tolist(), strict=True))


@pytest.mark.parametrize("count", [1, BLOCK_URLS - 1, BLOCK_URLS, BLOCK_URLS + 1, 5000])
def test_what_was_written_is_found_and_nothing_else(tmp_path: Path, count: int) -> None:
    ways = model(count, count) | {0: 0xFFFFFF, LAST: 1}
    run = written(tmp_path / "run", ways)

    assert run.urls == len(ways)
    assert all(run.may_hold(one, mask_of(one)) for one in ways)
    assert {one: run.find(one) for one in ways} == ways
    assert [one for one in model(300, 999) if run.find(one) is not None] == []
    assert run.find(1) is None
    assert run.find(LAST - 1) is None
    assert all_of(run) == ways
    run.close()


def test_the_filter_spares_most_reads(tmp_path: Path) -> None:
    run = written(tmp_path / "run", model(50_000, 1))
    others = model(20_000, 2)

    assert sum(run.may_hold(one, mask_of(one)) for one in others) < 0.2 * len(others)
    assert 8 * (len(run._firsts) + len(run.words)) < 0.6 * run.urls
    run.close()


def test_a_filter_has_all_that_was_added_and_few_others_at_any_size() -> None:
    found = UrlFilter(10_000, 8)
    added, others = list(model(100_000, 1)), list(model(20_000, 2))
    for start in range(0, 80_000, 2_000):
        found.add_all(np.array(sorted(added[start : start + 2_000]), np.uint64))
    for one in added[80_000:]:
        found.add(one)
    assert found.may_have(np.array(added, np.uint64)).all()
    assert found.may_have(np.array(others, np.uint64)).sum() < 0.15 * len(others)
    assert sum(8 * count for _, count in found._parts) <= 2 * len(added)


def test_runs_become_one_with_the_least_way_of_each(tmp_path: Path) -> None:
    large, small, fresh = model(3 * SLICE_BLOCKS * BLOCK_URLS, 1), model(9000, 2), model(2000, 3)
    small |= dict.fromkeys(list(large)[:4000], 5 << 8 | 2)
    fresh |= dict.fromkeys(list(large)[2000:6000], 2 << 8 | 5) | {0: 7, LAST: 8}
    runs = [written(tmp_path / "large", large), written(tmp_path / "small", small)]
    least: Model = {}
    for ways in (large, small, fresh):
        for one, way in ways.items():
            known = least.get(one, 0xFFFFFF)
            least[one] = min(known >> 8, way >> 8) << 8 | min(known & 255, way & 255)

    slices = list(merge(runs, slice_of(fresh)))
    assert max(len(one[0]) for one in slices) < 2 * SLICE_BLOCKS * BLOCK_URLS, "memory does not grow with the runs"
    write_run(tmp_path / "all", slices, sum(map(len, (large, small, fresh))))
    run = FingerprintRun(tmp_path / "all")
    assert all_of(run) == least
    assert all(run.may_hold(one, mask_of(one)) for one in least)

    wanted = sorted([*list(least)[::7], *model(500, 9), 1, LAST - 1])
    known = least_ways(runs, np.array(wanted, np.uint64)).tolist()
    in_runs = {one: min([ways[one] for ways in (large, small) if one in ways]) for one in (*large, *small)}
    for one, way in zip(wanted, known, strict=True):
        if one in large and one in small:
            assert way == min(large[one] >> 8, 5) << 8 | min(large[one] & 255, 2)
        else:
            assert way == in_runs.get(one, NOWHERE)
    for one in [*runs, run]:
        one.close()


def test_damage_is_an_error_and_not_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "run"
    ways = model(3 * BLOCK_URLS, 1)
    written(path, ways).close()
    sound = path.read_bytes()

    path.write_bytes(sound[:100] + bytes([sound[100] ^ 1]) + sound[101:])
    run = FingerprintRun(path)
    with pytest.raises(OSError, match="damaged"):
        run.find(min(ways))
    with pytest.raises(OSError, match="damaged"):
        run.between(0, 1 << 64)
    assert run.find(max(ways)) == ways[max(ways)]
    run.close()
    at = 3 * BLOCK_BYTES + 10
    for broken in (sound[:-1], sound[: len(sound) // 2], b"", sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :]):
        path.write_bytes(broken)
        with pytest.raises(OSError, match="damaged"):
            FingerprintRun(path)
