"""Record: what is kept of an origin's robots.txt, so that a restart asks no sooner and forgets nothing; and the most
recently used ones, in memory.
"""

import enum
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

import msgspec

VERSION = 2


class AnswerKind(enum.IntEnum):
    """What the last answer that settled anything said."""

    RULES = 0
    ALLOW_ALL = 1
    UNREACHABLE = 2
    """None did yet: all is disallowed."""


class RobotsRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One origin's robots.txt: the last copy, and the failures since. Times are wall time in seconds."""

    kind: AnswerKind
    text: bytes = b""
    """Of `RULES`: what is read of the file, in UTF-8."""
    fetched_at: float = 0.0
    """When the copy came; this and the origin identify its rules."""
    expires_at: float = 0.0
    """When it must be requested again."""
    failures: int = 0
    """In a row since the copy, or since ever."""
    first_failed_at: float = 0.0
    retry_at: float = 0.0
    """Earliest time of the next request after a failure."""
    version: int = VERSION
    error: str = ""
    """What was wrong the last time."""
    lasting: int = 0
    """Number of the last failures of a kind that a retry hardly fixes: certificates."""
    failed_at: float = 0.0
    """When the last failure was."""

    @property
    def made_at(self) -> float:
        """When the last request ended. If the clock is behind that, it was set back, and no other instant counts."""
        return max(self.fetched_at, self.failed_at)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(RobotsRecord)


def encode(record: RobotsRecord) -> bytes:
    """Return the record as bytes for the store."""
    return _encoder.encode(record)


def decode(data: bytes) -> RobotsRecord | None:
    """Decode a record of `encode`; None for another version: then the file is requested again."""
    try:
        record = _decoder.decode(data)
    except msgspec.MsgspecError:
        return None
    return record if record.version == VERSION else None


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """A mapping that lets go of what was not used for longest. One value larger than the bound is kept alone."""

    def __init__(self, entries_max: int, bytes_max: int) -> None:
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.bytes = 0
        """Of all values held."""
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K) -> V | None:
        """Return a value, used just now, or None."""
        held = self._held.get(key)
        if held is None:
            self.misses += 1
            return None
        self.hits += 1
        self._held.move_to_end(key)
        return held[0]

    def put(self, key: K, value: V, value_bytes: int) -> None:
        """Hold a value in place of what was held under its key."""
        old = self._held.pop(key, None)
        self.bytes += value_bytes - (old[1] if old is not None else 0)
        self._held[key] = value, value_bytes
        while len(self._held) > 1 and (len(self._held) > self._entries_max or self.bytes > self._bytes_max):
            _, (_, gone) = self._held.popitem(last=False)
            self.bytes -= gone
