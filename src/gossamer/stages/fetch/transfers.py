"""Transfers: runs transfers over kept connections, and translates libcurl's errors (curl/curl.h, libcurl-errors(3))."""

from __future__ import annotations

import asyncio
import errno
import os
import re
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
import pycurl

from gossamer.model.visits import Failure, Reply, Request
from gossamer.stages.fetch.connections import End
from gossamer.stages.fetch.driver import LAG_BYTES_S, LAG_S, Driver
from gossamer.stages.fetch.headers import parse_head
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.fetch.transfer import Transfer
from gossamer.world.clock import Clock

CURLE_PROXY: Final = 97
_H2_STREAM: Final = 92
"""CURLE_HTTP2_STREAM."""
# By code: outcome, whether to retry, whether it concerns the host.
_MEANING: Final[dict[int, tuple[str, bool, bool]]] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: ("protocol_error", False, False),  # HTTP/0.9, or an unknown version
    pycurl.E_URL_MALFORMAT: ("unsupported", False, False),
    pycurl.E_LOGIN_DENIED: ("unsupported", False, False),
    pycurl.E_COULDNT_RESOLVE_PROXY: ("connect_error", True, True),
    pycurl.E_COULDNT_CONNECT: ("connect_error", True, True),
    pycurl.E_FTP_WEIRD_SERVER_REPLY: ("protocol_error", False, False),  # 8, for HTTP too
    pycurl.E_OPERATION_TIMEDOUT: ("timeout", True, True),
    pycurl.E_SSL_CONNECT_ERROR: ("tls_error", True, True),
    pycurl.E_INTERFACE_FAILED: ("connect_error", True, True),
    pycurl.E_GOT_NOTHING: ("protocol_error", True, True),
    pycurl.E_SEND_ERROR: ("connect_error", True, True),
    pycurl.E_RECV_ERROR: ("connect_error", True, True),
    pycurl.E_SSL_CERTPROBLEM: ("tls_error", False, True),
    pycurl.E_SSL_CIPHER: ("tls_error", False, True),
    pycurl.E_PEER_FAILED_VERIFICATION: ("tls_error", False, True),
    pycurl.E_BAD_CONTENT_ENCODING: ("protocol_error", False, False),
    pycurl.E_SSL_ISSUER_ERROR: ("tls_error", False, True),
    pycurl.E_SSL_INVALIDCERTSTATUS: ("tls_error", False, True),
    CURLE_PROXY: ("connect_error", True, True),
    100: ("too_large", False, False),  # CURLE_TOO_LARGE: one header line beyond 100 KB
    # The following errors are internal: with pinned addresses there is no name to resolve.
    pycurl.E_COULDNT_RESOLVE_HOST: ("internal_error", False, False),
    pycurl.E_FAILED_INIT: ("internal_error", False, False),
    pycurl.E_BAD_FUNCTION_ARGUMENT: ("internal_error", False, False),
    pycurl.E_OUT_OF_MEMORY: ("internal_error", True, False),
    pycurl.E_SSL_CACERT_BADFILE: ("internal_error", False, False),
    pycurl.E_WRITE_ERROR: ("internal_error", False, False),
    pycurl.E_ABORTED_BY_CALLBACK: ("internal_error", False, False),
}

