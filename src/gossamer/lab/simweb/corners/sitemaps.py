"""Sitemaps: pages that nothing but a sitemap names, in each of its forms; robots.txt names the index."""

from __future__ import annotations

import gzip

from gossamer.lab.simweb.answers import Answer, Made, Mark
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/sitemaps/"
INDEX = AT + "index.xml"
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
PAGES = 6
"""Pages of each sitemap."""


def pages(place: Place) -> dict[str, Made]:
    """Return the corner: an index of four sitemaps, what these name, and what they may not name."""
    origin = place.origin
    found = {AT: Sheet(place, AT, "Sitemaps").made()}
    for kind in ("plain", "packed", "text", "feed"):
        found |= {path: leaf(place, path) for path in _named(kind)}
    other = place.front(place.other())
    plain = [*(origin + path for path in _named("plain")), f"{other}sitemaps/stolen.html"]
    packed = gzip.compress(_urlset([origin + path for path in _named("packed")]), mtime=0)
    items = "".join(f"<item><link>{origin}{path}</link></item>" for path in _named("feed"))
    files = {
        "plain.xml": ("application/xml", _urlset(plain), "sitemap"),
        "packed.xml.gz": ("application/octet-stream", packed, "sitemap"),
        "list.txt": ("text/plain", "\n".join(origin + path for path in _named("text")).encode(), "sitemap"),
        "news.rss": ("application/rss+xml", f'<rss version="2.0"><channel>{items}</channel></rss>'.encode(), "feed"),
    }
    for name, (media_type, body, link_type) in files.items():
        kind = {"plain.xml": "plain", "packed.xml.gz": "packed", "list.txt": "text", "news.rss": "feed"}[name]
        marks = tuple(Mark(origin + path, link_type) for path in _named(kind))
        if kind == "plain":
            marks += (Mark(plain[-1], "alternate"),)  # Recorded, and not followed: it is another host's.
        found[AT + name] = Made((Answer(200, (("Content-Type", media_type),), body),), marks)
    entries = "".join(f"<sitemap><loc>{origin}{AT}{name}</loc></sitemap>" for name in files)
    index = f'<sitemapindex xmlns="{NAMESPACE}">{entries}</sitemapindex>'.encode()
    marks = tuple(Mark(f"{origin}{AT}{name}", "sitemap_file") for name in files)
    found[INDEX] = Made((Answer(200, (("Content-Type", "application/xml"),), index),), marks)
    return found


def _named(kind: str) -> list[str]:
    return [f"{AT}only-{kind}-{number}.html" for number in range(PAGES)]


def _urlset(urls: list[str]) -> bytes:
    entries = "".join(
        f"<url><loc>{url}</loc><lastmod>2026-0{1 + number % 9}-01</lastmod><changefreq>weekly</changefreq>"
        f"<priority>0.{1 + number % 9}</priority></url>\n"
        for number, url in enumerate(urls)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{NAMESPACE}">\n{entries}</urlset>\n'.encode()
