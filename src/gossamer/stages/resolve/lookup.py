"""Lookup: one host's A and AAAA records from name servers, by c-ares."""

from __future__ import annotations

import asyncio
from typing import Final

import aiodns
import msgspec
import pycares

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure
from gossamer.stages.resolve.answers import DnsRecords, LookupAnswer, fail
from gossamer.stages.resolve.options import ResolveOptions

_LOOKUPS_PER_CHANNEL: Final = 20_000
"""c-ares has its own cache, bounded only by time; so a channel is replaced after this many hosts."""
_SECOND_FAMILY_S: Final = 0.5
"""How long a lookup waits for the other address family after the preferred one."""
_ADDRESSES_MAX: Final = 16
"""Addresses kept of one host. An answer over TCP has room for 4,000, and the cache for 100,000 hosts."""
_RECORDS_MAX: Final = 64
"""Records of one lookup that are archived."""
_FINAL: Final = frozenset({pycares.errno.ARES_ENOTFOUND, pycares.errno.ARES_ENODATA, pycares.errno.ARES_EBADNAME})
"""Errors that a retry will not change soon: no such name, no such record, not a name."""
_UNREADABLE: Final = frozenset({pycares.errno.ARES_EBADRESP, pycares.errno.ARES_ECONNREFUSED})
"""Errors of all queries that share a socket or connection with the one whose answer cannot be parsed, or closes it."""
_LONE_FLAGS: Final = 0
"""Alone without EDNS, since some old servers answer it with a bare header (RFC 6891, section 7)."""
_KINDS: Final = {"ipv4_first": ("A", "AAAA"), "ipv6_first": ("AAAA", "A"), "ipv4": ("A",), "ipv6": ("AAAA",)}


class Lookup:
    """Queries name servers, for both address families at once, within `lookup_s_max` seconds. No search domains."""

    def __init__(self, options: ResolveOptions, *, is_lone: bool = False) -> None:
        """`is_lone`: there is one lookup at a time, and no answer to an earlier one may come."""
        self._options = options
        kinds = _KINDS[options.family]
        self._kinds = tuple((kind,) for kind in kinds) if is_lone else (kinds,)
        """Queries at once, and one after another alone: a malformed answer to one would end the other."""
        self._is_lone = is_lone
        self._channel: aiodns.DNSResolver | None = None
        self._channel_asked = 0
        self._patient: Lookup | None = None
        """Repeats what timed out: c-ares soon waits only 0.25 s for a quick server, in which no recursion may end."""

    def lone(self) -> Lookup:
        """Return a new channel for one lookup at a time: one attempt each, since a malformed answer may take long."""
        options = self._options
        limit_s = min(options.lookup_s_max, 2.0 * options.timeout_s)
        return Lookup(msgspec.structs.replace(options, tries=1, lookup_s_max=limit_s), is_lone=True)

    async def ask(self, host: str) -> LookupAnswer:
        """Return a host's addresses, preferred family first, or why there are none."""
        if not host.isascii() or not host.isprintable() or not host.strip("."):
            return LookupAnswer(fail("not a host name", retry=False))
        until = asyncio.get_running_loop().time() + self._options.lookup_s_max
        answer = await self.query(host, until)
        if not answer.has_timed_out or self._is_lone:
            return answer
        self._patient = self._patient or Lookup(self._options)
        return await self._patient.query(host, until)

    async def query(self, host: str, until: float) -> LookupAnswer:
        """Return the answer to one series of attempts, which ends at the time `until` of the loop."""
        # Held until the answers are in, so that a channel replaced meanwhile closes after its last lookup.
        channel = self._open()
        answers: list[asyncio.Future[pycares.DNSResult]] = []
        try:
            for kinds in self._kinds:
                asked = [channel.query_dns(host, kind) for kind in kinds]
                answers += asked
                await _settle(asked, until)
            codes = {code for answer in answers if (code := _error(answer)[0])}
            found = _combine(answers, self._options.lookup_s_max)
            has_timed_out = isinstance(found, Failure) and pycares.errno.ARES_ETIMEOUT in codes
            return LookupAnswer(found, pycares.errno.ARES_EBADRESP in codes, bool(codes & _UNREADABLE), has_timed_out)
        finally:
            if self._is_lone and not all(answer.done() for answer in answers):
                channel.cancel()
            for answer in answers:
                answer.cancel()  # A future that has failed logs its error no more then.

    async def close(self) -> None:
        """End all lookups; those in flight fail."""
        if self._patient is not None:
            await self._patient.close()
        channel = self._channel
        self._channel = None
        if channel is not None:
            await channel.close()

    def _open(self) -> aiodns.DNSResolver:
        if self._channel is None or self._channel_asked >= _LOOKUPS_PER_CHANNEL:
            self._channel = _channel(self._options, _LONE_FLAGS if self._is_lone else None)
            self._channel_asked = 0
        self._channel_asked += 1
        return self._channel