_H2_CODES: Final = frozenset({pycurl.E_HTTP2, _H2_STREAM})
_H2_WORDS: Final = ("nghttp2 ", "[HTTP2] ")
"""Beginnings of HTTP/2 errors with another code."""
_BROKEN_H2: Final = ("Invalid HTTP header field was received", "received invalid frame")
"""nghttp2's errors for a reply that breaks the rules of HTTP/2 (RFC 9113, section 8.1.1)."""
_LOST: Final = frozenset({pycurl.E_PARTIAL_FILE, pycurl.E_RECV_ERROR, *_H2_CODES})
_SILENT: Final[dict[int, str]] = {
    pycurl.E_HTTP2: "the server closed the connection over HTTP/2 without an answer",
    100: "a header line exceeds 100 KB",
}
"""Texts for codes without a text by libcurl."""
_NOT_TLS: Final = ("wrong version number", "packet length too long", "unknown protocol", "record layer failure")
"""OpenSSL's errors for a server that answers a TLS handshake in another protocol."""
_ALERT = re.compile(r" alert ((?:bad |unsupported |no )?certificate(?: \w+)?|unknown ca)\b")
"""Matches OpenSSL's errors for alerts with which a server refuses a client certificate, or the lack of one."""
_EXPIRED: Final = "SSL certificate verification failed"
"""libcurl's error for such an alert within the handshake, if the certificate has expired."""
_HTTP_BEHIND = re.compile(rb"1\.[01] \d{3}|TYPE html", re.IGNORECASE)
"""Matches the text after the five bytes `HTTP/` or `<!DOC`, which OpenSSL has read as the header of a record."""
_UNCLOSED: Final = "unexpected eof while reading"
"""OpenSSL's error if a connection ends without TLS's final alert (close_notify)."""
_RESET: Final = os.strerror(errno.ECONNRESET)
_NO_RFC5746: Final = "unsafe legacy renegotiation disabled"
"""OpenSSL's error for a server without secure renegotiation."""
_PERMITS: Final = (
    "the server does not know secure renegotiation (RFC 5746); fetch.tls_legacy_renegotiation = true permits it, "
    "with pycurl from its wheel"
)
NO_STATUS_LINE: Final = "the reply has no status line"
_NOT_HTTP: Final = "Received HTTP/0.9"
NOT_LET_IN: Final = "the proxy did not accept the user name and password (HTTP 407)"
_BY_SOCKS: Final = "cannot complete SOCKS"
"""In libcurl's error for a SOCKS proxy that answers, and does not reach the host."""
_SOCKS_REPLY = re.compile(r"cannot complete SOCKS5 connection to (.+)\. \(([1-8])\)")
_SOCKS_REPLIES: Final = (
    "", "general failure", "its rules forbid it", "network unreachable", "host unreachable", "connection refused",
    "time to live expired", "it knows no such command", "it knows no such kind of address",
)  # fmt: skip
"""Meanings of the replies of a SOCKS5 proxy (RFC 1928, section 6), by their number."""
_SOCKS_SAYS: Final = {
    "User was rejected": "the proxy did not accept the user name and password (SOCKS5)",
    "No authentication method": "the proxy accepts none of the ways to log in that were offered; it may demand a user "
    "name and password (SOCKS5)",
    "Received invalid version": "the proxy does not speak SOCKS5 on this port",
}
"""Texts for libcurl's errors about a SOCKS5 proxy, by their beginnings."""
_NOT_CONNECTED: Final = ("Failed to connect to ", "Connection timed out", "Resolving timed out")
_OVER_PROXY = re.compile(r"^Failed to connect to \S+ over proxy \S+")
_GREETING: Final = frozenset({"https", "socks5", "socks5h"})
"""Schemes of proxies that answer before they turn to the host."""
_NO_TUNNEL: Final = "CONNECT tunnel failed, response 407"
"""libcurl's error for a proxy that demands authentication."""
_UNKNOWN: Final = ("protocol_error", True, False)
_OURS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})
"""Causes of a failed connection on this machine, for which no host is blamed."""


def translate(code: int, text: str, os_errno: int = 0, greeting: bytes = b"") -> tuple[str, str, bool, bool]:
    """Translate a libcurl error: return outcome, error, whether to retry, and whether it concerns the host. A code that
    is not in the table is a protocol error, which is retried.

    `greeting` is what the server sent and the failed handshake did not read.
    """
    outcome, retry, host_level = _MEANING.get(code, _UNKNOWN)
    if outcome == "tls_error" and any(words in text for words in _NOT_TLS):
        retry = False
        is_http = _HTTP_BEHIND.match(greeting) is not None
        speaks = "speaks plain HTTP on this port, not TLS" if is_http else "does not speak TLS on this port"
        text = f"the server {speaks} ({text.rpartition(':')[2]})"
    elif (alert := _ALERT.search(text)) or text == _EXPIRED:
        outcome = "tls_error"
        retry = False
        host_level = True
        said = alert[1] if alert else "certificate expired"
        text = f"the server does not accept the client certificate ({said})"
        if said in ("certificate required", "no certificate"):
            text = "the server demands a client certificate (request: certificate)"
    elif _NO_RFC5746 in text:
        retry = False
        text = f"{_NO_RFC5746}: {_PERMITS}"
    elif text.startswith(_NOT_HTTP):
        text = "the server does not speak HTTP on this port: the reply has no status line"
    elif _NO_TUNNEL in text:
        text = NOT_LET_IN
    elif code == CURLE_PROXY:
        text = _by_socks(text)
    elif _UNCLOSED in text:
        text = "the server closed the connection " + ("within the TLS handshake" if outcome == "tls_error" else "early")
    if is_ill_chunked(code, text):
        outcome = "protocol_error"
        host_level = False
    if outcome == "connect_error" and os_errno in _OURS:
        outcome = "internal_error"
        retry = True
        host_level = False
        text = f"{errno.errorcode[os_errno]} on this machine: {text}"
    return outcome, one_line(text) or _SILENT.get(code, f"libcurl error {code}"), retry, host_level


