"""Requests: listed requests with method, headers and body; requests that are not idempotent are sent once.

A listed request is queued as its address with `REQUEST_MARK` and a digest of method and body, so that two bodies for
one address have two keys, and the key of a plain GET is unchanged. Its content is stored separately.

A request that is not idempotent gets a durable mark before it is sent. A marked request is never sent again, even after
a crash or a failure.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from gossamer.model.errors import ConfigError
from gossamer.model.links import ALLOWED, Verdict, Visit
from gossamer.model.visits import REPEATS_THE_BODY, Reply, Request
from gossamer.ports import VisitMiddleware
from gossamer.stages.fetch.http import sendable
from gossamer.stages.scope.roots import seed_url
from gossamer.state.epoch import Epochs
from gossamer.url.name import REQUEST_MARK
from gossamer.url.url import Url
from gossamer.world.inputs import input_lines, open_input

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY")
IDEMPOTENT: Final = frozenset(("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "QUERY"))
"""Methods whose requests may be repeated (RFC 9110, section 9.2.2)."""
BODY_BYTES_MAX: Final = 1 << 20
LINE_BYTES_MAX: Final = 8 * BODY_BYTES_MAX
"""JSON writes a byte of a body in up to six characters."""
DIGEST_CHARACTERS: Final = 32
"""128 bits of SHA-256."""


class RequestLine(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A line of the list."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    body: str | dict[str, object] | list[object] | None = None
    """A text is sent as it is, anything else as JSON."""
    idempotent: bool | None = None
    """Whether it may be sent again; None: depends on the method."""


class Listed(msgspec.Struct, array_like=True, frozen=True):
    """The content of a listed request."""

    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    idempotent: bool


_read_line = msgspec.json.Decoder(RequestLine).decode
_decode = msgspec.msgpack.Decoder(Listed).decode


def read_requests(path: Path, schemes: tuple[str, ...] = ("http", "https")) -> Iterator[tuple[str, Listed]]:
    """Yield the requests of a file of JSON lines: the address as it is queued, and the content. Raises ConfigError: the
    file cannot be read, or a line is not a request; the message names the line.
    """
    try:
        with open_input(path) as file:
            for number, data in enumerate(input_lines(file, LINE_BYTES_MAX), 1):
                if data.strip():
                    try:
                        yield _parse_request(data, schemes)
                    except (msgspec.DecodeError, ConfigError) as error:
                        raise ConfigError(f"{path} line {number}: {error}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; name a file that you can read") from error


def _parse_request(data: bytes, schemes: tuple[str, ...]) -> tuple[str, Listed]:
    line = _read_line(data)
    address = seed_url(line.url, [scheme for scheme in schemes if scheme in ("http", "https")])
    if line.method not in METHODS:
        raise ConfigError(f"no method {line.method!r}; there are {', '.join(METHODS)}")
    body, media_type = _body(line)
    headers = tuple(line.headers.items())
    if media_type and "content-type" not in {name.lower() for name, _ in headers}:
        headers += (("Content-Type", media_type),)
    if wrong := [name for name, value in headers if not sendable(name, value)]:
        raise ConfigError(f"header {wrong[0]!r} cannot be sent; use one line of latin-1, and no name of HTTP's own")
    idempotent = line.method in IDEMPOTENT if line.idempotent is None else line.idempotent
    found = Listed(line.method, headers, body, idempotent)
    if found.method == "GET" and not body and not headers:
        return address, found
    digest = hashlib.sha256(found.method.encode() + b"\0" + body).hexdigest()[:DIGEST_CHARACTERS]
    return f"{address}{REQUEST_MARK}{found.method}:{digest}", found


def _body(line: RequestLine) -> tuple[bytes, str]:
    match line.body:
        case None:
            return b"", ""
        case str():
            body = line.body.encode()
            media_type = "application/x-www-form-urlencoded"
        case _:
            body = msgspec.json.encode(line.body)
            media_type = "application/json"
    if len(body) > BODY_BYTES_MAX:
        raise ConfigError(f"a body of {len(body):,} bytes; {BODY_BYTES_MAX:,} is the most")
    return body, media_type


class Requests(VisitMiddleware):
    """Contents of listed requests, and which of them were sent. A get for each visit of one; no cost for other URLs."""

    name = "requests"

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs

    def judge(self, url: Url, now: float) -> Verdict:
        if not self.was_sent(url):
            return ALLOWED
        reason = "it was sent before, is not idempotent, and what became of it is not known"
        return Verdict(outcome="not_repeated", reason=reason)

    async def before_begin(self, url: Url, commit: Callable[[], Awaitable[None]]) -> None:
        if self.sending(url):
            try:
                await commit()
            except asyncio.CancelledError:
                self.unsent(url)
                raise

    def request(self, url: Url, visit: Visit | None, request: Request, now: float) -> Request:
        listed = self.of(url)
        if visit is None or listed is None:
            return request
        headers = request.headers + listed.headers
        return Request(
            request_url(url.text), request.ip, request.port, headers, method=listed.method, body=listed.body, fresh=True
        )

    def keep(self, url: Url, request: Listed) -> None:
        """Store a request's content; the first one for a key counts."""
        key = url.store_key(b"\0request:")
        if self._epochs.get("cookie", key) is None:
            self._epochs.put("cookie", key, msgspec.msgpack.encode(request))

    def of(self, url: Url) -> Listed | None:
        """Return the content of a URL's request; None for a plain GET."""
        if REQUEST_MARK not in url.text:
            return None
        kept = self._epochs.get("cookie", url.store_key(b"\0request:"))
        return _decode(kept) if kept is not None else None

    def leads_on(self, url: Url, reply: Reply) -> bool:
        """A redirect that asks for the same request elsewhere is not followed: that one is not listed."""
        return reply.status not in REPEATS_THE_BODY or self.of(url) is None

    def may_repeat(self, url: Url) -> bool:
        request = self.of(url)
        return request is None or request.idempotent

    def was_sent(self, url: Url) -> bool:
        """Return whether a URL's request was sent and must not be repeated."""
        return REQUEST_MARK in url.text and self._epochs.get("cookie", url.store_key(b"\0sent:")) is not None

    def sending(self, url: Url) -> bool:
        """Mark a request before it is sent; return whether the mark must be committed first."""
        if self.may_repeat(url):
            return False
        self._epochs.put("cookie", url.store_key(b"\0sent:"), b"1")
        return True

    def unsent(self, url: Url) -> None:
        """Remove the mark: the request may be sent again."""
        if REQUEST_MARK in url.text:
            self._epochs.delete("cookie", url.store_key(b"\0sent:"))


def request_url(text: str) -> str:
    """Return the address that a request is sent to."""
    return text.partition(REQUEST_MARK)[0]
