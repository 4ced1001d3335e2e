"""Footprint: memory and disk of a crawl, from counts and from what one of each takes. Pure.

The figures a unit are measured (docs/simulate.md, "Units"); memory has bounds by configuration, so it depends on the
crawl's size only until they are reached.
"""

from __future__ import annotations

import msgspec

from gossamer.frontier.room import HOST_BYTES
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.seen.options import SeenOptions
from gossamer.seen.popular import POPULAR_BYTES
from gossamer.state.options import StateOptions

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
"""Buffers of new URLs that may be full at once. All of these from docs/duplicates.md."""
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
    web, state, shards = options.web, StateOptions(), options.shards
    hosts_cached = min(hosts_known / shards, float(options.frontier.records_cached_max))
    memory = (
        PROCESS_BYTES
        + state.cache_bytes
        + state.write_buffer_bytes
        + hosts_benched / shards * (HOST_BYTES + options.frontier.window_urls_max * WINDOW_URL_BYTES)
        + hosts_cached * CACHED_HOST_BYTES
        + seen_memory_bytes(options.seen, urls / shards)
        + options.machine.concurrency * IN_FLIGHT_PAGES * web.page_bytes_mean
        + EPOCH_VISITS * EPOCH_VISIT_BYTES
    )
    state_disk = (
        pending * QUEUED_URL_BYTES
        + hosts_known * HOST_RECORD_BYTES
        + shards * seen_disk_bytes(options.seen, urls / shards)
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


def seen_memory_bytes(options: SeenOptions, urls: float) -> float:
    """Return what one shard's eliminator keeps in memory when it has seen so many URLs."""
    if options.form == "bloom":
        return _filter_bytes(options, urls)
    grown = urls * SEEN_URL_MEMORY_BYTES[options.form]
    if options.form == "rocksdb":
        grown += options.popular_bytes_max
    elif options.form == "diskmerge":
        grown += options.popular_urls_max * POPULAR_BYTES + FRONTS * options.front_urls_max * FRONT_URL_BYTES
    return grown


def seen_disk_bytes(options: SeenOptions, urls: float) -> float:
    """Return what one shard's eliminator keeps in files, merges under way and logs left out."""
    return _filter_bytes(options, urls) if options.form == "bloom" else urls * SEEN_URL_BYTES[options.form]


def _filter_bytes(options: SeenOptions, urls: float) -> float:
    """Return what filters take: all of the expected from the start, and twice as many whenever they are full."""
    held = float(options.filter_bytes)
    room = options.expected_urls
    while room < urls:
        room = 2 * room + options.expected_urls
        held = 2 * held + options.filter_bytes
    return held