def _by_socks(text: str) -> str:
    """Return an error about a SOCKS proxy in plain words."""
    if reply := _SOCKS_REPLY.fullmatch(text):
        return f"the proxy does not reach {reply[1]}: {_SOCKS_REPLIES[int(reply[2])]} (SOCKS5)"
    return next((says for beginning, says in _SOCKS_SAYS.items() if text.startswith(beginning)), text.rstrip("."))


def is_h2_failure(transfer: Transfer, end: End) -> bool:
    """Return whether a transfer failed because of HTTP/2: its server breaks the protocol, resets the stream, refuses
    the request on a new connection, or resets a new connection; or may have, as the server is silent.
    """
    code, text = end
    if transfer.stopped or code == pycurl.E_OPERATION_TIMEDOUT:
        return transfer.was_refused or transfer.stopped == "h2" or is_silent(transfer, end)
    if is_reset(end):
        return not transfer.head and bool(transfer.curl.getinfo(pycurl.APPCONNECT_TIME))
    return code in _H2_CODES or (bool(code) and text.startswith(_H2_WORDS))


def is_silent(transfer: Transfer, end: End) -> bool:
    """Return whether a server said nothing after the handshake of TLS, as one does that opens no stream of HTTP/2."""
    waited = transfer.stopped in ("slow", "unanswered") or end.code == pycurl.E_OPERATION_TIMEDOUT
    return waited and not transfer.head and bool(transfer.curl.getinfo(pycurl.APPCONNECT_TIME))


def is_stream_failure(transfer: Transfer, end: End) -> bool:
    """Return whether an HTTP/2 failure concerns one request, which may be repeated: its stream was reset or refused."""
    if transfer.was_refused:
        return True
    return end.code == _H2_STREAM and "PROTOCOL_ERROR" not in end.text and not breaks_h2(end)


def breaks_h2(end: End) -> bool:
    """Return whether a reply only breaks the rules of HTTP/2, such as one with `Upgrade: h2,h2c`.
    Over HTTP/1.1 the same reply is fine.
    """
    return bool(end.code) and any(words in end.text for words in _BROKEN_H2)


def is_unclosed(end: End) -> bool:
    """Return whether the only error is that TLS did not end before its connection."""
    return end.code == pycurl.E_RECV_ERROR and _UNCLOSED in end.text


def is_reset(end: End) -> bool:
    """Return whether the only error is that the server reset the connection."""
    return end.code == pycurl.E_RECV_ERROR and _RESET in end.text  # OS_ERRNO may be that of a later call.


def is_partial(end: End) -> bool:
    """Return whether the only error is that the body is shorter than its length or its chunks say."""
    return bool(end.code == pycurl.E_PARTIAL_FILE)


def breach(code: int, text: str) -> str:
    """Return why a body that had begun was cut (`Reply.truncated`)."""
    return "disconnect" if code in _LOST and not is_ill_chunked(code, text) else "unspecified"


def is_ill_chunked(code: int, text: str) -> bool:
    """Return whether the only error is in the chunks of a body."""
    return code == pycurl.E_RECV_ERROR and "chunk" in text  # One code for these and for lost connections.


def one_line(text: str) -> str:
    """Return an error as one bounded line: people read it, and servers write parts of it."""
    return " ".join(text.split())[:300]


_IDLE_HANDLES_MAX: Final = 256
_GRACE_S: Final = 5.0
"""libcurl enforces the time limits itself; this is an additional margin until we do."""


