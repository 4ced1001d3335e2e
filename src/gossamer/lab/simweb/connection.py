"""Connection: the connections of a synthetic web: requests in, answers out, and each kind of misbehaviour."""

from __future__ import annotations

import asyncio
import socket
import struct
from math import ceil

from isal import isal_zlib

from gossamer.lab.simweb.log import FLUSH_S, Logged, RequestLog
from gossamer.lab.simweb.sheet import TEXT, ServedAnswer
from gossamer.lab.simweb.web import Web
from gossamer.lab.simweb.wire import FLOODS, Flood, WireRequest, head, http_date, read_request
from gossamer.world.clock import Clock

STALL_S_MAX = 600.0
"""A stalled request is dropped after this time: no client waits longer."""
ALERT = b"\x15\x03\x01\x00\x02\x02\x0a"
"""Answer of a TLS server to bytes that are not TLS: a fatal alert, unexpected_message (RFC 8446, section 6)."""
HELLO = b"\x16\x03"
"""How a TLS client begins."""
PLAIN_HTTP = (
    b"HTTP/1.1 400 Bad Request\r\nServer: simweb\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: 11\r\n\r\nplain HTTP\n"
)
"""As common servers answer a TLS handshake on a port for http."""
GARBAGE = b"\x16\x03 this is not the protocol you are looking for\n" * 4
NO_REQUEST = WireRequest("-", "-", "-", "-", keeps_alive=False, takes_gzip=False, head_bytes=0)
NOT_MODIFIED = 304
VALIDATORS = ("ETag", "Last-Modified")
IDLE_S_MAX = 60.0
SWEEP_S = 5.0


