"""Partitions move between running shards: nothing is lost or requested twice, and nothing comes too soon."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from gossamer.assembly.building import assemble
from gossamer.assembly.home import Home
from gossamer.cluster.coordination import CoordinatorRecord
from gossamer.lab.simweb.judge import Violation, judge
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.state.schema import FAMILIES, PARTITIONED
from gossamer.state.store import Store
from tests.cluster.crawls import BACKENDS, config_of
from tests.faults.shards import LabShard, Shards, Wire, ends_of
from tests.ring.test_politeness import PROMISES, keys

pytestmark = pytest.mark.timeout(900)
WITHIN_S = 240.0
WEB = SimwebOptions(
    seed=7, hosts=40, pages=400, links_per_page=8, latency_s=0.01, names_per_address=4, same_host_share=0.5,
    behaviours=("robots_404", "robots_part", "robots_redirect_host"),
)  # fmt: skip


class ManyCommits(Shards):
    """Shards that give few keys with each commit, as those do that have partitions of millions of URLs."""

    def on_open(self, member: LabShard) -> None:
        assert member.assembled is not None
        assert member.assembled.membership is not None
        member.assembled.membership.moves.step_keys_max = 7


class Scaler:
    """Changes the number of shards, one step after the other, each when the one before is complete."""

    def __init__(self, *steps: tuple[int, int]) -> None:
        """A step is the number of pages after which it begins, and the number of shards."""
        self.steps = list(steps)
        self.done: list[int] = []

    async def __call__(self, running: Shards) -> None:
        pages = sum(report.pages for report in running.reports())
        if self.steps and pages >= self.steps[0][0] and not running.coordination.moves.is_moving:
            _, shards = self.steps.pop(0)
            self.done.append(shards)
            await running.scale(shards)


def moved(
    tmp_path: Path,
    meddle: Callable[[Shards], object],
    kind: type[Shards] = Shards,
    kills: Sequence[float] = (),
    backend: Sequence[str] = (),
    **wire: float,
) -> tuple[Shards, list[str], list[Violation]]:
    """Crawl the web with moves, with two shards at first; return the shards, how the pages differ from the truth, and
    what the log shows. `kills` has the instants at which shards were killed.
    """
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", 2, *keys("polite"), *backend)
        running = kind(config, tmp_path / "crawl", 2, assemble, Wire(random.Random(7), **wire))  # type: ignore[arg-type]
        assert asyncio.run(running.run(meddle, WITHIN_S)) == "finished"
        ends = ends_of(config, tmp_path / "crawl", running.shards)
        log = simweb.requests()
        differences = Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web)
        return running, differences, judge(log, PROMISES["polite"], simweb.web, restarts=kills)


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
@pytest.mark.long
def test_shards_are_added_and_emptied_while_the_crawl_runs(tmp_path: Path) -> None:
    scaler = Scaler((30, 5), (150, 3))
    running, differences, broken = moved(tmp_path, scaler)
    assert scaler.done == [5, 3]
    assert (differences, broken) == ([], [])
    assert running.deaths == 0
    require_kept_where_owned(running, tmp_path / "crawl")
    assert set(running.coordination.moves.owners) == {0, 1, 2}


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
@pytest.mark.parametrize("kind", [Shards, ManyCommits])
@pytest.mark.long
def test_kills_and_a_bad_wire_change_nothing_while_partitions_move(tmp_path: Path, kind: type[Shards]) -> None:
    scaler, dice = Scaler((20, 5), (120, 3), (200, 4)), random.Random(3)
    killed: list[float] = []

    async def meddle(running: Shards) -> None:
        await scaler(running)
        moves = running.coordination.moves
        if moves.is_moving and len(killed) < 12 and dice.random() < 0.25:
            number = dice.choice(sorted(running.members))
            killed.append(time.time())
            await running.kill(number)
            if dice.random() < 0.3:
                running.coordinate()
            await running.start(number)

    running, differences, broken = moved(tmp_path, meddle, kind, killed, lost=0.1, doubled=0.1, delay_s_max=0.1)
    assert scaler.done == [5, 3, 4]
    assert len(killed) >= 6
    # What a killed shard had not committed is requested once more.
    assert (differences, [one for one in broken if one.kind != "repeated"]) == ([], [])
    assert set(running.coordination.moves.owners) == {0, 1, 2, 3}
    require_kept_where_owned(running, tmp_path / "crawl")


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
@pytest.mark.parametrize("kind", [Shards, ManyCommits])
@pytest.mark.parametrize("backend", BACKENDS, ids=("memory", "bloom", "diskmerge"))
@pytest.mark.long
def test_each_backend_moves_with_its_partitions(tmp_path: Path, kind: type[Shards], backend: tuple[str, ...]) -> None:
    """Partitions also come back to shards that had them, and shards die meanwhile."""
    scaler, dice = Scaler((20, 5), (80, 2), (160, 4), (220, 2)), random.Random(5)
    killed: list[float] = []

    async def meddle(running: Shards) -> None:
        await scaler(running)
        if running.coordination.moves.is_moving and len(killed) < 8 and dice.random() < 0.2:
            number = dice.choice(sorted(running.members))
            killed.append(time.time())
            await running.kill(number)
            await running.start(number)

    running, differences, broken = moved(tmp_path, meddle, kind, killed, backend)
    assert scaler.done == [5, 2, 4, 2]
    assert (differences, [one for one in broken if one.kind != "repeated"]) == ([], [])
    require_kept_where_owned(running, tmp_path / "crawl")


@pytest.mark.heavy
@pytest.mark.long
def test_a_crawl_that_stops_while_partitions_move_goes_on_with_them(tmp_path: Path) -> None:
    """All processes end, in the middle of moves, and begin again with what the coordinator kept."""
    scaler, directory = Scaler((30, 4)), tmp_path / "crawl"

    async def meddle(running: Shards) -> None:
        await scaler(running)
        if any(report.settled for report in running.reports()):
            await running.stop()

    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2, *keys("polite"))
        running = ManyCommits(config, directory, 2, assemble)
        assert asyncio.run(running.run(meddle, WITHIN_S)) == "stopped"
        kept = msgspec.msgpack.decode(running._kept, type=CoordinatorRecord)
        assert kept.moves.is_moving
        kept.end = ""  # As `ClusterCrawler` begins.
        again = ManyCommits(config, directory, 2, assemble)
        again.shards, again._kept = 4, msgspec.msgpack.encode(kept)
        assert asyncio.run(again.run(within_s=WITHIN_S)) == "finished"
        ends = ends_of(config, directory, 4)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        assert judge(simweb.requests(), PROMISES["polite"], simweb.web) == []
    assert set(again.coordination.moves.owners) == {0, 1, 2, 3}
    require_kept_where_owned(again, directory)


@pytest.mark.heavy
@pytest.mark.parametrize("kind", [Shards, ManyCommits])
@pytest.mark.long
def test_what_redirects_of_seeds_bring_in_is_found_while_partitions_move(tmp_path: Path, kind: type[Shards]) -> None:
    """Links that wait for the scope stay with the shard that found them; open seeds go with their partition."""
    behaviours = ("redirects", "robots_part", "frames", "distinct")
    options = SimwebOptions(seed=11, hosts=12, pages=200, behaviours=behaviours, same_host_share=0.5, links_per_page=12)
    scaler = Scaler((0, 4), (20, 2), (60, 3))
    with SimwebProcess(options, tmp_path / "web") as simweb:
        web = simweb.web
        seeds = (web.fronts[0], web.fronts[4])
        config = config_of(simweb, tmp_path / "crawl", 2, seeds=seeds, scope="domain")
        running = kind(config, tmp_path / "crawl", 2, assemble)
        assert asyncio.run(running.run(scaler, WITHIN_S)) == "finished"
        ends = ends_of(config, tmp_path / "crawl", running.shards)
        assert Truth(web).walk(seeds, "domain").differences(ends, web) == []
    assert scaler.done == [4, 2, 3]
    require_kept_where_owned(running, tmp_path / "crawl")


def require_kept_where_owned(running: Shards, directory: Path) -> None:
    """Require that each shard has keys of its own partitions alone, but for links that wait for the scope."""
    owners = running.coordination.moves.owners
    for number in range(running.shards):
        store = Store(Home(directory, number, running.shards).store)
        for family in FAMILIES:
            stays = family == "scope" or (family == "seen" and running.config.seen.backend != "rocksdb")
            found = {int.from_bytes(key[:2]) for key, _ in store.scan(family, *PARTITIONED) if not stays}
            assert {owners[partition] for partition in found} <= {number}, family
        store.close()
