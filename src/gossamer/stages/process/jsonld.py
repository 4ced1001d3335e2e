"""JSON-LD: what scripts of this type hold, also where sites wrote it by hand and it is no JSON."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gossamer.stages.process.scan import unescape

_TOKEN: Final = re.compile(
    r'"(?>(?:[^"\\]|\\.)*)"?'  # a string
    r"|/[/*][\t ]*(?:<!\[CDATA\[|\]\]>)[\t ]*(?:\*/)?"  # the marks of CDATA in a comment
    r"|//[^\n]*|/\*.*?(?:\*/|\Z)"  # comments of JavaScript
    r"|<!--[^\n{\[>]{0,500}-->|<!--|-->|<!\[CDATA\[|\]\]>"  # comments of HTML, and marks around the whole
    r"|[\[{}\]]",
    re.DOTALL,
)
_ODD: Final = re.compile(r'\\["\\/bfnrtu]|[\\\x00-\x1f]')


_MARKS_BEFORE: Final = re.compile(r"\A(?>(?:[\s/*]|<!--|<!\[CDATA\[)*)")
_MARKS_AFTER: Final = re.compile(r"(?<=[}\]])(?>(?:[\s/*]|-->|\]\]>)+)\Z")


def without_marks(script: str) -> str:
    """Return a script without the marks of a comment or of CDATA around the whole, which XHTML and old browsers need.
    Linear.
    """
    return _MARKS_AFTER.sub("", _MARKS_BEFORE.sub("", script))


def roots(script: bytes) -> Iterator[object]:
    """Yield the values of a script: one, if it is JSON, else each value that becomes JSON without comments, marks of
    CDATA, commas before a closing bracket, needless backslashes, and raw control characters in strings. Linear.
    """
    try:
        yield msgspec.json.decode(script)
    except (msgspec.DecodeError, RecursionError):
        for text in _repair(script.decode("utf-8", "replace")):
            try:
                yield msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError):
                continue


def _repair(text: str) -> Iterator[str]:
    pieces: list[str] = []
    depth = at = 0
    for token in _TOKEN.finditer(text):
        if depth:
            pieces.append(text[at : token.start()])
        at = token.end()
        mark = token[0]
        if mark in ("]", "}") and depth:
            while pieces and not pieces[-1].strip():
                pieces.pop()
            if pieces and pieces[-1][0] != '"':
                pieces[-1] = pieces[-1].rstrip().removesuffix(",")
        if mark[0] == '"' and depth:
            pieces.append(_ODD.sub(_valid, mark))
        elif mark in ("[", "{", "]", "}") and (depth or mark in ("[", "{")):
            pieces.append(mark)
            depth += 1 if mark in ("[", "{") else -1
            if not depth:
                yield "".join(pieces)
                pieces = []


def _valid(found: re.Match[str]) -> str:
    """Return valid JSON for an escape, or for a character of a string that needs one."""
    mark = found[0]
    return mark if len(mark) == 2 else "" if mark == "\\" else f"\\u{ord(mark):04x}"


def listed(written: object) -> list[Any]:
    """Return a value of JSON-LD as a list."""
    return written if isinstance(written, list) else [written]


def value_of(written: object, *keys: str) -> str:
    """Return a value of JSON-LD as text: itself, the first of a list, or what an object holds under the first key."""
    written = next(iter(listed(written)), None)
    if isinstance(written, dict):
        written = next((written[key] for key in (*keys, "@value") if written.get(key)), None)
        written = next(iter(listed(written)), None)
        written = written.get("@value") if isinstance(written, dict) else written
    return unescape(written) if isinstance(written, str) else ""
