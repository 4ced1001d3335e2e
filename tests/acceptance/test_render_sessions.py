"""Rendering with cookies and logins: an application shows what its session may see, and no other site hears of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from tests.acceptance.conftest import Crawl
from tests.acceptance.noting import Site
from tests.acceptance.test_render import rows
from tests.answering import Answering, serving
from tests.chromium import require_chromium

pytestmark = [pytest.mark.acceptance, pytest.mark.paced, pytest.mark.timeout(300)]
OPTIONS = ("--allow-private", "--quiet", "--politeness", "own", "--render", "always")
PASSWORD, SESSION = "s3cret-word", "sid-of-a-session"
FORM = "<form method=post action=/login><input name=user><input type=password name=pw></form>"
SHOW = """
(async () => {
  const answer = await fetch("/api" + location.pathname);
  const body = document.body, data = answer.ok ? await answer.json() : null;
  if (!data) { ENDED; return; }
  document.cookie = "visits=" + (1 + Number(/visits=(\\d+)/.exec(document.cookie)?.[1] || 0)) + "; path=/";
  document.title = `Hello ${data.user}`;
  const links = data.links.map(to => `<a href=${to}>x</a>`).join("");
  body.insertAdjacentHTML("beforeend", links);
})();
"""
LINKS = {"/": ["/a", "/logout"], "/a": ["/b"], "/b": ["/c"], "/c": []}


class App:
    """An application behind a form. What a session may see comes from its API, and the API ends a session at `ends`.
    `ended` is what its script does then.
    """

    def __init__(self, ended: str, ends: str = "", embeds: str = "") -> None:
        self.ended = ended
        self.ends = ends
        self.page = f"<body>{embeds}<script src=/show.js></script>".encode()
        self.log: list[tuple[str, str]] = []
        self.sessions: set[str] = set()
        self.logins = 0
        app = self

        class Handler(Answering):
            def get(self) -> None:
                app.answer(self)

            do_POST = get  # noqa: N815 - as the base class has it

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request: Answering) -> None:
        path = request.path.partition("?")[0]
        self.log.append((path, request.headers.get("Cookie", "")))
        if path == "/login" and request.command == "POST":
            self._log_in(request)
        elif path == "/login":
            request.answer(200, FORM.encode())
        elif path == "/logout":
            self.sessions.clear()
            request.answer(200, b"out")
        elif path == "/show.js":
            request.answer(200, SHOW.replace("ENDED", self.ended).encode(), media_type="text/javascript")
        elif path.startswith("/api/"):
            self._show(request, path.removeprefix("/api"))
        else:
            request.answer(200 if path in LINKS or path == "/home" else 404, self.page)

    def _log_in(self, request: Answering) -> None:
        sent = parse_qs(request.rfile.read(int(request.headers["Content-Length"])).decode())
        assert sent["pw"] == [PASSWORD]
        self.logins += 1
        self.sessions = {f"{SESSION}-{self.logins}"}
        cookie = f"sid={SESSION}-{self.logins}; Path=/; HttpOnly; SameSite=Lax"
        request.answer(302, b"", ("Location", "/home"), ("Set-Cookie", cookie))

    def _show(self, request: Answering, path: str) -> None:
        cookies = request.headers.get("Cookie", "").split("; ")
        if not any(f"sid={one}" in cookies for one in self.sessions):
            request.answer(401, b"{}", ("Set-Cookie", "sid=nobody; Path=/; HttpOnly"), media_type="application/json")
            return
        data = json.dumps({"user": "jo", "links": LINKS.get(path, [])}).encode()
        request.answer(200, data, ("Vary", "Cookie"), media_type="application/json")
        if path == self.ends and self.logins == 1:
            self.sessions.clear()

    def settings(self, folder: Path) -> tuple[str, ...]:
        """Return the options of a crawl that logs in."""
        (folder / "pw").write_text(PASSWORD)
        (folder / "login.toml").write_text(
            f'[login.app]\nurl = "{self.url}/login"\ncheck.cookie = "sid"\n'
            f'fields = {{user = "jo", pw = "file:{folder / "pw"}"}}\n'
        )
        return "--config", str(folder / "login.toml")


@pytest.fixture
def app(site: Callable[..., Site]) -> Iterator[Callable[..., App]]:
    with ExitStack() as stack:

        def make(*arguments: str, **named: str) -> App:
            made = App(*arguments, **named)
            stack.enter_context(serving(made.server))
            return made

        yield make


def texts(crawl: Path) -> bytes:
    """Return the content of all files of a crawl but its store, in which cookies are kept."""
    found = b""
    for file in crawl.rglob("*"):
        if file.is_file() and "state" not in file.relative_to(crawl).parts:
            data = file.read_bytes()
            found += gzip.decompress(data) if file.suffix == ".gz" else data
    return found


@pytest.mark.promise("What is fetched", "A page of a site with a login is rendered as its session sees it.")
@pytest.mark.long
def test_a_logged_in_session_renders_as_logged_in(
    command: Crawl, tmp_path: Path, app: Callable[..., App], site: Callable[..., Site]
) -> None:
    other = site({"/widget.js": "document.cookie = 'widget=1'; fetch('/api/widget')"}, address="127.0.0.2")
    made = app("body.append('nobody')", embeds=f"<script src={other.url}/widget.js></script>")
    done = command("crawl", f"{made.url}/", "-o", tmp_path / "c", *OPTIONS, *made.settings(tmp_path))
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "c")
    assert {path: row["outcome"] for path, row in found.items()} == {
        "/": "fetched", "/a": "fetched", "/b": "fetched", "/c": "fetched", "/logout": "excluded"
    }  # fmt: skip
    assert {row["rendered"] for path, row in found.items() if path != "/logout"} == {"rendered"}
    assert all(row["title"] == "Hello jo" for path, row in found.items() if path != "/logout")
    assert made.logins == 1
    # What a script has counted in a cookie goes on from page to page.
    assert {cookies.rpartition("visits=")[2] for path, cookies in made.log if path == "/api/c"} == {"3"}
    assert all("cookie" not in headers for *_, headers in other.log)
    assert "/widget.js" in other.paths
    written = texts(tmp_path / "c")
    assert SESSION.encode() not in written
    assert PASSWORD.encode() not in written
    assert b"Cookie: [redacted]" in written


@pytest.mark.promise("What is fetched", "A session that has ended is noticed in a rendered page as in a plain one.")
@pytest.mark.long
@pytest.mark.parametrize("ended", [f"body.innerHTML = `{FORM}`", "location = '/login?next=' + location.pathname"])
def test_a_session_that_ends_in_a_rendered_page_begins_anew(
    command: Crawl, tmp_path: Path, app: Callable[..., App], ended: str
) -> None:
    made = app(ended, ends="/a")
    done = command("crawl", f"{made.url}/", "-o", tmp_path / "c", *OPTIONS, *made.settings(tmp_path))
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "c")
    assert made.logins == 2
    assert {path for path, row in found.items() if row["outcome"] == "fetched"} == {"/", "/a", "/b", "/c"}
    assert all(found[path]["title"] == "Hello jo" for path in LINKS)


@pytest.mark.promise("What is fetched", "A page behind a cookie that its script sets before it reloads is reached.")
@pytest.mark.long
def test_a_page_behind_a_cookie_that_a_script_sets_is_reached(command: Crawl, tmp_path: Path) -> None:
    require_chromium()

    class Gate(Answering):
        def get(self) -> None:
            gate = b"<script>document.cookie = 'seen=yes; path=/; max-age=900'; location.reload()</script>"
            is_open = self.headers.get("Cookie") == "seen=yes"
            self.answer(
                404 if self.path == "/robots.txt" else 200,
                b"<title>Inside</title><a href=/next>x</a>" if is_open else gate,
            )

    server = ThreadingHTTPServer(("127.0.0.1", 0), Gate)
    with serving(server):
        url = f"http://127.0.0.1:{server.server_port}/"
        done = command("crawl", url, "-o", tmp_path / "c", *OPTIONS, "--set", "cookies.enabled=true")
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "c")["/next"]["title"] == "Inside"
