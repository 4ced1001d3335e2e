"""Pages in a real browser, with a crawl behind it that is modelled: what they ask for comes late, or never."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from pathlib import Path

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


async def _get(url: str, kind: str, has_session: bool, sent: object) -> Reply | Failure:
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
    """About 10 s where nothing else runs; one that is waited for without end ends with the test's own time limit."""
    dom = render(f"<script>{script}</script>")
    assert '<a href="/found">' in dom.html


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


ELEMENT = (
    "<x-a></x-a><script>customElements.define('x-a', class extends HTMLElement { constructor() { super();"
    " this.attachShadow({mode: '%s'}).innerHTML = `<p>Words.</p><a href=/found>x</a>`; } })</script>"
)
BUTTON = (
    "const button = this.shadowRoot.appendChild(document.createElement('button')); button.textContent = 'Load more';"
    " button.onclick = () => { button.outerHTML = '<p>Words.</p><a href=/found>x</a>'; };"
)
CONTENT = "`<p>Words.</p><a href=/found>x</a>`"
UNADDRESSED = {
    "open root": ELEMENT % "open",
    "closed root": ELEMENT % "closed",
    "closed root of an ordinary element": "<div id=one></div><script>one.attachShadow({mode: 'closed'})"
    f".innerHTML = {CONTENT}</script>",
    "declared root": "<x-a><template shadowrootmode=open><p>Words.</p><a href=/found>x</a></template></x-a>",
    "root in a root": ELEMENT.replace(CONTENT, "`<x-b></x-b>`") % "open" + ELEMENT.replace("x-a", "x-b") % "open",
    "root with a button": ELEMENT.replace(f".innerHTML = {CONTENT};", f"; {BUTTON}") % "open",
    "frame that is written": "<iframe id=frame></iframe><script>"
    f"frame.contentDocument.write({CONTENT}); frame.contentDocument.close()</script>",
    "frame with scripts": f'<iframe srcdoc="<body><script>document.body.innerHTML = {CONTENT}</script>"></iframe>',
    "frame of a blob": "<iframe id=frame></iframe><script>"
    f"frame.src = URL.createObjectURL(new Blob([{CONTENT}], {{type: 'text/html'}}))</script>",
}


@pytest.mark.promise("What is fetched", "Links in shadow roots, and in frames that scripts write, are followed.")
@pytest.mark.parametrize("body", UNADDRESSED.values(), ids=list(UNADDRESSED))
def test_shadow_roots_and_frames_without_an_address_belong_to_the_document(body: str) -> None:
    shown = re.sub(r"(?s)<script.*?</script>", "", render(body).html)
    assert '<a href="/found">' in shown
    assert "<p>Words." in shown


VIRTUAL = (
    "const item = n => `<a style='position: absolute; top: ${100 * n}px' href=/part${n}>x</a>`; function show(top) {"
    " const first = Math.floor(top / 100); inner.innerHTML = Array.from({length: 12}, (_, n) => first + n)"
    ".filter(n => n < 60).map(item).join(''); } show(0);"
)
TALL = "<div id=inner style='position: relative; height: 6000px'></div>"
REPLACED = {
    "list in a window": f"{TALL}<script>{VIRTUAL} onscroll = () => show(scrollY)</script>",
    "list in a box": f"<div id=box style='height: 600px; overflow-y: auto'>{TALL}</div>"
    f"<script>{VIRTUAL} box.onscroll = () => show(box.scrollTop)</script>",
    "tabs": "".join(f"<button role=tab onclick='show({1200 * n})'>{n}</button>" for n in range(5))
    + f"<div id=inner></div><script>{VIRTUAL}</script>",
}


@pytest.mark.promise(
    "What is fetched", "Links that a page replaces while it is scrolled or its tabs are opened are kept."
)
@pytest.mark.parametrize("body", REPLACED.values(), ids=list(REPLACED))
def test_links_that_others_replace_are_kept(body: str) -> None:
    dom = render(body)
    assert [n for n in range(60) if dom.html.count(f'href="/part{n}"') != 1] == []


