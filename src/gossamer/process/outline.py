"""Outline: a page's markup as a list of events that nest, and the blocks of text among them, in one linear pass.

A parser of the HTML standard costs the square of nesting, of a tag's attributes and of unclosed formatting elements.
This pass builds no tree: it keeps a stack of open elements, closes each in order, and stops at named bounds, so its
cost is always linear in the page's length. Comments, scripts and form selections are left out.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from gossamer.process.scan import PLAIN_TAG

EVENTS_MAX = 400_000
"""Texts and edges of elements of one page: about 150 MB while its outline exists."""
FORMULA_MAX = 8_000
"""Characters of one formula's markup; what is longer is cut."""
BLOCKS_MAX = 20_000
"""Blocks of one page; text after them is in no block."""
WORK_MAX = 5_000_000
"""Steps up the stack of open elements, for all elements of a page together. About 0.5 s."""

_SPACE = r"\t\n\f\r "
_NAME = r"[a-zA-Z][^\t\n\f\r />]*+"
_TOKEN = re.compile(rf"([^<]*+)(?:<(/?+{_NAME}{PLAIN_TAG})>|<(/?)({_NAME})|<(!--|[!?/]|)|\Z)")
_NAMED = re.compile(_NAME)
_ATTRIBUTE = re.compile(rf"([^{_SPACE}/>=]+)(?:[{_SPACE}]*=[{_SPACE}]*(?:\"([^\"]*)\"|'([^']*)'|([^{_SPACE}>\"']*)))?")
_QUOTED = re.compile(r"[^>\"']*+(?:\"[^\"]*+\"[^>\"']*+|'[^']*+'[^>\"']*+)*+>")
_ANNOTATION = re.compile(r"<annotation.*?</annotation[^>]*>", re.DOTALL | re.IGNORECASE)
_TAGS = re.compile(r"<[^<>]*>")
_COMMENT_END = re.compile(r"--!?>")

BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "dialog",
        "dir",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hgroup",
        "hr",
        "li",
        "listing",
        "main",
        "menu",
        "nav",
        "ol",
        "p",
        "pre",
        "search",
        "section",
        "summary",
        "table",
        "caption",
        "tbody",
        "thead",
        "tfoot",
        "tr",
        "td",
        "th",
        "colgroup",
        "ul",
        "button",
        "label",
        "legend",
        "noscript",
        "video",
        "audio",
        "object",
        "html",
        "head",
        "frameset",
    ]
)
"""Elements whose edges divide text."""
_ENDS_P = BLOCKS - frozenset(
    [
        "caption",
        "tbody",
        "thead",
        "tfoot",
        "tr",
        "td",
        "th",
        "colgroup",
        "button",
        "label",
        "legend",
        "noscript",
        "video",
        "audio",
        "object",
        "html",
        "head",
        "body",
    ]
)
HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
VOID = frozenset(
    [
        "area",
        "base",
        "basefont",
        "bgsound",
        "br",
        "col",
        "embed",
        "frame",
        "hr",
        "img",
        "image",
        "input",
        "keygen",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    ]
)
_RAW = frozenset(["plaintext", "script", "style", "textarea", "xmp", "noembed", "noframes", "iframe", "title"])
_DROPPED = _RAW | frozenset(["template", "svg", "math", "select"])
"""Left out with their content; `math` and formulas in scripts stay as one event."""
_TABLES = frozenset(["table", "caption", "colgroup", "tbody", "thead", "tfoot", "tr", "td", "th"])
_MARKERS = frozenset(["table", "caption", "td", "th", "object", "applet", "marquee"])
"""What an end tag does not reach out of, unless it is a table's."""
_SPECIAL = BLOCKS | _MARKERS
_ROWS = frozenset(("tbody", "thead", "tfoot"))
_CELLS = frozenset(("td", "th"))
_TERMS = frozenset(("dt", "dd"))
_ENDED_BEFORE = {
    "li": (frozenset(("li",)), frozenset(["ul", "ol", "menu", "dir", "table"])),
    **dict.fromkeys(_TERMS, (_TERMS, frozenset(("dl", "table")))),
    **dict.fromkeys(_CELLS, (_CELLS, frozenset(("tr", "table")))),
    "tr": (frozenset(("tr",)), _ROWS | {"table"}),
    **dict.fromkeys(_ROWS, (_ROWS, frozenset(("table",)))),
    "body": (frozenset(("head",)), frozenset[str]()),
    "option": (frozenset(("option",)), frozenset(("table",))),
    "a": (frozenset(("a",)), _MARKERS),
    "button": (frozenset(("button",)), _MARKERS),
}
"""Which open elements a start tag ends, and out of which it ends none."""
_PARAGRAPH = frozenset(("p",))
_ONCE = frozenset(("html", "head", "body"))
"""Open once."""
_Facts = tuple[bool, bool, tuple[frozenset[str], frozenset[str]] | None, bool]
"""Of a name: whether it divides text, ends a paragraph, ends others, has no content."""
_FACTS: dict[str, _Facts] = {
    name: (name in BLOCKS, name in _ENDS_P, _ENDED_BEFORE.get(name), name in VOID)
    for name in BLOCKS | _ENDED_BEFORE.keys() | VOID
}
_NO_FACTS: _Facts = (False, False, None, False)
_ENDS = {name: ("/" + name, "") for name in BLOCKS | {"a", "b", "em", "i", "span", "strong"}}


