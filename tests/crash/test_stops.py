"""Ends that somebody asked for, and mistakes: each is told in a line, and loses nothing."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from gossamer.lab.simweb.judge import repeats
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.commands import run
from tests.crash.crawls import Crawl, crawl_of, until
from tests.crash.harvest import Harvest, differences, imbalances
from tests.crash.killing import Reached, undisturbed
from tests.crash.site import Site, linked
from tests.crash.test_quarantine import DEADLY, ORDINARY, crawl_of_site

WEB = SimwebOptions.plain(hosts=5, pages=150, latency_s=0.03, bytes_median=3_000)
STALLED = SimwebOptions.plain(hosts=1, pages=5, latency_s=20.0)


@pytest.mark.heavy
@pytest.mark.long
def test_an_interrupt_saves_everything_and_nothing_is_asked_for_again(tmp_path: Path) -> None:
    calm, web = undisturbed(WEB, tmp_path / "calm")
    with SimwebProcess(web, tmp_path / "web") as served:
        reached = Reached(served.log)
        crawl = crawl_of(served, tmp_path / "crawl")
        crawl.start()
        until(lambda: reached.count() >= calm.asked // 2)
        crawl.signal(signal.SIGINT)
        assert crawl.wait() == 130, crawl.complaints
        status = crawl.ask("status")
        assert imbalances([status]) == []
        assert int(str(status["queued"])) > 0
        assert len(Harvest(crawl.directory).finals) == status["terminal"]
        crawl.start()
        assert crawl.wait() == 0, crawl.complaints
    assert repeats(served.requests(), served.web) == {}
    assert differences(Harvest(crawl.directory), calm.harvest) == []
    assert Harvest(crawl.directory).faults() == []


def waiting(served: SimwebProcess, folder: Path) -> Crawl:
    """Begin a crawl that waits for an answer."""
    crawl = crawl_of(served, folder / "crawl")
    crawl.start()
    until((crawl.directory / "state/control.sock").exists)
    until(lambda: crawl.ask("status").get("in_flight"))
    return crawl


def test_a_second_interrupt_waits_for_nothing(tmp_path: Path) -> None:
    with SimwebProcess(STALLED, tmp_path / "web") as served:
        crawl = waiting(served, tmp_path)
        crawl.signal(signal.SIGINT)
        until(lambda: "Once more" in crawl.said())
        crawl.signal(signal.SIGINT)
        assert crawl.wait() == 130, crawl.complaints
        status = crawl.ask("status")
    assert (status["discovered"], status["queued"], status["in_flight"]) == (1, 1, 0)
    # The answer was never waited for: the server saw the client go.
    assert not any(one.whole for one in served.requests())


@pytest.mark.heavy
def test_a_crawl_that_dies_while_it_stops_is_not_started_again(tmp_path: Path) -> None:
    """The next run is, as long as it is not told to stop."""
    with SimwebProcess(STALLED, tmp_path / "web") as served:
        crawl = waiting(served, tmp_path)
        assert run("stop", str(crawl.directory))[0] == 0
        crawl.kill("child")
        assert crawl.wait() == 130, crawl.complaints
        assert "while it stopped" in crawl.complaints
        crawl.start()
        child = crawl.child()
        until(lambda: crawl.ask("status").get("in_flight"))
        crawl.kill("child")
        until(lambda: crawl.child() != child)
        crawl.kill("both")


@pytest.mark.heavy
def test_a_directory_in_use_is_one_line_and_exit_2(tmp_path: Path) -> None:
    with SimwebProcess(STALLED, tmp_path / "web") as served:
        crawl = crawl_of(served, tmp_path / "crawl")
        crawl.start()
        until((crawl.directory / "state/control.sock").exists)
        other = Crawl(crawl.directory, ())
        other.commands = 10
        other.start()
        assert other.wait() == 2
        crawl.kill("both")
    assert other.complaints.count("\n") == 1
    assert "is in use by another" in other.complaints


def test_a_module_that_raises_costs_its_own_findings_alone(tmp_path: Path) -> None:
    page = b'<title>kept</title><!-- marker-Raise --><a href="/beyond.html">on</a>'
    pages = {**linked({"/deadly.html": page}, ORDINARY), "/beyond.html": b"<title>beyond</title>"}
    with Site(pages).serving() as site:
        crawl = crawl_of_site(site, tmp_path, module="Raise")
        assert crawl.finish() == 0, crawl.complaints
        finals = Harvest(crawl.directory).finals
    assert {final[0] for final in finals.values()} == {"fetched"}
    assert finals.keys() == {site.url(path) for path in pages}
    said = (crawl.directory / "logs/critical.log").read_text()
    assert said.count("\n") == 1
    assert "ZeroDivisionError" in said
    assert site.url("/deadly.html") in said


@pytest.mark.heavy
def test_mistakes_of_ours_are_logged_with_their_page_and_many_of_them_end_the_crawl(tmp_path: Path) -> None:
    """A room that fails whenever a page links to a bad address."""
    bad = {f"/links-{number}.html": f'<a href="/bad-{number}.html">bad</a>'.encode() for number in range(12)}
    room = f'components.prioritizer="{DEADLY}:Failing"'
    with Site(linked(bad, ORDINARY)).serving() as site:
        few = crawl_of_site(site, tmp_path / "few", room)
        few.directory.parent.mkdir()
        assert few.finish() == 0, few.complaints
        many = crawl_of_site(site, tmp_path / "many", room, "crawl.errors_max=5")
        many.directory.parent.mkdir()
        assert many.finish() == 1
        assert many.complaints.count("gossamer resume") == many.complaints.count("\n") == 1
        assert imbalances([many.ask("status")]) == []
        many.start("--set", 'components.prioritizer=""')
        assert many.wait() == 0, many.complaints
    said = (few.directory / "logs/critical.log").read_text().splitlines()
    assert len(said) == len(bad)
    assert all(any(site.url(path) in line for line in said) for path in bad)
    fetched = {url for url, final in Harvest(few.directory).finals.items() if final[0] == "fetched"}
    assert fetched >= {site.url(path) for path in linked({}, ORDINARY)}
