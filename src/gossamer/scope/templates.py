"""Templates: what many addresses of a host have in common, from the closest likeness to the widest."""

from __future__ import annotations

import re

SEGMENT_CHARACTERS_MAX = 48
"""Of a longer segment the rest is cut: no template is longer than a screen is wide."""
NAMES_MAX = 12
"""Parameters of a query that are named; the rest is dots."""
DEEP_SEGMENTS = 4
"""Addresses of so many segments are also taken together by the first alone."""
VERY_DEEP_SEGMENTS = 6
"""Addresses of so many segments are also taken together, all of a host; shorter ones by their number of segments."""
SLUG_HYPHENS = 3
"""A segment with so many hyphens is a title, and every page has its own."""

_ID = re.compile(
    r"""(?x)
    [0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}   # a UUID
    | (?<![A-Za-z0-9]) (?= [0-9A-Fa-f]*[0-9]) (?= [0-9A-Fa-f]*[A-Fa-f]) [0-9A-Fa-f]{6,} (?![A-Za-z0-9])
    | (?<![A-Za-z0-9_-]) (?= [A-Za-z_-]*[0-9]) (?= [0-9_-]*[A-Za-z]) [A-Za-z0-9_-]{20,} (?![A-Za-z0-9_-])
    """
)
_NUMBER = re.compile(r"[0-9]+")
_PARTICULAR = re.compile(r"[0-9;(]").search
"""A segment without any of these holds no number, no id (but for a UUID that is all letters) and no session."""
_SESSION = re.compile(r"(?i)(;[a-z]*(?:sess|sid)[a-z_]*=)[^/;]*|\([SAF]\([^)]*\)\)")


def templates_of(text: str) -> tuple[str, ...]:
    """Return the templates of an address, the narrowest first; each begins with its path. About 7 µs.

    Numbers stand as `{n}`, ids and hashes as `{id}`, long titles as `{title}`; a query is its sorted parameter names.
    `*` is one segment, or any query; `**` is any number of segments.
    """
    path, mark, query = text[text.find("/", text.find("://") + 3) :].partition("?")
    segments = [_general(segment) if segment else "" for segment in path.split("/")[1:]]
    shape = "/" + "/".join(segments)
    count = len(segments) if segments[-1] else len(segments) - 1
    found = [f"{shape}?{_names(query)}", f"{shape}?*"] if mark else [shape]
    if count:
        found.append(shape[: shape.rfind("/", 0, len(shape) - 1) + 1] + "*")
    if count >= DEEP_SEGMENTS:
        found.append(f"/{segments[0]}/*/*/**")
    if count >= VERY_DEEP_SEGMENTS:
        found.append("/*/*/*/*/*/**")
    elif count > 1:
        found.append("/*" * count)
    return tuple(found)


def width_of(template: str) -> int:
    """Return 1 for a template of one shape, 2 for one that is open at its end, 4 for one that is open at once."""
    if "*" not in template:
        return 1
    return 4 if template.startswith("/*") else 2


def literal_start(template: str) -> str:
    """Return how every address of a template begins, from its path on: a quick test before the exact one."""
    ends = [at for at in map(template.find, "{*?") if at >= 0]
    return template[: min(ends, default=len(template))]


def years_of(text: str) -> list[int]:
    """Return the numbers in an address that may be years: before a month of two digits, or called so in a query."""
    return [int(path or parameter) for path, parameter in _YEAR.findall(text)]


_YEAR = re.compile(
    r"/([0-9]{4})(?=[/-](?:0[1-9]|1[0-2])(?![0-9]))"
    r"|[?&](?:y|yr|year)=([0-9]{4,6})(?![0-9])"
)


def _general(segment: str) -> str:
    if segment.isalpha() and len(segment) <= SEGMENT_CHARACTERS_MAX:
        return segment
    if segment.count("-") >= SLUG_HYPHENS or segment.count("_") >= SLUG_HYPHENS:
        stem, dot, extension = segment.rpartition(".")
        if not _ID.fullmatch(stem if dot else segment):
            return "{title}" + (dot + extension if dot and extension.isalpha() else "")
    if not _PARTICULAR(segment):
        return segment[:SEGMENT_CHARACTERS_MAX]
    general = _SESSION.sub(r"\1{id}", segment)
    general = _ID.sub("{id}", general)
    return _NUMBER.sub("{n}", general)[:SEGMENT_CHARACTERS_MAX]


def _names(query: str) -> str:
    names = sorted({pair.partition("=")[0] for pair in query.split("&") if pair})
    more = "&…" if len(names) > NAMES_MAX else ""
    return "&".join(_general(name)[:SEGMENT_CHARACTERS_MAX] for name in names[:NAMES_MAX]) + more
