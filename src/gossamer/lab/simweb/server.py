"""Server: the synthetic web on loopback addresses, its log and its names, until a signal ends it.

A small answerer serves the made names on UDP (RFC 1035); a hosts file has the same.
"""

import asyncio
import gc
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gossamer.lab.simweb.connection import ServedConnection, Simweb
from gossamer.lab.simweb.log import RequestLog
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.web import Web
from gossamer.world.clock import WallClock
from gossamer.world.loop import loop_factory

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

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if (reply := answer(data, self._address, self._ttl_s)) is not None and self._transport is not None:
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


BACKLOG = 1_024
PORT_TRIES = 20
DNS_ADDRESS = "127.0.0.1"
FILES_SPARE = 64


class Served(msgspec.Struct, frozen=True):
    """Where a running web can be reached."""

    web: Web
    dns_port: int
    """UDP, on 127.0.0.1."""


@asynccontextmanager
async def serving(options: SimwebOptions, log: Path | None = None) -> AsyncIterator[Served]:
    """Serve a web in the running loop while the context lasts, with its DNS answerer. Raises OSError: the port is
    taken, or the system allows too few open files.
    """
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        web, sockets = _bind(options)
        for listener in sockets:
            stack.callback(listener.close)
        request_log = stack.enter_context(closing(RequestLog(log))) if log is not None else None
        simweb = Simweb(web, request_log, WallClock(), loop, _files_max() - len(web.addresses) - FILES_SPARE)
        servers = [
            await loop.create_server(lambda: ServedConnection(simweb, loop), sock=listener, backlog=BACKLOG)
            for listener in sockets
        ]
        resolver, _ = await loop.create_datagram_endpoint(
            lambda: Answerer(web.address, web.ttl_s), local_addr=(DNS_ADDRESS, 0)
        )
        try:
            yield Served(web, resolver.get_extra_info("sockname")[1])
        finally:
            resolver.close()
            for server in servers:
                server.close()
            await simweb.close()


def serve(
    options: SimwebOptions,
    *,
    log: Path | None = None,
    hosts_file: Path | None = None,
    ready: Callable[[Served], None],
    until_stdin_closes: bool = False,
) -> None:
    """Serve a web until SIGTERM or SIGINT; call `ready` when every address answers. Blocks.

    `until_stdin_closes` ends it with its parent, however that ended.
    """

    async def until_ended() -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        if until_stdin_closes:
            loop.add_reader(sys.stdin.fileno(), _heed_stdin, stop)
        async with serving(options, log) as served:
            if hosts_file is not None:
                write_hosts_file(hosts_file, served.web.names)
            # Hosts and words live as long as the process: the collector need not walk them.
            gc.freeze()
            ready(served)
            await stop.wait()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(until_ended())


def _heed_stdin(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4_096):
        stop.set()


def _bind(options: SimwebOptions) -> tuple[Web, Sequence[socket.socket]]:
    """Bind every address to one port. A port that the system chose for the first may be taken on another: try again."""
    addresses = Web(options).addresses
    _allow_files(len(addresses) + 2 * FILES_SPARE)
    for attempt in range(PORT_TRIES):
        sockets: list[socket.socket] = []
        port = options.port
        try:
            for address in addresses:
                sockets.append(socket.create_server((address, port), backlog=BACKLOG))
                port = sockets[0].getsockname()[1]
        except OSError as error:
            for listener in sockets:
                listener.close()
            if options.port or attempt == PORT_TRIES - 1:
                why = os.strerror(error.errno or 0)
                raise OSError(error.errno, f"cannot listen on {address}:{port}: {why}") from error
        else:
            return Web(replace(options, port=port)), sockets
    raise AssertionError("unreachable")


def _files_max() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _allow_files(needed: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if _files_max() < needed:
        raise OSError(f"{needed} open files are needed, {_files_max()} allowed: more names per address, or `ulimit -n`")
