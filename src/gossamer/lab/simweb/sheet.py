"""Sheet: what a synthetic server answers, as values, the sheet on which an odd page and its links are written, and the
words of which pages are made: drawn once per web, sliced per page.
"""

from __future__ import annotations

import pkgutil
import random
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from gossamer.lab.simweb.hosts import WebHost
from gossamer.lab.simweb.options import SimwebOptions

Manner = Literal[
    "whole", "stall", "drip", "cut", "reset", "empty", "garbage", "until_close", "chunked", "bytewise", "alert",
    "flood_bytes", "flood_extension", "flood_folded", "flood_interim", "flood_headers", "flood_trailers",
    "flood_head_bytes",
]  # fmt: skip
Headers = tuple[tuple[str, str], ...]

HTML: Headers = (("Content-Type", "text/html; charset=utf-8"),)
TEXT: Headers = (("Content-Type", "text/plain; charset=utf-8"),)
FOLLOWED = frozenset((
    "anchor", "area", "frame", "iframe", "redirect", "meta_refresh", "next", "prev", "related", "cite", "sitemap",
    "feed", "sitemap_file",
))  # fmt: skip
"""Links that a crawl follows. `alternate` and `canonical` are only recorded."""


class ServedAnswer(msgspec.Struct, frozen=True):
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
    """One link in a page."""

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
    """A page: the answers to the first, second … request; the last one repeats."""

    answers: tuple[ServedAnswer, ...]
    marks: tuple[Mark, ...] = ()
    """The links of the last answer."""
    also: tuple[str, ...] = ()
    """Outcomes that are as right as the one which follows from the answer."""
    once: bool = True
    """A right crawl asks for it once; false where it must or may ask again."""
    links_optional: bool = False
    """Whether its links are recorded says nothing: it is a copy, or has another spelling of its address."""
    outcome: str = ""
    """How it ends where neither status nor manner says so."""


class PagePlace(msgspec.Struct, frozen=True):
    """A behavior's view of the web around it."""

    host: WebHost
    origin: str
    options: SimwebOptions
    words: Words
    hosts: Sequence[WebHost]
    at: str = "/"
    """`/NAME/` of a behavior, below which its pages are."""

    def path(self, name: str) -> str:
        """Return the path of a page by its name below `at`; a name that begins with `/` is a path."""
        return name if name.startswith("/") else self.at + name

    def url(self, name: str) -> str:
        """Return the absolute address of a page by its name below `at`."""
        return self.origin + self.path(name)

    def other(self) -> WebHost:
        """Return another host than this one, if there is one."""
        return self.hosts[(self.host.index + 1) % len(self.hosts)]

    def front(self, host: WebHost) -> str:
        """Return the address of a host's front page."""
        return f"http://{host.name}{self.options.port_suffix}/"

    def some(self, sentences: int, *what: object) -> str:
        """Return sentences that depend on the host and on `what`."""
        return self.words.some(hash_of(self.host.index, *what), sentences)

    def leaf(self, name: str) -> Made:
        """Return a page without links."""
        return Sheet(self, name).page()

    def leaves(self, names: Iterable[str]) -> dict[str, Made]:
        """Return pages without links, by their names."""
        return {name: self.leaf(name) for name in names}

    def index(self, title: str, names: Iterable[str]) -> dict[str, Made]:
        """Return the page that is the behavior's folder itself, with links to others."""
        return {"": Sheet(self, "", title).anchors(names).page()}


def hash_of(*what: object) -> int:
    """Return a hash of 32 bits of the values as text, the same in every process."""
    value = 7
    for byte in "/".join(map(str, what)).encode():
        value = (value * 131 + byte) & 0xFFFFFFFF
    return value


