"""Lookups alone: names with unreadable answers, each in a channel that no other lookup shares meanwhile.

c-ares closes its socket after an answer that it cannot parse, and repeats all queries in flight, or fails them after
`tries` such answers. So beside others a failure says nothing of the name; alone it does.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gossamer.model.visits import Failure
from gossamer.stages.resolve.answers import DnsRecords, fail
from gossamer.url.site import site_of

if TYPE_CHECKING:
    from gossamer.stages.resolve.lookup import Lookup

LANES: Final = 8
"""Channels, each with a thread of its own (0.3 ms to start). None is opened before an answer is unreadable."""
_ZONE_LANES: Final = 2
"""Channels that names of malformed zones may occupy, so that others pass."""
_ZONES_MAX: Final = 10_000
"""Malformed zones that are remembered, about 150 bytes each; of more, those found longest ago are forgotten."""
_ZONE_NAMES_MAX: Final = 64
"""Names of malformed zones that are looked up or wait, so that others find room among the lookups of a crawl."""
_SLOW_S: Final = 1.0
_SLOW_MAX: Final = 3
"""Failures in a row that took longer than this, after which names of a zone do not wait for a channel."""
_CROWDED: Final = fail("answers for its domain cannot be read, and other names of it are being looked up", retry=True)


class LoneLookups:
    """Repeats lookups alone, and remembers the registrable domains whose answers cannot be read even then: their names
    are looked up only here. Ends within `lookup_s_max` seconds, waiting included.
    """

    def __init__(self, lookup_s_max: float, lane: Callable[[], Lookup]) -> None:
        """`lane` opens a channel."""
        self._lookup_s_max = lookup_s_max
        self._lane = lane
        self._lanes: list[Lookup] = []
        self._free: list[Lookup] = []
        self._turns = asyncio.Semaphore(LANES)
        self._zone_turns = asyncio.Semaphore(_ZONE_LANES)
        self._zones: OrderedDict[str, int] = OrderedDict()
        """Malformed zones, with their slow failures since the last readable answer."""
        self._zone_names = 0

    def holds(self, host: str) -> bool:
        """Return whether a host is to be looked up only here."""
        return bool(self._zones) and _zone(host) in self._zones

    async def ask(self, host: str, otherwise: DnsRecords | Failure = _CROWDED) -> DnsRecords | Failure:
        """Look up a host alone. Without an answer in time, and if only `otherwise` has addresses, return that."""
        try:
            async with asyncio.timeout(self._lookup_s_max):
                found = await self._ask_in_turn(host, _zone(host))
        except TimeoutError:
            return otherwise
        return otherwise if isinstance(found, Failure) and isinstance(otherwise, DnsRecords) else found

    async def close(self) -> None:
        """Close the channels; lookups under way fail."""
        for lane in self._lanes:
            await lane.close()

    async def _ask_in_turn(self, host: str, zone: str) -> DnsRecords | Failure:
        if zone not in self._zones:
            async with self._turns:
                if zone not in self._zones:
                    return await self._ask(host, zone)
        is_slow = self._zones.get(zone, 0) >= _SLOW_MAX and self._zone_turns.locked()
        if is_slow or self._zone_names >= _ZONE_NAMES_MAX:
            return _CROWDED
        self._zone_names += 1
        try:
            async with self._zone_turns, self._turns:
                return await self._ask(host, zone)
        finally:
            self._zone_names -= 1

    async def _ask(self, host: str, zone: str) -> DnsRecords | Failure:
        lane = self._free.pop() if self._free else self._open()
        began = asyncio.get_running_loop().time()
        try:
            answer = await lane.ask(host)
        finally:
            self._free.append(lane)
        is_slow = asyncio.get_running_loop().time() - began > _SLOW_S
        if answer.is_malformed or zone in self._zones:
            has_failed = isinstance(answer.found, Failure)
            self._zones[zone] = self._zones.get(zone, 0) + is_slow if has_failed else 0
        if len(self._zones) > _ZONES_MAX:
            self._zones.popitem(last=False)
        return answer.found

    def _open(self) -> Lookup:
        lane = self._lane()
        self._lanes.append(lane)
        return lane


def _zone(host: str) -> str:
    return site_of(host.rstrip("."))
