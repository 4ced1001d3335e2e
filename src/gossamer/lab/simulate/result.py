"""Result: from a sample of shards and hosts to the whole crawl: time, rates, limits, footprint, cost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from gossamer.lab.simulate.costs import Footprint, footprint_of, shard_bytes_per_s, shard_cores
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.samples import Interval, Limit, Milestones, Sample, intervals, shares
from gossamer.lab.simulate.web import LogNormal, largest
from gossamer.options import to_table
from gossamer.stages.frontier.options import politeness

Ended = Literal["pages", "finished", "time"]


class Simulated(msgspec.Struct, frozen=True):
    """How a crawl goes. Counts are of the whole crawl, projected from what was simulated; times are simulated ones."""

    options: dict[str, object]
    ended: Ended
    """At the pages asked for, with no URL left, or at the end of the time."""
    time_s: float
    """Until then."""
    largest_host_s: float
    """How long the largest host alone takes, at a request a turn: no crawl to the end is shorter."""
    pages: float
    requests: float
    """Of pages, of robots.txt, and in vain."""
    urls: float
    """URLs found."""
    pages_per_s: float
    """Mean over the whole time."""
    pages_per_s_most: float
    """Of the best tenth of the time."""
    half_s: float
    """When half of the pages were fetched."""
    nine_tenths_s: float
    hosts_known: float
    hosts_active_most: float
    hosts_benched_most: float
    pending_most: float
    """URLs queued, at most."""
    limits: dict[Limit, float]
    """For which share of the time each limit held, the longest first."""
    cpu_share: float
    """Of all shards' processors, mean."""
    network_share: float
    bits_per_s: float
    """Received, exchange between shards included, mean of the whole crawl."""
    coordinator_share: float
    """Of one core, for the reports of all shards."""
    footprint: Footprint
    machines: int
    machine_hours: float
    traffic_cost: float
    """Of what is sent to the web; what arrives costs nothing."""
    storage_cost_month: float
    """Of keeping state and archive for a month; no part of `cost`."""
    cost: float
    """Of machines and traffic."""
    cost_per_million: float
    """For a million pages."""
    scale: float
    """Hosts that each simulated one represents, within its shard."""
    shards_simulated: int
    pages_simulated: int
    samples: tuple[Sample, ...]
    intervals: tuple[Interval, ...]

    def as_json(self) -> str:
        """Return it as JSON, fields named as here."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()


def result_of(
    options: SimulateOptions,
    samples: Sequence[Sample],
    ended: Ended,
    scale: float,
    simulated: int,
    milestones: Milestones,
) -> Simulated:
    """Return the whole crawl's figures from its samples."""
    last = samples[-1]
    between = intervals(samples, options)
    largest_s = largest_host_s(options)
    time_s = last.at_s
    if ended == "finished" and scale > 1.0:
        # A band of large hosts is simulated as one of their mean size, and the largest takes longer than that.
        time_s = max(time_s, largest_s)
    hours = time_s / 3600 * options.machines
    machine = options.machine
    traffic_cost = last.requests * machine.sent_bytes_per_request / 1e9 * machine.price_per_gb_sent
    cost = hours * machine.price_per_hour + traffic_cost
    footprint = footprint_of(
        options,
        hosts_benched=max(sample.hosts_benched for sample in samples),
        hosts_known=last.hosts_known,
        urls=last.discovered,
        pending=max(sample.pending for sample in samples),
        pages=last.pages,
        wire_bytes=last.wire_bytes,
    )
    cpu_s = shard_cores(options) * options.shards
    bytes_s = shard_bytes_per_s(options) * options.shards
    rates = sorted((one.pages_per_s for one in between), reverse=True)
    return Simulated(
        options=to_table(options, defaults=True),
        ended=ended,
        time_s=time_s,
        largest_host_s=largest_s,
        pages=last.pages,
        requests=last.requests,
        urls=last.discovered,
        pages_per_s=last.pages / time_s if time_s else 0.0,
        pages_per_s_most=rates[len(rates) // 10] if rates else 0.0,
        half_s=milestones.time_to_share_s(0.5),
        nine_tenths_s=milestones.time_to_share_s(0.9),
        hosts_known=last.hosts_known,
        hosts_active_most=max(sample.hosts_active for sample in samples),
        hosts_benched_most=max(sample.hosts_benched for sample in samples),
        pending_most=max(sample.pending for sample in samples),
        limits=shares(between),
        cpu_share=last.cpu_s / time_s / cpu_s if time_s else 0.0,
        network_share=last.wire_bytes / time_s / bytes_s if time_s else 0.0,
        bits_per_s=8 * last.wire_bytes / time_s if time_s else 0.0,
        coordinator_share=options.shards * options.exchange.coordinator_us_per_report / 1e6 / options.exchange.report_s,
        footprint=footprint,
        machines=options.machines,
        machine_hours=hours,
        traffic_cost=traffic_cost,
        storage_cost_month=(footprint.state_disk + footprint.archive_disk) / 1e9 * machine.price_per_gb_month,
        cost=cost,
        cost_per_million=cost / last.pages * 1e6 if last.pages else 0.0,
        scale=scale,
        shards_simulated=simulated,
        pages_simulated=milestones.pages,
        samples=tuple(samples),
        intervals=tuple(between),
    )


def largest_host_s(options: SimulateOptions) -> float:
    """Return the time that the largest host takes, one request after the other, if it answers as hosts usually do."""
    web = options.web
    rules = politeness(options.politeness)
    fetch_s = web.fetch_s_median * LogNormal(1.0, web.fetch_sigma_page).mean
    rest_s = rules.rest_s([fetch_s] * 5, None)
    return largest(web.hosts, web.pages, web.zipf_exponent) * (fetch_s + rest_s) / rules.per_host
