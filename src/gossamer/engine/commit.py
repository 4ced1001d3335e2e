"""Commit: how an epoch closes. All changes of the components since the last commit become durable, or none."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from gossamer.engine.counters import Telemetry
from gossamer.model.pages import EpochRow, Visited
from gossamer.ports import Archive
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals, ManifestEntry
from gossamer.state.schema import MANIFEST, TOTALS
from gossamer.state.slots import ShardSlots
from gossamer.state.store import HostsStore, Store
from gossamer.world.files import require_there

T = TypeVar("T")


def ignore(_: object) -> None:
    """Do nothing, as a callback that is not set."""


async def ignore_visits(_: object) -> None:
    """Do nothing, as `ignore`."""


@runtime_checkable
class Cuts(Protocol):
    """A component that puts its changes into the open epoch."""

    def cut(self, now: float) -> None: ...


class Storage(msgspec.Struct, frozen=True):
    """The parts of a shard that survive the process. The opener of each part closes it."""

    store: Store
    epochs: Epochs
    """The work since the last commit, on top of `store`."""
    journals: Journals
    contacts: Contacts
    slots: ShardSlots
    hosts: HostsStore | None = None
    """Host data shared by successive crawls; None if the crawl keeps its own."""


class Committer:
    """Closes epochs, one at a time. Only the cut runs on the loop; writing to disk runs in a separate thread."""

    def __init__(self, storage: Storage, archive: Archive, telemetry: Telemetry) -> None:
        self._beside = [] if storage.hosts is None else [storage.hosts]
        """Stores that are written in each commit before the epoch; what they keep stays true if it is lost."""
        self._epochs = storage.epochs
        self._journals = storage.journals
        self._contacts = storage.contacts
        self._shared = storage.contacts.path, storage.slots.path
        """Files that are written through memory, so that no write fails when they are gone."""
        self._archive = archive
        self._components: list[Cuts] = []
        self._counters = telemetry.counters
        self._logs = telemetry.logs
        self._clock = clock = telemetry.clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._one_at_a_time = asyncio.Lock()
        self.undivided = asyncio.Lock()
        """Held by work that makes several changes that belong to one epoch, and lets other tasks run in between."""
        self._since = clock.now()
        self._counters.charge(clock, opening=True)
        self.on_committed: Callable[[list[Visited]], Awaitable[None]] = ignore_visits
        self.on_epoch: Callable[[int], None] = ignore
        self.on_durable: Callable[[EpochRow], None] = ignore
        self.measure: Callable[[EpochRow], EpochRow] = lambda row: row
        """Adds the counts of other components to a row of `epochs`."""
        self.crowding: Callable[[], float] = lambda: self._contacts.is_crowded
        """Returns how much waits for a commit; from 1 on the commit should come early."""
        self._between: list[Callable[[], None]] = []
        self.stage = ""
        """Stage of the running commit, for people; empty if none is running."""
        self.began_at = 0.0
        """When that stage began."""
        self.last_s = 0.0
        """How long the last commit took, in seconds."""
        self.lasted_s = 0.0
        """Total duration of all commits of this process, in seconds."""
        self.commits = 0
        """Number of commits of this process."""

    async def between(self, change: Callable[[], None]) -> None:
        """Make a change between two epochs; return when the epoch before it is durable and the next has begun. Raises
        OSError: as `commit`.
        """
        self._between.append(change)
        while self._between:  # A running commit may have been cut before.
            await self.commit()

    def join(self, component: Cuts) -> None:
        """Add a component, which is cut after all others."""
        self._components.append(component)

    async def commit(self) -> None:
        """Close the open epoch and return when it is durable. A cancellation waits for that too, because a half-closed
        epoch would block all later ones. Raises OSError: the disk refuses. Then no part of the epoch is committed, and
        the crawl must end.
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
            self.began_at = self._clock.now()
            self.stage = "gathering what changed"
            try:
                async with self.undivided:
                    self._counters.raise_fatal()  # The open epoch may have only a part of a visit.
                    began = self._clock.now()
                    number, manifest, ended, visited = self._cut()
                cut_s = self._clock.now() - began
                sums = totals.attempts, totals.pages, totals.wire_bytes
                await asyncio.get_running_loop().run_in_executor(self._thread, self._make_durable, number)
                self._epochs.settle()
                self._journals.settle(manifest)
                for store in self._beside:
                    store.settle()
            except Exception as error:
                self._counters.fatal(error)  # No later commit may build on this one.
                raise
            finally:
                self.stage = ""
            self.last_s = self._clock.now() - began
            self.lasted_s += self.last_s
            self.commits += 1
            self._contacts.on_commit(ended)
            self.on_epoch(number)
            now = self._clock.now()
            self.on_durable(self.measure(EpochRow(number, now, now - began, cut_s, *sums)))
            if visited:
                await self.on_committed(visited)

    async def hold(self, work: Callable[[], T]) -> T:
        """Run `work` in the commit's thread, between two commits, when the disk has exactly the committed state."""
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
        self._counters.charge(self._clock)
        for component in self._components:
            component.cut(now)
        for store in self._beside:
            store.cut()
        self._archive.cut()
        manifest = self._journals.cut()
        self._epochs.put("meta", MANIFEST, msgspec.msgpack.encode(manifest))
        self._epochs.put("meta", TOTALS, msgspec.msgpack.encode(totals))
        self._logs.flush()
        visited = self._counters.delivery.take()
        self._counters.in_epoch = 0
        self._counters.sample(now)
        number = self._epochs.cut()
        changes = self._between
        self._between = []
        for change in changes:
            change()
        return number, manifest, self._contacts.ended_since_commit, visited

    def _make_durable(self, number: int) -> None:
        self.stage = "waiting for the disk to keep the files"
        self._journals.sync()
        for path in self._shared:
            require_there(path)
        for store in self._beside:
            self.stage = "waiting for the disk to keep the hosts store"
            store.write()
        self.stage = "waiting for the disk to keep the store"
        self._epochs.commit(number)
        self.stage = "applying it to the store"
        self._epochs.apply(number)
