"""The walk: where walkers go, that it ends, that no death loses them, and how even the sample is."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.model.links import SEED_ARGUMENT, Link
from gossamer.model.visits import Contact
from gossamer.stages.frontier.options import PolitenessOptions, WalkOptions
from gossamer.stages.frontier.walk import RandomWalk
from gossamer.stages.frontier.walked import _arrivals, _poisson_mean, all_pages, sample
from gossamer.state.schema import WALK_COUNTS, WALKERS
from gossamer.world.dice import Dice
from tests.stages.frontier.disk import check_disk
from tests.stages.frontier.names import T0, Shard, named

Web = dict[str, list[str]]
SMALL: Web = {
    "http://a.test/": ["http://a.test/1", "http://b.test/"],
    "http://a.test/1": ["http://a.test/"],
    "http://b.test/": ["http://b.test/gone", "http://a.test/1"],
}


class Walking:
    """A shard that walks a web in a dictionary."""

    def __init__(self, directory: Path, web: Web, seed: int = 1, preset: Any = "own", **options: Any) -> None:
        self.web = web
        self.shard = Shard(directory, PolitenessOptions(preset=preset, per_host=1), seed=seed)
        self.options = WalkOptions(**options)
        self.now = T0
        self.fetched: list[str] = []
        self.open()

    def open(self) -> None:
        self.frontier = self.shard.open(self.now)
        self.walk = self.frontier.strategy = RandomWalk(
            self.frontier, self.shard.epochs, self.options, named, self.shard.dice, begins=True
        )

    def seed(self, *texts: str) -> None:
        for text in texts:
            self.frontier.add(Link(named(text), "seed", 0, seed=SEED_ARGUMENT), 0, self.now)

    def commit(self) -> None:
        self.frontier.cut(self.now)
        self.shard._cut = self.shard.epochs.cut(), self.shard.contacts.ended_since_commit
        self.shard.commit()
        self.shard.settle()

    def go(self, pages: int = 1_000_000) -> int:
        """Fetch until nobody moves, or so many pages more; return how many."""
        begun = len(self.fetched)
        while len(self.fetched) - begun < pages:
            lease = self.frontier.select(self.now)
            if lease is None:
                wake_at = self.frontier.wake_at()
                if wake_at is None:
                    break
                self.now = max(self.now, wake_at)
            elif not lease.address:
                self.frontier.locate(lease, lease.url.host, self.now + 1e9, self.now)
            else:
                assert self.frontier.begin(lease, self.now)
                self.now += 0.01
                self.frontier.ended(lease, Contact(0.01, "answered"), self.now)
                text = lease.url.text
                self.fetched.append(text)
                self.frontier.finish(lease, "fetched" if text in self.web else "http_error", self.now)
                links = [Link(named(to), "anchor", 1, 0, text) for to in self.web.get(text, [])]
                self.frontier.linked(lease.url, links)
        return len(self.fetched) - begun

    def visits(self) -> dict[str, int]:
        return {page.url: page.visits for _, page in all_pages(self.shard.epochs) if page.outcome}


@pytest.mark.promise("What is fetched", "A random walk fetches a page once, loses no walker in a crash and ends.")
def test_a_page_is_fetched_once_however_often_a_walker_comes_by(tmp_path: Path) -> None:
    walking = Walking(tmp_path, SMALL, walkers=3, steps_max=500)
    walking.seed("http://a.test/")
    walking.go()
    assert sorted(walking.fetched) == ["http://a.test/", "http://a.test/1", "http://b.test/", "http://b.test/gone"]
    assert sum(walking.visits().values()) == 500, "every step arrives somewhere"
    assert walking.frontier.wake_at() is None
    assert walking.frontier.counts.discovered == 4
    walking.commit()
    check_disk(walking.shard.store, walking.shard.frontier)
    walking.shard.crash()


def test_walkers_follow_links_as_often_as_they_begin_anew_says(tmp_path: Path) -> None:
    web = {f"http://h{host}.test/": [f"http://h{(host + 1) % 9}.test/"] for host in range(9)}
    walking = Walking(tmp_path, web, walkers=2, steps_max=4_000, restart_share=0.25)
    walking.seed("http://h0.test/")
    walking.go()
    restarts = walking.walk._walked.counts.restarts
    assert abs(restarts / 4_000 - 0.25) < 0.04
    walking.shard.crash()


def test_a_walk_without_anywhere_to_begin_is_over(tmp_path: Path) -> None:
    walking = Walking(tmp_path, SMALL)
    assert walking.frontier.select(T0) is None
    assert walking.frontier.wake_at() is None
    walking.frontier.add(Link(named("http://a.test/1"), "anchor", 1), 0, T0)
    assert walking.frontier.wake_at() is None, "only seeds begin a walk"
    walking.shard.crash()


@pytest.mark.promise("What is fetched", "A random walk fetches a page once, loses no walker in a crash and ends.")
@pytest.mark.heavy
def test_no_death_loses_a_walker_and_none_fetches_twice_what_is_committed(tmp_path: Path) -> None:
    web = generated(random.Random(3), pages=300, hosts=12)
    walking = Walking(tmp_path, web, walkers=5, steps_max=900)
    walking.seed("http://h0.test/0")
    durable: list[str] = []
    for _ in range(400):
        made = walking.go(7)
        durable += walking.fetched[len(walking.fetched) - made :]
        walking.commit()
        check_disk(walking.shard.store, walking.shard.frontier)
        if not made:
            break
        walking.go(3)
        walking.shard.crash()
        walking.now += 1.0
        walking.open()
        walking.fetched = list(durable)
        ended = sum(one.steps == 180 for one in walking.walk._walkers.values() if not one.awaits)
        assert len(walking.walk._idle) + sum(map(len, walking.walk._awaited.values())) + ended == 5
    else:
        raise AssertionError("it does not end")
    assert len(set(durable)) == len(durable)
    assert sum(walking.visits().values()) == 900
    walking.shard.crash()


def test_walkers_on_the_way_to_a_host_that_closes_begin_anew(tmp_path: Path) -> None:
    web = {"http://a.test/": ["http://closed.test/"], "http://closed.test/": ["http://a.test/"]}
    walking = Walking(tmp_path, web, walkers=4, steps_max=200)
    walking.seed("http://a.test/")
    walking.go(1)
    lease = walking.frontier.select(walking.now)
    assert lease is not None
    assert named("http://closed.test/").fingerprint in walking.walk._awaited
    walking.frontier.control.close(named("http://closed.test/"), "its owner said so", walking.now)
    walking.frontier.return_lease(lease, walking.now)
    walking.go()
    walking.commit()
    assert walking.visits()["http://closed.test/"] > 0
    assert walking.fetched.count("http://closed.test/") == 0
    assert sum(walking.visits().values()) == 200
    walking.shard.crash()


@pytest.mark.promise("What is fetched", "A random walk is as polite as a breadth-first crawl.")
def test_a_walk_is_as_polite_as_a_sweep(tmp_path: Path) -> None:
    web = generated(random.Random(3), pages=60, hosts=2)
    walking = Walking(tmp_path, web, walkers=8, steps_max=150, preset="polite")
    walking.seed("http://h0.test/0", "http://h1.test/1")
    begun: dict[str, list[float]] = {}
    gates = walking.shard.frontier
    begin = gates.begin

    def noted(lease: Any, now: float) -> bool:
        begun.setdefault(lease.url.host, []).append(now)
        return begin(lease, now)

    gates.begin = noted  # type: ignore[method-assign]
    walking.go()
    assert len(walking.fetched) > 30
    for instants in begun.values():
        assert all(later - earlier >= 1.0 for earlier, later in itertools.pairwise(instants))
    walking.shard.crash()


def test_of_more_links_than_are_kept_a_random_part_is(tmp_path: Path) -> None:
    web = {"http://a.test/": [f"http://a.test/{number}" for number in range(200)]}
    walking = Walking(tmp_path, web, walkers=1, steps_max=2, links_max=10)
    walking.seed("http://a.test/")
    walking.go(1)
    page = next(page for _, page in all_pages(walking.shard.epochs) if page.outcome)
    assert len(set(page.links)) == 10
    assert sorted(page.links) != sorted(web["http://a.test/"])[:10]
    walking.shard.crash()


def test_each_page_is_kept_once_to_begin_at_and_neither_itself_nor_what_it_embeds_is_a_way_on(tmp_path: Path) -> None:
    """A seed that counted twice would be begun at twice as often as its neighbours."""
    walking = Walking(tmp_path, SMALL, walkers=2, steps_max=300)
    walking.seed("http://a.test/", "http://a.test/")
    for _ in range(4):
        walking.go(1)
    seed = named("http://a.test/")
    page = walking.walk._page(seed)
    assert page is not None
    others = [("http://a.test/", "anchor"), ("http://a.test/1", "anchor"), ("http://a.test/i.png", "embed")]
    walking.frontier.linked(seed, [Link(named(text), kind, 1) for text, kind in others])
    assert [one.links for _, one in all_pages(walking.shard.epochs) if one.url == seed.text] == [["http://a.test/1"]]
    walking.go()
    walking.commit()
    starts = Counter(value for key, value in walking.shard.store.scan("walk", b"\0\0", b"\xff\xfe") if key[2:3] == b"i")
    fetched = {
        named(page.url).fingerprint.to_bytes(8)
        for _, page in all_pages(walking.shard.epochs)
        if page.outcome == "fetched"
    }
    assert starts == dict.fromkeys(fetched, 1)
    walking.shard.crash()


def test_the_depth_of_a_page_is_one_more_than_that_of_the_page_that_led_there(tmp_path: Path) -> None:
    web = {f"http://a.test/{number}": [f"http://a.test/{number + 1}"] for number in range(6)}
    walking = Walking(tmp_path, web, walkers=1, steps_max=200, restart_share=0.1)
    walking.seed("http://a.test/0")
    walking.go()
    depths = {page.url: page.depth for _, page in all_pages(walking.shard.epochs) if page.outcome}
    assert depths == {f"http://a.test/{number}": number for number in range(7)}
    walking.shard.crash()


def test_who_awaits_a_page_under_way_at_a_host_that_closes_comes_there_once(tmp_path: Path) -> None:
    away = [f"http://closed.test/{number}" for number in range(4)]
    web = {"http://a.test/": away} | {page: ["http://a.test/"] for page in away}
    walking = Walking(tmp_path, web, walkers=8, steps_max=50)
    walking.seed("http://a.test/")
    walking.go(1)
    lease = None
    while lease is None or not lease.address:
        if lease is not None:
            walking.frontier.locate(lease, lease.url.host, walking.now + 1e9, walking.now)
        lease = walking.frontier.select(walking.now)
        walking.now += 0.0 if lease is not None else 1.0
    assert lease.url.host == "closed.test"
    assert walking.frontier.begin(lease, walking.now)
    walking.frontier.control.close(lease.url, "its owner said so", walking.now)
    assert len(walking.walk._awaited) > 1, "others wait for its other pages, and are let go"
    for _ in range(5):
        walking.frontier.select(walking.now)
    assert lease.url.fingerprint in walking.walk._awaited
    awaiting = len(walking.walk._awaited[lease.url.fingerprint])
    assert list(walking.walk._awaited) == [lease.url.fingerprint], "it is under way"
    before = walking.visits().get(lease.url.text, 0)
    walking.frontier.ended(lease, Contact(0.01, "answered"), walking.now)
    walking.frontier.finish(lease, "fetched", walking.now)
    assert walking.visits()[lease.url.text] == before + awaiting
    walking.go()
    assert sum(walking.visits().values()) == 50
    walking.shard.crash()


def test_walkers_of_an_older_crawl_go_on_with_the_steps_that_are_left(tmp_path: Path) -> None:
    """Its walkers have no steps of their own: all had one count."""
    walking = Walking(tmp_path, SMALL, walkers=4, steps_max=400)
    walking.seed("http://a.test/")
    walking.go(4)
    walking.commit()
    encode = msgspec.msgpack.encode
    for walker in walking.walk._walkers.values():
        walking.shard.epochs.put("walk", WALKERS + walker.number.to_bytes(2), encode([walker.at, walker.awaits]))
    counts = walking.walk._walked.counts
    stored = encode([100, counts.restarts, counts.hosts, counts.fetched])
    walking.shard.epochs.put("walk", WALK_COUNTS, stored)
    walking.shard.epochs.close_at_once()
    before = sum(walking.visits().values())
    walking.shard.crash()
    walking.open()
    walking.go()
    assert [walker.steps for walker in walking.walk._walkers.values()] == [100] * 4
    assert sum(walking.visits().values()) - before == 300
    walking.shard.crash()


# ---- how even the sample is


def generated(dice: random.Random, pages: int, hosts: int, links: int = 8) -> Web:
    """A web with popular pages: seven in ten links go where earlier links went, by their number (Barabási, Albert)."""
    host_of = [min(int(dice.paretovariate(0.8)) - 1, hosts - 1) for _ in range(pages)]
    host_of[:hosts] = range(hosts)
    names = [f"http://h{host}.test/{number}" for number, host in enumerate(host_of)]
    pot = list(range(min(20, pages)))
    web: Web = {}
    for number in dice.sample(range(pages), pages):
        targets = [dice.choice(pot) if dice.random() < 0.7 else dice.randrange(pages) for _ in range(links)]
        pot += targets
        web[names[number]] = [names[target] for target in targets]
    return web


def unevenness(web: Web, share_of: Counter[str]) -> float:
    """How far shares by popularity are from those of all pages that can be reached: total variation over tenths by
    in-degree, from 0 to 1.
    """
    linked = Counter(target for page, targets in web.items() for target in set(targets) - {page})
    ordered = sorted(linked, key=lambda page: (linked[page], page))
    tenth_of = {page: 10 * place // len(ordered) for place, page in enumerate(ordered)}
    share_of = Counter({page: count for page, count in share_of.items() if page in tenth_of})
    total = sum(share_of.values())
    tenths = Counter(dict.fromkeys(range(10), 0.0))
    for page, count in share_of.items():
        tenths[tenth_of[page]] += count / total
    return sum(abs(tenths[tenth] - 0.1) for tenth in range(10)) / 2


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1, 2])
def test_the_sample_is_far_closer_to_uniform_than_visits_are(tmp_path: Path, seed: int) -> None:
    """Six walks on one web, each over a part of its pages; their samples together, against their visits together."""
    web = generated(random.Random(seed), pages=4_000, hosts=60)
    visits: Counter[str] = Counter()
    met: Counter[str] = Counter()
    drawn: Counter[str] = Counter()
    for number in range(6):
        directory = tmp_path / str(number)
        directory.mkdir()
        walking = Walking(directory, web, seed=100 * seed + number, walkers=8, steps_max=2_000)
        walking.seed("http://h0.test/0")
        walking.go()
        assert len(walking.fetched) < 0.4 * len(web)
        visits.update(walking.visits())
        met.update(walking.fetched)
        for again in range(6):
            pages = sample([walking.shard.epochs], 30, 1 / 7, named, Dice(again))
            assert len({page.url for page in pages}) == 30
            every = sample([walking.shard.epochs], len(web), 1 / 7, named, Dice(again)) if again == 0 else []
            assert sum(page.weight for page in every) == pytest.approx(len(every)), "their mean is 1"
            drawn.update(page.url for page in pages)
        walking.shard.crash()
    by_visits, by_pages, by_sample = unevenness(web, visits), unevenness(web, met), unevenness(web, drawn)
    told = f"total variation from uniform: visits {by_visits:.3f}, pages met {by_pages:.3f}, sample {by_sample:.3f}"
    print(told)
    assert by_sample < by_visits / 2, told
    assert by_sample < by_pages / 1.5, told


CHI_SQUARE_MAX = 29.59
"""With ten degrees of freedom, chance alone exceeds it once in a thousand tests."""


def chi_square(counts: Counter[int], expected: Counter[int]) -> float:
    """Pearson's statistic of counts by group, against those that are expected."""
    scale = counts.total() / expected.total()
    return sum((counts[group] - size * scale) ** 2 / (size * scale) for group, size in expected.items())


