"""Several shards on one machine without Ray: frames, a slow shard, a coordinator that fails, and kills of processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from gossamer import Crawler
from gossamer.api import ClusterCrawler
from gossamer.cluster.job import HERE, ClusterPlan
from gossamer.cluster.local import LocalEngine
from gossamer.cluster.options import SHARD_BYTES, read_workers
from gossamer.cluster.partitions import RECORD_FILE, PartitionMap
from gossamer.cluster.shard_process import LINE_HELD_BYTES_MAX
from gossamer.config import configure
from gossamer.lab.simweb.judge import repeats
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError
from gossamer.world.process import processors, usable_bytes
from tests.cluster.crawls import config_of
from tests.cluster.nodes import command_of, descendants
from tests.commands import run
from tests.crash.crawls import EPOCH_PAGES_MAX, Crawl, crawl_of, until
from tests.crash.harvest import Harvest, differences
from tests.crash.killing import Reached, undisturbed
from tests.crash.test_kill import IMPATIENT

WEB = SimwebOptions.plain(hosts=12, hosts_per_site=1, pages=300, latency_s=0.03, bytes_median=3_000)
MEMBER = "gossamer.api.member"
CHILD = """
import asyncio, json, os, socket, sys, time
from gossamer.cluster import shard_process as said
from gossamer.cluster.shard_process import FrameLine, read

async def main():
    job = json.loads(sys.stdin.readline())
    line = await FrameLine.over(socket.socket(fileno=job["line"]))
    frames = []
    while (message := await line.receive()) is not None:
        kind, number, rest = message
        if kind == said.FRAME:
            frames.append([number, rest.decode()])
        if kind != said.QUESTION:
            continue
        verb = read(rest)["verb"]
        if verb == "send":
            line.send(said.FRAME, 1 - job["shard"], f"from {job['shard']}".encode())
        look = {"state": "running", "holder": f"here/{os.getpid()}", "asked_at": 1.0, "status": {"pages": 3}}
        line.say(said.ANSWER, number, look if verb == "look" else {"ok": True, "frames": frames, "pid": os.getpid()})
        if verb == "sleep":
            await line.flush()
            time.sleep(60)

asyncio.run(main())
"""


@contextmanager
def engine_of(directory: Path, shards: int = 2) -> Iterator[LocalEngine]:
    for shard in range(shards):
        (directory / f"state/shard-{shard}").mkdir(parents=True)
    plan = ClusterPlan(
        directory=str(directory), shards=shards, partitions=PartitionMap.even(shards).encode(), config="", node=HERE,
        command=("-c", CHILD), tenure_s=20.0, round_s=0.05, answer_s_max=1.0, process_s_max=60.0,
    )  # fmt: skip
    engine = LocalEngine(plan)
    try:
        yield engine
    finally:
        engine.close()


async def asked(engine: LocalEngine, verb: str, shard: int) -> dict[str, object]:
    """Return a shard's answer, once it has begun."""
    while True:
        [answer] = await engine.ask({"verb": verb}, [shard])
        if answer["ok"]:
            return answer
        await asyncio.sleep(0.02)


def test_frames_go_from_shard_to_shard_and_no_process_outlives_the_engine(tmp_path: Path) -> None:
    async def exchange(engine: LocalEngine) -> list[object]:
        pids = [(await asked(engine, "hello", shard))["pid"] for shard in (0, 1)]
        await asked(engine, "send", 0)
        while not (await asked(engine, "hello", 1))["frames"]:  # noqa: ASYNC110 - a process of its own takes it
            await asyncio.sleep(0.02)
        assert (await asked(engine, "hello", 1))["frames"] == [[0, "from 0"]]
        while (await engine.standing())["status"]["frames_between_shards"] != 1:  # noqa: ASYNC110 - rounds go on
            await asyncio.sleep(0.02)
        return pids

    with engine_of(tmp_path) as engine:
        pids = asyncio.run(exchange(engine))
    assert [command_of(int(str(pid))) for pid in pids] == ["", ""]


def test_a_shard_that_does_not_read_holds_memory_up_to_a_bound(tmp_path: Path) -> None:
    """Its sender learns that frames are dropped, and repeats them later."""
    frame = bytes(1 << 20)

    async def fill(engine: LocalEngine) -> int:
        await asked(engine, "sleep", 1)
        passed = 0
        while engine.shards[1].deliver(0, frame):
            passed += len(frame)
            await asyncio.sleep(0)
        return passed

    with engine_of(tmp_path) as engine:
        passed = asyncio.run_coroutine_threadsafe(fill(engine), engine._loop).result(100)
        [refused] = asyncio.run(engine.ask({"verb": "hello"}, [1]))
        assert LINE_HELD_BYTES_MAX < passed < LINE_HELD_BYTES_MAX + (4 << 20)
        assert refused == {"ok": False, "error": "shard 1 is restarting; try again"}


