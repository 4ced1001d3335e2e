"""Policies: how often a page deserves a visit, at a price. No I/O, no clock.

All pages share a budget of visits, and a price θ balances them: the higher the price, the fewer visits a page gets.
Each policy returns the rate of one page at a price; `census.price` finds the price at which all pages together use the
budget. So a page's rate follows from its numbers and one shared number, without a pass over all pages.
"""

from __future__ import annotations

from math import exp, inf, sqrt

from gossamer.features.revisit.estimate import gain
from gossamer.model.standing import Habits
from gossamer.ports import RevisitPolicy


class Uniform:
    """The same rate for all pages. Never worse than proportional (Cho and Garcia-Molina 2003)."""

    priced = True

    def rate(self, habits: Habits, price: float) -> float:
        return 1.0 / price


class Proportional:
    """A rate proportional to changes. For comparison only: it wastes the budget on pages that change too fast for any
    visits.
    """

    priced = True

    def rate(self, habits: Habits, price: float) -> float:
        return habits.change_rate / price


class ByImportance:
    """A rate proportional to importance, independent of changes (LambdaCrawlApprox, Kolobov et al. 2019)."""

    priced = True

    def rate(self, habits: Habits, price: float) -> float:
        return habits.importance / price


class PoissonOptimal:
    """Maximizes weighted freshness for visits at random times (Azar et al. 2018): √(wλ/θ) - λ.

    Pages that change too fast to be worth it get no visits.
    """

    priced = True

    def rate(self, habits: Habits, price: float) -> float:
        change_rate = habits.change_rate
        return max(0.0, sqrt(habits.importance * change_rate / price) - change_rate)


class LambdaCrawl:
    """Minimizes harmonic staleness (Kolobov et al. 2019): (√(λ² + 4wλ/θ) - λ) / 2. Every page gets visits."""

    priced = True

    def rate(self, habits: Habits, price: float) -> float:
        change_rate = habits.change_rate
        return (sqrt(change_rate * change_rate + 4.0 * habits.importance * change_rate / price) - change_rate) / 2.0


class Optimal:
    """Maximizes weighted freshness for evenly spaced visits: the rate f at which one more visit per second adds θ to w
    times the page's freshness, (w/λ)(1 - e^-x (1 + x)) = θ with x = λ/f (Cho and Garcia-Molina 2003, section 4.3).

    Pages with w/λ below θ get no visits.
    """

    priced = True

    def rate(self, habits: Habits, price: float) -> float:
        change_rate = habits.change_rate
        if change_rate <= 0.0:
            return 0.0
        wanted = price * change_rate / habits.importance if habits.importance > 0.0 else inf
        return change_rate / _gains.inverse(wanted) if wanted < 1.0 else 0.0


class Adaptive:
    """Nutch's controller: the interval of an unchanged page grows by a fifth, that of a changed one shrinks by a fifth,
    and if the change was long ago, the interval is the time since then.

    It has no budget, and converges to visits in proportion to changes (45 % of visits find a change): this is good with
    spare visits; otherwise it equals the proportional policy.
    """

    priced = False

    def __init__(self, step: float = 0.2) -> None:
        assert 0.0 < step <= 0.4, "larger steps can diverge"
        self._step = step

    def rate(self, habits: Habits, price: float) -> float:
        interval_s = habits.interval_s * (1.0 - self._step if habits.changed else 1.0 + self._step)
        if habits.changed and habits.since_change_s is not None:
            interval_s = max(interval_s, habits.since_change_s)
        return 1.0 / interval_s if interval_s > 0.0 else 0.0


class BoundedPolicy:
    """Another policy's rates, with intervals between `interval_s_min` and `interval_s_max`. Without the upper bound, a
    page that starts to change would never be noticed.
    """

    def __init__(self, policy: RevisitPolicy, interval_s_min: float, interval_s_max: float) -> None:
        self._policy = policy
        self._most = 1.0 / interval_s_min
        self._least = 1.0 / interval_s_max
        self.priced: bool = getattr(policy, "priced", False)

    def rate(self, habits: Habits, price: float) -> float:
        return min(max(self._policy.rate(habits, price), self._least), self._most)


class _Gains:
    """The inverse of `gain`, by linear interpolation in a table: 0.3 µs, within 0.1 %."""

    def __init__(self) -> None:
        # Even steps of log x: gain is x²/2 at one end and 1 at the other.
        self._xs = [exp(_LOG_X_MIN + (_LOG_X_MAX - _LOG_X_MIN) * n / _POINTS) for n in range(_POINTS + 1)]
        self._gains = [gain(x) for x in self._xs]

    def inverse(self, wanted: float) -> float:
        """Return the x with this gain, 0 < wanted < 1."""
        gains = self._gains
        if wanted <= gains[0]:
            return sqrt(2.0 * wanted)
        low = 0
        high = _POINTS
        if wanted >= gains[high]:
            return self._xs[high]
        while high - low > 1:
            middle = (low + high) // 2
            if gains[middle] <= wanted:
                low = middle
            else:
                high = middle
        share = (wanted - gains[low]) / (gains[high] - gains[low])
        return self._xs[low] + share * (self._xs[high] - self._xs[low])


_LOG_X_MIN = -7.0
_LOG_X_MAX = 3.5
_POINTS = 600
_gains = _Gains()

POLICIES: dict[str, type[RevisitPolicy]] = {
    "uniform": Uniform,
    "proportional": Proportional,
    "importance": ByImportance,
    "poisson": PoissonOptimal,
    "lambda": LambdaCrawl,
    "optimal": Optimal,
    "adaptive": Adaptive,
}
