"""Shards: several real shards in one event loop, joined by a transport that loses, doubles, delays and cuts off."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from gossamer.api.engine import limits_of, without_limits
from gossamer.api.life import ShardLife, record_end
from gossamer.assembly.exchanging import Membership
from gossamer.assembly.home import Home
from gossamer.assembly.schemes import namer_for
from gossamer.assembly.values import Shard
from gossamer.cluster.balance import Balance
from gossamer.cluster.coordination import Coordination, CoordinatorRecord, ShardAnswer
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.placement import Placement
from gossamer.cluster.reports import Orders, ShardReport
from gossamer.config import Config
from gossamer.engine.history import read_page_record
from gossamer.state.schema import PARTITIONED
from gossamer.state.store import Store
from gossamer.world.clock import Clock, WallClock
from gossamer.world.dice import Dice
from gossamer.world.files import make_directory

PUMP_S = 0.02
"""Longest interval of checks for frames to send."""
ROUND_S = 0.1


@dataclass
class Wire:
    """What becomes of frames on their way. Chances are per frame."""

    dice: random.Random
    lost: float = 0.0
    doubled: float = 0.0
    delay_s_max: float = 0.0
    is_silent: bool = False
    """No sender notices that a frame was lost."""
    cut: set[frozenset[int]] = field(default_factory=set)
    """Pairs of shards that do not reach each other."""

    def copies(self) -> list[float]:
        """Return after how many seconds each copy of a frame comes."""
        copies = 0 if self.dice.random() < self.lost else 2 if self.dice.random() < self.doubled else 1
        return [self.dice.random() * self.delay_s_max for _ in range(copies)]


@dataclass
class LabPlace:
    """Where a shard runs."""

    directory: Path
    clock: Clock
    dice: Dice
    context: Context = field(default_factory=copy_context)


class LabShard:
    """A process of a shard: it runs as a task."""

    def __init__(self, number: int, place: LabPlace) -> None:
        self.number = number
        self.place = place
        self.assembled: Shard | None = None
        self.begun = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.dead = False
        """It takes no more frames and no more orders: it was killed, or it has ended."""

    @property
    def is_done(self) -> bool:
        """It ended by itself, as it was ordered to."""
        task = self.task
        return task is not None and task.done() and not task.cancelled() and task.exception() is None

    @property
    def running(self) -> Shard:
        """What was assembled, for one that has begun."""
        assert self.assembled is not None
        return self.assembled

    @property
    def membership(self) -> Membership:
        """Its part in the crawl of all shards, for one that has begun."""
        assert self.running.membership is not None
        return self.running.membership

    def report(self) -> ShardReport | None:
        """Return its report; None while it begins and when it is dead."""
        if self.dead or self.assembled is None or self.assembled.ring.loop.state == "starting":
            return None
        return self.membership.report()


class Shards:
    """A crawl of several shards in this loop. The coordinator's part is played here, in rounds, by its pure code."""

    pump_s = PUMP_S
    round_s = ROUND_S
    placement: Placement | None = None
    balance_rounds_min = 0
    """Rounds in which a shard is behind before it gives partitions to one that is free; 0: it never does."""

    def __init__(
        self, config: Config, directory: Path, shards: int, assemble: Callable[..., Shard], wire: Wire | None = None
    ) -> None:
        """`assemble` is `assembly.building.assemble`."""
        self.limits = limits_of(config)
        self.config = without_limits(config)
        self.directory = directory
        self._assemble = assemble
        self.shards = self.founders = shards
        """Shards that there are, and that the crawl began with."""
        self.partitions = PartitionMap.even(shards)
        """As they are divided at the beginning."""
        self.wire = wire or Wire(random.Random(1))
        self.clock: Clock = WallClock()
        self.members: dict[int, LabShard] = {}
        self.deaths = 0
        self._kept = b""

    def check(self) -> None:
        """Open and close a shard: raises what a start would."""
        asyncio.run(self._open_and_close())

    async def _open_and_close(self) -> None:
        await self._assemble(self.config, self.directory, shard=0, shards=self.shards).close()

    async def stop(self) -> None:
        """Have every shard finish what is in flight, and end."""
        self.coordination.end("stopped")

    async def run(self, meddle: Callable[[Shards], object] | None = None, within_s: float = 120.0) -> str:
        """Crawl to the end, with `meddle` called between rounds; return how it ended."""
        self.coordinate()
        try:
            async with asyncio.timeout(within_s):
                for number in range(self.shards):
                    await self.start(number)
                return await self._rounds(meddle)
        finally:
            for member in list(self.members.values()):
                await self._leave(member)

    def coordinate(self) -> None:
        """Begin as the coordinator, or go on from what the one before kept."""
        kept = msgspec.msgpack.decode(self._kept, type=CoordinatorRecord) if self._kept else None
        tenure_s = self.config.cluster.tenure_s
        self.coordination = Coordination(
            self.partitions, self.limits, tenure_s, self.clock.now(), kept, self._keep
        )  # fmt: skip
        rounds_min = self.balance_rounds_min
        self.coordination.balance = Balance(rounds_min) if rounds_min else None
        self.coordination.placement = self.placement

    async def scale(self, shards: int) -> None:
        """Move partitions until `shards` shards have them all; those that are new are started."""
        self.coordination.scale(shards)
        for number in range(self.shards, shards):
            self.shards += 1
            await self.start(number)

    def _keep(self, record: CoordinatorRecord) -> None:
        self._kept = msgspec.msgpack.encode(record)

    async def _rounds(self, meddle: Callable[[Shards], object] | None) -> str:
        while True:
            answers = []
            for number in list(self.members):
                answer = self._look(self.members[number])
                answers += [answer] if answer is not None else []
                await self.between_answers()
            self.coordination.process_round(answers, self.clock.now())
            if self.coordination.is_over:
                return self.coordination.kept.end
            await asyncio.sleep(self.round_s)
            for member in list(self.members.values()):
                self.require_sound(member)
            found = meddle(self) if meddle is not None else None
            if asyncio.iscoroutine(found):
                await found

    def _look(self, member: LabShard) -> ShardAnswer | None:
        """Give a shard its orders, and return its answer; None if it does not answer in time."""
        if member.is_done:
            return ShardAnswer(shard=member.number, state="done")
        look = self.coordination.look(member.number)
        if self.is_suspended(member.number):
            self.order(member, look.orders)
            return None
        report = member.report()
        if member.dead or member.assembled is None:
            return ShardAnswer(shard=member.number, state="starting")
        self.order(member, look.orders)
        if report is None:
            return ShardAnswer(shard=member.number, state="starting")
        secured = self.is_safe(member, report, wanted=look.secure)
        return ShardAnswer(shard=member.number, state="running", report=report, secured=secured)

    def order(self, member: LabShard, orders: Orders) -> None:
        """Have a shard obey."""
        if member.assembled is None:
            return
        obey = member.membership.obey
        if self.is_suspended(member.number):
            asyncio.get_running_loop().call_soon(obey, orders, context=member.place.context)
        else:
            obey(orders)

    def is_suspended(self, number: int) -> bool:
        """Say whether a shard's process is suspended: then frames and orders reach it later."""
        return False

    async def between_answers(self) -> None:
        """Do nothing: shards answer at once."""

    def is_safe(self, member: LabShard, report: ShardReport, *, wanted: bool) -> bool:
        """Say whether all that a shard did is safe: it is, where there are no checkpoints."""
        return True

    def require_sound(self, member: LabShard) -> None:
        """Raise what ended a shard."""
        if member.task is not None and member.task.done():
            member.task.result()

    def reports(self) -> list[ShardReport]:
        """Ask every shard that lives."""
        return [report for member in self.members.values() if (report := member.report()) is not None]

    # ---- one shard

    def place(self, number: int) -> LabPlace:
        """Return where a shard is to run: all are in one directory."""
        return LabPlace(self.directory, self.clock, Dice())

    def config_of(self, number: int) -> Config:
        """Return the configuration of a shard's next process."""
        return self.config

    def least_opening(self, number: int) -> int:
        """Return the number that a shard's next process has at least; 0: its own state says which."""
        return 0

    def on_open(self, member: LabShard) -> None:
        """Do nothing; a derived class adds what an opened shard needs."""

    async def start(self, number: int) -> None:
        """Open a shard's directory and let it crawl."""
        place = self.place(number)
        member = self.members[number] = LabShard(number, place)
        member.task = place.context.run(asyncio.create_task, self._live(member))
        begun = asyncio.create_task(member.begun.wait())
        await asyncio.wait([begun, member.task], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()

    async def _live(self, member: LabShard) -> None:
        place = member.place
        number = member.number
        make_directory(place.directory / "state")
        if PartitionMap.load(place.directory) is None:
            self.partitions.save(place.directory)
        assembled = self._assemble(
            self.config_of(number), place.directory, clock=place.clock, dice=place.dice, shard=number,
            shards=self.founders, opening_min=self.least_opening(number),
        )  # fmt: skip
        member.assembled = assembled
        try:
            with record_end(assembled):
                self.on_open(member)
                life = ShardLife(assembled)
                life.beside.insert(0, partial(self._send_frames, member))
                await life.run()
        finally:
            member.dead = True
            await assembled.close()

    async def _send_frames(self, member: LabShard) -> None:
        member.begun.set()
        await member.membership.send_frames(partial(self._send, member), partial(asyncio.sleep, 0), self.pump_s)

    def _send(self, member: LabShard, to: int, frame: bytes) -> None:
        copies = self.wire.copies()
        for delay_s in copies:
            asyncio.get_running_loop().call_later(delay_s, self._deliver, member, to, frame)
        if not copies and self.wire.dice.random() < self.wire.lost and not self.wire.is_silent:
            member.membership.exchange.on_peer_lost(to)  # The transport noticed.

    def _deliver(self, sender: LabShard, to: int, frame: bytes) -> None:
        member = self.members.get(to)
        reached = frozenset((sender.number, to)) not in self.wire.cut
        if member is not None and member.begun.is_set() and not member.dead and reached:
            if self.is_suspended(to):
                asyncio.get_running_loop().call_soon(self._take, member, frame, context=member.place.context)
            else:
                member.place.context.run(self._take, member, frame)

    def _take(self, member: LabShard, frame: bytes) -> None:
        member.membership.exchange.take(frame, member.place.clock.now())

    async def kill(self, number: int) -> None:
        """End a shard as `kill -9` would: nothing that is not committed survives, and no commit is finished by us."""
        member = self.members.pop(number)
        self.deaths += 1
        await self._leave(member)

    async def _leave(self, member: LabShard) -> None:
        member.dead = True
        if member.task is not None:
            member.task.cancel()
            await asyncio.wait([member.task])


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
