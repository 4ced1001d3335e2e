"""Bodies: what servers sent, read back from WARC files by place, and whether these files hold all that was written."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from isal import igzip

from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.model import visits
from gossamer.model.errors import ConfigError, DamagedError, StoreError
from gossamer.model.pages import Page
from gossamer.model.paths import is_file_name
from gossamer.model.visits import NOT_MODIFIED, Headers, Reply, content_type, update_headers
from gossamer.results.export.source import RowSource
from gossamer.results.export.work import ExportPiece
from gossamer.stages.archive.chunks import Dechunked, is_chunked
from gossamer.stages.archive.members import HEAD_BYTES_MAX, members_of, unpack_member
from gossamer.stages.archive.segments import missing_warc
from gossamer.stages.archive.uploads import store_at
from gossamer.world.inputs import part_of

if TYPE_CHECKING:
    from gossamer.stages.archive.objectstore import ObjectStore

READ_BYTES = 1 << 20
AHEAD_BYTES = 4 << 20
"""Bytes that are read at once from an object store when records are read in the order of their places."""
_COLUMNS = ["warc_file", "warc_offset", "warc_length"]


def require_whole(warcs: Sequence[ExportPiece], source: RowSource) -> None:
    """Look for files that were cut short: within a record that a row of `pages` names, or behind the last of these.

    About 0.2 µs a row, and what is behind the last row's record is unpacked: a few KB of a file. Raises DamagedError:
    one was.
    """
    ends = _ends(source)
    for piece in warcs:
        path = Path(piece.path)
        path = path if path.exists() else path.with_name(path.name.removesuffix(".open"))
        known = ends.get(path.name.removesuffix(".open"), 0)
        is_there = max(known, piece.length) <= path.stat().st_size
        if is_there and path.is_symlink():  # Of another crawler, which may have been killed.
            continue
        with path.open("rb") as file:
            if not is_there or known > piece.length or not _closes(file, known, piece.length):
                raise cut_error(path)


def cut_error(path: Path) -> DamagedError:
    """Return the error for a file that was cut short."""
    return DamagedError(
        f"{path} ends early: it was damaged, or not copied whole; nothing was made of it: put a sound copy in its place"
    )


def require_members(path: Path, length: int, source: RowSource) -> None:
    """Look at every record in the first `length` bytes of a WARC file; `source` has the rows of `pages`. About 3 ms a
    MB of text. Raises DamagedError: one is not what was written; the line names its offset and URL.
    """
    with path.open("rb") as file:
        for member in members_of(file, length, zstd=is_zstd(path)):
            if member.fault:
                url = member.url or _url_at(source, path.name.removesuffix(".open"), member.offset)
                raise record_error(path, member.offset, url, member.fault)


def _url_at(source: RowSource, name: str, offset: int) -> str:
    """Return the URL of the row whose record is at a place; empty when there is none."""
    for _, batch in source.batches(0, ["url", *_COLUMNS[:2]]):
        rows = batch.filter(
            pc.and_(pc.equal(pc.cast(batch["warc_file"], pa.string()), name), pc.equal(batch["warc_offset"], offset))
        )
        if rows.num_rows:
            return str(rows["url"][0].as_py())
    return ""


def record_error(path: Path, offset: int, url: str, fault: str) -> DamagedError:
    """Return the error for a damaged record."""
    of = f" ({url})" if url else ""
    return DamagedError(
        f"{path} is damaged: the record at offset {offset}{of} {fault}; put a sound copy of the file in its place"
    )


def is_zstd(path: Path) -> bool:
    """Return whether a WARC file holds Zstandard frames, by its name."""
    return path.name.removesuffix(".open").endswith(".zst")


def _ends(source: RowSource) -> dict[str, int]:
    """Return for each file the end of the last record that a row names."""
    found: dict[str, int] = {}
    for _, batch in source.batches(0, _COLUMNS):
        ends = pc.add(batch["warc_offset"], batch["warc_length"])
        table = pa.table({"file": pc.cast(batch["warc_file"], pa.string()), "end": ends})
        last = table.group_by("file").aggregate([("end", "max")])
        for name, end in zip(last["file"].to_pylist(), last["end_max"].to_pylist(), strict=True):
            found[name] = max(found.get(name, 0), end or 0)
    return found


def _closes(file: BinaryIO, start: int, end: int) -> bool:
    """Return whether there are whole gzip members between two places."""
    try:
        with igzip.GzipFile(fileobj=part_of(file, start, end - start)) as members:  # type: ignore[no-untyped-call]
            while members.read(READ_BYTES):
                pass
    except (EOFError, OSError):
        return False
    return True


Decode = Callable[[Reply], visits.Content]
"""Removes a reply's content coding, within limits."""


