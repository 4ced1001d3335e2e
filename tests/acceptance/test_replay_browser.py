"""Archived pages in Chromium: in the console's replay and in a mirror they look as before, and reach nothing.

The situations are of the issue trackers of pywb (#340, #756), wombat (#155, #234), wabac.js (#242), SingleFile (#317)
and of the HTML standard.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Error, Frame, Page, sync_playwright

from tests.acceptance.conftest import Crawl
from tests.acceptance.test_dashboard import Served
from tests.acceptance.test_mirror import PNG
from tests.answering import Answering, serving
from tests.chromium import launch_chromium

pytestmark = [pytest.mark.acceptance, pytest.mark.together, pytest.mark.timeout(300)]
FONT = next(Path("/usr/share/fonts").rglob("*.ttf")).read_bytes()
SOUND = (
    b"RIFF$\x10\0\0WAVEfmt "
    + struct.pack("<IHHIIHH4sI", 16, 1, 1, 8_000, 8_000, 1, 8, b"data", 4_096)
    + b"\x80" * 4_096
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>drawn</text></svg>'
LOOKS_MAX = 300
LIVE = "http://live.test/"
TEXT = "document.documentElement.textContent.trim()"
WIDTHS = "[...document.images].map(one => one.naturalWidth)"
FONTS = "[...document.fonts].map(one => one.status)"
COLOR = "getComputedStyle(document.querySelector('p')).color"
LENGTH = "[...document.querySelectorAll('audio')].map(one => one.duration > 0)"
BLUE = "rgb(0, 0, 255)"
FACE = "<style>@font-face { font-family: F; src: url(%s) } p { font-family: F }</style><p>a</p>"
REQUESTS = (
    f"<style>@import '{LIVE}s'; p {{ background: url({LIVE}b) }}</style><p><img src={LIVE}i srcset='{LIVE}j 2x'>"
    f"<video poster={LIVE}p src={LIVE}v></video><object data={LIVE}o></object><embed src={LIVE}e>"
    f"<link rel=prefetch href={LIVE}f><link rel=icon href={LIVE}n><svg><image href={LIVE}g /></svg>"
    f"<script>fetch('{LIVE}h', {{mode: 'no-cors'}}); navigator.sendBeacon('{LIVE}k'); new WebSocket('ws://live.test/')</script>"
)
# Situation: body; what to look at in each frame; what each shows in the replay; in the mirror, where that differs.
SHOWN: dict[str, tuple[str, str, list[object], list[object] | None]] = {
    "frameset": ("<frameset cols='1,1'><frame src=/one><frame src=/one></frameset>", TEXT, ["", "one", "one"], None),
    "nested": ("out<iframe src=/within></iframe>", TEXT, ["out", "within", "one"], None),
    "srcdoc": ("<iframe srcdoc='<img src=/i.png>'></iframe>", WIDTHS, [[], [1]], None),
    "data-frame": ("<iframe src='data:text/html,in'></iframe>", TEXT, ["", "in"], None),
    "moved-frame": ("<iframe src=/moved></iframe>", TEXT, ["", "one"], None),
    "sandboxed": ("<iframe sandbox src=/pictures></iframe>", WIDTHS, [[], [1]], None),
    "object": ("<object data=/one></object><object data=/d.svg></object>", TEXT, ["", "one", "drawn"], None),
    "absent-frame": (f"<iframe src={LIVE}f></iframe>", "document.querySelector('main p')?.textContent",
                     [None, f"{LIVE}f"], [None, None]),
    "error": ("<iframe src=/gone></iframe>", f"{TEXT}.startsWith('gone')", [False, True], [False, False]),
    "font": (FACE % "/f.ttf", FONTS, [["loaded"]], None),
    "font-type": (FACE % "/f.octets", FONTS, [["loaded"]], None),
    "font-data": (FACE % f"data:font/ttf;base64,{base64.b64encode(FONT).decode()}", FONTS, [["loaded"]], None),
    "font-sheet": ("<link rel=stylesheet href=/import.css><p>a</p>", FONTS, [["loaded"]], None),
    "image": ("<img src=/i.png><img src=/i.text><img src=/i.none>", WIDTHS, [[1, 1, 1]], None),
    "sources": ("<picture><source srcset='/i.png 1x'><img></picture><img srcset=/i.png>", WIDTHS, [[1, 1]], None),
    "late": ("<img data-src=/i.png><img src=data:, data-lazy-srcset='/i.png 1x'>", WIDTHS, [[1, 1]], [[0, 0]]),
    "late-twin": ("<p><img data-src=/i.png> <noscript><img src=/i.png></noscript>", WIDTHS, [[1]], [[0]]),
    "late-ground": ("<p data-bg=/i.png>a", "document.querySelector('p').style.backgroundImage > ''", [True], [False]),
    "amp": ("<amp-img src=/i.png></amp-img>", WIDTHS, [[1]], [[]]),
    "chain": ("<img src=/hop5>", WIDTHS, [[1]], None),
    "latin": ("<object data=/latin.svg></object>", TEXT, ["", "\xe9"], None),
    "base": ("<base href=/based/><base href=/no/><img src=../i.png>", WIDTHS, [[1]], None),
    "sheet": ("<link rel=stylesheet href=/s.css integrity=sha256-x crossorigin><p>a</p>", COLOR, [BLUE], None),
    "sound": ("<audio src=/a.wav></audio>", LENGTH, [[True]], None),
    "refresh": ("<meta http-equiv=refresh content='0;url=/one'>", "[...document.links].length", [1], [0]),
    "unfollowed": (f"<meta http-equiv=refresh content='0;url={LIVE}r'>", "[...document.links].length", [1], [1]),
    "no-script": ("<noscript>none</noscript><script>document.title = 'ran'</script>", "document.title", [""], ["ran"]),
    "json": ("<iframe src=/x.json></iframe>", TEXT, ["", '{"a": "<b>"}'], None),
    "xml": ("<iframe src=/x.xml></iframe>", f"{TEXT}.includes('words')", [False, True], None),
    "requests": (REQUESTS, "document.title", ["", "404"], [""]),
    "drawing": ("<object data=/evil.svg></object><iframe src=/evil.xml></iframe>", "'in'", ["in"] * 4, None),
}  # fmt: skip
FILES: dict[str, tuple[str, bytes]] = {
    "/one": ("text/html", b"one"),
    "/within": ("text/html", b"within<iframe src=/one></iframe>"),
    "/pictures": ("text/html", b"<img src=/i.png>"),
    "/f.ttf": ("font/ttf", FONT),
    "/f.octets": ("application/octet-stream", FONT),
    "/import.css": ("text/css", b"@import url(deep/font.css);"),
    "/deep/font.css": ("text/css", b"@font-face { font-family: F; src: url(../f.ttf?) } p { font-family: F }"),
    "/s.css": ("text/css", b"p { color: rgb(0, 0, 255) }"),
    "/i.png": ("image/png", PNG),
    "/i.text": ("text/plain", PNG),
    "/i.none": ("", PNG),
    "/d.svg": ("image/svg+xml", SVG.encode()),
    "/latin.svg": (
        "image/svg+xml",
        b'<?xml version="1.0" encoding="latin1"?>' + SVG.encode().replace(b"drawn", b"\xe9"),
    ),
    "/a.wav": ("audio/wav", SOUND),
    "/x.json": ("application/json", b'{"a": "<b>"}'),
    "/x.xml": ("application/xml", b"<r>words</r>"),
    "/evil.svg": (
        "image/svg+xml",
        f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{LIVE}1"/><foreignObject><iframe '
        f'xmlns="http://www.w3.org/1999/xhtml" src="{LIVE}2"/></foreignObject></svg>'.encode(),
    ),
    "/evil.xml": (
        "text/xml",
        f'<?xml-stylesheet href="{LIVE}3"?><r><img xmlns="http://www.w3.org/1999/xhtml" src="{LIVE}4"/></r>'.encode(),
    ),
    **{f"/{name}": ("text/html", f"<!doctype html>{body}".encode()) for name, (body, *_) in SHOWN.items()},
}
MOVES = {"/moved": "/one", **{f"/hop{n}": f"/hop{n - 1}" for n in range(2, 6)}, "/hop1": "/i.png"}


class _Site(Answering):
    def get(self) -> None:
        if self.path == "/":
            self.answer(200, "".join(f"<a href=/{name}>{name}</a>" for name in SHOWN).encode())
        elif self.path in MOVES:
            self.answer(302, b"", ("Location", MOVES[self.path]))
        elif self.path == "/gone":
            self.answer(404, b"<main><p>gone</p></main>")
        else:
            media_type, body = FILES.get(self.path.partition("?")[0], ("text/html", b""))
            self.answer(200 if body else 404, body, media_type=media_type)


class _Proxy(Answering):
    asked: list[str] = []  # noqa: RUF012 - what the browser requests of others than the console

    def get(self) -> None:
        self.asked.append(self.path)
        self.answer(200, b"reached")

    do_POST = do_CONNECT = get  # noqa: N815 - the server looks for these names


@pytest.fixture(scope="module")
def crawled(command: Crawl, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The URL of a site, and the directory of its crawl."""
    directory = tmp_path_factory.mktemp("replay") / "c"
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    with serving(server):
        site = f"http://127.0.0.1:{server.server_address[1]}"
        options = ("--embeds", "--allow-private", "--politeness", "own", "--quiet", "--set", "frontier.attempts_max=1")
        done = command("crawl", f"{site}/", "-o", directory, *options)
    assert done.returncode == 0, done.stderr
    return site, directory


