"""Contacts: when each host and address may be contacted again, in a file that survives any death of the process.

A lost epoch takes its contacts with it, so they are written here before each request and again at its end: a table of
running requests, and a ring of ended ones. Both are memory-mapped, so they survive a killed process. After a power cut,
which a changed boot id shows, contacts are unknown, and every host waits its longest delay. Contacts from an earlier
process are stored before the ring, which never overwrites them, so no commit has to include them.
"""

import mmap
import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

import msgspec

from gossamer.state.sums import crc
from gossamer.world.files import reserve, sync_directory

FILE = "contacts"
UNDER_WAY_MAX = 16_384
"""Requests in flight at once."""
ENDED_MAX = 65_536
"""Records in the ring: contacts from an earlier process, and requests that end between two commits."""
KEPT_MAX = ENDED_MAX // 2
"""Hosts, and as many addresses, that are kept from an earlier process: those with the longest remaining delay."""
_HEADER = struct.Struct("<16sddQ")
"""Boot id; `Recovered.unknown_at`; seconds by which the wall clock was ahead of the monotonic one, 0 if unknown;
`Recovered.made_at_epoch`, plus one. A CRC-32 follows.
"""
SHIFT_S_MIN = 1.0
"""A smaller difference comes from clock discipline (NTP), not from a changed clock."""
_RECORD = struct.Struct("<QQdddd")
"""Fingerprints of host and address; then, for a running request, its start and its `Delay`; for an ended one, when host
and address may be contacted again, and when it ended.
"""
_SUM = struct.Struct("<Q")
"""CRC-32 after each record and the header, plus one, so that a record of zeros never has a valid sum."""
SLOT_BYTES = 64
"""Size of a record with its sum: no record crosses a page boundary, since the system writes page by page."""
_EMPTY = bytes(SLOT_BYTES)
_EMPTY_STEP = bytes(64 * SLOT_BYTES)
_PAD = bytes(SLOT_BYTES - _RECORD.size - _SUM.size)
_UNDER_WAY_AT = SLOT_BYTES
_ENDED_AT = _UNDER_WAY_AT + UNDER_WAY_MAX * SLOT_BYTES
_SIZE = _ENDED_AT + ENDED_MAX * SLOT_BYTES


class Delay(msgspec.Struct, frozen=True, gc=False):
    """Delay of a host after a request whose duration is not known yet."""

    least_s: float
    per_second: float
    """Additional delay per second of the request."""
    most_s: float


class Recovered(msgspec.Struct, frozen=True):
    """State of an earlier process: instants in wall time, keyed by fingerprint."""

    hosts: dict[int, float]
    addresses: dict[int, float]
    unknown_at: float = 0.0
    """Contacts up to this instant may be missing: the machine rebooted, or the file was lost. 0: none are missing."""
    missing: bool = False
    """There was no file: the crawl is new, or came here without it (see `Contacts.note_missing_file`)."""
    made_at_epoch: int = -1
    """The crawl's last commit when there was no file; -1 if that is not known."""
    damaged: int = 0
    """Number of damaged records; if there are any, `unknown_at` is now."""

    def lacks_earlier(self, epoch: int, opening: int) -> bool:
        """Return whether an earlier start had contacts that are not here: there was no file after this commit, and this
        is not the first start, even if a machine was lost before its first checkpoint. A process that began since then
        and died before its first commit does not change the answer.
        """
        return (self.missing or self.made_at_epoch == epoch) and (epoch > 0 or opening > 1)


