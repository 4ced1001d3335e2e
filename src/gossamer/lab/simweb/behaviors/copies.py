"""Copies: one body or one page under several addresses, and pages or addresses that only look equal."""

from __future__ import annotations

from gossamer.lab.simweb.sheet import Made, PagePlace, Sheet, leaf

# One body under several addresses of a host.

COPIES = "/copies/"
COPIED = ("one.html", "two.html", "three/", "four?page=1", "four?page=2")


def copies(place: PagePlace) -> dict[str, Made]:
    """Return the pages. The copies lead to the same pages, whichever of them is read."""
    copy = Sheet(place, COPIES, "Copies of one page").anchor(f"{COPIES}original.html").anchor("/").made()
    index = Sheet(place, COPIES, "Copies")
    for name in COPIED:
        index.anchor(COPIES + name)
    found = {COPIES: index.made(), f"{COPIES}original.html": leaf(place, f"{COPIES}original.html")}
    # A crawl may leave out the links of an exact copy on the same host.
    copy = Made(copy.answers, copy.marks, links_optional=True)
    return found | {COPIES + name: copy for name in COPIED}


# An article, copies of it with a word or a number changed, and others that only share its frame.

NEAR = "/near/"
NEAR_COPIES = ("print.html", "dated.html", "edited.html")
NEAR_OTHERS = ("other-1.html", "other-2.html", "other-3.html")


def near(place: PagePlace) -> dict[str, Made]:
    """Return the pages."""
    article = place.some(60, "article")
    words = article.split()
    edited = " ".join([*words[:200], "corrected", *words[201:]])
    index = Sheet(place, NEAR, "Near copies").anchor(f"{NEAR}article.html")
    found = {f"{NEAR}article.html": _article(place, "article.html", article)}
    for name, text in zip(NEAR_COPIES, (article, f"Seen 1234 times on 2024-05-06. {article}", edited), strict=True):
        found[NEAR + name] = _article(place, name, text)
    for name in NEAR_OTHERS:
        found[NEAR + name] = _article(place, name, place.some(60, name))
    for path in list(found)[1:]:
        index.anchor(path)
    return found | {NEAR: index.made()}


def _article(place: PagePlace, name: str, text: str) -> Made:
    # The title differs, so that no two are equal byte for byte.
    return Sheet(place, NEAR + name, f"Article {len(name)}", about="near").tag(f"<p>{text}</p><!-- {name} -->").made()


# Addresses that look alike and are different pages; a crawl that merges them loses some.

DISTINCT = "/distinct/"
DISTINCT_NAMES = (
    "page.html", "Page.html", "PAGE.HTML", "dir", "dir/", "dir/index.html", "dir//index.html",
    "find?a=1&b=2", "find?b=2&a=1", "find?a=1&b=2&", "find?a=1", "find?A=1", "find?", "find",
    "a%2Fb", "a/b", "semi;v=1", "semi;v=2", "plus?q=a+b", "plus?q=a%20b",
)  # fmt: skip


def distinct(place: PagePlace) -> dict[str, Made]:
    """Return the pages."""
    index = Sheet(place, DISTINCT, "Distinct")
    for name in DISTINCT_NAMES:
        index.anchor(DISTINCT + name)
    return {DISTINCT + name: leaf(place, DISTINCT + name) for name in DISTINCT_NAMES} | {DISTINCT: index.made()}


# One page written in many ways that are equivalent by RFC 3986; it is requested once.

SPELLINGS = "/spellings/"
SPELLED = f"{SPELLINGS}page~one.html"


def spellings(place: PagePlace) -> dict[str, Made]:
    """Return the pages."""
    index = Sheet(place, SPELLINGS, "Spellings")
    to = place.origin + SPELLED
    host = place.origin.removeprefix("http://")
    for href in (
        "page~one.html", "./page~one.html", "x/../page~one.html", f"{SPELLED}#part", f"HTTP://{host.upper()}{SPELLED}",
        f"//{host}{SPELLED}", f"  {SPELLED}\n", f"{SPELLINGS}%2e/page~one.html", "\\spellings\\page~one.html",
    ):  # fmt: skip
        index.anchor(href, to)
    for written in (
        f"{SPELLINGS}page%7Eone.html",
        f"{SPELLINGS}page%7eone.html",
        f"{SPELLINGS}p%61ge~one.html",
    ):
        index.anchor(written, place.origin + written, key=to)
    page = leaf(place, SPELLED)
    # A server that knows its own pages: each spelling that a client may ask for is this page.
    return {SPELLINGS: index.made(), SPELLED: page} | {
        f"{SPELLINGS}{name}": Made(page.answers, links_optional=True)
        for name in ("page%7Eone.html", "page%7eone.html", "p%61ge~one.html")
    }
