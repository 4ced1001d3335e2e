"""Costs: what a visit costs the processor and the network, and what a crawl takes of memory and disk. Pure.

The figures of a unit are measured (docs/explanation/simulation.md, "Units"); memory has bounds by
configuration, so it depends on the crawl's size only until they are reached.
"""

from __future__ import annotations

import msgspec

from gossamer.lab.simulate.options import ExchangeOptions, MachineOptions, SimulateOptions, WebOptions
from gossamer.stages.frontier.workbench import HOST_BYTES
from gossamer.stages.seen.options import SeenOptions
from gossamer.stages.seen.popular import POPULAR_BYTES
from gossamer.state.options import StateOptions

_AHEAD = 8
"""Visits that may be behind without a wait: such short queues take no time at full scale."""
REQUEST_BYTES = 1_500.0
"""Heads of request and reply, handshakes and acknowledgements of a request."""


class Capacity:
    """A processor or a link that does so much a second, in the order asked for: `now` never goes back."""

    def __init__(self, per_s: float, typical: float) -> None:
        """Take the work that is done in a second, and that of a typical visit."""
        self._per_s = per_s
        self._ahead_s = _AHEAD * typical / per_s
        self._busy_until = 0.0
        self._taken = 0.0

    def wait_s(self, work: float, now: float) -> float:
        """Take work on and return how long from now it is not done."""
        self._taken += work
        self._busy_until = max(self._busy_until, now) + work / self._per_s
        return max(0.0, self._busy_until - now - self._ahead_s)

    def work_done(self, now: float) -> float:
        """Return the work that is done by now; work that arrives in a burst takes its time too."""
        return self._taken - max(0.0, self._busy_until - now) * self._per_s


def foreign_share(web: WebOptions, shards: int) -> float:
    """Return the share of links that lead to another shard."""
    return (1.0 - web.same_host_share) * (shards - 1) / shards


def cpu_request_s(web: WebOptions, machine: MachineOptions) -> float:
    """Return the processor's time for a request that brings no page."""
    return (machine.cpu_us_per_request + web.https_share * machine.cpu_us_per_tls) / 1e6


def cpu_page_s(page_bytes: float, web: WebOptions, machine: MachineOptions) -> float:
    """Return the processor's time for a page of a size, without the exchange between shards."""
    if machine.cpu_us_per_page is not None:
        return machine.cpu_us_per_page / 1e6
    content_us = machine.cpu_us_per_kb * page_bytes / 1e3 + machine.cpu_us_per_link * web.links_per_page
    return cpu_request_s(web, machine) + (machine.cpu_us_per_document + content_us) / 1e6


def cpu_exchange_s(web: WebOptions, exchange: ExchangeOptions, shards: int) -> float:
    """Return the processor's time for those links of a page that go to another shard, there and here together."""
    return web.links_per_page * foreign_share(web, shards) * exchange.cpu_us_per_link / 1e6


def exchange_bytes(web: WebOptions, exchange: ExchangeOptions, shards: int) -> float:
    """Return the bytes that a page's links take on the network to other shards, out and in together."""
    return 2 * web.links_per_page * foreign_share(web, shards) * exchange.bytes_per_link


def shard_cores(options: SimulateOptions) -> float:
    """Return the cores that one shard has: its part of the machine, and no more than it can use."""
    return min(options.machine.cores_per_shard, options.machine.cores / _together(options))


def shard_bytes_per_s(options: SimulateOptions) -> float:
    """Return one shard's part of its machine's network."""
    return options.machine.bandwidth_bits_per_s / 8 / _together(options)


def _together(options: SimulateOptions) -> int:
    return min(options.machine.shards, options.shards)


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
"""What a visit leaves in the open epoch and in the tables until they are committed."""
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


def footprint_of(
    options: SimulateOptions,
    *,
    hosts_benched: float,
    hosts_known: float,
    urls: float,
    pending: float,
    pages: float,
    wire_bytes: float,
) -> Footprint:
    """Return what a crawl takes at most, from the counts of all its shards."""
    web = options.web
    state = StateOptions()
    shards = options.shards
    hosts_cached = min(hosts_known / shards, float(options.frontier.records_cached_max))
    memory = (
        PROCESS_BYTES
        + state.cache_bytes
        + state.write_buffer_bytes
        + hosts_benched / shards * (HOST_BYTES + options.frontier.window_urls_max * WINDOW_URL_BYTES)
        + hosts_cached * CACHED_HOST_BYTES
        + url_seen_memory_bytes(options.seen, urls / shards)
        + options.machine.concurrency * IN_FLIGHT_PAGES * web.page_bytes_mean
        + EPOCH_VISITS * EPOCH_VISIT_BYTES
    )
    state_disk = (
        pending * QUEUED_URL_BYTES
        + hosts_known * HOST_RECORD_BYTES
        + shards * url_seen_disk_bytes(options.seen, urls / shards)
        + pages * HISTORY_BYTES
    )
    archive_disk = wire_bytes * ARCHIVED_SHARE + pages * web.links_per_page * LINK_ROW_BYTES
    together = min(options.machine.shards, shards)
    return Footprint(
        memory_per_shard=memory,
        memory_per_machine=memory * together,
        state_disk=state_disk,
        archive_disk=archive_disk,
        disk_per_machine=(state_disk + archive_disk) / options.machines,
    )


def url_seen_memory_bytes(options: SeenOptions, urls: float) -> float:
    """Return what one shard's eliminator keeps in memory when it has seen this number of URLs."""
    if options.backend == "bloom":
        return _filter_bytes(options, urls)
    grown = urls * SEEN_URL_MEMORY_BYTES[options.backend]
    if options.backend == "rocksdb":
        grown += options.popular_bytes_max
    elif options.backend == "diskmerge":
        grown += options.popular_urls_max * POPULAR_BYTES + FRONTS * options.front_urls_max * FRONT_URL_BYTES
    return grown


def url_seen_disk_bytes(options: SeenOptions, urls: float) -> float:
    """Return what one shard's eliminator keeps in files, merges under way and logs left out."""
    return _filter_bytes(options, urls) if options.backend == "bloom" else urls * SEEN_URL_BYTES[options.backend]


def _filter_bytes(options: SeenOptions, urls: float) -> float:
    """Return what filters take: all of the expected from the start, and twice as many whenever they are full."""
    held = float(options.filter_bytes)
    room = options.expected_urls
    while room < urls:
        room = 2 * room + options.expected_urls
        held = 2 * held + options.filter_bytes
    return held
