"""What a committed frontier must look like on disk."""

from __future__ import annotations

from collections import Counter

from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.index import ON_WORKBENCH
from gossamer.stages.frontier.record import LEVELS, HostRecord, decode_block, decode_record
from gossamer.state.store import Store

ALL = (b"\0\0", b"\xff\xff")


def check_disk(store: Store, frontier: Frontier | None = None) -> None:
    """Assert what holds at every commit."""
    records = {key: decode_record(value) for key, value in store.scan("host", *ALL)}
    _check_counts(store, records, frontier)
    _check_index(store, records, frontier)
    _check_blocks(store, records)


def _check_counts(store: Store, records: dict[bytes, HostRecord], frontier: Frontier | None) -> None:
    if frontier is not None:
        counts = frontier.counts
        assert counts.discovered == counts.pending + sum(counts.terminal.values())
        assert counts.hosts == len(records)
        assert counts.working == sum(bool(record.index_key) for record in records.values())
        assert counts.deferred == sum(record.index_family == "deferred" for record in records.values())
        assert counts.pending == sum(record.urls_queued - record.revisits for record in records.values())
        for level in range(LEVELS):
            queues = [
                queue for record in records.values() for lane, queue in record.levels.items() if lane & 7 == level
            ]
            assert counts.levels[level] == sum(queue.pending for queue in queues), f"level {level}"
    for prefix, record in records.items():
        _check_origins(store, prefix, record)
    due = Counter(key[: key.index(b"\0", 2) + 1] for key, _ in store.scan("due", *ALL))
    assert due == Counter({key: record.due for key, record in records.items() if record.due and not record.closed})


def _check_origins(store: Store, prefix: bytes, record: HostRecord) -> None:
    """URLs are counted by origin, and what is set aside belongs to the origin that has the slot."""
    slots = {one.slot: key for key, one in (record.origins or {}).items()}
    counted = Counter({"plain": 0, "other": 0})
    for lane, queue in record.levels.items():
        first = queue.block
        while first < queue.tail:
            data = store.get("queue", prefix + bytes((lane,)) + first.to_bytes(8))
            assert data is not None
            block = decode_block(data)
            for number, entry in enumerate(block.entries(record.name), first):
                if queue.is_finished(number):
                    continue
                scheme, _, rest = entry.url.partition("://")
                key = scheme + rest[: rest.index("/")].removeprefix(record.name)
                if lane >= LEVELS:
                    assert slots[lane >> 3] == key
                elif key != "https":
                    counted["plain" if key == "http" else "other"] += 1
            first += block.count
    assert (record.plain, record.other) == (counted["plain"], counted["other"])


def _check_index(store: Store, records: dict[bytes, HostRecord], frontier: Frontier | None) -> None:
    entries = {("ready", key): key[7:].decode() for key, _ in store.scan("ready", *ALL)}
    entries |= {("deferred", key): key[6:].decode() for key, _ in store.scan("deferred", *ALL)}
    entries |= {("waiting", key): key[key.index(b"\0", 2) + 6 :].decode() for key, _ in store.scan("waiting", *ALL)}
    entries |= {("sleep", key): key[10:].decode() for key, _ in store.scan("sleep", *ALL)}
    assert not [name for name, count in Counter(entries.values()).items() if count > 1], "one entry a host"
    for record in records.values():
        if record.urls_queued:
            assert entries.pop((record.index_family, record.index_key)) == record.name
        elif record.index_key:
            # On the bench for a prerequisite or a verdict; otherwise a host without work has no entry.
            assert record.index_key[2] == ON_WORKBENCH
            assert entries.pop((record.index_family, record.index_key)) == record.name
            if frontier is not None:
                assert record.name in frontier.scheduler.active
    assert not entries


def _check_blocks(store: Store, records: dict[bytes, HostRecord]) -> None:
    held: dict[tuple[bytes, int], list[tuple[int, int]]] = {}
    for key, value in store.scan("queue", *ALL):
        prefix, level, number = key[:-9], key[-9], int.from_bytes(key[-8:])
        held.setdefault((prefix, level), []).append((number, number + decode_block(value).count))
    for prefix, record in records.items():
        for level, queue in record.levels.items():
            at = queue.block
            for begin, end in held.pop((prefix, level), []):
                assert begin == at, "blocks lie end to end from the one that holds the head"
                assert end > queue.head, "a block that is passed is gone"
                at = end
            assert at == queue.tail
    assert not held, "no block of a level that is nobody's"
