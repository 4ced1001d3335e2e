"""Frames: every way to name another page: frames, areas, base, refresh, link elements and headers, odd markup."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Made, Mark
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/frames/"


def pages(place: Place) -> dict[str, Made]:
    """Return the corner: `to-…` must be reached; `only-…` is named by what is recorded but not followed."""
    found = {
        f"{AT}frameset": _frameset(place),
        f"{AT}inline": _inline(place),
        f"{AT}base": _based(place),
        f"{AT}refresh": _refresh(place),
        f"{AT}relations": _relations(place),
        f"{AT}markup": _markup(place),
        f"{AT}schemes": _schemes(place),
    }
    index = Sheet(place, AT, "Frames")
    for path in found:
        index.anchor(path)
    leaves = {mark.url.removeprefix(place.origin) for made in found.values() for mark in made.marks}
    found |= {path: leaf(place, path) for path in sorted(leaves) if path.startswith(AT) and path not in found}
    found[AT] = index.made()
    return found


def _to(place: Place, name: str, link_type: str = "anchor", *, optional: bool = False) -> Mark:
    return Mark(f"{place.origin}{AT}{name}.html", link_type, optional=optional)


def _frameset(place: Place) -> Made:
    sheet = Sheet(place, f"{AT}frameset")
    html = (
        f"<!DOCTYPE html><html><head><title>Frames at {place.host.name}</title></head>"
        f'<frameset cols="*,*"><frame src="to-frame-1.html"><FRAME SRC={AT}to-frame-2.html></frameset></html>\n'
    )
    sheet.tag("", _to(place, "to-frame-1", "frame"), _to(place, "to-frame-2", "frame"))
    return sheet.sent(html.encode())


def _inline(place: Place) -> Made:
    sheet = Sheet(place, f"{AT}inline")
    sheet.tag(f'<iframe src="{AT}to-iframe.html"></iframe>', _to(place, "to-iframe", "iframe"))
    area = '<map name="m"><area shape=rect coords="0,0,9,9" href="./to-area.html" alt="area"></map>'
    return sheet.tag(area, _to(place, "to-area", "area")).made()


def _based(place: Place) -> Made:
    sheet = Sheet(place, f"{AT}base").head(f'<base href="{AT}under/"><base href="/second/is/ignored/">')
    sheet.tag('<p><a href="to-base.html">below the base</a></p>', _to(place, "under/to-base"))
    sheet.tag('<p><a href="../to-base-up.html">beside it</a></p>', _to(place, "to-base-up"))
    return sheet.tag('<p><a href="?page=2">the base itself</a></p>', Mark(f"{place.origin}{AT}under/?page=2")).made()


def _refresh(place: Place) -> Made:
    head = f'<meta http-equiv="Refresh" content="0; URL=\'{AT}to-refresh.html\'">'
    return Sheet(place, f"{AT}refresh").head(head, _to(place, "to-refresh", "meta_refresh")).made()


def _relations(place: Place) -> Made:
    sheet = Sheet(place, f"{AT}relations")
    for rel in ("next", "prev", "canonical", "alternate"):
        sheet.head(f'<link rel="{rel}" href="{AT}only-{rel}.html">', _to(place, f"only-{rel}", rel))
    header = f'<{AT}only-header-next.html>; rel="next"'
    sheet.head("", _to(place, "only-header-next", "next"))
    return sheet.made(headers=(("Link", header),))


def _markup(place: Place) -> Made:
    sheet = Sheet(place, f"{AT}markup")
    sheet.tag(f"<P><A\tHREF = '{AT}to-spaces.html' >spaces</A>", _to(place, "to-spaces"))
    sheet.tag(f"<a href={AT}to-unquoted.html>unquoted", _to(place, "to-unquoted"))
    sheet.tag('<a href="/frames/to&#45;entity.html">entity</a>', _to(place, "to-entity"))
    sheet.tag(f'<a href="{AT}to-first.html" href="{AT}bait.html">the first attribute holds</a>', _to(place, "to-first"))
    sheet.tag('<b><a href="\\frames\\to-backslash.html">backslash</b></a>', _to(place, "to-backslash"))
    sheet.tag('<a href="/frames/to-\nnew\tline.html">line</a>', _to(place, "to-newline"))
    sheet.tag('<a name="nowhere">no link</a><a href="">here</a>', Mark(f"{place.origin}{AT}markup", optional=True))
    sheet.tag(f'<textarea><a href="{AT}bait.html">no link</a></textarea>')
    query = Mark(f"{place.origin}{AT}search?q=a&copy=2")
    return sheet.tag(f'<a href="{AT}search?q=a&amp;copy=2">query</a>', query).made()


def _schemes(place: Place) -> Made:
    sheet = Sheet(place, f"{AT}schemes")
    for href in ("mailto:me@example.org", "javascript:void(0)", "tel:+123", "data:text/html,hello"):
        sheet.tag(f'<a href="{href}">no page</a> ', Mark(href, optional=True))
    sheet.tag('<a href="http://">no host</a> <a href="http://a b/">no name</a>')
    return sheet.anchor(f"{AT}to-after-schemes.html").made()
