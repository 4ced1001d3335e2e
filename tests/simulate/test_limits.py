"""What a crawl is limited by, where each rule begins and ends."""

from __future__ import annotations

import pytest

from gossamer.lab.simulate.options import MachineOptions, SimulateOptions
from gossamer.lab.simulate.result import Sample, intervals, shares
from gossamer.stages.frontier.options import FrontierOptions

OPTIONS = SimulateOptions(
    shards=2,
    machine=MachineOptions(shards=2, cores=2, bandwidth_bits_per_s=16_000.0),
    frontier=FrontierOptions(active_hosts_max=50),
)
"""Two cores and 2,000 bytes a second in all; 90 hosts fill the workbenches."""


def sample(at_s: float, cpu: float, network: float, full: float, hosts: float, benched: float) -> Sample:
    """Return a sample of a crawl that was so busy from the beginning."""
    return Sample(
        at_s, at_s, at_s, at_s, hosts, benched, hosts, hosts, network * 2_000 * at_s, cpu * 2 * at_s, full * at_s,
        full * at_s,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cpu", "network", "full", "hosts", "benched", "limit"),
    [
        (0.96, 1.0, 1.0, 1_000, 90, "cpu"),
        (0.94, 0.96, 1.0, 1_000, 90, "network"),
        (0.94, 0.94, 0.51, 1_000, 90, "concurrency"),
        (0.94, 0.94, 0.49, 1_000, 90, "workbench"),
        (0.94, 0.94, 0.49, 1_000, 89, "politeness"),
        (0.1, 0.1, 0.0, 95, 90, "politeness"),
    ],
)
def test_the_first_rule_that_holds_names_the_limit(
    cpu: float, network: float, full: float, hosts: float, benched: float, limit: str
) -> None:
    found = intervals([sample(at_s, cpu, network, full, hosts, benched) for at_s in range(1, 61)], OPTIONS)
    assert {one.limit for one in found} == {limit}
    assert found[3].cpu_share == pytest.approx(cpu)
    assert found[3].network_share == pytest.approx(network)
    assert shares(found) == {limit: 1.0}


def test_less_than_half_of_the_hosts_is_a_limit() -> None:
    hosts = [100] * 30 + [51] * 10 + [49] * 20
    found = intervals([sample(1.0 + n, 0.1, 0.1, 0.0, hosts[n], 10) for n in range(60)], OPTIONS)
    assert shares(found) == pytest.approx({"politeness": 40 / 60, "hosts": 20 / 60})
