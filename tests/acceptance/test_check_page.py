"""The page of a check in Chromium: wide and narrow, light and dark, without a complaint, readable for all, sortable."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from gossamer.results.check.comparison import FaultName, SiteCheck
from gossamer.results.check.page import as_html
from gossamer.results.export.faults import KINDS, SiteFault
from tests.acceptance.test_dashboard import AXE, PHONE
from tests.chromium import launch_chromium

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

ROOT = "https://example.org/"
LONG = "long" * 60


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    faults = [
        SiteFault(kind, f"{ROOT}{kind}/{number}/{LONG}", f"detail {LONG}", [f"{ROOT}{page}" for page in range(number)])
        for kind in KINDS
        for number in (0, 1, 30)
    ]
    faults += [SiteFault("missing_title", f"{ROOT}many/{number}") for number in range(40)]
    path = tmp_path_factory.mktemp("page") / "faults.html"
    path.write_text(as_html(SiteCheck(ROOT, faults, frozenset((FaultName("broken_link", f"{ROOT}old"),)))))
    return path.as_uri()


def opened(browser: Browser, address: str, complaints: list[str], **context: Any) -> Page:
    page = browser.new_context(**context).new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.extend([request.url] if request.url != address else []))
    page.goto(address)
    return page


@pytest.mark.parametrize(("viewport", "scheme"), [({"width": 1280, "height": 900}, "light"), (PHONE, "dark")])
@pytest.mark.long
def test_the_page_fits_and_is_accessible(
    browser: Browser, address: str, viewport: dict[str, int], scheme: Literal["light", "dark"]
) -> None:
    complaints: list[str] = []
    page = opened(browser, address, complaints, viewport=viewport, color_scheme=scheme, bypass_csp=True)
    for details in page.locator("details").all():
        details.evaluate("one => one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
    assert complaints == []


def test_tables_are_sorted_by_number_and_by_severity(browser: Browser, address: str) -> None:
    complaints: list[str] = []
    page = opened(browser, address, complaints)
    numbers = page.locator("#causes td.number")
    button = page.locator("#causes th button", has_text="Faults")
    button.click()
    up = [int(one) for one in numbers.all_inner_texts()]
    button.click()
    down = [int(one) for one in numbers.all_inner_texts()]
    assert (up, down) == (sorted(up), sorted(up, reverse=True))
    assert page.locator("#causes th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.locator("#causes th button", has_text="Severity").click()
    first = page.locator("#causes td:first-child").all_inner_texts()
    assert list(dict.fromkeys(first)) == ["error", "warning", "notice"]
    assert complaints == []


def test_a_table_is_saved_as_csv_in_the_order_shown(browser: Browser, tmp_path: Path) -> None:
    faults = [SiteFault("broken_link", f"{ROOT}{number}", "=1+1", [f"{ROOT}a", f"{ROOT}b"]) for number in range(3)]
    path = tmp_path / "faults.html"
    path.write_text(as_html(SiteCheck(ROOT, faults)))
    complaints: list[str] = []
    page = opened(browser, path.as_uri(), complaints, accept_downloads=True)
    page.locator("#broken_link th button", has_text="URL").dblclick()
    with page.expect_download() as saved:
        page.locator("#broken_link .save").press("Enter")
    assert saved.value.suggested_filename == "broken_link.csv"
    rows = list(csv.reader(Path(saved.value.path()).read_text("utf-8-sig").splitlines(keepends=True)))
    assert rows == [["URL", "Detail", "Pages"]] + [
        [f"{ROOT}{number}", "'=1+1", f"{ROOT}a\n{ROOT}b"] for number in (2, 1, 0)
    ]
    assert complaints == []


def test_contents_lead_to_each_section(browser: Browser, address: str) -> None:
    page = opened(browser, address, [])
    targets = page.locator("nav a").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    assert len(targets) == len(KINDS) + 3
    assert all(page.locator(target).count() == 1 for target in targets)


def test_it_prints_every_row_in_dark_letters(browser: Browser, address: str) -> None:
    page = opened(browser, address, [], color_scheme="dark")
    assert not page.locator("#pages td").first.is_visible()
    page.emulate_media(media="print")
    assert page.locator("#pages td").first.is_visible()
    looks = page.evaluate("['body', '#causes td.number'].map((one) => getComputedStyle(document.querySelector(one)))"
                          ".map(({ color, textAlign }) => [color, textAlign])")  # fmt: skip
    assert looks == [["rgb(28, 36, 48)", "start"], ["rgb(28, 36, 48)", "right"]]


def test_without_scripts_the_page_has_all_it_shows(browser: Browser, address: str) -> None:
    page = opened(browser, address, [], java_script_enabled=False)
    assert page.locator("h2", has_text="By cause").is_visible()
    assert page.locator("button").count() == 0
