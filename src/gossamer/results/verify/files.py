"""Verify: checks whether a crawl's files are as they were written, and whether they agree with each other.

Files are read one after another, in pieces. The places in WARC files that records, rows and index lines name go to
Parquet files in a temporary folder, and are joined there: memory is bounded for any size of crawl.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.model.errors import DamagedError
from gossamer.model.paths import is_file_name
from gossamer.model.words import counted
from gossamer.results.export.bodies import is_zstd
from gossamer.results.export.source import TableFiles, naming, open_database, read_through
from gossamer.results.report.tables import queries
from gossamer.stages.archive.logs import BrokenFrameError, batches
from gossamer.stages.archive.members import members_of
from gossamer.stages.archive.seals import faults_of_index, seal_of
from gossamer.state.journals import DIFFERS, ManifestEntry, differs
from gossamer.state.sums import sums_of

MEMORY_BYTES = 256_000_000
ROWS_A_BATCH = 50_000
_PLACES = pa.schema(
    [(name, pa.string()) for name in ("file", "url", "what")] + [(name, pa.int64()) for name in ("offset", "length")]
)
_SQL = queries(__package__, "files.sql")


class FileFault(msgspec.Struct, frozen=True):
    """A fault of a file."""

    path: Path
    what: str
    offset: int | None = None
    url: str = ""


def places_in(folder: Path) -> TableFiles:
    """Return files in a folder for the places of all records found and all in the index, to be compared at the end."""
    return TableFiles({table: (folder / f"{table}.parquet", _PLACES) for table in ("records", "lines")}, ROWS_A_BATCH)


def faults_of_warc(path: Path, entry: ManifestEntry | None, records: TableFiles) -> Iterator[FileFault]:
    """Read a WARC file into `records`. Yield faults of the file; `faults_of_places` has those of records."""
    name = path.name.removesuffix(".open")
    length = entry.length if entry is not None else path.stat().st_size
    found = False
    with path.open("rb") as file:
        for member in members_of(file, length, zstd=is_zstd(path)):
            found = found or bool(member.fault)
            records.add("records", (name, member.url, member.fault, member.offset, member.length))
    if not found and entry is not None and differs(entry, path):
        yield FileFault(path, f"{DIFFERS}; its records are sound")


def faults_of_table(path: Path, entry: ManifestEntry | None) -> Iterator[FileFault]:
    """Yield the faults of a Parquet file."""
    try:
        if entry is not None and differs(entry, path):
            yield FileFault(path, DIFFERS + _rows_in(path))
            return
        read_through(path)
    except DamagedError:
        yield FileFault(path, "cannot be read: it was damaged, or not copied whole")


def _rows_in(path: Path) -> str:
    try:
        with naming(path):
            return f", {pq.read_metadata(path).num_rows:,} rows"
    except DamagedError:
        return ""


def faults_of_log(path: Path, entry: ManifestEntry) -> Iterator[FileFault]:
    """Yield the faults in the committed part of a log of record batches."""
    try:
        for _ in batches(path, entry.length):
            pass
    except (BrokenFrameError, pa.ArrowException) as broken:
        yield FileFault(path, f"cannot be read ({getattr(broken, 'what', broken)})")
        return
    yield from faults_of_file(path, entry)


def faults_of_file(path: Path, entry: ManifestEntry) -> Iterator[FileFault]:
    """Yield the faults of a file of which only the checksum is known."""
    if differs(entry, path):
        yield FileFault(path, DIFFERS)


def faults_of_index_lines(index: Path, records: TableFiles) -> Iterator[FileFault]:
    """Yield the faults of `index.cdxj` itself; the places in its lines go to `records`."""
    for what in faults_of_index(index):
        yield FileFault(index, what)
        return
    if not index.exists():
        return
    seal = seal_of(index)
    if seal is not None and sums_of(index) not in (seal.now, seal.before):
        yield FileFault(index, "does not hold what was written into it (its SHA-256 differs)")
    with index.open("rb") as file:
        at = 0
        last = b""
        for line in file:
            try:
                entry = msgspec.json.decode(line[line.index(b" {") + 1 :], type=_IndexLine)
                if not is_file_name(entry.filename):
                    raise ValueError(entry.filename)
                records.add("lines", (entry.filename, entry.url, "", int(entry.offset), int(entry.length)))
            except (ValueError, msgspec.MsgspecError):
                yield FileFault(index, "has a line that is no index entry", at)
                return
            if line < last:
                yield FileFault(index, "is not sorted", at)
                return
            at = at + len(line)
            last = line


class _IndexLine(msgspec.Struct):
    url: str
    filename: str
    offset: str
    length: str


def faults_of_places(index: Path, pages: Sequence[Path], folder: Path) -> Iterator[FileFault]:
    """Yield the damaged records, and what rows of `pages` and lines of the index say of places in WARC files where no
    record was found. `folder` has the files of `places_in`. Only files of which records were found are looked at: the
    others are an object store's, or told already.
    """
    with open_database(MEMORY_BYTES, folder / "spilled") as database:
        for table in ("records", "lines"):
            database.read_parquet(str(folder / f"{table}.parquet")).create_view(table)
        if pages:
            database.read_parquet([str(path) for path in pages], union_by_name=True).create_view("pages")
        known = _SQL["rows"] if pages else _SQL["lines"]
        warcs = index.parent / "warc"
        for name, offset, what, url in database.execute(_SQL["broken"].format(known=known)).fetchall():
            path = warcs / name
            yield FileFault(
                path if path.exists() else Path(f"{path}.open"), f"has a damaged record: it {what}", offset, url
            )
        if pages:
            for name, count, offset, url in database.execute(_SQL["unlike"].format(wanted=_SQL["rows"])).fetchall():
                what = f"lacks {counted(count, 'record')} that rows of `pages` name, the first"
                yield FileFault(warcs / name, what, offset, url)
        for name, count, offset, url in database.execute(_SQL["unlike"].format(wanted=_SQL["lines"])).fetchall():
            what = f"names {counted(count, 'record')} that warc/{name} does not hold, the first"
            yield FileFault(index, what, offset, url)
