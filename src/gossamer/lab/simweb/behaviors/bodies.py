"""Bodies: content codings, framings, charsets, media types, embeds, and pages that are expensive to read."""

import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import quote

import brotli
import zstandard
from isal import isal_zlib

from gossamer.lab.simweb.behaviors import read
from gossamer.lab.simweb.sheet import HTML, Headers, Made, Manner, Mark, PagePlace, ServedAnswer, Sheet, file_of

BLOCK = b"<p>More of the same, and no end to it in sight, since nobody asked how much it was to be.</p>\n" * 640


def _gzip(body: bytes) -> bytes:
    return isal_zlib.compress(body, 1, 31)


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


def bodies(place: PagePlace) -> dict[str, Made]:
    """Return content codings right and broken, framings, and too many bytes; a page that was read has its own link."""
    found: dict[str, Made] = {}
    for name, coding, encode in CODINGS:
        sheet = Sheet(place, name).anchors([f"proof-{name}.html"])
        found[name] = sheet.page_of_bytes(encode(sheet.html().encode()), headers=(("Content-Encoding", coding),))
    framings: tuple[tuple[Manner, str], ...] = (("chunked", "chunked"), ("until_close", "until-close"))
    for manner, name in framings:
        sheet = Sheet(place, name).anchors([f"proof-{name}.html"])
        found[name] = Made((ServedAnswer(200, HTML, sheet.html().encode(), manner),), sheet.marks)
    # The text of each depends on what it is the proof of.
    proofs = {f"proof-{name}.html": place.leaf(f"proof-{place.path(name)}") for name in found}
    found |= _bad(place)
    return found | proofs | place.index("Bodies", found)


def _bad(place: PagePlace) -> dict[str, Made]:
    gzip: Headers = (*HTML, ("Content-Encoding", "gzip"))
    whole = _gzip(Sheet(place, "broken-gzip").html().encode())
    half = len(whole) // 2
    bodies = {
        "broken-gzip": whole[:half] + bytes(byte ^ 0x5A for byte in whole[half:]),
        "cut-gzip": whole[:half],
        "not-gzip": b"<p>Plain after all.</p>\n",
    }
    found = {name: Made((ServedAnswer(200, gzip, body),), also=("protocol_error",)) for name, body in bodies.items()}
    bomb = ServedAnswer(200, gzip, _spaces(place.options.bomb_bytes))
    large_bytes = place.options.oversized_bytes
    return found | {
        "bomb": Made((bomb,), also=("too_large", "protocol_error")),
        "oversized": Made((ServedAnswer(200, HTML, BLOCK[:large_bytes], body_bytes=large_bytes),), also=("too_large",)),
        "nothing": Made((ServedAnswer(200, HTML, b""),)),
    }


@lru_cache(maxsize=4)
def _spaces(body_bytes: int) -> bytes:
    packer = isal_zlib.compressobj(1, isal_zlib.DEFLATED, 31)
    block = b" " * 1_000_000
    pieces = [packer.compress(block[: min(len(block), body_bytes - at)]) for at in range(0, body_bytes, len(block))]
    return b"".join((*pieces, packer.flush()))


CHARSET_PAGES = read("charsets.toml")


def charsets(place: PagePlace) -> dict[str, Made]:
    """Return pages in many encodings, declared in many places; a wrong guess leads to wrong paths."""
    found: dict[str, Made] = {}
    for name, (codec, media_type, meta, text) in CHARSET_PAGES.items():
        asked = f"{name}/{quote(text)}.html"
        sheet = Sheet(place, name, f"{text} {name}")
        href = place.path(f"{name}/{text}.html")
        sheet.tag(f'<p><a href="{href}">{text}</a></p>', Mark(place.url(asked), text=text))
        found[name] = sheet.page_of_bytes(sheet.html(meta, declare=bool(meta)).encode(codec), media_type)
        found[asked] = place.leaf(asked)
    return found | place.index("Charsets", CHARSET_PAGES)


GIF = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
NOT_HTML = ("unsupported", "excluded")
"""A crawl may leave alone what it cannot read."""


