"""HTTP: the protocol module for http and https, over libcurl, and what is sent, to the byte."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
import pycurl

from gossamer.fetch.bodies import Bodies, sniffed
from gossamer.fetch.credentials import REDACTED, is_credential, origin_of
from gossamer.fetch.driver import End
from gossamer.fetch.headers import content_type, parse_head
from gossamer.fetch.options import FetchOptions
from gossamer.fetch.transfer import Setting, Transfer, trusted
from gossamer.fetch.transfers import Transfers, broken_off, cut
from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Reply, Request
from gossamer.world.clock import Clock

ACCEPT_ENCODING: Final = "gzip, br, zstd, deflate"
"""Exactly the codings that `BoundedDecoder` removes."""

FORM_HEADERS: Final = b"Content-Length: %d\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n"
"""What libcurl adds to a form."""

# Printable ASCII only; [!"$-.0->@-~] is all of it but / ? #.
_ADDRESS = re.compile(r"""https?://(?:[!"$-.0->@-~]*@)?([!"$-.0->@-~]+)([!"$-~]*)(?:\#[!-~]*)?\Z""", re.IGNORECASE)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE = re.compile(r"[!-~\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[!-~\x80-\xff])?\Z|\Z")
_RESERVED: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})


class Address(NamedTuple):
    """The two parts of a URL that go out: `Host` and the request target, both as written."""

    authority: str
    target: str


class Headers(NamedTuple):
    """Header lines in two forms: for libcurl, and as they go out but for credentials, for the archive."""

    lines: list[bytes]
    sent: bytes
    """Up to and with the empty line."""


def address(url: str) -> Address | None:
    """Take an http or https URL apart; None for what cannot be sent as it is. Credentials and fragment stay behind."""
    match = _ADDRESS.match(url)
    if match is None:
        return None
    authority, target = match.groups()
    return Address(authority, target if target.startswith("/") else "/" + target)


def request_head(at: Address, http_version: str, headers: Headers, form: bytes = b"") -> bytes:
    """Write the request as libcurl sends it: Host first, then the header lines in their order.

    libcurl could report it itself, by a call for every piece of data in either direction. For h2 this is its own
    rendering of the pseudo-headers.
    """
    version = "2" if http_version == "2" else "1.1"
    line = f"{'POST' if form else 'GET'} {at.target} HTTP/{version}\r\nHost: {at.authority}\r\n".encode("ascii")
    return line + (headers.sent[:-2] + FORM_HEADERS % len(form) if form else headers.sent)


def own_headers(
    options: FetchOptions, agent: str, further: Mapping[str, str] | None = None
) -> tuple[tuple[str, str], ...]:
    """Return the headers of every request, or with `further` those of every request to one origin.

    Raises:
        ConfigError: one of them cannot be sent.
    """
    own = {"User-Agent": agent, "Accept": options.accept}
    if options.accept_language:
        own["Accept-Language"] = options.accept_language
    own["Accept-Encoding"] = ACCEPT_ENCODING
    given = tuple(replaced(options.headers.items(), (further or {}).items()))
    for name, value in (*own.items(), *given):
        if not sendable(name, value):
            what = repr(name) if further and name in further else f"{name!r}: {value!r}"
            raise ConfigError(f"header {what} cannot be sent; use one line of latin-1, and no {_RESERVED_TEXT}")
    return replaced(own.items(), given)


_RESERVED_TEXT: Final = ", ".join(sorted(_RESERVED))


