"""Life: runs an assembled shard to its end, with all that runs beside it; the same for crawls and for trials."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

from gossamer.api.feeding import Feeding, remainder_of, write_remainder
from gossamer.api.low_water import LowWater, MoreSeeds
from gossamer.api.restoring import Vault
from gossamer.api.seeding import Seeding
from gossamer.api.setting import Watching, retry_logins
from gossamer.assembly.integrity import store_damage
from gossamer.assembly.parts import short_patience
from gossamer.engine.commit import ignore
from gossamer.engine.concurrency import AdaptiveConcurrency
from gossamer.engine.loop import Companion, End, first_of
from gossamer.stages.archive.seals import INDEX
from gossamer.stages.archive.uploads import Uploads
from gossamer.state.redo import DamagedStoreError
from gossamer.state.slots import note_end
from gossamer.world.files import GoneError
from gossamer.world.machine import ThisMachine

if TYPE_CHECKING:
    from gossamer.assembly.values import Shard

HURRY_POLL_S = 0.2
STOP_UPLOADS_S = 60.0
"""Time for uploads, or for the last checkpoint, after the order to stop: container and service managers kill a crawl
that takes minutes.
"""
ENDED: dict[str, End] = {"finished": "finished", "low_water": "low_water", "patience": "patience"}
"""Ends after which only files remain to be finished."""


class ShardLife:
    """Runs a shard once: adds seeds and segments, crawls, and completes the files for readers.

    Its owner adds what else is to run, in `companions` or `beside`, and closes the shard afterwards.
    """

    def __init__(
        self, shard: Shard, vault: Vault | None = None, more_seeds: MoreSeeds | None = None, *, settle: bool = False
    ) -> None:
        """`vault` has its checkpoints elsewhere. With `settle` a crawl that had ended fetches nothing more."""
        ring = shard.ring
        outputs = shard.outputs
        controls = shard.controls
        self.shard = shard
        self.seeding = Seeding(shard)
        self._feeding = Feeding(shard)
        self._vault = vault
        self._settle = settle
        low_water = LowWater(shard, self.seeding, self._feeding, more_seeds)
        watching = Watching(controls.settings.config.scope, ring.scope.exclusions, controls.telemetry, ring.loop.stir)
        self._busy = (self.seeding.busy, self._feeding.busy, low_water.busy)
        adaptive = AdaptiveConcurrency(ring.loop, controls.telemetry, controls.watchdogs.gauges)
        self.companions: list[Companion] = [
            self.seeding.run, self._feeding.run, watching.run, low_water.run, adaptive.run,
            lambda: outputs.followers.run(lambda: ring.loop.brakes.held),
        ]  # fmt: skip
        """Run while it crawls."""
        self.beside: list[Companion] = [controls.watchdogs.run]
        """Run until its files are complete."""
        self.finish: Callable[[], Awaitable[None]] = self.finish_files
        """Completes the files once the crawl has ended."""
        if ring.features.recrawl is not None:
            self.companions.append(ring.features.recrawl.enrolment.run)
        if shard.membership is not None:
            shard.membership.seeding = lambda: self.seeding.busy() or self._feeding.busy()
            self.companions.append(shard.membership.exchange.run)
            ring.loop.paused = True  # Until the first order: the operator may have paused the crawl meanwhile.
        if vault is not None:
            self.beside.append(lambda: vault.keep_up(shard))
        if outputs.uploads is not None:
            self.beside.append(outputs.uploads.run)

    async def run(self) -> End:
        """Crawl until nothing is left, a limit is reached or the loop is stopped; return which of these it was. Raises
        ConfigError: a seed is not a URL; OSError: the disk refused; everything up to the last commit is saved.
        """
        shard = self.shard
        try:
            await self._prepare()
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one()) for one in self.beside]
                end = await shard.ring.loop.run(self.companions, self._more_to_come)
                await self.finish()
                await self._save_remainder(end)
                for task in tasks:  # It answers requests until here: large files take a while to finish.
                    task.cancel()
        finally:
            await shard.outputs.followers.wait()  # The directory is unlocked next.
        return end

    async def _prepare(self) -> None:
        shard = self.shard
        controls = shard.controls
        config = controls.settings.config
        counters = controls.telemetry.counters
        if shard.kept.home.shard == 0 and (says := short_patience(config)):
            counters.note(says)
        if shard.ring.pipeline.stages.quarantine.accused:  # Durable before another page can end this process.
            await shard.kept.committer.commit()
        controls.watchdogs.limit_requests(ThisMachine().open_files_max(), config.crawl.concurrency_max)
        ended = counters.totals.ended
        if self._settle and ended in ENDED:
            shard.ring.loop.end_early(ENDED[ended])
        else:
            remainder_of(shard.kept.home).unlink(missing_ok=True)
            if ended == "low_water":
                shard.ring.frontier.reset_hosts_most()  # This run fetches the remainder.
            await retry_logins(shard.ring, controls.telemetry)
        await self.seeding.prepare()

    def _more_to_come(self) -> bool:
        membership = self.shard.membership
        return membership.more_to_come() if membership is not None else any(one() for one in self._busy)

    async def finish_files(self) -> None:
        """Complete the files for readers: WARC files get their names, tables become Parquet, the index is sorted."""
        shard = self.shard
        commit = shard.kept.committer.commit
        outputs = shard.outputs
        outputs.archives.close()
        shard.kept.committer.on_durable = ignore  # Rows of the following commits would begin new logs.
        await commit()
        is_saved = True
        while (task := await outputs.followers.step()) is not None:
            is_saved = task.frees_disk
            if is_saved:
                await commit()
        if not is_saved:
            await commit()
        is_lone = shard.membership is None
        # Of several shards, the process that runs the whole crawl makes the views. Ours are checked before we go.
        await asyncio.to_thread(outputs.write_index if is_lone else outputs.require_tables)
        if self._vault is not None and not (is_lone and shard.ring.loop.stop_order == "now"):
            limit_s = await self._bound(self._vault.finish(shard))
            if limit_s is not None:
                raise self._vault.unfinished(f"it takes longer than {limit_s:.0f} s; gossamer resume makes it")
        await asyncio.to_thread(outputs.followers.close)
        if outputs.uploads is not None and shard.ring.loop.stop_order != "now":
            await self._finish_uploads(outputs.uploads)
            if self._vault is not None:
                await self._vault.release_warc(shard)
        if failure := shard.controls.telemetry.counters.failure or outputs.archives.failure:
            raise failure  # Only now: everything that could be saved is.

    async def _finish_uploads(self, uploads: Uploads) -> None:
        """Wait for pending uploads: after the order to stop for a bounded time, after that of an immediate stop not."""
        views = (INDEX,) if self.shard.membership is None else ()
        await self._bound(uploads.finish(self.shard.kept.committer.commit, views), hurries=True)

    async def _bound(self, work: Coroutine[Any, Any, object], *, hurries: bool = False) -> float | None:
        """Do work with a store: after the order to stop for a bounded time, and where it `hurries`, until that of an
        immediate stop. Return the bound if it ended the work.
        """
        controls = self.shard.controls
        loop = self.shard.ring.loop
        clock = controls.telemetry.clock
        limit_s = min(controls.settings.config.archive.store_wait_s, STOP_UPLOADS_S)
        ends_at = inf
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            while not task.done():
                await asyncio.wait([task], timeout=HURRY_POLL_S)
                if loop.stop_order:
                    ends_at = min(ends_at, clock.now() + limit_s)
                if not task.cancelling() and ((hurries and loop.stop_order == "now") or clock.now() >= ends_at):
                    task.cancel()
        return limit_s if task.cancelled() else None

    async def _save_remainder(self, end: End) -> None:
        """Write the URLs that an offline crawl leaves to a segment for the next one."""
        shard = self.shard
        config = shard.controls.settings.config
        if config.crawl.mode != "offline" or end not in ("low_water", "limit"):
            return
        store = shard.kept.storage.store
        urls = shard.ring.urls
        path = remainder_of(shard.kept.home)
        saved = await asyncio.to_thread(
            write_remainder, path, config, store, urls.namer.name, self._feeding.remainders(), urls.url_seen
        )
        if saved:
            shard.controls.telemetry.counters.note(f"{saved:,} URLs are left: {path} is a segment of them")


@contextmanager
def record_end(shard: Shard) -> Iterator[None]:
    """If the block fails, record how in the shard's state and on disk; of a group of errors, raise the first."""
    try:
        yield
    except asyncio.CancelledError:
        shard.ring.loop.state = "stopped"
        raise
    except BaseException as error:
        shard.ring.loop.state = "failed"
        first = first_of(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(first, DamagedStoreError | GoneError):
            first = store_damage(shard.kept.home, first)
        note_end(shard.kept.home.state, "failed", str(first) or type(first).__name__)
        if first is error:
            raise
        raise first from error
