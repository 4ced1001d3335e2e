"""Templates: patterns that many addresses of a host share, from the narrowest to the widest, and how much of a
template's content is new, which is the evidence for traps.
"""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.pages import Sketch
from gossamer.url.url import fingerprint

SEGMENT_CHARACTERS_MAX = 48
"""Longer segments are cut, so that a template fits on a screen."""
NAMES_MAX = 12
"""Parameters of a query that a template names; dots stand for the others."""
DEEP_SEGMENTS = 4
"""Addresses with this many segments are also grouped by the first segment alone."""
VERY_DEEP_SEGMENTS = 6
"""All addresses of a host with this many segments are a group; shorter ones are grouped by number of segments."""
EQUAL_SEGMENTS_MAX = 3
"""Equal segments in a row that a template names: relative links that repeat make no template for each depth."""
ADDRESSES_MAX = 256
DIRECTORIES_MAX = 1024
"""Addresses and directories whose templates are cached: a page appears again as the source of its links, and most links
of a page lead to a few directories.
"""
ID_CHARACTERS_MIN = 6
"""Shorter segments are not ids."""
SLUG_HYPHENS = 3
"""A segment with this many hyphens is a title, which differs for every page."""
_ID = re.compile(
    r"""(?x)
    [0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}   # a UUID
    | (?<![A-Za-z0-9]) (?= [0-9A-Fa-f]*[0-9]) (?= [0-9A-Fa-f]*[A-Fa-f]) [0-9A-Fa-f]{6,} (?![A-Za-z0-9])
    | (?<![A-Za-z0-9_-]) (?= [A-Za-z_-]*[0-9]) (?= [0-9_-]*[A-Za-z]) [A-Za-z0-9_-]{20,} (?![A-Za-z0-9_-])
    """
)
_NUMBER = re.compile(r"[0-9]+")
_PARTICULAR = re.compile(r"[0-9;(]").search
"""A segment without any of these contains no number, no id (except a UUID of letters only) and no session."""
_SESSION = re.compile(r"(?i)(;(?=[a-z]*?(?:sess|sid))[a-z_]++=)[^/;]*|\([SAF]\([^()]*+\)\)")


# Counters, times and fractions of a cache buster or a session.
_STAMP = re.compile(r"(?<==)[0-9][0-9.-]{5,}+(?![^&])")


def shape_of(text: str) -> str:
    """Return an address with `{id}` in place of all that may be a session: addresses that differ in it alone may be
    the same page.
    """
    path, mark, query = text.partition("?")
    if ";" in path or "(" in path:
        path = _SESSION.sub(r"\1{id}", path)
    return _ID.sub("{id}", path) + mark + _STAMP.sub("{id}", _ID.sub("{id}", query))


