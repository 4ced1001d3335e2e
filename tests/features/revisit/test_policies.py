"""What each policy gives, against what theory says is best."""

from __future__ import annotations

import math
import random

import pytest

from gossamer.features.revisit.policies import (
    POLICIES,
    Adaptive,
    BoundedPolicy,
    LambdaCrawl,
    Optimal,
    PoissonOptimal,
    _gains,
    age_s,
    freshness,
    gain,
)
from gossamer.features.revisit.rhythm import Census
from gossamer.features.revisit.state import Calendar, span_of
from gossamer.model.standing import Habits
from gossamer.ports import RevisitPolicy
from gossamer.testing import check_revisit_policy

DAY_S = 86_400.0
DRAW = random.Random(1)
PAGES = [(math.exp(DRAW.gauss(-1.5, 2.0)) / DAY_S, math.exp(DRAW.gauss(0.0, 1.0))) for _ in range(3_000)]
BUDGET = 0.2 * len(PAGES) / DAY_S


def census_of(pages: list[tuple[float, float]]) -> Census:
    census = Census()
    for rate, importance in pages:
        census.add(rate, importance)
    return census


def divided(policy: RevisitPolicy) -> list[float]:
    """Return the rates that a policy gives within the budget, by the census's price."""
    price = census_of(PAGES).price(policy, BUDGET)
    return [policy.rate(Habits(rate, importance), price) for rate, importance in PAGES]


def fresh(rates: list[float]) -> float:
    whole = sum(importance for _, importance in PAGES)
    parts = (importance * freshness(rate, visits) for (rate, importance), visits in zip(PAGES, rates, strict=True))
    return sum(parts) / whole


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "adaptive"])
def test_every_priced_policy_keeps_the_budget(name: str) -> None:
    assert sum(divided(POLICIES[name]())) == pytest.approx(BUDGET, rel=0.02)


def test_policies_come_in_the_order_of_theory() -> None:
    reached = {name: fresh(divided(POLICIES[name]())) for name in POLICIES if name != "adaptive"}
    assert reached["proportional"] < reached["uniform"] < reached["importance"]
    assert reached["importance"] < reached["lambda"] < reached["poisson"] < reached["optimal"]
    assert reached["lambda"] > 0.94 * reached["optimal"]


def test_no_exchange_of_visits_betters_the_optimum() -> None:
    rates = divided(Optimal())
    best, draw, size = fresh(rates), random.Random(2), BUDGET / len(PAGES) / 5
    for _ in range(200):
        one, other = draw.randrange(len(PAGES)), draw.randrange(len(PAGES))
        if rates[one] > size and one != other:
            moved = list(rates)
            moved[one] -= size
            moved[other] += size
            assert fresh(moved) <= best + 1e-7


def test_poisson_optimum_is_the_closed_form_of_azar_and_others() -> None:
    # f = √(wλ)·(B + L)/s - λ for the pages that get something, with s = Σ√(wλ) and L = Σλ over them.
    order = sorted(PAGES, key=lambda page: page[0] / page[1])
    s = total = 0.0
    kept = (0.0, 0.0)
    for rate, importance in order:
        s, total = s + math.sqrt(rate * importance), total + rate
        if math.sqrt(importance / rate) > s / (BUDGET + total):
            kept = s, total
    s, total = kept
    price, policy = (s / (BUDGET + total)) ** 2, PoissonOptimal()
    assert sum(policy.rate(Habits(rate, importance), price) for rate, importance in PAGES) == pytest.approx(BUDGET)
    assert census_of(PAGES).price(policy, BUDGET) == pytest.approx(price, rel=0.03)
    for rate, importance in PAGES:
        expected = max(0.0, math.sqrt(rate * importance) * (BUDGET + total) / s - rate)
        assert policy.rate(Habits(rate, importance), price) == pytest.approx(expected)


def test_lambda_crawl_starves_nobody_and_bounds_hold() -> None:
    assert min(divided(LambdaCrawl())) > 0.0
    assert min(divided(Optimal())) == 0.0
    bounded = BoundedPolicy(Optimal(), 3_600.0, 30 * DAY_S)
    rates = [bounded.rate(Habits(rate, importance), 1e6) for rate, importance in PAGES]
    assert min(rates) == pytest.approx(1 / (30 * DAY_S))
    assert max(bounded.rate(Habits(rate, importance), 1e-6) for rate, importance in PAGES) == pytest.approx(1 / 3_600.0)


@pytest.mark.parametrize("name", list(POLICIES))
def test_every_policy_keeps_the_contract(name: str) -> None:
    check_revisit_policy(POLICIES[name]())


class Rising(Optimal):
    def rate(self, habits: Habits, price: float) -> float:
        return price


class Moody(Optimal):
    def rate(self, habits: Habits, price: float) -> float:
        return (1.0 + habits.interval_s) / price


