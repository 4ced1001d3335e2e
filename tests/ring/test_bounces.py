"""Redirects that set a cookie and lead back: the address is requested again, as in browsers, and no loop is endless."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from gossamer.features.logins.sessions import BOUNCES_MAX
from tests.answering import Answering, serving
from tests.ring.crawls import OWN, Crawled, crawl

SEEN = ("Set-Cookie", "seen=1; Path=/")
IN = 200, "<title>in</title><a href='/inside'>more</a>"
ENDLESS = count()


class Walls:
    """A server whose sites, by name, show their front page only with a cookie. `asked` counts requests."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        walls = self

        class Handler(Answering):
            def get(self) -> None:
                host = self.headers["Host"].partition(":")[0]
                walls.asked[host + self.path] += 1
                status, content, *headers = answer(host, self.path, self.headers["Cookie"] or "")
                if status == 302:
                    headers.append(("Location", content.replace("PORT", str(walls.port))))
                self.answer(status, b"" if status == 302 else content.encode(), *headers)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port


class Step(NamedTuple):
    """What a wall answers without its cookie."""

    path: str
    to: str
    sets: bool = False
    refreshes: bool = False


WALLS = {
    "first.test": (Step("/", "/?c=1", sets=True), Step("/?c=1", "/")),
    "second.test": (Step("/", "/?c=1"), Step("/?c=1", "/", sets=True)),
    "several.test": (Step("/", "/a"), Step("/a", "/b"), Step("/b", "/c", sets=True), Step("/c", "/")),
    "consent.test": (Step("/", "/consent?back=/"), Step("/consent?back=/", "/", sets=True)),
    "refresh.test": (Step("/", "/", sets=True, refreshes=True),),
    "hop.refresh.test": (Step("/", "/set", refreshes=True), Step("/set", "/", sets=True, refreshes=True)),
    "mixed.test": (Step("/", "/set", refreshes=True), Step("/set", "/", sets=True)),
    "www.owner.test": (Step("/", "http://login.owner.test:PORT/"),),
}


def answer(host: str, path: str, cookie: str) -> tuple[int, str, *tuple[tuple[str, str], ...]]:
    """Return status, location or body, and headers."""
    if path == "/robots.txt":
        return 404, ""
    if host == "login.owner.test":
        return 302, "http://www.owner.test:PORT/", ("Set-Cookie", "seen=1; Path=/; Domain=owner.test")
    if host == "endless.test":  # A new cookie each time, and never the page.
        new = ("Set-Cookie", f"n{next(ENDLESS)}=1; Path=/")
        return (302, "/set", new) if path == "/" else (302, "/", new)
    if host == "news.test":  # Another value each time, and a page that refreshes itself.
        new = ("Set-Cookie", f"session={next(ENDLESS)}; Path=/")
        return 200, f"<meta http-equiv=refresh content='300;url={path}'>{path}<a href='/inside'>more</a>", new
    if path == "/inside":
        return 200, "inside"
    step = next((step for step in WALLS[host] if step.path == path), None)
    if path == "/" and "seen=1" in cookie:
        return IN
    assert step is not None, f"{host}{path} is not there"
    headers = [SEEN] if step.sets else []
    if step.refreshes:
        return 200, f"<meta http-equiv=refresh content='0;url={step.to}'>wait", *headers
    return 302, step.to, *headers


@pytest.fixture
def walls() -> Iterator[Walls]:
    made = Walls()
    with serving(made.server):
        yield made


def crawled(walls: Walls, folder: Path, *hosts: str, sets: tuple[str, ...] = (), **options: object) -> Crawled:
    (folder / "hosts").write_text(f"127.0.0.1 {' '.join((*hosts, 'login.owner.test'))}\n")
    seeds = tuple(f"http://{host}:{walls.port}/" for host in hosts)
    return crawl(seeds, folder / "crawl", *OWN, *sets, hosts=str(folder / "hosts"), **options)


@pytest.mark.promise("What is fetched", "A page behind redirects that set a cookie is read, as in browsers.")
def test_a_page_is_read_where_redirects_set_a_cookie_and_lead_back(walls: Walls, tmp_path: Path) -> None:
    found = crawled(walls, tmp_path, *WALLS, "endless.test", "news.test", sets=("cookies.enabled=true",))
    assert found.end == "finished", found.critical()
    assert [host for host in WALLS if not walls.asked[f"{host}/inside"]] == []
    assert all(walls.asked[f"{host}/"] == 2 for host in WALLS), walls.asked
    assert walls.asked["endless.test/"] == walls.asked["endless.test/set"] == 1 + BOUNCES_MAX
    assert walls.asked["news.test/"] == 2, "the first request had no cookie"
    assert walls.asked["news.test/inside"] == 1, "another value of a cookie does not make a page another"
    assert found.status["queued"] == 0


def test_without_cookies_each_address_is_requested_once(walls: Walls, tmp_path: Path) -> None:
    crawled(walls, tmp_path, "first.test", "endless.test", "refresh.test")
    assert set(walls.asked.values()) == {1}


def test_filters_of_links_do_not_hinder_the_way_back(walls: Walls, tmp_path: Path) -> None:
    sets = ("cookies.enabled=true", "scope.include=['set','inside']")
    crawled(walls, tmp_path, "mixed.test", "second.test", sets=sets)
    assert walls.asked["mixed.test/"] == 2
    assert walls.asked["second.test/"] == 1, "its hop matches no pattern"


def test_a_crawl_that_revisits_pages_reads_the_page_at_once(walls: Walls, tmp_path: Path) -> None:
    sets = ("cookies.enabled=true", "crawl.mode='continuous'", "limits.max_pages=2")
    found = crawled(walls, tmp_path, "second.test", sets=sets)
    assert found.end == "limit"
    assert walls.asked["second.test/inside"] == 1
