"""Freshness: what a rate of visits buys. Pure formulas (Cho and Garcia-Molina 2003, "Effective page refresh policies").

Rates are per second. λ is the rate of changes, f the rate of visits at even intervals.
"""

from __future__ import annotations

from math import exp, expm1, inf


def freshness(change_rate: float, visit_rate: float) -> float:
    """Return the share of the time in which our copy is the page's, with evenly spaced visits."""
    if change_rate <= 0.0:
        return 1.0
    if visit_rate <= 0.0:
        return 0.0
    return -expm1(-change_rate / visit_rate) * visit_rate / change_rate


def age_s(change_rate: float, visit_rate: float) -> float:
    """Return how long ago, on average, the oldest change happened that our copy lacks; 0 for a fresh copy."""
    if change_rate <= 0.0:
        return 0.0
    if visit_rate <= 0.0:
        return inf
    x = change_rate / visit_rate
    if x < _SMALL:
        return x / (6.0 * visit_rate)  # The first term of the series: the form below cancels there.
    return (0.5 - 1.0 / x + (1.0 - exp(-x)) / (x * x)) / visit_rate


def gain(x: float) -> float:
    """Return 1 - e^-x (1 + x): λ times what one visit more a second adds to the freshness of a page with λ/f = x."""
    return x * x / 2.0 - x**3 / 3.0 if x < _SMALL else 1.0 - exp(-x) * (1.0 + x)


_SMALL = 1e-3
