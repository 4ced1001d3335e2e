"""Visits: the values of one request of a visit: what may be sent, the reply with its body and the times in its headers,
or the failure. Functions that read headers raise for no input.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from functools import lru_cache
from math import inf
from typing import BinaryIO, Final, Literal, Protocol

import msgspec

NOT_MODIFIED: Final = 304
EARLY_SHARE: Final = 0.25
"""Part of `connect_s_max` for the TCP connection with an address, if the host has others that may answer, and for the
first byte from the only host of a crawl, until it has answered."""
REPEATS_THE_BODY: Final = frozenset((307, 308))
"""Redirects after which a request is repeated with its method and body."""
Headers = tuple[tuple[str, str], ...]
"""Names and values, in the order sent."""
_MAX_AGE = re.compile(r"(?:^|,)[ \t]*max-age[ \t]*=[ \t]*\"?([0-9]+)\"?[ \t]*(?:$|,)", re.IGNORECASE)
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?\Z")
_DIGITS_MAX = 18
"""Digits that are read of a number of seconds: a longer number means forever anyway."""


class Contact(msgspec.Struct, frozen=True, gc=False):
    """A finished request, as far as the politeness towards its host depends on it."""

    fetch_s: float
    kind: Literal["answered", "busy", "failed", "left"]
    """`busy`: 429 or 503. `failed`: the host itself did not answer. `left`: no answer, and no fault of the host."""
    retry_after_s: float | None = None
    error: str = ""
    wire_bytes: int = 0
    """Received, heads included."""
    is_alone: bool = False


def shorten_wait(wait_s: float, failures: int, *, is_alone: bool) -> float:
    """Return the wait after a number of failures: at most 2 s, four times, where the crawl has no other host."""
    return min(wait_s, 2.0) if is_alone and failures < 5 else wait_s


class LargeBody(Protocol):
    """A body that is too large for memory: an unnamed file, which is freed with the last reference to this object."""

    @property
    def size(self) -> int:
        """Its length in bytes."""

    @property
    def digest(self) -> bytes:
        """Its digest by the crawl's algorithm, computed while the body arrived."""

    def open(self) -> BinaryIO:
        """Return a new, independent reader from the first byte. Close it, or drop it."""


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request that passed every gate: what a protocol module may send, and the only address it may connect to."""

    url: str
    ip: str
    """The checked address to connect to, IPv6 without brackets; the module must connect nowhere else."""
    port: int
    headers: Headers = ()
    """Beyond those the module sends itself (User-Agent, Accept, Accept-Encoding)."""
    body_bytes_max: int = 0
    """Cut the body here and mark it; 0 takes the module's own bound."""
    media_types: tuple[str, ...] = ()
    """Types (`text/html`, `image/*`) whose bodies are wanted; empty: all. A module may cut others as `unspecified`."""
    method: str = "GET"
    """Only for modules that speak HTTP, like `body`."""
    body: bytes = b""
    """Body of the request; its type is in `headers`."""
    fresh: bool = False
    """Use a new connection: the last attempt may have failed because a kept connection had died."""
    concurrency: int = 0
    """Requests that may go out at once, if this one may be ended while most are slow; 0: it may not. For HTTP."""
    proxy: str = ""
    """Proxy in place of the configured one, if any."""
    has_others: bool = False
    """The host has other addresses that may answer, or is the only one: wait less for the TCP connection."""
    first_byte_share: float = inf
    """Wait for the first byte, connecting included: part of the time to connect. The module has its own limits too."""
    untried: bool = False
    """With `proxy`: its site has not been requested through all other proxies yet."""


class Located(msgspec.Struct, frozen=True, gc=False):
    """The addresses of a host."""

    addresses: tuple[str, ...]
    """Best first, IPv6 without brackets; never empty."""
    expires_at: float
    """Wall time at which the host must be looked up again."""


class LowerNames(dict[str, str]):
    """Names of headers in lower case, by their names as sent: servers send few different ones, and many parts of a
    crawl look for one. The first are kept, up to 64 KB.
    """

    def __missing__(self, name: str) -> str:
        lower = name.lower()
        if len(self) < LOWER_NAMES_MAX and len(name) <= NAME_CHARACTERS_MAX:
            self[name] = lower
        return lower


