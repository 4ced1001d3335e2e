"""Tokens: markup split at its tags, each read once, and rules of the HTML standard for elements by name."""

import re
from bisect import bisect_right
from itertools import accumulate

BLOCKS = frozenset([
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "li", "listing", "main", "menu", "nav", "ol", "p", "pre", "search", "section",
    "summary", "table", "caption", "tbody", "thead", "tfoot", "tr", "td", "th", "colgroup", "ul", "button",
    "label", "legend", "noscript", "video", "audio", "object", "html", "head", "frameset",
])  # fmt: skip
"""Elements whose edges divide text."""
ENDS_P = BLOCKS - frozenset([
    "caption", "tbody", "thead", "tfoot", "tr", "td", "th", "colgroup", "button", "label", "legend", "noscript",
    "video", "audio", "object", "html", "head", "body",
])  # fmt: skip
HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
VOID = frozenset([
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "image", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr",
])  # fmt: skip
NEEDED = {
    **dict.fromkeys(("blockquote", "q", "ins", "del"), "cite"),
    **dict.fromkeys(("embed", "turbo-frame", "include-fragment"), "src"),
    "object": "data",
}
"""Attributes without which an element of these names leads nowhere."""
RAW = frozenset(["plaintext", "script", "style", "textarea", "xmp", "noembed", "noframes", "iframe", "title"])
DROPPED = RAW | frozenset(["template", "svg", "math", "select"])
"""Left out with their content; `math` and formulas in scripts stay as one event."""
TABLES = frozenset(["table", "caption", "colgroup", "tbody", "thead", "tfoot", "tr", "td", "th"])
MARKERS = frozenset(["table", "caption", "td", "th", "object", "applet", "marquee"])
"""Elements that an end tag inside does not close, except end tags of tables."""
SPECIAL = BLOCKS | MARKERS
_ROWS = frozenset(("tbody", "thead", "tfoot"))
_CELLS = frozenset(("td", "th"))
_TERMS = frozenset(("dt", "dd"))
ENDED_BEFORE = {
    "li": (frozenset(("li",)), frozenset(["ul", "ol", "menu", "dir", "table"])),
    **dict.fromkeys(_TERMS, (_TERMS, frozenset(("dl", "table")))),
    **dict.fromkeys(_CELLS, (_CELLS, frozenset(("tr", "table")))),
    "tr": (frozenset(("tr",)), _ROWS | {"table"}),
    **dict.fromkeys(_ROWS, (_ROWS, frozenset(("table",)))),
    "body": (frozenset(("head",)), frozenset[str]()),
    "option": (frozenset(("option",)), frozenset(("table",))),
    "a": (frozenset(("a",)), MARKERS),
    "button": (frozenset(("button",)), MARKERS),
}
"""By start tag: the open elements that it closes, and the elements beyond which it closes none."""
PARAGRAPH = frozenset(("p",))
ONCE = frozenset(("html", "head", "body"))
"""Elements that are opened only once."""
NAME = r"[a-zA-Z][^\t\n\f\r />]*+"
_NAMED = r"[\t\n\f\r /]*+[^\t\n\f\r />][^\t\n\f\r />=]*+[\t\n\f\r ]*+"
_VALUE = r"""=[\t\n\f\r ]*+(?:"[^"]*+"|'[^']*+'|(?!["'])[^\t\n\f\r >]*+)"""
VALUES = rf"(?>(?:{_NAMED}(?:{_VALUE}|(?!=)))*)[\t\n\f\r /]*+"
"""The attributes of a tag: a quote is one only after `=` (HTML, sections 13.2.5.32 to 13.2.5.39)."""
_TAG = re.compile(rf"(/?+)({NAME})({VALUES})")
_SHADOW_ROOT = re.compile(
    r"""[\t\n\f\r /]shadowrootmode[\t\n\f\r ]*+=[\t\n\f\r ]*+["']?(?:open|closed)\b""", re.IGNORECASE
)
Tag = tuple[str, str]
"""An edge of an element: its name, with a slash before it where the element ends, and its attributes as written."""

END, INLINE, BLOCK, COUNTED_BLOCK, ANCHOR, EMPTY, OTHER, NOTHING, DROP, ODD_TAG = range(10)
"""Treatments of tags: most need little."""
COUNTED = frozenset(["p", "pre", *ENDED_BEFORE, *HEADINGS, *ONCE])
"""Names of which it matters, before a start tag or a text, whether one is open."""
_ACTIONS = {
    **dict.fromkeys(
        ["b", "cite", "code", "em", "font", "i", "s", "small", "span", "strong", "sup", "time", "u"], INLINE
    ),
    **dict.fromkeys(BLOCKS - ENDS_P, OTHER),
    **dict.fromkeys(ENDS_P, BLOCK),
    **dict.fromkeys(VOID, EMPTY),
    **dict.fromkeys(COUNTED & ENDS_P, COUNTED_BLOCK),
    **dict.fromkeys([*(COUNTED - ENDS_P), "br", "hr"], OTHER),
    **dict.fromkeys(DROPPED, DROP),
    "a": ANCHOR,
}
"""Of each name that asks for more than to be remembered, and of the most frequent of the others."""
Read = tuple[int, str, Tag, int]
"""A tag: what is done with it, its name, itself as an event, and more: of an end tag one of the following or their sum,
of the start tag of a block-level element its place in `Outline.names`, otherwise 0.
"""
POP, POP_BLOCK, POP_COUNTED = range(3)
"""`POP_BLOCK` for a block-level element, more for one of `COUNTED`."""


