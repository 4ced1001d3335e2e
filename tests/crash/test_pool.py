"""`kill -9` with modules in a pool: of the crawl, which loses nothing, and of the pool's processes."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.world.machine import processes_below
from tests.crash.crawls import Crawl, crawl_of, until
from tests.crash.harvest import Harvest, differences
from tests.crash.killing import Reached, killed, undisturbed
from tests.crash.test_kill import check

WEB = SimwebOptions.plain(hosts=10, pages=150, latency_s=0.03, bytes_median=20_000)
TEXT = ("process.modules=['main_text', 'markdown']",)
POOL = ("process.isolated=['main_text', 'markdown']", "process.isolated_processes=2")
KILLS = 4
COLUMNS = ("main_text", "markdown", "text_method")


def texts(harvest: Harvest) -> dict[str, tuple[object, ...]]:
    """Return what modules found in each page, by its address."""
    return {url: tuple(rows[-1].get(name) for name in COLUMNS) for url, rows in harvest.attempts.items()}


@pytest.mark.heavy
@pytest.mark.promise(
    "Components and Python",
    "A built-in processing module finds the same in an isolated process as in that of the crawl.",
)
@pytest.mark.promise(
    "Crash safety", "Killing any process of a crawl at any moment loses no discovered URL and archives no page twice."
)
@pytest.mark.long
def test_a_killed_crawl_with_a_pool_ends_as_an_undisturbed_one_without(tmp_path: Path) -> None:
    calm, web = undisturbed(WEB, tmp_path / "calm", *TEXT)
    assert (calm.status, calm.again, calm.harvest.faults()) == (0, 0, [])
    assert {found[2] for found in texts(calm.harvest).values()} >= {"main"}

    story = killed(web, tmp_path / "killed", KILLS, calm.asked, *TEXT, *POOL)

    check(story, calm)
    assert texts(story.harvest) == texts(calm.harvest)
    assert pool_of(story.crawl) == []


@pytest.mark.heavy
@pytest.mark.long
def test_a_killed_process_of_the_pool_costs_a_page_its_text_at_most(tmp_path: Path) -> None:
    calm, web = undisturbed(WEB, tmp_path / "calm", *TEXT)
    with SimwebProcess(web, tmp_path / "web") as site:
        reached = Reached(site.log)
        crawl = crawl_of(site, tmp_path / "killed", *TEXT, *POOL)
        try:
            crawl.start()
            child = crawl.child()
            for number in range(1, KILLS + 1):
                moment = calm.asked * number // (KILLS + 1)
                until(lambda: reached.count() >= moment and pool_of(crawl))  # noqa: B023 - called at once
                for pid in pool_of(crawl):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            assert crawl.child() == child
            assert crawl.finish() == 0
        finally:
            crawl.close()
    harvest = Harvest(crawl.directory)
    assert harvest.faults() == []
    assert differences(harvest, calm.harvest) == []
    found, expected = texts(harvest), texts(calm.harvest)
    lost = [url for url in expected if found[url] != expected[url]]
    assert len(lost) <= 2 * KILLS
    assert {found[url][0] and found[url][1] for url in lost} <= {None}, "all of a module's, or nothing"
    modules = crawl.ask("status")["modules"]
    assert isinstance(modules, dict)
    assert sum(one["died"] for one in modules.values()) >= len(lost), "each is counted"


def pool_of(crawl: Crawl) -> list[int]:
    """Return the processes of the pool of a crawl that runs."""
    found = []
    for pid in processes_below(crawl.child()) if crawl.runs else []:
        with suppress(OSError):
            if b"gossamer.results.isolated" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found
