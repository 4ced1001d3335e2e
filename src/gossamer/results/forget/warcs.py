"""WARC files: records of forgotten pages become tombstones of equal length; every other record stays where it is.

First the payloads are saved that kept pages need: a revisit record whose original is forgotten is rewritten as a
response, into another file; further ones with the same payload refer to that. Rows and index lead there.
"""

import struct
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from fastwarc.warc import ArchiveIterator, WarcRecord

from gossamer.model.decodable import decodable
from gossamer.model.pages import Original
from gossamer.model.product import __version__
from gossamer.results.export.bodies import is_zstd
from gossamer.results.forget.holdings import ASIDE, ForgottenPages, Holdings, read_pieces
from gossamer.results.forget.remote import UploadedCopies, local_copy
from gossamer.results.forget.tables import Moved
from gossamer.stages.archive.members import HEAD_BYTES_MAX
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.records import (
    HTTP_RESPONSE,
    WARC_FIELDS,
    Fields,
    Record,
    member,
    packer,
    pieces_of_member,
    warc_digest,
)
from gossamer.stages.archive.warc import NOT_MODIFIED, WarcInfo, warc_date, warcinfo_block
from gossamer.state.journals import ManifestEntry
from gossamer.state.sums import PIECE_BYTES, crc
from gossamer.world.files import write_whole
from gossamer.world.spill import Spill

WARCS: Final = "warc/"
HELD_BYTES_MAX: Final = 8 << 20
"""Of a payload; a longer one goes through a file."""
_OWN_FIELDS = frozenset((
    "warc-type", "warc-record-id", "warc-date", "warc-block-digest", "content-type", "content-length", "warc-profile",
    "warc-refers-to", "warc-refers-to-target-uri", "warc-refers-to-date",
))  # fmt: skip
_GZIP_BLOCK_MAX = 65_535
_GZIP_FRAME = 18
_ZSTD_BLOCK_MAX = 128 << 10
_ZSTD_FRAME = 13
_SPACES = b" " * PIECE_BYTES


class RecordIdentity(msgspec.Struct, frozen=True):
    """Identity of a record."""

    file: str
    offset: int
    length: int
    kind: str
    url: str
    record_id: str
    date: str
    refers_url: str = ""
    refers_date: str = ""
    refers_id: str = ""
    profile: str = ""


@decodable
class SavedPayloads(msgspec.Struct):
    """Saved payloads, for the later steps."""

    moves: list[tuple[str, int, Moved]] = []
    """File and offset of a record that was rewritten, and where it is now."""
    heirs: dict[str, Original] = {}
    """By record of a forgotten original: the kept page that has its payload now."""

    @property
    def places(self) -> dict[tuple[str, int], Moved]:
        """The moves by file and offset of the record before."""
        return {(file, offset): moved for file, offset, moved in self.moves}


def records_of(path: Path, length: int) -> Iterator[RecordIdentity]:
    """Yield the records of a file whose checksum was compared. About 3 ms a MB of text: all is unpacked."""
    name = path.name.removesuffix(".open")
    before: RecordIdentity | None = None
    with path.open("rb") as file:
        for record in ArchiveIterator(file, parse_http=False):
            if before is not None:
                yield msgspec.structs.replace(before, length=record.stream_pos - before.offset)
            before = _identity_of(name, record)
    if before is not None:
        yield msgspec.structs.replace(before, length=length - before.offset)


def save_payloads(
    holdings: Holdings,
    pages: ForgottenPages,
    options: ArchiveOptions,
    incarnation: int,
    at: float,
    copies: UploadedCopies | None,
) -> None:
    """Rewrite the records that kept pages lose their payload with, into a file with the number `incarnation`, and note
    where they are. Raises DamagedError: a WARC file was damaged; OSError: the disk is full.
    """
    own = f"{WARCS}gossamer-{holdings.home.shard:03d}-{incarnation:04d}-000001{packer(options).suffix}"
    needing = _needing(holdings, pages, own, copies)
    note = SavedPayloads()
    if needing:
        aside = holdings.path(own + ASIDE)
        with ExitStack() as here, aside.open("wb") as target:
            for name in {one.file for original, revisits in needing for one in (original, *revisits)}:
                here.enter_context(local_copy(copies, holdings, holdings.manifest[WARCS + name]))
            writer = _WarcRewriter(target, options, own.removeprefix(WARCS), at)
            for original, revisits in needing:
                first = revisits[0]
                fetched_at = datetime.fromisoformat(first.date).timestamp()
                note.heirs[original.record_id] = Original(first.url, fetched_at, first.record_id)
                note.moves += writer.write(holdings, original, revisits)
        holdings.take_incarnation(incarnation)
        holdings.replace(own, aside)
    write_whole(holdings.note_of("moves"), msgspec.json.encode(note))


