"""Setting: an operator's changes to a crawl: configuration keys, the list of excluded hosts, and false traps."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import astuple

from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.config.lists import hosts_of
from gossamer.config.live import assign, change, for_host
from gossamer.config.sections import key_of
from gossamer.config.toml import as_assignments, to_toml
from gossamer.engine.counters import Telemetry
from gossamer.model.errors import ConfigError
from gossamer.model.verbs import ChangedKey, HostSettings, RefusedError, Set
from gossamer.model.words import shell_word
from gossamer.options import nearest
from gossamer.stages.scope.lists import ExcludedHost
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.traps import Traps
from gossamer.state.epoch import Epochs
from gossamer.state.schema import CHANGES, PARTITIONED, under
from gossamer.world.clock import Clock
from gossamer.world.files import Stamp, stamp_of

if TYPE_CHECKING:
    from gossamer.assembly.ring import CrawlRing
    from gossamer.assembly.values import Shard

CHANGES_SHOWN_MAX = 100


class StoredSetting(msgspec.Struct, array_like=True):
    """One change: the stored form."""

    at: float
    key: str
    before: str
    after: str


class SettingVerbs(ABC):
    """The verbs `set` and `host`: change live keys, one request at a time."""

    def __init__(self, directory: Path, config: Callable[[], Config], one_at_a_time: asyncio.Lock) -> None:
        """`config` returns the present configuration."""
        self._directory = directory
        self._config = config
        self._one_at_a_time = one_at_a_time

    async def set(self, request: Set) -> object:
        """Change live keys, all or none; durable when the answer comes. Without any, list them."""
        assignments = assignments_of(request)
        if not assignments:
            return {"live": live_in(self._config())}
        return await self._change(lambda: assignments)

    async def host(self, request: HostSettings) -> object:
        """Change the settings of one host; the value None removes one. Durable when the answer comes."""
        # Within the lock: what another request has set for this host stays.
        return await self._change(lambda: [for_host(self._config(), request.host, request.values)])

    async def _change(self, assigned: Callable[[], Sequence[str]]) -> object:
        async with self._one_at_a_time:
            try:
                assignments = assigned()
                config, changes = await asyncio.to_thread(change, self._config(), assignments)
            except ConfigError as error:
                raise make_refusal(error, self._directory) from error
            await self._carry_out(config, changes, assignments)
            return {"changed": msgspec.to_builtins(changes)}

    @abstractmethod
    async def _carry_out(self, config: Config, changes: Sequence[ChangedKey], assignments: Sequence[str]) -> None:
        """Save a changed configuration, and let it take effect."""


class Setting(SettingVerbs):
    """Changes a shard in this process. The file is written before the commit that records the change: a process that
    dies in between restarts with the change, which it has not confirmed yet.
    """

    def __init__(self, shard: Shard, save: Callable[[Config], None], on_change: Callable[[Config], None]) -> None:
        """`save` writes the file, in a thread; `on_change` is called with the change."""
        settings = shard.controls.settings
        super().__init__(shard.kept.home.directory, lambda: settings.config, asyncio.Lock())
        self._settings = settings
        self._kept = shard.kept
        self._telemetry = shard.controls.telemetry
        self._stir = shard.ring.loop.stir
        self._save = save
        self._on_change = on_change

    async def _carry_out(self, config: Config, changes: Sequence[ChangedKey], assignments: Sequence[str]) -> None:
        if not changes:
            return
        committer = self._kept.committer
        await asyncio.to_thread(self._save, config)
        await committer.between(lambda: self._apply(config, changes))
        await committer.commit()
        self._telemetry.logs.info("configuration_changed", changes={change.key: change.after for change in changes})
        self._stir()

    def _apply(self, config: Config, changes: Sequence[ChangedKey]) -> None:
        epochs = self._kept.storage.epochs
        now = self._telemetry.clock.now()
        self._settings.change(config)
        kept = [StoredSetting(now, *astuple(change)) for change in changes]
        epochs.put("meta", CHANGES + epochs.number.to_bytes(8), msgspec.msgpack.encode(kept))
        self._on_change(config)


def check_assignments(directory: Path, assignments: Sequence[str]) -> None:
    """Check `key=value` texts for a crawl that does not run; changes nothing. Raises ConfigError: a line for each
    mistake.
    """
    assign(reopen(directory / "crawl.toml"), assignments)


def live_in(config: Config) -> dict[str, str]:
    """Return the live keys of a configuration with their values as in the file."""
    values = {key: config.value(key) for key in config.all_keys() if key_of(key).live}
    return {key: "none" if value is None else to_toml(value) for key, value in values.items()}


def make_refusal(error: ConfigError, directory: Path) -> RefusedError:
    """Return the refusal of a change, which names the crawl's directory where the mistake says DIR."""
    return RefusedError("; ".join(error.lines).replace("resume DIR", f"resume {shell_word(directory)}"))


