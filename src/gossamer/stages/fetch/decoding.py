"""Decoding: removes content codings, within limits on bytes and on ratio (RFC 9110, section 8.4.1)."""

from collections.abc import Generator, Sequence
from typing import Final

import msgspec

from gossamer.model.modules import whole
from gossamer.model.visits import Content, Reply, first_values, lower_names
from gossamer.stages.fetch.codings import ERRORS, KNOWN, STREAMS, Spilling, begins, coding_of, is_zlib, require_brotli
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.spill import Spills

_CODINGS_MAX: Final = 4
_MEMBERS_MAX: Final = 64
"""Gzip members or zstd frames in one body; each costs a copy of the rest."""
_RATIO_FREE_BYTES: Final = 1024 * 1024
_CAREFUL_BYTES: Final = 1024
_COMPLETE_BYTES_MAX: Final = 1 << 24
"""Content up to this size is checked for its end."""
BEGINNING_BYTES: Final = 16 * 1024
"""Bytes of a coded body from which the beginning of its content is decoded."""
_ENDS_EARLY: Final = "ends early"
_LEFT: Final = "is not; left as sent"
_AROUND: Final = " \t\"'"


class BoundedDecoder:
    """Removes a reply's content codings: gzip, deflate (zlib or raw), br, zstd, several in a row, and identity.

    Decodes at most `decoded_bytes_max` bytes and, beyond the first MiB, at most `decode_ratio_max` bytes per byte sent:
    a decompression bomb costs the time, and twice the memory, of that bound. For a broken coding the content is that
    before the error, and `error` is set. A body that does not have the claimed coding is left as sent, with `error`.
    A text that is gzip although no header says so, or that was compressed twice, is decoded as such.
    Bytes after the end of the coded content are ignored. 27 µs for a page of 86 KB in gzip.

    With `spills`, content of more than `body_memory_bytes_max` is written to disk while it is decoded, and the body of
    the `Content` is only its beginning.
    """

    def __init__(self, options: FetchOptions, spills: Spills | None = None) -> None:
        """Raise ConfigError if the environment holds another module `brotli`."""
        require_brotli()
        self._bytes_max = options.decoded_bytes_max
        self._ratio_max = options.decode_ratio_max
        self._held_max = options.body_memory_bytes_max if spills is not None else options.decoded_bytes_max
        self._spilling = Spilling(spills, options.body_memory_bytes_max) if spills is not None else None

    def decode(self, reply: Reply) -> Content:
        """Return the content of a reply. Raises OSError: the disk refuses content that is too large for memory. Raises
        nothing else.
        """
        return whole(self.decode_in_slices(reply))

    def decode_in_slices(self, reply: Reply) -> Generator[None, None, Content]:
        """As `decode`. Yields each few milliseconds, where other work may run."""
        codings = content_codings(reply.headers)
        if not codings and _is_gzip_text(reply.media_type, _begun(reply)):
            codings = ["gzip"]
        if reply.file is None and (not codings or not reply.body):
            return Content(reply.body[: self._bytes_max], "length" if len(reply.body) > self._bytes_max else "")
        limit = min(self._bytes_max, max(_RATIO_FREE_BYTES, reply.body_bytes * self._ratio_max))
        if reply.file is None:
            content = self._decode_in_memory(reply, codings, min(limit, self._held_max))
            if content.truncated != "length" or limit <= self._held_max:
                return content
        if self._spilling is None:  # Bodies are spilled only if there is a decoder for them.
            return Content(b"", error="too large for memory")
        if len(codings) > _CODINGS_MAX:
            content = yield from self._spilling.decode(reply, [], limit)
            return msgspec.structs.replace(content, error=f"more than {_CODINGS_MAX} content codings")
        return (yield from self._spilling.decode(reply, codings, limit))

    def _decode_in_memory(self, reply: Reply, codings: list[str], limit: int) -> Content:
        """Decode within memory. A gzip that no header names is added to `codings`."""
        body = reply.body
        if len(codings) > _CODINGS_MAX:
            return Content(body[: self._bytes_max], error=f"more than {_CODINGS_MAX} content codings")
        truncated = ""
        error = ""
        left = len(codings)
        while left:
            left -= 1
            label = codings[left]
            coding = coding_of(label, body)
            if coding not in KNOWN:
                return Content(body[:limit], truncated, f"content coding {label[:32]!r} is not known")
            body, whole, problem = _remove(coding, body, limit)
            if problem.endswith(_LEFT) and label in codings[left + 1 :]:
                problem = ""  # It is named twice, as by a server and a proxy, and was applied once.
            # A cut reply ends early by definition, which the reply shows itself.
            if problem and not error and not (problem.endswith(_ENDS_EARLY) and (reply.truncated or truncated)):
                error = problem
            if not whole:
                truncated = "length"
            if not left and len(codings) < _CODINGS_MAX and _is_gzip_text(reply.media_type, body):
                codings.insert(0, "gzip")
                left = 1
        return Content(body, truncated, error)


