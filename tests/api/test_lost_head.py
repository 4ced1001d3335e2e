"""The head of a cluster that is lost: the crawl begins again by itself, and waits for the head to come back."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gossamer.api import cluster, engine
from gossamer.api.cluster import ClusterCrawler
from gossamer.api.shards import save_status
from gossamer.cli.child import run_guarded
from gossamer.cli.job import AGAIN, CrawlJob
from gossamer.cluster.coordination import CoordinatorRecord
from gossamer.cluster.job import ASKED, ClusterPlan
from gossamer.cluster.options import ClusterOptions
from gossamer.cluster.partitions import RECORD_FILE
from gossamer.model.errors import CrawlFailedError, HeadLostError, NoClusterError
from tests.answering import free_port
from tests.api.conftest import Run


def crawler_in(directory: Path, port: int) -> ClusterCrawler:
    return ClusterCrawler(
        ["https://a.example/"], workers=2, contact="a@example.org", output=directory, cluster=f"127.0.0.1:{port}"
    )


class Answering:
    """An engine whose coordinator gives a status for a number of times, and then says that the crawl is over."""

    def __init__(self, status: Mapping[str, object], rounds: int) -> None:
        self._rounds = rounds
        self._status = status

    async def standing(self) -> dict[str, Any]:
        self._rounds -= 1
        over = {"is_copied": False, "notes": [], "departed": [], "wants_seeds": False, "failure": "", "end": "finished"}
        return {**over, "status": dict(self._status), "is_over": self._rounds < 0}


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
    with socket.create_server(("127.0.0.1", 0)) as head:
        crawler = crawler_in(tmp_path / "crawl", head.getsockname()[1])
        with pytest.raises(TimeoutError):
            run(asyncio.wait_for(crawler._watch_head(), 0.5))
    silent = ConnectionError("it does not answer")
    crawler._require_patience(silent, cluster.COORDINATOR_S, began=True)  # It may take long to start a coordinator.
    with pytest.raises(HeadLostError):
        crawler._require_patience(silent, cluster.COORDINATOR_S + 0.1, began=True)
    crawler._reached_at -= cluster.HEAD_S + 60.0
    with pytest.raises(HeadLostError):
        crawler._require_patience(silent, cluster.HEAD_S + 0.1, began=True)


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
        assert await asyncio.wait_for(crawler._start(plan), 60) is None

    run(wait())
    assert len(notes) == 1
    assert "no Ray cluster there" in notes[0]
    assert "`ray start --head` begins one; the crawl waits for it" in notes[0]
    assert str(crawler.status()["waiting_for"]).startswith("the Ray cluster at 127.0.0.1:")


def test_a_stop_is_noticed_while_the_machines_of_an_interrupted_crawl_join(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them may take half a minute to start its Ray."""
    from gossamer.cluster import ray as joined  # noqa: PLC0415 - other tests need no Ray

    crawler = crawler_in(tmp_path / "crawl", 9)
    looks: list[int] = []

    def no_machines() -> list[object]:
        looks.append(1)
        if len(looks) == 2:
            crawler.stop()
        return []

    left: list[bool] = []
    started: list[int] = []
    monkeypatch.setattr(engine, "prepare_to_join", lambda _: None)
    monkeypatch.setattr(joined, "connect", lambda *_: None)
    monkeypatch.setattr(joined, "_coordinator_actor", lambda *_: None)
    monkeypatch.setattr(joined, "_shard_actor", lambda *_: started.append(1))
    monkeypatch.setattr(joined.ray, "nodes", no_machines)
    monkeypatch.setattr(joined.ray, "kill", lambda _: None)
    monkeypatch.setattr(joined.ray, "shutdown", lambda: left.append(True))

    async def check() -> None:
        plan = await resume(crawler, CoordinatorRecord(holders={0: "10.0.0.2-3f9a0c11/71-9.5"}))
        assert plan.tenure_s > 10
        assert await crawler._start(plan) is None

    run(check())
    assert (len(looks), started, left) == (2, [1], [True])  # The machine of shard 0 alone was expected.


