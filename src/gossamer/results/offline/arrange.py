"""Arrange: rows come out of their stretches of partitions in the order of a segment, each URL once, hosts capped."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from gossamer.results.export.sorting import Sorter
from gossamer.results.offline.kinds import LISTED, WAY_BITS, depth_of, hops_of, least, way_of
from gossamer.results.offline.records import heads
from gossamer.results.offline.segment import SegmentInfo, SegmentWriter, values_of
from gossamer.results.offline.steps import Build, StepRecords
from gossamer.results.offline.texts import KIND, ROWS, stretches
from gossamer.url.site import PARTITIONS

_BY_URL = ("fingerprint", "depth", "hops", "row")
_IN_ORDER = ("partition", "site", "level", "rank", "depth", "hops", "fingerprint")
_RANK_MAX = 0xFFFFFFFF


def arrange(build: Build, about: SegmentInfo) -> tuple[list[Path], Path | None]:
    """Write the segments, and the excess of hosts that have too many; return where. Restarts from zero after a kill."""
    state = build.work.state
    known = build.known
    state.runs.pop(LISTED.name, None)
    waiting = StepRecords(build, [LISTED])
    paths = [build.work.folder / f"out-{part:04d}" for part in range(build.wish.parts)]
    # Left over is what an index remembers; without one it is found again in the tables.
    left_path = known.new_file("left") if known.directory is not None and build.wish.per_host else None
    capped = _Caps(build.wish.per_host)
    listed = 0
    with ExitStack() as stack:
        outs = Outs(paths, about)
        stack.callback(outs.drop)
        left = stack.enter_context(SegmentWriter(left_path, about)) if left_path is not None else None
        for table in in_order(build):
            mask = capped.mask(table)
            taken = table
            if not mask.all():
                taken = table.filter(pa.array(mask))
                if left is not None:
                    left.write(table.filter(pa.array(~mask)))
            outs.write(taken)
            way = way_of(taken["depth"].to_numpy(), taken["hops"].to_numpy())
            way |= taken["listed"].to_numpy().astype(np.uint32) << np.uint32(WAY_BITS)
            waiting[LISTED.name].add(taken.num_rows, fp=taken["fingerprint"].to_numpy(), way=way)
            waiting.settle(0)
            listed += taken.num_rows
        waiting.settle(0, last=True)
        outs.finish()
    state.figures["listed"] = listed
    state.figures["left"] = capped.left
    return paths, left_path if left is not None and left.urls else None


def in_order(build: Build) -> Iterator[pa.Table]:
    """Yield all rows in the order of a segment, each URL once."""
    count = stretches(build)
    files = build.work.paths(KIND)
    for at in range(count):
        held: list[pa.RecordBatch] = []
        size = 0
        for number, path in enumerate(files):
            batch = _batch(path, at)
            held.append(batch)
            size += batch.nbytes
            if size > build.buffer_bytes:
                # One site may have more than memory holds.
                yield from _on_disk(build, held, (_batch(other, at) for other in files[number + 1 :]))
                break
        else:
            table = pa.Table.from_batches(held, ROWS).combine_chunks()
            del held
            table = sort_rows(once(table))
            yield table
            del table
        pa.default_memory_pool().release_unused()
        build.progress("sorting", at + 1, count)


def _batch(path: Path, at: int) -> pa.RecordBatch:
    with pa.OSFile(str(path), "rb") as file:
        return pa.ipc.open_file(file).get_batch(at)


def _on_disk(build: Build, held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Sort a stretch that memory does not hold: by URL, to have each once, and then in order."""
    room = build.room_bytes // 2
    by_url = Sorter(build.work.folder / "by-url", _BY_URL, room)
    while held:
        if by_url.add(held.pop(0)):
            by_url.spill()
    for batch in rest:
        if by_url.add(batch):
            by_url.spill()
    by_url.spill()
    in_order = Sorter(build.work.folder / "in-order", _IN_ORDER, room)
    for table in _each_once(by_url):
        rank = pa.array(np.uint32(_RANK_MAX) - table["sites"].to_numpy())
        for batch in table.append_column("rank", rank).to_batches():
            if in_order.add(batch):
                in_order.spill()
    by_url.runs = []
    by_url.sweep()
    in_order.spill()
    for table, _ in in_order.merge():
        yield table.select(ROWS.names)
    in_order.runs = []
    in_order.sweep()


def _each_once(sorter: Sorter) -> Iterator[pa.Table]:
    """Yield the rows of a sorter by URL, each once; those of one URL may be in two tables."""
    waiting: pa.Table | None = None
    for table, _ in sorter.merge():
        table = table if waiting is None else pa.concat_tables([waiting, table]).combine_chunks()
        prints = table["fingerprint"].to_numpy()
        last = int(np.searchsorted(prints, prints[-1]))
        if last:
            yield once(table.slice(0, last).combine_chunks())
        waiting = table.slice(last)
    if waiting is not None:
        yield once(waiting.combine_chunks())


