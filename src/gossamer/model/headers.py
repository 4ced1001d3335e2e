"""Headers: times in the headers of replies. Pure functions that raise for no input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime

from gossamer.model.visits import Reply

_MAX_AGE = re.compile(r"(?:^|,)[ \t]*max-age[ \t]*=[ \t]*\"?([0-9]+)\"?[ \t]*(?:$|,)", re.IGNORECASE)
_SECONDS = re.compile(r"[0-9]+\Z")
_DIGITS_MAX = 18
"""Digits that are read of a number of seconds: a longer number means forever anyway."""


def retry_after_s(reply: Reply, now: float) -> float | None:
    """Return how long a server asks us to wait: seconds or a date (RFC 9110, section 10.2.3), never negative.

    A date is measured against the server's own Date header where there is one, since clocks differ.
    """
    value = reply.header("retry-after")
    if value is None:
        return None
    value = value.strip()
    if _SECONDS.match(value):
        return float(value[:_DIGITS_MAX])
    until = http_date(value)
    if until is None:
        return None
    there = http_date(reply.header("date") or "")
    return max(0.0, until - (now if there is None else there))


def max_age_s(headers: Sequence[tuple[str, str]]) -> float | None:
    """Return how long a reply may be reused (RFC 9111, section 5.2.2): 0 for no-store and no-cache, None when the
    server does not say.
    """
    values = ",".join(value for name, value in headers if name.lower() == "cache-control")
    if not values:
        return None
    directives = {part.strip().lower() for part in values.split(",")}
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    match = _MAX_AGE.search(values)
    return float(match[1][:_DIGITS_MAX]) if match else None


def http_date(text: str) -> float | None:
    """Return seconds since 1970 for any of the three forms of a date (RFC 9110, section 5.6.7), else None."""
    try:
        moment = parsedate_to_datetime(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
