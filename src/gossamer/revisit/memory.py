"""Memory: what is kept of one page between its visits, and how the store has it."""

from __future__ import annotations

from typing import Literal

import msgspec

from gossamer.model.visits import Original
from gossamer.revisit.history import History
from gossamer.url.url import Url

FAMILY = "revisit"
RECENT_MAX = 12
Kind = Literal["first", "changed", "same", "failed", "gone"]


class Memory(msgspec.Struct, array_like=True):
    """One page. About 350 bytes on disk."""

    address: str
    """As it was fetched: validators belong to this form of it."""
    first_at: float
    visited_at: float
    """The last visit that was answered with the page."""
    due_at: float = 0.0
    """0: it was given up."""
    interval_s: float = 0.0
    visits: int = 0
    changes: int = 0
    changed_at: float = 0.0
    """When the last change happened, as far as known: dated, or seen."""
    failures: int = 0
    """In a row."""
    change_rate: float = 0.0
    importance: float = 1.0
    counted: bool = False
    """It is in the census, with these numbers."""
    freshness: float = 0.0
    """Share of the time in which our copy is the page's, expected."""
    promise: int = -1
    """Number of the pattern of `max_age_s` that it matches."""
    digest: int = 0
    payload: bytes = b""
    etag: str = ""
    last_modified: str = ""
    original: tuple[str, float, str] | None = None
    """Address, time and record of the archived response."""
    told_at: float = 0.0
    """The last change that somebody told of."""
    is_told_all: bool = False
    """Somebody tells of every change."""
    hint_s: float = 0.0
    fixed_s: float = 0.0
    said_importance: float = 1.0
    depth: int = 0
    history: History = msgspec.field(default_factory=History)
    recent: list[tuple[float, Kind]] = msgspec.field(default_factory=list)
    """The last visits, and what they saw."""

    @property
    def held(self) -> Original | None:
        return Original(*self.original) if self.original is not None else None

    def note(self, at: float, kind: Kind) -> None:
        """Remember a visit, and of the older ones the last few."""
        self.recent = [*self.recent[1 - RECENT_MAX :], (at, kind)]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Memory).decode


def encode_memory(memory: Memory) -> bytes:
    """About 2 µs."""
    return _encode(memory)


def decode_memory(data: bytes) -> Memory:
    """About 3 µs."""
    return _decode(data)


def memory_key(url: Url) -> bytes:
    """Return where a page's memory stands."""
    return url.partition.to_bytes(2) + url.fingerprint.to_bytes(8)
