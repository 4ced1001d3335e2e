"""Host farms in the ring: cut off, named, kept over a restart, released; and large sites that are none."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gossamer.engine.traps import hosts_named
from gossamer.model.visits import Reply
from gossamer.stages.scope.farms import HOSTS_FIRST, SPARED_MAX
from gossamer.testing import page, reply
from tests.engine.ring import Ring, url_of

FARM = "http://www.farm.example/"
NAME = "*.farm.example/**"
Web = Callable[[str, str], Reply | None]
"""Host and path to what is there."""
SYLLABLES = [first + second for first in "bdgklm" for second in "aeiou"]
COMMON = "The garden shop sells seeds, bulbs and tools for every season and sends them within two days. " * 3


def word(dice: random.Random, syllables: int = 4) -> str:
    return "".join(dice.choice(SYLLABLES) for _ in range(syllables))


def words(seed: str, count: int = 60) -> str:
    dice = random.Random(seed)
    return " ".join(word(dice) for _ in range(count))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Farms take many steps to their end."""
    monkeypatch.setattr("tests.engine.ring.STEPS_MAX", 100_000)


class Pages(dict[str, object]):
    """A web without end, as `FakeWeb` asks for it."""

    def __init__(self, web: Web) -> None:
        super().__init__()
        self._web = web

    def get(self, url: str, default: object = None) -> object:  # type: ignore[override]
        parts = urlsplit(url)
        if parts.path == "/robots.txt":
            return default
        found = self._web(parts.hostname or "", parts.path)
        return found if found is not None else default


def crawled(ring: Ring, web: Web, *seeds: str) -> None:
    ring.web.pages = Pages(web)  # type: ignore[assignment]
    ring.crawl(*seeds)


def bounded(web: Web, hosts_max: int) -> Web:
    """A web of which so many hosts name others, and the rest none."""
    known: set[str] = set()

    def some(host: str, path: str) -> Reply | None:
        known.add(host)
        return web(host, path) if len(known) <= hosts_max else page(text=COMMON)

    return some


def hosts_asked(ring: Ring, site: str = "farm.example") -> set[str]:
    hosts = {urlsplit(request.url).hostname or "" for request in ring.web.requests}
    return {host for host in hosts if host.endswith(site)}


def tree(host: str, path: str) -> Reply:
    """Ten hosts with random names a page, which are all that its pages say besides what all of them say."""
    dice = random.Random(host)
    return page(*(f"http://{word(dice)}.farm.example/" for _ in range(10)), title=f"Welcome to {host}", text=COMMON)


def chain(host: str, path: str) -> Reply:
    return page(f"http://{word(random.Random(host), 6)}.farm.example/", text=COMMON)


def numbered(host: str, path: str) -> Reply:
    number = int("0" + "".join(filter(str.isdigit, host)))
    return page(*(f"http://host-{7 * number + n}.farm.example/" for n in range(1, 8)), text=COMMON)


def nested(host: str, path: str) -> Reply:
    """Subdomains of subdomains."""
    dice = random.Random(host)
    name = host if host.count(".") < 20 else "farm.example"
    return page(*(f"http://{word(dice, 2)}.{name}/" for _ in range(3)), text=COMMON)


def mixed(host: str, path: str) -> Reply:
    dice = random.Random(host)
    ways = ("http://{}/", "https://{}/", "http://{}:8080/", "https://{}:8443/a", "//{}:81/")
    return page(*(way.format(f"{word(dice)}.farm.example") for way in ways), text=COMMON)


def redirecting(host: str, path: str) -> Reply:
    """Every second host redirects to another one."""
    dice = random.Random(host)
    to = [f"http://{word(dice)}.farm.example/" for _ in range(4)]
    if host != "www.farm.example" and dice.random() < 0.5:
        return reply(b"", 302, (("Location", to[0]),))
    return page(*to, text=COMMON)


@pytest.mark.heavy
@pytest.mark.promise(
    "What is fetched", "Farms of hosts that bring nothing new are cut off, and hosts that bring new content are not."
)
@pytest.mark.parametrize("web", [tree, chain, numbered, nested, mixed, redirecting], ids=lambda web: web.__name__)
def test_hosts_without_end_that_say_nothing_new_are_cut_off(tmp_path: Path, web: Web) -> None:
    with Ring(tmp_path, scope={"scope": "any"}) as ring:
        crawled(ring, web, FARM)
        assert [trap.name for trap in ring.traps.all] == [NAME]
        assert ring.frontier.counts.pending == 0, "the crawl ends"
        assert ring.adds_up()
        assert len(hosts_asked(ring)) <= 900
        (trap,) = ring.traps.all
        assert trap.says().startswith(f"{NAME} is a trap (score ")
        assert "hosts say nothing new, and they go on naming others" in trap.says()
        assert any(f"`gossamer release DIR '{NAME}'` lets it go on" in note for note in ring.counters.notes)
        never = ring.explainer.why("http://never.farm.example/")
        assert (never["state"], never["rule"]) == ("rejected", "trapped")
        assert NAME in str(never["reason"])


