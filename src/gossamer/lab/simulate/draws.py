"""Draws: chance from tables, quick and the same on every machine. Pure but for the dice."""

from __future__ import annotations

from math import exp
from statistics import NormalDist

from gossamer.world.dice import Dice

_STEPS = 1_024


class LogNormal:
    """Draws of a log-normal with a median; 1,024 quantiles, about 0.4 µs each."""

    def __init__(self, median: float, sigma: float) -> None:
        normal = NormalDist()
        self._quantiles = [median * exp(sigma * normal.inv_cdf((step + 0.5) / _STEPS)) for step in range(_STEPS)]

    @property
    def mean(self) -> float:
        """The mean of the table."""
        return sum(self._quantiles) / _STEPS

    def draw(self, dice: Dice) -> float:
        """Return one value."""
        return self._quantiles[dice.below(_STEPS)]


def log_normal_of_mean(mean: float, sigma: float) -> LogNormal:
    """Return the log-normal that has this mean."""
    return LogNormal(mean / LogNormal(1.0, sigma).mean, sigma)


def whole(mean: float, dice: Dice) -> int:
    """Return one of the two whole numbers beside `mean`, so that the mean of many is `mean`."""
    low = int(mean)
    return low + (dice.uniform(0.0, 1.0) < mean - low)
