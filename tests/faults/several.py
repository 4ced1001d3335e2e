"""Several: one crawl of two or three shards, each on a machine of its own, in one simulated world.

The shards are real, with their exchange, their leases of addresses and their commits, and so is the coordinator's part.
Frames between them come late; faults lose and double them, cut two shards off from each other for a while, kill one
shard at any step, or have it go on from its last checkpoint on another machine, end the coordinator, and lose all but
the checkpoints and what is beside them.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec

from gossamer.assembly.building import assemble
from gossamer.assembly.values import Shard
from gossamer.cluster.moves import Copied, MovesRecord
from gossamer.cluster.places import Move
from gossamer.cluster.reports import Orders, ShardReport
from gossamer.config import Config, configure
from gossamer.world.dice import Dice
from tests.faults.agreement import Traffic, disagreements, untaken
from tests.faults.checks import SEED, wrong_revisits
from tests.faults.disk import ModelDisk
from tests.faults.further import Feeds, in_batch, map_of, sets_in
from tests.faults.lives import OPTIONS, OTHER_PROMISES, Trial, check_books, is_of, sets_for, unwind, web_faults
from tests.faults.loop import HERE, SimulatedLoop
from tests.faults.schedule import OF_A_SHARD, is_uneven
from tests.faults.shards import LabPlace, LabShard, Shards, Wire
from tests.faults.situations import shards_in
from tests.faults.world import SKEW_S_MAX, Fault, Killed, Machine, When, World, exchange_of

FRAME_S_MAX = 0.05
LATE_S_MAX = 4.0
UNRELIABLE = 0.25
"""How long a frame takes; with a fault of the frames, and how many of them it loses, and doubles."""
ANSWER_S_MAX = 0.5
LATE_ANSWER_S_MAX = 20.0
LATE_ONE_IN = 6
"""Between the answers of two shards in one round; and how many are late."""
CHECKPOINT_S = 60.0
SENT_S_MAX = 20.0
"""Between two checkpoints of a shard, and how long one takes."""
STEP_KEYS_MAX = 20
"""Keys that one commit gives at the most."""
COPY_ROUNDS_MAX = 100
"""Rounds after which a change of the record of moves is copied."""
BALANCE_ROUNDS_MIN = 1
"""Rounds after which a shard that is behind gives partitions to one that is free, where they move so."""
REQUESTS_AGAIN = 150
REQUESTS_AGAIN_MAX = 600
"""After which a continuous crawl is stopped: where all faults have happened, and in any case."""
WATCH_S = 0.7
WATCH_S_MAX = 60.0
"""Between two looks for situations; and how long after the last one."""
SILENT = 0.5
"""Seeds in which no lost frame is noticed."""
WITHIN_S = 15_000.0
"""A crawl that takes longer does not end."""


class SimulatedShards(Shards):
    """Shards on machines of one world, and what happens to them."""

    pump_s = 1.0
    round_s = 1.5

    def __init__(self, world: World, folder: Path, found: Trial, *, is_covered: bool) -> None:
        uneven = is_uneven(world.seed)
        sets = (*sets_for(world, is_covered=is_covered), *sets_in(world.seed))
        dice = random.Random(world.seed + 5)
        wire = Wire(dice, delay_s_max=FRAME_S_MAX, is_silent=dice.random() < SILENT)
        self._orders: dict[tuple[int, int], tuple[Move, Orders]] = {}
        """The first with a move, by shard and version."""
        super().__init__(configure(options=OPTIONS, sets=sets, seeds=[SEED]), folder, world.shards, assemble, wire)
        self._other_config = self.config
        if world.changes:  # As after a run with other promises, of which each shard remembers the ones it had.
            self._other_config = configure(options=OPTIONS, sets=(*sets, OTHER_PROMISES), seeds=[SEED])
        self._batch_config = in_batch(self.config, found.faults)
        self.partitions = map_of(world.seed)
        if uneven:
            self.balance_rounds_min = BALANCE_ROUNDS_MIN
        self.world = world
        self._folder = folder
        self.is_covered = is_covered
        self.loop = SimulatedLoop(world, suspends=any(one.kind == "suspend" for one in found.faults))
        self.loop.set_exception_handler(self._on_callback_error)
        self.loop.set_task_factory(self._task)
        self._tasks: dict[int, list[asyncio.Task[Any]]] = {}
        """Those that a shard's process began, in order."""
        self._machines = [Machine(world, folder / f"shard-{number}", number) for number in range(world.shards)]
        self.clock = self._machines[0]
        for machine in self._machines:
            machine.set_clock(world.dice.uniform(-SKEW_S_MAX, SKEW_S_MAX))
        self._found = found
        faults = web_faults(world, found.faults)
        self._to_come = faults
        self._lives = [self._lives_of(number) for number in range(world.shards)]
        self._faults: dict[int, Fault | None] = {}
        """That of the life which is lived."""
        self._others = [one for one in faults if one.kind not in OF_A_SHARD and not one.when]
        self._situated = [one for one in faults if one.when and not (one.when == "ending" and world.changes)]
        self._is_ending = False
        self._cut_until: dict[frozenset[int], float] = {}
        self._begins_at: dict[int, float] = {}
        self._epochs: dict[int, int] = {}
        """Of the last commit of a shard before its process began."""
        self._traffic = Traffic()
        self._feeds = Feeds(world)
        self._opening: dict[int, int] = {}
        self._copies: dict[int, ModelDisk] = {}
        self._under_way: set[int] = set()
        """Shards whose checkpoint is on its way."""
        self._copied = 0
        self._copied_at: dict[int, float] = {}
        self._safe: dict[int, int] = {}
        """A shard's activity of which all is in its checkpoint."""
        self._moves = b""
        """The copy of what the coordinator keeps of moves."""

    def crawl(self) -> None:
        """Crawl to the end, with all faults."""
        crawling = self.loop.create_task(self.run(self.go_on, WITHIN_S))
        self.loop.create_task(self._watch())
        try:
            while not crawling.done():
                with suppress(Killed):
                    self.loop.run_until_complete(crawling)
                self._fell()
            end = "stopped" if self.world.changes and self._batch_config is None else "finished"
            assert crawling.result() == end, crawling.result()
        finally:
            unwind(self.loop)

    def let_go(self) -> None:
        """Close what is held."""
        for disk in [*(machine.disk for machine in self._machines), *self._copies.values()]:
            disk.let_go()

    # ---- where a shard runs

    def place(self, number: int) -> LabPlace:
        machine = self._machines[number]
        context = copy_context()
        context.run(HERE.set, machine)
        lives = self._lives[number]
        machine.fault = self._faults[number] = lives.popleft() if lives else None
        return LabPlace(machine.disk.root, machine, Dice(self.world.seed + number), context)

    def coordinate(self) -> None:
        super().coordinate()
        if self.is_covered:
            self.coordination.moves.copied = Copied(0, self.founders)

    async def scale(self, shards: int) -> None:
        for number in range(self.shards, shards):
            machine = Machine(self.world, self._folder / f"shard-{number}", number)
            machine.set_clock(self.world.dice.uniform(-SKEW_S_MAX, SKEW_S_MAX))
            self._machines.append(machine)
            self._lives.append(self._lives_of(number))
        await super().scale(shards)

    def _lives_of(self, number: int) -> deque[Fault]:
        mine = [one for one in self._to_come if one.kind in OF_A_SHARD and one.shard == number]
        return deque(one for one in mine if not one.when)

    def config_of(self, number: int) -> Config:
        return self._batch_config or (self._other_config if number % 2 else self.config)

    def least_opening(self, number: int) -> int:
        if not self.is_covered:
            return 0
        self._opening[number] = self._opening.get(number, 0) + 1
        return self._opening[number]

    def on_open(self, member: LabShard) -> None:
        check_books(self._machines[member.number], member.running, self.config)
        member.membership.on_loss = self.world.faulty.append  # type: ignore[assignment, method-assign]
        self._epochs[member.number] = member.running.kept.storage.store.epoch
        # Moves take several commits in most trials.
        member.membership.moves.step_keys_max = 1 + self.world.seed % STEP_KEYS_MAX

    # ---- deaths

    def _fell(self) -> None:
        """End what a process that was just killed left: nothing of it goes on."""
        for member in self.members.values():
            if self._machines[member.number].is_over and not member.dead:
                member.dead = True
                self._end_tasks(member.number)

    def _end_tasks(self, number: int) -> None:
        machine = self._machines[number]
        tasks = [task for task in self._tasks.pop(number, []) if not task.done()]
        self.world.unwinding += tasks
        for task in tasks:
            task.cancel()
        for thread in [one for one in self.loop.threads if one.machine is machine]:
            while thread in self.loop.threads:
                with suppress(Killed):
                    thread.go_on()

    def require_sound(self, member: LabShard) -> None:
        """Have a dead shard begin again after a while."""
        number = member.number
        task = member.task
        if task is None or not task.done() or member.is_done or number in self._begins_at:
            return
        fault = self._faults[number]
        error = None if task.cancelled() else task.exception()
        if fault is None or not (self._machines[number].is_over or is_of(fault, error)):
            task.result()
        assert fault is not None
        self._end_tasks(number)
        self._found.happened.append(fault)
        self.deaths += 1
        self._begins_at[number] = self.world.elapsed_s + self._next_life(number, fault)

    def _next_life(self, number: int, fault: Fault) -> float:
        machine = self._machines[number]
        down_s = machine.next_life(fault)
        self._safe.pop(number, None)
        if fault.restored:
            before = machine.disk
            machine.disk = machine.empty_disk()
            if (copy := self._copies.get(number)) is not None:
                machine.disk = copy.copy_after_kill(machine.disk.root)
            before.let_go()
        return down_s

    # ---- between two rounds

    def is_suspended(self, number: int) -> bool:
        return self._machines[number].is_suspended

    def order(self, member: LabShard, orders: Orders) -> None:
        super().order(member, orders)
        if self.coordination.moves.is_copied and orders.shards != self.coordination.shards:
            self.world.faulty.append(f"all is copied, and orders to shard {member.number} name {orders.shards} shards")
        for move in [one for one in orders.moves if one.sender == member.number]:
            self._orders.setdefault((member.number, move.version), (move, orders))

    def _order_again(self) -> None:
        """Have orders come once more when what they moved is back."""
        under_way = self.coordination.moves.kept.under_way
        running = self._running()
        for (number, version), (move, orders) in list(self._orders.items()):
            membership = running[number].membership if number in running else None
            if membership is None or move in under_way or self.is_suspended(number):
                continue
            if membership.exchange.places.has(move.first):
                del self._orders[number, version]
                super().order(self.members[number], orders)

    def _deliver(self, sender: LabShard, to: int, frame: bytes) -> None:
        self.world.faulty += self._traffic.note_frame(to, frame, self.world.elapsed_s)
        super()._deliver(sender, to, frame)

    async def between_answers(self) -> None:
        dice = self.world.dice
        await asyncio.sleep(dice.uniform(0.0, ANSWER_S_MAX if dice.below(LATE_ONE_IN) else LATE_ANSWER_S_MAX))

    async def go_on(self, _shards: Shards) -> None:
        """Have happen what is due."""
        now = self.world.elapsed_s
        self._agree()
        for fault in [one for one in self._others if len(self.world.log) >= one.requests]:
            self._others.remove(fault)
            self._found.happened.append(fault)
            await self._happens(fault)
        self._order_again()
        if self.world.changes and self._batch_config is None:
            self._end_of_revisits()
            if (reading := self._feeds.read(self._running(), self._machines)) is not None:
                self.loop.call_soon(reading[1], context=self.members[reading[0]].place.context)
        if self.coordination.kept.end:
            self._meet_the_last()
        self.wire.cut = {pair for pair, until in self._cut_until.items() if until > now}
        await self._begin_again()
        for member in self.members.values():
            if self.is_covered and now - self._copied_at.get(member.number, 0.0) >= CHECKPOINT_S:
                self._copied_at[member.number] = now
                self._copy(member)
        slowly = 1 + self.world.seed // 4 % COPY_ROUNDS_MAX
        if not self.coordination.moves.is_copied and not self.world.dice.below(slowly):
            self._copy_moves()

    def _end_of_revisits(self) -> None:
        """Stop a continuous crawl once every page is scheduled, and all has happened or there were enough requests."""
        machines = self._machines
        requests = len(self.world.log)
        is_quiet = not (self._others or any(self._lives) or any(one.fault is not None for one in machines))
        is_whole = not self._begins_at and not self.coordination.moves.is_moving
        stores = [shard.kept.storage.store for shard in self._running().values()]
        if self.coordination.kept.end or not is_whole or len(stores) < self.shards:
            return
        if requests >= (REQUESTS_AGAIN if is_quiet else REQUESTS_AGAIN_MAX) and not wrong_revisits(self.world, stores):
            self._others = []
            for machine, lives in zip(machines, self._lives, strict=True):
                machine.fault = None
                lives.clear()
            self.coordination.end("stopped")

    def _copy_moves(self) -> None:
        moves = self.coordination.moves
        self._moves, moves.copied = msgspec.msgpack.encode(moves.kept), Copied(moves.kept.version, moves.kept.shards)

    def _lose(self, fault: Fault) -> None:
        """Have all shards killed soon and go on from their checkpoints, and the coordinator go on from the copy."""
        self._kill_all(fault._replace(restored=True))
        copied = self.coordination.moves.copied
        kept = self.coordination.kept
        if copied is None or copied.shards != kept.moves.shards:
            self._copy_moves()  # In a real crawl, shards that it does not name are not there any more.
        kept.moves = msgspec.msgpack.decode(self._moves, type=MovesRecord) if self._moves else MovesRecord()
        self._keep(kept)
        self.coordinate()

    def _turn(self, fault: Fault) -> None:
        """Have a batch crawl go on as a continuous one, unless it is over."""
        if not self.coordination.kept.end:
            self._batch_config = None
            self._kill_all(fault)

    def _kill_all(self, fault: Fault) -> None:
        for member in self.members.values():
            number = member.number
            if not member.dead and number not in self._begins_at:
                kill = fault._replace(kind="kill", requests=0, shard=number)
                self._machines[number].fault = self._faults[number] = kill

    async def _watch(self) -> None:
        """Look for situations, while faults wait for one; and have those whom these ended begin again at once."""
        until = 0.0
        while self._situated or self.world.elapsed_s < until:
            await asyncio.sleep(WATCH_S)
            for member in [one for one in self.members.values() if self._is_dead(one)]:
                with suppress(Exception):  # The rounds see it.
                    self.require_sound(member)
            await self._begin_again()
            moves = self.coordination.moves.kept.under_way
            live = self._running()
            new = [number for number, one in live.items() if one.kept.storage.store.epoch == self._epochs[number]]
            for when in dict.fromkeys(one.when for one in self._situated):
                if shards := new if when == "new" else shards_in(when, live, self.world, moves):
                    self._meet(when, shards)
                    until = self.world.elapsed_s + WATCH_S_MAX

    async def _begin_again(self) -> None:
        for number in [one for one, at in self._begins_at.items() if at <= self.world.elapsed_s]:
            if number in self._begins_at:
                del self._begins_at[number]
                await self.start(number)

    def _running(self) -> dict[int, Shard]:
        return {
            member.number: member.running
            for member in self.members.values()
            if member.assembled is not None and member.begun.is_set() and not self._is_dead(member)
        }

    def _is_dead(self, member: LabShard) -> bool:
        return member.dead or self._machines[member.number].is_over

    def _meet(self, when: When, shards: Sequence[int]) -> None:
        """Have the faults of a situation, all that are for the same shard, happen to one of those that are in it."""
        faults = [one for one in self._situated if one.when == when]
        for fault in [one for one in faults if one.shard == faults[0].shard] if shards else ():
            self._situated.remove(fault)
            shard = shards[fault.shard % len(shards)]
            if fault.kind in ("cut", "suspend"):
                self._lasts(fault._replace(shard=shard))
            elif fault.kind == "scale":
                self._others.append(fault._replace(requests=0))
            else:
                self._machines[shard].fault = self._faults[shard] = fault._replace(shard=shard)

    def _meet_the_last(self) -> None:
        """Have the fault that happens after the order to end meet the shard that has most to lose."""
        reports = [report for member in self.members.values() if (report := member.report()) is not None]
        most = max(map(self._may_lose, reports), default=False)
        self._meet("ending", [report.shard for report in reports if self._may_lose(report) == most])

    def _agree(self) -> None:
        """Note what shards and the coordinator do not agree on."""
        coordination = self.coordination
        running = self._running()
        ends = coordination.kept.end == "finished" and not self._is_ending
        reports = [one for one in self.reports() if self._is_as_it_was(one)] if ends else []
        found = [*disagreements(coordination, running), *untaken(reports)]
        if ends and coordination.moves.is_moving:
            found.append("it was over while partitions moved")
        for number, shard in running.items():
            found += self._traffic.waits(
                exchange_of(shard), self.world.elapsed_s, is_suspended=self.is_suspended(number)
            )
        self._is_ending = bool(coordination.kept.end)
        self.world.faulty += found[:1] if not self.world.faulty else []

    def _is_as_it_was(self, report: ShardReport) -> bool:
        """Say whether a shard's process is the one that the coordinator heard of last."""
        before = self.coordination.seen[report.shard].report
        return before is not None and before.opening == report.opening

    def _may_lose(self, report: ShardReport) -> bool:
        is_safe = not self.is_covered or self._safe.get(report.shard) == report.activity
        return report.pages_under_way > 0 or not is_safe

    async def _happens(self, fault: Fault) -> None:
        if fault.kind == "frames":
            self.wire.lost = self.wire.doubled = UNRELIABLE
            self.wire.delay_s_max = LATE_S_MAX
        elif fault.kind in ("cut", "suspend"):
            self._lasts(fault)
        elif fault.kind == "scale":
            await self.scale(fault.steps)
        elif fault.kind == "loss":
            self._lose(fault)
        elif fault.kind == "turn":
            self._turn(fault)
        else:
            await asyncio.sleep(fault.jump_s)
            self.coordinate()

    def _lasts(self, fault: Fault) -> None:
        """Have a shard be cut off from another one, or suspended, for a while."""
        self._found.happened += [fault] if fault.when else []
        if fault.kind == "suspend":
            if fault.shard in self._running() and not self.is_suspended(fault.shard):
                self.loop.suspend(self._machines[fault.shard], fault.jump_s)
            return
        pair = frozenset({fault.shard, (fault.shard + 1 + fault.steps % (self.shards - 1)) % self.shards})
        self._cut_until[pair] = self.world.elapsed_s + fault.jump_s
        self.wire.cut.add(pair)

    # ---- checkpoints

    def is_safe(self, member: LabShard, report: ShardReport, *, wanted: bool) -> bool:
        if self.is_covered and wanted and self._safe.get(member.number) != report.activity:
            self._copy(member)
        return not self.is_covered or self._safe.get(member.number) == report.activity

    def _copy(self, member: LabShard) -> None:
        """Begin a checkpoint of a shard's last commit."""
        report = member.report()
        number = member.number
        machine = self._machines[member.number]
        if report is None or machine.is_over or machine.is_suspended or number in self._under_way:
            return
        self._copied += 1
        copy = machine.disk.copy_after_kill(self.directory / f"checkpoint-{self._copied}", "contacts", "slots")
        epoch = member.running.kept.storage.store.epoch
        self._under_way.add(number)
        self.loop.call_later(self.world.dice.uniform(0.0, SENT_S_MAX), self._on_saved, member, copy, epoch, report)

    def _on_saved(self, member: LabShard, copy: ModelDisk, epoch: int, before: ShardReport) -> None:
        """Make a saved copy the checkpoint from which the shard is restored."""
        number = member.number
        machine = self._machines[member.number]
        if machine.is_suspended:
            self.loop.call_at(machine.suspended_until, self._on_saved, member, copy, epoch, before)
            return
        self._under_way.discard(number)
        if not member.dead:
            exchange = member.membership.exchange
            given = set(exchange.places.held)
            exchange.on_checkpoint(epoch)
            if given - set(exchange.places.held):
                self._meet("given", [one for one in (number, min(given)) if one in self._running()])
            self._safe[number] = before.activity if before.passive else -1
            self._copies[number], copy = copy, self._copies.get(number, copy)
            if exchange.last_taken() != before.taken and number in self._running():
                self._meet("saved", [number])
        if copy is not self._copies.get(number):
            copy.let_go()
            rmtree(copy.root)

    def _task(self, loop: asyncio.AbstractEventLoop, work: Any, **named: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, **named)
        if (machine := HERE.get(None)) is not None:
            (self.world.unwinding if machine.is_over else self._tasks.setdefault(machine.number, [])).append(task)
        return task

    def _on_callback_error(self, _loop: object, context: dict[str, object]) -> None:
        """Note an error in a callback: a frame could not be processed."""
        if "handle" in context:
            self.world.faulty.append(f"a callback failed: {context.get('exception')!r}")
