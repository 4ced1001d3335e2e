"""HTTP: the protocol module for http and https, over libcurl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import pycurl

from gossamer.fetch.bodies import Bodies
from gossamer.fetch.credentials import is_credential, origin_of
from gossamer.fetch.driver import End
from gossamer.fetch.headers import content_type, parse_head
from gossamer.fetch.media_types import sniffed
from gossamer.fetch.options import FetchOptions
from gossamer.fetch.request import Address, Headers, address, compose, own_headers, replaced, request_head, sendable
from gossamer.fetch.transfer import Setting, Transfer, trusted
from gossamer.fetch.transfers import Transfers, broken_off, cut
from gossamer.model.visits import Failure, Reply, Request
from gossamer.world.clock import Clock


class HttpModule:
    """`ports.ProtocolModule` for http and https: h1, and h2 where TLS negotiates it.

    One call sends at most one request, to `Request.ip` and nowhere else, with the URL byte for byte as written.
    Connections are kept per host and address. Bodies stay as sent: chunks are joined, content codings are not
    removed. A reply whose body exceeds a bound or its time is cut and marked; all else that goes wrong is a `Failure`,
    with what had come where the server broke off within the body.
    Needs a running loop from the first fetch to `close`; one slow server holds up nobody else. A page over a kept
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
