"""Words: what is shown to people: numbers with units, and strangers' text made harmless."""

from __future__ import annotations

import os
from typing import TextIO

SHOWN_CHARACTERS_MAX = 500
DUMB = frozenset(("dumb", "unknown"))
"""Values of TERM for terminals that print control sequences instead of obeying them."""


def harmless(text: object) -> str:
    """Return text on one line with nothing in it that a terminal obeys.

    URLs, titles and server errors are written by strangers: control characters, direction marks and lone surrogates
    are shown as escapes.
    """
    whole = str(text)
    cut = whole[:SHOWN_CHARACTERS_MAX]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
    return shown + ("…" if len(whole) > len(cut) else "")


def count(number: float) -> str:
    """Return a whole number with separators: 1,234,567."""
    return f"{number:,.0f}"


def counted(number: float, noun: str) -> str:
    """Return a count with its noun, `1 page` or `2 pages`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Return bytes in the unit that leaves few digits: 12.3 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"


def obeys_escapes(out: TextIO) -> bool:
    """Say whether a stream is a terminal that obeys control sequences: those of editors and CI systems do not."""
    return out.isatty() and os.environ.get("TERM", "").lower() not in DUMB


def write_line(out: TextIO, line: str) -> None:
    """Write a line; a reader that has gone away (`| head`) does not end a crawl."""
    try:
        out.write(line.encode(out.encoding or "utf-8", "backslashreplace").decode(out.encoding or "utf-8") + "\n")
        out.flush()
    except (OSError, ValueError):
        return