class Sheet:
    """One HTML page in the making."""

    def __init__(self, place: PagePlace, name: str, title: str = "", about: object = None) -> None:
        """The text depends on the path, or where that is given, on what the page is `about`."""
        path = place.path(name)
        self._place = place
        self._about = path if about is None else about
        self._title = title or path
        self._head: list[str] = []
        self._body: list[str] = []
        self._marks: list[Mark] = []

    def head(self, html: str, *marks: Mark) -> Sheet:
        """Add to the head an element, and the links that it makes."""
        self._head.append(html)
        self._marks += marks
        return self

    def tag(self, html: str, *marks: Mark) -> Sheet:
        """Add to the body an element, and the links that it makes."""
        self._body.append(html)
        self._marks += marks
        return self

    def anchor(
        self, href: str, to: str = "", *, text: str = "", nofollow: bool = False, optional: bool = False, key: str = ""
    ) -> Sheet:
        """Add a link. `to` is the absolute address it leads to; needed unless `href` begins with `/`."""
        rel = ' rel="nofollow"' if nofollow else ""
        mark = Mark(to or self._place.origin + href, "anchor", text or href, nofollow, key, optional)
        return self.tag(f'<p><a href="{href.replace("&", "&amp;")}"{rel}>{text or href}</a></p>', mark)

    def anchors(self, names: Iterable[str]) -> Sheet:
        """Add links to pages by their names below the behavior's folder."""
        for name in names:
            self.anchor(self._place.path(name))
        return self

    def html(self, charset: str = "utf-8", *, declare: bool = True) -> str:
        """Return the text of the page."""
        host = self._place.host.name
        some = self._place.some(12, self._about)
        meta = f'<meta charset="{charset}">' if declare else ""
        top = f"<!DOCTYPE html>\n<html><head>{meta}<title>{self._title} at {host}</title>{''.join(self._head)}</head>\n"
        return f"{top}<body><h1>{self._title}</h1>\n<p>{some}</p>\n{''.join(self._body)}\n</body></html>\n"

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The facts written so far."""
        return tuple(self._marks)

    def page(self, *, headers: Headers = ()) -> Made:
        """Return the page as plain UTF-8 HTML with status 200."""
        return self.page_of_bytes(self.html().encode(), headers=headers)

    def page_of_bytes(
        self, body: bytes, kind: str = "text/html; charset=utf-8", headers: Headers = (), also: tuple[str, ...] = ()
    ) -> Made:
        """Return the page with a body that is already encoded."""
        whole = (("Content-Type", kind), *headers) if kind else headers
        return Made((ServedAnswer(200, whole, body),), self.marks, also)


def file_of(media_type: str, body: bytes, marks: tuple[Mark, ...] = (), also: tuple[str, ...] = ()) -> Made:
    """Return a file of a media type."""
    return Made((ServedAnswer(200, (("Content-Type", media_type),), body),), marks, also)


SENTENCES = 6_144
WINDOW = 4_096
"""Slices begin below this; the rest is room for the longest."""
ANCHORS = 1_024
_WORDS = tuple((pkgutil.get_data("gossamer.lab.simweb", "words.txt") or b"").decode().split())


class Words:
    """A long text with known sentence ends, and a stock of anchor texts. About 20 ms to draw, 450 KB."""

    def __init__(self, seed: int) -> None:
        # Chance here must be the same in every process and version: `choices` of a seeded generator is.
        dice = random.Random(seed)
        self.ends: list[int] = [0]
        pieces: list[str] = []
        at = 0
        for _ in range(SENTENCES):
            words = dice.choices(_WORDS, k=6 + int(dice.random() * 12))
            sentence = f"{' '.join(words).capitalize()}. "
            pieces.append(sentence)
            at += len(sentence)
            self.ends.append(at)
        self.text = "".join(pieces)
        self.sentence_bytes = at / SENTENCES
        self.anchors = tuple(" ".join(dice.choices(_WORDS, k=1 + int(dice.random() * 3))) for _ in range(ANCHORS))

    def some(self, at: int, sentences: int) -> str:
        """Return sentences from a place that `at` names."""
        start = at % WINDOW
        return self.text[self.ends[start] : self.ends[min(start + sentences, SENTENCES)]]
