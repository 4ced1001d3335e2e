"""Stretch: a part of a page's markup, split at each `<`, with the places of its pieces."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

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
        before, offset = self._characters(), position - self._start
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
        pieces, end = self.pieces, "/" + name
        size, depth = len(end), 1
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
