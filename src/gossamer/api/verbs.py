"""Verbs: the queries and commands of a running crawl, from its control socket, its console, or a Python program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gossamer.api.looking import about
from gossamer.api.seeding import Seeding
from gossamer.api.setting import no_trap, release
from gossamer.config.seeds import check_addresses
from gossamer.engine.control import Verb, answer_of, refusal
from gossamer.engine.logs import Logs
from gossamer.model import verbs
from gossamer.model.errors import ConfigError
from gossamer.model.links import SEED_ARGUMENT
from gossamer.stages.scope.hosts import HostSet
from gossamer.stages.scope.roots import seed_url
from gossamer.world.process import dies_with_parent

if TYPE_CHECKING:
    from gossamer.assembly.ring import CrawlRing
    from gossamer.assembly.values import Controls

Checkpoint = Callable[[], Awaitable[dict[str, str]]]
Status = Callable[..., dict[str, object]]


class Queries:
    """Verbs that change nothing. Each takes its request and returns the answer."""

    def __init__(self, directory: Path, ring: CrawlRing, controls: Controls, status: Status) -> None:
        self._directory = directory
        self._frontier = ring.frontier
        self._controls = controls
        self._status = status

    async def status(self, request: verbs.StatusOf) -> object:
        return self._status(detail=request.detail)

    async def metrics(self, _: verbs.Nothing) -> object:
        """Report the metrics for Prometheus."""
        from gossamer.api.metrics import metrics_of  # noqa: PLC0415 - who never asks does not pay for the library

        return {"metrics": metrics_of(self._status(detail=True)).decode()}

    async def why(self, request: verbs.Why) -> object:
        return self._controls.explainer.why(request.url)

    async def hosts(self, request: verbs.HostsOf) -> object:
        """Report the hosts in memory: about 1 µs for each."""
        frontier = self._frontier
        now = self._controls.telemetry.clock.now()
        closed = [{"host": host, "reason": reason} for host, reason in frontier.closings]
        return {**frontier.overview(now, request.n), "closed": closed[-request.n :]}

    async def about(self, _: verbs.Nothing) -> object:
        return about(self._directory, self._controls.settings.config)


@dataclass(frozen=True, slots=True)
class Commands:
    """Verbs that change the crawl. Each takes its request and returns the answer."""

    _ring: CrawlRing
    _controls: Controls
    _seeding: Seeding
    _status: Status
    _checkpoint: Checkpoint
    _stop: Callable[..., None]

    async def seed(self, request: verbs.Seed) -> object:
        """Add seeds, all or none; durable when the answer comes."""
        config = self._controls.settings.config
        try:
            addresses = [seed_url(text, config.scope.schemes) for text in request.urls]
            check_addresses(config, addresses)
            added = self._seeding.add(addresses, SEED_ARGUMENT)
        except ConfigError as error:
            raise verbs.RefusedError(str(error)) from error
        await self._ring.loop.commit()
        return msgspec.structs.asdict(added)

    async def exclude(self, request: verbs.ExcludeHosts) -> object:
        """Exclude hosts from now on, all or none; their queued URLs end as `excluded` in their turn."""
        try:
            HostSet(request.hosts)
        except ConfigError as error:
            raise verbs.RefusedError(str(error)) from error
        for host in request.hosts:
            self._ring.scope.exclusions.add(host)
        await self._ring.loop.commit()
        return {"excluded": request.hosts}

    async def release(self, request: verbs.Release) -> object:
        """Release a host's traps, or one template; queue the URLs that ended in them again, and commit."""
        released = await release(self._ring, request.name, self._controls.telemetry.clock)
        if not released:
            raise verbs.RefusedError(no_trap(self._ring.scope.traps, request.name))
        await self._ring.loop.commit()
        self._ring.loop.stir()
        return {"released": released}

    async def pause(self, _: verbs.Nothing) -> object:
        self._ring.loop.pause()
        return self._status()

    async def unpause(self, _: verbs.Nothing) -> object:
        self._ring.loop.unpause()
        return self._status()

    async def checkpoint(self, _: verbs.Nothing) -> object:
        """Make a consistent copy by hard links and return where it is; and one at `state.checkpoint_uri`."""
        return await self._checkpoint()

    async def scale(self, request: verbs.ScaleCrawl) -> object:
        """Refuse: a crawl of one shard must stop for that."""
        return {"workers": request.workers, "stops": True}

    async def stop(self, request: verbs.StopCrawl) -> object:
        require_restart(request)
        self._stop(now=request.now, again=request.again)
        return {**self._status(), "state": "stopping"}


def table_of(*answering: object) -> dict[str, Verb]:
    """Return the verbs by name, taking untyped fields; each is the method of its name."""
    return accept_fields(
        {name: next(getattr(one, name) for one in answering if hasattr(one, name)) for name in verbs.VERBS}
    )


def require_restart(request: verbs.StopCrawl) -> None:
    """Raise ConflictError for a request to restart a crawl that runs in the operator's own program."""
    if request.again and not dies_with_parent():
        raise verbs.ConflictError(
            "this crawl runs in a program of its own; stop it, and have the program start it again"
        )


def accept_fields(methods: Mapping[str, Callable[..., Awaitable[object]]]) -> dict[str, Verb]:
    """Return verbs that take untyped fields; fields that do not fit the verb raise InvalidError."""
    return {name: _accept_fields(name, verb) for name, verb in methods.items()}


def _accept_fields(name: str, verb: Callable[[verbs.VerbRequest], Awaitable[object]]) -> Verb:
    async def answer(request: dict[str, object]) -> object:
        return await verb(verbs.read(name, {field: value for field, value in request.items() if field != "verb"}))

    return answer


class Asking:
    """Passes requests to the running crawl; else answers with the status, or that the crawl does not run."""

    def __init__(self, status: Callable[[], Mapping[str, object]]) -> None:
        self._status = status
        self._open: tuple[Mapping[str, Verb], Logs] | None = None

    async def ask(self, request: dict[str, object]) -> dict[str, object]:
        """Return the answer: `ok` with `result`, or `error` with its `kind`. Never raises."""
        if self._open is not None:
            methods, logs = self._open
            return await answer_of(methods, request, logs)
        status = self._status()
        if request.get("verb") == "status":
            return {"ok": True, "result": status}
        state = status.get("state")
        says = "it is starting; try again" if state == "starting" else f"it is {state}"
        return refusal("conflict", f"the crawl does not answer: {says}")

    @contextmanager
    def open(self, methods: Mapping[str, Verb], logs: Logs) -> Iterator[None]:
        """Let these verbs answer while the context is open."""
        self._open = (methods, logs)
        try:
            yield
        finally:
            self._open = None