class PageText(NamedTuple):
    """Visible text of a page, and what of it is headings or bold."""

    text: str
    emphasis: str = ""
    language: str = ""
    """Which the page claims."""


Text = Callable[[Page], PageText]
"""Makes text of a page whose content coding is removed."""


class MarkdownPage(NamedTuple):
    """A page's content as Markdown."""

    markdown: str
    text_method: str
    """How it was found (`Findings.text_method`)."""
    facts: Mapping[str, str | int] = MappingProxyType({})
    """Other metadata of the page, for the front matter."""
    text: str = ""
    """The same without markup, one line a block."""
    visible: PageText | None = None
    """The whole visible text, where an index is built too."""
    heading_ids: str = ""
    """A line for each heading: the id that leads to it in the page, or nothing."""

    def as_sent(self) -> tuple[str, str, dict[str, str | int], str, PageText | None, str]:
        """Return the fields for another process."""
        facts = {name: encodable(value) if isinstance(value, str) else value for name, value in self.facts.items()}
        markdown, text, heading_ids = map(encodable, (self.markdown, self.text, self.heading_ids))
        return markdown, self.text_method, facts, text, self.visible, heading_ids


def encodable(text: str) -> str:
    """Return a text that has an encoding: escapes of some pages make lone surrogates."""
    return text.encode("utf-8", "replace").decode()


FRONT = {"declared_language": "language", "byline": "author", "published": "published", "modified": "modified",
          "license": "license", "hidden_chars": "hidden_chars"}  # fmt: skip


def front_of(columns: Mapping[str, object]) -> dict[str, str | int]:
    """Return a page's metadata for the front matter, with times in ISO 8601, UTC."""
    found: dict[str, str | int] = {}
    for column, name in FRONT.items():
        value = columns.get(column)
        if isinstance(value, datetime):
            value = value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        if value:
            found[name] = value if isinstance(value, int) else str(value)
    return found


Content = Callable[[Page], MarkdownPage]
"""Makes Markdown of a page whose content coding is removed."""


class RecordPlace(msgspec.Struct, array_like=True, frozen=True):
    """Place of a record."""

    file: str
    offset: int
    length: int


class ArchivedPage(msgspec.Struct, array_like=True, frozen=True):
    """Where a page is archived, and what its row in `pages` says of it."""

    place: RecordPlace
    original: RecordPlace | None = None
    """Place of the payload if the record is a revisit."""
    url: str = ""
    """As requested; empty: as the record says."""
    media_type: str = ""
    """As the crawl read the content; empty: as the headers say."""
    file: str = ""
    """Name of its file in a mirror."""
    is_rendered: bool = False
    """Whether to read the document that scripts made of it, in place of the one that the server sent."""


Contents = Callable[[Path, Iterable[ArchivedPage]], Iterator[MarkdownPage | None]]
"""Makes Markdown of pages in the WARC files of a folder, in their order; None of one without a body."""
Texts = Callable[[Path, Iterable[ArchivedPage]], Iterator[PageText | None]]
"""Finds their visible texts likewise."""
WriteFiles = Callable[[Path, Iterable[ArchivedPage], Path, Path], Iterator[None]]
"""Writes them as files of a mirror likewise, to its folder with names from a database."""


@dataclass(frozen=True, slots=True)
class Means:
    """Made by `assembly`."""

    decode: Decode
    content_of: Content
    """The main content as Markdown."""
    text_of: Text
    """The visible text, as a crawl extracts it."""
    signature_of: Callable[[str], bytes]
    """By which texts are compared (`seen.shingles.signature`)."""
    key_of: Callable[[str], str]
    """The key of an address; empty for another text."""
    rewrite: Callable[[Page, Callable[[str], str]], bytes]
    """The content of a page with the addresses that the second argument makes of its own."""
    language_of: Callable[[str], str] = lambda text: ""  # noqa: ARG005 - for callers that detect none
    """The language of a text, by ISO 639; empty where it is not certain."""
    contents_of: Contents | None = None
    """The main contents of archived pages, found by several processes; None: by this one."""
    texts_of: Texts | None = None
    write_files: WriteFiles | None = None

    def contents(self, warc_folder: Path, pages: Iterable[ArchivedPage]) -> Iterator[MarkdownPage | None]:
        """Find the main contents of archived pages in this process. See `Contents`."""
        with RecordBodies(warc_folder, self.decode) as bodies:
            for one in pages:
                page = bodies.page(one)
                yield self.content_of(page) if page is not None else None


