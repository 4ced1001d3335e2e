"""Choose: which of the URLs that links lead to are new, and by which of its links each is judged.

All links to one URL are in one cell, with what is known of it. Links whose fate may differ (another text under one
key, part of a page or not) stay apart until they were judged.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gossamer.model.links import EMBED
from gossamer.results.offline import kinds
from gossamer.results.offline.gather import pages_of, place_of
from gossamer.results.offline.records import Rows, heads, make_rows
from gossamer.results.offline.seeds import Named
from gossamer.results.offline.segment import values_of
from gossamer.results.offline.steps import Build, StepRecords

LISTED_MAX = 255
_BATCH = 8_192


def gather_others(build: Build, seeds: Callable[[], Iterator[Named]]) -> None:
    """Note what may be listed though no link leads to it: what was left over, and the seeds."""
    state = build.work.state
    waiting = StepRecords(build, [kinds.FOUND])
    left_rows = build.known.leftover_rows
    for end, batch in build.known.read_leftovers(state.position) if state.position < left_rows else ():
        waiting["found"].add_rows(_leftover_rows(batch, build.rows + end - batch.num_rows))
        waiting.settle(end)
        build.progress("left over", end, left_rows)
    at = max(0, state.position - left_rows)
    named = islice(seeds(), at, None)
    while held := [one.url.fingerprint for one in islice(named, _BATCH)]:
        rows = np.arange(at, at + len(held), dtype=np.uint64) + np.uint64(build.rows + left_rows)
        waiting["found"].add(len(held), fp=np.array(held, np.uint64), pos=rows, variant=kinds.SEED)
        at += len(held)
        waiting.settle(left_rows + at)
        build.progress("seeds", at, at)
    state.figures["seeds"] = at
    waiting.settle(left_rows + at, last=True)


def _leftover_rows(batch: pa.RecordBatch, row: int) -> Any:
    listed = batch["listed"].to_numpy().astype(np.uint32)
    link_types = np.array(values_of(batch["link_type"]))
    variant = np.where(link_types == EMBED, kinds.EMBEDDED, np.where(link_types == "seed", kinds.SEED, kinds.LINK))
    return make_rows(
        kinds.FOUND.dtype,
        batch.num_rows,
        fp=batch["fingerprint"].to_numpy(),
        pos=np.arange(row, row + batch.num_rows),
        way=kinds.way_of(batch["depth"].to_numpy(), batch["hops"].to_numpy()),
        # What is to be listed again is known: it must not be dropped for that.
        variant=np.where(listed > 1, kinds.AGAIN, variant),
        site=np.where(listed > 1, listed, 0),
    )


def choose(build: Build) -> None:
    """Choose what is to be judged: what is new, and what may be listed again."""
    kind = kinds.choice_kind(build.rows_all)
    waiting = StepRecords(build, [kind, kinds.ADDED, kinds.RELAXED])
    found = build.runs(kinds.FOUND)
    pages = build.runs(kinds.PAGE)
    shorter = build.runs(kinds.SHORTER)
    for first, last in waiting.over_cells("choosing", [found, pages, shorter, *build.known.sets()]):
        rows = pages.read(first, last)
        listed = build.known.read(first, last)
        of_pages = _nearest(pages_of(rows, shorter.read(first, last)), listed)
        links = found.read(first, last)
        known = np.union1d(of_pages[0], listed[0])
        chosen = _choose(build, links, known, kind.dtype)
        chosen = _mark_repeats(np.concatenate([chosen, _again(build, rows, of_pages, listed, kind.dtype)]))
        waiting[kind.name].add_rows(chosen)
        _note_known(build, waiting, links, of_pages, listed, rows)
        build.count("known", len(known))


def _nearest(of_pages: Any, listed: Any) -> Any:
    """Return pages with the shortest of their paths and those of the index."""
    prints, ways, flags = of_pages
    known, known_ways = listed
    place = place_of(known, prints)
    there = place >= 0
    ways = ways.copy()
    if len(known):
        ways[there] = kinds.least_of_both(ways[there], known_ways[place[there]] & np.uint32(kinds.WAY_MASK))
    return prints, ways, flags


def _choose(build: Build, links: Rows, known: Any, dtype: np.dtype[Any]) -> Any:
    """Return for each new URL, and each way to judge it, the first of its shortest links, with its shortest path."""
    sites = links["site"]
    is_again = (links["variant"] & 3) == kinds.AGAIN
    rows = links[np.lexsort((links["pos"], links["way"], links["variant"], links["fp"]))]
    starts = heads(rows["fp"], rows["variant"])
    chosen: Any = np.zeros(len(starts), dtype)
    first = rows[starts]
    for name in ("pos", "fp", "variant"):
        chosen[name] = first[name]
    chosen["way"] = kinds.least(rows["way"], starts)
    chosen["listed"] = np.where((first["variant"] & 3) == kinds.AGAIN, np.minimum(first["site"], LISTED_MAX), 1)
    new = place_of(known, chosen["fp"]) < 0
    new[new] &= ~build.known.holds(chosen["fp"][new])
    chosen = chosen[new | ((chosen["variant"] & 3) == kinds.AGAIN)]
    if build.wish.in_links:
        linking = links[(sites != 0) & ~is_again]
        linking = linking[np.lexsort((linking["site"], linking["fp"]))]
        linking = linking[heads(linking["fp"], linking["site"])]
        begin = np.searchsorted(linking["fp"], chosen["fp"], "left")
        chosen["sites"] = np.searchsorted(linking["fp"], chosen["fp"], "right") - begin
    return chosen


def _again(build: Build, rows: Rows, of_pages: Any, listed: Any, dtype: np.dtype[Any]) -> Any:
    """Return the URLs whose last attempt ended with an error that may pass, unless they were tried often enough."""
    prints, ways, flags = of_pages
    if not build.wish.retries or not len(prints):
        return np.zeros(0, dtype)
    times = _times(rows, prints, listed)
    wanted = ((flags & kinds.PASSING) != 0) & (times <= build.wish.retries)
    rows = rows[np.lexsort((rows["pos"], rows["at"], rows["fp"]))]
    lasts = np.append(heads(rows["fp"])[1:], len(rows)) - 1
    return make_rows(
        dtype,
        int(wanted.sum()),
        fp=prints[wanted],
        way=ways[wanted],
        variant=kinds.AGAIN,
        pos=rows["pos"][lasts][wanted] + np.uint64(build.links.rows),
        listed=np.minimum(times[wanted] + 1, LISTED_MAX),
    )


def _times(rows: Rows, prints: Any, listed: Any) -> npt.NDArray[np.int64]:
    """Return how often each page was listed or, where that was not counted, visited."""
    times = np.bincount(np.searchsorted(prints, rows["fp"]), rows["first"], len(prints)).astype(np.int64)
    known, ways = listed
    place = place_of(known, prints)
    counted = np.where(place >= 0, (ways >> np.uint32(kinds.WAY_BITS))[place] if len(known) else 0, 0).astype(np.int64)
    return np.maximum(np.maximum(times, counted), 1)


def _mark_repeats(chosen: Rows) -> Rows:
    order = np.argsort(chosen["fp"], kind="stable")
    fps = chosen["fp"][order]
    same = np.zeros(len(fps), bool)
    if len(fps):
        same[1:] = fps[1:] == fps[:-1]
        same[:-1] |= same[1:]
    chosen["several"][order] = same
    return chosen


def _note_known(build: Build, waiting: StepRecords, links: Rows, of_pages: Any, listed: Any, rows: Rows) -> None:
    """Note changes for the index: fetched URLs, and shorter paths to seen ones."""
    prints, ways, flags = of_pages
    known, known_ways = listed
    fps = np.union1d(prints, known)
    held = _ways_to(fps, prints, ways, known, known_ways)
    if build.known.directory is not None and len(prints):
        times = np.minimum(_times(rows, prints, listed), LISTED_MAX).astype(np.uint32)
        place = place_of(known, prints)
        learnt = held[np.searchsorted(fps, prints)] | times << np.uint32(kinds.WAY_BITS)
        same = (place >= 0) & (known_ways[place] == learnt) if len(known) else np.zeros(len(prints), bool)
        if not build.known.is_exact:
            same |= build.known.holds(prints)
        waiting[kinds.ADDED.name].add(int((~same).sum()), fp=prints[~same], way=learnt[~same])
    if not len(fps) or not len(links):
        return
    place = place_of(fps, links["fp"])
    there = (place >= 0) & ((links["variant"] & 3) != kinds.AGAIN)
    best = kinds.least_at(held, place[there], links["way"][there])
    better = best != held
    if build.known.directory is not None and build.known.is_exact:
        waiting[kinds.ADDED.name].add(int(better.sum()), fp=fps[better], way=best[better])
    # A shorter path is passed on only if it can change something: under a limit of depth, and along redirects that
    # were too many. Otherwise it would only cost another pass.
    at = place_of(prints, fps)
    redirects = np.where(at >= 0, flags[at] if len(prints) else 0, 0) & kinds.REDIRECTS != 0
    freed = (
        redirects & (kinds.hops_of(held) >= build.config.scope.hops_max) & (kinds.hops_of(best) < kinds.hops_of(held))
    )
    passed = better & (at >= 0) & (freed | (build.config.scope.depth_max is not None))
    waiting[kinds.RELAXED.name].add(int(passed.sum()), fp=fps[passed], way=best[passed])


def _ways_to(fps: Any, prints: Any, ways: Any, known: Any, known_ways: Any) -> npt.NDArray[np.uint32]:
    """Return the known paths to URLs, from their pages and from the index."""
    held = np.full(len(fps), kinds.FARTHEST, np.uint32)
    for listed, way in ((prints, ways), (known, known_ways & np.uint32(kinds.WAY_MASK))):
        if len(listed):
            at = np.searchsorted(fps, listed)
            held[at] = kinds.least_of_both(held[at], way)
    # A page that was found in an unknown way counts as a seed.
    return np.where(held == kinds.FARTHEST, 0, held).astype(np.uint32)
