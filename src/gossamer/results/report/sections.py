"""Sections: parts of a report with queries of their own: rate over time, sizes, politeness, lookups and caches."""

from typing import Any

from gossamer.model.counters import CACHES, Counters
from gossamer.model.usage import ALLOWED, PURPOSES, REFUSED, UNKNOWN
from gossamer.results.report import figures
from gossamer.results.report.tables import USES, ReportTables, queries

STEPS_MAX = 120
SILENCES_MAX = 10
SILENCE_S_MIN = 5.0
_LENGTHS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800)
_SQL = queries(__package__, "sections.sql")
DOMAINS_MAX = 10_000
_STEPS_AN_OCTAVE = 8
_ANSWERS = (ALLOWED, REFUSED, UNKNOWN)
_NAMES = Counters.__struct_fields__


def course(tables: ReportTables, begun: float, duration_s: float) -> figures.TimelineFigures:
    """Return how the crawl went: at most 120 steps of a round length."""
    step_s = step_length_s(duration_s)
    rows: dict[int, tuple[int, int, int]] = {
        int(row[0]): row[1:] for row in tables.all(_SQL["steps"], begun=repr(begun), step=step_s)
    }
    longest_s: dict[int, float] = {}
    if tables.has_epochs:
        longest_s = dict(tables.all(_SQL["commit_steps"], begun=repr(begun), step=step_s))
    numbers = range(min(rows, default=0), max(rows) + 1)
    steps = tuple(
        figures.TimelineStep(number * step_s, *rows.get(number, (0, 0, 0)), longest_s.get(number, 0.0), queued)
        for number, queued in zip(numbers, _queues(tables, begun, step_s, numbers), strict=True)
    )
    silences = tables.all(_SQL["silences"], begun=repr(begun), least=SILENCE_S_MIN, limit=SILENCES_MAX)
    commits = tables.all(_SQL["commits"]) if tables.has_epochs else []
    return figures.TimelineFigures(
        step_s,
        steps,
        tuple(figures.Silence(at_s, lasted_s) for at_s, lasted_s, _ in silences),
        silences[0][2] if silences else 0.0,
        SILENCE_S_MIN,
        figures.Commits(*commits[0]) if commits else figures.Commits(),
    )


def _queues(tables: ReportTables, begun: float, step_s: float, numbers: range) -> list[int]:
    """Return the length of the queue at the end of each step, the shards' together."""
    if not tables.has_epochs:
        return [0] * len(numbers)
    queued_at: dict[int, dict[int, int]] = {}
    for step, shard, queued in tables.all(_SQL["queues"], begun=repr(begun), step=step_s):
        queued_at.setdefault(max(step, numbers.start), {})[shard] = queued
    standing: dict[int, int] = {}
    found = []
    for number in numbers:
        standing |= queued_at.get(number, {})
        found.append(sum(standing.values()))
    return found


