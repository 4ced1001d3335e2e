"""Walk: one pass over markup that stops at elements of interest and hands on everything between them.

For modules that need more of a page than `html.Markup` has. Like `scan`, its faster special case, it follows the
tokenizer of the HTML standard (section 13.2.5), is always linear, and ends after as many steps as `scan`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gossamer.process.scan import PLAIN_TAG, STEPS_MAX, attributes, skipped_comment

RAW = ("script", "style", "textarea", "xmp", "noembed", "noframes", "title", "iframe")
_ALWAYS = (*RAW, "template", "/template", "plaintext")
_SPACE = r"\t\n\f\r "
_RAW_END = {name.encode(): re.compile(rf"</{name}(?=[{_SPACE}/>])".encode()) for name in RAW}
_NAME = re.compile(rb"[^\t\n\f\r />]{1,64}")


class WalkStep(NamedTuple):
    """An element of interest, or (without name) a stretch of plain tags and text."""

    name: str
    attributes: dict[str, str]
    start: int
    end: int
    """The bytes of the stretch, or of the text of an element whose content is no markup."""


class ElementWalk:
    """Walks over pages for elements of certain names. Comments and the content of `<template>` are passed over."""

    def __init__(self, names: Iterable[str]) -> None:
        known = tuple(dict.fromkeys((*names, *_ALWAYS)))
        self._known = frozenset(name.encode() for name in known)
        self._breaker = re.compile(
            (
                rf"<(?:(?:{'|'.join(known)})(?=[{_SPACE}/>])"
                r"|!--|[!?]|/[^a-z>]"
                rf"|[a-z/]{PLAIN_TAG}[^>])"
            ).encode()
        )

    def over(self, body: bytes, steps_max: int = STEPS_MAX) -> Iterator[WalkStep]:
        """Yield the steps of a page in UTF-8, in order. An element comes between the stretches around it.

        A tag with an angle bracket in an attribute, or quotes that do not pair, is a step too, with any name.
        """
        # Sought in lower case, which is much quicker than to ignore it; a byte stays where it is.
        search, lower = self._breaker.search, body.lower()
        line_from = position = hidden = steps = 0
        while (token := search(lower, position)) is not None:
            steps += 1
            if steps > steps_max:
                return
            start, name = token.start(), token[0][1:]
            if not hidden and line_from < start:
                yield WalkStep("", {}, line_from, start)
            if name in self._known or name[:1].isalpha():
                step, position = self._element(body, lower, start, name)
                hidden = max(0, hidden + (step.name == "template") - (step.name == "/template"))
                if not hidden and position and step.name[:1] != "/":
                    yield step
            else:
                position = _passed_over(body, start, name)
            if position <= 0:
                return
            line_from = position
        if not hidden and line_from < len(body):
            yield WalkStep("", {}, line_from, len(body))

    def _element(self, body: bytes, lower: bytes, start: int, name: bytes) -> tuple[WalkStep, int]:
        """Return an element and where to go on: -1 when the page ends with it, 0 when it ends within its tag."""
        if name not in self._known:
            found = _NAME.match(body, start + 1)
            name = found[0].lower() if found is not None else b""
        named, position = attributes(body, start + 1 + len(name))
        if position < 0:
            return WalkStep("", {}, start, start), 0
        text = end = position
        if name in _RAW_END:
            closing = _RAW_END[name].search(lower, position)
            end = closing.start() if closing is not None else len(body)
            position = body.find(b">", end) + 1 or -1
        elif name == b"plaintext":
            position = -1
        return WalkStep(name.decode("utf-8", "replace"), named, text, end), position


def _passed_over(body: bytes, start: int, token: bytes) -> int:
    """Return the place after a comment, a declaration or an end tag; -1 at the end of the page."""
    if token == b"!--":
        return skipped_comment(body, start)
    if token[:1] == b"/" and token[1:2].isalpha():
        return attributes(body, start + 2)[1]
    return body.find(b">", start + 2) + 1 or -1
