"""Codings: decoders of content codings that work piece by piece (RFC 9110, section 8.4.1), also from disk to disk for
bodies that are too large for memory.
"""

import io
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import BinaryIO, Final, cast

import brotli
import zstandard
from isal import igzip_lib

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Content, LargeBody, Reply
from gossamer.world.spill import Spills

ZSTD_WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024  # RFC 9659
_GZIP_MAGIC: Final = b"\x1f\x8b"
"""No text begins so, and no stream of another coding but Brotli."""
_ZSTD_MAGICS: Final = (b"\x28\xb5\x2f\xfd", *(bytes((number,)) + b"\x2a\x4d\x18" for number in range(0x50, 0x60)))
"""The last ones are of frames without content, such as those that pzstd writes (RFC 8878, section 3.1.2)."""
_ZSTD_BLOCK_BYTES_MIN: Final = 4  # RFC 8878, section 3.1.1.2: a run-length block of four bytes …
_ZSTD_BLOCK_BYTES_MAX: Final = 128 * 1024  # … makes up to 128 KB
KNOWN: Final = frozenset({"gzip", "x-gzip", "deflate", "x-deflate", "br", "zstd"})
ERRORS: Final[tuple[type[Exception], ...]] = (  # isal's stub has an instance for a class
    igzip_lib.IsalError, brotli.error, zstandard.ZstdError, EOFError, ValueError,  # type: ignore[assignment]
)  # fmt: skip


def require_brotli() -> None:
    """Raise ConfigError for a module `brotli` of another package, with which each page in br is an internal error."""
    if not hasattr(brotli.Decompressor, "can_accept_more_data"):
        raise ConfigError(
            f"the module brotli in {brotli.__file__} is not that of Brotli 1.2; pywb installs another over it: run "
            "`pip uninstall brotlipy`, then `pip install --force-reinstall brotli`, and keep pywb in an environment of "
            "its own"
        )


class _Stream:
    """A stream that is not at its end."""

    done = False
    rest = b""


class _Inflate(_Stream):
    """Gzip, zlib and raw deflate, which `igzip_lib` distinguishes by a flag."""

    def __init__(self, flag: int) -> None:
        self._stream = igzip_lib.IgzipDecompressor(flag)

    def feed(self, data: bytes, room: int) -> bytes:
        out: bytes = self._stream.decompress(data, room)
        if self._stream.eof:
            self.done = True
            self.rest = self._stream.unused_data
        return out


class _Brotli(_Stream):
    """Brotli; the library reports bytes after the end as an error."""

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def feed(self, data: bytes, room: int) -> bytes:
        out: bytes = self._stream.process(data, output_buffer_limit=room)
        self.done = self._stream.is_finished()
        # The decoder may still hold output, which it returns for empty input.
        pieces = [out]
        while not self.done and (room := room - len(pieces[-1])) > 0 and pieces[-1]:
            pieces.append(self._stream.process(b"", output_buffer_limit=room))
            self.done = self._stream.is_finished()
        return out if len(pieces) == 1 else b"".join(pieces)


class _Zstd(_Stream):
    """Zstandard, one frame. The library does not bound its output, so the input is passed in small pieces."""

    def __init__(self) -> None:
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


Stream = _Inflate | _Brotli | _Zstd
"""A decoder of one coded stream. `feed` takes coded bytes and returns decoded ones: all available, or at least `room`
and at most twice that. At the end `done` is set, and `rest` has the bytes after the end in the last piece.
"""
# By coding: how to make a decoder, and the magic bytes with which its format may begin, if any.
STREAMS: Final[dict[str, tuple[Callable[[], Stream], tuple[bytes, ...]]]] = {
    "gzip": (partial(_Inflate, igzip_lib.DECOMP_GZIP), (_GZIP_MAGIC,)),
    "x-gzip": (partial(_Inflate, igzip_lib.DECOMP_GZIP), (_GZIP_MAGIC,)),
    "zlib": (partial(_Inflate, igzip_lib.DECOMP_ZLIB), ()),
    "raw deflate": (partial(_Inflate, igzip_lib.DECOMP_DEFLATE), ()),
    "br": (_Brotli, ()),
    "zstd": (_Zstd, _ZSTD_MAGICS),
}


def begins(magics: tuple[bytes, ...], start: bytes) -> bool:
    """Return whether a body that begins so, or is no longer, may have one of the magic bytes, if there are any."""
    return not magics or start.startswith(tuple(magic[: len(start)] for magic in magics))


