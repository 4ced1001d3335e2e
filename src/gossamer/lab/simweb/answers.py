"""Answers: what a made server says, and what stands in it, as values."""

from __future__ import annotations

from typing import Literal

import msgspec

Manner = Literal[
    "whole", "stall", "drip", "cut", "reset", "empty", "garbage", "until_close", "chunked", "bytewise", "alert",
    "flood_bytes", "flood_extension", "flood_folded", "flood_interim", "flood_headers", "flood_trailers",
    "flood_head_bytes",
]  # fmt: skip
Headers = tuple[tuple[str, str], ...]

HTML: Headers = (("Content-Type", "text/html; charset=utf-8"),)
TEXT: Headers = (("Content-Type", "text/plain; charset=utf-8"),)

FOLLOWED = frozenset(
    {"anchor", "area", "frame", "iframe", "redirect", "meta_refresh", "cite", "sitemap", "feed", "sitemap_file"}
)
"""Links that a crawl follows. `next`, `prev`, `alternate`, `canonical` are only recorded."""


class Answer(msgspec.Struct, frozen=True):
    """One response, before it meets a socket."""

    status: int
    headers: Headers = HTML
    body: bytes = b""
    manner: Manner = "whole"
    """`whole` in one piece; `stall` never; `drip` byte by byte without end; `cut` half of what was announced; `reset`
    a TCP reset; `empty` closed without a byte; `garbage` no HTTP; `until_close` without length; `chunked`; `bytewise`
    in chunks of one byte; `alert` as a port for TLS answers plain HTTP; the others are in `floods.FLOODS`."""
    delay_s: float = 0.0
    """The server waits so long before the first byte."""
    body_bytes: int = 0
    """When larger than `body`: the body is repeated up to this many bytes."""
    gzip_if_asked: bool = False
    """Sent gzipped to a client whose Accept-Encoding names gzip."""
    retry_after_s: int = 0
    """Asks for a pause; rendered as Retry-After by the server, which has a clock."""
    retry_as_date: bool = False
    """Retry-After is an HTTP date, not seconds."""


class Mark(msgspec.Struct, frozen=True, gc=False):
    """One link that stands in a page."""

    url: str
    """As the WHATWG rules resolve what was written, without fragment."""
    link_type: str = "anchor"
    text: str = ""
    nofollow: bool = False
    """By its own `rel`, or by the page's directive."""
    key: str = ""
    """The canonical form, where it differs from `url`."""
    optional: bool = False
    """Right crawlers may differ: whether it is found says nothing."""


class Made(msgspec.Struct, frozen=True):
    """A page: the answers to the first, second … request; the last one stands for ever."""

    answers: tuple[Answer, ...]
    marks: tuple[Mark, ...] = ()
    """The links of the last answer."""
    also: tuple[str, ...] = ()
    """Outcomes that are as right as the one which follows from the answer."""
    once: bool = True
    """A right crawl asks for it once; false where it must or may ask again."""
    links_optional: bool = False
    """Whether its links are recorded says nothing: it is a copy, or has another spelling of its address."""
