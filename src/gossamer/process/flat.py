"""Flat: a page's markup made cheap for a parser, whatever the page holds.

A parser of the HTML standard costs the square of nesting, of a tag's attributes and of unclosed formatting elements,
and how deep its tree becomes depends on rules about misnesting that a page may abuse. So it is given markup that closes
every element that it opens, in order, and holds no formatting elements: then the depth of its tree is what is counted
here.
"""

from __future__ import annotations

import html
import re

from gossamer.process.scan import PLAIN_TAG, attributes, skipped_comment

NODES_MAX = 200_000
"""Elements of one page and their attributes: about 120 MB while its tree exists."""
WORK_MAX = 5_000_000
"""Of all elements together: elements open at each. About 0.5 s."""
TAG_BYTES_MAX = 2_048
"""A longer tag is written anew with the attributes that content is told from: its others may be thousands."""
SLASHES_MAX = 16
"""So is a tag with more slashes: outside of quotation marks they separate attributes."""

_NAME = rb"[a-zA-Z][^\t\n\f\r />]*"
_TOKEN = re.compile(
    rb"<(?:(?P<end>/)?(?P<name>" + _NAME + rb")(?:(?=[\t\n\f\r />])(?P<rest>" + PLAIN_TAG.encode() + rb")>)?"
    rb"|(?P<comment>!--)|(?P<other>[!?]|/(?![a-zA-Z])))"
)
_VOID = frozenset(
    b"area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr".split()
)
_FORMATTING = frozenset(b"b big code em font i nobr s small strike strong tt u".split())
"""Left out, with their content kept: neither text nor Markdown shows them."""
_THROUGH = frozenset(b"html head body".split())
"""Passed on where they begin; the parser opens each once."""
_DROPPED = frozenset(
    b"script style textarea xmp noembed noframes iframe title template svg math select frameset".split()
)
"""Left out with their content."""
_RAW = _DROPPED - frozenset(b"template svg math select frameset".split())
_ATTRIBUTES = ("class", "id", "role", "href", "alt", "aria-label", "style", "hidden", "itemprop", "lang", "type")
_BLOCKS = frozenset(
    b"address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 h2 "
    b"h3 h4 h5 h6 header hgroup hr li dd dt listing main menu nav ol p pre search section summary table ul".split()
)
"""What a `p` ends before."""
_HEADINGS = frozenset(b"h1 h2 h3 h4 h5 h6".split())
_TABLES = frozenset(b"table caption colgroup tbody thead tfoot tr td th".split())
_MARKERS = frozenset(b"table caption td th object applet marquee".split())
"""What an end tag does not reach out of, unless it is a table's."""
_SPECIAL = _BLOCKS | _TABLES | _MARKERS | frozenset(b"button noscript".split())
"""What the end tag of an element that is none of these does not reach out of."""
_ROWS = frozenset((b"tbody", b"thead", b"tfoot"))
_CELLS = frozenset((b"td", b"th"))
_TERMS = frozenset((b"dt", b"dd"))
_ENDED_BEFORE = {
    b"li": (frozenset((b"li",)), frozenset(b"ul ol menu dir".split())),
    **dict.fromkeys(_TERMS, (_TERMS, frozenset((b"dl",)))),
    **dict.fromkeys(_CELLS, (_CELLS, frozenset((b"tr",)))),
    b"tr": (frozenset((b"tr",)), _ROWS),
    **dict.fromkeys(_ROWS, (_ROWS, frozenset[bytes]())),
    b"option": (frozenset((b"option",)), frozenset[bytes]()),
}
"""Which open elements a start tag ends, and out of which it ends none; never out of a table."""
_PARAGRAPH = frozenset((b"p",))


def flattened(body: bytes, open_tags_max: int) -> bytes | None:
    """Return a page's markup (UTF-8) with each element closed in order, without scripts, comments and formatting.

    None for a page that has more than `open_tags_max` elements open at once, or too many in all. Linear; about 1 µs a
    tag.
    """
    try:
        return _Flattening(body, open_tags_max).markup()
    except _TooMuchError:
        return None


class _TooMuchError(Exception):
    """The page is beyond a bound."""


