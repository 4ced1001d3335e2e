"""A continuous crawl that is told of changes by sitemaps and feeds, and asks for those pages alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.ring.crawls import OWN, command_line, rows, until
from tests.ring.hostile import HostileServer, whole
from tests.ring.test_sitemaps import html, robots

PATIENT = ("revisit.interval_s_mean=1e7", "revisit.interval_s_min=0.5", "revisit.interval_s_max=1e8")
"""Nobody visits a page again for weeks, unless he is told to."""


@pytest.fixture
def site() -> Iterator[HostileServer]:
    with HostileServer({"/": html("")}) as server:
        yield server


def sitemap(site: HostileServer, lastmod: dict[str, float]) -> None:
    stamp = {path: datetime.fromtimestamp(int(at), UTC).isoformat() for path, at in lastmod.items()}
    entries = "".join(f"<url><loc>{site.root}{path}</loc><lastmod>{stamp[path]}</lastmod></url>" for path in lastmod)
    site.answers["/s.xml"] = whole(f"<urlset>{entries}</urlset>".encode(), "application/xml")


@pytest.mark.heavy
def test_a_newer_lastmod_brings_one_page_back_and_no_other(site: HostileServer, tmp_path: Path) -> None:
    names = [f"page{number}" for number in range(30)]
    before = time.time() - 90 * 86_400
    lastmod = dict.fromkeys(names, before)
    site.answers |= {f"/{name}": html(name) for name in names}
    site.answers["/robots.txt"] = robots(f"{site.root}s.xml")
    sitemap(site, lastmod)
    polled = 'revisit.max_age_s={"/s[.]xml" = 0.5}'
    with command_line(tmp_path / "c") as running:
        running.crawl((site.root,), *OWN, *PATIENT, polled, mode="continuous")
        until(lambda: all(site.counts[f"/{name}"] for name in names) and site.counts["/s.xml"] > 1)
        running.until_commit()
        running.kill_child()
        time_of_change = time.time() + 2
        lastmod["page7"] = time_of_change
        site.answers["/page7"] = html("page 7 has news")
        sitemap(site, lastmod)
        until(lambda: site.counts["/page7"] > 1)
        readings = site.counts["/s.xml"]
        until(lambda: site.counts["/s.xml"] > readings + 3)
    again = {name for name in names if site.counts[f"/{name}"] > 1}
    assert again == {"page7"}
    assert site.counts["/page7"] == 2, "one change is one visit"


@pytest.mark.promise("Continuous crawls", "A sitemap or feed that reports every page as changed causes no visits.")
def test_a_sitemap_that_says_always_now_causes_no_revisits(site: HostileServer, tmp_path: Path) -> None:
    names = [f"page{number}" for number in range(30)]
    site.answers |= {f"/{name}": html(name) for name in names}
    site.answers["/robots.txt"] = robots(f"{site.root}s.xml")
    sitemap(site, dict.fromkeys(names, time.time()))
    polled = 'revisit.max_age_s={"/s[.]xml" = 0.3}'
    with command_line(tmp_path / "c") as running:
        running.crawl((site.root,), *OWN, *PATIENT, polled, mode="continuous")
        until(lambda: all(site.counts[f"/{name}"] for name in names))
        for _ in range(5):
            readings = site.counts["/s.xml"]
            sitemap(site, dict.fromkeys(names, time.time() + 1))
            until(lambda readings=readings: site.counts["/s.xml"] > readings + 1)
    assert {site.counts[f"/{name}"] for name in names} == {1}


def test_a_feed_is_asked_at_its_own_pace_and_its_news_are_fetched(site: HostileServer, tmp_path: Path) -> None:
    site.answers["/"] = html("<link rel=alternate type=application/rss+xml href=/feed>")

    def feed(*names: str) -> None:
        for name in names:
            site.answers[f"/{name}"] = html(name)
        items = "".join(
            f"<item><link>{site.root}{name}</link><pubDate>{formatdate()}</pubDate></item>" for name in names
        )
        site.answers["/feed"] = whole(f"<rss><channel>{items}</channel></rss>".encode(), "application/rss+xml")

    feed("one")
    with command_line(tmp_path / "c") as running:
        running.crawl(
            (site.root,), *OWN, *PATIENT, "discovery.feed_s_min=0.5", "discovery.feed_s_max=0.5", mode="continuous"
        )  # fmt: skip
        until(lambda: site.counts["/one"] and site.counts["/feed"] > 1)
        feed("two", "one")
        until(lambda: site.counts["/two"])
        running.until_commit()
        assert running.process is not None
        running.process.terminate()
        assert running.wait() == 130
    assert site.counts["/two"] == 1
    assert site.counts["/"] == 1
    feeds = [row for row in rows(tmp_path / "c/pages") if row["link_type"] == "feed_file"]
    assert len(feeds) >= 3, "each asking is a visit like any"
