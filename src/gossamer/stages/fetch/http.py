"""HTTP: the protocol module for http and https, over libcurl, and the exact bytes of its requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import pycurl
from msgspec.structs import replace

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Reply, Request, content_type
from gossamer.stages.fetch.bodies import BodyMemory, read_as
from gossamer.stages.fetch.certificates import ca_file, check_trusted
from gossamer.stages.fetch.connections import End
from gossamer.stages.fetch.credentials import REDACTED, is_credential
from gossamer.stages.fetch.entire import is_whole
from gossamer.stages.fetch.headers import Head, parse_head
from gossamer.stages.fetch.options import FetchOptions, Route
from gossamer.stages.fetch.repeats import Repeats, note
from gossamer.stages.fetch.settings import Setting, permit_legacy_servers
from gossamer.stages.fetch.tolerant import TolerantTransfer
from gossamer.stages.fetch.transfer import WITH_BODY, Transfer
from gossamer.stages.fetch.transfers import (
    NO_STATUS_LINE,
    NOT_LET_IN,
    RouteHealth,
    Transfers,
    cut,
    cut_reason,
    is_h2_failure,
    is_silent,
    is_stream_failure,
)
from gossamer.world.clock import Clock

if TYPE_CHECKING:
    from gossamer.stages.fetch.rules import RequestRules, Rule

PARTIAL_CONTENT: Final = 206
PROXY_LOGIN_REQUIRED: Final = 407
_CLOSE: Final = b"Connection: close"
NO_ROUTE: Final = Route()  # That of the configuration.
ROUTES_MAX: Final = 256  # Whose connections are kept.
SUPPRESS_CONNECT_HEADERS: Final = 265
"""CURLOPT_SUPPRESS_CONNECT_HEADERS(3), which pycurl does not name. Without it the head of a proxy's reply to CONNECT
would be taken for that of the server's reply."""
LENGTH_HEADER: Final = b"Content-Length: %d\r\n\r\n"
"""Header that libcurl adds to a request with a body."""

# Printable ASCII only; [!"$-.0->@-~] is all of it except / ? #.
_ADDRESS = re.compile(
    r"""https?://(?>(?:[!"$-.0->@-~]*@)?)([!"$-.0->@-~]++)([!"$-~]*+)(?:\#[!-~]*)?\Z""", re.IGNORECASE
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE = re.compile(r"[!-~\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[!-~\x80-\xff])?\Z|\Z")
_RANGE = re.compile(r"bytes 0-([0-9]{1,18})/([0-9]{1,18})")
_RESERVED: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})


class Address(NamedTuple):
    """The two parts of a URL that are sent: `Host` and the request target, both as written."""

    authority: str
    target: str


class Headers(NamedTuple):
    """Header lines in two forms: for libcurl, and for the archive, as sent but with credentials redacted."""

    lines: list[bytes]
    sent: bytes
    """The lines as bytes, including the empty line at the end."""

    def and_lines(self, lines: list[bytes]) -> Headers:
        """Return these headers with further lines, none of them secret or empty."""
        return Headers([*self.lines, *lines], self.sent[:-2] + b"\r\n".join([*lines, b"", b""]))

    def as_sent(self) -> Headers:
        """Return these headers with nothing redacted."""
        lines = [line[:-1] + b":" if line.endswith(b";") and b":" not in line else line for line in self.lines]
        return Headers(self.lines, b"\r\n".join([*lines, b"", b""]))


Sign = Callable[[str, str, str, str], tuple[tuple[str, str], ...]]
"""Returns the headers that sign a request, by its method, scheme, authority and target."""


def address(url: str) -> Address | None:
    """Split an http or https URL; None if it cannot be sent as written. Credentials and fragment are dropped."""
    match = _ADDRESS.match(url)
    if match is None:
        return None
    authority, target = match.groups()
    return Address(authority, target if target.startswith("/") else "/" + target)


