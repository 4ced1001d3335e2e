"""Pages in a real browser, with a crawl behind it that is modelled: what they ask for comes late, or never."""

from __future__ import annotations

import asyncio
import time

import pytest

from gossamer.features.render.browser import Browser
from gossamer.features.render.options import RenderOptions
from gossamer.features.render.page import Dom, Rendering, Supply
from gossamer.model.visits import Failure, Reply
from gossamer.options import convert
from tests.chromium import require_chromium

pytestmark = [pytest.mark.acceptance, pytest.mark.paced, pytest.mark.timeout(300)]
URL = "http://a.test/"
LINK = "document.body.insertAdjacentHTML('beforeend', '<a href=/found>x</a>');"
WAITS_S = {"/slow": 3.0, "/hang": 60.0}


async def _get(url: str, kind: str, has_session: bool) -> Reply | Failure:
    path = url.removeprefix("http://a.test").partition("?")[0]
    await asyncio.sleep(WAITS_S.get(path, 0.01))
    headers = (("Content-Type", "application/json"),)
    return Reply(url, 200, headers, b"{}", "127.0.0.1", 0.0, 0.1, 10, media_type="application/json")


def render(body: str, **options: object) -> Dom:
    """Return a page as its scripts make it."""

    require_chromium()

    async def rendered() -> Dom:
        wanted = convert(RenderOptions, options)
        browser = await Browser.start(wanted)
        try:
            html = f"<!doctype html><html><head><title>x</title></head><body>{body}".encode()
            document = Reply(URL, 200, (("Content-Type", "text/html"),), html, "127.0.0.1", 0.0, 0.1, 10)
            return await Rendering(browser, document, wanted, Supply(_get), ()).dom()
        finally:
            await browser.close()

    return asyncio.run(rendered())


RESTLESS = {
    "long poll": f"{LINK} (async () => {{ for (;;) await fetch('/slow?' + Math.random()); }})()",
    "hangs": f"fetch('/hang'); {LINK}",
    "hangs, and data comes later": f"fetch('/hang'); setTimeout(() => fetch('/data').then(() => {{ {LINK} }}), 1000)",
    "polling": f"{LINK} setInterval(() => fetch('/data?' + Math.random()), 10)",
    "polling by failures": f"{LINK} (function again() {{ fetch('/data?' + Math.random()).finally(again); }})()",
    "chain of scripts": f"{LINK} (function again() {{ const one = document.createElement('script');"
    " one.src = '/data?' + Math.random(); one.onload = one.onerror = again; document.head.append(one); })()",
    "worker": f"{LINK} new Worker(URL.createObjectURL(new Blob(["
    "`setInterval(() => fetch('${location.origin}/slow?' + Math.random()), 50)`])))",
}


@pytest.mark.promise("What is fetched", "Links of a page whose requests do not end are followed.")
@pytest.mark.parametrize("script", RESTLESS.values(), ids=list(RESTLESS))
def test_a_page_whose_requests_do_not_end_is_taken_in_bounded_time(script: str) -> None:
    began = time.monotonic()
    dom = render(f"<script>{script}</script>")
    assert '<a href="/found">' in dom.html
    assert time.monotonic() - began < 30.0  # About 10 s where nothing else runs.


def test_a_page_that_is_taken_before_its_end_says_why() -> None:
    assert "render.settle_s_max = 0.5 s" in render(f"<script>{RESTLESS['hangs']}</script>", settle_s_max=0.5).cut
    assert "1,000 requests" in render(f"<script>{RESTLESS['chain of scripts']}</script>").cut
    assert render(f"<script>{LINK} fetch('/data')</script>").cut == ""


def test_a_busy_page_that_answers_is_taken_as_it_is() -> None:
    busy = f"{LINK} setInterval(() => {{ for (let n = 0; n < 3e7; n++); }}, 5)"
    dom = render(f"<script>{busy}</script>", stall_s_max=1.0)
    assert '<a href="/found">' in dom.html
    assert "busy" in dom.cut


