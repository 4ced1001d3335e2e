"""Tolerant: reads replies that browsers read and libcurl refuses, over a connection that libcurl opens.

libcurl refuses a whole reply for one odd line of its head, and hands over nothing of it. So a refused reply is
requested once more, and read here: libcurl connects (address, proxy, TLS, their limits), and this module sends the
request and reads the answer. The limits of a transfer hold: the same object counts its head, body and received bytes.
"""

from __future__ import annotations

import re
from asyncio import AbstractEventLoop, TimerHandle, get_running_loop
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import pycurl

from gossamer.stages.fetch.connections import WELL, End
from gossamer.stages.fetch.driver import GRIND_REST, GRIND_REST_S_MIN, LONG_TURN_S
from gossamer.stages.fetch.headers import Head, parse_head
from gossamer.stages.fetch.transfer import Transfer
from gossamer.world.clock import processor_s

if TYPE_CHECKING:
    from gossamer.stages.fetch.bodies import BodyMemory
    from gossamer.stages.fetch.options import FetchOptions
    from gossamer.stages.fetch.settings import Setting

LINE_BYTES_MAX: Final = 16 * 1024
"""Longest line with the size of a chunk."""
NO_STATUS_LINE: Final = "the server does not speak HTTP on this port: the reply has no status line"
SLOP_BYTES: Final = 4
"""Bytes of anything before the status line that are skipped after white space, as Chromium does."""
_READ_BYTES: Final = 64 * 1024
_BLANK: Final = b" \t\r\n"
_STATUS_LINE = re.compile(
    rb"(?:HTTP(?:/([0-9]{1,3}(?:\.[0-9]{1,3})?))?|ICY)[ \t]{1,16}([1-9][0-9]{2})(?![0-9])", re.IGNORECASE
)
_STATUS_BYTES_MIN: Final = 40
"""Bytes that are longer than anything that `_STATUS_LINE` matches."""
_HEAD_END = re.compile(rb"\n\r?\n")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]+)[ \t]*(?:;|\r?\Z)")
_DIGITS_MAX: Final = 15
_CODED_TRANSFER: Final = frozenset({"gzip", "x-gzip", "deflate", "compress", "x-compress"})
SWITCHING: Final = 101
_BODILESS: Final = frozenset({SWITCHING, 204, 304})


