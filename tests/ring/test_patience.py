"""Patience: a crawl does not stay open for servers that ask to wait; it says for whom, and `resume` tries those."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.api.status import status_of
from tests.answering import Answering, serving
from tests.ring.crawls import BRIEF, crawl

QUICK = (*BRIEF, "politeness.delay_s_min=0.01", "politeness.delay_s_max=0.05", "politeness.address_delay_s=0.0")


class Busy:
    """A site whose pages are served until `asked_s` says to wait."""

    def __init__(self) -> None:
        self.asked_s = ""
        self.came: list[str] = []
        self.robots = 404
        site = self

        class Pages(Answering):
            def get(self) -> None:
                site.came.append(self.path)
                if self.path == "/robots.txt" and site.robots == 404:
                    self.answer(404)
                elif site.asked_s and (self.path != "/" or site.robots != 404):
                    self.answer(503, b"", ("Retry-After", site.asked_s))
                else:
                    self.answer(200, b"".join(b'<a href="/%d">x</a>' % number for number in range(5)))

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.root = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def busy() -> Iterator[Busy]:
    site = Busy()
    with serving(site.server):
        yield site


@pytest.mark.promise(
    "Order and fairness",
    "A batch crawl waits no longer than its patience for a server, and names the URLs that it leaves queued.",
)
@pytest.mark.parametrize("robots", [404, 503])
def test_a_server_that_asks_for_a_day_keeps_no_crawl_open(tmp_path: Path, busy: Busy, robots: int) -> None:
    busy.asked_s, busy.robots = "86400", robots
    crawled = crawl((busy.root,), tmp_path / "crawl", *QUICK)
    assert crawled.end == "patience"
    assert crawled.status["queued"] == (5 if robots == 404 else 1)
    stored = status_of(tmp_path / "crawl")
    assert stored["ended"] == "patience"
    assert stored["queued"] == crawled.status["queued"]
    awaited = stored["awaited"]
    assert isinstance(awaited, list)
    assert [one["host"] for one in awaited] == ["127.0.0.1"]
    assert awaited[0]["queued"] == crawled.status["queued"]
    assert 86_000 < awaited[0]["at"] - time.time() < 86_500
    assert "86400 s (Retry-After)" in awaited[0]["reason"]
    assert "127.0.0.1" in str(stored["waiting_for"])
    assert "crawl.patience_s" in str(stored["waiting_for"])

    again = crawl((), tmp_path / "crawl", resuming=True)
    assert again.end == "patience", "the time is not over"
    assert again.status["queued"] == crawled.status["queued"]


@pytest.mark.heavy
def test_what_was_left_is_fetched_by_resume_when_its_time_has_come(tmp_path: Path, busy: Busy) -> None:
    busy.asked_s = "3"
    crawled = crawl((busy.root,), tmp_path / "crawl", *QUICK, "crawl.patience_s=1.5")
    assert crawled.end == "patience"
    busy.asked_s = ""
    requests = len(busy.came)
    again = crawl((), tmp_path / "crawl", "crawl.patience_s=10.0", resuming=True)
    assert again.end == "finished"
    assert again.status["queued"] == 0
    assert sorted(busy.came[requests:]) == ["/0", "/1", "/2", "/3", "/4"]
    assert status_of(tmp_path / "crawl")["awaited"] == []


@pytest.mark.heavy
def test_without_a_bound_the_crawl_waits(tmp_path: Path, busy: Busy) -> None:
    busy.asked_s = "2"

    def relent() -> None:
        busy.asked_s = ""

    relenting = threading.Timer(1.0, relent)
    relenting.start()
    crawled = crawl((busy.root,), tmp_path / "crawl", *QUICK, "crawl.patience_s=none")
    relenting.join()
    assert crawled.end == "finished"
    assert crawled.status["queued"] == 0


@pytest.mark.heavy
def test_the_delay_that_the_operator_asks_for_is_no_reason_to_end(tmp_path: Path, busy: Busy) -> None:
    sets = ("politeness.delay_s_min=1.2", "crawl.patience_s=0.1", "limits.max_pages=2")
    crawled = crawl((busy.root,), tmp_path / "crawl", *QUICK, *sets)
    assert crawled.end == "limit"
    assert crawled.notes[0].startswith(
        "crawl.patience_s = 0.1 is below the longest delay of the politeness in force (1.2"
    )


@pytest.mark.heavy
@pytest.mark.promise(
    "Order and fairness",
    "A batch crawl waits no longer than its patience for a server, and names the URLs that it leaves queued.",
)
def test_the_command_names_what_it_did_not_wait_for_and_exits_with_4(tmp_path: Path, busy: Busy) -> None:
    busy.asked_s = "86400"
    sets = [argument for one in QUICK for argument in ("--set", one)]
    command = [sys.executable, "-m", "gossamer"]
    arguments = [busy.root, "--allow-private", "-o", str(tmp_path / "crawl"), *sets]
    done = subprocess.run([*command, "crawl", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 4
    said = done.stdout + done.stderr
    report = [*command, "report", str(tmp_path / "crawl"), "--json"]
    found = json.loads(subprocess.run(report, capture_output=True, timeout=60, check=True).stdout)
    assert [(one["host"], one["queued"]) for one in found["awaited"]] == [("127.0.0.1", 5)]
    assert "The crawl finished but for 5 URLs of 1 host" in said
    assert "Waiting: 127.0.0.1, 5 URLs, next at " in said
    assert f"gossamer resume {tmp_path / 'crawl'} continues" in said

    again = subprocess.run(
        [*command, "resume", str(tmp_path / "crawl"), "--quiet"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert again.returncode == 4
    assert "finished but for 5 URLs of 1 host" in again.stderr
    assert "next at " in again.stderr
