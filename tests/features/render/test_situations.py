"""Situations in which browsers of other crawlers hang, lose pages or stray: one browser renders all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
import pytest

from gossamer.features.render.browser import Browser, BrowserError
from gossamer.features.render.options import RenderOptions
from gossamer.features.render.page import Dom, PageError, Rendering, Supply
from gossamer.model.visits import Failure, Reply
from gossamer.options import convert
from tests.chromium import require_chromium
from tests.features.render.situations import SITUATIONS, Situation

pytestmark = [pytest.mark.acceptance, pytest.mark.paced, pytest.mark.timeout(600)]
Headers = tuple[tuple[str, str], ...]
HTML: Headers = (("Content-Type", "text/html"),)
OPTIONS = convert(RenderOptions, {"stall_s_max": 2.0, "settle_s_max": 1.0, "requests_max": 20})
FROM = "document.body.insertAdjacentHTML('beforeend', '<a href=/from-%s>x</a>')"
SITE = {
    "/app.js": FROM % "app", "/m.js": FROM % "m", "/echo.js": FROM % "echo", "/sub.js": "postMessage(1)",
    "/worker.js": "importScripts('/sub.js')", "/m.html": "<a href=/in-a-frame>x</a>", "/i.png": "none",
}  # fmt: skip


class Web:
    """The servers of a page, which notes what is requested."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    async def get(self, url: str, kind: str, has_session: bool, sent: Headers) -> Reply | Failure:
        path = "/" + url.partition("://")[2].partition("/")[2]
        given = {name.lower(): value for name, value in sent}
        self.requested.append(path)
        await asyncio.sleep(1.5 if path == "/slow" else 0)
        body = SITE.get(path, "{}" if kind in {"xhr", "fetch"} else "<p>x")
        status = 404 if path == "/none.js" else 200
        more: Headers = ()
        media_type = "text/javascript" if path.endswith(".js") else "text/html" if kind == "document" else "text/plain"
        if path == "/auth":
            status, more = 401, (("WWW-Authenticate", 'Basic realm="x"'),)
        elif path in {"/moved.js", "/around"}:
            status, more = 302, (("Location", "/app.js" if path == "/moved.js" else "/around"),)
        elif path == "/typed.js":
            more, body, media_type = (("X-Content-Type-Options", "nosniff"),), FROM % "app", "text/html"
        elif path.startswith("/echo") and "origin" in given:
            more = (("Access-Control-Allow-Origin", given["origin"]), ("Vary", "Origin"))
        elif path == "/negotiated" and given.get("accept") != "application/json":
            body = "<p>x"
        elif path == "/xhr-only":
            status = 200 if given.get("x-requested-with") == "XMLHttpRequest" else 404
        elif path == "/needs-referer":
            status = 200 if given.get("referer") == "http://a.test/" else 403
        elif path.endswith((".zip", ".pdf")):
            more, media_type = (("Content-Disposition", "attachment"),), f"application/{path[-3:]}"
        elif path.startswith("/nest.html"):
            body = f"<iframe src=/nest.html?{int(path.rpartition('?')[2]) + 1}></iframe>"
        headers = (("Content-Type", media_type), *more)
        return Reply(url, status, headers, body.encode(), "127.0.0.1", 0.0, 0.1, 10, media_type=media_type)


async def see(browser: Browser, one: Situation) -> tuple[Dom | PageError | BrowserError, Web]:
    """Render a page of a situation."""
    web = Web()
    html = f"<!doctype html><html><head><title>x</title></head>{one.body}".encode()
    document = Reply(one.url, 200, one.headers or HTML, html, "127.0.0.1", 0.0, 0.1, 10)
    document = msgspec.structs.replace(document, media_type="text/html")
    try:
        return await Rendering(browser, document, OPTIONS, Supply(web.get), ()).dom(), web
    except (PageError, BrowserError) as error:
        return error, web


def complaints(one: Situation, found: Dom | PageError | BrowserError, web: Web) -> Iterable[str]:
    """Say what is not as expected."""
    result = ("partial" if found.cut else "rendered") if isinstance(found, Dom) else found.reason
    if result not in one.result.split("|"):
        yield f"{result}: {found.cut if isinstance(found, Dom) else found}"
    if one.requested is not None and tuple(web.requested) != one.requested:
        yield f"requested {web.requested}"
    if isinstance(found, Dom):
        yield from (f"lacks {text} in {found.html[-300:]}" for text in one.has if text not in found.html)
        yield from (f"has {text}" for text in one.lacks if text in found.html)
        if (leads := tuple(lead.removeprefix("http://a.test") for lead in found.leads_to)) != one.leads:
            yield f"leads to {leads}"


async def differing() -> dict[str, list[str]]:
    """Render all situations, and return what is not as expected."""
    found = {}
    browser = await Browser.start(OPTIONS)
    try:
        for name, one in SITUATIONS.items():
            if browser.ended:
                await browser.close()
                browser = await Browser.start(OPTIONS)
            result, web = await see(browser, one)
            if isinstance(result, BrowserError):
                await browser.close()
            if wrong := [*complaints(one, result, web)]:
                found[name] = wrong
    finally:
        await browser.close()
    return found


@pytest.mark.promise(
    "What is fetched", "Dialogs, prompts, downloads, streams and navigations of a page hold no browser."
)
@pytest.mark.long
def test_pages_that_trouble_browsers_are_rendered_or_end() -> None:
    require_chromium()
    assert asyncio.run(differing()) == {}
