"""Course: how a crawl went over time. Rates in steps, and the times in which nothing ended."""

from __future__ import annotations

from gossamer.report.figures import Commits, Course, Silence, Step
from gossamer.report.tables import Tables

STEPS_MAX = 120
SILENCES_MAX = 10
SILENCE_S_MIN = 5.0
_LENGTHS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800)

_STEPS = """
    SELECT floor((ended_s - {begun}) / {step})::BIGINT AS step, count(*), count(*) FILTER (outcome = 'fetched'),
        coalesce(sum(wire_bytes), 0)::BIGINT
    FROM pages GROUP BY 1 ORDER BY 1"""
# By whole seconds first: as many groups as the crawl has seconds, however many pages.
_SILENCES = """
    WITH seconds AS (
        SELECT floor(ended_s - {begun})::BIGINT AS second, min(ended_s) AS first_s, max(ended_s) AS last_s
        FROM pages GROUP BY 1),
    gaps AS (SELECT lag(last_s) OVER (ORDER BY second) AS since, first_s FROM seconds)
    SELECT since - {begun}, first_s - since AS lasted, sum(first_s - since) OVER ()
    FROM gaps WHERE first_s - since >= {least} ORDER BY lasted DESC LIMIT {limit}"""


_COMMIT_STEPS = """
    SELECT floor((epoch(committed_at) - {begun}) / {step})::BIGINT AS step, max(took_s) FROM epochs GROUP BY 1"""
_QUEUES = """
    SELECT floor((epoch(committed_at) - {begun}) / {step})::BIGINT AS step, shard,
        coalesce(arg_max(queued, committed_at), 0)
    FROM epochs GROUP BY 1, 2 ORDER BY 1"""
_COMMITS = """
    SELECT count(*), avg(took_s), approx_quantile(took_s, 0.99), max(took_s), max(cut_s) FROM epochs
    HAVING count(*) > 0"""


def course(tables: Tables, begun: float, duration_s: float) -> Course:
    """Return how the crawl went: at most 120 steps of a round length."""
    step_s = step_length_s(duration_s)
    rows = {int(row[0]): row[1:] for row in tables.all(_STEPS, begun=repr(begun), step=step_s)}
    longest_s: dict[int, float] = {}
    if tables.has_epochs:
        longest_s = dict(tables.all(_COMMIT_STEPS, begun=repr(begun), step=step_s))
    numbers = range(min(rows, default=0), max(rows) + 1)
    queues = _queues(tables, begun, step_s, numbers)
    steps = tuple(
        _step(number * step_s, rows.get(number, (0, 0, 0)), longest_s.get(number, 0.0), queued)
        for number, queued in zip(numbers, queues, strict=True)
    )
    silences = tables.all(_SILENCES, begun=repr(begun), least=SILENCE_S_MIN, limit=SILENCES_MAX)
    return Course(
        step_s,
        steps,
        tuple(Silence(at_s, lasted_s) for at_s, lasted_s, _ in silences),
        silences[0][2] if silences else 0.0,
        SILENCE_S_MIN,
        Commits(*found[0]) if tables.has_epochs and (found := tables.all(_COMMITS)) else Commits(),
    )


def _queues(tables: Tables, begun: float, step_s: float, numbers: range) -> list[int]:
    """Return the length of the queue at the end of each step, the shards' together."""
    if not tables.counts:
        return [0] * len(numbers)
    told: dict[int, dict[int, int]] = {}
    for step, shard, queued in tables.all(_QUEUES, begun=repr(begun), step=step_s):
        told.setdefault(max(step, numbers.start), {})[shard] = queued
    standing: dict[int, int] = {}
    found = []
    for number in numbers:
        standing |= told.get(number, {})
        found.append(sum(standing.values()))
    return found


def _step(at_s: float, sums: tuple[int, ...], longest_s: float, queued: int) -> Step:
    attempts, pages, wire_bytes = sums
    return Step(at_s, attempts, pages, wire_bytes, longest_s, queued)


def step_length_s(duration_s: float) -> float:
    """Return a round length of which at most `STEPS_MAX` cover the time."""
    for length_s in _LENGTHS_S:
        if duration_s / length_s <= STEPS_MAX - 1:
            return length_s
    return _LENGTHS_S[-1] * (duration_s // (_LENGTHS_S[-1] * (STEPS_MAX - 1)) + 1)
