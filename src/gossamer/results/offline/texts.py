"""Texts: what was chosen is read again, named and judged; what is ours waits, sorted by partition, for its segment."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gossamer.model.links import EMBED, Link
from gossamer.results.export.sorting import COMPRESSION
from gossamer.results.export.source import plain
from gossamer.results.offline.kinds import EMBEDDED, choice_kind, depth_of, hops_of
from gossamer.results.offline.records import CELLS, Rows, spans
from gossamer.results.offline.seeds import Named
from gossamer.results.offline.segment import BATCH_ROWS, SCHEMA, table_of, values_of
from gossamer.results.offline.steps import Build
from gossamer.url.site import PARTITIONS
from gossamer.world.files import publish

ROWS = pa.schema(
    [
        *(pa.field(one.name, plain(one.type)) for one in SCHEMA),
        ("sites", pa.uint32()),
        ("several", pa.bool_()),
        ("row", pa.uint64()),
    ]
)
"""Waiting rows: a segment's columns, the number of linking sites, whether the URL occurs again, and its row."""

ROW_BYTES = 220
"""About what a URL takes in memory, referrer and keys included."""
KIND = "rows"
LEVEL_LAST = 7


class Texts(NamedTuple):
    """Some of the rows that were chosen, as they were found."""

    urls: list[str]
    kinds: list[str]
    referrers: list[str]
    seeds: list[int]


def stretches(build: Build) -> int:
    """Return into how many stretches of partitions the rows are cut: such that one fits into memory, as a rule."""
    figures = build.work.state.figures
    if "stretches" not in figures:
        wanted = build.runs(choice_kind(build.rows_all)).count * ROW_BYTES // build.buffer_bytes
        figures["stretches"] = min(PARTITIONS, 1 << int(wanted).bit_length())
    return figures["stretches"]


def read_texts(build: Build, seeds: Callable[[], Iterator[Named]]) -> None:
    """Judge what was chosen, in the order of its rows."""
    state = build.work.state
    chosen = build.runs(choice_kind(build.rows_all))
    waiting = _Waiting(build, stretches(build))
    reading = _TextReading(build, seeds)
    # What is read of the records at once becomes about half a buffer of rows.
    records_bytes = build.buffer_bytes * chosen.kind.dtype.itemsize // ROW_BYTES // 2
    for first, last in spans([chosen], records_bytes, state.position):
        rows = chosen.read(first, last)
        rows = rows[np.argsort(rows["pos"], kind="stable")]
        for part, texts in reading.texts(rows):
            waiting.add(_judge(build, part, texts))
            build.count("judged", len(part))
            build.progress("judging", state.figures["judged"], chosen.count)
        waiting.settle(last)
    waiting.settle(CELLS, last=True)


def _judge(build: Build, rows: Rows, texts: Texts) -> pa.Table:
    """Return the rows that are ours, with what the segment says of them. About 4 µs each."""
    reason = build.judge.chain.reason
    level = build.judge.prioritizer.level
    depths = depth_of(rows["way"])
    hops = hops_of(rows["way"])
    named = build.judge.namer.names(texts.urls)
    columns = zip(named, texts.kinds, depths.tolist(), hops.tolist(), texts.referrers, texts.seeds, strict=True)
    links: list[Link] = []
    kept: list[int] = []
    for place, (url, kind, depth, hop, referrer, seed) in enumerate(columns):
        if url is not None:
            link = Link(url, kind, depth, hop, referrer, seed)
            if not reason(link):
                links.append(link)
                kept.append(place)
    rows = rows[np.array(kept, np.intp)]
    # The Python objects of a row are freed here.
    table = table_of(links, _levels(build, links, rows, level), rows["listed"].tolist())
    more = (rows["sites"], rows["several"].astype(bool), rows["pos"])
    return pa.table([*table.columns, *map(pa.array, more)], schema=ROWS)


def _levels(build: Build, links: list[Link], rows: Rows, level: Callable[[Link], int]) -> list[int]:
    """Return how urgent each is: by the crawl's prioritizer, or by the doublings of the sites that link to it."""
    if not build.wish.in_links:
        return [level(link) for link in links]
    doublings = np.log2(rows["sites"].astype(float) + 1.0).astype(np.int64)
    levels = np.maximum(1, LEVEL_LAST - doublings).tolist()
    return [0 if link.link_type == "seed" else found for link, found in zip(links, levels, strict=True)]


