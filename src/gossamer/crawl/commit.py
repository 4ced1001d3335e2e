"""Commit: how an epoch closes. All that the components changed since the last one becomes durable, or nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from gossamer.crawl.counters import Telemetry
from gossamer.model.visits import EpochRow, Visited
from gossamer.ports import Archive
from gossamer.state.journals import ManifestEntry
from gossamer.state.schema import MANIFEST, TOTALS
from gossamer.state.storage import Storage
from gossamer.world.huge_pages import HugePages

T = TypeVar("T")
_encode = msgspec.msgpack.Encoder().encode


@runtime_checkable
class Cuts(Protocol):
    """A component that gives the open epoch what it holds in memory."""

    def cut(self, now: float) -> None: ...


class Committer:
    """Closes epochs, one at a time. The loop pays for the cut alone; the disk's part runs in a thread of its own."""

    def __init__(
        self,
        storage: Storage,
        archive: Archive,
        telemetry: Telemetry,
        memory: HugePages | None = None,
    ) -> None:
        """The hosts store is written with each commit, and before it. `memory` is gathered after each commit."""
        self._hosts = storage.hosts
        self._memory = memory
        self._epochs = storage.epochs
        self._journals = storage.journals
        self._contacts = storage.contacts
        self._archive = archive
        self._components: list[Cuts] = []
        self._counters = telemetry.counters
        self._logs = telemetry.logs
        self._clock = clock = telemetry.clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._one_at_a_time = asyncio.Lock()
        self.undivided = asyncio.Lock()
        """Held by what changes more than one part of an epoch and lets others have a turn in between."""
        self._since = clock.now()
        self.on_committed: Callable[[list[Visited]], Awaitable[None]] | None = None
        self.on_epoch: Callable[[int], None] | None = None
        self.on_durable: Callable[[EpochRow], None] | None = None
        self.measure: Callable[[EpochRow], EpochRow] = lambda row: row
        """Completes a row of `epochs` by what other components count."""
        self.crowding: Callable[[], float] = lambda: self._contacts.crowded
        """Returns how much waits for a commit: from 1 on it should come early."""
        self._between: list[Callable[[], None]] = []
        self.stage = ""
        """What the commit under way is at, for people; empty while there is none."""
        self.began_at = 0.0
        """When that began."""
        self.last_s = 0.0
        """How long the last commit took, in seconds."""
        self.lasted_s = 0.0
        """The same for all commits of this process together."""
        self.commits = 0
        """How many there were."""

    async def between(self, change: Callable[[], None]) -> None:
        """Make a change between two epochs, and return when the one after it is begun and the one before is durable.

        Raises:
            OSError: as `commit`.
        """
        self._between.append(change)
        while self._between:  # A commit under way may have been cut before.
            await self.commit()

    def join(self, component: Cuts) -> None:
        """Add a component that gives the open epoch what it holds, after all others."""
        self._components.append(component)

    async def commit(self) -> None:
        """Close the open epoch and return when it is durable. A cancellation waits for that: the disk's part runs in
        a thread, and an epoch that is half closed would be in the way of every later one.

        Raises:
            OSError: the disk refuses. Nothing of the epoch counts then, and the crawl must end.
        """
        closing = asyncio.ensure_future(self._commit())
        cancelled: asyncio.CancelledError | None = None
        while not closing.done():
            try:
                await asyncio.wait([closing])
            except asyncio.CancelledError as error:
                cancelled = error
        closing.result()
        if cancelled is not None:
            raise cancelled

    async def _commit(self) -> None:
        async with self._one_at_a_time:
            totals = self._counters.totals
            self.began_at, self.stage = self._clock.now(), "gathering what changed"
            try:
                async with self.undivided:
                    if self._counters.fatal_error is not None:
                        raise self._counters.fatal_error  # The open epoch may hold half a visit.
                    began = self._clock.now()
                    number, manifest, ended, visited = self._cut()
                cut_s = self._clock.now() - began
                sums = totals.attempts, totals.pages, totals.wire_bytes
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._thread, self._make_durable, number)
                self._epochs.settle()
                self._journals.settle(manifest)
                if self._hosts is not None:
                    self._hosts.settle()
            except Exception as error:
                self._counters.fatal(error)  # No later commit may build on this one.
                raise
            finally:
                self.stage = ""
            self.last_s = self._clock.now() - began
            self.lasted_s += self.last_s
            self.commits += 1
            self._contacts.committed(ended)
            if self.on_epoch is not None:
                self.on_epoch(number)
            if self.on_durable is not None:
                now = self._clock.now()
                self.on_durable(self.measure(EpochRow(number, now, now - began, cut_s, *sums)))
            if visited and self.on_committed is not None:
                await self.on_committed(visited)

    async def hold(self, work: Callable[[], T]) -> T:
        """Return what `work` does in the commit's thread, between two commits: what is on disk is what is committed."""
        async with self._one_at_a_time:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def elapsed_s(self) -> float:
        """Return the seconds of crawling, over all runs, up to now."""
        return self._counters.totals.elapsed_s + self._clock.now() - self._since

    def close(self) -> None:
        self._thread.shutdown(wait=True)

    def _cut(self) -> tuple[int, list[ManifestEntry], int, list[Visited]]:
        now = self._clock.now()
        totals = self._counters.totals
        totals.elapsed_s += now - self._since
        self._since = now
        for component in self._components:
            component.cut(now)
        if self._hosts is not None:
            self._hosts.cut()
        self._archive.cut()
        manifest = self._journals.cut()
        self._epochs.put("meta", MANIFEST, _encode(manifest))
        self._epochs.put("meta", TOTALS, _encode(totals))
        self._logs.flush()
        visited = self._counters.delivery.take() if self._counters.delivery is not None else []
        self._counters.in_epoch = 0
        self._counters.sample(now)
        number = self._epochs.cut()
        changes, self._between = self._between, []
        for change in changes:
            change()
        return number, manifest, self._contacts.ended_since_commit, visited

    def _make_durable(self, number: int) -> None:
        self.stage = "waiting for the disk to keep the files"
        self._journals.sync()
        if self._hosts is not None:
            self.stage = "waiting for the disk to keep the hosts store"
            self._hosts.write()  # Facts about hosts hold also if the epoch is lost.
        self.stage = "waiting for the disk to keep the store"
        self._epochs.commit(number)
        self.stage = "applying it to the store"
        self._epochs.apply(number)
        if self._memory is not None:
            self._memory.gather()
