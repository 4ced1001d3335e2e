"""What a schedule reaches that has to find out how pages change, against the best that one could who knows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from gossamer.features.revisit.options import DAY_S, RevisitOptions
from gossamer.features.revisit.policies import POLICIES, freshness
from gossamer.lab.simulate.revisits import BEGUN_AT, ChangingOptions, ChangingWeb, Watched, best, crawl, measure
from gossamer.options import convert

OPTIONS = ChangingOptions(pages=500, hosts=12, days=56.0)
BURN_IN_DAYS = 24.0


@pytest.fixture(scope="module")
def web() -> ChangingWeb:
    return ChangingWeb(OPTIONS)


def reached(web: ChangingWeb, policy: str, directory: Path, **options: object) -> tuple[Watched, list[list[float]]]:
    given = convert(RevisitOptions, {"interval_s_mean": 4 * DAY_S, **options})
    visits = crawl(web, given, POLICIES[policy](), directory / policy)
    return measure(web, visits, BURN_IN_DAYS), visits


@pytest.mark.heavy
@pytest.mark.promise(
    "Continuous crawls", "The default policy keeps copies within 5 % of the best freshness that the budget allows."
)
@pytest.mark.long
def test_the_default_comes_near_the_best_and_proportional_loses(web: ChangingWeb, tmp_path: Path) -> None:
    default, visits = reached(web, RevisitOptions().policy, tmp_path)
    uniform, _ = reached(web, "uniform", tmp_path)
    proportional, _ = reached(web, "proportional", tmp_path)
    most = best(web, default.visits_per_day)
    assert default.freshness >= 0.95 * most.freshness
    assert default.freshness >= 1.10 * uniform.freshness
    assert proportional.freshness < uniform.freshness
    assert 7 <= default.visits_median <= 14
    # All had the same budget, a visit a page in four days, and no host was asked more often than politeness allows.
    for one in (default, uniform, proportional):
        assert one.visits_per_day == pytest.approx(OPTIONS.pages / 4.0, rel=0.06)
    for host in range(OPTIONS.hosts):
        instants = sorted(at for page in range(host, OPTIONS.pages, OPTIONS.hosts) for at in visits[page])
        assert min(b - a for a, b in pairwise(instants)) >= 1.0


@pytest.mark.heavy
@pytest.mark.long
def test_no_page_is_starved_and_promises_hold_whatever_the_policy_thinks(web: ChangingWeb, tmp_path: Path) -> None:
    given = {"interval_s_max": 12 * DAY_S, "max_age_s": {"/p/7$": 0.5 * DAY_S}}
    _, visits = reached(web, "optimal", tmp_path, **given)
    gaps = [max(b - a for a, b in pairwise([*instants, BEGUN_AT + OPTIONS.days * DAY_S])) for instants in visits]
    assert max(gaps) <= 12 * DAY_S * 1.06
    assert gaps[7] <= 0.5 * DAY_S


@pytest.mark.heavy
@pytest.mark.long
def test_dates_are_made_use_of(web: ChangingWeb, tmp_path: Path) -> None:
    options = RevisitOptions(interval_s_mean=4 * DAY_S)
    saying = ChangingWeb(replace(OPTIONS, dated=True))
    dated = crawl(saying, options, POLICIES["optimal"](), tmp_path / "dated")
    found = measure(web, dated, BURN_IN_DAYS)
    assert found.freshness >= 0.96 * best(web, found.visits_per_day).freshness


def test_what_is_measured_is_what_theory_says_of_even_visits() -> None:
    web = ChangingWeb(ChangingOptions(pages=400, days=400.0, rate_sigma=0.5))
    every_s = 3.0 * DAY_S
    whole = int(400.0 * DAY_S / every_s)
    visits = [[BEGUN_AT + number * every_s for number in range(whole + 1)] for _ in range(400)]
    seen = measure(web, visits, 10.0)
    expected = np.average([freshness(rate, 1 / every_s) for rate in web.rates], weights=web.importances)
    assert seen.freshness == pytest.approx(expected, abs=0.01)
    assert seen.freshness <= best(web, seen.visits_per_day).freshness + 0.01


@pytest.mark.heavy
@pytest.mark.long
def test_the_best_is_the_same_for_more_pages_of_a_kind() -> None:
    small, large = (ChangingWeb(ChangingOptions(pages=pages, days=1.0)) for pages in (4_000, 16_000))
    assert best(small, 1_000.0).freshness == pytest.approx(best(large, 4_000.0).freshness, abs=0.02)
