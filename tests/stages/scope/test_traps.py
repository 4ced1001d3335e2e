"""Traps: what grows without end and says nothing new is cut off, and nothing else is."""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain

import pytest

from gossamer.model.links import Link
from gossamer.model.pages import Sketch
from gossamer.options import convert
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.templates import SHINGLES_KEPT
from gossamer.stages.scope.traps import CREDIT_PAGES, HOSTS_COUNTED_MAX, WARDS_MAX, Trap, Trapped, Traps
from gossamer.url.name import Namer
from gossamer.url.url import Url

NAMER = Namer()
YEAR = 2026
Site = Callable[[str], tuple[Iterable[object], Sequence[str]]]
"""What a page says and which paths it names. A path that begins with // names another host too."""


def named(path: str, host: str = "h.example") -> Url:
    url = NAMER.name(f"http:{path}" if path.startswith("//") else f"http://{host}{path}")
    assert url is not None
    return url


@lru_cache(4_096)  # Most words are those of a frame.
def hash_of(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest())


def sketch_of(words: Iterable[object]) -> Sketch:
    hashes = sorted({hash_of(str(word)) for word in words})
    return Sketch(0, 0, len(hashes), tuple(hashes[:SHINGLES_KEPT]))


class Crawl:
    """A crawl of a made site, breadth first, with nothing but the watch."""

    def __init__(
        self, site: Site, traps: Traps | None = None, redirects: Callable[[str], str] = lambda _: "", **options: object
    ) -> None:
        """`redirects` returns the path to which another one redirects; empty if it is a page."""
        self._redirects = redirects
        self._requested: dict[str, Url] = {}
        self._fingerprints: set[int] = set()
        self.traps = traps or Traps(
            convert(ScopeOptions, options), is_fetched=lambda _, fingerprint: fingerprint in self._fingerprints
        )
        self.site = site
        self.fetched: list[str] = []
        self.sketched = 0
        self.sprung: list[Trap] = []
        self._known: set[str] = set()
        self._queue: deque[str] = deque()
        self._paths: dict[str, Link] = {}

    def run(self, *paths: str, pages_max: int = 3_000) -> Crawl:
        self._queue.extend(path for path in paths if path not in self._known)
        self._known.update(paths)
        while self._queue and len(self.fetched) < pages_max:
            path = self._queue.popleft()
            url = named(path)
            if self.traps.trap_on_path(self._paths.get(path, Link(url, "anchor", 0))) is None:
                self._fetch(url, path)
        return self

    def _fetch(self, url: Url, path: str) -> None:
        target = self._redirects(path)
        if target:
            self.traps.count_redirect(url)
            self._requested[target] = self._requested.get(path, url)
            self._queue.append(target)
            return
        words, paths = self.site(path)
        self.fetched.append(path)
        self._fingerprints.add(url.fingerprint)

        def sketch() -> Sketch:
            self.sketched += 1
            return sketch_of(words)

        referrer = self._paths[path].referrer if path in self._paths else ""
        trap = self.traps.note_page(url, sketch, YEAR, asked=self._requested.get(path), referrer=referrer)
        self.sprung += [trap] if trap is not None else []
        depth = self._paths[path].depth + 1 if path in self._paths else 1
        links = [Link(named(to), "anchor", depth, 0, url.text) for to in paths]
        admitted = [link for link in links if not Trapped(self.traps).rejects(link)]
        new = [link.url.text not in self._known for link in admitted]
        self._known.update(link.url.text for link in admitted)
        self.traps.note_links(admitted, [int(one) for one in new], url.text)
        for link, one in zip(admitted, new, strict=True):
            if one:
                to = link.url.text.removeprefix("http:").removeprefix("//h.example")
                self._paths[to] = link
                self._queue.append(to)


def frame(*more: object, size: int = 60) -> list[object]:
    return [*(f"frame {n}" for n in range(size)), *more]


def own(path: str, count: int = 40) -> list[object]:
    return [f"{path} {n}" for n in range(count)]


def calendar(path: str) -> tuple[list[object], list[str]]:
    _, _, year, month, _ = path.split("/")
    at = int(year) * 12 + int(month) - 1
    return frame(f"month {month}"), [f"/cal/{to // 12:04d}/{to % 12 + 1:02d}/" for to in (at - 1, at + 1, at + 12)]