class _TextReading:
    """Reads the texts of rows whose numbers grow: links, then pages, then left-overs, then seeds."""

    def __init__(self, build: Build, seeds: Callable[[], Iterator[Named]]) -> None:
        self._build = build
        self._named = seeds
        links = build.links.rows
        pages = build.pages.rows
        left = build.known.leftover_rows
        self._ends = np.array([links, links + pages, links + pages + left, build.rows_all], np.uint64)
        self._streams: dict[int, Iterator[tuple[int, pa.RecordBatch]]] = {}
        self._batches: dict[int, tuple[int, pa.RecordBatch]] = {}

    def texts(self, rows: Rows) -> Iterator[tuple[Rows, Texts]]:
        """Yield rows in parts with their texts."""
        bounds = [0, *np.searchsorted(rows["pos"], self._ends).tolist()]
        begins = [0, *self._ends.tolist()]
        for region in range(4):
            yield from self._of(region, begins[region], rows[bounds[region] : bounds[region + 1]])

    def _of(self, region: int, begin: int, rows: Rows) -> Iterator[tuple[Rows, Texts]]:
        while len(rows):
            end, batch = self._batch(region, int(rows["pos"][0]) - begin)
            held = int(np.searchsorted(rows["pos"], np.uint64(begin + end)))
            places = (rows["pos"][:held] - np.uint64(begin + end - batch.num_rows)).astype(np.int64)
            yield rows[:held], self._texts(region, batch.take(pa.array(places)), rows[:held])
            rows = rows[held:]

    def _batch(self, region: int, row: int) -> tuple[int, pa.RecordBatch]:
        if region not in self._streams:
            self._streams[region] = self._stream(region, row)
            self._batches[region] = next(self._streams[region])
        while self._batches[region][0] <= row:
            self._batches[region] = next(self._streams[region])
        return self._batches[region]

    def _stream(self, region: int, row: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        build = self._build
        if region == 0:
            return build.links.batches(row, ["from_url", "to_url", "link_type"])
        if region == 1:
            return build.pages.batches(row, ["url", "link_type", "referrer"])
        return build.known.read_leftovers(row) if region == 2 else self._seeds()

    def _seeds(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        end = 0
        seeds = self._named()
        while held := list(islice(seeds, BATCH_ROWS)):
            end += len(held)
            texts = [one.url.text for one in held]
            kinds = [one.kind for one in held]
            yield end, pa.record_batch([pa.array(texts), pa.array(kinds)], names=["url", "seed"])

    def _texts(self, region: int, batch: pa.RecordBatch, rows: Rows) -> Texts:
        count = batch.num_rows
        if region == 3:
            return Texts(values_of(batch["url"]), ["seed"] * count, [""] * count, values_of(batch["seed"]))
        kinds = values_of(batch["link_type"])
        if region == 2:
            return Texts(values_of(batch["url"]), kinds, values_of(batch["referrer"]), values_of(batch["seed"]))
        if region == 1:
            seeds = [self._build.seeds.kind(int(fp)) for fp in rows["fp"]]
            return Texts(values_of(batch["url"]), kinds, values_of(batch["referrer"].fill_null("")), seeds)
        parts = ((rows["variant"] & 3) == EMBEDDED).tolist()
        kinds = [EMBED if part else kind for part, kind in zip(parts, kinds, strict=True)]
        return Texts(values_of(batch["to_url"]), kinds, values_of(batch["from_url"]), [0] * count)


class _Waiting:
    """Rows that wait for their file, in which each stretch of partitions is one batch."""

    def __init__(self, build: Build, count: int) -> None:
        self._build = build
        self._count = count
        self._held: list[pa.Table] = []
        self._bytes = 0

    def add(self, table: pa.Table) -> None:
        self._held.append(table)
        self._bytes += table.nbytes

    def settle(self, position: int, *, last: bool = False) -> None:
        """Write what waits when it has grown, or at the end, and note that the step is at `position`."""
        work = self._build.work
        if self._bytes >= self._build.buffer_bytes or (last and self._held):
            name = work.new_name(KIND)
            self._write(work.folder / name)
            work.state.runs.setdefault(KIND, []).append(name)
        elif not last:
            return
        work.state.position = position
        work.save()

    def _write(self, path: Path) -> None:
        table = pa.concat_tables(self._held).combine_chunks()
        self._held = []
        self._bytes = 0
        stretch = table["partition"].to_numpy().astype(np.int64) * self._count // PARTITIONS
        order = np.argsort(stretch, kind="stable")
        bounds = np.searchsorted(stretch[order], np.arange(self._count + 1))
        aside = path.with_name(path.name + ".new")
        with pa.OSFile(str(aside), "wb") as sink, pa.ipc.new_file(sink, ROWS, options=COMPRESSION) as writer:
            for at in range(self._count):
                part = table.take(pa.array(order[bounds[at] : bounds[at + 1]])).combine_chunks()
                writer.write_batch(part.to_batches()[0] if part.num_rows else _NONE)
        publish(aside, path)
        del table
        pa.default_memory_pool().release_unused()


_NONE = pa.RecordBatch.from_arrays([pa.array([], one.type) for one in ROWS], schema=ROWS)
