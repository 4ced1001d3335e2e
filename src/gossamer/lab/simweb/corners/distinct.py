"""Distinct: addresses that look alike and are different pages; a crawl that merges them loses some."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Made
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/distinct/"
NAMES = (
    "page.html", "Page.html", "PAGE.HTML", "dir", "dir/", "dir/index.html", "dir//index.html",
    "find?a=1&b=2", "find?b=2&a=1", "find?a=1&b=2&", "find?a=1", "find?A=1", "find?", "find",
    "a%2Fb", "a/b", "semi;v=1", "semi;v=2", "plus?q=a+b", "plus?q=a%20b",
)  # fmt: skip


def pages(place: Place) -> dict[str, Made]:
    """Return the corner."""
    index = Sheet(place, AT, "Distinct")
    for name in NAMES:
        index.anchor(AT + name)
    return {AT + name: leaf(place, AT + name) for name in NAMES} | {AT: index.made()}