def sessions(path: str) -> tuple[list[object], list[str]]:
    page = path.rpartition("/")[2]
    dice = random.Random(path)
    return own(page), [f"/s/{dice.getrandbits(48):012x}a1/{number}" for number in range(8)]


def long_sessions(path: str) -> tuple[list[object], list[str]]:
    """Ten pages with more to say than the sample of a template holds."""
    _, paths = sessions(path)
    return own(path.rpartition("/")[2], 400), [
        *paths,
        *(f"{one[:-1]}{number}" for one in paths[:2] for number in (8, 9)),
    ]


WITH_SESSIONS = {
    "in the path": "{page};jsessionid={id}",
    "in a segment": "/{id}{page}",
    "of ASP.NET": "/(S({id}{id})){page}",
    "in the query": "{page}?sid={id}",
    "before the page": "/show?PHPSESSID={id}&p={page}",
    "two numbers": "{page}?CFID={number}&CFTOKEN={number}",
    "a time": "{page}?_={number}",
    "a fraction": "{page}?rand=0.{number}",
    "for statistics": "{page}?_ga=2.{number}.{number}-{number}",
}


def in_session(form: str, pages: int = 150) -> Site:
    """A site whose links have a new session each."""

    def show(path: str) -> tuple[list[object], list[str]]:
        page = int((re.search(r"/p([0-9]+)", path) or [0, 0])[1])
        dice = random.Random(path)
        linked = [(page * 3 + 1) % pages, (page * 3 + 2) % pages, (page * 3 + 3) % pages, (page + 1) % pages, 0]
        ids = [
            form.format(page=f"/p{n}", id=f"{dice.getrandbits(48):012x}a1", number=dice.getrandbits(48)) for n in linked
        ]
        return own(f"page {page}"), ids

    return show


@pytest.mark.promise("What is fetched", "Pages with a session in their address are fetched once, and all of them.")
@pytest.mark.parametrize("form", WITH_SESSIONS)
def test_a_site_with_sessions_in_its_addresses_is_fetched_once(form: str) -> None:
    crawl = Crawl(in_session(WITH_SESSIONS[form])).run("/")
    assert len({int((re.search(r"/p([0-9]+)", path) or [0, 0])[1]) for path in crawl.fetched}) == 150
    assert len(crawl.fetched) <= 300
    assert len(crawl.sprung) == 1


def views(path: str) -> tuple[list[object], list[str]]:
    """Pictures whose ids look like sessions, each in four sizes, with hardly a word, and the next ones."""
    number = int(path[3:11], 16) - 0xA000_0000
    size = path.rpartition("/")[2]
    near = [f"/i/{0xA000_0000 + (number + step) % 400:08x}/{size}" for step in (1, 7, 30)]
    return frame(number), [
        *near,
        *(f"{path.rpartition('/')[0]}/{one}" for one in ("small", "middle", "large", "whole")),
    ]


def albums(path: str) -> tuple[list[object], list[str]]:
    """Pages of albums by id: equal numbers, and each its own words."""
    album, page = path.removeprefix("/album/").split("/")
    number = int(album, 16) - 0xA000_0000
    more = [f"/album/{0xA000_0000 + (number + step) % 60:08x}/1" for step in (1, 7)]
    return own(path), [*more, *(f"/album/{album}/{n}" for n in range(1, 9) if n != int(page))]


def test_ids_that_name_pages_are_no_sessions() -> None:
    crawl = Crawl(albums).run("/album/a0000000/1", pages_max=4_000)
    assert not crawl.sprung
    assert len(set(crawl.fetched)) == 480
    crawl = Crawl(views).run("/i/a0000000/small", pages_max=4_000)
    assert not any(trap.shapes for trap in crawl.sprung), "they are cut off for their lack of words alone"


def deeper(path: str) -> tuple[list[object], list[str]]:
    dice = random.Random(path)
    return frame(), [f"{path}{dice.choice(['red', 'blue', 'wide', 'tall', 'old'])}{n * 'x'}/" for n in range(3)]


def again(path: str) -> tuple[list[object], list[str]]:
    """Relative links that lead below themselves, by the same two names."""
    return frame(), [f"{path}a/", f"{path}b/"]


def numbered(path: str) -> tuple[list[object], list[str]]:
    """Relative links to pages with numbers, that a server also shows below each other (browsertrix-crawler#410)."""
    return frame(), [f"{path.rpartition('/')[0]}/s{n}.html{end}" for n in range(2) for end in ("", "/")]