def replaced(headers: Iterable[tuple[str, str]], by: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return `headers` and `by`; where a name stands in both, only the latter."""
    by = tuple(by)
    names = {name.lower() for name, _ in by}
    return (*(header for header in headers if header[0].lower() not in names), *by)


def sendable(name: str, value: str) -> bool:
    """Say whether a header can be sent as it is, and is not libcurl's own business."""
    return _NAME.match(name) is not None and _VALUE.match(value) is not None and name.lower() not in _RESERVED


def compose(headers: Iterable[tuple[str, str]], secret: Container[str] = ()) -> Headers:
    """Put headers into both forms, the values of those that are `secret` redacted in what is archived.

    CURLOPT_HTTPHEADER(3): "Name:" would remove a header, "Name;" sends it empty.
    """
    headers = tuple(headers)
    lines = [(f"{name}: {value}" if value else f"{name};").encode("latin-1") for name, value in headers]
    shown = [(name, REDACTED if name in secret else value) for name, value in headers]
    sent = [(f"{name}: {value}" if value else f"{name}:").encode("latin-1") for name, value in shown]
    return Headers(lines, b"\r\n".join([*sent, b"", b""]))


class HttpModule:
    """`ports.ProtocolModule` for http and https: h1, and h2 where TLS negotiates it.

    One call sends at most one request, to `Request.ip` and nowhere else, with the URL byte for byte as written.
    Connections are kept per host and address. Bodies stay as sent: chunks are joined, content codings are not
    removed. A reply whose body exceeds a bound or its time is cut and marked; all else that goes wrong is a `Failure`,
    with what had come where the server broke off within the body.
    Needs a running loop from the first fetch to `close`; one slow server does not delay the others. A page over a kept
    connection costs at most 1.5 times what libcurl and its asyncio binding take (benchmarks/bench_fetch.py).
    """

    def __init__(self, options: FetchOptions, agent: str, clock: Clock, bodies: Bodies | None = None) -> None:
        """`agent` is the whole User-Agent header. Raises ConfigError for what cannot be sent or read."""
        trusted(options)
        self._options = options
        self._clock = clock
        self._common = _own(options, agent, {})
        self._by_origin = {origin: _own(options, agent, more) for origin, more in options.origin_headers.items()}
        self._transfers = Transfers(options, clock, lambda: Transfer(options, _settings(options), bodies))

    async def fetch(self, request: Request) -> Reply | Failure:
        """Send one request and return what came. Cancelling it ends the transfer and its connection."""
        assert request.ip, "a request without a checked address"
        started_at = self._clock.now()
        at = address(request.url)
        if at is None:  # libcurl would guess what is meant
            return self._transfers.ours(request, started_at, "unsupported", "no URL that can be sent as written")
        own = self._by_origin.get(origin_of(request.url), self._common) if self._by_origin else self._common
        headers = own.with_(request.headers) if request.headers else own.headers
        transfer = self._transfers.take()
        transfer.aim(request, headers.lines, request.body_bytes_max or self._options.body_bytes_max)
        end = await self._transfers.run(transfer, request, started_at)
        if isinstance(end, Failure):
            return end
        return self._transfers.done(transfer, _result(transfer, request, started_at, at, headers, end))

    async def close(self) -> None:
        """Let go of all connections. Fetches still under way end with a `Failure`."""
        await self._transfers.close()


class _Own(NamedTuple):
    """The headers that every request has, or every request to one origin."""

    fields: tuple[tuple[str, str], ...]
    secret: frozenset[str]
    """Names of those that carry credentials."""
    headers: Headers

    def with_(self, extra: tuple[tuple[str, str], ...]) -> Headers:
        """Add a request's own headers; those of a name that we send ourselves take its place."""
        assert all(sendable(name, value) for name, value in extra), "headers that cannot be sent"
        return compose(replaced(self.fields, extra), self.secret)


def _own(options: FetchOptions, agent: str, further: Mapping[str, str]) -> _Own:
    fields = own_headers(options, agent, further)
    secret = frozenset(name for name, _ in fields if name in further or is_credential(name))
    return _Own(fields, secret, compose(fields, secret))


def _settings(options: FetchOptions) -> list[Setting]:
    newest = pycurl.CURL_HTTP_VERSION_2TLS if options.http_versions == "2" else pycurl.CURL_HTTP_VERSION_1_1
    return [
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.HTTPAUTH, pycurl.HTTPAUTH_NONE),  # credentials that a link carries are not sent
        (pycurl.HSTS_CTRL, 0),
        (pycurl.HTTP09_ALLOWED, 0),
        (pycurl.HTTP_VERSION, newest),
        (pycurl.HTTP_TRANSFER_DECODING, 1),
        (pycurl.HTTP_CONTENT_DECODING, 0),
    ]


def _result(
    transfer: Transfer, request: Request, started_at: float, at: Address, headers: Headers, end: End
) -> Reply | Failure:
    truncated = cut(transfer, request, started_at, end)
    if isinstance(truncated, Failure):
        breach = broken_off(transfer, end)
        came = _reply(transfer, request, started_at, at, headers, breach) if breach else None
        return truncated if came is None else msgspec.structs.replace(truncated, came=came)
    reply = _reply(transfer, request, started_at, at, headers, truncated)
    if reply is None:
        fetch_s: float = transfer.curl.getinfo(pycurl.TOTAL_TIME)
        error = "the reply has no status line"
        return Failure("protocol_error", error, ip=request.ip, started_at=started_at, fetch_s=fetch_s)
    return reply


def _reply(
    transfer: Transfer, request: Request, started_at: float, at: Address, headers: Headers, truncated: str
) -> Reply | None:
    """Return what came; None where that has no status line."""
    fetch_s: float = transfer.curl.getinfo(pycurl.TOTAL_TIME)
    head = parse_head(transfer.head)
    if head is None:
        return None
    media_type, charset = content_type(head.headers)
    body = transfer.whole_body(truncated)
    return Reply(
        url=request.url,
        status=head.status,
        headers=head.headers,
        body=body,
        ip=request.ip,
        started_at=started_at,
        fetch_s=fetch_s,
        wire_bytes=transfer.wire_bytes,
        http_version=head.http_version,
        reason=head.reason,
        request_head=request_head(at, head.http_version, headers, request.form),
        truncated=truncated,
        media_type=media_type or sniffed(body),
        charset=charset,
        file=transfer.file,
    )
