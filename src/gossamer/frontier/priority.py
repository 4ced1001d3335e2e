"""Priority: how urgent a URL is. Levels go from 0, the most urgent, to 7.

Level 0 is for seeds. What is embedded in a page comes one level after a page found in the same place.
"""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.frontier.record import LEVELS
from gossamer.model.links import Link
from gossamer.ports import PatternMatcher

LAST = LEVELS - 1
MIDDLE = 4
"""Where best-first puts a URL of which no pattern says anything."""


class BreadthFirst:
    """The fewer clicks from a seed, the more urgent: a good order where many hosts are open at once
    (Najork and Wiener 2001).
    """

    def level(self, link: Link) -> int:
        """Return the depth, bounded by the number of levels. 0.2 µs."""
        return placed(link, link.depth)


class BestFirst:
    """The operator's patterns decide: each one that a URL matches takes its score off the level, which begins at 4.

    `patterns` match all scores' patterns in one pass (RE2), in the order of `scores`.
    """

    def __init__(self, scores: Mapping[str, int], patterns: PatternMatcher) -> None:
        self._scores = tuple(scores.values())
        self._patterns = patterns

    def level(self, link: Link) -> int:
        """Return 4 less the scores that match, bounded by the levels after the seeds'. 1.6 µs."""
        return placed(link, max(1, MIDDLE - self.score(link)))

    def score(self, link: Link) -> int:
        """Return the sum of the scores whose patterns match."""
        return sum(self._scores[index] for index in self._patterns.matching(link.url.text))


def placed(link: Link, level: int) -> int:
    """Return a level that exists: 0 for a seed, and for an embed one less urgent than a page's."""
    if link.link_type == "seed":
        return 0
    return max(0, min(level + (link.link_type == "embed"), LAST))
