"""Walk: one pass over markup that stops at elements of interest and hands on everything between them.

For modules that need more of a page than `html.Markup` has. Like `scan`, its faster special case, it follows the
tokenizer of the HTML standard (section 13.2.5), is always linear, and ends after as many steps as `scan`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gossamer.stages.process.foreign import ROOTS, WATCHED, ForeignContent, closes_itself, end_of_plain_root
from gossamer.stages.process.raw import RAW, RAW_NAMES
from gossamer.stages.process.scan import (
    CDATA,
    STEPS_MAX,
    attributes,
    breaker,
    end_of_raw,
    is_plain,
    is_shadow_root,
    skip_comment,
)

_ALWAYS = (*RAW, "template", "/template", "plaintext", "svg", "math")
_NAME = re.compile(rb"[^\t\n\f\r />]{1,64}")


class WalkStep(NamedTuple):
    """An element of interest, or (without name) a stretch of plain tags and text."""

    name: str
    attributes: dict[str, str]
    start: int
    end: int
    """The bytes of the stretch, or of the text of an element whose content is no markup."""


class ElementWalk:
    """Prepares walks over pages for elements of certain names. Comments and `<template>` are passed over."""

    def __init__(self, names: Iterable[str]) -> None:
        self.wanted = frozenset(name.encode() for name in (*names, *_ALWAYS)) - (ROOTS - {*map(str.encode, names)})
        self.outside = _Breaker((*names, *_ALWAYS))
        self.inside = _Breaker((*names, *_ALWAYS, *WATCHED))

    def over(self, body: bytes, steps_max: int = STEPS_MAX) -> Iterator[WalkStep]:
        """Yield the steps of a page in UTF-8, in order. An element comes between the stretches around it.

        A tag with an angle bracket in an attribute, or quotes that do not pair, is a step too, with any name.
        """
        return _PageWalk(self, body).steps(steps_max)


class _Breaker:
    """Finds the tags of some names, with one more character, and all that is no plain tag."""

    def __init__(self, names: Iterable[str]) -> None:
        self.known = frozenset(name.encode() for name in names)
        self.search = breaker(dict.fromkeys(names)).search


class _PageWalk:
    def __init__(self, walk: ElementWalk, body: bytes) -> None:
        self._walk = walk
        self._body = body
        # Sought in lower case, which is much quicker than to ignore it; a byte stays where it is.
        self._lower = body.lower()
        self._breaker = walk.outside
        self._foreign = ForeignContent()
        self._never_closed: set[bytes] = set()
        """Names that have no end tag in the rest of the page, so that it is searched once for each."""
        self._templates = 0
        """Those that are open, shadow roots aside."""

    def steps(self, steps_max: int) -> Iterator[WalkStep]:
        body = self._body
        lower = self._lower
        wanted = self._walk.wanted
        breaker = self._breaker
        search = breaker.search
        known = breaker.known
        line_from = position = steps = 0
        while (token := search(lower, position)) is not None:
            steps += 1
            if steps > steps_max:
                return
            start, end = token.span()
            found = lower[start:end]
            is_known = found[1:-1] in known
            name = found[1:-1] if is_known else found[1:]
            hidden = self._templates
            if is_known and name in ROOTS and name not in wanted and end_of_plain_root(lower, start):
                position = end - 1
                continue
            step = None
            if is_known or name[:1].isalpha():
                step, position = self._element(start, name, is_known=is_known)
                if breaker is not self._breaker:
                    breaker = self._breaker
                    search = breaker.search
                    known = breaker.known
                if is_known and name not in wanted and position > 0 and is_plain(body, start, position):
                    continue
            else:
                position = self._skip(start, name)
            if not hidden and line_from < start:
                yield WalkStep("", {}, line_from, start)
            if step is not None and not self._templates and position and step.name[:1] != "/":
                yield step
            if position <= 0:
                return
            line_from = position
        if not self._templates and line_from < len(body):
            yield WalkStep("", {}, line_from, len(body))

    def _element(self, start: int, name: bytes, *, is_known: bool) -> tuple[WalkStep, int]:
        """Return an element and where to go on: -1 when the page ends with it, 0 when it ends within its tag."""
        body = self._body
        if not is_known:
            found = _NAME.match(body, start + 1)
            name = found[0].lower() if found is not None else b""
        begin = start + 1 + len(name)
        named, position = attributes(body, begin)
        if position < 0:
            return WalkStep("", {}, start, start), 0
        is_foreign = False
        tag = body[begin : position - 1]
        if self._foreign or name in ROOTS:
            is_foreign = self._foreign.takes(name, named, tag)
            self._breaker = self._walk.inside if self._foreign else self._walk.outside
        text = end = position
        if name in RAW_NAMES and not (is_foreign and (closes_itself(tag) or name in self._never_closed)):
            last, after = end_of_raw(body, self._lower, name, position)
            if after >= 0 or not is_foreign:
                end = last
                position = after
            if is_foreign and after >= 0:
                self._foreign.takes(b"/" + name, {}, b"")
            elif after < 0:
                self._never_closed.add(name)
        elif name == b"plaintext" and not is_foreign:
            position = -1
        elif name == b"template" and not is_foreign:
            self._templates += self._templates > 0 or not is_shadow_root(named)
        elif name == b"/template" and not is_foreign:
            self._templates = max(0, self._templates - 1)
        return WalkStep(name.decode("utf-8", "replace"), named, text, end), position

    def _skip(self, start: int, token: bytes) -> int:
        """Return the place after a comment, a declaration or an end tag; -1 at the end of the page."""
        body = self._body
        if token == b"!--":
            return skip_comment(body, start)
        if token[:1] == b"/" and token[1:2].isalpha():
            return attributes(body, start + 2)[1]
        if self._foreign.is_foreign and body.startswith(CDATA, start):
            end = body.find(b"]]>", start)
            return end + 3 if end >= 0 else -1
        return body.find(b">", start + 2) + 1 or -1
