"""Spellings: one page written in many ways that are equivalent by RFC 3986; it is asked for once."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Made
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/spellings/"
PAGE = f"{AT}page~one.html"


def pages(place: Place) -> dict[str, Made]:
    """Return the corner."""
    index = Sheet(place, AT, "Spellings")
    to = place.origin + PAGE
    host = place.origin.removeprefix("http://")
    for href in (
        "page~one.html", "./page~one.html", "x/../page~one.html", f"{PAGE}#part", f"HTTP://{host.upper()}{PAGE}",
        f"//{host}{PAGE}", f"  {PAGE}\n", f"{AT}%2e/page~one.html", "\\spellings\\page~one.html",
    ):  # fmt: skip
        index.anchor(href, to)
    for written in (f"{AT}page%7Eone.html", f"{AT}page%7eone.html", f"{AT}p%61ge~one.html"):
        index.anchor(written, place.origin + written, key=to)
    page = leaf(place, PAGE)
    # A server that knows its own pages: each spelling that a client may ask for is this page.
    return {AT: index.made(), PAGE: page} | {
        f"{AT}{name}": Made(page.answers, links_optional=True)
        for name in ("page%7Eone.html", "page%7eone.html", "p%61ge~one.html")
    }
