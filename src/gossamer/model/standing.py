"""Standing: figures of hosts, from which a prioritizer computes urgency, and of pages, from which a policy computes
visits.
"""

from __future__ import annotations

import msgspec


class Standing(msgspec.Struct, frozen=True, gc=False):
    """What the crawl knows of a host, and of the site that it belongs to."""

    host: str
    queued: int = 0
    """Its URLs that are not finished."""
    requests: int = 0
    failures: int = 0
    """Of the host, in a row."""
    linking_sites: float = 0.0
    """Other sites with a link to its site, estimated; 0 if they are not counted."""
    cash: float = 0.0
    """What pages gave to the host by their links and it has not given on (OPIC), as a multiple of the mean host's."""


class Habits(msgspec.Struct, frozen=True, gc=False):
    """What is known of how a page changes: what a policy goes by."""

    change_rate: float
    """Changes a second, estimated."""
    importance: float
    interval_s: float = 0.0
    """Between the last two visits; 0 before there were two."""
    changed: bool = False
    """Whether the last visit found something new."""
    since_change_s: float | None = None
    """How long before the last visit the change was, where that is known."""
