"""Queries and settings of a running crawl of several shards. Each takes its request and returns the answer."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from gossamer.api.engine import EngineCalls, limits_of
from gossamer.api.looking import about, hosts_of_all, recent_of_all
from gossamer.api.setting import SettingVerbs
from gossamer.api.shards import owner_of
from gossamer.config import Config
from gossamer.config.live import save
from gossamer.engine.counters import Timeline
from gossamer.model import verbs

HOSTS_SHOWN_MAX = 10
HOSTS_S_MAX = 3.0
WHOLE_CRAWL = ("limits.", "frontier.hosts_min")
"""Keys that the coordinator obeys, for all shards together."""


@dataclass(frozen=True, slots=True)
class ClusterQueries:
    """Answers of the process that runs the whole crawl, its own or merged from those of shards."""

    _directory: Path
    _config: Callable[[], Config]
    """Returns the present one: shards may be added."""
    _calls: EngineCalls
    _status: Callable[..., dict[str, object]]
    _timeline: Timeline

    async def status(self, request: verbs.StatusOf) -> object:
        if not request.detail:
            return self._status()
        # While shards restart, or do not answer, return the status without hosts.
        with suppress(verbs.RefusedError, TimeoutError):
            async with asyncio.timeout(HOSTS_S_MAX):
                return {**self._status(detail=True), "hosts": await self.hosts(verbs.HostsOf(n=HOSTS_SHOWN_MAX))}
        return self._status(detail=True)

    async def metrics(self, _: verbs.Nothing) -> object:
        from gossamer.api.metrics import metrics_of  # noqa: PLC0415 - who never asks does not pay for the library

        if not all("runs" in shard for shard in cast("list[dict[str, object]]", self._status()["shards"])):
            raise verbs.ConflictError("the crawl is starting; try again")  # Totals that begin at 0 would count as new.
        detailed = cast("dict[str, object]", await self.status(verbs.StatusOf(detail=True)))
        return {"metrics": metrics_of(detailed).decode()}

    async def why(self, request: verbs.Why) -> object:
        shard = owner_of(self._config(), self._directory, request.url)
        return {**cast("dict[str, object]", (await self._calls.ask("why", request, [shard]))[0]), "shard": shard}

    async def hosts(self, request: verbs.HostsOf) -> object:
        return hosts_of_all(await self._calls.ask("hosts", request, self._answering(), some=True), request.n)

    async def about(self, _: verbs.Nothing) -> object:
        return about(self._directory, self._config())

    async def recent(self, request: verbs.RecentOf) -> object:
        found = await self._calls.ask("recent", verbs.RecentOf(), self._answering(), some=True)
        return recent_of_all(found, request.after, request.most)

    def _answering(self) -> list[int]:
        known = cast("list[dict[str, object]]", self._status().get("shards", []))
        silent = {one["shard"] for one in known if "heard_s" in one}
        return [shard for shard in every_shard(self._config()) if shard not in silent]

    async def course(self, _: verbs.Nothing) -> object:
        return {"points": [list(point) for point in self._timeline.points()]}


class ClusterSetting(SettingVerbs):
    """Changes live keys of the whole crawl."""

    def __init__(
        self,
        directory: Path,
        config: Callable[[], Config],
        calls: EngineCalls,
        one_at_a_time: asyncio.Lock,
        on_change: Callable[[Config], None],
    ) -> None:
        super().__init__(directory, config, one_at_a_time)
        self._calls = calls
        self._on_change = on_change

    async def _carry_out(self, config: Config, changes: Sequence[verbs.ChangedKey], assignments: Sequence[str]) -> None:
        """Write changes to the crawl's file, where a shard that starts again reads them, and pass them on: limits to
        the coordinator, the rest to all shards. Both get what the file has already too, because an earlier request may
        have failed in between.
        """
        if changes:
            await asyncio.to_thread(save, config, self._directory)
            self._on_change(config)
        await self._calls.call("limit", limits=limits_of(config))
        if for_shards := tuple(one for one in assignments if not one.lstrip().startswith(WHOLE_CRAWL)):
            await self._calls.ask("set", verbs.Set(assignments=for_shards), every_shard(config))


def every_shard(config: Config) -> list[int]:
    """Return the numbers of a crawl's shards."""
    return list(range(config.cluster.workers))
