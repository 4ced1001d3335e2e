"""Server: the synthetic web on loopback addresses, its log and its names, until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gossamer.lab.simweb.connection import ServedConnection, Simweb
from gossamer.lab.simweb.dns import Answerer, write_hosts_file
from gossamer.lab.simweb.log import RequestLog
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.web import Web
from gossamer.world.clock import WallClock
from gossamer.world.loop import loop_factory

BACKLOG = 1_024
PORT_TRIES = 20
DNS_ADDRESS = "127.0.0.1"
FILES_SPARE = 64


class Served(msgspec.Struct, frozen=True):
    """Where a running web can be reached."""

    web: Web
    port: int
    dns_port: int
    """UDP, on 127.0.0.1."""


@asynccontextmanager
async def serving(options: SimwebOptions, log: Path | None = None) -> AsyncIterator[Served]:
    """Serve a web in the running loop while the context lasts, with its DNS answerer.

    Raises:
        OSError: the port is taken, or the system allows too few open files.
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
            yield Served(web, web.options.port, resolver.get_extra_info("sockname")[1])
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
                sockets.append(_listener(address, port))
                port = sockets[0].getsockname()[1]
        except OSError as error:
            for listener in sockets:
                listener.close()
            if options.port or attempt == PORT_TRIES - 1:
                raise OSError(error.errno, f"cannot listen on {address}:{port}: {error.strerror}") from error
        else:
            return Web(replace(options, port=port)), sockets
    raise AssertionError("unreachable")


def _listener(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setblocking(False)
    try:
        listener.bind((address, port))
    except OSError:
        listener.close()
        raise
    return listener


def _files_max() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _allow_files(needed: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if _files_max() < needed:
        raise OSError(f"{needed} open files are needed, {_files_max()} allowed: more names per address, or `ulimit -n`")
