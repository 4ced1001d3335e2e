"""Pages that kill or hang what reads them: they are found out, set aside, and the crawl goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.crawls import Crawl
from tests.crash.harvest import Harvest
from tests.crash.site import Site, linked

DEADLY = Path(__file__).with_name("deadly.py")
ORDINARY = 30


def crawl_of_site(site: Site, directory: Path, *settings: str, module: str = "") -> Crawl:
    arguments = [site.url("/"), "--politeness", "own", "--allow-private"]
    # What a busy machine holds up is no alarm, of which the log would have a line.
    for setting in ("crawl.commit_s=0.1", "watch.stall_s=60", "watch.commit_s_max=60", *settings):
        arguments += ["--set", setting]
    if module:
        arguments += ["--set", f'process.modules=["{DEADLY}:{module}"]']
    return Crawl(directory / "crawl", arguments)


def marked(module: str) -> bytes:
    return f'<title>deadly</title><!-- marker-{module} --><a href="/only-from-here.html">away</a>'.encode()


SLOW = pytest.mark.acceptance
"""Told apart from its neighbour by little, for ten seconds."""


@pytest.mark.heavy
@pytest.mark.parametrize(("module", "how"), [("Segfault", "SIGSEGV"), pytest.param("Abort", "SIGABRT", marks=SLOW)])
@pytest.mark.long
def test_pages_that_kill_are_set_aside_and_all_else_is_fetched(module: str, how: str, tmp_path: Path) -> None:
    """Two such pages close together: what is known of the one survives the death that the other causes."""
    deadly = {"/deadly-1.html": marked(module), "/deadly-2.html": marked(module)}
    with Site(linked(deadly, ORDINARY)).serving() as site:
        crawl = crawl_of_site(site, tmp_path, module=module)
        assert crawl.finish() == 0, crawl.complaints
        check_set_aside(crawl, site, deadly)
    assert crawl.complaints.count(how) == len(deadly)
    assert crawl.complaints.count("\n") == len(deadly)


@pytest.mark.heavy
@pytest.mark.long
def test_a_module_that_hangs_where_it_can_be_interrupted_costs_its_own_findings(tmp_path: Path) -> None:
    deadly = {"/deadly.html": marked("Sleep")}
    with Site(linked(deadly, ORDINARY)).serving() as site:
        crawl = crawl_of_site(site, tmp_path, "crawl.process_s_max=2", module="Sleep")
        assert crawl.finish() == 0, crawl.complaints
        outcomes = {url: final[0] for url, final in Harvest(crawl.directory).finals.items()}
        assert outcomes.pop(site.url("/only-from-here.html")) == "http_error", "its links were found"
        assert outcomes == {site.url(path): "fetched" for path in site.pages}
    modules = crawl.ask("status")["modules"]
    assert isinstance(modules, dict)
    assert [(name, one["timeouts"]) for name, one in modules.items() if one["failed"]] == [("deadly", 1)]


@pytest.mark.heavy
@pytest.mark.long
def test_a_page_that_hangs_is_set_aside(tmp_path: Path) -> None:
    deadly = {"/deadly.html": marked("Blind")}
    with Site(linked(deadly, ORDINARY)).serving() as site:
        crawl = crawl_of_site(site, tmp_path, "crawl.process_s_max=2", module="Blind")
        assert crawl.finish() == 0, crawl.complaints
        check_set_aside(crawl, site, deadly)
    assert crawl.complaints.count("hung") == crawl.complaints.count("\n") == 1


def check_set_aside(crawl: Crawl, site: Site, deadly: dict[str, bytes]) -> None:
    harvest = Harvest(crawl.directory)
    outcomes = {url: final[0] for url, final in harvest.finals.items()}
    expected = {site.url(path): "process_crashed" if path in deadly else "fetched" for path in site.pages}
    assert outcomes == expected
    assert harvest.faults() == []
    assert harvest.check_archives() == []
    assert "/only-from-here.html" not in site.asked
    for path in deadly:
        assert [target for target, _ in harvest.records].count(site.url(path)) == 1
        assert site.asked[path] <= 1 + len(deadly)
        told = crawl.ask("why", site.url(path))
        assert told["state"] == "process_crashed"
        assert "died" in str(told["reason"])


@pytest.mark.heavy
def test_a_page_that_killed_once_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its second chance, alone, went well: it is a page like any other, its links too."""
    monkeypatch.setenv("DEADLY_ONCE", str(tmp_path / "once"))
    pages = {"/deadly.html": marked("SegfaultOnce"), "/only-from-here.html": b"<title>there</title>"}
    front = b'<a href="/deadly.html">deadly</a>'
    with Site({"/": front, **pages}).serving() as site:
        crawl = crawl_of_site(site, tmp_path, module="SegfaultOnce")
        assert crawl.finish() == 0, crawl.complaints
        finals = Harvest(crawl.directory).finals
    assert {final[0] for final in finals.values()} == {"fetched"}
    assert finals.keys() == {site.url(path) for path in site.pages}
    assert crawl.complaints.count("SIGSEGV") == 1


@pytest.mark.heavy
def test_a_kill_accuses_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL may be anybody's: the page in the slot is fetched again and processed as before."""
    monkeypatch.setenv("DEADLY_ONCE", str(tmp_path / "once"))
    with Site(linked({"/deadly.html": marked("KillOnce")}, ORDINARY)).serving() as site:
        crawl = crawl_of_site(site, tmp_path, module="KillOnce")
        # Were it suspected, its second reading would need a process that cannot be.
        assert crawl.finish() == 0, crawl.complaints
        finals = Harvest(crawl.directory).finals
    assert finals[site.url("/deadly.html")][0] == "fetched"
    assert crawl.complaints.count("SIGKILL") == crawl.complaints.count("\n") == 1


@pytest.mark.heavy
@pytest.mark.long
def test_a_death_outside_of_pages_accuses_nobody_and_ends_the_crawl(tmp_path: Path) -> None:
    with Site(linked({}, ORDINARY)).serving() as site:
        crawl = crawl_of_site(site, tmp_path, f'components.prioritizer="{DEADLY}:Fatal"', "crawl.commit_s=60")
        assert crawl.finish() == 1
        last = crawl.complaints.splitlines()[-1]
        assert "without progress" in last
        assert "committed nothing" in last, "it died before its first commit"
        status = crawl.ask("status")
        assert status["terminal"] == 0
        assert status["discovered"] == status["queued"]
        crawl.start("--set", 'components.prioritizer=""')
        assert crawl.wait() == 0
        finals = Harvest(crawl.directory).finals
    assert {final[0] for final in finals.values()} == {"fetched"}
    assert len(finals) == ORDINARY + 1


def test_a_page_that_killed_a_parser_once_is_read(tmp_path: Path) -> None:
    """A mutated page on which a parser that we did not take dies; ours, or the quarantine, copes."""
    mutated = {"/mutated.html": Path(__file__).with_name("data").joinpath("mutated.html").read_bytes()}
    with Site(linked(mutated, ORDINARY)).serving() as site:
        crawl = crawl_of_site(site, tmp_path)
        assert crawl.finish() == 0, crawl.complaints
        finals = Harvest(crawl.directory).finals
    assert finals[site.url("/mutated.html")][0] in ("fetched", "process_crashed")
    ordinary = {site.url(path) for path in site.pages} - {site.url("/mutated.html")}
    assert {finals[url][0] for url in ordinary} == {"fetched"}