class Contacts:
    """The gate journal. Each call costs about half a microsecond; nothing here waits for the disk."""

    def __init__(
        self, directory: Path, boot_id: bytes, now: float, wall_offset_s: float = 0.0, others: Iterable[Path] = (),
        epoch: int = -1,
    ) -> None:  # fmt: skip
        """Open or create the file in `directory`; `recovered` is its content. `wall_offset_s` is how far the wall clock
        is ahead of the monotonic one; if it has changed, instants are converted to the new clock. The content of the
        files in `others`, further directories, is copied here. `epoch` is the crawl's last commit.
        """
        self.path = path = directory / FILE
        self.recovered = _recover(path, boot_id, now, wall_offset_s)
        for other in others:
            self.recovered = _both(self.recovered, _recover(other / FILE, boot_id, now, wall_offset_s))
        kept = _carry_over(self.recovered, now)
        # Write a new file and rename it, so that a death half-way leaves the old file intact.
        fresh = path.with_name(FILE + ".new")
        self._made_at_epoch = epoch if self.recovered.missing else self.recovered.made_at_epoch
        self._boot_id = boot_id
        self._wall_offset_s = wall_offset_s
        head = self._header(self.recovered.unknown_at)
        with fresh.open("wb") as file:
            reserve(file.fileno(), _SIZE)
            file.write(head)
            file.seek(_ENDED_AT)
            file.write(kept)
        fresh.replace(path)
        sync_directory(directory)  # Before the first commit, only this file shows that the crawl sent requests.
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self._free = list(range(UNDER_WAY_MAX - 1, -1, -1))
        self._first = self._next = len(kept) // SLOT_BYTES
        """The ring begins after the records that were kept."""
        self.ended_since_commit = 0

    def note_missing_file(self, now: float) -> None:
        """Note that there were earlier contacts whose file is missing, so that their times are unknown."""
        self.recovered = Recovered({}, {}, unknown_at=now)
        self._map[:SLOT_BYTES] = self._header(now)

    def begin(self, host: int, address: int, now: float, delay: Delay) -> int:
        """Note that a request begins; return its ticket. At most `UNDER_WAY_MAX` at once."""
        assert self._free, f"more than {UNDER_WAY_MAX} requests at once"
        ticket = self._free.pop()
        at = _UNDER_WAY_AT + ticket * SLOT_BYTES
        record = _RECORD.pack(host, address, now, delay.least_s, delay.per_second, delay.most_s)
        self._map[at : at + SLOT_BYTES] = _add_sum(record)
        return ticket

    def end(self, ticket: int, host: int, address: int, host_at: float, address_at: float, now: float) -> None:
        """Note that a request ended, and when its host and address may be contacted again."""
        self._append(host, address, host_at, address_at, now)
        # Only after the append, so that the contact is always in one of the tables.
        at = _UNDER_WAY_AT + ticket * SLOT_BYTES
        self._map[at : at + SLOT_BYTES] = _EMPTY
        self._free.append(ticket)

    def prolong(self, host: int, host_at: float, now: float) -> None:
        """Note a longer delay of a host than its last request set at its end."""
        self._append(host, 0, host_at, 0.0, now)

    def on_commit(self, ended_before: int) -> None:
        """Note that a commit includes the first `ended_before` ended contacts, which may be overwritten."""
        self.ended_since_commit -= ended_before

    @property
    def is_crowded(self) -> bool:
        """Whether the ring is half full: a commit is needed before it laps."""
        return self.ended_since_commit > (ENDED_MAX - self._first) // 2

    def close(self) -> None:
        self._map.close()

    def _header(self, unknown_at: float) -> bytes:
        return _add_sum(_HEADER.pack(self._boot_id, unknown_at, self._wall_offset_s, self._made_at_epoch + 1))

    def _append(self, host: int, address: int, host_at: float, address_at: float, now: float) -> None:
        at = _ENDED_AT + self._next * SLOT_BYTES
        self._map[at : at + SLOT_BYTES] = _add_sum(_RECORD.pack(host, address, host_at, address_at, now, 0))
        self._next = self._next + 1 if self._next + 1 < ENDED_MAX else self._first
        self.ended_since_commit += 1


def _recover(path: Path, boot_id: bytes, now: float, wall_offset_s: float) -> Recovered:
    if not path.exists():
        return Recovered({}, {}, missing=True)
    if path.stat().st_size != _SIZE:  # It held contacts, but which is unknown.
        return Recovered({}, {}, unknown_at=now, damaged=1)
    return _read(path.read_bytes(), boot_id, now, wall_offset_s)


def _both(one: Recovered, other: Recovered) -> Recovered:
    if one.missing or other.missing:
        return other if one.missing else one
    hosts = {host: max(one.hosts.get(host, 0.0), other.hosts.get(host, 0.0)) for host in one.hosts | other.hosts}
    addresses = one.addresses | other.addresses
    addresses = {at: max(one.addresses.get(at, 0.0), other.addresses.get(at, 0.0)) for at in addresses}
    unknown_at = max(one.unknown_at, other.unknown_at)
    damaged = one.damaged + other.damaged
    return Recovered(hosts, addresses, unknown_at, made_at_epoch=one.made_at_epoch, damaged=damaged)


