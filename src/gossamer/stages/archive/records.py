"""WARC records: their fields, the HTTP heads in them, and a fast way to write them.

WARC 1.1 (ISO 28500:2017). A `Record` is the content of a record; `member` makes one gzip member or Zstandard frame of
it. Tests compare `member` with the output of FastWARC.
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Protocol

import msgspec
import zstandard
from isal import igzip_lib, isal_zlib

from gossamer.model.pages import digest_text
from gossamer.model.visits import LargeBody, Reply, first_values, lower_names
from gossamer.stages.archive.options import ArchiveOptions

_PHRASES = {status.value: status.phrase for status in HTTPStatus}
PROTOCOLS = {"1.0": "http/1.0", "1.1": "http/1.1", "2": "h2", "2.0": "h2", "2.0-tls": "h2", "3": "h3", "3.0": "h3"}
"""WARC-Protocol by HTTP version, by the names of IANA's ALPN registry."""
_HASHES = {"sha1": hashlib.sha1, "sha256": hashlib.sha256}
_CODING = frozenset(("transfer-encoding",))
_FRAMING = frozenset(("transfer-encoding", "content-length"))


def response_head(reply: Reply) -> bytes:
    """Return status line and headers in the order received, up to and with the empty line.

    The version is HTTP/1.1 also for h2 and h3, whose status lines no WARC reader knows. They send no reason phrase, so
    the usual one is written. Transfer-Encoding is renamed, since the stored body has none, and so is a
    Content-Length that is not that of the body: a replay would wait for the rest.
    """
    version = "1.0" if reply.http_version == "1.0" else "1.1"
    reason = reply.reason
    if not reason and reply.http_version[:1] not in "01":
        reason = _PHRASES.get(reply.status, "")
    body_bytes = reply.body_bytes
    is_wrong = body_bytes and reply.header("content-length") not in (None, str(body_bytes))
    renamed = _FRAMING if reply.truncated or is_wrong else _CODING
    if reply.head:
        return _rename_headers(reply.head, renamed)
    fields: Sequence[tuple[str, str]] = reply.headers
    if not renamed.isdisjoint(first_values(fields)):
        fields = [(f"X-Archive-Orig-{name}" if lower_names[name] in renamed else name, value) for name, value in fields]
    lines = [f"HTTP/{version} {reply.status:03d} {reason}", *map(": ".join, fields)]
    return (_join_lines(lines) + "\r\n").encode("latin-1", "replace")


def _rename_headers(head: bytes, names: frozenset[str]) -> bytes:
    """Return a head as received, with `X-Archive-Orig-` before the names of some headers."""
    lines = head.splitlines(keepends=True)
    return b"".join(
        b"X-Archive-Orig-" + line if line.partition(b":")[0].strip().lower().decode("latin-1") in names else line
        for line in lines
    )


def request_head(head: bytes) -> bytes:
    """Return the request's head with a version that every WARC reader knows, ended by an empty line."""
    line, separator, rest = head.partition(b"\r\n")
    if line.endswith((b" HTTP/2", b" HTTP/3", b" HTTP/2.0")):
        line = line[: line.rindex(b" ")] + b" HTTP/1.1"
    head = line + separator + rest
    return head if head.endswith(b"\r\n\r\n") else head.rstrip(b"\r\n") + b"\r\n\r\n"


Fields = list[tuple[str, str]]

HTTP_RESPONSE = "application/http; msgtype=response"
HTTP_REQUEST = "application/http; msgtype=request"
WARC_FIELDS = "application/warc-fields"
_VERSION = b"WARC/1.1\r\n"
_END = b"\r\n\r\n"
SMALL_BYTES = 2_048
"""Shorter records are packed with little memory: 9 instead of 13 µs for the same bytes."""
COMPRESSED = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"wOF2")
"""How content begins that is compressed already: gzip, Zstandard, JPEG, PNG, WOFF2."""
BROTLI = b"\r\ncontent-encoding: br\r\n"
"""Brotli has no such beginning."""
STORED_BYTES_MAX = 0xFFFF
_GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_GZIP_END = struct.Struct("<II").pack
_STORED_HEAD = struct.Struct("<BHH").pack
PIECE_BYTES = 1 << 20
"""Bytes of a body in a file that are in memory at a time."""


class Stream(Protocol):
    """One gzip member, or one frame, in the making."""

    def compress(self, data: bytes) -> bytes: ...

    def flush(self) -> bytes: ...


class Record(msgspec.Struct, frozen=True):
    """One WARC record. Digest of the block, length and version are added when it is written."""

    record_type: str
    record_id: str
    """Without angle brackets: `urn:uuid:…`."""
    date: str
    content_type: str
    fields: Fields
    """Further named fields, in order."""
    head: bytes
    """First part of the block: an HTTP head, or a whole block of WARC fields."""
    payload: bytes = b""
    file: LargeBody | None = None
    """Holds the second part, where it is too large for memory."""


def warc_digest(algorithm: str, part: bytes, *more: bytes, file: LargeBody | None = None) -> str:
    """Return `algorithm:BASE32` over all parts, then the file. Costs 0.5 µs a KB with SHA-1."""
    digest = _HASHES[algorithm](part, usedforsecurity=False)
    for part in more:
        digest.update(part)
    if file is not None:
        for piece in pieces_of(file):
            digest.update(piece)
    return digest_text(algorithm, digest.digest())


