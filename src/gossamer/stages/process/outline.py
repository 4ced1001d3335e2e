"""Outline: a page's markup as a list of events that nest, and the blocks of text among them, in one linear pass.

A parser of the HTML standard costs the square of nesting, of a tag's attributes and of unclosed formatting elements.
This pass builds no tree: it keeps a stack of open elements, closes each in order, and stops at named bounds, so its
cost is always linear in the page's length. Comments, scripts and form selections are left out.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice, repeat
from operator import length_hint
from typing import NamedTuple

from gossamer.stages.process import tokens
from gossamer.stages.process.formulas import linear_formula
from gossamer.stages.process.scan import reference_free, unescape
from gossamer.stages.process.tokens import END, INLINE, NOTHING, ODD, POP_BLOCK

EVENTS_MAX = 400_000
"""Texts and edges of elements of one page: about 150 MB while its outline exists."""
FORMULA_MAX = 8_000
"""Characters of one formula's markup; what is longer is cut."""
BLOCKS_MAX = 20_000
"""Blocks of one page; text after them is in no block."""
WORK_MAX = 5_000_000
"""Steps up the stack of open elements, for all elements of a page together. About 0.5 s."""
_SPACE = r"\t\n\f\r "
_NOT_PLAIN = re.compile(rf"(/?)({tokens.NAME})|(!--|[!?/]|)")
_REST = re.compile(rf"{tokens.VALUES}>")
_ATTRIBUTE = re.compile(
    rf"([^{_SPACE}/>=]++)(?:[{_SPACE}]*+=[{_SPACE}]*+(?:\"([^\"]*+)\"|'([^']*+)'|([^{_SPACE}>\"']*+)))?"
)
_COMMENT_END = re.compile(r"--!?>")


class TextBlock(NamedTuple):
    """A piece of text without block-level boundaries, with white space collapsed."""

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
    """The structure of a page: `events` are texts (`str`) and edges of elements (`Tag`), in order, properly nested."""

    __slots__ = ("blocks", "events", "kinds", "names", "parents", "scripts", "title", "within")

    def __init__(self) -> None:
        self.events: list[str | tokens.Tag] = []
        self.blocks: list[TextBlock] = []
        self.names: list[tokens.Tag] = [("", ""), ("html", "")]
        """The distinct tags of block-level elements; the first one is empty."""
        self.kinds: list[int] = [1]
        """For each block-level element: the index of its tag in `names`. The first element contains all others."""
        self.parents: list[int] = [0]
        """For each of these: the index of its parent."""
        self.within: list[int] = [0]
        """For each: the index of the first later element that is not within it."""
        self.scripts: list[str] = []
        """Content of JSON-LD scripts."""
        self.title = ""

    @property
    def tags(self) -> list[tokens.Tag]:
        """The tags of all block-level elements; each call makes the list again."""
        return list(map(self.names.__getitem__, self.kinds))


class TooMuchError(Exception):
    """A page exceeds a bound."""


def outline_of(markup: str, open_tags_max: int) -> Outline | None:
    """Return a page's outline; None if too many elements are open at once, or in all. Linear; 1.5 µs a tag."""
    try:
        return _OutlineBuilder(markup, open_tags_max).outline()
    except TooMuchError:
        return None


def attributes(rest: str) -> dict[str, str]:
    """Return the attributes of a tag by their lower-case names, references replaced; the first of equal names wins."""
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(rest):
        value = double or single or bare
        found.setdefault(name.lower(), reference_free(value))
    return found


