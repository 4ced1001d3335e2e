"""A processing module that fails on every page: counted, shown wherever people look, and a reason to stop."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.api.metrics import metrics_of
from tests.commands import run
from tests.crash.crawls import Crawl, environment
from tests.crash.harvest import Harvest
from tests.crash.site import Site, linked
from tests.crash.test_quarantine import crawl_of_site

PAGES = 30
HTML = {f"/failing-{number}.html": b"<title>t</title><!-- marker-Raise -->" for number in range(PAGES)}
ONE_AT_A_TIME = ("crawl.concurrency=1", "crawl.commit_s=0.1")


def shown(crawl: Crawl, *words: str) -> str:
    """Return what a command prints for people."""
    assert crawl.directory.exists()
    status, out, err = run(*words)
    assert status == 0, err
    return out


@pytest.mark.heavy
@pytest.mark.promise("Components and Python", "Failures of a processing module are counted and shown.")
def test_failures_are_counted_and_shown_wherever_people_look(tmp_path: Path) -> None:
    with Site(linked(HTML, 0)).serving() as site:
        crawl = crawl_of_site(site, tmp_path, module="Raise")
        words = ["crawl", *crawl.arguments, "-o", str(crawl.directory), "--set", "progress.style=plain"]
        done = subprocess.run(
            [sys.executable, "-m", "gossamer", *words],
            env=environment(), capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        last = done.stdout.splitlines()[-6:]
    sentence = f"failed on {PAGES} of {PAGES + 1} pages: ZeroDivisionError: a module's own mistake, last on {site.root}"
    assert any(f"Module deadly {sentence}" in line for line in last), last
    status = crawl.ask("status")
    modules = status["modules"]
    assert isinstance(modules, dict)
    told = modules["deadly"]
    assert (told["pages"], told["failed"], told["timeouts"], told["died"]) == (PAGES + 1, PAGES, 0, 0)
    others = {name: (one["pages"], one["failed"], one["says"]) for name, one in modules.items() if name != "deadly"}
    ours = ("links", "title_and_text", "header_links", "directives")
    of_seed = {"announcements": (1, 0, "")}  # A seed of any type may be a sitemap.
    assert others == dict.fromkeys(ours, (PAGES + 1, 0, "")) | of_seed
    assert f"module deadly {sentence}" in shown(crawl, "status", str(crawl.directory))
    failures = rf"deadly +{PAGES} +{PAGES + 1} +"
    assert re.search(failures, shown(crawl, "report", str(crawl.directory))), "of a module: failures, and pages"
    reported = crawl.ask("report")["failed_modules"]
    assert isinstance(reported, list)
    assert [(one["name"], one["failed"]) for one in reported] == [("deadly", PAGES)]
    page = tmp_path / "report.html"
    shown(crawl, "report", str(crawl.directory), "--html", str(page))
    assert "Processing modules and fields that failed" in page.read_text()
    text = metrics_of(status).decode()
    assert f'gossamer_module_failures_total{{module="deadly"}} {PAGES}.0' in text
    assert f'gossamer_module_pages_total{{module="links"}} {PAGES + 1}.0' in text


@pytest.mark.heavy
@pytest.mark.promise(
    "Components and Python", "A processing module that never works stops the crawl, which can be resumed."
)
def test_a_module_that_never_worked_stops_the_crawl_which_can_be_resumed(tmp_path: Path) -> None:
    pages = {path: body + b"<!-- marker-Raise -->" for path, body in linked(HTML, 0).items()}
    with Site(pages).serving() as site:
        crawl = crawl_of_site(site, tmp_path, *ONE_AT_A_TIME, "crawl.module_failures_max=10", module="Raise")
        assert crawl.finish() == 1
        (line,) = crawl.complaints.splitlines()
        assert "the processing module deadly failed on all 10 pages of this run (ZeroDivisionError" in line
        assert "the state is saved, gossamer resume" in line
        harvest = Harvest(crawl.directory)
        assert harvest.faults() == []
        assert 10 <= len(harvest.finals) <= 12, "what was fetched is kept"
        modules = crawl.ask("status")["modules"]
        assert isinstance(modules, dict)
        assert modules["deadly"]["failed"] == len(harvest.finals)
        crawl.complaints = ""
        crawl.start("--set", "crawl.module_failures_max=0")
        assert crawl.wait() == 0, crawl.complaints
        assert set(Harvest(crawl.directory).finals) == {site.url(path) for path in pages}
        assert all(count == 1 for path, count in site.asked.items() if path != "/robots.txt")


@pytest.mark.heavy
def test_a_module_that_worked_once_does_not_stop_the_crawl(tmp_path: Path) -> None:
    """Else a site full of broken pages could stop it."""
    with Site(linked(HTML, 0)).serving() as site:  # The front page has no marker.
        crawl = crawl_of_site(site, tmp_path, *ONE_AT_A_TIME, "crawl.module_failures_max=10", module="Raise")
        assert crawl.finish() == 0, crawl.complaints
