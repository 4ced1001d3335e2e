"""Sessions of pages in a real browser: which cookies scripts see and set, and which requests carry them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import pytest

from gossamer.features.render.browser import Browser
from gossamer.features.render.options import RenderOptions
from gossamer.features.render.page import Dom, Rendering, Supply
from gossamer.features.render.session import PageSession, SiteSessions
from gossamer.model.visits import Failure, Reply
from gossamer.options import convert
from gossamer.stages.fetch.cookies import Jar
from gossamer.url.name import Namer
from tests.chromium import require_chromium

pytestmark = [pytest.mark.acceptance, pytest.mark.paced, pytest.mark.timeout(300)]
NOW = time.time()
NAME = Namer().name
SHOW = "<script>setTimeout(() => document.body.append('[' + document.cookie + ']'), 500)</script>"


class Session:
    """A jar with cookies of replies, by the address of each, and what a page's requests carry."""

    def __init__(self, *cookies: tuple[str, str]) -> None:
        self.kept = Jar()
        for url, text in cookies:
            self.take(url, text)
        self.asked: dict[str, bool] = {}
        """Whether each request carried the session."""

    def take(self, url: str, text: str) -> None:
        named = NAME(url)
        assert named is not None
        self.kept.take(text, named, NOW)

    def keep(self, site: str, jar: Jar) -> None:
        assert jar is self.kept

    @property
    def cookies(self) -> dict[str, str]:
        return {one.name: one.value for one in self.kept}

    @property
    def with_session(self) -> set[str]:
        return {url for url, has_session in self.asked.items() if has_session}

    def render(
        self, body: str, url: str = "http://www.a.test/dir/page", answers: Mapping[str, str] | None = None
    ) -> Dom:
        """Return a page as its scripts make it. An answer to `/set` sets cookies, one to `/swap` changes one."""
        require_chromium()

        async def get(text: str, kind: str, has_session: bool, sent: object) -> Reply | Failure:
            self.asked[text] = has_session
            if text.endswith("/set"):
                self.take(text, "fresh=1; Path=/")
                self.take(text, "hidden=2; Path=/; HttpOnly")
            if text.endswith("/unset"):
                self.take(text, "old=; Path=/; Max-Age=0")
            html = (answers or {}).get(text)
            media_type = "text/javascript" if html is None else "text/html"
            headers = (("Content-Type", media_type),)
            if "/cors" in text:
                headers += (
                    ("Access-Control-Allow-Origin", "http://www.a.test"), ("Access-Control-Allow-Credentials", "true"),
                )  # fmt: skip
            return Reply(text, 200, headers, (html or "").encode(), "127.0.0.1", 0.0, 0.1, 10, media_type=media_type)

        async def rendered() -> Dom:
            page = NAME(url)
            assert page is not None
            options = convert(RenderOptions, {})
            browser = await Browser.start(options)
            try:
                html = f"<!doctype html><html><body>{body}</body></html>".encode()
                document = Reply(
                    url, 200, (("Content-Type", "text/html; charset=utf-8"),), html, "127.0.0.1", 0.0, 0.1, 10
                )
                session = PageSession(
                    page, SiteSessions(lambda _: self.kept, self.keep, lambda *_: ()), NAME, lambda: NOW
                )
                return await Rendering(browser, document, options, Supply(get, bool, session), ()).dom()
            finally:
                await browser.close()

        return asyncio.run(rendered())


WWW, API, OTHER = "http://www.a.test/", "http://api.a.test/", "http://b.test/"


@pytest.mark.promise("What is fetched", "Scripts of a rendered page see its site's cookies, but for `HttpOnly` ones.")
def test_scripts_see_the_cookies_that_a_browser_would_show_them() -> None:
    session = Session(
        (WWW, "seen=1; Path=/"), (WWW, "sid=secret; Path=/; HttpOnly"), (WWW, "deep=1; Path=/dir"),
        (WWW, "elsewhere=1; Path=/other"), (API, "theirs=1; Path=/"), (API, "wide=Ã¼; Path=/; Domain=a.test"),
        ("https://www.a.test/", "tls=1; Path=/; Secure"),
    )  # fmt: skip
    html = session.render(SHOW).html
    shown = html.rpartition("[")[2].partition("]")[0].split("; ")
    assert sorted(shown) == ["deep=1", "seen=1", "wide=ü"]
    assert "secret" not in html


