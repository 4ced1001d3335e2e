"""Actors: the Ray actors of a crawl. Each shard is an actor that runs a process (`ShardProcess`); the coordinator is an
actor too. Their logic is in `shard_process` and `coordinator`; this module only passes calls.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import ray
import ray.exceptions
from ray.util.metrics import Gauge

from gossamer.cluster.aggregate import GAUGES, LABELS, figures_of
from gossamer.cluster.coordination import Look, ShardAnswer
from gossamer.cluster.coordinator import ASK_S_MAX, Coordinator, decoded, encoded, refusal
from gossamer.cluster.job import ClusterPlan, name_machine
from gossamer.cluster.shard_process import ShardProcess, start_of
from gossamer.cluster.spreading import room_on
from gossamer.world.clock import WallClock
from gossamer.world.process import die_with_parent

CARRY_S_MAX = 10.0
"""A frame that has not arrived after this time counts as lost and is sent again."""
CALL_S_MAX = 10.0
"""Longest wait for the coordinator, since Ray queues calls to an actor that has not started."""
MACHINES_S = 2.0
"""Interval of looks for machines that joined or were lost."""


def shard_name(shard: int) -> str:
    """Return the name of a shard's actor in the crawl's namespace."""
    return f"shard-{shard}"


class ShardActor:
    """Runs one shard. After a failure Ray restarts the actor on any machine; the shard's state is on disk."""

    def __init__(self, plan: bytes, shard: int, namespace: str) -> None:
        die_with_parent(os.getppid())  # Ray's process of this machine, without which an actor would stay for good.
        self._plan = msgspec.json.decode(plan, type=ClusterPlan)
        self._shard = shard
        self._namespace = namespace
        self._node: str = ray.get_runtime_context().get_node_id()
        work = self._plan.work
        address: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        self._machine = name_machine(work, address) if work else self._node
        self._peers: dict[int, Any] = {}
        self._process: ShardProcess | None = None
        self._gauges = {name: Gauge(name, what, LABELS) for name, what in GAUGES.items()}
        self._labels = {"crawl": Path(self._plan.directory).name, "shard": str(shard)}
        self._keeping: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Start the shard, which waits for its lease."""
        self._ensure_process()

    async def look(self, question: bytes) -> bytes:
        """Answer a round's question. After a restart by Ray, the first question starts the shard."""
        seen = await self._ensure_process().look(
            self._shard, self._node, decoded(question, type=Look), self._plan.answer_s_max
        )
        for name, figure in figures_of(seen.status).items():
            self._gauges[name].set(figure, self._labels)
        return encoded(seen)

    async def ask(self, question: bytes) -> bytes:
        """Return the shard's answer to a verb."""
        answer = await self._ensure_process().ask(decoded(question, type=dict[str, object]), ASK_S_MAX)
        return encoded(answer if answer is not None else refusal(f"shard {self._shard} is starting"))

    async def deliver(self, sender: int, frame: bytes) -> bool:
        """Deliver a frame of another shard."""
        return self._process is not None and self._process.deliver(sender, frame)

    def _ensure_process(self) -> ShardProcess:
        if self._process is None:
            self._process = ShardProcess(start_of(self._plan, self._shard, self._machine), self._carry, WallClock())
            self._keeping = asyncio.create_task(self._process.run())
            self._keeping.add_done_callback(_exit_on_failure)
        return self._process

    async def _carry(self, to: int, frame: bytes) -> bool:
        try:
            async with asyncio.timeout(CARRY_S_MAX):
                if to not in self._peers:
                    self._peers[to] = await asyncio.to_thread(ray.get_actor, shard_name(to), self._namespace)
                arrived: bool = await self._peers[to].deliver.remote(self._shard, frame)
                return arrived
        except (ray.exceptions.RayError, TimeoutError, ValueError) as error:
            if isinstance(error, ray.exceptions.ActorDiedError):
                self._peers.pop(to, None)  # It may be started again, by the same name.
            return False


class CoordinatorActor(Coordinator):
    """The coordinator as an actor: reaches the shards by their actors."""

    def __init__(self, plan: bytes, namespace: str) -> None:
        die_with_parent(os.getppid())
        super().__init__(msgspec.json.decode(plan, type=ClusterPlan))
        self._namespace = namespace
        self._shards: dict[int, Any] = {}
        self._begins = asyncio.Lock()
        self._going: list[asyncio.Task[None]] = []

    async def standing(self) -> bytes:
        """Return the status of the crawl, encoded. The first call, also after a restart, starts the rounds."""
        async with self._begins:  # To find the actors may take longer than the caller waits before it calls again.
            if not self._going:
                await self._meet(self.coordination.shards)
                self._going = [asyncio.create_task(one) for one in (self.run(), self._watch_machines())]
                for task in self._going:
                    task.add_done_callback(_exit_on_failure)
        return encoded(self.report())

    async def order(self, name: str, arguments: Mapping[str, Any]) -> None:
        if name == "scale":
            await self._meet(arguments["shards"])
        elif name == "arrive":  # Rounds go on meanwhile, with its former actor.
            self._shards[arguments["shard"]] = await self._find(arguments["shard"])
            self._asked.pop(arguments["shard"], None)
        await super().order(name, arguments)

    async def _meet(self, shards: int) -> None:
        for shard in range(shards):
            if shard not in self._shards:
                self._shards[shard] = await self._find(shard)

    async def _find(self, shard: int) -> Any:
        return await asyncio.to_thread(ray.get_actor, shard_name(shard), self._namespace)

    async def _ask(self, shard: int, question: bytes) -> bytes | None:
        if shard not in self.coordination.seen:  # Ray keeps the call until there is a machine for the shard.
            return encoded(refusal(f"shard {shard} has not started"))
        try:
            async with asyncio.timeout(ASK_S_MAX + CALL_S_MAX):
                answer: bytes = await self._shards[shard].ask.remote(question)
        except (ray.exceptions.RayError, TimeoutError):
            return None
        return answer

    async def _look(self, shard: int, question: Look) -> ShardAnswer | None:
        try:
            answer = await self._shards[shard].look.remote(encoded(question))
        except ray.exceptions.RayError:
            return None
        return decoded(answer, type=ShardAnswer)

    async def _watch_machines(self) -> None:
        while True:
            with suppress(ray.exceptions.RayError, RuntimeError):
                nodes = await asyncio.to_thread(ray.nodes)
                self.coordination.room = room_on(nodes, self._plan.needs, self._plan.machine_shards_max)
                there = {machine for machine, room in self.coordination.room.items() if room}
                addresses = {str(node["NodeID"]): str(node["NodeManagerAddress"]) for node in nodes}
                self.coordination.addresses = {one: at for one, at in addresses.items() if one in there}
            await asyncio.sleep(MACHINES_S)


def _exit_on_failure(task: asyncio.Task[None]) -> None:
    """End this process when its task has failed, so that Ray starts another."""
    if not task.cancelled() and (error := task.exception()) is not None:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
