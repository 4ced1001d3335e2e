"""Resolver: resolves hosts to checked addresses, mostly from the cache."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from gossamer.model.counters import Counters
from gossamer.model.visits import Failure, Located, Reply
from gossamer.stages.resolve.alone import LoneLookups
from gossamer.stages.resolve.answers import HostsFile, LookupAnswer, fail, reply_of
from gossamer.stages.resolve.guard import canonical, filter_addresses
from gossamer.stages.resolve.options import ResolveOptions
from gossamer.world.clock import Clock

if TYPE_CHECKING:
    from gossamer.stages.resolve.lookup import Lookup

_COUNTED: Final = tuple(name for name in Counters.__struct_fields__ if name.startswith("dns_"))
_LOCALHOST: Final = ("127.0.0.1", "::1")
_NOWHERE: Final = ("invalid", "onion")
"""Top-level domains for which name servers must not be queried (RFC 6761, section 6.4; RFC 7686)."""
_TEMPORARY_S: Final = 1.0
"""How long a temporary failure counts, the least that RFC 9520, section 3.2, permits: a URL's next attempt, which the
frontier delays, is for a new lookup.
"""


class _Known(msgspec.Struct, frozen=True):
    answer: Located | Failure
    expires_at: float
    known_at: float


class DnsResolver:
    """`ports.Resolver`: IP literals, the hosts file, localhost (RFC 6761), then name servers.

    Every address has passed the guard, from any source. Answers are valid for their TTL, within bounds, failures for
    `failure_ttl_s`, temporary ones for a second at most; beyond `cache_hosts_max` the least recently used are dropped.
    Concurrent requests for one host share one lookup, at most `lookups_max` lookups run at once, and each has a
    deadline. 1 µs from the cache. A lookup that another name's malformed answer may have failed is repeated alone.
    """

    def __init__(self, options: ResolveOptions, clock: Clock, on_answer: Callable[[Reply], None] | None = None) -> None:
        """Read the hosts file. Raises ConfigError if it cannot be read or has a bad line.

        `on_answer` is called with each answer that came from name servers, as a reply of `dns:HOST`.
        """
        self._options = options
        self._clock = clock
        self._on_answer = on_answer
        self._hosts = HostsFile(options.hosts_file)
        self._lookup: Lookup | None = None
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._under_way: dict[str, asyncio.Future[Located | Failure | None]] = {}
        self._turns = asyncio.Semaphore(options.lookups_max)
        self._alone = LoneLookups(options.lookup_s_max, lambda: self._servers().lone())
        self._late: dict[asyncio.Timeout, None] = {}
        """Lookups that have lasted for `timeout_s`, the oldest first."""
        self._counters = Counters()

    def cached(self, host: str) -> Located | None:
        """Return the cached addresses, or None: not known, no longer valid, or a failure."""
        known = self._valid(host)
        if known is None or not isinstance(known.answer, Located):
            return None  # The caller then calls `resolve`, which counts.
        self._counters.dns_hits += 1
        return known.answer

    async def resolve(self, host: str) -> Located | Failure:
        """Return checked addresses, or why there are none. `host` is lower case, IPv6 literals in brackets."""
        while True:
            if (known := self._valid(host)) is not None:
                self._counters.dns_hits += 1
                return known.answer
            under_way = self._under_way.get(host)
            if under_way is None:
                self._counters.dns_misses += 1
                return await self._lead(host)
            answer = await asyncio.shield(under_way)
            if answer is not None:
                return answer

    def count(self, into: Counters) -> None:
        """Set the counts of lookups and of the cache."""
        for name in _COUNTED:
            setattr(into, name, getattr(self._counters, name))

    async def close(self) -> None:
        """End all lookups; those under way fail."""
        await self._alone.close()
        if self._lookup is not None:
            await self._lookup.close()

    async def _lead(self, host: str) -> Located | Failure:
        """Look up a host for all concurrent callers. If the leading caller is cancelled, another one leads."""
        under_way = self._under_way[host] = asyncio.get_running_loop().create_future()
        answer: Located | Failure | None = None
        try:
            answer = await self._find(host)
        finally:
            del self._under_way[host]
            under_way.set_result(answer)
        return answer

    async def _find(self, host: str) -> Located | Failure:
        if addresses := self._without_lookup(host):
            return self._judge(host, addresses, self._options.ttl_s_max)
        if host.rstrip(".").rpartition(".")[2] in _NOWHERE:
            return self._remember(host, fail("a name that exists nowhere", retry=False))
        self._make_room()
        asked_at = self._clock.now()
        if self._alone.holds(host):
            records = await self._alone.ask(host)
        else:
            # The wait is bounded by the deadlines of the lookups before this one.
            async with self._turns:
                asked_at = self._clock.now()
                answer = await self._ask(host)
            records = await self._alone.ask(host, answer.found) if answer.is_doubtful else answer.found
        self._count(self._clock.now() - asked_at, failed=isinstance(records, Failure))
        if isinstance(records, Failure):
            return self._remember(host, records)
        if self._on_answer is not None:
            self._on_answer(reply_of(host, records, asked_at, self._clock.now()))
        ttl_s = min(max(records.ttl_s, self._options.ttl_s_min), self._options.ttl_s_max)
        return self._judge(host, records.addresses, ttl_s)

    async def _ask(self, host: str) -> LookupAnswer:
        try:
            async with asyncio.timeout(None) as limit:
                late = asyncio.get_running_loop().call_later(self._options.timeout_s, self._is_late, limit)
                try:
                    return await self._servers().ask(host)
                finally:
                    late.cancel()
                    self._late.pop(limit, None)
        except TimeoutError:
            return LookupAnswer(fail("no answer in time, as for most lookups under way", retry=True))

    def _is_late(self, limit: asyncio.Timeout) -> None:
        self._late[limit] = None
        self._make_room()

    def _make_room(self) -> None:
        """End the oldest of the late lookups while these are more than half and others wait: name servers that answer
        late, or never, would keep all other hosts waiting.
        """
        most = self._options.lookups_max
        while len(self._under_way) > most and 2 * len(self._late) > most:
            oldest = next(iter(self._late))
            del self._late[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())

    def _count(self, took_s: float, *, failed: bool) -> None:
        counters = self._counters
        counters.dns_lookups += 1
        counters.dns_failures += failed
        counters.dns_s += took_s
        counters.dns_within_10_ms += took_s <= 0.01
        counters.dns_within_100_ms += took_s <= 0.1
        counters.dns_within_1_s += took_s <= 1.0

    def _servers(self) -> Lookup:
        if self._lookup is None:
            from gossamer.stages.resolve.lookup import Lookup  # noqa: PLC0415 - c-ares: for the first name that is not known

            self._lookup = Lookup(self._options)
        return self._lookup

    def _without_lookup(self, host: str) -> tuple[str, ...]:
        """Return addresses that need no name server."""
        try:
            return (canonical(host.strip("[]")),)
        except ValueError:
            pass
        name = host.rstrip(".")
        addresses = self._hosts.addresses(name)
        if not addresses and (name == "localhost" or name.endswith(".localhost")):
            return _LOCALHOST
        return addresses

    def _judge(self, host: str, addresses: tuple[str, ...], ttl_s: float) -> Located | Failure:
        """Return the addresses that pass the guard; a failure with the reason if there are none."""
        expires_at = self._clock.now() + ttl_s
        return self._remember(host, filter_addresses(addresses, expires_at, allow_private=self._options.allow_private))

    def _remember(self, host: str, answer: Located | Failure) -> Located | Failure:
        now = self._clock.now()
        if isinstance(answer, Located):
            expires_at = answer.expires_at
        else:
            failure_s = self._options.failure_ttl_s
            expires_at = now + (min(failure_s, _TEMPORARY_S) if answer.retry else failure_s)
        self._known[host] = _Known(answer, expires_at, now)
        self._known.move_to_end(host)
        while len(self._known) > self._options.cache_hosts_max:
            self._known.popitem(last=False)
        return answer

    def _valid(self, host: str) -> _Known | None:
        known = self._known.get(host)
        if known is None:
            return None
        if not known.known_at <= self._clock.now() < known.expires_at:  # A clock that was set back makes none last.
            del self._known[host]
            return None
        self._known.move_to_end(host)
        return known
