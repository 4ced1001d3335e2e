"""Kept: the main content of a page, as a tree of the elements that Markdown can represent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gossamer.stages.process.outline import Outline, attributes
from gossamer.stages.process.tokens import BLOCKS, HEADINGS, VOID, Tag

DEPTH_MAX = 60
"""Depth to which elements are kept; the content of deeper ones belongs to the element around."""
PLACE_CHARACTERS_MAX = 200
"""Length of an id that is kept as the place of a heading."""
_INLINE = frozenset([
    "a", "abbr", "b", "cite", "code", "del", "em", "i", "img", "ins", "kbd", "br", "math", "mark", "q", "s", "samp",
    "small", "strike", "strong", "sub", "sup", "tt", "u", "var", "input",
])  # fmt: skip
_STRUCTURE = HEADINGS | frozenset([
    "p", "ul", "ol", "menu", "li", "pre", "blockquote", "table", "tr", "td", "th", "caption", "dl", "dt", "dd", "hr",
    "figure", "figcaption", "thead",
])  # fmt: skip
_NAMED = frozenset(["div", "span", "section", "aside", "nav"])
"""Elements without a Markdown form whose class names show their content."""
_CELLS = frozenset(("td", "th"))
_REPEATING = frozenset(("span", "div", "td", "nobr"))
_PLACE = re.compile(r"\s(?:id|name)[\s=]", re.IGNORECASE)
_DUPLICATES = (
    "katex-html", "MathJax_Preview", "MathJax_CHTML", "MathJax-Element", "mjx-", "ln-numbers", "mw-editsection",
)  # fmt: skip
"""Names of elements that repeat other content visually."""


class Element:
    """A kept element with its kept content. `name` is empty if it only divides text."""

    __slots__ = ("_found", "block", "children", "holds_blocks", "name", "place", "rest")

    def __init__(self, name: str, rest: str, *, block: bool) -> None:
        self.name = name
        self.rest = rest
        self.block = block
        self.holds_blocks = block
        """Whether it is a block or one is within."""
        self.children: list[Element | str] = []
        self.place = ""
        """Of a heading: the id by which an address leads to it; empty where the page has none there."""
        self._found: dict[str, str] | None = None

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes by name."""
        if self._found is None:
            self._found = attributes(self.rest)
        return self._found

    def elements(self) -> Iterator[Element]:
        """Yield the elements directly within."""
        return (child for child in self.children if isinstance(child, Element))

    def walk(self) -> Iterator[Element | str]:
        """Yield all that is within, in order."""
        stack: list[Element | str] = list(reversed(self.children))
        while stack:
            one = stack.pop()
            yield one
            if isinstance(one, Element):
                stack.extend(reversed(one.children))

    def text(self) -> str:
        """Return the text within, unchanged; line breaks as such."""
        return "".join(
            one if isinstance(one, str) else "\n" if one.name == "br" else "" for one in self.walk()
        )  # fmt: skip

    def first(self, name: str) -> Element | None:
        """Return the first element of a name within."""
        return next((one for one in self.walk() if isinstance(one, Element) and one.name == name), None)


def build_tree(outline: Outline, chosen: Sequence[bool]) -> Element:
    """Return the tree of the blocks that are `chosen`. Linear; about 1 µs an event."""
    return _KeptBuilder(outline, chosen).root


def _begin_of_holder(events: Sequence[str | Tag]) -> int:
    """Return where the first element begins that is still open at the end; the number of events if there is none."""
    opened: list[int] = []
    for at, event in enumerate(events):
        if isinstance(event, str) or event[0] in VOID or event[0] == "math":
            continue
        if event[0][0] != "/":
            opened.append(at)
        elif opened:
            opened.pop()
    return opened[0] if opened else len(events)


def _kind(tag: Tag) -> tuple[bool, bool, bool, bool]:
    """Say of a tag whether it is empty, whether it is kept as such, divides text, repeats what is said elsewhere."""
    name, rest = tag
    block = name in BLOCKS
    if name in VOID or name == "math":
        return True, name in _KNOWN_EMPTY, name == "hr", False
    known = block or name in _STRUCTURE or name in _INLINE or (name in _NAMED and rest != "")
    repeats = name in _REPEATING and rest != "" and any(one in rest for one in _DUPLICATES)
    return False, known, block, repeats


