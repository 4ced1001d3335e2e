"""Small webs to simulate."""

from __future__ import annotations

from gossamer.simulate.options import MachineOptions, SimulateOptions, WebOptions
from gossamer.simulate.result import Simulated
from gossamer.simulate.simulation import simulate

SOUND = WebOptions(hosts=100, pages=1_000, dead_host_share=0.0, error_share=0.0, robots=False, lookup_s=0.0)
LARGE = MachineOptions(cores=64, cores_per_shard=64, shards=1, bandwidth_bits_per_s=1e12, concurrency=16_000)


def simulated(web: dict[str, object] | None = None, **options: object) -> Simulated:
    """Simulate a sound web with changes, on a machine that limits nothing."""
    values = {"web": SOUND.model_copy(update=web or {}), "machine": LARGE, **options}
    return simulate(SimulateOptions.model_validate(values))
