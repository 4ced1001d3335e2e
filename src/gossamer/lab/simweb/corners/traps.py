"""Traps: spaces without end, one corner for each kind.

Of each, the index and the good pages are in the truth; the endless pages (`/KIND/x/…`) are in none: a crawl is judged
by how few of them it fetches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode

from gossamer.lab.simweb.answers import Made
from gossamer.lab.simweb.sheet import Place, Sheet, hash_of

GOOD_PAGES = 30
"""In a chain, each with words of its own: they must be found beside the trap."""
DIRECTORIES = 5
DEEP_BYTES_MAX = 7_000
"""Servers take no longer addresses (8 KB are common)."""
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WORDS = (
    "about", "team", "contact", "news", "press", "jobs", "help", "legal", "blog", "shop", "docs", "wiki", "media",
    "events", "faq", "terms", "start", "tour", "plans", "labs", "store", "forum", "photos", "music", "video", "games",
    "books", "maps", "mail", "radio", "sport", "travel", "food", "health", "money", "style", "cars",
)  # fmt: skip
_FACETS = {
    "color": ("red", "green", "blue", "black", "white", "grey"),
    "size": ("xs", "s", "m", "l", "xl"),
    "brand": ("acme", "globex", "initech", "umbrella", "hooli"),
    "sort": ("price", "name", "date", "rating"),
    "view": ("list", "grid"),
    "stock": ("yes", "all"),
}
_MONTH = re.compile(r"(\d{4,6})/(\d\d)/")
_SESSION = re.compile(r"([0-9a-f]{12})/(\d{1,2})\.html")
_PAGE = re.compile(r"(\d{1,9})\.html")
_ROOM = re.compile(r"([a-z]+)-([a-z]+)/([0-9a-f]{8})\.html")
_SEGMENTS = re.compile(r"(?:(?:more|again)/)*")
_LISTING = re.compile(rf"(?:dir-[1-{DIRECTORIES}]/)?(?:\?C=[NMSD];O=[AD])?")
_DEEP = re.compile(r"(?:[a-z]+/)*")


def pages(place: Place, kind: str) -> dict[str, Made]:
    """Return the index of a trap, from which one step leads into it, and its good pages."""
    at = f"/{kind}/"
    index = Sheet(place, at, kind.replace("_", " ").capitalize())
    found = {at: index.anchor(f"{at}x/{ENTRIES[kind][0]}").anchor(f"{at}good/1.html").made()}
    for number in range(1, GOOD_PAGES + 1):
        sheet = Sheet(place, f"{at}good/{number}.html", f"Good page {number}").anchor(at)
        if number < GOOD_PAGES:
            sheet.anchor(f"{at}good/{number + 1}.html")
        found[f"{at}good/{number}.html"] = sheet.made()
    return found


def kind_of(path: str) -> str:
    """Return which endless space a path lies in; empty for none."""
    kind, _, rest = path[1:].partition("/")
    return kind if kind in ENTRIES and rest.startswith("x/") else ""


def endless(place: Place, path: str) -> Made | None:
    """Return a page of a trap: each leads to others that nobody has seen."""
    kind = kind_of(path)
    return ENTRIES[kind][1](place, f"/{kind}/x/", path) if kind else None


def _calendar(place: Place, at: str, path: str) -> Made | None:
    """Every month of all years, and nothing in any."""
    month = _MONTH.fullmatch(path[len(at) :])
    if month is None or not 1 <= int(month[2]) <= 12 or int(month[1]) > 900_000:
        return None
    year, number = int(month[1]), int(month[2])
    sheet = Sheet(place, path, f"{MONTHS[number - 1]} {year}", about="calendar")
    sheet.tag("<table>" + "".join(f"<td>{day}" for day in range(1, 31)) + "</table><p>There are no events.</p>")
    for step in (-1, 1, 12):
        months = year * 12 + number - 1 + step
        sheet.anchor(f"{at}{months // 12:04d}/{months % 12 + 1:02d}/")
    return sheet.made()


def _session_path(place: Place, at: str, path: str) -> Made | None:
    """Ten pages, in a new session at each view: as shops do for visitors without cookies."""
    session = _SESSION.fullmatch(path[len(at) :])
    if session is None or not 1 <= int(session[2]) <= 10:
        return None
    sheet = Sheet(place, path, f"Department {session[2]}", about=("session", session[2]))
    for page in range(1, 11):
        sheet.anchor(f"{at}{_fresh(place, path, page)}/{page}.html")
    return sheet.made()


def _session_query(place: Place, at: str, path: str) -> Made | None:
    """The same with the session in the query."""
    query = dict(parse_qsl(path[len(at) :].removeprefix("show?")))
    page = query.get("page", "")
    if not path.startswith(at + "show?") or page not in [str(number) for number in range(1, 11)]:
        return None
    sheet = Sheet(place, path, f"Department {page}", about=("session", page))
    for number in range(1, 11):
        sheet.anchor(f"{at}show?page={number}&sid={_fresh(place, path, number)}")
    return sheet.made()


def _fresh(place: Place, path: str, page: int) -> str:
    return f"{hash_of(place.host.index, path, page):08x}{page:02x}5e"


def _facets(place: Place, at: str, path: str) -> Made | None:
    """One catalogue of forty products, by every combination of filters, in every order of the parameters."""
    if not path.startswith(at) or path[len(at) : len(at) + 1] not in ("", "?"):
        return None
    chosen = [(name, value) for name, value in parse_qsl(path[len(at) + 1 :]) if value in _FACETS.get(name, ())]
    sheet = Sheet(place, path, "Catalogue", about="facets")
    for product in range(40):
        if all(hash_of(product, name) % len(_FACETS[name]) == _FACETS[name].index(value) for name, value in chosen[:2]):
            sheet.tag(f"<p>{place.some(2, 'product', product)}</p>")
    for name, values in _FACETS.items():
        rest = [(one, value) for one, value in chosen if one != name]
        for value in values:
            sheet.anchor(f"{at}?{urlencode([*rest, (name, value)])}", text=value)
    return sheet.made()


def _depth(place: Place, at: str, path: str) -> Made | None:
    """Relative links that only ever lead deeper."""
    if not _DEEP.fullmatch(path[len(at) :]):
        return None
    sheet = Sheet(place, path, "Deeper", about="depth")
    first = hash_of(path)
    for step in range(3) if len(path) < DEEP_BYTES_MAX else ():
        name = _WORDS[(first + 13 * step) % len(_WORDS)] + "/"
        sheet.anchor(name, f"{place.origin}{path}{name}")
    return sheet.made()


def _soft_404(place: Place, _: str, path: str) -> Made | None:
    """Nothing is ever missing: every address answers 200 with the same words, and a menu of relative links."""
    sheet = Sheet(place, path, "Not found", about="soft 404")
    sheet.tag(f"<p>There is no {path.rstrip('/').rpartition('/')[2]} here.</p>")
    for name in _WORDS[:6] if len(path) < DEEP_BYTES_MAX else ():
        sheet.anchor(f"{name}/", f"{place.origin}{path[: path.rindex('/') + 1]}{name}/")
    return sheet.made()


def _near(place: Place, at: str, path: str) -> Made | None:
    """One article, a few of its words changed for each address."""
    page = _PAGE.fullmatch(path[len(at) :])
    if page is None:
        return None
    number = int(page[1])
    words = place.some(40, "near").split()
    for turn in range(len(words) // 100):
        words[hash_of(number, turn) % len(words)] = _WORDS[hash_of(turn, number) % len(_WORDS)]
    sheet = Sheet(place, path, "An article", about="near").tag(f"<p>{' '.join(words)}</p>")
    for other in (number + 1, 2 * number, 3 * number + 1):
        sheet.anchor(f"{at}{other % 1_000_000_000}.html", text="More like this")
    return sheet.made()


def _segments(place: Place, at: str, path: str) -> Made | None:
    """The same names below themselves, again and again."""
    if not _SEGMENTS.fullmatch(path[len(at) :]):
        return None
    sheet = Sheet(place, path, "Deeper", about="segments")
    for name in ("more/", "again/") if len(path) < DEEP_BYTES_MAX else ():
        sheet.anchor(name, f"{place.origin}{path}{name}")
    return sheet.made()


def _maze(place: Place, at: str, path: str) -> Made | None:
    """Pages of words by chance, no two alike, each naming five that nobody else names."""
    if not _ROOM.fullmatch(path[len(at) :]):
        return None
    sheet = Sheet(place, path, "A room")
    own = " ".join(f"{_WORDS[hash_of(path, turn) % len(_WORDS)]}{_letters(hash_of(turn, path))}" for turn in range(60))
    sheet.tag(f"<p>{own}</p>")
    for door in range(5):
        code = hash_of(place.host.index, path, door)
        sheet.anchor(f"{at}{_WORDS[code % 8]}-{_WORDS[code // 8 % 8]}/{code:08x}.html")
    return sheet.made()


def _listings(place: Place, at: str, path: str) -> Made | None:
    """Five directories and the one above them, each in eight orders beside its own, as Apache lists them."""
    if not _LISTING.fullmatch(path[len(at) :]):
        return None
    directory = path.partition("?")[0]
    sheet = Sheet(place, path, f"Index of {directory}", about=("listing", directory))
    for column in "NMSD":
        for order in "AD":
            sheet.anchor(f"{directory}?C={column};O={order}")
    for number in range(1, DIRECTORIES + 1) if directory == at else ():
        sheet.anchor(f"{at}dir-{number}/")
    return sheet.made()


def _letters(code: int) -> str:
    return "".join(chr(97 + (code >> shift) % 26) for shift in (0, 5, 10, 15))


ENTRIES: dict[str, tuple[str, Callable[[Place, str, str], Made | None]]] = {
    "trap_calendar": ("2024/01/", _calendar),
    "trap_session_path": ("000000000000/1.html", _session_path),
    "trap_session_query": ("show?page=1&sid=000000000000", _session_query),
    "trap_facets": ("", _facets),
    "trap_depth": ("", _depth),
    "trap_soft_404": ("", _soft_404),
    "trap_near": ("1.html", _near),
    "trap_segments": ("", _segments),
    "trap_maze": ("about-team/00000000.html", _maze),
    "trap_listings": ("", _listings),
}
"""By kind: where one enters, below `/KIND/x/`, and what is there."""
KINDS = tuple(ENTRIES)
SPENT_MAX = {
    "trap_calendar": 700, "trap_session_path": 700, "trap_session_query": 700, "trap_facets": 900, "trap_depth": 700,
    "trap_soft_404": 700, "trap_near": 1_500, "trap_segments": 700, "trap_maze": 12_000,
    "trap_listings": DIRECTORIES + 1,
}  # fmt: skip
"""Endless pages that a crawl needs to tell each kind, by our own measure twice over; other orders of a listing are told
by their address, so each directory is shown once."""
