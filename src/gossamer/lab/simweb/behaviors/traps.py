"""Traps: spaces without end, one behavior for each kind; farms of hosts; and what only looks like a trap.

The index and the good pages of a trap are in the truth; the endless pages (`/KIND/x/…`) are not: a crawl is judged by
how few of them it fetches.
"""

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode

from gossamer.lab.simweb.behaviors import read
from gossamer.lab.simweb.sheet import Made, PagePlace, Sheet, hash_of

GOOD_PAGES = 30
"""In a chain, each with words of its own: they must be found beside the trap."""
DIRECTORIES = 5
DEEP_BYTES_MAX = 7_000
"""Servers take no longer addresses (8 KB are common)."""
_TABLES = read("traps.toml")
MONTHS = _TABLES["months"]
_WORDS = _TABLES["words"]
_FACETS = _TABLES["facets"]
Match = re.Match[str]


def trap(place: PagePlace, kind: str) -> dict[str, Made]:
    """Return the index of a trap, from which one step leads into it, and its good pages."""
    good = [f"good/{number}.html" for number in range(1, GOOD_PAGES + 1)]
    entry, _, _ = ENTRIES[kind]
    found = place.index(kind.replace("_", " ").capitalize(), [f"x/{entry}", good[0]])
    for number, name in enumerate(good, 1):
        found[name] = Sheet(place, name, f"Good page {number}").anchors(["", *good[number : number + 1]]).page()
    return found


def kind_of(path: str) -> str:
    """Return which endless space a path is in; empty for none."""
    kind, _, rest = path[1:].partition("/")
    return kind if kind in ENTRIES and rest.startswith("x/") else ""


def endless(place: PagePlace, path: str) -> Made | None:
    """Return a page of a trap: each leads to others that no page named before."""
    kind = kind_of(path)
    if not kind:
        return None
    at = f"/{kind}/x/"
    _, pattern, make = ENTRIES[kind]
    found = pattern.fullmatch(path[len(at) :])
    return make(place, at, path, found) if found is not None else None


def _calendar(place: PagePlace, at: str, path: str, month: Match) -> Made | None:
    """Every month of all years, and nothing in any."""
    if not 1 <= int(month[2]) <= 12 or int(month[1]) > 900_000:
        return None
    year = int(month[1])
    number = int(month[2])
    sheet = Sheet(place, path, f"{MONTHS[number - 1]} {year}", about="calendar")
    sheet.tag("<table>" + "".join(f"<td>{day}" for day in range(1, 31)) + "</table><p>There are no events.</p>")
    for step in (-1, 1, 12):
        months = year * 12 + number - 1 + step
        sheet.anchor(f"{at}{months // 12:04d}/{months % 12 + 1:02d}/")
    return sheet.page()


def _session_path(place: PagePlace, at: str, path: str, session: Match) -> Made | None:
    """Ten pages, in a new session at each view: as shops do for visitors without cookies."""
    if not 1 <= int(session[2]) <= 10:
        return None
    sheet = Sheet(place, path, f"Department {session[2]}", about=("session", session[2]))
    for page in range(1, 11):
        sheet.anchor(f"{at}{_fresh(place, path, page)}/{page}.html")
    return sheet.page()


def _session_query(place: PagePlace, at: str, path: str, query: Match) -> Made | None:
    """The same with the session in the query."""
    page = dict(parse_qsl(query[1])).get("page", "")
    if page not in [str(number) for number in range(1, 11)]:
        return None
    sheet = Sheet(place, path, f"Department {page}", about=("session", page))
    for number in range(1, 11):
        sheet.anchor(f"{at}show?page={number}&sid={_fresh(place, path, number)}")
    return sheet.page()


def _fresh(place: PagePlace, path: str, page: int) -> str:
    return f"{hash_of(place.host.index, path, page):08x}{page:02x}5e"


def _facets(place: PagePlace, at: str, path: str, query: Match) -> Made:
    """One catalogue of forty products, by every combination of filters, in every order of the parameters."""
    chosen = [(name, value) for name, value in parse_qsl(query[1] or "") if value in _FACETS.get(name, ())]
    sheet = Sheet(place, path, "Catalogue", about="facets")
    for product in range(40):
        if all(hash_of(product, name) % len(_FACETS[name]) == _FACETS[name].index(value) for name, value in chosen[:2]):
            sheet.tag(f"<p>{place.some(2, 'product', product)}</p>")
    for name, values in _FACETS.items():
        rest = [(one, value) for one, value in chosen if one != name]
        for value in values:
            sheet.anchor(f"{at}?{urlencode([*rest, (name, value)])}", text=value)
    return sheet.page()