@lru_cache(maxsize=ADDRESSES_MAX)
def templates_of(text: str) -> tuple[str, ...]:
    """Return the templates of an address, the narrowest first; each begins with its path. About 3 µs in a recently seen
    directory, 10 µs in another.

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
    runs = [[f"/{segment}" for segment in equal] for _, equal in groupby(segments)]
    above = "".join("".join(run[:EQUAL_SEGMENTS_MAX]) + ("/**" if run[EQUAL_SEGMENTS_MAX:] else "") for run in runs)
    return above, segments[0] if segments else "", len(segments)


def width_of(template: str) -> int:
    """Return 1 for a template of one shape, 2 for one that is open at its end, 4 for one open from its beginning."""
    if "*" not in template:
        return 1
    return 4 if template.startswith("/*") else 2


def literal_start(template: str) -> str:
    """Return the beginning that the paths of all addresses of a template share: a quick test before the exact one."""
    ends = [at for at in map(template.find, "{*?") if at >= 0]
    return template[: min(ends, default=len(template))]


def years_of(text: str) -> list[int]:
    """Return the numbers in an address that may be years: before a month of two digits, or so named in the query."""
    return [int(path or parameter) for path, parameter in _YEAR.findall(text)]


_YEAR = re.compile(r"/([0-9]{4})(?=[/-](?:0[1-9]|1[0-2])(?![0-9]))|[?&](?:y|yr|year)=([0-9]{4,6})(?![0-9])")


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
    raw = {pair.partition("=")[0] for pair in query.split("&") if pair}
    names = sorted({_general(name)[:SEGMENT_CHARACTERS_MAX] for name in raw})
    return "&".join(names[:NAMES_MAX]) + ("&…" if len(names) > NAMES_MAX else "")


WATCHED_PAGES = 32
"""Pages of a template before it is watched: most templates never reach it."""
SHINGLES_KEPT = 512
"""Smallest hashes that are kept of all shingles of a template, an unbiased sample. As many as in a sketch, so that the
union of sketches is the sketch of the union (Cohen and Kaplan 2007)."""
FRESH_SHINGLES_MIN = 5
"""New shingles that make a page worth its visit: half a sentence."""
FRESH_SHARE_MIN = 0.01
"""The same as a share of its shingles: long pages contain a little new text by accident."""
NEAR_SHINGLES_MAX = 32
NEAR_SHARE_MAX = 0.05
"""A page with fewer new shingles than both is nearly the same as others: worth a visit, but not thousands of them."""
EVIDENCE_MIN = 6.0
"""New shingles that a sample is expected to show for pages that are just worth their visit; pages are judged together
until there are enough for that.
"""
MEMORY_PAGES = 32
"""Pages over which the share of stale pages is averaged, with exponentially decreasing weights."""
SUSPECTED_FROM = 0.5
CLEARED_BELOW = 0.25
"""Share of stale pages from which every page is examined and growth is counted, and below which that ends."""
CALM_BELOW = 0.75 / MEMORY_PAGES
"""The share nine pages after a single stale page."""
MAZE_MEMORY_PAGES = 64
"""Pages, or new addresses, over which shares of links are averaged."""
DIFFERENT_MAX = 32
SHAPES_MIN = 4
"""Different shapes of addresses (`shape_of`), and different pages: with fewer, ids name the pages, and no sessions."""
SHAPES_MAX = 256
"""Shapes of which the first page is kept, in 200 bytes each."""
SHAPE_HASHES = 8
SESSION_PAGES_MIN = 24
SESSION_OTHERS_MAX = 0.1
"""Pages that are the same as the first one of their shape before ids count as sessions, and share of others."""
ANCESTORS_MAX = 32
"""Templates whose descendants are counted for each template."""
COMMON_MAX = 32
COMMON_LINKS = 16
"""Known addresses whose links are counted, which is enough for all that get one in 32 of the links, and the weight from
which an address counts as part of a menu."""
CONFIRMED_PAGES = 32
CONFIRMED_JUDGEMENTS = 2
"""Pages and judgements that are needed after the suspicion begins before a template counts as a trap."""
GROWTH_PAGES = 512
"""Pages after which growth counts by half: a template whose pages were named before it was suspected grows later."""
_ALL = (1 << 64) - 1


class Suspicion(msgspec.Struct, array_like=True):
    """Evidence that a template has endless pages with nothing new, or nearly nothing new."""

    share: float = 0.0
    """Share of its recent pages that support the suspicion."""
    since: int = 0
    """Pages fetched since the suspicion began, at most the last `GROWTH_PAGES`; 0: not suspected."""
    confirmed: int = 0
    """Judgements since then that support it."""
    grown: int = 0
    """New addresses of this template in the links of these pages."""
    pages: int = 0
    """Pages since then that support it."""

    @property
    def growth(self) -> float:
        """New addresses per page."""
        return self.grown / self.since if self.since else 0.0

    @property
    def score(self) -> float:
        """How certainly this is a trap, from 0 to 1. Growth counts up to one new address per page."""
        if self.since < CONFIRMED_PAGES or self.confirmed < CONFIRMED_JUDGEMENTS:
            return 0.0
        return self.share * min(1.0, self.growth)

    def note(self, *, agrees: bool, pages: int) -> None:
        """Count pages for or against the suspicion."""
        self.share = agrees + (self.share - agrees) * (1 - 1 / MEMORY_PAGES) ** pages
        if not self.since and self.share >= SUSPECTED_FROM:
            self.since = 1
        elif self.since and self.share < CLEARED_BELOW:
            self.since = self.confirmed = self.grown = self.pages = 0
        elif self.since:
            self.confirmed += agrees
            self.pages += agrees * pages


@decodable
class NodeRecord(msgspec.Struct, array_like=True, frozen=True):
    """The stored form of a watched template."""

    name: str
    pages: int
    judged: int
    stale: Suspicion
    near: Suspicion
    fresh_links: float
    known: bytes


class TemplateNode:
    """A watched template of a host. 4 KB when its sample is full, 50 KB more if its addresses may have sessions."""

    __slots__ = (
        "_ancestors", "_due", "_due_near", "_found", "_name", "_often", "_other", "_same", "_together",
        "branching", "different", "doubted", "fresh_links", "judged", "known", "named_within", "near", "pages",
        "shapes", "stale", "through",
    )  # fmt: skip

    def __init__(self, pages: int = 0) -> None:
        self.pages = pages
        """Pages fetched."""
        self.judged = 0
        """Pages whose content was examined."""
        self.doubted = False
        """Whether the last of these showed nothing new; then the next page is examined too."""
        self.stale = Suspicion()
        self.near = Suspicion()
        self.fresh_links = 0.0
        """Recent share of new addresses among those of this template that its pages link to: stays near 1 in mazes."""
        self.branching = 0.0
        """The same as a number: new addresses of this template per page."""
        self.through = 0.0
        """Further requests that it leads to: of its addresses that redirect, and of pages of other templates that
        descend from it and link back to it.
        """
        self.named_within = 0.0
        """Share of its recent pages that pages of suspected templates named first."""
        self._ancestors: dict[object, float] = {}
        """By the `_name` of another template, or its own: the share of its recent addresses that descend from there."""
        self._name = object()
        """Stands for it in `_ancestors`, which keep no template in memory."""
        self._often: dict[int, int] = {}
        """Known addresses that many of its pages link to, with their weight (Misra and Gries 1982)."""
        self.known = array("Q")
        self.different: deque[int] = deque(maxlen=DIFFERENT_MAX)
        """The last pages with something new while it was suspected, by fingerprints of their addresses. Not stored."""
        self.shapes: dict[int, bytes] = {}
        """By the shape of addresses that may have a session: the smallest hashes of its first page. Not stored."""
        self._same = self._other = 0
        self._due = self._due_near = self._found = 0.0
        self._together = 0

    @property
    def has_sessions(self) -> bool:
        """Whether pages of one shape are the same, and those of different shapes differ."""
        if self._same < SESSION_PAGES_MIN or self._other > self._same * SESSION_OTHERS_MAX:
            return False
        return len(set(self.shapes.values())) >= max(SHAPES_MIN, len(self.shapes) / 2)

    @property
    def is_suspected(self) -> bool:
        return self.near.since > 0 or self.stale.since > 0

    @property
    def calm(self) -> bool:
        """Whether no recent page was stale or near; a single such page ends this."""
        return self.stale.share < CALM_BELOW and self.near.share < CALM_BELOW

    def visit(self) -> None:
        """Count a page."""
        self.pages += 1
        for suspicion in (self.stale, self.near):
            if suspicion.since:
                suspicion.since += 1
            if suspicion.since > GROWTH_PAGES:
                suspicion.since //= 2
                suspicion.grown //= 2

    def note_shape(self, shape: str, sketch: Callable[[], Sketch] | None) -> None:
        """Compare a page whose address may have a session with the first one of its shape; `sketch` is None for an
        exact copy of another page.
        """
        if self._other > SESSION_PAGES_MIN and self._other > self._same:
            self.shapes.clear()
            return
        key = fingerprint(shape)
        first = self.shapes.get(key)
        if first is None and len(self.shapes) >= SHAPES_MAX:
            return
        lowest = array("Q", sketch().lowest[:SHAPE_HASHES] if sketch is not None else ())
        if first is None:
            self.shapes[key] = lowest.tobytes()
            return
        kept = array("Q", first)
        is_same = 2 * len({*kept}.intersection(lowest)) >= len(kept) if kept and lowest else sketch is None
        self._same += is_same
        self._other += not is_same

    def note_name(self, *, within: bool) -> None:
        """Note whether a page of a suspected template was the first to name a page of this one."""
        self.named_within += (within - self.named_within) / MEMORY_PAGES

    def grow(self, addresses: int) -> None:
        """Count new addresses that pages without new content link to."""
        for suspicion in (self.stale, self.near):
            if suspicion.since:
                suspicion.grown += addresses

    def count_links(self, by: TemplateNode, new: int, known: Sequence[int], pages: int = 1) -> None:
        """Take into account that a page of `by` links to addresses of this template: `new` new ones, and `known`
        ones by their fingerprints. `pages` is the number of pages that the examined one stands for.

        A page of another template counts as far as its template descends from this one: a maze may alternate between
        templates, while an album that leads to photos is not found through photos. A page without new addresses
        counts too, since most pages of a tree are leaves, and none of a maze.
        """
        descends = 1.0 if by is self else by._ancestors.get(self._name, 0.0)
        if by.is_suspected:
            self.grow(new)
        if new:
            self._descend(by, new)
        total = new
        for one in known:
            total += not self._is_common(one)
        if descends:
            weight = descends * pages / MAZE_MEMORY_PAGES
            self.fresh_links += (new / max(1, total) - self.fresh_links) * weight
            self.branching += (new - self.branching) * weight
            self.through += descends * pages if by is not self else 0.0

    def _descend(self, by: TemplateNode, new: int) -> None:
        """Count new addresses as descendants of the template that links to them, and of its own ancestors."""
        kept = (1 - 1 / MAZE_MEMORY_PAGES) ** new
        from_there = {**by._ancestors, by._name: 1.0}
        shares = {
            name: kept * self._ancestors.get(name, 0.0) + (1 - kept) * from_there.get(name, 0.0)
            for name in {**self._ancestors, **from_there}
        }
        largest = sorted(shares, key=shares.__getitem__, reverse=True)[:ANCESTORS_MAX]
        self._ancestors = {name: shares[name] for name in largest}

    def _is_common(self, address: int) -> bool:
        """Count a link to a known address; return whether many pages link to it, as they do in a menu."""
        often = self._often
        if address in often or len(often) < COMMON_MAX:
            often[address] = often.get(address, 0) + 1
        else:
            self._often = {one: weight - 1 for one, weight in often.items() if weight > 1}
        return often.get(address, 0) > COMMON_LINKS

    def judge(self, sketch: Sketch) -> bool:
        """Take a page into account; return whether it seems worth its visit. About 40 µs for a page with new words, 20
        µs for one without.

        While the sample holds all shingles of the template, each page is judged by itself. Later a short page may have
        new shingles that the sample does not show: then several pages are judged together, as many as are needed to be
        sure.
        """
        fresh_min, near_max = _bounds(sketch)
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
            stale = self._found < self._due / 2
            near = self._found < self._due_near / 2
            self.note(stale=stale, near=near, pages=self._together)
            self._due = self._due_near = self._found = 0.0
            self._together = 0
        return new > 0 and new >= share * fresh_min

    def differs(self, sketch: Sketch) -> bool | None:
        """Count what a page says, and return whether it is neither stale nor near; None if the sample shows nothing."""
        _, near_max = _bounds(sketch)
        shown = bool(sketch.lowest) and sketch.lowest[0] <= self._reach(sketch)
        new, share = self._take(sketch)
        return new > 0 and new >= share * near_max if shown else None

    def note(self, *, stale: bool, near: bool, pages: int = 1) -> None:
        """Count pages as stale, near, or neither."""
        self.judged += pages
        self.stale.note(agrees=stale, pages=pages)
        self.near.note(agrees=near, pages=pages)

    def record(self, name: str) -> NodeRecord:
        """Return the stored form."""
        return NodeRecord(name, self.pages, self.judged, self.stale, self.near, self.fresh_links, self.known.tobytes())

    def _reach(self, sketch: Sketch) -> int:
        """Return up to which value each sample is complete: a hash that a sample lacks is missing in the whole."""
        ends = [one[-1] for one in (self.known, sketch.lowest) if len(one) == SHINGLES_KEPT]
        return min(ends, default=_ALL)

    def _take(self, sketch: Sketch) -> tuple[int, float]:
        """Return how many of a page's shingles in the sample are new, and the sample's share of all shingles."""
        known = self.known
        reach = self._reach(sketch)
        before = frozenset(known)
        new = [one for one in sketch.lowest if one <= reach and one not in before]
        if new:
            self.known = array("Q", sorted([*known, *new])[:SHINGLES_KEPT])
        return len(new), (reach + 1) / (_ALL + 1)


def _bounds(sketch: Sketch) -> tuple[float, float]:
    """Return how many new shingles make a page worth its visit, and how many make it differ from others."""
    fresh_min = max(FRESH_SHINGLES_MIN, FRESH_SHARE_MIN * sketch.shingles)
    return fresh_min, max(fresh_min, min(NEAR_SHINGLES_MAX, NEAR_SHARE_MAX * sketch.shingles))


def node_of(record: NodeRecord) -> TemplateNode:
    """Return a template from its stored form."""
    node = TemplateNode(record.pages)
    node.judged = record.judged
    node.fresh_links = record.fresh_links
    node.stale = record.stale
    node.near = record.near
    node.known.frombytes(record.known)
    return node
