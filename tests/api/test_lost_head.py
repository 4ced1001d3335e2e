"""The head of a cluster that is lost: the crawl begins again by itself, and waits for the head to come back."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gossamer.api import cluster
from gossamer.api.cluster import ClusterCrawler
from gossamer.cli.child import run_guarded
from gossamer.cli.job import AGAIN, CrawlJob
from gossamer.model.errors import HeadLostError, NoClusterError
from tests.answering import free_port
from tests.api.conftest import Run


def crawler_in(directory: Path, port: int) -> ClusterCrawler:
    return ClusterCrawler(
        ["https://a.example/"], workers=2, contact="a@example.org", output=directory, cluster=f"127.0.0.1:{port}"
    )


class Lost:
    """An engine whose coordinator answers once, and never again."""

    def __init__(self, status: Mapping[str, object]) -> None:
        over = {"is_copied": False, "notes": [], "is_over": False, "departed": [], "wants_seeds": False}
        self.answers = [{"status": dict(status), **over}]

    async def standing(self) -> dict[str, Any]:
        if not self.answers:
            raise ConnectionError("no connection to the control store")
        return self.answers.pop()


def test_a_crawl_whose_head_is_lost_starts_again(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "HEAD_S", 0.3)
    crawler = crawler_in(tmp_path / "crawl", 9)

    def crawl(_: CrawlJob) -> int:
        run(crawler._until_over(Lost(crawler.status())))  # type: ignore[arg-type]
        raise AssertionError("it goes on without its head")

    assert run_guarded(CrawlJob(str(tmp_path / "crawl"), ""), crawl) == AGAIN
    assert "the head of the Ray cluster at 127.0.0.1:9 is gone" in capsys.readouterr().err


def test_a_head_whose_machine_refuses_is_given_up_in_seconds(tmp_path: Path, run: Run) -> None:
    crawler = crawler_in(tmp_path / "crawl", free_port())
    with pytest.raises(HeadLostError):
        run(asyncio.wait_for(crawler._watch_head(), cluster.HEAD_S / 2))
    assert crawler._is_head_lost


def test_a_head_that_listens_is_not_given_up(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "REFUSAL_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as head, pytest.raises(TimeoutError):
        run(asyncio.wait_for(crawler_in(tmp_path / "crawl", head.getsockname()[1])._watch_head(), 0.5))


def test_a_crawl_that_is_resumed_waits_for_the_head_until_it_is_stopped(tmp_path: Path, run: Run) -> None:
    notes: list[str] = []
    crawler = crawler_in(tmp_path / "crawl", free_port())
    crawler._resuming = True

    def stop(note: str) -> None:
        notes.append(note)
        crawler.stop()

    async def wait() -> None:
        crawler.on_note(stop)
        plan = await crawler._write_down()
        assert await asyncio.wait_for(crawler._start(plan), 20) is None

    run(wait())
    assert len(notes) == 1
    assert "no Ray cluster there" in notes[0]
    assert "`ray start --head` begins one; the crawl waits for it" in notes[0]
    assert str(crawler.status()["waiting_for"]).startswith("the Ray cluster at 127.0.0.1:")


def test_a_crawl_that_begins_does_not_wait_for_a_cluster(tmp_path: Path, run: Run) -> None:
    crawler = crawler_in(tmp_path / "crawl", free_port())

    async def begin() -> None:
        with pytest.raises(NoClusterError):
            await crawler._start(await crawler._write_down())

    run(begin())


def test_a_lost_head_is_a_failure_that_keeps_the_state() -> None:
    """A program without a supervisor gets it as any other failure of a crawl."""
    assert issubclass(HeadLostError, cluster.CrawlFailedError)