def pieces_of(file: LargeBody) -> Iterator[bytes]:
    """Yield a large body, `PIECE_BYTES` at a time."""
    with file.open() as reader:
        while piece := reader.read(PIECE_BYTES):
            yield piece


def field_lines(fields: Fields) -> bytes:
    """Return `Name: value` lines, each ended by CRLF."""
    return _join_lines([*map(": ".join, fields)]).encode("utf-8", "replace")


def fields_of(record: Record, algorithm: str) -> Fields:
    """Return all named fields of a record in the order in which they are written."""
    payload_bytes = record.file.size if record.file is not None else len(record.payload)
    return [
        ("WARC-Type", record.record_type),
        ("WARC-Record-ID", f"<{record.record_id}>"),
        ("WARC-Date", record.date),
        *record.fields,
        ("WARC-Block-Digest", warc_digest(algorithm, record.head, record.payload, file=record.file)),
        ("Content-Type", record.content_type),
        ("Content-Length", str(len(record.head) + payload_bytes)),
    ]


class Gzip:
    """Packs gzip members (WARC 1.1, annex D), at ISA-L's levels 0 to 3."""

    suffix = ".warc.gz"

    def __init__(self, level: int) -> None:
        self._level = level

    def pack(self, beginning: bytes, payload: bytes) -> bytes:
        """Return the member. A payload that is compressed already is stored as it is: half of the time, and fewer
        bytes, since they do not spoil the code of the others.
        """
        if payload and (payload.startswith(COMPRESSED) or BROTLI in beginning.lower()):
            return self._store(beginning, payload + _END)
        data = b"".join((beginning, payload, _END))
        memory = igzip_lib.MEM_LEVEL_MIN if len(data) < SMALL_BYTES else igzip_lib.MEM_LEVEL_DEFAULT
        packed: bytes = igzip_lib.compress(data, self._level, igzip_lib.COMP_GZIP, memory)
        return packed

    def _store(self, beginning: bytes, rest: bytes) -> bytes:
        packer = isal_zlib.compressobj(self._level, isal_zlib.DEFLATED, -15)
        parts = [_GZIP_HEAD, packer.compress(beginning), packer.flush(isal_zlib.Z_SYNC_FLUSH)]
        for at in range(0, len(rest), STORED_BYTES_MAX):  # Blocks of RFC 1951, section 3.2.4.
            piece = rest[at : at + STORED_BYTES_MAX]
            parts += _STORED_HEAD(at + len(piece) == len(rest), len(piece), len(piece) ^ 0xFFFF), piece
        crc = isal_zlib.crc32(rest, isal_zlib.crc32(beginning))
        return b"".join((*parts, _GZIP_END(crc, len(beginning) + len(rest) & 0xFFFFFFFF)))

    def stream(self, size: int) -> Stream:
        stream: Stream = isal_zlib.compressobj(self._level, isal_zlib.DEFLATED, 31)
        return stream


class Zstd:
    """Packs frames with their size and checksum in them (IIPC, Zstandard Compression for WARC Files 1.0).

    No dictionary: request and metadata records would have a sixth of their size, files some 8 % less, but no tool could
    read a record without the beginning of its file.
    """

    suffix = ".warc.zst"

    def __init__(self, level: int) -> None:
        self._compressor = zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True)

    def pack(self, beginning: bytes, payload: bytes) -> bytes:
        return self._compressor.compress(b"".join((beginning, payload, _END)))

    def stream(self, size: int) -> Stream:
        return self._compressor.compressobj(size=size)


Packer = Gzip | Zstd
"""Makes one gzip member, or one Zstandard frame, of each record: at once, or as a stream of a known size."""


def packer(options: ArchiveOptions) -> Packer:
    """Return the packer that the options name."""
    return Zstd(options.warc_zstd_level) if options.warc_compression == "zstd" else Gzip(options.warc_gzip_level)


def member(record: Record, algorithm: str, by: Packer) -> bytes:
    """Return the record as one gzip member or frame. Not for one whose payload is in a file.

    Costs 9 µs and 1.7 µs a KB of text, 0.8 µs a KB of what is compressed already. FastWARC's `GzipWriter` takes 2.2
    times as long for the same size of text, and 1.6 times at its quickest level, which makes 20 % more bytes
    (`benchmarks/bench_archive.py`).
    """
    fields = field_lines(fields_of(record, algorithm))
    return by.pack(b"".join((_VERSION, fields, b"\r\n", record.head)), record.payload)


def pieces_of_member(record: Record, algorithm: str, by: Packer) -> Iterator[bytes]:
    """Yield the same for a record whose payload is in a file, which is read twice. About 3 ms a MB."""
    assert record.file is not None, "a record in memory is one piece"
    beginning = b"".join((_VERSION, field_lines(fields_of(record, algorithm)), b"\r\n", record.head))
    stream = by.stream(len(beginning) + record.file.size + 4)
    yield stream.compress(beginning)
    for piece in pieces_of(record.file):
        yield stream.compress(piece)
    yield stream.compress(_END) + stream.flush()


def _join_lines(lines: list[str]) -> str:
    """End each line by CRLF. A line break inside a value would make headers of its own, or end the head early."""
    text = "".join(lines)
    if "\n" in text or "\r" in text:  # Two searches, a tenth of what counting line breaks takes.
        lines = [line.replace("\r", " ").replace("\n", " ") for line in lines]
    return "\r\n".join([*lines, ""])
