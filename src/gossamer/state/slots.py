"""Slots: which page each thread is passing to native code, in a file that the supervisor reads after the process died.

Native parsers read untrusted content. Before content goes into one, its fingerprint is written to a slot in a
memory-mapped file; that costs under 1 µs and survives any death of the process. If a signal such as native code causes
has ended the process, or a stage takes too long, the supervisor reads the slots and adds a strike to their pages.
"""

import mmap
import signal
import struct
from collections.abc import Callable
from contextlib import suppress
from os import SEEK_END
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

SLOTS = 8
"""Threads that may run native content code at once; the loop is slot 0."""
FILE = "slots"
STAGES = ("", "decode", "process")
CONTENT_DEATHS = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE})
"""Deaths that web content can cause, in a parser or a codec. SIGKILL can come from any process and blames no page."""
_RECORD = struct.Struct("<QdIBxxx")
"""Fingerprint, wall time of the start, strikes, stage (0: idle). The stage is written last, so that a supervisor never
reads a new stage with an old start.
"""
_STAGE_AT = 20
_EPOCH_AT = _RECORD.size * SLOTS
_EPOCH = struct.Struct(">QQ")
"""Number of the last commit, and its CRC-32: a changed bit must not look like commits that the store has lost."""
_STOP_AT = _EPOCH_AT + _EPOCH.size
_STOP = struct.Struct("<d")
"""Wall time of the last command to stop the crawl; 0 before the first."""
_PAUSED_AT = _STOP_AT + _STOP.size
"""1 while the operator has paused the crawl, so that a start after a crash does not end the pause."""
_BEAT_AT = _PAUSED_AT + 1
_BEAT = struct.Struct("<d")
"""Wall time of the event loop's last heartbeat; infinite once it has ended, since to close files may take long."""
_URL_AT = _BEAT_AT + _BEAT.size
_URL_BYTES = 512
"""Beginning of the address of the page in slot 0, for people; zeros follow."""
_END_AT = _URL_AT + _URL_BYTES
_END_BYTES = 1024
"""How the last run ended, if not by itself: a word, a line end, and a sentence for people; zeros follow. The file has
room for it even if the disk is full.
"""
_FILE_BYTES = _END_AT + _END_BYTES + 4
"""The CRC-32 of the end is last: a changed bit must not look like an end."""


class Suspect(NamedTuple):
    """A page with a strike: it was in a slot when the process died."""

    fingerprint: int
    stage: str
    strikes: int


class ShardSlots:
    """The shard's side: notes which page each thread works on."""

    def __init__(self, directory: Path) -> None:
        """Open or make the file; `take_suspects` returns what an earlier process left in it."""
        self.path = path = directory / FILE
        if not path.exists() or path.stat().st_size != _FILE_BYTES:
            fresh = path.with_suffix(".new")
            fresh.write_bytes(_contents(directory))
            fresh.replace(path)  # The supervisor may read the file at any time, so it never appears incomplete.
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _FILE_BYTES)

    def enter(self, slot: int, fingerprint: int, stage: int, now: float) -> None:
        """Note that `slot` begins `stage` (an index of `STAGES`) of a page."""
        _RECORD.pack_into(self._map, slot * _RECORD.size, fingerprint, now, 0, stage)

    def name(self, url: str) -> None:
        """Note the address of the page in slot 0, for people."""
        self._map[_URL_AT:_END_AT] = url.encode("utf-8", "replace")[:_URL_BYTES].ljust(_URL_BYTES, b"\0")

    def leave(self, slot: int) -> None:
        """Note that the slot is idle."""
        self._map[slot * _RECORD.size + _STAGE_AT] = 0

    def take_suspects(self) -> list[Suspect]:
        """Clear all slots; return the pages with a strike (after some deaths none), and how the run before ended."""
        suspects = []
        self._map[_END_AT:] = bytes(_FILE_BYTES - _END_AT)
        for number in range(SLOTS):
            fingerprint, _, strikes, stage = _RECORD.unpack_from(self._map, number * _RECORD.size)
            if stage and strikes:
                suspects.append(Suspect(fingerprint, STAGES[stage], strikes))
            _RECORD.pack_into(self._map, number * _RECORD.size, 0, 0.0, 0, 0)
        return suspects

    def note_epoch(self, number: int) -> None:
        """Note that an epoch was committed, which the supervisor counts as progress."""
        _EPOCH.pack_into(self._map, _EPOCH_AT, number, crc32(number.to_bytes(8)))

    def note_beat(self, now: float) -> None:
        """Note that the event loop runs; infinity: it has ended, and what follows may take long."""
        _BEAT.pack_into(self._map, _BEAT_AT, now)

    def note_stop(self, now: float) -> None:
        """Note a command to stop the crawl, so that the supervisor does not start it again."""
        _STOP.pack_into(self._map, _STOP_AT, now)

    def note_pause(self, paused: bool) -> None:
        """Note that the operator has paused the crawl, or no longer pauses it."""
        self._map[_PAUSED_AT] = paused

    @property
    def is_paused(self) -> bool:
        """Whether the crawl was paused when this or an earlier process last noted it."""
        return self._map[_PAUSED_AT] == 1

    def close(self) -> None:
        self._map.close()


