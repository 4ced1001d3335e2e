"""Farm: endless subdomains of one site, at the host's own address, no two alike (wildcard DNS)."""

from __future__ import annotations

import re

from gossamer.lab.simweb.answers import Made
from gossamer.lab.simweb.sheet import Place, Sheet, hash_of

AT = "/farm/"
INNER = "/more.html"
LINKS = 5
_NAME = re.compile(r"(?:[a-z0-9-]+\.)*farm(\d{4,6})\.test")
_LABELS = ("shop", "deals", "blog", "news", "city", "tips", "best", "free")


def site(index: int) -> str:
    """Return the registrable domain of a host's farm."""
    return f"farm{index:04d}.test"


def owner(name: str) -> int | None:
    """Return the index of the host whose farm a name belongs to; None for a name of no farm."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found is not None and site(int(found[1])) == name[found.start(1) - 4 :] else None


def pages(place: Place) -> dict[str, Made]:
    """Return the corner: an index from which one link leads into the farm."""
    entry = f"http://www.{site(place.host.index)}{place.port}/"
    return {AT: Sheet(place, AT, "Farm").anchor(entry, entry).made()}


def endless(place: Place, path: str) -> Made | None:
    """Return a page of a farm: a front page or the one below it. Both link to hosts that no other page names."""
    if path not in ("/", INNER):
        return None
    name, index = place.host.name, place.host.index
    sheet = Sheet(place, path, "Offers", about=("farm", name, path))
    for turn in range(LINKS):
        code = hash_of(name, path, turn)
        url = f"http://{_LABELS[code % len(_LABELS)]}-{code:08x}.{site(index)}{place.port}/"
        sheet.anchor(url, url)
    if path == "/":
        sheet.anchor(INNER)
    return sheet.made()
