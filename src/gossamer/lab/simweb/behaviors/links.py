"""Links: every way to name a page, to ask that a link be not followed, and to lead to nowhere; one page under several
addresses, and pages or addresses that only look equal.
"""

import gzip
from collections.abc import Iterable
from itertools import chain

from gossamer.lab.simweb.behaviors import read
from gossamer.lab.simweb.sheet import Headers, Made, Mark, PagePlace, ServedAnswer, Sheet, file_of

_TABLES = read("links.toml")


def frames(place: PagePlace) -> dict[str, Made]:
    """Return links of all kinds: `to-…` must be reached; `only-…` is recorded but not followed."""
    found = {
        "frameset": _frameset(place),
        "inline": _inline(place),
        "base": _base_page(place),
        "refresh": _refresh(place),
        "relations": _relations(place),
        "markup": _markup(place),
        "schemes": _schemes(place),
    }
    below = place.url("")
    marked = {mark.url.removeprefix(below) for made in found.values() for mark in made.marks if below in mark.url}
    return found | place.leaves(sorted(marked - set(found))) | place.index("Frames", found)


def _to(place: PagePlace, name: str, link_type: str = "anchor") -> Mark:
    return Mark(place.url(f"{name}.html"), link_type)


def _frameset(place: PagePlace) -> Made:
    sheet = Sheet(place, "frameset")
    html = (
        f"<!DOCTYPE html><html><head><title>Frames at {place.host.name}</title></head>"
        f'<frameset cols="*,*"><frame src="to-frame-1.html"><FRAME SRC={place.at}to-frame-2.html></frameset></html>\n'
    )
    sheet.tag("", _to(place, "to-frame-1", "frame"), _to(place, "to-frame-2", "frame"))
    return sheet.page_of_bytes(html.encode())


def _inline(place: PagePlace) -> Made:
    sheet = Sheet(place, "inline")
    sheet.tag(f'<iframe src="{place.at}to-iframe.html"></iframe>', _to(place, "to-iframe", "iframe"))
    area = '<map name="m"><area shape=rect coords="0,0,9,9" href="./to-area.html" alt="area"></map>'
    return sheet.tag(area, _to(place, "to-area", "area")).page()


def _base_page(place: PagePlace) -> Made:
    sheet = Sheet(place, "base").head(f'<base href="{place.at}under/"><base href="/second/is/ignored/">')
    sheet.tag('<p><a href="to-base.html">below the base</a></p>', _to(place, "under/to-base"))
    sheet.tag('<p><a href="../to-base-up.html">beside it</a></p>', _to(place, "to-base-up"))
    return sheet.tag('<p><a href="?page=2">the base itself</a></p>', Mark(place.url("under/?page=2"))).page()


def _refresh(place: PagePlace) -> Made:
    head = f'<meta http-equiv="Refresh" content="0; URL=\'{place.at}to-refresh.html\'">'
    return Sheet(place, "refresh").head(head, _to(place, "to-refresh", "meta_refresh")).page()


def _relations(place: PagePlace) -> Made:
    sheet = Sheet(place, "relations")
    for rel in ("next", "prev", "canonical", "alternate"):
        sheet.head(f'<link rel="{rel}" href="{place.at}only-{rel}.html">', _to(place, f"only-{rel}", rel))
    sheet.head(f'<link rel="contents" href="{place.at}only-contents.html">', _to(place, "only-contents", "related"))
    sheet.head("", _to(place, "only-header-next", "next"))
    return sheet.page(headers=(("Link", f'<{place.at}only-header-next.html>; rel="next"'),))


def _markup(place: PagePlace) -> Made:
    sheet = Sheet(place, "markup")
    for name, html in _TABLES["markup"].items():
        sheet.tag(html.format(at=place.at), _to(place, name))
    sheet.tag('<a name="nowhere">no link</a><a href="">here</a>', Mark(place.url("markup"), optional=True))
    sheet.tag(f'<textarea><a href="{place.at}bait.html">no link</a></textarea>')
    query = Mark(place.url("search?q=a&copy=2"))
    return sheet.tag(f'<a href="{place.at}search?q=a&amp;copy=2">query</a>', query).page()


def _schemes(place: PagePlace) -> Made:
    sheet = Sheet(place, "schemes")
    for href in ("mailto:me@example.org", "javascript:void(0)", "tel:+123", "data:text/html,hello"):
        sheet.tag(f'<a href="{href}">no page</a> ', Mark(href, optional=True))
    sheet.tag('<a href="http://">no host</a> <a href="http://a b/">no name</a>')
    return sheet.anchors(["to-after-schemes.html"]).page()


