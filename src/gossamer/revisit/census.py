"""Census: how many pages there are of each change rate and importance, in cells; enough to find the price of a visit.

A cell spans a factor of √2 in both. Sums within it are exact, so a cell's mean stands for its pages; what that costs in
freshness is below 0.1 % (docs/continuous.md).
"""

from __future__ import annotations

from math import floor, inf, log2, sqrt

import msgspec

from gossamer.model.revisits import Habits
from gossamer.ports import RevisitPolicy

CELLS_AN_OCTAVE = 2
LEVEL_MAX = 64
"""Cells from 2^-32 to 2^32 in each direction; what lies beyond joins the outermost ones."""
_SPAN = 2 * LEVEL_MAX + 1
PRICE_MIN, PRICE_MAX = 1e-18, 1e18
_ROUNDS_MAX = 80
_CLOSE = 1.003
"""A price is found when it is known within this factor."""


class Census(msgspec.Struct, array_like=True):
    """A bounded summary of pages; one that comes, goes or changes its numbers costs 1 µs."""

    cells: dict[int, list[float]] = msgspec.field(default_factory=dict)
    """Count, sum of change rates, sum of importances."""
    pages: int = 0

    def add(self, change_rate: float, importance: float) -> None:
        """Count a page."""
        self._change(_cell(change_rate, importance), 1, change_rate, importance)

    def remove(self, change_rate: float, importance: float) -> None:
        """Count a page no more; the numbers must be those it was added with."""
        self._change(_cell(change_rate, importance), -1, -change_rate, -importance)

    def take_in(self, other: Census, sign: int = 1) -> None:
        """Count all pages of another census, or with -1 no more."""
        for cell, (count, rates, importances) in other.cells.items():
            self._change(cell, sign * int(count), sign * rates, sign * importances)

    def spent(self, policy: RevisitPolicy, price: float) -> float:
        """Return the visits a second that all pages get at a price."""
        return _spent(self._typical(), policy, price)

    def price(self, policy: RevisitPolicy, budget: float, near: float = 1.0) -> float:
        """Return the price at which all pages together get `budget` visits a second, or as many as the policy gives.

        Where the policy's least rates already exceed the budget, the price is infinite and the budget is not kept.
        Begins at `near`, the price before: then it takes some eight sums over the cells, about 0.1 ms for each
        hundred cells that hold pages.
        """
        pages = self._typical()
        if not pages:
            return near
        low = high = min(max(near, PRICE_MIN), PRICE_MAX)
        step = 1.1
        if _spent(pages, policy, near) > budget:
            while _spent(pages, policy, high) > budget:
                if high >= PRICE_MAX:
                    return inf
                low, high, step = high, high * step, step * step
        else:
            while _spent(pages, policy, low) <= budget:
                if low <= PRICE_MIN:
                    return PRICE_MIN
                low, high, step = low / step, low, step * step
        for _ in range(_ROUNDS_MAX):
            if high <= low * _CLOSE:
                break
            middle = sqrt(low * high)
            if _spent(pages, policy, middle) > budget:
                low = middle
            else:
                high = middle
        return high

    def _typical(self) -> list[tuple[float, Habits]]:
        return [
            (count, Habits(rates / count, importances / count)) for count, rates, importances in self.cells.values()
        ]

    def _change(self, cell: int, count: int, rates: float, importances: float) -> None:
        sums = self.cells.setdefault(cell, [0.0, 0.0, 0.0])
        sums[0] += count
        sums[1] += rates
        sums[2] += importances
        self.pages += count
        assert sums[0] >= 0, "a page was removed that had not been added"
        if not sums[0]:
            del self.cells[cell]


def _spent(pages: list[tuple[float, Habits]], policy: RevisitPolicy, price: float) -> float:
    return sum([count * policy.rate(habits, price) for count, habits in pages])


def _cell(change_rate: float, importance: float) -> int:
    return _level(change_rate) * _SPAN + _level(importance)


def _level(value: float) -> int:
    if value <= 0.0:
        return 0
    return min(max(floor(CELLS_AN_OCTAVE * log2(value)), -LEVEL_MAX), LEVEL_MAX) + LEVEL_MAX