@pytest.mark.heavy
def test_what_was_queued_of_a_farm_ends_without_a_lookup_or_a_request(tmp_path: Path) -> None:
    with Ring(tmp_path, scope={"scope": "any"}, frontier={"active_site_hosts_first": 4}) as ring:
        crawled(ring, tree, FARM)
        ends = Counter(ring.outcomes.values())
        assert ends["trapped"] > 500
        assert len(ring.resolver.counts) <= ends["fetched"] + 4 + ends["fetched"] // 16
        (told,) = {ring.explainer.why(url)["reason"] for url, end in ring.outcomes.items() if end == "trapped"}
        assert NAME in str(told)


@pytest.mark.heavy
@pytest.mark.promise(
    "What is fetched", "Farms of hosts that bring nothing new are cut off, and hosts that bring new content are not."
)
def test_good_hosts_of_the_farms_site_are_spared(tmp_path: Path) -> None:
    """Hosts that came first, and one that came later and had something to say before the farm was known."""

    def good(host: str, path: str) -> Reply:
        number = int(path.strip("/") or 0)
        more = ["http://shop.farm.example/", "http://farm.example/"] if host == "www.farm.example" else []
        return page(*more, f"/{number + 1}" if number < 200 else "/", text=words(host + path))

    def web(host: str, path: str) -> Reply:
        name = host.partition(".")[0]
        return good(host, path) if name in ("www", "shop", "late", "farm") else farm(host, path)

    farm = bounded(tree, 5)
    with Ring(tmp_path, scope={"scope": "any"}) as ring:
        crawled(ring, web, FARM, "http://seed.farm.example/")
        assert len(hosts_asked(ring)) > HOSTS_FIRST
        assert ring.traps.all == []
        crawled(ring, web, "http://late.farm.example/")
        farm = tree
        crawled(ring, web, "http://seed2.farm.example/")
        assert [trap.name for trap in ring.traps.all] == [NAME]
        pages = Counter(urlsplit(url).hostname for url, end in ring.outcomes.items() if end == "fetched")
        good_hosts = ("www.farm.example", "shop.farm.example", "farm.example", "late.farm.example")
        assert [pages[host] for host in good_hosts] == [201] * 4
        for host in good_hosts:
            assert ring.trapping.judge(url_of(f"http://{host}/x"), 0.0).allowed


@pytest.mark.heavy
@pytest.mark.long
def test_a_farm_whose_hosts_all_say_something_is_cut_off_by_its_size(tmp_path: Path) -> None:
    def web(host: str, path: str) -> Reply:
        dice = random.Random(host)
        return page(*(f"http://{word(dice)}.farm.example/" for _ in range(5)), text=words(host))

    with Ring(tmp_path, scope={"scope": "any"}) as ring:
        crawled(ring, web, FARM)
        assert [trap.name for trap in ring.traps.all] == [NAME]
        assert ring.frontier.counts.pending == 0
        assert 1_000 <= len(hosts_asked(ring)) <= 1_200 + SPARED_MAX
        assert "of the hosts that its hosts name are new, without end" in ring.traps.all[0].says()


@pytest.mark.heavy
def test_a_ring_of_many_hosts_that_say_something_is_no_farm(tmp_path: Path) -> None:
    """Each names the next one and no other: nearly all that they name is new, to the last."""

    def web(host: str, path: str) -> Reply:
        number = int("0" + "".join(filter(str.isdigit, host)))
        return page(f"http://blog{(number + 1) % 1_500}.blogs.example/", text=words(host))

    with Ring(tmp_path, scope={"scope": "any"}) as ring:
        crawled(ring, web, "http://blog0.blogs.example/")
        assert ring.traps.all == []
        assert len(hosts_asked(ring, "blogs.example")) == 1_500


@pytest.mark.heavy
def test_farms_that_name_each_other_are_each_cut_off(tmp_path: Path) -> None:
    sites = ("farm.example", "barn.example", "mill.example")

    def web(host: str, path: str) -> Reply:
        dice = random.Random(host)
        others = [site for site in sites if not host.endswith(site)]
        return page(*(f"http://{word(dice)}.{dice.choice(others)}/" for _ in range(6)), text=COMMON)

    with Ring(tmp_path, scope={"scope": "any"}) as ring:
        crawled(ring, web, *(f"http://www.{site}/" for site in sites))
        assert {trap.host for trap in ring.traps.all} == {f"*.{site}" for site in sites}
        assert ring.frontier.counts.pending == 0
        assert len(ring.web.requests) <= 3_000


