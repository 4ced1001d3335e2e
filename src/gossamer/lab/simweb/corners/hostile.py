"""Hostile: pages made to cost whoever reads them time or memory. Each is readable, and has one link that proves it."""

from __future__ import annotations

import zlib
from functools import lru_cache

from gossamer.lab.simweb.answers import Answer, Headers, Made
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/hostile/"
NESTED_BYTES, ATTRIBUTE_BYTES = 200 << 10, 2 << 20
LINKS, LINKED = 100_000, 50
BOMB_BYTES = 10 << 30
"""What the bomb would decode to. Its checksum is wrong: nobody comes so far."""


def pages(place: Place) -> dict[str, Made]:
    """Return the corner."""
    index = Sheet(place, AT, "Hostile")
    found = {
        f"{AT}nested": _proved(place, "nested").tag("<div>" * (NESTED_BYTES // 5)).made(),
        f"{AT}attribute": _proved(place, "attribute").tag(f'<p title="{"x" * ATTRIBUTE_BYTES}">long</p>').made(),
        f"{AT}attributes": _proved(place, "attributes").tag(f"<p {' '.join(map(_attribute, range(50_000)))}>").made(),
        f"{AT}unclosed": _proved(place, "unclosed").tag("<a <b <i " * 20_000 + "<!-- " * 20_000).made(),
        f"{AT}links": _links(place),
    }
    proofs = {f"{path}.html": leaf(place, f"{path}.html") for path in found}
    bomb: Headers = (("Content-Type", "text/html"), ("Content-Encoding", "gzip"))
    found[f"{AT}bomb"] = Made((Answer(200, bomb, _bomb()),), also=("too_large", "protocol_error"))
    for path in found:
        index.anchor(path)
    found |= {f"{AT}many/{number}.html": leaf(place, f"{AT}many/{number}.html") for number in range(LINKED)}
    return found | proofs | {AT: index.made()}


def _proved(place: Place, name: str) -> Sheet:
    return Sheet(place, AT + name).anchor(f"{AT}{name}.html")


def _attribute(number: int) -> str:
    return f"a{number}={number}"


def _links(place: Place) -> Made:
    """A hundred thousand links to fifty pages."""
    sheet = _proved(place, "links")
    for number in range(LINKED):
        sheet.anchor(f"{AT}many/{number}.html")
    sheet.tag("".join(f'<a href="many/{number % LINKED}.html#{number}">.</a>' for number in range(LINKS)))
    return sheet.made()


@lru_cache(maxsize=1)
def _bomb() -> bytes:
    """Return ten megabytes of gzip: one flushed block of zeros, over and over."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    zeros = bytes(1 << 20)
    first = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return head + first + block * (BOMB_BYTES // len(zeros) - 1) + b"\x03\x00" + bytes(8)
