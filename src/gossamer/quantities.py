"""Quantities: reads times, sizes and counts as people write them, with their units."""

import re
from collections.abc import Mapping
from itertools import product

_TERM = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)\s*([a-zµμ]+)\s*", re.IGNORECASE | re.ASCII)
_CLOCK = re.compile(r"(?:([0-9]+):)?([0-9]+):([0-5]?[0-9](?:\.[0-9]+)?)", re.ASCII)
_WHOLE = re.compile(r"\d+|\d{1,3}([.,'\u2019\s])\d{3}(?:\1\d{3})*").fullmatch
_DECIMAL = re.compile(r"([0-9]++|\d{1,3}(?:[.'\u2019 ]\d{3})+),(\d\d?[A-Za-z]*)|(\d{1,3}(?:,\d{3})+)\.(\d+\w*)")
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4}
_TIMES = {
    1e-6: "us µs μs usec microsecond microseconds", 1e-3: "ms msec millis millisecond milliseconds",
    1.0: "s sec secs second seconds", 60.0: "m min mins minute minutes", 3_600.0: "h hr hrs hour hours",
    86_400.0: "d day days", 604_800.0: "w week weeks",
}  # fmt: skip
SECONDS: Mapping[str, float] = {unit: seconds for seconds, units in _TIMES.items() for unit in units.split()}
"""Seconds of each unit of time. There is no month: `M` would be one for systemd, and a minute for others."""
BYTES: Mapping[str, int] = {
    **dict.fromkeys(("b", "byte", "bytes"), 1),
    **{letter + end: 1024**power for (letter, power), end in product(_POWER.items(), ("", "i", "ib"))},
    **{letter + "b": 1000**power for letter, power in _POWER.items()},
}
"""Bytes of each unit: a single letter counts in 1024, as for curl, wget, docker and systemd; kB, MB, GB in 1000."""
COUNTS: Mapping[str, int] = {"k": 10**3, "m": 10**6, "g": 10**9}
WORDS: Mapping[str, str] = {
    "": "a number",
    "whole": "a whole number",
    "seconds": "a number of seconds, or a time with its unit, such as 500ms, 90s or 1h30m",
    "bytes": "a number of bytes, or one with its unit, such as 512MiB or 4GiB",
}


def read_quantity(text: str, unit: str) -> float | None:
    """Return the seconds, bytes, or (with another `unit`) the number that a text names; None if it names none. Digits
    are those of ASCII, and 0x, 0o and 0b begin numbers, as in TOML.
    """
    text = text.strip()
    if len(text) > 64:
        return None
    try:
        digits = text.encode("ascii")
        if digits[:2] in (b"0x", b"0o", b"0b"):
            return int(digits, 0)
        return int(digits) if unit != "seconds" and digits.lstrip(b"+-").isdigit() else float(digits)
    except ValueError:
        return _read_time(text) if unit == "seconds" else _read_size(text, BYTES if unit == "bytes" else COUNTS)


def whole_number(text: str, unit: str) -> int | None:
    """Return the whole number that a text names; None if it names none. 1.000 is a thousand in half of the world."""
    number = read_quantity(text, unit)
    is_whole = number is not None and float(number).is_integer() and not text.endswith(".000")
    return int(number) if is_whole and number is not None else None


def plain_digits(text: str) -> str:
    """Return the digits, as TOML has them, of a whole number with digits of any script, perhaps with its thousands
    apart; empty if the text is none.
    """
    return "".join(str(int(one)) for one in text if one.isdecimal()) if _WHOLE(text) else ""


def plain_decimal(text: str) -> str:
    """Return a number with a decimal comma, or with its thousands apart, as TOML has it; empty if the text is none."""
    found = _DECIMAL.fullmatch(text)
    return f"{re.sub(r'[^0-9]', '', found[1] or found[3])}.{found[2] or found[4]}" if found is not None else ""


def read_float(text: str) -> float | str:
    """Return a number of TOML with a point, for its parser; one that may mean thousands as the text that it is."""
    return text if text.endswith(".000") else float(text)


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
        unit = term[2] if term[2] == "M" else term[2].lower()
        if unit not in SECONDS:
            return None
        total_s += float(term[1]) * SECONDS[unit]
        at = term.end()
    return round(total_s, 9) if at == len(text) > 0 else None


def _read_size(text: str, units: Mapping[str, int]) -> float | None:
    term = _TERM.fullmatch(text)
    return float(term[1]) * units[term[2].lower()] if term and term[2].lower() in units else None
