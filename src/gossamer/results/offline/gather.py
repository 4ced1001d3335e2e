"""Gather: links become records: where each leads and by which way. Four steps, each over files or cells in order.

`pages` notes every attempt, `origins` every page that has links; `join` finds the way to each of these; `links` adds
it to what its links lead to. Nothing but numbers is kept of a link: its text is read again if it is chosen.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_64_intdigest

from gossamer.model.links import EMBED, Link
from gossamer.model.outcomes import MAY_PASS
from gossamer.results.offline import kinds
from gossamer.results.offline.records import Rows, heads, make_rows, spans
from gossamer.results.offline.segment import decode, values_of
from gossamer.results.offline.steps import Build, StepRecords
from gossamer.results.offline.work import BuildPiece
from gossamer.url.url import Url

PASSING_STATUSES = (408, 425, 429)
"""Beside all from 500 on."""

Mask = npt.NDArray[np.bool_]
_SITE_BITS = 0xFFFFFFFF


def gather_pages(build: Build) -> None:
    """Note each attempt: when it was, what came of it, how far the page is from the seeds."""
    waiting = StepRecords(build, [kinds.PAGE])
    columns = [name for name in (
        "url", "key", "fetched_at", "outcome", "status", "depth", "hops", "link_type", "duplicate_of", "error",
        "attempt", "nofollow", "referrer",
    ) if name in build.pages.schema.names]  # fmt: skip
    foreign = _foreign_ranges(build.inputs.pages)
    for start, batch in waiting.over_rows("pages", build.pages, columns):
        prints = prints_of(_keys(build, batch["url"]) if _is_in(foreign, start) else decode(batch["key"]))
        link_types = decode(batch["link_type"])
        flags = _flags(build, batch, link_types)
        hops = _numbers(batch, "hops") if "hops" in columns else _is(link_types, "redirect").astype(np.int64)
        first = _numbers(batch, "attempt", 1) <= 1
        at = batch["fetched_at"].cast(pa.int64()).fill_null(0).to_numpy()
        rows = np.arange(start, start + batch.num_rows, dtype=np.uint64)
        has_depth = batch["depth"].is_valid().to_numpy(zero_copy_only=False)
        way = np.where(has_depth, kinds.way_of(_numbers(batch, "depth"), hops), kinds.FARTHEST)
        waiting["page"].add(len(rows), fp=prints, at=at, pos=rows, way=way, flags=flags, first=first)


def gather_origins(build: Build) -> None:
    """Note each page that has links, once for each batch of rows that it has links in."""
    waiting = StepRecords(build, [kinds.FROM])
    for start, batch in waiting.over_rows("origins", build.links, ["from_url"]):
        runs = pc.run_end_encode(decode(batch["from_url"]))
        ends = runs.run_ends.to_numpy()
        urls = build.judge.namer.names(values_of(runs.values))
        rows = start + np.concatenate([[0], ends[:-1]]).astype(np.uint64)
        waiting["from"].add(len(urls), fp=named_prints(urls), pos=rows, site=_sites(urls) if build.sites_needed else 0)


def join_ways(build: Build) -> None:
    """Find the way to each page that has links."""
    waiting = StepRecords(build, [kinds.way_kind(build.links.rows)])
    pages = build.runs(kinds.PAGE)
    origins = build.runs(kinds.FROM)
    shorter = build.runs(kinds.SHORTER)
    for first, last in waiting.over_cells("ways", [pages, origins, shorter, *build.known.sets()]):
        prints, ways, flags = pages_of(pages.read(first, last), shorter.read(first, last))
        known, known_ways = build.known.read(first, last)
        wanted = origins.read(first, last)
        at = place_of(prints, wanted["fp"])
        way = np.where(at >= 0, ways[at] if len(ways) else 0, kinds.FARTHEST).astype(np.uint32)
        flag = np.where(at >= 0, flags[at] if len(flags) else 0, 0).astype(np.uint8)
        if len(known):
            there = place_of(known, wanted["fp"])
            way = np.where(there < 0, way, kinds.least_of_both(way, known_ways[there] & np.uint32(kinds.WAY_MASK)))
        # A page that was found in an unknown way counts as a seed.
        way = np.where(way == kinds.FARTHEST, 0, way).astype(np.uint32)
        waiting["way"].add(len(wanted), pos=wanted["pos"], way=way, site=wanted["site"], flags=flag)


def gather_links(build: Build) -> None:
    """Note where each link leads, by which way; those that lead nowhere by what they are themselves are left out."""
    waiting = StepRecords(build, [kinds.FOUND])
    ways = _PathStream(build)
    foreign = _foreign_ranges(build.inputs.links)
    for start, batch in waiting.over_rows("links", build.links, ["to_url", "to_key", "link_type", "nofollow"]):
        texts = decode(batch["to_url"])
        keys = _keys(build, texts) if _is_in(foreign, start) else decode(batch["to_key"])
        way, site, flags = ways.rows(start, start + batch.num_rows)
        link_types = decode(batch["link_type"])
        redirect = _is(link_types, "redirect")
        part = _is(link_types, EMBED)
        # Where what is part of a page redirects, the target is part of it too.
        part |= redirect & ((flags & kinds.PART) != 0)
        kept = _among(link_types, build.followed) & (part <= (EMBED in build.followed))
        silent = batch["nofollow"].fill_null(False).to_numpy(zero_copy_only=False) | ((flags & kinds.SILENT) != 0)
        kept &= ~(silent & ~redirect & ~part) & ~(((flags & kinds.BEYOND) != 0) & ~redirect & ~part)
        depth = kinds.depth_of(way) + ~redirect
        hops = np.where(
            redirect, kinds.hops_of(way) + 1, np.where(part & ((flags & kinds.PART) != 0), kinds.hops_of(way) + 1, 0)
        )
        kept &= hops <= min(build.config.scope.hops_max, kinds.HOPS_MAX)
        if build.config.scope.depth_max is not None:
            kept &= (depth <= build.config.scope.depth_max) | part
        if build.sites_needed:
            own = _of_each(texts, lambda some: _sites(build.judge.namer.names(values_of(some)))) == site
            if build.config.scope.own_site:
                kept &= own | part
            site = np.where(own | (not build.wish.in_links), 0, site)
        build.count("links", batch.num_rows)
        chosen = np.flatnonzero(kept)
        variant = _variants(keys, texts, part)[chosen]
        prints = _of_each(keys, prints_of)[chosen]
        least_ways = kinds.way_of(depth, hops)[chosen]
        rows = make_rows(
            kinds.FOUND.dtype, len(chosen), fp=prints, pos=start + chosen, way=least_ways, variant=variant,
            site=site[chosen],
        )  # fmt: skip
        waiting["found"].add_rows(combine(rows))


def pages_of(rows: Rows, shorter: Rows) -> tuple[Any, Any, Any]:
    """Return fingerprint, shortest path and flags of each page; the flags are those of its last attempt."""
    rows = rows[np.lexsort((rows["pos"], rows["at"], rows["fp"]))]
    starts = heads(rows["fp"])
    prints = rows["fp"][starts]
    ways = kinds.least(rows["way"], starts)
    lasts = np.append(starts[1:], len(rows)) - 1 if len(starts) else starts
    flags = rows["flags"][lasts]
    if len(starts):
        flags |= np.bitwise_or.reduceat(rows["flags"], starts) & kinds.REDIRECTS
    if len(shorter) and len(prints):
        at = place_of(prints, shorter["fp"])
        ways = kinds.least_at(ways, at[at >= 0], shorter["way"][at >= 0])
    return prints, ways, flags


def combine(rows: Rows) -> Rows:
    """Return of links that lead to one place in one way only the first: a site's pages repeat theirs."""
    rows = rows[np.lexsort((rows["way"], rows["site"], rows["variant"], rows["fp"]))]
    return rows[heads(rows["fp"], rows["variant"], rows["site"], rows["way"])]


