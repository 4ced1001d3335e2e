"""Index: CDXJ of any size, sorted in bounded memory, in steps that a kill does not undo."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.model.decodable import decodable
from gossamer.results.export.sorting import SortedRun, Sorter
from gossamer.results.export.source import BATCH_ROWS, RowSource
from gossamer.results.export.tables import Advance
from gossamer.results.export.work import CHECKPOINT_BYTES, ExportFolder, ExportPiece
from gossamer.stages.archive import cdxj
from gossamer.world.files import AppendFile

LINE = "line"
_SCHEMA = pa.schema([(LINE, pa.binary())])


@decodable
class IndexProgress(msgspec.Struct):
    """Progress of an index: rows read into sorted runs, then lines of each run written to the file."""

    position: int = 0
    is_rendered: bool = False
    """Whether a page among the rows so far was rendered."""
    runs: list[SortedRun] = []
    is_sorted: bool = False
    consumed: list[int] = []
    length: int = 0
    last: bytes = b""
    """The last line written: equal lines are written once."""
    stood: bytes = b""
    """The last line of a visit that was answered with a page."""


Wanted = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Leaves out rows whose record is not part of the export."""


def export_index(work: ExportFolder, source: RowSource, memory_bytes_max: int, advance: Advance) -> None:
    """Write the index of all rows that have a record. Costs about 15 µs a row. That of a share is to be merged with
    those of the others: the record that stood at a 304 can be in one of those. Raises OSError: the disk is full; what
    was noted stays done.
    """
    step = work.step(IndexProgress)
    sorter = sort_lines(work, step, work.save, source, memory_bytes_max, advance)
    with closing(AppendFile(work.text, step.length)) as file:
        standing = cdxj.StandingRecords(step.stood)
        used = standing if work.order.share is None else None
        for lines, last, consumed in unique_lines(sorter, step.consumed, step.last, used):
            file.write(b"".join(lines))
            step.length += sum(map(len, lines))
            step.consumed = consumed
            step.last = last
            step.stood = standing.last
            if file.unsynced_bytes >= CHECKPOINT_BYTES:
                file.sync()
                work.save(step)
        file.sync()
        work.save(step)


def sort_lines(
    work: ExportFolder,
    step: IndexProgress,
    save: Callable[[IndexProgress], None],
    source: RowSource,
    memory_bytes_max: int,
    advance: Advance,
    wanted: Wanted = lambda batch: batch,
    warcs: Sequence[ExportPiece] = (),
) -> Sorter:
    """Make sorted runs of the lines and return their sorter, from where `step` says. `warcs` has rendered pages."""
    sorter = Sorter(work.folder / "lines", [LINE], memory_bytes_max, step.runs)
    if step.is_sorted:
        return sorter

    def spill(position: int) -> None:
        sorter.spill()
        step.position = position
        step.runs = sorter.runs
        save(step)
        sorter.sweep()

    position = step.position
    if set(cdxj.COLUMNS) <= set(source.schema.names):
        more = [name for name in (cdxj.RENDERED, cdxj.SENT_TYPE) if name in source.schema.names]
        for position, batch in source.batches(step.position, [*cdxj.COLUMNS, *more]):
            step.is_rendered = step.is_rendered or (bool(warcs) and cdxj.RENDERED in more and cdxj.is_rendered(batch))
            rows = wanted(batch.filter(pc.is_valid(batch["warc_offset"])))
            if sorter.add(_lines_of(cdxj.entries_of_batch(rows))):
                spill(position)
            advance(position)
    if step.is_rendered:
        entries = _of_rendered(warcs)
        while some := list(islice(entries, BATCH_ROWS)):
            if sorter.add(_lines_of(some)):
                sorter.spill()
    step.is_sorted = True
    spill(position)
    return sorter


def merge_indexes(shares: Sequence[Path], target: Path) -> None:
    """Merge the indexes of all shares into that of the crawl, 1 µs a line. Raises OSError: the disk is full."""
    standing = cdxj.StandingRecords()
    last = b""
    with ExitStack() as stack:
        out = stack.enter_context(target.open("wb"))
        for raw in heapq.merge(*[stack.enter_context(path.open("rb")) for path in shares]):
            line = standing.line(raw)
            if line != last:
                out.write(line)
            last = line


def _lines_of(entries: Iterable[cdxj.IndexEntry]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([entry.line() for entry in entries], pa.binary())], schema=_SCHEMA)


def _of_rendered(warcs: Sequence[ExportPiece]) -> Iterator[cdxj.IndexEntry]:
    for piece in warcs:
        for entry in cdxj.entries_of_rendered([Path(piece.path)]):
            if entry.offset + entry.length <= piece.length:
                yield msgspec.structs.replace(entry, filename=entry.filename.removesuffix(".open"))


def unique_lines(
    sorter: Sorter, consumed: list[int], last: bytes, standing: cdxj.StandingRecords | None = None
) -> Iterator[tuple[list[bytes], bytes, list[int]]]:
    """Yield lines in order, each once, with how far runs are; with `standing`, those of a 304 lead to its record."""
    for table, behind in sorter.merge(consumed):
        lines = []
        for raw in table[LINE].to_pylist():
            line = standing.line(raw) if standing is not None else raw
            if line != last:
                lines.append(line)
                last = line
        yield lines, last, behind
