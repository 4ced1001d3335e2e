"""Dates: the two ways in which sitemaps and feeds write an instant, and what is often written instead."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

YEARS = range(1990, 2200)
"""Other years are a clock that was never set, or a mistake."""
_W3C = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[T ]+(\d\d?):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?)?)?)?)?",
    re.IGNORECASE,
)
ISO_CHARACTERS_MIN = 20
"""Of an instant with its zone: what is written so is read by the library, in a tenth of the time."""
_DAY_S = 86_400.0
PERIODS_S = {
    "always": 0.25 * 3_600, "hourly": 3_600.0, "daily": _DAY_S, "weekly": 7 * _DAY_S, "monthly": 30 * _DAY_S,
    "yearly": 365 * _DAY_S, "never": 10 * 365 * _DAY_S,
}  # fmt: skip
"""What sitemaps call `changefreq`, and feeds `sy:updatePeriod`."""


def instant(text: str) -> float:
    """Return the wall time that a text names, in seconds, or 0 where it names none.

    W3C Date and Time Formats (a profile of ISO 8601; sitemaps, Atom, Dublin Core), or RFC 822 with RFC 2822's years
    (RSS). A day alone is its midnight, UTC.
    """
    text = text.strip()[:64]
    if len(text) >= ISO_CHARACTERS_MIN and text[4] == "-" and text[10] == "T":
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            return _timestamp(date)
    match = _W3C.fullmatch(text)
    try:
        return _timestamp(_w3c(match) if match is not None else parsedate_to_datetime(text))
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0


def _timestamp(date: datetime) -> float:
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return date.replace(microsecond=0).timestamp() if date.year in YEARS else 0.0


def _w3c(match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    zone = (match[7] or "Z").upper()
    offset = timedelta()
    if zone[0] in "+-":
        digits = zone[1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0)) * (-1 if zone[0] == "-" else 1)
    return datetime(year, month or 1, day or 1, hour, minute, min(second, 59), tzinfo=timezone(offset))
