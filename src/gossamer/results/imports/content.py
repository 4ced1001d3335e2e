"""Content: the HTTP reply in a record, its transfer coding removed, its body bounded, and the dates of records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from gossamer.model.visits import LargeBody
from gossamer.results.imports.capture import Room
from gossamer.stages.archive.foreign import Block, UnreadableError
from gossamer.stages.fetch.headers import Head, parse_head

LINE_BYTES_MAX = 4_096
_CHUNK = re.compile(rb"[ \t]*+([0-9A-Fa-f]{1,15})[ \t]*+(?:;[^\n]*+)?\r?\Z")
_LINE = re.compile(rb"[^\n]*+\n|[^\n]++")
_DIGITS = re.compile(r"[0-9]{4,}+")
_NO_DATE = "19700101000000"


def take_head(block: Block) -> Head:
    """Take the head of the final reply in a record.

    Raises:
        UnreadableError: there is none.
    """
    head = None
    while head is None and block.begins_with(b"HTTP/"):
        head = parse_head(_LINE.findall(block.take_head().replace(b"\r\r\n", b"\r\n")))
    if head is None:
        raise UnreadableError("holds no HTTP reply")
    return head


def pieces_of(block: Block) -> Iterator[bytes]:
    """Yield what is left of a record."""
    while piece := block.take():
        yield piece


class Dechunked:
    """Removes the chunked coding. A body that does not begin with a chunk is left as it is: some tools remove the
    coding and keep the header.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.is_cut = False
        """A later chunk is missing or broken."""

    def __iter__(self) -> Iterator[bytes]:
        held = bytearray()
        is_first = True
        while True:
            end = held.find(b"\n")
            if end < 0 and len(held) < LINE_BYTES_MAX and (piece := next(self._pieces, b"")):
                held += piece
                continue
            match = _CHUNK.match(held[:end]) if end >= 0 else None
            if match is None:
                self.is_cut = not is_first
                if is_first:
                    yield bytes(held)
                    yield from self._pieces
                return
            is_first = False
            left = int(match[1], 16)
            del held[: end + 1]
            if not left:
                return
            while left and (held or self._fill(held)):
                piece = bytes(held[:left])
                del held[:left]
                left -= len(piece)
                yield piece
            self.is_cut = left > 0
            if left:
                return
            while len(held) < 2 and self._fill(held):
                pass
            del held[: 1 + held.startswith(b"\r\n") if held.startswith((b"\r", b"\n")) else 0]

    def _fill(self, held: bytearray) -> bool:
        piece = next(self._pieces, b"")
        held += piece
        return bool(piece)


def keep(pieces: Iterator[bytes], room: Room) -> tuple[bytes, LargeBody | None, bool]:
    """Return a body in memory, or in a file where it is large, and whether it was cut at the bound."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > room.held_bytes_max:
            break
    else:
        return b"".join(held), None, False
    spill = room.spills.make()
    for one in held:
        spill.write(one[: room.body_bytes_max - spill.size])
    for piece in pieces:
        size += len(piece)
        spill.write(piece[: room.body_bytes_max - spill.size])
        if size > room.body_bytes_max:
            break
    spill.flush()
    return b"", spill, size > room.body_bytes_max


def date_of(text: str) -> float | None:
    """Return seconds since 1970 of a date as WARC (W3C's profile of ISO 8601) or ARC (digits) has it; None of none."""
    text = text.strip()
    if _DIGITS.fullmatch(text):
        text = (text + _NO_DATE[len(text) :])[:14]
        text = f"{text[:8]}T{text[8:]}"
    elif len(text) in (4, 7):
        text += "-01-01"[: 10 - len(text)]
    try:
        moment = datetime.fromisoformat(text)
        seconds = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None
