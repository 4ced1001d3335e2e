"""The simulation against reality: a real crawl of a synthetic web, predicted before it is made; and large samples."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import mean

import pytest

from gossamer.lab.simulate.options import SimulateOptions, WebOptions
from gossamer.lab.simulate.simulation import simulate
from gossamer.stages.frontier.options import FrontierOptions
from tests.simulate.webs import LARGE, small_sites_s

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from bench_simulate import TOLERANCE, compare, predicted, real

pytestmark = pytest.mark.acceptance

SHORT = {"simweb-even": ("simweb.pages=800",), "simweb-uneven": ("simweb.pages=450",)}
"""Fewer pages than `benchmarks/bench_simulate.py` takes: half a minute each."""
EARLY = frozenset({"half_s"})
"""Half of so few pages are fetched within seconds, while the crawl still starts up."""


@pytest.mark.promise("Simulation", "A simulation predicts a real crawl of the synthetic web.")
@pytest.mark.alone
@pytest.mark.parametrize("preset", SHORT)
@pytest.mark.long
def test_a_real_crawl_does_what_was_predicted(preset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = predicted(preset, 5, *SHORT[preset])
    after = real(preset, 5, tmp_path, *SHORT[preset])
    ratios = {name: ratio for name, _, _, ratio in compare(before, after)}
    with capsys.disabled():
        print(f"\nsimulate: {preset}: real / predicted { ({name: round(ratio, 3) for name, ratio in ratios.items()}) }")
    assert all(abs(ratio - 1.0) <= TOLERANCE for name, ratio in ratios.items() if name not in EARLY), ratios


@pytest.mark.promise("Simulation", "A simulated sample of hosts predicts what all of them would do.")
@pytest.mark.long
def test_one_host_of_a_hundred_tells_what_a_workbench_does(capsys: pytest.CaptureFixture[str]) -> None:
    web = WebOptions(hosts=20_000, pages=800_000, zipf_exponent=0.6, dead_host_share=0.05, error_share=0.1)
    bench = FrontierOptions(active_hosts_max=5_000)

    def time_s(scale: int, seed: int) -> float:
        return simulate(
            SimulateOptions(pages=80_000, web=web, machine=LARGE, frontier=bench, scale=scale, seed=seed)
        ).time_s

    whole = time_s(1, 1)
    samples = {scale: mean(time_s(scale, seed) for seed in range(1, seeds + 1)) for scale, seeds in ((10, 3), (100, 8))}
    with capsys.disabled():
        print(f"\nsimulate: time of 80,000 pages: whole {whole:.1f} s, means of samples {samples}")
    assert samples[10] == pytest.approx(whole, rel=0.05)
    assert samples[100] == pytest.approx(whole, rel=0.10)


@pytest.mark.promise("Order and fairness", "A huge slow site does not slow the small ones.")
@pytest.mark.long
def test_one_huge_slow_site_does_not_slow_ten_thousand_small_ones() -> None:
    alone_s, beside_s = small_sites_s(10_000)
    assert beside_s == pytest.approx(alone_s, rel=0.05)