class Transfers:
    """Runs transfers, each to its end or its deadline. `take` → aim → `run` → read the answer → `finish`."""

    def __init__(self, options: FetchOptions, clock: Clock, make: Callable[[], Transfer]) -> None:
        self._clock = clock
        self._make = make
        self._deadline_s = options.request_s_max + _GRACE_S
        self._idle: list[Transfer] = []
        self._driver = Driver(options)

    def take(self, started_at: float) -> Transfer:
        """Return a free transfer for a request that begins at `started_at`; prepare it with `aim`."""
        assert not self._driver.closed, "fetch after close"
        transfer = self._idle.pop() if self._idle else self._make()
        transfer.started_at = started_at
        return transfer

    async def run(self, transfer: Transfer) -> End | Failure:
        """Run a transfer. After a `Failure`, and when cancelled, the caller must not use it any more."""
        try:
            end = await self._driver.start(transfer, self._deadline_s)
        except TimeoutError:
            self._drop(transfer)
            error = "libcurl missed its own deadline"
            failure = self.ours(transfer.request, transfer.started_at, "internal_error", error)
            return msgspec.structs.replace(failure, wire_bytes=transfer.wire_bytes)
        except asyncio.CancelledError:
            closed = self._driver.closed
            self._drop(transfer)
            if closed and not ((task := asyncio.current_task()) and task.cancelling()):
                error = "closed while it was fetched"
                return self.ours(transfer.request, transfer.started_at, "internal_error", error)
            raise
        if transfer.file is not None:
            transfer.flush()
        transfer.ended_well, transfer.head_is_cut = not end.code, transfer.ends_within_head()
        return end

    def finish(self, transfer: Transfer, result: Reply | Failure) -> Reply | Failure:
        """Release a transfer whose result was read, and return the result."""
        if isinstance(result, Failure):
            result = msgspec.structs.replace(result, wire_bytes=transfer.wire_bytes)
        # libcurl 8.23 prepends the rest of an incomplete head to the next reply, perhaps of another host.
        is_clean = transfer.ended_well and not transfer.head_is_cut
        transfer.forget()
        if is_clean and len(self._idle) < _IDLE_HANDLES_MAX and not self._driver.closed:
            self._idle.append(transfer)
        else:
            transfer.close()
        return result

    def ours(self, request: Request, started_at: float, outcome: str, error: str) -> Failure:
        """Return a `Failure` for a reason of ours."""
        fetch_s = self._clock.now() - started_at
        return Failure(outcome, error, ip=request.ip, started_at=started_at, fetch_s=fetch_s)

    async def close(self) -> None:
        """Close all connections. Transfers in flight end with a `Failure`."""
        self._driver.close()
        while self._idle:
            self._idle.pop().close()

    def _drop(self, transfer: Transfer) -> None:
        self._driver.drop(transfer)
        transfer.close()


def cut(transfer: Transfer, end: End) -> str | Failure:
    """Return why the body was cut (`Reply.truncated`; empty: it was not), or why there is no reply."""
    code, text = end
    if transfer.disk_error is not None:
        raise transfer.disk_error  # Not an error of the web.
    if not code or transfer.stopped == "whole":
        return ""
    if transfer.stopped == "length":
        return "length"
    if transfer.stopped == "media_type":
        return "unspecified"
    head = None if transfer.head_is_cut else parse_head(transfer.head)
    is_redirect = head is not None and head.is_redirect
    if transfer.stopped == "slow" and (transfer.body_bytes or is_redirect):
        return "time"
    if transfer.stopped:
        return _stop_failure(transfer)
    if code == pycurl.E_OPERATION_TIMEDOUT and (transfer.body_bytes or is_redirect):
        return "time"
    if is_redirect and (is_partial(end) or is_reset(end) or is_unclosed(end)):
        return "disconnect"
    failed = transfer.failure(*translate(code, text, transfer.curl.getinfo(pycurl.OS_ERRNO), transfer.greeting))
    if failed.outcome == "internal_error" or not _is_of_proxy(transfer, failed.outcome, code, text):
        return failed
    return msgspec.structs.replace(failed, by_proxy=True, error=_of_proxy(failed.error, transfer.proxy))


SILENT_HOSTS_MIN: Final = 5
"""Hosts that answered through a proxy and no longer do, none of them in between, after which it is to blame."""
UNREACHED_HOSTS_MIN: Final = 2
"""Hosts after which a proxy is to blame through which none has ever answered, while another proxy passes."""
GATEWAY_STATUSES: Final = frozenset({502, 504})
"""Statuses of a proxy that does not reach the host. 503 may also be the host's own request to wait."""
_UNTUNNELLED: Final = ("CONNECT tunnel failed", "Proxy CONNECT aborted")
"""Beginnings of libcurl's errors about a proxy that opens no tunnel."""
ROUTE_HOSTS_MAX: Final = 10_000
CLOSED_MIN: Final = 3
"""Requests that a proxy left without an answer when it closed a kept connection, after which it gets a new one for each
request. All hosts share its connections, so the next request often goes out before its closing is noticed."""