def _is_gzip_text(media_type: str, content: bytes) -> bool:
    """Return whether content of a text type is gzip: a server compressed it twice, or names no coding."""
    is_text = media_type.startswith("text/") or media_type.endswith(("xml", "json"))
    return is_text and content.startswith(STREAMS["gzip"][1])


def _begun(reply: Reply) -> bytes:
    if reply.file is None:
        return reply.body
    with reply.file.open() as reader:
        return reader.read(BEGINNING_BYTES)


def content_codings(headers: tuple[tuple[str, str], ...]) -> list[str]:
    """Return the codings in the order they were applied, lower case, without quotes and parameters. Identity and empty
    ones are left out, and unknown ones beside known ones: servers write charsets and own labels there (`gzip, utf-8`).
    """
    if "content-encoding" not in first_values(headers):
        return []
    value = ",".join(value for name, value in headers if lower_names[name] == "content-encoding")
    codings = [coding.partition(";")[0].strip(_AROUND).lower() for coding in value.split(",")]
    known = [coding for coding in codings if coding in KNOWN]
    return known or [coding for coding in codings if coding not in ("", "identity", "none")]


def is_complete(codings: Sequence[str], body: bytes) -> bool:
    """Return whether a body has the last of `codings`, and ends as that coding requires."""
    coding = coding_of(codings[-1], body)
    return coding in KNOWN and _remove(coding, body, _COMPLETE_BYTES_MAX)[1:] == (True, "")


def beginning(codings: Sequence[str], body: bytes) -> bytes:
    """Return the beginning of the content of a coded body, as far as it can be decoded."""
    body = body[:BEGINNING_BYTES]
    for label in reversed(codings[-_CODINGS_MAX:]):
        coding = coding_of(label, body)
        if coding not in KNOWN:
            break
        body = _remove(coding, body, BEGINNING_BYTES)[0]
    return body


def _remove(coding: str, body: bytes, limit: int) -> tuple[bytes, bool, str]:
    """Remove one coding; return the content cut at `limit`, whether it is complete, and the error."""
    if coding == "deflate":
        return _deflate(body, limit)
    magics = STREAMS[coding][1]
    if not begins(magics, body):
        return body[:limit], len(body) <= limit, f"said to be {coding}, {_LEFT}"
    content, problem = _salvage(coding, body, limit)
    if problem and not content and not magics and not problem.endswith(_ENDS_EARLY):
        return body[:limit], len(body) <= limit, f"said to be {coding}, {_LEFT}"
    return content[:limit], len(content) <= limit, problem


def _deflate(body: bytes, limit: int) -> tuple[bytes, bool, str]:
    """Remove deflate: servers use this name for zlib (RFC 1950), as they should, and for raw deflate (RFC 1951)."""
    if is_zlib(body):
        content, whole, problem = _remove("zlib", body, limit)
        if not problem or content != body[:limit]:
            return content, whole, problem
    return _remove("raw deflate", body, limit)


def _salvage(coding: str, body: bytes, limit: int) -> tuple[bytes, str]:
    """Decode at once; after an error, again in pieces, and the broken piece byte by byte.

    After an error a library returns nothing for its last input, so the input is narrowed down: the result has
    everything that the library decodes from the bytes before the error (zstd decodes in blocks).
    """
    known = 0
    problem = ""
    content = b""
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
    """One pass over a coded body. If a stream raises, `pieces` has the content of the first `fed` bytes."""

    def __init__(self, limit: int) -> None:
        self.pieces: list[bytes] = []
        self.fed = 0
        self._room = limit + 1

    def run(self, coding: str, body: bytes, known: int, step: int) -> str:
        """Decode in pieces of `step` bytes, after the first `known` bytes at once; return the error."""
        open_stream, magics = STREAMS[coding]
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
            if not magics or not body.startswith(magics, self.fed):
                return ""
        return f"more than {_MEMBERS_MAX} {coding} members"
