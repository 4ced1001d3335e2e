"""`--embeds`: all that pages need is fetched, wherever it lies; and from there nothing is crawled on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ring.crawls import OWN, Crawled, crawl
from tests.ring.hostile import Answer, HostileServer, whole

PNG = whole(b"\x89PNG\r\n\x1a\n", "image/png")


def html(text: str) -> Answer:
    return whole(f"<!doctype html><title>T</title>{text}".encode())


@pytest.fixture(scope="module")
def webs() -> Iterator[tuple[HostileServer, HostileServer]]:
    """A site, and another on which a part of what its pages need lies."""
    with HostileServer({}) as site, HostileServer({}, "127.0.0.2") as away:
        far = away.root
        site.answers = {
            "/": html(
                f"<link rel=stylesheet href={far}style.css><img src=/near.png><img src={far}far.png>"
                f"<script src={far}code.js></script><iframe src={far}frame.html></iframe>"
                f"<a href=/deep.html>d</a><a href={far}page.html>off</a><object data=/inner.html></object>"
                f"<img src={far}moved.png><img src=/denied.png><a rel=nofollow href=/nofollow.html>n</a>"
            ),
            "/deep.html": html("<img src=/deep.png><a href=/deeper.html>d</a>"),
            "/deeper.html": html("<img src=/never.png>"),
            "/inner.html": html("<a href=/from-inner.html>i</a><img src=/inner.png>"),
            "/from-inner.html": html(""),
            "/nofollow.html": html(""),
            "/robots.txt": whole(b"User-agent: *\nDisallow: /denied.png", "text/plain"),
            **{f"/{name}.png": PNG for name in ("near", "deep", "never", "inner", "denied")},
        }
        away.answers = {
            "/style.css": whole(b"@import 'more.css'; p{background:url(bg.png)}", "text/css"),
            "/more.css": whole(b"@import 'more2.css'; @font-face{src:url(font.woff2)}", "text/css"),
            **{
                f"/more{n}.css": whole(f"@import 'more{n + 1}.css'; p{{b:url(bg{n}.png)}}".encode(), "text/css")
                for n in range(2, 20)
            },
            "/frame.html": html("<img src=framed.png><a href=/from-frame.html>f</a>"),
            "/page.html": html(""),
            "/from-frame.html": html(""),
            "/code.js": whole(b"x", "text/javascript"),
            "/font.woff2": whole(b"x", "font/woff2"),
            **{f"/{name}.png": PNG for name in ("far", "bg", "framed", *(f"bg{n}" for n in range(2, 20)))},
            "/moved.png": Answer(lambda: (b"",), "text/html", status=404),
        }
        yield site, away


def fetched(webs: tuple[HostileServer, HostileServer], crawled: Crawled) -> tuple[set[str], set[str]]:
    """The paths of each site that were fetched."""
    assert crawled.critical() == ""
    ok = [str(row["url"]) for row in crawled.rows if row["outcome"] == "fetched"]
    site, away = ({url.removeprefix(web.root) for url in ok if url.startswith(web.root)} for web in webs)
    return site, away


NEEDED_NEAR = {"", "near.png", "inner.html", "inner.png", "deep.html", "deep.png", "deeper.html", "never.png"}
NEEDED_FAR = {"style.css", "far.png", "code.js", "frame.html", "framed.png", "more.css", "bg.png", "font.woff2"}


def test_without_them_pages_alone_are_fetched(webs: tuple[HostileServer, HostileServer], tmp_path: Path) -> None:
    crawled = crawl((webs[0].root,), tmp_path / "c", *OWN)
    assert fetched(webs, crawled) == ({"", "deep.html", "deeper.html"}, set())
    assert not any(kind == "embed" for kind in types(crawled))


@pytest.mark.promise(
    "What is fetched",
    "With `--embeds` everything that pages need is fetched, and no link outside the scope is followed from there.",
)
def test_all_that_a_page_needs_is_fetched_and_nothing_beyond(
    webs: tuple[HostileServer, HostileServer], tmp_path: Path
) -> None:
    before = webs[1].counts.copy()
    crawled = crawl((webs[0].root,), tmp_path / "c", *OWN, "scope.hops_max=3", embeds=True)
    site, away = fetched(webs, crawled)
    # A page that is ours by itself is crawled on, however it was met.
    assert site == NEEDED_NEAR | {"from-inner.html"}
    # Embeds of embeds are hops, so that a chain of them ends.
    assert away == NEEDED_FAR | {"more2.css", "bg2.png", "more3.css"}
    asked = webs[1].counts - before
    assert asked["/page.html"] == asked["/from-frame.html"] == 0
    assert crawled.outcomes[f"{webs[0].root}denied.png"] == "robots_denied"
    embeds = {str(row["url"]): row for row in crawled.rows if row["link_type"] == "embed"}
    assert embeds[f"{webs[1].root}font.woff2"]["referrer"] == f"{webs[1].root}more.css"
    assert embeds[f"{webs[0].root}near.png"]["depth"] == 1


def test_what_a_page_at_the_last_depth_needs_is_fetched_too(
    webs: tuple[HostileServer, HostileServer], tmp_path: Path
) -> None:
    crawled = crawl((webs[0].root,), tmp_path / "c", *OWN, "scope.depth_max=1", embeds=True)
    site, _ = fetched(webs, crawled)
    assert site == NEEDED_NEAR - {"deeper.html", "never.png"}


def test_include_patterns_are_for_pages(webs: tuple[HostileServer, HostileServer], tmp_path: Path) -> None:
    crawled = crawl(
        (webs[0].root,), tmp_path / "c", *OWN, "scope.include=['/deep']", "scope.exclude=['framed']", embeds=True
    )
    site, away = fetched(webs, crawled)
    assert {"near.png", "deep.png"} <= site
    assert "from-inner.html" not in site
    assert "frame.html" in away
    assert "framed.png" not in away


def types(crawled: Crawled) -> set[object]:
    return {row["link_type"] for row in crawled.rows}
