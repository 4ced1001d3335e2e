"""HTTP: the protocol module for http and https, over libcurl."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Final

import pycurl

from gossamer.fetch import errors
from gossamer.fetch.headers import Head, content_type, parse_head
from gossamer.fetch.options import FetchOptions
from gossamer.fetch.transfer import Transfer, trusted
from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Reply, Request
from gossamer.world.clock import Clock

ACCEPT_ENCODING: Final = "gzip, br, zstd, deflate"
"""Exactly the codings that `BoundedDecoder` removes."""

_IDLE_HANDLES_MAX: Final = 256
_GRACE_S: Final = 5.0
"""libcurl keeps the time itself; this much later we no longer believe that it does."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#]*@)?([^/?#]*)([^#]*)")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")


class HttpModule:
    """`ports.ProtocolModule` for http and https: h1, and h2 where TLS negotiates it.

    One call sends at most one request, to `Request.ip` and nowhere else, with the URL byte for byte as written.
    Connections are kept per host and address. Bodies stay as sent: chunks are joined, content codings are not
    removed. A reply whose body exceeds a bound or its time is cut and marked; all else that goes wrong is a `Failure`.
    Needs a running loop from the first fetch to `close`; one slow server holds up nobody else. About 50 µs of CPU for
    a page over a kept connection, of which libcurl and its asyncio binding take 40 (benchmarks/fetch_floor.py).
    """

    def __init__(self, options: FetchOptions, agent: str, clock: Clock) -> None:
        """`agent` is the whole User-Agent header. Raises ConfigError for what cannot be sent or read."""
        trusted(options)
        self._options = options
        self._clock = clock
        self._own = _own_headers(options, agent)
        self._lines = _lines(self._own)
        self._sent = b"\r\n".join(_as_sent(self._own)) + b"\r\n\r\n"
        self._deadline_s = options.request_s_max + _GRACE_S
        self._idle: list[Transfer] = []
        self._closed = False
        self._multi = pycurl.AsyncCurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, options.connections_max)
        self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, options.connections_per_host)
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)

    async def fetch(self, request: Request) -> Reply | Failure:
        """Send one request and return what came. Cancelling it ends the transfer and its connection."""
        assert not self._closed, "fetch after close"
        assert request.ip, "a request without a checked address"
        started_at = self._clock.now()
        transfer = self._idle.pop() if self._idle else Transfer(self._options)
        lines, sent = (self._lines, self._sent) if not request.headers else self._with(request.headers)
        code, text = 0, ""
        try:
            transfer.aim(request, lines, request.body_bytes_max or self._options.body_bytes_max)
            async with asyncio.timeout(self._deadline_s):
                await self._multi.add_handle(transfer.curl)
        except pycurl.error as error:
            code, text = error.args[0], str(error.args[1]) if len(error.args) > 1 else ""
        except UnicodeEncodeError:
            code, text = pycurl.E_URL_MALFORMAT, "the URL is not ASCII"
        except TimeoutError:
            self._drop(transfer)
            return _failure(self._clock, request, started_at, "internal_error", "libcurl missed its own deadline")
        except asyncio.CancelledError:
            self._drop(transfer)
            if self._multi.closed and not _cancelling():
                return _failure(self._clock, request, started_at, "internal_error", "closed while it was fetched")
            raise
        reply = _result(transfer, request, started_at, code, text, sent)
        self._keep(transfer)
        return reply

    async def close(self) -> None:
        """Let go of all connections. Fetches still under way end with a `Failure`."""
        self._closed = True
        await self._multi.aclose()
        while self._idle:
            self._idle.pop().close()

    def _with(self, extra: tuple[tuple[str, str], ...]) -> tuple[list[bytes], bytes]:
        """Return header lines with a request's own added; those of a name that we send take its place."""
        assert all(_sendable(name, value) for name, value in extra), "a header that cannot be sent"
        names = {name.lower() for name, _ in extra}
        headers = [header for header in self._own if header[0].lower() not in names] + list(extra)
        return _lines(headers), b"\r\n".join(_as_sent(headers)) + b"\r\n\r\n"

    def _keep(self, transfer: Transfer) -> None:
        if len(self._idle) < _IDLE_HANDLES_MAX and not self._closed:
            transfer.head, transfer.body = [], []
            self._idle.append(transfer)
        else:
            transfer.close()

    def _drop(self, transfer: Transfer) -> None:
        # The future's own callback removes the handle one turn of the loop later; closing it needs it removed now.
        if not self._multi.closed and self._multi.futures():
            with suppress(RuntimeError):
                self._multi.remove_handle(transfer.curl)
        transfer.close()


