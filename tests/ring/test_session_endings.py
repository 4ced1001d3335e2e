"""URLs that end a session are found by what follows their requests, and others are not accused of it."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.answering import Answering, serving
from tests.commands import run
from tests.ring.crawls import OWN, Crawled, command_line, crawl, rows, until

PAGES = 18
ENDS = {
    "/kx": "/login",
    "/qv?from=": "/login",
    "/zz/everywhere": "/login",
    "/n?a=7&from=": "/",
    "/m": "page",
    "/h/0x": "page",
}
"""Where each kind of link that ends sessions leads; the number of the page may follow."""


class Members(ThreadingHTTPServer):
    """Pages that need a session, each with links that end it. The page `/` and those below `/open` need none."""

    daemon_threads = True

    def __init__(self, ends: dict[str, str], session_pages: int = 10**6, session_s: float = 10**6) -> None:
        self.ends = ends
        self.session_pages = session_pages
        self.session_s = session_s
        self.sessions: dict[str, tuple[int, float]] = {}
        self.ended: Counter[str] = Counter()
        self.by_path: Counter[str] = Counter()
        self.denied: set[int] = set()
        """Numbers of pages that are answered as if there were no session."""
        self.logins = 0
        members = self

        class Handler(Answering):
            def get(self) -> None:
                members.get(self)

            def do_POST(self) -> None:  # noqa: N802 - http.server's name
                self.rfile.read(int(self.headers["Content-Length"]))
                members.logins += 1
                session = secrets.token_hex(8)
                members.sessions[session] = (members.session_pages, time.monotonic() + members.session_s)
                self.answer(302, b"", ("Location", "/in"), ("Set-Cookie", f"s={session}; Path=/"))

        super().__init__(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.server_port}"

    def get(self, handler: Answering) -> None:
        path = handler.path
        session = handler.headers.get("Cookie", "").removeprefix("s=")
        end = next((end for end in self.ends if path == end or (path.startswith(end) and end[-1:] in "=x")), None)
        if path == "/robots.txt":
            handler.answer(404)
        elif path == "/login":
            handler.answer(200, b"<form method=post action=/session><input name=u><input type=password name=p></form>")
        elif end is not None:
            self.ended[end] += session in self.sessions
            self.by_path[path] += session in self.sessions
            if "everywhere" in end:
                self.sessions.clear()
            self.sessions.pop(session, None)
            place = self.ends[end]
            if place == "page":
                handler.answer(200, b"<title>Gone</title>See you")
            else:
                handler.answer(302, b"", ("Location", place))
        elif path == "/":
            handler.answer(200, b"<title>Home</title><a href=/p/0>in</a>")
        else:
            self.page(handler, session)

    def page(self, handler: Answering, session: str) -> None:
        left, until_s = self.sessions.get(session, (0, 0.0))
        if not left or time.monotonic() > until_s:
            self.sessions.pop(session, None)
            handler.answer(302, b"", ("Location", "/login"))
            return
        if handler.path.startswith(("/p/", "/a?", "/b?")):
            self.sessions[session] = (left - 1, until_s)
        number = int(handler.path.rpartition("/")[2].rpartition("=")[2]) if handler.path != "/in" else -1
        if number in self.denied:
            handler.answer(302, b"", ("Location", "/login"))
            return
        links = [end + (str(number) if end[-1] in "=x" else "") for end in self.ends]
        if number < PAGES - 1:
            links.append(f"/p/{number + 1}")
        body = "".join(f"<a href='{link}'>{secrets.token_hex(2)}</a>" for link in links)
        handler.answer(200, f"<title>page {number}</title>{body}<p>Signed in".encode())


def login(site: Members) -> str:
    return f"login.m={{url='{site.root}/login', fields={{u='me', p='x'}}, check={{text='Signed in'}}}}"


@pytest.fixture
def members() -> Iterator[Members]:
    site = Members(ENDS)
    with serving(site):
        yield site


def require_all_pages(found: list[dict[str, object]]) -> None:
    titles = {row["title"] for row in found if row["outcome"] == "fetched"}
    assert titles >= {f"page {number}" for number in range(PAGES)}


def crawled(site: Members, directory: Path, *sets: str) -> Crawled:
    found = crawl((f"{site.root}/p/0",), directory, *OWN, login(site), *sets)
    assert found.end == "finished", found.critical()
    require_all_pages(found.rows)
    return found


@pytest.mark.promise("Operation", "A crawl finds the URLs that end its session, by what follows their requests.")
def test_links_that_end_the_session_are_excluded_whatever_their_names(tmp_path: Path, members: Members) -> None:
    found = crawled(members, tmp_path / "crawl")
    assert max(members.by_path.values()) <= 2, members.by_path
    assert max(members.ended.values()) <= 6, members.ended
    assert members.logins <= 4 * len(ENDS), "instead of two for each of 18 pages and 5 links"
    warnings = found.status["warnings"]
    assert isinstance(warnings, list)
    assert "end the session of login.m" in warnings[0]
    assert f"{members.root}/qv?from=" in warnings[0]
    excluded = [str(row["url"]) for row in found.rows if row["outcome"] == "excluded" and "/qv?" in str(row["url"])]
    assert len(excluded) > PAGES - 3, "the further ones are not requested"
    for command in ("status", "report"):
        _, out, _ = run(command, str(tmp_path / "crawl"))
        assert "end the session of login.m" in " ".join(out.split()), command
    _, out, _ = run("why", str(tmp_path / "crawl"), excluded[-1])
    assert "login.m: the URL is of a kind after which its session had ended" in " ".join(out.split())


@pytest.mark.promise("Operation", "A crawl finds the URLs that end its session, by what follows their requests.")
def test_what_ends_the_session_is_known_after_a_kill(tmp_path: Path) -> None:
    site = Members({"/qv?from=": "/login", "/n?from=": "/"})
    with serving(site), command_line(tmp_path / "crawl") as running:
        sets = (*OWN, login(site), "politeness.delay_s_min=0.05", "crawl.commit_s=0.1")
        running.crawl((f"{site.root}/p/0",), *sets)
        until(lambda: sum(site.ended.values()) >= 4)
        running.until_commit()
        running.kill_child()
        assert running.wait() == 0
    require_all_pages(rows(tmp_path / "crawl/pages"))
    assert max(site.ended.values()) <= 4, site.ended


@pytest.mark.parametrize("pages", [1, 2, 3, 5])
def test_a_session_that_ends_after_some_pages_accuses_none(tmp_path: Path, pages: int) -> None:
    site = Members({}, session_pages=pages)
    with serving(site):
        found = crawled(site, tmp_path / "crawl")
    assert not [row for row in found.rows if row["outcome"] == "excluded" and "/p/" in str(row["url"])]
    assert found.status["warnings"] == []
    assert site.logins <= PAGES // pages + 4


def test_a_session_that_ends_after_a_time_accuses_none(tmp_path: Path) -> None:
    site = Members({}, session_s=1.0)  # Also on a busy machine enough for a login and a page.
    with serving(site):
        found = crawled(site, tmp_path / "crawl", "politeness.delay_s_min=0.2")
    assert site.logins > 2
    assert not [row for row in found.rows if row["outcome"] == "excluded" and "/p/" in str(row["url"])]
    assert found.status["warnings"] == []


def test_pages_that_an_account_may_not_see_are_no_ends_of_sessions(tmp_path: Path) -> None:
    site = Members({})
    site.denied = {3, 4, 5, 9}
    with serving(site):
        found = crawl(
            tuple(f"{site.root}/p/{number}" for number in range(PAGES)), tmp_path / "crawl", *OWN, login(site)
        )
    fetched = {row["title"] for row in found.rows if row["outcome"] == "fetched"}
    assert fetched >= {f"page {number}" for number in range(PAGES) if number not in site.denied}
    assert not [row for row in found.rows if row["outcome"] == "excluded" and "/p/" in str(row["url"])]
    assert site.logins <= 3 * len(site.denied)
    assert found.status["warnings"] == []
