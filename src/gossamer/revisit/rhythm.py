"""Rhythm: what is known of all old pages of one host together, and the hosts whose rhythm is in memory."""

from __future__ import annotations

import re
from collections import OrderedDict

import msgspec

from gossamer.revisit.census import Census
from gossamer.revisit.estimate import rate_of
from gossamer.revisit.history import History
from gossamer.state.epoch import Epochs

FAMILY = "rhythm"
KINDS_MAX = 32
"""Kinds of pages of one host that have a prior of their own; the others share the host's."""
TRUSTED_MIN, DOUBTS_SHARE_MAX = 3, 0.1
"""Dates are believed where so many were right, and of all no larger share was wrong."""
_DIGITS = re.compile(r"\d+")
_REFRESH_MIN, _REFRESH_SHARE = 4, 0.1


class Pool(msgspec.Struct, array_like=True):
    """What visits told of pages that are alike: the rate of a new one of them."""

    history: History = msgspec.field(default_factory=History)
    rate: float = 0.0
    next_at: int = 0
    """Visits at which the rate is reckoned again."""

    def prior(self, above: float) -> float:
        """Return changes a second; `above` is the rate of a larger pool. Reckoned anew after each tenth of visits."""
        visits = self.history.visits
        if not visits:
            return above
        if visits >= self.next_at:
            self.rate = rate_of(self.history, above)
            self.next_at = visits + max(_REFRESH_MIN, int(visits * _REFRESH_SHARE))
        return self.rate


class Rhythm(msgspec.Struct, array_like=True):
    """One host. Some 100 bytes and 20 for each kind and each cell that holds pages."""

    host: str
    pool: Pool = msgspec.field(default_factory=Pool)
    kinds: dict[str, Pool] = msgspec.field(default_factory=dict)
    census: Census = msgspec.field(default_factory=Census)
    promised_per_s: float = 0.0
    """Visits a second that pages take whose age was promised."""
    price: float = 0.0
    """Its own, where politeness leaves fewer visits than its pages are worth; 0 where it does not."""
    spent_per_s: float = 0.0
    """What its pages get then."""
    stirred: int = 0
    """Changes of the census since this was last asked."""
    dates_right: int = 0
    dates_wrong: int = 0
    """How often a Last-Modified agreed with what visits saw, and how often not."""

    @property
    def is_capped(self) -> bool:
        return self.price > 0.0

    @property
    def is_dated(self) -> bool:
        """Its Last-Modified can be believed."""
        right, wrong = self.dates_right, self.dates_wrong
        return right >= TRUSTED_MIN and wrong <= DOUBTS_SHARE_MAX * (right + wrong)

    def pools(self, kind: str) -> list[Pool]:
        """Return those that a page of a kind belongs to, the largest first."""
        found = self.kinds.get(kind)
        if found is None and len(self.kinds) < KINDS_MAX:
            found = self.kinds[kind] = Pool()
        return [self.pool, found] if found is not None else [self.pool]


class Rhythms:
    """Host to rhythm. What changed stays in memory until the cut; of the rest, the least recently used leaves."""

    def __init__(self, epochs: Epochs, cached_max: int) -> None:
        self._epochs = epochs
        self._cached_max = cached_max
        self._cached: OrderedDict[tuple[int, str], Rhythm] = OrderedDict()
        self._dirty: dict[tuple[int, str], Rhythm] = {}

    def get(self, partition: int, host: str) -> Rhythm:
        """Return a host's rhythm: from memory, from the disk (about 10 µs), or new."""
        name = partition, host
        cached = self._cached
        rhythm = cached.get(name)
        if rhythm is not None:
            cached.move_to_end(name)
            return rhythm
        data = self._epochs.get(FAMILY, _key(name))
        rhythm = _decode(data) if data is not None else Rhythm(host)
        cached[name] = rhythm
        if len(cached) > self._cached_max:
            oldest = next((one for one in cached if one not in self._dirty), None)
            if oldest is not None and oldest != name:
                del cached[oldest]
        return rhythm

    def touch(self, partition: int, rhythm: Rhythm) -> None:
        """Have it written with this epoch."""
        self._dirty[partition, rhythm.host] = rhythm

    @property
    def dirty(self) -> int:
        """Hosts that changed since the last cut."""
        return len(self._dirty)

    def cut(self) -> None:
        """Give the open epoch what changed. About 20 µs a host."""
        for name, rhythm in self._dirty.items():
            self._epochs.put(FAMILY, _key(name), _encode(rhythm))
        self._dirty.clear()
        while len(self._cached) > self._cached_max:
            self._cached.popitem(last=False)


def kind_of(path: str) -> str:
    """Return what pages have in common that are made alike: the address's first part, its length, how it ends and
    whether it asks for something; digits count for nothing.
    """
    path, asks, _ = path.partition("?")
    parts = path.split("/")
    first = _DIGITS.sub("#", parts[1])[:24] if len(parts) > 2 else ""
    _, dot, ending = parts[-1].rpartition(".")
    return f"{first}/{len(parts)}{dot and '.' + ending[:8]}{asks}"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Rhythm).decode


def _key(name: tuple[int, str]) -> bytes:
    return name[0].to_bytes(2) + name[1].encode()
