"""Driver: runs libcurl on the event loop, counts what connections receive, bounds each transfer's share of the loop.

libcurl reads up to eleven buffers (704 KiB) in each turn of a transfer, and only a pause stops it. A server can make
each of these bytes expensive (chunks of one byte: 118,000 callbacks and 51 ms a turn) or useless (an endless chunk
extension: no callback, and libcurl's own counters stay at 0). So a transfer with many callbacks, or many received
bytes, for little content is paused and gets its turns from this module: one at a time for all such transfers, each
followed by a pause that is a multiple of the turn's duration.
"""

import asyncio
import select
import sys
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pycurl

from gossamer.stages.fetch.bodies import InFlight
from gossamer.stages.fetch.connections import WELL, End, Ends, count_received
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.fetch.transfer import Transfer, TransferConnection, TransferReports
from gossamer.world.alarm import TurnAlarm
from gossamer.world.clock import elapsed_s, processor_s

WATCHED: Final = frozenset({pycurl.POLL_IN, pycurl.POLL_OUT, pycurl.POLL_INOUT})
LOOK_S: Final = 0.25
"""Interval of checks of the bytes that transfers have received."""
LONG_TURN_S: Final = 0.002
"""After a longer turn of libcurl the transfers are checked at once,"""
LOOK_S_MIN: Final = 0.02
"""but no sooner than this after the last one."""
TURNS_A_LOOK: Final = 8
"""A connection is also checked after this many turns of libcurl, in which a fast one receives 5 MiB."""
TURN_S_MAX: Final = 0.1
"""Limit of the processor time of one turn, 20 times that for the fastest body; beyond it the connection is ended.
Within a turn OpenSSL reads TLS messages as long as there are any (KeyUpdate, each of which is answered)."""
GRIND_REST: Final = 9
"""All expensive transfers wait this many times as long as one's turn took: together they get a tenth of the loop."""
GRIND_REST_S_MIN: Final = 0.005
LAG_S: Final = 10.0
LAG_BYTES_S: Final = 1_000
"""A transfer that brings less content a second than this, for as long, lags: its server is slow, or wants to be."""
LAGGING_MIN: Final = 3
"""Fewer that lag are never ended for it: they are what is slow, and nothing else."""
FULL: Final = 7 / 8
"""Nor are any while fewer of the requests that may go out at once are under way: others have room."""
EVENTS_MAX: Final = 64  # At once. The others follow in the next iteration of the event loop.


class LoopSockets:
    """Sockets as readers and writers of the event loop: for systems without epoll."""

    def __init__(self, loop: asyncio.AbstractEventLoop, drive: Callable[[int, int], None]) -> None:
        """`drive` takes a descriptor and what came: CSELECT_IN, CSELECT_OUT, or both."""
        self._loop = loop
        self._drive = drive
        self.watched: dict[int, int] = {}
        """Awaited events, by descriptor."""

    def watch(self, fd: int, what: int) -> None:
        """Wait for POLL_IN, POLL_OUT or POLL_INOUT at a socket, and for nothing else."""
        self.leave(fd)
        self.watched[fd] = what
        if what & pycurl.POLL_IN:
            self._loop.add_reader(fd, self._drive, fd, pycurl.CSELECT_IN)
        if what & pycurl.POLL_OUT:
            self._loop.add_writer(fd, self._drive, fd, pycurl.CSELECT_OUT)

    def leave(self, fd: int, *, stays: bool = False) -> None:
        """Wait for nothing at a socket. `stays`: it has no other descriptor, and probably serves another request."""
        if self.watched.pop(fd, 0):
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)

    def close(self) -> None:
        """Wait for nothing more."""
        for fd in list(self.watched):
            self.leave(fd)


