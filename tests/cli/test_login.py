"""`gossamer login`: a person logs in by hand in a browser, and the crawl has its session."""

from __future__ import annotations

import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from gossamer.features.render.visible import LoginByHand, ShownPage
from tests.answering import free_port
from tests.chromium import require_chromium
from tests.commands import run
from tests.guarded import PAGES, PASSWORD, USER, Site, served
from tests.ring.crawls import OWN, crawl, rows
from tests.ring.test_secrets import contents


def fill_in(page: Page) -> None:
    page.fill("[name=user]", USER)
    page.fill("[name=password]", PASSWORD)
    page.click("[name=go]")
    page.wait_for_url("**/?in")
    assert page.evaluate("document.cookie = 'seen=1'")


def log_in(directory: Path, ours: Site, *, closes: bool) -> str:
    """Log in as a person does, and return what the command says."""
    port = free_port()
    root = f"http://127.0.0.1:{ours.port}"
    command = [
        sys.executable, "-m", "gossamer", "login", str(directory), f"{root}/login", "--unsandboxed",
        "--remote-debugging", str(port), "--browser", require_chromium(),
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert f"http://127.0.0.1:{port}" in running.stdout.readline()
        with sync_playwright() as playwright:
            browser = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
            [page] = browser.contexts[0].pages
            fill_in(page)
            if closes:
                page.wait_for_timeout(1_500)
                page.close()
            else:
                running.stdin.write("\n")
                running.stdin.flush()
            says = running.stdout.read()
        assert running.wait(100) == 0
    return says


@pytest.mark.long
@pytest.mark.acceptance
@pytest.mark.promise("Operation", "A crawl continues the session of a login by hand in a browser.")
def test_a_crawl_begins_and_goes_on_with_logins_by_hand(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with served() as (ours, _):
        ours.session_pages = 4
        says = log_in(directory, ours, closes=False)
        assert re.match(r"\d cookies stored in ", says)
        kept = directory / "state/login.json"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
        seed = f"http://127.0.0.1:{ours.port}/app/0"
        page = f"http://127.0.0.1:{ours.port}/?in"
        assert f"Next: gossamer crawl '{page}' -o {directory} --cookies {kept}" in says, "the page after the login"
        more = ("scope.exclude=['logout']", "limits.max_pages=2")
        assert crawl((seed,), directory, *OWN, f"cookies.file={kept}", *more).end == "limit"
        ours.session_pages = PAGES
        kept.unlink()
        assert crawl((), directory, "limits.max_pages=3", resuming=True).end == "limit", "its cookies are known"
        says = log_in(directory, ours, closes=True)
        assert f"gossamer resume {directory}" in says
        found = crawl((), directory, "limits.max_pages=none", resuming=True)
    assert found.end == "finished", found.critical()
    titles = {row["title"] for row in rows(directory / "pages") if row["outcome"] == "fetched"}
    assert titles >= {f"app {number} of {USER}" for number in range(PAGES)}
    assert ours.count("POST", "/session") == 2, "both by hand"
    secrets = [one.encode() for one in (*ours.made, PASSWORD)]
    shown = [place for place, data in contents(directory) if any(one in data for one in secrets)]
    assert not [place for place in shown if "/state/" not in place], shown


@pytest.mark.parametrize(
    ("pages", "cookies", "complaint"),
    [
        (["/login 1"], 1, "http://a.test/login still asks for a password, and nothing was stored; log in, wait for"),
        (["/home 0", "/login 1"], 1, "http://a.test/login still asks for a password"),
        (["/login 0 2"], 0, "no cookies of a.test (what the page has in localStorage is not kept); log in before"),
        ([], 0, "the browser has no cookies of a.test; log in before you close its window"),
        (["/password 2"], 1, ""),
    ],
)
def test_a_window_that_was_closed_without_a_login_is_no_success(
    pages: list[str], cookies: int, complaint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def log_in(*_: object) -> LoginByHand:
        shown = [(*page.split(), "0")[:3] for page in pages]
        kept = [{"name": "pre", "value": "x", "domain": ".a.test"}] * cookies
        return LoginByHand(kept, [ShownPage(f"http://a.test{path}", int(one), int(two)) for path, one, two in shown])

    monkeypatch.setattr("gossamer.cli.login.BROWSERS", ("true",))
    monkeypatch.setattr("gossamer.cli.login._log_in", log_in)
    monkeypatch.setenv("DISPLAY", ":9")
    status, _, err = run("login", str(tmp_path / "crawl"), "http://a.test/login", "--unsandboxed")
    assert (status, err.count("\n")) == ((2, 1) if complaint else (0, 0))
    assert complaint in err
    assert (tmp_path / "crawl/state/login.json").exists() is not bool(complaint)


def test_a_port_that_is_taken_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("gossamer.cli.login.BROWSERS", ("true",))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, _, err = run("login", str(tmp_path), "http://a.test/", "--unsandboxed", "--remote-debugging", port)
    assert (status, err) == (2, f"gossamer: --remote-debugging {port}: Address already in use; name another port\n")


@pytest.mark.parametrize(
    ("arguments", "environment", "complaint"),
    [
        (("crawl", "docs.a.test"), {"DISPLAY": ":9"}, "docs.a.test is no http or https URL; write that of the login"),
        (("crawl", "http://a.test/"), {}, "run `gossamer login crawl http://a.test/ --remote-debugging 9222`"),
        (("crawl", "a.test"), {}, "a.test is no http or https URL"),
        (("crawl", "http://a.test/", "--remote-debugging", "65536"), {}, "65536: expected a number from 1 to 65535"),
        (("crawl", "http://a.test/", "--remote-debugging", "-1"), {}, "-1: expected a number from 1 to 65535"),
        ((__file__, "http://a.test/"), {"DISPLAY": ":9"}, "test_login.py is a file; name the directory of a crawl"),
        (("crawl", "http://a.test/", "--browser", "/no"), {}, "there is no /no; install it (Debian: apt-get install"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: tuple[str, ...], environment: dict[str, str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gossamer.cli.login.BROWSERS", ("true",))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    status, _, err = run("login", *arguments, "--unsandboxed")
    assert (status, err.count("\n")) == (2, 1)
    assert complaint in err
