"""Small webs to simulate."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer.lab.simulate.options import MachineOptions, SimulateOptions, WebOptions
from gossamer.lab.simulate.result import Simulated
from gossamer.lab.simulate.simulation import simulate
from gossamer.options import convert
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions

SOUND = WebOptions(hosts=100, pages=1_000, dead_host_share=0.0, error_share=0.0, robots=False, lookup_s=0.0)
LARGE = MachineOptions(cores=64, cores_per_shard=64, shards=1, bandwidth_bits_per_s=1e12, concurrency=16_000)


def simulated(web: dict[str, object] | None = None, **options: object) -> Simulated:
    """Simulate a sound web with changes, on a machine that limits nothing."""
    values = {"web": replace(SOUND, **(web or {})), "machine": LARGE, **options}
    return simulate(convert(SimulateOptions, values))


def small_sites_s(hosts: int) -> tuple[float, float]:
    """Return how long small sites of two pages take alone, and beside a huge slow one; memory holds a tenth of them."""
    web = {
        "hosts": hosts, "pages": 2 * hosts, "zipf_exponent": 0.0, "same_host_share": 1.0, "hosts_per_address": 1.0,
        "fetch_s_median": 0.5, "fetch_sigma_host": 0.0, "fetch_sigma_page": 0.0,
    }  # fmt: skip
    rules = {
        "politeness": PolitenessOptions(delay_s_min=2.0, delay_factor=0.0),
        "frontier": FrontierOptions(active_hosts_max=hosts // 20 * 21 // 10),
    }
    alone = simulated(web, **rules)
    giant = {"giant_pages": 10 * hosts, "giant_fetch_s": 5.0}
    beside = simulated(web | giant, time_s_max=1.5 * alone.time_s, **rules)
    assert alone.pages == 2 * hosts
    assert beside.pages > 2 * hosts  # The giant has had its turns too.
    return alone.time_s, next(sample.at_s for sample in beside.samples if sample.hosts_active <= 1)
