"""Sizes: pages per host by Zipf's law, whole or of one host in so many. Pure."""

from __future__ import annotations

from itertools import pairwise
from math import log

_EXACT_RANKS = 2_000
"""Ranks that are added up one by one; the rest is an integral, off by less than one in ten million."""


def weight_of_ranks(first: float, last: float, exponent: float) -> float:
    """Return the sum of `rank ** -exponent` over the ranks `first` + 1 to `last`, both whole numbers."""
    exact = min(int(last), max(int(first), _EXACT_RANKS))
    total: float = sum(float(rank) ** -exponent for rank in range(int(first) + 1, exact + 1))
    if last > exact:  # The midpoint rule: each rank stands for half a rank on either side.
        low, high = exact + 0.5, last + 0.5
        power = 1.0 - exponent
        total += log(high / low) if abs(power) < 1e-9 else (high**power - low**power) / power
    return total


def largest(hosts: int, pages: int, exponent: float) -> float:
    """Return the pages of the largest host."""
    return pages / weight_of_ranks(0, hosts, exponent)


def sampled_sizes(hosts: int, pages: int, exponent: float, scale: int) -> list[int]:
    """Return the sizes of one host in `scale`, largest first.

    Ranks are cut into bands of `scale`; each band is one host with the band's mean size, so the sample has the pages of
    the whole divided by `scale` however the large hosts fall. With `scale` 1 it is the web itself.
    """
    edges = [*range(0, hosts, scale), hosts]
    if len(edges) > 2 and edges[-1] - edges[-2] < scale:
        del edges[-2]  # A band that is no whole one joins its neighbour.
    per_weight = pages / weight_of_ranks(0, hosts, exponent)
    return [
        max(1, round(weight_of_ranks(first, last, exponent) * per_weight / (last - first)))
        for first, last in pairwise(edges)
    ]