def facets(path: str) -> tuple[list[object], list[str]]:
    chosen = set(path.partition("?")[2].split("&")) - {""}
    dice = random.Random(path)
    words = [word for product in dice.sample(range(40), 10) for word in own(f"product {product}", 12)]
    return words, [f"/list?{'&'.join(sorted({*chosen, f'{name}={n}'}))}" for name in "abcdefgh" for n in range(3)]


def escaped(path: str) -> tuple[list[object], list[str]]:
    """Each page escapes the query of its own address once more (Norconex/crawler#28)."""
    query = path.partition("?")[2].replace("%", "%25")
    return frame(), [f"/list?{query}{'&' if query else ''}amp%3Bp={page}" for page in (2, 3)]


def late(path: str) -> tuple[list[object], list[str]]:
    """Equal pages that one list names, and after these a chain of others without end."""
    if path == "/months":
        return own(path), [f"/month/{month}" for month in range(700)]
    month = int(path.rpartition("/")[2])
    return frame(), [f"/month/{month + step}" for step in (1, 2)] if month >= 698 else []


def switches(path: str) -> tuple[list[object], list[str]]:
    """Relative links to languages, each below the last one (autogram-is/spidergram#42)."""
    return frame(), [f"{path}{language}/" for language in ("en", "de", "fr", "es", "it")]


def maze(path: str) -> tuple[list[object], list[str]]:
    dice = random.Random(path)
    return own(path), [f"/maze/{dice.getrandbits(60)}" for _ in range(5)]


@pytest.mark.promise("What is fetched", "Traps are cut off, and no other page of their host.")
@pytest.mark.parametrize(
    ("site", "start", "template", "pages"),
    [
        (calendar, "/cal/2024/01/", "/cal/{n}/{n}/", 340),
        (sessions, "/s/000000000000a1/1", "/s/{id}/{n}", 200),
        (long_sessions, "/s/000000000000a1/1", "/s/{id}/{n}", 300),
        (deeper, "/d/", "/d/*/*/**", 340),
        (again, "/a/", "/a/*/*/**", 340),
        (facets, "/list?", "/list?*", 500),
        (escaped, "/list", "/list?amp%{n}Bp", 200),
        (late, "/months", "/month/{n}", 1_700),
    ],
)
def test_what_has_no_end_and_nothing_new_is_cut_off(site: Site, start: str, template: str, pages: int) -> None:
    crawl = Crawl(site).run(start)
    assert [trap.template for trap in crawl.sprung] == [template]
    assert len(crawl.fetched) <= pages
    assert 0.9 <= crawl.sprung[0].score <= 1


def test_numbered_pages_below_each_other_have_no_trap_for_each_depth() -> None:
    crawl = Crawl(numbered).run("/s1.html")
    assert [trap.template for trap in crawl.sprung] == [f"{'/s{n}.html' * 3}/**/{end}" for end in ("", "s{n}.html")]
    assert len(crawl.fetched) <= 700


@pytest.mark.heavy
def test_languages_below_each_other_are_cut_off_one_after_the_other() -> None:
    crawl = Crawl(switches).run("/", pages_max=3_000)
    assert {trap.template for trap in crawl.sprung} == {f"/{one}/*/*/**" for one in ("en", "de", "fr", "es", "it")}
    assert len(crawl.fetched) <= 1_800


TAGS = "abcdefghijklmnopqrstuvwx"
TAGGED = {entry: frozenset(random.Random(entry).sample(TAGS, 8)) for entry in range(200)}


def tags(path: str) -> tuple[list[object], list[str]]:
    """Up to three tags in the path, in any order: each page shows the entries that have all, and names one tag more."""
    chosen = path.split("/")[2:]
    found = [entry for entry, tagged in TAGGED.items() if tagged.issuperset(chosen)]
    more = sorted({tag for entry in found for tag in TAGGED[entry]} - set(chosen)) if len(chosen) < 3 else []
    words = [word for entry in found[:20] for word in own(f"entry {entry}", 6)]
    return frame(*words), ["/tag/" + "/".join([*chosen, tag]) for tag in more]


@pytest.mark.heavy
def test_combinations_of_tags_are_cut_off_although_their_number_is_finite() -> None:
    crawl = Crawl(tags, trap_pages_min=40).run(*(f"/tag/{tag}" for tag in TAGS), pages_max=20_000)
    assert [trap.template for trap in crawl.sprung] == ["/tag/*/*/**"]
    assert len(crawl.fetched) <= 2_000, "of some 10,000"


