"""Partitions move from the shard with most requests to the one with fewest: seldom, and not to and fro."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from gossamer.assembly.building import assemble
from gossamer.cluster.coordination import Coordination, CoordinatorRecord, Limits, ShardAnswer
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.placement import EXCESS_MIN, HOUR_S, LASTS_S, RATIO_MIN, SETTLES_S, STEPS_AN_HOUR_MAX, Placement
from gossamer.cluster.reports import ShardReport
from gossamer.lab.simweb.judge import Promise, judge
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.stages.frontier.load import LOAD_WINDOW_S, RequestLoad
from gossamer.url.site import PARTITIONS
from tests.cluster.crawls import config_of
from tests.cluster.test_moves import require_kept_where_owned
from tests.faults.shards import Shards, Wire, ends_of

ROUND_S = 5.0
DAY_S = 24 * HOUR_S


class Sites:
    """Shards whose sites are requested at rates, with chance, and a coordinator that moves their partitions."""

    def __init__(self, shards: int, rates: dict[int, float], owners: dict[int, int] | None = None) -> None:
        """`rates`: requests a second in each partition; `owners`: shards of some partitions, of others by number."""
        even = list(PartitionMap.even(shards).owners)
        for partition, shard in (owners or {}).items():
            even[partition] = shard
        self.rates = rates
        self.now = 1_000.0
        self.steps: list[float] = []
        self.busy: set[int] = set()
        self._dice = random.Random(5)
        self._loads = [RequestLoad(self.now) for _ in range(shards)]
        self.coordination = Coordination(PartitionMap(1, shards, even), Limits(), 10.0, 0.0, None, self.save)
        self.coordination.placement = Placement()

    def save(self, record: CoordinatorRecord) -> None:
        """Keep nothing."""

    def owner(self, partition: int) -> int:
        return self.coordination.moves.owners[partition]

    def held(self) -> list[float]:
        """Return the requests a second of each shard, without chance."""
        held = Counter(dict.fromkeys(range(self.coordination.shards), 0.0))
        for partition, rate in self.rates.items():
            held[self.owner(partition)] += rate
        return [held[shard] for shard in range(self.coordination.shards)]

    def run(self, seconds: float, change: Callable[[float], None] | None = None) -> None:
        """Go through the rounds of some time."""
        ends_at = self.now + seconds
        while self.now < ends_at:
            self.now += ROUND_S
            if change is not None:
                change(self.now)
            for partition, rate in self.rates.items():
                whole, part = divmod(rate * ROUND_S * self._dice.uniform(0.5, 1.5), 1.0)
                for _ in range(int(whole) + (self._dice.random() < part)):
                    self._loads[self.owner(partition)].note(partition, self.now)
            version = self.coordination.moves.kept.version
            self.coordination.process_round(
                [self._answer(shard) for shard in range(self.coordination.shards)], self.now
            )
            if self.coordination.moves.kept.version > version:
                self.steps.append(self.now)

    def _answer(self, shard: int) -> ShardAnswer:
        orders = self.coordination.look(shard).orders
        load = self._loads[shard]
        for move in orders.moves:
            load.forget(move.first, move.end)
        report = ShardReport(
            shard, 1, False, 1, hosts_left=1, behind=shard in self.busy, urls=1, requests_s=load.per_s(self.now),
            requests=load.by_partition(self.now) if orders.weigh else None,
            settled=[move.version for move in orders.moves if move.to == shard],
        )  # fmt: skip
        return ShardAnswer(shard=shard, state="running", holder=f"node/{shard}", report=report)


def nine(busy: int = 0) -> Sites:
    """Return nine sites with a request a second each, of which one of three shards has six."""
    owners = dict.fromkeys(range(6), busy) | {6: (busy + 1) % 3, 7: (busy + 1) % 3, 8: (busy + 2) % 3}
    return Sites(3, dict.fromkeys(range(9), 1.0), owners)


@pytest.mark.promise("Several shards", "Partitions move by themselves from a shard with many more requests to others.")
@pytest.mark.parametrize("busy", [0, 1, 2])
def test_nine_sites_of_which_one_shard_has_six_are_divided(busy: int) -> None:
    sites = nine(busy)
    assert sorted(sites.held()) == [1.0, 2.0, 6.0]
    sites.run(HOUR_S)
    assert max(sites.held()) < RATIO_MIN * min(sites.held())
    assert len(sites.steps) <= 3
    assert sites.steps[0] - 1_000.0 >= LASTS_S
    assert all(later - earlier >= SETTLES_S for earlier, later in pairwise(sites.steps))
    before = len(sites.steps)
    sites.run(DAY_S / 4)
    assert len(sites.steps) == before, "and then all stay"
    [note] = [note for note in sites.coordination.take_notes() if f"shard {busy} has " in note][:1]
    assert "requests a second" in note


def test_shards_of_many_sites_stay_as_they_are() -> None:
    dice = random.Random(1)
    sites = Sites(4, {one: dice.uniform(0.01, 0.2) for one in range(0, PARTITIONS, 16)})
    sites.run(DAY_S / 8)
    assert sites.steps == []


def test_a_single_large_site_stays_and_the_others_leave_it() -> None:
    sites = Sites(2, {0: 20.0} | dict.fromkeys(range(1, 9), 1.0), dict.fromkeys(range(9), 0))
    sites.run(2 * HOUR_S)
    assert sites.owner(0) == 0
    assert sites.held() == [20.0, 8.0]


def test_steps_an_hour_are_bounded_and_no_partition_moves_twice_however_loads_change() -> None:
    sites = Sites(3, dict.fromkeys(range(600), 0.05), dict.fromkeys(range(600), 0))

    def change(now: float) -> None:
        busy = int(now / 900) % 3
        sites.rates = {one: 0.4 if sites.owner(one) == busy else 0.01 for one in range(0, 600, 10)}

    sites.run(DAY_S / 4, change)
    assert sites.steps
    for step in sites.steps:
        assert sum(step <= other < step + HOUR_S for other in sites.steps) <= STEPS_AN_HOUR_MAX
    moved = [one for first, end in sites.coordination.moves.kept.balanced for one in range(first, end)]
    assert len(moved) == len(set(moved))
    assert sites.coordination.status()["partitions_balanced"] == len(moved)


def test_a_shard_without_a_free_request_gets_none() -> None:
    sites = nine()
    sites.busy = {1, 2}
    sites.run(HOUR_S)
    assert sites.steps == []


@pytest.mark.parametrize("ends", ["paused", "held"])
def test_nothing_moves_while_the_operator_holds_it(ends: str) -> None:
    sites = nine()
    getattr(sites.coordination, {"paused": "pause", "held": "hold"}[ends])(**{ends: True})
    sites.run(HOUR_S)
    assert sites.steps == []


def test_a_small_or_brief_difference_moves_nothing() -> None:
    few = Sites(2, {0: 0.7 * EXCESS_MIN / 2, 1: 0.7 * EXCESS_MIN / 2}, {0: 0, 1: 0})
    few.run(HOUR_S)
    assert few.steps == []
    brief = Sites(2, {0: 2.0, 1: 2.0, 2: 2.0, 3: 2.0}, {0: 0, 1: 0, 2: 1, 3: 1})
    sleeping = dict.fromkeys((2, 3), 0.1)

    def change(now: float) -> None:
        brief.rates |= sleeping if now % 1_000 < LASTS_S / 3 else dict.fromkeys((2, 3), 2.0)

    brief.run(4 * HOUR_S, change)
    assert brief.steps == []


class Placing(Shards):
    """One of three shards has all partitions but a few; what counts elsewhere in minutes counts at once."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.placement = Placement(lasts_s=0.0, settles_s=0.2)
        self.partitions = PartitionMap(1, 3, [0] * (PARTITIONS - 2) + [1, 2])


