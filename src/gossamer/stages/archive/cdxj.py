"""CDXJ: the sorted index by which replay tools find a page in the WARC files.

A view of finished files, written aside and renamed. Lines are as pywb and cdxj-indexer write them: `org,example)/path
20260101000000 {"url": …, "mime": …, "status": …, "digest": …, "length": …, "offset": …, "filename": …}`, sorted by
bytes.
"""

import heapq
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from gossamer.model.errors import DamagedError
from gossamer.stages.archive.members import HEAD_BYTES_MAX
from gossamer.stages.archive.seals import INDEX, record_seal
from gossamer.stages.archive.segments import files_of, warcs_in
from gossamer.stages.archive.surt import surt
from gossamer.url.name import REQUEST_MARK
from gossamer.world.files import publish

FILES_MERGED_MAX = 64
SORT_BYTES_MAX = 16_000_000
LINE_BYTES = 50
"""Memory of a line beside its text: head of the object, what the allocator rounds up, place in the list."""
READ_BYTES = 1 << 18
ROWS_AT_ONCE = 1_000
COLUMNS = [  # Of `pages`, that an entry is made of.
    "url", "fetched_at", "media_type", "status", "digest", "warc_type", "warc_length", "warc_offset", "warc_file",
]  # fmt: skip
RENDERED = "rendered"
SENT_TYPE = "sent_type"  # Tables of earlier versions lack it: the type as which a reply was read is taken there.
_INDEXED = WarcRecordType.response | WarcRecordType.revisit | WarcRecordType.resource
_TYPE_END = re.compile(r"[;\s]")
_FIELDS = msgspec.json.Decoder(dict[str, str])
_PAGE = b'"status":"2'
UNCHANGED = b'"status":"304"'


class IndexEntry(msgspec.Struct, frozen=True):
    """One record of a WARC file, as the index lists it."""

    url: str
    instant_s: int
    mime: str
    status: str
    digest: str
    length: int
    offset: int
    filename: str

    def line(self) -> bytes:
        """Return the line, its end included."""
        url, mark, sent = self.url.partition(REQUEST_MARK)
        fields = {"url": url}
        if self.mime:
            fields["mime"] = self.mime
        if self.status:
            fields["status"] = self.status
        fields |= {"digest": self.digest, "length": str(self.length), "offset": str(self.offset)}
        fields["filename"] = self.filename
        key = url if url.startswith("urn:") else surt(_with_request(url, sent) if mark else url)
        return f"{key} {_stamp(self.instant_s)} ".encode() + msgspec.json.encode(fields) + b"\n"


@lru_cache(maxsize=64)  # Many pages are fetched in each second.
def _stamp(instant_s: int) -> str:
    return f"{datetime.fromtimestamp(instant_s, UTC):%Y%m%d%H%M%S}"


class StandingRecords:
    """Gives the line of a visit that was answered 304 the place of the record that was valid then.

    Replay tools show a 304 unchanged, as an empty page; and without a line of its own the visit would be answered with
    the nearest version, earlier or later. Lines are in order, so the valid record is that of the last line of the same
    address with the same digest that was answered with a page.
    """

    __slots__ = ("last",)

    def __init__(self, last: bytes = b"") -> None:
        self.last = last
        """The last line that was answered with a page."""

    def line(self, line: bytes) -> bytes:
        """Return the line to be written. About 0.2 µs, and 3 µs for a 304."""
        if _PAGE in line:
            self.last = line
        elif UNCHANGED in line and line[: line.find(b" ")] == self.last[: self.last.find(b" ")]:
            now = _fields(line)
            stood = _fields(self.last)
            if now["digest"] and now["digest"] == stood["digest"]:
                return line[: line.find(b" {") + 1] + msgspec.json.encode(stood | {"url": now["url"]}) + b"\n"
        return line


def _with_request(url: str, sent: str) -> str:
    """Return the address of which replay tools make the key of a listed request: a plain GET does not find it."""
    method, _, digest = sent.partition(":")
    return f"{url}{'&' if '?' in url else '?'}__wb_method={method}&__wb_post_data={digest}"


