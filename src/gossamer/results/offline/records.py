"""Records: rows of numbers in sorted files, more of them than memory holds, read back a range of keys at a time.

Keys are fingerprints, which are spread evenly, or row numbers. Each file notes where each of 4,096 equal ranges of keys
(cells) begins. So nothing is ever merged as a stream: to have all records of some cells, read a stretch of each
file, and as many cells at once as memory has room for.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.model.errors import ConfigError
from gossamer.world.files import publish

CELLS = 4096
Rows = npt.NDArray[np.void]
"""Records of one kind: a structured array whose first field is the key."""

_MAGIC = b"GOSSREC1"
_HEAD = struct.Struct("<8sQQ")
_OFFSETS_BYTES = 8 * (CELLS + 1)


class RecordKind(NamedTuple):
    """Kind of a file's records."""

    name: str
    dtype: np.dtype[Any]
    shift: int = 52
    """How many bits of the key do not count for its cell; 52 for fingerprints."""

    @property
    def key(self) -> str:
        """The first field."""
        names = self.dtype.names
        assert names
        return names[0]


def make_rows(dtype: np.dtype[Any], count: int, **fields: Any) -> Rows:
    """Return some records by their fields; a field that is not given is 0."""
    rows: Rows = np.zeros(count, dtype)
    for name, values in fields.items():
        rows[name] = values
    return rows


def shift_for(keys_max: int) -> int:
    """Return the shift for keys from 0 to `keys_max`."""
    return max(0, (max(1, keys_max) - 1).bit_length() - 12)


class RunWriter:
    """Writes a run whose records come in the order of their keys, a part at a time."""

    def __init__(self, path: Path, kind: RecordKind) -> None:
        self._path = path
        self._kind = kind
        self._aside = path.with_name(path.name + ".new")
        self._file = self._aside.open("wb")
        self._file.write(bytes(_HEAD.size + _OFFSETS_BYTES))
        self._cells = np.zeros(CELLS, np.int64)
        self.count = 0

    def append(self, rows: Rows) -> None:
        """Take records that follow those before."""
        cells = (rows[self._kind.key] >> np.uint64(self._kind.shift)).astype(np.int64)
        self._cells += np.bincount(cells, minlength=CELLS)
        self.count += len(rows)
        rows.tofile(self._file)

    def finish(self) -> None:
        """Write the head, and give the file its name. Blocks for a sync."""
        offsets = np.concatenate([[0], np.cumsum(self._cells)]).astype("<u8")
        self._file.seek(0)
        self._file.write(_HEAD.pack(_MAGIC, self._kind.dtype.itemsize, self.count))
        self._file.write(offsets.tobytes())
        self._file.close()
        publish(self._aside, self._path)


def write_run(path: Path, kind: RecordKind, rows: Rows) -> None:
    """Write records that are sorted by key, as one file that survives a power cut. Blocks."""
    writer = RunWriter(path, kind)
    writer.append(rows)
    writer.finish()


class RecordRun:
    """One file of records. Holds the offsets, 32 KiB; reads records on request."""

    def __init__(self, path: Path, kind: RecordKind) -> None:
        """Open a file. Raises ConfigError: it is missing, cut short, or of another kind."""
        self.path = path
        self._kind = kind
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD.size + _OFFSETS_BYTES)
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}; rebuild what it belongs to") from error
        whole = len(head) == _HEAD.size + _OFFSETS_BYTES
        magic, width, self.count = _HEAD.unpack_from(head) if whole else (b"", 0, 0)
        length = len(head) + self.count * width
        if magic != _MAGIC or width != kind.dtype.itemsize or path.stat().st_size != length:
            raise ConfigError(f"{path} is cut short or damaged; rebuild what it belongs to")
        self.offsets = np.frombuffer(head, "<u8", CELLS + 1, _HEAD.size)

    def read(self, first: int, last: int) -> Rows:
        """Return the records of the cells from `first` up to and without `last`."""
        start = int(self.offsets[first])
        end = int(self.offsets[last])
        with self.path.open("rb") as file:
            file.seek(_HEAD.size + _OFFSETS_BYTES + start * self._kind.dtype.itemsize)
            return np.fromfile(file, self._kind.dtype, end - start)


class Runs:
    """Several files of one kind of records."""

    def __init__(self, kind: RecordKind, paths: Sequence[Path]) -> None:
        self.kind = kind
        self.runs = [RecordRun(path, kind) for path in paths]

    @property
    def count(self) -> int:
        """How many records there are."""
        return sum(run.count for run in self.runs)

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the bytes of each cell."""
        sizes = np.zeros(CELLS, np.int64)
        for run in self.runs:
            offsets = run.offsets.astype(np.int64)
            sizes += (offsets[1:] - offsets[:-1]) * self.kind.dtype.itemsize
        return sizes

    def read(self, first: int, last: int) -> Rows:
        """Return the records of some cells, file by file, those of each file sorted by key."""
        parts = [run.read(first, last) for run in self.runs]
        return np.concatenate(parts) if parts else np.empty(0, self.kind.dtype)


def spans(sets: Sequence[Runs], bytes_max: int, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield ranges of cells, from cell `start` on, whose records in all sets take at most `bytes_max` together.

    A cell that has more forms a range alone.
    """
    sizes = sum((one.sizes() for one in sets), np.zeros(CELLS, np.int64))
    first = start
    held = 0
    for cell in range(start, CELLS):
        size = int(sizes[cell])
        if held + size > bytes_max and cell > first:
            yield first, cell
            first = cell
            held = 0
        held += size
    yield first, CELLS


class Buffer:
    """Records that wait for their file."""

    def __init__(self, kind: RecordKind) -> None:
        self.kind = kind
        self._parts: list[Rows] = []
        self.bytes = 0

    def add(self, count: int, **fields: Any) -> None:
        """Add some records by their fields."""
        self.add_rows(make_rows(self.kind.dtype, count, **fields))

    def add_rows(self, rows: Rows) -> None:
        """Add some records."""
        if len(rows):
            self._parts.append(rows)
            self.bytes += rows.nbytes

    def take(self) -> Rows:
        """Return the waiting records, sorted by key; those of one key in the order in which they were added."""
        rows = np.concatenate(self._parts) if self._parts else np.empty(0, self.kind.dtype)
        self._parts = []
        self.bytes = 0
        return rows[np.argsort(rows[self.kind.key], kind="stable")]


def heads(*columns: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return where in sorted columns another value begins."""
    if not len(columns[0]):
        return np.empty(0, np.intp)
    differs = np.ones(len(columns[0]), bool)
    differs[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(differs)
