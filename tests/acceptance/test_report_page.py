"""The report of a real crawl, opened in a real browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.conftest import Crawl
from tests.chromium import CHROMIUM_OPTIONS, require_chromium
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
    assert seen.stdout.count("<svg") == 8  # As in tests/results/report/test_html.py, and the commits and the queue.
    assert "CONSOLE" not in seen.stderr
    drawn = browsed(tmp_path, tmp_path / "report.html", f"--screenshot={tmp_path / 'page.png'}")
    assert (tmp_path / "page.png").read_bytes()[:4] == b"\x89PNG", drawn.stderr


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
