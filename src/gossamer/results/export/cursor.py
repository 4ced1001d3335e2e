"""Cursor: reads the rows of one table of a running shard, each once, while logs grow and become Parquet files.

Parquet files have the rows of their logs in the same order, so the number of rows that were read is a position in both.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.results.export.source import BATCH_ROWS, READ_BYTES, naming
from gossamer.stages.archive.logs import batch_at
from gossamer.stages.archive.tables import LOG_FOLDER, LOG_SUFFIX
from gossamer.state.journals import ManifestEntry

Row = dict[str, object]


class TableCursor:
    """A position in one table of one shard. In memory: a frame of a log, or `BATCH_ROWS` rows of a Parquet file.

    A position is kept when a call raises: after `commit` with newer files the same call goes on.
    """

    def __init__(self, table: str, path: Callable[[str], Path]) -> None:
        """`path` returns the path of a file, by its name in the manifest."""
        self._path = path
        self._prefixes = (f"{LOG_FOLDER}{table}-", f"{table}/{table}-")
        self._files: dict[str, ManifestEntry] = {}
        self._stem = ""
        self._rows = 0
        self._offset = 0
        self._opened: Iterator[pa.RecordBatch] | None = None
        self._held: deque[Row] = deque()

    def commit(self, manifest: Sequence[ManifestEntry]) -> None:
        """Take the files of the shard's last commit: rows up to there can be read."""
        self._files = {
            Path(entry.name).name.removesuffix(LOG_SUFFIX).removesuffix(".parquet"): entry
            for entry in sorted(manifest, key=_is_parquet)
            if entry.name.startswith(self._prefixes)
        }

    def skip(self) -> None:
        """Skip all committed rows. Reads all of them: for the first call after `commit`."""
        while self.peek() is not None:
            self._held.clear()

    def peek(self) -> Row | None:
        """Return the next row without passing it; None after the last committed row. Raises FileNotFoundError: the
        shard renamed or converted a file; `commit` knows the new one; DamagedError: a file is not what was written.
        """
        while not self._held:
            batch = self._next_batch()
            if batch is None:
                return None
            self._rows += batch.num_rows
            self._held.extend(batch.to_pylist())
        return self._held[0]

    def take(self) -> None:
        """Pass the row that `peek` returned."""
        self._held.popleft()

    def _next_batch(self) -> pa.RecordBatch | None:
        while True:
            entry = self._files.get(self._stem)
            if entry is not None and (batch := self._batch_in(entry)) is not None:
                return batch
            later = min((stem for stem in self._files if stem > self._stem), default=None)
            if later is None:
                return None
            self._stem = later
            self._rows = 0
            self._offset = 0
            self._opened = None

    def _batch_in(self, entry: ManifestEntry) -> pa.RecordBatch | None:
        path = self._path(entry.name)
        if _is_parquet(entry):
            if self._opened is None:
                self._opened = _parquet_rows(path, self._rows)
            with naming(path):
                return next(self._opened, None)
        if self._offset >= entry.length:
            return None
        growing = path.with_name(path.name + ".open")
        batch, self._offset = batch_at(growing if growing.exists() else path, self._offset)
        return batch


def _is_parquet(entry: ManifestEntry) -> bool:
    return entry.name.endswith(".parquet")


def _parquet_rows(path: Path, start: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file from a row on. The file stays open: it can be removed meanwhile."""
    with pq.ParquetFile(path, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            if start < batch.num_rows:
                yield batch.slice(start)
            start = max(start - batch.num_rows, 0)