def nofollow(place: PagePlace) -> dict[str, Made]:
    """Return links and pages that ask not to be followed: `hidden-…` must not be reached, `open-…` must."""
    metas = _TABLES["metas"]
    headers: dict[str, Headers] = {
        name: (("X-Robots-Tag", value.format(agent=place.options.agent)),) for name, value in _TABLES["headers"].items()
    }
    found = {name: _asking_page(place, name, head=html) for name, html in metas.items()}
    found |= {name: _asking_page(place, name, headers=lines) for name, lines in headers.items()}
    found["noindex"] = _asking_page(place, "noindex", head='<meta name="robots" content="noindex">', nofollow=False)
    other: Headers = (("X-Robots-Tag", "otherbot: nofollow"),)
    found["header-other"] = _asking_page(place, "header-other", headers=other, nofollow=False)
    sheet = Sheet(place, "", "Nofollow").anchors(found)
    sheet.anchor(place.path("hidden-rel.html"), nofollow=True)
    listed = Mark(place.url("hidden-rel-list.html"), nofollow=True)
    sheet.tag(f'<p><a rel="external NOFOLLOW ugc" href="{place.at}hidden-rel-list.html">paid</a></p>\n', listed)
    hidden = [f"hidden-{name}.html" for name in ("rel", "rel-list", *metas, *headers)]
    return found | place.leaves([*hidden, "open-noindex.html", "open-header-other.html"]) | {"": sheet.page()}


def _asking_page(place: PagePlace, name: str, *, head: str = "", headers: Headers = (), nofollow: bool = True) -> Made:
    target = f"{'hidden' if nofollow else 'open'}-{name}.html"
    made = Sheet(place, name).head(head).anchors([target]).page(headers=headers)
    # The page's directive reaches each of its links.
    return Made(made.answers, tuple(Mark(mark.url, nofollow=nofollow) for mark in made.marks))


def nameless(index: int) -> str:
    """Return a name that no resolver knows."""
    return f"nx{index:04d}.nowhere.test"


def refusing_name(index: int) -> str:
    """Return a name whose address refuses connections."""
    return f"closed{index:04d}.nobody.test"


def away(place: PagePlace) -> dict[str, Made]:
    """Return links to a name that does not exist and to an address where nothing listens."""
    sheet = Sheet(place, "", "Away")
    for name in (nameless(place.host.index), refusing_name(place.host.index)):
        url = f"http://{name}{place.options.port_suffix}/"
        sheet.anchor(url, url)
    return {"": sheet.page()}


HOSTS_A_PAGE = 50


def directory(place: PagePlace) -> dict[str, Made]:
    """Return pages of host 0 by which one seed reaches the whole web: an index and lists of fifty hosts."""
    found: dict[str, Made] = {}
    for first in range(0, len(place.hosts), HOSTS_A_PAGE):
        name = f"{first // HOSTS_A_PAGE}.html"
        sheet = Sheet(place, name, f"Hosts from {first}")
        for host in place.hosts[first : first + HOSTS_A_PAGE]:
            sheet.anchor(place.front(host), place.front(host), text=host.name)
        found[name] = sheet.page()
    return found | place.index("Directory", found)


PRIVATE_NAMES = tuple(_TABLES["private"])
PRIVATE_PDF = "/papers/report.pdf"
PRIVATE_PATHS = (*("/private/" + name for name in PRIVATE_NAMES), PRIVATE_PDF)
"""All of these are linked from the front page."""


def private(place: PagePlace) -> dict[str, Made]:
    """Return the pages and PDFs that each kind of robots.txt allows or disallows."""
    pdf = Made((ServedAnswer(200, (("Content-Type", "application/pdf"),), b"%PDF-1.4\n%%EOF\n"),))
    return place.leaves(PRIVATE_NAMES) | {"open/report.pdf": pdf, PRIVATE_PDF: pdf}


SITEMAP_INDEX = "/sitemaps/index.xml"
SITEMAP_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
SITEMAP_PAGES = 6
"""Pages of each sitemap."""