def assignments_of(request: Set) -> list[str]:
    """Return the settings of a request as `key=value` texts. Raises RefusedError: no key has a value's type."""
    try:
        return [*as_assignments(request.values), *request.assignments]
    except ConfigError as error:
        raise RefusedError(str(error)) from error


def changes_of(epochs: Epochs) -> list[dict[str, object]]:
    """Return the settings that were changed in any run of the crawl, the last `CHANGES_SHOWN_MAX`."""
    found: list[StoredSetting] = []
    for _, value in epochs.scan("meta", *under(CHANGES)):
        found += msgspec.msgpack.decode(value, type=list[StoredSetting])
    return [msgspec.structs.asdict(change) for change in found[-CHANGES_SHOWN_MAX:]]


class Watching:
    """Watches `scope.exclude_hosts_file` while the crawl runs. A bad list leaves the old one in force.

    A file is read once two checks find it unchanged: one that is being written must not pass for a shorter list. Links
    to hosts that are new in it are rejected from then on, and their queued URLs end as `excluded`.
    """

    def __init__(
        self, options: ScopeOptions, exclusions: ExcludedHost, telemetry: Telemetry, stir: Callable[[], None]
    ) -> None:
        """`stir` wakes the crawl loop to look for work."""
        self._exclusions = exclusions
        self._logs = telemetry.logs
        self._counters = telemetry.counters
        self._stir = stir
        self._path = Path(options.exclude_hosts_file) if options.exclude_hosts_file else None
        self._pause_s = options.exclude_hosts_reread_s
        # Assembling read it a moment ago: reading it once more costs less than missing what changed since.
        self._taken: Stamp | None = None

    async def run(self) -> None:
        """Watch until cancelled."""
        if self._path is None:
            return
        seen: Stamp | None = None
        while True:
            await asyncio.sleep(self._pause_s)
            stamp = stamp_of(self._path)
            if stamp == seen and stamp != self._taken:
                await self._read(self._path)
                self._taken = stamp
            seen = stamp

    async def _read(self, path: Path) -> None:
        try:
            hosts = await asyncio.to_thread(hosts_of, path)
        except ConfigError as error:
            self._logs.info("exclusions_refused", error=f"{error}; the list read before stays in force")
            self._counters.note(f"the list of excluded hosts is left as it was: {error}")
            return
        if self._exclusions.set_listed(hosts):
            self._logs.info("exclusions_read", file=str(path), hosts=len(hosts))
            self._stir()


TRAPS_NAMED_MAX = 5


async def release(ring: CrawlRing, name: str, clock: Clock) -> list[str]:
    """Release the traps of a host, or one trap (`host/template`); return their names. The caller commits."""
    frontier = ring.frontier
    urls = ring.urls
    return await ring.scope.trapping.release_trap(
        name, urls.namer, urls.history, ring.pipeline.discovery.discover, lambda one: frontier.add(one, 0, clock.now())
    )


async def retry_logins(ring: CrawlRing, telemetry: Telemetry) -> None:
    """Queue the URLs again that ended for lack of logins that an earlier run gave up: this run tries these again. Costs
    nothing without such logins, else about 3 µs for each page of the crawl.
    """
    logins = ring.features.sessions.logins if ring.features.sessions is not None else None
    if logins is None:
        return
    if given_up := logins.names & telemetry.counters.totals.warned.get(logins.name, {}).keys():
        is_meant = partial(logins.was_lacking, given_up)
        frontier = ring.frontier
        clock = telemetry.clock
        await ring.urls.history.queue_again(
            PARTITIONED, is_meant, ring.urls.namer, lambda link: frontier.add(link, 0, clock.now())
        )


def no_trap(traps: Traps, name: str) -> str:
    """Return an error line for a name that no trap has."""
    names = [trap.name for trap in traps.all if not trap.released]
    known = f"there are {', '.join(names[:TRAPS_NAMED_MAX])}" if names else "there is none"
    known += " …" if len(names) > TRAPS_NAMED_MAX else ""
    hint = nearest(name, [*names, *(trap.partition("/")[0] for trap in names)], known)
    return f"no trap is called {name!r}{hint}"
