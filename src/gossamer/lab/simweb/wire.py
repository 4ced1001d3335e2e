"""Wire: HTTP/1.1 as bytes: requests read, heads written, and answers without end. No socket."""

import pkgutil
import re
import tomllib
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from gossamer.lab.simweb.sheet import Headers

HEAD_BYTES_MAX = 64 * 1024
_END = b"\r\n\r\n"
_FIELDS = re.compile(
    rb"\r\n(host|user-agent|connection|accept-encoding|if-none-match|if-modified-since|content-length|transfer-encoding)"
    rb"[ \t]*:[ \t]*([^\r\n]*)",
    re.IGNORECASE,
)


class WireRequest(msgspec.Struct, frozen=True, gc=False):
    """One request."""

    method: str
    path: str
    """The target as sent; only path and query of an absolute URL."""
    host: str
    """Lower case, without port; empty when the request named none."""
    agent: str
    keeps_alive: bool
    takes_gzip: bool
    head_bytes: int
    unless_tag: str = ""
    """If-None-Match, as sent."""
    unless_since: str = ""
    """If-Modified-Since, as sent."""


def read_request(data: bytes) -> WireRequest | int | None:
    """Return the request that `data` begins with, or the status of the refusal of one that this server does not take,
    or None when there is more to come. About 4 µs.
    """
    end = data.find(_END)
    if end < 0:
        return 431 if len(data) > HEAD_BYTES_MAX else None
    words = data[: data.find(b"\r\n")].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return 400
    fields = {name.lower(): value for name, value in _FIELDS.findall(data[: end + 2])}
    if fields.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in fields:
        return 413
    host = fields.get(b"host", b"").decode("latin-1")
    path = words[1].decode("latin-1")
    if not path.startswith("/"):
        host, path = _absolute(host, path)
    connection = fields.get(b"connection", b"").lower()
    keeps = b"close" not in connection if words[2] == b"HTTP/1.1" else b"keep-alive" in connection
    return WireRequest(
        words[0].decode("latin-1"),
        path,
        host.partition(":")[0].strip().lower(),
        fields.get(b"user-agent", b"").decode("latin-1"),
        keeps,
        b"gzip" in fields.get(b"accept-encoding", b"").lower(),
        end + len(_END),
        fields.get(b"if-none-match", b"").decode("latin-1").strip(),
        fields.get(b"if-modified-since", b"").decode("latin-1").strip(),
    )


@lru_cache(maxsize=1_024)
def head(status: int, headers: Headers) -> bytes:
    """Return status line and headers, open at the end for those that belong to one answer."""
    lines = [f"HTTP/1.1 {status} {_reason(status)}", "Server: simweb", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n"


def http_date(instant: float) -> str:
    """Return an instant as an HTTP date (RFC 9110, section 5.6.7): whole seconds."""
    return formatdate(instant, usegmt=True)


def _absolute(host: str, target: str) -> tuple[str, str]:
    """Split the absolute form (RFC 9112, section 3.2.2), whose authority beats the Host field."""
    _, mark, rest = target.partition("://")
    if not mark:
        return host, target
    authority, slash, path = rest.partition("/")
    return authority, slash + path


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


# Answers without end, most of which hold no content: how each begins, and what is sent again and again.


class Flood(NamedTuple):
    """One answer without end."""

    beginning: bytes
    again: bytes
    pause_s: float
    """Between two pieces, where the client takes all of them."""


_FLOODS = tomllib.loads((pkgutil.get_data("gossamer.lab.simweb", "floods.toml") or b"").decode())
FLOODS = {
    manner: Flood(beginning.encode(), again.encode() * (piece_bytes // len(again)), pause_s)
    for manner, (beginning, again, piece_bytes, pause_s) in _FLOODS.items()
}
"""By manner (`sheet.Manner`)."""
