"""Hangs: servers that break off, stall, drip, or speak no HTTP; one such page a host, so that none is given up."""

from __future__ import annotations

from gossamer.lab.simweb.answers import HTML, Answer, Made, Manner
from gossamer.lab.simweb.sheet import Place, Sheet

AT = "/hangs/"
KINDS: tuple[tuple[Manner, tuple[str, ...]], ...] = (
    ("stall", ()),
    ("drip", ("fetched",)),
    ("cut", ("fetched", "connect_error")),
    ("reset", ("connect_error",)),
    ("empty", ("connect_error",)),
    ("garbage", ("connect_error", "unsupported", "fetched")),
)
"""What happens, and the outcomes that are as right as the first."""


def pages(place: Place) -> dict[str, Made]:
    """Return the corner: an index and one page that never comes whole. Which, goes round among the hosts."""
    having = [host.index for host in place.hosts if "hangs" in host.corners]
    manner, also = KINDS[having.index(place.host.index) % len(KINDS)]
    path = AT + manner
    answer = Answer(200, HTML, b"<p>" + place.some(20, manner).encode(), manner)
    broken = Made((answer,), also=(*also, "host_closed"), once=False)
    return {AT: Sheet(place, AT, "Hangs").anchor(path).made(), path: broken}
