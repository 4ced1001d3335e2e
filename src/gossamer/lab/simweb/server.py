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

from gossamer.lab.simweb.connection import ServedConnection
from gossamer.lab.simweb.dns import Answerer, write_hosts_file
from gossamer.lab.simweb.log import FLUSH_S, Logged, RequestLog
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.sheet import ServedAnswer
from gossamer.lab.simweb.web import Web
from gossamer.lab.simweb.wire import WireRequest
from gossamer.world.clock import Clock, WallClock
from gossamer.world.loop import loop_factory

IDLE_S_MAX = 60.0
SWEEP_S = 5.0
BACKLOG = 1_024
PORT_TRIES = 20
DNS_ADDRESS = "127.0.0.1"
FILES_SPARE = 64
VALIDATORS = ("ETag", "Last-Modified")


class Served(msgspec.Struct, frozen=True):
    """Where a running web can be reached."""

    web: Web
    port: int
    dns_port: int
    """UDP, on 127.0.0.1."""


class Simweb:
    """The state of a running web: who is connected, what is not yet in the log, which pages have changed."""

    def __init__(self, web: Web, log: RequestLog | None, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.clock = clock
        self.drip_s = web.options.drip_s
        self._web = web
        self._log = log
        self._loop = loop
        self._counts: dict[tuple[str, str], int] = {}
        self._connections: set[ServedConnection] = set()
        self._connections_max = _files_max() - len(web.addresses) - FILES_SPARE
        self._last = 0
        self._flusher: asyncio.TimerHandle | None = None
        self._sweeper = loop.call_later(SWEEP_S, self._sweep)

    def answer(self, asked: WireRequest) -> ServedAnswer:
        """Return the answer to a request; counts those to pages that change."""
        if asked.method not in ("GET", "HEAD"):
            return ServedAnswer(405, (("Allow", "GET, HEAD"),))
        answer = self._web.page(asked.host, asked.path, at=self.clock.now())
        if asked.unless_tag or asked.unless_since:
            answer = unless_held(answer, asked)
        # Only errors heal, so only they need counting: few, and their number is bounded by the web.
        if answer.status >= 429 and self._web.changes(asked.host, asked.path):
            key = (asked.host, asked.path)
            nth = self._counts.get(key, 0)
            self._counts[key] = nth + 1
            return self._web.page(asked.host, asked.path, nth)
        return answer

    def opened(self, connection: ServedConnection) -> int:
        """Register a connection; beyond the bound, close the one that is idle for longest."""
        self._connections.add(connection)
        self._last += 1
        if len(self._connections) > self._connections_max:
            min(self._connections, key=lambda one: (not one.idle, one.idle_since)).abort()
        return self._last

    def closed(self, connection: ServedConnection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)

    def logged(self, entry: Logged) -> None:
        """Log a request; it reaches the file within `FLUSH_S`."""
        if self._log is None:
            return
        self._log.add(entry)
        if self._flusher is None:
            self._flusher = self._loop.call_later(FLUSH_S, self._flush)

    async def close(self) -> None:
        """End all connections; those being answered are logged as broken off."""
        for connection in list(self._connections):
            connection.abort()
        self._sweeper.cancel()
        # Connections learn of their end in the next rounds of the loop.
        for _ in range(3):
            await asyncio.sleep(0)
        if self._flusher is not None:
            self._flusher.cancel()

    def _flush(self) -> None:
        self._flusher = None
        if self._log is not None:
            self._log.flush()

    def _sweep(self) -> None:
        oldest = self.clock.now() - IDLE_S_MAX
        for connection in [one for one in self._connections if one.idle and one.idle_since < oldest]:
            connection.abort()
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)


def unless_held(answer: ServedAnswer, asked: WireRequest) -> ServedAnswer:
    """Return 304 where the client has what it would get (RFC 9110, section 13.2.2): by its tag, or without one by the
    very date that it was given.
    """
    headers = {name: value for name, value in answer.headers if name in VALIDATORS}
    if answer.status != 200 or not headers:
        return answer
    if asked.unless_tag:
        tags = [tag.strip().removeprefix("W/") for tag in asked.unless_tag.split(",")]
        is_held = "*" in tags or headers.get("ETag") in tags
    else:
        is_held = headers.get("Last-Modified") == asked.unless_since
    return ServedAnswer(304, tuple(headers.items()), delay_s=answer.delay_s) if is_held else answer


@asynccontextmanager
async def serving(options: SimwebOptions, log: Path | None = None) -> AsyncIterator[Served]:
    """Serve a web in the running loop while the context lasts, with its DNS answerer.

    Raises:
        OSError: the port is taken, or the system allows too few open files.
    """
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        web, sockets = _bound(options)
        for listener in sockets:
            stack.callback(listener.close)
        request_log = stack.enter_context(closing(RequestLog(log))) if log is not None else None
        simweb = Simweb(web, request_log, WallClock(), loop)
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
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
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


def _bound(options: SimwebOptions) -> tuple[Web, Sequence[socket.socket]]:
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
