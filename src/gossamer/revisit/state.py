"""State: sums over all pages that may be visited again. Committed with the epoch, and never made anew from pages."""

from __future__ import annotations

import msgspec

from gossamer.revisit.calendar import Calendar
from gossamer.revisit.census import Census
from gossamer.revisit.rhythm import Pool


class Promise(msgspec.Struct, array_like=True):
    """How a pattern's `max_age_s` was kept."""

    pattern: str
    age_s_max: float
    pages: int = 0
    kept: int = 0
    broken: int = 0
    """Visits that came in time, and too late."""
    late_s_worst: float = 0.0
    deadlines: Calendar = msgspec.field(default_factory=lambda: Calendar(60.0))


class State(msgspec.Struct, array_like=True):
    """About 10 KB."""

    due: Calendar
    census: Census = msgspec.field(default_factory=Census)
    """Pages of hosts that are not capped."""
    pool: Pool = msgspec.field(default_factory=Pool)
    price: float = 1.0
    stirred: int = 0
    """Changes of the census since the price was made."""
    pages: int = 0
    """Pages that are due some time."""
    there: int = 0
    """Those of them whose last visit was answered."""
    retired: int = 0
    capped_hosts: int = 0
    capped_per_s: float = 0.0
    """Visits a second of capped hosts."""
    promised_per_s: float = 0.0
    importance: float = 0.0
    """Sum over pages that are there, and of it the part that is expected to be fresh."""
    fresh: float = 0.0
    visits: int = 0
    changes: int = 0
    same: int = 0
    not_modified: int = 0
    late: int = 0
    """Visits that came later than half an interval after their time."""
    promises: list[Promise] = msgspec.field(default_factory=list)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(State).decode


def encode_state(state: State) -> bytes:
    """Return it as the store keeps it; about 50 µs."""
    return _encode(state)


def decode_state(data: bytes) -> State:
    """Return what was kept."""
    return _decode(data)
