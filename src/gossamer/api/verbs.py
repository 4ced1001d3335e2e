"""Verbs: what a running crawl can be told, over its control socket or by whoever holds the `Crawler`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gossamer.api.releasing import no_trap, release
from gossamer.api.seeding import Seeding
from gossamer.api.setting import Setting
from gossamer.assembly import Assembled
from gossamer.config.live import Change
from gossamer.config.seeds import check_addresses
from gossamer.crawl.control import RefusedError, Verb
from gossamer.model.errors import ConfigError
from gossamer.model.links import SEED_ARGUMENT
from gossamer.scope.seeds import seed_url


class Verbs:
    """Each verb takes the request's fields and returns what is answered."""

    def __init__(
        self, shard: Assembled, seeding: Seeding, setting: Setting, status: Callable[..., dict[str, object]]
    ) -> None:
        self._shard = shard
        self._seeding = seeding
        self._setting = setting
        self._status = status

    def table(self) -> dict[str, Verb]:
        """Return the verbs by name."""
        return {
            "status": self.status,
            "metrics": self.metrics,
            "why": self.why,
            "seed": self.seed,
            "exclude": self.exclude,
            "release": self.release,
            "set": self.set,
            "host": self.host,
            "pause": self.pause,
            "unpause": self.unpause,
            "checkpoint": self.checkpoint,
            "stop": self.stop,
        }

    async def status(self, request: dict[str, object]) -> object:
        return self._status(detail=bool(request.get("detail")))

    async def metrics(self, _: dict[str, object]) -> object:
        """Tell what Prometheus reads."""
        from gossamer.api.metrics import metrics_of  # noqa: PLC0415 - who never asks does not pay for the library

        return {"metrics": metrics_of(self._status(detail=True)).decode()}

    async def why(self, request: dict[str, object]) -> object:
        return self._shard.story.why(_text(request, "url"))

    async def seed(self, request: dict[str, object]) -> object:
        """Add seeds, all or none; durable when the answer comes."""
        config = self._shard.config
        try:
            addresses = [seed_url(text, config.scope.schemes) for text in _texts(request, "urls")]
            check_addresses(config, addresses)
            added = self._seeding.add(addresses, SEED_ARGUMENT)
        except ConfigError as error:
            raise RefusedError(str(error)) from error
        await self._shard.shard.commit()
        return {"added": added}

    async def exclude(self, request: dict[str, object]) -> object:
        """Leave hosts alone from now on; what is queued for them ends as `excluded` in its turn."""
        hosts = _texts(request, "hosts")
        for host in hosts:
            try:
                self._shard.exclusions.add(host)
            except ConfigError as error:
                raise RefusedError(str(error)) from error
        await self._shard.shard.commit()
        return {"excluded": hosts}

    async def release(self, request: dict[str, object]) -> object:
        """Let go of a host's traps, or of one template; what ended in them is queued again, and committed."""
        name = _text(request, "name")
        released = await release(self._shard, name)
        if not released:
            raise RefusedError(no_trap(self._shard, name))
        await self._shard.shard.commit()
        self._shard.shard.stir()
        return {"released": released}

    async def set(self, request: dict[str, object]) -> object:
        """Change live keys, all or none; durable when the answer comes. Without any, tell which there are."""
        if "assignments" not in request:
            return {"live": self._setting.live()}
        return await self._changed(self._setting.set(_texts(request, "assignments")))

    async def host(self, request: dict[str, object]) -> object:
        """Change what is agreed with one host; durable when the answer comes."""
        host, values = _text(request, "host"), request.get("values")
        if not isinstance(values, dict) or not values:
            raise RefusedError("`values` is missing: an object is expected")
        return await self._changed(self._setting.set_host(host, values))

    async def _changed(self, setting: Awaitable[list[Change]]) -> object:
        try:
            changes = await setting
        except ConfigError as error:
            raise RefusedError(str(error).replace("resume DIR", f"resume {self._shard.directory}")) from error
        self._shard.shard.stir()
        return {"changed": [change._asdict() for change in changes]}

    async def pause(self, _: dict[str, object]) -> object:
        self._shard.shard.pause()
        return self._status()

    async def unpause(self, _: dict[str, object]) -> object:
        self._shard.shard.unpause()
        return self._status()

    async def checkpoint(self, _: dict[str, object]) -> object:
        """Make a consistent copy by hard links and return where it lies."""
        return {"checkpoint": str(await self._shard.checkpoint())}

    async def stop(self, request: dict[str, object]) -> object:
        self._shard.shard.stop(now=bool(request.get("now")))
        return {**self._status(), "state": "stopping"}


def _text(request: dict[str, object], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise RefusedError(f"`{name}` is missing: a text is expected")
    return value


def _texts(request: dict[str, object], name: str) -> list[str]:
    value = request.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise RefusedError(f"`{name}` is missing: a list of texts is expected")
    return value
