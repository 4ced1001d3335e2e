"""Quantities: reads times, sizes and counts as people write them, with their units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product

CHARACTERS_MAX = 64
"""Characters of the longest text that is read as a quantity."""
_NUMBER = r"(?P<number>[0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)"
_TERM = re.compile(_NUMBER + r"\s*(?P<unit>[a-zµμ]+)\s*", re.IGNORECASE | re.ASCII)
_CLOCK = re.compile(r"(?:([0-9]+):)?([0-9]+):([0-5]?[0-9](?:\.[0-9]+)?)", re.ASCII)
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4}
SECONDS: Mapping[str, float] = {
    unit: seconds
    for units, seconds in (
        ("us µs μs usec microsecond microseconds", 1e-6),
        ("ms msec millis millisecond milliseconds", 1e-3),
        ("s sec secs second seconds", 1.0),
        ("m min mins minute minutes", 60.0),
        ("h hr hrs hour hours", 3600.0),
        ("d day days", 86_400.0),
        ("w week weeks", 604_800.0),
    )
    for unit in units.split()
}
"""Seconds of each unit of time. There is no month: `M` would be one for systemd, and a minute for others."""
BYTES: Mapping[str, int] = {
    **dict.fromkeys(("b", "byte", "bytes"), 1),
    **{letter + end: 1024**power for (letter, power), end in product(_POWER.items(), ("", "i", "ib"))},
    **{letter + "b": 1000**power for letter, power in _POWER.items()},
}
"""Bytes of each unit: a single letter counts in 1024, as for curl, wget, docker and systemd; kB, MB, GB in 1000."""
COUNTS: Mapping[str, int] = {"k": 10**3, "m": 10**6, "g": 10**9}
WORDS: Mapping[str, str] = {
    "seconds": "a number of seconds, or a time with its unit, such as 500ms, 90s or 1h30m",
    "bytes": "a number of bytes, or one with its unit, such as 512MiB or 4GiB",
}
"""How each kind of quantity is written."""


def read_quantity(text: str, unit: str) -> float | None:
    """Return the seconds, bytes, or (with another `unit`) the number that a text names; None if it names none."""
    text = text.strip()
    if len(text) > CHARACTERS_MAX:
        return None
    try:
        return int(text) if unit != "seconds" and text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        return _read_time(text) if unit == "seconds" else _read_size(text, BYTES if unit == "bytes" else COUNTS)


def _read_time(text: str) -> float | None:
    """Return the seconds of `1h30m`, of `1:30:00`, or of `PT1H30M` (ISO 8601)."""
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = clock.groups()
        return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)
    if text[:1] in ("P", "p"):
        days, _, times = text[1:].lower().partition("t")
        text = days + times if "m" not in days else ""
    total_s = 0.0
    at = 0
    while term := _TERM.match(text, at):
        factor = SECONDS.get(term["unit"] if term["unit"] == "M" else term["unit"].lower())
        if factor is None:
            return None
        total_s += float(term["number"]) * factor
        at = term.end()
    return round(total_s, 9) if at == len(text) > 0 else None


def _read_size(text: str, units: Mapping[str, int]) -> float | None:
    term = _TERM.fullmatch(text)
    factor = units.get(term["unit"].lower()) if term is not None else None
    return float(term["number"]) * factor if term is not None and factor is not None else None