def death(status: int) -> str:
    """Return how a process ended, from the return code of its Popen."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"died of {signal.Signals(-status).name}"
    except ValueError:
        return f"died of signal {-status}"


def accuse(directory: Path, since: float = 0.0) -> int:
    """Add a strike to every page in a slot of a dead process that was started at `since`; return their number.

    Only the supervisor that saw the death may call it. A death with no slot set blames no page; slots that an earlier
    process left do not count.
    """
    busy = _busy(directory, since)
    if busy:
        with (directory / FILE).open("r+b") as file:
            for number, (fingerprint, started, strikes, stage) in busy.items():
                file.seek(number * _RECORD.size)
                file.write(_RECORD.pack(fingerprint, started, strikes + 1, stage))
    return len(busy)


def overdue(directory: Path, now: float, limit_s: float, since: float = 0.0) -> bool:
    """Return whether any slot of a process that was started at `since` has been busy for longer than `limit_s`."""
    return any(now - started > limit_s for _, started, _, _ in _busy(directory, since).values())


def is_silent(directory: Path, now: float, limit_s: float, since: float, asked_at: float) -> bool:
    """Return whether the event loop of a process that was started at `since` does not run: its last heartbeat is older
    than `limit_s`. Before the first one, the time since the request to stop at `asked_at` counts.
    """
    beat_at = float(_BEAT.unpack_from(_contents(directory), _BEAT_AT)[0])
    return now - (beat_at if beat_at >= since else max(asked_at, since)) > limit_s


def page_of(directory: Path, since: float) -> str:
    """Return the address of the page in slot 0 of a process that was started at `since`; empty if the slot is idle."""
    if 0 not in _busy(directory, since):
        return ""
    return _contents(directory)[_URL_AT:_END_AT].rstrip(b"\0").decode("utf-8", "replace")


def note_end(directory: Path, ended: str = "", says: str = "") -> None:
    """Note how the last run ended; empty: a run begins, or ended by itself. A disk that refuses it is no error."""
    text = f"{ended}\n{says}".strip().encode("utf-8", "replace")[:_END_BYTES]
    path = directory / FILE
    with suppress(OSError):
        if text and not (path.exists() and path.stat().st_size == _FILE_BYTES):
            path.write_bytes(_contents(directory))
        with path.open("r+b") as file:
            file.seek(_END_AT)
            file.write(text.ljust(_END_BYTES, b"\0") + crc32(text).to_bytes(4))


def end_of(directory: Path) -> tuple[str, str]:
    """Return how the last run ended, in a word and in a sentence; both empty unless that was noted."""
    found = _contents(directory)[_END_AT:]
    text = found[:_END_BYTES].rstrip(b"\0")
    if crc32(text) != int.from_bytes(found[_END_BYTES:]):
        return "", ""
    ended, _, says = text.decode("utf-8", "ignore").partition("\n")
    return ended, says


def erase_page(directory: Path, is_named: Callable[[str], bool]) -> None:
    """Erase the address of the page in slot 0, and how the last run ended if `is_named` is true of the sentence."""
    ended, says = end_of(directory)
    if is_named(says):
        note_end(directory, ended, "the reason names a page that was forgotten since")
    with suppress(OSError), (directory / FILE).open("r+b") as file:
        file.seek(0, SEEK_END)
        if file.tell() == _FILE_BYTES:
            file.seek(_URL_AT)
            file.write(bytes(_URL_BYTES))


def progress(directory: Path) -> int:
    """Return the number of the last committed epoch that was noted; 0 before the first."""
    number, found = _EPOCH.unpack_from(_contents(directory), _EPOCH_AT)
    return int(number) if found == crc32(number.to_bytes(8)) else 0


def was_told_to_stop(directory: Path, since: float) -> bool:
    """Return whether a process that was started at `since` received a command to stop."""
    return float(_STOP.unpack_from(_contents(directory), _STOP_AT)[0]) >= since


def was_paused(directory: Path) -> bool:
    """Return whether the crawl was paused when its last process noted it."""
    return _contents(directory)[_PAUSED_AT] == 1


def _contents(directory: Path) -> bytes:
    """Return the content of the file; zeros if it is missing or damaged, or of 1.0.0rc1."""
    try:
        data = (directory / FILE).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        data = b""
    return data if len(data) == _FILE_BYTES else bytes(_FILE_BYTES)


def _busy(directory: Path, since: float) -> dict[int, tuple[int, float, int, int]]:
    data = _contents(directory)
    records = {number: _RECORD.unpack_from(data, number * _RECORD.size) for number in range(_EPOCH_AT // _RECORD.size)}
    return {number: record for number, record in records.items() if record[3] and record[1] >= since}
