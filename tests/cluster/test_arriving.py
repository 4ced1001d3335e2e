"""A shard that moves to another machine arrives while the coordinator's rounds go on."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import msgspec
import pytest

from gossamer.cluster import actors
from gossamer.cluster.actors import CoordinatorActor
from gossamer.cluster.coordination import ShardAnswer
from gossamer.cluster.coordinator import encoded
from gossamer.cluster.job import ClusterPlan, encode
from gossamer.cluster.partitions import PartitionMap

SHARDS = 2


class Method:
    """A method of an actor of Ray."""

    def __init__(self, answer: ShardAnswer) -> None:
        self._answer = answer
        self.calls = 0

    async def remote(self, _question: bytes) -> bytes:
        self.calls += 1
        return encoded(self._answer)


class Actor:
    """An actor of a shard, which answers each round's question."""

    def __init__(self, shard: int, node: str) -> None:
        self.look = Method(ShardAnswer(shard=shard, state="running", node=node))


class Names:
    """The actors of a cluster, by name, whose look-up can be made to wait."""

    def __init__(self) -> None:
        self.actors = {actors.shard_name(shard): Actor(shard, "before") for shard in range(SHARDS)}
        self.answers = threading.Event()
        self.answers.set()

    def get(self, name: str, _namespace: str) -> Actor:
        assert self.answers.wait(60.0)
        return self.actors[name]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    found = Names()
    monkeypatch.setattr(actors.ray, "get_actor", found.get)
    monkeypatch.setattr(actors.ray, "nodes", list)
    monkeypatch.setattr(actors, "die_with_parent", lambda _: None)  # This process is no actor.
    return found


def coordinator_in(directory: Path) -> CoordinatorActor:
    (directory / "state").mkdir()
    plan = ClusterPlan(
        directory=str(directory), shards=SHARDS, partitions=PartitionMap.even(SHARDS).encode(), config="",
        tenure_s=20.0, round_s=0.01, answer_s_max=5.0, process_s_max=60.0,
    )  # fmt: skip
    return CoordinatorActor(encode(plan), "crawl")


async def rounds(coordinator: CoordinatorActor, count: int) -> None:
    async with asyncio.timeout(60.0):
        until = coordinator.rounds + count
        while coordinator.rounds < until:
            [failed] = [one.exception() for one in coordinator._going[:1] if one.done()] or [None]
            assert failed is None, failed
            await asyncio.sleep(0.01)


async def end(coordinator: CoordinatorActor) -> None:
    for task in coordinator._going:
        task.cancel()
    await asyncio.gather(*coordinator._going, return_exceptions=True)
    coordinator.close()


def test_rounds_go_on_while_a_shard_is_looked_up_that_arrives(
    tmp_path: Path, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actors, "_exit_on_failure", lambda _: None)

    async def crawl() -> None:
        coordinator = coordinator_in(tmp_path)
        await coordinator.standing()
        await rounds(coordinator, 2)
        names.answers.clear()
        moved = names.actors["shard-1"] = Actor(1, "after")
        arriving = asyncio.create_task(coordinator.order("arrive", {"shard": 1}))
        try:
            await rounds(coordinator, 3)
        finally:
            names.answers.set()
        await arriving
        await rounds(coordinator, 2)
        assert moved.look.calls > 0
        assert coordinator.coordination.seen[1].node == "after"
        await end(coordinator)

    asyncio.run(crawl())


def test_rounds_begin_once_however_often_the_status_is_asked_for_meanwhile(tmp_path: Path, names: Names) -> None:
    async def crawl() -> None:
        coordinator = coordinator_in(tmp_path)
        names.answers.clear()
        asked = [asyncio.create_task(coordinator.standing()) for _ in range(3)]
        await asyncio.sleep(0)
        names.answers.set()
        reports = [msgspec.msgpack.decode(one) for one in await asyncio.gather(*asked)]
        assert [one["is_over"] for one in reports] == [False] * 3
        running = [task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == "Coordinator.run"]  # type: ignore[union-attr]
        assert len(running) == 1
        await end(coordinator)

    asyncio.run(crawl())