def web_by_popularity(hosts: int) -> tuple[Web, str, dict[str, int]]:
    """Return a web of known pages, a seed to which no page links, and their groups: tenths by links, and the seed."""
    web = generated(random.Random(1), pages=300, hosts=hosts)
    seed = "http://start.test/"
    web[seed] = ["http://h0.test/0", "http://h1.test/1"]
    linked = Counter(target for page, targets in web.items() for target in set(targets) - {page})
    ordered = sorted(linked, key=lambda page: (linked[page], page))
    return web, seed, {page: 10 * place // len(ordered) for place, page in enumerate(ordered)} | {seed: 10}


def check_samples(met: Counter[int], drawn: Counter[int], group_of: dict[str, int]) -> None:
    """Check pages that walks met, and those drawn from them, by group: Pearson's test."""
    known = Counter(group_of.values())
    of_met = chi_square(met, known)
    of_drawn = chi_square(drawn, known)
    print(f"chi-square: sample {of_drawn:.1f}, pages met {of_met:.1f}; seed {drawn[10]}")
    assert of_met > CHI_SQUARE_MAX, "the test sees what weights correct"
    assert of_drawn < CHI_SQUARE_MAX
    assert drawn[10] < 4 * drawn.total() / len(group_of), "the seed is a page like others"


@pytest.mark.heavy
@pytest.mark.promise("What is fetched", "`gossamer sample` draws a seed as often as any other page.")
def test_a_sample_is_uniform_over_the_seed_and_tenths_by_popularity(tmp_path: Path) -> None:
    """Walks over a web whose pages are known, from a seed to which no page links; Pearson's test of their samples."""
    web, seed, group_of = web_by_popularity(hosts=3)
    met: Counter[int] = Counter()
    drawn: Counter[int] = Counter()
    for number in range(40):
        directory = tmp_path / str(number)
        directory.mkdir()
        walking = Walking(directory, web, seed=number, walkers=16, steps_max=2_500)
        walking.seed(seed)
        walking.go()
        walking.commit()
        met.update(group_of[page] for page in random.Random(number).sample(walking.fetched, 20))
        drawn.update(group_of[page.url] for page in sample([walking.shard.epochs], 20, 1 / 7, named, Dice(number)))
        walking.shard.crash()
    check_samples(met, drawn, group_of)


def test_of_seeds_that_a_walk_has_not_all_reached_each_stands_for_several(tmp_path: Path) -> None:
    web: Web = {f"http://h{number}.test/": [] for number in range(40)}
    walking = Walking(tmp_path, web, walkers=1, steps_max=15)
    walking.seed(*web)
    walking.go()
    walking.commit()
    pages = sample([walking.shard.epochs], 40, 1 / 7, named, Dice(1))
    assert len(pages) == len(walking.fetched)
    assert {page.weight for page in pages} == {1.0}, "all have one chance"
    _, share = _arrivals([walking.shard.epochs], 1 / 7, named)
    assert share == len(walking.fetched) / 40
    walking.shard.crash()


@pytest.mark.parametrize("visits", [2, 3, 10, 1_000])
def test_expected_arrivals_are_those_whose_mean_where_there_are_any_is_what_was_seen(visits: int) -> None:
    expected = _poisson_mean(visits)
    assert expected / (1.0 - math.exp(-expected)) == pytest.approx(visits, rel=0.01)
