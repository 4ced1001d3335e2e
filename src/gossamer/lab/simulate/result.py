"""Result: from a sample of shards and hosts to the whole crawl: time, rates, limits, footprint, cost. Pure.

Samples say how a crawl was at instants evenly spread over it, and what limited it between them.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from gossamer.lab.simulate.costs import shard_bytes_per_s, shard_cores
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.web import LogNormal, largest
from gossamer.options import to_table
from gossamer.stages.frontier.options import politeness
from gossamer.stages.frontier.workbench import HOST_BYTES
from gossamer.stages.seen.options import SeenOptions
from gossamer.stages.seen.popular import POPULAR_BYTES
from gossamer.state.options import StateOptions

SAMPLES_MAX = 240
MILESTONES_MAX = 1_024
INTERVAL_S_FIRST = 0.25


class Sample(msgspec.Struct, frozen=True):
    """How the whole crawl stood at an instant, and how it did since the sample before."""

    at_s: float
    """Since the start."""
    pages: float
    requests: float
    discovered: float
    """URLs."""
    hosts_active: float
    """Hosts with URLs that are not finished."""
    hosts_benched: float
    """Hosts on the workbenches."""
    hosts_known: float
    pending: float
    """URLs queued or under way."""
    wire_bytes: float
    cpu_s: float
    """Processor's work, all shards."""
    used_s: float
    """Time times the share of slots in use, mean of the shards."""
    full_s: float
    """Time in which all slots were in use, mean of the shards."""