async def failure_of(engine: LocalEngine, *, waits: bool) -> str:
    """Return why the coordinator does not answer, empty if it does; `waits` for it to fail."""
    while True:
        try:
            await engine.standing()
        except ConnectionError as error:
            return str(error)
        if not waits:
            return ""
        await asyncio.sleep(0.02)


def test_a_coordinator_that_cannot_write_its_record_begins_again_from_it(tmp_path: Path) -> None:
    record = tmp_path / RECORD_FILE

    # Both in the coordinator's loop, so that it neither writes nor reads between two steps.
    async def obstruct() -> bytes:
        kept = record.read_bytes()
        record.unlink()
        record.mkdir()  # As a full disk: nothing can be written there.
        return kept

    async def clear(kept: bytes) -> None:
        record.rmdir()
        record.write_bytes(kept)

    async def run(engine: LocalEngine) -> None:
        for shard in (0, 1):
            await asked(engine, "hello", shard)
        await engine.call("pause", paused=True)
        kept = await engine._run(obstruct(), 60.0)
        with pytest.raises(ConnectionError):
            await engine.call("pause", paused=False)
        os.kill(engine.shards[0].pid, signal.SIGKILL)  # The next process that holds it is noted in the record.
        assert "IsADirectoryError" in await failure_of(engine, waits=True)
        await engine._run(clear(kept), 60.0)
        while await failure_of(engine, waits=False):  # noqa: ASYNC110 - the thread begins again by itself
            await asyncio.sleep(0.02)
        assert engine._coordinator.coordination.kept.paused
        while (await engine.standing())["status"]["pages"] != 6:  # noqa: ASYNC110 - the killed shard begins again
            await asyncio.sleep(0.02)

    with engine_of(tmp_path) as engine:
        asyncio.run(run(engine))


def test_a_program_that_blocks_its_loop_does_not_delay_the_coordinator(tmp_path: Path) -> None:
    async def block(engine: LocalEngine) -> None:
        await asked(engine, "hello", 1)
        before = engine._coordinator.rounds
        until(lambda: engine._coordinator.rounds >= before + 3)  # It blocks: that is the point.

    with engine_of(tmp_path) as engine:
        asyncio.run(block(engine))


@pytest.mark.promise("Several shards", "Shards on one machine need no Ray, and end with the pages of one shard.")
@pytest.mark.heavy
def test_a_program_crawls_with_several_shards_without_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ray", raising=False)  # Modules of other tests import it when they are collected.

    async def pages(crawler: ClusterCrawler) -> list[str]:
        async with crawler:
            return [page.url async for page in crawler]

    with SimwebProcess(WEB, tmp_path / "web") as web:
        config = config_of(web, tmp_path / "crawl", 2)
        crawler = ClusterCrawler(output=tmp_path / "crawl", config=config)
        found = asyncio.run(pages(crawler))
        with pytest.raises(ConfigError, match=r"this crawl was read before; Tables\(.*, and ClusterCrawler\.resume\("):
            asyncio.run(pages(crawler))
        logged = web.requests()
    assert "ray" not in sys.modules
    assert repeats(logged, web.web) == {}
    assert len(found) == len(set(found)) == len(Harvest(tmp_path / "crawl").finals)
    assert {row["shard"] for row in Harvest(tmp_path / "crawl").rows} == {0, 1}


def shards_of(crawl: Crawl) -> list[int]:
    return [pid for pid in descendants(crawl.child()) if MEMBER in command_of(pid)]


def kill(crawl: Crawl, victim: str) -> None:
    """Kill a shard, or as `Crawl.kill`."""
    if victim != "shard":
        crawl.kill(victim)  # type: ignore[arg-type]
        return
    members: list[int] = []
    until(lambda: members.extend(shards_of(crawl)) or members or not crawl.runs)
    if members:
        os.kill(members[-1], signal.SIGKILL)


