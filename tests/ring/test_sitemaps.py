"""Sitemaps and feeds in a crawl: what only they name is found, and they speak for nobody else."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ring.crawls import OWN, Crawled, crawl, rows
from tests.ring.hostile import Answer, HostileServer, whole

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def html(text: str = "") -> Answer:
    return whole(f"<!doctype html><title>T</title>{text}".encode())


def sitemap(*urls: str) -> bytes:
    entries = "".join(f"<url><loc>{url}</loc><lastmod>2026-11-01</lastmod></url>" for url in urls)
    return f'<?xml version="1.0"?><urlset xmlns="{NAMESPACE}">{entries}</urlset>'.encode()


def index(*urls: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f'<?xml version="1.0"?><sitemapindex xmlns="{NAMESPACE}">{entries}</sitemapindex>'.encode()


def robots(*sitemaps: str) -> Answer:
    return whole("".join(f"Sitemap: {url}\n" for url in sitemaps).encode(), "text/plain")


@pytest.fixture
def site() -> Iterator[HostileServer]:
    with HostileServer({"/": html("<a href=/linked.html>l</a>")}) as server:
        yield server


@pytest.fixture
def away() -> Iterator[HostileServer]:
    with HostileServer({}, "127.0.0.2") as server:
        yield server


def fetched(crawled: Crawled) -> set[str]:
    assert crawled.critical() == ""
    return {str(row["url"]) for row in crawled.rows if row["outcome"] == "fetched"}


def pages(server: HostileServer, *names: str) -> set[str]:
    for name in names:
        server.answers.setdefault(f"/{name}", html())
    return {server.root + name for name in names}


@pytest.mark.parametrize("scope", ["host", "prefix"])
@pytest.mark.parametrize("seed", ["pages.xml", "index.xml"])
def test_a_sitemap_that_is_a_seed_lists_pages_of_its_whole_host(
    site: HostileServer, away: HostileServer, tmp_path: Path, scope: str, seed: str
) -> None:
    listed = pages(site, "a", "deep/b")
    site.answers |= {
        "/maps/pages.xml": whole(sitemap(*listed, *pages(away, "elsewhere")), "application/xml"),
        "/maps/index.xml": whole(index(f"{site.root}maps/pages.xml"), "application/xml"),
    }
    crawled = crawl((f"{site.root}maps/{seed}",), tmp_path / "crawl", *OWN, f"scope.scope={scope}")
    assert {url for url in fetched(crawled) if "/maps/" not in url} == listed


def moved(target: str) -> Answer:
    return whole(b"", "text/html")._replace(status=302, headers=(("Location", target),))


@pytest.mark.parametrize("scope", ["host", "prefix"])
def test_a_seed_is_a_sitemap_in_each_of_their_forms(site: HostileServer, tmp_path: Path, scope: str) -> None:
    listed = pages(site, *"abcdefg")
    root = site.root
    item = "<item><link>{}</link></item>"
    site.answers |= {
        "/maps/1.txt": whole(f"{root}a\n".encode(), "text/plain"),
        "/maps/2.gz": whole(gzip.compress(sitemap(f"{root}b")), "application/gzip"),
        "/maps/3.rss": whole(f"<rss><channel>{item.format(root + 'c')}</channel></rss>".encode(), "text/xml"),
        "/maps/4": whole(sitemap(f"{root}d"), "text/html"),
        "/maps/5": moved("/found/5.gz"),
        "/found/5.gz": whole(gzip.compress(sitemap(f"{root}e")), "application/octet-stream"),
        "/maps/6.xml": whole(index(f"{root}other/7.xml"), "text/xml"),
        "/other/7.xml": whole(index(f"{root}third/8.xml"), "text/xml"),
        "/third/8.xml": whole(sitemap(f"{root}f"), "text/xml"),
        "/maps/9.atom": whole(f"<feed><entry><link href='{root}g'/></entry></feed>".encode(), "text/plain"),
    }
    for seed in ("1.txt", "2.gz", "3.rss", "4", "5", "6.xml", "9.atom"):
        crawled = crawl((f"{root}maps/{seed}",), tmp_path / seed, *OWN, f"scope.scope={scope}")
        found = fetched(crawled) & listed
        assert len(found) == 1, seed
        listed -= found
    assert not listed


def test_other_hosts_that_a_seed_lists_are_left_to_the_scope(
    site: HostileServer, away: HostileServer, tmp_path: Path
) -> None:
    root = site.root
    site.answers |= {
        "/maps/index.xml": whole(index(f"{root}1.xml", f"{away.root}2.xml"), "text/xml"),
        "/1.xml": whole(sitemap(f"{away.root}maps/a"), "text/xml"),
    }
    away.answers["/2.xml"] = whole(sitemap(f"{away.root}maps/b"), "text/xml")
    wanted = pages(away, "maps/a", "maps/b")
    crawl((f"{root}maps/index.xml",), tmp_path / "host", *OWN)
    assert not away.counts
    seeds = (f"{root}maps/index.xml", f"{away.root}x")
    pages(away, "x")
    assert wanted <= fetched(crawl(seeds, tmp_path / "both", *OWN))


@pytest.mark.parametrize("named", [True, False])
def test_versions_in_other_languages_are_followed_within_the_scope(
    site: HostileServer, away: HostileServer, tmp_path: Path, named: bool
) -> None:
    root = site.root
    versions = f'<x:link rel="alternate" href="{root}de"/><x:link rel="alternate" href="{away.root}fr"/>'
    body = sitemap(f"{root}en").replace(b"</loc>", f"</loc>{versions}".encode())
    site.answers["/robots.txt"] = robots(f"{root}s.xml") if named else robots()
    site.answers["/s.xml"] = whole(
        body.replace(b"<urlset", b'<urlset xmlns:x="http://www.w3.org/1999/xhtml"'), "text/xml"
    )
    pages(site, "en", "de", "linked.html")
    pages(away, "fr", "y")
    crawled = crawl((root if named else f"{root}s.xml",), tmp_path / "a", *OWN)
    assert {f"{root}en", f"{root}de"} <= fetched(crawled)
    assert not away.counts
    kinds = {(row["to_url"], row["link_type"]) for row in rows(crawled.directory / "links")}
    assert {(f"{root}en", "sitemap"), (f"{root}de", "alternate"), (f"{away.root}fr", "alternate")} <= kinds
    seeds = (root if named else f"{root}s.xml", f"{away.root}y")
    assert f"{away.root}fr" in fetched(crawl(seeds, tmp_path / "b", *OWN))


@pytest.mark.promise("What is fetched", "Pages that only sitemaps name are found, whichever robots.txt is read first.")
def test_what_only_sitemaps_name_is_found_in_each_of_their_forms(site: HostileServer, tmp_path: Path) -> None:
    root = site.root
    site.answers |= {
        "/robots.txt": robots(f"{root}index.xml", f"{root}plain.txt", f"{root}news.xml"),
        "/index.xml": whole(index(f"{root}a.xml", f"{root}b.xml.gz"), "application/xml"),
        "/a.xml": whole(sitemap(f"{root}only-a.html", root), "text/xml"),
        "/b.xml.gz": whole(gzip.compress(sitemap(f"{root}only-b.html")), "application/x-gzip"),
        "/plain.txt": whole(f"\n{root}only-plain.html\r\nno address\n".encode(), "text/plain"),
        "/news.xml": whole(
            f"<rss version='2.0'><channel><item><link>{root}only-news.html</link></item></channel></rss>".encode(),
            "application/rss+xml",
        ),
    }
    wanted = pages(site, "linked.html", "only-a.html", "only-b.html", "only-plain.html", "only-news.html")
    crawled = crawl((root,), tmp_path / "c", *OWN)
    sitemaps = {root + name for name in ("index.xml", "a.xml", "b.xml.gz", "plain.txt", "news.xml")}
    assert fetched(crawled) == wanted | sitemaps | {root}
    assert all(count == 1 for count in site.counts.values()), site.counts
    by_url = {str(row["url"]): row for row in crawled.rows}
    assert by_url[f"{root}index.xml"]["link_type"] == "sitemap_file"
    assert by_url[f"{root}index.xml"]["referrer"] == f"{root}robots.txt"
    assert by_url[f"{root}only-b.html"]["link_type"] == "sitemap"
    kinds = {(row["to_url"], row["link_type"]) for row in rows(crawled.directory / "links")}
    assert {
        (f"{root}only-a.html", "sitemap"),
        (f"{root}only-news.html", "feed"),
        (f"{root}a.xml", "sitemap_file"),
    } <= kinds


def test_results_obey_the_scope_and_robots_txt(site: HostileServer, tmp_path: Path) -> None:
    root = site.root
    site.answers["/robots.txt"] = whole(
        f"User-agent: *\nDisallow: /denied\nSitemap: {root}s.xml\nSitemap: {root}denied.xml".encode(), "text/plain"
    )
    site.answers["/s.xml"] = whole(sitemap(f"{root}good.html", f"{root}denied.html", f"{root}cut.html"), "text/xml")
    pages(site, "linked.html", "good.html", "denied.html", "cut.html", "denied.xml")
    crawled = crawl((root,), tmp_path / "c", *OWN, "scope.exclude=['cut']")
    assert fetched(crawled) == {root, *(root + name for name in ("linked.html", "good.html", "s.xml"))}
    assert crawled.outcomes[f"{root}denied.html"] == crawled.outcomes[f"{root}denied.xml"] == "robots_denied"
    assert not {"/denied.html", "/denied.xml", "/cut.html"} & site.counts.keys()


@pytest.mark.promise(
    "What is fetched", "A sitemap that is no seed lists pages only of the hosts whose robots.txt names it."
)
def test_a_sitemap_speaks_for_its_own_host(site: HostileServer, away: HostileServer, tmp_path: Path) -> None:
    site.answers["/robots.txt"] = robots(f"{site.root}s.xml")
    site.answers["/s.xml"] = whole(sitemap(f"{site.root}own.html", f"{away.root}stolen.html"), "text/xml")
    pages(site, "linked.html", "own.html")
    pages(away, "stolen.html")
    crawled = crawl((site.root,), tmp_path / "c", *OWN, scope="any")
    assert f"{site.root}own.html" in fetched(crawled)
    assert not away.counts


@pytest.mark.promise(
    "What is fetched", "A sitemap that is no seed lists pages only of the hosts whose robots.txt names it."
)
def test_a_sitemap_elsewhere_speaks_for_whose_robots_txt_names_it(
    site: HostileServer, away: HostileServer, tmp_path: Path
) -> None:
    site.answers["/robots.txt"] = robots(f"{away.root}shared/index.xml")
    away.answers["/shared/index.xml"] = whole(index(f"{away.root}shared/1.xml"), "text/xml")
    away.answers["/shared/1.xml"] = whole(sitemap(f"{site.root}found.html", "http://127.0.0.3/no.html"), "text/xml")
    pages(site, "linked.html", "found.html")
    crawled = crawl((site.root,), tmp_path / "c", *OWN)
    assert f"{site.root}found.html" in fetched(crawled)
    assert not any("127.0.0.3" in key for key in crawled.outcomes)
    assert set(away.counts) == {"/robots.txt", "/shared/index.xml", "/shared/1.xml"}


@pytest.mark.promise("What is fetched", "Pages that only sitemaps name are found, whichever robots.txt is read first.")
def test_a_sitemap_that_another_host_names_later_is_read_once_more(
    site: HostileServer, away: HostileServer, tmp_path: Path
) -> None:
    """What is found does not depend on whose robots.txt came first."""
    shared = f"{site.root}s.xml"
    site.answers["/robots.txt"] = robots(shared)
    # The other host is found in the sitemap's own page, so that the sitemap has been read by then.
    site.answers["/later.html"] = html(f"<a href={away.root}>over</a>")
    site.answers["/s.xml"] = whole(sitemap(f"{away.root}only.html", f"{site.root}later.html"), "text/xml")
    away.answers["/"] = html()
    away.answers["/robots.txt"] = robots(shared)
    pages(away, "only.html")
    crawled = crawl((site.root,), tmp_path / "c", *OWN, scope="any")
    assert f"{away.root}only.html" in fetched(crawled)
    assert site.counts["/s.xml"] == 2
    assert crawled.status["discovered"] == crawled.status["terminal"]


def test_a_sitemap_that_has_moved_is_still_one(site: HostileServer, tmp_path: Path) -> None:
    root = site.root
    site.answers["/robots.txt"] = robots(f"{root}old.xml")
    site.answers["/old.xml"] = whole(b"", "text/html")._replace(status=301, headers=(("Location", "/new"),))
    site.answers["/new"] = whole(gzip.compress(f"{root}only.html\n".encode()), "application/octet-stream")
    wanted = pages(site, "linked.html", "only.html")
    crawled = crawl((root,), tmp_path / "c", *OWN)
    assert fetched(crawled) == wanted | {root, f"{root}new"}
    assert crawled.outcomes[f"{root}old.xml"] == "redirected"


def test_a_sitemap_that_has_moved_to_another_host_still_speaks_for_the_host_that_names_it(
    site: HostileServer, away: HostileServer, tmp_path: Path
) -> None:
    site.answers["/robots.txt"] = robots(f"{site.root}s.xml")
    site.answers["/s.xml"] = whole(b"", "text/html")._replace(
        status=302, headers=(("Location", f"{away.root}far.xml"),)
    )
    away.answers["/far.xml"] = whole(index(f"{away.root}1.xml"), "text/xml")
    away.answers["/1.xml"] = whole(sitemap(f"{site.root}found.html", "http://127.0.0.3/no.html"), "text/xml")
    pages(site, "linked.html", "found.html")
    crawled = crawl((site.root,), tmp_path / "c", *OWN)
    assert f"{site.root}found.html" in fetched(crawled)
    assert not any("127.0.0.3" in key for key in crawled.outcomes)


def test_a_sitemap_to_which_another_host_redirects_later_is_read_once_more(
    site: HostileServer, away: HostileServer, tmp_path: Path
) -> None:
    site.answers["/robots.txt"] = robots(f"{site.root}s.xml")
    # The other host is found in the sitemap's own page, so that the sitemap has been read by then.
    site.answers["/later.html"] = html(f"<a href={away.root}>over</a>")
    site.answers["/s.xml"] = whole(sitemap(f"{away.root}only.html", f"{site.root}later.html"), "text/xml")
    away.answers["/"] = html()
    away.answers["/robots.txt"] = robots(f"{away.root}s.xml")
    away.answers["/s.xml"] = whole(b"", "text/html")._replace(status=301, headers=(("Location", f"{site.root}s.xml"),))
    pages(away, "only.html")
    crawled = crawl((site.root,), tmp_path / "c", *OWN, scope="any")
    assert f"{away.root}only.html" in fetched(crawled)
    assert site.counts["/s.xml"] == 2


def test_a_random_walk_reads_none(site: HostileServer, tmp_path: Path) -> None:
    site.answers["/robots.txt"] = robots(f"{site.root}s.xml")
    pages(site, "linked.html")
    crawl((site.root,), tmp_path / "c", *OWN, "frontier.strategy='walk'", "walk.steps_max=20")
    assert site.counts["/linked.html"] == 1
    assert "/s.xml" not in site.counts


def test_a_sitemap_that_only_a_link_leads_to_speaks_for_its_directory(site: HostileServer, tmp_path: Path) -> None:
    site.answers["/"] = html("<a href=/blog/s.xml>map</a>")
    site.answers["/blog/s.xml"] = whole(sitemap(f"{site.root}blog/in.html", f"{site.root}out.html"), "text/xml")
    pages(site, "blog/in.html", "out.html")
    crawled = crawl((site.root,), tmp_path / "c", *OWN)
    assert fetched(crawled) == {site.root, f"{site.root}blog/s.xml", f"{site.root}blog/in.html"}


def test_with_a_limit_of_depth_and_where_it_is_switched_off_no_sitemap_is_fetched(
    site: HostileServer, tmp_path: Path
) -> None:
    site.answers["/robots.txt"] = robots(f"{site.root}s.xml")
    site.answers["/s.xml"] = whole(sitemap(f"{site.root}only.html"), "text/xml")
    pages(site, "linked.html", "only.html")
    for name, setting in (("a", "scope.depth_max=5"), ("b", "discovery.sitemaps='never'")):
        crawl((site.root,), tmp_path / name, *OWN, setting)
    assert not {"/s.xml", "/only.html"} & site.counts.keys()


def test_where_none_is_named_one_may_be_guessed(site: HostileServer, tmp_path: Path) -> None:
    site.answers["/sitemap.xml"] = whole(sitemap(f"{site.root}only.html"), "text/xml")
    pages(site, "linked.html", "only.html")
    crawl((site.root,), tmp_path / "a", *OWN)
    assert "/sitemap.xml" not in site.counts
    crawled = crawl((site.root,), tmp_path / "b", *OWN, "discovery.sitemap_guess=true")
    assert f"{site.root}only.html" in fetched(crawled)


def test_indexes_without_end_end(site: HostileServer, tmp_path: Path) -> None:
    root = site.root
    site.answers["/robots.txt"] = robots(f"{root}0.xml")
    for number in range(9):
        site.answers[f"/{number}.xml"] = whole(
            index(f"{root}{number + 1}.xml", f"{root}{number}.xml", f"{root}wide{number}.xml"), "text/xml"
        )
    pages(site, "linked.html")
    crawled = crawl((root,), tmp_path / "c", *OWN, "discovery.sitemaps_per_host_max=5")
    assert sum(count for path, count in site.counts.items() if path.endswith(".xml")) <= 6
    assert any("left: discovery.sitemaps_per_host_max is 5" in str(row["error"]) for row in crawled.rows)
    assert crawled.critical() == ""


def test_types_that_are_not_wanted_do_not_keep_sitemaps_out(site: HostileServer, tmp_path: Path) -> None:
    site.answers["/robots.txt"] = robots(f"{site.root}s.xml")
    site.answers["/s.xml"] = whole(sitemap(f"{site.root}only.html"), "text/xml")
    pages(site, "linked.html", "only.html")
    crawled = crawl((site.root,), tmp_path / "c", *OWN, "scope.media_types=['text/html']", "scope.include=['html']")
    assert f"{site.root}only.html" in fetched(crawled)


def test_feeds_are_asked_for_where_they_are_wanted_and_their_entries_followed(
    site: HostileServer, tmp_path: Path
) -> None:
    names = "".join(f"<link rel=alternate type=application/atom+xml href=/{n}.atom>" for n in range(5))
    site.answers["/"] = html(names)
    entry = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/entry.html'/></entry></feed>"
    site.answers |= {f"/{n}.atom": whole(entry.encode(), "text/html") for n in range(5)}
    pages(site, "entry.html")
    crawl((site.root,), tmp_path / "a", *OWN)
    assert "/0.atom" not in site.counts
    crawled = crawl((site.root,), tmp_path / "b", *OWN, "discovery.feeds='always'", "discovery.feeds_per_host_max=3")
    assert f"{site.root}entry.html" in fetched(crawled)
    assert sum(path.endswith(".atom") for path in site.counts) == 3


@pytest.mark.heavy
def test_hostile_sitemaps_cost_their_bounds_and_name_what_stands_before(site: HostileServer, tmp_path: Path) -> None:
    root = site.root
    bomb = b'<!DOCTYPE u [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>'
    deep = sitemap(f"{root}before-deep.html").replace(b"</urlset>", b"<a>" * 100_000)
    site.answers |= {
        "/robots.txt": robots(*(f"{root}{name}.xml" for name in ("bomb", "deep", "cut", "zip", "latin", "file"))),
        "/bomb.xml": whole(bomb, "text/xml"),
        "/deep.xml": whole(deep, "text/xml"),
        "/cut.xml": whole(sitemap(f"{root}before-cut.html", f"{root}never.html")[:-60], "text/xml"),
        "/zip.xml": whole(gzip.compress(b"<urlset>" + bytes(200 << 20))[: 1 << 20], "text/xml"),
        "/latin.xml": whole(
            sitemap(f"{root}é.html").decode().replace("?>", " encoding='iso-8859-1'?>", 1).encode("latin-1"), "text/xml"
        ),
        "/file.xml": whole(sitemap("file:///etc/passwd", "javascript:alert(1)", "http://[::1", root), "text/xml"),
    }
    wanted = pages(site, "linked.html", "before-deep.html", "before-cut.html", "%C3%A9.html")
    crawled = crawl((root,), tmp_path / "c", *OWN, "process.module_s_max=5")
    assert wanted <= fetched(crawled)
    errors = {str(row["url"]).removeprefix(root): str(row["error"]) for row in crawled.rows if row["error"]}
    assert "entities" in errors["bomb.xml"]
    assert "nested deeper" in errors["deep.xml"]
