"""Hosts that outlast the others: recomputed from the frontier's content, with the remedies that their rules permit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gossamer.model.visits import Contact
from gossamer.model.words import duration
from gossamer.stages.frontier.options import HostOverride, PolitenessOptions, politeness
from gossamer.stages.frontier.overview import LONGER_S_MIN, remaining
from tests.stages.frontier.names import T0, Shard, linked, named

Open = Callable[..., Shard]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    shards = []

    def open_shard(sizes: Mapping[str, int], **rules: Any) -> Shard:
        shard = Shard(tmp_path, PolitenessOptions(**rules), active_hosts_first=100)
        frontier = shard.open(T0)
        shards.append(shard)
        for host, urls in sizes.items():
            for number in range(urls):
                frontier.add(linked(f"http://{host}/{number}"), 0, T0)
        visits = 0
        while visits < len(sizes):
            lease = frontier.select(T0)
            assert lease is not None
            if not lease.address:
                frontier.locate(lease, f"10.0.0.{list(sizes).index(lease.url.host)}", T0 + 1e6, T0)
                continue
            frontier.begin(lease, T0)
            frontier.ended(lease, Contact(0.05, "answered"), T0)
            frontier.finish(lease, "fetched", T0)
            visits += 1
        return shard

    yield open_shard
    for shard in shards:
        shard.crash()


@pytest.mark.promise("Politeness", "A crawl names the hosts that will outlast all others, and what would shorten that.")
def test_hosts_that_outlast_the_others_are_those_of_the_frontiers_content(opened: Open) -> None:
    shard = opened({"docs.example": 4_001, "wiki.example": 3_001, "a.example": 11, "b.example": 21})
    found = shard.frontier.lasting_hosts(0.0)
    shard.commit_all(T0)
    left = Counter(link.url.host for link, _ in remaining(shard.store, named))
    assert left == {"docs.example": 4_000, "wiki.example": 3_000, "a.example": 10, "b.example": 20}
    each_s = 1.0 + 0.05  # The delay follows each request.
    assert [(one.host, one.queued) for one in found] == [("docs.example", 4_000), ("wiki.example", 3_000)]
    assert [one.left_s for one in found] == pytest.approx([4_000 * each_s, 3_000 * each_s])
    assert [one.longer_s for one in found] == pytest.approx([(4_000 - 20) * each_s, (3_000 - 20) * each_s])
    assert found[0].says == (
        "4,000 URLs at 1.05 s each take 1 h 10 min, 1 h 9 min after all others; "
        "`gossamer host DIR docs.example delay_s=0.5` makes it 36 min 40 s, if its owner permits that"
    )


def test_the_remedy_brings_what_it_says(opened: Open) -> None:
    shard = opened({"docs.example": 4_001})
    rules = politeness(PolitenessOptions(), {"docs.example": HostOverride(delay_s=0.5)})
    shard.frontier.reconfigure(rules, shard.options, shard.budget, T0)
    [found] = shard.frontier.lasting_hosts(0.0)
    assert duration(found.left_s) == "36 min 40 s"
    assert " after all others" not in found.says


def test_a_crawl_delay_is_the_hosts_wish(opened: Open) -> None:
    shard = opened({"slow.example": 501})
    shard.frontier.control.set_crawl_delay(named("http://slow.example/"), 10.0, T0)
    [found] = shard.frontier.lasting_hosts(0.0)
    assert found.left_s == pytest.approx(500 * 10.05)
    assert found.says.endswith("its robots.txt asks for 10 s between requests (Crawl-delay), and that stands")
    assert "gossamer host" not in found.says


def test_a_host_without_delay_may_get_more_connections(opened: Open) -> None:
    shard = opened({"own.example": 40_000}, preset="own")
    [host] = shard.frontier.scheduler.active.values()
    host.record.fetches_s = (2.0,)
    [found] = shard.frontier.lasting_hosts(0.0)
    assert found.queued == host.record.urls_queued
    assert found.left_s == pytest.approx(found.queued * 2.0 / 8)
    assert "`gossamer host DIR own.example per_host=16` makes it" in found.says


def test_the_delay_of_a_site_bounds_its_host(opened: Open) -> None:
    shard = opened({"one.example": 101}, per_site=1, site_delay_s=70.0)
    [found] = shard.frontier.lasting_hosts(0.0)
    assert found.left_s == pytest.approx(100 * 70.0)
    assert found.says.endswith("the delay of its address or site bounds it")


def test_no_host_outlasts_others_that_take_as_long(opened: Open) -> None:
    shard = opened({f"h{n}.example": 901 for n in range(8)})
    assert shard.frontier.lasting_hosts(0.0) == []


def test_nothing_is_said_of_minutes(opened: Open) -> None:
    assert opened({"docs.example": 501}).frontier.lasting_hosts(0.0) == []


def test_nothing_is_said_where_the_whole_crawl_takes_longer(opened: Open) -> None:
    shard = opened({"docs.example": 801, "a.example": 11})
    assert LONGER_S_MIN < 800 * 1.05
    assert len(shard.frontier.lasting_hosts(0.0)) == 1
    assert shard.frontier.lasting_hosts(10 / 700.0) == []  # The other ten URLs take 700 s at this rate.
