"""Bodies: content codings right and broken, framings, and more bytes than anybody wants."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache

import brotli
import zstandard
from isal import isal_zlib

from gossamer.lab.simweb.answers import HTML, Answer, Headers, Made, Manner
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/bodies/"
BLOCK = b"<p>More of the same, and no end to it in sight, since nobody asked how much it was to be.</p>\n" * 640


def _gzip(body: bytes) -> bytes:
    packer = isal_zlib.compressobj(1, isal_zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()


def _brotli(body: bytes) -> bytes:
    packed: bytes = brotli.compress(body, quality=4)  # type: ignore[no-untyped-call]
    return packed


def _raw_deflate(body: bytes) -> bytes:
    # Servers send this too, against RFC 9110, section 8.4.1.2; clients take both.
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


CODINGS: tuple[tuple[str, str, Callable[[bytes], bytes]], ...] = (
    ("gzip", "gzip", _gzip),
    ("x-gzip", "x-gzip", _gzip),
    ("deflate", "deflate", zlib.compress),
    ("raw-deflate", "deflate", _raw_deflate),
    ("br", "br", _brotli),
    ("zstd", "zstd", zstandard.ZstdCompressor(level=1).compress),
    ("gzip-in-gzip", "gzip, gzip", lambda body: _gzip(_gzip(body))),
)


def pages(place: Place) -> dict[str, Made]:
    """Return the corner. Each readable page has a link of its own: who finds it has read the page."""
    found: dict[str, Made] = {}
    for name, coding, encode in CODINGS:
        sheet = _proving(place, name)
        found[AT + name] = sheet.sent(encode(sheet.html().encode()), headers=(("Content-Encoding", coding),))
    framings: tuple[tuple[Manner, str], ...] = (("chunked", "chunked"), ("until_close", "until-close"))
    for manner, name in framings:
        sheet = _proving(place, name)
        found[AT + name] = Made((Answer(200, HTML, sheet.html().encode(), manner),), sheet.marks)
    found |= {f"{AT}proof-{path.removeprefix(AT)}.html": leaf(place, f"{AT}proof-{path}") for path in list(found)}
    found |= _bad(place)
    index = Sheet(place, AT, "Bodies")
    for path in found:
        if not path.startswith(f"{AT}proof-"):
            index.anchor(path)
    found[AT] = index.made()
    return found


def _proving(place: Place, name: str) -> Sheet:
    return Sheet(place, AT + name).anchor(f"{AT}proof-{name}.html")


def _bad(place: Place) -> dict[str, Made]:
    gzip: Headers = (*HTML, ("Content-Encoding", "gzip"))
    whole = _gzip(Sheet(place, f"{AT}broken-gzip").html().encode())
    half = len(whole) // 2
    broken = whole[:half] + bytes(byte ^ 0x5A for byte in whole[half:])
    return {
        f"{AT}broken-gzip": Made((Answer(200, gzip, broken),), also=("protocol_error",)),
        f"{AT}cut-gzip": Made((Answer(200, gzip, whole[:half]),), also=("protocol_error",)),
        f"{AT}not-gzip": Made((Answer(200, gzip, b"<p>Plain after all.</p>\n"),), also=("protocol_error",)),
        f"{AT}bomb": Made((Answer(200, gzip, _bomb(place.options.bomb_bytes)),), also=("too_large", "protocol_error")),
        f"{AT}oversized": _oversized(place.options.oversized_bytes),
        f"{AT}nothing": Made((Answer(200, HTML, b""),)),
    }


def _oversized(body_bytes: int) -> Made:
    return Made((Answer(200, HTML, BLOCK[:body_bytes], body_bytes=body_bytes),), also=("too_large",))


@lru_cache(maxsize=4)
def _bomb(body_bytes: int) -> bytes:
    packer = isal_zlib.compressobj(1, isal_zlib.DEFLATED, 31)
    block = b" " * 1_000_000
    pieces = [packer.compress(block[: min(len(block), body_bytes - at)]) for at in range(0, body_bytes, len(block))]
    return b"".join((*pieces, packer.flush()))
