"""Links: every way to name a page, to ask that a link be not followed, and to lead to nowhere."""

from __future__ import annotations

import gzip

from gossamer.lab.simweb.sheet import Headers, Made, Mark, PagePlace, ServedAnswer, Sheet, leaf

# Frames, areas, base, refresh, link elements and headers, odd markup.

FRAMES = "/frames/"


def frames(place: PagePlace) -> dict[str, Made]:
    """Return the pages: `to-…` must be reached; `only-…` is named by what is recorded but not followed."""
    found = {
        f"{FRAMES}frameset": _frameset(place),
        f"{FRAMES}inline": _inline(place),
        f"{FRAMES}base": _based(place),
        f"{FRAMES}refresh": _refresh(place),
        f"{FRAMES}relations": _relations(place),
        f"{FRAMES}markup": _markup(place),
        f"{FRAMES}schemes": _schemes(place),
    }
    index = Sheet(place, FRAMES, "Frames")
    for path in found:
        index.anchor(path)
    leaves = {mark.url.removeprefix(place.origin) for made in found.values() for mark in made.marks}
    found |= {path: leaf(place, path) for path in sorted(leaves) if path.startswith(FRAMES) and path not in found}
    found[FRAMES] = index.made()
    return found


def _to(place: PagePlace, name: str, link_type: str = "anchor") -> Mark:
    return Mark(f"{place.origin}{FRAMES}{name}.html", link_type)


def _frameset(place: PagePlace) -> Made:
    sheet = Sheet(place, f"{FRAMES}frameset")
    html = (
        f"<!DOCTYPE html><html><head><title>Frames at {place.host.name}</title></head>"
        f'<frameset cols="*,*"><frame src="to-frame-1.html"><FRAME SRC={FRAMES}to-frame-2.html></frameset></html>\n'
    )
    sheet.tag("", _to(place, "to-frame-1", "frame"), _to(place, "to-frame-2", "frame"))
    return sheet.sent(html.encode())


def _inline(place: PagePlace) -> Made:
    sheet = Sheet(place, f"{FRAMES}inline")
    sheet.tag(f'<iframe src="{FRAMES}to-iframe.html"></iframe>', _to(place, "to-iframe", "iframe"))
    area = '<map name="m"><area shape=rect coords="0,0,9,9" href="./to-area.html" alt="area"></map>'
    return sheet.tag(area, _to(place, "to-area", "area")).made()


def _based(place: PagePlace) -> Made:
    sheet = Sheet(place, f"{FRAMES}base").head(f'<base href="{FRAMES}under/"><base href="/second/is/ignored/">')
    sheet.tag('<p><a href="to-base.html">below the base</a></p>', _to(place, "under/to-base"))
    sheet.tag('<p><a href="../to-base-up.html">beside it</a></p>', _to(place, "to-base-up"))
    return sheet.tag(
        '<p><a href="?page=2">the base itself</a></p>', Mark(f"{place.origin}{FRAMES}under/?page=2")
    ).made()


def _refresh(place: PagePlace) -> Made:
    head = f'<meta http-equiv="Refresh" content="0; URL=\'{FRAMES}to-refresh.html\'">'
    return Sheet(place, f"{FRAMES}refresh").head(head, _to(place, "to-refresh", "meta_refresh")).made()


def _relations(place: PagePlace) -> Made:
    sheet = Sheet(place, f"{FRAMES}relations")
    for rel in ("next", "prev", "canonical", "alternate"):
        sheet.head(f'<link rel="{rel}" href="{FRAMES}only-{rel}.html">', _to(place, f"only-{rel}", rel))
    sheet.head(f'<link rel="contents" href="{FRAMES}only-contents.html">', _to(place, "only-contents", "related"))
    header = f'<{FRAMES}only-header-next.html>; rel="next"'
    sheet.head("", _to(place, "only-header-next", "next"))
    return sheet.made(headers=(("Link", header),))


def _markup(place: PagePlace) -> Made:
    sheet = Sheet(place, f"{FRAMES}markup")
    sheet.tag(f"<P><A\tHREF = '{FRAMES}to-spaces.html' >spaces</A>", _to(place, "to-spaces"))
    sheet.tag(f"<a href={FRAMES}to-unquoted.html>unquoted", _to(place, "to-unquoted"))
    sheet.tag('<a href="/frames/to&#45;entity.html">entity</a>', _to(place, "to-entity"))
    sheet.tag(
        f'<a href="{FRAMES}to-first.html" href="{FRAMES}bait.html">the first attribute holds</a>',
        _to(place, "to-first"),
    )
    sheet.tag('<b><a href="\\frames\\to-backslash.html">backslash</b></a>', _to(place, "to-backslash"))
    sheet.tag('<a href="/frames/to-\nnew\tline.html">line</a>', _to(place, "to-newline"))
    sheet.tag('<a name="nowhere">no link</a><a href="">here</a>', Mark(f"{place.origin}{FRAMES}markup", optional=True))
    sheet.tag(f'<textarea><a href="{FRAMES}bait.html">no link</a></textarea>')
    query = Mark(f"{place.origin}{FRAMES}search?q=a&copy=2")
    return sheet.tag(f'<a href="{FRAMES}search?q=a&amp;copy=2">query</a>', query).made()


