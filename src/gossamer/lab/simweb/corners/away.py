"""Away: links to names that do not exist and to an address where nobody listens."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Made
from gossamer.lab.simweb.sheet import Place, Sheet

AT = "/away/"


def nameless(index: int) -> str:
    """Return a name that no resolver knows."""
    return f"nx{index:04d}.nowhere.test"


def closed(index: int) -> str:
    """Return a name whose address refuses connections."""
    return f"closed{index:04d}.nobody.test"


def pages(place: Place) -> dict[str, Made]:
    """Return the corner."""
    index = place.host.index
    sheet = Sheet(place, AT, "Away")
    for name in (nameless(index), closed(index)):
        url = f"http://{name}{place.port}/"
        sheet.anchor(url, url)
    return {AT: sheet.made()}