class _Flattening:
    """One pass over a page."""

    def __init__(self, body: bytes, open_tags_max: int) -> None:
        self._body = body
        self._lower = body.lower()
        self._open_tags_max = open_tags_max
        self._pieces: list[bytes] = []
        self._stack: list[bytes] = []
        self._open: dict[bytes, int] = {}
        """How many of each name are on the stack."""
        self._never_closed: set[bytes] = set()
        """Names that have no end tag in the rest of the page, so that it is searched once for each."""
        self._nodes = self._work = 0

    def markup(self) -> bytes:
        body, search, pieces = self._body, _TOKEN.search, self._pieces
        position = 0
        while (token := search(body, position)) is not None:
            start = token.start()
            if start > position:
                # Where a tag is left out, what stood around it must not become one.
                pieces.append(body[position:start].replace(b"<", b"&lt;"))
            ends, name, rest, comment, _ = token.groups()
            if name is None:
                position = skipped_comment(body, start) if comment else body.find(b">", start) + 1
            else:
                name, found = name.lower(), None
                position = token.end()
                if rest is None or len(rest) > TAG_BYTES_MAX or rest.count(b"/") > SLASHES_MAX:
                    found, position = attributes(body, start + 1 + len(ends or b"") + len(name))
                if position > 0 and ends:
                    self._end(name)
                elif position > 0:
                    position = self._start(name, rest or b"", found, position)
            if position <= 0:
                return b"".join(pieces)
        pieces.append(body[position:].replace(b"<", b"&lt;"))
        return b"".join(pieces)

    def _start(self, name: bytes, rest: bytes, found: dict[str, str] | None, position: int) -> int:
        """Take a start tag; return where to go on, or -1 at the end of the page."""
        if name in _FORMATTING:
            return position
        if name in _DROPPED:
            return self._after(name, position)
        if name == b"plaintext":
            return -1
        if name == b"a" and self._open.get(name):
            self._unlink()
        if name in _BLOCKS and self._open.get(b"p"):
            self._close(_PARAGRAPH, _MARKERS)
        ended = _ENDED_BEFORE.get(name)
        if ended is not None:
            self._close(ended[0], ended[1] | {b"table"})
        self._pieces.append(b"<%b%b>" % (name, _written(found) if found is not None else rest))
        self._nodes += 1 + len(found if found is not None else rest.split())
        self._work += len(self._stack)
        if name not in _VOID and name not in _THROUGH:
            self._stack.append(name)
            self._open[name] = self._open.get(name, 0) + 1
        if len(self._stack) > self._open_tags_max or self._nodes > NODES_MAX or self._work > WORK_MAX:
            raise _TooMuchError
        return position

    def _end(self, name: bytes) -> None:
        if name == b"br":
            self._pieces.append(b"<br>")
        elif name in _HEADINGS:
            self._close(_HEADINGS, _MARKERS)
        elif not self._open.get(name):
            return
        elif name == b"a":
            self._unlink()
        elif name in _TABLES:
            self._close(frozenset((name,)), frozenset((b"table",)))
        else:
            self._close(frozenset((name,)), _MARKERS if name in _SPECIAL else _SPECIAL)

    def _close(self, names: frozenset[bytes], without: frozenset[bytes]) -> None:
        """End the innermost open element of these names and all within it, unless one of `without` stands between."""
        stack = self._stack
        for at in range(len(stack) - 1, -1, -1):
            self._work += 1
            if stack[at] in names:
                break
            if stack[at] in without:
                return
        else:
            return
        for name in reversed(stack[at:]):
            self._pieces.append(b"</%b>" % name)
            self._open[name] -= 1
        del stack[at:]

    def _unlink(self) -> None:
        """End the open link alone: what was opened within it stays open."""
        at = len(self._stack) - 1 - self._stack[::-1].index(b"a")
        self._work += len(self._stack)
        self._pieces.append(b"</a>")
        self._open[b"a"] -= 1
        del self._stack[at]

    def _after(self, name: bytes, position: int) -> int:
        """Return the place after an element that is left out; -1 at the end of the page."""
        if name in _RAW:
            return self._past(self._end_of(name, position))
        depth = 1
        while depth:
            end = self._end_of(name, position)
            if end < 0:
                return position  # It was never closed: its tag alone is left out.
            inner = self._lower.count(b"<" + name, position, end)
            depth += inner - 1
            position = self._past(end)
            if position <= 0:
                return -1
        return position

    def _end_of(self, name: bytes, position: int) -> int:
        closing = _END[name].search(self._lower, position) if name not in self._never_closed else None
        if closing is None:
            self._never_closed.add(name)
            return -1
        return closing.start()

    def _past(self, end: int) -> int:
        return self._body.find(b">", end) + 1 or -1 if end >= 0 else -1


_END = {name: re.compile(rb"</%b(?=[\t\n\f\r />])" % name) for name in _DROPPED}


def _written(found: dict[str, str]) -> bytes:
    """Return the attributes that content is told from, of a tag that is not plain."""
    return "".join(
        f' {name}="{html.escape(found[name][:TAG_BYTES_MAX])}"' for name in _ATTRIBUTES if name in found
    ).encode("utf-8", "replace")
