"""Unpack: the bytes of an archive, member by member, with the place of each member in the file.

A member is a gzip member or a Zstandard frame; a file that is not packed is one member. In memory: the bytes that are
read ahead, and what they unpack to, a piece at a time.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Literal, cast

import zstandard
from isal import isal_zlib

Packing = Literal["", "gzip", "zstd"]
READ_BYTES = 1 << 16
PIECE_BYTES = 1 << 20
TRIAL_BYTES = 1_024
"""Bytes of a member that are unpacked to see what it holds."""
ZSTD_BYTES = 1_024
"""Bytes of a frame that are unpacked at once, as the library bounds no output: 128 KiB for each 4 bytes at most."""
BOMB_BYTES = 32
"""The same of a frame that is found to be a bomb."""
DICTIONARY_BYTES_MAX = 16 << 20
WINDOW_BYTES_MAX = 128 << 20
MARK = b"WARC/"
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP_DEFLATE = b"\x1f\x8b\x08"
_SKIPPABLE = b"\x2a\x4d\x18"
"""A frame without content begins with a byte from 0x50 and these (RFC 8878, section 3.1.2)."""
_DICTIONARY = b"\x5d\x2a\x4d\x18"
"""One that holds the dictionary of all others (IIPC, Zstandard Compression for WARC Files 1.0)."""
_ERRORS: tuple[type[Exception], ...] = (cast("type[Exception]", isal_zlib.error), zstandard.ZstdError, MemoryError)


class BrokenMemberError(Exception):
    """A member is damaged: the text is its fault, as the rest of a sentence."""


def packing_of(begin: bytes) -> Packing:
    """Return how a file is packed, by its first bytes."""
    if begin.startswith(GZIP):
        return "gzip"
    return "zstd" if begin.startswith(ZSTD) or begin[1:4] == _SKIPPABLE else ""


class Unpacked:
    """Reads the unpacked content of a file. Raises BrokenMemberError where a member is damaged."""

    def __init__(self, file: BinaryIO, size: int, packing: Packing) -> None:
        file.seek(0)
        self._file = file
        self._size = size
        self.packing = packing
        self._dictionary: zstandard.ZstdCompressionDict | None = None
        self._unpacker: Any = None
        self._raw = b""
        self._step = ZSTD_BYTES
        self._read = 0
        self._held = b""
        self._at = 0
        self.offset = 0
        self.within = 0
        if packing == "zstd":
            self._load_dictionary()

    @property
    def has_dictionary(self) -> bool:
        """The members cannot be read without the beginning of the file."""
        return self._dictionary is not None

    @property
    def end(self) -> int:
        """Bytes of the file before the next member, once this one is at its end."""
        return self._read - len(self._raw)

    @property
    def left(self) -> int:
        """Bytes that a file which is not packed has left."""
        return self._size - self.within

    @property
    def place(self) -> tuple[int, int]:
        """Where the next byte lies: the member's place in the file and that in the member, 0 in an unpacked file."""
        if self.packing:
            return self.offset, self.within
        return self.within, 0

    def seek(self, offset: int) -> None:
        """Go to a place in the file."""
        self._file.seek(offset)
        self._raw = b""
        self._read = offset
        self._held = b""
        self._at = 0
        self.within = 0 if self.packing else offset

    def begin(self) -> bool:
        """Begin the member at this place, behind frames without content; False at the end of the file."""
        self._held = b""
        self._at = 0
        self.within = 0 if self.packing else self.end
        while self._load(8):
            if self.packing == "zstd" and self._raw[1:4] == _SKIPPABLE and 0x50 <= self._raw[0] <= 0x5F:
                self._skip(8 + int.from_bytes(self._raw[4:8], "little"))
            else:
                self.offset = self.end
                self._step = ZSTD_BYTES
                self._unpacker = self._open()
                return True
        return False

    def skip_zeros(self) -> None:
        """Go behind the zeros with which a disk or a tape fills up blocks."""
        while self.packing and self._load(1) and not self._raw[0]:
            self._raw = self._raw.lstrip(b"\0")

    def peek(self, length: int) -> bytes:
        """Return the next bytes of the member without taking them: fewer only at its end."""
        while len(self._held) - self._at < length and self._unpack():
            pass
        return self._held[self._at : self._at + length]

    def pieces(self) -> Iterator[bytes]:
        """Yield the content of the members that are left."""
        while self.begin():
            while piece := self.take(READ_BYTES):
                yield piece

    def take(self, length: int) -> bytes:
        """Take some of the next bytes: at most `length`, and at least one, if the member has more."""
        if self._at == len(self._held) and not self._unpack():
            return b""
        data = self._held[self._at : self._at + length]
        self._at += len(data)
        self.within += len(data)
        return data

    def skip(self, length: int) -> int:
        """Take and drop bytes; return how many were not there."""
        if not self.packing and length > len(self._held) - self._at:
            there = min(length, self._size - self.within)
            self.seek(self.within + there)
            return length - there
        while length and (data := self.take(length)):
            length -= len(data)
        return length

    def find(self, marks: tuple[bytes, ...], limit: int) -> int:
        """Return where the earliest of some marks ends; -1 if the first `limit` bytes, or a piece more, hold none."""
        start = 0
        while True:
            held = self._held
            end = len(held)
            found = -1
            for mark in marks:
                if (at := held.find(mark, self._at + start, end)) >= 0:
                    end = at
                    found = at + len(mark)
            if found >= 0:
                return found - self._at
            start = max(0, len(held) - self._at - max(map(len, marks)) + 1)
            if start >= limit or not self._unpack():
                return -1

    def drop_until(self, marks: tuple[bytes, ...]) -> bool:
        """Go to the next place in the member at which one of some marks begins; at its end return False."""
        search = re.compile(b"|".join(map(re.escape, marks))).search  # A mark that is not there is no further pass.
        while True:
            found = search(self._held, self._at)
            stop = found.start() if found is not None else max(self._at, len(self._held) - max(map(len, marks)) + 1)
            self.within += stop - self._at
            self._at = stop
            if found is not None:
                return True
            if not self._unpack():
                return False

    def behind(self, length: int, count: int) -> bytes:
        """Return some bytes that follow `length` others, in a file that is not packed. They stay where they are."""
        at = self._at + length
        if at + count <= len(self._held) or self._read == self._size:
            return self._held[at : at + count]
        self._file.seek(self.within + length)
        data = self._file.read(count)
        self._file.seek(self._read)
        return data

    def search(self, begins: Callable[[bytes], bool], offset: int, end: int | None = None) -> bool:
        """Go to the next member, behind `offset`, whose content begins so; False if none is before `end`. One pass."""
        magic = _GZIP_DEFLATE if self.packing == "gzip" else ZSTD
        self.seek(offset + 1)
        at = 0
        while end is None or self.end + at < end:
            at = self._raw.find(magic, at)
            if at < 0 or len(self._raw) - at < TRIAL_BYTES:
                self._raw = self._raw[at if at >= 0 else max(0, len(self._raw) - len(magic) + 1) :]
                at = 0
                if not self._more() and not self._raw.startswith(magic):
                    return False
            if self._raw.startswith(magic, at):
                if begins(self._try(self._raw[at : at + TRIAL_BYTES])):
                    self._raw = self._raw[at:]
                    return True
                at += 1
        return False

    def _try(self, data: bytes) -> bytes:
        """Return the first bytes that some others unpack to, or none."""
        unpacker = self._open()
        try:
            return bytes(unpacker.decompress(data, *([TRIAL_BYTES] if self.packing == "gzip" else [])))
        except _ERRORS:
            return b""

    def _unpack(self) -> bool:
        """Hold the next piece; False at the end of the member."""
        unpacker = self._unpacker
        piece = b""
        while not piece:
            if unpacker is not None and unpacker.eof:
                return False
            if not self._raw and not self._more():
                if unpacker is None:
                    return False
                raise BrokenMemberError("ends early")
            if unpacker is None:
                piece = self._raw
                self._raw = b""
                break
            try:
                if self.packing == "zstd":
                    rest = self._raw[self._step :]
                    piece = unpacker.decompress(self._raw[: self._step])
                    if len(piece) > PIECE_BYTES:
                        self._step = BOMB_BYTES
                    self._raw = unpacker.unused_data + rest if unpacker.eof else rest
                else:
                    piece = unpacker.decompress(self._raw, PIECE_BYTES)
                    self._raw = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            except _ERRORS as error:
                raise BrokenMemberError(f"cannot be unpacked ({error})") from error
        self._held = self._held[self._at :] + piece if self._at < len(self._held) else piece
        self._at = 0
        return True

    def _open(self) -> Any:
        if self.packing == "gzip":
            return isal_zlib.decompressobj(31)
        if self.packing == "zstd":
            return zstandard.ZstdDecompressor(self._dictionary, max_window_size=WINDOW_BYTES_MAX).decompressobj()
        return None

    def _more(self) -> bool:
        data = self._file.read(min(READ_BYTES, self._size - self._read))
        self._read += len(data)
        self._raw += data
        return bool(data)

    def _load(self, length: int) -> bool:
        """Read until `length` raw bytes are held, or the file ends; return False if there are none."""
        while len(self._raw) < length and self._more():
            pass
        return bool(self._raw)

    def _skip(self, length: int) -> None:
        at = min(self._size, self._read - len(self._raw) + length)
        self._file.seek(at)
        self._read = at
        self._raw = b""

    def _load_dictionary(self) -> None:
        self._load(8)
        if self._raw[:4] != _DICTIONARY:
            return
        length = int.from_bytes(self._raw[4:8], "little")
        if length > DICTIONARY_BYTES_MAX or not self._load(8 + length) or len(self._raw) < 8 + length:
            raise BrokenMemberError("has a dictionary that is cut, or too large")
        data = self._raw[8 : 8 + length]
        try:
            if data.startswith(ZSTD):
                if not 0 <= zstandard.frame_content_size(data) <= DICTIONARY_BYTES_MAX:
                    raise BrokenMemberError("has a dictionary of unknown size, or too large")
                data = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX).decompress(data)
            self._dictionary = zstandard.ZstdCompressionDict(data)
            self._open()  # Only now it is read.
        except _ERRORS as error:
            raise BrokenMemberError(f"has a damaged dictionary ({error})") from error
        self._skip(8 + length)
