"""The documentation of two versions in one folder, in a real browser: the selector leads from one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.answering import serving
from tests.chromium import launch_chromium
from tests.publish import publish

pytestmark = [pytest.mark.acceptance, pytest.mark.together, pytest.mark.timeout(600)]

PAGE = "explanation/politeness/"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was published of three releases, the first two of one minor version, the newest not last."""
    made = tmp_path_factory.mktemp("pages")
    for version in ("0.9.1", "1.10.0", "0.9.3"):
        publish(made, "https://docs.example.org/gossamer/", version)
    return made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    with serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        yield browser
        browser.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.long
def test_the_selector_shows_all_versions_and_keeps_the_page(browser: Browser, address: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("requestfailed", lambda request: faults.append(request.url))
    page.goto(f"{address}1.10/{PAGE}", wait_until="networkidle")  # To leave earlier would end its requests.
    selector = page.locator(".md-version")
    expect(selector.locator(".md-version__current")).to_have_text("1.10.0")
    selector.hover()
    expect(selector.locator(".md-version__link")).to_have_text(["1.10.0", "0.9.3"])
    selector.get_by_role("link", name="0.9.3").click()
    page.wait_for_url(f"{address}0.9/{PAGE}")
    expect(page.locator(".md-version__current")).to_have_text("0.9.3")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Politeness")
    assert faults == []
    page.close()


@pytest.mark.long
def test_the_address_of_all_leads_to_the_newest(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_url(f"{address}1.10/")
    page.close()


@pytest.mark.long
def test_each_page_has_its_own_address_and_a_release_replaces_its_minor_version_only(folder: Path) -> None:
    assert sorted(one.name for one in folder.iterdir()) == ["0.9", "1.10", "index.html", "versions.json"]
    for name in ("0.9", "1.10"):
        text = (folder / name / PAGE / "index.html").read_text(encoding="utf-8")
        assert f"https://docs.example.org/gossamer/{name}/{PAGE}" in text