@pytest.mark.promise(
    "Several shards", "A kill of any process of a crawl of several shards loses no page and archives none twice."
)
@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("victims", [["shard"] * 3, ["child"] * 2, ["supervisor", "both"]], ids=lambda one: one[0])
def test_a_kill_of_any_process_loses_no_page_and_repeats_few(victims: list[str], tmp_path: Path) -> None:
    """The crawl's child is the coordinator too. Judged by the log of the server and by the archive."""
    calm, options = undisturbed(WEB, tmp_path / "calm", *IMPATIENT)
    with SimwebProcess(options, tmp_path / "web") as web:
        reached = Reached(web.log)
        crawl = crawl_of(web, tmp_path / "crawl", *IMPATIENT, "cluster.workers=2", "cluster.resend_s=0.4")
        try:
            crawl.start()
            for number, victim in enumerate(victims, 1):
                moment = calm.asked * number // (len(victims) + 1)
                until(lambda: reached.count() >= moment or not crawl.runs)  # noqa: B023 - called at once
                assert crawl.runs, f"it ended before kill {number}: {crawl.complaints}"
                kill(crawl, victim)
                if not crawl.runs:
                    crawl.start()
            status = crawl.finish()
        finally:
            crawl.close()
        again = sum(count - 1 for count in repeats(web.requests(), web.web).values())
    assert status == 0, crawl.complaints
    found = Harvest(crawl.directory)
    assert differences(found, calm.harvest) == []
    assert found.faults() == []
    assert found.check_archives() == []
    assert again <= len(victims) * 2 * EPOCH_PAGES_MAX


def test_auto_is_the_number_of_processors_within_the_quota_of_a_container(tmp_path: Path) -> None:
    seeds = ("https://docs.example.org/",)
    workers = min(processors(), usable_bytes() // SHARD_BYTES)
    assert configure(options={"workers": "auto"}, seeds=seeds).cluster.workers == workers
    assert configure(sets=["cluster.workers=auto"], seeds=seeds).cluster.workers == workers
    with pytest.raises(ConfigError, match='--workers "aut": expected a whole number, or auto'):
        configure(options={"workers": "aut"}, seeds=seeds)
    for given in ("3", "aut"):  # As any number in a program.
        with pytest.raises(ConfigError, match=f'workers "{given}": expected a whole number'):
            ClusterCrawler(seeds, output=tmp_path / "crawl", workers=given, contact="me@example.org")  # type: ignore[arg-type]
    quota = tmp_path / "cpu.max"
    everything = processors(tmp_path / "missing")
    for text, expected in (("max 100000", everything), ("100000 100000", 1), ("10000 100000", 1), ("", everything)):
        quota.write_text(text + "\n")
        assert processors(tmp_path) == expected


def test_limits_of_a_container_of_version_1_count_too(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "memory").mkdir()
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    everything = processors(tmp_path / "missing")
    for text, expected in (("-1", everything), ("100000", 1), ("10000", 1), ("", everything)):
        (tmp_path / "cpu/cpu.cfs_quota_us").write_text(text + "\n")
        assert processors(tmp_path) == expected
    all_bytes = usable_bytes(tmp_path)
    for name, text, bytes_most in (
        ("memory/memory.limit_in_bytes", "9223372036854771712", all_bytes),
        ("memory/memory.limit_in_bytes", "300000000", 300_000_000),
        ("memory.max", "max", 300_000_000),
        ("memory.max", "200000000", 200_000_000),
    ):
        (tmp_path / name).write_text(text + "\n")
        assert usable_bytes(tmp_path) == bytes_most


def test_auto_starts_no_more_shards_than_the_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.cluster.options.processors", lambda: 16)
    for usable, workers in ((10 << 30, 16), (5 * SHARD_BYTES, 5), (SHARD_BYTES // 2, 1)):
        monkeypatch.setattr("gossamer.cluster.options.usable_bytes", partial(int, usable))
        assert read_workers("auto") == workers


def test_scale_takes_auto_and_names_what_it_does_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.cluster.options.processors", lambda: 3)
    config = configure(
        options={"contact": "me@example.org", "output": str(tmp_path / "crawl"), "max_time": 0.1, "quiet": True},
        seeds=("http://127.0.0.1:1/",), sets=("resolve.allow_private=true",),
    )  # fmt: skip
    asyncio.run(Crawler(config=config, output=tmp_path / "crawl").run())
    status, out, _ = run("scale", str(tmp_path / "crawl"), "--workers", "auto", "--quiet")
    assert status == 0
    assert "1 shard became 3" in out
    for given in ("two", "2x"):
        status, _, err = run("scale", str(tmp_path / "crawl"), "--workers", given)
        assert status == 2
        assert f"expected a whole number, or auto, not '{given}'" in err


def test_a_runtime_environment_without_a_cluster_is_one_line_that_names_the_fix(tmp_path: Path) -> None:
    (tmp_path / "runtime.yaml").write_text("env_vars: {LANG: C.UTF-8}\n")
    sets = [f"cluster.runtime_env={tmp_path}/runtime.yaml", "cluster.workers=2", "operator.contact=me@example.org"]
    with pytest.raises(ConfigError, match=r"cluster.runtime_env: it is for a Ray cluster; set cluster.address"):
        ClusterCrawler(config=configure(sets=sets, seeds=["https://docs.example.org/"]), output=tmp_path / "crawl")
