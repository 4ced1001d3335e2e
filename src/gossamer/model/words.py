"""Words: formats quantities and times for people, the same way everywhere."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal


def count(number: float) -> str:
    """Return a whole number with separators: 1,234,567."""
    return f"{number:,.0f}"


def counted(number: float, noun: str) -> str:
    """Return a count with its noun, `1 page` or `2 pages`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def size(size_bytes: float) -> str:
    """Return a size in decimal units: 12.3 MB."""
    return f"{size_bytes:.0f} B" if size_bytes < 1000 else _scaled(size_bytes, ("B", "kB", "MB", "GB", "TB", "PB"))


def bit_rate(bits_s: float) -> str:
    """Return a rate of bits per second in decimal units."""
    return _scaled(bits_s, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s"))


def shell_word(path: object) -> str:
    """Return a path quoted for a shell, and not taken for an option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def _scaled(number: float, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        if number < 1000:
            return f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} {units[-1]}"


def duration(seconds: float, decimals: int = 0) -> str:
    """Return a duration in one or two units: 8 s, 2 min 5 s, 3 h 12 min, 2 d 4 h. `decimals` applies below a minute."""
    whole = max(0, round(seconds))
    minutes, s = divmod(whole, 60)
    hours, minutes_left = divmod(minutes, 60)
    days, hours_left = divmod(hours, 24)
    if not minutes:
        return f"{max(0.0, seconds):.{decimals}f} s"
    if not hours:
        return f"{minutes} min {s} s"
    if not days:
        return f"{hours} h {minutes_left} min"
    return f"{days} d {hours_left} h"


def iso_time(
    at: float, precision: Literal["seconds", "milliseconds", "microseconds"] = "seconds", zone: str = "Z"
) -> str:
    """Return a wall time in ISO 8601, UTC, truncated to `precision`; `zone` is the suffix, `Z` or `+00:00`."""
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(timespec=precision) + zone
