"""Host priority: how urgent a host is among those that wait for a place on the workbench.

Within a host these leave the order to depth (or to patterns): a host's first pages should not wait because more of
its pages were found since.
"""

from __future__ import annotations

from math import log2

from gossamer.frontier.priority import LAST, MIDDLE, BestFirst, BreadthFirst
from gossamer.model.links import Link
from gossamer.model.standing import Standing

LINKING_WEIGHT = 1.0
"""How much a doubling of the sites that link in counts, in doublings of what is queued."""
FAILURE_WEIGHT = 2.0
"""How many doublings a failure takes back."""
DOUBLINGS_A_LEVEL = 2.0
"""16,384 URLs are seven levels away from one."""


class LargerSites:
    """The host with the most URLs that wait goes first (Baeza-Yates and others 2005): with a delay per host a crawl
    ends no sooner than its largest host, so that one must never wait. Needs no graph of links, costs nothing.
    """

    needs = ()

    def __init__(self) -> None:
        self._within = BreadthFirst()

    def level(self, link: Link) -> int:
        """Return the order within the host: by depth."""
        return self._within.level(link)

    def host_level(self, standing: Standing) -> int:
        """Return one level less for each fourfold of what is queued."""
        return _level(log2(1 + standing.queued))


class Combined:
    """Size, reputation and trouble of a host in one figure, in doublings:

        log2(1 + queued) + a · log2(1 + other sites that link to its site) - b · failures in a row

    Within a host patterns decide where there are any, else depth; a home page stands before its siblings.
    """

    needs = ("linking_sites",)

    def __init__(self, scored: BestFirst | None = None) -> None:
        self._scored = scored
        self._within = BreadthFirst()

    def level(self, link: Link) -> int:
        """Return the order within the host. 2 µs with patterns, 0.5 µs without."""
        level = self._within.level(link)
        if link.link_type == "seed":
            return level
        if self._scored is not None:
            level -= self._scored.score(link)
        return max(1, min(level - _is_home(link), LAST))

    def host_level(self, standing: Standing) -> int:
        """Return the level of the figure above."""
        return _level(
            log2(1 + standing.queued)
            + LINKING_WEIGHT * log2(1 + standing.linking_sites)
            - FAILURE_WEIGHT * standing.failures
        )


class HostOpic:
    """On-line importance of hosts (Abiteboul, Preda and Cobena 2003, by host): a page that is fetched gives its share
    of its host's cash to the hosts of its links; whoever holds most comes first. `Cash` keeps the accounts.
    """

    needs = ("cash",)

    def __init__(self) -> None:
        self._within = BreadthFirst()

    def level(self, link: Link) -> int:
        """Return the order within the host: by depth."""
        return self._within.level(link)

    def host_level(self, standing: Standing) -> int:
        """Return 4 for the mean host's cash, and one level less for each doubling of it."""
        if standing.cash <= 0.0:
            return LAST
        return max(0, min(round(MIDDLE - log2(standing.cash)), LAST))


def _level(doublings: float) -> int:
    return max(0, min(LAST - int(doublings / DOUBLINGS_A_LEVEL), LAST))


def _is_home(link: Link) -> bool:
    text = link.url.text
    return text.find("/", text.find("://") + 3) == len(text) - 1
