"""A site whose hosts are divided among shards: the same pages, and its limits hold for all shards together."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.api import scale_crawl
from gossamer.assembly.building import assemble
from gossamer.assembly.home import Home
from gossamer.config.gather import reopen
from gossamer.lab.simweb.judge import repeats
from gossamer.lab.simweb.log import Logged
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.model.errors import ConfigError
from gossamer.state.schema import PARTITIONED
from gossamer.state.store import Store
from tests.cluster.crawls import begun, config_of, crawl, ended, finished
from tests.cluster.restoring import Mischief, RestoredShards
from tests.cluster.test_moves import Scaler
from tests.faults.shards import Shards, Wire

SITE = "d000.test"
SPLIT = f'url.split_sites=["{SITE}"]'
SHARDS = 3
DELAY_S = 0.05
WEB = SimwebOptions(
    seed=5, hosts=12, hosts_per_site=12, names_per_address=2, pages=48, latency_s=0.01, links_per_page=8,
    same_host_share=0.4, bytes_median=1_000, zipf_exponent=0.2,
    behaviours=("robots_404", "robots_part", "redirects"),
)  # fmt: skip


class Deaths:
    """Kills a shard now and then, and starts it again."""

    def __init__(self, most: int, every: int) -> None:
        """`every`: rounds from one death to the next."""
        self.most = most
        self.every = every
        self.rounds = 0

    async def __call__(self, shards: Shards) -> None:
        self.rounds += 1
        if self.rounds % self.every == 0 and shards.deaths < self.most:
            await shards.kill(shards.deaths % SHARDS)
            await shards.start((shards.deaths - 1) % SHARDS)


def pages_of_each(directory: Path) -> list[int]:
    """Return how many URLs each shard has."""
    found = []
    for number in range(SHARDS):
        store = Store(Home(directory, number, SHARDS).store)
        found.append(sum(1 for _ in store.scan("page", *PARTITIONED)))
        store.close()
    return found


def most_at_once(log: Sequence[Logged]) -> int:
    """Return how many requests of all hosts were at the server at once."""
    instants = sorted([(one.contact_at, 1) for one in log] + [(one.ended_at, -1) for one in log])
    most = now = 0
    for _, step in instants:
        now += step
        most = max(most, now)
    return most


def least_gap_s(log: Sequence[Logged]) -> float:
    """Return the shortest time from the end of a request to the beginning of the next one, of whatever host."""
    ordered = sorted(log, key=lambda one: one.contact_at)
    return min(after.contact_at - before.ended_at for before, after in pairwise(ordered))


@pytest.mark.promise("Several shards", "The hosts of a site in `url.split_sites` are divided among the shards.")
@pytest.mark.heavy
def test_the_hosts_of_one_site_are_fetched_by_all_shards(tmp_path: Path) -> None:
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        # So few hosts of it are in memory at once that the others wait in the index, in several partitions.
        config = config_of(simweb, tmp_path / "crawl", SHARDS, SPLIT, "frontier.active_site_hosts_first=1")
        ends, _ = crawl(config, tmp_path / "crawl", SHARDS)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
    assert min(pages_of_each(tmp_path / "crawl")) > 0
    undivided = config_of(simweb, tmp_path / "crawl", SHARDS)
    with pytest.raises(ConfigError, match=r"url\.split_sites: this crawl began with \['d000.test'\] and keeps it"):
        Shards(undivided, tmp_path / "crawl", SHARDS, assemble).check()


@pytest.mark.heavy
@pytest.mark.long
def test_a_split_site_goes_on_with_another_number_of_shards(tmp_path: Path) -> None:
    """With hosts that wait for their site in the index of a shard that has them no more."""
    directory = tmp_path / "crawl"
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, SHARDS, SPLIT, "frontier.active_site_hosts_first=1")
        begun(config, directory, SHARDS, pages=20)
        for shards in (2, 1, SHARDS):
            assert scale_crawl(directory, shards).after == shards
        ends = ended(reopen(directory / "crawl.toml"), directory, SHARDS)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        assert repeats(simweb.requests(), simweb.web) == {}
    assert min(pages_of_each(directory)) > 0


@pytest.mark.heavy
@pytest.mark.promise(
    "Several shards", "The limits of a site whose hosts are divided hold for all shards together, also when shards die."
)
@pytest.mark.long
def test_the_delay_of_a_split_site_holds_while_shards_die(tmp_path: Path) -> None:
    sets = (SPLIT, "politeness.per_site=1", f"politeness.site_delay_s={DELAY_S}")
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", SHARDS, *sets)
        ends, running = crawl(
            config, tmp_path / "crawl", SHARDS, Deaths(3, 20), lost=0.05, doubled=0.05, delay_s_max=0.02
        )
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        log = simweb.requests()
    assert running.deaths == 3
    assert least_gap_s(log) >= DELAY_S
    assert min(pages_of_each(tmp_path / "crawl")) > 0


@pytest.mark.acceptance
@pytest.mark.long
def test_the_delay_of_a_split_site_holds_while_shards_go_back_to_checkpoints(tmp_path: Path) -> None:
    """And while wires are cut."""
    sets = (
        SPLIT,
        "politeness.per_site=1",
        f"politeness.site_delay_s={DELAY_S}",
        "state.checkpoint_uri='file:///copies'",
    )
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", SHARDS, *sets)
        wire = Wire(random.Random(7), lost=0.05, doubled=0.05, delay_s_max=0.02)
        running = RestoredShards(config, tmp_path / "crawl", SHARDS, wire)
        ends = finished(running, Mischief(4, 6, pause_rounds=8))
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        log = simweb.requests()
    assert running.deaths == 6
    assert running.restores > 0
    assert least_gap_s(log) >= DELAY_S
    assert min(pages_of_each(tmp_path / "crawl")) > 0


@pytest.mark.heavy
def test_a_split_site_has_as_many_requests_at_once_as_it_permits_and_no_more(tmp_path: Path) -> None:
    with SimwebProcess(replace(WEB, latency_s=0.05), tmp_path / "web") as simweb:
        sets = (SPLIT, "politeness.per_site=4")
        config = config_of(simweb, tmp_path / "crawl", SHARDS, *sets)
        ends, running = crawl(
            config, tmp_path / "crawl", SHARDS, Deaths(3, 8), lost=0.05, doubled=0.05, delay_s_max=0.02
        )
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        log = simweb.requests()
    assert running.deaths == 3
    assert most_at_once(log) == 4


@pytest.mark.heavy
@pytest.mark.promise(
    "Several shards", "The limits of a site whose hosts are divided hold for all shards together, also when shards die."
)
@pytest.mark.parametrize("active", [1, 100])
@pytest.mark.long
def test_the_delay_of_a_split_site_holds_while_its_hosts_move_between_running_shards(
    tmp_path: Path, active: int
) -> None:
    """Also of hosts that wait in the index until another host of the site leaves memory (`active` 1)."""
    sets = (
        SPLIT,
        "politeness.per_site=1",
        f"politeness.site_delay_s={DELAY_S}",
        f"frontier.active_site_hosts_first={active}",
    )
    scaler, deaths = Scaler((8, 5), (25, 2), (40, 4)), Deaths(4, 25)

    async def meddle(running: Shards) -> None:
        await scaler(running)
        await deaths(running)

    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", SHARDS, *sets)
        ends, running = crawl(config, tmp_path / "crawl", SHARDS, meddle, lost=0.05, doubled=0.05, delay_s_max=0.02)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        log = simweb.requests()
    assert scaler.done == [5, 2, 4]
    assert running.deaths == 4
    assert least_gap_s(log) >= DELAY_S
