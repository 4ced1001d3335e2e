"""Set back: brings what hosts wait for to a clock that is behind the last commit.

A machine may have its clock corrected, or start with a wrong one, between two processes. Instants on disk are by the
clock as it was. Where that was ahead, each host would wait for as long as it was ahead: for hours, or years.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from gossamer.frontier.record import (
    HostRecord,
    QueueCounts,
    decode_entry,
    decode_record,
    due_from,
    encode_record,
    micros,
    range_end,
)
from gossamer.state.epoch import Epochs
from gossamer.state.schema import CLOCK_SET_BACK, FRONTIER_COUNTS, PARTITIONED

ABSENT_S_MIN: Final = 10.0
ABSENCES_MAX: Final = 8
HOSTS_A_COMMIT: Final = 5_000
SET_BACK_S_MIN: Final = 1.0
"""Less is clock discipline (NTP)."""
_BEGIN, _END = PARTITIONED


class SetBack(msgspec.Struct, array_like=True):
    """How far the hosts have been brought to the clock."""

    by_s: float
    begin: bytes = _BEGIN
    """Key of the first host that has not."""


def follow_clock(epochs: Epochs, now: float, travelling: Sequence[tuple[int, int]] = ()) -> QueueCounts:
    """Have hosts and retries wait from now for what they still had to wait for at the last commit, where the clock is
    behind that; return the counts of that commit. About 20 µs a host, then, in commits of its own; a process that is
    killed in between is followed by one that goes on. Revisits are due later by what the clock was set back. Hosts of
    `travelling` partitions are by the clock of the shard that still gives them (`HostRecords`).

    Where the clock is ahead, no process was there meanwhile: the counts remember when.
    """
    data = epochs.get("meta", FRONTIER_COUNTS)
    counts = QueueCounts() if data is None else msgspec.msgpack.decode(data, type=QueueCounts)
    kept = epochs.get("meta", CLOCK_SET_BACK)
    if kept is not None:  # The clock may have been set back once more since.
        _bring_all_back(epochs, counts, msgspec.msgpack.decode(kept, type=SetBack), travelling)
    if counts.cut_at >= now + SET_BACK_S_MIN:
        _bring_all_back(epochs, counts, SetBack(counts.cut_at - now), travelling)
    elif counts.cut_at and now - counts.cut_at >= ABSENT_S_MIN:
        counts.absences = [*counts.absences[1 - ABSENCES_MAX :], (counts.cut_at, now)]
    return counts


def _bring_all_back(
    epochs: Epochs, counts: QueueCounts, progress: SetBack, travelling: Sequence[tuple[int, int]]
) -> None:
    while progress.begin < _END:
        hosts = list(islice(epochs.scan("host", progress.begin, _END), HOSTS_A_COMMIT))
        for prefix, record in hosts:
            if not any(first <= int.from_bytes(prefix[:2]) < end for first, end in travelling):
                _bring_back(epochs, prefix, decode_record(record), progress.by_s)
        progress.begin = hosts[-1][0] + b"\0" if len(hosts) == HOSTS_A_COMMIT else _END
        epochs.put("meta", CLOCK_SET_BACK, msgspec.msgpack.encode(progress))
        epochs.close_at_once()
    counts.cut_at -= progress.by_s
    epochs.put("meta", FRONTIER_COUNTS, msgspec.msgpack.encode(counts))
    epochs.delete("meta", CLOCK_SET_BACK)
    epochs.close_at_once()


def _bring_back(epochs: Epochs, prefix: bytes, record: HostRecord, by_s: float) -> None:
    by = micros(by_s)
    record.rest_until -= by_s
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
    """Return a key whose instant, eight bytes from `at` on, is earlier by some microseconds."""
    return key[:at] + max(int.from_bytes(key[at : at + 8]) - by, 0).to_bytes(8) + key[at + 8 :]
