"""Foreign: where a page's tags are those of SVG and MathML, in which none has raw text and a slash ends an element.

Follows the HTML standard (sections 13.2.6 and 13.2.6.5) as far as that decides how the tags after it are read: the
roots, the integration points, in which tags are HTML's again, and the tags that end a drawing or formula. Elements of
HTML within an integration point are not followed, so its end tag always ends it.
"""

import re
from collections.abc import Mapping
from typing import Any

import re2

OPEN_MAX = 64
"""Elements that are followed at once; those within are passed over, so that a tag costs the same everywhere."""
ROOTS = frozenset((b"svg", b"math"))
_POINTS: Mapping[bytes, frozenset[bytes]] = {
    b"svg": frozenset((b"foreignobject", b"desc", b"title")),
    b"math": frozenset((b"mi", b"mo", b"mn", b"ms", b"mtext", b"annotation-xml")),
}
"""Elements with HTML in them, by the language that they belong to."""
_SILENT = frozenset((b"title", b"style", b"script", b"template"))
"""Elements whose text is not shown."""
_MARKUP = (b"text/html", b"application/xhtml+xml")
_LEAVING = [
    "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2", "h3",
    "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s",
    "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var", "font", "/p", "/br",
]  # fmt: skip
"""Tags that end a drawing or formula. Others that end elements around it are passed over, since they may be stray."""
_LEAVES = frozenset(name.encode() for name in _LEAVING)
_FONT = ("color", "face", "size")
_FOLLOWED = [name.decode() for name in sorted(ROOTS | _SILENT | _POINTS[b"svg"] | _POINTS[b"math"])]
WATCHED = (*_FOLLOWED, *(f"/{name}" for name in _FOLLOWED), *_LEAVING)
"""Names of the tags that matter within a root, those of end tags with their slash."""
# A root with nothing but shapes or a formula in it: nearly all of them, passed over in one step.
_ATTRIBUTES = r"""(?:[\t\n\f\r /](?:[^<>"']|"[^"<>]*"|'[^'<>]*')*)?>"""
_SHAPES = (
    "a|animate|circle|clippath|defs|ellipse|g|line|lineargradient|mask|path|polygon|polyline|radialgradient|rect|stop|"
    "symbol|text|tspan|use|annotation|mfrac|mi|mn|mo|mover|mrow|mspace|msqrt|mstyle|msub|msubsup|msup|mtable|mtd|mtext|"
    "mtr|munder|munderover|semantics"
)
_UNQUOTED = re.compile(rb"=[\t\n\f\r ]*[^\t\n\f\r \"'<>=]*\Z")


def _plain_roots() -> Any:  # RE2 has no types.
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    content = rf"(?:[^<]|</?(?:{_SHAPES}){_ATTRIBUTES}|<!--[^<>]*-->)*"
    return re2.compile(  # type: ignore[no-untyped-call]
        "|".join(rf"<{name}{_ATTRIBUTES}{content}</{name}>" for name in ("svg", "math")).encode(), options
    )


_PLAIN_ROOT = _plain_roots()


def end_of_plain_root(lower: bytes, start: int) -> int:
    """Return where a root that begins here ends, if there is nothing but shapes or a formula in it, otherwise 0.

    Linear: what is looked at ends at the next root.
    """
    if lower.startswith(b"/", lower.find(b">", start) - 1):
        return 0
    found = _PLAIN_ROOT.match(lower, start)
    return 0 if found is None else int(found.end())


def closes_itself(tag: bytes) -> bool:
    """Return whether a start tag, without its angle brackets, ends in a slash that is not part of a value."""
    return tag.endswith(b"/") and _UNQUOTED.search(tag[:-1]) is None


class ForeignContent:
    """The open elements of SVG and MathML at a place of a page, of those that matter."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: list[tuple[bytes, bytes]] = []
        """From the outermost root on: name, and the language of what is in it, empty for HTML."""

    def __bool__(self) -> bool:
        """Return whether a root is open."""
        return bool(self._open)

    @property
    def is_foreign(self) -> bool:
        """Whether tags here are those of SVG or MathML."""
        return bool(self._open) and self._open[-1][1] != b""

    @property
    def hides(self) -> bool:
        """Whether the text here is not shown."""
        return any(name in _SILENT for name, _ in self._open)

    def takes(self, name: bytes, attributes: Mapping[str, str], tag: bytes) -> bool:
        """Take a tag (`WATCHED`, or any other); return whether it is one of SVG or MathML rather than of HTML.

        `name` is in lower case, with a slash in an end tag; `tag` is as for `closes_itself`.
        """
        open_ = self._open
        language = open_[-1][1] if open_ else b""
        if language and name in _LEAVES and (name != b"font" or any(one in attributes for one in _FONT)):
            while open_ and open_[-1][1]:
                open_.pop()
            return False
        if name[:1] == b"/":
            return self._end(name[1:])
        if not language and name not in ROOTS:
            return False
        if len(open_) < OPEN_MAX and not closes_itself(tag):
            self._start(name, language, attributes)
        return True

    def _start(self, name: bytes, language: bytes, attributes: Mapping[str, str]) -> None:
        if name in ROOTS:
            is_own = not language or (name == b"svg" and self._open[-1][0] == b"annotation-xml")
            self._open.append((name, name if is_own else language))
        elif name in _POINTS[language]:
            holds_html = name != b"annotation-xml" or attributes.get("encoding", "").lower().encode() in _MARKUP
            self._open.append((name, b"" if holds_html else language))
        elif name in _SILENT:
            self._open.append((name, language))

    def _end(self, name: bytes) -> bool:
        """Close the innermost element with this name, if it is one of these, and all within it."""
        names = [one for one, _ in self._open]
        if name not in names:
            return False
        del self._open[len(names) - 1 - names[::-1].index(name) :]
        return True
