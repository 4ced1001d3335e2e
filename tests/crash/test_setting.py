"""What was set while a crawl ran outlives `kill -9` of child, supervisor and both."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.commands import run
from tests.crash.crawls import Crawl, Victim, crawl_of, until
from tests.further import with_further

WEB = SimwebOptions.plain(hosts=4, pages=200, latency_s=0.15, bytes_median=3_000)


def commanded(crawl: Crawl, *arguments: str) -> str:
    status, out, err = run(arguments[0], str(crawl.directory), *arguments[1:])
    assert status == 0, err
    return out


@pytest.mark.heavy
@pytest.mark.promise(
    "Crash safety", "Values set while a crawl runs take effect together or not at all, and survive any crash."
)
@pytest.mark.parametrize("victim", with_further("both", "child", "supervisor"))
@pytest.mark.long
def test_what_was_set_holds_after_a_kill(victim: Victim, tmp_path: Path) -> None:
    with SimwebProcess(WEB, tmp_path / "web") as served:
        crawl = crawl_of(served, tmp_path / "crawl", "crawl.concurrency=1")
        try:
            crawl.start()
            until(lambda: '"pages": 1' in crawl.said() or '"pages": 2' in crawl.said())
            said = commanded(crawl, "set", "limits.max_pages=30", "politeness.delay_s_min=0.01")
            assert "limits.max_pages: none → 30" in said
            commanded(crawl, "host", "h0001.d001.test", "delay_s=0.5")
            crawl.kill(victim)
            if victim != "child":
                crawl.start()
            assert crawl.wait() == 0, crawl.complaints
        finally:
            crawl.close()
        status = crawl.ask("status")
        assert status["pages"] == 30
        assert status["ended"] == "limit"
        assert status["runs"] == 2
        shown = (crawl.directory / "crawl.toml").read_text()
        assert "max_pages = 30  # from gossamer set" in shown
        assert '"h0001.d001.test" = {"delay_s" = 0.5}' in shown


@pytest.mark.heavy
@pytest.mark.promise(
    "Operation", "A pause holds until the operator ends it, also if the crawl dies or has to start again."
)
@pytest.mark.parametrize("workers", with_further(1, 2))
@pytest.mark.long
def test_a_paused_crawl_that_dies_stays_paused_until_it_is_told_to_go_on(workers: int, tmp_path: Path) -> None:
    with SimwebProcess(WEB, tmp_path / "web") as served:
        crawl = crawl_of(served, tmp_path / "crawl", "crawl.concurrency=1", f"cluster.workers={workers}")
        try:
            crawl.start()
            until(lambda: '"pages": 1' in crawl.said() or '"pages": 2' in crawl.said())
            assert "paused" in commanded(crawl, "pause")
            until(lambda: crawl.ask("status").get("in_flight") == 0)
            killed_at = time.time()
            crawl.kill("child")
            until(lambda: crawl.ask("status").get("runs") == 2)
            assert crawl.ask("status")["state"] == "paused"
            commanded(crawl, "forget", "h0000.d000.test", "--all")
            until(lambda: crawl.ask("status").get("runs") == 3)
            assert crawl.ask("status")["state"] == "paused"
            assert all(request.started_at < killed_at for request in served.requests())
            commanded(crawl, "unpause")
            until(lambda: any(request.started_at > killed_at for request in served.requests()))
        finally:
            crawl.close()
