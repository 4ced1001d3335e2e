"""Lookalikes: what looks like a trap and is none. A crawl that cuts it off loses pages."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Made
from gossamer.lab.simweb.corners.traps import MONTHS
from gossamer.lab.simweb.sheet import Place, Sheet

AT = "/lookalikes/"
FIRST_YEAR, YEARS = 2016, 10
PRODUCTS, POSTS = 200, 150


def pages(place: Place) -> dict[str, Made]:
    """Return the corner: a calendar of ten years, a catalogue by numbers, a blog by dates with next and previous."""
    index = Sheet(place, AT, "Lookalikes")
    for name in (f"calendar/{FIRST_YEAR}/01/", "shop?page=1", "blog/2020/01/p1.html"):
        index.anchor(AT + name)
    return {AT: index.made()} | _calendar(place) | _catalogue(place) | _blog(place)


def _calendar(place: Place) -> dict[str, Made]:
    found = {}
    for month in range(12 * YEARS):
        path = _month(month)
        sheet = Sheet(place, path, f"{MONTHS[month % 12]} {FIRST_YEAR + month // 12}", about="calendar")
        for other in (month - 1, month + 1):
            if 0 <= other < 12 * YEARS:
                sheet.anchor(_month(other))
        found[path] = sheet.made()
    return found


def _month(month: int) -> str:
    return f"{AT}calendar/{FIRST_YEAR + month // 12}/{month % 12 + 1:02d}/"


def _catalogue(place: Place) -> dict[str, Made]:
    """Lists of ten, each naming the next; every product leads to three others."""
    found = {}
    for first in range(0, PRODUCTS, 10):
        page = first // 10 + 1
        sheet = Sheet(place, f"{AT}shop?page={page}", f"Products, page {page}")
        for number in range(first, first + 10):
            sheet.anchor(f"{AT}product/{number}")
        if first + 10 < PRODUCTS:
            sheet.anchor(f"{AT}shop?page={page + 1}")
        found[f"{AT}shop?page={page}"] = sheet.made()
    for number in range(PRODUCTS):
        sheet = Sheet(place, f"{AT}product/{number}", f"Product {number}")
        for other in (number + 1, 3 * number + 1, 7 * number + 5):
            sheet.anchor(f"{AT}product/{other % PRODUCTS}")
        found[f"{AT}product/{number}"] = sheet.made()
    return found


def _blog(place: Place) -> dict[str, Made]:
    paths = [f"{AT}blog/{2020 + n // 12 % 5}/{n % 12 + 1:02d}/p{n + 1}.html" for n in range(POSTS)]
    found = {}
    for number, path in enumerate(paths):
        sheet = Sheet(place, path, f"Post {number + 1}")
        for other in (number - 1, number + 1):
            if 0 <= other < POSTS:
                sheet.anchor(paths[other])
        found[path] = sheet.made()
    return found
