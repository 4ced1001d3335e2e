"""Copies: one body under several addresses of a host."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Made
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/copies/"
NAMES = ("one.html", "two.html", "three/", "four?page=1", "four?page=2")


def pages(place: Place) -> dict[str, Made]:
    """Return the corner. The copies lead to the same pages, whichever of them is read."""
    copy = Sheet(place, AT, "Copies of one page").anchor(f"{AT}original.html").anchor("/").made()
    index = Sheet(place, AT, "Copies")
    for name in NAMES:
        index.anchor(AT + name)
    found = {AT: index.made(), f"{AT}original.html": leaf(place, f"{AT}original.html")}
    # A crawl may leave out the links of an exact copy on the same host.
    copy = Made(copy.answers, copy.marks, links_optional=True)
    return found | {AT + name: copy for name in NAMES}
