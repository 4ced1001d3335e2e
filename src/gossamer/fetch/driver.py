"""Driver: runs libcurl on the event loop, counts what connections receive, bounds each transfer's share of the loop.

libcurl reads up to eleven buffers (704 KiB) each time a transfer's turn comes, and nothing but a pause stops it. A
server can make each of these bytes expensive (chunks of one byte: 118,000 callbacks and 51 ms a turn) or worthless (an
endless chunk extension: no callback, and libcurl's own counters stay at 0). So a transfer that makes many callbacks for
little content, or receives much for little content, is paused and gets its turns from here: one at a time for all such
transfers, followed by a pause that is a multiple of what the turn took.

The kernel knows how many bytes a TCP connection has received, and what waits to be read.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import socket
import struct
import sys
import termios
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import pycurl

from gossamer.fetch.options import FetchOptions
from gossamer.world.alarm import TurnAlarm
from gossamer.world.clock import elapsed_s, processor_s

if TYPE_CHECKING:
    from gossamer.fetch.transfer import Transfer


COUNTED: Final = sys.platform == "linux"
"""The kernel counts. Elsewhere libcurl reports each piece that it reads, which costs 10 µs a request."""
GREETING_BYTES_MAX: Final = 64
_INFO_BYTES: Final = 136
_BYTES_RECEIVED: Final = struct.Struct("<Q" if sys.byteorder == "little" else ">Q").unpack_from
_BYTES_RECEIVED_AT: Final = 128
"""`tcpi_bytes_received` in `struct tcp_info` (linux/tcp.h, since Linux 4.1)."""


def received_bytes(fd: int) -> int:
    """Return what a connection has received in all: framing, headers and TLS included, its end as one byte. 1.3 µs.

    0 if the kernel does not say, or for what is no TCP connection.
    """
    if sys.platform != "linux":
        return 0
    try:
        # The type beneath `socket.socket`, whose methods are Python's.
        connection = socket.SocketType(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fd)
    except OSError:
        return 0
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    except OSError:
        return 0
    finally:
        connection.detach()
    return int(_BYTES_RECEIVED(info, _BYTES_RECEIVED_AT)[0]) if len(info) >= _INFO_BYTES else 0


def unread_bytes(fd: int) -> int:
    """Return how much of what a connection has received still waits in the kernel."""
    waiting = array.array("i", [0])
    try:
        fcntl.ioctl(fd, termios.FIONREAD, waiting)
    except OSError:
        return 0
    return waiting[0]


def unread_beginning(fd: int) -> bytes:
    """Return the beginning of what a connection has received that was not read yet; it stays unread."""
    try:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fd)
    except OSError:
        return b""
    try:
        return connection.recv(GREETING_BYTES_MAX, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        return b""
    finally:
        connection.detach()


LOOK_S: Final = 0.25
"""Between two looks at what the transfers under way have received."""
LONG_TURN_S: Final = 0.002
"""After a turn of libcurl that took longer the transfers are looked at without waiting for the next look,"""
LOOK_S_MIN: Final = 0.02
"""but no sooner than this after the last one."""
TURNS_A_LOOK: Final = 8
"""A connection that had this many turns of libcurl is looked at as well: a fast one brings 5 MiB in them."""
TURN_S_MAX: Final = 0.1
"""Processor time of one turn, 20 times what the fastest body takes. Within a turn OpenSSL reads messages of TLS for as
long as there are any (KeyUpdate, and each is answered): then the connection is ended."""
GRIND_REST: Final = 9
"""After the turn of such a transfer all of them wait this many times as long: together they get a tenth of the loop."""
GRIND_REST_S_MIN: Final = 0.005

Ends = tuple[str, str, int, int]
"""Both addresses and both ports of a connection, as libcurl reports them before a request."""


class End(NamedTuple):
    """How libcurl says that a transfer ended: a code, 0 for well, and a line about it."""

    code: int
    text: str


WELL: Final = End(0, "")


class TransferConnection:
    """What is known of one connection: which transfer it serves, and how much of what it received is counted."""

    __slots__ = ("counted_bytes", "ends", "fd", "transfer", "turns")

    def __init__(self, fd: int, transfer: Transfer) -> None:
        self.fd = fd
        self.transfer: Transfer | None = transfer
        self.counted_bytes = 0
        self.turns = 0
        self.ends: Ends | None = None


class Driver:
    """Runs transfers over one set of kept connections. Bound to the loop in which the first one starts.

    A connection serves one transfer at a time, HTTP/2 included: what it receives is that transfer's.
    """

    def __init__(self, options: FetchOptions) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, options.connections_max)
        self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, options.connections_per_host)
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_NOTHING)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: dict[pycurl.Curl, tuple[Transfer, asyncio.Future[End], float]] = {}
        self._watched: dict[int, int] = {}
        """What is waited for at each socket: POLL_IN, POLL_OUT."""
        self._connections: dict[int, TransferConnection] = {}
        self._by_ends: dict[Ends, TransferConnection] = {}
        self._timer: asyncio.Handle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._looked_at = 0.0
        self._grinding: deque[Transfer] = deque()
        """Paused, each waiting for its next turn."""
        self._turn_of: Transfer | None = None
        """The grinding transfer that libcurl runs next."""
        self._next_turn: asyncio.TimerHandle | None = None
        self._alarm: TurnAlarm | None = None
        self.closed = False
        """No transfer can be started any more."""

    def start(self, transfer: Transfer, until_s: float) -> asyncio.Future[End]:
        """Start a transfer. The future ends with it, and with TimeoutError after `until_s` seconds."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if self._alarm is None and transfer.speaks_tls:
            self._alarm = TurnAlarm.set(TURN_S_MAX)
        loop = self._loop
        done: asyncio.Future[End] = loop.create_future()
        now = loop.time()
        transfer.begin(self, now)
        self._under_way[transfer.curl] = (transfer, done, now + until_s)
        self._multi.add_handle(transfer.curl)
        if self._look is None:
            self._look = loop.call_later(LOOK_S, self._look_at_all)
        return done

    def drop(self, transfer: Transfer) -> None:
        """End a transfer that is under way, with its connection; its future stays as it is."""
        if self._under_way.pop(transfer.curl, None) is not None:
            self._multi.remove_handle(transfer.curl)
            self._let_go(transfer)

    def close(self) -> None:
        """End everything: futures of transfers under way are cancelled."""
        if self.closed:
            return
        for handle in (self._timer, self._look, self._next_turn):
            if handle is not None:
                handle.cancel()
        for transfer, done, _ in list(self._under_way.values()):
            self.drop(transfer)
            done.cancel()
        for fd in list(self._watched):
            self._on_socket(pycurl.POLL_REMOVE, fd, self._multi, None)
        self._multi.close()
        if self._alarm is not None:
            self._alarm.close()
        self.closed = True

    # ---- what libcurl says through the transfers

    def connected(self, transfer: Transfer, fd: int) -> None:
        """Take note of a new connection of a transfer, before it connects."""
        stale = self._connections.get(fd)
        if stale is not None:  # It was closed: the descriptor is another socket's now.
            if stale.ends is not None and self._by_ends.get(stale.ends) is stale:
                del self._by_ends[stale.ends]
            if stale.transfer is not None:
                stale.transfer.release(stale)
        connection = self._connections[fd] = TransferConnection(fd, transfer)
        transfer.connections.append(connection)

    def requested(self, transfer: Transfer, ends: Ends) -> None:
        """Take note of the connection over which a transfer is about to send its request."""
        if transfer.connections:
            connection = transfer.connections[-1]
            connection.ends = ends
            self._by_ends[ends] = connection
            return
        kept = self._by_ends.get(ends)
        if kept is not None:
            kept.transfer = transfer
            kept.counted_bytes = received_bytes(kept.fd)  # What came before the request is not this transfer's.
            transfer.connections.append(kept)

    def grinds(self, transfer: Transfer) -> None:
        """Give a transfer that was just paused its turns from now on."""
        self._grinding.append(transfer)
        if self._next_turn is None and self._turn_of is None:
            self._rest(0.0)

    # ---- libcurl on the loop

    def _on_socket(self, what: int, fd: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            # libcurl calls this before it closes a socket and when a kept one has served: the last chance to count.
            connection = self._connections.get(fd)
            if connection is not None and connection.transfer is not None:
                connection.transfer.leave(fd)
        what &= pycurl.POLL_INOUT
        loop, before = self._loop, self._watched.pop(fd, 0)
        assert loop is not None, "a socket before the first transfer"
        if what:
            self._watched[fd] = what
        changed = what ^ before
        if changed & pycurl.POLL_IN:
            if what & pycurl.POLL_IN:
                loop.add_reader(fd, self._drive, fd, pycurl.CSELECT_IN)
            else:
                loop.remove_reader(fd)
        if changed & pycurl.POLL_OUT:
            if what & pycurl.POLL_OUT:
                loop.add_writer(fd, self._drive, fd, pycurl.CSELECT_OUT)
            else:
                loop.remove_writer(fd)

    def _on_timer(self, timeout_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if timeout_ms >= 0:
            loop = self._loop
            assert loop is not None, "a timer before the first transfer"
            if timeout_ms:
                self._timer = loop.call_later(timeout_ms / 1000, self._drive, pycurl.SOCKET_TIMEOUT, 0)
            else:  # At once means after this call: libcurl must not be entered twice.
                self._timer = loop.call_soon(self._drive, pycurl.SOCKET_TIMEOUT, 0)

    def _drive(self, fd: int, event: int) -> None:
        if self.closed:
            return
        turn_of = self._turn_of
        clock = elapsed_s if turn_of is None else processor_s  # A busy machine makes no turn expensive.
        began = clock()
        if self._alarm is not None:
            serves = turn_of.connections if turn_of is not None else ()
            self._alarm.begin(read := serves[-1].fd if serves else fd)
        self._multi.socket_action(fd, event)
        if self._alarm is not None and self._alarm.end():
            self._holds(read)
        took_s = clock() - began
        _, well, badly = self._multi.info_read()
        for curl in well:
            self._ended(curl, WELL)
        for curl, code, text in badly:
            self._ended(curl, End(code, text))
        if turn_of is not None:
            self._had_its_turn(turn_of, took_s)
        elif took_s > LONG_TURN_S and began >= self._looked_at + LOOK_S_MIN:
            self._look_at_transfers()
        elif event and (connection := self._connections.get(fd)) is not None:
            connection.turns += 1
            if connection.turns % TURNS_A_LOOK == 0 and connection.transfer is not None:
                assert self._loop is not None
                self._judge(connection.transfer, self._loop.time())

    def _holds(self, fd: int) -> None:
        """Note of the transfer that a connection served that its server would have held the loop."""
        connection = self._connections.get(fd)
        if connection is not None and connection.transfer is not None:
            connection.transfer.stopped = connection.transfer.stopped or "holds"

    def _ended(self, curl: pycurl.Curl, end: End) -> None:
        transfer, done, _ = self._under_way.pop(curl)
        self._multi.remove_handle(curl)
        self._let_go(transfer)
        if not done.done():
            done.set_result(end)

    def _let_go(self, transfer: Transfer) -> None:
        if any(connection.fd in self._watched for connection in transfer.connections):
            transfer.count()  # libcurl has not said yet that the connection has served.
        transfer.end()
        if self._turn_of is transfer:
            self._turn_of = None
            self._rest(GRIND_REST_S_MIN)
        if transfer in self._grinding:
            self._grinding.remove(transfer)

    # ---- what is too much

    def _look_at_all(self) -> None:
        self._look = None
        self._look_at_transfers()
        if self._under_way:
            assert self._loop is not None
            self._look = self._loop.call_later(LOOK_S, self._look_at_all)

    def _look_at_transfers(self) -> None:
        """Count what was received; end what is over its limits, and pause what receives much for little content."""
        assert self._loop is not None
        now = self._loop.time()
        self._looked_at = elapsed_s()
        for transfer, done, until in list(self._under_way.values()):
            if now >= until and not done.done():
                done.set_exception(TimeoutError())
            else:
                self._judge(transfer, now)

    def _pause(self, transfer: Transfer) -> None:
        with suppress(pycurl.error):  # Without a connection there is nothing to pause.
            transfer.curl.pause(pycurl.PAUSE_RECV)
            transfer.paused = True
            self.grinds(transfer)

    def _rest(self, rest_s: float) -> None:
        """Give the next turn after a rest, where a transfer waits for one."""
        if self._grinding and self._next_turn is None:
            assert self._loop is not None
            self._next_turn = self._loop.call_later(max(rest_s, GRIND_REST_S_MIN), self._give_turn)

    def _give_turn(self) -> None:
        self._next_turn = None
        if self._grinding and not self.closed:
            transfer = self._turn_of = self._grinding.popleft()
            transfer.paused = False
            try:
                transfer.curl.pause(pycurl.PAUSE_CONT)  # libcurl runs it when it is next driven, at once.
            except pycurl.error:  # Its connection has gone: it ends by itself.
                self._turn_of = None
                self._rest(GRIND_REST_S_MIN)

    def _had_its_turn(self, transfer: Transfer, took_s: float) -> None:
        if transfer.curl in self._under_way:
            assert self._loop is not None
            self._judge(transfer, self._loop.time())
        self._turn_of = None
        self._rest(GRIND_REST * took_s)

    def _judge(self, transfer: Transfer, now: float) -> None:
        transfer.count()
        if transfer.overdoes(now):
            self._ended(transfer.curl, End(pycurl.E_ABORTED_BY_CALLBACK, transfer.stopped))
        elif not transfer.paused and transfer.wastes():
            self._pause(transfer)
