"""Codings: one coded stream each, fed piece by piece (RFC 9110, section 8.4.1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

import brotli
import zstandard
from isal import igzip_lib

ZSTD_WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024  # RFC 9659
_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK_BYTES_MIN: Final = 4  # RFC 8878, section 3.1.1.2: a run-length block of four bytes …
_ZSTD_BLOCK_BYTES_MAX: Final = 128 * 1024  # … makes up to 128 KB
KNOWN: Final = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd"})
ERRORS: Final[tuple[type[Exception], ...]] = (  # isal's stub has an instance for a class
    igzip_lib.IsalError, brotli.error, zstandard.ZstdError, EOFError, ValueError,  # type: ignore[assignment]
)  # fmt: skip


class Stream(Protocol):
    """One coded stream. `done` is set at its end, `rest` then holds what followed in the last piece."""

    done: bool
    rest: bytes

    def feed(self, data: bytes, room: int) -> bytes:
        """Take coded bytes, return decoded ones: all there are, or `room` of them or up to twice that."""
        ...


class _Inflate:
    """Gzip, zlib and raw deflate: `igzip_lib` tells them apart by a flag."""

    def __init__(self, flag: int) -> None:
        self.done = False
        self.rest = b""
        self._stream = igzip_lib.IgzipDecompressor(flag)

    def feed(self, data: bytes, room: int) -> bytes:
        out: bytes = self._stream.decompress(data, room)
        if self._stream.eof:
            self.done, self.rest = True, self._stream.unused_data
        return out


class _Brotli:
    """Brotli; whatever follows its end is an error to the library."""

    def __init__(self) -> None:
        self.done = False
        self.rest = b""
        self._stream = brotli.Decompressor()

    def feed(self, data: bytes, room: int) -> bytes:
        out: bytes = self._stream.process(data, output_buffer_limit=room)
        self.done = self._stream.is_finished()
        # A stream that wants more may still hold output, and gives it when asked again with nothing.
        pieces = [out]
        while not self.done and (room := room - len(pieces[-1])) > 0 and pieces[-1]:
            pieces.append(self._stream.process(b"", output_buffer_limit=room))
            self.done = self._stream.is_finished()
        return out if len(pieces) == 1 else b"".join(pieces)


class _Zstd:
    """Zstandard, one frame. Its stream has no bound on output, so it is given little at a time."""

    def __init__(self) -> None:
        self.done = False
        self.rest = b""
        self._stream = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX).decompressobj()

    def feed(self, data: bytes, room: int) -> bytes:
        pieces: list[bytes] = []
        step = max(_ZSTD_BLOCK_BYTES_MIN, room // _ZSTD_BLOCK_BYTES_MAX * _ZSTD_BLOCK_BYTES_MIN)
        for at in range(0, len(data), step):
            piece = self._stream.decompress(data[at : at + step])
            pieces.append(piece)
            room -= len(piece)
            if self._stream.eof:
                self.done, self.rest = True, self._stream.unused_data + data[at + step :]
            if self.done or room <= 0:
                break
        return b"".join(pieces)


# Coding: how to open a stream of it, and how each begins where the format says so.
STREAMS: Final[dict[str, tuple[Callable[[], Stream], bytes]]] = {
    "gzip": (partial(_Inflate, igzip_lib.DECOMP_GZIP), _GZIP_MAGIC),
    "x-gzip": (partial(_Inflate, igzip_lib.DECOMP_GZIP), _GZIP_MAGIC),
    "zlib": (partial(_Inflate, igzip_lib.DECOMP_ZLIB), b""),
    "raw deflate": (partial(_Inflate, igzip_lib.DECOMP_DEFLATE), b""),
    "br": (_Brotli, b""),
    "zstd": (_Zstd, _ZSTD_MAGIC),
}


def is_zlib(start: bytes) -> bool:
    """Say whether a body called `deflate` begins as zlib does (RFC 1950, section 2.2); else it is raw (RFC 1951)."""
    return len(start) >= 2 and start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0
