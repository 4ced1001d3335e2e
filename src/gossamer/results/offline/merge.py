"""Merge: merges several segments into one, splits one into several, and summarizes a segment.

Segments are sorted by partition, so one range of partitions of each is in memory at a time; the other rows stream. A
URL of several segments is kept once, with its shortest path.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from gossamer.model.errors import ConfigError
from gossamer.model.product import PRODUCT, __version__
from gossamer.results.offline.arrange import Outs, once, sort_rows
from gossamer.results.offline.records import heads
from gossamer.results.offline.segment import SCHEMA, Segment, SegmentInfo, SegmentWriter, values_of
from gossamer.results.offline.steps import targets_of
from gossamer.results.offline.texts import ROWS
from gossamer.url.site import PARTITIONS

ROWS_MAX = 400_000
"""Held at once, about: 200 MB. A single partition that has more is held whole."""


def merge(sources: Sequence[Path], target: Path) -> list[SegmentInfo]:
    """Write one segment of several, and return what it says of itself. About 2 µs a row. Raises ConfigError: one is
    not a segment, their keys were made by different rules, or `target` exists.
    """
    _absent([target])
    with ExitStack() as stack:
        segments = [stack.enter_context(closing(Segment(path))) for path in sources]
        if len({segment.about.rules for segment in segments}) > 1:
            raise ConfigError("keys of these segments were made by different rules of the section url: they do not mix")
        about = SegmentInfo(made_by=f"{PRODUCT} {__version__} segment merge", rules=segments[0].about.rules)
        with SegmentWriter(target, about) as writer:
            for table in _together(segments):
                writer.write(table)
    return _read_infos([target])


def split(source: Path, target: Path, parts: int) -> list[SegmentInfo]:
    """Write several segments of one, no site in two of them, and return what they say of themselves. 1 µs a row.

    Their names are `target`'s with `-1-of-4` and so on. Raises ConfigError: it is not a segment, or one of the names
    exists.
    """
    targets = targets_of(target, parts)
    _absent(targets)
    with ExitStack() as stack:
        segment = stack.enter_context(closing(Segment(source)))
        about = msgspec.structs.replace(segment.about, made_by=f"{PRODUCT} {__version__} segment split", order="")
        outs = Outs(targets, about)
        stack.callback(outs.drop)
        for _, batch in segment.batches_in_order():
            outs.write(pa.Table.from_batches([batch]))
        outs.finish()
    return _read_infos(targets)


def _together(segments: Sequence[Segment]) -> Iterator[pa.Table]:
    """Yield the rows of all, a range of partitions at a time: hashes of sites, partitions are of about one size."""
    width = max(1, PARTITIONS * ROWS_MAX // (1 + sum(segment.rows for segment in segments)))
    pieces = heapq.merge(*(_pieces(segment, width) for segment in segments), key=itemgetter(0))
    for _, found in groupby(pieces, itemgetter(0)):
        yield sort_rows(once(pa.concat_tables([piece for _, piece in found]).combine_chunks()))


def _pieces(segment: Segment, width: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of a segment with the number of their range, `width` partitions each; of a range come several."""
    first = 0
    for end, batch in segment.batches_in_order():
        ranges = batch["partition"].to_numpy().astype(np.int64) // width
        table = _as_rows(batch, first)
        first = end
        for start, stop in pairwise([*heads(ranges).tolist(), len(ranges)]):
            yield int(ranges[start]), table.slice(start, stop - start)


def _as_rows(batch: pa.RecordBatch, row: int) -> pa.Table:
    """Return rows as a build sorts them; another segment may have them too."""
    count = batch.num_rows
    values = [batch.column(name).cast(ROWS.field(name).type) for name in SCHEMA.names]
    more = [np.zeros(count, np.uint32), np.ones(count, bool), np.arange(row, row + count, dtype=np.uint64)]
    return pa.table([*values, *(pa.array(one) for one in more)], schema=ROWS)


def _absent(targets: Sequence[Path]) -> None:
    for target in targets:
        if target.exists():
            raise ConfigError(f"{target} exists; name another with -o, or remove it")
        if not target.parent.is_dir():
            raise ConfigError(f"there is no directory {target.parent}; make it, or name another with -o")


def _read_infos(targets: Sequence[Path]) -> list[SegmentInfo]:
    found = []
    for target in targets:
        with closing(Segment(target)) as segment:
            found.append(segment.about)
    return found


SITES_MAX = 10_000
"""Sites and hosts that are counted at once: beyond twice as many, the smallest are dropped."""


def summary(path: Path, limit: int) -> dict[str, Any]:
    """Return a segment's counts and first rows. 0.3 µs a row. Raises ConfigError: it is no segment."""
    by: dict[str, Counter[Any]] = {name: Counter() for name in ("level", "depth", "hops", "link_type", "host", "site")}
    rows: list[dict[str, object]] = []
    hosts = 0
    last: set[str] = set()
    with closing(Segment(path)) as segment:
        for _, batch in segment.batches():
            for name, counter in by.items():
                counter.update(_counts(batch[name]))
            named = set(_counts(batch["host"]))
            # A host is in one site, and a site in one place: only where batches meet can it be counted twice.
            hosts += len(named - last)
            last = named
            for name in ("host", "site"):
                if len(by[name]) > 2 * SITES_MAX:
                    by[name] = Counter(dict(by[name].most_common(SITES_MAX)))
            if len(rows) < limit:
                rows += batch.slice(0, limit - len(rows)).to_pylist()
        about = segment.about
        return {
            "file": str(path),
            "urls": segment.rows,
            "sites": about.sites,
            "hosts": hosts,
            "part": about.part,
            "parts": about.parts,
            "made_by": about.made_by,
            "by_level": dict(sorted(by["level"].items())),
            "by_depth": dict(sorted(by["depth"].items())),
            "by_hops": dict(sorted(by["hops"].items())),
            "by_link_type": dict(by["link_type"].most_common()),
            "largest_sites": dict(by["site"].most_common(limit)),
            "largest_hosts": dict(by["host"].most_common(limit)),
            "first": rows,
        }


def _counts(column: pa.Array) -> dict[Any, int]:
    found = column.value_counts()
    return dict(zip(values_of(found.field("values")), values_of(found.field("counts")), strict=True))