class _PathStream:
    """The paths of pages in the order of their links."""

    def __init__(self, build: Build) -> None:
        self._runs = build.runs(kinds.way_kind(build.links.rows))
        self._kind = self._runs.kind
        self._spans: Iterator[tuple[int, int]] | None = None
        self._room = build.buffer_bytes
        self._rows = np.empty(0, self._kind.dtype)
        self._at = 0
        self._last_cell = 0

    def rows(self, start: int, end: int) -> tuple[Any, Any, Any]:
        """Return way, site and flags of the page of each row from `start` up to and without `end`."""
        while self._spans is None or ((self._last_cell << self._kind.shift) < end and self._last_cell < 4096):
            if self._spans is None:
                self._spans = spans([self._runs], self._room, start >> self._kind.shift)
            first, self._last_cell = next(self._spans)
            more = self._runs.read(first, self._last_cell)
            self._rows = np.concatenate([self._rows[self._at :], more[np.argsort(more["pos"], kind="stable")]])
            self._at = 0
        begin = self._at + int(np.searchsorted(self._rows["pos"][self._at :], np.uint64(start)))
        self._at = begin + int(np.searchsorted(self._rows["pos"][begin:], np.uint64(end)))
        found = self._rows[begin : self._at]
        begins = np.append(found["pos"], np.uint64(end)).astype(np.int64)
        lengths = begins[1:] - begins[:-1]
        assert lengths.sum() == end - start, "each batch of links begins with a page"
        return np.repeat(found["way"], lengths), np.repeat(found["site"], lengths), np.repeat(found["flags"], lengths)