_OF_PAGES = WarcRecordType.response | WarcRecordType.revisit | WarcRecordType.resource
BODY_BYTES_MAX = 64_000_000
"""Bytes of a body, as sent, that are read at most."""
READ_WHOLE_BYTES_MAX = 8_000_000
"""A record that unpacks to more is not held in one piece."""


class ArchivedRecord(NamedTuple):
    """A page, as one record has it."""

    url: str
    status: int
    headers: Headers
    payload: bytes | None
    """None in a revisit."""
    fetched_at: float = 0.0

    def reply(self) -> Reply:
        """The record as a reply whose content coding can be removed."""
        body = self.payload or b""
        return Reply(self.url, self.status, self.headers, body, "", 0.0, 0.0, len(body))


def record_of(record: WarcRecord) -> ArchivedRecord:
    """Read a record whose HTTP head is parsed, if it has one."""
    http = record.http_headers
    status = 200
    headers: Headers = ()
    if record.record_type == WarcRecordType.resource:
        headers = (("Content-Type", record.headers.get("Content-Type") or ""),)
    elif http is not None:
        headers = tuple(http.astuples())
        status = http.status_code or 0
    is_revisit = record.record_type == WarcRecordType.revisit
    payload = None if is_revisit else record.reader.read(BODY_BYTES_MAX)
    if payload and is_chunked(headers):  # Of an archive that another crawler wrote.
        payload = b"".join(Dechunked(iter([payload])))
    fetched_at = record.record_date.timestamp() if record.record_date is not None else 0.0
    return ArchivedRecord(record.headers["WARC-Target-URI"], status, headers, payload, fetched_at)


class RecordBodies(AbstractContextManager["RecordBodies"]):
    """Reads archived pages; one file is open at a time. About 60 µs a record of 26 KB. Use as a context."""

    def __init__(self, warc_folder: Path, decode: Decode) -> None:
        self._folder = warc_folder
        self._decode = decode
        self._name = ""
        self._file: BinaryIO | None = None
        self._stored = StoredRecords(warc_folder.parent)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def page(self, archived: ArchivedPage) -> Page | None:
        """Return an archived page as the crawl read it, its content coding removed. A revisit has the payload of its
        original, and address, media type and headers of its own (WARC 1.1, section 6.7).

        None when neither record holds a payload. Raises ConfigError: the file is not here: it may be in an object store
        alone; DamagedError: the record is not what was written; the line names file, offset and address.
        """
        own = payload = self._record(archived.place, archived.url)
        rendered = self._rendered(archived.place, own.url) if own is not None and archived.is_rendered else None
        if own is not None and own.payload is None and archived.original is not None:
            payload = self._record(archived.original, archived.url)
        if own is None or payload is None or (payload.payload is None and rendered is None):
            return None
        page = own._replace(headers=_headers_of(own, payload), payload=payload.payload)
        media_type, charset = content_type(page.headers)
        return Page(
            archived.url or page.url,
            archived.media_type or media_type,
            charset,
            page.headers,
            self._decode(page.reply()).body if rendered is None else codecs.BOM_UTF8 + rendered,
            fetched_at=page.fetched_at,
            is_rendered=rendered is not None,
        )

    def _rendered(self, place: RecordPlace, url: str) -> bytes | None:
        """Return the document that scripts made of a page, which is in one of the records that follow the page's own
        (`stages.archive.warc`); None where there is none. Raises as `page`.
        """
        path = self._folder / place.file
        behind = place.offset + place.length
        file = self._open(place)
        if file is not None:
            file.seek(behind)
        try:
            for record in ArchiveIterator(file or self._stored.behind(path, behind), max_header_len=HEAD_BYTES_MAX):
                if record.record_type & _OF_PAGES:
                    break
                if record.record_type == WarcRecordType.conversion and record.headers["WARC-Target-URI"] == url:
                    document: bytes = record.reader.read(BODY_BYTES_MAX)
                    if len(document) < record.content_length:
                        raise record_error(path, behind, url, "is followed by a document that ends early")
                    return document
        except OSError as error:
            raise record_error(path, behind, url, f"cannot be unpacked ({error})") from None
        return None

    def _record(self, place: RecordPlace, url: str) -> ArchivedRecord | None:
        for record in ArchiveIterator(self._member(place, url), max_header_len=HEAD_BYTES_MAX):
            return record_of(record)
        return None

    def _member(self, place: RecordPlace, url: str) -> BinaryIO:
        if not is_file_name(place.file):
            raise DamagedError(f"the row of {url} in `pages` names a WARC file {place.file!r}, which is no file's name")
        path = self._folder / place.file
        file = self._open(place)
        if file is None:
            return self._stored.member(path, place.offset, place.length, url)
        if os.fstat(file.fileno()).st_size < place.offset + place.length:
            raise cut_error(path)
        return sound_record(file, path, place.offset, place.offset, place.length, url)

    def _open(self, place: RecordPlace) -> BinaryIO | None:
        """Return the file of a record; None where it is not here."""
        path = self._folder / place.file
        if place.file != self._name or self._file is None:
            if self._file is not None:
                self._file.close()
                self._file = None
            try:
                self._file = path.open("rb")
            except FileNotFoundError:
                growing = path.with_name(path.name + ".open")
                # Between the two looks the crawl may have finished the file.
                if not growing.exists() and not path.exists():
                    return None
                self._file = (growing if growing.exists() else path).open("rb")
            self._name = place.file
        return self._file


