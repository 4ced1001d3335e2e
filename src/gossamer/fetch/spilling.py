"""Spilling: content codings removed from bodies that are too large for memory, from disk to disk."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

import zstandard

from gossamer.fetch.codings import ERRORS, KNOWN, STREAMS, ZSTD_WINDOW_BYTES_MAX, is_zlib
from gossamer.model.visits import Content, LargeBody, Reply
from gossamer.world.spill import Spills

_PIECE_BYTES: Final = 64 * 1024
_ROOM_BYTES: Final = 1024 * 1024
"""Decoded at one go."""


class Spilling:
    """Decodes what `decoding` cannot hold. Memory: two megabytes, whatever the body; about 3 ms a MB."""

    def __init__(self, spills: Spills, held_bytes_max: int) -> None:
        self._spills = spills
        self._held_max = held_bytes_max

    def decode(self, reply: Reply, codings: list[str], limit: int) -> Content:
        """Return the content, at most `limit` bytes of it. Broken codings give what came before the break, less up to
        64 KiB as sent.

        Raises:
            OSError: the disk refuses.
        """
        problems: list[str] = []
        file: LargeBody
        if not codings and reply.file is not None:
            file, whole = reply.file, True  # Nothing to remove: it is there already.
        else:
            source = reply.file.open() if reply.file is not None else io.BytesIO(reply.body)
            file, whole = self._spilled(_removed(source, codings, problems), limit)
        with file.open() as reader:
            beginning = reader.read(self._held_max)
        told = [problem for problem in problems if not (reply.truncated and problem.endswith("ends early"))]
        return Content(
            beginning, "" if whole else "length", told[0] if told else "", file if file.size > len(beginning) else None
        )

    def _spilled(self, pieces: Iterator[bytes], limit: int) -> tuple[LargeBody, bool]:
        spill = self._spills.make()
        for piece in pieces:
            spill.write(piece[: limit - spill.size])
            if spill.size >= limit and (len(piece) > limit or next(pieces, b"")):
                spill.flush()
                return spill, False
        spill.flush()
        return spill, True


def _removed(source: BinaryIO, codings: list[str], problems: list[str]) -> Iterator[bytes]:
    pieces = iter(lambda: source.read(_PIECE_BYTES), b"")
    for coding in reversed(codings):
        if coding not in KNOWN:
            problems.append(f"content coding {coding[:32]!r} is not known")
            break
        pieces = _without(coding, pieces, problems)
    return pieces


def _without(coding: str, pieces: Iterator[bytes], problems: list[str]) -> Iterator[bytes]:
    """Yield what one coding hides. A body that is not what its header claims is left as sent."""
    first = next(pieces, b"")
    if coding == "deflate":
        coding = "zlib" if is_zlib(first) else "raw deflate"
    open_stream, magic = STREAMS[coding]
    if magic and not first.startswith(magic[: len(first)]):
        problems.append(f"said to be {coding}, is not; left as sent")
        yield first
        yield from pieces
        return
    try:
        if coding == "zstd":
            yield from _unframed(first, pieces)
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
                piece = piece if len(piece) >= len(magic) else piece + next(pieces, b"")
                if not magic or not piece.startswith(magic):
                    return  # What follows the end is nobody's.
                stream = open_stream()
    except ERRORS as error:
        problems.append(f"{coding}: {error}")
        return
    problems.append(f"{coding} ends early")


def _unframed(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    source = cast("BinaryIO", _Pieces(first, pieces))  # It is read, and nothing else.
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX)
    with decompressor.stream_reader(source, read_size=_PIECE_BYTES, read_across_frames=True) as reader:
        while piece := reader.read(_ROOM_BYTES):
            yield piece


class _Pieces:
    """A source that a library can read from."""

    def __init__(self, first: bytes, pieces: Iterator[bytes]) -> None:
        self._held = first
        self._pieces = pieces

    def read(self, size: int = -1) -> bytes:
        held = self._held or next(self._pieces, b"")
        if size < 0:
            held += b"".join(self._pieces)
            size = len(held)
        self._held = held[size:]
        return held[:size]