def _flags(build: Build, batch: pa.RecordBatch, link_types: pa.Array) -> npt.NDArray[np.uint8]:
    outcome = decode(batch["outcome"])
    status = _numbers(batch, "status")
    passing = _among(outcome, MAY_PASS)
    passing |= _is(outcome, "http_error") & ((status >= 500) | np.isin(status, PASSING_STATUSES))
    part = _is(link_types, EMBED)
    silent = np.zeros(batch.num_rows, bool)
    if "nofollow" in batch.schema.names:
        silent |= batch["nofollow"].fill_null(False).to_numpy(zero_copy_only=False)
    if build.config.scope.languages:
        rejected = pc.starts_with(decode(batch["error"]).fill_null(""), "the filter `language` rejects")
        silent |= rejected.to_numpy(zero_copy_only=False)
    if not build.config.crawl.process_copies:
        silent |= pc.not_equal(decode(batch["duplicate_of"]).fill_null(""), "").to_numpy(zero_copy_only=False)
    elif not build.config.crawl.follow_copies:
        silent |= _copies(build, batch)
    beyond = np.zeros(batch.num_rows, bool)
    if EMBED in build.followed and part.any():
        beyond = _beyond(build, batch, part)
    flags = silent * kinds.SILENT + part * kinds.PART + beyond * kinds.BEYOND + passing * kinds.PASSING
    return np.asarray((flags + _is(outcome, "redirected") * kinds.REDIRECTS).astype(np.uint8))


def _copies(build: Build, batch: pa.RecordBatch) -> Mask:
    originals = values_of(decode(batch["duplicate_of"]).fill_null(""))
    copies = np.zeros(batch.num_rows, bool)
    if places := [place for place, text in enumerate(originals) if text]:
        urls = values_of(batch["url"])
        for place in places:
            one, other = build.judge.namer.names((urls[place], originals[place]))
            copies[place] = one is not None and other is not None and one.host == other.host
    return copies