@pytest.fixture(scope="module")
def served(crawled: tuple[str, Path]) -> Iterator[Served]:
    with Served("serve", crawled[1], "--port", "0") as server:
        yield server


@pytest.fixture(scope="module")
def page(served: Served, crawled: tuple[str, Path]) -> Iterator[Page]:
    """A page of a browser that reaches the console, its replay, and a proxy that notes all other requests."""
    port = int(served.base.rstrip("/").rpartition(":")[2])
    # The next one, unless another program has it.
    replay_port = versions_of(served, f"{crawled[0]}/one")["replay_port"]
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    with serving(proxy), sync_playwright() as playwright:
        bypassed = f"<-loopback>;127.0.0.1:{port};127.0.0.1:{replay_port}"
        browser: Browser = launch_chromium(
            playwright, f"--proxy-server=http://127.0.0.1:{proxy.server_address[1]}",
            f"--proxy-bypass-list={bypassed}", "--disable-background-networking", "--disable-component-update",
        )  # fmt: skip
        yield browser.new_page()
        browser.close()


def versions_of(served: Served, url: str) -> dict[str, Any]:
    with urlopen(f"{served.base}api/versions?url={quote(url)}") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def leaked() -> list[str]:
    return [url for url in _Proxy.asked if "google" not in url]  # The browser's own.


