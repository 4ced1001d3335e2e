"""Directory: pages of host 0 that list all hosts, so that one seed reaches the whole web."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Made
from gossamer.lab.simweb.sheet import Place, Sheet

AT = "/directory/"
PER_PAGE = 50


def pages(place: Place) -> dict[str, Made]:
    """Return the corner: an index and lists of fifty hosts."""
    index = Sheet(place, AT, "Directory")
    found: dict[str, Made] = {}
    for first in range(0, len(place.hosts), PER_PAGE):
        path = f"{AT}{first // PER_PAGE}.html"
        sheet = Sheet(place, path, f"Hosts from {first}")
        for host in place.hosts[first : first + PER_PAGE]:
            sheet.anchor(place.front(host), place.front(host), text=host.name)
        found[path] = sheet.made()
        index.anchor(path)
    return found | {AT: index.made()}