class ServedConnection(asyncio.Protocol):
    """Answers one request after the other; at most one is being answered, what comes meanwhile waits."""

    def __init__(self, server: Simweb, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._buffer = b""
        self._asked: WireRequest | None = None
        self._answer = ServedAnswer(0)
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._left = 0
        self._nth = 0
        self._sent = 0
        self._status = 0
        self._retry_at = 0.0
        self._closing = False
        self._handed_at = 0.0
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        # With no room for buffering, `pause_writing` says exactly when the kernel has not taken everything.
        transport.set_write_buffer_limits(high=0)
        self._opened_at = self._started_at = self.idle_since = self._server.clock.now()
        self._address = str(transport.get_extra_info("sockname")[0])
        self._number = self._server.register(self)

    def data_received(self, data: bytes) -> None:
        if not self._buffer and self._asked is None:
            self._started_at = self._server.clock.now()
        self._buffer += data
        self._advance()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._handed_at = self._server.clock.now()
        if self._asked is not None and self._status:
            self._stream()
            self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._asked is not None:
            self._log(whole=False)
        elif self._nth == 0:
            self._asked = NO_REQUEST
            self._log(whole=False)
        self._server.forget(self)

    @property
    def idle(self) -> bool:
        """No request is being answered."""
        return self._asked is None

    def abort(self) -> None:
        """End it now."""
        self._transport.abort()

    def _advance(self) -> None:
        if self._buffer.startswith(HELLO) and self._asked is None and not self._closing:
            self._asked = NO_REQUEST
            self._write(PLAIN_HTTP)
            self._break_off()
        while self._buffer and self._asked is None and not self._closing:
            asked = read_request(self._buffer)
            if asked is None:
                return
            self._nth += 1
            self._sent = self._status = 0
            self._retry_at = 0.0
            if isinstance(asked, int):
                self._asked = NO_REQUEST
                self._begin(ServedAnswer(asked, TEXT, b"bad request\n"))
                return
            self._buffer = self._buffer[asked.head_bytes :]
            self._asked = asked
            answer = self._server.answer(asked)
            if answer.delay_s:
                self._timer = self._loop.call_later(answer.delay_s, self._begin_late, answer)
                return
            self._begin(answer)

    def _begin_late(self, answer: ServedAnswer) -> None:
        self._timer = None
        self._begin(answer)
        self._advance()

    def _begin(self, answer: ServedAnswer) -> None:
        self._answer = answer
        match answer.manner:
            case "whole":
                self._send_whole(answer)
            case "stall":
                self._timer = self._loop.call_later(STALL_S_MAX, self._transport.abort)
            case "drip":
                self._status = answer.status
                self._write(head(answer.status, answer.headers) + b"Content-Length: 100000000\r\n\r\n")
                self._drip()
            case "cut":
                self._status = answer.status
                length = b"Content-Length: %d\r\n\r\n" % (2 * len(answer.body))
                self._write(head(answer.status, answer.headers) + length + answer.body)
                self._break_off()
            case "reset":
                linger = struct.pack("ii", 1, 0)
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._transport.abort()
            case "empty":
                self._break_off()
            case "garbage":
                self._write(GARBAGE)
                self._break_off()
            case "until_close":
                self._closing = True
                self._finish_with(b"", answer.body)
            case "chunked":
                self._finish_with(b"Transfer-Encoding: chunked\r\n", _encode_chunks(answer.body))
            case "bytewise":
                framed = b"".join(b"1\r\n%c\r\n" % byte for byte in answer.body) + b"0\r\n\r\n"
                self._finish_with(b"Transfer-Encoding: chunked\r\n", framed)
            case "alert":
                self._write(ALERT)
                self._break_off()
            case flood:
                self._write(FLOODS[flood].beginning)
                self._flood(FLOODS[flood])

    def _send_whole(self, answer: ServedAnswer) -> None:
        asked = self._asked
        assert asked is not None
        body = answer.body
        fields = b""
        if answer.gzip_if_asked and asked.takes_gzip:
            body = isal_zlib.compress(body, 1, 31)
            fields = b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
        if answer.retry_after_s:
            fields += self._retry_after(answer)
        length = max(len(body), answer.body_bytes)
        self._left = length - len(body)
        if answer.status != NOT_MODIFIED:  # RFC 9110, section 8.6: it would be that of the page.
            fields = b"Content-Length: %d\r\n%b" % (length, fields)
        self._finish_with(fields, body)

    def _retry_after(self, answer: ServedAnswer) -> bytes:
        now = self._server.clock.now()
        if answer.retry_as_date:
            self._retry_at = float(ceil(now + answer.retry_after_s))
            return f"Retry-After: {http_date(self._retry_at)}\r\n".encode()
        self._retry_at = now + answer.retry_after_s
        return b"Retry-After: %d\r\n" % answer.retry_after_s

    def _finish_with(self, fields: bytes, body: bytes) -> None:
        asked = self._asked
        assert asked is not None
        if self._closing or not asked.keeps_alive:
            fields += b"Connection: close\r\n"
            self._closing = True
        if asked.method == "HEAD":
            body = b""
            self._left = 0
        self._status = self._answer.status
        self._write(b"%b%b\r\n%b" % (head(self._status, self._answer.headers), fields, body))
        self._stream()

    def _stream(self) -> None:
        """Go on writing what is left, as fast as the client takes it; finish when the kernel has it all."""
        if self._answer.manner in ("drip", "cut"):
            return
        while self._left and not self._paused:
            piece = self._answer.body[: self._left]
            self._left -= len(piece)
            self._write(piece)
        if not self._paused:
            self._log(whole=True)
            if self._closing:
                self._transport.close()

    def _drip(self) -> None:
        if not self._paused:
            self._write(b".")
        self._timer = self._loop.call_later(self._server.drip_s, self._drip)

    def _flood(self, flood: Flood) -> None:
        if not self._paused:
            self._write(flood.again)
        self._timer = self._loop.call_later(flood.pause_s, self._flood, flood)

    def _break_off(self) -> None:
        self._log(whole=False)
        self._closing = True
        self._transport.close()

    def _write(self, data: bytes) -> None:
        # Read before: a server that loses the processor in between must not claim that it ended later than it did.
        self._handed_at = self._server.clock.now()
        self._sent += len(data)
        self._transport.write(data)

    def _log(self, *, whole: bool) -> None:
        asked = self._asked
        assert asked is not None
        self._asked = None
        self.idle_since = self._server.clock.now()
        ended_at = max(self._handed_at, self._started_at) if whole else self.idle_since
        entry = Logged(
            self._started_at, ended_at, self._opened_at, self._address, asked.host, asked.path, self._status,
            self._number, self._nth, self._sent, whole, self._retry_at, asked.method, asked.agent,
        )  # fmt: skip
        # What was sent before this one ended belongs to the next: it began no earlier than this ended.
        self._started_at = ended_at
        self._server.log(entry)


def _encode_chunks(body: bytes) -> bytes:
    size = max(1, len(body) // 3)
    chunks = (body[at : at + size] for at in range(0, len(body), size))
    return b"".join(b"%x;note=made\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


class Simweb:
    """The state of a running web: who is connected, what is not yet in the log, which pages have changed."""

    def __init__(
        self, web: Web, log: RequestLog | None, clock: Clock, loop: asyncio.AbstractEventLoop, connections_max: int
    ) -> None:
        self.clock = clock
        self.drip_s = web.options.drip_s
        self._web = web
        self._log = log
        self._loop = loop
        self._counts: dict[tuple[str, str], int] = {}
        self._connections: set[ServedConnection] = set()
        self._connections_max = connections_max
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

    def register(self, connection: ServedConnection) -> int:
        """Register a connection; beyond the bound, close the one that is idle for longest."""
        self._connections.add(connection)
        self._last += 1
        if len(self._connections) > self._connections_max:
            min(self._connections, key=lambda one: (not one.idle, one.idle_since)).abort()
        return self._last

    def forget(self, connection: ServedConnection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)

    def log(self, entry: Logged) -> None:
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
    """Return 304 where the client has the answer (RFC 9110, section 13.2.2), by its tag, or else by its very date."""
    headers = {name: value for name, value in answer.headers if name in VALIDATORS}
    if answer.status != 200 or not headers:
        return answer
    if asked.unless_tag:
        tags = [tag.strip().removeprefix("W/") for tag in asked.unless_tag.split(",")]
        is_held = "*" in tags or headers.get("ETag") in tags
    else:
        is_held = headers.get("Last-Modified") == asked.unless_since
    return ServedAnswer(304, tuple(headers.items()), delay_s=answer.delay_s) if is_held else answer