def load_payloads(holdings: Holdings) -> SavedPayloads:
    """Return the notes of `save_payloads`."""
    note = holdings.note_of("moves")
    return msgspec.json.decode(note.read_bytes(), type=SavedPayloads) if note.exists() else SavedPayloads()


def bury(holdings: Holdings, pages: ForgottenPages, at: float, copies: UploadedCopies | None) -> None:
    """Rewrite each WARC file that has records to forget, with tombstones in their place. Reads all files; about 3 ms a
    MB of text, and a copy of those that change.
    """
    moved = load_payloads(holdings).places
    for entry in holdings.finals(WARCS):
        with local_copy(copies, holdings, entry) as path:
            holdings.sound(entry)
            gone = [
                one
                for one in records_of(path, entry.length)
                if (one.url and pages.has(one.url)) or (one.file, one.offset) in moved
            ]
            if gone:
                aside = path.with_name(path.name + ASIDE)
                _copy(path, aside, entry, gone, warc_date(at))
                holdings.replace(entry.name, aside)


def tombstone(length: int, date: str, seed: str, *, zstd: bool) -> Iterator[bytes]:
    """Yield a WARC record that takes exactly `length` bytes, packed: metadata of spaces, stored and not compressed.

    The number of stored blocks gives the length that is wanted (RFC 1951, section 3.2.4; RFC 8878, section 3.1.1.2).
    """
    frame, each, most = (_ZSTD_FRAME, 3, _ZSTD_BLOCK_MAX) if zstd else (_GZIP_FRAME, 5, _GZIP_BLOCK_MAX)
    blocks = max(1, -(-(length - frame) // (each + most)))
    content = length - frame - each * blocks
    head = _tombstone_head(content, date, seed)
    # That of Zstandard: one segment, its size in eight bytes.
    yield b"\x28\xb5\x2f\xfd\xe0" + content.to_bytes(8, "little") if zstd else b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    left = content
    checksum = 0
    for number in range(blocks):
        size = min(most, left)
        begin = content - left
        data = b"".join(_content(head, content, begin, begin + size))
        checksum = crc(data, checksum)
        last = number == blocks - 1
        yield (last | size << 3).to_bytes(3, "little") if zstd else struct.pack("<?HH", last, size, size ^ 0xFFFF)
        yield data
        left -= size
    if not zstd:
        yield checksum.to_bytes(4, "little") + (content & 0xFFFFFFFF).to_bytes(4, "little")


def _tombstone_head(content: int, date: str, seed: str) -> bytes:
    """Return what precedes the spaces; its own length depends on theirs, by the digits of it."""
    fixed = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <{_record_id(seed)}>\r\nWARC-Date: {date}\r\n"
        "Content-Type: text/plain\r\n"
    )
    for digits in range(1, 20):
        block = content - len(fixed) - len("Content-Length: \r\n\r\n") - digits - 4
        if len(str(block)) <= digits:
            return f"{fixed}Content-Length: {block:0{digits}d}\r\n\r\n".encode()
    raise AssertionError("a length has few digits")


def _record_id(seed: str) -> str:
    """Return an identifier that the same seed gives again: a step that is repeated writes the same bytes."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"gossamer-forget:{seed}").urn


def _content(head: bytes, content: int, begin: int, end: int) -> Iterator[bytes]:
    """Yield a part of what a tombstone holds: the head, spaces, two empty lines."""
    assert content >= len(head) + 4, "no record is as short as a tombstone's head"
    yield head[begin:end]
    spaces = min(end, content - 4) - max(begin, len(head))
    while spaces > 0:
        yield _SPACES[:spaces]
        spaces -= len(_SPACES)
    tail = b"\r\n\r\n"
    if end > content - 4:
        yield tail[max(0, begin - (content - 4)) : end - (content - 4)]


class _WarcRewriter:
    """Rewrites records into one file, each original's payload once."""

    def __init__(self, target: BinaryIO, options: ArchiveOptions, name: str, at: float) -> None:
        self._target = target
        self._algorithm = options.digests
        self._packer = packer(options)
        self._name = name
        about = WarcInfo(f"gossamer/{__version__}", description="Records that gossamer forget rewrote.")
        fields: Fields = [("WARC-Filename", name)]
        info = Record("warcinfo", _record_id(f"{name} {at}"), warc_date(at), WARC_FIELDS, fields, warcinfo_block(about))
        target.write(member(info, self._algorithm, self._packer))

    def write(
        self, holdings: Holdings, original: RecordIdentity, revisits: list[RecordIdentity]
    ) -> list[tuple[str, int, Moved]]:
        """Write the first of the revisits with the original's payload, and have the others refer to it."""
        moves = []
        first: RecordIdentity | None = None
        for seen in revisits:
            with _record_at(holdings.path(WARCS + seen.file), seen.offset) as found:
                fields = [(name, value) for name, value in found.headers.items() if name.lower() not in _OWN_FIELDS]
                head = found.reader.read()
            offset = self._target.tell()
            if first is None:
                with _record_at(holdings.path(WARCS + original.file), original.offset, parse_http=True) as found:
                    self._write_response(seen, fields, head, found)
            else:
                fields += [
                    ("WARC-Profile", seen.profile),
                    ("WARC-Refers-To-Target-URI", first.url),
                    ("WARC-Refers-To-Date", first.date),
                    ("WARC-Refers-To", f"<{first.record_id}>"),
                ]
                record = Record("revisit", seen.record_id, seen.date, HTTP_RESPONSE, fields, head)
                self._target.write(member(record, self._algorithm, self._packer))
            kind = "response" if first is None else "revisit"
            duplicate_of = first.url if first is not None and first.url != seen.url else ""
            moved = Moved(self._name, offset, self._target.tell() - offset, kind, duplicate_of)
            moves.append((seen.file, seen.offset, moved))
            first = first or seen
        return moves

    def _write_response(self, seen: RecordIdentity, fields: Fields, head: bytes, original: WarcRecord) -> None:
        payload = b""
        file = None
        if original.content_length <= HELD_BYTES_MAX:
            payload = original.reader.read()
        else:
            file = Spill(Path(self._target.name).parent, self._algorithm)
            while piece := original.reader.read(PIECE_BYTES):
                file.write(piece)
        if not any(name.lower() == "warc-payload-digest" for name, _ in fields):
            fields.append(("WARC-Payload-Digest", warc_digest(self._algorithm, payload, file=file)))
        record = Record("response", seen.record_id, seen.date, HTTP_RESPONSE, fields, head, payload, file)
        if file is None:
            self._target.write(member(record, self._algorithm, self._packer))
        else:
            self._target.writelines(pieces_of_member(record, self._algorithm, self._packer))


@contextmanager
def _record_at(path: Path, offset: int, *, parse_http: bool = False) -> Iterator[Any]:
    """Give the record at a place of a file, for as long as the context lasts."""
    with path.open("rb") as file:
        file.seek(offset)
        yield next(iter(ArchiveIterator(file, parse_http=parse_http, max_header_len=HEAD_BYTES_MAX)))


def _needing(
    holdings: Holdings, pages: ForgottenPages, own: str, copies: UploadedCopies | None
) -> list[tuple[RecordIdentity, list[RecordIdentity]]]:
    """Return the forgotten records that revisits of kept pages refer to, each with those; they are in memory."""
    by_id: dict[str, RecordIdentity] = {}
    by_date: dict[tuple[str, str], RecordIdentity] = {}
    revisits: list[RecordIdentity] = []
    for entry in holdings.finals(WARCS):
        if entry.name == own:
            continue
        with local_copy(copies, holdings, entry):
            for one in records_of(holdings.sound(entry), entry.length):
                if one.kind in ("response", "resource") and pages.has(one.url):
                    by_id[one.record_id] = by_date[one.url, one.date] = one
                elif one.kind == "revisit" and not pages.has(one.url) and one.refers_url and pages.has(one.refers_url):
                    revisits.append(one)
    found: dict[str, tuple[RecordIdentity, list[RecordIdentity]]] = {}
    for one in revisits:
        if (original := by_id.get(one.refers_id) or by_date.get((one.refers_url, one.refers_date))) is not None:
            found.setdefault(original.record_id, (original, []))[1].append(one)
    # A 304 has the head of no page: the first that was sent whole becomes the response.
    return [(one, sorted(them, key=lambda seen: seen.profile == NOT_MODIFIED)) for one, them in found.values()]


def _identity_of(name: str, record: WarcRecord) -> RecordIdentity:
    said = {key.lower(): value.strip("<>") for key, value in record.headers.items()}
    wanted = (
        "type", "target-uri", "record-id", "date", "refers-to-target-uri", "refers-to-date", "refers-to", "profile",
    )  # fmt: skip
    return RecordIdentity(name, record.stream_pos, 0, *(said.get(f"warc-{field}", "") for field in wanted))


def _copy(source: Path, target: Path, entry: ManifestEntry, gone: list[RecordIdentity], date: str) -> None:
    """Rewrite a file with tombstones for some records."""
    with source.open("rb") as old, target.open("wb") as new:
        for one in gone:
            new.writelines(read_pieces(old.read, one.offset - old.tell()))
            new.writelines(tombstone(one.length, date, f"{one.file}:{one.offset}", zstd=is_zstd(source)))
            old.seek(one.offset + one.length)
        new.writelines(read_pieces(old.read, entry.length - old.tell()))
