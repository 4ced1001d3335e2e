"""Traps: spaces without end. Their pages are in no truth; a crawl is judged by how few of them it fetches."""

from __future__ import annotations

import re

from gossamer.simweb.answers import Made
from gossamer.simweb.sheet import Place, Sheet, hash_of

AT = "/traps/"
DEEP_BYTES_MAX = 7_000
_MONTH = re.compile(r"/traps/calendar/(\d{4,6})/(\d\d)/")
_SESSION = re.compile(r"/traps/session/([0-9a-f]{8})/(\d{1,2})\.html")
_DEEP = re.compile(r"/traps/deep/((?:more/|again/)*)")


def pages(place: Place) -> dict[str, Made]:
    """Return the entry; the rest is made by `endless`."""
    sheet = Sheet(place, AT, "Traps")
    return {
        AT: sheet.anchor(f"{AT}calendar/2024/01/").anchor(f"{AT}session/00000000/1.html").anchor(f"{AT}deep/").made()
    }


def endless(place: Place, path: str) -> Made | None:
    """Return a page of a trap: each leads to others that nobody has seen."""
    if month := _MONTH.fullmatch(path):
        return _calendar(place, path, int(month[1]), int(month[2]))
    if session := _SESSION.fullmatch(path):
        return _session(place, path, session[1])
    if deep := _DEEP.fullmatch(path):
        return _deep(place, path, len(deep[1]))
    return None


def _calendar(place: Place, path: str, year: int, month: int) -> Made | None:
    if not 1 <= month <= 12 or year > 900_000:
        return None
    sheet = Sheet(place, path, f"{year}-{month:02d}")
    for step in (-1, 1, 12):
        months = year * 12 + month - 1 + step
        sheet.anchor(f"{AT}calendar/{months // 12:04d}/{months % 12 + 1:02d}/")
    return sheet.made()


def _session(place: Place, path: str, session: str) -> Made:
    sheet = Sheet(place, path, "Welcome")
    for page in range(1, 6):
        # A new session for each view, as shops do for visitors without cookies.
        fresh = hash_of(place.host.index, session, path, page)
        sheet.anchor(f"{AT}session/{fresh:08x}/{page}.html")
    return sheet.made()


def _deep(place: Place, path: str, length: int) -> Made:
    sheet = Sheet(place, path, "Deeper")
    # Beyond a length that servers take (8 KB are common), the address itself ends it.
    for name in ("more/", "again/") if length < DEEP_BYTES_MAX else ():
        sheet.anchor(name, f"{place.origin}{path}{name}")
    return sheet.made()
