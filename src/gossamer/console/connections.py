"""Connections: HTTP/1.1 as uvicorn and h11 speak it, within bounds on how many there are, how slow and how much work.

No reader keeps others out: when all places are taken, the connection that has waited longest without a complete request
makes room, of the client that has most. Its head or body is slow, it reads slowly, or it is idle.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from gossamer.console.operations import ConsoleCounts
from gossamer.world.loop import LoopShare

IDLE_S_MAX = 15
READ_S_MAX = 15.0
"""Time after which a connection is closed if its reader takes nothing."""
PIECE_BYTES = 1_024
"""Bytes that are parsed at once. h11 takes 14 us a chunk, and a chunk may be one byte."""
SEND_BUFFER_BYTES = 64 * 1024
"""Send buffer of each socket: a reader that does not read is noticed when it is full."""
CONNECT_S = 0.000_2
"""Time that a connection costs in addition to its requests."""
ROOM_S_MAX = 5.0
"""Longest wait of a new connection for the end of another one."""
AGAIN_S = 0.5
"""Interval of attempts to accept a connection while the system has no file descriptor left."""
CLOSING = "closing"
"""The name in a scope's state of an event that is set when the server ends: for answers that would go on."""


class Connections:
    """All connections of a server."""

    def __init__(self, most: int, request_s_max: float, share: LoopShare, figures: ConsoleCounts) -> None:
        """Keep at most `most`; a head may take `request_s_max` to arrive."""
        self.request_s_max = request_s_max
        self.share = share
        self.closing = asyncio.Event()
        self.open: set[ConsoleConnection] = set()
        self._most = most
        self._figures = figures
        self._left = asyncio.Event()

    async def accept(self, listener: socket.socket, make: Callable[[], ConsoleConnection]) -> None:
        """Take connections from a listening socket until cancelled, as fast as the share of the loop allows."""
        loop = asyncio.get_running_loop()
        while True:
            await self.share.turn()
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError:
                self._figures.connections_refused += 1
                await asyncio.sleep(AGAIN_S)
                continue
            self.share.spend(CONNECT_S)
            if await self._make_room():
                with suppress(OSError):  # It has gone already.
                    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
                    await loop.connect_accepted_socket(make, accepted)
            else:
                self._figures.connections_refused += 1
                accepted.close()

    def add(self, connection: ConsoleConnection) -> None:
        """Count a connection."""
        self.open.add(connection)
        self._figures.connections = len(self.open)

    def remove(self, connection: ConsoleConnection) -> None:
        """Stop counting a connection."""
        self.open.discard(connection)
        self._figures.connections = len(self.open)
        self._left.set()

    async def _make_room(self) -> bool:
        """Make room for one more connection; False if that fails in time."""
        if len(self.open) >= self._most and (slowest := self._slowest(lambda one: one.is_waiting)) is not None:
            self._figures.connections_displaced += 1
            slowest.abort()
            self.remove(slowest)
        with suppress(TimeoutError):
            async with asyncio.timeout(ROOM_S_MAX):
                while len(self.open) >= self._most:
                    if (at_work := self._slowest(lambda one: not one.is_last)) is not None:
                        at_work.close_after_answer()
                    self._left.clear()
                    await self._left.wait()
        return len(self.open) < self._most

    def _slowest(self, may_go: Callable[[ConsoleConnection], bool]) -> ConsoleConnection | None:
        clients = Counter(one.client_address for one in self.open)
        candidates = [one for one in self.open if may_go(one)]
        return min(candidates, key=lambda one: (-clients[one.client_address], one.since), default=None)


class ConsoleConnection(H11Protocol):
    """One connection: uvicorn's HTTP/1.1, with deadlines, and parsed in pieces that the share of the loop paces."""

    def __init__(self, config: uvicorn.Config, state: uvicorn.server.ServerState, connections: Connections) -> None:
        super().__init__(config, state, {CLOSING: connections.closing})
        self._connections = connections
        self._unparsed = bytearray()
        self._parsing: asyncio.TimerHandle | None = None
        self._overdue: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self.is_last = False
        """Whether it closes after the answer under way."""
        self.since = 0.0
        """When it was made, or its last answer was complete."""

    @property
    def client_address(self) -> str:
        """The address from which it comes."""
        return self.client[0] if self.client is not None else ""

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its client: for a head, for the rest of a body, or for it to read."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = self._held = _Flow(transport, self._parse)
        self._connections.add(self)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove(self)
        for timer in (self._parsing, self._overdue, self._unread):
            if timer is not None:
                timer.cancel()
        self._unparsed.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        if self._parsing is None:
            self._parse()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_head()

    def pause_writing(self) -> None:
        self._unread = self.loop.call_later(READ_S_MAX, self.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def abort(self) -> None:
        """Close at once."""
        self.transport.abort()

    def close_after_answer(self) -> None:
        """Close when the answer under way is complete."""
        self.is_last = True
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def _parse(self) -> None:
        """Parse the next piece of the received data, if the share allows it; read on when all is parsed."""
        self._parsing = None
        if self.transport.is_closing() or self.flow.read_paused:  # In the second case the flow calls again.
            self._held.hold()
            return
        share = self._connections.share
        if (wait_s := share.wait_s()) == 0.0 and self._unparsed:
            piece = bytes(self._unparsed[:PIECE_BYTES])
            del self._unparsed[:PIECE_BYTES]
            with share.measured():
                super().data_received(piece)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
        if not self._unparsed:
            self._held.release()
            return
        self._held.hold()
        if not self.flow.read_paused:
            self._parsing = self.loop.call_later(wait_s, self._parse)

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self.since = self.loop.time()
        # As long as an idle connection may take, and as long as a head may.
        wait_s = self._connections.request_s_max + (IDLE_S_MAX if self.cycle is not None else 0.0)
        self._overdue = self.loop.call_later(wait_s, self.abort)

    def _stop_waiting(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None


class _Flow(FlowControl):
    """uvicorn's flow control; while data waits to be parsed, nothing more is read from the socket."""

    def __init__(self, transport: asyncio.Transport, parse: Callable[[], None]) -> None:
        super().__init__(transport)
        self._parse = parse
        self._is_held = False

    def hold(self) -> None:
        """Read nothing more until released."""
        self._is_held = True
        self._transport.pause_reading()

    def release(self) -> None:
        """Read on, unless the application has enough."""
        if self._is_held:
            self._is_held = False
            if not self.read_paused:
                self._transport.resume_reading()

    def resume_reading(self) -> None:
        if self._is_held:
            if self.read_paused:
                self.read_paused = False
                asyncio.get_running_loop().call_soon(self._parse)
        else:
            super().resume_reading()
