"""Members: WARC files read record by record, every checksum compared: that of the gzip member or Zstandard frame, the
digest of the block and that of the payload. In memory: one head, and `PIECE_BYTES` of a record.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from gossamer.stages.archive.unpack import MARK, PIECE_BYTES, BrokenMemberError, Unpacked, packing_of

HEAD_BYTES_MAX = 1 << 20
"""Largest WARC head, and largest HTTP head in a block."""
_END = b"\r\n\r\n"


class GzipMember(msgspec.Struct, frozen=True):
    """One record of a WARC file, and its fault if it has one."""

    offset: int
    length: int
    record_type: str = ""
    url: str = ""
    fault: str = ""
    """Its fault, as the rest of a sentence; empty: none."""


def unpack_member(file: BinaryIO, offset: int, length: int, bytes_max: int = 0) -> tuple[str, bytes | None]:
    """Return the fault of the member of `length` bytes at `offset`, empty for a sound one, and its content; None for
    one of more than `bytes_max` bytes. A record that is not packed has no checksum.

    About 15 µs and 2 µs a KB of text.
    """
    file.seek(offset)
    begin = file.read(len(MARK))
    if begin == MARK:
        return "", begin + file.read(length - len(begin)) if length <= bytes_max else None
    unpacked = Unpacked(file, offset + length, packing_of(begin) or "gzip")
    unpacked.seek(offset)
    pieces: list[bytes] = []
    try:
        unpacked.begin()
        while piece := unpacked.take(PIECE_BYTES):
            if unpacked.within <= bytes_max:
                pieces.append(piece)
            else:
                pieces.clear()
    except BrokenMemberError as broken:
        return str(broken), None
    fault = "" if unpacked.end == offset + length else "ends early"
    return fault, b"".join(pieces) if unpacked.within <= bytes_max else None


def members_of(file: BinaryIO, length: int, *, zstd: bool) -> Iterator[GzipMember]:
    """Yield the records in the first `length` bytes of a WARC file. After a member that cannot be unpacked it searches
    for the beginning of the next one.

    About 3 ms a MB of text, for the digests most of all.
    """
    unpacked = Unpacked(file, length, "zstd" if zstd else "gzip")
    while unpacked.begin():
        about = _Record()
        try:
            while piece := unpacked.take(PIECE_BYTES):
                about.add(piece)
            fault = about.fault()
        except BrokenMemberError as broken:
            fault = str(broken)
            unpacked.search(lambda begin: begin.startswith(b"WARC/"), unpacked.offset)
        yield GzipMember(unpacked.offset, unpacked.end - unpacked.offset, about.record_type, about.url, fault)


class _Record:
    """Parses a record and checks its digests."""

    def __init__(self) -> None:
        self.record_type = self.url = ""
        self._fields: dict[str, str] | None = None
        self._head = bytearray()
        self._left = 0
        self._block: hashlib._Hash | None = None
        self._payload: hashlib._Hash | None = None
        self._http: bytearray | None = None
        """The HTTP head, while it has not ended."""
        self._end = b""

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        if self._fields is None:
            self._head += data
            end = self._head.find(_END)
            if end < 0:
                if len(self._head) > HEAD_BYTES_MAX:
                    raise BrokenMemberError("holds no WARC record")
                return
            data = bytes(self._head[end + len(_END) :])
            self._begin(bytes(self._head[:end]))
        block = data[: self._left]
        rest = data[self._left :]
        self._left -= len(block)
        if self._block is not None:
            self._block.update(block)
        self._add_payload(block)
        self._end += rest[: len(_END) + 1]

    def fault(self) -> str:
        """Return the fault of the whole record; empty: none."""
        if self._fields is None:
            return "holds no WARC record"
        if self._left or self._end != _END:
            return "has another length than its Content-Length says"
        if self._block is not None and not _matches(self._block, self._fields["warc-block-digest"]):
            return "has another block digest than its head says"
        # The payload of a revisit is another record's; of a reply that was cut a part of it is here.
        if self._payload is not None and not _matches(self._payload, self._fields["warc-payload-digest"]):
            return "has another payload digest than its head says"
        return ""

    def _begin(self, head: bytes) -> None:
        version, *lines = head.decode("utf-8", "replace").split("\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = fields.get("content-length", "")
        if not version.startswith("WARC/1.") or not length.isdigit():
            raise BrokenMemberError("holds no WARC record")
        self._fields = fields
        self._left = int(length)
        self.record_type, self.url = fields.get("warc-type", ""), fields.get("warc-target-uri", "").strip("<>")
        self._block = _hash(fields.get("warc-block-digest", ""))
        if self.record_type in ("response", "resource"):
            self._payload = _hash(fields.get("warc-payload-digest", ""))
            if self.record_type == "response":
                self._http = bytearray()

    def _add_payload(self, block: bytes) -> None:
        if self._payload is None:
            return
        if self._http is not None:
            self._http += block
            end = self._http.find(_END)
            if end < 0:
                if len(self._http) > HEAD_BYTES_MAX:
                    self._payload = None
                return
            block = bytes(self._http[end + len(_END) :])
            self._http = None
        self._payload.update(block)


def _hash(digest: str) -> hashlib._Hash | None:
    """Return the hash function for a labelled digest; None if the algorithm is unknown."""
    name = digest.partition(":")[0].replace("-", "").lower()
    return hashlib.new(name, usedforsecurity=False) if name in hashlib.algorithms_guaranteed else None


def _matches(found: hashlib._Hash, digest: str) -> bool:
    value = digest.partition(":")[2]
    return value.upper() == base64.b32encode(found.digest()).decode() or value.lower() == found.hexdigest()
