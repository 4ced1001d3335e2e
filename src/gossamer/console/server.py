"""Server: serves the application in the crawl's own loop, within bounds on connections and on time."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from gossamer.model.errors import ConfigError

HEAD_BYTES_MAX = 16 * 1024
IDLE_S_MAX = 15
BACKLOG = 64
STOP_S = 2.0
READ_S_MAX = 15.0
"""Whoever takes nothing of what he is sent for so long is let go."""
CLOSING = "closing"
"""The name in a scope's state of an event that is set when the server ends: for answers that would go on."""


@asynccontextmanager
async def served(
    app: ASGIApp, address: str, port: int, connections_max: int, request_s_max: float, *, option: str = "--serve"
) -> AsyncIterator[str]:
    """Serve while the context is open; give the address, as in a URL. `option` is what names another port.

    Raises:
        ConfigError: the port is taken, or the address is none of this machine's.
    """
    door = _door(address, port, option)
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",  # Our own errors go to the crawl's log, and others' are nobody's news.
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
    closing = asyncio.Event()
    bounds = _Bounds(connections_max, request_s_max, closing)
    loop = asyncio.get_running_loop()
    # uvicorn's own Server would take the process's signals.
    server = await loop.create_server(lambda: _Bounded(config, state, bounds), sock=door, backlog=BACKLOG)
    try:
        yield f"http://{_written(*door.getsockname()[:2])}"
    finally:
        closing.set()
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=STOP_S)
        for connection in list(bounds.open):
            connection.abort()


def is_local(address: str) -> bool:
    """Say whether only this machine can reach an address. Raises ValueError where it is none."""
    return ipaddress.ip_address(address).is_loopback


def _door(address: str, port: int, option: str) -> socket.socket:
    door = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((address, port))
    except OSError as error:
        door.close()
        where = _written(address, port)
        raise ConfigError(
            f"cannot serve on {where}: {error.strerror}; name another port with {option}, or 0 for any"
        ) from error
    return door


def _written(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class _Bounds:
    def __init__(self, connections_max: int, request_s_max: float, closing: asyncio.Event) -> None:
        self.closing = closing
        self.connections_max = connections_max
        self.request_s_max = request_s_max
        self.open: set[_Bounded] = set()


class _Bounded(H11Protocol):
    """uvicorn's HTTP/1.1, which waits for ever for a head that never ends, and takes whoever comes."""

    def __init__(self, config: uvicorn.Config, state: uvicorn.server.ServerState, bounds: _Bounds) -> None:
        super().__init__(config, state, {CLOSING: bounds.closing})
        self._bounds = bounds
        self._overdue: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self._bounds.open) >= self._bounds.connections_max:
            transport.abort()
            return
        self._bounds.open.add(self)
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        if self in self._bounds.open:
            self._bounds.open.discard(self)
            self._stop_waiting()
            self._is_read()
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self in self._bounds.open:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_head()

    def pause_writing(self) -> None:
        self._is_read()
        self._unread = asyncio.get_running_loop().call_later(READ_S_MAX, self.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._is_read()
        super().resume_writing()

    def abort(self) -> None:
        """Close at once."""
        self.transport.abort()

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        # As long as an idle connection may take, and as long as a head may.
        wait_s = self._bounds.request_s_max + (IDLE_S_MAX if self.cycle is not None else 0.0)
        self._overdue = asyncio.get_running_loop().call_later(wait_s, self.abort)

    def _is_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _stop_waiting(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None
