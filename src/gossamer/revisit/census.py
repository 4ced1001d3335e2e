"""Census: how many pages there are of each change rate and importance, in cells; enough to find the price of a visit.

A cell spans a factor of √2 in both. Sums within it are exact, so a cell's mean stands for its pages; what that costs in
the rates is below 1 % (docs/freshness.md).
"""

from __future__ import annotations

from math import floor, inf, log2, sqrt

import msgspec

from gossamer.revisit.policies import Policy

CELLS_AN_OCTAVE = 2
LEVEL_MIN, LEVEL_MAX = -64, 64
"""Cells from 2^-32 to 2^32 in each direction; what lies beyond joins the outermost ones."""
_ROUNDS = 60

Cell = tuple[int, int]


class Census(msgspec.Struct):
    """A bounded summary of all pages; a page that comes, goes or changes its numbers costs 1 µs."""

    cells: dict[Cell, list[float]] = msgspec.field(default_factory=dict)
    """Count, sum of change rates, sum of importances."""
    pages: int = 0

    def add(self, change_rate: float, importance: float) -> None:
        """Count a page."""
        self._change(change_rate, importance, 1)

    def remove(self, change_rate: float, importance: float) -> None:
        """Count a page no more; the numbers must be those it was added with."""
        self._change(change_rate, importance, -1)

    def price(self, policy: Policy, budget: float) -> float:
        """Return the price at which all pages together get `budget` visits a second, or as many as the policy gives.

        Where the policy's least rates already exceed the budget, the price is infinite and the budget is not kept. 60
        sums over the cells: about 0.2 ms for each hundred cells that hold pages.
        """
        pages = [(count, rates / count, weights / count) for count, rates, weights in self.cells.values()]
        if not pages:
            return 1.0

        def spent(price: float) -> float:
            return sum(count * policy.rate(rate, weight, price) for count, rate, weight in pages)

        low, high = 1e-18, 1e18
        if spent(low) <= budget:
            return low
        if spent(high) > budget:
            return inf
        for _ in range(_ROUNDS):
            middle = sqrt(low * high)
            if spent(middle) > budget:
                low = middle
            else:
                high = middle
        return high

    def _change(self, change_rate: float, importance: float, by: int) -> None:
        cell = _level(change_rate), _level(importance)
        sums = self.cells.setdefault(cell, [0.0, 0.0, 0.0])
        sums[0] += by
        sums[1] += by * change_rate
        sums[2] += by * importance
        self.pages += by
        assert sums[0] >= 0, "a page was removed that had not been added"
        if not sums[0]:
            del self.cells[cell]


def _level(value: float) -> int:
    if value <= 0.0:
        return LEVEL_MIN
    return min(max(floor(CELLS_AN_OCTAVE * log2(value)), LEVEL_MIN), LEVEL_MAX)
