"""Estimate: how often a page changes, from what visits told. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, expm1, log

from gossamer.revisit.history import History

RATE_MIN, RATE_MAX = 1e-9, 10.0
"""Changes a second: one in 30 years, ten a second."""
PRIOR_WEIGHT = 0.5
"""Imaginary visits of each kind: see `rate_of`."""
BIAS_VISITS = 0.25
"""Of a visit: see `rate_of`."""
_ROUNDS = 60


def rate_of(history: History, prior: float, weight: float = PRIOR_WEIGHT) -> float:
    """Return the most likely changes a second.

    The maximum likelihood for irregular visits is the root of

        dated/λ + Σ t/(e^(λt) - 1) over intervals with an undated change = quiet seconds

    whose left side falls in λ, so it is bisected (Cho and Garcia-Molina 2003 without dates; LambdaCrawl solves it so,
    Kolobov et al. 2019). `prior`, the rate of pages like this one, joins as `weight` imaginary intervals
    with a change and as many without, of the length ln 2 / prior, whose own solution it is: that keeps estimates from
    few visits finite.

    The likelihood's own estimate lies too high where visits are few, by some 20 % at ten visits. As Cho and
    Garcia-Molina do for even intervals, a part of an imaginary quiet visit is added for that: a quarter of one, as
    long as the intervals with a change are on average, and of dated changes a quarter is taken off; then what is left
    is below 10 % (docs/continuous.md has the table). About 30 µs.
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
    low, high = log(RATE_MIN), log(RATE_MAX)
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        if _pull(exp(middle), dated, changed) > quiet_s:
            low = middle
        else:
            high = middle
        if high - low < 1e-4:
            break
    return exp((low + high) / 2)


def pooled_rate(histories: Iterable[History], prior: float) -> float:
    """Return the rate of many pages together: a prior for others of their kind.

    It is the rate of one page with all their visits; the mean of their own estimates would be drawn up by the few that
    change most.
    """
    whole = History()
    for history in histories:
        whole.quiet_s += history.quiet_s
        whole.dated += history.dated
        for number, (count, sum_s) in history.undated.items():
            held, held_s = whole.undated.get(number, (0.0, 0.0))
            whole.undated[number] = (held + count, held_s + sum_s)
    return rate_of(whole, prior)


def _pull(rate: float, dated: float, changed: list[tuple[float, float]]) -> float:
    pull = dated / rate
    for count, interval_s in changed:
        x = rate * interval_s
        if x < _EXP_MAX:
            pull += count * interval_s / expm1(x)
    return pull


_EXP_MAX = 700.0
"""Beyond, e^x is no float, and its part is nothing."""