OPENED = "list.insertAdjacentHTML('beforeend', '<a href=/found>x</a>')"
OPENERS = {
    "menu": f'<nav><li onmouseenter="{OPENED}; onmouseenter = null">Products</li></nav>',
    "accordion": f'<h3 aria-expanded=false onclick="{OPENED}; ariaExpanded = true">Questions</h3>',
    "more of a kind": f'<button onclick="{OPENED}; remove()">Mehr Artikel</button>',
    "a number of more": f'<button onclick="{OPENED}; remove()">Load 12 more</button>',
}


@pytest.mark.parametrize("opener", OPENERS.values(), ids=list(OPENERS))
def test_menus_and_buttons_that_show_more_are_opened(opener: str) -> None:
    assert '<a href="/found">' in render(f"{opener}<div id=list></div>").html


LEADING = {
    "handler": "<button onclick=\"location = '/one'\">x</button>"
    " <a href=# onclick=\"location.href = '/two'; return false\">x</a>",
    "address": "<a href=\"javascript:location.assign('/one')\">x</a> <a href=\"javascript:open('/two')\">x</a>",
    "listener": "<a id=one>x</a> <span role=link id=two>x</span><script>for (const node of [one, two])"
    " node.addEventListener('click', () => { location = '/' + node.id; })</script>",
    "router": "<a data-to=/one>x</a> <a data-to=/two>x</a><p id=out></p><script>"
    "document.querySelectorAll('[data-to]').forEach(node => { node.onclick = () => {"
    " history.pushState({}, '', node.dataset.to); out.remove(); }; })</script>",
    "form": "<form id=form><input name=q></form><a onclick=\"form.action = '/one'; form.submit()\">x</a>"
    " <a onclick=\"form.method = 'post'; form.action = '/three'; form.submit()\">x</a>"
    " <a onclick=\"window.open('/two')\">x</a>",
}


@pytest.mark.promise(
    "What is fetched", "Addresses to which a page leads by scripts alone, when it is clicked, are links."
)
@pytest.mark.parametrize("body", LEADING.values(), ids=list(LEADING))
def test_clicks_say_where_scripts_lead_and_change_nothing(body: str) -> None:
    dom = render(body + "<p id=here>Here.</p>")
    assert {lead.partition("?")[0] for lead in dom.leads_to} == {f"{URL}one", f"{URL}two"}
    assert dom.url == URL
    assert '<p id="here">Here.</p>' in dom.html
    assert "out" not in body or '<p id="out">' in dom.html
    assert render(body, behaviors=["scroll"]).leads_to == ()


def test_clicks_that_request_hang_or_leave_cost_no_document() -> None:
    click = "<a onclick='%s'>x</a><p>Here.</p>"
    dom = render(click % "fetch(`/data`, {method: `POST`}); fetch(`/data`)")
    assert "<p>Here." in dom.html
    assert dom.answers == {}
    assert "<p>Here." in render(click % "alert(1); location = `about:blank`").html
    assert "<p>Here." in render(click % "document.documentElement.remove()").html
    assert "<p>Here." in render(click % "for (;;);", stall_s_max=1.0).html


def test_a_form_that_a_script_posts_is_no_link() -> None:
    body = "<form id=form method=post action=/one></form><script>form.%s; form.submit()</script>"
    assert render(body % "id").leads_to == ()
    assert render(body % "method = 'get'").leads_to == (f"{URL}one?",)


def test_a_browser_whose_guard_is_killed_leaves_no_files() -> None:
    """As where the system lacks memory, and its killer takes the guard."""
    require_chromium()

    async def folder_of_one() -> Path:
        browser = await Browser.start(RenderOptions())
        os.kill(browser._process.pid, signal.SIGKILL)
        await browser.close()
        return Path(browser.folder)

    folder = asyncio.run(folder_of_one())
    assert folder.name.startswith("gossamer-browser-")
    assert not folder.exists()
