"""Errors: what each error of libcurl means to a crawl (curl/include/curl/curl.h, libcurl-errors(3))."""

from __future__ import annotations

import errno
import re
from typing import Final

import pycurl

from gossamer.model.visits import Failure

# Code: outcome, worth asking again, says something about the host.
_MEANING: Final[dict[int, tuple[str, bool, bool]]] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: ("protocol_error", False, False),  # HTTP/0.9, or a version nobody knows
    pycurl.E_URL_MALFORMAT: ("unsupported", False, False),
    pycurl.E_LOGIN_DENIED: ("unsupported", False, False),
    pycurl.E_COULDNT_RESOLVE_PROXY: ("connect_error", True, True),
    pycurl.E_COULDNT_CONNECT: ("connect_error", True, True),
    pycurl.E_FTP_WEIRD_SERVER_REPLY: ("protocol_error", False, False),  # 8, for HTTP too
    pycurl.E_HTTP2: ("protocol_error", True, False),
    pycurl.E_PARTIAL_FILE: ("protocol_error", True, False),
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
    92: ("protocol_error", True, False),  # CURLE_HTTP2_STREAM
    97: ("connect_error", True, True),  # CURLE_PROXY
    100: ("too_large", False, False),  # CURLE_TOO_LARGE: one header line beyond 100 KB
    # What follows is our own doing: pinned addresses leave no name to resolve.
    pycurl.E_COULDNT_RESOLVE_HOST: ("internal_error", False, False),
    pycurl.E_FAILED_INIT: ("internal_error", False, False),
    pycurl.E_BAD_FUNCTION_ARGUMENT: ("internal_error", False, False),
    pycurl.E_OUT_OF_MEMORY: ("internal_error", True, False),
    pycurl.E_SSL_CACERT_BADFILE: ("internal_error", False, False),
    pycurl.E_WRITE_ERROR: ("internal_error", False, False),
    pycurl.E_ABORTED_BY_CALLBACK: ("internal_error", False, False),
}

_LOST: Final = frozenset({pycurl.E_PARTIAL_FILE, pycurl.E_RECV_ERROR, pycurl.E_HTTP2, 92})

_SILENT: Final[dict[int, str]] = {100: "a header line exceeds 100 KB"}
"""What codes mean of which libcurl does not say anything."""

_NOT_TLS: Final = ("wrong version number", "packet length too long", "unknown protocol", "record layer failure")
"""What OpenSSL calls the first bytes of a server that answers a TLS handshake in another protocol."""
_HTTP_BEHIND = re.compile(rb"1\.[01] \d{3}|TYPE html", re.IGNORECASE)
"""What follows the five bytes `HTTP/` or `<!DOC`, which OpenSSL has read as the header of a record."""
_NOT_HTTP: Final = "Received HTTP/0.9"

_UNKNOWN: Final = ("protocol_error", True, False)

_OURS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})
"""Reasons for a failed connection that lie on this machine: no host may be blamed for them."""


def failure(
    code: int, text: str, *, ip: str, started_at: float, fetch_s: float, os_errno: int = 0, greeting: bytes = b""
) -> Failure:
    """Translate a libcurl error. A code that is not in the table is a protocol error, worth asking again.

    `greeting` is what the server sent and a handshake that failed did not read.
    """
    outcome, retry, host_level = _MEANING.get(code, _UNKNOWN)
    if outcome == "tls_error" and any(words in text for words in _NOT_TLS):
        retry = False
        is_http = _HTTP_BEHIND.match(greeting) is not None
        speaks = "speaks plain HTTP on this port, not TLS" if is_http else "does not speak TLS on this port"
        text = f"the server {speaks} ({text.rpartition(':')[2]})"
    elif text.startswith(_NOT_HTTP):
        text = "the server does not speak HTTP on this port: the reply has no status line"
    if _ill_chunked(code, text):
        outcome, host_level = "protocol_error", False
    if outcome == "connect_error" and os_errno in _OURS:
        outcome, retry, host_level = "internal_error", True, False
        text = f"{errno.errorcode[os_errno]} on this machine: {text}"
    return Failure(
        outcome=outcome,
        error=one_line(text) or _SILENT.get(code, f"libcurl error {code}"),
        retry=retry,
        host_level=host_level,
        ip=ip,
        started_at=started_at,
        fetch_s=fetch_s,
    )


def breach(code: int, text: str) -> str:
    """Return what an error means for the body that had begun (`Reply.truncated`)."""
    return "disconnect" if code in _LOST and not _ill_chunked(code, text) else "unspecified"


def _ill_chunked(code: int, text: str) -> bool:
    return code == pycurl.E_RECV_ERROR and "chunk" in text  # One code for these and for lost connections.


def one_line(text: str) -> str:
    """Fold white space and cut: an error is read by people, and servers write parts of it."""
    return " ".join(text.split())[:300]
