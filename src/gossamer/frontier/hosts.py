"""Hosts: the records in memory, with a bound on those that rest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from xxhash import xxh3_64_intdigest

from gossamer.frontier.host import Host
from gossamer.frontier.politeness import Politeness
from gossamer.frontier.record import RECORD_VERSION, HostRecord, decode_record, encode_record, host_prefix
from gossamer.state.contacts import Recovered
from gossamer.state.epoch import Epochs

HOST_BYTES = 2_000
"""Memory of a host with its record, about (measured; see docs/frontier.md)."""
EVICTIONS_MAX = 4
"""Hosts that are looked at, to make one leave, for each that comes: more than one, so that a crowd thins out."""


class Hosts:
    """Name to `Host`. What is dirty, lent or on the bench stays; of the rest, the least recently used leaves."""

    def __init__(self, epochs: Epochs, politeness: Politeness, recovered: Recovered, cached_max: int) -> None:
        self._epochs = epochs
        self._politeness = politeness
        self._recovered = recovered
        self._cached_max = cached_max
        self._hosts: dict[str, Host] = {}
        self._clean: OrderedDict[str, Host] = OrderedDict()
        """Those of them that are not dirty, the least recently used first: only these may leave."""
        self._dirty: dict[str, Host] = {}

    def get(self, name: str, partition: int) -> Host:
        """Return a host, from memory, from disk (about 4 µs) or new."""
        host = self._hosts.get(name)
        if host is not None:
            if not host.dirty:
                self._clean.move_to_end(name)
            return host
        if len(self._hosts) >= self._cached_max:
            self._evict()
        host = self._hosts[name] = self._clean[name] = self._load(name, partition)
        return host

    def touch(self, host: Host) -> None:
        """Have the record written with this epoch."""
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
        """Yield the dirty hosts, and give each one's record to the epoch after its turn."""
        dirty, self._dirty = self._dirty, {}
        for host in dirty.values():
            yield host
            self._epochs.put("host", host.prefix, encode_record(host.record))
            host.dirty = False
        self._clean.update(dirty)

    def _load(self, name: str, partition: int) -> Host:
        prefix = host_prefix(partition, name)
        data = self._epochs.get("host", prefix)
        record = HostRecord(RECORD_VERSION, name) if data is None else decode_record(data)
        fingerprint = xxh3_64_intdigest(name.encode())
        if self._recovered.unknown_at:
            # Those without a record too: what was found and asked in an epoch that was lost left none.
            longest_s = self._politeness.longest_rest_s(record.crawl_delay_s)
            record.rest_until = max(record.rest_until, self._recovered.unknown_at + longest_s)
        record.rest_until = max(record.rest_until, self._recovered.hosts.get(fingerprint, 0.0))
        host = Host(record, partition, prefix, fingerprint)
        host.is_new = data is None
        return host

    def _evict(self) -> None:
        # A few for each newcomer: a crowd that must stay (the bench) is not walked again each time.
        hosts, clean = self._hosts, self._clean
        for _ in range(min(EVICTIONS_MAX, len(clean))):
            if len(hosts) < self._cached_max:
                return
            name, host = clean.popitem(last=False)
            if host.idle:
                del hosts[name]
            else:
                clean[name] = host