class _OutlineBuilder:
    def __init__(self, markup: str, open_tags_max: int) -> None:
        self._markup = markup
        self._open_max = open_tags_max + 1
        self._outline = Outline()
        self._events = self._outline.events
        self._stack: list[str] = [""]
        """The open elements, after one that no tag closes."""
        self._nodes: list[int] = [0]
        """The root and the open block-level elements, by their numbers."""
        self._open: defaultdict[str, int] = defaultdict(int)
        self._tags = tokens.Tags(self._outline.names)
        self._never_closed: set[str] = set()
        """Names that have no end tag in the rest of the page, so that it is searched once for each."""
        self._once: set[str] = set()
        """Names of `ONCE` that were open."""
        self._work = 0
        self._texts: list[str] = []
        """Texts of the current block."""
        self._first = self._link_words = self._links = 0
        self._next: int | None = None

    def outline(self) -> Outline:
        start: int | None = 0
        while start is not None:
            start = self._stretch(start)
            if len(self._events) > EVENTS_MAX:
                raise TooMuchError
        if self._texts:
            self._flush()
        while len(self._stack) > 1:
            self._pop(tokens.end_of(self._stack[-1]))
        self._outline.within[0] = len(self._outline.parents)
        return self._outline

    def _stretch(self, start: int) -> int | None:
        """Take a stretch of markup; return where it ends, or None at the page's end. Here a page's time goes."""
        texts = self._texts
        stack = self._stack
        opened = self._open
        tags = self._tags
        events = self._events
        parents = self._outline.parents
        within = self._outline.within
        nodes = self._nodes
        open_max = self._open_max
        stretch = tokens.Stretch(self._markup, start)
        rest = iter(stretch.pieces)
        self._leading(next(rest))
        for tag, closed, text in map(str.partition, rest, repeat(">")):
            known = tags[tag] if closed else ODD
            action, name, event, more = known
            if action == END:
                if more > POP_BLOCK or stack[-1] != name:
                    self._end(name, event)
                else:
                    if more:
                        if texts:
                            self._flush()
                        within[nodes.pop()] = len(parents)
                    del stack[-1]
                    events.append(event)
            elif action == INLINE:
                events.append(event)
                stack.append(name)
                if len(stack) > open_max:
                    raise TooMuchError
            elif action < NOTHING:
                self._start(known)
            elif action > NOTHING:
                at = len(stretch.pieces) - length_hint(rest) - 1
                number, text = self._after(stretch, at, known, text)
                if number < 0:
                    return self._next
                next(islice(rest, number - at, number - at), None)  # Pass over the pieces between.
            if text and (texts or not text.isspace() or opened["pre"]):
                self._text(text)
        return stretch.end if stretch.end < len(self._markup) else None

    def _leading(self, text: str) -> None:
        """Take the text that a stretch begins with."""
        if text and (self._texts or not text.isspace() or self._open["pre"]):
            self._text(text)

    def _text(self, text: str) -> None:
        if "&" in text:
            text = unescape(text)
        linked = self._open["a"]
        texts = self._texts
        events = self._events
        if not texts:
            self._first = len(events)
            self._link_words = 0
            self._links = 1 if linked else 0
        events.append(text)
        texts.append(text)
        if linked:
            self._link_words += len(text.split())

    def _start(self, known: tokens.Read) -> None:
        (action, name, event, place), opened, texts = known, self._open, self._texts
        if action == tokens.EMPTY:
            self._events.append(event)
            return
        if action == tokens.OTHER:
            self._start_other(name, event, place)
            return
        if action == tokens.ANCHOR:
            if opened["a"]:
                self._close(*tokens.ENDED_BEFORE["a"])
            opened["a"] += 1
            if texts:
                self._links += 1
        elif action != INLINE:
            if opened["p"]:
                self._close(tokens.PARAGRAPH, tokens.MARKERS)
            if action == tokens.COUNTED_BLOCK:
                self._close_any(*tokens.ENDED_BEFORE.get(name, tokens.NO_NAMES))
                opened[name] += 1
            if texts:
                self._flush()
            self._node(place)
        self._push(name, event)

    def _start_other(self, name: str, event: tokens.Tag, place: int) -> None:
        if name in tokens.ENDS_P and self._open["p"]:
            self._close(tokens.PARAGRAPH, tokens.MARKERS)
        self._close_any(*tokens.ENDED_BEFORE.get(name, tokens.NO_NAMES))
        if name in tokens.ONCE and self._had(name):
            return
        if self._texts:
            if name in tokens.BLOCKS:
                self._flush()
            elif name == "br":
                self._texts.append("\n")
        if name in tokens.VOID:
            self._events.append(event)
            return
        if place:
            self._node(place)
        if name in tokens.COUNTED:
            self._open[name] += 1
        self._push(name, event)

    def _node(self, place: int) -> None:
        """Begin a block-level element, whose tag has this place in `Outline.names`."""
        outline = self._outline
        nodes = self._nodes
        outline.parents.append(nodes[-1])
        nodes.append(len(outline.within))
        outline.within.append(0)
        outline.kinds.append(place)

    def _push(self, name: str, event: tokens.Tag) -> None:
        self._events.append(event)
        self._stack.append(name)
        if len(self._stack) > self._open_max:
            raise TooMuchError

    def _had(self, name: str) -> bool:
        """Return whether an element that is opened only once was opened before."""
        before = name in self._once
        self._once.add(name)
        return before

    def _end(self, name: str, event: tokens.Tag) -> None:
        if self._stack[-1] == name:
            self._pop(event)
        elif name in tokens.HEADINGS:
            self._close_any(tokens.HEADINGS, tokens.MARKERS)
        elif name in ("html", "body") or not self._is_open(name):
            return
        elif name in tokens.TABLES:
            self._close(frozenset((name,)), frozenset(("table",)))
        else:
            self._close(frozenset((name,)), tokens.MARKERS if name in tokens.SPECIAL else tokens.SPECIAL)

    def _is_open(self, name: str) -> bool:
        if name in tokens.COUNTED:
            return self._open[name] > 0
        self._work += len(self._stack) // 16  # What such a search costs beside a step of `_close`.
        return name in self._stack

    def _close_any(self, names: frozenset[str], without: frozenset[str]) -> None:
        """As `_close`, but fast if none of these is open."""
        opened = self._open
        for name in names:
            if opened[name]:
                self._close(names, without)
                return

    def _close(self, names: frozenset[str], without: frozenset[str]) -> None:
        """End the innermost open element of these names and all within it, unless one of `without` is between."""
        stack = self._stack
        at = len(stack) - 1
        while at > 0 and stack[at] not in names and stack[at] not in without:
            at -= 1
        self._work += len(stack) - at
        if self._work > WORK_MAX:
            raise TooMuchError
        if at == 0 or stack[at] not in names:
            return
        while len(stack) > at:
            self._pop(tokens.end_of(stack[-1]))

    def _pop(self, end: tokens.Tag) -> None:
        name = self._stack.pop()
        if name in tokens.BLOCKS:
            if self._texts:
                self._flush()
            self._outline.within[self._nodes.pop()] = len(self._outline.parents)
        self._events.append(end)
        if name in tokens.COUNTED:
            self._open[name] -= 1

    def _flush(self) -> None:
        texts = self._texts
        blocks = self._outline.blocks
        words = (texts[0] if len(texts) == 1 else "".join(texts)).split()
        if words and len(blocks) < BLOCKS_MAX:
            facts = (len(words), self._link_words, self._links, self._nodes[-1], self._first, len(self._events))
            blocks.append(tuple.__new__(TextBlock, (" ".join(words), *facts)))  # In half the time of `TextBlock`.
        texts.clear()

    def _after(self, stretch: tokens.Stretch, at: int, known: tokens.Read, text: str) -> tuple[int, str]:
        """Take what is not a plain tag, at the piece `at`. Return the number of the piece where it ends, and what
        follows there; where it ends beyond the stretch, a negative number, and `_next` is where.
        """
        piece, (action, name, (_, rest), _) = stretch.pieces[at], known
        if action == tokens.DROP:
            nests = name not in tokens.RAW
            if (rest.endswith("/") and nests and name not in ("template", "select")) or name in self._never_closed:
                return at, text  # In foreign content a tag closes itself.
            if (number := stretch.closing(name, at, nests=nests)) is not None:
                self._keep_content(name, rest, text, stretch.pieces[at + 1 : number])
                return number, stretch.pieces[number].partition(">")[2]
            position = self._far(name, rest, stretch.position(at) + len(piece) - len(text))
        elif piece.startswith("!--") and (end := _comment_end(piece, 3)) is not None:
            return at, piece[end:]
        else:
            position = self._odd(stretch.position(at))
        if position is None or position >= stretch.end:
            self._next = position
            return -1, ""
        return stretch.place(position)

    def _odd(self, start: int) -> int | None:
        """Take what is no tag, or one in which a quote or an angle bracket may be anything; return where it ends."""
        markup = self._markup
        match = _NOT_PLAIN.match(markup, start)
        slash, name, mark = match.groups()  # type: ignore[union-attr]  # matches the empty string
        end = match.end()  # type: ignore[union-attr]
        if mark == "":
            self._text("<")
            return end
        if mark is not None:
            return _comment_end(markup, end) if mark == "!--" else markup.find(">", end) + 1 or None
        tag = _REST.match(markup, end)
        if tag is None:
            return None  # The page ends within the tag.
        name = name.lower()
        rest = tag[0][:-1]
        if slash:
            self._end(name, tokens.end_of(name))
        elif name in tokens.DROPPED:
            return self._far(name, rest, tag.end())
        else:
            self._start(self._tags.start(name, rest))
        return tag.end()

    def _far(self, name: str, rest: str, start: int) -> int | None:
        """Return the position after an element that is left out, or None at the end of the page."""
        nests = name not in tokens.RAW
        if rest.endswith("/") and nests and name not in ("template", "select"):
            return start
        position = start
        depth = 1
        closings = _CLOSING[name].finditer(self._markup, start) if name not in self._never_closed else iter(())
        while depth:
            closing = next(closings, None)
            if closing is None:
                self._never_closed.add(name)
                return position if nests else None
            depth += len(_OPENING[name].findall(self._markup, position, closing.start())) - 1 if nests else -1
            inner = (position, closing.start())
            position = self._markup.find(">", closing.start()) + 1
            if not position:
                return None
        self._keep_content(name, rest, self._markup[inner[0] : inner[1]], ())
        return position

    def _keep_content(self, name: str, rest: str, content: str, pieces: Sequence[str]) -> None:
        """Keep the content of an element that is not text: a formula, structured data, the title."""
        if name == "math" or (name == "script" and "math/tex" in rest):
            content = "<".join((content, *pieces))[:FORMULA_MAX]
            self._text(" ")
            self._events[-1] = ("math", rest + "\0" + content)
            self._texts[-1] = f" {unescape(linear_formula(content))} "
        elif name == "script" and "ld+json" in rest:
            self._outline.scripts.append("<".join((content, *pieces)))
        elif name == "title" and not self._outline.title:
            self._outline.title = " ".join(unescape("<".join((content, *pieces))).split())


def _comment_end(text: str, start: int) -> int | None:
    """Return the place after a comment whose content begins at `start`, None if it does not end."""
    for abrupt in (">", "->"):
        if text.startswith(abrupt, start):
            return start + len(abrupt)
    end = _COMMENT_END.search(text, start)
    return end.end() if end is not None else None


# The case of what comes first matters, so that a search for it is quick.
_CLOSING = {name: re.compile(rf"</(?i:{name})(?=[{_SPACE}/>])") for name in tokens.DROPPED}
_OPENING = {name: re.compile(rf"<(?i:{name})(?=[{_SPACE}/>])") for name in tokens.DROPPED}