def request_head(at: Address, http_version: str, headers: Headers, request: Request) -> bytes:
    """Write the request as libcurl sends it: Host first, then the header lines in their order.

    libcurl could report the request itself, but with a callback for every piece of data in both directions. For h2 the
    lines represent the pseudo-headers.
    """
    version = "2" if http_version == "2" else "1.1"
    line = f"{request.method} {at.target} HTTP/{version}\r\nHost: {at.authority}\r\n".encode("ascii")
    has_body = request.body or request.method in WITH_BODY
    return line + (headers.sent[:-2] + LENGTH_HEADER % len(request.body) if has_body else headers.sent)


def own_headers(options: FetchOptions, agent: str, more: Iterable[tuple[str, str]] = ()) -> tuple[tuple[str, str], ...]:
    """Return the headers of every request; with `more`, those of every request by one rule. Raises ConfigError: a
    header cannot be sent.
    """
    own = {"User-Agent": agent, "Accept": options.accept}
    if options.accept_language:
        own["Accept-Language"] = options.accept_language
    own["Accept-Encoding"] = ", ".join(options.content_codings) or "identity"
    more = tuple(more)
    given = replace_headers(options.headers.items(), more)
    for name, value in (*own.items(), *given):
        if not sendable(name, value):
            what = repr(name) if (name, value) in more else f"{name!r}: {value!r}"
            raise ConfigError(f"header {what} cannot be sent; use one line of latin-1, and no {_RESERVED_TEXT}")
    return replace_headers(own.items(), given)


_RESERVED_TEXT: Final = ", ".join(sorted(_RESERVED))


