"""Two policies for `revisit.policy`: one divides the budget by the square root of the change rate, one has a rhythm.

gossamer crawl https://docs.example.org/ --contact you@example.org --mode continuous \
    --set revisit.policy=revisit_policy.py:ByRoot
"""

from math import sqrt

from gossamer.model.standing import Habits

DAY_S = 86_400.0


class ByRoot:
    """Visits a page in proportion to its importance and the root of its change rate, less as the price rises."""

    priced = True

    def rate(self, habits: Habits, price: float) -> float:
        return habits.importance * sqrt(habits.change_rate) / price


class HalfOrDouble:
    """Halves the time between two visits when a page has changed, and doubles it when it has not (Heritrix 1)."""

    def rate(self, habits: Habits, price: float) -> float:
        if not habits.interval_s:
            return 1.0 / DAY_S
        return 1.0 / (habits.interval_s * (0.5 if habits.changed else 2.0))
