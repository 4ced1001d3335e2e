"""Kinds: records of a build, what their bits mean, and depth and hops as one number below 2**24."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.results.offline.records import RecordKind, shift_for

DEPTH_MAX = 0xFFFF
HOPS_MAX = 0xFF
WAY_BITS = 24
WAY_MASK = (1 << WAY_BITS) - 1
FARTHEST = WAY_MASK
"""The way to what nothing leads to."""

Column = npt.NDArray[Any]


def way_of(depth: Column, hops: Column) -> npt.NDArray[np.uint32]:
    """Return depths and hops as one number each; what is too long to count stays at the most."""
    depths = np.clip(depth, 0, DEPTH_MAX).astype(np.uint32)
    return depths << np.uint32(8) | np.clip(hops, 0, HOPS_MAX).astype(np.uint32)


def depth_of(way: Column) -> npt.NDArray[np.int64]:
    """Return the depths."""
    return (way >> np.uint32(8)).astype(np.int64) & DEPTH_MAX


def hops_of(way: Column) -> npt.NDArray[np.int64]:
    """Return the hops."""
    return way.astype(np.int64) & HOPS_MAX


def least(way: Column, starts: npt.NDArray[np.intp]) -> npt.NDArray[np.uint32]:
    """Return for each group the least depth and the least hops of its paths, each separately."""
    if not len(starts):
        return np.empty(0, np.uint32)
    return way_of(np.minimum.reduceat(depth_of(way), starts), np.minimum.reduceat(hops_of(way), starts))


def least_of_both(one: Column, other: Column) -> npt.NDArray[np.uint32]:
    """Return the least depth and the least hops of two columns of paths."""
    return way_of(np.minimum(depth_of(one), depth_of(other)), np.minimum(hops_of(one), hops_of(other)))


def least_at(way: Column, places: npt.NDArray[np.int64], others: Column) -> npt.NDArray[np.uint32]:
    """Return paths, each with the least depth and the least hops of those among `others` that have its place."""
    depth = depth_of(way)
    hops = hops_of(way)
    np.minimum.at(depth, places, depth_of(others))
    np.minimum.at(hops, places, hops_of(others))
    return way_of(depth, hops)


SILENT = 1
"""Of a page: its links are not followed (except for redirects and what is part of it)."""
PART = 2
"""It was fetched as part of another page."""
BEYOND = 4
"""It is ours only as part of another page: what it names is not, except for its own parts."""
REDIRECTS = 8
PASSING = 16
"""Its last attempt ended with an error that may pass."""
LINK = 0
EMBEDDED = 1
SEED = 2
AGAIN = 3
"""How a URL was found, as far as filters care: the two lowest bits of `variant`. The others stand for its text where
that is not its key. `AGAIN` is a URL that was listed before and is to be listed again."""
PAGE = RecordKind(
    "page", np.dtype([("fp", "<u8"), ("at", "<i8"), ("pos", "<u8"), ("way", "<u4"), ("flags", "u1"), ("first", "u1")])
)
"""An attempt: when, its row, the way to it; `first` where a visit began with it."""
KNOWN = RecordKind("known", np.dtype([("fp", "<u8"), ("way", "<u4")]))
"""A seen URL: its shortest path, and in the uppermost byte how often it was listed."""
SHORTER = KNOWN._replace(name="shorter")
RELAXED = KNOWN._replace(name="relaxed")
"""Pages that turned out to be nearer than they were known to be: their links are, too."""
ADDED = KNOWN._replace(name="added")
"""Records of URLs that become known."""
LISTED = KNOWN._replace(name="listed")
"""Records of URLs that the segments list."""
FROM = RecordKind("from", np.dtype([("fp", "<u8"), ("pos", "<u8"), ("site", "<u4")]))
"""A page that has links, and the first of their rows in one batch."""
FOUND = RecordKind(
    "found", np.dtype([("fp", "<u8"), ("pos", "<u8"), ("way", "<u4"), ("variant", "<u4"), ("site", "<u4")])
)
"""A link: where it leads, its row, the way; the site of its page where sites are counted, 0 for the target's own. Of
one that is listed `AGAIN`, `site` says how often it was."""


def way_kind(rows: int) -> RecordKind:
    """Return the kind of: the links from a row on are of a page to which this is the way."""
    fields: list[tuple[str, Any]] = [("pos", "<u8"), ("way", "<u4"), ("site", "<u4"), ("flags", "u1")]
    return RecordKind("way", np.dtype(fields), shift_for(rows))


def choice_kind(rows: int) -> RecordKind:
    """Return the kind of: the URL in this row is to be judged."""
    fields: list[tuple[str, Any]] = [
        ("pos", "<u8"), ("fp", "<u8"), ("way", "<u4"), ("sites", "<u4"), ("variant", "<u4"), ("listed", "u1"),
        ("several", "u1"),
    ]  # fmt: skip
    return RecordKind("chosen", np.dtype(fields), shift_for(rows))
