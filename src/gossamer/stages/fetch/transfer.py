"""Transfer: one libcurl handle, with its limits and the data that it has received."""

from __future__ import annotations

import ipaddress
import re
import socket
import sys
from collections.abc import Callable, Iterable
from typing import ClassVar, Final, NamedTuple

import pycurl

from gossamer.model.visits import EARLY_SHARE, Failure, Reply, Request
from gossamer.stages.fetch.bodies import BodyMemory
from gossamer.stages.fetch.connections import COUNTED, End, Ends, count_received, is_connected, peek, unread_bytes
from gossamer.stages.fetch.headers import LINE_ENDS, is_wanted
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.fetch.settings import Setting, common_settings
from gossamer.world.spill import BUFFER_BYTES, Spill

CALLS_A_TURN_MAX: Final = 2_000
"""Callbacks for pieces of a body, 0.7 µs each, after which a transfer is paused unless it received a MiB."""
CONTENT_A_TURN_BYTES: Final = 1 << 20
WASTE_BYTES_MIN: Final = 64 * 1024
WASTE_RATIO: Final = 4
"""A transfer that received both these bytes and this multiple of the content in them is paused."""
FRAMING_BYTES_MIN: Final = 512 * 1024
"""Bytes that any request may receive in addition to its content (`wire_ratio_max`): TLS, interim replies."""
WITH_BODY: Final = ("POST", "PUT", "PATCH")
"""Methods that are sent with a body, be it empty (RFC 9110, section 8.6)."""
_OVER_TLS: Final = ("https:", "ftps:")
NO_H2: Final = "Remote peer returned unexpected data while we expected SETTINGS"
"""libcurl's error for a server that negotiated HTTP/2 but does not speak it."""
_LOWER_CASE: Final = re.compile(r"%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])")
"""A percent-encoding that libcurl would change."""
_RECEIVED_KINDS: Final = frozenset({pycurl.INFOTYPE_HEADER_IN, pycurl.INFOTYPE_DATA_IN, pycurl.INFOTYPE_SSL_DATA_IN})


class _SocketAddress(NamedTuple):
    """The address for which libcurl requests a socket (curl_sockaddr)."""

    family: int
    socktype: int
    protocol: int
    addr: tuple[str, int]


class TransferConnection:
    """State of one connection: the transfer that it serves, and how many of its received bytes are counted."""

    __slots__ = ("counted_bytes", "ends", "fd", "transfer", "turns")

    def __init__(self, fd: int, transfer: Transfer) -> None:
        self.fd = fd
        self.transfer: Transfer | None = transfer
        self.counted_bytes = 0
        self.turns = 0
        self.ends: Ends | None = None


class TransferReports:
    """Takes what a transfer reports while it runs: nothing before a driver runs it."""

    turn_at = 0.0
    """When libcurl was last called."""

    def note_connection(self, transfer: Transfer, fd: int) -> None:
        """Note a new connection of a transfer, before it connects."""

    def note_request(self, transfer: Transfer, ends: Ends) -> None:
        """Note the connection over which a transfer is about to send its request."""

    def grinds(self, transfer: Transfer) -> None:
        """From now on, give turns to a transfer that was just paused as expensive."""


_NOBODY: Final = TransferReports()
_NO_REQUEST: Final = Request("", "", 0)


