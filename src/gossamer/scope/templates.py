"""Templates: patterns that many addresses of a host share, from the narrowest to the widest, and how much of a
template's content is new. Traps are detected from this evidence.
"""

import re
from array import array
from functools import lru_cache

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.digests import Sketch

SEGMENT_CHARACTERS_MAX = 48
"""Of a longer segment the rest is cut: no template is longer than a screen is wide."""
NAMES_MAX = 12
"""Parameters of a query that are named; the rest is dots."""
DEEP_SEGMENTS = 4
"""Addresses of this many segments are also taken together by the first alone."""
VERY_DEEP_SEGMENTS = 6
"""Addresses of this many segments are also taken together, all of a host; shorter ones by their number of segments."""
ADDRESSES_MAX, DIRECTORIES_MAX = 256, 1024
"""Addresses and directories whose templates are remembered: a page is looked at again as the source of its links, and
most links of a page lead to a few directories.
"""
ID_CHARACTERS_MIN = 6
"""What is shorter is no id."""
SLUG_HYPHENS = 3
"""A segment with this many hyphens is a title, and every page has its own."""

_ID = re.compile(
    r"""(?x)
    [0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}   # a UUID
    | (?<![A-Za-z0-9]) (?= [0-9A-Fa-f]*[0-9]) (?= [0-9A-Fa-f]*[A-Fa-f]) [0-9A-Fa-f]{6,} (?![A-Za-z0-9])
    | (?<![A-Za-z0-9_-]) (?= [A-Za-z_-]*[0-9]) (?= [0-9_-]*[A-Za-z]) [A-Za-z0-9_-]{20,} (?![A-Za-z0-9_-])
    """
)
_NUMBER = re.compile(r"[0-9]+")
_PARTICULAR = re.compile(r"[0-9;(]").search
"""A segment without any of these holds no number, no id (but for a UUID that is all letters) and no session."""
_SESSION = re.compile(r"(?i)(;[a-z]*(?:sess|sid)[a-z_]*=)[^/;]*|\([SAF]\([^)]*\)\)")


@lru_cache(maxsize=ADDRESSES_MAX)
def templates_of(text: str) -> tuple[str, ...]:
    """Return the templates of an address, the narrowest first; each begins with its path. About 3 µs in a recently seen
    directory, 7 µs in another.

    Numbers become `{n}`, ids and hashes `{id}`, long titles `{title}`; a query is its sorted parameter names.
    `*` is one segment, or any query; `**` is any number of segments.
    """
    path, mark, query = text[text.find("/", text.find("://") + 3) :].partition("?")
    directory, _, name = path.rpartition("/")
    above, first, count = _directory(directory)
    shape = f"{above}/{_general(name) if name else name}"
    count += bool(name)
    found = [f"{shape}?{_names(query)}", f"{shape}?*"] if mark else [shape]
    if count:
        found.append(shape[: shape.rfind("/", 0, len(shape) - 1) + 1] + "*")
    if count >= DEEP_SEGMENTS:
        found.append(f"/{first}/*/*/**")
    if count >= VERY_DEEP_SEGMENTS:
        found.append("/*/*/*/*/*/**")
    elif count > 1:
        found.append("/*" * count)
    return tuple(found)


@lru_cache(maxsize=DIRECTORIES_MAX)
def _directory(path: str) -> tuple[str, str, int]:
    """Return the template of a directory, its first segment and how many it has."""
    segments = [_general(segment) if segment else "" for segment in path.split("/")[1:]]
    return "".join([f"/{segment}" for segment in segments]), segments[0] if segments else "", len(segments)


def width_of(template: str) -> int:
    """Return 1 for a template of one shape, 2 for one that is open at its end, 4 for one that is open at once."""
    if "*" not in template:
        return 1
    return 4 if template.startswith("/*") else 2


def literal_start(template: str) -> str:
    """Return how every address of a template begins, from its path on: a quick test before the exact one."""
    ends = [at for at in map(template.find, "{*?") if at >= 0]
    return template[: min(ends, default=len(template))]


def years_of(text: str) -> list[int]:
    """Return the numbers in an address that may be years: before a month of two digits, or called so in a query."""
    return [int(path or parameter) for path, parameter in _YEAR.findall(text)]


