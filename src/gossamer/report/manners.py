"""Manners: what robots.txt forbade, and how long hosts and addresses were left alone between requests."""

from __future__ import annotations

from typing import Any

from gossamer.report.figures import Gaps, Manners
from gossamer.report.tables import Tables

_REFUSED = """
    SELECT count(*) FILTER (outcome = 'robots_denied'), count(DISTINCT host) FILTER (outcome = 'robots_denied'),
        count(*) FILTER (outcome = 'robots_unreachable'), count(*) FILTER (outcome = 'excluded'),
        count(*) FILTER (status IN (429, 503))
    FROM pages"""
# Only what was asked for: what robots.txt denied, or what could not be looked up, was no request.
_GAPS = """
    WITH turns AS (
        SELECT began_s - lag(ended_s) OVER (PARTITION BY {who} ORDER BY began_s) AS gap_s
        FROM pages WHERE fetch_s > 0 AND ip <> '' AND {slice})
    SELECT CASE WHEN gap_s > 0 THEN floor({steps} * log2(gap_s))::INTEGER END AS step, count(*), sum(gap_s), min(gap_s),
        count(*) FILTER (gap_s < 0)
    FROM turns WHERE gap_s IS NOT NULL GROUP BY 1"""
_STEPS_AN_OCTAVE = 8


def manners(tables: Tables) -> Manners:
    """Return the summary. A sort of all rows by host, and one by address: docs/report.md says what they cost."""
    denied, hosts, unreachable, excluded, busy = tables.one(_REFUSED)
    return Manners(denied, hosts, unreachable, excluded, busy, _gaps(tables, "host"), _gaps(tables, "ip"))


def _gaps(tables: Tables, who: str) -> Gaps:
    rows = tables.sliced(_GAPS, who, who=who, steps=_STEPS_AN_OCTAVE)
    counted = sum(row[1] for row in rows)
    if not counted:
        return Gaps()
    left, median = counted / 2, 0.0
    for step, count, sum_s, _, _ in sorted(_together(rows), key=lambda row: (row[0] is not None, row[0])):
        median, left = (0.0 if step is None else sum_s / count), left - count
        if left <= 0:
            break
    whole_s = sum(row[2] for row in rows)
    return Gaps(counted, min(row[3] for row in rows), median, whole_s / counted, sum(row[4] for row in rows))


def _together(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Add up the slices' rows of the same step."""
    steps: dict[int | None, tuple[Any, ...]] = {}
    for step, count, sum_s, least_s, overlaps in rows:
        _, counts, sums_s, _, _ = steps.get(step, (step, 0, 0.0, 0.0, 0))
        steps[step] = (step, counts + count, sums_s + sum_s, least_s, overlaps)
    return list(steps.values())