def sound_record(file: BinaryIO, path: Path, offset: int, at: int, length: int, url: str) -> BinaryIO:
    """Return the member at `at` of a file (`offset` in `path`), unpacked unless it is large. Raises DamagedError."""
    fault, content = unpack_member(file, at, length, READ_WHOLE_BYTES_MAX)
    if fault:
        leave = f"{record_error(path, offset, url, fault)}, or leave the page out: --where \"url <> '{url}'\""
        raise DamagedError(leave)
    file.seek(at)
    return file if content is None else io.BytesIO(content)


class StoredRecords:
    """Reads records that only an object store has: a range each, or what follows too where they are in order."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stores: list[ObjectStore] | None = None
        self._name = ""
        self._start = 0
        self._held = b""

    def member(self, path: Path, offset: int, length: int, url: str) -> BinaryIO:
        """Return a member of a file. Raises ConfigError: no store gives it. Raises DamagedError: it is damaged."""
        member = io.BytesIO(self._held_from(path, offset, length)[:length])
        if len(member.getbuffer()) < length:
            raise cut_error(path)
        return sound_record(member, path, offset, 0, length, url)

    def behind(self, path: Path, offset: int) -> BinaryIO:
        """Return the next part of a file, as much as is read at once. Raises as `member`."""
        return io.BytesIO(self._held_from(path, offset, AHEAD_BYTES // 2))

    def _held_from(self, path: Path, offset: int, length: int) -> memoryview:
        end = self._start + len(self._held)
        name = f"{path.parent.name}/{path.name}"
        if name != self._name or not self._start <= offset <= offset + length <= end:
            follows = name == self._name and 0 <= offset - end < READ_BYTES
            self._held = self._read(path, name, offset, max(length, AHEAD_BYTES if follows else 0))
            self._name = name
            self._start = offset
        return memoryview(self._held)[offset - self._start :]

    def _read(self, path: Path, name: str, start: int, length: int) -> bytes:
        if self._stores is None:
            self._stores = _stores_of(self._directory / "crawl.toml")
        try:
            found = (store.read_range(name, start, length) for store in self._stores)
            data = next((data for data in found if data is not None), None)
        except StoreError as error:
            raise ConfigError(f"{path} is not here, and the crawl's object store does not give it: {error}") from error
        if data is None:
            raise missing_warc(path)
        return data


def _stores_of(file: Path) -> list[ObjectStore]:
    config = reopen(file) if file.exists() else Config()
    urls = (config.archive.store, config.state.checkpoint_uri)
    return [store_at(url, config.archive, "archive.store") for url in urls if url]


def _headers_of(own: ArchivedRecord, original: ArchivedRecord) -> Headers:
    """Return the headers of a page: its own, or its original's, which a 304 updates."""
    if own.headers and own.status != NOT_MODIFIED:
        return own.headers
    return update_headers(original.headers, own.headers)
