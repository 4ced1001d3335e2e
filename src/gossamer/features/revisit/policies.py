"""Policies: how often a page deserves a visit, at a price. No I/O, no clock.

All pages share a budget of visits, and a price θ balances them: the higher the price, the fewer visits a page gets.
Each policy returns the rate of one page at a price; `census.price` finds the price at which all pages together use the
budget. So a page's rate follows from its numbers and one shared number, without a pass over all pages.

`VisitHistory` holds the observed changes of one page, in constant space for any number of visits.

Changes are a Poisson process of rate λ. Three kinds of visits contribute to its likelihood:

- nothing changed for t seconds: a factor e^(-λt);
- something changed within t seconds, at an unknown time: 1 - e^(-λt);
- the last change was a seconds ago, by a date (Last-Modified, a feed, a ping): λ e^(-λa).

So the likelihood needs the sum of all quiet times, the number of dated changes, and the lengths of the intervals with
an undated change. These lengths are kept as count and sum in bins of half an octave.

From these numbers `rate_of` estimates how often the page changes. `freshness` and `age_s` give the result of a rate of
visits at even intervals (Cho and Garcia-Molina 2003, "Effective page refresh policies"). Rates are per second.
"""

from bisect import bisect_right
from functools import cache
from math import exp, expm1, floor, inf, log, log2, sqrt

import msgspec

from gossamer.model.standing import Habits
from gossamer.ports import RevisitPolicy

BINS_AN_OCTAVE = 2
BIN_MIN = 0
BIN_MAX = 60
"""From 1 s to 2^30 s: shorter or longer intervals are in the outermost bins."""


class VisitHistory(msgspec.Struct, array_like=True):
    """A summary of a page's visits; `fade` reduces the weight of old ones. Two or three bins, at most 61."""

    quiet_s: float = 0.0
    """Total seconds in which nothing changed."""
    dated: float = 0.0
    """Number of changes at known times."""
    undated: dict[int, tuple[float, float]] = msgspec.field(default_factory=dict)
    """By bin: number, and sum of the lengths in seconds, of intervals with an undated change."""
    visits: int = 0

    def note_same(self, interval_s: float) -> None:
        """Note a visit without a change."""
        self.visits += 1
        self.quiet_s += max(interval_s, 0.0)

    def note_change(self, interval_s: float, since_change_s: float | None = None) -> None:
        """Note a visit with a change; `since_change_s` if a trusted source gives the time of the last change.

        A date before the previous visit is ignored, because there was a change since then.
        """
        self.visits += 1
        if since_change_s is not None and 0.0 <= since_change_s <= interval_s:
            self.dated += 1.0
            self.quiet_s += since_change_s
        elif interval_s > 0.0:
            number = min(max(floor(BINS_AN_OCTAVE * log2(interval_s)), BIN_MIN), BIN_MAX)
            count, sum_s = self.undated.get(number, (0.0, 0.0))
            self.undated[number] = (count + 1.0, sum_s + interval_s)

    def note_reported(self, changes: int, elapsed_s: float) -> None:
        """Note the number of changes that a feed or a ping, which misses none, reported for a period."""
        self.dated += changes
        self.quiet_s += max(elapsed_s, 0.0)

    def fade(self, share: float) -> None:
        """Multiply all numbers by `share`, so that old visits weigh less and a new rate of change shows."""
        self.quiet_s *= share
        self.dated *= share
        self.undated = {
            number: (count * share, sum_s * share)
            for number, (count, sum_s) in self.undated.items()
            if count * share > FORGOTTEN_BELOW
        }


FORGOTTEN_BELOW = 0.01
"""A bin with a weight of fewer visits is dropped."""
RATE_MIN = 1e-9
RATE_MAX = 10.0
"""Changes per second: one in 30 years, ten per second."""
PRIOR_WEIGHT = 0.5
"""Imaginary visits of each kind: see `rate_of`."""
BIAS_VISITS = 0.25
"""Of a visit: see `rate_of`."""
_ROUNDS = 60


def rate_of(history: VisitHistory, prior: float, weight: float = PRIOR_WEIGHT) -> float:
    """Return the most likely rate of change per second.

    The maximum likelihood for irregular visits is the root of

        dated/λ + Σ t/(e^(λt) - 1) over intervals with an undated change = quiet seconds

    whose left side falls in λ, so it is bisected (Cho and Garcia-Molina 2003 without dates; LambdaCrawl solves it so,
    Kolobov et al. 2019). `prior`, the rate of pages like this one, joins as `weight` imaginary intervals
    with a change and as many without, of the length ln 2 / prior, whose own solution it is: that keeps estimates from
    few visits finite.

    The maximum likelihood estimate is too high for few visits, by some 20 % at ten visits. As Cho and Garcia-Molina do
    for even intervals, a quarter of an imaginary quiet visit is added, as long as the mean interval with a change, and
    a quarter of a dated change is subtracted. The remaining bias is below 10 % (docs/explanation/revisits.md has the
    table). About 30 µs.
    """
    interval_s = log(2.0) / min(max(prior, RATE_MIN), RATE_MAX)
    quiet_s = history.quiet_s + weight * interval_s
    changed = [(count, sum_s / count) for count, sum_s in history.undated.values()]
    if changed:
        changes = sum([count for count, _ in changed])
        mean_s = sum([count * length_s for count, length_s in changed]) / changes
        quiet_s += BIAS_VISITS * min(changes, 1.0) * mean_s
    dated = history.dated - BIAS_VISITS * min(history.dated, 1.0)
    if weight:
        changed.append((weight, interval_s))
    if not changed and not dated:
        return RATE_MIN
    if quiet_s <= 0.0:
        return RATE_MAX
    low = log(RATE_MIN)
    high = log(RATE_MAX)
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        if _pull(exp(middle), dated, changed) > quiet_s:
            low = middle
        else:
            high = middle
        if high - low < 1e-4:
            break
    return exp((low + high) / 2)


