"""Past: rates over time, hosts and last attempts from a crawl's finished tables, as a running crawl reports them.

All of it is plain values, for JSON.
"""

from pathlib import Path
from typing import Any

from gossamer.model.status import RECENT_CHARACTERS_MAX
from gossamer.results.report.figures import Past
from gossamer.results.report.tables import ReportTables, open_tables, queries

POINTS_MAX = 600
HOSTS_MAX = 10
ATTEMPTS_MAX = 20
FIRST_COMMIT_S = 1.0
"""About when a crawl commits first, after its start, at which it had done nothing."""
MEMORY_BYTES_MAX = 256_000_000
_WELL = "('fetched', 'not_modified', 'redirected')"
_SQL = queries(__package__, "past.sql")


def past(directory: Path) -> Past:
    """Return the figures of the tables. Seconds per ten million pages, in bounded memory."""
    with open_tables(directory, MEMORY_BYTES_MAX) as tables:
        if tables is None:
            return Past([], _hosts([], []), [], [])
        return Past(
            _course(tables, float("inf")),
            _hosts(tables.all(_SQL["slowest"], limit=HOSTS_MAX), tables.all(_SQL["failing"], limit=HOSTS_MAX)),
            _summaries(tables.all(_SQL["last"], which="IN", well=_WELL, limit=ATTEMPTS_MAX)),
            _summaries(tables.all(_SQL["last"], which="NOT IN", well=_WELL, limit=ATTEMPTS_MAX)),
        )


def course_until(directory: Path, before: float) -> list[list[float | int | None]]:
    """Return the rates over time of a crawl's earlier runs, up to an instant, from its table of commits."""
    with open_tables(directory, MEMORY_BYTES_MAX, ("epochs",)) as tables:
        return _course(tables, before) if tables is not None else []


def _course(tables: ReportTables, before: float) -> list[list[float | int | None]]:
    if not tables.has_epochs:
        return []
    until = "'infinity'::DOUBLE" if before == float("inf") else repr(before)
    begun, ended = tables.one(_SQL["span"], before=until)
    if begun is None:
        return []
    step_s = max((ended - begun) / POINTS_MAX, 1e-3)
    standing: dict[int, tuple[int, int, int]] = {}
    queues: dict[int, int] = {}
    points: dict[int, list[float | int | None]] = {}
    for step, shard, at, pages, attempts, wire_bytes, queued in tables.all(
        _SQL["steps"], begun=repr(begun), step=repr(step_s), before=until
    ):
        standing[shard] = pages, attempts, wire_bytes
        queues[shard] = queued or 0
        points[step] = [at, *map(sum, zip(*standing.values(), strict=True)), sum(queues.values())]
    return [[begun - FIRST_COMMIT_S, 0, 0, 0, None], *points.values()]


def _hosts(slowest: list[tuple[Any, ...]], failing: list[tuple[Any, ...]]) -> dict[str, object]:
    return {
        "limits": {},
        "active": [],
        "slowest": [
            {"host": host, "limit": "", "queued": 0, "requests": attempts, "fetch_s": round(mean_s, 4), "failures": 0,
             "reason": ""}
            for host, attempts, mean_s in slowest
        ],
        "failing": [
            {"host": host, "limit": "closed" if closed else "", "queued": 0, "requests": None, "fetch_s": None,
             "failures": failures, "reason": (reason or "")[:RECENT_CHARACTERS_MAX]}
            for host, failures, closed, reason in failing
        ],
    }  # fmt: skip


def _summaries(rows: list[tuple[Any, ...]]) -> list[dict[str, object]]:
    names = (
        "at", "url", "outcome", "status", "media_type", "body_bytes", "fetch_s", "depth", "attempt", "title", "error",
    )  # fmt: skip
    found = [dict(zip(names, row, strict=True)) for row in reversed(rows)]
    for one in found:
        one["number"] = round(1e6 * one["at"])
        one["title"], one["error"] = one["title"][:RECENT_CHARACTERS_MAX], one["error"][:RECENT_CHARACTERS_MAX]
    return found