def replace_headers(headers: Iterable[tuple[str, str]], by: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return `headers` and `by`; for names in both, only those of `by`."""
    by = tuple(by)
    names = {name.lower() for name, _ in by}
    return (*(header for header in headers if header[0].lower() not in names), *by)


def sendable(name: str, value: str) -> bool:
    """Return whether a header can be sent as it is, and is not one that libcurl sets."""
    return _NAME.match(name) is not None and _VALUE.match(value) is not None and name.lower() not in _RESERVED


def compose(headers: Iterable[tuple[str, str]], secret: Container[str] = ()) -> Headers:
    """Return headers in both forms, with the values of `secret` ones redacted for the archive.

    CURLOPT_HTTPHEADER(3): "Name:" would remove a header, "Name;" sends it empty.
    """
    headers = tuple(headers)
    lines = [(f"{name}: {value}" if value else f"{name};").encode("latin-1") for name, value in headers]
    shown = [(name, REDACTED if name in secret else value) for name, value in headers]
    sent = [(f"{name}: {value}" if value else f"{name}:").encode("latin-1") for name, value in shown]
    return Headers(lines, b"\r\n".join([*sent, b"", b""]))


class HttpModule:
    """`ports.ProtocolModule` for http and https: h1, and h2 where TLS negotiates it and the host's h2 has not failed.

    One call sends at most one request, to `Request.ip` and nowhere else, with the URL byte for byte as written.
    Connections are kept per host and address. Bodies stay as sent: chunks are joined, content codings are not removed.
    A reply whose body exceeds a bound or its time is cut and marked; any other error is a `Failure`, with the partial
    reply if the connection broke within the body. Needs a running loop from the first fetch to `close`; a slow server
    does not delay others. A page over a kept connection costs at most 1.5 times what libcurl and its asyncio binding
    take (benchmarks/bench_fetch.py).
    """

    def __init__(
        self,
        options: FetchOptions,
        agent: str,
        clock: Clock,
        bodies: BodyMemory | None = None,
        sign: Sign | None = None,
        rules: RequestRules | None = None,
    ) -> None:
        """`agent` is the User-Agent header; `sign` returns headers that sign a request; None: requests are not signed.
        Raises ConfigError: a header cannot be sent, or a file cannot be read.
        """
        check_trusted(options)
        if options.tls_legacy_renegotiation:
            permit_legacy_servers()
        self._sign = sign
        self._options = options
        self._agent = agent
        self._clock = clock
        self._bodies = bodies or BodyMemory(options)
        self._rules = rules
        self._digests = rules.digests if rules is not None else None
        self._common = _own(options, agent)
        self._by_rule: dict[Rule | None, _Own] = {None: self._common}
        for rule in rules or ():
            self._by_rule[rule] = _own(options, agent, rule)
        self._routes: dict[str, RouteHealth] = {}
        """By proxy that was used, empty for none."""
        self._transfers = self._connections_of(None)
        self._by_route: dict[Route, Transfers] = {}
        self._tolerant: dict[Route | None, Transfers] = {}
        self._repeats = Repeats()
        self._h1_only: dict[str, bool] = {}
        self._h2_works: dict[str, bool] = {}
        """By host: whether a reply has come over HTTP/2; False after a first stream that was reset."""

    async def fetch(self, request: Request) -> Reply | Failure:
        """Send one request and return the result. Cancelling it ends the transfer and its connection."""
        assert request.ip, "a request without a checked address"
        started_at = self._clock.now()
        at = address(request.url)
        if at is None:  # libcurl would guess what is meant
            return self._transfers.ours(request, started_at, "unsupported", "no URL that can be sent as written")
        if self._rules is not None and (rule := self._rules.of(request.url)) is not None:
            if rule.digest is None or self._digests is None:
                return await self._fetch_by(rule, request, started_at)
            async with self._digests.turn(request.url):
                return await self._fetch_by(rule, request, started_at)
        headers = self._common.with_(request.headers) if request.headers else self._common.headers
        transfers = self._transfers_by(NO_ROUTE, request.proxy) if request.proxy else self._transfers
        return await self._send(transfers, request, started_at, at, headers)

    async def close(self) -> None:
        """Close all connections. Fetches in flight end with a `Failure`."""
        for transfers in (self._transfers, *self._by_route.values(), *self._tolerant.values()):
            await transfers.close()

    async def _fetch_by(self, rule: Rule, request: Request, started_at: float) -> Reply | Failure:
        """Send a request by a rule. Query parameters that the rule adds do not appear in the reply."""
        own = self._by_rule.get(rule)
        if own is None:
            own = self._by_rule[rule] = _own(self._options, self._agent, rule)
        url = rule.add_query(request.url)
        target = address(url)
        shown = address(rule.add_query(request.url, shown=REDACTED))
        assert target is not None
        assert shown is not None
        extra = request.headers
        answer = ""
        if rule.digest is not None and self._digests is not None:
            answer = self._digests.answer(request.url, target.target, rule.digest, request.method)
            extra += (("Authorization", answer),) if answer else ()
        headers = own.with_(extra) if extra else own.headers
        transfers = self._transfers_by(rule.route, request.proxy)
        result = await self._send(transfers, request, started_at, target, headers, url, shown)
        reply = result.came if isinstance(result, Failure) else result
        if reply is None:
            return result
        again = False
        if rule.digest is not None and self._digests is not None:
            again = self._digests.handle_reply(request.url, reply, answer)
        reply = msgspec.structs.replace(
            reply,
            headers=tuple((name, rule.strip(value)) for name, value in reply.headers) if rule.query else reply.headers,
            authenticated=reply.authenticated or rule.authenticates,
            challenged=again,
        )
        return msgspec.structs.replace(result, came=reply) if isinstance(result, Failure) else reply

    async def _send(
        self,
        transfers: Transfers,
        request: Request,
        started_at: float,
        at: Address,
        headers: Headers,
        url: str = "",
        shown: Address | None = None,
    ) -> Reply | Failure:
        """Send a request to `at`; `url` is passed to libcurl, and `shown` archived, if they differ."""
        if self._sign is not None:
            signed = self._sign(request.method, request.url.partition(":")[0].lower(), *at)
            headers = headers.and_lines([f"{name}: {value}".encode("latin-1") for name, value in signed])
        is_repeat = self._repeats.is_next(request.url)
        if is_repeat or self._repeats.needs_new(at.authority):
            request = replace(request, fresh=True)
        is_tolerant = self._repeats.needs_tolerance(at.authority)
        if is_tolerant:
            transfers = self._tolerant_ones(transfers)
            headers = headers.and_lines([_CLOSE])
        transfer = transfers.take(started_at)
        route = self._health(transfer.proxy)
        if route.closes and not transfer.is_tunnelled(request.url):
            request = replace(request, fresh=True)
        if is_tolerant:
            assert isinstance(transfer, TolerantTransfer)
            transfer.request_bytes = request_head(at, "1.1", headers.as_sent(), request) + request.body
        transfer.aim(request, _lines(headers, request), request.body_bytes_max or self._options.body_bytes_max, url)
        transfer.ask_for(at.target)
        transfer.use_h1(at.authority in self._h1_only)
        end = await transfers.run(transfer)
        if isinstance(end, Failure):
            return end
        is_entire = is_whole(transfer, end)
        self._note_h2(transfer, at.authority, end, is_entire=is_entire)
        if transfer.stopped == "resend" and not transfer.is_tunnelled(request.url):
            route.note_close()
        result = _result(transfer, shown or at, headers, end, is_entire=is_entire)
        if isinstance(result, Failure):
            result = self._repeats.judge(transfer, at.authority, result, end, is_repeat=is_repeat)
        else:
            result = self._repeats.judge_reply(transfer, at.authority, result, is_repeat=is_repeat)
        if is_tolerant:
            result = replace(result, fetch_s=self._clock.now() - started_at)
        result = transfers.finish(transfer, result)
        tunnelled = transfer.is_tunnelled(request.url)
        result = route.judge(at.authority, result, tunnelled=tunnelled, untried=request.untried)
        if isinstance(result, Failure):
            others_pass = result.by_proxy and any(route.passes for route in self._routes.values())
            return msgspec.structs.replace(result, others_pass=True) if others_pass else result
        if result.http_version == "2":
            note(self._h2_works, at.authority, True)
        return result

    def _transfers_by(self, route: Route, proxy: str) -> Transfers:
        """Return the transfers of a route. `proxy` takes the place of its own one, if given."""
        route = route._replace(proxy=proxy) if proxy else route
        transfers = self._transfers if route == NO_ROUTE else self._by_route.get(route)
        if transfers is None:
            assert len(self._by_route) < ROUTES_MAX, "requests go through too many proxies"
            transfers = self._by_route[route] = self._connections_of(route)
        return transfers

    def _health(self, proxy: str) -> RouteHealth:
        found = self._routes.get(proxy)
        if found is None:
            found = self._routes[proxy] = RouteHealth(proxy, self._routes.values())
        return found

    def _tolerant_ones(self, transfers: Transfers) -> Transfers:
        route = next((route for route, known in self._by_route.items() if known is transfers), None)
        found = self._tolerant.get(route)
        if found is None:
            found = self._tolerant[route] = self._connections_of(route, TolerantTransfer)
        return found

    def _note_h2(self, transfer: Transfer, authority: str, end: End, *, is_entire: bool) -> None:
        """Send later requests to a host over HTTP/1.1 if its HTTP/2 does not work. Where it has worked, silence or a
        reset stream is no reason, and elsewhere only the second reset: the server may not speak HTTP/1.1. A refusal on
        a new connection is one: some pages require HTTP/1.1 (RFC 9113, section 7), and libcurl does not tell why.
        """
        if is_entire or not is_h2_failure(transfer, end):
            return
        of_stream = is_stream_failure(transfer, end)
        works = self._h2_works.get(authority)
        if of_stream and works is None:
            note(self._h2_works, authority, False)
        elif transfer.was_refused or not (works and (of_stream or is_silent(transfer, end))):
            note(self._h1_only, authority, True)

    def _connections_of(self, route: Route | None, kind: type[Transfer] = Transfer) -> Transfers:
        """Return the connections for a route, which are not shared with other routes."""
        options = self._options
        settings = _settings(options)
        proxy = options.proxy
        if route is not None:
            if route.certificate:
                key = route.certificate_key or route.certificate
                settings += [(pycurl.SSLCERT, route.certificate), (pycurl.SSLKEY, key)]
            proxy = route.proxy or proxy
        if proxy:
            if options.proxy_resolves and proxy.startswith("socks5:"):  # In libcurl's notation.
                proxy = f"socks5h{proxy[len('socks5') :]}"
            options = replace(options, proxy=proxy)
        return Transfers(options, self._clock, lambda: kind(options, settings, self._bodies))


def _lines(headers: Headers, request: Request) -> list[bytes]:
    """Return the header lines for libcurl, which would send the type of a form with a body without a type."""
    has_body = request.body or request.method in WITH_BODY
    if has_body and not any(line[:13].lower() == b"content-type:" for line in headers.lines):
        return [*headers.lines, b"Content-Type:"]
    return headers.lines


class _Own(NamedTuple):
    """The headers that every request has, or every request by one rule."""

    fields: tuple[tuple[str, str], ...]
    secret: frozenset[str]
    """Names of the headers that carry credentials."""
    headers: Headers

    def with_(self, extra: tuple[tuple[str, str], ...]) -> Headers:
        """Add a request's headers; they replace ours with the same name."""
        assert all(sendable(name, value) for name, value in extra), "headers that cannot be sent"
        more = [name for name, _ in extra if is_credential(name)]
        return compose(replace_headers(self.fields, extra), self.secret.union(more) if more else self.secret)


def _own(options: FetchOptions, agent: str, rule: Rule | None = None) -> _Own:
    fields = own_headers(options, agent, rule.headers if rule is not None else ())
    secret = frozenset(name for name, _ in fields if is_credential(name))
    if rule is not None:
        secret |= rule.secret
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
        (SUPPRESS_CONNECT_HEADERS, 1),
        (pycurl.PROXY_CAINFO, ca_file(options)),
    ]


