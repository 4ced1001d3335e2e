"""Rhythm: summaries of many pages: of all old pages of one host, and of pages by change rate and importance.

A cell of the census spans a factor of √2 in both. Sums within it are exact, so a cell's mean represents its pages; this
costs less than 0.1 % of freshness (docs/explanation/revisits.md).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from math import floor, inf, log2, sqrt

import msgspec

from gossamer.features.revisit.policies import VisitHistory, rate_of
from gossamer.model.standing import Habits
from gossamer.ports import RevisitPolicy
from gossamer.state.epoch import Epochs

CELLS_AN_OCTAVE = 2
LEVEL_MAX = 64
"""Cells from 2^-32 to 2^32 in each direction; values beyond these are in the outermost cells."""
_SPAN = 2 * LEVEL_MAX + 1
PRICE_MIN = 1e-18
PRICE_MAX = 1e18
_ROUNDS_MAX = 80
_CLOSE = 1.003
"""A price is found when it is known within this factor."""


class Census(msgspec.Struct, array_like=True):
    """A bounded summary of pages. Adding, removing or changing a page costs 1 µs."""

    cells: dict[int, list[float]] = msgspec.field(default_factory=dict)
    """By cell: count, sum of change rates, sum of importances."""
    pages: int = 0

    def add(self, change_rate: float, importance: float, sign: int = 1) -> None:
        """Count a page, or with -1 remove it; the numbers must be those with which it was added."""
        self._change(_cell(change_rate, importance), sign, sign * change_rate, sign * importance)

    def take_in(self, other: Census, sign: int = 1) -> None:
        """Add all pages of another census, or with -1 subtract them."""
        for cell, (count, rates, importances) in other.cells.items():
            self._change(cell, sign * int(count), sign * rates, sign * importances)

    def rate_at(self, policy: RevisitPolicy, price: float) -> float:
        """Return the visits per second of all pages at a price."""
        return _total_rate(self._typical(), policy, price)

    def price(self, policy: RevisitPolicy, budget: float, near: float = 1.0) -> float:
        """Return the price at which all pages together get `budget` visits per second, or the maximum of the policy.

        If the policy's lowest rates already exceed the budget, the price is infinite and the budget is exceeded. The
        search begins at `near`, the previous price, and takes some eight sums over the cells, about 0.1 ms per hundred
        cells with pages.
        """
        pages = self._typical()
        if not pages:
            return near
        low = high = min(max(near, PRICE_MIN), PRICE_MAX)
        step = 1.1
        if _total_rate(pages, policy, near) > budget:
            while _total_rate(pages, policy, high) > budget:
                if high >= PRICE_MAX:
                    return inf
                low = high
                high = high * step
                step = step * step
        else:
            while _total_rate(pages, policy, low) <= budget:
                if low <= PRICE_MIN:
                    return PRICE_MIN
                high = low
                low = low / step
                step = step * step
        for _ in range(_ROUNDS_MAX):
            if high <= low * _CLOSE:
                break
            middle = sqrt(low * high)
            if _total_rate(pages, policy, middle) > budget:
                low = middle
            else:
                high = middle
        return high

    def _typical(self) -> list[tuple[float, Habits]]:
        return [(n, Habits(rates / n, importances / n)) for n, rates, importances in self.cells.values()]

    def _change(self, cell: int, count: int, rates: float, importances: float) -> None:
        sums = self.cells.setdefault(cell, [0.0, 0.0, 0.0])
        sums[0] += count
        sums[1] += rates
        sums[2] += importances
        self.pages += count
        assert sums[0] >= 0, "a page was removed that had not been added"
        if not sums[0]:
            del self.cells[cell]


def _total_rate(pages: list[tuple[float, Habits]], policy: RevisitPolicy, price: float) -> float:
    return sum([count * policy.rate(habits, price) for count, habits in pages])


def _cell(change_rate: float, importance: float) -> int:
    return _level(change_rate) * _SPAN + _level(importance)


def _level(value: float) -> int:
    if value <= 0.0:
        return 0
    return min(max(floor(CELLS_AN_OCTAVE * log2(value)), -LEVEL_MAX), LEVEL_MAX) + LEVEL_MAX


FAMILY = "rhythm"
KINDS_MAX = 32
"""Kinds of pages of one host with a separate prior; others use the host's."""
TRUSTED_MIN = 3
DOUBTS_SHARE_MAX = 0.1
"""Dates are trusted once this many were right, as long as at most this share was wrong."""
_DIGITS = re.compile(r"\d+")
_REFRESH_MIN = 4
_REFRESH_SHARE = 0.1