def step_length_s(duration_s: float, steps_max: int = STEPS_MAX) -> float:
    """Return a round length of which at most `steps_max` cover the time."""
    for length_s in _LENGTHS_S:
        if duration_s / length_s <= steps_max - 1:
            return length_s
    return _LENGTHS_S[-1] * (duration_s // (_LENGTHS_S[-1] * (steps_max - 1)) + 1)


def domains(tables: ReportTables) -> tuple[figures.Domain, ...]:
    """Return the top-level domains by pages; of more than `DOMAINS_MAX` the first ones."""
    rows = tables.all(_SQL["domains"], limit=DOMAINS_MAX)
    return tuple(figures.Domain(name or "(none)", hosts, pages) for name, hosts, pages in rows)


def buckets(tables: ReportTables, sizes: str) -> tuple[figures.Bucket, ...]:
    """Return how many of the sizes that a query gives are in each bucket."""
    found = {row[0]: figures.Bucket(*row) for row in tables.all(_SQL["buckets"], sizes=sizes)}
    if not found:
        return ()
    first = min(found)
    last = max(found)
    places = [first, *(1 << power for power in range(last.bit_length()) if 1 << power > first)]
    return tuple(found.get(least) or figures.Bucket(least, 0, 0) for least in places)


def politeness(tables: ReportTables) -> figures.PolitenessSummary:
    """Return how polite the crawl was. Sorts all rows by host, and by address (cost: docs/reference/report.md)."""
    denied, hosts, unreachable, excluded, busy = tables.one(_SQL["refused"])
    return figures.PolitenessSummary(
        denied, hosts, unreachable, excluded, busy, _gaps(tables, "host"), _gaps(tables, "ip")
    )


def uses(tables: ReportTables) -> tuple[tuple[figures.Uses, ...], tuple[figures.Count, ...]]:
    """Return the answers for each purpose, and how many pages have a statement of each kind."""
    kinds = tables.all(_SQL["statements"])
    if not kinds:
        return (), ()
    whole = tables.one(_SQL["stated"])[0]
    sums = ", ".join(f"count(*) FILTER ({USES[one]} = '{answer}')" for one in PURPOSES for answer in _ANSWERS)
    row = tables.one(_SQL["uses"], sums=sums)
    each = (row[at : at + len(_ANSWERS)] for at in range(0, len(row), len(_ANSWERS)))
    found = tuple(figures.Uses(purpose, *counts) for purpose, counts in zip(PURPOSES, each, strict=True))
    return found, tuple(figures.Count(kind, count, count / whole) for kind, count in kinds)


def _gaps(tables: ReportTables, who: str) -> figures.Gaps:
    rows = tables.query_slices(_SQL["gaps"], who, who=who, steps=_STEPS_AN_OCTAVE)
    counted = sum(row[1] for row in rows)
    if not counted:
        return figures.Gaps()
    left = counted / 2
    median = 0.0
    for step, count, sum_s, _, _ in sorted(_together(rows), key=lambda row: (row[0] is not None, row[0])):
        median = 0.0 if step is None else sum_s / count
        left = left - count
        if left <= 0:
            break
    whole_s = sum(row[2] for row in rows)
    overlaps = sum(row[4] for row in rows)
    at_once_max = 1
    if overlaps:  # A polite crawl is spared the sort.
        at_once_max = max(most or 0 for (most,) in tables.query_slices(_SQL["at_once"], who, who=who))
    return figures.Gaps(counted, min(row[3] for row in rows), median, whole_s / counted, overlaps, at_once_max)


def _together(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Add up the slices' rows of the same step."""
    steps: dict[int | None, tuple[Any, ...]] = {}
    for step, count, sum_s, least_s, overlaps in rows:
        _, counts, sums_s, _, _ = steps.get(step, (step, 0, 0.0, 0.0, 0))
        steps[step] = (step, counts + count, sums_s + sum_s, least_s, overlaps)
    return list(steps.values())


def dns_and_caches(tables: ReportTables) -> tuple[figures.Dns, tuple[figures.Cache, ...], tuple[figures.Count, ...]]:
    """Return lookups, caches and checks of links, summed over commits; nothing without any."""
    if not tables.has_epochs:
        return figures.Dns(), (), ()
    row = tables.one(_SQL["sums"], sums=", ".join(f"coalesce(sum({name}), 0)" for name in _NAMES))
    sums = dict(zip(_NAMES, row, strict=True))
    lookups = int(sums["dns_lookups"])
    lasted_s = float(sums["dns_s"])
    whole_s = lasted_s + tables.one(_SQL["fetched_s"])[0]
    mean_s = lasted_s / lookups if lookups else 0.0
    share_of_time = lasted_s / whole_s if whole_s else 0.0
    within = [int(sums[f"dns_within_{limit}"]) for limit in ("10_ms", "100_ms", "1_s")]
    dns = figures.Dns(lookups, int(sums["dns_failures"]), lasted_s, mean_s, share_of_time, *within)
    pairs = [(name, int(sums[f"{name}_hits"]), int(sums[f"{name}_misses"])) for name in CACHES]
    checks = {
        name: int(sums[key])
        for name, key in (
            ("rejected", "links_rejected"), ("elsewhere", "links_elsewhere"), ("admitted", "admitted_hits"),
            ("popular", "urls_hits"), ("memory", "urls_misses"), ("disk", "urls_on_disk"),
        )
    }  # fmt: skip
    on_disk = checks["disk"]
    checks["memory"] = max(0, checks["memory"] - on_disk)
    if on_disk:
        pairs.append(("eliminator", checks["admitted"] + checks["popular"] + checks["memory"], on_disk))
    caches = tuple(
        figures.Cache(name, hits, misses, hits / (hits + misses)) for name, hits, misses in pairs if hits + misses
    )
    whole = int(sums["links_submitted"])
    return dns, caches, tuple(figures.Count(name, n, n / whole) for name, n in checks.items() if n and whole)
