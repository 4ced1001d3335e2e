"""Partitions move from shards that are behind to those that are free, as far as that helps, and not to and fro."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from gossamer.assembly.building import assemble
from gossamer.cluster.balance import ROUNDS_MIN, Balance, runs_to_give
from gossamer.cluster.coordination import Coordination, CoordinatorRecord, Limits, ShardAnswer
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.reports import ShardReport
from gossamer.lab.simweb.judge import judge
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.url.site import PARTITIONS
from tests.cluster.crawls import config_of
from tests.cluster.test_moves import require_kept_where_owned
from tests.faults.shards import Shards, Wire, ends_of
from tests.ring.test_politeness import PROMISES, keys

WITHIN_S = 240.0


class Modelled:
    """Shards that each request up to `at_once` hosts, and do what the coordinator says within a round."""

    def __init__(self, shards: int, hosts: dict[int, int], at_once: int = 10, owners: Sequence[int] = ()) -> None:
        """`hosts`: how many have their turn in each partition."""
        self.hosts, self.at_once = hosts, at_once
        self.saved = b""
        self.map = PartitionMap(1, shards, owners) if owners else PartitionMap.even(shards)
        self.coordination = self.coordinate(None)

    def coordinate(self, kept: CoordinatorRecord | None) -> Coordination:
        self.coordination = Coordination(self.map, Limits(), 10.0, 0.0, kept, self.save)
        self.coordination.balance = Balance()
        return self.coordination

    def save(self, record: CoordinatorRecord) -> None:
        self.saved = msgspec.json.encode(record)

    def load(self) -> list[int]:
        """Return the hosts of each shard."""
        held = Counter(dict.fromkeys(range(self.coordination.shards), 0))
        for partition, hosts in self.hosts.items():
            held[self.coordination.moves.owners[partition]] += hosts
        return [held[shard] for shard in range(self.coordination.shards)]

    def rounds(self, count: int) -> int:
        """Go through `count` rounds; return how many moves began in them."""
        before = self.coordination.moves.kept.version
        for _ in range(count):
            load = self.load()
            self.coordination.process_round([self._answer(shard, hosts) for shard, hosts in enumerate(load)], 1.0)
        return self.coordination.moves.kept.version - before

    def _answer(self, shard: int, hosts: int) -> ShardAnswer:
        orders = self.coordination.look(shard).orders
        waiting = None
        if orders.survey is not None:
            mine = [one for one in self.hosts if self.coordination.moves.owners[one] == shard]
            waiting = [(one, self.hosts[one]) for one in sorted(mine)]
        report = ShardReport(
            shard, 1, hosts == 0, 1, hosts_left=hosts, behind=hosts > self.at_once, waiting=waiting, urls=hosts,
            settled=[move.version for move in orders.moves if move.to == shard],
        )  # fmt: skip
        return ShardAnswer(shard=shard, state="running", holder=f"node/{shard}", report=report)


def spread(count: int, begin: int = 0, end: int = PARTITIONS) -> dict[int, int]:
    """Return the hosts of `count` sites, by chance in the partitions of a range."""
    dice = random.Random(7)
    return dict(Counter(dice.randrange(begin, end) for _ in range(count)))


# ---- which, and when


@pytest.mark.parametrize("shards", [2, 3, 8])
def test_hosts_that_are_all_of_one_shard_spread_until_none_is_free_and_then_stay(shards: int) -> None:
    model = Modelled(shards, spread(400, 0, PARTITIONS // shards))
    assert model.load()[1:] == [0] * (shards - 1)
    moves = model.rounds(500)
    assert min(model.load()) > model.at_once, "each has more than it can request"
    assert moves <= 4 * shards
    assert model.rounds(1_000) == 0


def test_where_a_few_hosts_more_are_enough_no_more_move() -> None:
    model = Modelled(2, spread(14, 0, 2_048))
    model.rounds(200)
    assert max(model.load()) <= model.at_once
    assert model.rounds(1_000) == 0


def test_a_single_site_stays_and_what_is_beside_it_moves() -> None:
    model = Modelled(2, {5: 1_000})
    assert model.rounds(200) == 0
    model.hosts |= dict.fromkeys(range(100, 140), 1)
    model.rounds(200)
    assert model.coordination.moves.owners[5] == 0
    assert model.load() == [1_000, 40]


def test_each_partition_moves_once_however_loads_change() -> None:
    """The hosts of whichever shard is free come back, again and again."""
    model, dice = Modelled(2, spread(400, 0, 2_048)), random.Random(3)
    for _ in range(60):
        model.rounds(ROUNDS_MIN * 3)
        busy = dice.randrange(2)
        owners = model.coordination.moves.owners
        model.hosts = {one: 1 for one in range(PARTITIONS) if owners[one] == busy and one % 8 == 0}
    moved = [one for first, end in model.coordination.moves.kept.balanced for one in range(first, end)]
    assert 0 < len(moved) == len(set(moved))
    assert model.coordination.status()["partitions_balanced"] == len(moved)


def test_a_shard_that_is_behind_now_and_then_gives_nothing() -> None:
    model = Modelled(2, spread(400, 0, 2_048))
    for _ in range(50):
        assert model.rounds(ROUNDS_MIN - 1) == 0
        model.at_once = 1_000
        assert model.rounds(1) == 0
        model.at_once = 10


def test_nothing_moves_by_itself_while_the_crawl_is_paused_held_scaled_or_ends() -> None:
    model = Modelled(2, spread(400, 0, 2_048))
    for stop, go in (("pause", "paused"), ("hold", "held")):
        getattr(model.coordination, stop)(**{go: True})
        assert model.rounds(100) == 0
        getattr(model.coordination, stop)(**{go: False})
    model.coordination.scale(3)
    model.rounds(2)
    assert model.coordination.moves.kept.wanted == 3
    while model.coordination.moves.is_moving:
        assert model.coordination.moves.kept.balanced == []
        model.rounds(1)
    assert model.rounds(100) > 0
    model.coordination.end("stopped")
    assert model.rounds(100) == 0


def test_a_coordinator_that_comes_back_goes_on_and_knows_what_moved_before() -> None:
    model = Modelled(2, spread(400, 0, 2_048))
    while not model.rounds(1):
        pass
    ordered = model.coordination.look(1).orders.moves
    kept = msgspec.json.decode(model.saved, type=CoordinatorRecord)
    assert kept.moves.balanced == [(move.first, move.end) for move in ordered]
    again = model.coordinate(kept)
    assert again.look(1).orders.moves == ordered
    model.rounds(500)
    assert min(model.load()) > model.at_once
    moved = [one for first, end in again.moves.kept.balanced for one in range(first, end)]
    assert len(moved) == len(set(moved))


def test_the_operator_hears_once_between_which_shards_partitions_move() -> None:
    model = Modelled(2, spread(4_000, 0, 2_048), at_once=1_200)
    assert model.rounds(500) > 2
    [note] = model.coordination.take_notes()
    assert note.startswith("shard 0 has more hosts ready than it can request, and shard 1 has free requests: ")


def test_runs_take_no_more_than_a_share_and_nothing_that_must_stay() -> None:
    waiting = [(1, 2), (2, 3), (4, 50), (5, 1), (9, 4), (10, 0), (700, 3)]
    assert runs_to_give(waiting, 63 // 6, 100, lambda one: one != 9) == [(1, 3), (700, 701)]
    assert runs_to_give(waiting, 63 // 6, 1, lambda _: True) == [(9, 10), (2, 3)]
    assert runs_to_give([(4, 50)], 50 // 2, 100, lambda _: True) == []
    assert runs_to_give([], 0, 100, lambda _: True) == []


# ---- real shards


class Rebalancing(Shards):
    """One shard has all partitions but a few."""

    balance_rounds_min = 3

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.partitions = PartitionMap(1, 3, [0] * (PARTITIONS - 2) + [1, 2])


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "While one shard has more hosts ready than it can request, idle ones get some.")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [0, 6])
@pytest.mark.long
def test_shards_without_work_get_some_from_the_one_that_has_all(tmp_path: Path, kills: int) -> None:
    options = SimwebOptions(
        seed=7, hosts=48, hosts_per_site=1, pages=480, links_per_page=8, latency_s=0.05, names_per_address=2,
        same_host_share=0.5, zipf_exponent=0.2, behaviours=("robots_404", "robots_part", "robots_redirect_host"),
    )  # fmt: skip
    directory, dice = tmp_path / "crawl", random.Random(5)
    killed: list[float] = []
    pages: dict[int, int] = {}

    async def meddle(running: Shards) -> None:
        pages.update({report.shard: report.pages for report in running.reports()})
        if running.coordination.moves.kept.under_way and len(killed) < kills and (not killed or dice.random() < 0.3):
            number = dice.choice(sorted(running.members))
            killed.append(running.clock.now())
            await running.kill(number)
            running.coordinate()
            await running.start(number)

    with SimwebProcess(options, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 3, *keys("polite"), "crawl.concurrency=2")
        running = Rebalancing(config, directory, 3, assemble, Wire(random.Random(7)))
        assert asyncio.run(running.run(meddle, WITHIN_S)) == "finished"
        ends = ends_of(config, directory, 3)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        broken = judge(simweb.requests(), PROMISES["polite"], simweb.web, restarts=killed)
    assert [one for one in broken if not (killed and one.kind == "repeated")] == []
    assert len(killed) >= min(kills, 1)
    kept = running.coordination.moves.kept
    moved = [one for first, end in kept.balanced for one in range(first, end)]
    assert 0 < len(moved) == len(set(moved))
    assert kept.version == len(kept.balanced) <= 30
    require_kept_where_owned(running, directory)
    if not kills:
        assert min(pages.values()) > sum(pages.values()) // 10
