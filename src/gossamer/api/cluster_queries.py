"""Queries of a running crawl of several shards, which change nothing. Each takes its request and returns the answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

from gossamer.api.engine import EngineCalls
from gossamer.api.looking import about, hosts_of_all, recent_of_all
from gossamer.api.shards import owner_of
from gossamer.config import Config
from gossamer.crawl.counters import Timeline
from gossamer.model.verbs import HostsOf, Nothing, RecentOf, RefusedError, StatusOf, Why

HOSTS_SHOWN_MAX = 10


class ClusterQueries:
    """Answers of the process that runs the whole crawl, its own or merged from those of shards."""

    def __init__(
        self,
        directory: Path,
        config: Callable[[], Config],
        calls: EngineCalls,
        status: Callable[..., dict[str, object]],
        course: Timeline,
    ) -> None:
        """`config` returns the present one: shards may be added."""
        self._directory = directory
        self._config = config
        self._calls = calls
        self._status = status
        self._course = course

    async def status(self, request: StatusOf) -> object:
        if not request.detail:
            return self._status()
        with suppress(RefusedError):  # While shards restart, return the status without hosts.
            return {**self._status(detail=True), "hosts": await self.hosts(HostsOf(n=HOSTS_SHOWN_MAX))}
        return self._status(detail=True)

    async def metrics(self, _: Nothing) -> object:
        from gossamer.api.metrics import metrics_of  # noqa: PLC0415 - who never asks does not pay for the library

        return {"metrics": metrics_of(self._status()).decode()}

    async def why(self, request: Why) -> object:
        shard = owner_of(self._config(), self._directory, request.url)
        return {**cast("dict[str, object]", (await self._calls.ask("why", request, [shard]))[0]), "shard": shard}

    async def hosts(self, request: HostsOf) -> object:
        shards = every_shard(self._config())
        return hosts_of_all(await self._calls.ask("hosts", request, shards, some=True), request.n)

    async def about(self, _: Nothing) -> object:
        return about(self._directory, self._config())

    async def recent(self, request: RecentOf) -> object:
        found = await self._calls.ask("recent", RecentOf(), every_shard(self._config()), some=True)
        return recent_of_all(found, request.after, request.most)

    async def course(self, _: Nothing) -> object:
        return {"points": [list(point) for point in self._course.points()]}


def every_shard(config: Config) -> list[int]:
    """Return the numbers of a crawl's shards."""
    return list(range(config.cluster.workers))
