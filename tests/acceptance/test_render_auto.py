"""`--render auto` on a site of all kinds of pages: it finds what rendering all of them finds, and renders few."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import Crawl
from tests.acceptance.mixed import SHELL, is_resource, mixed_site
from tests.acceptance.noting import Site
from tests.acceptance.test_render import browsers, rows, status

pytestmark = [pytest.mark.acceptance, pytest.mark.paced, pytest.mark.timeout(600)]
OPTIONS = ("--render", "auto", "--allow-private", "--quiet", "--politeness", "own", "--set", "render.cpu_share_max=1")


@pytest.mark.promise(
    "What is fetched",
    "With `--render auto` pages are rendered that gain links or text by it: on a site of all kinds 95 % of what "
    "`always` finds, with 10 % of the pages rendered.",
)
@pytest.mark.long
def test_auto_finds_what_always_finds_and_renders_few(
    command: Crawl, tmp_path: Path, site: Callable[[dict[str, str]], Site]
) -> None:
    pages = mixed_site()
    server = site(pages)
    # A crawl that is not polite would have passed most pages before the first sample is done.
    done = command("crawl", f"{server.url}/", "-o", tmp_path / "c", *OPTIONS, "--delay", "0.05")
    assert done.returncode == 0, done.stderr
    found = {path: row for path, row in rows(tmp_path / "c").items() if row["outcome"] == "fetched"}
    expected = {path for path in pages if not is_resource(path)}
    assert found.keys() <= expected
    assert len(found) >= 0.95 * len(expected)
    rendered = {path: row for path, row in found.items() if row["rendered"] == "rendered"}
    assert len(rendered) <= 0.1 * len(found)
    # All that its server sends empty is rendered, nothing that has no script, and little that has its text already.
    assert {path for path in found if path.startswith("/shop/")} == {p for p in rendered if p.startswith("/shop/")}
    assert {path for path in expected if path.startswith("/shop/")} <= rendered.keys()
    # Every framework is shown, and what comes by scrolling, by clicks, in menus and behind hash routes.
    made = ("/vue/", "/solid/", "/hybrid/", "/related/", "/story/", "/lazy/", "/behind/")
    assert {path for path in expected - found.keys() if path.startswith(made)} == set()
    titles = {found[path]["title"] for path in ("/vue/item/1", "/solid/item/1", "/hybrid/1")}
    assert titles == {"Vue", "Solid", "Hybrid 1"}
    kinds = Counter(path.split("/")[1] for path in rendered)
    assert kinds["plain"] == kinds["only"] == kinds["by-menu"] == 0
    assert kinds["docs"] <= 20
    assert kinds["menu"] <= 15
    reasons = Counter(row["render_reason"] for row in rendered.values())
    told = status(command, tmp_path / "c")["rendering"]
    assert {reason: told[f"pages_{reason}"] for reason in reasons} == reasons
    assert reasons.keys() == {"signal", "sample", "gain"}
    assert told["cpu_s"] > 0
    assert browsers() == []
    report = json.loads(command("report", tmp_path / "c", "--json").stdout)
    assert {one["name"]: one["count"] for one in report["render_reasons"]} == reasons
    assert report["rendering"] == told
    text = command("report", tmp_path / "c").stdout
    assert " s a link" in " ".join(text.split())  # Its lines are broken where they are long.
    why = json.loads(command("why", tmp_path / "c", f"{server.url}/shop/item/1", "--json").stdout)
    assert why["rendering"][0].startswith("/shop/item/{n}, signal root: ")
    assert why["rendering"][0].endswith("rendered pages gained links or text; they are rendered")


@pytest.mark.long
def test_what_was_learned_outlives_a_kill(
    tmp_path: Path, command: Crawl, site: Callable[[dict[str, str]], Site]
) -> None:
    app = (
        "document.querySelector('#app').innerHTML = '<p>' + 'Words of an item. '.repeat(50) + location.pathname +"
        "(location.pathname == '/' ? Array.from({length: 12}, (_, n) => `<a href=/item/${n}>x</a>`).join('') : '');"
    )
    shell = SHELL.replace(" type=module", "")
    server = site({"/app.js": app, "/": shell, **{f"/item/{n}": shell for n in range(12)}})
    arguments = ("-o", str(tmp_path / "c"), *OPTIONS, "--set", "render.browsers=1", "--set", "crawl.commit_s=0.1")
    crawl = subprocess.Popen(
        [sys.executable, "-m", "gossamer", "crawl", f"{server.url}/", *arguments],
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while True:
            assert time.monotonic() < deadline, "no page was rendered and committed"
            running = command("why", tmp_path / "c", f"{server.url}/item/1", "--json")
            if running.returncode == 0 and "they are rendered" in running.stdout:
                break
    finally:
        os.killpg(crawl.pid, signal.SIGKILL)
        crawl.wait()
    resumed = command("resume", tmp_path / "c", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    found = rows(tmp_path / "c")
    assert {path for path, row in found.items() if row["rendered"] == "rendered"} == {
        "/", *(f"/item/{n}" for n in range(12))
    }  # fmt: skip
    counts = Counter(row["render_reason"] for row in found.values())
    assert counts["signal"] <= 2
    assert counts["gain"] == 13 - counts["signal"]
