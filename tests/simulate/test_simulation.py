"""Simulated crawls whose figures can be told in advance."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import gossamer
from gossamer.lab.simulate.options import MachineOptions, SimulateOptions, WebOptions
from gossamer.lab.simulate.result import LIMITS
from gossamer.lab.simulate.simulation import scale_of, simulate
from gossamer.options import convert
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions
from gossamer.stages.robots.options import RobotsOptions
from gossamer.stages.seen.options import SeenOptions
from tests.simulate.webs import LARGE, SOUND, simulated, small_sites_s

STEADY = {"fetch_s_median": 0.5, "fetch_sigma_host": 0.0, "fetch_sigma_page": 0.0, "hosts_per_address": 1.0}
FIXED = PolitenessOptions(delay_s_min=2.0, delay_factor=0.0)
EVEN = {**STEADY, "zipf_exponent": 0.0}


def test_politeness_decides_how_long_a_web_of_equal_hosts_takes() -> None:
    result = simulated({**EVEN, "hosts": 50, "pages": 2_000}, politeness=FIXED)
    assert result.pages == 2_000
    assert result.ended == "finished"
    # 40 pages a host: 40 fetches of 0.5 s and 39 rests of 2 s between them.
    assert result.time_s == pytest.approx(40 * 0.5 + 39 * 2.0, rel=0.02)
    assert result.largest_host_s == pytest.approx(40 * 2.5)
    assert next(iter(result.limits)) == "politeness"


def test_the_rest_grows_with_the_fetch_time() -> None:
    slow = simulated({**EVEN, "hosts": 10, "pages": 300}, politeness=PolitenessOptions(delay_factor=10))
    # Each delay is ten times the mean of fetches of 0.5 s, also the first one.
    assert slow.time_s == pytest.approx(30 * 0.5 + 29 * 5.0, rel=0.03)


def test_hosts_of_one_address_take_turns() -> None:
    web = {**EVEN, "hosts": 40, "pages": 400, "hosts_per_address": 40.0}
    result = simulated(web, politeness=PolitenessOptions(delay_s_min=1.0, delay_factor=0.0, address_delay_s=0.5))
    assert result.time_s == pytest.approx(400 * (0.5 + 0.5), rel=0.02)


def test_the_processor_limits_a_crawl_that_has_hosts_enough() -> None:
    machine = replace(LARGE, cores_per_shard=1.0, cpu_us_per_page=20_000.0, concurrency=200)
    result = simulated({**EVEN, "hosts": 1_000, "pages": 6_000}, machine=machine, politeness=FIXED)
    assert result.pages_per_s == pytest.approx(50, rel=0.1)
    assert next(iter(result.limits)) == "cpu"
    assert result.cpu_share > 0.9


def test_the_network_limits_a_crawl_of_large_pages() -> None:
    web = {**EVEN, "hosts": 500, "pages": 4_000, "page_bytes_mean": 98_500.0, "wire_share": 1.0}
    machine = replace(LARGE, bandwidth_bits_per_s=32e6, concurrency=200)
    result = simulated(web, machine=machine, politeness=FIXED)
    assert result.pages_per_s == pytest.approx(4e6 / 1e5, rel=0.15)
    assert next(iter(result.limits)) == "network"


@pytest.mark.parametrize("what", ["cpu", "network"])
@pytest.mark.heavy
def test_what_is_busy_all_the_time_is_the_limit_also_where_work_comes_in_waves(what: str) -> None:
    """All hosts are asked at once and rest for as long: what one wave brings keeps the machine busy until the next."""
    if what == "cpu":
        narrow = {"cores_per_shard": 1.0, "cpu_us_per_page": 50_000.0}
    else:
        narrow = {"bandwidth_bits_per_s": 20 * 8 * 1e5}
    web = {**EVEN, "hosts": 1_000, "pages": 6_000, "page_bytes_mean": 98_500.0, "wire_share": 1.0}
    rules = PolitenessOptions(delay_s_min=40.0, delay_factor=0.0)
    result = simulated(web, machine=replace(LARGE, **narrow), politeness=rules, pages=4_000)
    assert result.pages_per_s == pytest.approx(20.0, rel=0.05)
    assert result.limits[what] > 0.9
    assert all(one.cpu_share <= 1.0 and one.network_share <= 1.0 for one in result.intervals)
    assert (result.cpu_share if what == "cpu" else result.network_share) == pytest.approx(1.0, abs=0.05)


def test_requests_at_once_limit_a_crawl() -> None:
    machine = replace(LARGE, concurrency=10)
    result = simulated({**EVEN, "hosts": 200, "pages": 2_000}, machine=machine, politeness=FIXED)
    assert result.pages_per_s == pytest.approx(10 / 0.5, rel=0.05)
    assert next(iter(result.limits)) == "concurrency"


@pytest.mark.heavy
def test_a_small_workbench_limits_a_crawl() -> None:
    web = {**EVEN, "hosts": 400, "pages": 8_000}
    small = simulated(web, frontier=FrontierOptions(active_hosts_max=40), politeness=FIXED, pages=4_000)
    large = simulated(web, politeness=FIXED, pages=4_000)
    assert next(iter(small.limits)) == "workbench"
    assert small.hosts_benched_most <= 40
    assert small.pages_per_s == pytest.approx(40 / 2.5, rel=0.15)
    assert large.pages_per_s > 5 * small.pages_per_s


def test_few_seeds_are_a_limit_until_hosts_are_found() -> None:
    web = {**STEADY, "hosts": 1_000, "pages": 10_000, "seed_hosts": 1}
    result = simulated(web, politeness=FIXED, pages=5_000)
    assert result.hosts_known > 750
    assert result.limits["hosts"] > 0.05
    assert result.intervals[0].limit == "hosts"


def test_dead_hosts_are_given_up_and_bring_nothing() -> None:
    result = simulated({**EVEN, "hosts": 40, "pages": 400, "dead_host_share": 0.25, "robots": True}, politeness=FIXED)
    assert result.ended == "finished"
    assert result.pages == 300
    assert result.samples[-1].hosts_active == 0
    assert result.time_s > RobotsOptions().robots_wait_max_s  # So long a robots.txt that cannot be had is asked for.
    assert result.nine_tenths_s < 60


def test_closed_hosts_cost_one_request_and_errors_bring_no_page() -> None:
    web = {**EVEN, "hosts": 40, "pages": 400, "robots": True, "denied_host_share": 0.5}
    closed = simulated(web, politeness=FIXED)
    assert closed.pages == 200
    assert closed.requests == 200 + 40
    failing = simulated({**EVEN, "hosts": 40, "pages": 4_000, "error_share": 0.3}, politeness=FIXED)
    assert failing.requests == pytest.approx(failing.pages / 0.7, rel=0.05)


def test_a_crawl_delay_is_kept() -> None:
    web = {**EVEN, "hosts": 10, "pages": 200, "robots": True, "crawl_delay_share": 1.0, "crawl_delay_s": 7.0}
    result = simulated(web, politeness=FIXED)
    assert result.time_s == pytest.approx(21 * 0.5 + 20 * 7.0, rel=0.02)


@pytest.mark.heavy
def test_a_crawl_ends_at_its_pages_or_its_time() -> None:
    assert simulated(EVEN | {"pages": 100_000}, politeness=FIXED, pages=500).pages == 500
    timed = simulated(EVEN | {"pages": 100_000}, politeness=FIXED, time_s_max=100.0)
    assert (timed.ended, timed.time_s) == ("time", 100.0)
    assert timed.pages == pytest.approx(100 * 100 / 2.5, rel=0.05)


@pytest.mark.heavy
@pytest.mark.promise("Order and fairness", "A huge slow site does not slow the small ones.")
def test_one_huge_slow_site_does_not_slow_the_small_ones() -> None:
    """With 2,000 of them; `tests/acceptance/test_simulate.py` has 10,000."""
    alone_s, beside_s = small_sites_s(2_000)
    assert beside_s == pytest.approx(alone_s, rel=0.05)


def test_shards_share_the_work_and_give_the_same_pages() -> None:
    web = {**EVEN, "hosts": 400, "pages": 4_000}
    one, four = (simulated(web, politeness=FIXED, shards=shards) for shards in (1, 4))
    assert (one.pages, four.pages) == (4_000, 4_000)
    assert four.shards_simulated == 4
    assert four.time_s == pytest.approx(one.time_s, rel=0.15)  # Politeness is no slower for shards.


@pytest.mark.parametrize("shards", [1, 4])
def test_how_busy_machines_are_over_time_adds_up_to_how_busy_they_are(shards: int) -> None:
    machine = replace(LARGE, cores_per_shard=1.0, shards=2, cpu_us_per_page=20_000.0, bandwidth_bits_per_s=1e8)
    web = {**EVEN, "hosts": 80, "pages": 1_600, "page_bytes_mean": 100_000.0}
    result = simulated(web, politeness=FIXED, shards=shards, machine=machine)
    for name in ("cpu_share", "network_share"):
        busy_s = sum((one.end_s - one.begin_s) * getattr(one, name) for one in result.intervals)
        assert busy_s / result.time_s == pytest.approx(getattr(result, name), rel=0.02), name
    assert result.cpu_share == pytest.approx(1_600 * 0.02 / result.time_s / shards, rel=0.05)
    assert result.hosts_active_most == result.hosts_known == 80
    assert result.hosts_benched_most == 80
    assert result.samples[-1].hosts_active == 0


def test_links_to_other_shards_take_their_part_of_the_network() -> None:
    web = {**EVEN, "hosts": 80, "pages": 400, "page_bytes_mean": 10_000.0, "page_bytes_sigma": 0.0, "wire_share": 0.5}
    result = simulated(web, politeness=FIXED, shards=4)
    exchanged = 2 * 62 * 0.2 * 0.75 * 75  # Links of a page, those that leave their host, and their shard; out and in.
    assert result.samples[-1].wire_bytes / result.pages == pytest.approx(5_000 + 1_500 + exchanged, rel=1e-6)


def test_every_machine_is_paid_for_as_long_as_the_crawl_takes() -> None:
    machine = replace(LARGE, shards=2, price_per_hour=3.0)
    result = simulated({**EVEN, "hosts": 50, "pages": 500}, politeness=FIXED, shards=5, machine=machine)
    assert result.machines == 3
    assert result.machine_hours == pytest.approx(3 * result.time_s / 3_600)
    assert result.cost == pytest.approx(3.0 * result.machine_hours)
    assert result.cost_per_million == pytest.approx(result.cost / 500 * 1e6)


def test_the_best_tenth_is_no_single_moment() -> None:
    web = {**EVEN, "hosts": 60, "pages": 2_000, "zipf_exponent": 0.9}
    result = simulated(web, politeness=FIXED)
    rates = sorted((one.pages_per_s for one in result.intervals), reverse=True)
    quicker = sum(one.end_s - one.begin_s for one in result.intervals if one.pages_per_s > result.pages_per_s_most)
    assert result.pages_per_s < result.pages_per_s_most < rates[0]
    assert 0.05 < quicker / result.time_s <= 0.11


@pytest.mark.parametrize("backend", ["memory", "diskmerge", "bloom"])
def test_every_form_of_the_eliminator_gives_the_same_crawl(backend: str) -> None:
    web = {"hosts": 50, "pages": 2_000}
    seen = convert(
        SeenOptions,
        {
            "backend": backend,
            "front_urls_max": 100,
            "false_positive_rate": 1e-9,
            "log_urls_max": 100,
            "expected_urls": 500,
        },
    )
    first = simulated(web, pages=1_000, commit_visits=50)
    second = simulated(web, pages=1_000, commit_visits=50, seen=seen)
    assert second.samples == first.samples


def test_what_a_bloom_filter_loses_is_lost_to_the_crawl() -> None:
    web = {**EVEN, "hosts": 50, "pages": 4_000}
    lossy = SeenOptions(backend="bloom", expected_urls=4_000, false_positive_rate=0.2)
    result = simulated(web, politeness=FIXED, seen=lossy)
    assert result.ended == "finished"
    assert 4_000 * 0.8 < result.pages < 4_000 * 0.99


SAME = """
from tests.simulate.webs import simulated
print(simulated({"hosts": 60, "pages": 3000, "dead_host_share": 0.1, "robots": True}, pages=1500, seed=%d).as_json())
"""


@pytest.mark.heavy
@pytest.mark.promise("Simulation", "A simulation gives the same result for the same seed.")
def test_the_same_seed_gives_the_same_result_in_any_process() -> None:
    root = Path(gossamer.__file__).parents[2]
    said = []
    for seed, hashes in ((7, "1"), (7, "2"), (8, "1")):
        environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}", "PYTHONHASHSEED": hashes}
        command = [sys.executable, "-c", SAME % seed]
        said.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert said[0] == said[1]
    assert json.loads(said[0])["samples"] != json.loads(said[2])["samples"]


def test_progress_is_reported_and_nothing_is_left_behind(tmp_path: Path) -> None:
    told: list[float] = []
    simulate(SimulateOptions(web=SOUND, pages=800), told.append, tmp_path)
    assert told == sorted(told)
    assert 0.5 < told[-1] <= 1.0
    assert list(tmp_path.iterdir()) == []


def test_small_crawls_are_simulated_whole_and_large_ones_by_a_shard() -> None:
    assert scale_of(SimulateOptions(web=SOUND, shards=4)) == (1, 4)
    assert scale_of(SimulateOptions(pages=10**9, shards=12)) == (278, 1)
    few = FrontierOptions(active_hosts_max=10_000)
    assert scale_of(SimulateOptions(pages=10**9, shards=12, frontier=few)) == (200, 1)  # 50 hosts on the workbench.
    many = MachineOptions(concurrency=100)
    assert scale_of(SimulateOptions(pages=10**9, machine=many)) == (50, 1)
    assert scale_of(SimulateOptions(scale=7, shards=3, shards_simulated=2)) == (7, 2)


def test_few_pages_of_a_web_of_many_hosts_take_no_longer_than_many_pages() -> None:
    """Each host is in memory and asked for robots.txt before its pages, however few pages are wanted."""
    assert scale_of(SimulateOptions(pages=1_000, shards=12)) == (1, 1)  # A twelfth of a million hosts.
    web = {"hosts": 100_000_000, "pages": 10**12}
    assert scale_of(convert(SimulateOptions, {"pages": 1_000, "shards": 12, "web": web})) == (28, 1)
    some = WebOptions(hosts=20_000, pages=1_000_000)
    result = simulate(SimulateOptions(pages=100, shards=4, pages_simulated=1_000, web=some))
    assert (result.ended, result.shards_simulated, result.samples[-1].hosts_known) == ("pages", 1, 20_000)
    assert result.requests / result.scale / 4 < 1_500


def test_every_limit_is_explained() -> None:
    assert set(LIMITS) == {"cpu", "network", "concurrency", "workbench", "politeness", "hosts"}
