"""Recount: what the state of each commit must be, counted again from its keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isclose

import msgspec

from gossamer.cluster.places import MovedRun, PlacesRecord
from gossamer.engine.commit import Storage
from gossamer.features.revisit.rhythm import decode_rhythm
from gossamer.features.revisit.state import RevisitState, decode_memory, decode_state, recount
from gossamer.stages.frontier.record import (
    LEVELS,
    HostRecord,
    QueueCounts,
    decode_block,
    decode_entry,
    decode_record,
    level_of,
    range_end,
)
from gossamer.state.journals import ManifestEntry, lacking
from gossamer.state.schema import FAMILIES, FRONTIER_COUNTS, MANIFEST, PARTITIONED, PLACES, REVISIT_STATE, SEEN_FORM
from gossamer.state.store import Store

INDEXES = ("ready", "sleep", "deferred", "waiting")
"""Families in which a host with work has its one entry."""
STAYS = "scope"
"""The family whose keys stay where they were found, when their partition moves."""
COUNTS = ("pages", "there", "retired", "capped_hosts")
SUMS = ("importance", "fresh", "capped_per_s", "promised_per_s")


def wrong_state(store: Store, shard: int, owners: Sequence[int]) -> Iterator[str]:
    """Yield what is wrong with the state of a shard as a commit has it; `owners` has each partition's at the start."""
    places = _places(store)
    if len(set(owners)) > 1 or places.moved:
        yield from _elsewhere(store, shard, owners, places)
    hosts = [
        (prefix, decode_record(value))
        for prefix, value in store.scan("host", *PARTITIONED)
        if not _is_in(places.taking, prefix)
    ]
    for prefix, host in hosts:
        yield from _wrong_host(store, prefix, host)
    entries = Counter(
        (family, key)
        for family in INDEXES
        for key, _ in store.scan(family, *PARTITIONED)
        if not _is_in(places.taking, key)
    )
    named = Counter((host.index_family, host.index_key) for _, host in hosts if host.index_key)
    if entries != named:
        yield f"the index of hosts has {sorted(entries - named)}, and lacks {sorted(named - entries)}"
    yield from _wrong_counts(store, [host for _, host in hosts])
    yield from wrong_sums(store)


def _places(store: Store) -> PlacesRecord:
    data = store.get("meta", PLACES)
    return msgspec.msgpack.decode(data, type=PlacesRecord) if data is not None else PlacesRecord()


def _elsewhere(store: Store, shard: int, owners: Sequence[int], places: PlacesRecord) -> Iterator[str]:
    """Yield the partitions of other shards of which keys are here."""
    for family in FAMILIES:
        # The keys of other backends are tables of all URLs.
        stays = family == STAYS or (family == "seen" and store.get("meta", SEEN_FORM) != b"rocksdb")
        found = {key[:2] for key, _ in store.scan(family, *PARTITIONED)} if not stays else ()
        for partition in sorted(found):
            number = int.from_bytes(partition)
            owner = next((run.owner for run in places.moved if run.first <= number < run.end), owners[number])
            if owner != shard and not _is_in(places.taking, partition):
                yield f"partition {number} is with shard {owner}, and keys of its {family} are here"


def _is_in(runs: Sequence[MovedRun], key: bytes) -> bool:
    return bool(runs) and any(run.first <= int.from_bytes(key[:2]) < run.end for run in runs)