Tag = tuple[str, str]
"""An edge of an element: its name, with a slash before it where the element ends, and its attributes as written."""


class TextBlock(NamedTuple):
    """A stretch of text that no block-level edge divides, with white space collapsed."""

    text: str
    words: int
    link_words: int
    links: int
    node: int
    """The block-level element that holds it, in `Outline.tags`."""
    first: int
    """Its events are those from here …"""
    last: int
    """… to before here, in `Outline.events`."""


class Outline:
    """What a page consists of: `events` are texts (`str`) and edges (`Tag`), in order; they nest."""

    __slots__ = ("blocks", "events", "parents", "scripts", "tags", "title")

    def __init__(self) -> None:
        self.events: list[str | Tag] = []
        self.blocks: list[TextBlock] = []
        self.tags: list[Tag] = [("html", "")]
        """The block-level elements, the first around all."""
        self.parents: list[int] = [0]
        """Of each of these the number of the one around it."""
        self.scripts: list[str] = []
        """Content of JSON-LD scripts."""
        self.title = ""


class TooMuchError(Exception):
    """A page is beyond a bound."""


def outlined(markup: str, open_tags_max: int) -> Outline | None:
    """Return a page's outline, None for one with more than `open_tags_max` elements open at once, or too many in all.

    Linear; about 2 µs a tag.
    """
    try:
        return _OutlineBuilder(markup, open_tags_max).outline()
    except TooMuchError:
        return None


def attributes(rest: str) -> dict[str, str]:
    """Return the attributes of a tag by their lower-case names, references replaced; the first of equal names wins."""
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(rest):
        value = double or single or bare
        found.setdefault(name.lower(), unescaped(value))
    return found


def unescaped(text: str) -> str:
    """Return a text with its character references replaced."""
    if "&" not in text:
        return text
    try:
        return html.unescape(text)
    except ValueError:  # A number of thousands of digits.
        return text


_Read = tuple[str, Tag, bool, _Facts]
"""A tag: its name, itself as an event, whether it is an end tag, and `_FACTS`."""


def _read(tag: str) -> _Read:
    """Return what a tag is, which is without its angle brackets."""
    ends = tag[0] == "/"
    name = tag[1:] if ends else tag.partition(" ")[0]
    if not name.isalnum():
        name = _NAMED.match(tag, ends)[0]  # type: ignore[index]  # as _TOKEN has it
    rest = tag[ends + len(name) :]
    name = name.lower()
    facts = _FACTS.get(name, _NO_FACTS)
    return name, _end_of(name) if ends else (name, rest), ends, facts


def _end_of(name: str) -> Tag:
    return _ENDS.get(name) or ("/" + name, "")


