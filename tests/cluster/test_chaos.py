"""Shards die, come back, come back older; frames are lost, doubled, late, cut off: all ends as in a calm crawl."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gossamer.lab.shards import Shards
from gossamer.lab.simweb.judge import judge
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from tests.cluster.crawls import config_of, crawl
from tests.ring.test_politeness import PROMISES, keys

SHARDS = 4
PATIENT = ("fetch.connect_s_max=20.0", "fetch.request_s_max=20.0")
"""Every server answers: a loop that deaths and restorations hold up on a busy machine must not look like one that does
not."""
DEATHS_MIN = 24


class Mischief:
    """Kills, restores, copies and cuts wires, by the dice, until there was enough of it."""

    def __init__(self, seed: int, deaths: int, pause_rounds: int = 2) -> None:
        self.dice = random.Random(seed)
        self.deaths = deaths
        self.pause_rounds = pause_rounds
        self.rounds = 0

    async def __call__(self, shards: Shards) -> None:
        self.rounds += 1
        dice = self.dice
        if shards.deaths >= self.deaths:
            shards.wire.cut.clear()
            return
        if dice.random() < 0.5:
            await shards.checkpoint(dice.randrange(shards.shards))
        if dice.random() < 0.2:
            shards.wire.cut = {frozenset(dice.sample(range(shards.shards), 2))}
        elif dice.random() < 0.4:
            shards.wire.cut.clear()
        if self.rounds % self.pause_rounds == 0:
            number = dice.randrange(shards.shards)
            await shards.kill(number)
            if dice.random() < 0.5:
                shards.restore(number)
            await shards.start(number)


@pytest.mark.promise(
    "Several shards", "Killed shards, coordinators and machines, and lost or repeated messages, change no final page."
)
def test_the_result_is_that_of_a_calm_crawl(tmp_path: Path) -> None:
    """Two dozen deaths, about half of them with an older checkpoint restored, on a wire that cannot be trusted."""
    web = SimwebOptions(
        seed=5, hosts=24, pages=1200, latency_s=0.1, links_per_page=10, same_host_share=0.4, bytes_median=2_000,
        behaviours=("robots_404", "robots_part", "robots_redirect_host", "redirects", "copies", "nofollow", "distinct"),
    )  # fmt: skip
    with SimwebProcess(web, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", SHARDS, "state.checkpoint_uri='file:///copies'", *PATIENT)
        mischief = Mischief(3, DEATHS_MIN)
        ends, running = crawl(config, tmp_path / "crawl", SHARDS, mischief, lost=0.1, doubled=0.1, delay_s_max=0.1)
        walked = Truth(simweb.web).walk(simweb.seeds)
    assert walked.differences(ends, simweb.web) == []
    assert running.deaths >= DEATHS_MIN
    assert running.restores >= DEATHS_MIN // 4


@pytest.mark.promise(
    "Several shards", "One shard at a time sends requests to an address, and its delays hold for all shards."
)
def test_no_promise_is_broken_over_several_shards(tmp_path: Path) -> None:
    """Sites on different shards share addresses: the servers' log knows nothing of shards."""
    promise = PROMISES["polite"]
    web = SimwebOptions(
        seed=7, hosts=24, pages=160, links_per_page=6, latency_s=0.01, names_per_address=8, same_host_share=0.5,
        behaviours=("robots_404", "robots_part", "robots_redirect_host"),
    )  # fmt: skip
    with SimwebProcess(web, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", SHARDS, *keys("polite"), *PATIENT)
        ends, running = crawl(config, tmp_path / "crawl", SHARDS)
        walked = Truth(simweb.web).walk(simweb.seeds)
        log = simweb.requests()
    assert walked.differences(ends, simweb.web) == []
    assert judge(log, promise, simweb.web) == []
    assert running.deaths == 0


def test_no_promise_is_broken_by_shards_that_die(tmp_path: Path) -> None:
    promise = PROMISES["polite"]
    web = SimwebOptions(
        seed=9, hosts=24, pages=160, links_per_page=6, latency_s=0.01, names_per_address=8, same_host_share=0.5,
        behaviours=("robots_404", "robots_part", "robots_redirect_host"),
    )  # fmt: skip
    with SimwebProcess(web, tmp_path / "web") as simweb:
        sets = (*keys("polite"), *PATIENT, "state.checkpoint_uri='file:///copies'")
        config = config_of(simweb, tmp_path / "crawl", SHARDS, *sets)
        mischief = Mischief(4, 12, pause_rounds=6)
        ends, running = crawl(config, tmp_path / "crawl", SHARDS, mischief, lost=0.05, delay_s_max=0.05)
        walked = Truth(simweb.web).walk(simweb.seeds)
        log = simweb.requests()
    assert walked.differences(ends, simweb.web) == []
    broken = judge(log, promise, simweb.web, restarts=running.restarts)
    assert [one for one in broken if one.kind != "repeated"] == []
    assert running.deaths >= 12
