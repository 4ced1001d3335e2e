"""Limits: what held a crawl back, from its samples. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from gossamer.frontier.room import HOST_BYTES
from gossamer.lab.simulate.machine import shard_bytes_per_s, shard_cores
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.samples import Sample

Limit = Literal["cpu", "network", "concurrency", "workbench", "politeness", "hosts"]
LIMITS: dict[Limit, str] = {
    "cpu": "the processors are busy: more shards, or less work a page",
    "network": "the links are full: more machines",
    "concurrency": "all requests at once are under way: a higher machine.concurrency",
    "workbench": "hosts wait for a place in memory: a higher frontier.bench_bytes_max or bench_hosts_max",
    "politeness": "all hosts that have pages left rest: more hosts, or shorter delays",
    "hosts": "less than half as many hosts have pages left as at best: more seeds, or the end is near",
}
BUSY_SHARE = 0.95
FULL_SHARE = 0.5
WINDOWS = 60
"""Intervals that a crawl is told in: samples are taken more often, to be sure of the end."""


class Interval(msgspec.Struct, frozen=True):
    """The time between two samples."""

    begin_s: float
    end_s: float
    pages_per_s: float
    cpu_share: float
    network_share: float
    slots_share: float
    limit: Limit


def intervals(samples: Sequence[Sample], options: SimulateOptions) -> list[Interval]:
    """Return what went on between the samples, and what it was limited by."""
    samples = _spread(samples)
    begin = Sample(**dict.fromkeys(Sample.__struct_fields__, 0.0))
    most_hosts = max((sample.hosts_active for sample in samples), default=0.0)
    cpu_per_s = shard_cores(options) * options.shards
    bytes_per_s = shard_bytes_per_s(options) * options.shards
    bench = options.frontier
    # With full windows of URLs a host takes more than twice HOST_BYTES.
    bench_hosts = options.shards * min(0.9 * bench.bench_hosts_max, 0.35 * bench.bench_bytes_max / HOST_BYTES)
    found = []
    for before, after in pairwise([begin, *samples]):
        span_s = after.at_s - before.at_s
        if span_s <= 0:
            continue
        cpu = (after.cpu_s - before.cpu_s) / span_s / cpu_per_s
        network = (after.wire_bytes - before.wire_bytes) / span_s / bytes_per_s
        full = (after.full_s - before.full_s) / span_s
        limit: Limit
        if cpu >= BUSY_SHARE:
            limit = "cpu"
        elif network >= BUSY_SHARE:
            limit = "network"
        elif full >= FULL_SHARE:
            limit = "concurrency"
        elif after.hosts_active < most_hosts / 2:
            limit = "hosts"
        elif after.hosts_benched >= bench_hosts and after.hosts_active > 1.1 * after.hosts_benched:
            limit = "workbench"
        else:
            limit = "politeness"
        found.append(
            Interval(
                before.at_s,
                after.at_s,
                (after.pages - before.pages) / span_s,
                min(cpu, 1.0),
                min(network, 1.0),
                (after.used_s - before.used_s) / span_s,
                limit,
            )
        )
    return found


def _spread(samples: Sequence[Sample]) -> list[Sample]:
    """Return samples at least a sixtieth of the whole time apart, the last one among them."""
    step_s = samples[-1].at_s / WINDOWS
    kept = [samples[-1]]
    for sample in reversed(samples):
        if kept[-1].at_s - sample.at_s >= step_s and sample.at_s >= step_s / 2:
            kept.append(sample)
    return kept[::-1]


def shares(between: Sequence[Interval]) -> dict[Limit, float]:
    """Return for which share of the time each limit held, the longest first."""
    time_s: dict[Limit, float] = {}
    for interval in between:
        time_s[interval.limit] = time_s.get(interval.limit, 0.0) + interval.end_s - interval.begin_s
    whole_s = sum(time_s.values())
    return {limit: spent_s / whole_s for limit, spent_s in sorted(time_s.items(), key=lambda item: -item[1])}