class ReplyReader:
    """Reads one reply from its bytes, and passes its head and its body on. Neither waits nor raises.

    Lines of a head without a colon are skipped. A reply whose lengths contradict each other is refused: where it ends
    would be a guess.
    """

    def __init__(self, transfer: Transfer, method: str) -> None:
        """The transfer gets the lines of the head, in a form that `parse_head` reads, and pieces of the body."""
        self._take_head = transfer.take_head
        self._take_body = transfer.take_body
        self._head_bytes_max = transfer.head_bytes_max
        self._method = method
        self._buffer = bytearray()
        self._state = self._head
        self._left = -1
        self._scanned = 0
        self.raw_head = b""
        """The head as received."""
        self.end: End | None = None
        """The result, once the reply has ended."""

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        self._buffer += data
        while self.end is None and self._state():
            pass

    def close(self) -> End:
        """Return the result where the connection has ended."""
        if self.end is not None:
            return self.end
        if self._state == self._head:
            if not self._buffer:
                return End(pycurl.E_GOT_NOTHING, "the server closed the connection without an answer")
            return self._refuse("the connection was closed within the head of the reply")
        if self._state == self._until_close:
            return WELL
        fault = f"the body ends {self._left} bytes early" if self._state == self._body else "the last chunk is missing"
        return End(pycurl.E_PARTIAL_FILE, fault)

    # ---- the head

    def _head(self) -> bool:
        buffer = self._buffer
        if not self._scanned:
            begin = len(buffer) - len(buffer.lstrip(_BLANK))
            at = buffer[begin : begin + SLOP_BYTES + 4].lower().find(b"http")
            del buffer[: begin + max(0, at)]
        if (end := _HEAD_END.search(buffer, max(0, self._scanned - 2))) is not None:
            raw = bytes(buffer[: end.end()])
            del buffer[: end.end()]
            self._scanned = 0
            self._read_head(raw)
            return True
        self._scanned = len(buffer)
        is_other = len(buffer) > 2 * SLOP_BYTES and not buffer[:4].lower().startswith((b"http", b"icy"))
        if is_other or (len(buffer) > _STATUS_BYTES_MIN and _STATUS_LINE.match(buffer) is None):
            self._refuse(NO_STATUS_LINE)
        elif len(buffer) > self._head_bytes_max:
            self._pass_head(bytes(buffer))
        return False

    def _read_head(self, raw: bytes) -> None:
        first, _, rest = raw.partition(b"\n")
        match = _STATUS_LINE.match(first)
        if match is None:
            self._refuse(NO_STATUS_LINE)
            return
        self.raw_head = raw
        status = int(match[2])
        version = b"1.1" if match[1] not in (None, b"1.0") else b"1.0"
        written = b"HTTP/%s %d %s" % (version, status, first[match.end() :].strip(_BLANK))
        lines = [written, *(line for line in rest.split(b"\n") if b":" in line or line[:1] in b" \t")]
        block = [line.rstrip(b"\r").replace(b"\0", b"").replace(b"\r", b" ") + b"\r\n" for line in lines if line]
        block.append(b"\r\n")
        if all(self._pass_head(line) for line in block) and (status >= 200 or status == SWITCHING):
            self._frame(block, status)

    def _pass_head(self, line: bytes) -> bool:
        if self._take_head(line) == 0:
            self.end = End(pycurl.E_WRITE_ERROR, "")
        return self.end is None

    def _frame(self, lines: list[bytes], status: int) -> None:
        """Find out where the body ends (RFC 9112, section 6.3)."""
        head = parse_head(lines)
        assert head is not None, "a status line that was written here"
        codings = _values(head, "transfer-encoding")
        lengths = _values(head, "content-length")
        if self._method == "HEAD" or status in _BODILESS:
            self.end = WELL
        elif unread := _CODED_TRANSFER.intersection(codings):
            self._refuse(f"a Transfer-Encoding that was not requested: {min(unread)}")
        elif "chunked" in codings:
            self._state = self._chunk_size
        elif len(lengths) > 1:
            self._refuse("several different Content-Length headers")
        elif lengths and (length := lengths.pop()).isascii() and length.isdigit() and len(length) <= _DIGITS_MAX:
            self._left = int(length)
            self._state = self._body
        else:  # As browsers do for lengths that are no numbers.
            self._state = self._until_close

    # ---- the body

    def _pass_on(self, piece: bytes) -> bool:
        if piece and self._take_body(piece) == 0:
            self.end = End(pycurl.E_WRITE_ERROR, "")
        return self.end is None

    def _until_close(self) -> bool:
        piece = bytes(self._buffer)
        self._buffer.clear()
        self._pass_on(piece)
        return False

    def _body(self) -> bool:
        piece = bytes(self._buffer[: self._left])
        self._buffer.clear()
        self._left -= len(piece)
        if self._pass_on(piece) and not self._left:
            self.end = WELL
        return False

    def _chunk_size(self) -> bool:
        """Read all chunks that have arrived, so that many small ones are one piece."""
        buffer = self._buffer
        at = 0
        pieces = []
        problem = ""
        is_last = False
        while True:
            if self._left > 0:
                piece = buffer[at : at + self._left]
                pieces.append(piece)
                at = at + len(piece)
                self._left = self._left - len(piece)
                if self._left:
                    break
                self._left = 0
            end = buffer.find(b"\n", at)
            if end < 0:
                problem = "a line with a chunk's size is too long" if len(buffer) - at > LINE_BYTES_MAX else ""
                break
            line = bytes(buffer[at:end])
            at = end + 1
            if self._left == 0:  # The end of the chunk before.
                self._left = -1
                if not line.strip(_BLANK):
                    continue
                problem = "no line end after a chunk"
                break
            match = _CHUNK_SIZE.match(line)
            digits = match[1].lstrip(b"0") if match is not None else b""
            if match is None or len(digits) > _DIGITS_MAX:
                problem = "a chunk without a size"
                break
            if not digits:
                is_last = True
                break
            self._left = int(digits, 16)
        del buffer[:at]
        if self._pass_on(b"".join(pieces)):
            if problem:
                self.end = End(pycurl.E_RECV_ERROR, f"{problem} (chunked)")
            elif is_last:  # The line break after it and trailers add nothing.
                self.end = WELL
        return False

    def _refuse(self, why: str) -> End:
        self.end = End(pycurl.E_FTP_WEIRD_SERVER_REPLY, why)
        return self.end


def _values(head: Head, wanted: str) -> set[str]:
    """Return the members of a header's list, lower case."""
    fields = [value for name, value in head.headers if name.lower() == wanted]
    return {one.strip().lower() for value in fields for one in value.split(",") if one.strip()}


