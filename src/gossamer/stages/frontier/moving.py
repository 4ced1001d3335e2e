"""Moving: partitions leave this frontier for that of another shard, or arrive from there, while both crawl.

A run of partitions is frozen first: none of its URLs is leased. When what was leased has come back, it is released:
memory holds nothing of it any more, and the counts are those of the rest. Its keys are the caller's to move. Where they
arrive, it is admitted: counted, and its hosts are found as after a start.

Delays travel as what is left of them, so that clocks need not agree: what is left when the key is read counts again in
full from the arrival.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

import msgspec

from gossamer.model.links import Prerequisite
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.record import decode_record, encode_record, level_of
from gossamer.state.epoch import Epochs
from gossamer.state.schema import FRONTIER_COUNTS, partition_range

SURVEYED_MAX: Final = 5_000
"""Hosts on disk that a survey counts: about 1 µs each."""


class FrontierMoves:
    """Takes partitions out of a frontier, and into it. Each costs a pass over the records of their hosts, 3 µs each."""

    def __init__(self, frontier: Frontier, epochs: Epochs) -> None:
        self._hosts = frontier.hosts
        self._index = frontier.index
        self._scheduler = frontier.scheduler
        self._ledger = frontier.ledger
        self._counts = frontier.counts
        self._frozen = frontier.frozen
        self._load = frontier.load
        self._epochs = epochs

    @property
    def earliest_move_at(self) -> float:
        """Earliest time to give a partition: an unknown delay of a host without a record would not move."""
        return self._hosts.unknown_until

    def remaining_delays(self, now: float) -> dict[int, float]:
        """Return the delays that must move although the records of their hosts may be lost."""
        return self._hosts.remaining_delays(now)

    @property
    def round(self) -> int:
        """Number of the budget round; 0 without budgets."""
        return self._ledger.round

    def requests(self, now: float, *, by_partition: bool) -> tuple[float, list[tuple[int, int]] | None]:
        """Return requests a second of recent minutes, and if wanted their number in each partition."""
        return self._load.per_s(now), self._load.by_partition(now) if by_partition else None

    def freeze(self, first: int, end: int) -> None:
        """Lease no more URLs of the partitions from `first` up to, but without, `end`."""
        self._frozen.update(range(first, end))

    def survey(self, begin: int) -> list[tuple[int, int]]:
        """Return partitions with hosts on the workbench, or on disk and ready or waiting for their site, and how many
        in each: from partition `begin` on, and then from the first one. It ends early where many are on disk.
        """
        active = self._scheduler.active.values()
        counts = Counter(host.partition for host in active)
        on_disk = self._index.partitions_ready()
        left = SURVEYED_MAX
        found = []
        on_disk |= {host.partition for host in active if host.site is not None and host.site.is_crowded}
        for partition in sorted({*counts, *on_disk} - self._frozen, key=lambda one: (one < begin, one)):
            if partition in on_disk:
                if not left:
                    break
                ready = sum(1 for _ in islice(self._index.ready_in(partition), left))
                counts[partition] += ready
                left -= ready
            found.append((partition, counts[partition]))
        return found

    def is_drained(self, first: int, end: int) -> bool:
        """Return whether all that was leased of them has come back."""
        return not any(host.out or host.leased for host in self._hosts.of(first, end))

    def release(self, first: int, end: int) -> list[Prerequisite]:
        """Forget frozen, drained partitions after this epoch's `cut`; return their hosts' prerequisite fetches."""
        waiting = [one for host in self._hosts.of(first, end) for one in host.prerequisites or ()]
        self._forget(first, end)
        self._count(self._records(first, end), -1)
        self._frozen.difference_update(range(first, end))
        self._epochs.put("meta", FRONTIER_COUNTS, msgspec.msgpack.encode(self._counts))
        return waiting

    def record_to_move(self, data: bytes, now: float) -> bytes:
        """Return a host's record as it travels: with what is left of its delay in place of the instant."""
        record = decode_record(data)
        self._hosts.recover(record)
        record.delay_until = max(record.delay_until - now, 0.0)
        return encode_record(record)

    def admit(self, first: int, end: int, number: int, delays: Mapping[int, float], now: float) -> None:
        """Take in partitions whose keys are in the open epoch; `number` is the budget round that they come from,
        `delays` the giver's `remaining_delays`.
        """
        self._forget(first, end)
        self._hosts.learn_delays(delays, now)
        records = {}
        for key, data in self._epochs.scan("host", *partition_range(first, end)):
            record = decode_record(data)
            record.delay_until += now
            records[key] = encode_record(record)
        self._epochs.put_many("host", records)
        self._ledger.admit(first, end, number)
        self._count(records.values(), 1)
        active = [self._hosts.get(name, partition) for partition, name in self._index.admit(first, end)]
        self._scheduler.admit(active, list(self._index.sites_waiting(self._epochs, *partition_range(first, end))), now)
        self._defer_again(first, end)

    def _defer_again(self, first: int, end: int) -> None:
        """Defer hosts that used up their budget elsewhere as if they had used it up in the present round here."""
        for key in [key for key, _ in self._epochs.scan("deferred", *partition_range(first, end))]:
            host = self._hosts.get(key[6:].decode(), int.from_bytes(key[:2]))
            self._index.enter_deferred(host, self._ledger.round)
            self._hosts.touch(host)

    def _forget(self, first: int, end: int) -> None:
        self._scheduler.forget(first, end)
        self._ledger.forget(first, end)
        self._load.forget(first, end)

    def _records(self, first: int, end: int) -> Iterable[bytes]:
        return (data for _, data in self._epochs.scan("host", *partition_range(first, end)))

    def _count(self, records: Iterable[bytes], sign: int) -> None:
        counts = self._counts
        working = 0
        deferred = 0
        for data in records:
            record = decode_record(data)
            queued = record.urls_queued - record.revisits
            counts.hosts += sign
            counts.pending += sign * queued
            counts.discovered += sign * queued
            working += bool(record.index_key)
            deferred += record.index_family == "deferred"
            for level, queue in record.levels.items():
                counts.levels[level_of(level)] += sign * queue.pending
        self._index.count(sign * working, sign * deferred)
        counts.working = self._index.hosts
        counts.deferred = self._index.deferred.hosts
