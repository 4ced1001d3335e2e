"""A site with areas that need a login by form, basic, digest, bearer and API authentication, and what it was sent.

Sessions end after some pages, and their cookies change in between. `served` also serves another site, to which pages
link and redirect.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs

from tests.answering import Answering, serving

USER, PASSWORD, TOKEN, KEY = "crawler", "pa55-XYZZY+&=", "t0ken-PLUGH", "k3y-FROTZ"
PAGES = 8
"""Of each area."""
AREAS = ("app", "basic", "digest", "bearer", "api", "key")


class Site(ThreadingHTTPServer):
    """Pages `/AREA/N`; each links to the next, to the logout, to the login and to the other site."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.port = self.server_address[1]
        self.elsewhere = ""
        """The other site."""
        self.lock = threading.Lock()
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        """Method, target and headers of each request."""
        self.sessions: dict[str, int] = {}
        """Pages that each session still has."""
        self.made: list[str] = []
        """Every session there was, and every token."""
        self.csrf: set[str] = set()
        self.nonces: dict[str, int] = {}
        self.session_pages = 5
        self.failures: Counter[int] = Counter()
        """By number of a page of `app`: how often it still fails before anybody looks at its session."""
        self.password = PASSWORD
        self.busy = self.busiest = 0
        """Requests for pages of sessions at once."""

    def count(self, method: str, path: str) -> int:
        """Return how often a path was requested."""
        return sum((one, target.partition("?")[0]) == (method, path) for one, target, _ in self.asked)

    def new_session(self, pages: int) -> str:
        """Begin a session that ends after `pages` pages."""
        made = "s3ss-" + secrets.token_hex(8)
        self.sessions[made] = pages
        self.made.append(made)
        return made


