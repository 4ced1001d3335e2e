"""Request: what is sent, to the byte. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import Final, NamedTuple

from gossamer.fetch.credentials import REDACTED
from gossamer.fetch.options import FetchOptions
from gossamer.model.errors import ConfigError

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
