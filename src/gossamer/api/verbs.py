"""Verbs: what a running crawl does when it is asked or told, over its control socket, its console, or by whoever holds
the `Crawler`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from gossamer.api.looking import Looking, about
from gossamer.api.releasing import no_trap, release
from gossamer.api.restoring import Vault
from gossamer.api.seeding import Seeding
from gossamer.api.setting import Setting, assignments_of
from gossamer.assembly import Assembled
from gossamer.config.live import Change
from gossamer.config.seeds import check_addresses
from gossamer.crawl.control import Verb
from gossamer.model.errors import ConfigError
from gossamer.model.links import SEED_ARGUMENT
from gossamer.model.verbs import (
    VERBS,
    Exclude,
    HostRules,
    HostsOf,
    Nothing,
    RecentOf,
    RefusedError,
    Release,
    Request,
    Seed,
    Set,
    StatusOf,
    Stop,
    Why,
    read,
)
from gossamer.scope.lists import HostSet
from gossamer.scope.roots import seed_url


class Verbs:
    """Each verb takes its request and returns what is answered."""

    def __init__(
        self,
        shard: Assembled,
        seeding: Seeding,
        setting: Setting,
        status: Callable[..., dict[str, object]],
        vault: Vault | None = None,
    ) -> None:
        self._vault = vault
        self._shard = shard
        self._seeding = seeding
        self._setting = setting
        self._status = status
        self._looking = Looking(shard)

    def table(self) -> dict[str, Verb]:
        """Return the verbs by name, as requests of any fields are put to them: each is the method of its name."""
        return checked({name: getattr(self, name) for name in VERBS})

    async def status(self, request: StatusOf) -> object:
        return self._status(detail=request.detail)

    async def metrics(self, _: Nothing) -> object:
        """Tell what Prometheus reads."""
        from gossamer.api.metrics import metrics_of  # noqa: PLC0415 - who never asks does not pay for the library

        return {"metrics": metrics_of(self._status(detail=True)).decode()}

    async def why(self, request: Why) -> object:
        return self._shard.story.why(request.url)

    async def hosts(self, request: HostsOf) -> object:
        """Tell of hosts in memory: about 1 µs for each."""
        frontier = self._shard.frontier
        closed = [{"host": host, "reason": reason} for host, reason in frontier.closings]
        return {**frontier.overview(self._shard.clock.now(), request.n), "closed": closed[-request.n :]}

    async def about(self, _: Nothing) -> object:
        return about(self._shard.directory, self._shard.config)

    async def recent(self, request: RecentOf) -> object:
        """Tell of the last attempts; they are kept from the first question on."""
        return self._looking.recent(request.after, request.most)

    async def course(self, _: Nothing) -> object:
        """Tell how the counts went, over all runs; the first time what is on disk is read, in a thread."""
        return await self._looking.course()

    async def seed(self, request: Seed) -> object:
        """Add seeds, all or none; durable when the answer comes."""
        config = self._shard.config
        try:
            addresses = [seed_url(text, config.scope.schemes) for text in request.urls]
            check_addresses(config, addresses)
            added = self._seeding.add(addresses, SEED_ARGUMENT)
        except ConfigError as error:
            raise RefusedError(str(error)) from error
        await self._shard.shard.commit()
        return {"added": added}

    async def exclude(self, request: Exclude) -> object:
        """Leave hosts alone from now on, all or none; what is queued for them ends as `excluded` in its turn."""
        try:
            HostSet(request.hosts)
        except ConfigError as error:
            raise RefusedError(str(error)) from error
        for host in request.hosts:
            self._shard.exclusions.add(host)
        await self._shard.shard.commit()
        return {"excluded": request.hosts}

    async def release(self, request: Release) -> object:
        """Let go of a host's traps, or of one template; what ended in them is queued again, and committed."""
        released = await release(self._shard, request.name)
        if not released:
            raise RefusedError(no_trap(self._shard, request.name))
        await self._shard.shard.commit()
        self._shard.shard.stir()
        return {"released": released}

    async def set(self, request: Set) -> object:
        """Change live keys, all or none; durable when the answer comes. Without any, tell which there are."""
        assignments = assignments_of(request)
        if not assignments:
            return {"live": self._setting.live()}
        return await self._changed(self._setting.set(assignments))

    async def host(self, request: HostRules) -> object:
        """Change what is agreed with one host; durable when the answer comes."""
        return await self._changed(self._setting.set_host(request.host, request.values))

    async def _changed(self, setting: Awaitable[list[Change]]) -> object:
        try:
            changes = await setting
        except ConfigError as error:
            raise RefusedError(str(error).replace("resume DIR", f"resume {self._shard.directory}")) from error
        self._shard.shard.stir()
        return {"changed": [change._asdict() for change in changes]}

    async def pause(self, _: Nothing) -> object:
        self._shard.shard.pause()
        return self._status()

    async def unpause(self, _: Nothing) -> object:
        self._shard.shard.unpause()
        return self._status()

    async def checkpoint(self, _: Nothing) -> object:
        """Make a consistent copy by hard links and return where it is; and one at `state.checkpoint_uri`."""
        made = {"checkpoint": str(await self._shard.checkpoint())}
        if self._vault is not None:
            if not await self._vault.try_save(self._shard):
                uri = self._shard.config.state.checkpoint_uri
                raise RefusedError(f"the checkpoint is in {made['checkpoint']}, but could not be written to {uri}")
            made["uri"] = self._shard.config.state.checkpoint_uri
        return made

    async def stop(self, request: Stop) -> object:
        self._shard.shard.stop(now=request.now)
        return {**self._status(), "state": "stopping"}


def checked(verbs: Mapping[str, Callable[..., Awaitable[object]]]) -> dict[str, Verb]:
    """Return verbs that are asked with fields of any kind; what is no request of theirs raises InvalidError."""
    return {name: _checked(name, verb) for name, verb in verbs.items()}


def _checked(name: str, verb: Callable[[Request], Awaitable[object]]) -> Verb:
    async def answer(request: dict[str, object]) -> object:
        return await verb(read(name, {field: value for field, value in request.items() if field != "verb"}))

    return answer