class RouteHealth:
    """Whether requests get through a proxy, or without one.

    A proxy that accepts requests and answers none is as silent as one that looks for a dead host. It is to blame when
    hosts that answered through it before are silent, several in a row and no byte comes for any other. So is one that
    answers for them itself, and one through which no host ever answered while others answer, or may answer, through
    another proxy.
    """

    def __init__(self, proxy: str, routes: Iterable[RouteHealth] = ()) -> None:
        """`routes` are all that there are."""
        self._proxy = proxy
        self._routes = routes
        self.answered: dict[str, None] = {}
        """Recent hosts that answered."""
        self._failed: set[str] = set()
        """Hosts that answered before and are silent since the last byte; before the first answer, hosts not reached."""
        self.passes = True
        """Whether the last request got through."""
        self._closed = 0

    @property
    def closes(self) -> bool:
        """Whether the proxy closes kept connections without a word."""
        return self._closed >= CLOSED_MIN

    def note_close(self) -> None:
        """Note that a kept connection was closed without an answer."""
        self._closed += bool(self._proxy)

    def judge(
        self, authority: str, result: Reply | Failure, *, tunnelled: bool = True, untried: bool = False
    ) -> Reply | Failure:
        """Note the result of a request; return it, or the same failure blamed on the proxy. Where a request is not
        `tunnelled`, a reply may be the proxy's own. `untried`: the site has not been requested through all others, so
        the first failure of one that has reached no host has the next one try.
        """
        if not self._proxy:
            return result
        untried = untried and not self.answered
        if isinstance(result, Reply):
            is_error = untried and result.status >= 500 and result.header("retry-after") is None
            says_so = is_error or result.status in GATEWAY_STATUSES
            is_silent = says_so and not tunnelled and result.file is None
        else:
            is_silent = result.error.startswith(_UNTUNNELLED) or (result.outcome == "timeout" and not result.wire_bytes)
        is_to_blame = False
        if isinstance(result, Reply) and not is_silent:
            self._note_answer(authority)
        elif not self.answered:
            is_to_blame = self._reaches_no_host(authority) or untried
        elif is_silent:
            is_to_blame = self._fell_silent(authority)
        elif result.wire_bytes:
            self._failed.clear()
        if is_to_blame and not (isinstance(result, Failure) and result.by_proxy):
            result = self._blame(result)
        self.passes = not (isinstance(result, Failure) and result.by_proxy)
        return result

    def _note_answer(self, authority: str) -> None:
        self._failed.clear()
        self.answered[authority] = None
        if len(self.answered) > ROUTE_HOSTS_MAX:
            del self.answered[next(iter(self.answered))]

    def _reaches_no_host(self, authority: str) -> bool:
        """Note a host that is not reached; return whether other routes pass while this one reached none ever."""
        if len(self._failed) < UNREACHED_HOSTS_MIN:
            self._failed.add(authority)
        return len(self._failed) >= UNREACHED_HOSTS_MIN and any(one.passes and one.answered for one in self._routes)

    def _fell_silent(self, authority: str) -> bool:
        """Note a host that is silent; return whether enough are silent that answered before."""
        if authority in self.answered and len(self._failed) < SILENT_HOSTS_MIN:
            self._failed.add(authority)
        return len(self._failed) >= SILENT_HOSTS_MIN

    def _blame(self, result: Reply | Failure) -> Failure:
        error = f"the proxy does not answer any more ({_place(self._proxy)}), for no host"
        if not self.answered:
            why = f"HTTP {result.status}" if isinstance(result, Reply) else result.error
            error = f"the proxy has reached no host ({_place(self._proxy)}): {why}"
        if isinstance(result, Reply):
            got = result
            result = Failure("connect_error", error, retry=True, host_level=True, ip=got.ip, wire_bytes=got.wire_bytes)
        return msgspec.structs.replace(result, by_proxy=True, error=error)


def _place(proxy: str) -> str:
    """Return a proxy's host and port, without credentials."""
    return proxy.rstrip("/").rpartition("@")[2].rpartition("//")[2]


