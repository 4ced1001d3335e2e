"""How fresh copies are kept by each policy, how well change rates are estimated, and what a visit costs.

Usage: PYTHONPATH=src python benchmarks/bench_revisit.py [--json FILE] [--figure FILE] [--pages N]

Nothing is timed but the processor: pages change, and are visited by the real frontier and schedule, under a simulated
clock.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gossamer.features.revisit.options import DAY_S, RevisitOptions
from gossamer.features.revisit.policies import POLICIES, Optimal, VisitHistory, rate_of
from gossamer.features.revisit.rhythm import Census
from gossamer.lab.simulate.revisits import ChangingOptions, ChangingWeb, Watched, best, crawl, measure
from gossamer.model.standing import Habits

DAYS, BURN_IN_DAYS, INTERVAL_DAYS = 56.0, 24.0, 4.0
WEEK = 7.0
STYLE = 'role="img" font-family="system-ui,sans-serif" font-size="12"'
INKS = {"optimal": "#1d4ed8", "lambda": "#15803d", "uniform": "#c2410c", "proportional": "#7c3aed"}
Estimator = Callable[[Sequence[tuple[float, float]]], float]
"""Takes pairs: an interval, and how long before its end the last change was (infinite: none ever)."""


def main() -> int:
    """Print the tables; return 1 when the default misses what it promises."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--pages", type=int, default=2_000)
    given = parser.parse_args()
    found: dict[str, object] = {"policies": policies(given.pages, given.figure), "estimators": estimators()}
    found["costs"] = costs()
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return 0 if kept(found["policies"]) else 1


def kept(rows: object) -> bool:
    """Say whether the default reaches 95 % of the optimum and a tenth more than uniform."""
    assert isinstance(rows, dict)
    default, uniform = rows["optimal"], rows["uniform"]
    return bool(default["of_best"] >= 0.95 and default["freshness"] >= 1.1 * uniform["freshness"])


# ---- policies


def policies(pages: int, figure: Path | None) -> dict[str, dict[str, float]]:
    """Crawl one web by each policy, with the same budget, knowing nothing of its rates."""
    web = ChangingWeb(ChangingOptions(pages=pages, days=DAYS))
    options = RevisitOptions(interval_s_mean=INTERVAL_DAYS * DAY_S)
    print(f"{pages} pages, {DAYS:.0f} days, the first {BURN_IN_DAYS:.0f} left out; a visit each {INTERVAL_DAYS} days")
    print(f"{'policy':<14}{'freshness':>10}{'of best':>9}{'age, days':>11}{'visits/day':>12}{'median':>8}{'µs':>6}")
    rows: dict[str, dict[str, float]] = {}
    courses: dict[str, list[float]] = {}
    limit = 0.0
    for name, policy in POLICIES.items():
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            visits = crawl(web, options, policy(), Path(folder) / "shard")
        cpu_us = (time.process_time() - began) / sum(map(len, visits)) * 1e6
        seen = measure(web, visits, BURN_IN_DAYS)
        most = best(web, seen.visits_per_day)
        if name == "optimal":
            limit = most.freshness
        rows[name] = _row(seen, most, cpu_us)
        courses[name] = [
            measure(web, visits, week * WEEK, (week + 1) * WEEK).freshness for week in range(int(DAYS / WEEK))
        ]
        _print_row(name, rows[name])
    most = best(web, rows["uniform"]["visits_per_day"])
    _print_row("(best)", _row(most, most, 0.0))
    if figure is not None:
        figure.write_text(drawn(courses, limit))
    return rows


def _row(seen: Watched, most: Watched, cpu_us: float) -> dict[str, float]:
    return {
        "freshness": seen.freshness, "of_best": seen.freshness / most.freshness, "age_days": seen.age_days,
        "visits_per_day": seen.visits_per_day, "visits_median": seen.visits_median, "cpu_us": cpu_us,
    }  # fmt: skip