def sitemaps(place: PagePlace) -> dict[str, Made]:
    """Return sitemaps of each format, of unlinked pages; one also names another host, which crawlers must ignore."""
    listed = {
        kind: [f"only-{kind}-{number}.html" for number in range(SITEMAP_PAGES)]
        for kind in ("plain", "packed", "text", "feed")
    }
    plain, packed, text, feed = ([place.url(name) for name in names] for names in listed.values())
    stolen = f"{place.front(place.other())}sitemaps/stolen.html"
    items = "".join(f"<item><link>{url}</link></item>" for url in feed)
    rss = f'<rss version="2.0"><channel>{items}</channel></rss>'.encode()
    # The stolen one is recorded, and not followed: it is another host's.
    files = {
        "plain.xml": file_of(
            "application/xml", _urlset([*plain, stolen]), (*_marks(plain, "sitemap"), Mark(stolen, "alternate"))
        ),
        "packed.xml.gz": file_of(
            "application/octet-stream", gzip.compress(_urlset(packed), mtime=0), _marks(packed, "sitemap")
        ),
        "list.txt": file_of("text/plain", "\n".join(text).encode(), _marks(text, "sitemap")),
        "news.rss": file_of("application/rss+xml", rss, _marks(feed, "feed")),
    }
    entries = "".join(f"<sitemap><loc>{place.url(name)}</loc></sitemap>" for name in files)
    body = f'<sitemapindex xmlns="{SITEMAP_NAMESPACE}">{entries}</sitemapindex>'.encode()
    found = files | {SITEMAP_INDEX: file_of("application/xml", body, _marks(map(place.url, files), "sitemap_file"))}
    return found | place.index("Sitemaps", ()) | place.leaves(chain.from_iterable(listed.values()))


def _marks(urls: Iterable[str], link_type: str) -> tuple[Mark, ...]:
    return tuple(Mark(url, link_type) for url in urls)


def _urlset(urls: list[str]) -> bytes:
    items = "".join(
        f"<url><loc>{url}</loc><lastmod>2026-0{1 + number % 9}-01</lastmod><changefreq>weekly</changefreq>"
        f"<priority>0.{1 + number % 9}</priority></url>\n"
        for number, url in enumerate(urls)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{SITEMAP_NAMESPACE}">\n{items}</urlset>\n'.encode()


COPIED = ("one.html", "two.html", "three/", "four?page=1", "four?page=2")


def copies(place: PagePlace) -> dict[str, Made]:
    """Return one body under several addresses. The copies lead to the same pages, whichever of them is read."""
    copy = Sheet(place, "", "Copies of one page").anchors(["original.html", "/"]).page()
    # A crawl may leave out the links of an exact copy on the same host.
    copy = Made(copy.answers, copy.marks, links_optional=True)
    return {**place.index("Copies", COPIED), **place.leaves(["original.html"]), **dict.fromkeys(COPIED, copy)}


NEAR_COPIES = ("print.html", "dated.html", "edited.html")
NEAR_OTHERS = ("other-1.html", "other-2.html", "other-3.html")


def near(place: PagePlace) -> dict[str, Made]:
    """Return an article, copies of it with a word or a number changed, and others that only share its frame."""
    article = place.some(60, "article")
    words = article.split()
    edited = " ".join([*words[:200], "corrected", *words[201:]])
    texts = {
        "article.html": article,
        **dict(zip(NEAR_COPIES, (article, f"Seen 1234 times on 2024-05-06. {article}", edited), strict=True)),
        **{name: place.some(60, name) for name in NEAR_OTHERS},
    }
    return place.index("Near copies", texts) | {name: _article(place, name, text) for name, text in texts.items()}


def _article(place: PagePlace, name: str, text: str) -> Made:
    # The title differs, so that no two are equal byte for byte.
    return Sheet(place, name, f"Article {len(name)}", about="near").tag(f"<p>{text}</p><!-- {name} -->").page()


DISTINCT_NAMES = tuple(_TABLES["distinct"])


def distinct(place: PagePlace) -> dict[str, Made]:
    """Return pages whose addresses look alike; a crawl that merges them loses some."""
    return place.leaves(DISTINCT_NAMES) | place.index("Distinct", DISTINCT_NAMES)


SPELLED = "page~one.html"
ESCAPED = ("page%7Eone.html", "page%7eone.html", "p%61ge~one.html")


def spellings(place: PagePlace) -> dict[str, Made]:
    """Return one page written in many ways that are equivalent by RFC 3986; it is requested once."""
    sheet = Sheet(place, "", "Spellings")
    path = place.path(SPELLED)
    to = place.url(SPELLED)
    host = place.origin.removeprefix("http://")
    parts = {"path": path, "host": host, "upper": host.upper(), "at": place.at, "back": path.replace("/", "\\")}
    for href in _TABLES["spellings"]:
        sheet.anchor(href.format_map(parts), to)
    for written in ESCAPED:
        sheet.anchor(place.path(written), place.url(written), key=to)
    page = place.leaf(SPELLED)
    # A server that knows its own pages: each spelling that a client may ask for is this page.
    return {"": sheet.page(), SPELLED: page, **dict.fromkeys(ESCAPED, Made(page.answers, links_optional=True))}
