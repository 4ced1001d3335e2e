"""Estimates of change rates against known ones."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from gossamer.features.revisit.policies import RATE_MAX, RATE_MIN, VisitHistory, rate_of
from gossamer.model.visits import http_date

INTERVAL_S = 1_000.0


def estimates(rate: float, visits: int, *, dated: bool, off: float = 1.0, runs: int = 600) -> tuple[float, float]:
    """Return mean and standard deviation of estimates from visits at random intervals, as multiples of the rate."""
    draw = random.Random(4)
    found = []
    for _ in range(runs):
        history = VisitHistory()
        for _ in range(visits):
            waited_s, since_s = draw.expovariate(1.0) * INTERVAL_S, draw.expovariate(rate)
            if since_s < waited_s:
                history.note_change(waited_s, since_s if dated else None)
            else:
                history.note_same(waited_s)
        found.append(rate_of(history, rate * off) / rate)
    return statistics.mean(found), statistics.pstdev(found)


@pytest.mark.parametrize("changes_an_interval", [0.2, 1.0, 2.0])
def test_the_bias_of_ten_visits_is_small_and_of_thirty_smaller(changes_an_interval: float) -> None:
    rate = changes_an_interval / INTERVAL_S
    ten, spread = estimates(rate, 10, dated=False)
    assert 0.9 <= ten <= 1.1
    assert spread <= 0.7
    thirty, less = estimates(rate, 30, dated=False)
    assert abs(thirty - 1.0) <= 0.06
    assert less < spread


@pytest.mark.parametrize("off", [0.25, 4.0])
def test_a_wrong_prior_is_outvoted(off: float) -> None:
    rate = 1.0 / INTERVAL_S
    three, _ = estimates(rate, 3, dated=False, off=off)
    thirty, _ = estimates(rate, 30, dated=False, off=off)
    assert abs(thirty - 1.0) < 0.2
    assert abs(thirty - 1.0) < abs(three - 1.0) / 3


def test_dates_help_where_pages_change_more_often_than_they_are_seen() -> None:
    rate = 10.0 / INTERVAL_S
    blind, wide = estimates(rate, 30, dated=False)
    dated, narrow = estimates(rate, 30, dated=True)
    assert math.hypot(dated - 1.0, narrow) < 0.75 * math.hypot(blind - 1.0, wide)
    assert 0.95 <= dated <= 1.05


def test_regular_visits_give_what_the_closed_form_gives() -> None:
    # Cho and Garcia-Molina's corrected form for U of n visits unchanged: -ln((U + 0.5) / (n + 0.5)) / I; with a
    # prior whose imaginary interval is I, ours adds half a visit of each kind, and a quarter of a quiet one.
    history = VisitHistory()
    for _ in range(7):
        history.note_same(INTERVAL_S)
    for _ in range(3):
        history.note_change(INTERVAL_S)
    prior = math.log(2.0) / INTERVAL_S
    assert rate_of(history, prior) == pytest.approx(-math.log(7.75 / 11.25) / INTERVAL_S, rel=1e-3)


def test_nothing_seen_gives_the_prior_and_extremes_stay_finite() -> None:
    assert rate_of(VisitHistory(), 1e-4) == pytest.approx(1e-4, rel=1e-3)
    always, never = VisitHistory(), VisitHistory()
    for _ in range(1_000):
        always.note_change(1.0)
        never.note_same(1e6)
    assert rate_of(always, 1e-4) <= RATE_MAX
    assert RATE_MIN <= rate_of(never, 1e-4) < 1e-8
    assert rate_of(never, 1e-4, weight=0.0) == RATE_MIN
    at_once = VisitHistory()
    at_once.note_change(10.0, 0.0)
    assert rate_of(at_once, 1e-4, weight=0.0) == RATE_MAX


def test_a_history_is_small_however_long_it_is() -> None:
    draw = random.Random(1)
    history = VisitHistory()
    for _ in range(20_000):
        history.note_change(draw.expovariate(1e-7))
        history.fade(0.99)
    assert len(history.undated) <= 61


def test_a_page_that_changes_its_habits_is_believed() -> None:
    history = VisitHistory()
    for _ in range(200):
        history.note_same(1_000.0)
        history.fade(1 - 1 / 30)
    before = rate_of(history, 1e-3)
    for _ in range(60):
        history.note_change(1_000.0)
        history.fade(1 - 1 / 30)
    assert rate_of(history, 1e-3) > 20 * before


def test_a_date_before_the_visit_before_is_not_believed() -> None:
    history = VisitHistory()
    history.note_change(100.0, 5_000.0)
    assert history.dated == 0
    assert history.undated


@pytest.mark.parametrize(
    ("header", "instant"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784111777.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784111777.0),
        ("Sun Nov  6 08:49:37 1994", 784111777.0),
        ("yesterday", None),
        ("", None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ("Mon, 01 Jan 99999999999 00:00:00 GMT", None),
    ],
)
def test_dates_are_read_in_all_three_forms(header: str, instant: float | None) -> None:
    assert http_date(header) == instant
