from __future__ import annotations

import pytest

from gossamer.lab.simulate.web import largest, sample_sizes, weight_of_ranks


@pytest.mark.parametrize("exponent", [0.0, 0.5, 0.9, 1.0, 1.7])
def test_the_sum_of_many_ranks_is_what_adding_them_up_gives(exponent: float) -> None:
    added = sum(rank**-exponent for rank in range(5_001, 60_001))
    assert weight_of_ranks(5_000, 60_000, exponent) == pytest.approx(added, rel=1e-7)
    whole = sum(rank**-exponent for rank in range(1, 60_001))
    assert weight_of_ranks(0, 60_000, exponent) == pytest.approx(whole, rel=1e-7)


@pytest.mark.parametrize("scale", [1, 10, 100, 999])
def test_a_sample_has_its_share_of_hosts_and_pages(scale: int) -> None:
    sizes = sample_sizes(100_000, 50_000_000, 0.9, scale)
    assert len(sizes) == pytest.approx(100_000 / scale, rel=0.01)
    assert sum(sizes) * 100_000 / len(sizes) == pytest.approx(50_000_000, rel=0.01)
    assert sizes == sorted(sizes, reverse=True)


def test_the_whole_web_is_zipfs_law_and_each_host_has_a_page() -> None:
    sizes = sample_sizes(1_000, 10_000, 1.2, 1)
    assert sizes[0] == round(largest(1_000, 10_000, 1.2))
    assert sizes[9] / sizes[0] == pytest.approx(10**-1.2, rel=0.01)
    assert sizes[-1] == 1


def test_a_band_that_is_no_whole_one_joins_its_neighbour() -> None:
    assert len(sample_sizes(109, 109, 0.0, 10)) == 10
    assert len(sample_sizes(5, 50, 0.0, 10)) == 1
