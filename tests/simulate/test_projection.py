"""A sample of the hosts tells what the whole web would: 1 of 1, 1 of 10 and 1 of 100, in each regime."""

from __future__ import annotations

from statistics import mean

import pytest
from msgspec.structs import replace

from gossamer.lab.simulate.options import MachineOptions, SimulateOptions, WebOptions
from gossamer.lab.simulate.result import Simulated
from gossamer.lab.simulate.simulation import simulate
from gossamer.options import convert
from gossamer.stages.frontier.options import FrontierOptions
from tests.further import with_further
from tests.simulate.webs import LARGE

pytestmark = pytest.mark.promise("Simulation", "A simulated sample of hosts predicts what all of them would do.")

WEB = WebOptions(hosts=3_000, pages=120_000, zipf_exponent=0.6, dead_host_share=0.05, error_share=0.1)
PAGES = 18_000
REGIMES = {
    "politeness": {"machine": LARGE},
    "workbench": {"machine": LARGE, "frontier": FrontierOptions(active_hosts_max=600)},
    "cpu": {"machine": MachineOptions(cpu_us_per_page=8_000, concurrency=600)},
}
SEEDS = {10: 6, 100: 18}
TOLERANCE = {10: 0.06, 100: 0.12}
"""Of the mean over the seeds. Of 100, 30 hosts and 180 pages are left: one such sample errs by a fifth, which its mean
does not; a sample of 300,000 pages errs by less than a hundredth.
"""
COARSEST = {"politeness": 100, "workbench": 10, "cpu": 100}
"""With 1 of 100 a workbench of 600 would have 6 hosts; `tests/acceptance/test_simulate.py` takes a larger one."""


@pytest.mark.heavy
@pytest.mark.parametrize("limit", with_further(*REGIMES))
@pytest.mark.long
def test_a_sample_tells_what_the_whole_does(limit: str) -> None:
    def result(scale: int, seed: int) -> Simulated:
        values = {"pages": PAGES, "web": WEB, "scale": scale, "seed": seed, **REGIMES[limit]}
        return simulate(convert(SimulateOptions, values))

    whole = result(1, 1)
    assert next(iter(whole.limits)) == limit
    assert whole.pages_simulated == PAGES
    for scale, seeds in SEEDS.items():
        if scale > COARSEST[limit]:
            continue
        samples = [result(scale, seed) for seed in range(1, seeds + 1)]
        assert {sample.pages_simulated for sample in samples} == {PAGES / scale}
        for name in ("pages", "time_s", "half_s", "requests", "urls", "hosts_known"):
            told, right = mean(getattr(sample, name) for sample in samples), getattr(whole, name)
            assert told == pytest.approx(right, rel=TOLERANCE[scale]), (scale, name)


@pytest.mark.heavy
@pytest.mark.long
def test_a_crawl_to_the_end_takes_as_long_as_its_largest_host_at_any_scale() -> None:
    web = replace(WEB, pages=40_000, zipf_exponent=1.0, dead_host_share=0.0, fetch_sigma_host=0.0)
    whole, sample = (simulate(SimulateOptions(web=web, machine=LARGE, scale=scale)) for scale in (1, 10))
    assert whole.ended == sample.ended == "finished"
    assert sample.pages == pytest.approx(whole.pages, rel=0.03)
    assert sample.time_s == pytest.approx(whole.time_s, rel=0.06)


@pytest.mark.heavy
@pytest.mark.parametrize("cpu_us", with_further(1_000, 15_000))
@pytest.mark.long
def test_one_shard_of_four_tells_what_all_four_do(cpu_us: int) -> None:
    web = replace(WEB, hosts=2_000, pages=60_000)
    machine = MachineOptions(cpu_us_per_page=cpu_us, concurrency=300)
    every, one = (
        simulate(SimulateOptions(pages=8_000, web=web, machine=machine, shards=4, shards_simulated=shards, scale=1))
        for shards in (4, 1)
    )
    assert (every.shards_simulated, every.pages_simulated) == (4, 8_000)
    assert (one.shards_simulated, one.pages_simulated) == (1, 2_000)
    assert next(iter(one.limits)) == ("politeness" if cpu_us == 1_000 else "cpu")
    for name in ("pages", "time_s", "requests", "urls", "hosts_known"):
        assert getattr(one, name) == pytest.approx(getattr(every, name), rel=0.06), name