def _fields(line: bytes) -> dict[str, str]:
    return _FIELDS.decode(line[line.find(b" {") + 1 :])


def write_index(target: Path, entries: Iterable[IndexEntry], sort_bytes_max: int = SORT_BYTES_MAX) -> int:
    """Write a crawl's index, record its checksums, and return how many lines it has; memory is bounded by
    `sort_bytes_max`. Blocks.

    Costs about 10 µs an entry. Equal lines are written once. Raises OSError: the disk is full; the index is as it was.
    """
    for stray in target.parent.glob(f".{target.name}-*"):
        shutil.rmtree(stray)
    lines = 0
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
        temporary = Path(folder) / "index"
        with temporary.open("wb") as file, ExitStack() as stack:
            last = b""
            standing = StandingRecords()
            for raw in _sort_lines((entry.line() for entry in entries), Path(folder), sort_bytes_max, stack):
                line = standing.line(raw)
                if line != last:
                    file.write(line)
                    lines += 1
                    last = line
        record_seal(temporary, target)
        publish(temporary, target)
    return lines


def write_index_of(directory: Path, sort_bytes_max: int) -> int:
    """Write the index of a crawl from its finished tables. See `write_index` and `entries_of_tables`."""
    return write_index(directory / INDEX, entries_of_tables(files_of(directory, "pages")), sort_bytes_max)


def entries_of_tables(parquet_files: Iterable[Path]) -> Iterator[IndexEntry]:
    """Yield the entries of all attempts that left a record, from finished `pages` files: the quick way.

    No WARC file is looked at, since they may be in an object store and nowhere else: but if pages were rendered, those
    that are beside the tables, for what these pages needed. Raises DamagedError: a file is damaged; OSError: the disk
    does not answer.
    """
    rendered: Path | None = None
    for path in parquet_files:
        try:
            with pq.ParquetFile(
                path, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True
            ) as file:
                more = [name for name in (RENDERED, SENT_TYPE) if name in file.schema_arrow.names]
                for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=[*COLUMNS, *more], use_threads=False):
                    yield from entries_of_batch(batch)
                    if RENDERED in more and is_rendered(batch):
                        rendered = path
        except (pa.ArrowException, OSError, ValueError, ArithmeticError) as error:
            # What pyarrow says of bytes that make no sense is any of these, and an OSError without a number.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DamagedError(
                f"{path} cannot be read: it was damaged, or not copied whole; index.cdxj is left as it is; put a sound "
                "copy in its place, then resume"
            ) from error
    if rendered is not None:
        yield from entries_of_rendered(warcs_in(rendered.parent.parent / "warc"))


def is_rendered(batch: pa.RecordBatch) -> bool:
    """Return whether a page among rows of `pages` was rendered."""
    return any(batch[RENDERED].to_pylist())


def entries_of_rendered(paths: Iterable[Path]) -> Iterator[IndexEntry]:
    """Yield the entries of rendered pages, of their resources, and of records about them: no row names the last two.

    For a damaged or growing file it yields those up to the last whole record: `gossamer verify` names the damage.
    """
    for path in paths:
        try:
            yield from entries_of_warcs([path], _is_of_rendered)
        except OSError as error:
            if error.errno is not None:
                raise


def _is_of_rendered(record: WarcRecord) -> bool:
    is_cut = record.record_type != WarcRecordType.resource and record.http_headers is None
    return _is_indexed(record) and "WARC-Page-ID" in record.headers and not is_cut


def _is_indexed(record: WarcRecord) -> bool:
    return bool(record.record_type & _INDEXED)