def test_another_token_than_that_of_the_cluster_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would try for 20 s, with a warning a second, and then say that there is no cluster."""
    from gossamer.cluster import ray as joined  # noqa: PLC0415 - other tests need no Ray

    monkeypatch.setattr(joined, "_knock", lambda _: ASKED)
    monkeypatch.setattr(joined.ray, "init", lambda **_: pytest.fail("it must not try"))
    with pytest.raises(NoClusterError, match=r"does not accept this machine's token; copy the head's"):
        joined.connect(ClusterOptions(address="10.0.0.1:6379"), "crawl")


def test_a_crawl_that_begins_does_not_wait_for_a_cluster(tmp_path: Path, run: Run) -> None:
    crawler = crawler_in(tmp_path / "crawl", free_port())

    async def begin() -> None:
        with pytest.raises(NoClusterError):
            await crawler._start(await crawler._write_down())

    run(begin())


def test_each_shard_starts_when_its_machine_joins_and_the_coordinator_at_once(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machines of an interrupted crawl come back one after the other; a start takes long on a busy one."""
    from gossamer.cluster import ray as joined  # noqa: PLC0415 - other tests need no Ray

    steps: list[str] = []

    def nodes() -> list[dict[str, object]]:
        steps.append("look")
        there = ["10.0.0.3", "10.0.0.2"][: len(steps) // 2]
        return [
            {"NodeManagerAddress": one, "NodeID": one.replace(".", "0").ljust(56, "0"), "Alive": True} for one in there
        ]

    monkeypatch.setattr(joined, "connect", lambda *_: None)
    monkeypatch.setattr(joined, "_coordinator_actor", lambda *_: steps.append("coordinator"))
    monkeypatch.setattr(joined, "_shard_actor", lambda _, shard, *__: steps.append(f"shard {shard}"))
    monkeypatch.setattr(joined.ray, "nodes", nodes)
    kept = CoordinatorRecord(holders={0: "10.0.0.2-3f9a0c11/71-9.5", 1: "10.0.0.3-3f9a0c12/72-9.5"})

    async def check() -> None:
        plan = await resume(crawler_in(tmp_path / "crawl", 9), kept)
        await asyncio.to_thread(joined.start, plan, ClusterOptions(), lambda: False)

    run(check())
    assert steps == ["coordinator", "look", "shard 1", "look", "shard 0"]


async def resume(crawler: ClusterCrawler, kept: CoordinatorRecord) -> ClusterPlan:
    """Return the plan of a crawl that is resumed after a coordinator left its record."""
    path = crawler.directory / RECORD_FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(msgspec.json.encode(kept))
    crawler._begun = await crawler._write_down()
    return crawler._begun


@pytest.mark.parametrize("closed", [True, False])
def test_shards_go_on_where_their_state_is(tmp_path: Path, run: Run, *, closed: bool) -> None:
    """A machine of which only the engine's own name is known, and a shard that is no more, name none."""
    holders = {0: "10.0.0.2-3f9a0c11/71-9.5", 1: "7ba2afb56fe891c7/72-9.5", 2: "10.0.0.3-3f9a0c12/73-9.5"}

    async def check() -> None:
        plan = await resume(crawler_in(tmp_path / "crawl", 9), CoordinatorRecord(holders=holders, closed=closed))
        assert plan.former == {0: "10.0.0.2"}
        assert plan.is_abrupt is not closed

    run(check())


@pytest.mark.parametrize("closed", [True, False])
def test_an_interrupted_crawl_waits_for_machines_as_for_the_head(tmp_path: Path, run: Run, *, closed: bool) -> None:
    """After the loss of the head they may come back one after the other, each later than a new crawl would wait."""
    crawler = crawler_in(tmp_path / "crawl", 9)
    crawler.config = replace(crawler.config, cluster=replace(crawler.config.cluster, start_s_max=0.01))
    answering: Any = Answering({**crawler.status(), "shards": [{"state": "starting"}] * 2}, 3)

    async def check() -> None:
        await resume(crawler, CoordinatorRecord(holders={0: "10.0.0.2-3f9a0c11/71-9.5"}, closed=closed))
        with pytest.raises(CrawlFailedError, match="Ray has no machine for shards 0, 1") if closed else nullcontext():
            assert await crawler._until_over(answering) == "finished"

    run(check())


def test_a_crawl_that_waits_for_the_head_keeps_its_figures(tmp_path: Path, run: Run) -> None:
    """The next resume compares them with what is there, and a person reads them meanwhile."""
    crawler = crawler_in(tmp_path / "crawl", free_port())
    uri = f"file://{tmp_path}/checkpoints"
    crawler.config = replace(crawler.config, state=replace(crawler.config.state, checkpoint_uri=uri))
    figures = {**crawler.status(), "pages": 7, "shards": [{"state": "running", "pages": 7, "runs": 1}, {}]}
    (crawler.directory / "state").mkdir(parents=True)
    save_status(crawler.directory, figures)
    crawler._resuming = True
    crawler.on_note(lambda _: crawler.stop())
    run(discard(crawler.run()))
    told = json.loads((crawler.directory / "state/standing.json").read_text())
    assert (told["pages"], told["shards"][0]["pages"], told["state"]) == (7, 7, "starting")


async def discard(work: Awaitable[object]) -> None:
    await work


def test_a_crawl_says_that_it_waits_for_machines(tmp_path: Path, run: Run) -> None:
    crawler = crawler_in(tmp_path / "crawl", 9)

    async def wait() -> None:
        answering: Any = Answering({**crawler.status(), "shards": [{"state": "starting"}, {"node": "one"}]}, 1_000)
        waiting = asyncio.create_task(crawler._until_over(answering))
        while not crawler.status().get("waiting_for"):  # noqa: ASYNC110 - the other task says it
            await asyncio.sleep(0.01)
        waiting.cancel()

    run(wait())
    assert crawler.status()["waiting_for"] == "machines of the Ray cluster: 1 of 2 shards have none"


def test_a_lost_head_is_a_failure_that_keeps_the_state() -> None:
    """A program without a supervisor gets it as any other failure of a crawl."""
    assert issubclass(HeadLostError, cluster.CrawlFailedError)
