"""Embeds: what a page needs to be shown, named in every way, some of it by style sheets alone."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Answer, Made, Mark
from gossamer.lab.simweb.corners.types import GIF
from gossamer.lab.simweb.sheet import Place, Sheet

AT = "/embeds/"
MAIN_CSS = (
    f'@import "{AT}more.css";\nbody {{ background: url({AT}ground.gif) }}\n@font-face {{ src: url("font.woff2") }}\n'
)
FILES = {
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


def pages(place: Place) -> dict[str, Made]:
    """Return the corner: one page, and all that it is shown with."""
    found = {AT + name: _file(*file) for name, file in FILES.items()}
    css = [_embed(place, name) for name in ("more.css", "ground.gif", "font.woff2")]
    found[f"{AT}main.css"] = Made((Answer(200, (("Content-Type", "text/css"),), MAIN_CSS.encode()),), tuple(css))
    sheet = Sheet(place, AT, "Embeds")
    sheet.head('<link rel="stylesheet" href="main.css">', _embed(place, "main.css"))
    sheet.head('<style>@import url("print.css");</style>', _embed(place, "print.css"))
    sheet.tag('<img src="plain.gif" srcset="small.gif 1x, large.gif 2x" alt="">', _embed(place, "plain.gif"))
    sheet.tag("", _embed(place, "small.gif"), _embed(place, "large.gif"))
    sheet.tag('<script src="app.js"></script>', _embed(place, "app.js"))
    sheet.tag('<video src="film.mp4"></video>', _embed(place, "film.mp4"))
    sheet.tag('<div style="background: url(inline.gif)"></div>', _embed(place, "inline.gif"))
    return found | {AT: sheet.made()}


def _embed(place: Place, name: str) -> Mark:
    # A crawl that does not fetch embeds need not record them either.
    return Mark(f"{place.origin}{AT}{name}", "embed", optional=True)


def _file(media_type: str, body: bytes) -> Made:
    return Made((Answer(200, (("Content-Type", media_type),), body),))