def coding_of(label: str, start: bytes) -> str:
    """Return the coding that a label means, by the beginning of the body: another label of a gzip body, such as
    `application/gzip` or `deflate`, means gzip.
    """
    if label != "br" and start.startswith(_GZIP_MAGIC):
        return "gzip"
    return "deflate" if label == "x-deflate" else label


def is_zlib(start: bytes) -> bool:
    """Return whether a body in `deflate` begins like zlib (RFC 1950, section 2.2), or is raw (RFC 1951)."""
    return len(start) >= 2 and start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0


_PIECE_BYTES: Final = 64 * 1024
_ROOM_BYTES: Final = 1024 * 1024
"""Bytes that are decoded in one call."""
_SLICE_BYTES: Final = 2 * 1024 * 1024
_PIECE_WORK_BYTES: Final = 2048
"""Bytes that are decoded in a slice; each piece, such as a gzip member, costs as much as these."""


class Spilling:
    """Decodes bodies that are too large for `decoding`. Memory: two megabytes for any body; about 3 ms a MB."""

    def __init__(self, spills: Spills, held_bytes_max: int) -> None:
        self._spills = spills
        self._held_max = held_bytes_max

    def decode(self, reply: Reply, codings: list[str], limit: int) -> Generator[None, None, Content]:
        """Return at most `limit` bytes of the content. For a broken coding, the content up to the error, less the
        content of up to 64 KiB as sent. Yields each few milliseconds. Raises OSError: the disk refuses.
        """
        problems: list[str] = []
        file: LargeBody
        if not codings and reply.file is not None:
            # There is no coding to remove: the file is the content.
            file = reply.file
            whole = True
        else:
            source = reply.file.open() if reply.file is not None else io.BytesIO(reply.body)
            file, whole = yield from self._spill(_remove_all(source, codings, problems), limit)
        with file.open() as reader:
            beginning = reader.read(self._held_max)
        fault = next((one for one in problems if not (reply.truncated and one.endswith("ends early"))), "")
        return Content(beginning, "" if whole else "length", fault, file if file.size > len(beginning) else None)

    def _spill(self, pieces: Iterator[bytes], limit: int) -> Generator[None, None, tuple[LargeBody, bool]]:
        spill = self._spills.make()
        work = 0
        for piece in pieces:
            work += _PIECE_WORK_BYTES + len(piece)
            if work >= _SLICE_BYTES:
                yield
                work = 0
            spill.write(piece[: limit - spill.size])
            if spill.size >= limit and (len(piece) > limit or next(pieces, b"")):
                spill.flush()
                return spill, False
        spill.flush()
        return spill, True


def _remove_all(source: BinaryIO, codings: list[str], problems: list[str]) -> Iterator[bytes]:
    pieces = iter(lambda: source.read(_PIECE_BYTES), b"")
    for label in reversed(codings):
        first = next(pieces, b"")
        pieces = chain((first,), pieces)
        coding = coding_of(label, first)
        if coding not in KNOWN:
            problems.append(f"content coding {label[:32]!r} is not known")
            break
        pieces = _without(coding, pieces, problems)
    return pieces


def _without(coding: str, pieces: Iterator[bytes], problems: list[str]) -> Iterator[bytes]:
    """Yield the body without one coding. A body that does not have the claimed coding is left as sent."""
    first = next(pieces, b"")
    if coding == "deflate":
        coding = "zlib" if is_zlib(first) else "raw deflate"
    open_stream, magics = STREAMS[coding]
    if not begins(magics, first):
        problems.append(f"said to be {coding}, is not; left as sent")
        yield first
        yield from pieces
        return
    try:
        if coding == "zstd":
            yield from _decompress_frames(first, pieces)
            return
        stream = open_stream()
        piece = first
        while piece:
            out = stream.feed(piece, _ROOM_BYTES)
            yield out
            while len(out) >= _ROOM_BYTES and not stream.done:
                out = stream.feed(b"", _ROOM_BYTES)
                yield out
            piece = stream.rest if stream.done else next(pieces, b"")
            if stream.done:
                piece = piece if len(piece) >= len(_GZIP_MAGIC) else piece + next(pieces, b"")
                if not magics or not piece.startswith(magics):
                    return  # Bytes after the end are ignored.
                stream = open_stream()
    except ERRORS as error:
        problems.append(f"{coding}: {error}")
        return
    problems.append(f"{coding} ends early")


def _decompress_frames(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    held = filter(None, chain((first,), pieces))
    source = cast("BinaryIO", SimpleNamespace(read=lambda _: next(held, b"")))  # Only `read` is used.
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX)
    with decompressor.stream_reader(source, read_size=_PIECE_BYTES, read_across_frames=True) as reader:
        while piece := reader.read(_ROOM_BYTES):
            yield piece