class _Places:
    """Ids that lead to headings: of a heading, of an element within it, or of one that begins directly before it."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        """Ids of the page: the second of two equal ones leads to the first."""
        self._before = ""
        """Id after which no text came yet."""
        self._heading: Element | None = None
        """The open heading that has no id in it yet."""

    def add_text(self, text: str) -> None:
        """Take a text, whether it is kept or not."""
        if self._before and text.strip():
            self._before = ""

    def add_tag(self, name: str, rest: str) -> str:
        """Take a start tag, and return its id if that leads to it."""
        if "id" not in (lower := rest.lower()) and (name != "a" or "name" not in lower):
            return ""
        found = attributes(rest)
        place = found.get("id") or (found.get("name", "") if name == "a" else "")
        if not place or place in self._seen or len(place) > PLACE_CHARACTERS_MAX or len(place.split()) != 1:
            return ""
        self._seen.add(place)
        self._before = place
        if self._heading is not None:
            self._heading.place = place
            self._heading = None
        return place

    def open(self, heading: Element, place: str) -> None:
        """Begin a heading, whose own id is `place`."""
        heading.place = place or self._before
        self._heading = None if place else heading
        self._before = ""

    def close(self, element: Element) -> None:
        """End an element."""
        if element is self._heading:
            self._heading = None


class _KeptBuilder:
    def __init__(self, outline: Outline, chosen: Sequence[bool]) -> None:
        self.root = Element("", "", block=True)
        self._open: list[Element] = [self.root]
        self._kinds: dict[Tag, tuple[bool, bool, bool, bool]] = {}
        """Results of `_kind` for this page's tags."""
        self._hidden = 0
        """How many elements are open within and with one that repeats others."""
        self._has_mathml = False
        self._places = _Places()
        position = 0
        before = False
        for number, (block, keeps) in enumerate(zip(outline.blocks, chosen, strict=True)):
            gap = outline.events[position : block.first]
            # Pictures and rules between two kept blocks belong to them; after one that is not kept, and before the
            # first one, those in an element that begins after it and also holds the kept block.
            apart = 0 if before or not number else _begin_of_holder(gap)
            self._take(gap[:apart], texts=keeps, pictures=False)
            self._take(gap[apart:], texts=keeps, pictures=keeps)
            self._take(outline.events[block.first : block.last], texts=keeps, pictures=keeps)
            position = block.last
            before = keeps
        self._take(outline.events[position:], texts=False, pictures=False)

    def _take(self, events: Sequence[str | Tag], *, texts: bool, pictures: bool) -> None:
        for event in events:
            if isinstance(event, str):
                self._places.add_text(event)
                if texts and not self._hidden:
                    self._open[-1].children.append(event)
            elif event[0][0] == "/":
                self._end()
            else:
                self._start(event, texts=texts, pictures=pictures)

    def _start(self, event: Tag, *, texts: bool, pictures: bool) -> None:
        found = self._kinds.get(event)
        if found is None:
            found = _kind(event)
            self._has_mathml = self._has_mathml or "katex-mathml" in event[1]
            if "katex-html" in event[1] and not self._has_mathml:
                found = (*found[:3], False)  # It repeats nothing.
            self._kinds[event] = found
        (name, rest), (empty, known, block, repeats) = event, found
        place = self._places.add_tag(name, rest) if "=" in rest else ""
        if empty:
            wanted = pictures if name in ("img", "hr", "source") else texts
            if wanted and known and not self._hidden:
                self._add(Element(name, rest, block=block))
            return
        if self._hidden or repeats:
            self._hidden += 1
        around = self._open[-1]
        if self._hidden or not known or len(self._open) > DEPTH_MAX:
            if block and not self._hidden:
                self._add(Element("", "", block=True))
            self._open.append(around)
            return
        element = Element(name, rest, block=block)
        if name in HEADINGS:
            self._places.open(element, place)
        self._add(element)
        self._open.append(element)

    def _add(self, element: Element) -> None:
        self._open[-1].children.append(element)
        if element.block:
            for around in reversed(self._open):
                if around.holds_blocks:
                    break
                around.holds_blocks = True

    def _end(self) -> None:
        ended = self._open.pop()
        if self._open[-1] is not ended:
            self._places.close(ended)
        if self._hidden:
            self._hidden -= 1
        # What nothing was kept of is dropped at once, unless it is a cell or divides text.
        around = self._open[-1].children
        if not ended.children and around and around[-1] is ended and ended.name not in _CELLS:
            beside = around[-2] if len(around) > 1 else None
            if beside is None and ended.name in ("a", "span") and _PLACE.search(ended.rest) is not None:
                return  # A footnote may begin with it.
            if not ended.block or beside is None or (isinstance(beside, Element) and beside.block):
                around.pop()


_KNOWN_EMPTY = frozenset(["br", "hr", "img", "math", "input", "source"])
