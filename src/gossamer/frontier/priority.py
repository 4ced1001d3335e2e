"""Priority: how urgent links and hosts are, from level 0, the most urgent, to 7; and by which chance one level goes
before another.

Level 0 is for seeds. What is embedded in a page comes one level after a page found in the same place. The priorities of
hosts leave the order within a host to depth (or to patterns): a host's first pages should not wait because more of its
pages were found since.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import log2

import msgspec

from gossamer.frontier.options import BudgetOptions, FrontierOptions
from gossamer.frontier.politeness import Politeness
from gossamer.frontier.record import LEVELS
from gossamer.model.links import EMBED, FEED, SITEMAP, Link
from gossamer.model.patterns import PatternSet
from gossamer.model.standing import Standing
from gossamer.ports import Prioritizer
from gossamer.url.url import Url
from gossamer.world.dice import Dice

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

    All patterns are matched in one pass (RE2).
    """

    def __init__(self, scores: Mapping[str, int]) -> None:
        """Raises ConfigError: a pattern is not a regular expression."""
        self._scores = tuple(scores.values())
        self._patterns = PatternSet(tuple(scores))

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

    Within a host patterns decide if there are any, else depth; a home page comes before its siblings.
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
    of its host's cash to the hosts of its links. The host with the most cash comes first. `Cash` keeps the accounts.
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


WITHIN, ACROSS = 1, 8
"""What a link counts that stays on its host, and one from another host: the owner of a host makes as many of the former
as he likes."""
COUNT_MAX = 255


class PageImportance:
    """Pages to which many pages link go first (Cho, Garcia-Molina and Page 1998, by in-links counted so far).

    A URL begins where its first link puts it and is raised as more pages link to it. Counts are kept in two rows of
    bytes by the URL's fingerprint (a count-min sketch: Cormode and Muthukrishnan 2005), so memory has a
    bound; a count is never too low, and too high where two URLs meet in both rows. Counts start from
    zero when a crawl is resumed. About 1 µs a link.
    """

    def __init__(self, size_bytes: int) -> None:
        """`size_bytes` of memory, rounded down to a power of two; at least 1,024."""
        cells = 1 << max(9, (size_bytes // 2).bit_length() - 1)
        self._first, self._second = bytearray(cells), bytearray(cells)
        self._mask = cells - 1

    def level(self, link: Link) -> int:
        """Return 6 for up to three links within the host, 5 for four, 4 for one from another host or eight within it,
        and one less for each further doubling.
        """
        return placed(link, _importance_level(self.count(link.url.fingerprint)))

    def count(self, fingerprint: int) -> int:
        """Return the links to a URL so far, weighted, at most 255."""
        return min(self._first[fingerprint & self._mask], self._second[fingerprint >> 32 & self._mask])

    def note(self, page: Url | None, links: Sequence[Link]) -> dict[int, int]:
        """Count the links of one page, each target once; return the fingerprints that rose, with their new levels.

        Links without a page come from other shards, and count as links from other hosts.
        """
        risen = {}
        host = page.host if page is not None else ""
        for fingerprint, link in {link.url.fingerprint: link for link in links}.items():
            before = self.count(fingerprint)
            if before == COUNT_MAX or link.link_type in NOT_COUNTED:
                continue
            after = min(COUNT_MAX, before + (WITHIN if link.url.host == host else ACROSS))
            first, second = fingerprint & self._mask, fingerprint >> 32 & self._mask
            self._first[first] = max(self._first[first], after)
            self._second[second] = max(self._second[second], after)
            if _importance_level(after) < _importance_level(before):
                risen[fingerprint] = placed(link, _importance_level(after))
        return risen


RANKS_MAGIC = b"GOSSRNK1"
RANKS_FILE = "ranks.bin"
"""In the directory of a crawl: what `gossamer rank` writes, of the fingerprints of all URLs."""


class ByRank:
    """Levels that `gossamer rank` computed from the links of an earlier crawl; 7 for URLs that it did not know.

    `data` is the file, mapped into memory: the magic, the number of URLs, fingerprints in order, levels. About 1 µs.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        """Raises ValueError: it is not such a file."""
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
        return placed(link, self._levels[at] if is_known else LAST)


NOT_COUNTED = frozenset(("seed", EMBED, SITEMAP, FEED))
"""Types of links that do not recommend a page."""


def _importance_level(count: int) -> int:
    return max(1, min(LEVELS - count.bit_length(), LAST - 1))


def _level(doublings: float) -> int:
    return max(0, min(LAST - int(doublings / DOUBLINGS_A_LEVEL), LAST))


def _is_home(link: Link) -> bool:
    text = link.url.text
    return text.find("/", text.find("://") + 3) == len(text) - 1


class LevelBias:
    """Draws a level from those that hold something: each `bias` times as likely as the next less urgent one.

    Every level that holds something has its chance at every draw, so none starves (Heydon and Najork 1999, section
    3.1, draw their front queues the same way). With `bias` 1 all are alike.
    """

    __slots__ = ("_dice", "_weights")

    def __init__(self, bias: float, dice: Dice) -> None:
        self._dice = dice
        self._weights = tuple(bias ** (LEVELS - 1 - level) for level in range(LEVELS))

    def choose(self, levels: Sequence[int]) -> int:
        """Return one of some levels, at least one."""
        if len(levels) == 1:
            return levels[0]
        weights = self._weights
        throw = self._dice.uniform(0.0, sum([weights[level] for level in levels]))
        for level in levels:
            throw -= weights[level]
            if throw <= 0:
                return level
        return levels[-1]


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
    """By what a frontier chooses the next request."""

    politeness: Politeness
    options: FrontierOptions
    budget: BudgetOptions = msgspec.field(default_factory=BudgetOptions)
    prioritizer: Prioritizer | None = None
    """Also orders hosts, where it has `host_level`."""
    share_new: float | None = None
    """Of visits, for new URLs where old ones are due too; None: no URL is visited again."""
    split: frozenset[str] = frozenset()
    """Sites whose hosts are divided among shards."""
