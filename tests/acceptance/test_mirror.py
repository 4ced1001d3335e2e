"""A mirror of a site with every oddity of addresses opens in Chromium without a network, page by page."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.acceptance.conftest import Crawl
from tests.answering import Answering, serving
from tests.chromium import launch_chromium

LONG = "long" * 40
PNG = (
    b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in (
            (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
            (b"IDAT", zlib.compress(b"\0\xff\0\0")),
            (b"IEND", b""),
        )
    )
)  # fmt: skip
HTML, CSS, IMAGE = "text/html", "text/css", "image/png"
HOME = (
    "<title>Home</title><link rel=preconnect href=//cdn.test><link rel=stylesheet href=/style?v=3 integrity=sha256-x>"
    "<style>@import '/more.css'; h1 { background: url(/i/in-style.png) }</style>"
    f"<a href=/a>a</a> <a href=/a/>a/</a> <a href=/a/b>b</a> <a href=/A>A</a>"
    f"<a href=/q?x=1&amp;y=/2>q</a> <a href=/q?x=2>q2</a> <a href=/{LONG}/{LONG}1>l</a>"
    f"<a href=/{LONG}/{LONG}2>l</a> <a href=/old#part>old</a> <a href=/latin>latin</a> <a href=/based/>based</a>"
    "<a href=/dir.html/page>dir</a> <a href=/dir.html>d</a> <a href=http://elsewhere.test/>out</a> <a href=/con>con</a>"
    "<a href=/a.html>a.html</a> <a href=/frames>f</a> <img src=/i/none.png alt=gone>"
    "<img src=/i/one.png srcset='/i/one.png 1x, /i/two.png?size=2,3 2x'>"
    "<p style=\"background: url('/i/in-attribute.png')\">text<script src=/code.js></script>"
    "<script>document.title += ' ran'; fetch('http://outside.test/x').catch(() => 0)</script>"
    "<img src=http://outside.test/pixel.png alt=out>"
)
LATIN = "<title>na\u00efve</title><a href=/caf\u00e9?q=\u00e9>caf\u00e9</a>"
SHEET = "/* url(/i/comment.png */ @import \"deep/more.css\"; h1 { background: url( '/i/in-css.png' ) }"
FRAMES = "<title>frames</title><iframe src=/a></iframe><iframe srcdoc='<img src=/i/in-frame.png>'></iframe>"
PAGES: dict[str, tuple[str, str]] = {
    "/": (HTML, HOME),
    "/a": (HTML, "<title>a</title><a href=/>home</a>"),
    "/a/": (HTML, "<title>a/</title><a href=b>b</a>"),
    "/a/b": (HTML, "<title>a/b</title><a href=../a?no=1#x>a</a>"),
    "/A": (HTML, "<title>A</title>"),
    "/a.html": (HTML, "<title>a.html</title>"),
    "/q?x=1&y=/2": (HTML, "<title>q1</title>"),
    "/q?x=2": (HTML, "<title>q2</title>"),
    f"/{LONG}/{LONG}1": (HTML, "<title>long1</title>"),
    f"/{LONG}/{LONG}2": (HTML, "<title>long2</title><a href=/>home</a>"),
    "/new": (HTML, "<title>new</title><h2 id=part>part</h2>"),
    "/latin": ("text/html; charset=iso-8859-1", LATIN),
    "/caf%C3%A9?q=%E9": (HTML, "<title>coffee</title>"),
    "/based/": (HTML, "<base href=/a/><title>based</title><a href=b>b</a>"),
    "/dir.html": (HTML, "<title>dir.html</title>"),
    "/dir.html/page": (HTML, "<title>dir page</title>"),
    "/con": (HTML, "<title>con</title><meta http-equiv=refresh content='300; url=/a'>"),
    "/frames": (HTML, FRAMES),
    "/style?v=3": (CSS, SHEET),
    "/more.css": (CSS, "p { color: red; background: url(i/deep.png) }"),
    "/code.js": ("text/javascript", "document.documentElement.dataset.code = 'ran'"),
}
IMAGES = ("one", "two", "in-style", "in-attribute", "in-css", "in-frame", "deep")


class _Site(Answering):
    def get(self) -> None:
        if self.path == "/old":
            self.answer(301, b"", ("Location", "/new"))
        elif self.path.startswith("/i/") and self.path[3:].partition(".")[0] in IMAGES:
            self.answer(200, PNG, media_type=IMAGE)
        elif self.path in PAGES:
            kind, body = PAGES[self.path]
            self.answer(200, body.encode("latin-1"), media_type=kind)
        else:
            self.answer(404, b"")


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}"


class _Proxy(Answering):
    asked: list[str] = []  # noqa: RUF012 - what any browser here requests

    def get(self) -> None:
        self.asked.append(self.path)
        self.answer(200, b"reached")

    def do_CONNECT(self) -> None:  # noqa: N802 - the server looks for this name
        self.get()


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A browser that reaches a proxy alone, which notes all requests."""
    _Proxy.asked.clear()
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    with serving(proxy), sync_playwright() as playwright:
        options = [
            f"--proxy-server=http://127.0.0.1:{proxy.server_address[1]}",
            "--proxy-bypass-list=<-loopback>", "--disable-background-networking", "--disable-component-update",
        ]  # fmt: skip
        browser = launch_chromium(playwright, *options)
        yield browser
        browser.close()


