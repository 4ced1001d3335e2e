"""Pages: the ordinary ones, which fill the hosts: text, navigation, links, all from one hash of their number.

Also when they change, from the seed alone: each page is a Poisson process with its own rate. Time is cut into spans in
which a page changes once on average; how often it changes in a span, and when, comes from a hash of page and span. So a
page is known at any instant, in any process, in any order.
"""

import hashlib
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import e, exp
from statistics import NormalDist

import msgspec

from gossamer.lab.simweb.hosts import WebHost, lot
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.sheet import WINDOW, Mark, Words

SECTIONS = (
    "news", "about", "people", "work", "notes", "archive", "guide", "papers",
    "events", "shop", "help", "talk", "press", "field", "maps", "letters",
)  # fmt: skip
LINK_BYTES = 62
"""Approximate bytes of a link, used to reach the median size."""
TOPIC_BYTES = 24
"""Bytes of a page's own word beside each link."""
SENTENCES_MAX = 2_048
NAV = 5
FACES_MAX = 4_096
LINKS_MAX = 2_000
ABSOLUTE_FORMS = frozenset((10, 11, 14))
_PAGE_PATH = re.compile(r"/([a-z]+)/p([1-9]\d{0,8})\.html")


class Face(msgspec.Struct, frozen=True):
    """The parts that all pages of one host share, written out once."""

    host: WebHost
    origin: str
    seed: bytes
    forms: tuple[str, ...]
    """Ways to write a link to a path of this host; `ABSOLUTE_FORMS` name the host."""
    head: str
    tail: str


class Picks(msgspec.Struct, frozen=True):
    """Where the links of a page go: each with 32 bits that choose its form and its text."""

    inner: list[tuple[int, int]]
    """Page of the same host, bits."""
    outer: list[tuple[int, int]]
    """Page counted over all hosts, bits."""
    size: int
    at: int
    """Where in the text the page's text begins."""