class Transfer:
    """A handle for one request at a time. Options that never change are set once; the handle is never reset.

    Callbacks are bound to this object for its lifetime: their data is in `head` and `body` until `forget`, which must
    come before the next `aim`. `stopped` is the reason if we ended a transfer ourselves.
    """

    reads_itself: ClassVar = False
    """Whether libcurl only connects."""

    __slots__ = (
        "_began_at", "_calls_left", "_connections_bytes", "_content_before", "_data", "_fresh",
        "_h1_only", "_has_target", "_headers", "_held_bytes", "_method_set",
        "_opened", "_options", "_reply_at", "_requests", "_slow_content", "_slow_since", "_wasted_content",
        "_wasted_read",
        "bodies", "body", "body_bytes", "body_bytes_max", "connections", "curl", "disk_error",
        "driver", "ended_well", "file", "greeting", "head", "head_bytes", "head_bytes_max", "head_is_cut", "ip",
        "is_new", "low_speed_s", "opens_more", "paused", "pinned", "proxy", "request", "speaks_tls", "started_at",
        "stopped", "was_refused", "wire_bytes",
    )  # fmt: skip

    def __init__(self, options: FetchOptions, own: Iterable[Setting] = (), bodies: BodyMemory | None = None) -> None:
        """`own` are the settings of its protocol; `bodies` is the shared memory."""
        self.curl = pycurl.Curl()
        self.head_bytes_max = options.head_bytes_max
        self.low_speed_s = options.low_speed_s
        self.request = _NO_REQUEST
        self.started_at = 0.0
        """Wall time at which the request began; set by `Transfers.take`."""
        self.body_bytes_max = 0
        self.connections: list[TransferConnection] = []
        """Connections that serve it now, for `wire_bytes`."""
        self.ended_well = False
        """Whether libcurl reports success; set by `Transfers.run`."""
        self.head_is_cut = False
        """Whether the connection ended within the head; set by `Transfers.run`."""
        self.paused = False
        """Whether it receives nothing until the driver gives it a turn."""
        self._data: list[socket.socket] = []
        """Further connections that only this transfer uses (FTP)."""
        self._options = options
        self.bodies = bodies or BodyMemory(options)
        self.ip = ""
        self.speaks_tls = False
        self._h1_only = False
        self._has_target = False
        self._headers: list[bytes] = []
        self.opens_more = False
        """Whether it opens connections itself, each of which it holds by a descriptor beside libcurl's."""
        self._opened: list[socket.socket] = []
        self.pinned = not (options.proxy and options.proxy_resolves)  # To a request's address, through a tunnel too.
        self.proxy = options.proxy
        self._method_set = False
        self._fresh = False
        self._clear()
        self.begin(_NOBODY, 0.0)
        self._bind(options, own)

    def _clear(self) -> None:
        """Begin without received data."""
        self.head: list[bytes] = []
        self._reply_at = 0  # Where the status line of the last reply is in it: interim ones come first.
        self.head_bytes = 0
        self.body: bytes | bytearray = b""
        self.body_bytes = 0
        self._held_bytes = 0
        """Its part of the shared memory."""
        self.file: Spill | None = None
        """The body, once it is too large for memory; then `body` is empty."""
        self.disk_error: OSError | None = None
        self.stopped = ""
        self.was_refused = False
        """Whether the server did not accept the request over a new connection, which only HTTP/2 can signal
        (REFUSED_STREAM, HTTP_1_1_REQUIRED, GOAWAY). libcurl would send the request again.
        """
        self.is_new = False
        """Whether its connection was opened for it."""
        self._requests = 0

    def aim(self, request: Request, headers: list[bytes], body_bytes_max: int, url: str = "") -> None:
        """Prepare one request; `url` is the URL for libcurl if it differs from the URL as written."""
        self.request = request
        self.body_bytes_max = body_bytes_max
        self.speaks_tls = request.url.startswith(_OVER_TLS)
        self.curl.setopt(pycurl.URL, url or request.url)
        if self.pinned:
            # An empty host and port match any, so no spelling of the URL can evade the pinned address. Through a proxy
            # libcurl requests a tunnel to this address (CONNECT), so the proxy does not resolve the name.
            at = f"[{request.ip}]" if ":" in request.ip else request.ip
            self.curl.setopt(pycurl.CONNECT_TO, [f"::{at}:{request.port}"])
        self.ip = request.ip
        if request.method != "GET" or request.body:
            self._carry(request)
        elif self._method_set:
            self.curl.setopt(pycurl.HTTPGET, 1)  # Also undoes POST and HEAD.
            self.curl.unsetopt(pycurl.CUSTOMREQUEST)
            self._method_set = False
        if request.fresh != self._fresh:
            self.curl.setopt(pycurl.FRESH_CONNECT, int(request.fresh))
            self._fresh = request.fresh
        if headers is not self._headers:
            self.curl.setopt(pycurl.HTTPHEADER, headers)
            self._headers = headers

    def ask_for(self, target: str) -> None:
        """Set the request target exactly, since libcurl changes percent-encodings of paths to upper case. A proxy that
        resolves names gets the whole URL as libcurl writes it.
        """
        if self.pinned and (self._has_target or ("%" in target and _LOWER_CASE.search(target) is not None)):
            self.curl.setopt(pycurl.REQUEST_TARGET, target)  # It cannot be unset.
            self._has_target = True

    def is_tunnelled(self, url: str) -> bool:
        """Return whether connections for a URL are with its host, directly or in a tunnel, and not with a proxy."""
        return self.pinned or url.startswith(_OVER_TLS)

    def is_pinned_to(self, remote_ip: str) -> bool:
        """Return whether a connection is with the request's address, or with the proxy."""
        return bool(self.proxy) or remote_ip == self.ip or _same_address(remote_ip, self.ip)

    def take_over(self, _finish: Callable[[pycurl.Curl, End], None]) -> bool:
        """Return whether the transfer goes on without libcurl; it calls the function at its end then."""
        return False

    def sends(self) -> None:
        """Note that the request goes out."""
        self._requests = 1

    def stop(self) -> None:
        """Stop using the connection, which libcurl closes or keeps now."""

    def use_h1(self, only: bool) -> None:
        """Offer only HTTP/1.1, or also the version in the options."""
        if only != self._h1_only:
            offers_h2 = self._options.http_versions == "2" and not only
            version = pycurl.CURL_HTTP_VERSION_2TLS if offers_h2 else pycurl.CURL_HTTP_VERSION_1_1
            self.curl.setopt(pycurl.HTTP_VERSION, version)
            self._h1_only = only

    def _carry(self, request: Request) -> None:
        """Set another method than GET, and the body."""
        if request.body or request.method in WITH_BODY:
            self.curl.setopt(pycurl.POST, 1)
            self.curl.setopt(pycurl.POSTFIELDS, request.body)
        elif request.method == "HEAD":
            self.curl.setopt(pycurl.NOBODY, 1)
        else:
            self.curl.setopt(pycurl.HTTPGET, 1)
        self.curl.setopt(pycurl.CUSTOMREQUEST, request.method)
        self._method_set = True

    def open_only_pinned(self) -> None:
        """Open sockets only to the address of the request, for protocols whose servers name further addresses."""
        self.opens_more = True
        self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open)

    def whole_body(self, truncated: str) -> bytes:
        """Return the body, cut at its bound; empty if it is in `file`."""
        return bytes(self.body[: self.body_bytes_max] if truncated == "length" else self.body)

    @property
    def fetch_s(self) -> float:
        """Time that the request took, by libcurl."""
        took_s: float = self.curl.getinfo(pycurl.TOTAL_TIME)
        return took_s

    def failure(self, outcome: str, error: str, retry: bool = False, host_level: bool = False) -> Failure:
        """Return the failure of the request."""
        return Failure(outcome, error, retry, host_level, self.request.ip, self.started_at, self.fetch_s)

    def reply(self, status: int, truncated: str, media_type: str) -> Reply:
        """Return the reply of a protocol without headers. `truncated` is what `transfers.cut` returned."""
        return Reply(
            url=self.request.url,
            status=status,
            headers=(),
            body=self.whole_body(truncated),
            ip=self.request.ip,
            started_at=self.started_at,
            fetch_s=self.fetch_s,
            wire_bytes=self.wire_bytes,
            http_version="",
            truncated=truncated,
            media_type=media_type,
            file=self.file,
        )

    def ends_within_head(self) -> bool:
        """Return whether a head began but did not end: libcurl reports no error when a connection is closed."""
        if self.head and self.head[-1] in LINE_ENDS:
            return False
        last = next((line for line in reversed(self.head) if line in LINE_ENDS or line.startswith(b"HTTP/")), b"\n")
        return last not in LINE_ENDS

    def begin(self, driver: TransferReports, now: float) -> None:
        """Note that a driver runs the transfer from now on."""
        self.driver = driver
        self.greeting = b""
        """First bytes of the server, if the connection failed in the handshake."""
        self.wire_bytes = 0
        """Bytes received for this transfer, with framing and TLS; updated by `count`."""
        self._connections_bytes = 0
        self._calls_left = CALLS_A_TURN_MAX
        self._content_before = 0
        self._slow_since = now
        self._slow_content = 0
        self._began_at = now
        self._wasted_read = self._wasted_content = 0

    def count(self) -> None:
        """Update `wire_bytes` with the bytes that its connections have received."""
        if not COUNTED:
            return
        for connection in self.connections:
            received = count_received(connection.fd)
            if received > connection.counted_bytes:
                self._connections_bytes += received - connection.counted_bytes
                connection.counted_bytes = received
        self.wire_bytes = self._connections_bytes
        if self._data:
            self._sum_up()

    def leave(self, fd: int) -> None:
        """Count the bytes that a connection has received, before it is closed, paused or kept for another transfer."""
        self.count()
        if not self._requests:
            self.greeting = peek(fd)

    def release(self, connection: TransferConnection) -> None:
        """Note that a connection no longer belongs to this transfer: its descriptor may soon be another socket's."""
        self.connections.remove(connection)
        connection.transfer = None

    def end(self) -> None:
        """Note that no driver runs it any more. Further bytes on its connections do not belong to it."""
        if COUNTED and self._data:
            self._sum_up()
        # Without a count its connection was closed at once: this much came at least.
        self.wire_bytes = self.wire_bytes or self.head_bytes + self.body_bytes
        for connection in self.connections:
            connection.transfer = None
        self.connections.clear()
        self.paused = False

    def _sum_up(self) -> None:
        self.wire_bytes = self._connections_bytes
        if self._data:
            self.wire_bytes += sum(count_received(data.fileno()) for data in self._data)

    def overdoes(self, now: float) -> bool:
        """Return whether it must end: it received too much for its content, or too slowly. Call `count` first."""
        content = self.head_bytes + self.body_bytes
        framed_max = FRAMING_BYTES_MIN + self._options.wire_ratio_max * content
        if self.wire_bytes > framed_max and self._read_bytes() > framed_max:
            self.stopped = self.stopped or "wire"
        elif self.request.has_others and (silence := self._silence(now - self._began_at)):
            self.stopped = self.stopped or silence
        elif not self._requests:  # Connecting, and waiting for a connection, have separate limits.
            self._slow_since = now
        elif self.body_bytes and self._is_all_there():
            self.stopped = self.stopped or "whole"
        elif not self.head and self.curl.errstr().startswith(NO_H2):
            self.stopped = self.stopped or "h2"  # libcurl has given up, and ends it at the end of `connect_s_max`.
        elif now - self._slow_since >= self._options.low_speed_s:
            if content - self._slow_content < self._options.low_speed_bytes_s * (now - self._slow_since):
                self.stopped = self.stopped or "slow"
            self._slow_since = now
            self._slow_content = content
        return bool(self.stopped)

    def _silence(self, waited_s: float) -> str:
        """Return what we no longer wait for: the TCP connection (`silent`) or the first byte (`unanswered`)."""
        # A connection with a proxy says nothing about the address. If one of SOCKS does not greet, it is at fault.
        connecting = self.connections if not self._requests and not self.proxy and waited_s >= self.silent_s_max else ()
        if connecting and not is_connected(connecting[-1].fd):  # A slow handshake of TLS is no silence.
            return "silent"
        is_answer = self.wire_bytes or self.proxy.startswith("socks")
        return "unanswered" if not is_answer and waited_s >= self.first_byte_s_max else ""

    @property
    def silent_s_max(self) -> float:
        """Longest wait for the TCP connection with an address, if the host has others that may answer."""
        return EARLY_SHARE * self._options.connect_s_max

    @property
    def first_byte_s_max(self) -> float:
        """Longest wait for the first byte, if the host is the only one of its crawl."""
        return self.request.first_byte_share * self._options.connect_s_max

    def _is_all_there(self) -> bool:
        """Return whether a body has reached its length although libcurl waits for the end of the connection: with
        `Transfer-Encoding: identity`, which HTTP/1.1 no longer has since RFC 7230, or a space before a colon.
        """
        fields = [line.lower().strip().partition(b":") for line in self.head]
        lengths = [(name, value.strip()) for name, _, value in fields if name.rstrip() == b"content-length"]
        is_identity = (b"transfer-encoding", b":", b" identity") in fields
        is_odd = is_identity or any(name != b"content-length" for name, _ in lengths)
        return is_odd and [value for _, value in lengths] == [b"%d" % self.body_bytes]

    def wastes(self) -> bool:
        """Return whether it received much, but little content, since the last call. Call `count` first."""
        if self.wire_bytes - self._wasted_read < WASTE_BYTES_MIN:
            return False
        read = self._read_bytes()
        content = self.head_bytes + self.body_bytes
        gained = read - self._wasted_read
        brought = content - self._wasted_content
        if gained < WASTE_BYTES_MIN:
            return False
        self._wasted_read = read
        self._wasted_content = content
        return gained > WASTE_RATIO * brought

    def _read_bytes(self) -> int:
        """Return how many received bytes libcurl has read: with a busy loop, megabytes may wait in the kernel."""
        if not COUNTED:
            return self.wire_bytes
        descriptors = [connection.fd for connection in self.connections] + [data.fileno() for data in self._data]
        return self.wire_bytes - sum(map(unread_bytes, descriptors))

    def flush(self) -> None:
        """Write the buffered part of a body on disk. An error is stored in `disk_error`."""
        assert self.file is not None, "what is in memory is written nowhere"
        try:
            self.file.flush()
        except OSError as error:
            self._on_disk_error(error)

    def forget(self) -> None:
        """Drop the received data."""
        self.bodies.held_bytes -= self._held_bytes
        self.bodies.received_bytes -= self.body_bytes
        self._clear()
        self._data.clear()
        # pycurl has duplicated each descriptor, so closing ours does not close the connection.
        while self._opened:
            self._opened.pop().close()

    def close(self) -> None:
        """Free the handle; it must not be in use."""
        self.forget()
        self.curl.close()

    def _before_connection(self, fd: int, _purpose: int) -> int:
        """Refuse the connection over which libcurl would send the request again, since connecting is a contact too."""
        if self._requests and not self.opens_more:
            self.stopped = "resend"
            self.was_refused = self.is_new
            return int(pycurl.SOCKOPT_ERROR)
        self.is_new = True
        if not self._requests:
            self.driver.note_connection(self, fd)
        return int(pycurl.SOCKOPT_OK)

    def _before_request(self, remote_ip: str, local_ip: str, remote_port: int, local_port: int) -> int:
        """Enforce the pinned address, and one request on the wire for each permitted request.

        libcurl calls this when it is connected and has sent nothing yet. If a kept connection dies without an answer,
        libcurl immediately sends the request again by itself, which would be a contact without a gate.
        """
        self._requests += 1
        if self._requests > 1:
            self.stopped = "resend"
            self.was_refused = self.is_new
            return int(pycurl.PREREQFUNC_ABORT)
        if not self.is_pinned_to(remote_ip):
            self.stopped = f"connected to {remote_ip}"
            return int(pycurl.PREREQFUNC_ABORT)
        self.driver.note_request(self, (remote_ip, local_ip, remote_port, local_port))
        return int(pycurl.PREREQFUNC_OK)

    def _open(self, _purpose: int, at: _SocketAddress) -> socket.socket | int:
        remote_ip = at.addr[0]
        if remote_ip != self.ip and not _same_address(remote_ip, self.ip):
            self.stopped = f"connecting to {remote_ip}"
            return int(pycurl.SOCKET_BAD)
        opened = socket.socket(at.family, at.socktype, at.protocol)
        self._opened.append(opened)
        if self._requests:
            self._data.append(opened)
        return opened

    def take_head(self, line: bytes) -> int | None:
        """Take a line of the head; 0: the transfer must end."""
        self.head += (line,)
        self.head_bytes += len(line)
        if self.head_bytes > self.head_bytes_max:
            self.stopped = "head"
            return 0
        if line in LINE_ENDS:
            status = self.head[self._reply_at]
            self._reply_at = len(self.head)
            if status.startswith(b"HTTP/") and status[8:12] == b" 101":
                self.stopped = "whole"  # Not requested: what follows is no HTTP, and libcurl would wait for its end.
                return 0
        return None

    def take_body(self, piece: bytes) -> int | None:
        """Take a piece of the body; 0: the transfer must end."""
        if not self._calls_left and self._grinds():
            return int(pycurl.WRITEFUNC_PAUSE)  # libcurl passes the same piece again.
        self._calls_left -= 1
        wanted = self.request.media_types
        if wanted and not self.body_bytes and not is_wanted(self.head, wanted):
            self.stopped = "media_type"
            return 0
        self.body_bytes += len(piece)
        self.bodies.received_bytes += len(piece)
        if self.file is None:
            self._hold(piece)
        else:
            self._write(piece)
        if self.body_bytes > self.body_bytes_max:
            self.stopped = "length"
        elif self.bodies.at_limit():
            self.stopped = "limit"
        return 0 if self.stopped else None

    def _grinds(self) -> bool:
        """Return whether the last turns had many callbacks for little content: then pause the transfer."""
        content = self.body_bytes - self._content_before
        self._content_before = self.body_bytes
        self._calls_left = CALLS_A_TURN_MAX
        if content >= CONTENT_A_TURN_BYTES:
            return False
        self.paused = True
        self.driver.grinds(self)
        return True

    def _hold(self, piece: bytes) -> None:
        """Append to the body in memory; move it to disk once it is too large."""
        if not self.body:
            self.body = piece  # Most bodies are a single piece, which need not be copied.
        elif isinstance(self.body, bytearray):
            self.body += piece
        else:
            self.body = bytearray(self.body)
            self.body += piece
        bodies = self.bodies
        held = sys.getsizeof(self.body)
        bodies.held_bytes += held - self._held_bytes
        self._held_bytes = held
        if self.body_bytes > bodies.each_bytes_max or bodies.held_bytes > bodies.held_bytes_max:
            self._spill()

    def _spill(self) -> None:
        """Move the body to disk, unless it is small."""
        try:
            self.file = self.bodies.spill(memoryview(self.body)[: self.body_bytes_max])
        except OSError as error:
            self._on_disk_error(error)
        if self.file is not None:
            self.body = b""
            self.bodies.held_bytes += BUFFER_BYTES - self._held_bytes
            self._held_bytes = BUFFER_BYTES

    def _write(self, piece: bytes) -> None:
        assert self.file is not None
        try:
            self.file.write(piece[: max(0, self.body_bytes_max - self.file.size)])
        except OSError as error:
            self._on_disk_error(error)

    def _on_disk_error(self, error: OSError) -> None:
        self.stopped = "disk"
        self.disk_error = error

    def _bind(self, options: FetchOptions, own: Iterable[Setting]) -> None:
        """Set the options for all requests, also defaults that our promises depend on."""
        for option, value in (*common_settings(options), *own):
            self.curl.setopt(option, value)
        self.curl.setopt(pycurl.SOCKOPTFUNCTION, self._before_connection)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._before_request)
        self.curl.setopt(pycurl.HEADERFUNCTION, self.take_head)
        self.curl.setopt(pycurl.WRITEFUNCTION, self.take_body)
        if not COUNTED:
            self.curl.setopt(pycurl.VERBOSE, 1)
            self.curl.setopt(pycurl.DEBUGFUNCTION, self._on_debug)

    def _on_debug(self, kind: int, data: bytes) -> None:
        """Count the bytes that libcurl reads, if the kernel does not."""
        if kind in _RECEIVED_KINDS:
            self.wire_bytes += len(data)


def _same_address(one: str, other: str) -> bool:
    try:
        return ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return False