def _result(transfer: Transfer, at: Address, headers: Headers, end: End, *, is_entire: bool) -> Reply | Failure:
    truncated = "" if is_entire else cut(transfer, end)
    if isinstance(truncated, Failure):
        breach = cut_reason(transfer, end)
        came = _reply(transfer, at, headers, breach) if breach else None
        # A host that has begun an answer answers: what breaks it off is of the URL, such as the size of the body.
        return truncated if came is None else msgspec.structs.replace(truncated, came=came, host_level=False)
    reply = _reply(transfer, at, headers, truncated)
    if reply is None:
        return transfer.failure("protocol_error", NO_STATUS_LINE)
    if reply.status == PROXY_LOGIN_REQUIRED and not (transfer.pinned or transfer.speaks_tls):  # From the proxy itself.
        return replace(transfer.failure("connect_error", NOT_LET_IN, retry=True, host_level=True), by_proxy=True)
    if 200 <= reply.status < 300 and transfer.head_is_cut:  # For a redirect the cut head may be enough.
        return transfer.failure("protocol_error", "the connection was closed within the head of the reply", retry=True)
    return reply


def _reply(transfer: Transfer, at: Address, headers: Headers, truncated: str) -> Reply | None:
    """Return the reply; None if there is no status line."""
    request = transfer.request
    head = parse_head(transfer.head)
    if head is None:
        return None
    media_type, charset = content_type(head.headers)
    body = transfer.whole_body(truncated)
    if head.status == PARTIAL_CONTENT and not _is_of_all(head):
        truncated = truncated or "unspecified"
    return Reply(
        url=request.url,
        status=head.status,
        headers=head.headers,
        body=body,
        ip=request.ip,
        started_at=transfer.started_at,
        fetch_s=transfer.fetch_s,
        wire_bytes=transfer.wire_bytes,
        http_version=head.http_version,
        reason=head.reason,
        request_head=request_head(at, head.http_version, headers, request),
        request_body=request.body,
        truncated=truncated,
        head=transfer.raw_head if isinstance(transfer, TolerantTransfer) else b"",
        media_type=read_as(media_type, head.headers, body, transfer.file, request.url),
        charset=charset,
        file=transfer.file,
        authenticated=any(is_credential(name) for name, _ in request.headers) if request.headers else False,
    )


def _is_of_all(head: Head) -> bool:
    """Return whether a 206, which servers send unasked too, has the whole content (RFC 9110, section 14.4). One that
    names no range is a 200 by another number.
    """
    ranges = [_RANGE.fullmatch(value.strip()) for name, value in head.headers if name.lower() == "content-range"]
    if not ranges:
        return content_type(head.headers)[0] != "multipart/byteranges"
    return len(ranges) == 1 and ranges[0] is not None and int(ranges[0][1]) + 1 == int(ranges[0][2])