LOWER_NAMES_MAX = 1_000
NAME_CHARACTERS_MAX = 64
lower_names: Final = LowerNames()


class HeaderFields(tuple[tuple[str, str], ...]):  # noqa: SLOT001 - subclasses of tuple have no slots with values
    """Headers in the order received, with their `first_values`, in which many parts of a crawl look for one."""

    first: Mapping[str, str]


def first_values(headers: HeaderFields | Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Return the first value of each header by its name in lower case."""
    try:
        return headers.first  # type: ignore[union-attr]
    except AttributeError:
        return {lower_names[name]: value for name, value in reversed(tuple(headers))}


class Reply(msgspec.Struct, frozen=True):
    """A server's reply as sent, with its transfer coding removed and its content coding kept."""

    url: str
    status: int
    headers: Headers
    """In the order received, names as sent, values decoded as latin-1."""
    body: bytes
    """As sent: still compressed where Content-Encoding says so. Empty where `file` holds it."""
    ip: str
    started_at: float
    """Wall time in seconds since 1970, UTC."""
    fetch_s: float
    """Seconds from the start of the request to the last byte of the reply."""
    wire_bytes: int
    """Bytes received over the network: headers, body, framing, and TLS where it is used."""
    http_version: str = "1.1"
    reason: str = ""
    request_head: bytes = b""
    """The request as sent: request line and headers, up to and with the empty line."""
    request_body: bytes = b""
    """The body that was sent after these."""
    head: bytes = b""
    """The head as received, if it is not what status line and headers say; empty otherwise."""
    truncated: str = ""
    """Why the body was cut (WARC 1.1, section 5.13): `length`, `time`, `disconnect` (the server went), `unspecified`
    (it was not wanted, or the rest cannot be read), or empty."""
    media_type: str = ""
    """Lower case, without parameters; empty when the server did not say."""
    charset: str = ""
    """From Content-Type only, as written."""
    file: LargeBody | None = None
    """The body, where it is too large for memory."""
    authenticated: bool = False
    """The request carried a credential: the reply may be private to its owner."""
    challenged: bool = False
    """A 401 whose challenge the next request for the same URL answers."""
    page_id: str = ""
    """Id of the rendered page that this reply is, or is a resource of; empty if nothing was rendered."""
    resource_type: str = ""
    """Its role in that page: `document`, `script`, `xhr` …"""

    @property
    def body_bytes(self) -> int:
        """Length of the body in memory or in `file`."""
        return self.file.size if self.file is not None else len(self.body)

    def header(self, name: str) -> str | None:
        """Return the first value of a header, by its lower-case name."""
        return first_values(self.headers).get(name)


class Failure(msgspec.Struct, frozen=True):
    """An error of the web, as a value: why there is no reply, or only a part of one."""

    outcome: str
    """One of `outcomes.OUTCOMES`."""
    error: str
    """One line for people."""
    retry: bool = False
    """A retry may succeed."""
    host_level: bool = False
    """The error concerns the host (no route, no name, refused, timed out), not only this URL."""
    ip: str = ""
    started_at: float = 0.0
    fetch_s: float = 0.0
    came: Reply | None = None
    """The part of the reply before the connection broke, marked as cut. It is archived, but never processed."""
    wire_bytes: int = 0
    """Received over the network, as in `Reply`."""
    by_proxy: bool = False
    """The crawl's own proxy could not be used, which says nothing about the host or the URL."""
    at_limit: bool = False
    """The crawl may receive no more bytes, which says nothing about the host or the URL."""
    again: bool = False
    """The same request should be sent once more, through the gates, as the same attempt: the server closed a kept
    connection instead of answering, or the module now reads this host's replies with a more tolerant reader."""
    others_pass: bool = False
    """With `by_proxy`: other requests took another route, and the last of them got through."""
    has_others: bool = False
    """No host has answered yet, and this one has other addresses or was left early: the next attempt is soon."""
    is_alone: bool = False
    """No host has answered yet, and the crawl has no other one: waits before attempts are short (`shorten_wait`)."""


class Content(msgspec.Struct, frozen=True):
    """A reply's body with its content coding removed, within limits."""

    body: bytes
    """The whole content, or its beginning if `file` holds the whole."""
    truncated: str = ""
    """`length` when the decoded form was cut at its bound."""
    error: str = ""
    """Why decoding stopped early, if the coding is broken; `body` holds what was decoded before."""
    file: LargeBody | None = None
    """The whole, where it is too large for memory."""

    @property
    def body_bytes(self) -> int:
        """How long the whole is."""
        return self.file.size if self.file is not None else len(self.body)


def retry_after_s(reply: Reply, now: float) -> float | None:
    """Return how long a server asks us to wait: seconds, even 1.5, or a date (RFC 9110, section 10.2.3), not negative.

    A date is measured against the server's own Date header where there is one, since clocks differ.
    """
    value = reply.header("retry-after")
    if value is None:
        return None
    value = value.strip()
    if _SECONDS.match(value):
        return float(value[:_DIGITS_MAX])
    until = http_date(value)
    if until is None:
        return None
    there = http_date(reply.header("date") or "")
    return max(0.0, until - (now if there is None else there))


def max_age_s(headers: Sequence[tuple[str, str]]) -> float | None:
    """Return how long a reply may be reused (RFC 9111, section 5.2.2): 0 for no-store, no-cache; None: not stated."""
    values = ",".join(value for name, value in headers if name.lower() == "cache-control")
    if not values:
        return None
    directives = {part.strip().lower() for part in values.split(",")}
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    match = _MAX_AGE.search(values)
    return float(match[1][:_DIGITS_MAX]) if match else None


def conditions(etag: str | None, last_modified: str | None) -> Headers:
    """Return the headers that make a request conditional; none without a validator. The date is sent in addition to an
    entity tag, for servers and caches that do not support tags; others ignore it (RFC 9110, section 13.2.2).
    """
    found = (("If-None-Match", etag), ("If-Modified-Since", last_modified))
    return tuple((name, value) for name, value in found if value)


def update_headers(stored: Headers, newer: Headers) -> Headers:
    """Return the headers of a stored reply, updated by those of a 304 (RFC 9111, section 3.2). What a 304 says of a
    content does not count, as it has none.
    """
    news = tuple(header for header in newer if not lower_names[header[0]].startswith("content-"))
    names = {lower_names[name] for name, _ in news}
    return (*news, *(header for header in stored if lower_names[header[0]] not in names))


def http_date(text: str) -> float | None:
    """Return seconds since 1970 for any of the three forms of a date (RFC 9110, section 5.6.7), else None."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - 2 ms of a start; many crawls see no date

    try:
        moment = parsedate_to_datetime(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


_MEDIA_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+\Z")
_ONE_TYPE = re.compile(r"""(?>(?:[^,"]|"(?>(?:[^"\\]|\\.)*)"?)+)""")
"""One of several types in a field: no comma outside quotes."""
_PARAMETER = re.compile(r""";([^=;]*)(?:=[ \t]*(?:"(?>((?:[^"\\]|\\.)*))"?[^;]*|([^;]*)))?""")
_QUOTED_PAIR = re.compile(r"\\(.)")
_CONTENT_TYPES_MAX = 1024
_BLANK = " \t\r"


def content_type(headers: Headers) -> tuple[str, str]:
    """Return the media type, lower case without parameters, and the charset as written; each empty if not given.

    Of several types, in one header or in several, the last well-formed one counts; the charset of an equal one before
    it is kept (Fetch standard, "extract a MIME type"). `*/*` is no type.
    """
    first = first_values(headers)
    joined = first.get("content-type", "")
    if len(first) < len(headers):  # It may be repeated.
        joined = ",".join(value for name, value in headers if lower_names[name] == "content-type" and value)
    return _parse_content_type(joined) if joined else ("", "")


@lru_cache(maxsize=_CONTENT_TYPES_MAX)
def _parse_content_type(values: str) -> tuple[str, str]:
    media_type = charset = ""
    for value in _ONE_TYPE.findall(values):
        one = value.partition(";")[0].strip(_BLANK).lower()
        if _MEDIA_TYPE.match(one) and one != "*/*":
            charset = _charset(value) or (charset if one == media_type else "")
            media_type = one
    return media_type, charset


def _charset(value: str) -> str:
    """Return the first charset parameter that is not empty."""
    for name, quoted, plain in _PARAMETER.findall(value):
        charset = _QUOTED_PAIR.sub(r"\1", quoted) or plain.strip(" \t'")
        if charset and name.strip(_BLANK).lower() == "charset":
            return charset
    return ""