def _schemes(place: PagePlace) -> Made:
    sheet = Sheet(place, f"{FRAMES}schemes")
    for href in ("mailto:me@example.org", "javascript:void(0)", "tel:+123", "data:text/html,hello"):
        sheet.tag(f'<a href="{href}">no page</a> ', Mark(href, optional=True))
    sheet.tag('<a href="http://">no host</a> <a href="http://a b/">no name</a>')
    return sheet.anchor(f"{FRAMES}to-after-schemes.html").made()


# Links and pages that ask not to be followed, in every way there is to ask.

NOFOLLOW = "/nofollow/"


def nofollow(place: PagePlace) -> dict[str, Made]:
    """Return the pages: `hidden-…` is reached by disobedience only, `open-…` must be reached."""
    agent = place.options.agent
    metas = {
        "meta": '<meta name="robots" content="nofollow">',
        "meta-none": '<META NAME="ROBOTS" CONTENT="NONE">',
        "meta-list": '<meta content="noarchive, NoFollow" name="robots">',
    }
    headers: dict[str, Headers] = {
        "header": (("X-Robots-Tag", "nofollow"),),
        "header-list": (("X-Robots-Tag", "noarchive, nofollow"),),
        "header-agent": (("X-Robots-Tag", f"{agent}: nofollow"),),
    }
    found = {NOFOLLOW + name: _asking_page(place, name, head=html) for name, html in metas.items()}
    found |= {NOFOLLOW + name: _asking_page(place, name, headers=lines) for name, lines in headers.items()}
    found[f"{NOFOLLOW}noindex"] = _asking_page(
        place, "noindex", head='<meta name="robots" content="noindex">', nofollow=False
    )
    other: Headers = (("X-Robots-Tag", "otherbot: nofollow"),)
    found[f"{NOFOLLOW}header-other"] = _asking_page(place, "header-other", headers=other, nofollow=False)
    index = Sheet(place, NOFOLLOW, "Nofollow")
    for path in found:
        index.anchor(path)
    index.anchor(f"{NOFOLLOW}hidden-rel.html", nofollow=True)
    listed = Mark(f"{place.origin}{NOFOLLOW}hidden-rel-list.html", nofollow=True)
    index.tag(f'<p><a rel="external NOFOLLOW ugc" href="{NOFOLLOW}hidden-rel-list.html">paid</a></p>\n', listed)
    hidden = ("rel", "rel-list", *metas, *headers)
    found |= {f"{NOFOLLOW}hidden-{name}.html": leaf(place, f"{NOFOLLOW}hidden-{name}.html") for name in hidden}
    found |= {
        f"{NOFOLLOW}open-{name}.html": leaf(place, f"{NOFOLLOW}open-{name}.html")
        for name in ("noindex", "header-other")
    }
    found[NOFOLLOW] = index.made()
    return found


def _asking_page(place: PagePlace, name: str, *, head: str = "", headers: Headers = (), nofollow: bool = True) -> Made:
    target = f"{NOFOLLOW}{'hidden' if nofollow else 'open'}-{name}.html"
    sheet = Sheet(place, NOFOLLOW + name).head(head)
    made = sheet.anchor(target).made(headers=headers)
    # The page's directive reaches each of its links.
    return Made(made.answers, tuple(Mark(mark.url, nofollow=nofollow) for mark in made.marks))


# Links to names that do not exist and to an address where nothing listens.

AWAY = "/away/"


def nameless(index: int) -> str:
    """Return a name that no resolver knows."""
    return f"nx{index:04d}.nowhere.test"


def closed(index: int) -> str:
    """Return a name whose address refuses connections."""
    return f"closed{index:04d}.nobody.test"


def away(place: PagePlace) -> dict[str, Made]:
    """Return the pages."""
    index = place.host.index
    sheet = Sheet(place, AWAY, "Away")
    for name in (nameless(index), closed(index)):
        url = f"http://{name}{place.port}/"
        sheet.anchor(url, url)
    return {AWAY: sheet.made()}


# Pages of host 0 that list all hosts, so that one seed reaches the whole web.

DIRECTORY = "/directory/"
PER_PAGE = 50