def _of_proxy(error: str, proxy: str) -> str:
    """Return an error that says which proxy it is about: libcurl leaves its port out."""
    at = _place(proxy)
    if error.startswith(_NOT_CONNECTED[1:]):
        return f"{error} (proxy {at})"
    return _OVER_PROXY.sub(lambda _: f"Failed to connect to the proxy {at}", error.replace("the server", "the proxy"))


def _is_of_proxy(transfer: Transfer, outcome: str, code: int, text: str) -> bool:
    """Return whether a transfer failed because its proxy cannot be reached, does not speak to us or does not let us in.

    An HTTP proxy that looks for the host is as silent as one that hangs; one over TLS or SOCKS5 has greeted by then.
    """
    scheme = transfer.proxy.partition(":")[0].lower()
    if not scheme:
        return False
    if outcome == "tls_error" and scheme == "https":  # Until it has answered CONNECT, TLS is with it.
        return not transfer.curl.getinfo(pycurl.HTTP_CONNECTCODE)
    if code in (pycurl.E_COULDNT_CONNECT, pycurl.E_OPERATION_TIMEDOUT) and text.startswith(_NOT_CONNECTED):
        greets = scheme in _GREETING
        # The time is set once the proxy accepts the connection.
        return not transfer.curl.getinfo(pycurl.CONNECT_TIME) or (greets and not transfer.wire_bytes)
    is_answer = code == CURLE_PROXY and _BY_SOCKS in text
    return (code in (pycurl.E_COULDNT_RESOLVE_PROXY, CURLE_PROXY) and not is_answer) or _NO_TUNNEL in text


def cut_reason(transfer: Transfer, end: End) -> str:
    """Return why the body of a failed transfer was cut; empty if none had begun, or if it is not used."""
    if not transfer.body_bytes:
        return ""
    if transfer.stopped:
        return "length" if transfer.stopped == "wire" else ""
    return breach(*end)


# By what a transfer was stopped for: outcome, error, whether to retry, whether it concerns the host.
_STOPS: Final[dict[str, tuple[str, str, bool, bool]]] = {
    "head": ("too_large", "headers exceed {transfer.head_bytes_max} bytes", False, False),
    "wire": (
        "too_large", "{transfer.wire_bytes} bytes received for {content_bytes} bytes of headers and body", False, False,
    ),
    "lags": (
        "timeout", f"less than {LAG_BYTES_S} bytes a second for {LAG_S:g} s, as of most requests under way", True, True,
    ),
    "idle": ("timeout", "no answer within {transfer.low_speed_s} s, by fetch.low_speed_s", True, True),
    "slow": ("timeout", "the server sends less than fetch.low_speed_bytes_s", True, True),
    "mute": ("timeout", "the server sent its data, and no reply on its control connection for 1 s", True, True),
    "silent": ("connect_error", "no connection within {transfer.silent_s_max:g} s", True, True),
    "unanswered": ("timeout", "no answer within {transfer.first_byte_s_max:g} s, by fetch.connect_s_max", True, True),
    "holds": ("protocol_error", "the server floods the connection with messages of TLS", False, False),
    "h2": ("protocol_error", "the server negotiated HTTP/2 and does not speak it", True, False),
    "limit": ("timeout", "limits.max_bytes was reached", True, False),
    "resend": ("connect_error", "the kept connection closed without an answer", True, False),
    "refused": ("connect_error", "the server refused the request over HTTP/2", True, False),
}  # fmt: skip


def _stop_failure(transfer: Transfer) -> Failure:
    """Return the failure of a transfer that we ended ourselves."""
    reason = "refused" if transfer.stopped == "resend" and transfer.was_refused else transfer.stopped
    reason = "idle" if reason == "slow" and not transfer.head_bytes else reason
    elsewhere = ("internal_error", f"{reason} instead of {transfer.request.ip}", False, False)
    outcome, error, retry, host_level = _STOPS.get(reason, elsewhere)
    if reason in _STOPS:
        error = error.format(transfer=transfer, content_bytes=transfer.head_bytes + transfer.body_bytes)
    failed = transfer.failure(outcome, error, retry, host_level)
    if reason == "limit":
        return msgspec.structs.replace(failed, at_limit=True)
    if reason == "silent":  # libcurl has not measured it.
        return msgspec.structs.replace(failed, fetch_s=transfer.silent_s_max, has_others=True)
    return failed