def platform(blogs: int, text: Callable[[str], str], directory: str) -> Web:
    """Blogs that name some others of the same platform, and a directory of all of them, fifty a page."""

    def web(host: str, path: str) -> Reply | None:
        if host == directory:
            number = int(path.strip("/") or 0)
            listed = range(50 * number, min(50 * number + 50, blogs))
            more = [f"/{number + 1}"] if 50 * number + 50 < blogs else []
            return page(*more, *(f"http://blog{n}.blogs.example/" for n in listed), text=f"page {words(path)}")
        number = int(host.removeprefix("blog").partition(".")[0])
        near = [f"http://blog{(7 * number + n) % blogs}.blogs.example/" for n in range(1, 5)]
        return page(*near, text=text(host)) if path == "/" else None

    return web


@pytest.mark.heavy
@pytest.mark.parametrize("directory", ["www.blogs.example", "directory.example"])
def test_a_platform_of_many_blogs_that_say_something_is_fetched_whole(tmp_path: Path, directory: str) -> None:
    with Ring(tmp_path, scope={"scope": "any"}) as ring:
        crawled(ring, platform(1_500, words, directory), f"http://{directory}/")
        assert ring.traps.all == []
        assert len(hosts_asked(ring, "blogs.example") - {directory}) == 1_500


@pytest.mark.heavy
def test_a_platform_whose_blogs_are_empty_but_named_by_another_site_is_fetched_whole(tmp_path: Path) -> None:
    with Ring(tmp_path, scope={"scope": "any"}) as ring:
        crawled(ring, platform(1_500, lambda _: COMMON, "directory.example"), "http://directory.example/")
        assert ring.traps.all == []
        assert len(hosts_asked(ring, "blogs.example")) == 1_500


@pytest.mark.heavy
@pytest.mark.parametrize("split", [[], ["farm.example"]], ids=["", "split"])
@pytest.mark.long
def test_a_farm_and_its_evidence_outlive_the_process_and_can_be_released(tmp_path: Path, split: list[str]) -> None:
    url = {"split_sites": split}
    with Ring(tmp_path, scope={"scope": "any"}, url=url) as ring:
        crawled(ring, tree, FARM)
        ring.run(ring.committer.commit())
        spared = next(request.url for request in ring.web.requests if "farm.example" in request.url)
    with Ring(tmp_path, scope={"scope": "any"}, url=url) as ring:
        assert [trap.name for trap in ring.traps.all] == [NAME]
        assert not ring.trapping.judge(url_of("http://x.farm.example/"), 0.0).allowed
        assert ring.trapping.judge(url_of(spared), 0.0).allowed
        assert ring.trapping.judge(url_of(FARM), 0.0).allowed
        assert ring.trapping.judge(url_of("http://farm.example/"), 0.0).allowed
        ring.web.pages = Pages(lambda host, path: page(text=words(host)))  # type: ignore[assignment]
        now = ring.clock.now()
        release = ring.trapping.release_trap(
            "*.farm.example",
            ring.namer,
            ring.history,
            ring.pipeline.discovery.discover,
            lambda link: ring.frontier.add(link, 0, now),
        )
        assert ring.run(release) == [NAME]
        before = len(ring.rows)
        ring.run(ring.turns())
        ends = Counter(row.outcome for row in ring.rows[before:])
        assert ends["fetched"] > 100
        assert ends["trapped"] == 0


@pytest.mark.heavy
@pytest.mark.parametrize("split", [[], ["farm.example"]], ids=["", "split"])
def test_evidence_outlives_the_process(tmp_path: Path, split: list[str]) -> None:
    url = {"split_sites": split}
    with Ring(tmp_path, scope={"scope": "any"}, url=url) as ring:
        crawled(ring, bounded(chain, 200), FARM)
        ring.run(ring.committer.commit())
        assert ring.traps.all == []
        assert len(ring.web.requests) == 201
    with Ring(tmp_path, scope={"scope": "any"}, url=url) as ring:
        crawled(ring, chain, "http://other.farm.example/")
        assert [trap.name for trap in ring.traps.all] == [NAME]
        assert ring.traps.all[0].pages >= 300
        assert len(ring.web.requests) < 100 + 2 * HOSTS_FIRST + 150, "those of the first run count"


def test_what_is_exempt_and_what_is_switched_off_is_not_watched(tmp_path: Path) -> None:
    for number, options in enumerate(({"trap_exempt": ["farm"]}, {"traps": False})):
        directory = tmp_path / str(number)
        directory.mkdir()
        with Ring(directory, scope={"scope": "any", **options}) as ring:
            crawled(ring, bounded(numbered, 60), FARM)
            assert len(hosts_asked(ring)) > 400
            assert ring.traps.all == []


def test_names_of_hosts_are_found_within_bounds() -> None:
    url = url_of("http://own.farm.example/")
    assert hosts_named(url, b"<a href=//Some.deep.farm.example:81/>x</a> https://u@other.example // ///y") == (
        "http://farm.example/own.farm.example/Some.deep.farm.example/u"
    )
    many = b" ".join(b"//h%d.farm.example" % number for number in range(10_000))
    assert hosts_named(url, many).count("/") < 300
    assert len(hosts_named(url, b"//" * 200_000)) < 100
    assert len(hosts_named(url, (b"//" + b"x" * 500) * 1_000)) < 30_000
