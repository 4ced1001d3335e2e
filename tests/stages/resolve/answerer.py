"""A name server on loopback: answers A and AAAA questions from a table (RFC 1035, section 4)."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

NXDOMAIN, SERVFAIL, REFUSED = 3, 2, 5
_TYPES = {1: "A", 28: "AAAA"}


@dataclass
class Zone:
    """What the server knows: (name, type) to addresses, names to a response code, names that get no answer."""

    records: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    silent: set[str | tuple[str, str]] = field(default_factory=set)
    ttl_s: int = 300
    aliases: dict[str, tuple[str, int]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0
    held: asyncio.Event | None = None
    raw: dict[str, Callable[[bytes, bytes], bytes | None]] = field(default_factory=dict)
    """By a name or its domain: what is sent for a query and its question at once; None for the usual answer."""
    delay_s: float = 0.0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def server(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def until_asked(self, times: int) -> None:
        while len(self.asked) < times:
            self.arrived.clear()
            await self.arrived.wait()


class _Answerer(asyncio.DatagramProtocol):
    def __init__(self, zone: Zone) -> None:
        self.zone = zone
        self.tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name, kind, question = _question(data)
        self.zone.asked.append((name, kind))
        self.zone.arrived.set()
        if name in self.zone.silent or (name, kind) in self.zone.silent:
            return
        raw = self.zone.raw.get(name) or self.zone.raw.get(name.partition(".")[2])
        if raw is not None and (sent := raw(data, question)) is not None:
            self.transport.sendto(sent, addr)
            return
        reply = _reply(self.zone, data[:2], name, kind, question)
        if self.zone.delay_s:
            asyncio.get_running_loop().call_later(self.zone.delay_s, self.transport.sendto, reply, addr)
            return
        if self.zone.held is None:
            self.transport.sendto(reply, addr)
            return
        task = asyncio.get_running_loop().create_task(self._later(reply, addr))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _later(self, reply: bytes, addr: tuple[str, int]) -> None:
        assert self.zone.held is not None
        await self.zone.held.wait()
        self.transport.sendto(reply, addr)


def _question(data: bytes) -> tuple[str, str, bytes]:
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]].decode())
        at += 1 + data[at]
    kind = struct.unpack(">H", data[at + 1 : at + 3])[0]
    return ".".join(labels).lower(), _TYPES.get(kind, str(kind)), data[12 : at + 5]


def _name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def _reply(zone: Zone, ident: bytes, name: str, kind: str, question: bytes) -> bytes:
    answers = []
    owner = b"\xc0\x0c"
    if name in zone.aliases:
        target, ttl_s = zone.aliases[name]
        data = _name(target)
        answers.append(owner + struct.pack(">HHIH", 5, 1, ttl_s, len(data)) + data)
        owner, name = _name(target), target
    for address in zone.records.get((name, kind), []):
        data = ipaddress.ip_address(address).packed
        number = 1 if kind == "A" else 28
        answers.append(owner + struct.pack(">HHIH", number, 1, zone.ttl_s, len(data)) + data)
    known = any(key[0] == name for key in zone.records)
    code = zone.codes.get(name, 0 if known else NXDOMAIN)
    return ident + struct.pack(">HHHHH", 0x8180 | code, 1, len(answers), 0, 0) + question + b"".join(answers)


@asynccontextmanager
async def answerer(zone: Zone) -> AsyncIterator[Zone]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(lambda: _Answerer(zone), local_addr=("127.0.0.1", 0))
    zone.port = transport.get_extra_info("sockname")[1]
    try:
        yield zone
    finally:
        for task in protocol.tasks:
            task.cancel()
        transport.close()