class Page(Answering):
    """Answers by the area of the path."""

    @property
    def site(self) -> Site:
        assert isinstance(self.server, Site)
        return self.server

    def get(self) -> None:
        self.note()
        path = self.path.partition("?")[0]
        area, _, rest = path[1:].partition("/")
        if path == "/":
            self.page("home", [f"/{area}/0" for area in AREAS])
        elif path == "/login":
            self.form()
        elif path == "/logout":
            self.site.sessions.clear()
            self.page("bye", [])
        elif path == "/away":
            self.answer(302, b"", ("Location", f"{self.site.elsewhere}/landing"))
        elif area in AREAS and rest.isdecimal() and int(rest) < PAGES:
            getattr(self, area)(int(rest))
        else:
            self.answer(404)

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        self.note()
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/session":
            self.log_in({name: values[0] for name, values in parse_qs(body).items()})
        elif self.path == "/api/login" and json.loads(body) == {"user": USER, "password": self.site.password}:
            self.answer(
                200, json.dumps({"data": {"token": self.site.new_session(3)}}).encode(), media_type="application/json"
            )
        else:
            self.answer(403)

    # ---- areas

    def app(self, number: int) -> None:
        """A session by form: it ends after some pages, and each page changes its cookie."""
        site = self.site
        if site.failures[number] > 0:
            site.failures[number] -= 1
            self.answer(503)
            return
        with site.lock:
            site.busy += 1
            site.busiest = max(site.busiest, site.busy)
            left = site.sessions.pop(self.cookies().get("session", ""), 0)
            cookie = site.new_session(left - 1) if left > 1 else ""
        threading.Event().wait(0.01)
        with site.lock:
            site.busy -= 1
        if not left:
            self.answer(302, b"", ("Location", f"/login?next=/app/{number}"))
        else:
            header = ("Set-Cookie", f"session={cookie}; Path=/; HttpOnly" if cookie else "session=; Path=/; Max-Age=0")
            self.page(f"app {number} of {USER}", self.links("app", number), header)

    def basic(self, number: int) -> None:
        pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        self.guarded("basic", number, self.headers["Authorization"] == f"Basic {pair}", 'Basic realm="b"')

    def bearer(self, number: int) -> None:
        self.guarded("bearer", number, self.headers["Authorization"] == f"Bearer {TOKEN}", "Bearer")

    def key(self, number: int) -> None:
        self.guarded("key", number, parse_qs(self.path.partition("?")[2]).get("key") == [KEY], "Bearer")

    def api(self, number: int) -> None:
        """A token that ends after three pages."""
        token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        left = self.site.sessions.get(token, 0)
        self.site.sessions[token] = left - 1
        self.guarded("api", number, left > 0, "Bearer")

    def digest(self, number: int) -> None:
        """SHA-256, with nonces that are stale after four pages."""
        said = dict(re.findall(r'(\w+)="?([^",]*)', (self.headers["Authorization"] or "").removeprefix("Digest ")))
        fresh = self.site.nonces.get(said.get("nonce", ""), 0)
        wanted = _hash(
            _hash(USER, "d", PASSWORD), said.get("nonce", ""), said.get("nc", ""), said.get("cnonce", ""), "auth",
            _hash("GET", self.path),
        )  # fmt: skip
        is_good = said.get("response") == wanted and said.get("uri") == self.path
        if is_good and fresh:
            self.site.nonces[said["nonce"]] = fresh - 1
        nonce = secrets.token_hex(8)
        self.site.nonces[nonce] = 4
        stale = ", stale=true" if is_good and not fresh else ""
        challenge = f'Digest realm="d", nonce="{nonce}", qop="auth", algorithm=SHA-256{stale}'
        self.guarded("digest", number, is_good and fresh > 0, challenge)

    # ---- inside

    def note(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.site.asked.append((self.command, self.path, headers))

    def cookies(self) -> dict[str, str]:
        pairs = (pair.partition("=") for pair in (self.headers["Cookie"] or "").split("; "))
        return {name: value for name, _, value in pairs}

    def form(self) -> None:
        token, pre = secrets.token_hex(8), secrets.token_hex(4)
        self.site.csrf.add(token + pre)
        body = (
            f'<form action="/search"><input name=q></form><form method=post action=/session>'
            f'<input type=hidden name=csrf value="{token}"><input name=user><input type=password name=password>'
            f"<input type=submit name=go></form>"
        )
        self.answer(200, body.encode(), ("Set-Cookie", f"pre={pre}; Path=/"))

    def log_in(self, fields: dict[str, str]) -> None:
        site, csrf = self.site, fields.get("csrf", "") + self.cookies().get("pre", "")
        if csrf not in site.csrf or (fields.get("user"), fields.get("password")) != (USER, site.password):
            self.form()
            return
        site.csrf.remove(csrf)
        with site.lock:
            cookie = site.new_session(site.session_pages)
        self.answer(303, b"", ("Set-Cookie", f"session={cookie}; Path=/; HttpOnly"), ("Location", "/?in"))

    def links(self, area: str, number: int) -> list[str]:
        elsewhere = f"{self.site.elsewhere}/{area}/{number}"
        return [f"/{area}/{number + 1}", "/logout", "/login", "/away", elsewhere]

    def guarded(self, area: str, number: int, allowed: bool, challenge: str) -> None:
        if allowed:
            self.page(f"{area} {number} of {USER}", self.links(area, number))
        else:
            self.answer(401, b"", ("WWW-Authenticate", challenge))

    def page(self, title: str, links: list[str], *headers: tuple[str, str]) -> None:
        body = f"<title>{title}</title><p>{title}" + "".join(f'<a href="{link}">x</a>' for link in links)
        self.answer(200, body.encode(), *headers)


def _hash(*parts: str) -> str:
    return hashlib.sha256(":".join(parts).encode()).hexdigest()


@contextmanager
def served() -> Iterator[tuple[Site, Site]]:
    """Serve the site as `ours.test` and the other one as `theirs.test`."""
    ours, theirs = Site(), Site()
    ours.elsewhere, theirs.elsewhere = f"http://theirs.test:{theirs.port}", f"http://ours.test:{ours.port}"
    with serving(ours, theirs):
        yield ours, theirs


def settings(site: Site) -> tuple[str, ...]:
    """Return the settings of a crawl of the site, its secrets in variables."""
    origin = f"http://ours.test:{site.port}"
    login = f'{{user = "{USER}", password = "env:SITE_PASSWORD"}}'
    check = 'check = {cookie = "session"}'
    return (
        f"request.{origin}/basic/={{basic = {login}}}",
        f"request.{origin}/digest/={{digest = {login}}}",
        f'request.{origin}/bearer/={{bearer = "env:SITE_TOKEN"}}',
        f'request.{origin}/key/={{query = {{key = "env:SITE_KEY"}}}}',
        f'login.app={{url = "{origin}/login", place = "{origin}/app/", fields = {login}, {check}}}',
        f'login.api={{url = "{origin}/api/login", place = "{origin}/api/", fields = {login}, token = "data.token"}}',
    )


def outcomes(rows: list[dict[str, object]]) -> Counter[tuple[str, str]]:
    """Count the outcomes of each area's rows."""
    return Counter((str(row["url"]).split("/")[3], str(row["outcome"])) for row in rows)
