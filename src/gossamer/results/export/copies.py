"""Copies: which texts of an export say what others say, in the same crawl or in earlier ones.

Equal texts have equal digests. Nearly equal ones are found by their MinHash signatures in bands (Broder 1997; Leskovec,
Rajaraman and Ullman, Mining of Massive Datasets, section 3.4): texts that agree in all values of one band are compared
in full. Each is compared with the first and with the previous text of its bands alone, so that a million copies of one
text cost a million comparisons. Questions go to a database that spills to disk: memory is bounded.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gossamer.model.errors import ConfigError
from gossamer.results.export.source import RowSource, first_line, literal, open_database, require_sound
from gossamer.results.export.work import ExportPiece
from gossamer.results.report.tables import queries
from gossamer.world.files import publish

_SQL = queries(__package__, "copies.sql")

How = Literal["", "exact", "near"]
BANDS = 16
BAND_BYTES = 16
"""Eight values of 16 bits a band: two texts that share 80 % of their shingles meet in one of sixteen with 95 %."""
ALIKE_MIN = 0.8
"""Share of equal values from which two texts are near-duplicates."""
ROWS_A_BATCH = 4_096
SIGNATURES = pa.schema([("n", pa.int64()), ("url", pa.string()), ("exact", pa.binary()), ("signature", pa.binary())])
"""Columns of the list of texts; a text of few words has no signature."""
FOUND = pa.schema([("n", pa.int64()), ("url", pa.string()), ("of", pa.string()), ("how", pa.string())])


class Copies(msgspec.Struct, frozen=True):
    """How copies are found, and where else originals are searched."""

    how: How = ""
    against: tuple[str, ...] = ()
    """Directories of earlier crawls and exports."""

    def __str__(self) -> str:
        return " ".join((self.how, *(f"against {name}" for name in self.against)))


def find_copies(
    target: Path, own: Sequence[ExportPiece], earlier: Sequence[Sequence[ExportPiece]], how: How, memory_bytes_max: int
) -> None:
    """Write the list of those of `own` that are copies: of an earlier text, or of one before. Each names the text that
    is kept. Blocks.

    About 10 µs a text, 9 bytes of memory, and on disk meanwhile 0.3 KB and what is like others. Raises ConfigError:
    more memory is needed.
    """
    require_sound([piece for pieces in (*earlier, own) for piece in pieces])
    try:
        with open_database(memory_bytes_max, target.with_name("spilled"), threads=2) as tables:
            start = _open(tables, earlier, own)
            total = start + sum(piece.rows for piece in own)
            roots = np.arange(total, dtype=np.int64)
            near = np.zeros(total, dtype=np.bool_)
            if total and how:
                for batch in _batches(tables, _SQL["exact"].format(own=start)):
                    numbers, firsts = zip(*batch, strict=True)
                    roots[list(numbers)] = firsts
                if how == "near":
                    _join_alike(tables, start, roots, near)
            _write(target, tables, start, roots, near)
    except duckdb.OutOfMemoryException as error:
        raise ConfigError(f"--memory: the texts need more to be compared; {first_line(str(error))}") from error


def _open(tables: duckdb.DuckDBPyConnection, older: Sequence[Sequence[ExportPiece]], own: Sequence[ExportPiece]) -> int:
    """Make the view of all texts, numbered in order; return the number of the first text of this crawl."""
    parts = []
    start = 0
    at = 0
    for pieces in (*older, own):
        files = [piece.path for piece in pieces if piece.rows]
        start = at
        at += sum(piece.rows for piece in pieces)
        if files:
            parts.append(f"SELECT n + {start} AS n, url, exact, signature FROM read_parquet({literal(files)})")  # noqa: S608
    if parts:
        tables.execute("CREATE VIEW texts AS " + " UNION ALL ".join(parts))
    return start


def _join_alike(tables: duckdb.DuckDBPyConnection, own: int, roots: NDArray[np.int64], near: NDArray[np.bool_]) -> None:
    """Compare texts that share a band, in order: the root of the one before is known by then."""
    tables.execute("CREATE TABLE bands (n BIGINT, band UBIGINT)")
    for batch in _batches(tables, "SELECT n, signature FROM texts WHERE octet_length(signature) > 0"):
        numbers = np.array([n for n, _ in batch], dtype=np.int64)
        unique = roots[numbers] == numbers
        signatures = _matrix([one for _, one in batch])[unique]
        tables.register("batch", pa.table({"n": np.repeat(numbers[unique], BANDS), "band": _bands(signatures)}))
        tables.execute("INSERT INTO bands SELECT n, band FROM batch")
        tables.unregister("batch")
    tables.execute(_SQL["pairs"].format(own=own))
    for batch in _batches(tables, _SQL["compared"]):
        _, _, ones, others = zip(*batch, strict=True)
        shares = (_matrix(ones) == _matrix(others)).mean(axis=1)
        for (n, other, *_), share in zip(batch, shares, strict=True):
            if share >= ALIKE_MIN and not near[n]:
                roots[n] = roots[other]
                near[n] = True


def _bands(signatures: NDArray[np.uint16]) -> NDArray[np.uint64]:
    """Return a hash of each band of each signature; those of different bands differ."""
    halves = np.ascontiguousarray(signatures).view("<u8").reshape(len(signatures), BANDS, 2)
    numbers = np.arange(1, BANDS + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (halves[:, :, 0] ^ numbers) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed ^ (mixed >> np.uint64(29)) ^ halves[:, :, 1]) * np.uint64(0x165667B19E3779F9)
    return np.asarray(mixed ^ (mixed >> np.uint64(32)), dtype=np.uint64).ravel()


def _matrix(signatures: Sequence[bytes]) -> NDArray[np.uint16]:
    return np.frombuffer(b"".join(signatures), "<u2").reshape(len(signatures), BANDS * BAND_BYTES // 2)


def _write(
    target: Path, tables: duckdb.DuckDBPyConnection, own: int, roots: NDArray[np.int64], near: NDArray[np.bool_]
) -> None:
    roots = roots[roots]  # An exact copy of what turned out to be a near one.
    removed = np.flatnonzero(roots != np.arange(len(roots)))
    held = pa.table({"n": removed, "root": roots[removed], "how": np.where(near[removed], "near", "exact")})
    new = target.with_name(target.name + ".new")
    with pq.ParquetWriter(new, FOUND, compression="zstd") as writer:
        if len(removed):
            tables.register("held", held)
            tables.execute("CREATE TABLE removed AS FROM held")
            for batch in _batches(tables, _SQL["found"].format(own=own)):
                writer.write_batch(pa.record_batch(list(zip(*batch, strict=True)), schema=FOUND))
    publish(new, target)


def _batches(tables: duckdb.DuckDBPyConnection, question: str) -> Iterator[list[tuple[Any, ...]]]:
    """Query with a separate cursor: rows are read while others are written."""
    with tables.cursor() as cursor:
        found = cursor.execute(question)
        while rows := found.fetchmany(ROWS_A_BATCH):
            yield rows


def keep_mask(copies: Path, rows: int) -> NDArray[np.bool_]:
    """Return which of `rows` texts to keep, by the list that `find_copies` wrote: one byte a text."""
    kept = np.ones(rows, dtype=np.bool_)
    for _, batch in listed_in(copies).batches(0, ["n"]):
        kept[batch["n"].to_numpy()] = False
    return kept


def listed_in(copies: Path) -> RowSource:
    """Return the rows of the list that `find_copies` wrote."""
    return RowSource([ExportPiece(str(copies), copies.stat().st_size, pq.read_metadata(copies).num_rows)])
