"""Dates: what servers say in Last-Modified. Pure."""

from __future__ import annotations

from email.utils import parsedate_to_datetime


def instant_of(header: str) -> float | None:
    """Return the wall time that an HTTP date names (RFC 9110, section 5.6.7, and the older forms), or None."""
    try:
        return parsedate_to_datetime(header).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