def test_a_maze_is_cut_off_by_its_size() -> None:
    crawl = Crawl(maze, trap_maze_pages_max=1_000).run("/maze/1")
    assert [trap.template for trap in crawl.sprung] == ["/maze/{n}"]
    assert 1_000 <= len(crawl.fetched) <= 1_600


def rooms(path: str, form: str, count: int = 4) -> tuple[list[object], list[str]]:
    """A page of a maze, with doors of a form."""
    dice = random.Random(path)
    return own(path, 12), [form.format(dice.getrandbits(48)) for _ in range(count)]


def doors(path: str) -> str:
    """Return the address to which one of a maze redirects; empty for a room."""
    dice = random.Random(path)
    return "" if path.endswith("x") else f"/r/{dice.getrandbits(48)}{'x' if dice.random() < 0.4 else ''}"


def pool(path: str) -> tuple[list[object], list[str]]:
    """A maze of 100,000 addresses, so that some doors lead to known ones."""
    return own(path, 12), [f"/pool/{random.Random(f'{path}{n}').randrange(100_000)}" for n in range(6)]


def with_menu(path: str) -> tuple[list[object], list[str]]:
    """A maze with a menu of as many links as doors."""
    words, paths = rooms(path, "/m/{}", 5)
    return words, [*(f"/m/{number}" for number in range(5)), *paths]


def with_way_back(path: str) -> tuple[list[object], list[str]]:
    words, paths = rooms(path, "/m/{}", 5)
    return words, [f"/m/{random.Random(path).randrange(500)}", *paths]


def in_turn(path: str) -> tuple[list[object], list[str]]:
    """A maze whose rooms are of two templates in turn."""
    return rooms(path, "/b/{}" if path.startswith("/a/") else "/a/{}")


def on_two_hosts(path: str) -> tuple[list[object], list[str]]:
    return rooms(path, "/a/{}" if path.startswith("//") else "//other.example/b/{}")


def nothing(_: str) -> str:
    return ""


@pytest.mark.heavy
@pytest.mark.promise("What is fetched", "Traps are cut off, and no other page of their host.")
@pytest.mark.parametrize(
    ("site", "start", "redirects"),
    [
        (lambda path: rooms(path, "/r/{}"), "/r/1", doors),
        (lambda path: rooms(path, "/r/{}"), "/r/1", lambda path: f"//b.example/m{path[2:]}" * path.startswith("/r/")),
        (pool, "/pool/1", nothing),
        (with_menu, "/m/1", nothing),
        (with_way_back, "/m/1", nothing),
        (in_turn, "/a/1", nothing),
        (on_two_hosts, "/a/1", nothing),
    ],
    ids=["redirects", "redirects to another host", "pool", "menu", "way back", "two templates", "two hosts"],
)
def test_a_maze_that_hides_its_growth_is_cut_off(site: Site, start: str, redirects: Callable[[str], str]) -> None:
    crawl = Crawl(site, redirects=redirects, trap_maze_pages_max=1_500).run(start, pages_max=8_000)
    assert crawl.sprung
    assert len(crawl.fetched) <= 6_000


def tree(path: str) -> tuple[list[object], list[str]]:
    """A directory of 3,905 files in folders, such as tiles or the sources of a program: nearly all are leaves."""
    below = [f"{path}{number}/" for number in range(5)] if path.count("/") < 7 else []
    return own(path, 12), below


def pairs(path: str) -> tuple[list[object], list[str]]:
    """A collection by ids in pairs of digits, with a folder for each pair: /00/00/00/00/17/."""
    depth = path.count("/") - 1
    digits = range(12) if depth >= 3 else range(5)
    return frame(*own(path, 12)), [f"{path}{n % 2}{n}/" for n in digits] if depth < 5 else []


def forum(path: str) -> tuple[list[object], list[str]]:
    """Threads that lead to members, and members without a word of their own that lead to threads."""
    kind, number = path[1], int(path.rpartition("/")[2])
    dice = random.Random(path)
    if kind == "f":
        return own(path), [f"/t/{number * 40 + n}" for n in range(40)] + [f"/f/{number + 1}"] * (number < 99)
    if kind == "t":
        return own(path), [f"/u/{dice.randrange(2_000)}" for _ in range(5)]
    return frame(), [f"/t/{dice.randrange(4_000)}" for _ in range(3)]


