"""Server: serves an application in the caller's loop, within bounds on connections, time and work."""

import asyncio
import errno
import ipaddress
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from gossamer.config.sections import ConsoleOptions
from gossamer.console.connections import IDLE_S_MAX, Connections, ConsoleConnection
from gossamer.console.operations import ConsoleCounts
from gossamer.console.service import Service
from gossamer.model.errors import ConfigError

HEAD_BYTES_MAX = 128 * 1024
"""An address of 8,192 characters, which `why` takes, has up to 98,304 bytes when they are percent-encoded."""
BACKLOG = 128
STOP_S = 2.0


@asynccontextmanager
async def serve_app(
    app: Starlette,
    options: ConsoleOptions,
    port: int,
    service: Service,
    *,
    option: str = "--serve",
    figures: ConsoleCounts | None = None,
) -> AsyncIterator[str]:
    """Serve while the context is open; give the address, as in a URL. `option` is what names another port. `figures`
    count connections; None: those of `service`. Raises ConfigError: the port is taken, or the address is not this
    machine's.
    """

    async def shared(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request with its work measured, and delayed to keep its share."""
        await service.share.run(app(scope, receive, send))

    listener = _listener(options.address, port, option)
    loop = asyncio.get_running_loop()
    connections = Connections(options.connections_max, options.request_s_max, service.share, figures or service.figures)
    config = uvicorn.Config(
        shared,
        log_config=None,
        log_level="critical",  # Our own errors go to the crawl's log, and callers' errors to none.
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=IDLE_S_MAX,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        proxy_headers=False,
    )
    config.load()
    state = uvicorn.server.ServerState()
    # uvicorn's own Server would take the process's signals.
    accepting = loop.create_task(connections.accept(listener, lambda: ConsoleConnection(config, state, connections)))
    try:
        yield f"http://{_host_and_port(*listener.getsockname()[:2])}"
    finally:
        connections.closing.set()
        accepting.cancel()
        await asyncio.wait([accepting])
        listener.close()
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=STOP_S)
        for connection in list(connections.open):
            connection.abort()


def is_local(address: str) -> bool:
    """Return whether only this machine can reach an address. Raises ValueError if the text is not an address."""
    return ipaddress.ip_address(address).is_loopback


def _listener(address: str, port: int, option: str) -> socket.socket:
    is_6 = ":" in address
    family = socket.AF_INET6 if is_6 else socket.AF_INET
    try:
        listener = socket.create_server((address, port), family=family, backlog=BACKLOG, dualstack_ipv6=is_6)
    except OSError as error:
        where = f"{_host_and_port(address, port)}: {os.strerror(error.errno or 0)}"
        remedy = f"name another port with {option}, or 0 for any"
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # Such as 127.0.0.1 where there is IPv6 alone.
            remedy = "name an address of this machine with --set console.address=IP"
        raise ConfigError(f"cannot serve on {where}; {remedy}") from error
    listener.setblocking(False)
    return listener


def _host_and_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