def test_what_scripts_set_goes_into_the_jar_by_its_rules() -> None:
    session = Session((WWW, "sid=secret; Path=/; HttpOnly"), (WWW, "gone=1; Path=/"), (WWW, "kept=1; Path=/"))
    [before] = [one for one in session.kept if one.name == "kept"]
    session.render(
        "<script>document.cookie = 'new=ü; path=/; max-age=3600'; document.cookie = 'sid=evil; path=/';"
        "document.cookie = 'gone=; path=/; max-age=0'; document.cookie = 'wide=1; domain=a.test; path=/';"
        "document.cookie = 'foreign=1; domain=b.test'; document.cookie = 'suffix=1; domain=test';"
        "document.cookie = '__Host-x=1; path=/'; document.cookie = '__Secure-y=1'; document.cookie = 'tls=1; secure'"
        "</script>"
    )
    assert session.cookies == {"sid": "secret", "kept": "1", "new": "ü".encode().decode("latin-1"), "wide": "1"}
    assert [one.host_only for one in session.kept if one.name == "wide"] == [False]
    assert before in session.kept


def test_a_page_over_tls_sets_cookies_with_prefixes() -> None:
    session = Session(("https://www.a.test/", "__Host-a=1; Path=/; Secure"))
    html = session.render(
        f"<script>document.cookie = '__Host-b=2; path=/; secure'</script>{SHOW}", "https://www.a.test/"
    ).html
    assert session.cookies == {"__Host-a": "1", "__Host-b": "2"}
    assert "[__Host-a=1; __Host-b=2]" in html


def test_cookies_of_resources_are_seen_by_scripts_that_run_later() -> None:
    session = Session((WWW, "old=1; Path=/"))
    html = session.render(f"<script src=/set></script><script src=/unset></script>{SHOW}").html
    assert "[fresh=1]" in html
    assert session.cookies == {"fresh": "1", "hidden": "2"}


@pytest.mark.promise(
    "What is fetched", "A resource of another site than its rendered page carries no cookie, and sets none."
)
@pytest.mark.parametrize("cookies", [(), ((WWW, "sid=1; Path=/; HttpOnly"),)])
def test_only_requests_that_a_browser_sends_with_cookies_carry_the_session(
    cookies: tuple[tuple[str, str], ...],
) -> None:
    frames = {
        f"{OTHER}frame": f"<script src={WWW}from-other></script><iframe src={WWW}nested></iframe>",
        f"{API}frame": "<script src=/from-api></script>", f"{WWW}sandbox": "<script src=/from-sandbox></script>",
        f"{WWW}nested": "<script src=/from-nested></script>",
    }  # fmt: skip
    session = Session(*cookies)
    session.render(
        "<script src=/script></script><script src=/anonymous crossorigin=anonymous></script>"
        f"<script src={API}script></script><script src={API}cors-anonymous crossorigin=anonymous></script>"
        f"<script src={OTHER}script></script><script src=https://www.a.test/tls></script>"
        f"<iframe src={OTHER}frame></iframe><iframe src={API}frame></iframe>"
        "<iframe src=/sandbox sandbox=allow-scripts></iframe>"
        "<script>fetch('/fetch'); fetch('/omit', {credentials: 'omit'}); fetch('http://api.a.test/cors');"
        "fetch('http://api.a.test/cors-with', {credentials: 'include'});"
        "fetch('http://b.test/cors-with', {credentials: 'include'});"
        "new Worker(URL.createObjectURL(new Blob(['fetch(`http://www.a.test/worker`)'])));</script>",
        answers=frames,
    )
    paths = {f"{WWW}{one}" for one in ("script", "anonymous", "sandbox", "fetch", "worker")}
    assert session.with_session == paths | {f"{API}{one}" for one in ("script", "frame", "from-api", "cors-with")}
    without = {f"{WWW}omit", f"{WWW}from-other", f"{WWW}nested", f"{WWW}from-nested", f"{WWW}from-sandbox"}
    assert session.asked.keys() >= without | {f"{API}cors", f"{OTHER}script", f"{OTHER}cors-with"}


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "a.github.io", "xn--bcher-kva.test"])
def test_hosts_of_every_kind_have_a_session(host: str) -> None:
    session = Session((f"http://{host}/", "sid=1; Path=/; HttpOnly"))
    html = session.render(f"<script>document.cookie = 'js=1'; fetch('/api')</script>{SHOW}", f"http://{host}/x").html
    assert "[js=1]" in html
    assert session.with_session == {f"http://{host}/api"}
    assert session.cookies == {"sid": "1", "js": "1"}
