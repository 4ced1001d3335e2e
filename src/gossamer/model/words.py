"""Words: quantities and instants as they are shown and written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal


def duration(seconds: float) -> str:
    """Return seconds as people say them: 8 s, 2 min 5 s, 3 h 12 min, 2 d 4 h."""
    whole = max(0, round(seconds))
    minutes, s = divmod(whole, 60)
    hours, minutes_left = divmod(minutes, 60)
    days, hours_left = divmod(hours, 24)
    if not minutes:
        return f"{s} s"
    if not hours:
        return f"{minutes} min {s} s"
    if not days:
        return f"{hours} h {minutes_left} min"
    return f"{days} d {hours_left} h"


def iso_time(
    at: float, precision: Literal["seconds", "milliseconds", "microseconds"] = "seconds", zone: str = "Z"
) -> str:
    """Return a wall time as ISO 8601 in UTC, cut at `precision`; `zone` is how UTC is written, `Z` or `+00:00`."""
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(timespec=precision) + zone