def _beyond(build: Build, batch: pa.RecordBatch, part: Mask) -> Mask:
    """Return the mask of the pages that were fetched only as parts of others: filters reject them as pages."""
    beyond = np.zeros(batch.num_rows, bool)
    places = np.flatnonzero(part)
    taken = batch.take(pa.array(places))
    urls = build.judge.namer.names(values_of(taken["url"]))
    depths = _numbers(taken, "depth").tolist()
    referrers = values_of(decode(taken["referrer"]).fill_null(""))
    for place, url, depth, referrer in zip(places, urls, depths, referrers, strict=True):
        if url is not None:
            beyond[place] = bool(build.judge.chain.explain(Link(url, "anchor", depth, 0, referrer)))
    return beyond


def _variants(keys: pa.Array, texts: pa.Array, part: Mask) -> npt.NDArray[np.uint32]:
    """Return numbers that distinguish links to one target for filters: another text, or being part of a page."""
    variant = np.where(part, kinds.EMBEDDED, 0).astype(np.uint32)
    differs = np.flatnonzero(pc.not_equal(keys, texts).to_numpy(zero_copy_only=False))
    if len(differs):
        others = values_of(texts.take(pa.array(differs)).cast(pa.binary()))
        marks = [xxh3_64_intdigest(text) & 0x3FFFFFFF | 1 for text in others]
        variant[differs] |= np.array(marks, np.uint32) << np.uint32(2)
    return variant


def _of_each(texts: pa.Array, find: Callable[[pa.Array], kinds.Column]) -> kinds.Column:
    """Apply `find` to a column of texts, but only once to each different text."""
    coded = texts.dictionary_encode()
    return np.asarray(find(coded.dictionary)[coded.indices.to_numpy()])


def prints_of(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Return the fingerprints of keys."""
    return np.fromiter(map(xxh3_64_intdigest, values_of(texts.cast(pa.binary()))), np.uint64, len(texts))


def named_prints(urls: list[Url | None]) -> npt.NDArray[np.uint64]:
    """Return the fingerprints of addresses; 0 for what has none."""
    return np.array([url.fingerprint if url is not None else 0 for url in urls], np.uint64)


def _keys(build: Build, texts: pa.Array) -> pa.Array:
    written = values_of(decode(texts))
    named = zip(build.judge.namer.names(written), written, strict=True)
    return pa.array([url.key if url is not None else text for url, text in named], pa.string())


def _sites(urls: list[Url | None]) -> npt.NDArray[np.uint32]:
    """Return 32 bits for each site, never 0; 0 for what has no address."""
    marks = (xxh3_64_intdigest(url.site.encode()) & _SITE_BITS or 1 if url is not None else 0 for url in urls)
    return np.fromiter(marks, np.uint32, len(urls))


def place_of(listed: Any, values: Any) -> npt.NDArray[np.int64]:
    """Return the index of each value in a sorted list, -1 if it is missing."""
    if not len(listed):
        return np.full(len(values), -1, np.int64)
    at = np.minimum(np.searchsorted(listed, values), len(listed) - 1)
    return np.where(listed[at] == values, at, -1)


def _numbers(batch: pa.RecordBatch, name: str, missing: int = 0) -> npt.NDArray[np.int64]:
    return np.asarray(batch[name].fill_null(missing).to_numpy(zero_copy_only=False)).astype(np.int64)


def _is(column: pa.Array, value: str) -> Mask:
    return np.asarray(pc.fill_null(pc.equal(column, value), False).to_numpy(zero_copy_only=False))


def _among(column: pa.Array, values: frozenset[str]) -> Mask:
    return np.asarray(pc.is_in(column, value_set=pa.array(sorted(values), pa.string())).to_numpy(zero_copy_only=False))


def _foreign_ranges(pieces: list[BuildPiece]) -> list[tuple[int, int]]:
    ranges = []
    at = 0
    for piece in pieces:
        if piece.foreign:
            ranges.append((at, at + piece.rows))
        at += piece.rows
    return ranges


def _is_in(ranges: list[tuple[int, int]], row: int) -> bool:
    return any(start <= row < end for start, end in ranges)
