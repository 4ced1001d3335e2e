"""Crawler: a crawl in the caller's process.

As a context it is iterated over:

    async with Crawler(["https://docs.example.org/"], contact="me@example.org") as crawler:
        async for page in crawler:
            print(page.url, page.status, page.title, len(page.links))
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from gossamer.api.base import BaseCrawler, already_there, config_for
from gossamer.api.callbacks import Callbacks, MentionReceiver
from gossamer.api.given import directory_of, require_callable, sets_of, with_options
from gossamer.api.life import ShardLife, record_end
from gossamer.api.looking import Looking
from gossamer.api.low_water import MoreSeeds
from gossamer.api.page import NOT_ENTERED, CrawledPage
from gossamer.api.progress import notebook_progress
from gossamer.api.restoring import Vault, check_vault, checkpoint_of, vault_of
from gossamer.api.seeding import Seeding
from gossamer.api.setting import Setting
from gossamer.api.status import narrow, running_status
from gossamer.api.verbs import Commands, Queries, table_of
from gossamer.assembly.building import assemble
from gossamer.assembly.home import LOCK_S_MAX, Home, lock_directory, refuse_maintained
from gossamer.assembly.modules import text_of
from gossamer.assembly.values import Shard
from gossamer.config import Config
from gossamer.config.flags import Options
from gossamer.config.footprint import require_memory
from gossamer.config.live import FILE, save
from gossamer.engine.control import ControlSocket, Verb
from gossamer.engine.counters import RecentList
from gossamer.engine.delivery import Delivery
from gossamer.engine.loop import End
from gossamer.engine.watchdogs import files_of, require_files
from gossamer.model.errors import ConfigError
from gossamer.model.product import LOCK
from gossamer.model.status import SandboxState
from gossamer.world.clock import WallClock
from gossamer.world.files import make_directory, remove_new, there_before
from gossamer.world.machine import ThisMachine
from gossamer.world.process import DirectoryLock, dies_with_parent, usable_bytes

LOCK_POLL_S = 0.05


class Crawler(BaseCrawler):
    """One crawl, run once: use it as `async with` and iterate over its pages, or await `run`.

    Pages come in the order of completion, after the commit that holds them; after a crash some may come twice.
    """

    @with_options
    def __init__(
        self,
        seeds: Iterable[str] | str = (),
        *,
        output: str | Path = "crawl",
        config: Config | None = None,
        settings: Mapping[str, object] | None = None,
        or_resume: bool = False,
        resuming: bool = False,
        settle: bool = False,
        more_seeds: MoreSeeds | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Prepare a crawl of `seeds` (or of one) in the new directory `output`. `options` are those of `gossamer
        crawl`, `settings` any keys of the configuration (`{"crawl.commit_s": 2.0}`); a `config` replaces them all. With
        `or_resume` a crawl of these seeds that `output` holds is continued as it was begun; one that has ended fetches
        nothing more. `resume` sets `resuming` and `settle`. `more_seeds` is called when fewer hosts are left than
        `frontier.hosts_min`. Raises ConfigError: a mistake that the operator can fix, in one line; also if the
        directory holds a crawl.
        """
        directory = directory_of(output, "output")
        require_callable(more_seeds, "more_seeds", may_wait=True)
        is_there = or_resume and (directory / FILE).exists()
        sets = sets_of(settings)
        config = config_for(directory, seeds, config, sets, options, resuming=resuming, or_resume=or_resume)
        resuming = resuming or is_there
        if config.cluster.workers > 1:
            raise ConfigError(
                f"Crawler is one shard in your own process, and this crawl has {config.cluster.workers}: "
                "gossamer.api.ClusterCrawler runs those"
            )
        if config.cluster.address and not resuming:  # `gossamer scale` makes several shards one.
            raise ConfigError(
                "cluster.address: a crawl of one shard runs here and without Ray; set cluster.workers, or leave it out"
            )
        self._begin(directory, config, more_seeds, settle=settle or is_there)
        self._is_new = not resuming

    def _begin(self, directory: Path, config: Config, more: MoreSeeds | None = None, *, settle: bool = False) -> None:
        super()._begin(directory, config)
        self._shard: Shard | None = None
        self._last_status: dict[str, object] = {"state": "starting"}
        self._stop: bool | None = None  # Whether a stop was requested, and whether at once.
        self.sandbox: SandboxState | None = None  # What bounds the process of a command.
        self._delivery: Delivery | None = None
        self._more_seeds = more
        self._settle = settle
        self._is_new = False
        """Whether the directory has no crawl yet."""
        self._vault: Vault | None = None
        self._progress = notebook_progress(config, self.status)

    @classmethod
    @with_options
    def resume(
        cls,
        directory: str | Path,
        *,
        config: Config | None = None,
        settings: Mapping[str, object] | None = None,
        settle: bool = False,
        more_seeds: MoreSeeds | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Prepare to continue a crawl; `options` and `settings` change its limits and other keys. With `settle` one
        that had ended, by itself or with few hosts left, fetches nothing more: only its files are finished. Raises
        ConfigError: there is no crawl in `directory`, or a command such as `gossamer forget` works on it.
        """
        return cls(
            (), output=directory, config=config, settings=settings, resuming=True, settle=settle,
            more_seeds=more_seeds, **options,
        )  # fmt: skip

    async def run(self) -> End:
        """Crawl until nothing is left, a limit is reached or `stop` is called; return which of these it was. Raises
        ConfigError: the directory is in use, or a seed is not a URL; OSError: the disk refused; everything up to the
        last commit is saved.
        """
        self._require_loop()
        self._allow_files()  # Before any is opened.
        was_new = self._is_new
        before = there_before(self.directory)
        make_directory(self.directory)
        try:
            shard = self._shard = await self._assemble()
        except ConfigError:
            if was_new and not self._is_new and not DirectoryLock.is_held(self.directory / LOCK):
                remove_new(self.directory, *before)
            raise
        self._has_run = True
        try:
            with record_end(shard):
                self._write_config(self.config)
                life = ShardLife(shard, self._vault, self._more_seeds, settle=self._settle)
                self._attach(life)
                return await life.run()
        except asyncio.CancelledError:
            with suppress(Exception):  # Without it what was fetched since the last commit is fetched again.
                await shard.kept.committer.commit()
            raise
        finally:
            self.callbacks = self.mentions = None
            self._logs = None
            self._last_status = running_status(shard, sandbox=self.sandbox).as_object()
            self._shard = None
            if self._progress is not None:
                self._progress.show()
            await shard.close()

    def status(self, *, detail: bool = False) -> dict[str, Any]:
        """Return counts, rates and state: cheap several times a second; with `detail` (hosts, rates) once."""
        if self._shard is None:
            return self._last_status
        status = running_status(self._shard, detail=detail, sandbox=self.sandbox)
        if self.callbacks is not None:
            status.subscriptions = self.callbacks.subscriptions()
        if self.mentions is not None:
            status.mentions = self.mentions.counts()
        return status.as_object()

    def stop(self, *, now: bool = False, again: bool = False) -> None:
        """End the crawl: finish what is in flight and commit; with `now`, commit and go; with `again`, start again."""
        self._stop = now or bool(self._stop)
        self.starts_again = again
        if self._shard is None:
            return
        if self.callbacks is not None and self.config.websub.unsubscribe and not (now or again):
            self.callbacks.leave(self._shard.ring.loop.stop)
        else:
            self._shard.ring.loop.stop(now=now)

    # ---- as a context, and an iterator over pages

    async def __aenter__(self) -> Self:
        self._require_loop()
        self._delivery = Delivery()
        self._task = asyncio.create_task(self._run_for_iteration(self._delivery))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._delivery is not None
        self._delivery.drop()
        await super().__aexit__(kind, error, trace)

    async def __aiter__(self) -> AsyncIterator[CrawledPage]:
        if self._delivery is None or self._task is None:
            raise ConfigError(NOT_ENTERED)
        while (visited := await self._delivery.next()) is not None:
            yield CrawledPage(visited, partial(text_of, config=self.config))
        self._was_raised = True
        await asyncio.shield(self._task)

    async def _run_for_iteration(self, delivery: Delivery) -> None:
        try:
            await self.run()
        finally:
            delivery.end()

    # ---- inside

    def _table(self, shard: Shard, seeding: Seeding) -> dict[str, Verb]:
        ring = shard.ring
        controls = shard.controls
        return table_of(
            Queries(self.directory, ring, controls, self.status),
            Looking(self.directory, controls.telemetry),
            Commands(ring, controls, seeding, self.status, partial(checkpoint_of, shard, self._vault), self.stop),
            Setting(shard, self._write_config, self._configure),
        )

    def _allow_files(self) -> None:
        """Raise the system's limit of open files to what the requests at once may need; refuse too few for one."""
        concurrency = self.config.crawl.concurrency_max
        connections = self.config.fetch.connections_max
        require_files(ThisMachine().raise_open_files(files_of(max(concurrency, connections))), concurrency)

    def _attach(self, life: ShardLife) -> None:
        """Connect a shard to its control socket, its listeners, and a stop that was requested before it was there."""
        shard = life.shard
        telemetry = shard.controls.telemetry
        features = shard.ring.features
        recrawl = features.recrawl
        self._logs = telemetry.logs
        if self.config.console.port is not None:
            telemetry.counters.recent = RecentList()
        telemetry.counters.listeners.append(self._tell)
        if (most := usable_bytes() * 9 // 10) < self.config.memory.budget_bytes:
            says = f"the crawl may use more memory than there is here: --memory {most >> 20}MiB bounds it"
            telemetry.counters.warn_for_now("memory", says)
        if self._delivery is not None:
            telemetry.counters.delivery = self._delivery
            shard.kept.committer.on_committed = self._delivery.release
            self._delivery.on_room = shard.ring.loop.stir
        verbs = self._table(shard, life.seeding)
        life.beside.insert(0, lambda: self._serve(shard, verbs))
        if self._progress is not None:
            life.companions.append(self._progress.run)
        if recrawl is not None and recrawl.hubs is not None:
            self.callbacks = Callbacks(recrawl.hubs, recrawl.schedule, shard.ring, telemetry)
            life.companions.append(self.callbacks.run)
        if features.mentions is not None:
            self.mentions = MentionReceiver(features.mentions, shard.ring, telemetry)
            life.companions.append(self.mentions.run)
        if shard.membership is None and not self.stays_paused:
            shard.ring.loop.unpause()
        if self._stop is not None:
            shard.ring.loop.stop(now=self._stop)

    async def _assemble(self) -> Shard:
        if dies_with_parent():  # Another program's own process holds more than the crawl.
            require_memory(self.config, ThisMachine(supervised=True).memory_bytes())
        lock = await self._lock_directory()
        opening = 0
        if self._is_new and (self.directory / "crawl.toml").exists():  # Another process was quicker.
            lock.release()
            raise already_there(self.directory)
        self._is_new = False
        if self.config.state.checkpoint_uri:
            try:
                await check_vault(self.config)
                self._vault = vault_of(self.config, Home(self.directory), "")
                opening = await self._vault.open()
            except BaseException:
                lock.release()
                raise
        return assemble(self.config, self.directory, lock=lock, opening_min=opening)

    def _write_config(self, config: Config) -> None:
        save(config, self.directory)

    async def _serve(self, shard: Shard, verbs: Mapping[str, Verb]) -> None:
        """Answer requests on the control socket until cancelled."""

        def on_bound() -> None:
            self.sandbox = narrow(self.sandbox, shard)

        with self._asking.open(verbs, shard.controls.telemetry.logs):
            await ControlSocket(self.directory / "state", verbs, shard.controls.telemetry.logs, on_bound).serve()

    async def _lock_directory(self, state: Path | None = None, wait_s_max: float = 0.0) -> DirectoryLock:
        """Return the lock of the crawl's directory, or of one shard's `state`, once its holder has ended."""
        deadline = WallClock().now() + (wait_s_max or LOCK_S_MAX)
        while True:
            if state is None:
                refuse_maintained(self.directory)
            try:
                return lock_directory(self.directory, 0.0, state)
            except ConfigError as error:
                if error.__cause__ is not None or WallClock().now() >= deadline:  # The system's refusal stays.
                    raise
            await asyncio.sleep(LOCK_POLL_S)