@pytest.mark.parametrize(("policy", "says"), [(Rising(), "higher price"), (Moody(), "alone")])
def test_the_contract_names_the_broken_promise(policy: RevisitPolicy, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_revisit_policy(policy)


@pytest.mark.parametrize("name", list(POLICIES))
def test_rates_fall_as_the_price_rises_and_extremes_are_numbers(name: str) -> None:
    policy = POLICIES[name]()
    for rate, importance in ((1e-9, 1.0), (10.0, 1.0), (1e-5, 0.0), (1e-5, 1e6)):
        habits = Habits(rate, importance, 3_600.0)
        given = [policy.rate(habits, 10.0**power) for power in range(-18, 19)]
        assert all(math.isfinite(one) and one >= 0.0 for one in given)
        assert given == sorted(given, reverse=True)


def test_adaptive_comes_to_rest_in_proportion_to_changes() -> None:
    policy, draw = Adaptive(), random.Random(3)
    rested = []
    for rate in (1e-4, 1e-5):
        interval_s, seen = 10_000.0, []
        for _ in range(4_000):
            changed = draw.random() < 1.0 - math.exp(-rate * interval_s)
            interval_s = 1.0 / policy.rate(Habits(0.0, 1.0, interval_s, changed), 0.0)
            seen.append(math.log(interval_s))
        rested.append(math.exp(sum(seen[500:]) / len(seen[500:])))
    assert rested[1] / rested[0] == pytest.approx(10.0, rel=0.15)


def test_adaptive_lengthens_what_did_not_change_and_shortens_what_did() -> None:
    habits = [Habits(0.0, 1.0, 100.0, changed) for changed in (False, True)]
    assert [1.0 / Adaptive(0.3).rate(one, 0.0) for one in habits] == pytest.approx([130.0, 70.0])
    assert Adaptive(0.3).rate(Habits(0.0, 1.0, 0.5, changed=True), 0.0) == pytest.approx(1.0 / 0.35)


def test_adaptive_waits_as_long_as_the_last_change_is_old() -> None:
    assert 1.0 / Adaptive().rate(Habits(0.0, 1.0, 100.0, changed=True, since_change_s=90.0), 0.0) == pytest.approx(90.0)


def test_a_census_goes_back_to_nothing() -> None:
    census = census_of(PAGES)
    for rate, importance in PAGES:
        census.add(rate, importance, -1)
    assert census.pages == 0
    assert not census.cells
    with pytest.raises(AssertionError):
        census.add(1e-5, 1.0, -1)


def test_the_price_of_cells_is_the_price_of_pages() -> None:
    census, policy = census_of(PAGES), Optimal()
    price = census.price(policy, BUDGET)
    exact = sum(policy.rate(Habits(rate, importance), price) for rate, importance in PAGES)
    assert exact == pytest.approx(BUDGET, rel=0.02)
    assert len(census.cells) < 800
    assert census.price(policy, BUDGET, near=price * 50) == pytest.approx(price, rel=0.01)
    assert census.price(policy, BUDGET, near=price / 50) == pytest.approx(price, rel=0.01)


def test_a_census_of_others_is_taken_in_and_out() -> None:
    one, other = census_of(PAGES[:100]), census_of(PAGES[100:300])
    one.take_in(other)
    assert one.pages == 300
    assert one.price(Optimal(), 0.001) == pytest.approx(census_of(PAGES[:300]).price(Optimal(), 0.001), rel=0.01)
    one.take_in(other, -1)
    assert one.pages == 100


@pytest.mark.parametrize("x", [1e-5, 9.999e-4, 1.001e-3, 0.01, 0.3, 2.0, 10.0, 20.0])
def test_the_inverse_of_the_gain_is_within_a_thousandth(x: float) -> None:
    exact = 1.0 - (1.0 + x) * math.exp(-x)
    assert gain(x) == pytest.approx(exact, rel=1e-4), "also where the series is taken"
    assert _gains().inverse(gain(x)) == pytest.approx(x, rel=1e-3)


def test_freshness_and_age_by_simulation() -> None:
    draw, rate, every_s = random.Random(5), 1e-3, 700.0
    fresh_s = aged = 0.0
    rounds = 40_000
    for _ in range(rounds):
        changed_s = min(draw.expovariate(rate), every_s)
        fresh_s += changed_s
        aged += (every_s - changed_s) ** 2 / 2
    assert fresh_s / rounds / every_s == pytest.approx(freshness(rate, 1 / every_s), rel=0.01)
    assert aged / rounds / every_s == pytest.approx(age_s(rate, 1 / every_s), rel=0.03)
    assert age_s(1e-9, 1.0) == pytest.approx(1e-9 / 6.0)
    assert (freshness(0.0, 0.0), freshness(1.0, 0.0), age_s(1.0, 0.0)) == (1.0, 0.0, math.inf)
    assert (age_s(0.0, 1.0), age_s(0.0, 0.0)) == (0.0, 0.0), "what never changes is never old"


def test_a_calendar_tells_what_is_overdue_and_is_bounded() -> None:
    calendar = Calendar(span_of(DAY_S, 365 * DAY_S))
    draw = random.Random(6)
    due = [1e9 + draw.uniform(0.0, 365 * DAY_S) for _ in range(20_000)]
    for at in due:
        calendar.add(at)
    assert len(calendar.spans) <= 1_001
    middle = 1e9 + 100 * DAY_S
    assert calendar.before(middle) == pytest.approx(sum(at < middle for at in due), rel=0.02)
    for at in due:
        calendar.remove(at)
    assert not calendar.spans
