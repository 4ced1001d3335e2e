"""Sorting: an external merge sort of rows, which resumes after an interruption.

Rows that fill a part of the memory budget are sorted and written as a run. Many runs of one level are merged into one
of the next. Runs are files of Arrow batches; the caller's state lists the valid ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from gossamer.results.export.source import plain
from gossamer.stages.archive.schema import fit_batch
from gossamer.world.files import sync_file

FAN_IN_MAX = 32
"""Runs merged at once."""
_HELD_SHARE = 6
"""A sixth of the budget is buffered: sorting needs the rows, their copy in one piece, and the sorted copy."""
COMPRESSION = pa.ipc.IpcWriteOptions(compression="lz4")


class SortedRun(msgspec.Struct, frozen=True):
    """One sorted file in the folder."""

    name: str
    level: int


class Sorter:
    """Takes batches in any order and gives them back sorted by `keys`; equal rows stay in the order they came in."""

    def __init__(self, folder: Path, keys: Sequence[str], bytes_max: int, runs: Sequence[SortedRun] = ()) -> None:
        """Go on with `runs`, which an earlier sorter in this folder wrote."""
        self._folder = folder
        self._keys = list(keys)
        self._bytes_max = max(1, bytes_max // _HELD_SHARE)
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self.runs = list(runs)
        """The valid runs: save them after each `spill`, then call `sweep`."""
        folder.mkdir(exist_ok=True)
        self.sweep()

    def add(self, batch: pa.RecordBatch) -> bool:
        """Buffer a batch and return whether it is time to `spill`."""
        if batch.num_rows:
            # Without dictionaries: those of different batches would not agree.
            batch = fit_batch(batch, pa.schema([pa.field(field.name, plain(field.type)) for field in batch.schema]))
            self._held.append(batch)
            self._held_bytes += batch.nbytes
        return self._held_bytes >= self._bytes_max

    def spill(self) -> None:
        """Write the buffered rows as a run that survives a power cut. Blocks."""
        if self._held:
            table = pa.Table.from_batches(self._held).combine_chunks()
            self._held = []
            self._held_bytes = 0
            order = [(key, "ascending") for key in self._keys]
            batch_rows = max(1, table.num_rows * (self._bytes_max // FAN_IN_MAX) // max(1, table.nbytes))
            table = table.sort_by(order)
            self._write(table.schema, table.to_batches(batch_rows), 0)
        level = 0
        while len(alike := [run for run in self.runs if run.level == level]) >= FAN_IN_MAX:
            merged = (table for table, _ in self._merge_runs(alike, [0] * len(alike)))
            self._merge(alike, merged, level + 1)
            level += 1

    def merge(self, consumed: Sequence[int] = ()) -> Iterator[tuple[pa.Table, list[int]]]:
        """Yield all rows in order, table by table, each with how many rows of each run are behind it.

        Entries up to `consumed` are left out.
        """
        yield from self._merge_runs(self.runs, list(consumed) or [0] * len(self.runs))

    def sweep(self) -> None:
        """Remove files that are not among the valid runs."""
        known = {run.name for run in self.runs}
        for path in self._folder.iterdir():
            if path.name not in known:
                path.unlink()

    def _merge(self, alike: Sequence[SortedRun], merged: Iterator[pa.Table], level: int) -> None:
        first = next(merged)
        rows = max(1, first.num_rows * (self._bytes_max // FAN_IN_MAX) // max(1, first.nbytes))

        def batches() -> Iterator[pa.RecordBatch]:
            yield from first.to_batches(rows)
            for table in merged:
                yield from table.to_batches(rows)

        self._write(first.schema, batches(), level)
        whole = self.runs.pop()
        # The new run replaces its inputs in place: equal rows keep the order in which they came.
        at = self.runs.index(alike[0])
        self.runs = [*self.runs[:at], whole, *self.runs[at + len(alike) :]]

    def _write(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], level: int) -> None:
        number = 1 + max((int(run.name) for run in self.runs), default=0)
        path = self._folder / f"{number:08d}"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema, options=COMPRESSION) as writer:
            for batch in batches:
                writer.write_batch(batch)
        sync_file(path)
        self.runs.append(SortedRun(path.name, level))

    def _merge_runs(self, runs: Sequence[SortedRun], consumed: list[int]) -> Iterator[tuple[pa.Table, list[int]]]:
        heads = [_Head(self._folder / run.name, self._keys, rows) for run, rows in zip(runs, consumed, strict=True)]
        try:
            while live := [head for head in heads if head.fill()]:
                bound = min(head.last_key() for head in live)
                parts = [head.take_to(bound) for head in live]
                table = pa.concat_tables(pa.Table.from_batches([part]) for part in parts).combine_chunks()
                if len(live) > 1:
                    table = table.sort_by([(key, "ascending") for key in self._keys])
                yield table, [head.consumed for head in heads]
        finally:
            for head in heads:
                head.close()


class _Head:
    """Where a run is read: the rest of one batch."""

    def __init__(self, path: Path, keys: Sequence[str], skipped: int) -> None:
        self._file = pa.OSFile(str(path), "rb")
        self._reader = pa.ipc.open_stream(self._file)
        self._keys = keys
        self._skip = skipped
        self._batch: pa.RecordBatch | None = None
        self.consumed = skipped

    def fill(self) -> bool:
        """Load rows, unless there are no more."""
        while self._batch is None or not self._batch.num_rows:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                self._batch = None
                return False
            skip = min(self._skip, batch.num_rows)
            self._skip -= skip
            self._batch = batch.slice(skip)
        return True

    def last_key(self) -> tuple[object, ...]:
        assert self._batch is not None
        return self._key(self._batch.num_rows - 1)

    def take_to(self, bound: tuple[object, ...]) -> pa.RecordBatch:
        """Return the rows up to the bound, those equal to it included."""
        assert self._batch is not None
        low = 0
        high = self._batch.num_rows
        while low < high:
            middle = (low + high) // 2
            if self._key(middle) <= bound:
                low = middle + 1
            else:
                high = middle
        taken = self._batch.slice(0, low)
        self._batch = self._batch.slice(low)
        self.consumed += low
        return taken

    def close(self) -> None:
        self._file.close()

    def _key(self, row: int) -> tuple[object, ...]:
        assert self._batch is not None
        values = [self._batch[key][row] for key in self._keys]
        # Nulls come last, as where a run is sorted.
        return tuple((not value.is_valid, _comparable(value)) for value in values)


def _comparable(value: pa.Scalar) -> object:
    if not value.is_valid:
        return 0
    return value.value if isinstance(value, pa.TimestampScalar) else value.as_py()
