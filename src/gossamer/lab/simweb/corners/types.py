"""Types: what is not HTML, what says it is not, and what says nothing."""

from __future__ import annotations

import struct
import zlib

from gossamer.lab.simweb.answers import Answer, Made
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/types/"
GIF = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
NOT_HTML = ("unsupported", "excluded")
"""A crawl may leave alone what it cannot read."""


def pages(place: Place) -> dict[str, Made]:
    """Return the corner. Links in what is no HTML are bait: they lead to pages that do not exist."""
    bait = f'<a href="{AT}bait.html">bait</a>'
    text = place.some(8, "types")
    typed = {
        "image.png": ("image/png", _png(place.host.index & 255)),
        "image.gif": ("image/gif", GIF),
        "paper.pdf": ("application/pdf", f"%PDF-1.4\n% {text}\n{bait}\ntrailer <<>>\n%%EOF\n".encode()),
        "style.css": ("text/css", b"body { color: #333 }\n"),
        "notes.txt": ("text/plain; charset=utf-8", f"{text}\n{bait}\n".encode()),
        "data.json": ("application/json", f'{{"html": "{bait.replace(chr(34), chr(39))}"}}\n'.encode()),
        "blob": ("application/octet-stream", bytes(range(256)) * 16),
    }  # fmt: skip
    found = {
        AT + name: Made((Answer(200, (("Content-Type", media_type),), body),), also=NOT_HTML)
        for name, (media_type, body) in typed.items()
    }
    xhtml = Sheet(place, f"{AT}page.xhtml").anchor(f"{AT}from-xhtml.html", optional=True)
    found[f"{AT}page.xhtml"] = xhtml.sent(xhtml.html().encode(), "application/xhtml+xml", also=NOT_HTML)
    unsaid = Sheet(place, f"{AT}unsaid").anchor(f"{AT}from-unsaid.html", optional=True)
    found[f"{AT}unsaid"] = unsaid.sent(unsaid.html().encode(), "", also=NOT_HTML)
    odd = Sheet(place, f"{AT}odd-type").anchor(f"{AT}from-odd-type.html")
    found[f"{AT}odd-type"] = odd.sent(odd.html().encode(), "TEXT/HTML ;Charset=utf-8")
    index = Sheet(place, AT, "Types")
    for path in found:
        index.anchor(path)
    for name in ("from-xhtml.html", "from-unsaid.html", "from-odd-type.html"):
        found[AT + name] = leaf(place, AT + name)
    found[AT] = index.made()
    return found


def _png(shade: int) -> bytes:
    """Return a grey picture of 8 by 8."""
    rows = (b"\x00" + bytes((shade,)) * 8) * 8
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    pieces = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)