def _wrong_host(store: Store, prefix: bytes, host: HostRecord) -> Iterator[str]:
    due = [value for _, value in store.scan("due", prefix, range_end(prefix))]
    if host.closed:
        if due:
            yield f"{host.name} is closed, and {len(due)} of its URLs are due"
        return
    if len(due) != host.due:
        yield f"{host.name} counts {host.due} due URLs, and has {len(due)}"
    if host.revisits != sum(decode_entry(value).revisit for value in due):
        yield f"{host.name} counts {host.revisits} revisits among its due URLs"
    if host.urls_queued and not host.index_key:
        yield f"{host.name} has {host.urls_queued} URLs, and is in no index"
    lanes: Counter[int] = Counter(
        {level: queue.tail - queue.block for level, queue in host.levels.items() if queue.head < queue.tail}
    )
    for key, value in store.scan("queue", prefix, range_end(prefix)):
        lanes[key[len(prefix)]] -= decode_block(value).count
    if wrong := {level: -count for level, count in lanes.items() if count}:
        yield f"{host.name} has more URLs in blocks, by level, than in its record: {wrong}"


def _wrong_counts(store: Store, hosts: Sequence[HostRecord]) -> Iterator[str]:
    data = store.get("meta", FRONTIER_COUNTS)
    if data is None:
        return
    counts = msgspec.msgpack.decode(data, type=QueueCounts)
    again: dict[str, object] = {
        "pending": sum(host.urls_queued - host.revisits for host in hosts),
        "hosts": len(hosts),
        "working": sum(bool(host.index_key) for host in hosts),
        "deferred": sum(host.index_family == "deferred" for host in hosts),
        "levels": _levels(hosts),
    }
    for name, count in again.items():
        if (kept := getattr(counts, name)) != count:
            yield f"{name} {kept}, and the hosts have {count}"
    if counts.discovered != counts.pending + sum(counts.terminal.values()):
        yield f"{counts} does not add up"


def _levels(hosts: Sequence[HostRecord]) -> list[int]:
    levels = [0] * LEVELS
    for host in hosts:
        for lane, queue in host.levels.items():
            levels[level_of(lane)] += queue.pending
    return levels


def wrong_sums(store: Store) -> list[str]:
    """Return where the sums of a continuous crawl's shard are not those of its pages and hosts, as a commit has them.
    What is on its way here from another shard counts with the last part of it.
    """
    data = store.get("meta", REVISIT_STATE)
    if data is None:
        return []
    taking = _places(store).taking

    def values(family: str) -> Iterator[bytes]:
        return (value for key, value in store.scan(family, *PARTITIONED) if not _is_in(taking, key))

    kept = decode_state(data)
    return different_sums(
        kept, recount(kept, map(decode_rhythm, values("rhythm")), map(decode_memory, values("revisit")))
    )


def different_sums(kept: RevisitState, again: RevisitState) -> list[str]:
    """Return in what two sums differ: numbers exactly, and what is rounded about."""
    pairs = [(name, getattr(kept, name), getattr(again, name)) for name in COUNTS]
    pairs.append(("due", kept.due.spans, again.due.spans))
    pairs.append(("census", _census_counts(kept), _census_counts(again)))
    pairs += [
        (f"promise {mine.pattern}", (mine.pages, mine.deadlines.spans), (other.pages, other.deadlines.spans))
        for mine, other in zip(kept.promises, again.promises, strict=True)
    ]
    found = [f"{name} {mine}, and pages have {other}" for name, mine, other in pairs if mine != other]
    sums = [(name, getattr(kept, name), getattr(again, name)) for name in SUMS]
    return found + [
        f"{name} {mine}, and pages have {other}" for name, mine, other in sums if not isclose(mine, other, abs_tol=1e-6)
    ]


def _census_counts(state: RevisitState) -> dict[int, int]:
    return {cell: round(sums[0]) for cell, sums in state.census.cells.items()}


class Files:
    """The files of a shard's manifest: each is there with the length that was committed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._before: bytes | None = None

    def wrong(self) -> Iterator[str]:
        """Yield what is wrong with the files that the last commit has, where it changed any."""
        data = self._storage.store.get("meta", MANIFEST)
        path = self._storage.journals.path
        if data is not None and data != self._before:
            self._before = data
            entries = msgspec.msgpack.decode(data, type=list[ManifestEntry])
            yield from (f"{entry.name} {how}" for entry, _, how in lacking(entries, path))
