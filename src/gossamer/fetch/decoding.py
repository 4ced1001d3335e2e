"""Decoding: content codings removed, within limits on bytes and on ratio (RFC 9110, section 8.4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from gossamer.fetch.codings import ERRORS, KNOWN, STREAMS, Spilling, is_zlib
from gossamer.fetch.options import FetchOptions
from gossamer.model.visits import Content, Reply
from gossamer.world.spill import Spills

_CODINGS_MAX: Final = 4
_MEMBERS_MAX: Final = 64
"""Gzip members or zstd frames in one body: each costs a copy of the rest."""
_RATIO_FREE_BYTES: Final = 1024 * 1024
_CAREFUL_BYTES: Final = 1024
_COMPLETE_BYTES_MAX: Final = 1 << 24
"""Of larger content the end is not looked for."""
_ENDS_EARLY: Final = "ends early"


class BoundedDecoder:
    """Removes a reply's content codings: gzip, deflate (zlib or raw), br, zstd, several in a row, and identity.

    Decodes at most `decoded_bytes_max` bytes, and beyond the first MiB at most `decode_ratio_max` for one byte sent:
    a bomb costs the time and twice the memory of that bound. A broken coding gives what came before the break, with
    `error`. A body that is not what its header claims is left as sent, with
    `error`. What follows the end of the coded content is ignored. 27 µs for a page of 86 KB in gzip.

    With `spills`, content of more than `body_memory_bytes_max` is never held whole: it goes to disk while it is
    decoded, and the body of the `Content` is its beginning.
    """

    def __init__(self, options: FetchOptions, spills: Spills | None = None) -> None:
        self._bytes_max = options.decoded_bytes_max
        self._ratio_max = options.decode_ratio_max
        self._held_max = options.body_memory_bytes_max if spills is not None else options.decoded_bytes_max
        self._spilling = Spilling(spills, options.body_memory_bytes_max) if spills is not None else None

    def decode(self, reply: Reply) -> Content:
        """Return the content of a reply.

        Raises:
            OSError: the disk refuses what is too large for memory. Nothing else.
        """
        codings = content_codings(reply.headers)
        if reply.file is None and (not codings or not reply.body):
            return Content(reply.body[: self._bytes_max], "length" if len(reply.body) > self._bytes_max else "")
        limit = min(self._bytes_max, max(_RATIO_FREE_BYTES, reply.body_bytes * self._ratio_max))
        if reply.file is None:
            content = self._held(reply, codings, min(limit, self._held_max))
            if content.truncated != "length" or limit <= self._held_max:
                return content
        if self._spilling is None:  # What spills bodies decodes them.
            return Content(b"", error="too large for memory")
        if len(codings) > _CODINGS_MAX:
            return msgspec.structs.replace(
                self._spilling.decode(reply, [], limit), error=f"more than {_CODINGS_MAX} content codings"
            )
        return self._spilling.decode(reply, codings, limit)

    def _held(self, reply: Reply, codings: list[str], limit: int) -> Content:
        """Decode within memory."""
        body = reply.body
        if len(codings) > _CODINGS_MAX:
            return Content(body[: self._bytes_max], error=f"more than {_CODINGS_MAX} content codings")
        truncated, error = "", ""
        for coding in reversed(codings):
            if coding not in KNOWN:
                return Content(body[:limit], truncated, f"content coding {coding[:32]!r} is not known")
            body, whole, problem = _remove(coding, body, limit)
            # The tail that a cut reply lacks is no news; the reply says so itself.
            if problem and not error and not (problem.endswith(_ENDS_EARLY) and (reply.truncated or truncated)):
                error = problem
            if not whole:
                truncated = "length"
        return Content(body, truncated, error)


def content_codings(headers: tuple[tuple[str, str], ...]) -> list[str]:
    """Return the codings in the order they were applied, lower case; identity and empty ones left out."""
    codings: list[str] = []
    for name, value in headers:
        if len(name) == 16 and name.lower() == "content-encoding":
            codings += [coding.strip().lower() for coding in value.split(",")]
    return [coding for coding in codings if coding not in ("", "identity", "none")]


def is_complete(codings: Sequence[str], body: bytes) -> bool:
    """Say whether a body is in the last of some codings, and ends as that says."""
    coding = codings[-1]
    return coding in KNOWN and _remove(coding, body, _COMPLETE_BYTES_MAX)[1:] == (True, "")


def _remove(coding: str, body: bytes, limit: int) -> tuple[bytes, bool, str]:
    """Remove one coding: the content cut at `limit`, whether it was not cut, and what was wrong with it."""
    if coding == "deflate":
        return _deflate(body, limit)
    magic = STREAMS[coding][1]
    if magic and not body.startswith(magic[: len(body)]):
        return body[:limit], len(body) <= limit, f"said to be {coding}, is not; left as sent"
    content, problem = _salvage(coding, body, limit)
    if problem and not content and not magic and not problem.endswith(_ENDS_EARLY):
        return body[:limit], len(body) <= limit, f"said to be {coding}, is not; left as sent"
    return content[:limit], len(content) <= limit, problem


def _deflate(body: bytes, limit: int) -> tuple[bytes, bool, str]:
    """Servers say deflate for zlib (RFC 1950), as they should, and for raw deflate (RFC 1951)."""
    if is_zlib(body):
        content, whole, problem = _remove("zlib", body, limit)
        if not problem or content != body[:limit]:
            return content, whole, problem
    return _remove("raw deflate", body, limit)


def _salvage(coding: str, body: bytes, limit: int) -> tuple[bytes, str]:
    """Decode at one go; when that breaks, again in pieces, and the broken piece byte by byte.

    A library that meets an error returns nothing of its last input, so the input is narrowed down: the result has all
    that the library decodes from the bytes before the break (zstd decodes in blocks).
    """
    known, problem, content = 0, "", b""
    for step in (len(body), _CAREFUL_BYTES, 1):
        attempt = _Attempt(limit)
        try:
            problem = attempt.run(coding, body, known, step)
        except ERRORS as error:
            problem = f"{coding}: {error}"
            known = attempt.fed
            content = b"".join(attempt.pieces)
        else:
            return b"".join(attempt.pieces), problem
    return content, problem


class _Attempt:
    """One pass over a coded body. When a stream raises, `pieces` holds what `fed` bytes before gave."""

    def __init__(self, limit: int) -> None:
        self.pieces: list[bytes] = []
        self.fed = 0
        self._room = limit + 1

    def run(self, coding: str, body: bytes, known: int, step: int) -> str:
        """Decode in pieces of `step` bytes, the first `known` bytes in one; return what was wrong."""
        open_stream, magic = STREAMS[coding]
        for _ in range(_MEMBERS_MAX):
            stream = open_stream()
            while self.fed < len(body) and not stream.done and self._room > 0:
                end = known if self.fed < known else self.fed + step
                piece = stream.feed(body[self.fed : end], self._room)
                self.pieces.append(piece)
                self._room -= len(piece)
                self.fed = min(end, len(body)) - len(stream.rest)
            if self._room <= 0:
                return ""
            if not stream.done:
                return f"{coding} {_ENDS_EARLY}"
            if not magic or not body.startswith(magic, self.fed):
                return ""
        return f"more than {_MEMBERS_MAX} {coding} members"
