"""The timeline of a crawl: fine for minutes, coarse for a month, and never more points than its rings hold."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gossamer.engine.counters import RINGS, Point, Timeline

POINTS_MAX = sum(most + 1 for _, most in RINGS)


def course(lasts_s: int, every_s: int = 1) -> Timeline:
    """Return one of a crawl of ten pages, and a thousand bytes, a second."""
    found = Timeline()
    for second in range(0, lasts_s, every_s):
        found.add(Point(float(second), 10 * second, 11 * second, 1_000 * second, 5))
    return found


def test_points_are_in_order_bounded_and_reach_to_both_ends() -> None:
    for lasts_s, every_s in ((10, 1), (4_000, 1), (40_000, 3), (3_000_000, 50)):
        points = course(lasts_s, every_s).points()
        assert len(points) <= POINTS_MAX
        assert all(before.at < after.at for before, after in pairwise(points))
        assert points[-1].at == max(range(0, lasts_s, every_s))
        assert points[0].at <= max(0.0, lasts_s - 30 * 86_400)


def test_the_last_minutes_are_finer_than_the_last_hours() -> None:
    points = course(86_400).points()
    steps = [after.at - before.at for before, after in pairwise(points)]
    assert steps[-200:] == [1.0] * 200
    assert max(steps) <= 600
    assert steps == sorted(steps, reverse=True) or max(steps[-300:]) == 1.0


def test_rates_are_those_of_the_last_ten_minutes() -> None:
    rates = course(2_000).rates()
    assert len(rates) == 120
    assert [rate for _, rate, _ in rates] == pytest.approx([10.0] * 120)
    assert [rate for _, _, rate in rates] == pytest.approx([1_000.0] * 120)
    assert rates[-1][0] - rates[0][0] == pytest.approx(595.0)
    assert Timeline().rates() == []