def once(table: pa.Table) -> pa.Table:
    """Merge the rows of each URL: keep the first of the shortest, with the shortest path of all."""
    several = np.flatnonzero(table["several"].to_numpy())
    if not len(several):
        return table
    prints = table["fingerprint"].to_numpy()[several]
    rows = table["row"].to_numpy()[several]
    way = way_of(table["depth"].to_numpy(), table["hops"].to_numpy())
    order = np.lexsort((rows, way[several], prints))
    starts = heads(prints[order])
    firsts = several[order][starts]
    way[firsts] = least(way[several][order], starts)
    changed: dict[str, Any] = {"depth": depth_of(way).astype(np.int32), "hops": hops_of(way).astype(np.int32)}
    for name in ("listed", "sites"):
        values = table[name].to_numpy().copy()
        values[firsts] = np.maximum.reduceat(values[several][order], starts)
        changed[name] = values
    kept = np.ones(table.num_rows, bool)
    kept[several] = False
    kept[firsts] = True
    for name, values in changed.items():
        field = ROWS.field(name)
        table = table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))
    return table.filter(pa.array(kept)).combine_chunks()


def sort_rows(table: pa.Table) -> pa.Table:
    """Put rows in order: by partition and site, the most urgent first, of these those that most sites link to."""
    if not table.num_rows:
        return table
    coded = table["site"].combine_chunks().dictionary_encode()
    names = values_of(coded.dictionary)
    places = np.empty(len(names), np.uint64)
    places[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names), dtype=np.uint64)
    site = places[coded.indices.to_numpy()]
    partition, level = (table[name].to_numpy().astype(np.uint64) for name in ("partition", "level"))
    way = way_of(table["depth"].to_numpy(), table["hops"].to_numpy()).astype(np.uint64)
    rank = np.uint64(_RANK_MAX) - table["sites"].to_numpy().astype(np.uint64)
    first = partition << np.uint64(40) | site << np.uint64(4) | level
    order = np.lexsort((table["fingerprint"].to_numpy(), rank << np.uint64(WAY_BITS) | way, first))
    return table.take(pa.array(order))


class _Caps:
    """How many URLs of each host were let through; counted across tables."""

    def __init__(self, per_host: int) -> None:
        self._per_host = per_host
        self._counts: dict[str, int] = {}
        """Of the hosts of the site with which the last table ended."""
        self._site = ""
        self.left = 0

    def mask(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """Return the mask of the rows that pass. About 0.2 µs each."""
        if not self._per_host or not table.num_rows:
            return np.ones(table.num_rows, bool)
        coded = pc.dictionary_encode(table["host"].combine_chunks())
        hosts = values_of(coded.dictionary)
        codes = coded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        starts = heads(codes[order])
        lengths = np.diff(np.append(starts, len(codes)))
        begun = np.array([self._counts.get(host, 0) for host in hosts], np.int64)
        nth = np.empty(len(codes), np.int64)
        nth[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
        nth += begun[codes]
        mask = nth < self._per_host
        self.left += int((~mask).sum())
        sites = table["site"].combine_chunks()
        of_last = np.unique(codes[pc.equal(sites, sites[-1]).to_numpy(zero_copy_only=False)])
        site = sites[-1].as_py()
        kept = self._counts if site == self._site else {}
        self._counts = kept | {hosts[code]: int(begun[code] + lengths[code]) for code in of_last}
        self._site = site
        return mask


class Outs:
    """Several segments, one after the other: the partitions are cut into as many equal ranges."""

    def __init__(self, paths: list[Path], about: SegmentInfo) -> None:
        self._paths = paths
        self._about = about
        self._part = 0
        self._writer: SegmentWriter | None = self._begin()

    def write(self, table: pa.Table) -> None:
        """Write rows that follow those that were written."""
        parts = table["partition"].to_numpy().astype(np.int64) * len(self._paths) // PARTITIONS
        at = 0
        while at < table.num_rows:
            part = int(parts[at])
            end = int(np.searchsorted(parts, part + 1))
            while self._part < part:
                self._next()
            assert self._writer is not None
            self._writer.write(table.slice(at, end - at))
            at = end

    def finish(self) -> None:
        """Finish what was begun, and write the rest of them without rows."""
        while self._writer is not None:
            self._next()

    def drop(self) -> None:
        """Discard the unfinished segment."""
        if self._writer is not None:
            self._writer.drop()

    def _next(self) -> None:
        assert self._writer is not None
        self._writer.finish()
        self._part += 1
        self._writer = self._begin() if self._part < len(self._paths) else None

    def _begin(self) -> SegmentWriter:
        about = replace(self._about, part=self._part + 1, parts=len(self._paths))
        return SegmentWriter(self._paths[self._part], about)