class _OutlineBuilder:
    """One pass over a page."""

    def __init__(self, markup: str, open_tags_max: int) -> None:
        self._markup = markup
        self._open_tags_max = open_tags_max
        self._outline = Outline()
        self._events = self._outline.events
        self._stack: list[str] = []
        self._nodes: list[int] = [0]
        """The root and the open block-level elements, by their numbers."""
        self._open: defaultdict[str, int] = defaultdict(int)
        self._read: dict[str, _Read] = {}
        """The tags of this page as written: three of four are one that was there before."""
        self._never_closed: set[str] = set()
        """Names that have no end tag in the rest of the page, so that it is searched once for each."""
        self._once: set[str] = set()
        """Names of `_ONCE` that were open."""
        self._work = 0
        self._texts: list[str] = []
        """The block at hand."""
        self._first = self._link_words = self._links = 0

    def outline(self) -> Outline:
        position: int | None = 0
        while position is not None:
            position = self._run(position)
        if self._texts:
            self._flush()
        while self._stack:
            self._pop(_end_of(self._stack[-1]))
        return self._outline

    def _run(self, position: int) -> int | None:
        """Take tokens until one that ends elsewhere than its pattern does; return where, or None at the page's end."""
        texts, stack, opened, read = self._texts, self._stack, self._open, self._read
        for token in _TOKEN.finditer(self._markup, position):
            text, tag, slash, name, other = token.groups()
            if text and (texts or not text.isspace() or opened["pre"]):
                self._text(text)
            if tag is None:
                if name is not None:
                    return self._odd(slash, name.lower(), token.end())
                if other == "":
                    self._text("<")
                    continue
                return None if other is None else self._after_other(other, token.end())
            known = read.get(tag)
            if known is None:
                known = read[tag] = _read(tag)
            name, event, ends, facts = known
            if not ends:
                if name in _DROPPED:
                    return self._after(name, event[1], token.end())
                self._start(event, facts)
            elif stack and stack[-1] == name:
                self._pop(event)
            else:
                self._end(name)
        return None

    def _odd(self, slash: str, name: str, position: int) -> int | None:
        """Take a tag in which a quote or an angle bracket may be anything; return the place after it."""
        tag = _QUOTED.match(self._markup, position)
        if tag is None:
            return None  # The page ends within the tag.
        rest = tag[0][:-1]
        if slash:
            self._end(name)
        elif name in _DROPPED:
            return self._after(name, rest, tag.end())
        else:
            self._start((name, rest), _FACTS.get(name, _NO_FACTS))
        return tag.end()

    def _text(self, text: str) -> None:
        if "&" in text:
            text = unescaped(text)
        linked = self._open["a"]
        if not self._texts:
            self._first, self._link_words, self._links = len(self._events), 0, 1 if linked else 0
        self._events.append(text)
        self._texts.append(text)
        if linked:
            self._link_words += len(text.split())

    def _start(self, tag: Tag, facts: _Facts) -> None:
        (name, _), (block, ends_p, ended, void), opened = tag, facts, self._open
        if ends_p and opened["p"]:
            self._close(_PARAGRAPH, _MARKERS)
        if ended is not None:
            self._close_any(*ended)
        if name in _ONCE and self._had(name):
            return
        if self._texts:
            if block:
                self._flush()
            elif name == "br":
                self._texts.append("\n")
            elif name == "a":
                self._links += 1
        if block and not void:
            outline = self._outline
            outline.parents.append(self._nodes[-1])
            self._nodes.append(len(outline.tags))
            outline.tags.append(tag)
        self._events.append(tag)
        if void:
            return
        stack = self._stack
        stack.append(name)
        opened[name] += 1
        if len(stack) > self._open_tags_max or len(self._events) > EVENTS_MAX:
            raise TooMuchError

    def _had(self, name: str) -> bool:
        """Say whether an element that opens once was opened before."""
        before = name in self._once
        self._once.add(name)
        return before

    def _end(self, name: str) -> None:
        if name in HEADINGS:
            self._close_any(HEADINGS, _MARKERS)
        elif not self._open.get(name) or name in ("html", "body"):
            return
        elif name in _TABLES:
            self._close(frozenset((name,)), frozenset(("table",)))
        else:
            self._close(frozenset((name,)), _MARKERS if name in _SPECIAL else _SPECIAL)

    def _close_any(self, names: frozenset[str], without: frozenset[str]) -> None:
        """As `_close`, which costs more where none of these is open."""
        opened = self._open
        for name in names:
            if opened[name]:
                self._close(names, without)
                return

    def _close(self, names: frozenset[str], without: frozenset[str]) -> None:
        """End the innermost open element of these names and all within it, unless one of `without` is between."""
        stack = self._stack
        at = len(stack) - 1
        while at >= 0 and stack[at] not in names and stack[at] not in without:
            at -= 1
        self._work += len(stack) - at
        if self._work > WORK_MAX:
            raise TooMuchError
        if at >= 0 and stack[at] not in names:
            return
        while at >= 0 and len(stack) > at:
            self._pop(_end_of(stack[-1]))

    def _pop(self, end: Tag) -> None:
        """End the element opened last, by its end tag."""
        name = self._stack.pop()
        if name in BLOCKS:
            if self._texts:
                self._flush()
            self._nodes.pop()
        self._events.append(end)
        self._open[name] -= 1

    def _flush(self) -> None:
        """End the block at hand, which holds text, if it is more than white space."""
        words = "".join(self._texts).split()
        if words and len(self._outline.blocks) < BLOCKS_MAX:
            self._outline.blocks.append(
                TextBlock(
                    " ".join(words), len(words), self._link_words, self._links, self._nodes[-1], self._first,
                    len(self._events),
                )
            )  # fmt: skip
        self._texts.clear()

    def _after_other(self, mark: str, start: int) -> int | None:
        """Return the place after a comment, declaration or stray end tag that begins before `start` with this mark."""
        if mark != "!--":
            return self._markup.find(">", start) + 1 or None
        for abrupt in (">", "->"):
            if self._markup.startswith(abrupt, start):
                return start + len(abrupt)
        end = _COMMENT_END.search(self._markup, start)
        return end.end() if end is not None else None

    def _after(self, name: str, rest: str, position: int) -> int | None:
        """Return the place after an element that is left out, or None at the end of the page."""
        if rest.endswith("/") and name not in _RAW and name not in ("template", "select"):
            return position  # In foreign content a tag closes itself.
        ends, depth = self._ends(name, position), 1
        while depth:
            closing = next(ends, None)
            if closing is None:
                self._never_closed.add(name)
                return position if name not in _RAW else None
            depth += len(_OPENING[name].findall(self._markup, position, closing)) - 1 if name not in _RAW else -1
            inner, position = (position, closing), self._markup.find(">", closing) + 1
            if not position:
                return None
        self._kept(name, rest, self._markup[inner[0] : inner[1]])
        return position

    def _ends(self, name: str, position: int) -> Iterator[int]:
        if name in self._never_closed:
            return
        for closing in _CLOSING[name].finditer(self._markup, position):
            yield closing.start()

    def _kept(self, name: str, rest: str, content: str) -> None:
        """Keep what an element that is no text means: formulas, structured data, the title."""
        if name == "math" or (name == "script" and "math/tex" in rest):
            content = content[:FORMULA_MAX]
            self._text(" ")
            self._events[-1] = ("math", rest + "\0" + content)
            self._texts[-1] = f" {_TAGS.sub('', _ANNOTATION.sub('', content))} "
        elif name == "script" and "ld+json" in rest:
            self._outline.scripts.append(content)
        elif name == "title" and not self._outline.title:
            self._outline.title = " ".join(unescaped(content).split())


# The case of what comes first matters, so that a search for it is quick.
_CLOSING = {name: re.compile(rf"</(?i:{name})(?=[{_SPACE}/>])") for name in _DROPPED}
_OPENING = {name: re.compile(rf"<(?i:{name})(?=[{_SPACE}/>])") for name in _DROPPED}