def directory(place: PagePlace) -> dict[str, Made]:
    """Return the pages: an index and lists of fifty hosts."""
    index = Sheet(place, DIRECTORY, "Directory")
    found: dict[str, Made] = {}
    for first in range(0, len(place.hosts), PER_PAGE):
        path = f"{DIRECTORY}{first // PER_PAGE}.html"
        sheet = Sheet(place, path, f"Hosts from {first}")
        for host in place.hosts[first : first + PER_PAGE]:
            sheet.anchor(place.front(host), place.front(host), text=host.name)
        found[path] = sheet.made()
        index.anchor(path)
    return found | {DIRECTORY: index.made()}


# What the kinds of robots.txt open and close. All of it is linked from the front page.

PRIVATE = "/private/"
PRIVATE_NAMES = (
    "", "notes.html", "open/", "open/report.html", "open/report.pdf", "list?print=1", "list?page=1", "deep/list?print=1"
)  # fmt: skip
PRIVATE_PDF = "/papers/report.pdf"
PRIVATE_PATHS = (*(PRIVATE + name for name in PRIVATE_NAMES), PRIVATE_PDF)


def private(place: PagePlace) -> dict[str, Made]:
    """Return the pages."""
    found = {PRIVATE + name: leaf(place, PRIVATE + name) for name in PRIVATE_NAMES if not name.endswith(".pdf")}
    pdf = Made((ServedAnswer(200, (("Content-Type", "application/pdf"),), b"%PDF-1.4\n%%EOF\n"),))
    return found | {f"{PRIVATE}open/report.pdf": pdf, PRIVATE_PDF: pdf}


# Pages that nothing but a sitemap names, in each of its forms; robots.txt names the index.

SITEMAPS = "/sitemaps/"
SITEMAP_INDEX = SITEMAPS + "index.xml"
SITEMAP_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
SITEMAP_PAGES = 6
"""Pages of each sitemap."""


def sitemaps(place: PagePlace) -> dict[str, Made]:
    """Return the pages: an index of four sitemaps, what these name, and what they may not name."""
    origin = place.origin
    found = {SITEMAPS: Sheet(place, SITEMAPS, "Sitemaps").made()}
    for kind in ("plain", "packed", "text", "feed"):
        found |= {path: leaf(place, path) for path in _listed(kind)}
    other = place.front(place.other())
    plain = [*(origin + path for path in _listed("plain")), f"{other}sitemaps/stolen.html"]
    packed = gzip.compress(_urlset([origin + path for path in _listed("packed")]), mtime=0)
    items = "".join(f"<item><link>{origin}{path}</link></item>" for path in _listed("feed"))
    files = {
        "plain.xml": ("application/xml", _urlset(plain), "sitemap"),
        "packed.xml.gz": ("application/octet-stream", packed, "sitemap"),
        "list.txt": ("text/plain", "\n".join(origin + path for path in _listed("text")).encode(), "sitemap"),
        "news.rss": ("application/rss+xml", f'<rss version="2.0"><channel>{items}</channel></rss>'.encode(), "feed"),
    }
    for name, (media_type, body, link_type) in files.items():
        kind = {"plain.xml": "plain", "packed.xml.gz": "packed", "list.txt": "text", "news.rss": "feed"}[name]
        marks = tuple(Mark(origin + path, link_type) for path in _listed(kind))
        if kind == "plain":
            marks += (Mark(plain[-1], "alternate"),)  # Recorded, and not followed: it is another host's.
        found[SITEMAPS + name] = Made((ServedAnswer(200, (("Content-Type", media_type),), body),), marks)
    entries = "".join(f"<sitemap><loc>{origin}{SITEMAPS}{name}</loc></sitemap>" for name in files)
    index = f'<sitemapindex xmlns="{SITEMAP_NAMESPACE}">{entries}</sitemapindex>'.encode()
    marks = tuple(Mark(f"{origin}{SITEMAPS}{name}", "sitemap_file") for name in files)
    found[SITEMAP_INDEX] = Made((ServedAnswer(200, (("Content-Type", "application/xml"),), index),), marks)
    return found


def _listed(kind: str) -> list[str]:
    return [f"{SITEMAPS}only-{kind}-{number}.html" for number in range(SITEMAP_PAGES)]


def _urlset(urls: list[str]) -> bytes:
    entries = "".join(
        f"<url><loc>{url}</loc><lastmod>2026-0{1 + number % 9}-01</lastmod><changefreq>weekly</changefreq>"
        f"<priority>0.{1 + number % 9}</priority></url>\n"
        for number, url in enumerate(urls)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{SITEMAP_NAMESPACE}">\n{entries}</urlset>\n'.encode()
    )
