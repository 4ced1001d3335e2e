"""Random walks over several shards: walkers travel to the shard of their next page, none is lost or doubled by a kill,
and the sample is as uniform as that of one shard.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from gossamer.api import sample_of, scale_crawl
from gossamer.assembly.building import assemble
from gossamer.assembly.stopped import open_stopped
from gossamer.cluster.exchange import Exchange, ShardRun
from gossamer.cluster.options import ClusterOptions
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import effective_toml
from gossamer.lab.simweb.judge import repeats
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.model.errors import ConfigError
from gossamer.model.links import Link, TravellingWalker
from gossamer.stages.frontier.walk import RandomWalk
from gossamer.stages.frontier.walked import WalkedPages, all_pages, sample
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer
from gossamer.world.clock import WallClock
from gossamer.world.dice import Dice
from tests.cluster.arrived import take_arrived
from tests.cluster.crawls import config_of
from tests.faults.shards import Shards, Wire
from tests.further import with_further
from tests.stages.frontier.names import named
from tests.stages.frontier.test_walk import Walking, Web, check_samples, chi_square, generated, web_by_popularity


def owners_of(web: Web, shards: int) -> PartitionMap:
    """Return a map that divides the hosts of a web evenly."""
    return PartitionMap.even(shards).share_out({named(page).partition for page in web})


class Member(Walking):
    """One shard of a walk, with its exchange."""

    def __init__(self, number: int, directory: Path, web: Web, owners: PartitionMap, **options: object) -> None:
        self.number = number
        self.owners = owners
        self.opening = 0
        directory.mkdir()
        super().__init__(directory, web, seed=100 + number, **options)  # type: ignore[arg-type]

    def open(self) -> None:
        self.opening += 1
        self.frontier = self.shard.open(self.now)
        epochs = self.shard.epochs
        self.walk = self.frontier.strategy = RandomWalk(
            self.frontier, epochs, self.options, named, self.shard.dice, begins=not self.number
        )
        run = ShardRun(self.number, self.opening)
        self.exchange = Exchange(run, self.owners, epochs, ClusterOptions(), Namer(), WallClock())
        self.exchange.attach(self, nothing)  # type: ignore[arg-type]
        self.walk.others = self.exchange
        self.commit()

    def commit(self) -> None:
        self.frontier.cut(self.now)
        self.exchange.cut(self.now)
        epoch = self.shard.epochs.cut()
        self.shard._cut = epoch, self.shard.contacts.ended_since_commit
        self.shard.commit()
        self.shard.settle()
        self.exchange.on_commit(epoch)

    def take_walker(self, walker: TravellingWalker) -> None:
        self.walk.arrive(walker, self.now)

    def note_walked_hosts(self, shard: int, hosts: int) -> None:
        self.walk.note_hosts(shard, hosts)

    def discover(self, links: list[Link]) -> None:
        assert not links, "seeds and links are given where they belong"


async def nothing() -> None: ...


def members_of(tmp_path: Path, web: Web, shards: int, *seeds: str, **options: object) -> list[Member]:
    """Return the shards of a walk, with their seeds."""
    owners = owners_of(web, shards)
    members = [Member(number, tmp_path / f"shard-{number}", web, owners, **options) for number in range(shards)]
    for seed in seeds:
        members[owners.owner(named(seed).partition)].seed(seed)
    return members


def deliver(members: list[Member], dice: random.Random, lost: float = 0.0) -> bool:
    """Carry frames between shards, some of them twice and some not at all; return whether any were sent."""
    frames = [(to, data) for one in members for to, data in one.exchange.outgoing(one.now)]
    for to, data in frames:
        for _ in range(0 if dice.random() < lost else 1 + (dice.random() < lost)):
            members[to].exchange.take(data, members[to].now)
            take_arrived(members[to].exchange)
    return bool(frames)


def go(members: list[Member]) -> None:
    """Walk to the end."""
    dice = random.Random(1)
    moves = True
    while moves:
        fetched = sum(one.go() for one in members)
        for one in members:
            one.commit()
        moves = deliver(members, dice) or bool(fetched)


def walkers_in(members: list[Member]) -> list[int]:
    return sorted(number for one in members for number in one.walk._walkers)


def close(members: list[Member]) -> None:
    for one in members:
        one.shard.crash()


@pytest.mark.promise("Several shards", "A walker of a random walk is neither lost nor doubled by a kill of a shard.")
@pytest.mark.parametrize("shards", [2, pytest.param(3, marks=(pytest.mark.acceptance, pytest.mark.long))])
@pytest.mark.heavy
def test_no_kill_loses_or_doubles_a_walker_on_its_way(tmp_path: Path, shards: int) -> None:
    web = generated(random.Random(3), pages=120, hosts=12)
    members = members_of(tmp_path, web, shards, "http://h0.test/0", walkers=5, steps_max=300)
    dice = random.Random(shards)
    durable: list[list[str]] = [[] for _ in members]
    kills = 0
    is_quiet = 0
    while is_quiet < 8:
        fetched = 0
        for one in members:
            fetched += one.go(3)
            if dice.random() < 0.5:
                one.commit()
                durable[one.number] = list(one.fetched)
            elif dice.random() < 0.3:
                kills += 1
                one.shard.crash()
                one.now += 10.0
                one.fetched = list(durable[one.number])
                one.open()
        for one in members:
            one.now += 1.0
        is_quiet = 0 if deliver(members, dice, lost=0.1) or fetched else is_quiet + 1
    for one in members:
        one.commit()
    assert kills > 20
    assert walkers_in(members) == [0, 1, 2, 3, 4]
    assert {walker.steps for one in members for walker in one.walk._walkers.values()} == {60}
    assert sum(sum(one.visits().values()) for one in members) == 300, "every step arrives once"
    every = [page for pages in durable for page in pages]
    assert len(every) == len(set(every))
    close(members)


def test_a_walk_goes_on_where_its_only_seed_is_in_another_shard(tmp_path: Path) -> None:
    web = {"http://a.test/": ["http://b.test/"], "http://b.test/": ["http://a.test/"]}
    owners = owners_of(web, 2)
    seed = next(page for page in web if owners.owner(named(page).partition) == 1)
    members = members_of(tmp_path, web, 2, seed, walkers=3, steps_max=90)
    assert not members[0].walk.can_offer(), "no shard has told of a host"
    go(members)
    assert [len(one.fetched) for one in members] == [1, 1]
    assert sum(sum(one.visits().values()) for one in members) == 90
    close(members)


def test_walks_restart_at_the_hosts_of_all_shards_alike(tmp_path: Path) -> None:
    """Pages without links: each step is a restart."""
    web: Web = {f"http://h{number}.test/": [] for number in range(12)}
    members = members_of(tmp_path, web, 3, *web, walkers=8, steps_max=2_400)
    go(members)
    visits = Counter({named(page).fingerprint: count for one in members for page, count in one.visits().items()})
    assert visits.total() == 2_400
    assert chi_square(visits, Counter(dict.fromkeys(visits, 1))) < 31.26, (
        "eleven degrees of freedom, once in a thousand"
    )
    close(members)


@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.promise("What is fetched", "`gossamer sample` draws a seed as often as any other page.")
@pytest.mark.parametrize("shards", with_further(2, 3))
def test_a_sample_of_several_shards_is_uniform(tmp_path: Path, shards: int) -> None:
    """As `tests/stages/frontier/test_walk.py` does with one shard."""
    web, seed, group_of = web_by_popularity(hosts=6)
    met: Counter[int] = Counter()
    drawn: Counter[int] = Counter()
    for number in range(40):
        directory = tmp_path / str(number)
        directory.mkdir()
        members = members_of(directory, web, shards, seed, walkers=16, steps_max=2_500)
        for one in members:
            one.shard.dice = one.walk._dice = one.walk._walked._dice = Dice(1_000 * number + one.number)
        go(members)
        fetched = [page for one in members for page in one.fetched]
        met.update(group_of[page] for page in random.Random(number).sample(fetched, 20))
        epochs = [one.shard.epochs for one in members]
        drawn.update(group_of[page.url] for page in sample(epochs, 20, 1 / 7, named, Dice(number)))
        close(members)
    check_samples(met, drawn, group_of)


@pytest.mark.heavy
@pytest.mark.long
def test_a_walk_of_three_shards_ends_with_all_its_steps_though_shards_are_killed(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    directory.mkdir()
    sets = ("frontier.strategy='walk'", "walk.walkers=6", "walk.steps_max=900")
    dice = random.Random(5)
    killed = 0

    async def meddle(running: Shards) -> None:
        nonlocal killed
        if killed < 6 and dice.random() < 0.25:
            killed += 1
            number = dice.randrange(3)
            await running.kill(number)
            await running.start(number)

    with SimwebProcess(SimwebOptions.plain(seed=7, hosts=9, pages=120), tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 3, *sets)
        (directory / "crawl.toml").write_text(effective_toml(config))
        wire = Wire(random.Random(7), lost=0.1, doubled=0.1, delay_s_max=0.1)
        running = Shards(config, directory, 3, assemble, wire)
        running.partitions = owners_of({url: [] for url in Truth(simweb.web).walk(simweb.seeds).pages}, 3)
        assert asyncio.run(running.run(meddle)) == "finished"
        twice = repeats(simweb.requests(), simweb.web)
    assert killed == 6
    assert sum(twice.values()) <= 6 * 20, "only what a killed shard had not committed"
    steps = []
    pages = []
    for shard in range(3):
        with closing(open_stopped(config, directory, shard, 3)) as opened:
            epochs = Epochs(opened.store)
            steps.append(WalkedPages(epochs, Dice(0)).counts.steps)
            pages.append([page for _, page in all_pages(epochs) if page.outcome])
    assert sum(steps) == sum(page.visits for some in pages for page in some) == 900
    assert all(steps), "walkers came to each shard"
    fetched = {page.url for some in pages for page in some if page.outcome == "fetched"}
    assert {str(page["url"]) for page in sample_of(directory, 1_000)} == fetched
    assert len(sample_of(directory, 10, seed=1)) == 10
    with pytest.raises(ConfigError, match="keeps its number of shards"):
        scale_crawl(directory, 2)