def look_at(frame: Frame, expression: str, expected: list[object]) -> list[object]:
    """Return what a frame and those within it show, in order, once that is what is expected, or after `LOOKS_MAX`."""
    shown: list[object] = []
    for _ in range(LOOKS_MAX):
        with suppress(Error):  # It goes on to another document.
            shown = list(_values(frame, expression))
        if shown == expected:
            break
        frame.page.wait_for_timeout(100)
    return shown


def _values(frame: Frame, expression: str) -> Iterator[object]:
    yield frame.evaluate(expression)
    for one in frame.child_frames:
        yield from _values(one, expression)


SHOW = """urls => {
    const load = (url, number) => new Promise(done => {
        const frame = document.createElement("iframe");
        Object.assign(frame, { name: `case-${number}`, src: url, onload: done });
        frame.setAttribute("sandbox", "");
        setTimeout(done, 20_000);
        document.body.append(frame);
    });
    document.body.replaceChildren();
    return Promise.all(urls.map(load));
}"""


@pytest.mark.long
@pytest.mark.promise("Console", "Archived pages are shown with their frames, fonts, images and sounds.")
def test_a_replayed_page_looks_as_on_its_server(crawled: tuple[str, Path], served: Served, page: Page) -> None:
    urls = []
    for name in SHOWN:
        found = versions_of(served, f"{crawled[0]}/{name}")
        urls.append(f"http://127.0.0.1:{found['replay_port']}/{found['versions'][0]['replay']}")
    page.goto(served.base)
    _Proxy.asked.clear()
    wrong = {}
    cases = list(SHOWN.items())
    for at in range(0, len(cases), 6):
        page.evaluate(SHOW, urls[at : at + 6])
        for number, (name, (_, expression, expected, _)) in enumerate(cases[at : at + 6]):
            [frame] = [one for one in page.main_frame.child_frames if one.name == f"case-{number}"]
            if (shown := look_at(frame, expression, expected)) != expected:
                wrong[name] = shown
    assert wrong == {}
    assert leaked() == []


@pytest.mark.long
def test_a_mirrored_page_looks_as_on_its_server(
    command: Crawl, crawled: tuple[str, Path], page: Page, tmp_path: Path
) -> None:
    done = command("export", crawled[1], "--to", "mirror", "-o", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    _Proxy.asked.clear()
    wrong = {}
    for name, (_, expression, expected, mirrored) in SHOWN.items():
        [file] = (tmp_path / "m").glob(f"*/{name}.html")
        page.goto(file.as_uri())
        expected = expected if mirrored is None else mirrored
        if (shown := look_at(page.main_frame, expression, expected)) != expected:
            wrong[name] = shown
    assert wrong == {}
    assert leaked() == []
    page.goto(f"{LIVE}reached")  # Such a request would have come here.
    assert set(leaked()) - {f"{LIVE}favicon.ico"} == {f"{LIVE}reached"}  # The browser may have asked for its icon too.
