"""The table of what was offered lately: small, never wrong, and alike for one link and for many."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.stages.seen.offers import depth_and_hops, way_of
from gossamer.stages.seen.popular import WAITS, Popular
from gossamer.url.url import Url

FINGERPRINTS = [0, 1, 15, 16, 31, 32, 1 << 63, (1 << 64) - 1]
ways = st.tuples(st.integers(0, 3), st.integers(0, 2))


def url(fingerprint: int) -> Url:
    return Url("", "", fingerprint, "", "", 0)


def is_unknown(popular: Popular, fingerprint: int, depth: int, hops: int) -> bool:
    _, places = popular.unknown([url(fingerprint)], [depth], [hops])
    return bool(places)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(FINGERPRINTS), ways), max_size=12), ways)
def test_it_knows_the_newest_of_each_place_and_nothing_else(
    noted: list[tuple[int, tuple[int, int]]], asked: tuple[int, int]
) -> None:
    popular, kept = Popular(16), {}
    for fingerprint, (depth, hops) in noted:
        popular.note(fingerprint, way_of(depth, hops))
        kept[fingerprint % 16] = fingerprint, depth, hops
    for fingerprint in FINGERPRINTS:
        known, depth, hops = kept.get(fingerprint % 16, (None, 0, 0))
        if known != fingerprint:
            assert popular.way(fingerprint) is None
            assert is_unknown(popular, fingerprint, *asked)
        else:
            assert depth_and_hops(popular.way(fingerprint) or 0) == (depth, hops)
            assert is_unknown(popular, fingerprint, *asked) == (asked[0] < depth or asked[1] < hops)


def test_many_at_once_are_reported_as_each_by_itself() -> None:
    dice, popular = random.Random(3), Popular(64)
    for _ in range(200):
        page = [url(dice.choice([dice.getrandbits(64), dice.randrange(90)])) for _ in range(40)]
        depths, hops = [dice.randrange(3)] * len(page), [dice.randrange(2)] * len(page)
        given_ways, unknown = popular.unknown(page, depths, hops)
        assert given_ways == [way_of(depths[0], hops[0])] * len(page)
        each = [is_unknown(popular, link.fingerprint, depths[0], hops[0]) for link in page]
        assert unknown == [index for index, is_new in enumerate(each) if is_new]
        fingerprints = np.array([link.fingerprint for link in page], np.uint64)
        found = popular.unknown_among(fingerprints, np.array(given_ways, np.uint32))
        assert found.tolist() == unknown
        for link in page[::3]:
            popular.note(link.fingerprint, given_ways[0])


@pytest.mark.parametrize("urls_max", [0, 1])
def test_a_table_of_one_place_remembers_nothing(urls_max: int) -> None:
    popular = Popular(urls_max)
    popular.note(5, way_of(0, 0))
    assert popular.way(5) is None
    assert is_unknown(popular, 5, 9, 9)


def test_its_memory_is_bounded() -> None:
    assert len(Popular(100)) == 64


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 40), ways), max_size=40))
def test_more_paths_than_codes_clear_it_and_none_is_wrong(noted: list[tuple[int, tuple[int, int]]]) -> None:
    popular, last = Popular(4), {}
    for fingerprint, (depth, hops) in noted:
        popular.note(fingerprint, way_of(depth, hops))
        last[fingerprint] = way_of(depth, hops)
        assert popular.way(fingerprint) == last[fingerprint]
        assert all(popular.way(one) in (None, last.get(one)) for one in range(41))


def test_held_urls_are_settled_where_they_still_wait() -> None:
    popular = Popular(64)
    for fingerprint in range(64):
        popular.note(fingerprint, way_of(2, 1) + WAITS * (fingerprint % 2))
    popular.note(67, way_of(5, 0))
    everyone = np.arange(64, dtype=np.uint64)

    popular.settle(everyone, np.array([way_of(1, one % 3) for one in range(64)], np.uint32))

    assert popular.way(67) == way_of(5, 0)
    for one in set(range(64)) - {3}:
        assert popular.way(one) == (way_of(1, one % 3) if one % 2 else way_of(2, 1))
    popular.note(9, way_of(9, 9) + WAITS)
    popular.settle(everyone, np.array([way_of(one, 7) for one in range(64)], np.uint32))
    assert popular.way(9) == way_of(9, 7)


def test_an_untouched_table_knows_nothing() -> None:
    popular = Popular(1 << 13)
    fingerprints = [*range(1 << 14), *(one | 1 << 63 for one in range(1 << 14)), (1 << 64) - 1]
    assert not any(popular.way(one) is not None for one in fingerprints)
    unknown = popular.unknown_among(np.array(fingerprints, np.uint64), np.full(len(fingerprints), 0xFFFFFF, np.uint32))
    assert len(unknown) == len(fingerprints)