def _result(
    transfer: Transfer, request: Request, started_at: float, code: int, text: str, sent: bytes
) -> Reply | Failure:
    fetch_s: float = transfer.curl.getinfo(pycurl.TOTAL_TIME)
    if transfer.stopped and transfer.stopped != "length":
        outcome, error, retry = _stopped(transfer, request)
        return Failure(outcome, error, retry=retry, ip=request.ip, started_at=started_at, fetch_s=fetch_s)
    truncated = transfer.stopped
    if code == pycurl.E_OPERATION_TIMEDOUT and transfer.body:
        truncated = "time"
    if code and not truncated:
        os_errno = transfer.curl.getinfo(pycurl.OS_ERRNO)
        return errors.failure(code, text, ip=request.ip, started_at=started_at, fetch_s=fetch_s, os_errno=os_errno)
    head = parse_head(transfer.head)
    if head is None:
        error = "the reply has no status line"
        return Failure("protocol_error", error, ip=request.ip, started_at=started_at, fetch_s=fetch_s)
    media_type, charset = content_type(head.headers)
    body = transfer.body[0] if len(transfer.body) == 1 else b"".join(transfer.body)
    return Reply(
        url=request.url,
        status=head.status,
        headers=head.headers,
        body=body[: transfer.body_bytes_max] if truncated == "length" else body,
        ip=request.ip,
        started_at=started_at,
        fetch_s=fetch_s,
        wire_bytes=transfer.head_bytes + transfer.body_bytes,
        http_version=head.http_version,
        reason=head.reason,
        request_head=_request_head(request.url, head, sent),
        truncated=truncated,
        media_type=media_type,
        charset=charset,
    )


def _stopped(transfer: Transfer, request: Request) -> tuple[str, str, bool]:
    """Say why we ended a transfer ourselves: outcome, error, whether to ask again."""
    if transfer.stopped == "head":
        return "too_large", f"headers exceed {transfer.head_bytes_max} bytes", False
    if transfer.stopped == "resend":
        return "connect_error", "the kept connection closed without an answer", True
    return "internal_error", f"connected to {transfer.stopped.removeprefix('stray ')} instead of {request.ip}", False


def _failure(clock: Clock, request: Request, started_at: float, outcome: str, error: str) -> Failure:
    return Failure(outcome, error, ip=request.ip, started_at=started_at, fetch_s=clock.now() - started_at)


def _request_head(url: str, head: Head, sent: bytes) -> bytes:
    """Write the request as libcurl sends it: Host first, then our header lines in their order.

    libcurl could report it, through a callback for every byte that goes either way. For h2 it is its own rendering
    of the pseudo-headers, "GET /path HTTP/2".
    """
    match = _ADDRESS.match(url)
    assert match is not None
    authority, target = match.groups()
    if not target.startswith("/"):
        target = "/" + target
    version = "2" if head.http_version == "2" else "1.1"
    return f"GET {target} HTTP/{version}\r\nHost: {authority}\r\n".encode("ascii") + sent


def _own_headers(options: FetchOptions, agent: str) -> list[tuple[str, str]]:
    own = {"User-Agent": agent, "Accept": options.accept}
    if options.accept_language:
        own["Accept-Language"] = options.accept_language
    own["Accept-Encoding"] = ACCEPT_ENCODING
    taken = {name.lower(): name for name in own}
    for name, value in options.headers.items():
        own[taken.get(name.lower(), name)] = value
    for name, value in own.items():
        if not _sendable(name, value):
            raise ConfigError(f"header {name!r}: {value!r} cannot be sent; use one line of ASCII, and never Host")
    return list(own.items())


def _sendable(name: str, value: str) -> bool:
    reserved = name.lower() in ("host", "content-length", "transfer-encoding", "connection")
    return bool(_HEADER_NAME.match(name) and _HEADER_VALUE.match(value)) and not reserved


def _lines(headers: list[tuple[str, str]]) -> list[bytes]:
    # CURLOPT_HTTPHEADER(3): "Name:" would remove a header, "Name;" sends it empty.
    return [(f"{name}: {value}" if value else f"{name};").encode("latin-1") for name, value in headers]


def _as_sent(headers: list[tuple[str, str]]) -> list[bytes]:
    return [(f"{name}: {value}" if value else f"{name}:").encode("latin-1") for name, value in headers]


def _cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