@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.timeout(900)
def test_running_shards_divide_their_requests(tmp_path: Path) -> None:
    web = SimwebOptions.plain(
        hosts=9, hosts_per_site=1, pages=400, latency_s=0.02, bytes_median=1_000, zipf_exponent=0.1
    )
    directory = tmp_path / "crawl"
    with SimwebProcess(web, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 3, "politeness.delay_s_min=0.05", "politeness.delay_s_max=0.05")
        running = Placing(config, directory, 3, assemble, Wire(random.Random(7)))
        assert asyncio.run(running.run(None, 150.0)) == "finished"
        ends = ends_of(config, directory, 3)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        promise = Promise(delay_s_min=0.05, factor=0.0, delay_s_max=0.05, per_address=0)
        assert judge(simweb.requests(), promise, simweb.web) == []
    moved = running.coordination.moves.kept.balanced
    assert moved
    assert {running.coordination.moves.owners[first] for first, _ in moved} <= {1, 2}
    require_kept_where_owned(running, directory)


def test_requests_are_counted_over_one_to_two_windows_and_leave_with_their_partition() -> None:
    load = RequestLoad(0.0)
    for second in range(int(3 * LOAD_WINDOW_S)):
        load.note(second % 2, float(second))
    at = 3 * LOAD_WINDOW_S - 1.0
    assert load.per_s(at) == pytest.approx(1.0, rel=0.02)
    counts = dict(load.by_partition(at))
    assert counts[0] == counts[1]
    assert 2 * counts[0] <= 2 * LOAD_WINDOW_S
    load.forget(0, 1)
    assert load.by_partition(at) == [(1, counts[1])]
    assert load.per_s(at + 3 * LOAD_WINDOW_S) < 0.3
    assert load.per_s(at + 99 * LOAD_WINDOW_S) < 0.02
    assert RequestLoad(100.0).per_s(0.0) == 0.0


def test_reports_of_earlier_versions_have_no_requests() -> None:
    old = msgspec.to_builtins(ShardReport(0, 1, False, 1))
    del old["requests_s"], old["requests"]
    assert msgspec.convert(old, ShardReport).requests_s == 0.0
