"""What sitemaps and feeds say: whom it may concern, how often to ask, and whether to believe it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gossamer.features.revisit.hints import NESTED_MAX, SitemapHints, always_now, interval_s, mean_gap_s
from gossamer.features.revisit.options import DiscoveryOptions
from gossamer.features.revisit.state import Memory
from gossamer.model.links import (
    FEED,
    FEED_FILE,
    SEED_FILE,
    SITEMAP,
    SITEMAP_FILE,
    Announced,
    Announcement,
    Link,
    Notice,
    Visit,
)  # fmt: skip
from gossamer.model.pages import Sight
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.options import UrlOptions
from gossamer.url.url import Url

NAMER = Namer(UrlOptions().canonicalizer())
DAY_S = 86_400.0
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
MAP = "https://e.example/maps/s.xml"


def url(text: str) -> Url:
    named = NAMER.name(text)
    assert named is not None
    return named


class Remembered:
    """`ports.Revisits` over a dictionary, which notes what it is told."""

    def __init__(self) -> None:
        self.pages: dict[str, Memory] = {}
        self.notices: list[Notice] = []

    def visit(self, text: str, at: float, payload: bytes = b"same") -> None:
        self.pages[text] = Memory("", at, at, payload=payload)

    def last_visit(self, page: Url) -> Memory | None:
        return self.pages.get(page.text)

    def note(self, notice: Notice, now: float) -> bool:
        self.notices.append(notice)
        return notice.url.text in self.pages

    def seen(self, sight: Sight) -> float | None:
        raise NotImplementedError


@pytest.fixture
def epochs(tmp_path: Path) -> Iterator[Epochs]:
    store = Store(tmp_path / "store")
    yield Epochs(store)
    store.close()


@pytest.fixture
def pages() -> Remembered:
    return Remembered()


@pytest.fixture
def hints(epochs: Epochs, pages: Remembered) -> SitemapHints:
    return SitemapHints(epochs, DiscoveryOptions(), NAMER.name, pages, sitemaps=True, feeds=True)


def sitemap(*entries: tuple[str, float]) -> Announcement:
    return Announcement("sitemap", [Announced(text, changed_at) for text, changed_at in entries])


def links(*texts: str, link_type: str = SITEMAP) -> list[Link]:
    return [Link(url(text), link_type, 1) for text in texts]


def names(found: list[Link]) -> list[str]:
    return [link.url.text for link in found]


def admitted(
    hints: SitemapHints,
    page: str,
    link_type: str,
    depth: int,
    announcement: Announcement,
    given: list[Link],
    seed: int = 0,
) -> list[Link]:
    visit = Visit(url(page), depth, 0, link_type, "", seed=seed)
    return hints.admitted(visit, announcement, given, lambda url: url.site == "e.example")


# ---- who may speak for whom


def test_a_sitemap_speaks_for_its_host_under_either_scheme(hints: SitemapHints) -> None:
    given = links("https://e.example/a", "http://e.example/b", "https://www.e.example/c", "https://other.example/d")
    found = admitted(hints, MAP, SITEMAP_FILE, 0, told := sitemap(), given)
    assert names(found) == ["https://e.example/a", "http://e.example/b"]
    assert told.error == "2 links of it are left: the robots.txt of their hosts does not name it"


def test_one_that_nobody_named_speaks_for_its_directory(hints: SitemapHints) -> None:
    given = links("https://e.example/maps/a", "https://e.example/mapsb", "http://e.example/maps/c")
    assert names(admitted(hints, MAP, "anchor", 0, told := sitemap(), given)) == ["https://e.example/maps/a"]
    assert told.error == "2 links of it are left: they are not below its directory"


def test_who_names_it_is_spoken_for_and_those_it_names_inherit_that(hints: SitemapHints) -> None:
    # Names of files as crawler-commons#32 resolves them, hosts without a scheme as squirrelscan#393.
    bad = (
        "see below",
        "sitemap",
        "nonsense://x",
        "mailto:x.xml",
        "http://[bad",
        "http://a b/c",
        "http://e.example:99999/",
    )
    odd = (
        "Other.example/bare.xml",
        "third.example/bare.xml",
        "<https://e.example/b.xml>",
        "relative.xml",
        "s/a.xml.gz",
    )
    found, again = hints.named(url("https://other.example/x"), [MAP, *bad, "/path.xml", MAP, *odd])
    bare = ["https://other.example/bare.xml", "https://third.example/bare.xml", "https://e.example/b.xml"]
    bare += ["https://other.example/relative.xml", "https://other.example/s/a.xml.gz"]
    assert names(found) == [MAP, "https://other.example/path.xml", MAP, *bare]
    assert not again
    found, _ = hints.named(url("http://third.example:8080/"), ["Third.example:8080/bare.xml", "third.example:x/x"])
    assert names(found) == ["http://third.example:8080/bare.xml"], "with the port"
    index, child = Announcement("sitemap_index"), "https://e.example/child.xml"
    kept = admitted(hints, MAP, SITEMAP_FILE, 0, index, links(child, "https://x.example/c", link_type=SITEMAP_FILE))
    assert names(kept) == [child]
    given = links("https://other.example/page", "https://third.example/page")
    assert names(admitted(hints, child, SITEMAP_FILE, 1, sitemap(), given)) == ["https://other.example/page"]


def test_a_seed_and_those_it_names_list_what_the_scope_permits(hints: SitemapHints) -> None:
    pages = links("https://e.example/a", "https://x.example/a")
    index, inside, outside = (
        Announcement("sitemap_index"),
        "https://w.e.example/child.xml",
        "https://x.example/child.xml",
    )
    named = links(inside, outside, link_type=SITEMAP_FILE)
    assert names(admitted(hints, MAP, "redirect", 0, index, named, seed=SEED_FILE)) == [inside]
    assert index.error == "1 link of it is left: they are outside the scope"
    assert admitted(hints, inside, SITEMAP_FILE, 1, sitemap(), pages) == pages
    assert admitted(hints, MAP, "redirect", 0, sitemap(), pages) == pages, "when it is visited again"
    assert admitted(hints, outside, SITEMAP_FILE, 1, sitemap(), pages) == pages[1:]


def test_versions_of_pages_may_be_anywhere(hints: SitemapHints) -> None:
    given = links("https://other.example/", link_type="alternate")
    assert admitted(hints, MAP, "anchor", 0, sitemap(), given) == links("https://other.example/")


def test_a_robots_file_has_few_sitemaps_of_other_sites_fetched(hints: SitemapHints) -> None:
    strange = [f"https://victim.example/{i}.xml" for i in range(500)]
    own = [f"https://cdn.evil.example/{i}.xml" for i in range(500)]
    found, _ = hints.named(
        url("https://a.evil.example/"), [name for pair in zip(strange, own, strict=True) for name in pair]
    )
    assert names(found) == [name for pair in zip(strange[:20], own[:20], strict=True) for name in pair] + own[20:]
    assert names(hints.named(url("https://a.evil.example/"), strange)[0]) == strange[:20], "again, the same"
    more = [f"https://victim.example/more/{i}.xml" for i in range(50)]
    assert hints.named(url("https://b.evil.example/"), more)[0] == [], "hosts of one site count together"
    assert names(hints.named(url("https://victim.example/"), more)[0]) == more, "a host names its own"
    assert len(hints.named(url("https://sound.example/"), [f"{one}?2" for one in more])[0]) == 20


def test_redirects_of_sitemaps_lead_to_few_of_other_sites(hints: SitemapHints) -> None:
    targets = [url(f"https://victim.example/{i}") for i in range(100)]
    led = [hints.leads_to(url("https://evil.example/s.xml"), target) for target in targets]
    assert led == [True] * 20 + [False] * 80
    assert all(hints.leads_to(url("https://evil.example/s.xml"), url(f"https://b.evil.example/{i}")) for i in range(99))


def test_who_is_named_too_late_is_read_again_once(hints: SitemapHints) -> None:
    hints.apply(url(MAP), sitemap(), (), NOW)
    assert names(hints.named(url("https://other.example/"), [MAP])[1]) == [MAP]
    assert hints.named(url("https://other.example/"), [MAP])[1] == []
    assert hints.named(url("https://e.example/"), [MAP])[1] == []


def test_indexes_are_followed_so_deep_and_no_host_has_more_than_its_bound(epochs: Epochs, pages: Remembered) -> None:
    hints = SitemapHints(
        epochs, DiscoveryOptions(sitemaps_per_host_max=3), NAMER.name, pages, sitemaps=True, feeds=True
    )
    index = Announcement("sitemap_index")
    given = links(*(f"https://e.example/{n}.xml" for n in range(9)), link_type=SITEMAP_FILE)
    assert len(admitted(hints, MAP, SITEMAP_FILE, 0, index, given)) == 3
    assert len(admitted(hints, MAP, SITEMAP_FILE, 0, index, given)) == 3, "those that are known are no further ones"
    assert index.error == "6 sitemaps of it are left: discovery.sitemaps_per_host_max is 3"
    index = Announcement("sitemap_index")
    assert admitted(hints, MAP, SITEMAP_FILE, NESTED_MAX, index, given) == []
    assert index.error == "9 sitemaps of it are left: indexes are followed 3 deep"


def test_a_feed_is_a_page_with_links_unless_it_stands_for_a_sitemap(hints: SitemapHints) -> None:
    given = links("https://other.example/a", link_type=FEED)
    feed = Announcement("feed")
    assert admitted(hints, MAP, FEED_FILE, 0, feed, given) == given
    assert admitted(hints, MAP, SITEMAP_FILE, 0, feed, given) == []


def test_a_host_has_so_many_feeds(epochs: Epochs, pages: Remembered) -> None:
    hints = SitemapHints(epochs, DiscoveryOptions(feeds_per_host_max=2), NAMER.name, pages, sitemaps=True, feeds=True)
    given = [
        *links(*(f"https://e.example/{n}/feed" for n in range(5)), link_type=FEED_FILE),
        *links("https://e.example/"),
    ]
    kept = ["https://e.example/0/feed", "https://e.example/1/feed", "https://e.example/"]
    assert names(hints.feeds(given)) == kept
    assert names(hints.feeds(given)) == kept


# ---- what is passed on


def test_the_first_reading_tells_of_no_change_and_later_ones_of_what_is_newer(
    hints: SitemapHints, pages: Remembered
) -> None:
    old, new = "https://e.example/old", "https://e.example/new"
    pages.visit(old, NOW - DAY_S)
    pages.visit(new, NOW - DAY_S)
    hints.apply(url(MAP), sitemap((old, NOW - 9 * DAY_S), (new, NOW - 9 * DAY_S)), (), NOW)
    assert pages.notices == []
    hints.apply(url(MAP), sitemap((old, NOW - 9 * DAY_S), (new, NOW + 60)), (), NOW + 90)
    (notice,) = pages.notices
    assert (notice.url.text, notice.source, notice.changed_at, notice.due_now) == (new, "sitemap", NOW + 60, False)
    hints.apply(url(MAP), sitemap((new, NOW + 60)), (), NOW + 100)
    assert len(pages.notices) == 1


def test_hints_travel_with_it_and_dates_of_another_age_do_not(hints: SitemapHints, pages: Remembered) -> None:
    hints.apply(url(MAP), sitemap(), (), NOW)
    told = sitemap(("https://e.example/far", NOW + 9 * DAY_S))
    told.entries.append(Announced("https://e.example/soon", NOW + 60, 3600.0, 0.9))
    hints.apply(url(MAP), told, (), NOW + 30)
    (notice,) = pages.notices
    assert (notice.changed_at, notice.interval_hint_s, notice.importance) == (NOW + 30, 3600.0, 1.8)


@pytest.mark.promise("Continuous crawls", "A sitemap or feed that reports every page as changed causes no visits.")
def test_a_reading_in_which_all_has_just_changed_is_not_believed(hints: SitemapHints, pages: Remembered) -> None:
    texts = [f"https://e.example/{n}" for n in range(50)]
    hints.apply(url(MAP), sitemap(*((text, NOW) for text in texts)), (), NOW)
    hints.apply(url(MAP), sitemap(*((text, NOW + DAY_S) for text in texts)), (), NOW + DAY_S)
    assert pages.notices == []
    assert not always_now([Announced("x", NOW)] * 19, NOW), "a few pages may have"
    assert not always_now([Announced("x", NOW)] * 40 + [Announced("x", NOW - DAY_S)] * 10, NOW)


def test_a_source_whose_changes_are_none_is_not_believed_until_it_mends_its_ways(
    hints: SitemapHints, pages: Remembered
) -> None:
    texts = [f"https://e.example/{n}" for n in range(10)]
    clock = NOW
    for text in texts:
        pages.visit(text, clock)
    hints.apply(url(MAP), sitemap(*((text, clock) for text in texts)), (), clock)

    def reading(*, lies: bool) -> int:
        """Claim that all pages changed a quarter of a day ago, visit them, and say of how many we were told."""
        nonlocal clock
        clock += DAY_S
        pages.notices.clear()
        hints.apply(url(MAP), sitemap(*((text, clock - DAY_S / 4) for text in texts)), (), clock)
        for text in texts:
            pages.visit(text, clock + 60, b"same" if lies else str(clock).encode())
        return len(pages.notices)

    assert reading(lies=True) == 10
    assert reading(lies=True) == 0, "ten claims were checked, and none was true"
    for _ in range(30):
        reading(lies=False)
    assert reading(lies=False) == 10


def test_so_many_changes_are_passed_on_the_oldest_first(epochs: Epochs, pages: Remembered) -> None:
    hints = SitemapHints(epochs, DiscoveryOptions(notices_max=3), NAMER.name, pages, sitemaps=True, feeds=True)
    hints.apply(url(MAP), sitemap(), (), NOW)
    hints.apply(url(MAP), sitemap(*((f"https://e.example/{n}", NOW - n) for n in range(9))), (), NOW + DAY_S)
    assert [notice.changed_at for notice in pages.notices] == [NOW - 8, NOW - 7, NOW - 6]


def test_what_is_known_survives_with_the_epoch(epochs: Epochs, pages: Remembered) -> None:
    def made() -> SitemapHints:
        return SitemapHints(epochs, DiscoveryOptions(), NAMER.name, pages, sitemaps=True, feeds=True)

    made().named(url("https://other.example/"), [MAP])
    made().apply(url(MAP), sitemap(("https://e.example/a", NOW)), (), NOW)
    assert names(admitted(made(), MAP, SITEMAP_FILE, 0, sitemap(), links("https://other.example/"))) != []
    made().apply(url(MAP), sitemap(("https://e.example/a", NOW)), (), NOW + 60)
    assert pages.notices == []


# ---- how often feeds are asked


def feed(*ages_s: float, **said: object) -> Announcement:
    entries = [Announced(f"https://e.example/{n}", NOW - age_s) for n, age_s in enumerate(ages_s)]
    return Announcement("feed", entries, **said)  # type: ignore[arg-type]


def test_a_feed_is_asked_twice_in_the_time_between_two_entries() -> None:
    daily = feed(*(n * DAY_S for n in range(1, 11)))
    assert interval_s(daily, NOW, 300.0, 9 * DAY_S) == DAY_S / 2
    hourly = feed(*(n * 3600.0 for n in range(1, 41)))
    assert interval_s(hourly, NOW, 300.0, DAY_S) == 1800.0
    silent = feed(*((n + 40) * DAY_S for n in range(1, 11)))
    assert interval_s(silent, NOW, 300.0, 9 * DAY_S) == 2.5 * DAY_S


def test_its_wishes_are_obeyed_within_bounds() -> None:
    busy = feed(*(n * 10.0 for n in range(1, 11)))
    assert interval_s(busy, NOW, 300.0, DAY_S) == 300.0
    assert interval_s(feed(10.0, ttl_s=3600.0), NOW, 300.0, DAY_S) == 3600.0
    assert interval_s(feed(10.0), NOW, 300.0, DAY_S, 7200.0) == 7200.0
    assert interval_s(feed(10.0, ttl_s=90 * DAY_S), NOW, 300.0, DAY_S) == DAY_S
    assert interval_s(feed(), NOW, 300.0, DAY_S) == DAY_S
    # It is Friday noon: not before two in the afternoon, or not before Monday.
    assert interval_s(feed(10.0, skip_hours=(12, 13)), NOW, 300.0, DAY_S) == 7200.0
    assert interval_s(feed(10.0, skip_days=(4, 5, 6)), NOW, 300.0, DAY_S) == 2.5 * DAY_S
    assert interval_s(feed(10.0, skip_days=(0, 1, 2, 3, 4, 5, 6)), NOW, 300.0, DAY_S) == 300.0


def test_a_feeds_rhythm_and_its_news_are_passed_on(hints: SitemapHints, pages: Remembered) -> None:
    where = url("https://e.example/feed")
    pages.visit(where.text, NOW)
    hints.apply(where, feed(*(n * DAY_S for n in range(1, 11))), (), NOW)
    (notice,) = pages.notices
    assert (notice.url.text, notice.interval_s) == (where.text, DAY_S / 2)
    pages.notices.clear()
    hints.apply(where, feed(-30.0, DAY_S), (), NOW + 60)
    assert [(one.url.text, one.source, one.changed_at) for one in pages.notices[1:]] == [
        ("https://e.example/0", "feed", NOW + 30)
    ]


def test_the_mean_gap_counts_the_time_since_the_newest_entry() -> None:
    assert mean_gap_s([600.0, 400.0], 1_000.0) == 300.0
    assert mean_gap_s([1_000.0], 400.0) == 0.0
