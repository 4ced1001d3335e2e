"""Priority: how urgent a link is."""

from __future__ import annotations

from gossamer.frontier.record import LEVELS
from gossamer.model.links import Link


class BreadthFirst:
    """The fewer clicks from a seed, the more urgent: a good order where many hosts are open at once
    (Najork and Wiener 2001).
    """

    def level(self, link: Link) -> int:
        """Return the depth, bounded by the number of levels."""
        return min(link.depth, LEVELS - 1)
