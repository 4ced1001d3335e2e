"""Priorities: who comes before whom, and that nobody waits for ever."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gossamer.model.links import SEED_ARGUMENT, Link
from gossamer.model.standing import Standing
from gossamer.ports import Prioritizer
from gossamer.stages.frontier.index import LevelBias
from gossamer.stages.frontier.options import PolitenessOptions
from gossamer.stages.frontier.priority import BestFirst, BreadthFirst, Combined, HostOpic, LargerSites, PageImportance
from gossamer.stages.frontier.record import LEVELS
from gossamer.testing import check_prioritizer
from gossamer.world.dice import Dice
from tests.stages.frontier.names import T0, Shard, linked, named
from tests.stages.frontier.test_frontier import visit


def link(text: str, depth: int = 1, link_type: str = "anchor") -> Link:
    return Link(named(text), link_type, depth)


def best_first(**scores: int) -> BestFirst:
    patterns = {pattern.replace("_", "/"): score for pattern, score in scores.items()}
    return BestFirst(patterns)


ALL: dict[str, Prioritizer] = {
    "breadth_first": BreadthFirst(),
    "best_first": best_first(_docs_=2, _old_=-9, pdf=1),
    "larger_sites": LargerSites(),
    "in_links": PageImportance(1_024),
    "opic": HostOpic(),
    "combined": Combined(),
    "combined with scores": Combined(best_first(_docs_=2, _old_=-9)),
}


@pytest.mark.parametrize("name", ALL)
def test_each_one_keeps_the_promises_of_its_port(name: str) -> None:
    one = ALL[name]
    check_prioritizer(one, urgent=[(link("http://a.test/x", 1), link("http://a.test/x", 6))])


@pytest.mark.parametrize("name", ALL)
def test_seeds_come_first_and_what_is_embedded_one_level_later(name: str) -> None:
    one = ALL[name]
    assert one.level(Link(named("http://a.test/old/"), "seed", 0, seed=SEED_ARGUMENT)) == 0
    page, embed = link("http://a.test/page"), link("http://a.test/page", 1, "embed")
    assert one.level(embed) == one.level(page) + 1


def test_breadth_first_goes_by_clicks() -> None:
    levels = [BreadthFirst().level(link("http://a.test/x", depth)) for depth in range(10)]
    assert levels == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7]


def test_best_first_adds_up_what_the_patterns_say() -> None:
    one = best_first(_docs_=2, _old_=-9, pdf=1)
    levels = {text: one.level(link(f"http://a.test/{text}")) for text in ("x", "docs/x", "docs/x.pdf", "old/docs/x")}
    assert levels == {"x": 4, "docs/x": 2, "docs/x.pdf": 1, "old/docs/x": 7}


def test_no_score_lifts_a_url_to_the_level_of_the_seeds() -> None:
    assert best_first(_docs_=99).level(link("http://a.test/docs/x")) == 1
    assert best_first(_docs_=99).level(link("http://a.test/docs/x", 1, "embed")) == 2


def test_a_page_rises_with_each_doubling_of_the_links_to_it() -> None:
    one, target = PageImportance(1 << 16), link("http://a.test/x")
    levels = []
    for number in range(70):
        one.note(named(f"http://a.test/{number}"), [target, target])
        levels.append(one.level(target))
    assert [levels[links - 1] for links in (1, 2, 3, 4, 8, 16, 32, 64, 70)] == [6, 6, 6, 5, 4, 3, 2, 1, 1]


def test_a_link_from_another_host_counts_as_eight_of_the_same_and_what_rose_is_named_once() -> None:
    one, target, other = PageImportance(1 << 16), link("http://a.test/x"), link("http://a.test/y")
    near, far = named("http://a.test/"), named("http://b.test/")
    assert one.note(near, [target, other]) == {}, "one link is where every page begins"
    assert one.note(far, [target]) == {target.url.fingerprint: 4}
    assert one.note(near, [target]) == {}
    assert (one.count(target.url.fingerprint), one.count(other.url.fingerprint)) == (10, 1)
    assert one.note(None, [other]) == {other.url.fingerprint: 4}, "links from other shards are from other hosts"
    for ignored in ("seed", "embed", "sitemap", "feed"):
        assert one.note(far, [link("http://a.test/x", 1, ignored)]) == {}
    assert one.count(target.url.fingerprint) == 10


def test_counts_of_links_have_a_bound_and_are_never_too_low() -> None:
    one = PageImportance(1_024)
    targets = [link(f"http://a.test/{number}") for number in range(3_000)]
    for number in range(3):
        one.note(named(f"http://a.test/from{number}"), targets)
    counts = [one.count(target.url.fingerprint) for target in targets]
    assert min(counts) >= 3
    for number in range(40):
        one.note(named(f"http://b{number}.test/"), targets[:1])
    assert one.count(targets[0].url.fingerprint) == 255


def test_larger_sites_gain_a_level_with_each_fourfold() -> None:
    queued = (0, 1, 2, 3, 14, 15, 255, 16_383, 10**9)
    levels = [LargerSites().host_level(Standing("a.test", one)) for one in queued]
    assert levels == [7, 7, 7, 6, 6, 5, 3, 0, 0]


def test_the_combined_order_weighs_size_reputation_and_failures() -> None:
    def level(queued: int = 100, linking: float = 0.0, failures: int = 0) -> int:
        return Combined().host_level(Standing("a.test", queued, failures=failures, linking_sites=linking))

    assert level(linking=60.0) < level()
    assert level(queued=10_000) < level()
    assert level(failures=2) > level()
    home, inner = link("http://a.test/", 2), link("http://a.test/x", 2)
    assert Combined().level(home) < Combined().level(inner)


def test_opic_goes_by_cash() -> None:
    levels = [HostOpic().host_level(Standing("a.test", cash=cash)) for cash in (0.0, 0.1, 1.0, 4.0, 1e6)]
    assert levels == [7, 7, 4, 2, 0]


@pytest.mark.promise("Order and fairness", "URLs of low priority are fetched while urgent ones keep coming.")
def test_a_less_urgent_level_never_starves() -> None:
    """The last level, beside seven that never run dry: 1 in 255 draws at the bias of 2, by the binomial's bounds."""
    bias = LevelBias(2.0, Dice(7))
    draws = 255 * 400
    drawn = Counter(bias.choose(range(LEVELS)) for _ in range(draws))
    for level in range(LEVELS):
        share = 2.0 ** (LEVELS - 1 - level) / 255
        spread = (draws * share * (1 - share)) ** 0.5
        assert abs(drawn[level] - draws * share) < 5 * spread


