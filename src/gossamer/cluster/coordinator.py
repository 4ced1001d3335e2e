"""Coordinator: queries all shards in rounds and passes them its orders. A subclass knows how to reach a shard."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import msgspec

from gossamer.cluster.balance import Balance
from gossamer.cluster.coordination import Coordination, CoordinatorRecord, Look, ShardAnswer
from gossamer.cluster.job import ClusterPlan
from gossamer.cluster.moves import Copied
from gossamer.cluster.partitions import RECORD_FILE, PartitionMap
from gossamer.cluster.placement import Placement
from gossamer.cluster.spreading import Spreading
from gossamer.model.errors import ConfigError
from gossamer.world.clock import WallClock, steady_s
from gossamer.world.files import write_whole
from gossamer.world.process import DirectoryLock, boot_id

ASK_S_MAX = 55.0
"""Longest wait for a shard's answer to a verb."""
LOCK_S_MAX = 60.0
"""Time within which a killed coordinator releases the lock of its record."""
QUICK_ROUND_S = 0.05
"""Between two rounds that shards wait for, because they begin or end; at most `cluster.round_s`."""
QUICK_ROUNDS_MAX = 100
"""Consecutive quick rounds, after which what shards wait for is taken to be long."""
encoded = msgspec.msgpack.Encoder(enc_hook=str).encode
decoded = msgspec.msgpack.decode


def refusal(error: str) -> dict[str, object]:
    """Return the answer to a verb that a shard does not get."""
    return {"ok": False, "error": error}


class Coordinator(ABC):
    """Queries all shards in rounds. State that must survive a restart is in the crawl's directory."""

    def __init__(self, plan: ClusterPlan) -> None:
        """Read what an earlier coordinator has left. Blocks while another one holds the record. Raises ConfigError:
        another coordinator keeps the record.
        """
        self._plan = plan
        self._clock = WallClock()
        self._file = Path(plan.directory) / RECORD_FILE
        # The coordinator of a killed crawl may end later: it must not write after this one has read the record.
        self._lock = DirectoryLock(self._file.with_suffix(".lock"))
        if not self._lock.acquire(LOCK_S_MAX):
            raise ConfigError(f"{self._file}: another coordinator still has it")
        self.restore()

    def restore(self) -> None:
        """Begin again from the record: discard the state in memory."""
        plan = self._plan
        kept = msgspec.json.decode(self._file.read_bytes(), type=CoordinatorRecord) if self._file.exists() else None
        partitions = PartitionMap.decode(plan.partitions, self._file)
        self.coordination = Coordination(
            partitions, plan.limits, plan.tenure_s, self._clock.now(), kept, self._save, self._granted_at()
        )
        self.coordination.balance = Balance() if plan.balances else None
        self.coordination.placement = Placement() if plan.balances else None
        self.coordination.spreading = Spreading() if plan.moves else None
        self.coordination.moves.copied = Copied(0, plan.shards) if plan.work else None
        self._asked: dict[int, asyncio.Task[ShardAnswer | None]] = {}
        self._grants_noted = 0
        self.rounds = 0
        """Complete rounds since the start."""
        self._status = self.coordination.status()

    @abstractmethod
    async def _look(self, shard: int, question: Look) -> ShardAnswer | None:
        """Return a shard's answer to a round's question; None: it cannot be reached."""

    @abstractmethod
    async def _ask(self, shard: int, question: bytes) -> bytes | None:
        """Return a shard's answer to a verb; None: it cannot be reached."""

    def report(self) -> dict[str, object]:
        """Return the status of the crawl, and new notes."""
        failure, refused = self.coordination.failure
        return {
            "status": self._status,
            "notes": self.coordination.take_notes(),
            "is_over": self.coordination.is_over,
            "end": self.coordination.kept.end,
            "failure": failure,
            "refused": refused,
            "is_copied": self.coordination.moves.is_copied,
            "departed": self.coordination.departed,
            "wants_seeds": self.coordination.wants_seeds,
        }

    async def run(self) -> None:
        """Query all shards in rounds, until cancelled."""
        quick_rounds = 0
        while True:
            began_at = self._clock.now()
            self.coordination.process_round(await self._round(), self._clock.now())
            self._note_grants()
            self._status = self.coordination.status()  # Once a round, however often it is read: 1.5 ms.
            self.rounds += 1
            quick_rounds = quick_rounds + 1 if self.coordination.is_awaited else 0
            is_quick = 0 < quick_rounds <= QUICK_ROUNDS_MAX
            round_s = min(QUICK_ROUND_S, self._plan.round_s) if is_quick else self._plan.round_s
            await asyncio.sleep(max(0.0, began_at + round_s - self._clock.now()))

    def close(self) -> None:
        """Leave the record to another coordinator."""
        self._lock.release()

    async def order(self, name: str, arguments: Mapping[str, object]) -> None:
        """Call a method of the coordination, such as `pause`."""
        getattr(self.coordination, name)(**arguments)
        self._status = self.coordination.status()

    async def ask(self, question: bytes, shards: list[int]) -> list[bytes]:
        """Return the answers of shards to a verb."""
        return list(await asyncio.gather(*[self._answer(shard, question) for shard in shards]))

    # ---- inside

    async def _answer(self, shard: int, question: bytes) -> bytes:
        if (silent_s := self.coordination.silent_s(shard)) is not None:
            return encoded(refusal(f"shard {shard} has not answered for {silent_s:.0f} s; try again when it does"))
        answer = await self._ask(shard, question)
        return answer if answer is not None else encoded(refusal(f"shard {shard} is restarting; try again"))

    async def _round(self) -> list[ShardAnswer]:
        """Query all shards that have answered their last question; wait for the answers for a bounded time."""
        asked = [shard for shard in range(self.coordination.shards) if shard not in self._asked]
        for shard in asked:
            self._asked[shard] = asyncio.create_task(self._look(shard, self.coordination.look(shard)))
        if asked:
            await asyncio.wait([self._asked[shard] for shard in asked], timeout=self._plan.answer_s_max)
        done = [(shard, self._asked.pop(shard).result()) for shard, task in [*self._asked.items()] if task.done()]
        return [seen for shard, seen in done if seen is not None and shard in asked]  # Older ones are of other rounds.

    def _note_grants(self) -> None:
        """Note the time, before leases are sent that were granted until now. For this boot alone: nothing is synced.

        Where none was granted since the last note, that note still holds.
        """
        if self.coordination.grants == self._grants_noted:
            return
        self._grants_noted = self.coordination.grants
        self._file.with_suffix(".granted.new").write_text(f"{steady_s():.3f} {boot_id().hex()}", encoding="ascii")
        self._file.with_suffix(".granted.new").replace(self._file.with_suffix(".granted"))

    def _granted_at(self) -> float | None:
        """Return when an earlier coordinator may have granted a lease last; None: another boot of a machine did."""
        boot = boot_id()
        try:
            noted, _, noted_boot = self._file.with_suffix(".granted").read_text(encoding="ascii").partition(" ")
            since_s = steady_s() - float(noted)
        except (OSError, ValueError):
            return None
        is_same = any(boot) and noted_boot == boot.hex()
        return self._clock.now() - since_s if is_same and since_s >= 0.0 else None

    def _save(self, kept: CoordinatorRecord) -> None:
        write_whole(self._file, msgspec.json.encode(kept))
