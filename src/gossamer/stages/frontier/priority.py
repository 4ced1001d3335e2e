"""Priority: how urgent links and hosts are, from level 0, the most urgent, to 7.

Level 0 is for seeds. An embed is one level less urgent than a page that was found in the same place. Host priorities
leave the order within a host to depth or patterns, so that a host's first pages do not wait because more of its pages
were found since.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import log2

import msgspec

from gossamer.model.links import EMBED, FEED, SITEMAP, Link
from gossamer.model.patterns import PatternSet
from gossamer.model.standing import Standing
from gossamer.ports import Bias, Prioritizer
from gossamer.stages.frontier.options import BudgetOptions, FrontierOptions
from gossamer.stages.frontier.politeness import Politeness
from gossamer.stages.frontier.record import LEVELS
from gossamer.url.url import Url

LAST = LEVELS - 1
MIDDLE = 4
"""Level in best-first of a URL that matches no pattern."""


class BreadthFirst:
    """The fewer clicks from a seed, the more urgent: good if many hosts are open at once (Najork and Wiener 2001)."""

    def level(self, link: Link) -> int:
        """Return the depth, bounded by the number of levels. 0.2 µs."""
        return final_level(link, link.depth)


class BestFirst:
    """The operator's patterns decide: the level is 4 less the scores of all patterns that a URL matches.

    All patterns are matched in one pass (RE2).
    """

    def __init__(self, scores: Mapping[str, int]) -> None:
        """Raises ConfigError: a pattern is not a regular expression."""
        self._scores = tuple(scores.values())
        self._patterns = PatternSet(tuple(scores))

    def level(self, link: Link) -> int:
        """Return 4 less the matching scores, bounded to 1 to 7. 1.6 µs."""
        return final_level(link, max(1, MIDDLE - self.score(link)))

    def score(self, link: Link) -> int:
        """Return the sum of the scores whose patterns match."""
        return sum(self._scores[index] for index in self._patterns.matching(link.url.text))


def final_level(link: Link, level: int) -> int:
    """Return the final level of a link, within bounds: 0 for a seed, one less urgent than `level` for an embed."""
    return 0 if link.link_type == "seed" else max(0, min(level + (link.link_type == "embed"), LAST))


LINKING_WEIGHT = 1.0
"""Weight of a doubling of the linking sites, in doublings of the queued URLs."""
FAILURE_WEIGHT = 2.0
"""How many doublings a failure takes off."""
DOUBLINGS_A_LEVEL = 2.0
"""From 1 to 16,384 URLs are seven levels."""


class LargerSites(BreadthFirst):
    """The host with the most waiting URLs comes first (Baeza-Yates and others 2005): with a delay per host, a crawl
    cannot end before its largest host, so that host must never wait. Within a host the order is by depth. Needs no
    link graph and costs nothing.
    """

    needs = ()

    def host_level(self, standing: Standing) -> int:
        """Return one level less for each factor of four in queued URLs."""
        return _level(log2(1 + standing.queued))


class Combined(BreadthFirst):
    """Size, reputation and failures of a host in one figure, in doublings:

        log2(1 + queued) + a · log2(1 + other sites that link to its site) - b · failures in a row

    Within a host patterns decide if there are any, else depth; a home page comes before its siblings.
    """

    needs = ("linking_sites",)

    def __init__(self, scored: BestFirst | None = None) -> None:
        self._scored = scored

    def level(self, link: Link) -> int:
        """Return the order within the host. 2 µs with patterns, 0.5 µs without."""
        level = super().level(link)
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


class HostOpic(BreadthFirst):
    """On-line importance of hosts (Abiteboul, Preda and Cobena 2003, by host): a fetched page gives its share of its
    host's cash to the hosts of its links. The host with the most cash comes first, within it the order is by depth.
    `accounts.Reputation` moves the cash.
    """

    needs = ("cash",)

    def host_level(self, standing: Standing) -> int:
        """Return 4 for the mean host's cash, and one level less for each doubling of it."""
        if standing.cash <= 0.0:
            return LAST
        return max(0, min(round(MIDDLE - log2(standing.cash)), LAST))


WITHIN = 1
ACROSS = 8
"""Weights of a link within its host, any number of which its owner can make, and of one from another host."""
COUNT_MAX = 255