@pytest.mark.promise("Order and fairness", "URLs of low priority are fetched while urgent ones keep coming.")
def test_a_url_of_the_last_level_is_lent_while_urgent_ones_keep_coming(tmp_path: Path) -> None:
    """In the frontier, window by window: how long it waits is geometric, with the share of its level as its chance."""
    waits = []
    for seed in range(12):
        rules = PolitenessOptions(preset="own", per_host=1)
        shard = Shard(tmp_path / str(seed), rules, seed=seed, window_urls_max=1, level_bias=2.0)
        (tmp_path / str(seed)).mkdir()
        frontier = shard.open(T0)
        frontier.add(linked("http://a.test/late"), 3, T0)
        for number in range(2):
            frontier.add(linked(f"http://a.test/{number}"), 0, T0)
        visits, now = 0, T0
        while not frontier.counts.terminal.get("late"):
            lease = frontier.select(now)
            assert lease is not None
            if not lease.address:
                frontier.locate(lease, "10.0.0.1", now + 1e9, now)
                continue
            frontier.begin(lease, now)
            frontier.ended(lease, None, now)
            visits += 1
            late = lease.url.text.endswith("late")
            frontier.finish(lease, "late" if late else "urgent", now)
            frontier.add(linked(f"http://a.test/more/{visits}"), 0, now)
            assert visits < 200, "it starves"
        waits.append(visits)
        shard.crash()
    assert 9 * 0.3 < sum(waits) / len(waits) < 9 * 2.5, f"one in nine draws is its own; it waited {waits}"


def test_a_larger_host_is_activated_before_smaller_ones(tmp_path: Path) -> None:
    """One place on the workbench; whoever is drawn stays until it is through, so the order of first visits tells."""
    firsts = []
    for seed in range(20):
        (tmp_path / str(seed)).mkdir()
        rules = PolitenessOptions(preset="own", per_host=1)
        shard = Shard(
            tmp_path / str(seed), rules, seed=seed, active_hosts_max=1, level_bias=4.0, prioritizer=LargerSites()
        )
        frontier = shard.open(T0)
        frontier.add(linked("http://first.test/"), 0, T0)
        for number in range(300):
            frontier.add(linked(f"http://large.test/{number}"), 1, T0)
        for number in range(5):
            frontier.add(linked(f"http://small{number}.test/"), 1, T0)
        order = []
        now = T0
        while len(order) < 2:
            lease = frontier.select(now)
            assert lease is not None
            if not lease.address:
                frontier.locate(lease, "10.0.0.1", now + 1e9, now)
                continue
            frontier.begin(lease, now)
            frontier.ended(lease, None, now)
            frontier.finish(lease, "fetched", now)
            order.append(lease.url.host)
        firsts.append(order[1])
        shard.crash()
    assert firsts.count("large.test") >= 15, firsts


def test_visits_of_the_same_level_stay_in_order(tmp_path: Path) -> None:
    shard = Shard(tmp_path, PolitenessOptions(preset="own", per_host=1), prioritizer=HostOpic())
    frontier = shard.open(T0)
    for number in range(3):
        frontier.add(linked(f"http://a.test/{number}"), 1, T0)
    now = T0
    for _ in range(3):
        now = visit(frontier, now)
    assert frontier.wake_at() is None
    shard.crash()
