"""Dns: a small answerer for the made names, on UDP (RFC 1035), and the same as a hosts file."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

TTL_S = 300
A = 1
SOA = 6
ANY = 255
NAME_ERROR = 3
REFUSED = 5
NOT_IMPLEMENTED = 4


def write_hosts_file(path: Path, names: Mapping[str, str]) -> None:
    """Write all names in the format of /etc/hosts, one a line."""
    path.write_text("".join(f"{address} {name}\n" for name, address in names.items()))


class Answerer(asyncio.DatagramProtocol):
    """Answers A queries for names that have an address; other types with no data, other names with NXDOMAIN."""

    def __init__(self, address: Callable[[str], str | None], ttl_s: Callable[[str], int]) -> None:
        """`address` and `ttl_s` return the address of a name in lower case, and for how long it holds."""
        self._address = address
        self._ttl_s = ttl_s
        self._transport: asyncio.DatagramTransport | None = None
        self.queries = 0

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        reply = answer(data, self._address, self._ttl_s)
        self.queries += 1
        if reply is not None and self._transport is not None:
            self._transport.sendto(reply, addr)


def answer(
    query: bytes, address_of: Callable[[str], str | None], ttl_s_of: Callable[[str], int] = lambda _: TTL_S
) -> bytes | None:
    """Return the reply to one query, or None for what is no query. Pure."""
    if len(query) < 12:
        return None
    ident, flags, questions = struct.unpack_from(">HHH", query)
    if flags & 0x8000 or questions != 1:
        return None
    asked = _question(query)
    if asked is None:
        return None
    name, kind, end = asked
    question = query[12:end]
    if flags & 0x7800:
        return _reply(ident, flags, NOT_IMPLEMENTED, question)
    address = address_of(name.lower())
    ttl_s = ttl_s_of(name.lower())
    if address is None:
        return _reply(ident, flags, NAME_ERROR, question, authority=_soa(ttl_s))
    if kind not in (A, ANY):
        return _reply(ident, flags, 0, question, authority=_soa(ttl_s))
    # 0xC00C points back to the name in the question.
    record = struct.pack(">HHHIH", 0xC00C, A, 1, ttl_s, 4) + socket.inet_aton(address)
    return _reply(ident, flags, 0, question, record)


def _question(query: bytes) -> tuple[str, int, int] | None:
    labels: list[str] = []
    at = 12
    while at < len(query) and query[at]:
        length = query[at]
        if length > 63 or at + 1 + length > len(query):
            return None
        labels.append(query[at + 1 : at + 1 + length].decode("latin-1"))
        at += 1 + length
    if at + 5 > len(query):
        return None
    (kind,) = struct.unpack_from(">H", query, at + 1)
    return ".".join(labels), kind, at + 5


def _reply(ident: int, flags: int, code: int, question: bytes, record: bytes = b"", authority: bytes = b"") -> bytes:
    # Response, authoritative, the query's opcode and its wish for recursion.
    bits = 0x8400 | (flags & 0x7900) | code
    return struct.pack(">HHHHHH", ident, bits, 1, bool(record), bool(authority), 0) + question + record + authority


def _soa(ttl_s: int) -> bytes:
    """Return a record that says how long a negative answer holds (RFC 2308)."""
    data = b"\0\0" + struct.pack(">IIIII", 1, ttl_s, ttl_s, ttl_s, ttl_s)
    return b"\0" + struct.pack(">HHIH", SOA, 1, ttl_s, len(data)) + data
