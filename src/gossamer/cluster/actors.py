"""Actors: the Ray actors of a crawl. Each shard is an actor that runs a process (`ShardProcess`); the coordinator is an
actor too. Their logic is in `shard_process` and `coordination`; this module only passes calls.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import ray
import ray.exceptions
from ray.util.metrics import Gauge

from gossamer.cluster.aggregate import GAUGES, LABELS, figures_of
from gossamer.cluster.balance import Balance
from gossamer.cluster.coordination import Coordination, CoordinatorRecord, Limits, Look, ShardAnswer
from gossamer.cluster.job import ClusterPlan, ShardJob, encode
from gossamer.cluster.moves import Copied
from gossamer.cluster.partitions import RECORD_FILE, PartitionMap
from gossamer.cluster.shard_process import ShardProcess, ShardStart
from gossamer.model.errors import ConfigError
from gossamer.world.allocators import FRUGAL
from gossamer.world.clock import WallClock
from gossamer.world.files import write_whole
from gossamer.world.process import DirectoryLock, child_environment

CARRY_S_MAX = 10.0
"""A frame that has not arrived after this time counts as lost and is sent again."""
ASK_S_MAX = 55.0
CALL_S_MAX = 10.0
"""Longest wait for the coordinator, since Ray queues calls to an actor that has not started."""
LOCK_S_MAX = 60.0
"""Time within which a killed coordinator releases the lock of its record."""
encoded = msgspec.msgpack.Encoder(enc_hook=str).encode
decoded = msgspec.msgpack.decode


def shard_name(shard: int) -> str:
    """Return the name of a shard's actor in the crawl's namespace."""
    return f"shard-{shard}"


class ShardActor:
    """Runs one shard. After a failure Ray restarts the actor on any machine; the shard's state is on disk."""

    def __init__(self, plan: bytes, shard: int, namespace: str) -> None:
        self._plan = msgspec.json.decode(plan, type=ClusterPlan)
        self._shard = shard
        self._namespace = namespace
        self._node: str = self._plan.node or ray.get_runtime_context().get_node_id()
        self._peers: dict[int, Any] = {}
        self._process: ShardProcess | None = None
        # A private Ray exports no metrics.
        self._gauges = {} if self._plan.node else {name: Gauge(name, what, LABELS) for name, what in GAUGES.items()}
        self._labels = {"crawl": Path(self._plan.directory).name, "shard": str(shard)}
        self._keeping: asyncio.Task[None] | None = None

    async def look(self, question: bytes) -> bytes:
        """Answer a round's question. The first question, also after a restart, starts the shard."""
        keeper = self._ensure_process()
        seen = await keeper.look(
            self._shard, self._node, decoded(question, type=Look), self._plan.answer_s_max
        )  # fmt: skip
        if self._gauges:
            for name, figure in figures_of(seen.status).items():
                self._gauges[name].set(figure, self._labels)
        return encoded(seen)

    async def ask(self, question: bytes) -> bytes:
        """Return the shard's answer to a verb."""
        answer = await self._ensure_process().ask(decoded(question, type=dict[str, object]), ASK_S_MAX)
        return encoded(answer if answer is not None else {"ok": False, "error": f"shard {self._shard} is starting"})

    async def deliver(self, sender: int, frame: bytes) -> bool:
        """Deliver a frame of another shard."""
        return self._process is not None and self._process.deliver(sender, frame)

    def _ensure_process(self) -> ShardProcess:
        if self._process is None:
            start = ShardStart(
                command=[sys.executable, "-P", *self._plan.command],
                job=self._job,
                environment=FRUGAL | child_environment(),
                slots=self._plan.state_on(self._node, self._shard),
                process_s_max=self._plan.process_s_max,
            )
            self._process = ShardProcess(start, self._carry, WallClock())
            self._keeping = asyncio.create_task(self._process.run())
            self._keeping.add_done_callback(_exit_on_failure)
        return self._process

    def _job(self, line: int) -> bytes:
        plan = self._plan
        return encode(
            ShardJob(
                directory=plan.directory_on(self._node),
                crawl=plan.directory,
                partitions=plan.partitions,
                config=plan.config,
                shard=self._shard,
                shards=plan.shards,
                node=self._node,
                line=line,
                parent=os.getpid(),
                tenure_s=plan.tenure_s,
            )
        )

    async def _carry(self, to: int, frame: bytes) -> bool:
        try:
            async with asyncio.timeout(CARRY_S_MAX):
                if to not in self._peers:
                    self._peers[to] = await asyncio.to_thread(ray.get_actor, shard_name(to), self._namespace)
                arrived: bool = await self._peers[to].deliver.remote(self._shard, frame)
                return arrived
        except (ray.exceptions.RayError, TimeoutError, ValueError):
            return False