class PageMaker:
    """Makes ordinary pages. Pure except for bounded caches; about 20 to 40 µs a page."""

    def __init__(self, options: SimwebOptions, hosts: Sequence[WebHost]) -> None:
        self._hosts = hosts
        self._firsts = [host.first_page for host in hosts]
        self._total = sum(host.pages for host in hosts)
        self.words = Words(lot(options, "words"))
        """The text that all pages draw from."""
        self._options = options
        self._port = options.port_suffix
        self._sizes = _quantiles(options.bytes_median, options.bytes_sigma, options.bytes_max)
        # The median of a log-normal is below its mean by exp(sigma² / 2).
        self._counts = _quantiles(options.links_per_page * 0.835, 0.6, LINKS_MAX)
        self._face = lru_cache(maxsize=FACES_MAX)(self._make_face)

    def origin(self, host: WebHost) -> str:
        """Return `http://name[:port]`."""
        return f"http://{host.name}{self._port}"

    def number(self, host: WebHost, path: str) -> int | None:
        """Return which page a path names, or None when it is no ordinary page of the host."""
        if path == "/":
            return 0 if host.pages else None
        found = _PAGE_PATH.fullmatch(path)
        if found is None:
            return None
        number = int(found[2])
        return number if number < host.pages and SECTIONS[number & 15] == found[1] else None

    def body(self, host: WebHost, number: int, front: str = "") -> bytes:
        """Return the page's HTML. `front` is put on a host's first page only."""
        face = self._face(host.index if host.mirror_of < 0 else host.mirror_of)
        picks = self._picks(face, number)
        words = self.words
        forms = face.forms
        anchors = self.words.anchors
        links = [
            forms[(bits >> 10) & 15] % (f"/{SECTIONS[page & 15]}/p{page}.html" if page else "/", anchors[bits & 1023])
            for page, bits in picks.inner
        ]
        for page, bits in picks.outer:
            links.append(f'<a href="{self._far(page)}">{anchors[bits & 1023]}</a>')
        title = f"{anchors[picks.at & 1023].capitalize()} {number}"
        parts = [f"<!DOCTYPE html>\n<html lang=en>\n<head><title>{title}</title>", face.head, f"<h1>{title}</h1>\n"]
        if number == 0:
            parts.append(front)
        room = picks.size - len(face.head) - len(face.tail) - 100 - (LINK_BYTES + TOPIC_BYTES) * len(links)
        sentences = max(0, min(SENTENCES_MAX, int(room / words.sentence_bytes)))
        each, rest = divmod(sentences, len(links) + 1)
        text = words.text
        ends = words.ends
        at = picks.at % WINDOW
        topic = _topic(face.host.index, number)
        for link in links:
            parts += ("<p>", topic, text[ends[at] : ends[at + each]], topic, link, "</p>\n")
            at = (at + each) % WINDOW
        parts += ("<p>", topic, text[ends[at] : ends[at + each + rest]], "</p>\n", face.tail)
        return "".join(parts).encode()

    def marks(self, host: WebHost, number: int) -> Iterator[Mark]:
        """Yield the links that `body` writes, navigation first, without those of `front`."""
        content = host if host.mirror_of < 0 else self._hosts[host.mirror_of]
        face = self._face(content.index)
        near = self.origin(host)
        far = face.origin
        for page in range(min(NAV, host.pages)):
            yield Mark(near + path_of(page))
        picks = self._picks(face, number)
        for page, bits in picks.inner:
            yield Mark((far if (bits >> 10) & 15 in ABSOLUTE_FORMS else near) + path_of(page))
        for page, _ in picks.outer:
            yield Mark(self._far(page))

    def _far(self, page: int) -> str:
        index = bisect_right(self._firsts, page) - 1
        return f"http://{self._hosts[index].name}{self._port}{path_of(page - self._firsts[index])}"

    def _picks(self, face: Face, number: int) -> Picks:
        options = self._options
        pages = face.host.pages
        noise = hashlib.shake_128(b"%b%d" % (face.seed, number))
        head = int.from_bytes(noise.digest(4), "little")
        first = options.children_per_page * number + 1
        children = range(first, min(first + options.children_per_page, pages))
        extra = max(0, self._counts[head & 255] - min(NAV, pages) - len(children))
        near = int(extra * options.same_host_share + 0.5)
        count = len(children) + extra
        bits = struct.unpack(f"<{count}I", noise.digest(4 * count + 4)[4:])
        inner = list(zip(children, bits, strict=False))
        # Squaring makes low numbers popular: in-degree is skewed as on the web.
        inner += [((x * x * pages) >> 64, x) for x in bits[len(children) : len(children) + near]]
        total = self._total
        outer = [(self._some_page((x * total) >> 32, x), x) for x in bits[len(children) + near :]]
        return Picks(inner, outer, self._sizes[(head >> 8) & 255], head >> 16)

    def _some_page(self, page: int, bits: int) -> int:
        """Return the page, or the front page of its host for half of them: links between hosts favour fronts."""
        return page if bits & 0x4000 else self._firsts[bisect_right(self._firsts, page) - 1]

    def _make_face(self, index: int) -> Face:
        host = self._hosts[index]
        origin = self.origin(host)
        upper = f"HTTP://{host.name.upper()}{self._port}"
        plain = '<a href="%s">%s</a>'
        forms = (
            plain, plain, plain, plain, plain, plain, "<a href='%s'>%s</a>", "<A HREF=%s>%s</A>",
            '<a class="ref" title="1 > 0" href="..%s">%s</a>', '<a href="%s#part-2">%s</a>',
            f'<a href="{origin}%s">%s</a>', f'<a href="{upper}%s">%s</a>', '<a href="&#x2f;.%s">%s</a>',
            '<a\nhref="  %s\n">%s</a>', f'<a href="//{host.name}{self._port}%s">%s</a>',
            '<a target=_blank rel="noopener" href="%s"><em>%s</em></a>',
        )  # fmt: skip
        nav = '<li><a href="/">Home</a>' + "".join(
            f'<li><a href="{path_of(page)}">{SECTIONS[page & 15].capitalize()}</a>'
            for page in range(1, min(NAV, host.pages))
        )
        # Addresses in a comment and in a script are not links: the pages do not exist.
        head = (
            f'<meta name="description" content="{host.name}"></head>\n<body>\n<nav><ul>{nav}</ul></nav>\n'
            '<!-- <a href="/commented/p1.html">old</a> -->\n'
            "<script>document.title += '<a href=\"/scripted/p2.html\">';</script>\n"
        )
        tail = f"<footer>{host.name} is made of words.</footer>\n</body>\n</html>\n"
        return Face(host, origin, b"%d/%d/" % (self._options.seed, index), forms, head, tail)


