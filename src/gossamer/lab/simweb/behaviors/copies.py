"""Copies: one body or one page under several addresses, and pages or addresses that only look equal."""

from __future__ import annotations

from gossamer.lab.simweb.sheet import Made, PagePlace, Sheet, index, leaf, leaves

COPIED = ("one.html", "two.html", "three/", "four?page=1", "four?page=2")


def copies(place: PagePlace) -> dict[str, Made]:
    """Return one body under several addresses. The copies lead to the same pages, whichever of them is read."""
    copy = Sheet(place, "", "Copies of one page").anchors(["original.html", "/"]).made()
    # A crawl may leave out the links of an exact copy on the same host.
    copy = Made(copy.answers, copy.marks, links_optional=True)
    return {**index(place, "Copies", COPIED), **leaves(place, ["original.html"]), **dict.fromkeys(COPIED, copy)}


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
    return index(place, "Near copies", texts) | {name: _article(place, name, text) for name, text in texts.items()}


def _article(place: PagePlace, name: str, text: str) -> Made:
    # The title differs, so that no two are equal byte for byte.
    return Sheet(place, name, f"Article {len(name)}", about="near").tag(f"<p>{text}</p><!-- {name} -->").made()


DISTINCT_NAMES = (
    "page.html", "Page.html", "PAGE.HTML", "dir", "dir/", "dir/index.html", "dir//index.html",
    "find?a=1&b=2", "find?b=2&a=1", "find?a=1&b=2&", "find?a=1", "find?A=1", "find?", "find",
    "a%2Fb", "a/b", "semi;v=1", "semi;v=2", "plus?q=a+b", "plus?q=a%20b",
)  # fmt: skip


def distinct(place: PagePlace) -> dict[str, Made]:
    """Return pages whose addresses look alike; a crawl that merges them loses some."""
    return leaves(place, DISTINCT_NAMES) | index(place, "Distinct", DISTINCT_NAMES)


SPELLED = "page~one.html"
ESCAPED = ("page%7Eone.html", "page%7eone.html", "p%61ge~one.html")


def spellings(place: PagePlace) -> dict[str, Made]:
    """Return one page written in many ways that are equivalent by RFC 3986; it is requested once."""
    sheet = Sheet(place, "", "Spellings")
    path, to = place.path(SPELLED), place.url(SPELLED)
    host = place.origin.removeprefix("http://")
    for href in (
        SPELLED, f"./{SPELLED}", f"x/../{SPELLED}", f"{path}#part", f"HTTP://{host.upper()}{path}", f"//{host}{path}",
        f"  {path}\n", f"{place.at}%2e/{SPELLED}", path.replace("/", "\\"),
    ):  # fmt: skip
        sheet.anchor(href, to)
    for written in ESCAPED:
        sheet.anchor(place.path(written), place.url(written), key=to)
    page = leaf(place, SPELLED)
    # A server that knows its own pages: each spelling that a client may ask for is this page.
    return {"": sheet.made(), SPELLED: page, **dict.fromkeys(ESCAPED, Made(page.answers, links_optional=True))}
