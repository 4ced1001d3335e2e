"""Hosts: the records in memory, with a bound on those that are not in use."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from operator import itemgetter

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.politeness import Politeness
from gossamer.stages.frontier.record import RECORD_VERSION, HostRecord, decode_record, encode_record, host_prefix
from gossamer.stages.frontier.remembered import Remembered
from gossamer.state.contacts import Contacts, Recovered
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store

HOST_BYTES = 2_000
"""Memory of a host with its record, about (measured; see docs/reference/memory.md)."""
EVICTIONS_MAX = 4
"""Hosts that are considered for eviction when one is added: more than one, so that a surplus shrinks."""
DELAYS_MOVED_MAX = 4_096
"""Delays without a host's record that move with partitions: the longest ones, 64 KB."""


class HostRecords(msgspec.Struct, frozen=True):
    """Durable records of a crawl's hosts and queues."""

    store: Store
    epochs: Epochs
    """On top of `store`."""
    contacts: Contacts
    remembered: Remembered | None = None
    """Facts of earlier crawls about hosts, where they are kept."""
    travelling: Sequence[tuple[int, int]] = ()
    """Runs of partitions of which only a part of the keys is in `store`: they are on their way between shards."""


class HostTable:
    """Name to `Host`. Dirty, leased and active hosts stay; of the others, the least recently used is evicted."""

    def __init__(
        self, epochs: Epochs, politeness: Politeness, recovered: Recovered, cached_max: int, earlier: Remembered | None
    ) -> None:
        self._epochs = epochs
        self._politeness = politeness
        self._recovered = recovered
        self._cached_max = cached_max
        self._remembered = earlier
        self._hosts: dict[str, Host] = {}
        self.lookups = 0
        """Lookups of records."""
        self.misses = 0
        """The part of `lookups` for records that were not in memory."""
        self._clean: OrderedDict[str, Host] = OrderedDict()
        """Those of them that are not dirty, the least recently used first: only these may leave."""
        self._dirty: dict[str, Host] = {}

    def get(self, name: str, partition: int) -> Host:
        """Return a host, from memory, from disk (about 4 µs) or new."""
        host = self._hosts.get(name)
        self.lookups += 1
        if host is not None:
            if not host.dirty:
                self._clean.move_to_end(name)
            return host
        self.misses += 1
        if len(self._hosts) >= self._cached_max:
            self._evict()
        host = self._hosts[name] = self._clean[name] = self._load(name, partition)
        return host

    def reconfigure(self, politeness: Politeness) -> list[Host]:
        """Apply new rules to all hosts; return those in memory."""
        self._politeness = politeness
        for host in self._hosts.values():
            host.rules = politeness.of(host.name)
        return list(self._hosts.values())

    def in_memory(self) -> Iterable[Host]:
        """Return the hosts in memory."""
        return self._hosts.values()

    def touch(self, host: Host) -> None:
        """Mark a host as changed: its record is written with this epoch."""
        if not host.dirty:
            host.dirty = True
            name = host.record.name
            self._dirty[name] = host
            self._clean.pop(name, None)

    @property
    def dirty(self) -> int:
        """Hosts that changed since the last cut: they cannot leave the memory."""
        return len(self._dirty)

    def cut(self) -> Iterable[Host]:
        """Yield the dirty hosts; put the record of each into the open epoch when the next one is requested."""
        dirty = self._dirty
        self._dirty = {}
        records = {}
        for name, host in dirty.items():
            yield host
            records[host.prefix] = encode_record(host.record)
            host.dirty = host.contacted = False
            self._clean[name] = host
        self._epochs.put_many("host", records)

    def _load(self, name: str, partition: int) -> Host:
        prefix = host_prefix(partition, name)
        data = self._epochs.get("host", prefix)
        record = HostRecord(RECORD_VERSION, name) if data is None else decode_record(data)
        if self._remembered is not None:
            self._remembered.recall(record, partition, is_new=data is None)
        host = Host(record, partition, prefix, self.recover(record), self._politeness.of(name))
        host.is_new = data is None
        return host

    def recover(self, record: HostRecord) -> int:
        """Extend a record's delay to the one that earlier processes left; return the host's fingerprint."""
        name = record.name
        fingerprint = xxh3_64_intdigest(name.encode())
        rules = self._politeness.of(name)
        if self._recovered.unknown_at:
            # Those without a record too: hosts that were found and requested in a lost epoch left none.
            longest_s = rules.longest_delay_s(record.crawl_delay_s)
            record.delay_until = max(record.delay_until, self._recovered.unknown_at + longest_s)
        record.delay_until = max(record.delay_until, self._recovered.hosts.get(fingerprint, 0.0))
        return fingerprint

    @property
    def unknown_until(self) -> float:
        """Until when a host without known contacts waits, if contacts of earlier processes are missing; else 0."""
        unknown_at = self._recovered.unknown_at
        return unknown_at + self._politeness.longest_delay_s(None) if unknown_at else 0.0

    def remaining_delays(self, now: float) -> dict[int, float]:
        """Return how many seconds hosts still wait by what earlier processes left, by fingerprint: also those without a
        record, which were found and requested in an epoch that was lost.
        """
        remaining = ((fingerprint, until - now) for fingerprint, until in self._recovered.hosts.items() if until > now)
        return dict(nlargest(DELAYS_MOVED_MAX, remaining, key=itemgetter(1)))

    def learn_delays(self, delays: Mapping[int, float], now: float) -> None:
        """Apply another shard's `remaining_delays`. They are lost if this process dies."""
        known = self._recovered.hosts
        known.update({host: max(known.get(host, 0.0), now + left_s) for host, left_s in delays.items()})

    def of(self, first: int, end: int) -> Iterable[Host]:
        """Return the hosts in memory of some partitions."""
        return [host for host in self._hosts.values() if first <= host.partition < end]

    def forget(self, hosts: Iterable[Host]) -> None:
        """Drop hosts: another shard has them, or they are read again."""
        for host in hosts:
            for held in (self._hosts, self._clean, self._dirty):
                held.pop(host.name, None)

    def _evict(self) -> None:
        # A few per added host, so that hosts that must stay (the workbench) are not scanned each time.
        hosts = self._hosts
        clean = self._clean
        for _ in range(min(EVICTIONS_MAX, len(clean))):
            if len(hosts) < self._cached_max:
                return
            name, host = clean.popitem(last=False)
            if host.idle:
                # It may have been dropped already and then changed by a caller that still held it.
                hosts.pop(name, None)
            else:
                clean[name] = host