def test_dates_are_those_of_today() -> None:
    before = time.time()
    dom = render("<script>document.body.id = 'at-' + Date.now()</script>")
    at = float(dom.html.partition("at-")[2].partition('"')[0]) / 1_000.0
    assert before - 1.0 <= at <= time.time() + 1.0


ADD = (
    "for (let i = 0; i < 20; i++) list.insertAdjacentHTML('beforeend',"
    " `<p style=height:100px><a href=/part${n}>x</a>`); n++;"
)
SEE = "new IntersectionObserver(seen => { if (seen[0].isIntersecting && n < 4) add(); }%s).observe(end);"
LIST = "<div id=list></div><div id=end style=height:20px></div>%s<script>let n = 0; %s</script>"
DWELL = (
    "let timer; new IntersectionObserver(seen => { clearTimeout(timer);"
    " if (seen[0].isIntersecting) timer = setTimeout(() => { if (n < 4) add(); }, 500); }).observe(end);"
)
SECTIONS = "".join(f"<section id=s{n} style=height:1500px></section>" for n in range(4))
OBSERVERS = {
    "at once": LIST % ("", f"function add() {{ {ADD} }} {SEE % ''} add();"),
    "with a margin": LIST % ("", f"function add() {{ {ADD} }} {SEE % ', {rootMargin: `200px`}'} add();"),
    "by a request": LIST % ("", f"async function add() {{ await fetch('/slow'); {ADD} }} {SEE % ''}"),
    "by a timer": LIST % ("", f"function add() {{ setTimeout(() => {{ {ADD} }}, 300); }} {SEE % ''} add();"),
    "by a frame": LIST % ("", f"function add() {{ requestAnimationFrame(() => {{ {ADD} }}); }} {SEE % ''} add();"),
    "before a footer": LIST % ("<div style=height:2500px></div>", f"function add() {{ {ADD} }} {SEE % ''} add();"),
    "in a box": "<div id=box style='height: 400px; overflow-y: auto'>"
    + LIST % ("</div>", f"function add() {{ {ADD} }} {SEE % ', {root: box}'} add();"),
    "after a while in view": LIST % ("", f"function add() {{ {ADD} }} {DWELL} add();"),
    "sections": f"{SECTIONS}<script>const seer = new IntersectionObserver(seen => {{ for (const one of seen)"
    " if (one.isIntersecting) { seer.unobserve(one.target);"
    " one.target.innerHTML = `<a href=/part${one.target.id.slice(1)}>x</a>`; } });"
    " document.querySelectorAll('section').forEach(one => seer.observe(one));</script>",
    "far below": "<div style=height:3000px></div><div id=list></div><div id=end>.</div><script>let n = 0;"
    f" function add() {{ while (n < 4) {{ {ADD} }} }} {SEE % ''}</script>",
}  # fmt: skip


@pytest.mark.promise("What is fetched", "Parts of a page that load when they come into view are found.")
@pytest.mark.parametrize("body", OBSERVERS.values(), ids=list(OBSERVERS))
def test_lists_that_grow_when_their_end_comes_into_view_are_whole(body: str) -> None:
    dom = render(body)
    assert [n for n in range(5) if f'href="/part{n}"' in dom.html] == [0, 1, 2, 3]
    assert dom.cut == ""


def test_a_list_without_an_end_says_that_it_goes_on() -> None:
    endless = OBSERVERS["at once"].replace("n < 4", "true")
    assert "it shows more" in render(endless, behavior_steps_max=3).cut


def test_a_page_gets_no_more_resources_than_its_bytes_permit() -> None:
    """A reply has two bytes: the first fits beside the document, the second does not, others are not requested."""
    again = "for (let n = 0; n < 4; n++) await fetch('/data?' + n).catch(() => 0);"
    body = f"<script>(async () => {{ {again} {LINK} }})()</script>"
    document = len(f"<!doctype html><html><head><title>x</title></head><body>{body}")
    assert render(body).refused == {}
    dom = render(body, page_bytes_max=document + 3)
    assert dom.refused == {"too_large": 3}
    assert list(dom.answers) == [f"{URL}data?0", f"{URL}data?1"]
    assert '<a href="/found">' in dom.html
