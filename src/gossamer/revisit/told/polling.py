"""Polling: how often a feed is worth asking. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from gossamer.model.announced import Announcement

ENTRIES_WEIGHED = 20
"""The newest entries speak for the rate; a feed may hold years."""
HOURS_PUT_OFF_MAX = 24 * 8


def interval_s(told: Announcement, now: float, low_s: float, high_s: float, max_age_s: float = 0.0) -> float:
    """Return after how many seconds a feed should be asked again.

    Its entries come as a Poisson process, whose rate is that of the newest of them, the silence since then included.
    Half the mean time between two entries finds each a quarter of it late, on average. The feed's own wishes (`ttl`,
    `sy:updatePeriod`, max-age) are obeyed up to `high_s`, and hours and days at which it says that it does not change
    are passed over. A feed without dates is asked at the slowest pace.
    """
    dates = sorted((entry.changed_at for entry in told.entries if 0.0 < entry.changed_at <= now), reverse=True)
    pause_s = mean_gap_s(dates[:ENTRIES_WEIGHED], now) / 2.0 if dates else high_s
    pause_s = min(max(pause_s, low_s, told.ttl_s, max_age_s), high_s)
    return pause_s if not (told.skip_hours or told.skip_days) else _awake(told, now + pause_s) - now


def mean_gap_s(dates: Sequence[float], now: float) -> float:
    """Return the mean time between entries, given their instants, newest first: all the time since the oldest, over as
    many entries as came after it and the one that is about to.
    """
    return max(now - dates[-1], 0.0) / len(dates)


def _awake(told: Announcement, at: float) -> float:
    """Return the first instant from `at` on at which the feed may change."""
    date = datetime.fromtimestamp(at, UTC)
    for _ in range(HOURS_PUT_OFF_MAX):
        if date.hour not in told.skip_hours and date.weekday() not in told.skip_days:
            return max(at, date.timestamp())
        date = date.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    return at  # It never changes, it says.