def types(place: PagePlace) -> dict[str, Made]:
    """Return files that are not HTML, whose links are bait, and pages with an odd media type or none."""
    bait = f'<a href="{place.path("bait.html")}">bait</a>'
    text = place.some(8, "types")
    files = {
        "image.png": ("image/png", _png(place.host.index & 255)),
        "image.gif": ("image/gif", GIF),
        "paper.pdf": ("application/pdf", f"%PDF-1.4\n% {text}\n{bait}\ntrailer <<>>\n%%EOF\n".encode()),
        "style.css": ("text/css", b"body { color: #333 }\n"),
        "notes.txt": ("text/plain; charset=utf-8", f"{text}\n{bait}\n".encode()),
        "data.json": ("application/json", f'{{"html": "{bait.replace(chr(34), chr(39))}"}}\n'.encode()),
        "blob": ("application/octet-stream", bytes(range(256)) * 16),
    }
    found = {name: file_of(*file, also=NOT_HTML) for name, file in files.items()}
    xhtml = Sheet(place, "page.xhtml").anchor(place.path("from-xhtml.html"), optional=True)
    found["page.xhtml"] = xhtml.page_of_bytes(xhtml.html().encode(), "application/xhtml+xml", also=NOT_HTML)
    unsaid = Sheet(place, "unsaid").anchor(place.path("from-unsaid.html"), optional=True)
    found["unsaid"] = unsaid.page_of_bytes(unsaid.html().encode(), "", also=NOT_HTML)
    odd = Sheet(place, "odd-type").anchors(["from-odd-type.html"])
    found["odd-type"] = odd.page_of_bytes(odd.html().encode(), "TEXT/HTML ;Charset=utf-8")
    proofs = place.leaves(("from-xhtml.html", "from-unsaid.html", "from-odd-type.html"))
    return found | proofs | place.index("Types", found)


def _png(shade: int) -> bytes:
    rows = (b"\x00" + bytes((shade,)) * 8) * 8
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    pieces = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)


MAIN_CSS = (
    b'@import "/embeds/more.css";\nbody { background: url(/embeds/ground.gif) }\n'
    b'@font-face { src: url("font.woff2") }\n'
)
_EMBEDS = read("embeds.toml")
EMBEDDED_FILES = {
    name: (kind, (GIF if kind == "image/gif" else b"") + text.encode() * times)
    for name, (kind, text, times) in _EMBEDS["files"].items()
}


def embeds(place: PagePlace) -> dict[str, Made]:
    """Return one page, and all that it needs to be shown, named in every way, some of it by style sheets alone."""

    def embed(name: str) -> Mark:
        # A crawl that does not fetch embeds need not record them either.
        return Mark(place.url(name), "embed", optional=True)

    found = {name: file_of(*file) for name, file in EMBEDDED_FILES.items()}
    found["main.css"] = file_of("text/css", MAIN_CSS, tuple(map(embed, ("more.css", "ground.gif", "font.woff2"))))
    sheet = Sheet(place, "", "Embeds")
    sheet.head('<link rel="stylesheet" href="main.css">', embed("main.css"))
    sheet.head('<style>@import url("print.css");</style>', embed("print.css"))
    for html, *names in _EMBEDS["tags"]:
        sheet.tag(html, *map(embed, names))
    return found | {"": sheet.page()}


NESTED_BYTES = 200 << 10
ATTRIBUTE_BYTES = 2 << 20
MANY_LINKS = 100_000
MANY_PAGES = 50
COMMENTS = 800_000
BOMB_BYTES = 10 << 30
"""Decoded size of the bomb. Its checksum is wrong: no reader comes so far."""


def hostile(place: PagePlace) -> dict[str, Made]:
    """Return readable pages made to cost their reader time or memory; all but a bomb have one link as proof."""
    costly = {
        "nested": "<div>" * (NESTED_BYTES // 5),
        "attribute": f'<p title="{"x" * ATTRIBUTE_BYTES}">long</p>',
        "attributes": f"<p {' '.join(f'a{number}={number}' for number in range(50_000))}>",
        "unclosed": "<a <b <i " * 20_000 + "<!-- " * 20_000,
        "comments": "<!-->" * COMMENTS,
    }
    many = [f"many/{number}.html" for number in range(MANY_PAGES)]
    found = {name: Sheet(place, name).anchors([f"{name}.html"]).tag(html).page() for name, html in costly.items()}
    links = "".join(f'<a href="{many[number % MANY_PAGES]}#{number}">.</a>' for number in range(MANY_LINKS))
    found["links"] = Sheet(place, "links").anchors(["links.html", *many]).tag(links).page()
    proofs = place.leaves([f"{name}.html" for name in found])
    bomb: Headers = (("Content-Type", "text/html"), ("Content-Encoding", "gzip"))
    found["bomb"] = Made((ServedAnswer(200, bomb, _zeros()),), also=("too_large", "protocol_error"))
    return found | proofs | place.leaves(many) | place.index("Hostile", found)


@lru_cache(maxsize=1)
def _zeros() -> bytes:
    """Return ten megabytes of gzip: one flushed block of zeros, over and over."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    zeros = bytes(1 << 20)
    first = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return head + first + block * (BOMB_BYTES // len(zeros) - 1) + b"\x03\x00" + bytes(8)