class Samples:
    """Takes a sample when one is due; keeps 240 at most, by dropping every other one and going half as often."""

    def __init__(self) -> None:
        self.taken: list[Sample] = []
        self.interval_s = INTERVAL_S_FIRST
        self.due_s = INTERVAL_S_FIRST

    def add(self, sample: Sample) -> None:
        """Keep a sample that was due."""
        self.taken.append(sample)
        if len(self.taken) >= SAMPLES_MAX:
            del self.taken[::2]
            self.interval_s *= 2
        self.due_s = max(self.due_s, (sample.at_s // self.interval_s + 1) * self.interval_s)


class Milestones:
    """When each so-manieth page was fetched: 512 to 1,024 instants, for any number of pages."""

    def __init__(self) -> None:
        self._at_s: list[float] = []
        self._step = 1
        self.pages = 0
        """Pages fetched."""

    def count_page(self, at_s: float) -> None:
        """Count a page."""
        self.pages += 1
        if self.pages % self._step == 0:
            self._at_s.append(at_s)
            if len(self._at_s) == MILESTONES_MAX:
                self._at_s = self._at_s[1::2]
                self._step *= 2

    def time_to_share_s(self, share: float) -> float:
        """Return when a share of the pages was fetched, to a five-hundredth of them; 0 when there are none."""
        place = min(round(share * self.pages / self._step), len(self._at_s))
        return self._at_s[place - 1] if place else 0.0


# What limited a crawl, from its samples.

Limit = Literal["cpu", "network", "concurrency", "workbench", "politeness", "hosts"]
LIMITS: dict[Limit, str] = {
    "cpu": "the processors are busy: more shards, or less work a page",
    "network": "the links are full: more machines",
    "concurrency": "all requests at once are under way: a higher machine.concurrency",
    "workbench": "hosts wait for a place in memory: a higher frontier.active_hosts_bytes_max or active_hosts_max",
    "politeness": "all hosts that have pages left rest: more hosts, or shorter delays",
    "hosts": "less than half as many hosts have pages left as at best: more seeds, or the end is near",
}
BUSY_SHARE = 0.95
FULL_SHARE = 0.5
WINDOWS = 60
"""Intervals in a result: samples are taken more often, to be sure of the end."""


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
    """Return the rates between the samples, and what limited them."""
    samples = _spread(samples)
    begin = Sample(**dict.fromkeys(Sample.__struct_fields__, 0.0))
    most_hosts = max((sample.hosts_active for sample in samples), default=0.0)
    cpu_per_s = shard_cores(options) * options.shards
    bytes_per_s = shard_bytes_per_s(options) * options.shards
    bench = options.frontier
    # With full windows of URLs a host takes more than twice HOST_BYTES.
    bench_hosts = options.shards * min(0.9 * bench.active_hosts_max, 0.35 * bench.active_hosts_bytes_max / HOST_BYTES)
    found = []
    for before, after in pairwise([begin, *samples]):
        span_s = after.at_s - before.at_s
        if span_s <= 0:
            continue
        cpu = (after.cpu_s - before.cpu_s) / span_s / cpu_per_s
        network = (after.wire_bytes - before.wire_bytes) / span_s / bytes_per_s
        full = (after.full_s - before.full_s) / span_s
        limits: dict[Limit, bool] = {
            "cpu": cpu >= BUSY_SHARE,
            "network": network >= BUSY_SHARE,
            "concurrency": full >= FULL_SHARE,
            "hosts": after.hosts_active < most_hosts / 2,
            "workbench": after.hosts_benched >= bench_hosts and after.hosts_active > 1.1 * after.hosts_benched,
            "politeness": True,
        }
        limit = next(name for name, is_reached in limits.items() if is_reached)
        rate = (after.pages - before.pages) / span_s
        slots = (after.used_s - before.used_s) / span_s
        found.append(Interval(before.at_s, after.at_s, rate, min(cpu, 1.0), min(network, 1.0), slots, limit))
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


# Memory and disk.

PROCESS_BYTES = 140e6
"""A crawling process with its libraries, before its first page."""
WINDOW_URL_BYTES = 150.0
"""A URL in the window of a host on the workbench."""
CACHED_HOST_BYTES = 2_000.0
"""A resting host's record in memory."""
IN_FLIGHT_PAGES = 2.0
"""Copies of a page in memory for each request at once: body as sent, body decoded."""
EPOCH_VISIT_BYTES = 8_000.0
"""Memory of a visit in the open epoch and in the tables, until they are committed."""
EPOCH_VISITS = 4_000
QUEUED_URL_BYTES = 40.0
HOST_RECORD_BYTES = 160.0
SEEN_URL_BYTES = {"rocksdb": 12.0, "memory": 12.0, "diskmerge": 13.0}
SEEN_URL_MEMORY_BYTES = {"rocksdb": 0.0, "memory": 90.0, "diskmerge": 1.5}
FRONT_URL_BYTES = 100.0
FRONTS = 3
"""Buffers of new URLs that may be full at once. All of these from docs/explanation/duplicates.md."""
HISTORY_BYTES = 120.0
"""A page's record in the history and its row in the tables."""
LINK_ROW_BYTES = 12.0
ARCHIVED_SHARE = 1.05
"""Bytes in the archive for each byte on the wire: bodies are kept compressed as they came, or compressed by us."""


class Footprint(msgspec.Struct, frozen=True):
    """Bytes, of all shards unless it says otherwise."""

    memory_per_shard: float
    memory_per_machine: float
    state_disk: float
    """Queues, host records, eliminator, history."""
    archive_disk: float
    """WARC and tables."""
    disk_per_machine: float


def footprint_of(options: SimulateOptions, samples: Sequence[Sample]) -> Footprint:
    """Return the peak use of a crawl, from the counts of all its shards. Memory has bounds by configuration, so it
    depends on the crawl's size only until they are reached.
    """
    last = samples[-1]
    web = options.web
    state = StateOptions()
    shards = options.shards
    hosts_cached = min(last.hosts_known / shards, float(options.frontier.records_cached_max))
    hosts_benched = max(one.hosts_benched for one in samples)
    memory = (
        PROCESS_BYTES
        + state.cache_bytes
        + state.write_buffer_bytes
        + hosts_benched / shards * (HOST_BYTES + options.frontier.window_urls_max * WINDOW_URL_BYTES)
        + hosts_cached * CACHED_HOST_BYTES
        + url_seen_memory_bytes(options.seen, last.discovered / shards)
        + options.machine.concurrency * IN_FLIGHT_PAGES * web.page_bytes_mean
        + EPOCH_VISITS * EPOCH_VISIT_BYTES
    )
    state_disk = (
        max(one.pending for one in samples) * QUEUED_URL_BYTES
        + last.hosts_known * HOST_RECORD_BYTES
        + shards * url_seen_disk_bytes(options.seen, last.discovered / shards)
        + last.pages * HISTORY_BYTES
    )
    archive_disk = last.wire_bytes * ARCHIVED_SHARE + last.pages * web.links_per_page * LINK_ROW_BYTES
    return Footprint(
        memory_per_shard=memory,
        memory_per_machine=memory * min(options.machine.shards, shards),
        state_disk=state_disk,
        archive_disk=archive_disk,
        disk_per_machine=(state_disk + archive_disk) / options.machines,
    )


def url_seen_memory_bytes(options: SeenOptions, urls: float) -> float:
    """Return the memory of one shard's eliminator that has seen this number of URLs."""
    if options.backend == "bloom":
        return _filter_bytes(options, urls)
    grown = urls * SEEN_URL_MEMORY_BYTES[options.backend]
    if options.backend == "rocksdb":
        grown += options.popular_bytes_max
    elif options.backend == "diskmerge":
        grown += options.popular_urls_max * POPULAR_BYTES + FRONTS * options.front_urls_max * FRONT_URL_BYTES
    return grown


def url_seen_disk_bytes(options: SeenOptions, urls: float) -> float:
    """Return the disk space of one shard's eliminator, without merges under way and logs."""
    return _filter_bytes(options, urls) if options.backend == "bloom" else urls * SEEN_URL_BYTES[options.backend]


def _filter_bytes(options: SeenOptions, urls: float) -> float:
    """Return the memory of filters: for all expected URLs at first, and for twice as many whenever they are full."""
    held = float(options.filter_bytes)
    room = options.expected_urls
    while room < urls:
        room = 2 * room + options.expected_urls
        held = 2 * held + options.filter_bytes
    return held


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
    options: SimulateOptions, samples: Sequence[Sample], ended: Ended, scale: float, shards: int, milestones: Milestones
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
    footprint = footprint_of(options, samples)
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
        shards_simulated=shards,
        pages_simulated=milestones.pages,
        samples=tuple(samples),
        intervals=tuple(between),
    )


def largest_host_s(options: SimulateOptions) -> float:
    """Return the time that the largest host takes, one request after the other, if it answers as hosts usually do."""
    web = options.web
    rules = politeness(options.politeness)
    fetch_s = web.fetch_s_median * LogNormal(1.0, web.fetch_sigma_page).mean
    delay_s = rules.delay_s([fetch_s] * 5, None)
    return largest(web.hosts, web.pages, web.zipf_exponent) * (fetch_s + delay_s) / rules.per_host
