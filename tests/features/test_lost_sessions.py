"""Lost sessions: what is taken for a sign that given cookies no longer log in, and what is not."""

from __future__ import annotations

import pytest

from gossamer.engine.history import attempt_row
from gossamer.features.logins.lost import LostSessions
from gossamer.model.links import Visit
from gossamer.model.pages import Findings
from gossamer.model.visits import Content, Reply
from gossamer.ports import ExaminedPage
from gossamer.stages.process.forms import has_login_form
from gossamer.url.name import Namer
from gossamer.url.url import Url

LOGIN = b"<form method=post><input name=user><input type=Password name=pw></form>"
CHANGE = b"<form><input type=password name=old><input type=password name=new></form>"


def named(text: str) -> Url:
    url = Namer().name(text)
    assert url is not None
    return url


class Watch:
    """A site's pages, one after another, and what was reported of them."""

    def __init__(self, *, renews: bool = False, sites: set[str] | None = None) -> None:
        self.lost: list[tuple[str, ...]] = []
        sites = {"a.test"} if sites is None else sites
        self.watch = LostSessions(sites, lambda _: True, lambda _: renews, lambda *one: self.lost.append(one))
        self.count = 0

    def visit(self, body: bytes = b"<p>page", target: str = "", depth: int = 1) -> None:
        """Visit one more page, which redirects to a target where there is one."""
        self.count += 1
        visit = Visit(named(f"https://www.a.test/p/{self.count}"), depth, 0, "anchor", "")
        headers = (("Location", target.format(visit.url.text.removeprefix("https://www.a.test"))),) if target else ()
        reply = Reply(visit.url.text, 302 if target else 200, headers, b"", "127.0.0.1", 0.0, 0.1, 10)
        assert self.watch.settle(visit, reply, 0.0) is None
        if not target:
            row = attempt_row(visit, "fetched", 0.0)
            page = ExaminedPage(visit, reply, Content(body), Findings(), row)
            assert self.watch.settle_document(page, 0.0) is None


@pytest.mark.parametrize("target", ["/login?next={0}", "https://id.test/sso?app=1&back=https://www.a.test{0}"])
def test_redirects_that_would_lead_back_are_reported_once(target: str) -> None:
    watch = Watch()
    for _ in range(9):
        watch.visit(target=target)
    ((*names, sentence),) = watch.lost
    assert names == ["lost_sessions", "a.test"]
    assert sentence.startswith("https://www.a.test/p/3 and others of a.test show a login: the session of its cookies")


@pytest.mark.parametrize("target", ["/new{0}", "/login", "/list?page=2", "/x?next=/other"])
def test_other_redirects_are_not(target: str) -> None:
    watch = Watch()
    for _ in range(9):
        watch.visit(target=target)
    assert watch.lost == []


def test_some_pages_that_an_account_may_not_see_are_not_reported() -> None:
    watch = Watch()
    for number in range(300):
        watch.visit(LOGIN if number % 8 == 7 else b"<p>page")
    assert watch.lost == []
    for number in range(60):
        watch.visit(LOGIN if number % 2 else b"<p>page")
    assert len(watch.lost) == 1


def test_a_seed_with_its_login_needs_one_page_more() -> None:
    watch = Watch()
    watch.visit(target="/login?next={0}", depth=0)
    assert watch.lost == []
    watch.visit(LOGIN, depth=0)
    assert len(watch.lost) == 1


@pytest.mark.parametrize("watch", [Watch(renews=True), Watch(sites={"b.test"})])
def test_a_login_that_the_crawl_renews_and_another_site_are_not_watched(watch: Watch) -> None:
    for _ in range(9):
        watch.visit(LOGIN)
    assert watch.lost == []


@pytest.mark.parametrize(("body", "has"), [(LOGIN, True), (CHANGE, False), (b"<p>your password", False)])
def test_a_login_form_asks_for_one_password(body: bytes, has: bool) -> None:
    assert has_login_form(body, "utf-8") is has