def _pull(rate: float, dated: float, changed: list[tuple[float, float]]) -> float:
    pull = dated / rate
    for count, interval_s in changed:
        x = rate * interval_s
        if x < _EXP_MAX:
            pull += count * interval_s / expm1(x)
    return pull


_EXP_MAX = 700.0
"""For larger x, e^x is not a float, and the term is zero."""


def freshness(change_rate: float, visit_rate: float) -> float:
    """Return the share of time in which our copy is up to date, with evenly spaced visits."""
    if change_rate <= 0.0:
        return 1.0
    if visit_rate <= 0.0:
        return 0.0
    return -expm1(-change_rate / visit_rate) * visit_rate / change_rate


def age_s(change_rate: float, visit_rate: float) -> float:
    """Return the mean age of our copy: the time since the oldest change that it lacks; 0 for a fresh copy."""
    if change_rate <= 0.0:
        return 0.0
    if visit_rate <= 0.0:
        return inf
    x = change_rate / visit_rate
    if x < _SMALL:
        return x / (6.0 * visit_rate)  # The first term of the series: the form below cancels there.
    return (0.5 - 1.0 / x + (1.0 - exp(-x)) / (x * x)) / visit_rate


def gain(x: float) -> float:
    """Return 1 - e^-x (1 + x): λ times the gain in freshness per additional visit per second of a page with λ/f = x."""
    return x * x / 2.0 - x**3 / 3.0 if x < _SMALL else 1.0 - exp(-x) * (1.0 + x)


_SMALL = 1e-3


class _Priced:
    priced = True


class Uniform(_Priced):
    """The same rate for all pages. Never worse than proportional (Cho and Garcia-Molina 2003)."""

    def rate(self, habits: Habits, price: float) -> float:
        return 1.0 / price


class Proportional(_Priced):
    """A rate proportional to changes. For comparison only: it wastes visits on pages that change too fast for any."""

    def rate(self, habits: Habits, price: float) -> float:
        return habits.change_rate / price


class ByImportance(_Priced):
    """A rate proportional to importance, independent of changes (LambdaCrawlApprox, Kolobov et al. 2019)."""

    def rate(self, habits: Habits, price: float) -> float:
        return habits.importance / price


class PoissonOptimal(_Priced):
    """Maximizes weighted freshness for visits at random times (Azar et al. 2018): √(wλ/θ) - λ.

    Pages that change too fast to be worth it get no visits.
    """

    def rate(self, habits: Habits, price: float) -> float:
        change_rate = habits.change_rate
        return max(0.0, sqrt(habits.importance * change_rate / price) - change_rate)


class LambdaCrawl(_Priced):
    """Minimizes harmonic staleness (Kolobov et al. 2019): (√(λ² + 4wλ/θ) - λ) / 2. Every page gets visits."""

    def rate(self, habits: Habits, price: float) -> float:
        change_rate = habits.change_rate
        return (sqrt(change_rate * change_rate + 4.0 * habits.importance * change_rate / price) - change_rate) / 2.0


class Optimal(_Priced):
    """Maximizes weighted freshness for evenly spaced visits: the rate f at which one more visit per second adds θ to w
    times the page's freshness, (w/λ)(1 - e^-x (1 + x)) = θ with x = λ/f (Cho and Garcia-Molina 2003, section 4.3).

    Pages with w/λ below θ get no visits.
    """

    def rate(self, habits: Habits, price: float) -> float:
        change_rate = habits.change_rate
        if change_rate <= 0.0:
            return 0.0
        wanted = price * change_rate / habits.importance if habits.importance > 0.0 else inf
        return change_rate / _gains().inverse(wanted) if wanted < 1.0 else 0.0


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
        if wanted >= gains[-1]:
            return self._xs[-1]
        high = bisect_right(gains, wanted)
        low = high - 1
        share = (wanted - gains[low]) / (gains[high] - gains[low])
        return self._xs[low] + share * (self._xs[high] - self._xs[low])


_LOG_X_MIN = -7.0
_LOG_X_MAX = 3.5
_POINTS = 600


@cache
def _gains() -> _Gains:
    """Return the table, which takes 3 ms to make."""
    return _Gains()


POLICIES: dict[str, type[RevisitPolicy]] = {
    "uniform": Uniform, "proportional": Proportional, "importance": ByImportance, "poisson": PoissonOptimal,
    "lambda": LambdaCrawl, "optimal": Optimal, "adaptive": Adaptive,
}  # fmt: skip
