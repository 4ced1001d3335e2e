"""The table of what was offered lately: small, never wrong, and alike for one link and for many."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.stages.seen.offers import depth_and_hops, way_of
from gossamer.stages.seen.popular import Popular
from gossamer.url.url import Url

FINGERPRINTS = [0, 1, 7, 8, 15, 16, 1 << 63, (1 << 64) - 1]
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
    popular, kept = Popular(8), {}
    for fingerprint, (depth, hops) in noted:
        popular.note(fingerprint, way_of(depth, hops))
        kept[fingerprint % 8] = fingerprint, depth, hops
    for fingerprint in FINGERPRINTS:
        known, depth, hops = kept.get(fingerprint % 8, (None, 0, 0))
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
