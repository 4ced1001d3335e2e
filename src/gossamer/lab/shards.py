"""Shards: several real shards in one event loop, joined by a transport that loses, doubles, delays and cuts off; with
deaths, and restores from older checkpoints.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gossamer.api.seeding import Seeding, seeding_of
from gossamer.assembly.building import assemble
from gossamer.assembly.home import Home
from gossamer.assembly.schemes import namer_for
from gossamer.assembly.values import Assembled
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.reports import Orders, Quotas, ScopeFinal, ShardReport, Termination
from gossamer.config import Config
from gossamer.crawl.history import read_page_record
from gossamer.state.schema import PARTITIONED
from gossamer.state.store import Store
from gossamer.world.clock import WallClock
from gossamer.world.dice import Dice

PUMP_S = 0.02
ROUND_S = 0.1


@dataclass
class Wire:
    """What becomes of frames on their way. Chances are per frame."""

    dice: random.Random
    lost: float = 0.0
    doubled: float = 0.0
    delay_s_max: float = 0.0
    cut: set[frozenset[int]] = field(default_factory=set)
    """Pairs of shards that do not reach each other."""

    def copies(self) -> list[float]:
        """Return after how many seconds each copy of a frame comes."""
        copies = 0 if self.dice.random() < self.lost else 2 if self.dice.random() < self.doubled else 1
        return [self.dice.random() * self.delay_s_max for _ in range(copies)]


@dataclass
class LabShard:
    """A shard that runs, and what its tasks are."""

    number: int
    assembled: Assembled
    task: asyncio.Task[str]
    pump: asyncio.Task[None]
    outgoing: asyncio.Event
    dead: bool = False


class Shards:
    """A crawl of several shards in this loop. The coordinator's part is played here, in rounds, by its pure code."""

    def __init__(self, config: Config, directory: Path, shards: int, wire: Wire | None = None) -> None:
        self.config = config
        self.directory = directory
        self.shards = shards
        self.wire = wire or Wire(random.Random(1))
        self.members: dict[int, LabShard] = {}
        self.deaths = 0
        self.restores = 0
        self.restarts: list[float] = []
        self.seconds = WallClock()
        self._openings: dict[int, int] = {}
        self._quotas: Quotas | None = None
        self._deliveries: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """Open and close a shard: raises what a start would."""
        asyncio.run(self._opened_and_closed())

    async def _opened_and_closed(self) -> None:
        await assemble(self.config, self.directory, shard=0, shards=self.shards).close()

    async def stop(self) -> None:
        """Have every shard finish what is in flight, and end."""
        for member in self.members.values():
            member.assembled.ring.loop.stop()

    async def run(self, meddle: Callable[[Shards], object] | None = None, within_s: float = 120.0) -> str:
        """Crawl to the end, with `meddle` called between rounds; return how it ended."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if PartitionMap.load(self.directory) is None:
            PartitionMap.even(self.shards).save(self.directory)
        if self.config.limits.max_pages is not None:
            self._quotas = Quotas(self.config.limits.max_pages, self.shards)
        for number in range(self.shards):
            await self.start(number)
        try:
            async with asyncio.timeout(within_s):
                return await self._coordinate(meddle)
        finally:
            for member in list(self.members.values()):
                await self._leave(member)

    async def _coordinate(self, meddle: Callable[[Shards], object] | None) -> str:
        termination, final = Termination(self.shards), ScopeFinal(self.shards)
        while True:
            reports = self.reports()
            is_final = final.take_round(reports)
            rest = "patience" if any(report.awaits for report in reports) else "finished"
            end = rest if termination.take_round(reports) else ""
            if self._quotas is not None and self._quotas.exhausted(reports):
                end = "limit"
            if all(member.task.done() for member in self.members.values()):
                end = "stopped"
            for report in reports if end != "stopped" else ():
                quota, serial = self._quotas.order(report) if self._quotas is not None else (None, 0)
                membership = self.members[report.shard].assembled.membership
                assert membership is not None
                membership.obey(Orders(quota, serial, scope_final=is_final, end=end))  # type: ignore[arg-type]
            if end:
                await asyncio.gather(*(member.task for member in self.members.values()))
                for member in self.members.values():
                    await _finish(member.assembled)
                return end
            await asyncio.sleep(ROUND_S)
            for member in list(self.members.values()):
                if member.task.done():
                    member.task.result()
            if meddle is not None:
                found = meddle(self)
                if asyncio.iscoroutine(found):
                    await found

    def reports(self) -> list[ShardReport]:
        """Ask every shard that lives."""
        memberships = [member.assembled.membership for member in self.members.values() if not member.dead]
        return [membership.report() for membership in memberships if membership is not None]

    async def start(self, number: int) -> None:
        """Open a shard's directory and let it crawl."""
        assembled = assemble(
            self.config, self.directory, clock=self.seconds, dice=Dice(), shard=number, shards=self.shards
        )
        membership = assembled.membership
        assert membership is not None
        # What is restored must not speak with an opening that was given before.
        opening = max(membership.exchange.opening, self._openings.get(number, 0) + 1)
        self._openings[number] = membership.exchange.opening = (
            assembled.controls.telemetry.counters.totals.incarnation
        ) = opening
        outgoing = asyncio.Event()
        membership.exchange.on_outgoing = outgoing.set
        seeding = seeding_of(assembled)
        await seeding.prepare()
        task = asyncio.create_task(self._crawl(assembled, seeding))
        pump = asyncio.create_task(self._pump(number, assembled, outgoing))
        self.members[number] = LabShard(number, assembled, task, pump, outgoing)

    async def _crawl(self, assembled: Assembled, seeding: Seeding) -> str:
        membership = assembled.membership
        assert membership is not None
        return await assembled.ring.loop.run((seeding.run, membership.exchange.run), membership.more_to_come)

    async def _pump(self, number: int, assembled: Assembled, outgoing: asyncio.Event) -> None:
        membership = assembled.membership
        assert membership is not None
        while True:
            try:
                async with asyncio.timeout(PUMP_S):
                    await outgoing.wait()
            except TimeoutError:
                pass
            outgoing.clear()
            for to, frame in membership.exchange.outgoing(self.seconds.now()):
                for delay_s in self.wire.copies():
                    task = asyncio.create_task(self._deliver(number, to, frame, delay_s))
                    self._deliveries.add(task)
                    task.add_done_callback(self._deliveries.discard)
            await asyncio.sleep(0)

    async def _deliver(self, sender: int, to: int, frame: bytes, delay_s: float) -> None:
        if delay_s:
            await asyncio.sleep(delay_s)
        member = self.members.get(to)
        if member is None or member.dead or frozenset((sender, to)) in self.wire.cut:
            return
        membership = member.assembled.membership
        assert membership is not None
        membership.exchange.take(frame, self.seconds.now())

    # ---- deaths

    async def kill(self, number: int) -> None:
        """End a shard as `kill -9` would: nothing that is not committed survives, and no commit is finished by us."""
        member = self.members.pop(number)
        member.dead = True
        self.deaths += 1
        await self._leave(member)
        self.restarts.append(self.seconds.now())

    async def checkpoint(self, number: int) -> None:
        """Replace the last copy of a shard's committed state, and confirm to the shard that it is safe."""
        assembled = self.members[number].assembled
        membership = assembled.membership
        assert membership is not None
        await assembled.kept.committer.commit()
        epoch = assembled.kept.storage.store.epoch  # Read first: what is committed meanwhile may be in it or not.
        target = self._checkpoint_of(number)
        fresh = target.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        copy = Home(fresh, number, self.shards)
        copy.state.mkdir(parents=True)
        assembled.kept.storage.store.checkpoint(copy.store)
        for name in assembled.kept.storage.journals.files():
            path = copy.journals().path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(assembled.kept.storage.journals.path(name), path)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
        membership.exchange.covered(epoch)

    def restore(self, number: int) -> bool:
        """Replace a dead shard's state by the last copy; False if there is none."""
        home, copy = Home(self.directory, number, self.shards), self._checkpoint_of(number)
        if not copy.exists():
            return False
        for path in [*self.directory.glob(f"*/*-{number:03d}-*"), *home.state.glob(f"*/*-{number:03d}-*")]:
            path.unlink()
        shutil.rmtree(home.store)
        shutil.copytree(copy, self.directory, dirs_exist_ok=True)
        (home.state / "contacts").unlink()
        (home.state / "slots").unlink(missing_ok=True)  # It notes commits that the copy does not have.
        self.restores += 1
        return True

    def _checkpoint_of(self, number: int) -> Path:
        return self.directory.with_name(f"{self.directory.name}-checkpoint-{number}")

    async def _leave(self, member: LabShard) -> None:
        for task in (member.pump, member.task):
            task.cancel()
        await asyncio.gather(member.pump, member.task, return_exceptions=True)
        await member.assembled.close()


async def _finish(assembled: Assembled) -> None:
    """Complete what others read, as a crawl does at its end."""
    assembled.outputs.archives.close()
    assembled.kept.committer.on_durable = None
    await assembled.kept.committer.commit()
    while (found := assembled.outputs.followers.next()) is not None:
        follower, task = found
        follower.settle(task, await asyncio.to_thread(task.make))
        await assembled.kept.committer.commit()
    assembled.outputs.followers.close()


def ends_of(config: Config, directory: Path, shards: int) -> dict[str, str]:
    """Return, per key, how each URL of a stopped crawl ended; of URLs that ended with their host nothing is kept."""
    ends: dict[str, str] = {}
    for number in range(shards):
        store = Store(Home(directory, number, shards).store)
        namer = namer_for(config)
        for _, value in store.scan("page", *PARTITIONED):
            record = read_page_record(value)
            url = namer.name(record.url)
            assert record.final, f"{record.url} is not finished"
            assert url is not None
            assert url.key not in ends, f"{record.url} is on two shards"
            ends[url.key] = record.outcome
        store.close()
    return ends
