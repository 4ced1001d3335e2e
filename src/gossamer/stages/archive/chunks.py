"""Chunks: the chunked transfer coding, which most crawlers leave in the records that they write."""

import re
from collections.abc import Iterable, Iterator

LINE_BYTES_MAX = 4_096
_CHUNK = re.compile(rb"[ \t]*+([0-9A-Fa-f]{1,15})[ \t]*+(?:;[^\n]*+)?\r?\Z")


def is_chunked(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether a reply has the coding, by its headers."""
    return any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in headers)


class Dechunked:
    """Removes the chunked coding. A body without a first chunk is left: some tools remove only the coding itself."""

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