@pytest.mark.acceptance
@pytest.mark.promise(
    "Files and exports", "A mirror opens in a browser without a network, and requests nothing outside its folder."
)
@pytest.mark.long
def test_every_page_opens_without_a_network(command: Crawl, site: str, browser: Browser, tmp_path: Path) -> None:
    options = ("--allow-private", "--politeness", "own", "--quiet", "--set", "frontier.attempts_max=1")
    done = command("mirror", f"{site}/", "-o", tmp_path / "c", *options)
    assert done.returncode == 0, done.stderr
    mirror = tmp_path / "c-mirror"
    files = {str(path.relative_to(mirror)) for path in mirror.rglob("*") if path.is_file()}
    assert len({name.lower() for name in files}) == len(files)
    assert max(len(part) for name in files for part in name.split("/")) < 120
    page = browser.new_page()
    requested: list[str] = []
    page.on("requestfinished", lambda request: requested.append(request.url))
    seen: dict[str, str] = {}
    images = 0
    waiting = [(mirror / "index.html").as_uri()]
    outside: set[str] = set()
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        page.goto(address)
        page.wait_for_load_state("load")
        seen[address] = page.title()
        for frame in page.frames:
            found = frame.eval_on_selector_all("img:not([alt])", "all => all.map(i => [i.src, i.naturalWidth])")
            assert all(width == 1 for _, width in found), (address, found)
            images += len(found)
        links = page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")
        outside |= {link for link in links if not link.startswith("file:")}
        waiting += [link.partition("#")[0] for link in links if link.startswith("file:")]
        if seen[address] == "Home ran":
            assert page.evaluate("document.documentElement.dataset.code") == "ran"
            shown = "getComputedStyle(document.querySelector({!r})).backgroundImage"
            assert "in-attribute" in page.evaluate(shown.format("p"))
            assert page.evaluate("getComputedStyle(document.querySelector('p')).color") == "rgb(255, 0, 0)"
            assert {link.partition("#")[2] for link in links} >= {"part"}
    texts = [body for _, body in PAGES.values() if "<title>" in body]
    wanted = {text.split("<title>")[1].split("</title>")[0] for text in texts}
    assert {title.removesuffix(" ran") for title in seen.values()} == wanted | {"Mirror"}
    assert images == 2
    assert outside == {"http://elsewhere.test/", f"{site}/a?no=1#x"}
    assert [url for url in requested if urlsplit(url).scheme not in ("file", "data")] == []
    assert all(url.startswith(mirror.as_uri()) for url in requested)
    asked = [url for url in _Proxy.asked if "google" not in url]  # The browser's own.
    assert asked == []
    page.goto("http://outside.test/")  # Such a request would have come here.
    assert "http://outside.test/" in _Proxy.asked