_YEAR = re.compile(
    r"/([0-9]{4})(?=[/-](?:0[1-9]|1[0-2])(?![0-9]))"
    r"|[?&](?:y|yr|year)=([0-9]{4,6})(?![0-9])"
)


def _general(segment: str) -> str:
    if segment.isalpha() and len(segment) <= SEGMENT_CHARACTERS_MAX:
        return segment
    if segment.count("-") >= SLUG_HYPHENS or segment.count("_") >= SLUG_HYPHENS:
        stem, dot, extension = segment.rpartition(".")
        if not _ID.fullmatch(stem if dot else segment):
            return "{title}" + (dot + extension if dot and extension.isalpha() else "")
    if not _PARTICULAR(segment):
        return segment[:SEGMENT_CHARACTERS_MAX]
    general = _SESSION.sub(r"\1{id}", segment) if ";" in segment or "(" in segment else segment
    if len(general) >= ID_CHARACTERS_MIN:
        general = _ID.sub("{id}", general)
    return _NUMBER.sub("{n}", general)[:SEGMENT_CHARACTERS_MAX]


def _names(query: str) -> str:
    names = sorted({pair.partition("=")[0] for pair in query.split("&") if pair})
    more = "&…" if len(names) > NAMES_MAX else ""
    return "&".join(_general(name)[:SEGMENT_CHARACTERS_MAX] for name in names[:NAMES_MAX]) + more


WATCHED_FROM_PAGES = 32
"""Pages of a template before it is watched: most templates never reach it."""
SHINGLES_KEPT = 512
"""Of all that a template ever said: the least hashes, a fair sample of its distinct shingles. As many as a sketch has,
so that the union of sketches is the sketch of the union (Cohen and Kaplan 2007)."""
FRESH_SHINGLES_MIN = 5
"""New shingles that make a page worth its visit: half a sentence."""
FRESH_SHARE_MIN = 0.01
"""The same as a share of its shingles: long pages say a little that is new by accident."""
NEAR_SHINGLES_MAX, NEAR_SHARE_MAX = 32, 0.05
"""A page with fewer new shingles than both is nearly the same as others: worth a visit, but not thousands of them."""
EVIDENCE_MIN = 6.0
"""New shingles that a sample must show of pages which are just worth it; until then pages are judged together."""
MEMORY_PAGES = 32
"""Pages over which the share of stale ones is a mean, older ones counting less and less."""
SUSPECTED_FROM, CLEARED_BELOW = 0.5, 0.25
"""Share of such pages from which every page is looked at and growth is counted, and below which that ends."""
CALM_BELOW = 0.75 / MEMORY_PAGES
"""Share that is left nine pages after a single one of them."""
CONFIRMED_PAGES, CONFIRMED_JUDGEMENTS = 32, 2
"""Pages and judgements since the suspicion without which nothing is certain."""
_ALL = (1 << 64) - 1


class Suspicion(msgspec.Struct, array_like=True):
    """That a template goes on without end and says nothing new, or nearly nothing."""

    share: float = 0.0
    """Of its pages, of late, that make it suspicious."""
    since: int = 0
    """Pages fetched since it is suspected."""
    confirmed: int = 0
    """Judgements since then that agree."""
    grown: int = 0
    """New addresses of this template that the pages since then named."""

    @property
    def growth(self) -> float:
        """New addresses a page."""
        return self.grown / self.since if self.since else 0.0

    @property
    def score(self) -> float:
        """From 0 to 1: how surely this is a trap. Growth counts up to one new address a page."""
        if self.since < CONFIRMED_PAGES or self.confirmed < CONFIRMED_JUDGEMENTS:
            return 0.0
        return self.share * min(1.0, self.growth)

    def note(self, *, agrees: bool, pages: int) -> None:
        """Count pages for or against it."""
        self.share = agrees + (self.share - agrees) * (1 - 1 / MEMORY_PAGES) ** pages
        if not self.since and self.share >= SUSPECTED_FROM:
            self.since = 1
        elif self.since and self.share < CLEARED_BELOW:
            self.since = self.confirmed = self.grown = 0
        elif self.since:
            self.confirmed += agrees