def path_of(page: int) -> str:
    """Return the path of a host's ordinary page by its number; 0 is the front page."""
    return f"/{SECTIONS[page & 15]}/p{page}.html" if page else "/"


def _topic(index: int, number: int) -> str:
    """Return the word that a page alone is about: else all pages of a large host would say the same."""
    code = (index + 1) * 1_000_003 + number
    syllables = []
    while code:
        code, syllable = divmod(code, 100)
        syllables.append("bcdfghjklmnprstvwxyz"[syllable // 5] + "aeiou"[syllable % 5])
    return "".join(syllables).capitalize() + " "


def _quantiles(median: float, sigma: float, most: int) -> list[int]:
    """Return 256 quantiles of a log-normal: one byte of noise then draws from it."""
    if median <= 0:
        return [0] * 256
    return [min(most, round(median * e ** (sigma * _NORMAL.inv_cdf((k + 0.5) / 256)))) for k in range(256)]


_NORMAL = NormalDist()
_BITS = 1 << 32
SPANS_BACK_MAX = 64
"""A page that changed in none of this number of spans, which happens to one in 10^27, has not changed."""


class Changing:
    """Which pages change, how often, and when they did last. Pure; about 5 µs a question."""

    def __init__(self, options: SimwebOptions) -> None:
        self._options = options

    def rate(self, host: int, page: int) -> float:
        """Return a page's changes a second; 0 for one that never does."""
        options = self._options
        bits = lot(options, "changing", host, page)
        if (bits & (_BITS - 1)) >= options.changing_share * _BITS:
            return 0.0
        spread = _NORMAL.inv_cdf(((bits >> 32) + 0.5) / _BITS)
        return exp(options.change_sigma * spread) / options.change_s_median

    def last_change_at(self, host: int, page: int, at: float) -> float:
        """Return the instant of the last change until `at`; 0 if there was none."""
        rate = self.rate(host, page)
        if not rate:
            return 0.0
        span = int(at * rate)
        for back in range(SPANS_BACK_MAX):
            if past := [instant for instant in self._in_span(host, page, rate, span - back) if instant <= at]:
                return max(past)
        return 0.0

    def changes(self, host: int, page: int, begin: float, end: float) -> list[float]:
        """Return all instants of changes from `begin` up to, but without, `end`."""
        rate = self.rate(host, page)
        if not rate:
            return []
        spans = range(int(begin * rate), int(end * rate) + 1)
        return sorted(at for span in spans for at in self._in_span(host, page, rate, span) if begin <= at < end)

    def _in_span(self, host: int, page: int, rate: float, span: int) -> Iterator[float]:
        # By inversion: the chance of no change in a span of mean one is 1/e.
        chance = (lot(self._options, "spans", host, page, span) + 0.5) / (1 << 64)
        term = exp(-1.0)
        number = 0
        below = term
        while chance > below and number < SPANS_BACK_MAX:
            number += 1
            term /= number
            below += term
        for which in range(number):
            yield (span + (lot(self._options, "span", host, page, span, which) + 0.5) / (1 << 64)) / rate