def _end_tag(name: str) -> Read:
    return END, name, ("/" + name, ""), (name in BLOCKS) * POP_BLOCK + (name in COUNTED) * POP_COUNTED


_DIVIDING = BLOCKS - VOID
NO_NAMES = (frozenset[str](), frozenset[str]())
"""In `ENDED_BEFORE` of a start tag that ends nothing."""
_ENDS = {"/" + name: _end_tag(name) for name in _DIVIDING | {"a", "b", "em", "i", "span", "strong"}}
_COMMENT: Read = (NOTHING, "", ("", ""), 0)
ODD: Read = (ODD_TAG, "", ("", ""), 0)


def end_of(name: str) -> Tag:
    """Return the end tag of an element, as an event."""
    return (_ENDS.get("/" + name) or _end_tag(name))[2]


class Tags(dict[str, Read]):
    """The tags of a page as written, without their angle brackets: three of four are one that was there before."""

    def __init__(self, names: list[Tag]) -> None:
        super().__init__(_ENDS)
        self._names = names
        """`Outline.names`."""
        self._places: dict[Tag, int] = {names[1]: 1}
        """The places of tags there."""

    def __missing__(self, tag: str) -> Read:
        name = tag.partition(" ")[0]
        if name in _ACTIONS and "'" not in tag and not tag.count('"') & 1:
            known = self.start(name, tag[len(name) :])
        elif name.startswith("!"):
            if name.startswith("!--") and not tag.endswith("--"):
                return ODD
            known = _COMMENT
        elif (match := _TAG.fullmatch(tag)) is not None:
            slash, name, rest = match.groups()
            name = name.lower()
            known = (_ENDS.get("/" + name) or _end_tag(name)) if slash else self.start(name, rest)
        else:
            return ODD
        self[tag] = known
        return known

    def start(self, name: str, rest: str) -> Read:
        """Return how the start tag of a name in lower case is read."""
        event = (name, rest)
        action = _ACTIONS.get(name, INLINE)
        if name == "template" and _SHADOW_ROOT.search(rest) is not None:
            action = INLINE  # It is shown where it stands.
        if name not in _DIVIDING:
            return action, name, event, 0
        place = self._places.get(event)
        if place is None:
            place = self._places[event] = len(self._names)
            self._names.append(event)
        return action, name, event, place


CHARACTERS = 250_000
"""Markup that is split at once: more would cost memory on a hostile page, less would cut through scripts."""
_AFTER_NAME = frozenset("\t\n\f\r />")


class Stretch:
    """Markup from `start` to the first `<` that is `CHARACTERS` behind it, or to the page's end."""

    __slots__ = ("_before", "_start", "end", "pieces")

    def __init__(self, markup: str, start: int) -> None:
        end = markup.find("<", start + CHARACTERS)
        self.end = end if end >= 0 else len(markup)
        self._start = start
        self.pieces = markup[start : self.end].split("<")
        """The first is text; each other begins with what a tag begins with."""
        self._before: list[int] | None = None

    def position(self, at: int) -> int:
        """Return where in the page's markup a piece begins."""
        return self._start + self._characters()[at] + at

    def place(self, position: int) -> tuple[int, str]:
        """Return the number of the piece at a position in this stretch, and what of it comes after the position."""
        before = self._characters()
        offset = position - self._start
        at = bisect_right(range(len(self.pieces)), offset, key=lambda at: before[at] + at) - 1
        return at, self.pieces[at][offset - before[at] - at :]

    def _characters(self) -> list[int]:
        if self._before is None:
            self._before = list(accumulate(map(len, self.pieces), initial=0))
        return self._before

    def closing(self, name: str, at: int, *, nests: bool) -> int | None:
        """Return the number of the piece with the end tag of an element that begins with the piece `at`, if it is here.

        The end tag is found by its name alone; where the element `nests`, so are those within.
        """
        pieces = self.pieces
        end = "/" + name
        size = len(end)
        depth = 1
        for number in range(at + 1, len(pieces)):
            piece = pieces[number]
            if piece.startswith("/"):
                if piece[:size].lower() == end and piece[size : size + 1] in _AFTER_NAME:
                    depth -= 1
                    if ">" not in piece:
                        return None
                    if not depth:
                        return number
            elif nests and piece[: size - 1].lower() == name and piece[size - 1 : size] in _AFTER_NAME:
                depth += 1
        return None
