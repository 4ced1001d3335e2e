"""No two processes crawl as one shard at any time, and a shard comes to crawl again."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.cluster import coordinator
from gossamer.cluster.coordination import TENURE_MARGIN_S, Look, ShardAnswer, Tenancy, Tenure
from gossamer.cluster.coordinator import Coordinator
from gossamer.cluster.job import ClusterPlan
from gossamer.cluster.partitions import PartitionMap

TERM_S, REQUEST_S_MAX = 5.0, 3.0


class Process:
    """One that wants the shard: asks, is answered late or never, and begins requests while it holds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tenure = Tenure(TERM_S)
        self.requesting_until = 0.0
        self.answers: list[tuple[float, float]] = []
        """When the answer comes, and when it was asked for."""


@pytest.mark.promise("Several shards", "No two processes crawl as one shard.")
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_never_two_at_once(seed: int) -> None:
    dice = random.Random(seed)
    now = 1_000.0
    tenancy = Tenancy(TERM_S, REQUEST_S_MAX, now, is_new=True)
    processes = [Process("first"), Process("second"), Process("third")]
    crawled = set()
    granted_at = now
    for _ in range(2_000):
        now += 0.1
        if dice.random() < 0.002:  # The lender forgets everything, or knows when it lent last.
            tenancy = Tenancy(TERM_S, REQUEST_S_MAX, granted_at if dice.random() < 0.5 else now, is_new=False)
        for process in processes:
            if dice.random() < 0.2:
                renews = process.tenure.holds(now)
                arrives = dice.random() < 0.8
                if arrives and not tenancy.ask(0, process.name, now, renews=renews):
                    granted_at = now
                    if dice.random() < 0.8:
                        process.answers.append((now + dice.random() * 8.0, now))
            for at, asked_at in [one for one in process.answers if one[0] <= now]:
                process.answers.remove((at, asked_at))
                process.tenure.renew(asked_at)
            if process.tenure.holds(now) and process.requesting_until <= now and dice.random() < 0.5:
                process.requesting_until = now + dice.random() * REQUEST_S_MAX
                crawled.add(process.name)
        assert sum(process.requesting_until > now for process in processes) <= 1
    assert crawled


def test_a_successor_waits_for_the_lease_and_the_longest_request() -> None:
    tenancy = Tenancy(TERM_S, REQUEST_S_MAX, 0.0, is_new=True)
    assert tenancy.ask(0, "first", 0.0) == 0.0
    assert tenancy.ask(0, "second", 1.0) == TERM_S + REQUEST_S_MAX - 1.0
    assert tenancy.ask(0, "second", TERM_S + REQUEST_S_MAX) == 0.0
    assert tenancy.ask(0, "first", TERM_S + REQUEST_S_MAX) == TERM_S + REQUEST_S_MAX, "the second one has it"
    assert tenancy.ask(0, "third", 8.5, proven=True) == 0.0, "its lock was let go: it is dead"


def test_a_lender_that_forgot_lets_holders_go_on_and_others_wait() -> None:
    tenancy = Tenancy(TERM_S, REQUEST_S_MAX, 100.0, is_new=False)
    assert tenancy.ask(0, "new", 101.0) == TERM_S + REQUEST_S_MAX - 1.0
    assert tenancy.ask(0, "old", 101.0, renews=True) == 0.0


def test_a_lender_that_knows_its_last_lease_waits_for_that_alone() -> None:
    tenancy = Tenancy(TERM_S, REQUEST_S_MAX, 100.0, is_new=False)
    assert tenancy.ask(0, "new", 106.0) == TERM_S + REQUEST_S_MAX - 6.0
    assert tenancy.ask(0, "new", 100.0 + TERM_S + REQUEST_S_MAX) == 0.0


class Lender(Coordinator):
    """A coordinator whose one shard runs on another machine each time."""

    async def _look(self, shard: int, question: Look) -> ShardAnswer:
        node = f"machine-{id(self)}"
        return ShardAnswer(shard=shard, state="starting", node=node, holder=f"{node}/1", asked_at=1.0)

    async def _ask(self, shard: int, question: bytes) -> bytes | None:
        return None


def lender(directory: Path, term_s: float) -> Lender:
    (directory / "state").mkdir(exist_ok=True)
    return Lender(
        ClusterPlan(
            directory=str(directory), shards=1, partitions=PartitionMap.even(1).encode(), config="", tenure_s=term_s,
            round_s=0.01, answer_s_max=1.0, process_s_max=1.0,
        )
    )  # fmt: skip


async def lend(one: Lender, rounds: int = 2) -> bool:
    """Run some rounds; return whether the shard has a lease."""
    rounding = asyncio.create_task(one.run())
    while one.rounds < rounds:  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.01)
    rounding.cancel()
    one.close()
    return one.coordination.look(0).granted is not None


def test_a_coordinator_begun_again_knows_when_it_lent_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    term_s = 100.0
    assert asyncio.run(lend(lender(tmp_path, term_s)))
    assert not asyncio.run(lend(lender(tmp_path, term_s))), "the first holder may still crawl"
    boot = coordinator.boot_id()
    at = coordinator.steady_s()
    later = at + term_s + TENURE_MARGIN_S + 1.0
    monkeypatch.setattr(coordinator, "steady_s", lambda: later)
    monkeypatch.setattr(coordinator, "boot_id", lambda: b"another")
    assert not asyncio.run(lend(lender(tmp_path, term_s))), "what the machine noted before it was off says nothing"
    note = tmp_path / "state/coordinator.granted"
    note.write_text(f"{at:020.3f} {boot.hex()}")
    monkeypatch.setattr(coordinator, "boot_id", lambda: boot)
    assert asyncio.run(lend(lender(tmp_path, term_s)))
    for damaged in ("", "nothing", f"{later + 5:020.3f} {boot.hex()}"):
        note.write_text(damaged)
        assert not asyncio.run(lend(lender(tmp_path, term_s))), damaged


def test_a_round_without_a_grant_notes_nothing(tmp_path: Path) -> None:
    note = tmp_path / "state/coordinator.granted"
    assert asyncio.run(lend(lender(tmp_path, 100.0)))
    before = (note.stat().st_ino, note.stat().st_mtime_ns, note.read_text())
    assert not asyncio.run(lend(lender(tmp_path, 100.0), rounds=5)), "the first holder may still crawl"
    assert (note.stat().st_ino, note.stat().st_mtime_ns, note.read_text()) == before


def test_a_shard_begins_nothing_without_its_lease() -> None:
    tenure = Tenure(TERM_S)
    assert not tenure.holds(0.0)
    tenure.renew(10.0)
    assert tenure.holds(10.0 + TERM_S - 0.01)
    assert not tenure.holds(10.0 + TERM_S)
