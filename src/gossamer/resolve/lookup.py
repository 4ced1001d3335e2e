"""Lookup: one host's A and AAAA records from name servers, by c-ares."""

from __future__ import annotations

import asyncio
from typing import Final

import aiodns
import pycares

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure
from gossamer.resolve.answers import DnsRecords, failed
from gossamer.resolve.options import ResolveOptions

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


_KINDS: Final = {"ipv4_first": ("A", "AAAA"), "ipv6_first": ("AAAA", "A"), "ipv4": ("A",), "ipv6": ("AAAA",)}


class Lookup:
    """Queries name servers, for both address families at once, within `lookup_s_max` seconds. Search domains are not
    used.
    """

    def __init__(self, options: ResolveOptions) -> None:
        self._options = options
        self._kinds = _KINDS[options.family]
        self._channel: aiodns.DNSResolver | None = None
        self._channel_asked = 0

    async def ask(self, host: str) -> DnsRecords | Failure:
        """Return a host's addresses, preferred family first, or why there are none."""
        if not host.isascii() or not host.isprintable() or not host.strip("."):
            return failed("not a host name", retry=False)
        # Held until the answers are in, so that a channel replaced meanwhile closes after its last lookup.
        channel = self._open()
        answers = [channel.query_dns(host, kind) for kind in self._kinds]
        try:
            await _settle(answers, self._options.lookup_s_max)
            return _combine(answers, self._options.lookup_s_max)
        finally:
            for answer in answers:
                # Cancel it or retrieve its error: a future logs an error that was never retrieved.
                if not answer.cancel() and not answer.cancelled():
                    answer.exception()

    async def close(self) -> None:
        """End all lookups; those in flight fail."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    def _open(self) -> aiodns.DNSResolver:
        if self._channel is None or self._channel_asked >= _LOOKUPS_PER_CHANNEL:
            self._channel = _channel(self._options)
            self._channel_asked = 0
        self._channel_asked += 1
        return self._channel


def _channel(options: ResolveOptions) -> aiodns.DNSResolver:
    try:
        return aiodns.DNSResolver(
            nameservers=options.servers or None,
            loop=asyncio.get_running_loop(),
            timeout=options.timeout_s,
            tries=options.tries,
        )
    except pycares.AresError as error:
        raise ConfigError(f"resolve.servers: {error.args[-1]}; expected ADDRESS[:PORT]") from error


async def _settle(answers: list[asyncio.Future[pycares.DNSResult]], limit_s: float) -> None:
    """Wait for the preferred family; for the other one only briefly when the preferred has addresses."""
    loop = asyncio.get_running_loop()
    until = loop.time() + limit_s
    await asyncio.wait(answers[:1], timeout=limit_s)
    if answers[1:]:
        left_s = max(0.0, until - loop.time())
        await asyncio.wait(answers[1:], timeout=min(left_s, _SECOND_FAMILY_S) if _addresses(answers[0]) else left_s)


def _addresses(answer: asyncio.Future[pycares.DNSResult]) -> list[tuple[str, int]]:
    """Return address and TTL of each record, with a TTL no longer than that of any alias."""
    if not answer.done() or answer.cancelled() or answer.exception() is not None:
        return []
    records = answer.result().answer
    ttl_s = min((record.ttl for record in records), default=0)
    return [
        (record.data.addr, ttl_s)
        for record in records
        if isinstance(record.data, pycares.ARecordData | pycares.AAAARecordData)
    ]


def _combine(answers: list[asyncio.Future[pycares.DNSResult]], limit_s: float) -> DnsRecords | Failure:
    found = [record for answer in answers for record in _addresses(answer)]
    if found:
        addresses = tuple(dict.fromkeys(address for address, _ in found))
        return DnsRecords(addresses[:_ADDRESSES_MAX], float(min(ttl_s for _, ttl_s in found)), _lines(answers))
    problems: list[tuple[bool, str]] = []
    for answer in answers:
        if not answer.done():
            problems.append((True, f"no answer within {limit_s:g} s"))
        elif (error := answer.exception()) is not None:
            code, text = (*error.args, "", "")[:2]
            problems.append((code not in _FINAL, str(text)))
        else:
            problems.append((False, "no address"))
    # If the lookup of one family failed temporarily, the result is temporary too.
    retry, text = max(problems, key=lambda problem: problem[0])
    return failed(text, retry=retry)


def _lines(answers: list[asyncio.Future[pycares.DNSResult]]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for answer in answers:
        if not _addresses(answer):
            continue
        for record in answer.result().answer:
            data = record.data
            if isinstance(data, pycares.CNAMERecordData):
                kind, value = "CNAME", f"{data.cname.rstrip('.')}."
            elif isinstance(data, pycares.ARecordData | pycares.AAAARecordData):
                kind, value = ("A" if isinstance(data, pycares.ARecordData) else "AAAA"), data.addr
            else:
                continue
            found[f"{record.name.rstrip('.')}.\t{record.ttl}\tIN\t{kind}\t{value}"] = None
    return tuple(found)[:_RECORDS_MAX]