def _channel(options: ResolveOptions, flags: int | None) -> aiodns.DNSResolver:
    try:
        return aiodns.DNSResolver(options.servers or None, timeout=options.timeout_s, tries=options.tries, flags=flags)
    except pycares.AresError as error:
        raise ConfigError(f"resolve.servers: {error.args[-1]}; expected ADDRESS[:PORT]") from error


async def _settle(answers: list[asyncio.Future[pycares.DNSResult]], until: float) -> None:
    """Wait for the preferred family; for the other one only briefly when the preferred has addresses."""
    loop = asyncio.get_running_loop()
    await asyncio.wait(answers[:1], timeout=max(0.0, until - loop.time()))
    if answers[1:]:
        left_s = max(0.0, until - loop.time())
        await asyncio.wait(answers[1:], timeout=min(left_s, _SECOND_FAMILY_S) if _addresses(answers[0]) else left_s)


def _addresses(answer: asyncio.Future[pycares.DNSResult]) -> list[tuple[str, int]]:
    """Return address and TTL of each record, with a TTL no longer than that of any alias."""
    if not answer.done() or answer.cancelled() or answer.exception() is not None:
        return []
    records = answer.result().answer
    ttl_s = min((one.ttl for one in records), default=0)
    return [
        (one.data.addr, ttl_s) for one in records if isinstance(one.data, pycares.ARecordData | pycares.AAAARecordData)
    ]


def _error(answer: asyncio.Future[pycares.DNSResult]) -> tuple[int, str]:
    """Return the error of a query as c-ares names it; 0 if there is none, or none yet."""
    error = answer.exception() if answer.done() and not answer.cancelled() else None
    if error is None:
        return 0, ""
    code, text = (*error.args, "", "")[:2]
    return code if isinstance(code, int) else -1, str(text)


def _combine(answers: list[asyncio.Future[pycares.DNSResult]], limit_s: float) -> DnsRecords | Failure:
    found = [record for answer in answers for record in _addresses(answer)]
    if found:
        addresses = tuple(dict.fromkeys(address for address, _ in found))
        return DnsRecords(addresses[:_ADDRESSES_MAX], float(min(ttl_s for _, ttl_s in found)), _lines(answers))
    problems: list[tuple[bool, str]] = []
    for answer in answers:
        if not answer.done():
            problems.append((True, f"no answer within {limit_s:g} s"))
        elif answer.exception() is not None:
            code, text = _error(answer)
            problems.append((code not in _FINAL, text))
        else:
            problems.append((False, "no address"))
    # If the lookup of one family failed temporarily, the result is temporary too.
    retry, text = max(problems, key=lambda problem: problem[0])
    return fail(text, retry=retry)


def _lines(answers: list[asyncio.Future[pycares.DNSResult]]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for answer in answers:
        if not _addresses(answer):
            continue
        for record in answer.result().answer:
            data = record.data
            if isinstance(data, pycares.CNAMERecordData):
                kind = "CNAME"
                value = f"{data.cname.rstrip('.')}."
            elif isinstance(data, pycares.ARecordData | pycares.AAAARecordData):
                kind = "A" if isinstance(data, pycares.ARecordData) else "AAAA"
                value = data.addr
            else:
                continue
            found[f"{record.name.rstrip('.')}.\t{record.ttl}\tIN\t{kind}\t{value}"] = None
    return tuple(found)[:_RECORDS_MAX]
