"""Merge: merges several segments into one, splits one into several, and summarizes a segment.

Segments are sorted by partition, so one range of partitions of each is in memory at a time; the other rows stream. A
URL of several segments is kept once, with its shortest path.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from gossamer.model.errors import ConfigError
from gossamer.model.product import PRODUCT, __version__
from gossamer.results.offline.arrange import once, sort_rows
from gossamer.results.offline.segment import BATCH_ROWS, SCHEMA, Segment, SegmentInfo, SegmentWriter, values_of
from gossamer.results.offline.steps import targets_of
from gossamer.results.offline.texts import ROWS
from gossamer.url.site import PARTITIONS

ROWS_MAX = 400_000
"""Held at once: about 200 MB. A single partition that has more is held whole."""


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

    Their names are `target`'s with `-1-of-4` and so on.

    Raises:
        ConfigError: it is not a segment, or one of the names exists.
    """
    targets = targets_of(target, parts)
    _absent(targets)
    with closing(Segment(source)) as segment:
        said = msgspec.structs.replace(segment.about, made_by=f"{PRODUCT} {__version__} segment split", order="")
        rows = segment.batches_in_order()
        waiting = next(rows, None)
        for part, name in enumerate(targets):
            end = -((part + 1) * PARTITIONS // -parts)
            about = msgspec.structs.replace(said, part=part + 1, parts=parts)
            with SegmentWriter(name, about) as writer:
                while waiting is not None:
                    at, batch = waiting
                    held = int(np.searchsorted(batch["partition"].to_numpy(), end))
                    writer.write(pa.Table.from_batches([batch.slice(0, held)]))
                    waiting = (at, batch.slice(held)) if held < batch.num_rows else next(rows, None)
                    if held < batch.num_rows:
                        break
    return _read_infos(targets)


def _together(segments: Sequence[Segment]) -> Iterator[pa.Table]:
    """Yield the rows of all, a range of partitions at a time."""
    readers = [_SegmentReader(segment) for segment in segments]
    rows_max = max(BATCH_ROWS, ROWS_MAX // len(readers))
    while sum(reader.fill(rows_max) for reader in readers):  # All are filled.
        last = min(reader.whole for reader in readers)
        table = pa.concat_tables([reader.take(last) for reader in readers]).combine_chunks()
        yield sort_rows(once(table))


class _SegmentReader:
    """Rows of one segment, held by whole partitions."""

    def __init__(self, segment: Segment) -> None:
        self._batches = segment.batches_in_order()
        self._held: list[pa.Table] = []
        self._row = 0
        self._ended = False

    def fill(self, rows_max: int) -> bool:
        """Hold about `rows_max` rows and at least one whole partition, while there are any; return whether it does."""
        while not self._ended and (sum(map(len, self._held)) < rows_max or self.whole < 0):
            found = next(self._batches, None)
            if found is None:
                self._ended = True
            else:
                self._held.append(_as_rows(found[1], self._row))
                self._row = found[0]
        return bool(self._held)

    @property
    def whole(self) -> int:
        """The last partition of which all rows are held; -1 where there is none."""
        if self._ended:
            return PARTITIONS
        if not self._held:
            return -1
        last = self._held[-1]["partition"][-1].as_py()
        return last - 1 if last > self._held[0]["partition"][0].as_py() else -1

    def take(self, last: int) -> pa.Table:
        """Return what is held of the partitions up to `last`."""
        table = pa.concat_tables(self._held) if self._held else ROWS.empty_table()
        end = int(np.searchsorted(table["partition"].to_numpy(), last, "right"))
        rest = table.slice(end)
        self._held = [rest] if len(rest) else []
        return table.slice(0, end)


def _as_rows(batch: pa.RecordBatch, row: int) -> pa.Table:
    """Return rows as a build sorts them; another segment may have them too."""
    count = batch.num_rows
    columns = {name: batch.column(name) for name in SCHEMA.names}
    values = [columns[name].cast(ROWS.field(name).type) for name in SCHEMA.names]
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
            named = set(values_of(batch["host"].dictionary.take(batch["host"].indices.unique())))
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
    if pa.types.is_dictionary(column.type):
        counts = np.bincount(column.indices.to_numpy(), minlength=len(column.dictionary)).tolist()
        return {name: count for name, count in zip(values_of(column.dictionary), counts, strict=True) if count}
    values, counts = np.unique(column.to_numpy(), return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))