def _depth(place: PagePlace, _at: str, path: str, _: Match) -> Made:
    """Relative links that only ever lead deeper."""
    sheet = Sheet(place, path, "Deeper", about="depth")
    first = hash_of(path)
    for step in range(3) if len(path) < DEEP_BYTES_MAX else ():
        name = _WORDS[(first + 13 * step) % len(_WORDS)] + "/"
        sheet.anchor(name, f"{place.origin}{path}{name}")
    return sheet.page()


def _soft_404(place: PagePlace, _at: str, path: str, _: Match) -> Made:
    """Nothing is ever missing: every address answers 200 with the same words, and a menu of relative links."""
    sheet = Sheet(place, path, "Not found", about="soft 404")
    sheet.tag(f"<p>There is no {path.rstrip('/').rpartition('/')[2]} here.</p>")
    for name in _WORDS[:6] if len(path) < DEEP_BYTES_MAX else ():
        sheet.anchor(f"{name}/", f"{place.origin}{path[: path.rindex('/') + 1]}{name}/")
    return sheet.page()


def _near(place: PagePlace, at: str, path: str, page: Match) -> Made:
    """One article, a few of its words changed for each address."""
    number = int(page[1])
    words = place.some(40, "near").split()
    for turn in range(len(words) // 100):
        words[hash_of(number, turn) % len(words)] = _WORDS[hash_of(turn, number) % len(_WORDS)]
    sheet = Sheet(place, path, "An article", about="near").tag(f"<p>{' '.join(words)}</p>")
    for other in (number + 1, 2 * number, 3 * number + 1):
        sheet.anchor(f"{at}{other % 1_000_000_000}.html", text="More like this")
    return sheet.page()


def _segments(place: PagePlace, _at: str, path: str, _: Match) -> Made:
    """The same names below themselves, again and again."""
    sheet = Sheet(place, path, "Deeper", about="segments")
    for name in ("more/", "again/") if len(path) < DEEP_BYTES_MAX else ():
        sheet.anchor(name, f"{place.origin}{path}{name}")
    return sheet.page()


def _maze(place: PagePlace, at: str, path: str, _: Match) -> Made:
    """Pages of words by chance, no two alike, each naming five that no other page names."""
    sheet = Sheet(place, path, "A room")
    own = " ".join(f"{_WORDS[hash_of(path, turn) % len(_WORDS)]}{_letters(hash_of(turn, path))}" for turn in range(60))
    sheet.tag(f"<p>{own}</p>")
    for door in range(5):
        code = hash_of(place.host.index, path, door)
        sheet.anchor(f"{at}{_WORDS[code % 8]}-{_WORDS[code // 8 % 8]}/{code:08x}.html")
    return sheet.page()


def _listings(place: PagePlace, at: str, path: str, _: Match) -> Made:
    """Five directories and the one above them, each in eight orders beside its own, as Apache lists them."""
    directory = path.partition("?")[0]
    sheet = Sheet(place, path, f"Index of {directory}", about=("listing", directory))
    for column in "NMSD":
        for order in "AD":
            sheet.anchor(f"{directory}?C={column};O={order}")
    for number in range(1, DIRECTORIES + 1) if directory == at else ():
        sheet.anchor(f"{at}dir-{number}/")
    return sheet.page()


def _letters(code: int) -> str:
    return "".join(chr(97 + (code >> shift) % 26) for shift in (0, 5, 10, 15))


ENTRIES: dict[str, tuple[str, re.Pattern[str], Callable[[PagePlace, str, str, Match], Made | None]]] = {
    kind: (_TABLES[kind]["entry"], re.compile(_TABLES[kind]["paths"]), make)
    for kind, make in ((f"trap{make.__name__}", make) for make in (
        _calendar, _session_path, _session_query, _facets, _depth, _soft_404, _near, _segments, _maze, _listings
    ))
}  # fmt: skip
"""By kind: where one enters, below `/KIND/x/`, which paths are there, and what is at them."""
KINDS = tuple(ENTRIES)
SPENT_MAX = {kind: _TABLES[kind]["spent_max"] for kind in KINDS}
"""Endless pages that a crawl needs to recognize each kind."""


# Endless subdomains of one site, at the host's own address, no two alike (wildcard DNS).

FARM_INNER = "/more.html"
FARM_LINKS = 5
_FARM_NAME = re.compile(r"(?:[a-z0-9-]+\.)*farm(\d{4,6})\.test")
_FARM_LABELS = _TABLES["farm_labels"]


def farm_site(index: int) -> str:
    """Return the registrable domain of a host's farm."""
    return f"farm{index:04d}.test"


def farm_owner(name: str) -> int | None:
    """Return the index of the host whose farm a name belongs to; None for a name of no farm."""
    found = _FARM_NAME.fullmatch(name)
    return int(found[1]) if found is not None and farm_site(int(found[1])) == name[found.start(1) - 4 :] else None


def farm(place: PagePlace) -> dict[str, Made]:
    """Return the pages: an index from which one link leads into the farm."""
    entry = f"http://www.{farm_site(place.host.index)}{place.options.port_suffix}/"
    return {"": Sheet(place, "", "Farm").anchor(entry, entry).page()}


def farm_endless(place: PagePlace, path: str) -> Made | None:
    """Return a page of a farm: a front page or the one below it. Both link to hosts that no other page names."""
    if path not in ("/", FARM_INNER):
        return None
    name = place.host.name
    site = farm_site(place.host.index)
    sheet = Sheet(place, path, "Offers", about=("farm", name, path))
    for turn in range(FARM_LINKS):
        code = hash_of(name, path, turn)
        url = f"http://{_FARM_LABELS[code % len(_FARM_LABELS)]}-{code:08x}.{site}{place.options.port_suffix}/"
        sheet.anchor(url, url)
    if path == "/":
        sheet.anchor(FARM_INNER)
    return sheet.page()


FIRST_YEAR = 2016
YEARS = 10
PRODUCTS = 200
POSTS = 150


def lookalikes(place: PagePlace) -> dict[str, Made]:
    """Return pages that only look like a trap: a calendar of ten years, a catalogue by numbers, a blog by dates with
    next and previous. A crawl that cuts it off loses pages.
    """
    months = {
        f"calendar/{FIRST_YEAR + month // 12}/{month % 12 + 1:02d}/": f"{MONTHS[month % 12]} {FIRST_YEAR + month // 12}"
        for month in range(12 * YEARS)
    }
    posts = {f"blog/{2020 + n // 12 % 5}/{n % 12 + 1:02d}/p{n + 1}.html": f"Post {n + 1}" for n in range(POSTS)}
    entries = (f"calendar/{FIRST_YEAR}/01/", "shop?page=1", "blog/2020/01/p1.html")
    chained = _chain_pages(place, months, "calendar") | _chain_pages(place, posts)
    return place.index("Lookalikes", entries) | chained | _catalogue(place)


def _chain_pages(place: PagePlace, titles: dict[str, str], about: str | None = None) -> dict[str, Made]:
    """Return pages by their titles, each with links to the one before it and the next."""
    names = list(titles)
    return {
        name: Sheet(place, name, title, about).anchors([*names[max(0, at - 1) : at], *names[at + 1 : at + 2]]).page()
        for at, (name, title) in enumerate(titles.items())
    }


def _catalogue(place: PagePlace) -> dict[str, Made]:
    """Return lists of ten, each naming the next; every product leads to three others."""
    found = {}
    for first in range(0, PRODUCTS, 10):
        page = first // 10 + 1
        sheet = Sheet(place, f"shop?page={page}", f"Products, page {page}")
        sheet.anchors(f"product/{number}" for number in range(first, first + 10))
        if first + 10 < PRODUCTS:
            sheet.anchors([f"shop?page={page + 1}"])
        found[f"shop?page={page}"] = sheet.page()
    for number in range(PRODUCTS):
        others = (number + 1, 3 * number + 1, 7 * number + 5)
        sheet = Sheet(place, f"product/{number}", f"Product {number}")
        found[f"product/{number}"] = sheet.anchors(f"product/{other % PRODUCTS}" for other in others).page()
    return found
