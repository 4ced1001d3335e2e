"""Tokens: what the tags of a page are, each read once for all places where it is written alike."""

from __future__ import annotations

import re

from gossamer.process.elements import BLOCKS, DROPPED, ENDED_BEFORE, ENDS_P, HEADINGS, ONCE, VOID

NAME = r"[a-zA-Z][^\t\n\f\r />]*+"
VALUES = r"""[^"'>]*+(?:"[^"]*+"[^"'>]*+|'[^']*+'[^"'>]*+)*+"""
_TAG = re.compile(rf"(/?+)({NAME})({VALUES})")

Tag = tuple[str, str]
"""An edge of an element: its name, with a slash before it where the element ends, and its attributes as written."""

END, INLINE, BLOCK, COUNTED_BLOCK, ANCHOR, EMPTY, OTHER, NOTHING, DROP, ODD_TAG = range(10)
"""What is done with a tag: most need little."""
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
        """Return what the start tag of a name in lower case is."""
        event, action = (name, rest), _ACTIONS.get(name, INLINE)
        if name not in _DIVIDING:
            return action, name, event, 0
        place = self._places.get(event)
        if place is None:
            place = self._places[event] = len(self._names)
            self._names.append(event)
        return action, name, event, place
