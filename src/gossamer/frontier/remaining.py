"""Remaining: the URLs that a crawl leaves in its queues, read off the last commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gossamer.frontier.record import (
    Entry,
    HostRecord,
    block_key,
    decode_block,
    decode_entry,
    decode_record,
    host_prefix,
    level_of,
    range_end,
)
from gossamer.model.links import Link
from gossamer.state.schema import PARTITIONED
from gossamer.state.store import Store
from gossamer.url.site import site_of
from gossamer.url.url import Url


def remaining(store: Store, name_url: Callable[[str], Url | None]) -> Iterator[tuple[Link, int]]:
    """Yield every URL that is not finished, with its level, by partition, site and host; within a host in the order of
    its queue, what waits for another attempt first. A pass over all hosts, 1 µs each; in memory are the names of one
    partition's that have something left.
    """
    names: list[tuple[str, str]] = []
    partition = b""
    for key, data in store.scan("host", *PARTITIONED):
        if key[:2] != partition:
            yield from _of_partition(store, partition, names, name_url)
            partition, names = key[:2], []
        record = decode_record(data)
        if record.queued:
            names.append((site_of(record.name), record.name))
    yield from _of_partition(store, partition, names, name_url)


def _of_partition(
    store: Store, partition: bytes, names: list[tuple[str, str]], name_url: Callable[[str], Url | None]
) -> Iterator[tuple[Link, int]]:
    for _, name in sorted(names):
        prefix = host_prefix(int.from_bytes(partition), name)
        data = store.get("host", prefix)
        assert data is not None, f"{name} is listed and has no record"
        for entry, level in _of_host(store, prefix, decode_record(data)):
            url = name_url(entry.url)
            if url is not None:
                yield Link(url, entry.link_type, entry.depth, entry.hops, entry.referrer, entry.seed), level


def _of_host(store: Store, prefix: bytes, record: HostRecord) -> Iterator[tuple[Entry, int]]:
    if record.due:
        for _, data in store.scan("due", prefix, range_end(prefix)):
            yield decode_entry(data), 0
    for lane, queue in sorted(record.levels.items()):
        first = queue.block
        while first < queue.tail:
            stored = store.get("queue", block_key(prefix, lane, first))
            assert stored is not None, f"{record.name} lacks the block {first} of queue {lane}"
            block = decode_block(stored)
            for number, entry in enumerate(block.entries(record.name), first):
                if not queue.finished(number):
                    yield entry, level_of(lane)
            first += block.count
