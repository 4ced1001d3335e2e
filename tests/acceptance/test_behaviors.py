"""Behaviors: what a page shows only when a visitor does something is found, and without its behavior it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import Crawl
from tests.acceptance.mixed import ROUTES, mixed_site
from tests.acceptance.noting import Site
from tests.acceptance.test_render import records, rows, status

pytestmark = [pytest.mark.acceptance, pytest.mark.paced, pytest.mark.timeout(600)]
OPTIONS = ("--render", "always", "--allow-private", "--quiet", "--politeness", "own")


# Page, prefix of what it shows, and how much of that without the behavior.
SHOWN = {
    "scroll": ("/feed/observed", "/story/observed/", 8),
    "more": ("/feed/clicked", "/story/clicked/", 0),
    "details": ("/lazy/", "/lazy/", 0),
    "routes": ("/routed/", "/behind/", 4),
}


def rendered(command: Crawl, crawl: Path, url: str, *options: str) -> str:
    """Return the rendered document of one page."""
    done = command("crawl", url, "-o", crawl, *OPTIONS, "--max-pages", "1", "--delay", "0", *options)
    assert done.returncode == 0, done.stderr
    [html] = [block for kind, _, block in records(crawl) if kind == "conversion"]
    return html.decode()


@pytest.mark.promise(
    "What is fetched",
    "A rendered page is scrolled to its end, 'load more' is clicked, details, menus and hash routes are opened; "
    "`render.behaviors` says which.",
)
@pytest.mark.parametrize("behavior", SHOWN)
@pytest.mark.long
def test_what_a_behavior_shows_is_found_and_is_not_without_it(
    behavior: str, command: Crawl, tmp_path: Path, site: Callable[[dict[str, str]], Site]
) -> None:
    page, prefix, sent = SHOWN[behavior]
    pages = mixed_site()
    shown = {path for path in pages if path.startswith(prefix) and path != page}
    server, others = site(pages), [one for one in SHOWN if one != behavior]
    found = []
    for wanted in ([behavior], others):
        html = rendered(
            command, tmp_path / str(len(wanted)), server.url + page, "--set", f"render.behaviors={json.dumps(wanted)}"
        )
        found.append({path for path in shown if f'href="{path}"' in html})
    assert found[0] == shown
    assert len(found[1]) == sent


@pytest.mark.long
def test_hash_routes_are_one_page_with_the_text_of_all(
    command: Crawl, tmp_path: Path, site: Callable[[dict[str, str]], Site]
) -> None:
    server = site(mixed_site())
    html = rendered(command, tmp_path / "c", f"{server.url}/routed/#/about")
    assert [row["url"] for row in rows(tmp_path / "c").values() if row["rendered"]] == [f"{server.url}/routed/"]
    for route in ("/guide", "/guide/first", "/about"):
        assert f'<section data-hash-route="#{route}">' in html
        assert f"<p>The words of {route}.</p>" in html
    assert html.count("<h1>") == len(ROUTES)
    assert server.paths.count("/routed/") == 1


ENDLESS = """
let n = 0;
const more = () => { for (let i = 0; i < 20; i++) document.body.insertAdjacentHTML("beforeend", `<p>${n++}</p>`); };
more(); addEventListener("scroll", more);
"""


@pytest.mark.long
def test_a_page_without_end_is_left_after_so_many_steps(
    command: Crawl, tmp_path: Path, site: Callable[[dict[str, str]], Site]
) -> None:
    server = site({"/": f"<body><script>{ENDLESS}</script>", "/made": "x"})
    few = rendered(command, tmp_path / "few", f"{server.url}/", "--set", "render.behavior_steps_max=3")
    assert "<p>20</p>" in few
    assert few.count("<p>") < 600, "a step scrolls four times; thirty steps show thousands"
    none = rendered(command, tmp_path / "none", f"{server.url}/", "--set", "render.behavior_steps_max=0")
    assert "<p>19</p>" in none
    assert "<p>20</p>" not in none


@pytest.mark.long
def test_nothing_is_clicked_that_submits_or_leads_away(
    command: Crawl, tmp_path: Path, site: Callable[[dict[str, str]], Site]
) -> None:
    page = (
        "<body><form action=/sent><button>Load more</button><button aria-expanded=false>Menu</button></form>"
        "<a href=/other>Show more</a><button disabled onclick='document.title = 1'>Show more</button>"
        "<button hidden onclick='document.title = 2'>Show more</button>"
        "<button onclick='document.title = 3'>Buy</button>"
        "<button aria-expanded=true onclick='document.title = 4'>Menu</button>"
    )
    server = site({"/": page, "/other": "x"})
    html = rendered(command, tmp_path / "c", f"{server.url}/")
    assert "<title>" not in html
    assert {"/sent", "/sent?"}.isdisjoint(server.paths)
    assert status(command, tmp_path / "c")["rendering"].get("refused_navigation", 0) == 0


@pytest.mark.long
def test_sound_and_film_do_not_begin_by_themselves(
    command: Crawl, tmp_path: Path, site: Callable[[dict[str, str]], Site]
) -> None:
    page = (
        "<body><script>document.title = new AudioContext().state; const film = document.createElement('video');"
        "film.src = '/film.webm'; film.play().catch(error => document.body.append(error.name));</script>"
    )
    server = site({"/": page})
    html = rendered(command, tmp_path / "c", f"{server.url}/", "--set", 'render.resources=["script","media"]')
    assert "<title>suspended</title>" in html
    assert "NotAllowedError" in html


@pytest.mark.long
def test_behaviors_of_the_user_run_in_each_page_and_their_errors_are_counted(
    command: Crawl, tmp_path: Path, site: Callable[[dict[str, str]], Site]
) -> None:
    (tmp_path / "tabs.js").write_text("openTab(); document.querySelectorAll('a').length < 4")
    (tmp_path / "broken.js").write_text("missing.call()")
    tabs = (
        "let n = 0; function openTab() { document.body.insertAdjacentHTML('beforeend', `<a href=/tab/${n++}>x</a>`); }"
    )
    server = site({"/": f"<body><script>{tabs}</script>"})
    own = json.dumps([str(tmp_path / "tabs.js"), str(tmp_path / "broken.js")])
    html = rendered(command, tmp_path / "c", f"{server.url}/", "--set", f"render.behavior_files={own}")
    assert [f"/tab/{n}" in html for n in range(5)] == [True] * 4 + [False]
    modules = status(command, tmp_path / "c")["modules"]
    assert modules["broken.js"]["failed"] == 1
    assert "ReferenceError: missing is not defined" in modules["broken.js"]["error"]
    assert modules["tabs.js"]["pages"] == 1


@pytest.mark.parametrize(("content", "says"), [(None, "No such file"), (b"\xff", "not UTF-8")])
def test_a_file_of_behaviors_that_cannot_be_read_is_refused(
    content: bytes | None, says: str, command: Crawl, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "own.js").write_bytes(content)
    own = json.dumps([str(tmp_path / "own.js")])
    done = command(
        "crawl", "http://127.0.0.1:9/", "-o", tmp_path / "c", *OPTIONS, "--set", f"render.behavior_files={own}"
    )
    assert done.returncode == 2
    assert "render.behavior_files: " in done.stderr
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