class EpollSockets(LoopSockets):
    """Sockets in one epoll, which the loop watches: uvloop takes eight system calls to add and remove a reader. One
    that `stays` is removed at its next event, if it is not watched then. The kernel removes closed ones.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, drive: Callable[[int, int], None]) -> None:
        super().__init__(loop, drive)
        self._epoll = select.epoll()
        loop.add_reader(self._epoll.fileno(), self._pass_on)

    def watch(self, fd: int, what: int) -> None:
        self.watched[fd] = what
        events = (what & pycurl.POLL_IN and select.EPOLLIN) | (what & pycurl.POLL_OUT and select.EPOLLOUT)
        try:
            self._epoll.modify(fd, events)
        except FileNotFoundError:
            self._epoll.register(fd, events)

    def leave(self, fd: int, *, stays: bool = False) -> None:
        if self.watched.pop(fd, 0) and not stays:
            self._remove(fd)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _pass_on(self) -> None:
        for fd, events in self._epoll.poll(0, EVENTS_MAX):
            what = self.watched.get(fd, 0)
            if not what:
                self._remove(fd)
                continue
            came = (events & ~select.EPOLLOUT and pycurl.CSELECT_IN) | (events & ~select.EPOLLIN and pycurl.CSELECT_OUT)
            self._drive(fd, came & what)

    def _remove(self, fd: int) -> None:
        with suppress(OSError):  # It is closed already.
            self._epoll.unregister(fd)


Sockets: Final = EpollSockets if sys.platform == "linux" else LoopSockets


class RunningTransfer(InFlight):
    """A transfer that libcurl runs, and whether it lags."""

    __slots__ = ("_content", "_since", "done", "transfer", "until")

    def __init__(self, transfer: Transfer, done: asyncio.Future[End], now: float, until: float) -> None:
        self.transfer = transfer
        self.done = done
        self.until = until
        self.lags = False
        self._since = now
        self._content = 0

    def look(self, now: float) -> None:
        """Update `lags`: whether it brought next to nothing in the last `LAG_S`, the time to connect included."""
        if self.transfer.paused:  # By us.
            self._since = now
        elif now - self._since >= LAG_S:
            content = self.transfer.head_bytes + self.transfer.body_bytes
            self.lags = content - self._content < LAG_BYTES_S * (now - self._since)
            self._since = now
            self._content = content


class Driver(TransferReports):
    """Runs transfers over one set of kept connections. Bound to the loop in which the first one starts.

    A connection serves one transfer at a time, even with HTTP/2, so its received bytes belong to that transfer.
    """

    def __init__(self, options: FetchOptions) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, options.connections_max)
        self._per_destination = options.connections_per_host
        self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, self._per_destination)
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_NOTHING)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: dict[pycurl.Curl, RunningTransfer] = {}
        self._sockets: LoopSockets
        self._connections: dict[int, TransferConnection] = {}
        self._by_ends: dict[Ends, TransferConnection] = {}
        self._destinations: Counter[str] = Counter()
        """Running transfers by the address to which libcurl connects: that of the proxy, if there is one."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False  # Whether libcurl is called in this iteration of the event loop.
        self._look: asyncio.TimerHandle | None = None
        self._looked_at = 0.0
        self.turn_at = 0.0
        self._grinding: deque[Transfer] = deque()
        """Expensive transfers, paused until their next turn."""
        self._turn_of: Transfer | None = None
        """The expensive transfer that libcurl runs next."""
        self._next_turn: asyncio.TimerHandle | None = None
        self._alarm: TurnAlarm | None = None
        self.closed = False
        """Whether the driver is closed, so that no transfer can start."""

    def start(self, transfer: Transfer, until_s: float) -> asyncio.Future[End]:
        """Start a transfer; the future gets its result, or TimeoutError after `until_s` seconds."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._sockets = Sockets(self._loop, self._drive)
        if self._alarm is None and transfer.speaks_tls:
            self._alarm = TurnAlarm.set(TURN_S_MAX)
        loop = self._loop
        done: asyncio.Future[End] = loop.create_future()
        now = loop.time()
        transfer.begin(self, now)
        self._let_pass(transfer)
        one = self._under_way[transfer.curl] = RunningTransfer(transfer, done, now, now + until_s)
        transfer.bodies.running.add(one)
        self._multi.add_handle(transfer.curl)
        if self._look is None:
            self._look = loop.call_later(LOOK_S, self._look_at_all)
        return done

    def drop(self, transfer: Transfer) -> None:
        """End a running transfer and its connection; its future is not set."""
        if (one := self._under_way.pop(transfer.curl, None)) is not None:
            transfer.bodies.running.discard(one)
            transfer.stop()
            self._multi.remove_handle(transfer.curl)
            self._let_go(transfer)

    def close(self) -> None:
        """End everything; futures of running transfers are cancelled."""
        if self.closed:
            return
        for handle in (self._timer, self._look, self._next_turn):
            if handle is not None:
                handle.cancel()
        for one in list(self._under_way.values()):
            self.drop(one.transfer)
            one.done.cancel()
        self._multi.close()
        if self._loop is not None:  # Only now: libcurl may wait for more while it closes connections.
            self._sockets.close()
        if self._alarm is not None:
            self._alarm.close()
        self.closed = True

    def _let_pass(self, transfer: Transfer) -> None:
        """Raise libcurl's limit of connections to one address where more requests to it are under way: beyond it a
        request would wait within libcurl, and go out later than politeness permitted it.
        """
        destination = transfer.proxy or transfer.ip
        self._destinations[destination] += 1
        if 0 < self._per_destination < self._destinations[destination]:
            self._per_destination = self._destinations[destination]
            self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, self._per_destination)

    # ---- what libcurl says through the transfers

    def note_connection(self, transfer: Transfer, fd: int) -> None:
        """Note a new connection of a transfer, before it connects."""
        stale = self._connections.get(fd)
        if stale is not None:  # That connection was closed: the descriptor belongs to another socket now.
            if stale.ends is not None and self._by_ends.get(stale.ends) is stale:
                del self._by_ends[stale.ends]
            if stale.transfer is not None:
                stale.transfer.release(stale)
        connection = self._connections[fd] = TransferConnection(fd, transfer)
        transfer.connections.append(connection)

    def note_request(self, transfer: Transfer, ends: Ends) -> None:
        """Note the connection over which a transfer is about to send its request."""
        if transfer.connections:
            connection = transfer.connections[-1]
            connection.ends = ends
            self._by_ends[ends] = connection
            return
        if (kept := self._by_ends.get(ends)) is not None:
            if kept.transfer is not None:  # libcurl has finished it, and has not told us yet.
                kept.transfer.count()
                kept.transfer.release(kept)
            kept.transfer = transfer
            kept.counted_bytes = count_received(kept.fd)  # Earlier bytes do not belong to this transfer.
            transfer.connections.append(kept)

    def grinds(self, transfer: Transfer) -> None:
        """From now on, give turns to a transfer that was just paused as expensive."""
        self._grinding.append(transfer)
        if self._next_turn is None and self._turn_of is None:
            self._rest(0.0)

    # ---- libcurl on the loop

    def _on_socket(self, what: int, fd: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        if what in WATCHED:
            self._sockets.watch(fd, what)
            return
        connection = self._connections.get(fd) if what == pycurl.POLL_REMOVE else None
        if connection is None or connection.transfer is None:
            self._sockets.leave(fd)
        else:  # Before it is closed, and after a kept one was used: the last chance to count.
            connection.transfer.leave(fd)
            self._sockets.leave(fd, stays=not connection.transfer.opens_more)

    def _on_timer(self, timeout_ms: int) -> None:
        """Call libcurl in time. Called too early it names the time again, so that later times move no timer."""
        loop = self._loop
        assert loop is not None, "a timer before the first transfer"
        if timeout_ms == 0 and not self._is_due:  # Run after this call, because libcurl is not reentrant.
            self._is_due = True
            loop.call_soon(self._on_due)
        elif timeout_ms > 0:
            at = loop.time() + timeout_ms / 1000
            if self._timer is not None and at < self._timer.when():
                self._timer.cancel()
                self._timer = None
            if self._timer is None:
                self._timer = loop.call_at(at, self._on_time)

    def _on_due(self) -> None:
        self._is_due = False
        self._drive(pycurl.SOCKET_TIMEOUT, 0)

    def _on_time(self) -> None:
        self._timer = None
        self._drive(pycurl.SOCKET_TIMEOUT, 0)

    def _drive(self, fd: int, event: int) -> None:
        if self.closed:
            return
        turn_of = self._turn_of
        clock = elapsed_s if turn_of is None else processor_s  # A busy machine makes no turn expensive.
        began = clock()
        self.turn_at = elapsed_s()
        if self._alarm is not None:
            serves = turn_of.connections if turn_of is not None else ()
            self._alarm.begin(read := serves[-1].fd if serves else fd)
        self._multi.socket_action(fd, event)
        if self._alarm is not None and self._alarm.end():
            self._holds(read)
        took_s = clock() - began
        _, well, badly = self._multi.info_read()
        for curl in well:
            transfer = self._under_way[curl].transfer
            if not (transfer.reads_itself and transfer.take_over(self._on_end)):
                self._on_end(curl, WELL)
        for curl, code, text in badly:
            self._on_end(curl, End(code, text))
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
        """Note, for the transfer of a connection that was ended, that its server would have blocked the loop."""
        connection = self._connections.get(fd)
        if connection is not None and connection.transfer is not None:
            connection.transfer.stopped = connection.transfer.stopped or "holds"

    def _on_end(self, curl: pycurl.Curl, end: End) -> None:
        one = self._under_way.pop(curl)
        one.transfer.bodies.running.discard(one)
        if one.transfer.reads_itself:
            one.transfer.stop()
        self._multi.remove_handle(curl)
        self._let_go(one.transfer)
        if not one.done.done():
            one.done.set_result(end)

    def _let_go(self, transfer: Transfer) -> None:
        # A reply may come over a kept connection before libcurl watches it, so that its end is never reported.
        uncounted = transfer.head and not transfer.wire_bytes
        if uncounted or any(connection.fd in self._sockets.watched for connection in transfer.connections):
            transfer.count()  # libcurl has not reported the end of the connection's use yet.
        transfer.end()
        destination = transfer.proxy or transfer.ip
        self._destinations[destination] -= 1
        if not self._destinations[destination]:
            del self._destinations[destination]
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
        """Count received bytes; end transfers beyond their limits, pause those that receive much for little content."""
        assert self._loop is not None
        now = self._loop.time()
        self._looked_at = elapsed_s()
        for one in list(self._under_way.values()):
            if now >= one.until and not one.done.done():
                one.done.set_exception(TimeoutError())
            else:
                self._judge(one.transfer, now)
                one.look(now)
        self._make_room()

    def _make_room(self) -> None:
        """End the oldest of the transfers that lag, while these are more than half of the requests that may go out at
        once, those of other protocols included: servers that answer slowly, or never, would keep all others waiting.
        """
        lagging = [one.transfer for one in self._under_way.values() if one.lags]
        running = lagging[0].bodies.running if lagging else ()
        count = sum(one.lags for one in running)
        all_of_them = len(running)
        for transfer in lagging if count >= LAGGING_MIN else ():
            concurrency = transfer.request.concurrency
            if 2 * count > concurrency > 0 and all_of_them >= FULL * concurrency:
                transfer.stopped = transfer.stopped or "lags"
                self._on_end(transfer.curl, End(pycurl.E_ABORTED_BY_CALLBACK, transfer.stopped))
                count -= 1

    def _pause(self, transfer: Transfer) -> None:
        with suppress(pycurl.error):  # Without a connection there is nothing to pause.
            transfer.curl.pause(pycurl.PAUSE_RECV)
            transfer.paused = True
            self.grinds(transfer)

    def _rest(self, rest_s: float) -> None:
        """Give the next turn after a pause, if a transfer waits for one."""
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
            except pycurl.error:  # Its connection is closed, so the transfer ends by itself.
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
            self._on_end(transfer.curl, End(pycurl.E_ABORTED_BY_CALLBACK, transfer.stopped))
        elif not transfer.paused and transfer.wastes():
            self._pause(transfer)
