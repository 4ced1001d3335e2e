"""Standing: figures of a host, from which a prioritizer computes its urgency."""

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
