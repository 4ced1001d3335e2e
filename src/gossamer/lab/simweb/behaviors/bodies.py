"""Bodies: content codings, framings, charsets, media types, embeds, and pages that are expensive to read."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import lru_cache

import brotli
import zstandard
from isal import isal_zlib

from gossamer.lab.simweb.sheet import HTML, Headers, Made, Manner, Mark, PagePlace, ServedAnswer, Sheet, leaf

# Content codings right and broken, framings, and too many bytes.

BODIES = "/bodies/"
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


def bodies(place: PagePlace) -> dict[str, Made]:
    """Return the pages. Each readable page has a link of its own: a crawl that finds it has read the page."""
    found: dict[str, Made] = {}
    for name, coding, encode in CODINGS:
        sheet = _proving(place, name)
        found[BODIES + name] = sheet.sent(encode(sheet.html().encode()), headers=(("Content-Encoding", coding),))
    framings: tuple[tuple[Manner, str], ...] = (("chunked", "chunked"), ("until_close", "until-close"))
    for manner, name in framings:
        sheet = _proving(place, name)
        found[BODIES + name] = Made((ServedAnswer(200, HTML, sheet.html().encode(), manner),), sheet.marks)
    found |= {
        f"{BODIES}proof-{path.removeprefix(BODIES)}.html": leaf(place, f"{BODIES}proof-{path}") for path in list(found)
    }
    found |= _bad(place)
    index = Sheet(place, BODIES, "Bodies")
    for path in found:
        if not path.startswith(f"{BODIES}proof-"):
            index.anchor(path)
    found[BODIES] = index.made()
    return found


def _proving(place: PagePlace, name: str) -> Sheet:
    return Sheet(place, BODIES + name).anchor(f"{BODIES}proof-{name}.html")


def _bad(place: PagePlace) -> dict[str, Made]:
    gzip: Headers = (*HTML, ("Content-Encoding", "gzip"))
    whole = _gzip(Sheet(place, f"{BODIES}broken-gzip").html().encode())
    half = len(whole) // 2
    broken = whole[:half] + bytes(byte ^ 0x5A for byte in whole[half:])
    return {
        f"{BODIES}broken-gzip": Made((ServedAnswer(200, gzip, broken),), also=("protocol_error",)),
        f"{BODIES}cut-gzip": Made((ServedAnswer(200, gzip, whole[:half]),), also=("protocol_error",)),
        f"{BODIES}not-gzip": Made((ServedAnswer(200, gzip, b"<p>Plain after all.</p>\n"),), also=("protocol_error",)),
        f"{BODIES}bomb": Made(
            (ServedAnswer(200, gzip, _spaces(place.options.bomb_bytes)),), also=("too_large", "protocol_error")
        ),
        f"{BODIES}oversized": _oversized(place.options.oversized_bytes),
        f"{BODIES}nothing": Made((ServedAnswer(200, HTML, b""),)),
    }


def _oversized(body_bytes: int) -> Made:
    return Made((ServedAnswer(200, HTML, BLOCK[:body_bytes], body_bytes=body_bytes),), also=("too_large",))


@lru_cache(maxsize=4)
def _spaces(body_bytes: int) -> bytes:
    packer = isal_zlib.compressobj(1, isal_zlib.DEFLATED, 31)
    block = b" " * 1_000_000
    pieces = [packer.compress(block[: min(len(block), body_bytes - at)]) for at in range(0, body_bytes, len(block))]
    return b"".join((*pieces, packer.flush()))


# Pages in many encodings, declared in many places; their links need the right one.

CHARSETS = "/charsets/"
CYRILLIC = "паутина"
CYRILLIC_ESCAPED = "%D0%BF%D0%B0%D1%83%D1%82%D0%B8%D0%BD%D0%B0"
LATIN, LATIN_ESCAPED = "café", "caf%C3%A9"
JAPANESE, JAPANESE_ESCAPED = "蜘蛛", "%E8%9C%98%E8%9B%9B"

CHARSET_PAGES = (
    # name, codec, Content-Type, charset in a meta element, text, the text in a path as UTF-8
    ("utf8-header", "utf-8", "text/html; charset=UTF-8", "", CYRILLIC, CYRILLIC_ESCAPED),
    ("utf8-meta", "utf-8", "text/html", "utf-8", CYRILLIC, CYRILLIC_ESCAPED),
    ("utf8-bom", "utf-8-sig", "text/html; charset=windows-1251", "", CYRILLIC, CYRILLIC_ESCAPED),
    ("utf16-bom", "utf-16", "text/html", "", CYRILLIC, CYRILLIC_ESCAPED),
    ("utf16be-header", "utf-16-be", "text/html; charset=utf-16be", "", CYRILLIC, CYRILLIC_ESCAPED),
    ("1251-header", "cp1251", 'text/html; charset="windows-1251"', "", CYRILLIC, CYRILLIC_ESCAPED),
    ("1251-meta", "cp1251", "text/html", "windows-1251", CYRILLIC, CYRILLIC_ESCAPED),
    ("1251-both", "cp1251", "text/html; charset=windows-1251", "utf-8", CYRILLIC, CYRILLIC_ESCAPED),
    ("koi8-meta", "koi8-r", "text/html", "koi8-r", CYRILLIC, CYRILLIC_ESCAPED),
    ("latin1-header", "cp1252", "text/html; charset=ISO-8859-1", "", LATIN, LATIN_ESCAPED),
    ("sjis-header", "shift_jis", "text/html; charset=Shift_JIS", "", JAPANESE, JAPANESE_ESCAPED),
    ("eucjp-meta", "euc_jp", "text/html", "euc-jp", JAPANESE, JAPANESE_ESCAPED),
)


def charsets(place: PagePlace) -> dict[str, Made]:
    """Return the pages. A path is UTF-8 in a URL, in any encoding of the page, so a wrong guess leads astray."""
    found: dict[str, Made] = {}
    index = Sheet(place, CHARSETS, "Charsets")
    for name, codec, media_type, meta, text, escaped in CHARSET_PAGES:
        path, written, asked = (
            CHARSETS + name,
            f"{CHARSETS}{name}/{text}.html",
            f"{CHARSETS}{name}/{escaped}.html",
        )
        sheet = Sheet(place, path, f"{text} {name}")
        sheet.tag(f'<p><a href="{written}">{text}</a></p>', Mark(place.origin + asked, text=text))
        body = sheet.html(meta, declare=bool(meta)).encode(codec)
        found[path] = sheet.sent(body, media_type)
        found[asked] = leaf(place, asked)
        index.anchor(path)
    found[CHARSETS] = index.made()
    return found


# What is not HTML, what says it is not, and what says nothing.

TYPES = "/types/"
GIF = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
NOT_HTML = ("unsupported", "excluded")
"""A crawl may leave alone what it cannot read."""


def types(place: PagePlace) -> dict[str, Made]:
    """Return the pages. Links in what is no HTML are bait: they lead to pages that do not exist."""
    bait = f'<a href="{TYPES}bait.html">bait</a>'
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
        TYPES + name: Made((ServedAnswer(200, (("Content-Type", media_type),), body),), also=NOT_HTML)
        for name, (media_type, body) in typed.items()
    }
    xhtml = Sheet(place, f"{TYPES}page.xhtml").anchor(f"{TYPES}from-xhtml.html", optional=True)
    found[f"{TYPES}page.xhtml"] = xhtml.sent(xhtml.html().encode(), "application/xhtml+xml", also=NOT_HTML)
    unsaid = Sheet(place, f"{TYPES}unsaid").anchor(f"{TYPES}from-unsaid.html", optional=True)
    found[f"{TYPES}unsaid"] = unsaid.sent(unsaid.html().encode(), "", also=NOT_HTML)
    odd = Sheet(place, f"{TYPES}odd-type").anchor(f"{TYPES}from-odd-type.html")
    found[f"{TYPES}odd-type"] = odd.sent(odd.html().encode(), "TEXT/HTML ;Charset=utf-8")
    index = Sheet(place, TYPES, "Types")
    for path in found:
        index.anchor(path)
    for name in ("from-xhtml.html", "from-unsaid.html", "from-odd-type.html"):
        found[TYPES + name] = leaf(place, TYPES + name)
    found[TYPES] = index.made()
    return found


def _png(shade: int) -> bytes:
    """Return a grey picture of 8 by 8."""
    rows = (b"\x00" + bytes((shade,)) * 8) * 8
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    pieces = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)


# What a page needs to be shown, named in every way, some of it by style sheets alone.

EMBEDS = "/embeds/"
MAIN_CSS = (
    f'@import "{EMBEDS}more.css";\nbody {{ background: url({EMBEDS}ground.gif) }}\n'
    '@font-face { src: url("font.woff2") }\n'
)
EMBEDDED_FILES = {
    "plain.gif": ("image/gif", GIF),
    "small.gif": ("image/gif", GIF + b"1"),
    "large.gif": ("image/gif", GIF + b"2"),
    "app.js": ("text/javascript", b"document.title += '!';\n"),
    "film.mp4": ("video/mp4", b"\0\0\0\x18ftypmp42" * 8),
    "inline.gif": ("image/gif", GIF + b"3"),
    "print.css": ("text/css", b"body { color: black }\n"),
    "more.css": ("text/css", b"p { color: grey }\n"),
    "ground.gif": ("image/gif", GIF + b"4"),
    "font.woff2": ("font/woff2", b"wOF2" * 16),
}


def embeds(place: PagePlace) -> dict[str, Made]:
    """Return the pages: one page, and all that it is shown with."""
    found = {EMBEDS + name: _file(*file) for name, file in EMBEDDED_FILES.items()}
    css = [_embed(place, name) for name in ("more.css", "ground.gif", "font.woff2")]
    found[f"{EMBEDS}main.css"] = Made(
        (ServedAnswer(200, (("Content-Type", "text/css"),), MAIN_CSS.encode()),), tuple(css)
    )
    sheet = Sheet(place, EMBEDS, "Embeds")
    sheet.head('<link rel="stylesheet" href="main.css">', _embed(place, "main.css"))
    sheet.head('<style>@import url("print.css");</style>', _embed(place, "print.css"))
    sheet.tag('<img src="plain.gif" srcset="small.gif 1x, large.gif 2x" alt="">', _embed(place, "plain.gif"))
    sheet.tag("", _embed(place, "small.gif"), _embed(place, "large.gif"))
    sheet.tag('<script src="app.js"></script>', _embed(place, "app.js"))
    sheet.tag('<video src="film.mp4"></video>', _embed(place, "film.mp4"))
    sheet.tag('<div style="background: url(inline.gif)"></div>', _embed(place, "inline.gif"))
    return found | {EMBEDS: sheet.made()}


def _embed(place: PagePlace, name: str) -> Mark:
    # A crawl that does not fetch embeds need not record them either.
    return Mark(f"{place.origin}{EMBEDS}{name}", "embed", optional=True)


def _file(media_type: str, body: bytes) -> Made:
    return Made((ServedAnswer(200, (("Content-Type", media_type),), body),))


# Pages made to cost their reader time or memory. Each is readable, and has one link that proves it.

HOSTILE = "/hostile/"
NESTED_BYTES, ATTRIBUTE_BYTES = 200 << 10, 2 << 20
MANY_LINKS, MANY_PAGES = 100_000, 50
COMMENTS = 800_000
BOMB_BYTES = 10 << 30
"""What the bomb would decode to. Its checksum is wrong: no reader comes so far."""


def hostile(place: PagePlace) -> dict[str, Made]:
    """Return the pages."""
    index = Sheet(place, HOSTILE, "Hostile")
    found = {
        f"{HOSTILE}nested": _proved(place, "nested").tag("<div>" * (NESTED_BYTES // 5)).made(),
        f"{HOSTILE}attribute": _proved(place, "attribute").tag(f'<p title="{"x" * ATTRIBUTE_BYTES}">long</p>').made(),
        f"{HOSTILE}attributes": _proved(place, "attributes")
        .tag(f"<p {' '.join(map(_attribute, range(50_000)))}>")
        .made(),
        f"{HOSTILE}unclosed": _proved(place, "unclosed").tag("<a <b <i " * 20_000 + "<!-- " * 20_000).made(),
        f"{HOSTILE}comments": _proved(place, "comments").tag("<!-->" * COMMENTS).made(),
        f"{HOSTILE}links": _links(place),
    }
    proofs = {f"{path}.html": leaf(place, f"{path}.html") for path in found}
    bomb: Headers = (("Content-Type", "text/html"), ("Content-Encoding", "gzip"))
    found[f"{HOSTILE}bomb"] = Made((ServedAnswer(200, bomb, _zeros()),), also=("too_large", "protocol_error"))
    for path in found:
        index.anchor(path)
    found |= {
        f"{HOSTILE}many/{number}.html": leaf(place, f"{HOSTILE}many/{number}.html") for number in range(MANY_PAGES)
    }
    return found | proofs | {HOSTILE: index.made()}


def _proved(place: PagePlace, name: str) -> Sheet:
    return Sheet(place, HOSTILE + name).anchor(f"{HOSTILE}{name}.html")


def _attribute(number: int) -> str:
    return f"a{number}={number}"


def _links(place: PagePlace) -> Made:
    """A hundred thousand links to fifty pages."""
    sheet = _proved(place, "links")
    for number in range(MANY_PAGES):
        sheet.anchor(f"{HOSTILE}many/{number}.html")
    sheet.tag("".join(f'<a href="many/{number % MANY_PAGES}.html#{number}">.</a>' for number in range(MANY_LINKS)))
    return sheet.made()


@lru_cache(maxsize=1)
def _zeros() -> bytes:
    """Return ten megabytes of gzip: one flushed block of zeros, over and over."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    zeros = bytes(1 << 20)
    first = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return head + first + block * (BOMB_BYTES // len(zeros) - 1) + b"\x03\x00" + bytes(8)
