"""Announced: what sitemaps and feeds say of other pages. These are hints, which can be wrong or false."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["sitemap", "sitemap_index", "feed"]


class Announced(msgspec.Struct, frozen=True, gc=False):
    """What is said of one address."""

    url: str
    """Absolute, without fragment."""
    changed_at: float = 0.0
    """Wall time of its last change, as they say; 0 if they say nothing."""
    period_s: float = 0.0
    """How often it changes, as they say; 0 if they say nothing."""
    weight: float = -1.0
    """How important it is among its site's pages, from 0 to 1; below 0 if they say nothing."""


class Announcement(msgspec.Struct):
    """What one document announces, and how often it wants to be asked."""

    kind: Kind
    entries: list[Announced] = msgspec.field(default_factory=list)
    """In order; each address once."""
    ttl_s: float = 0.0
    """Interval that it requests (RSS `ttl`, `sy:updatePeriod`); 0 if it names none."""
    skip_hours: tuple[int, ...] = ()
    """Hours of the day, UTC, at which it does not change (RSS `skipHours`)."""
    skip_days: tuple[int, ...] = ()
    """Days of the week, Monday is 0, at which it does not change (RSS `skipDays`)."""
    error: str = ""
    """Why it was not read to its end; what came before counts."""