def entries_of_warcs(paths: Iterable[Path], wanted: Callable[[WarcRecord], bool] = _is_indexed) -> Iterator[IndexEntry]:
    """Yield the entries of records of WARC files, in order: the slow way, about 3 ms a MB, which trusts no table."""
    for path in paths:
        with path.open("rb") as file:
            before: WarcRecord | None = None
            pending: IndexEntry | None = None
            for record in ArchiveIterator(file, max_header_len=HEAD_BYTES_MAX):
                if pending is not None:
                    yield msgspec.structs.replace(pending, length=record.stream_pos - pending.offset)
                before = record
                pending = _entry_of_record(record, path.name) if wanted(record) else None
            if pending is not None and before is not None:
                yield msgspec.structs.replace(pending, length=path.stat().st_size - pending.offset)


def entries_of_batch(batch: pa.RecordBatch) -> Iterator[IndexEntry]:
    """Yield the entries of those rows of `pages` that have a record; only `COLUMNS` and `SENT_TYPE` are looked at.

    Nothing here asks pyarrow.compute, for which every crawl would wait 0.02 s at its end.
    """
    columns = [batch[name].view("int64") if name == "fetched_at" else batch[name] for name in COLUMNS]
    sent_types = batch[SENT_TYPE if SENT_TYPE in batch.schema.names else "media_type"]
    for url, fetched_at, media_type, status, digest, kind, length, offset, filename, sent in zip(
        *map(_values, (*columns, sent_types)), strict=True
    ):
        if offset is None:
            continue
        said = media_type if kind == "resource" or sent is None else sent
        mime = "warc/revisit" if kind == "revisit" else _bare_type(said)
        yield IndexEntry(url, fetched_at // 1_000_000, mime, str(status or ""), digest, length, offset, filename)


@lru_cache(maxsize=256)
def _bare_type(sent: str | None) -> str:
    """Return the type of a Content-Type header; empty if there is none, or none in it."""
    return _TYPE_END.split(sent or "", maxsplit=1)[0].lower()


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column. `to_pylist` takes 1.2 µs for each of one with a dictionary, this 0.03 µs."""
    if not isinstance(column, pa.DictionaryArray):
        values: list[Any] = column.to_pylist()
        return values
    words = column.dictionary.to_pylist()
    return [None if index is None else words[index] for index in column.indices.to_pylist()]


def _entry_of_record(record: WarcRecord, filename: str) -> IndexEntry:
    headers = record.headers
    status = ""
    if record.record_type == WarcRecordType.resource:
        mime = headers.get("Content-Type") or ""
    else:
        mime = record.http_headers.get("Content-Type") or ""
        status = str(record.http_headers.status_code or "")
    if record.record_type == WarcRecordType.revisit:
        mime = "warc/revisit"
    date = datetime.fromisoformat(headers["WARC-Date"])
    return IndexEntry(
        url=headers["WARC-Target-URI"],
        instant_s=int(date.timestamp()),
        mime=_bare_type(mime),
        status=status,
        digest=headers.get("WARC-Payload-Digest") or "",
        length=0,
        offset=record.stream_pos,
        filename=filename,
    )


def _sort_lines(lines: Iterable[bytes], folder: Path, bytes_max: int, stack: ExitStack) -> Iterator[bytes]:
    """Sort any number of lines: those that exceed memory go to sorted files, which are merged."""
    held: list[bytes] = []
    held_bytes = 0
    runs: list[Path] = []
    made = 0
    for line in lines:
        held.append(line)
        held_bytes += len(line) + LINE_BYTES
        if held_bytes >= bytes_max:
            held.sort()
            runs.append(_write_run(folder / f"run-{made}", held))
            made += 1
            held = []
            held_bytes = 0
            if len(runs) == FILES_MERGED_MAX:
                with ExitStack() as files:
                    merged = heapq.merge(*[files.enter_context(run.open("rb")) for run in runs])
                    whole = _write_run(folder / f"run-{made}", merged)
                made += 1
                for run in runs:
                    run.unlink()
                runs = [whole]
    held.sort()
    return heapq.merge(held, *[stack.enter_context(run.open("rb")) for run in runs])


def _write_run(path: Path, lines: Iterable[bytes]) -> Path:
    with path.open("wb") as file:
        file.writelines(lines)
    return path
