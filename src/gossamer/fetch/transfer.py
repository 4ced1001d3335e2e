"""Transfer: one libcurl handle, what it may do, and what it has received."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import certifi
import pycurl

from gossamer.fetch.bodies import Bodies
from gossamer.fetch.headers import content_type, parse_head
from gossamer.fetch.options import FetchOptions
from gossamer.model.errors import ConfigError
from gossamer.model.visits import Request
from gossamer.world.spill import Spill

_TLS_MIN: Final = {
    "1.0": pycurl.SSLVERSION_TLSv1_0,
    "1.1": pycurl.SSLVERSION_TLSv1_1,
    "1.2": pycurl.SSLVERSION_TLSv1_2,
    "1.3": pycurl.SSLVERSION_TLSv1_3,
}

_RECEIVE_BYTES: Final = 64 * 1024
"""libcurl's receive buffer, one for all handles: fewer callbacks for a page than the 16 KiB it comes with."""

Setting = tuple[int, int | str]
"""An option of libcurl and its value."""


class _SocketAddress(NamedTuple):
    """What libcurl wants a socket for (curl_sockaddr)."""

    family: int
    socktype: int
    protocol: int
    addr: tuple[str, int]


class Transfer:
    """A handle for one request at a time. Options that never change are set once; the handle is never reset.

    Callbacks are bound to this object for its life: what they collect stands in `head` and `body` until `forget`,
    which must come before the next `aim`. `stopped` says why we ended a transfer ourselves.
    """

    __slots__ = (
        "_bodies", "_direct", "_fresh", "_headers", "_opened", "_opens_more", "_pinned", "_posted", "_requests", "body",
        "body_bytes", "body_bytes_max",
        "curl", "disk_error", "file", "head", "head_bytes", "head_bytes_max", "ip", "media_types", "stopped",
    )  # fmt: skip

    def __init__(self, options: FetchOptions, own: Iterable[Setting] = (), bodies: Bodies | None = None) -> None:
        """`own` are the settings of the protocol that it speaks; `bodies` is the memory that it shares."""
        self.curl = pycurl.Curl()
        self.head: list[bytes] = []
        self.head_bytes = 0
        self.head_bytes_max = options.head_bytes_max
        self.body: list[bytes] = []
        self.body_bytes = 0
        self.body_bytes_max = 0
        self.file: Spill | None = None
        """Where the body is, once it is too large for memory; `body` is empty then."""
        self.disk_error: OSError | None = None
        self._bodies = bodies or Bodies(options)
        self.media_types: tuple[str, ...] = ()
        self.ip = ""
        self.stopped = ""
        self._headers: list[bytes] = []
        self._opens_more = False
        self._opened: list[socket.socket] = []
        self._pinned = not (options.proxy and options.proxy_resolves)
        self._direct = not options.proxy
        self._requests = 0
        self._posted = False
        self._fresh = False
        self._bind(options, own)

    def aim(self, request: Request, headers: list[bytes], body_bytes_max: int, url: str = "") -> None:
        """Make ready for one request; `url` is what libcurl is told where that is not the URL as written."""
        self.body_bytes_max = body_bytes_max
        self.media_types = request.media_types
        self.curl.setopt(pycurl.URL, url or request.url)
        if self._pinned:
            # An empty host and port match any, so nothing in the URL's spelling can lead around the pin. Through a
            # proxy libcurl asks for a tunnel to this address (CONNECT): the proxy does not resolve the name.
            at = f"[{request.ip}]" if ":" in request.ip else request.ip
            self.curl.setopt(pycurl.CONNECT_TO, [f"::{at}:{request.port}"])
        self.ip = request.ip
        if request.form:
            self.curl.setopt(pycurl.POST, 1)
            self.curl.setopt(pycurl.POSTFIELDS, request.form)
            self._posted = True
        elif self._posted:
            self.curl.setopt(pycurl.HTTPGET, 1)
            self._posted = False
        if request.fresh != self._fresh:
            self.curl.setopt(pycurl.FRESH_CONNECT, int(request.fresh))
            self._fresh = request.fresh
        if headers is not self._headers:
            self.curl.setopt(pycurl.HTTPHEADER, headers)
            self._headers = headers

    def open_only_pinned(self) -> None:
        """Open sockets to the address of the request alone: for protocols whose servers name further ones."""
        self._opens_more = True
        self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open)

    def whole_body(self, truncated: str) -> bytes:
        """Return the body, cut at its bound where it exceeds it; nothing where `file` holds it."""
        body = self.body[0] if len(self.body) == 1 else b"".join(self.body)
        return body[: self.body_bytes_max] if truncated == "length" else body

    def forget(self) -> None:
        """Let go of what was received."""
        self.head = []
        self.head_bytes = 0
        if self.file is None:
            self._bodies.held_bytes -= self.body_bytes
        self.body = []
        self.body_bytes = 0
        self.file = None
        self.disk_error = None
        self.stopped = ""
        self._requests = 0
        self._close_opened()

    def close(self) -> None:
        """Free the handle; it must not be in use."""
        self.forget()
        self.curl.close()

    def _before_connection(self, _socket: int, _purpose: int) -> int:
        """Refuse the connection by which libcurl would send a second time; connecting is contact too."""
        if self._requests and not self._opens_more:
            self.stopped = "resend"
            return int(pycurl.SOCKOPT_ERROR)
        return int(pycurl.SOCKOPT_OK)

    def _before_request(self, remote_ip: str, _local_ip: str, _remote_port: int, _local_port: int) -> int:
        """Hold the pin, and the promise of one request on the wire for each request permitted.

        libcurl calls this when it is connected and has sent nothing yet. It sends again by itself when a kept
        connection dies without an answer, a moment after the first: a contact that no gate has seen.
        """
        self._requests += 1
        if self._requests > 1:
            self.stopped = "resend"
            return int(pycurl.PREREQFUNC_ABORT)
        if self._direct and remote_ip != self.ip and not _same_address(remote_ip, self.ip):
            self.stopped = f"connected to {remote_ip}"
            return int(pycurl.PREREQFUNC_ABORT)
        return int(pycurl.PREREQFUNC_OK)

    def _open(self, _purpose: int, at: _SocketAddress) -> socket.socket | int:
        remote_ip = at.addr[0]
        if remote_ip != self.ip and not _same_address(remote_ip, self.ip):
            self.stopped = f"connecting to {remote_ip}"
            return int(pycurl.SOCKET_BAD)
        opened = socket.socket(at.family, at.socktype, at.protocol)
        self._opened.append(opened)
        return opened

    def _close_opened(self) -> None:
        # pycurl has made a copy of each descriptor: ours may go, the connection stays.
        while self._opened:
            self._opened.pop().close()

    def _take_head(self, line: bytes) -> int | None:
        self.head.append(line)
        self.head_bytes += len(line)
        if self.head_bytes > self.head_bytes_max:
            self.stopped = "head"
            return 0
        return None

    def _take_body(self, piece: bytes) -> int | None:
        if self.media_types and not self.body_bytes and not wanted(self.head, self.media_types):
            self.stopped = "media_type"
            return 0
        size = len(piece)
        self.body_bytes += size
        if self.file is None:
            self.body.append(piece)
            bodies = self._bodies
            bodies.held_bytes += size
            if self.body_bytes > bodies.each_bytes_max or bodies.held_bytes > bodies.held_bytes_max:
                self._spill()
        else:
            self._write(piece)
        if self.body_bytes > self.body_bytes_max:
            self.stopped = "length"
        return 0 if self.stopped else None

    def _spill(self) -> None:
        """Take the body to disk, unless it is small."""
        before = self.body_bytes - len(self.body[-1])
        try:
            self.file = self._bodies.spilled(self.body[:-1], before)
        except OSError as error:
            self._refused(error)
        if self.file is not None:
            self._bodies.held_bytes -= self.body_bytes
            last, self.body = self.body[-1], []
            self._write(last)

    def _write(self, piece: bytes) -> None:
        assert self.file is not None
        try:
            self.file.write(piece[: max(0, self.body_bytes_max - self.file.size)])
        except OSError as error:
            self._refused(error)

    def _refused(self, error: OSError) -> None:
        self.stopped, self.disk_error = "disk", error

    def _bind(self, options: FetchOptions, own: Iterable[Setting]) -> None:
        """Set what holds for every request. Defaults that our promises rest on are set all the same."""
        for option, value in (*_fixed(options), *own):
            self.curl.setopt(option, value)
        self.curl.setopt(pycurl.SOCKOPTFUNCTION, self._before_connection)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._before_request)
        self.curl.setopt(pycurl.HEADERFUNCTION, self._take_head)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._take_body)


