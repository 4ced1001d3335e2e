"""Css: what a stylesheet names: `url()` and `@import` (CSS Syntax Level 3, sections 4.3.6 and 4.3.7)."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Possessive throughout: a stylesheet of nothing but openings still costs one pass.
_NAMED = re.compile(
    r"""url\([\t\n\f\r ]*+(?:"((?:[^"\\\n]|\\.)*+)"|'((?:[^'\\\n]|\\.)*+)'"""
    r"""|((?:[^)\\"'(\t\n\f\r ]|\\[0-9a-f]{1,6}[\t\n\f\r ]?|\\.)*+))"""
    r"""[\t\n\f\r ]*+\)"""
    r"""|@import[\t\n\f\r ]*+(?:"((?:[^"\\\n]|\\.)*+)"|'((?:[^'\\\n]|\\.)*+)')""",
    re.IGNORECASE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[\t\n\f\r ]?|(\n)|(.))", re.DOTALL)


def addresses(stylesheet: str) -> Iterator[str]:
    """Yield the addresses that a stylesheet, or a `style` attribute, names, as written, escapes undone.

    What stands in comments is left out. Linear; about 4 µs per KB of ordinary CSS.
    """
    if "/*" in stylesheet:
        stylesheet = _without_comments(stylesheet)
    for groups in _NAMED.findall(stylesheet):
        address = next((group for group in groups if group), "")
        if address:
            yield _ESCAPE.sub(_unescaped, address) if "\\" in address else address


def _without_comments(stylesheet: str) -> str:
    kept: list[str] = []
    position = 0
    while (start := stylesheet.find("/*", position)) >= 0:
        kept.append(stylesheet[position:start])
        end = stylesheet.find("*/", start + 2)
        if end < 0:
            return "".join(kept)
        position = end + 2
    kept.append(stylesheet[position:])
    return "".join(kept)


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        number = int(match[1], 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return match[3] or ""