@decodable
class NodeRecord(msgspec.Struct, array_like=True, frozen=True):
    """A watched template as the store keeps it."""

    name: str
    pages: int
    judged: int
    stale: Suspicion
    near: Suspicion
    fresh_links: float
    known: bytes


class TemplateNode:
    """One template of one host, watched. 4 KB when its sample is full."""

    __slots__ = (
        "_due", "_due_near", "_found", "_together",
        "doubted", "fresh_links", "judged", "known", "near", "pages", "stale",
    )  # fmt: skip

    def __init__(self, pages: int = 0) -> None:
        self.pages = pages
        """Pages fetched."""
        self.judged = 0
        """Pages that were looked at."""
        self.doubted = False
        """The last of these showed nothing new: the next one is looked at, too."""
        self.stale = Suspicion()
        self.near = Suspicion()
        self.fresh_links = 0.0
        """Share of new ones among the addresses of this template that its pages name, of late: mazes stay near 1."""
        self.known = array("Q")
        self._due = self._due_near = self._found = 0.0
        self._together = 0

    @property
    def suspected(self) -> bool:
        return self.near.since > 0 or self.stale.since > 0

    @property
    def calm(self) -> bool:
        """Whether none of its last pages was stale or near: it takes one of them to end that."""
        return self.stale.share < CALM_BELOW and self.near.share < CALM_BELOW

    def visit(self) -> None:
        """Count a page."""
        self.pages += 1
        for suspicion in (self.stale, self.near):
            if suspicion.since:
                suspicion.since += 1

    def grow(self) -> None:
        """Count a new address that one of its pages named."""
        for suspicion in (self.stale, self.near):
            if suspicion.since:
                suspicion.grown += 1

    def judge(self, sketch: Sketch) -> bool:
        """Take a page in; say whether it seems to be worth its visit. About 40 µs for one with new words, 20 µs for one
        without.

        While the sample is everything the template ever said, each page is judged by itself. Later a page whose words
        are few beside all those may have new ones that the sample does not show: then pages are judged together, as
        many as it takes to be sure.
        """
        fresh_min = max(FRESH_SHINGLES_MIN, FRESH_SHARE_MIN * sketch.shingles)
        near_max = max(fresh_min, min(NEAR_SHINGLES_MAX, NEAR_SHARE_MAX * sketch.shingles))
        new, share = self._take(sketch)
        self.doubted = new < share * fresh_min / 2
        if share == 1.0:
            self.note(stale=new < fresh_min, near=new < near_max)
            return new >= fresh_min
        self._together += 1
        self._due += share * fresh_min
        self._due_near += share * near_max
        self._found += new
        if self._due >= EVIDENCE_MIN:
            stale, near = self._found < self._due / 2, self._found < self._due_near / 2
            self.note(stale=stale, near=near, pages=self._together)
            self._due = self._due_near = self._found = 0.0
            self._together = 0
        return new > 0 and new >= share * fresh_min

    def note(self, *, stale: bool, near: bool, pages: int = 1) -> None:
        """Count pages as stale, near, or neither."""
        self.judged += pages
        self.stale.note(agrees=stale, pages=pages)
        self.near.note(agrees=near, pages=pages)

    def record(self, name: str) -> NodeRecord:
        """Return what the store keeps."""
        return NodeRecord(name, self.pages, self.judged, self.stale, self.near, self.fresh_links, self.known.tobytes())

    def _take(self, sketch: Sketch) -> tuple[int, float]:
        """Return how many of a page's shingles in the sample were never seen here, and the sample's share of all."""
        known, page = self.known, sketch.lowest
        # Up to here each sample is complete: a hash that is missing in one is missing in the whole.
        reach = known[-1] if len(known) == SHINGLES_KEPT else _ALL
        if len(page) == SHINGLES_KEPT:
            reach = min(reach, page[-1])
        before = frozenset(known)
        new = [one for one in page if one <= reach and one not in before]
        if new:
            self.known = array("Q", sorted([*known, *new])[:SHINGLES_KEPT])
        return len(new), (reach + 1) / (_ALL + 1)


def node_of(record: NodeRecord) -> TemplateNode:
    """Return the template that was kept."""
    node = TemplateNode(record.pages)
    node.judged, node.fresh_links = record.judged, record.fresh_links
    node.stale, node.near = record.stale, record.near
    node.known.frombytes(record.known)
    return node