def _print_row(name: str, row: dict[str, float]) -> None:
    print(
        f"{name:<14}{row['freshness']:>10.3f}{row['of_best']:>9.1%}{row['age_days']:>11.2f}"
        f"{row['visits_per_day']:>12.0f}{row['visits_median']:>8.0f}{row['cpu_us']:>6.0f}",
        flush=True,
    )


def drawn(courses: dict[str, list[float]], limit: float) -> str:
    """Return the figure: freshness week by week."""
    wide, high, left, right, top, bottom = 760, 320, 52, 120, 34, 40
    floor, ceiling = 0.3, 0.8
    inner, tall = wide - left - right, high - top - bottom
    weeks = len(courses["optimal"])

    def x(week: float) -> float:
        return left + inner * week / (weeks - 1)

    def y(value: float) -> float:
        return top + tall * (1.0 - (min(max(value, floor), ceiling) - floor) / (ceiling - floor))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" {STYLE}>',
        f'<rect width="{wide}" height="{high}" fill="#ffffff"/>',
        f'<text x="{left}" y="18" font-weight="600">Weighted freshness, week by week, rates unknown at first</text>',
    ]
    for tick in range(6):
        value = floor + tick * (ceiling - floor) / 5
        parts.append(
            f'<line x1="{left}" x2="{wide - right}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#cbd5e1"/>'
        )
        parts.append(f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#475569">{value:.0%}</text>')
    parts += [
        f'<text x="{x(week):.1f}" y="{high - 20}" text-anchor="middle" fill="#475569">{week + 1}</text>'
        for week in range(weeks)
    ]
    parts.append(f'<text x="{left + inner / 2:.0f}" y="{high - 4}" text-anchor="middle" fill="#475569">week</text>')
    parts.append(
        f'<line x1="{left}" x2="{wide - right}" y1="{y(limit):.1f}" y2="{y(limit):.1f}" stroke="#0f172a" '
        'stroke-dasharray="5 4"/>'
    )
    labels = [(y(limit), "#0f172a", "best possible")]
    for name, ink in INKS.items():
        points = " ".join(f"{x(week):.1f},{y(value):.1f}" for week, value in enumerate(courses[name]))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{ink}" stroke-width="2"/>')
        labels.append((y(courses[name][-1]), ink, name))
    at = 0.0
    for place, ink, text in sorted(labels):
        at = max(place + 4, at + 14)
        parts.append(f'<text x="{wide - right + 8}" y="{at:.1f}" fill="{ink}">{text}</text>')
    return "\n".join([*parts, "</svg>\n"])


# ---- estimators


def estimators(runs: int = 1_000) -> dict[str, dict[str, tuple[float, float]]]:
    """Print mean and spread of estimates, as multiples of the rate that is to be found."""
    interval_s, draw = 1_000.0, random.Random(5)
    found: dict[str, dict[str, tuple[float, float]]] = {}
    print(f"\nestimates over {runs} pages: mean ± standard deviation, as multiples of the true rate")
    for regular in (True, False):
        kinds = {**_regular(interval_s), **_ours()} if regular else _ours()
        print("visits at even intervals" if regular else "visits at random intervals")
        print(f"{'':<36}" + "".join(f"n={n} x={x:<8}" for n in (3, 10, 30) for x in (0.2, 1.0, 3.0)))
        for name, of in kinds.items():
            cells = {}
            for n in (3, 10, 30):
                for x in (0.2, 1.0, 3.0):
                    rate = x / interval_s
                    seen = [of(_visits(draw, rate, n, interval_s, regular=regular), rate) / rate for _ in range(runs)]
                    cells[f"{n} {x}"] = statistics.mean(seen), statistics.pstdev(seen)
            found[f"{name}, {'even' if regular else 'random'}"] = cells
            print(
                f"{name:<36}" + "".join(f"{mean:5.2f} ±{spread:5.2f}  " for mean, spread in cells.values()), flush=True
            )
    return found


def _visits(
    draw: random.Random, rate: float, count: int, interval_s: float, *, regular: bool
) -> list[tuple[float, float]]:
    pairs = []
    since_s = math.inf
    for _ in range(count):
        waited_s = interval_s * (1.0 if regular else draw.expovariate(1.0))
        before_s = draw.expovariate(rate)
        # Looking back from the visit, the last change of a Poisson process is so long ago; beyond the visit before
        # it is the one that was known then.
        since_s = before_s if before_s < waited_s else since_s + waited_s
        pairs.append((waited_s, since_s))
    return pairs


def _regular(interval_s: float) -> dict[str, Callable[[Sequence[tuple[float, float]], float], float]]:
    def naive(pairs: Sequence[tuple[float, float]], _: float) -> float:
        return sum(since < waited for waited, since in pairs) / len(pairs) / interval_s

    def corrected(pairs: Sequence[tuple[float, float]], _: float) -> float:
        same = sum(since >= waited for waited, since in pairs)
        return -math.log((same + 0.5) / (len(pairs) + 0.5)) / interval_s

    return {"changes / visits": naive, "Cho and Garcia-Molina, corrected": corrected}


def _ours() -> dict[str, Callable[[Sequence[tuple[float, float]], float], float]]:
    def likely(
        *, dated: bool, off: float, weight: float = 0.5
    ) -> Callable[[Sequence[tuple[float, float]], float], float]:
        def of(pairs: Sequence[tuple[float, float]], rate: float) -> float:
            history = VisitHistory()
            for waited, since in pairs:
                if since < waited:
                    history.note_change(waited, since if dated else None)
                else:
                    history.note_same(waited)
            return rate_of(history, rate * off, weight)

        return of

    return {
        "likelihood alone": likely(dated=False, off=1.0, weight=0.0),
        "with a prior that is right": likely(dated=False, off=1.0),
        "with a prior 4 times too high": likely(dated=False, off=4.0),
        "with a prior 4 times too low": likely(dated=False, off=0.25),
        "with Last-Modified": likely(dated=True, off=1.0),
        "with Last-Modified, prior 4 times": likely(dated=True, off=4.0),
    }


# ---- costs


def costs() -> dict[str, float]:
    """Print what a page's estimate, its place in the census and a price cost, however many pages there are."""
    draw = random.Random(2)
    print("\nprocessor")
    history = VisitHistory()
    for _ in range(30):
        history.note_same(draw.expovariate(1e-5))
        history.note_change(draw.expovariate(1e-5))
    found = {"estimate_us": _us(lambda: rate_of(history, 1e-5), 2_000)}
    print(f"an estimate from 60 visits          {found['estimate_us']:8.1f} µs")
    policy = Optimal()
    habits = Habits(1e-5, 1.0)
    found["rate_us"] = _us(lambda: policy.rate(habits, 1.0), 20_000)
    print(f"a page's rate at a price            {found['rate_us']:8.1f} µs")
    for pages in (1_000, 10_000, 100_000):
        census = Census()
        for _ in range(pages):
            census.add(math.exp(draw.gauss(-12.0, 2.0)), math.exp(draw.gauss(0.0, 1.0)))
        price = census.price(policy, pages / DAY_S)
        found[f"price_ms_{pages}"] = _us(lambda: census.price(policy, pages / DAY_S * 1.01, price), 20) / 1e3  # noqa: B023
        print(f"the price again, {pages:>7} pages in {len(census.cells):>4} cells {found[f'price_ms_{pages}']:6.2f} ms")
    return found


def _us(work: Callable[[], object], times: int) -> float:
    spent = []
    for _ in range(3):
        began = time.process_time()
        for _ in range(times):
            work()
        spent.append((time.process_time() - began) / times * 1e6)
    return min(spent)


if __name__ == "__main__":
    sys.exit(main())