class Pool(msgspec.Struct, array_like=True):
    """Observed changes of similar pages, and the rate to assume for a new page."""

    history: VisitHistory = msgspec.field(default_factory=VisitHistory)
    rate: float = 0.0
    next_at: int = 0
    """Number of visits at which the rate is computed again."""

    def prior(self, above: float) -> float:
        """Return changes per second; `above` is the rate of a larger pool. Computed again a tenth more visits later."""
        visits = self.history.visits
        if not visits:
            return above
        if visits >= self.next_at:
            self.rate = rate_of(self.history, above)
            self.next_at = visits + max(_REFRESH_MIN, int(visits * _REFRESH_SHARE))
        return self.rate


class Rhythm(msgspec.Struct, array_like=True):
    """The summary of one host. Some 100 bytes, and 20 for each kind and each cell with pages."""

    host: str
    pool: Pool = msgspec.field(default_factory=Pool)
    kinds: dict[str, Pool] = msgspec.field(default_factory=dict)
    census: Census = msgspec.field(default_factory=Census)
    promised_per_s: float = 0.0
    """Visits per second of pages with a promised age."""
    price: float = 0.0
    """The host's own price, if politeness permits fewer visits than its pages are worth; else 0."""
    spent_per_s: float = 0.0
    """Visits per second of its pages at that price."""
    stirred: int = 0
    """Changes of the census since the last check."""
    dates_right: int = 0
    dates_wrong: int = 0
    """How often a Last-Modified agreed with the results of visits, and how often not."""

    @property
    def is_capped(self) -> bool:
        return self.price > 0.0

    @property
    def is_dated(self) -> bool:
        """Whether its Last-Modified is trusted."""
        right = self.dates_right
        wrong = self.dates_wrong
        return right >= TRUSTED_MIN and wrong <= DOUBTS_SHARE_MAX * (right + wrong)

    def pools(self, kind: str) -> list[Pool]:
        """Return the pools of a page of a kind, the largest first."""
        found = self.kinds.get(kind)
        if found is None and len(self.kinds) < KINDS_MAX:
            found = self.kinds[kind] = Pool()
        return [self.pool, found] if found is not None else [self.pool]


class Rhythms:
    """Rhythms by host. Changed ones stay in memory until the cut; of the others the least recently used are dropped."""

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
        rhythm = decode_rhythm(data) if data is not None else Rhythm(host)
        cached[name] = rhythm
        if len(cached) > self._cached_max:
            oldest = next((one for one in cached if one not in self._dirty), None)
            if oldest is not None and oldest != name:
                del cached[oldest]
        return rhythm

    def touch(self, partition: int, rhythm: Rhythm) -> None:
        """Mark a rhythm as changed, so that the next `cut` writes it."""
        self._dirty[partition, rhythm.host] = rhythm

    def forget(self, first: int, end: int) -> None:
        """Drop the partitions in [`first`, `end`) from memory, after a cut."""
        for name in [name for name in self._cached if first <= name[0] < end]:
            assert name not in self._dirty, "partitions move between cuts"
            del self._cached[name]

    @property
    def dirty(self) -> int:
        """Hosts that changed since the last cut."""
        return len(self._dirty)

    def cut(self) -> None:
        """Put changed rhythms into the open epoch. About 20 µs a host."""
        for name, rhythm in self._dirty.items():
            self._epochs.put(FAMILY, _key(name), msgspec.msgpack.encode(rhythm))
        self._dirty.clear()
        while len(self._cached) > self._cached_max:
            self._cached.popitem(last=False)


def kind_of(path: str) -> str:
    """Return the kind of a page: first segment of the path, number of segments, extension, whether a query."""
    path, asks, _ = path.partition("?")
    parts = path.split("/")
    first = _DIGITS.sub("#", parts[1])[:24] if len(parts) > 2 else ""
    _, dot, ending = parts[-1].rpartition(".")
    return f"{first}/{len(parts)}{dot and '.' + ending[:8]}{asks}"


decode_rhythm = msgspec.msgpack.Decoder(Rhythm).decode
"""Returns a rhythm from its stored form."""


def _key(name: tuple[int, str]) -> bytes:
    return name[0].to_bytes(2) + name[1].encode()