class PageImportance:
    """Pages to which many pages link go first (Cho, Garcia-Molina and Page 1998, by in-links counted so far).

    A URL begins at the level of its first link and becomes more urgent as more pages link to it. Counts are in two rows
    of bytes by the URL's fingerprint (a count-min sketch: Cormode and Muthukrishnan 2005), so memory is bounded; a
    count is never too low, and too high if two URLs share their bytes in both rows. Counts start from zero when a crawl
    is resumed. About 1 µs a link.
    """

    def __init__(self, size_bytes: int) -> None:
        """Use `size_bytes` of memory, rounded down to a power of two; at least 1,024."""
        cells = 1 << max(9, (size_bytes // 2).bit_length() - 1)
        self._first = bytearray(cells)
        self._second = bytearray(cells)
        self._mask = cells - 1

    def level(self, link: Link) -> int:
        """Return 6 for up to three links within the host, 5 for four, 4 for one from another host or eight within it,
        and one less for each further doubling.
        """
        return final_level(link, _importance_level(self.count(link.url.fingerprint)))

    def count(self, fingerprint: int) -> int:
        """Return the links to a URL so far, weighted, at most 255."""
        return min(self._first[fingerprint & self._mask], self._second[fingerprint >> 32 & self._mask])

    def note(self, page: Url | None, links: Sequence[Link]) -> dict[int, int]:
        """Count a page's links, each target once; return fingerprints that became more urgent, and their levels.

        Links without a page come from other shards, and count as links from other hosts.
        """
        risen = {}
        host = page.host if page is not None else ""
        for fingerprint, link in {link.url.fingerprint: link for link in links}.items():
            before = self.count(fingerprint)
            if before == COUNT_MAX or link.link_type in NOT_COUNTED:
                continue
            after = min(COUNT_MAX, before + (WITHIN if link.url.host == host else ACROSS))
            first = fingerprint & self._mask
            second = fingerprint >> 32 & self._mask
            self._first[first] = max(self._first[first], after)
            self._second[second] = max(self._second[second], after)
            if _importance_level(after) < _importance_level(before):
                risen[fingerprint] = final_level(link, _importance_level(after))
        return risen


RANKS_MAGIC = b"GOSSRNK1"
RANKS_FILE = "ranks.bin"
"""The file that `gossamer rank` writes to the directory of a crawl, with levels by fingerprint."""


class ByRank:
    """Levels that `gossamer rank` computed from the links of an earlier crawl; 7 for other URLs.

    `data` is the file, mapped into memory: magic, number of URLs, sorted fingerprints, levels. About 1 µs a URL.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        """Raises ValueError if `data` is not such a file."""
        view = memoryview(data)
        count = int.from_bytes(view[8:16], "little")
        if bytes(view[:8]) != RANKS_MAGIC or len(view) != 16 + 13 * count:
            raise ValueError("it is no file of gossamer rank")
        self._fingerprints = view[16 : 16 + 8 * count].cast("Q")
        self._levels = view[16 + 8 * count : 16 + 9 * count]

    def level(self, link: Link) -> int:
        """Return the URL's level."""
        at = bisect_left(self._fingerprints, link.url.fingerprint)
        is_known = at < len(self._fingerprints) and self._fingerprints[at] == link.url.fingerprint
        return final_level(link, self._levels[at] if is_known else LAST)


NOT_COUNTED = frozenset(("seed", EMBED, SITEMAP, FEED))
"""Types of links that do not recommend a page."""


def _importance_level(count: int) -> int:
    return max(1, min(LEVELS - count.bit_length(), LAST - 1))


def _level(doublings: float) -> int:
    return max(0, min(LAST - int(doublings / DOUBLINGS_A_LEVEL), LAST))


def _is_home(link: Link) -> bool:
    text = link.url.text
    return text.find("/", text.find("://") + 3) == len(text) - 1


def prioritizer_of(options: FrontierOptions) -> Prioritizer:
    """Return the prioritizer that `priority` names."""
    scored = BestFirst(options.scores) if options.scores else None
    match options.priority:
        case "best_first":
            return scored or BestFirst({})
        case "in_links":
            return PageImportance(options.importance_bytes)
        case "larger_sites":
            return LargerSites()
        case "opic":
            return HostOpic()
        case "combined":
            return Combined(scored)
        case _:
            return BreadthFirst()


class FrontierRules(msgspec.Struct, frozen=True):
    """The rules by which a frontier chooses the next request."""

    politeness: Politeness
    options: FrontierOptions
    budget: BudgetOptions = msgspec.field(default_factory=BudgetOptions)
    prioritizer: Prioritizer | None = None
    """Also orders hosts, if it has `host_level`."""
    share_new: float | None = None
    """Share of visits for new URLs if revisits are due too; None: there are no revisits."""
    split: frozenset[str] = frozenset()
    """Sites whose hosts are divided among shards."""
    bias: Bias | None = None
    """Draws levels in place of `LevelBias`."""
