"""Set back: adjusts stored times to a clock that is behind the last commit.

Between two processes a machine's clock may be corrected, or start wrong. Times on disk are by the old clock. If that
was ahead, each host would wait too long by the difference: for hours, or years.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from gossamer.stages.frontier.record import (
    HostRecord,
    QueueCounts,
    decode_entry,
    decode_record,
    due_from,
    encode_record,
    micros,
    range_end,
)
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import CLOCK_SET_BACK, FRONTIER_COUNTS, PARTITIONED

ABSENT_S_MIN: Final = 10.0
ABSENCES_MAX: Final = 8
HOSTS_A_COMMIT: Final = 5_000
SET_BACK_S_MIN: Final = 1.0
"""A smaller difference comes from clock discipline (NTP)."""
_BEGIN, _END = PARTITIONED


class SetBack(msgspec.Struct, array_like=True):
    """Progress of the adjustment."""

    by_s: float
    begin: bytes = _BEGIN
    """Key of the first host that is not adjusted yet."""


def follow_clock(epochs: Epochs, now: float, travelling: Sequence[tuple[int, int]] = ()) -> QueueCounts:
    """Adjust stored times if the clock is behind the last commit, and return the counts of that commit. The remaining
    waits of hosts and retries at that commit start now. This takes about 20 µs a host, in separate commits; after a
    crash the next process continues. Revisits are delayed by the difference. Hosts of `travelling` partitions are left
    alone: their times are by the clock of the shard that still sends them (`HostRecords`).

    If the clock is ahead of the last commit, no process ran in between: the counts record this period.
    """
    counts = load(epochs, FRONTIER_COUNTS, QueueCounts)
    kept = epochs.get("meta", CLOCK_SET_BACK)
    if kept is not None:  # The clock may have been set back again since then.
        _bring_all_back(epochs, counts, msgspec.msgpack.decode(kept, type=SetBack), travelling)
    if counts.cut_at >= now + SET_BACK_S_MIN:
        _bring_all_back(epochs, counts, SetBack(counts.cut_at - now), travelling)
    elif counts.cut_at and now - counts.cut_at >= ABSENT_S_MIN:
        counts.absences = [*counts.absences[1 - ABSENCES_MAX :], (counts.cut_at, now)]
    return counts


def _bring_all_back(epochs: Epochs, counts: QueueCounts, step: SetBack, travelling: Sequence[tuple[int, int]]) -> None:
    while step.begin < _END:
        hosts = list(islice(epochs.scan("host", step.begin, _END), HOSTS_A_COMMIT))
        for prefix, record in hosts:
            if not any(first <= int.from_bytes(prefix[:2]) < end for first, end in travelling):
                _bring_back(epochs, prefix, decode_record(record), step.by_s)
        step.begin = hosts[-1][0] + b"\0" if len(hosts) == HOSTS_A_COMMIT else _END
        epochs.put("meta", CLOCK_SET_BACK, msgspec.msgpack.encode(step))
        epochs.close_at_once()
    counts.cut_at -= step.by_s
    epochs.put("meta", FRONTIER_COUNTS, msgspec.msgpack.encode(counts))
    epochs.delete("meta", CLOCK_SET_BACK)
    epochs.close_at_once()


def _bring_back(epochs: Epochs, prefix: bytes, record: HostRecord, by_s: float) -> None:
    by = micros(by_s)
    record.delay_until -= by_s
    for origin in (record.origins or {}).values():
        origin.wait_until = max(origin.wait_until - by_s, 0.0)
    if record.index_family == "sleep":
        epochs.delete("sleep", record.index_key)
        record.index_key = _earlier(record.index_key, 2, by)
        epochs.put("sleep", record.index_key, b"")
    if record.due:
        retries = [
            (key, value)
            for key, value in epochs.scan("due", due_from(prefix, record.due_from), range_end(prefix))
            if record.due > record.revisits and not decode_entry(value).revisit
        ]
        for key, value in retries:
            epochs.delete("due", key)
            epochs.put("due", _earlier(key, len(prefix), by), value)
        record.due_from = max(record.due_from - by, 0)
    epochs.put("host", prefix, encode_record(record))


def _earlier(key: bytes, at: int, by: int) -> bytes:
    """Return a key whose time, eight bytes from index `at` on, is earlier by `by` microseconds."""
    return key[:at] + max(int.from_bytes(key[at : at + 8]) - by, 0).to_bytes(8) + key[at + 8 :]
