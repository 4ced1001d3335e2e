"""What Ray's metrics cost a shard's parent process: the gauges that it sets in each round, on a private Ray.

Run with `python benchmarks/bench_ray_metrics.py`.
"""

from __future__ import annotations

import os
import time

from gossamer.cluster.options import ClusterOptions

ROUNDS = 20_000


class Setting:
    """Sets the metrics of a shard, as its actor does."""

    def spent_s(self) -> float:
        """Return the processor time of one round's metrics, threads of Ray included."""
        from ray.util.metrics import Gauge  # noqa: PLC0415 - Ray reads its environment when it is imported

        from gossamer.cluster.aggregate import GAUGES, LABELS  # noqa: PLC0415

        gauges = [Gauge(name, what, LABELS) for name, what in GAUGES.items()]
        labels = {"crawl": "crawl", "shard": "0"}
        began = time.process_time()
        for number in range(ROUNDS):
            for gauge in gauges:
                gauge.set(float(number), labels)
        return (time.process_time() - began) / ROUNDS


def main() -> None:
    """Measure, and print the share of a processor at the default interval of rounds."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    import ray  # noqa: PLC0415
    from ray._private import ray_constants  # noqa: PLC0415

    ray_constants.ENABLE_RAY_CLUSTER = False  # Loopback alone.
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    spent_s = ray.get(ray.remote(Setting).remote().spent_s.remote())
    ray.shutdown()
    share = spent_s / ClusterOptions().round_s
    print(f"{spent_s * 1e6:.0f} µs a round, {share:.4%} of a processor for each shard")


if __name__ == "__main__":
    main()