class CoordinatorActor:
    """Queries all shards in rounds. State that must survive a restart is in the crawl's directory."""

    def __init__(self, plan: bytes, namespace: str) -> None:
        self._plan = msgspec.json.decode(plan, type=ClusterPlan)
        self._namespace = namespace
        self._clock = WallClock()
        self._file = Path(self._plan.directory) / RECORD_FILE
        # The coordinator of a killed crawl may end a little later: it must not write after this one has read the
        # record.
        self._lock = DirectoryLock(self._file.with_suffix(".lock"))
        if not self._lock.acquire(LOCK_S_MAX):
            raise ConfigError(f"{self._file}: another coordinator still has it")
        kept = msgspec.json.decode(self._file.read_bytes(), type=CoordinatorRecord) if self._file.exists() else None
        plan_ = self._plan
        partitions = PartitionMap.decode(plan_.partitions, self._file)
        self.coordination = Coordination(
            partitions, plan_.limits, plan_.tenure_s, self._clock.now(), kept, self._save
        )  # fmt: skip
        self.coordination.balance = Balance() if plan_.balances else None
        self.coordination.moves.copied = Copied(0, plan_.shards) if plan_.work else None
        self._shards: dict[int, Any] = {}
        self._asked: dict[int, asyncio.Task[ShardAnswer | None]] = {}
        self._going: asyncio.Task[None] | None = None

    async def standing(self) -> bytes:
        """Return the status of the crawl, and new notes. The first call, also after a restart, starts the rounds."""
        if self._going is None:
            await self._meet()
            self._going = asyncio.create_task(self._rounds())
            self._going.add_done_callback(_exit_on_failure)
        failure, refused = self.coordination.failure
        return encoded(
            {
                "status": self.coordination.status(),
                "notes": self.coordination.take_notes(),
                "is_over": self.coordination.is_over,
                "end": self.coordination.kept.end,
                "failure": failure,
                "refused": refused,
                "is_copied": self.coordination.moves.is_copied,
                "wants_seeds": self.coordination.wants_seeds,
            }
        )

    async def scale(self, *, shards: int) -> None:
        """Divide the partitions among `shards` shards, all of which have been started."""
        self.coordination.scale(shards)
        await self._meet()

    async def _meet(self) -> None:
        for shard in range(self.coordination.shards):
            if shard not in self._shards:
                self._shards[shard] = await asyncio.to_thread(ray.get_actor, shard_name(shard), self._namespace)

    async def stop(self, *, now: bool = False) -> None:
        """End the crawl, with its state saved."""
        self.coordination.end("stopped", hurried=now)

    async def pause(self, *, paused: bool) -> None:
        """Pause or continue all requests."""
        self.coordination.pause(paused=paused)

    async def limit(self, *, limits: dict[str, object]) -> None:
        """Obey other limits."""
        self.coordination.limit(msgspec.convert(limits, Limits))

    async def hold(self, *, held: bool) -> None:
        """Hold automatic moves of partitions, or permit them again; those of `scale` go on."""
        self.coordination.hold(held=held)

    async def note_copy(self, *, version: int, shards: int) -> None:
        """Note which record of moves has a copy beside the shards' checkpoints."""
        self.coordination.moves.copied = Copied(version, shards)

    async def note_seeds(self) -> None:
        """Note that seeds were added."""
        self.coordination.note_seeds()

    async def end_seeds(self) -> None:
        """Note that there are no more seeds to request."""
        self.coordination.end_seeds()

    async def ask(self, question: bytes, shards: list[int]) -> list[bytes]:
        """Return the answers of shards to a verb."""
        return list(await asyncio.gather(*[self._answer(shard, question) for shard in shards]))

    async def pid(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    async def _answer(self, shard: int, question: bytes) -> bytes:
        if shard not in self.coordination.seen:  # Ray keeps the call until there is a machine for the shard.
            return encoded({"ok": False, "error": f"shard {shard} has not started"})
        try:
            async with asyncio.timeout(ASK_S_MAX + CALL_S_MAX):
                answer: bytes = await self._shards[shard].ask.remote(question)
        except (ray.exceptions.RayError, TimeoutError):
            return encoded({"ok": False, "error": f"shard {shard} is restarting; try again"})
        return answer

    async def _rounds(self) -> None:
        while True:
            ends_at = self._clock.now() + self._plan.round_s
            self.coordination.took(await self._round(), self._clock.now())
            await asyncio.sleep(max(0.0, ends_at - self._clock.now()))

    async def _round(self) -> list[ShardAnswer]:
        """Query all shards that have answered their last question; wait for the answers for a bounded time."""
        asked = [shard for shard in self._shards if shard not in self._asked]
        for shard in asked:
            self._asked[shard] = asyncio.create_task(self._look(shard))
        if asked:
            await asyncio.wait([self._asked[shard] for shard in asked], timeout=self._plan.answer_s_max)
        answers = []
        for shard in [shard for shard, task in self._asked.items() if task.done()]:
            seen = self._asked.pop(shard).result()
            if seen is not None and shard in asked:  # An older answer belongs to another round.
                answers.append(seen)
        return answers

    async def _look(self, shard: int) -> ShardAnswer | None:
        try:
            answer = await self._shards[shard].look.remote(encoded(self.coordination.look(shard)))
        except ray.exceptions.RayError:
            return None
        return decoded(answer, type=ShardAnswer)

    def _save(self, kept: CoordinatorRecord) -> None:
        write_whole(self._file, msgspec.json.encode(kept))


def _exit_on_failure(task: asyncio.Task[None]) -> None:
    """End this process when its task has failed, so that Ray starts another."""
    if not task.cancelled() and (error := task.exception()) is not None:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
