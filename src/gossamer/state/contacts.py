"""Contacts: when each host and address may be asked again, in a file that outlives any death of the process.

Contacts of an epoch that was lost stand in no commit, so they are written here before each request and again at its
end: a table of requests under way, and a ring of requests that ended. Both are memory-mapped, so they survive a
killed process; a power cut is told by the boot id, and then nobody knows: every host waits its longest delay.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

import msgspec

FILE = "contacts"
UNDER_WAY_MAX = 16_384
"""Requests at once."""
ENDED_MAX = 65_536
"""Requests that may end between two commits; the commit comes early when half of it is used."""

_HEADER = struct.Struct("<16sQ")
_RECORD = struct.Struct("<QQdddd")
"""Host's and address's fingerprint; then for one under way start and `Rest`, for one that ended two not-befores."""
_UNDER_WAY_AT = 64
_ENDED_AT = _UNDER_WAY_AT + UNDER_WAY_MAX * _RECORD.size
_SIZE = _ENDED_AT + ENDED_MAX * _RECORD.size


class Rest(msgspec.Struct, frozen=True, gc=False):
    """How long a host will rest after a request whose length is not known yet."""

    least_s: float
    per_second: float
    """How much longer for each second that the request takes."""
    most_s: float


class Recovered(msgspec.Struct, frozen=True):
    """What an earlier process left: instants in wall time, keyed by fingerprint."""

    hosts: dict[int, float]
    addresses: dict[int, float]
    unknown: bool
    """The machine started anew or the file is missing: nothing is known of the last epoch's contacts."""


class Contacts:
    """The gate journal. Each call costs about half a microsecond; nothing here waits for the disk."""

    def __init__(self, directory: Path, boot_id: bytes, now: float) -> None:
        """Open or make the file in `directory`; `recovered` tells what was in it."""
        path = directory / FILE
        existed = path.exists() and path.stat().st_size == _SIZE
        if not existed:
            with path.open("wb") as file:
                file.truncate(_SIZE)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self.recovered = self._read(boot_id, now) if existed else Recovered({}, {}, unknown=True)
        self._free = list(range(UNDER_WAY_MAX - 1, -1, -1))
        self._next = 0
        self.ended_since_commit = 0
        self._keep_recovered(now)
        _HEADER.pack_into(self._map, 0, boot_id, 0)

    def begin(self, host: int, address: int, now: float, rest: Rest) -> int:
        """Note that a request begins; return its ticket."""
        ticket = self._free.pop()
        at = _UNDER_WAY_AT + ticket * _RECORD.size
        _RECORD.pack_into(self._map, at, host, address, now, rest.least_s, rest.per_second, rest.most_s)
        return ticket

    def end(self, ticket: int, host: int, address: int, host_at: float, address_at: float) -> None:
        """Note that a request ended, and from when on its host and address may be asked again."""
        _RECORD.pack_into(self._map, _ENDED_AT + self._next * _RECORD.size, host, address, host_at, address_at, 0, 0)
        self._next = (self._next + 1) % ENDED_MAX
        self.ended_since_commit += 1
        # Only now: at no instant is the contact in neither table.
        at = _UNDER_WAY_AT + ticket * _RECORD.size
        self._map[at : at + _RECORD.size] = bytes(_RECORD.size)
        self._free.append(ticket)

    def committed(self, ended_before: int) -> None:
        """Say that the first `ended_before` of the ended contacts stand in a commit and may be overwritten."""
        self.ended_since_commit -= ended_before

    @property
    def crowded(self) -> bool:
        """The ring is half full: commit before it laps."""
        return self.ended_since_commit > ENDED_MAX // 2

    def close(self) -> None:
        self._map.close()

    def _keep_recovered(self, now: float) -> None:
        # Until they stand in a commit of ours they must survive our own death too.
        resting = [(host, 0, at, 0.0, 0, 0) for host, at in self.recovered.hosts.items() if at > now]
        resting += [(1, address, 0.0, at, 0, 0) for address, at in self.recovered.addresses.items() if at > now]
        ended = b"".join(_RECORD.pack(*record) for record in resting[: ENDED_MAX // 2])
        self._map[_ENDED_AT:_SIZE] = ended + bytes(_SIZE - _ENDED_AT - len(ended))
        self._map[_UNDER_WAY_AT:_ENDED_AT] = bytes(_ENDED_AT - _UNDER_WAY_AT)
        self._next = self.ended_since_commit = len(ended) // _RECORD.size

    def _read(self, boot_id: bytes, now: float) -> Recovered:
        written_at_boot, _ = _HEADER.unpack_from(self._map, 0)
        hosts: dict[int, float] = {}
        addresses: dict[int, float] = {}
        under_way = _RECORD.iter_unpack(self._map[_UNDER_WAY_AT:_ENDED_AT])
        for host, address, start, least_s, per_second, most_s in under_way:
            if host:
                # It ended, at the latest, when its process did, and that is past.
                rest_s = min(least_s + per_second * max(now - start, 0.0), most_s)
                hosts[host] = max(hosts.get(host, 0.0), now + rest_s)
                addresses[address] = max(addresses.get(address, 0.0), now)
        for host, address, host_at, address_at, _, _ in _RECORD.iter_unpack(self._map[_ENDED_AT:_SIZE]):
            if host:
                hosts[host] = max(hosts.get(host, 0.0), host_at)
                addresses[address] = max(addresses.get(address, 0.0), address_at)
        return Recovered(hosts, addresses, unknown=written_at_boot != boot_id)