def _fixed(options: FetchOptions) -> list[Setting]:
    return [
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        # Empty is not unset: unset, libcurl would ask the environment, and a proxy there would undo the pin.
        (pycurl.PROXY, options.proxy),
        (pycurl.NOPROXY, "" if options.proxy else "*"),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.NOSIGNAL, 1),
        (pycurl.NOPROGRESS, 1),
        (pycurl.TCP_NODELAY, 1),
        (pycurl.BUFFERSIZE, _RECEIVE_BYTES),
        (pycurl.CONNECTTIMEOUT_MS, round(options.connect_s_max * 1000)),
        (pycurl.TIMEOUT_MS, round(options.request_s_max * 1000)),
        (pycurl.LOW_SPEED_LIMIT, options.low_speed_bytes_s),
        (pycurl.LOW_SPEED_TIME, options.low_speed_s),
        (pycurl.MAXAGE_CONN, options.connection_idle_s),
        (pycurl.SSLVERSION, _TLS_MIN[options.tls_min]),
        (pycurl.SSL_VERIFYPEER, int(options.verify_tls)),
        (pycurl.SSL_VERIFYHOST, 2 if options.verify_tls else 0),
        (pycurl.CAINFO, trusted(options)),
    ]


def trusted(options: FetchOptions) -> str:
    """Return the file of certificates to trust: the operator's, else the system's, else certifi's.

    A libcurl from a wheel looks where its builder's system kept them, so the place is always named.
    """
    if options.ca_bundle:
        if not Path(options.ca_bundle).is_file():
            raise ConfigError(f"fetch.ca_bundle: no file {options.ca_bundle}; name a PEM file of certificates")
        return options.ca_bundle
    return ssl.get_default_verify_paths().cafile or certifi.where()


def wanted(head: Iterable[bytes], media_types: tuple[str, ...]) -> bool:
    """Say whether a body is wanted, by the head that came before it: of a document, those types alone."""
    parsed = parse_head(head)
    if parsed is None or not 200 <= parsed.status < 300:
        return True
    kind = content_type(parsed.headers)[0]
    return not kind or any(one in (kind, kind.partition("/")[0] + "/*", "*/*") for one in media_types)


def _same_address(one: str, other: str) -> bool:
    try:
        return ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return False
