"""Looking: figures for displays beside the status: rates over time, the last attempts, and what all shards answer."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any, cast

from gossamer.api.given import directory_of
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.engine.counters import RecentList, Telemetry
from gossamer.model.product import __version__
from gossamer.model.verbs import Nothing, RecentOf
from gossamer.results.search.folder import indexes_of

POINTS_SHOWN_MAX = 2_000


def about(directory: Path, config: Config) -> dict[str, object]:
    """Return the constant facts of a crawl."""
    return {
        "name": directory.resolve().name,
        "mode": config.crawl.mode,
        "workers": config.cluster.workers,
        "version": __version__,
        "search": config.search.enabled or bool(indexes_of(directory)),
        "items": bool(config.extract.rules),
    }


def about_of(directory: str | Path) -> dict[str, object]:
    """As `about`, for a crawl that does not run. Raises ConfigError: there is no crawl."""
    directory = directory_of(directory)
    return about(directory, reopen(directory / "crawl.toml"))


def recent_of_all(answers: Sequence[object], after: int, most: int) -> dict[str, object]:
    """Merge the last attempts of all shards, each numbered by its end in microseconds since 1970."""
    lists: dict[str, list[dict[str, Any]]] = {"pages": [], "errors": []}
    for answer in answers:
        for name, found in lists.items():
            if isinstance(answer, Mapping):
                found += [{**one, "number": round(1e6 * (one["at"] + one["fetch_s"]))} for one in answer[name]]
    recent = {
        name: sorted((one for one in found if one["number"] > after), key=lambda one: one["number"])[-most:]
        for name, found in lists.items()
    }
    last = max((one["number"] for found in recent.values() for one in found), default=after)
    return {"last": last, **recent, "left_out": 0}


class Looking:
    """Verbs about a shard over time. It keeps attempts from the first request for them on, and costs nothing before."""

    def __init__(self, directory: Path, telemetry: Telemetry) -> None:
        self._directory = directory
        self._logs = telemetry.logs
        self._counters = telemetry.counters
        self._began_at = telemetry.clock.now()
        self._before: Sequence[Sequence[float | int | None]] | None = None
        """Rates over time of earlier runs."""
        self._one_at_a_time = asyncio.Lock()

    async def recent(self, request: RecentOf) -> object:
        """Report the last attempts."""
        if self._counters.recent is None:
            self._counters.recent = RecentList()
        return self._counters.recent.since(request.after, request.most)

    async def course(self, _: Nothing) -> object:
        """Report where the counts stood, over all runs; the earlier ones are read once, in a thread."""
        async with self._one_at_a_time:
            if self._before is None:
                self._before = await self._earlier()
        points = [*self._before, *(list(point) for point in self._counters.timeline.points())]
        return {"points": points[-POINTS_SHOWN_MAX:]}

    async def _earlier(self) -> Sequence[Sequence[float | int | None]]:
        if self._counters.totals.incarnation <= 1:
            return ()
        from gossamer.results.report.past import course_until  # noqa: PLC0415 - it brings what reads tables

        try:
            return await asyncio.to_thread(course_until, self._directory, self._began_at)
        except Exception as error:  # noqa: BLE001 - a table that cannot be read must not hide what is going on now
            self._logs.critical("course_unread", error)
            return ()


def merge_answers(answers: Sequence[object]) -> object:
    """Merge the answers of all shards: numbers are added, lists joined, equal values listed once."""
    joined: dict[str, object] = {}
    for answer in answers:
        if not isinstance(answer, Mapping):
            continue
        for name, value in answer.items():
            if isinstance(value, list):
                known = cast("list[object]", joined.setdefault(name, []))
                known += [one for one in value if one not in known]
            elif isinstance(value, int) and not isinstance(value, bool):
                joined[name] = cast("int", joined.get(name, 0)) + value
            elif name in joined and joined[name] != value:
                joined[name] = f"{joined[name]}, {value}"
            else:
                joined[name] = value
    return joined


def hosts_of_all(answers: Sequence[object], most: int) -> object:
    """Merge the hosts of all shards."""
    known = [answer for answer in answers if isinstance(answer, Mapping)]
    limits: Counter[str] = Counter()
    for answer in known:
        limits.update(answer["limits"])
    keys: dict[str, Callable[[Mapping[str, Any]], object]] = {
        "active": lambda host: (host["out"], host["queued"]),
        "slowest": lambda host: host["fetch_s"] or 0.0,
        "failing": lambda host: (host["sleeps"], host["failures"], host["queued"]),
    }
    lists = {
        name: nlargest(most, (host for answer in known for host in answer[name]), key=key)  # type: ignore[arg-type]
        for name, key in keys.items()
    }
    return {"limits": dict(limits), **lists, "closed": [one for answer in known for one in answer["closed"]][-most:]}
