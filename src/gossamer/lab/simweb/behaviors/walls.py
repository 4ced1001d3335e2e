"""Walls: replies of bot protection, prices and legal blocks instead of pages, and pages that ask for consent first.

The marks are those of the products, shortened. Their links are bait: none of them belongs to the site.
"""

from __future__ import annotations

from gossamer.lab.simweb.sheet import HTML, Headers, Made, PagePlace, ServedAnswer, Sheet, leaf

WALLS = "/walls/"
CHALLENGES: tuple[tuple[str, int, Headers, str], ...] = (
    ("header", 403, (("cf-mitigated", "challenge"),), "<title>One moment</title>"),
    ("markup", 403, (), "<title>Access Denied</title><p>Reference: https://errors.edgesuite.net/18.2"),
    ("page", 200, (), "<title>Just a moment...</title><script>window._cf_chl_opt={};</script>"),
    ("busy", 503, (), "<title>Robot Challenge Screen</title><script src=/.well-known/sgcaptcha/x></script>"),
)
"""Name, status, headers and markup. Fewer in a row than a crawler bears: the host is not closed."""
PRICE: Headers = (("crawler-price", "USD 0.01"), ("crawler-error", "MissingCrawlerPrice"))


def walls(place: PagePlace) -> dict[str, Made]:
    """Return the pages: each wall, and two pages that are none."""
    found = {
        WALLS + name: Made((_answer(status, headers, markup),), outcome="challenged")
        for name, status, headers, markup in CHALLENGES
    }
    found[f"{WALLS}price"] = Made((_answer(402, PRICE, "<title>Payment required</title>"),))
    found[f"{WALLS}legal"] = Made((_answer(451, (), "<title>Unavailable for legal reasons</title>"),))
    found[f"{WALLS}consent"] = _consent(place)
    about = "How a page with <code>window._cf_chl_opt</code> is recognized"
    found[f"{WALLS}about"] = Sheet(place, f"{WALLS}about", "Walls").tag(about).anchor(f"{WALLS}read.html").made()
    index = Sheet(place, WALLS, "Walls and what is none")
    for path in found:
        index.anchor(path)
    proofs = {path: leaf(place, path) for path in (f"{WALLS}agreed.html", f"{WALLS}read.html")}
    return found | proofs | {WALLS: index.made()}


def _answer(status: int, headers: Headers, markup: str) -> ServedAnswer:
    body = f"<!DOCTYPE html>{markup}<a href={WALLS}bait.html>bait</a>\n"
    return ServedAnswer(status, (*HTML, *headers), body.encode())


def _consent(place: PagePlace) -> Made:
    """Return a page that asks for consent: it is marked, and a page otherwise."""
    form = '<form action="https://consent.google.com/save" method="post"><button>Accept</button></form>'
    made = Sheet(place, f"{WALLS}consent").tag(form).anchor(f"{WALLS}agreed.html")
    head, _, rest = made.html().partition("<title>")
    body = f"{head}<title>Before you continue to Google</title>{rest.partition('</title>')[2]}"
    return Made((ServedAnswer(200, HTML, body.encode()),), made.marks)
