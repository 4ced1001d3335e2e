"""Single sign-on by another host: of the same site it works like a form; of another site the crawl says what to do."""

from __future__ import annotations

from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.answering import Answering, serving
from tests.ring.crawls import OWN, Crawled, crawl

PAGES = 4
FORM = b"<form method=post action=/session><input name=u><input type=password name=p></form>"


class Owner(ThreadingHTTPServer):
    """Pages on `docs.NAME`, whose session begins by a ticket from `accounts.NAME`."""

    daemon_threads = True

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        owner = self

        class Handler(Answering):
            def get(self) -> None:
                owner.get(self)

            def do_POST(self) -> None:  # noqa: N802 - http.server's name
                self.rfile.read(int(self.headers["Content-Length"]))
                back = f"http://docs.ours.test:{owner.server_port}/back?ticket=t1"
                self.answer(302, b"", ("Location", back), ("Set-Cookie", "account=a1; Path=/"))

        super().__init__(("127.0.0.1", 0), Handler)

    def get(self, handler: Answering) -> None:
        host = handler.headers["Host"].partition(":")[0]
        cookies = handler.headers.get("Cookie", "")
        self.sent.append((host, cookies))
        if handler.path == "/robots.txt":
            handler.answer(404)
        elif host.startswith("accounts."):
            handler.answer(200, FORM)
        elif handler.path == "/back?ticket=t1":
            handler.answer(302, b"", ("Location", "/p/0"), ("Set-Cookie", "docs=d1; Path=/"))
        elif "docs=d1" not in cookies:
            place = "accounts.theirs.test" if handler.path == "/elsewhere" else "accounts.ours.test"
            handler.answer(302, b"", ("Location", f"http://{place}:{self.server_port}/login?continue=/p/0"))
        else:
            number = int(handler.path.rpartition("/")[2])
            link = f"<a href=/p/{number + 1}>next</a>" if number < PAGES - 1 else ""
            handler.answer(200, f"<title>page {number}</title>{link}<p>Log out".encode())


def crawled(directory: Path, owner: Owner, url: str, check: str) -> Crawled:
    hosts = directory.with_suffix(".hosts")
    hosts.write_text("127.0.0.1 docs.ours.test accounts.ours.test accounts.theirs.test\n")
    docs = f"http://docs.ours.test:{owner.server_port}/"
    rule = f"login.sso={{url='{url}', place='{docs}', fields={{u='me', p='x'}}, check={{{check}}}}}"
    sets = (*OWN, rule, f"resolve.hosts_file={hosts}", "frontier.retry_s_first=0.1", "frontier.retry_s_max=0.1")
    return crawl((f"{docs}p/0",), directory, *sets)


@pytest.mark.parametrize("check", ["text='Log out'", "cookie='docs'"])
def test_a_form_on_another_host_of_the_site_leads_back_to_the_pages(tmp_path: Path, check: str) -> None:
    owner = Owner()
    with serving(owner):
        login = f"http://accounts.ours.test:{owner.server_port}/login?continue=/p/0"
        found = crawled(tmp_path / "crawl", owner, login, check)
    assert found.end == "finished", found.critical()
    fetched = {row["title"] for row in found.rows if row["outcome"] == "fetched"}
    assert fetched >= {f"page {number}" for number in range(PAGES)}
    assert not [cookies for host, cookies in owner.sent if host.startswith("accounts") and "docs=" in cookies]


def test_a_form_on_another_site_gets_no_password_and_the_way_out_is_named(tmp_path: Path) -> None:
    owner = Owner()
    with serving(owner):
        elsewhere = f"http://docs.ours.test:{owner.server_port}/elsewhere"
        found = crawled(tmp_path / "crawl", owner, elsewhere, "text='Log out'")
    [row] = [row for row in found.rows if row["outcome"] == "login_required"]
    assert "it redirects to another site, http://accounts.theirs.test" in str(row["error"])
    assert "log in by hand with `gossamer login DIR URL`" in str(row["error"])
    assert "continue" not in str(row["error"]), "parameters may be secrets"
    assert not [host for host, _ in owner.sent if host == "accounts.theirs.test"]
