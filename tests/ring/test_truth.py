"""The ring against the truth: what a crawl ends with is what the maker of the web says, by outcome and by link."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.lab.simweb.behaviors import ROBOTS
from gossamer.lab.simweb.behaviors.traps import KINDS
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Scope, Truth, TruthWalk
from tests.further import with_further
from tests.ring.crawls import HASTY, OWN, Crawled, crawl

pytestmark = pytest.mark.promise(
    "What is fetched", "A crawl fetches exactly what the web and the scope define, in any order of replies."
)

FEW = "crawl.concurrency=32"
"""As many requests at once as leave a healthy page its time (`fetch.request_s_max`) beside other tests."""
SMALL = {"oversized_bytes": 3_000_000, "bomb_bytes": 8_000_000, "drip_s": 0.2, "crawl_delay_s": 0.1, "retry_after_s": 1}


def assert_right(crawled: Crawled, walked: TruthWalk, simweb: SimwebProcess, *, links: bool = True) -> None:
    """Compare outcomes by key, links, and what the crawl says of itself."""
    assert crawled.end == "finished"
    ends = crawled.ends(walked)
    assert walked.differences(ends, simweb.web) == []
    if links:
        assert walked.links - crawled.links == set()
        assert crawled.links - walked.links - walked.links_optional == set()
    assert crawled.critical() == ""
    status = crawled.status
    assert status["queued"] == status["in_flight"] == 0
    assert status["discovered"] == status["terminal"] == len(ends)


@pytest.mark.heavy
def test_a_plain_web_is_fetched_whole(tmp_path: Path) -> None:
    options = SimwebOptions.plain(seed=7, hosts=10, pages=300)
    with SimwebProcess(options, tmp_path / "web") as simweb:
        crawled = crawl(simweb.seeds, tmp_path / "crawl", *OWN, FEW, hosts=str(simweb.hosts_file), scope="any")
    walked = Truth(simweb.web).walk(simweb.seeds, links=True)
    assert_right(crawled, walked, simweb)
    assert set(crawled.outcomes.values()) == {"fetched"}
    asked = [one.path for one in simweb.requests() if one.path != "/robots.txt"]
    assert len(asked) == len(crawled.outcomes), "each page is asked for once"


HOLDING = (
    "seen.backend='diskmerge'", "seen.popular_urls_max=8", "seen.front_urls_max=10", "seen.held_urls_max=30",
    "seen.filter_bits=2", "seen.expected_urls=10",
)  # fmt: skip
"""Bounds so small that a web of some hundred pages fills them many times."""


@pytest.mark.heavy
@pytest.mark.parametrize("depth_max", [None, 4])
def test_a_web_is_the_same_where_links_await_the_duplicate_check(tmp_path: Path, depth_max: int | None) -> None:
    options = SimwebOptions.plain(seed=7, hosts=10, pages=300)
    with SimwebProcess(options, tmp_path / "web") as simweb:
        crawled = crawl(
            simweb.seeds,
            tmp_path / "crawl",
            *OWN,
            FEW,
            *HOLDING,
            hosts=str(simweb.hosts_file),
            scope="any",
            max_depth=depth_max,
        )
    walked = Truth(simweb.web).walk(simweb.seeds, depth_max=depth_max, links=depth_max is None)
    assert_right(crawled, walked, simweb, links=depth_max is None)
    assert crawled.status["links_held"] == 0


@pytest.mark.heavy
@pytest.mark.long
def test_every_odd_behaviour_ends_as_it_must(tmp_path: Path) -> None:
    options = SimwebOptions(seed=7, hosts=40, pages=300, shares={"robots_stall": 0}, links_per_page=12, **SMALL)
    with SimwebProcess(options, tmp_path / "web") as simweb:
        crawled = crawl(simweb.seeds, tmp_path / "crawl", *HASTY, FEW, hosts=str(simweb.hosts_file), scope="any")
    assert_right(crawled, Truth(simweb.web).walk(simweb.seeds, links=True), simweb)
    ends = set(crawled.outcomes.values())
    assert ends >= {"fetched", "redirected", "http_error", "robots_denied", "robots_unreachable", "timeout"}


@pytest.mark.heavy
def test_traps_are_bounded_by_depth_and_everything_else_is_found(tmp_path: Path) -> None:
    options = SimwebOptions(
        seed=5, hosts=6, pages=40, behaviours=KINDS, shares=dict.fromkeys(KINDS, 0.2), links_per_page=5
    )
    with SimwebProcess(options, tmp_path / "web") as simweb:
        crawled = crawl(
            simweb.seeds, tmp_path / "crawl", *OWN, FEW, hosts=str(simweb.hosts_file), scope="any", max_depth=6
        )
    assert_right(crawled, Truth(simweb.web).walk(simweb.seeds, depth_max=6), simweb, links=False)


@pytest.mark.parametrize("scope", ["host", "domain", "prefix"])
def test_the_scope_is_what_the_seeds_bring_in(tmp_path: Path, scope: Scope) -> None:
    behaviours = ("redirects", "robots_part", "frames", "distinct")
    options = SimwebOptions(seed=11, hosts=12, pages=200, behaviours=behaviours, same_host_share=0.5, links_per_page=12)
    with SimwebProcess(options, tmp_path / "web") as simweb:
        web = simweb.web
        page = next(web.url(web.hosts[0], number) for number in range(1, 10) if web.hosts[0].pages > number)
        seeds = (page, web.front(web.hosts[4])) if scope == "prefix" else (web.fronts[0], web.fronts[4])
        crawled = crawl(seeds, tmp_path / "crawl", *OWN, FEW, hosts=str(simweb.hosts_file), scope=scope)
    assert_right(crawled, Truth(web).walk(seeds, scope, links=True), simweb)


@pytest.mark.heavy
@pytest.mark.parametrize(("seed", "depth"), with_further((5, 6), (3, 4), (5, 4), (7, 5)))
def test_what_a_depth_reaches_does_not_depend_on_the_order(tmp_path: Path, seed: int, depth: int) -> None:
    """Slow hosts and random order make long ways come first; shorter ones are passed on without another request."""
    behaviours = ("redirects", "slow", "robots_part", "nofollow", "frames", "distinct", "copies", "mirror")
    options = SimwebOptions(
        seed=seed, hosts=20, pages=200, behaviours=behaviours, shares={"slow": 0.2, "redirects": 0.6},
        slow_s_median=0.03, children_per_page=2, links_per_page=12,
    )  # fmt: skip
    shuffled = ("frontier.level_bias=1.0", "crawl.concurrency=4")
    with SimwebProcess(options, tmp_path / "web") as simweb:
        crawled = crawl(
            simweb.seeds, tmp_path / "crawl", *OWN, *shuffled,
            hosts=str(simweb.hosts_file), scope="any", max_depth=depth,
        )  # fmt: skip
        requests = [(one.host, one.path) for one in simweb.requests()]
    walked = Truth(simweb.web).walk(simweb.seeds, depth_max=depth, links=True)
    assert_right(crawled, walked, simweb)
    found_at = {str(row["key"]): row["depth"] for row in crawled.rows}
    assert all(found_at[key] >= page.depth for key, page in walked.pages.items() if key in found_at)
    twice = {one for one in requests if requests.count(one) > 1 and simweb.web.once(simweb.web.host(one[0]), one[1])}
    assert twice == set()


@pytest.mark.heavy
@pytest.mark.parametrize(
    "behaviours",
    [
        ("redirects",),
        ("bodies", "compressed"),
        ("charsets", "types"),
        ("nofollow", "frames", "distinct"),
        ("copies", "mirror"),
        ("errors",),
        ("walls",),
        ("sitemaps", "robots_part", "mirror"),
    ],
    ids=" ".join,
)
def test_each_behavior_on_many_hosts(tmp_path: Path, behaviours: tuple[str, ...]) -> None:
    shares = dict.fromkeys(behaviours, 0.7 if behaviours != ("copies", "mirror") else 0.4)
    options = SimwebOptions(seed=2, hosts=8, pages=40, behaviours=behaviours, shares=shares, links_per_page=8, **SMALL)
    with SimwebProcess(options, tmp_path / "web") as simweb:
        crawled = crawl(simweb.seeds, tmp_path / "crawl", *OWN, FEW, hosts=str(simweb.hosts_file), scope="any")
    assert_right(crawled, Truth(simweb.web).walk(simweb.seeds, links=True), simweb)


def test_robots_of_every_kind(tmp_path: Path) -> None:
    options = SimwebOptions(seed=9, hosts=24, pages=60, behaviours=tuple(ROBOTS), links_per_page=8, **SMALL)
    with SimwebProcess(options, tmp_path / "web") as simweb:
        crawled = crawl(simweb.seeds, tmp_path / "crawl", *HASTY, FEW, hosts=str(simweb.hosts_file), scope="any")
    assert_right(crawled, Truth(simweb.web).walk(simweb.seeds, links=True), simweb)
