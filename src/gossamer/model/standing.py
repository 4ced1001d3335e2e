"""Standing: figures of hosts for a prioritizer, and of pages for a revisit policy."""

from __future__ import annotations

import msgspec


class Standing(msgspec.Struct, frozen=True, gc=False):
    """What the crawl knows of a host and its site."""

    host: str
    queued: int = 0
    """URLs of the host that are not finished."""
    requests: int = 0
    failures: int = 0
    """Consecutive failures of the host."""
    linking_sites: float = 0.0
    """Estimated number of other sites that link to the host's site; 0 if not counted."""
    cash: float = 0.0
    """OPIC cash: what links gave to the host and it has not passed on yet, as a multiple of the mean over hosts."""


class Habits(msgspec.Struct, frozen=True, gc=False):
    """How often a page changes and how important it is: the input of a revisit policy."""

    change_rate: float
    """Estimated changes per second."""
    importance: float
    interval_s: float = 0.0
    """Seconds between the last two visits; 0 before the second visit."""
    changed: bool = False
    """Whether the last visit found something new."""
    since_change_s: float | None = None
    """Seconds from the change to the last visit, if known."""
