"""The modelled web: its hosts, and what its pages link to."""

from __future__ import annotations

from collections import Counter
from statistics import mean, median

import pytest
from msgspec.structs import replace

from gossamer.lab.simulate.options import WebOptions
from gossamer.lab.simulate.presets import uneven_web
from gossamer.lab.simulate.web import LogNormal, ModelWeb, log_normal_of_mean, population, synthetic, whole
from gossamer.lab.simweb.web import Web
from gossamer.url.name import Namer
from gossamer.world.dice import Dice


def test_draws_have_the_mean_and_the_median_that_they_are_asked_for() -> None:
    dice = Dice(1)
    drawn = [LogNormal(2.0, 0.7).draw(dice) for _ in range(300)]
    assert median(drawn) == pytest.approx(2.0, rel=0.15)
    assert log_normal_of_mean(154_000, 1.0).mean == pytest.approx(154_000)
    counts = [whole(6.5, dice) for _ in range(2_000)]
    assert set(counts) == {6, 7}
    assert mean(counts) == pytest.approx(6.5, abs=0.05)


def test_traits_fall_to_their_share_of_the_hosts_by_the_seed() -> None:
    options = WebOptions(
        hosts=1_000, pages=50_000, dead_host_share=0.1, denied_host_share=0.05, slow_share=0.2, crawl_delay_share=0.03,
        hosts_per_address=4.0,
    )  # fmt: skip
    hosts = population(options, 1, 1, 1)
    assert sum(host.dead for host in hosts) == 100
    assert sum(host.denied for host in hosts) == 50
    assert sum(host.slow for host in hosts) == 200
    assert [host.crawl_delay_s for host in hosts].count(10.0) == 30
    assert Counter(Counter(host.address for host in hosts).values()) == {4: 250}
    assert median(host.fetch_s for host in hosts) == pytest.approx(options.fetch_s_median, rel=0.01)
    again, other = population(options, 1, 1, 1), population(options, 2, 1, 1)
    assert [host.dead for host in again] == [host.dead for host in hosts]
    assert [host.dead for host in other] != [host.dead for host in hosts]


def test_a_synthetic_webs_hosts_are_its_own() -> None:
    options = uneven_web(3)
    made = Web(options).hosts
    hosts = synthetic(options, WebOptions(), 1)
    assert [(host.name, host.address, host.slow) for host in hosts] == [
        (host.name, host.address, host.slow) for host in made
    ]
    assert [host.pages - one.pages for host, one in zip(hosts, made, strict=True) if not one.behaviors] == [0] * 50
    assert sum(host.denied for host in hosts) == sum(host.robots == "robots_deny_all" for host in made) == 3
    assert {host.crawl_delay_s for host in hosts} == {None, 2.0}


def test_hosts_of_one_address_are_on_one_shard_and_shards_have_their_share() -> None:
    hosts = population(WebOptions(hosts=8_000, pages=8_000, hosts_per_address=4.0), 1, 1, 4)
    shards: dict[str, set[int]] = {}
    for host in hosts:
        shards.setdefault(host.address, set()).add(host.shard)
    assert len(shards) == 2_000
    assert all(len(one) == 1 for one in shards.values())
    assert all(1_800 < count < 2_200 for count in Counter(host.shard for host in hosts).values())


def test_names_are_those_that_a_crawl_would_give() -> None:
    host = population(WebOptions(hosts=3, pages=9), 1, 1, 1)[1]
    url = host.url(2)
    named = Namer().name(url.text)
    assert named is not None
    assert (url.text, url.key, url.fingerprint, url.host) == (named.text, named.key, named.fingerprint, named.host)


def test_links_lead_to_each_page_once_as_a_new_one_until_there_are_no_more() -> None:
    options = WebOptions(hosts=20, pages=2_000, new_urls_per_page=4.5, same_host_share=0.8, zipf_exponent=0.5)
    web = ModelWeb(options, population(options, 1, 1, 1), 1, 1)
    first = web.hosts[0]
    assert web.find(first) == 0
    found, stayed = {(first.name, 0)}, 0
    for visits in range(40):
        links = web.links(first, 0)
        assert not found & {(host.name, number) for host, number in links}
        found |= {(host.name, number) for host, number in links}
        stayed += sum(host is first for host, _ in links)
        if visits == 19:
            assert len(found) == pytest.approx(20 * 4.5, rel=0.15)
            assert stayed / len(found) == pytest.approx(0.8, abs=0.1)
    assert first.known <= first.pages
    known = web.links(first, 500)
    assert {number for host, number in known if host is first} <= set(range(first.known))
    for _ in range(10_000):
        web.links(web.hosts[-1], 0)
    assert all(host.known <= host.pages for host in web.hosts)
    assert web.hosts_found == 20


def test_seeds_are_all_hosts_or_some() -> None:
    options = WebOptions(hosts=1_000, pages=5_000)
    assert len(ModelWeb(options, population(options, 1, 1, 1), 1, 1).seeds()) == 1_000
    few = replace(options, seed_hosts=100)
    assert len(ModelWeb(few, population(few, 1, 10, 1), 1, 1).seeds()) == 10
    one = replace(options, seed_hosts=1)
    assert len(ModelWeb(one, population(one, 1, 10, 1), 1, 1).seeds()) == 1
