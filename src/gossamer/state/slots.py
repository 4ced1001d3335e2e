"""Slots: what a thread is feeding to native code right now, where a supervisor can read it after the thread died.

Native parsers eat what strangers wrote. Before content goes into one, its fingerprint is written to a slot in a
memory-mapped file; that costs under a microsecond and survives any death of the process. The supervisor reads the
slot when the process died of a signal that native code dies of, or when a stage takes too long, and adds a strike.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

SLOTS = 8
"""Threads that may run native content code at once; the loop is slot 0."""
FILE = "slots"
STAGES = ("", "decode", "process")

_RECORD = struct.Struct("<QdIBxxx")
"""Fingerprint, wall time of the start, strikes, stage (0: idle). The stage is written last: a supervisor who reads at
that moment never sees a new stage with an old start."""
_STAGE_AT = 20
_EPOCH_AT = _RECORD.size * SLOTS
_FILE_BYTES = _EPOCH_AT + 8


class Suspect(NamedTuple):
    """A page that was in a slot when the process died of it."""

    fingerprint: int
    stage: str
    strikes: int


class Slots:
    """The shard's side: says what is being worked on."""

    def __init__(self, directory: Path) -> None:
        """Open or make the file; what an earlier process left in it is given by `take_suspects`."""
        path = directory / FILE
        if not path.exists() or path.stat().st_size != _FILE_BYTES:
            fresh = path.with_suffix(".new")
            fresh.write_bytes(bytes(_FILE_BYTES))
            fresh.replace(path)  # Whole from the first moment on: the supervisor may read it.
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _FILE_BYTES)

    def enter(self, slot: int, fingerprint: int, stage: int, now: float) -> None:
        """Say that `slot` begins `stage` (an index of `STAGES`) of a page."""
        _RECORD.pack_into(self._map, slot * _RECORD.size, fingerprint, now, 0, stage)

    def leave(self, slot: int) -> None:
        """Say that the slot is done."""
        self._map[slot * _RECORD.size + _STAGE_AT] = 0

    def take_suspects(self) -> list[Suspect]:
        """Return the pages that were accused, and clear all slots: a death nobody accused accuses nobody."""
        suspects = []
        for number in range(SLOTS):
            fingerprint, _, strikes, stage = _RECORD.unpack_from(self._map, number * _RECORD.size)
            if stage and strikes:
                suspects.append(Suspect(fingerprint, STAGES[stage], strikes))
            _RECORD.pack_into(self._map, number * _RECORD.size, 0, 0.0, 0, 0)
        return suspects

    def note_epoch(self, number: int) -> None:
        """Say that an epoch was committed: progress, for a supervisor."""
        self._map[_EPOCH_AT : _EPOCH_AT + 8] = number.to_bytes(8)

    def close(self) -> None:
        self._map.close()


def accuse(directory: Path, since: float = 0.0) -> int:
    """Add a strike to every page in a slot of a process that was started at `since` and is dead; return how many
    there were.

    For a supervisor that saw the death itself. A death with no slot set accuses nobody; what an earlier process left
    in a slot had no part in this death.
    """
    busy = _busy(directory, since)
    if busy:
        with (directory / FILE).open("r+b") as file:
            for number, (fingerprint, started, strikes, stage) in busy.items():
                file.seek(number * _RECORD.size)
                file.write(_RECORD.pack(fingerprint, started, strikes + 1, stage))
    return len(busy)


def overdue(directory: Path, now: float, limit_s: float, since: float = 0.0) -> bool:
    """Say whether any slot of a process that was started at `since` has been busy for longer than `limit_s`."""
    return any(now - started > limit_s for _, started, _, _ in _busy(directory, since).values())


def progress(directory: Path) -> int:
    """Return the number of the last epoch that was committed, as far as anybody said; 0 before the first."""
    return int.from_bytes(_contents(directory)[_EPOCH_AT:])


def _contents(directory: Path) -> bytes:
    """Return what the file holds; zeros where there is none, or one that is damaged."""
    try:
        data = (directory / FILE).read_bytes()
    except FileNotFoundError:
        data = b""
    return data if len(data) == _FILE_BYTES else bytes(_FILE_BYTES)


def _busy(directory: Path, since: float) -> dict[int, tuple[int, float, int, int]]:
    data = _contents(directory)
    records = {number: _RECORD.unpack_from(data, number * _RECORD.size) for number in range(_EPOCH_AT // _RECORD.size)}
    return {number: record for number, record in records.items() if record[3] and record[1] >= since}
