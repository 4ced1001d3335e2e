"""Floods: answers without end, most of which hold no content: how each begins, and what is sent again and again."""

from __future__ import annotations

from typing import NamedTuple

_OK = b"HTTP/1.1 200 OK\r\nServer: simweb\r\nContent-Type: text/html; charset=utf-8\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_PIECE_BYTES = 48_000


class Flood(NamedTuple):
    """One answer without end."""

    beginning: bytes
    again: bytes
    pause_s: float = 0.004
    """Between two pieces, where the client takes all of them."""


def _piece(pattern: bytes) -> bytes:
    return pattern * (_PIECE_BYTES // len(pattern))


FLOODS = {
    "flood_bytes": Flood(_CHUNKED, _piece(b"1\r\nx\r\n")),
    "flood_extension": Flood(_CHUNKED + b"5;note=", _piece(b"made")),
    "flood_folded": Flood(_OK + b"X-Folded: a\r\n", _piece(b" \r\n")),
    "flood_interim": Flood(b"", _piece(b"HTTP/1.1 100 Continue\r\n\r\n")),
    "flood_headers": Flood(_OK, _piece(b"X-Again: and again\r\n")),
    "flood_trailers": Flood(_CHUNKED + b"1\r\nx\r\n0\r\n", _piece(b"X-Again: and again\r\n")),
    "flood_head_bytes": Flood(_OK + b"X-Slow: ", b"a", 0.005),
}
"""By manner (`answers.Manner`)."""