def _read(data: bytes, boot_id: bytes, now: float, wall_offset_s: float) -> Recovered:
    damaged = faults(data)
    written_at_boot, unknown_at, offset_before_s, epochs = _HEADER.unpack_from(data)
    is_same_boot = written_at_boot == boot_id
    shift_s = wall_offset_s - offset_before_s if is_same_boot and wall_offset_s and offset_before_s else 0.0
    if abs(shift_s) < SHIFT_S_MIN:
        shift_s = 0.0
    hosts: dict[int, float] = {}
    addresses: dict[int, float] = {}
    for host, address, start, least_s, per_second, most_s in _records(data, _UNDER_WAY_AT, _ENDED_AT):
        if host:
            # The request ended at the latest with its process, before now.
            delay_s = min(least_s + per_second * max(now - start - shift_s, 0.0), most_s)
            hosts[host] = max(hosts.get(host, 0.0), now + delay_s)
            addresses[address] = max(addresses.get(address, 0.0), now)
    for host, address, host_at, address_at, at, _ in _records(data, _ENDED_AT, _SIZE):
        # A time in the future was written before the clock was set back, by an unknown time: the full delay starts now.
        by_s = shift_s - max(at + shift_s - now, 0.0)
        if host:
            hosts[host] = max(hosts.get(host, 0.0), host_at + by_s)
        if address:
            addresses[address] = max(addresses.get(address, 0.0), address_at + by_s)
    if not is_same_boot or shift_s > 0.0 or damaged:
        unknown_at = now  # The recovered times are too early for delays that are longer than the ring reaches back.
    elif unknown_at:
        unknown_at += shift_s
    return Recovered(hosts, addresses, unknown_at, made_at_epoch=epochs - 1, damaged=len(damaged))


def faults(data: bytes) -> list[int]:
    """Return the offsets of the damaged records of a file. About 1 ms, and 1 µs a record."""
    if len(data) != _SIZE:
        return [min(len(data), _SIZE)]
    return [at for at, slot in _slots(data, 0, _SIZE) if not _is_sound(slot)] + ([] if any(data[:SLOT_BYTES]) else [0])


def _records(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int, float, float, float, float]]:
    """Yield the undamaged records between two offsets."""
    for _, slot in _slots(data, begin, end):
        if _is_sound(slot):
            yield _RECORD.unpack_from(slot)


def _slots(data: bytes, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the slots that are not empty, with their offsets. Most of a file is empty and is skipped in large steps."""
    for step in range(begin, end, len(_EMPTY_STEP)):
        if data[step : step + len(_EMPTY_STEP)] != _EMPTY_STEP:
            for at in range(step, min(step + len(_EMPTY_STEP), end), SLOT_BYTES):
                slot = data[at : at + SLOT_BYTES]
                if slot != _EMPTY:
                    yield at, slot


def _is_sound(slot: bytes) -> bool:
    return slot == _add_sum(slot[: _RECORD.size])


def _add_sum(record: bytes) -> bytes:
    """Return the bytes of a slot: a record, its sum, and zeros."""
    padded = record.ljust(_RECORD.size, b"\0")
    return padded + _SUM.pack(crc(padded) + 1) + _PAD


def _carry_over(recovered: Recovered, now: float) -> bytes:
    """Return the records that this process takes over, since they must survive its death too."""
    hosts = _longest(recovered.hosts, now)
    pairs = zip_longest(hosts, _longest(recovered.addresses, now), fillvalue=(0, 0.0))
    return b"".join(_add_sum(_RECORD.pack(host, place, host_at, at, now, 0)) for (host, host_at), (place, at) in pairs)


def _longest(resting: Mapping[int, float], now: float) -> list[tuple[int, float]]:
    later = [(fingerprint, at) for fingerprint, at in resting.items() if at > now]
    return sorted(later, key=lambda pair: -pair[1])[:KEPT_MAX]
