"""The report of a real crawl, opened in a real browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from gossamer.api.identity import CrawlPage
from gossamer.console.replay import _message_page
from gossamer.lab.simulate.arguments import options_of
from gossamer.lab.simulate.figure import as_html as simulation_as_html
from gossamer.lab.simulate.simulation import simulate
from gossamer.results.check.comparison import SiteCheck
from gossamer.results.check.page import as_html as check_as_html
from gossamer.results.export.faults import SiteFault
from gossamer.results.export.mirror import index_of
from gossamer.results.report.html import as_html
from gossamer.results.report.report import summary
from tests.acceptance.conftest import Crawl
from tests.acceptance.test_dashboard import AXE
from tests.chromium import CHROMIUM_OPTIONS, launch_chromium, require_chromium
from tests.results.report.crawled import START, crawled, page

pytestmark = pytest.mark.acceptance

BROWSER_S_MAX = 60


def browsed(directory: Path, report: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            require_chromium(), "--headless", *CHROMIUM_OPTIONS, "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
            f"--user-data-dir={directory / 'profile'}", *arguments, report.as_uri(),
        ],
        capture_output=True, text=True, timeout=BROWSER_S_MAX,
    )  # fmt: skip


@pytest.mark.long
def test_the_page_of_a_crawl_opens_in_a_browser(command: Crawl, tmp_path: Path) -> None:
    assert command("demo", "-o", tmp_path / "demo").returncode == 0
    made = command("report", tmp_path / "demo", "--html", tmp_path / "report.html")
    assert made.returncode == 0, made.stderr
    figures = json.loads(command("report", tmp_path / "demo", "--json").stdout)
    seen = browsed(tmp_path, tmp_path / "report.html", "--dump-dom")
    assert seen.returncode == 0, seen.stderr
    assert f"<b>{figures['fetched']:,}</b><span>pages fetched</span>" in seen.stdout
    assert seen.stdout.count("<svg") == 6  # As in tests/results/report/test_html.py without hosts, commits and queue.
    assert "CONSOLE" not in seen.stderr
    drawn = browsed(tmp_path, tmp_path / "report.html", f"--screenshot={tmp_path / 'page.png'}")
    assert (tmp_path / "page.png").read_bytes()[:4] == b"\x89PNG", drawn.stderr


PHONE = {"width": 390, "height": 844}


@pytest.mark.promise("Console", "Pages that are written pass the accessibility rules of axe-core.")
@pytest.mark.parametrize("look", [{"color_scheme": "light"}, {"color_scheme": "dark", "viewport": PHONE}])
@pytest.mark.long
def test_pages_that_are_written_pass_the_rules_of_axe(tmp_path: Path, look: dict[str, object]) -> None:
    host = "a-very-long-name.of-a-department.of-an-institute.of-a-university.example"
    hosts = [f"h{n}-{size}.example.org" for size in range(5) for n in range(12) for _ in range(1 << size)]
    rows = [page(n, each, fetched_at=START + n, ip="127.0.0.1") for n, each in enumerate([host, *hosts])]
    rows.append(page(900, host, outcome="http_error", status=404, fetched_at=START + 900))
    report = summary(crawled(tmp_path, rows))
    contact = CrawlPage("gossamer/1 (+me@example.org)", "me@example.org", ("gossamer",))
    faults = [SiteFault("broken_link", f"http://{host}/missing", "HTTP 404", [f"http://{host}/"])]
    options = options_of("web2025", {"pages": 500}, ["web.hosts=50", "web.pages=10000"])
    simulated = simulation_as_html(simulate(options), options)
    refused = bytes(_message_page("this version is not in the archive", 404, {}).body).decode()
    mirror = index_of([("a.test/index.html", f"http://{host}/")])
    checked = check_as_html(SiteCheck(f"http://{host}/", faults))
    pages = (as_html(report, host), checked, contact.html(), simulated, refused, mirror)
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        for text in pages:
            shown = browser.new_page(bypass_csp=True, **look)  # type: ignore[arg-type]
            shown.set_content(text)
            assert shown.evaluate("document.documentElement.scrollWidth") <= shown.viewport_size["width"]  # type: ignore[index]
            letters = "[...document.querySelectorAll('svg text')].map(one => one.getBoundingClientRect().height)"
            assert min(filter(None, shown.evaluate(letters)), default=12) >= 12, "letters of charts can be read"
            shown.evaluate(AXE.read_text(encoding="utf-8"))
            found = shown.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
        browser.close()


def test_a_hostile_title_runs_nothing(command: Crawl, tmp_path: Path) -> None:
    bad = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    directory = crawled(tmp_path, [page(1, host=bad, fetched_at=START), page(2, outcome="timeout", error=bad)])
    (directory / "crawl.toml").write_text("")
    made = command("report", directory, "--html", tmp_path / "report.html")
    assert made.returncode == 0, made.stderr
    seen = browsed(tmp_path, tmp_path / "report.html", "--dump-dom")
    assert "&lt;script&gt;" in seen.stdout
    assert ": report of a crawl</title>" in seen.stdout
    assert "CONSOLE" not in seen.stderr  # Nothing was even tried: a blocked request or script says so here.
