"""Local: the engine of a crawl whose shards are all on this machine.

Their processes are children of this process, which carries their frames and runs the coordinator. It does so in a
thread, so that nothing else that this process does delays the renewal of leases.
"""

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from gossamer.cluster.coordination import Look, ShardAnswer
from gossamer.cluster.coordinator import ASK_S_MAX, Coordinator, decoded, encoded
from gossamer.cluster.job import HERE, ClusterPlan
from gossamer.cluster.shard_process import ShardProcess, start_of
from gossamer.world.clock import WallClock
from gossamer.world.loop import loop_factory

START_AGAIN_S = 1.0
"""Wait after the coordinator has failed."""
CALL_S_MAX = 10.0
"""Longest wait for the coordinator, which may wait for the disk."""
Answer = TypeVar("Answer")


class LocalCoordinator(Coordinator):
    """The coordinator of shards on this machine."""

    def __init__(self, plan: ClusterPlan, shards: list[ShardProcess]) -> None:
        super().__init__(plan)
        self._shards = shards

    async def _look(self, shard: int, question: Look) -> ShardAnswer | None:
        return await self._shards[shard].look(shard, HERE, question, self._plan.answer_s_max)

    async def _ask(self, shard: int, question: bytes) -> bytes | None:
        answer = await self._shards[shard].ask(decoded(question, type=dict[str, object]), ASK_S_MAX)
        return encoded(answer) if answer is not None else None


class LocalEngine:
    """The processes of a crawl's shards, and its coordinator. They end with this process.

    A coordinator that fails begins again from its record, as that of a new process would.
    """

    def __init__(self, plan: ClusterPlan) -> None:
        """Start the shards of a plan. Raises ConfigError: another coordinator keeps the record."""
        self.shards: list[ShardProcess] = []
        self._plan = plan
        self._coordinator = LocalCoordinator(plan, self.shards)
        self._failure = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._runner = asyncio.Runner(loop_factory=loop_factory())
        self._loop = self._runner.get_loop()
        self._end = asyncio.Event()
        # No process: it would take half the memory of a shard. The shards die with the thread that starts them.
        self._thread = threading.Thread(target=self._serve, name="coordinator", daemon=True)
        self._thread.start()

    async def standing(self) -> dict[str, Any]:
        """Return the status of the crawl. Raises ConnectionError: the coordinator has failed, or does not answer."""
        return await self._run(self._standing(), CALL_S_MAX)

    def grow(self, plan: ClusterPlan, machines: Sequence[str]) -> None:
        """Start one more shard for each of these machines, which are all this one; they wait for the coordinator."""
        asyncio.run_coroutine_threadsafe(self._begin(plan, len(self.shards) + len(machines)), self._loop).result()

    async def call(self, name: str, **arguments: object) -> None:
        """Call a method of the coordination, such as `pause`. Raises ConnectionError as `standing`."""
        await self._run(self._coordinator.order(name, arguments), CALL_S_MAX)

    async def ask(self, question: Mapping[str, object], shards: list[int]) -> list[dict[str, object]]:
        """Return the answers of shards to a verb. Raises ConnectionError as `standing`."""
        answers = await self._run(self._coordinator.ask(encoded(dict(question)), shards), ASK_S_MAX + CALL_S_MAX)
        return [decoded(answer, type=dict[str, object]) for answer in answers]

    def close(self) -> None:
        """End all shards."""
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._coordinator.close()

    async def _run(self, work: Coroutine[Any, Any, Answer], limit_s: float) -> Answer:
        try:
            async with asyncio.timeout(limit_s):
                return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        except TimeoutError as error:
            raise ConnectionError("it does not answer") from error
        except OSError as error:
            raise ConnectionError(str(error)) from error

    # ---- in the thread

    def _serve(self) -> None:
        with self._runner as runner:
            runner.run(self._coordinate())

    async def _coordinate(self) -> None:
        await self._begin(self._plan, self._plan.shards)
        ended = asyncio.create_task(self._end.wait())
        while not ended.done():
            rounds = asyncio.create_task(self._run_rounds())
            await asyncio.wait([rounds, ended], return_when=asyncio.FIRST_COMPLETED)
            if not rounds.done():
                return
            error = rounds.exception()
            self._failure = f"{type(error).__name__}: {error}"
            self._coordinator.rounds = 0
            await asyncio.wait([ended], timeout=START_AGAIN_S)

    async def _run_rounds(self) -> None:
        if self._failure:  # What is in memory may not be on disk.
            self._coordinator.restore()
        await self._coordinator.run()

    async def _begin(self, plan: ClusterPlan, shards: int) -> None:
        for shard in range(len(self.shards), shards):
            process = ShardProcess(start_of(plan, shard, HERE), partial(self._carry, shard), WallClock())
            self.shards.append(process)
            self._tasks.append(asyncio.create_task(process.run()))

    async def _carry(self, sender: int, to: int, frame: bytes) -> bool:
        return to < len(self.shards) and self.shards[to].deliver(sender, frame)

    async def _standing(self) -> dict[str, Any]:
        if self._failure and not self._coordinator.rounds:
            raise ConnectionError(self._failure)
        return self._coordinator.report()
