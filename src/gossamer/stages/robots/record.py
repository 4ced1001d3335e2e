"""Record: the stored state of an origin's robots.txt, so that a restart neither requests it too early nor loses it; and
a cache of recently used values.
"""

import enum
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

import msgspec

from gossamer.model.decodable import of_version

VERSION = 2


class AnswerKind(enum.IntEnum):
    """Meaning of the last conclusive answer."""

    RULES = 0
    ALLOW_ALL = 1
    UNREACHABLE = 2
    """There was no conclusive answer yet: everything is disallowed."""


class RobotsRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One origin's robots.txt: the last copy, and the failures since. Times are wall time in seconds."""

    kind: AnswerKind
    text: bytes = b""
    """For `RULES`: the part of the file that is read, in UTF-8."""
    fetched_at: float = 0.0
    """When the copy was fetched; this and the origin identify its rules."""
    expires_at: float = 0.0
    """When it must be requested again."""
    failures: int = 0
    """Consecutive failures since the copy, or in total without a copy."""
    first_failed_at: float = 0.0
    retry_at: float = 0.0
    """Earliest time of the next request after a failure."""
    version: int = VERSION
    error: str = ""
    """The last error."""
    lasting: int = 0
    """Number of consecutive last failures that a retry rarely fixes: certificates."""
    failed_at: float = 0.0
    """When the last failure was."""

    @property
    def last_request_at(self) -> float:
        """When the last request ended. A clock behind this was set back, and the other times do not count."""
        return max(self.fetched_at, self.failed_at)


_decoder = msgspec.msgpack.Decoder(RobotsRecord)


def encode(record: RobotsRecord) -> bytes:
    """Return the stored form of a record."""
    return msgspec.msgpack.encode(record)


def decode(data: bytes) -> RobotsRecord | None:
    """Return a record from its stored form; None for another version: then the file is requested again."""
    return of_version(VERSION, _decoder.decode, data)


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """A mapping that drops the least recently used values. A single value larger than the bound is kept."""

    def __init__(self, entries_max: int, bytes_max: int) -> None:
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.bytes = 0
        """Size of all values."""
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: K) -> bool:
        """Return whether there is a value. It does not count as used."""
        return key in self._held

    def get(self, key: K) -> V | None:
        """Return a value, or None, and mark it as used."""
        held = self._held.get(key)
        if held is None:
            self.misses += 1
            return None
        self.hits += 1
        self._held.move_to_end(key)
        return held[0]

    def put(self, key: K, value: V, value_bytes: int) -> None:
        """Store a value in place of an earlier one with its key."""
        old = self._held.pop(key, None)
        self.bytes += value_bytes - (old[1] if old is not None else 0)
        self._held[key] = value, value_bytes
        while len(self._held) > 1 and (len(self._held) > self._entries_max or self.bytes > self._bytes_max):
            _, (_, gone) = self._held.popitem(last=False)
            self.bytes -= gone