def redirected(path: str) -> tuple[list[object], list[str]]:
    """Old addresses, each of which redirects to its new one."""
    number = int(path.rpartition("/")[2])
    return own(path), [f"/old/{n % 4_000}" for n in (number + 1, 3 * number + 1, 7 * number + 5, number // 2)]


@pytest.mark.heavy
@pytest.mark.promise("What is fetched", "Traps are cut off, and no other page of their host.")
@pytest.mark.parametrize(
    ("site", "start", "redirects", "pages"),
    [
        (tree, "/t/", nothing, 3_906),
        (pairs, "/", nothing, 1 + 5 + 25 + 125 + 125 * 12 + 125 * 144),
        (forum, "/f/0", nothing, 6_100),
        (redirected, "/old/0", lambda path: path.replace("/old/", "/new/") * path.startswith("/old/"), 4_000),
    ],
    ids=["tree", "pairs", "forum", "redirected"],
)
def test_large_sites_that_resemble_mazes_are_fetched_whole(
    site: Site, start: str, redirects: Callable[[str], str], pages: int
) -> None:
    crawl = Crawl(site, redirects=redirects, trap_maze_pages_max=2_000).run(start, pages_max=20_000)
    assert crawl.sprung == []
    assert len(set(crawl.fetched)) >= 0.99 * pages


def catalogue(path: str) -> tuple[list[object], list[str]]:
    number = int(path.rpartition("/")[2])
    others = [f"/item/{other % 3_000}" for other in (number + 1, 3 * number + 1, 7 * number + 5, number // 2)]
    return frame(*own(path, 40), size=600), others


def blog(path: str) -> tuple[list[object], list[str]]:
    number = int(path.rpartition("/p")[2])
    to = [f"/blog/{2000 + n // 50}/{n % 12 + 1:02d}/p{n}" for n in (number - 1, number + 1) if 0 <= n < 1_000]
    return frame(*own(path)), to


def wiki(path: str) -> tuple[list[object], list[str]]:
    dice = random.Random(path)
    return frame(*own(path, dice.randrange(10, 200))), [f"/wiki/Word{dice.randrange(2_000)}" for _ in range(20)]


def gallery(path: str) -> tuple[list[object], list[str]]:
    """Pictures without a word, listed in pages that are; each names its neighbours."""
    kind, _, number = path[1:].partition("/")
    if kind == "album":
        page = int(number)
        photos = [f"/photo/{n}" for n in range(page * 40, page * 40 + 40)]
        return frame(*own(path)), [*photos, *([f"/album/{page + 1}"] if page < 24 else [])]
    return frame(), [f"/photo/{n}" for n in (int(number) - 1, int(number) + 1) if 0 <= n < 1_000]


def shown_in_folders(path: str) -> tuple[list[object], list[str]]:
    """The same in one directory, of pictures alone, which name nothing."""
    _, _, kind, number, *_ = path.split("/")
    photos = [f"/g/photo/{number}/{n}" for n in range(40)] if kind == "album" else []
    more = [f"/g/album/{int(number) + 1}"] if photos and int(number) < 49 else []
    return frame(*(own(path) if photos else [])), [*photos, *more]


def finite_calendar(path: str) -> tuple[list[object], list[str]]:
    words, to = calendar(path)
    return words, [one for one in to if 2005 <= int(one.split("/")[2]) <= 2026]


DOCUMENTS = 300
LANGUAGES = ("en", "de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt-br", "ru", "sv", "tr", "uk", "zh-cn", "zh-tw")


def languages(path: str) -> tuple[list[object], list[str]]:
    """A manual of which few pages are translated: the others of a language are the English ones."""
    _, manual, language, part, name = path.split("/")
    number = int(name)
    says = own(f"{language if number % 50 == 0 else 'en'} {number}")
    near = [(number + step) % DOCUMENTS for step in (1, 2, 3, number + 1)]
    return says, [
        *(f"/{manual}/{language}/part{other % 20}/{other}" for other in near),
        *(f"/{manual}/{other}/{part}/{name}" for other in LANGUAGES if number == 0),
    ]


def versions(path: str) -> tuple[Iterable[object], list[str]]:
    """Documentation of many versions, in which a page differs by a word or two."""
    _, version, name = path.split("/")
    number = int(name.removesuffix(".html"))
    near = [(number + step) % DOCUMENTS for step in (1, 2, 3, number + 1)]
    says = (f"text {number} {n}" for n in range(600))  # Of few pages they are looked at.
    return chain(says, (f"version {version}", f"edition {version}")), [
        *(f"/{version}/{other}.html" for other in near),
        *(f"/{other}/{name}" for other in range(1, 25) if number == 0),
    ]


def languages_and_versions(path: str) -> tuple[Iterable[object], list[str]]:
    """Both, one within the other."""
    _, language, version, name = path.split("/")
    number = int(name)
    shown = language if number % 4 == 0 else "en"
    says = chain((f"{shown} {number} {n}" for n in range(600)), (f"version {version}",))
    near = [(number + step) % 100 for step in (1, 2, 3, number + 1)]
    return says, [
        *(f"/{language}/{version}/{other}" for other in near),
        *(f"/{other}/{version}/{name}" for other in LANGUAGES if number == 0),
        *(f"/{language}/{other}/{name}" for other in range(1, 13) if number == 0),
    ]


@pytest.mark.heavy
@pytest.mark.promise("What is fetched", "Languages and versions that repeat a site's pages are no traps.")
@pytest.mark.parametrize(
    ("site", "start", "pages"),
    [
        (languages, "/manual/en/part0/0", len(LANGUAGES) * DOCUMENTS),
        (versions, "/1/0.html", 24 * DOCUMENTS),
        pytest.param(languages_and_versions, "/en/1/0", len(LANGUAGES) * 12 * 100, marks=pytest.mark.long),
    ],
)
def test_languages_and_versions_are_fetched_whole(site: Site, start: str, pages: int) -> None:
    crawl = Crawl(site).run(start, pages_max=20_000)
    assert crawl.sprung == []
    assert len(set(crawl.fetched)) == pages


def shops(path: str) -> tuple[list[object], list[str]]:
    """Filters in the path: each choice of some values is a page, which shows the same goods."""
    chosen = path.split("/")[2:-1]
    dice = random.Random(path)
    words = [word for product in dice.sample(range(40), 10) for word in own(f"product {product}", 12)]
    others = [
        "/".join([*chosen[:place], value, *chosen[place + 1 :]])
        for place in range(5)
        for value in ("red", "blue", "wide", "tall", "old", "new", "soft", "hard")
    ]
    return words, [f"/shop/{one}/" for one in others]


def browsing_sessions(path: str) -> tuple[list[object], list[str]]:
    """A session lasts for the whole site of twenty pages, and each page begins another one too."""
    _, session, page = path.split("/")
    fresh = random.Random(path).getrandbits(48)
    return own(page), [*(f"/{session}/{number}" for number in range(20)), f"/visit-{fresh:012x}a1/{page}"]


def copies(path: str) -> tuple[list[object], list[str]]:
    """A site of twenty pages under one name after the other, without end."""
    _, copy, page = path.split("/")
    return own(page), [*(f"/{copy}/{number}" for number in range(20)), f"/{copy}x/0", f"/{copy}y/0"]


@pytest.mark.parametrize(
    ("site", "start", "pages"),
    [(shops, "/shop/red/red/red/red/red/", 400), (browsing_sessions, "/visit/1", 400), (copies, "/copy/0", 2_000)],
)
def test_filters_sessions_and_endless_copies_are_no_languages(site: Site, start: str, pages: int) -> None:
    crawl = Crawl(site).run(start)
    assert crawl.sprung
    assert len(crawl.fetched) <= pages


@pytest.mark.heavy
@pytest.mark.promise("What is fetched", "Traps are cut off, and no other page of their host.")
@pytest.mark.parametrize(
    ("site", "start", "pages"),
    [
        (catalogue, "/item/0", 3_000),
        (blog, "/blog/2000/01/p0", 1_000),
        (wiki, "/wiki/Word1", 2_001),
        (gallery, "/album/0", 1_025),
        (shown_in_folders, "/g/album/0", 2_050),
        (finite_calendar, "/cal/2016/01/", 264),
    ],
)
def test_large_and_odd_sites_are_fetched_whole(site: Site, start: str, pages: int) -> None:
    crawl = Crawl(site).run(start, pages_max=5_000)
    assert crawl.sprung == []
    assert len(crawl.fetched) >= pages - 1


def listing(path: str) -> tuple[list[object], list[str]]:
    """2,000 pages that have much to say, and after them empty ones without end."""
    number = int(path.rpartition("/")[2])
    says = frame(*own(path)) if number < 2_000 else frame()
    return says, [f"/list/{number + 1}", f"/list/{number + 2}"]


def test_a_template_that_was_good_for_long_is_cut_off_when_it_turns() -> None:
    crawl = Crawl(listing).run("/list/0", pages_max=5_000)
    assert [trap.template for trap in crawl.sprung] == ["/list/{n}"]
    assert 2_000 < len(crawl.fetched) <= 2_600


def test_pages_that_are_new_cost_few_sketches() -> None:
    crawl = Crawl(catalogue).run("/item/0")
    assert crawl.sketched < len(crawl.fetched) / 16


def test_exact_copies_need_no_sketch() -> None:
    traps = Traps(ScopeOptions())
    for number in range(400):
        url = named(f"/same/{number}")
        if traps.note_page(url, None, YEAR) is not None:
            break
        traps.note_links([Link(named(f"/same/{number + 1}"), "anchor", 1, 0, url.text)] * 2, [1, 1])
    assert number == 181


def test_years_far_ahead_say_nothing_whatever_they_say() -> None:
    def eventful(path: str) -> tuple[list[object], list[str]]:
        return own(path), calendar(path)[1]

    crawl = Crawl(eventful).run("/cal/2024/01/")
    assert [trap.template for trap in crawl.sprung] == ["/cal/{n}/{n}/"]


@pytest.mark.heavy
def test_a_template_beside_a_trap_is_left_alone() -> None:
    def both(path: str) -> tuple[list[object], list[str]]:
        return calendar(path) if path.startswith("/cal/") else catalogue(path)

    crawl = Crawl(both).run("/item/0", "/cal/2024/01/", pages_max=6_000)
    assert [trap.name for trap in crawl.sprung] == ["h.example/cal/{n}/{n}/"]
    assert len({path for path in crawl.fetched if path.startswith("/item/")}) == 3_000


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def flat(path: str) -> tuple[list[object], list[str]]:
    """A pool without end at the root of a site, among whose names are those of a chain of 100 ordinary pages."""
    name = path[1:]
    if name.startswith("page"):
        number = LETTERS.index(name[4]) * 26 + LETTERS.index(name[5])
        following = f"/page{LETTERS[(number + 1) // 26]}{LETTERS[(number + 1) % 26]}"
        return own(path), [following] if number < 99 else []
    if not name:
        return own(path), ["/pageaa", "/pool"]
    dice = random.Random(path)
    return frame(), ["/" + "".join(dice.choices(LETTERS, k=9)) for _ in range(3)]


@pytest.mark.promise("What is fetched", "Traps are cut off, and no other page of their host.")
def test_ordinary_pages_whose_addresses_are_like_those_of_a_trap_are_fetched() -> None:
    crawl = Crawl(flat).run("/")
    assert [trap.template for trap in crawl.sprung] == ["/*"]
    assert sum(path.startswith("/page") for path in crawl.fetched) == 100
    assert len(crawl.fetched) < 800


def by(path: str, link_type: str = "anchor", referrer: str = "/pool", depth: int = 9) -> Link:
    return Link(named(path), link_type, depth, 0, f"http://h.example{referrer}")


def sprung(site: Site, start: str, **options: object) -> tuple[Traps, Trap]:
    """Return a trap as it is when it is found, as an earlier run stored it."""
    crawl = Crawl(site, **options).run(start)
    traps = Traps(ScopeOptions())
    for partition, _, _, dumped in crawl.traps.take_changed():
        traps.load(partition, dumped)
    return traps, traps.all[0]


def test_what_a_sitemap_or_a_page_elsewhere_names_is_fetched_as_long_as_it_differs() -> None:
    traps, trap = sprung(flat, "/")
    before = trap.pages_spared
    assert traps.trap_on_path(by("/late")) is trap, "a page of the trap names it"
    for link in (by("/late", "sitemap"), by("/late", "feed"), by("/late", "seed"), by("/late", referrer="/docs/intro")):
        assert traps.trap_on_path(link) is None
    assert traps.trap_on_path(by("/late", depth=1)) is None
    for number in range(200):
        words = own(f"late {number}")
        traps.note_page(named(f"/late{LETTERS[number % 26]}{'x' * number}"), lambda said=words: sketch_of(said), YEAR)
    assert traps.trap_on_path(by("/more", referrer="/latea")) is None, "a page that differs names it"
    for _ in range(CREDIT_PAGES):
        assert traps.trap_on_path(by("/late", "sitemap")) is None
        traps.note_page(named("/same"), lambda: sketch_of(frame()), YEAR)
    assert traps.trap_on_path(by("/late", "sitemap")) is trap
    assert trap.pages_spared == before + 200 + CREDIT_PAGES


def test_of_a_maze_few_pages_are_spared() -> None:
    traps, trap = sprung(maze, "/maze/1", trap_maze_pages_max=1_000)
    for number in range(CREDIT_PAGES):
        assert traps.trap_on_path(by("/maze/7", "sitemap")) is None
        words = own(f"spared {number}")
        traps.note_page(named(f"/maze/{number}"), lambda said=words: sketch_of(said), YEAR)
    assert traps.trap_on_path(by("/maze/7", "sitemap")) is trap


def test_what_is_exempt_or_switched_off_is_never_cut_off() -> None:
    assert Crawl(calendar, trap_exempt=["/cal/"]).run("/cal/2024/01/").sprung == []
    assert Crawl(calendar, Traps(ScopeOptions(traps=False))).run("/cal/2024/01/").sprung == []


def test_what_is_released_stays_so() -> None:
    crawl = Crawl(calendar).run("/cal/2024/01/")
    traps = crawl.traps
    held = Link(named("/cal/1900/01/"), "anchor", 7, 0, "http://h.example/cal/1900/02/")
    traps.hold([held, held, Link(named("/elsewhere"), "anchor", 1)])
    assert traps.release("h.example/other", lambda _: 1) == []
    released = traps.release("h.example", lambda _: 1)
    assert [trap.name for trap in released] == ["h.example/cal/{n}/{n}/"]
    assert released[0].held == [("http://h.example/cal/1900/01/", 7, "http://h.example/cal/1900/02/")]
    before = len(crawl.fetched)
    crawl.run("/cal/2300/01/", pages_max=before + 1_000)
    assert len(crawl.fetched) == before + 1_000
    assert traps.trap_of(named("/cal/2500/01/")) is None


def test_it_goes_on_where_it_was_when_it_is_opened_again() -> None:
    whole = Crawl(calendar).run("/cal/2024/01/")
    kept: dict[str, bytes] = {}
    crawl = Crawl(calendar).run("/cal/2024/01/", pages_max=200)
    kept |= {host: dumped for _, host, dumped in crawl.traps.take_watched()}
    assert list(crawl.traps.take_watched()) == [], "nothing changed since"
    again = Traps(ScopeOptions(), lambda _, host: kept.get(host))
    for _ in range(40):
        again.note_page(named("/other"), None, YEAR)  # A host is known again when it has some pages.
    crawl.traps = again
    crawl.run(pages_max=5_000)
    assert [trap.template for trap in crawl.sprung] == ["/cal/{n}/{n}/"]
    assert len(crawl.fetched) <= len(whole.fetched) + 40

    dumps = [(partition, dumped) for partition, _, _, dumped in again.take_changed()]
    opened = Traps(ScopeOptions())
    for partition, dumped in dumps:
        opened.load(partition, dumped)
    assert opened.trap_of(named("/cal/2500/01/")) is not None
    assert opened.trap_of(named("/cal/")) is None
    assert opened.trap_of(named("/cal/2500/01/", "other.example")) is None


def test_of_a_host_that_another_shard_has_now_nothing_is_left() -> None:
    traps = Crawl(calendar).run("/cal/2024/01/").traps
    traps.forget(["h.example"], [])
    assert traps.all == []
    assert traps.trap_of(named("/cal/2500/01/")) is None
    assert list(traps.take_watched()) == [], "its pages count anew"


def test_memory_does_not_grow_with_hosts() -> None:
    traps = Traps(ScopeOptions())
    for number in range(WARDS_MAX + 50):
        for page in range(34):
            traps.note_page(named(f"/p{page}", f"h{number}.example"), None, YEAR)
    assert len(traps._wards) <= WARDS_MAX
    assert len(traps._counted) <= HOSTS_COUNTED_MAX
    passed = {host for _, host, _ in traps.take_watched()}
    assert "h0.example" in passed, "what leaves the memory goes to the store"
    assert traps._passed == {}