class TolerantTransfer(Transfer):
    """A transfer whose connection libcurl opens, and whose request and reply this module writes and reads.

    A connection serves one request. Reading is bounded like libcurl's: an expensive reply gets a tenth of the loop.
    """

    reads_itself = True
    __slots__ = ("_deadline", "_fd", "_finish", "_loop", "_pause", "_reader", "_sending", "request_bytes", "until_s")

    def __init__(self, options: FetchOptions, own: list[Setting], bodies: BodyMemory | None = None) -> None:
        super().__init__(options, [*own, *_CONNECT_ONLY], bodies)
        self.request_bytes = b""
        """The request, as it goes out."""
        self.until_s = options.request_s_max
        self._reader: ReplyReader | None = None
        self._loop: AbstractEventLoop | None = None
        self._pause: TimerHandle | None = None
        self._deadline: TimerHandle | None = None
        self._fd = -1
        self._sending = memoryview(b"")

    @property
    def raw_head(self) -> bytes:
        """The head as received."""
        return self._reader.raw_head if self._reader is not None else b""

    def take_over(self, finish: Callable[[pycurl.Curl, End], None]) -> bool:
        """Go on once libcurl has connected; `finish` gets the result."""
        self._finish, self._loop = finish, get_running_loop()
        self._fd = self.curl.getinfo(pycurl.ACTIVESOCKET)
        if not self.is_pinned_to(self.curl.getinfo(pycurl.PRIMARY_IP)):
            self.stopped = f"connected to {self.curl.getinfo(pycurl.PRIMARY_IP)}"
            finish(self.curl, End(pycurl.E_ABORTED_BY_CALLBACK, self.stopped))
            return True
        self.sends()
        self._reader = ReplyReader(self, self.request_bytes.partition(b" ")[0].decode("ascii"))
        self._sending = memoryview(self.request_bytes)
        left_s = self.until_s - self.curl.getinfo(pycurl.TOTAL_TIME)
        self._deadline = self._loop.call_later(max(0.0, left_s), self._end, _TIMED_OUT)
        self._send()
        return True

    def stop(self) -> None:
        """Stop watching the connection, before libcurl closes it."""
        for timer in (self._pause, self._deadline):
            if timer is not None:
                timer.cancel()
        self._pause = self._deadline = None
        if self._fd >= 0 and self._loop is not None:
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
        self._fd = -1

    def wastes(self) -> bool:
        """Say no: it pauses by itself after each expensive read."""
        return False

    def forget(self) -> None:
        """Drop the received data."""
        super().forget()
        self._reader = None

    def _send(self) -> None:
        assert self._loop is not None
        try:
            while self._sending:
                self._sending = self._sending[self.curl.send(bytes(self._sending)) :]
        except (OSError, pycurl.error) as error:
            if is_blocked(error):
                self._loop.add_writer(self._fd, self._send)
            else:
                self._end(self._cause(error, pycurl.E_SEND_ERROR))
            return
        self._loop.remove_writer(self._fd)
        self._loop.add_reader(self._fd, self._read)
        self._read()  # TLS may hold bytes that the socket no longer shows.

    def _read(self) -> None:
        """Read what has arrived, up to the size of a buffer, and what TLS holds of it."""
        assert self._reader is not None
        assert self._loop is not None
        if self._pause is not None:
            self._pause.cancel()
        self._pause = None
        began = processor_s()
        try:
            data = self.curl.recv(_READ_BYTES)
        except (OSError, pycurl.error) as error:
            if not is_blocked(error):
                self._end(self._cause(error, pycurl.E_RECV_ERROR))
            return
        if not data:
            self._end(self._reader.close())
            return
        self._reader.feed(data)
        self.count()
        if self._reader.end is None and self.overdoes(self._loop.time()):
            self._end(End(pycurl.E_ABORTED_BY_CALLBACK, self.stopped))
            return
        if self._reader.end is not None:
            self._end(self._reader.end)
            return
        took_s = processor_s() - began
        if took_s > LONG_TURN_S:
            self._loop.remove_reader(self._fd)
            self._pause = self._loop.call_later(max(GRIND_REST * took_s, GRIND_REST_S_MIN), self._go_on)
        else:
            self._pause = self._loop.call_later(0, self._read)

    def _go_on(self) -> None:
        assert self._loop is not None
        self._loop.add_reader(self._fd, self._read)
        self._read()

    def _cause(self, error: Exception, code: int) -> End:
        return End(code, f"{error.args[-1]} {self.curl.errstr()}")

    def _end(self, end: End) -> None:
        self.count()
        self.stop()
        self._finish(self.curl, end)


def is_blocked(error: Exception) -> bool:
    """Return whether an operation would have to wait."""
    return isinstance(error, BlockingIOError) or error.args[0] == pycurl.E_AGAIN


_CONNECT_ONLY: Final[list[Setting]] = [
    (pycurl.CONNECT_ONLY, 1),
    (pycurl.HTTPPROXYTUNNEL, 1),
    (pycurl.FRESH_CONNECT, 1),
    (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
]
_TIMED_OUT: Final = End(pycurl.E_OPERATION_TIMEDOUT, "the reply took longer than fetch.request_s_max")
