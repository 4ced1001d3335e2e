"""Shards that their machine cannot run: real processes, whose crawl goes on, on another machine or from a checkpoint.

The machines are directories, each of which may be a disk that fails; instead of Ray, this process starts the shards.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.api import ClusterCrawler, cluster, engine
from gossamer.assembly.mapping import map_in
from gossamer.cluster import coordination, shard_process
from gossamer.cluster.coordination import Look, ShardAnswer
from gossamer.cluster.coordinator import ASK_S_MAX, Coordinator, decoded, encoded
from gossamer.cluster.job import ClusterPlan
from gossamer.cluster.options import ClusterOptions
from gossamer.cluster.shard_process import ShardProcess, start_of
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import CrawlFailedError
from gossamer.model.verbs import ScaleCrawl
from gossamer.world.clock import WallClock
from tests.cluster.crawls import config_of
from tests.crash.crawls import until
from tests.crash.harvest import Harvest, differences
from tests.crash.killing import undisturbed

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(900),
    pytest.mark.promise(
        "Several shards", "A shard of a cluster that dies again and again, or cannot begin, does not end the crawl."
    ),
]

WEB = SimwebOptions.plain(hosts=6, hosts_per_site=1, pages=400, latency_s=0.02, bytes_median=2_000)
SLOW = ("politeness.delay_s_min=0.05", "politeness.delay_s_max=0.05")
MEMBER = """
import io, json, os, sys, types
line = sys.stdin.buffer.readline()
job = json.loads(line)
plan = job["plan"]
fault = os.path.join(plan["work"] or os.path.dirname(plan["directory"]), "%s-on-" + job["node"])
if os.path.exists(fault % "dies"):
    os.kill(os.getpid(), 9)
from gossamer.api import member
if os.path.exists(fault % "errs") and job["shard"] == 1:
    async def err(*_):
        raise ValueError("seven")
    member.ClusterMember._serve = err
sys.stdin = types.SimpleNamespace(buffer=io.BytesIO(line))
member.LOCK_S_MAX = 0.5
member.main()
"""
"""A shard's process that waits briefly for its lock. On a machine of which a file says so it dies at once, or shard 1
has an internal error.
"""


class Machines(Coordinator):
    """An engine with two machines, `m0` and `m1`, and the shards on them."""

    def __init__(self, plan: ClusterPlan) -> None:
        super().__init__(plan)
        self.shards: list[ShardProcess] = []
        self.nodes = {shard: f"m{shard}" for shard in range(plan.shards)}
        self.coordination.room = {"m0": 9, "m1": 9}
        self._keeping: dict[int, asyncio.Task[None]] = {}
        for shard in range(plan.shards):
            self.shards.append(self._start(plan, shard))
        self._rounds = asyncio.create_task(self.run())

    def _start(self, plan: ClusterPlan, shard: int) -> ShardProcess:
        process = ShardProcess(start_of(plan, shard, self.nodes[shard]), partial(self._carry, shard), WallClock())
        self._keeping[shard] = asyncio.create_task(process.run())
        return process

    async def _carry(self, sender: int, to: int, frame: bytes) -> bool:
        return self.shards[to].deliver(sender, frame)

    async def _look(self, shard: int, question: Look) -> ShardAnswer | None:
        return await self.shards[shard].look(shard, self.nodes[shard], question, self._plan.answer_s_max)

    async def _ask(self, shard: int, question: bytes) -> bytes | None:
        answer = await self.shards[shard].ask(decoded(question, type=dict[str, object]), ASK_S_MAX)
        return encoded(answer) if answer is not None else None

    async def standing(self) -> dict[str, Any]:
        return self.report()

    async def call(self, name: str, **arguments: object) -> None:
        await self.order(name, arguments)

    async def move(self, plan: ClusterPlan, shard: int, machine: str, _: ClusterOptions) -> None:
        self._keeping[shard].cancel()
        await asyncio.wait([self._keeping[shard]])
        self.nodes[shard] = machine
        self.shards[shard] = self._start(plan, shard)
        self._asked.pop(shard, None)
        self.coordination.arrive(shard)

    def grow(self, plan: ClusterPlan, machines: list[str]) -> None:
        async def start() -> None:
            for shard in range(len(self.shards), len(self.shards) + len(machines)):
                self.nodes[shard] = "m0"
                self.shards.append(self._start(plan, shard))

        asyncio.run_coroutine_threadsafe(start(), self._rounds.get_loop()).result()

    def close(self) -> None:
        super().close()
        for task in (self._rounds, *self._keeping.values()):
            task.get_loop().call_soon_threadsafe(task.cancel)


class Fault:
    """Does to shard 1, on machine `m1`, what its machine may; then its process dies."""

    def __init__(self, machines: Path) -> None:
        self.state = machines / "m1/state/shard-1"
        self._machines = machines
        self._holder: subprocess.Popen[bytes] | None = None

    def damage(self) -> None:
        """Lose what says which files the store has."""
        (self.state / "store/CURRENT").write_text("nothing\n")

    def lock(self) -> None:
        """Have another process take the lock when its holder dies."""
        self._holder = holder = subprocess.Popen(["flock", str(self.state / "lock"), "sleep", "300"])
        until(lambda: f"-> FLOCK  ADVISORY  WRITE {holder.pid} " in Path("/proc/locks").read_text())

    def die(self) -> None:
        """Have its processes die as soon as they begin."""
        (self._machines / "dies-on-m1").touch()

    def err(self) -> None:
        """Have the shard end with an internal error each time that it has begun."""
        (self._machines / "errs-on-m1").touch()

    def fail(self) -> None:
        """Fill what is below its file system: writes to blocks of the disk that are new end with EIO."""
        with (self._machines.parent / "below/ballast").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(1 << 20)):
                pass

    def strike(self, name: str) -> Callable[[ClusterCrawler, Machines], Awaitable[None]]:
        async def happen(_: ClusterCrawler, engine: Machines) -> None:
            getattr(self, name)()
            await asyncio.sleep(0.2)
            engine.shards[1]._process.send_signal(signal.SIGKILL)  # type: ignore[union-attr]

        return happen

    def end(self) -> None:
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()


@pytest.fixture
def fault(tmp_path: Path) -> Iterator[Fault]:
    found = Fault(tmp_path / "machines")
    yield found
    found.end()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """The disk of machine `m1`, a file system of its own."""
    place = tmp_path / "machines/m1"
    place.mkdir(parents=True)
    below = tmp_path / "below"
    below.mkdir()
    image = below / "image"
    for command in (
        ["mount", "-t", "tmpfs", "-o", "size=256M", "tmpfs", str(below)],
        ["truncate", "-s", "1G", str(image)],
        ["mkfs.ext4", "-q", str(image)],
        ["mount", "-o", "loop", str(image), str(place)],
    ):
        subprocess.run(command, check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place), str(below)], check=True)


def crawl_with(
    happens: Callable[[ClusterCrawler, Machines], Awaitable[None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *sets: str,
    shards: int = 2,
) -> list[str]:
    """Crawl with a shard on each machine, let something happen when the second has a checkpoint; return all notes."""
    _, web = undisturbed(WEB, tmp_path / "calm")
    started: list[Machines] = []
    notes: list[str] = []

    async def begin(_: ClusterCrawler, plan: ClusterPlan) -> Machines:
        started.append(Machines(msgspec.structs.replace(plan, command=("-c", MEMBER))))
        return started[0]

    async def disturb(crawler: ClusterCrawler) -> None:
        while not (tmp_path / "checkpoints/shard-1/latest.json").exists():  # noqa: ASYNC110 - a process makes it
            await asyncio.sleep(0.05)
        [engine] = started
        while engine.shards[1].state != "running":  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.0)
        await happens(crawler, engine)

    monkeypatch.setattr(ClusterCrawler, "_start", begin)
    monkeypatch.setattr(cluster, "reach", lambda _: None)
    monkeypatch.setattr(coordination, "FAILING_S", 2.0)
    monkeypatch.setattr(shard_process, "AGAIN_S", 0.3)
    with SimwebProcess(web, tmp_path / "web") as served:
        config = config_of(
            served, tmp_path / "crawl", shards, f"state.checkpoint_uri='file://{tmp_path}/checkpoints'",
            "state.checkpoint_s=1", f"cluster.work_directory='{tmp_path}/machines'", "cluster.address='10.0.0.1:9'",
            "cluster.tenure_s=10", "cluster.round_s=0.1", *SLOW, *sets,
        )  # fmt: skip

        async def run() -> str:
            crawler = ClusterCrawler([], output=tmp_path / "crawl", config=config)
            crawler.on_note(notes.append)
            async with asyncio.TaskGroup() as group:
                group.create_task(disturb(crawler))
                return await crawler.run()

        try:
            assert asyncio.run(asyncio.wait_for(run(), 200)) == "finished"
        except TimeoutError:
            pytest.fail(f"it does not end: {notes} {started[0].report()}")
    found = Harvest(tmp_path / "crawl")
    assert differences(found, Harvest(tmp_path / "calm/crawl")) == []
    assert found.faults() == []
    return notes


LOST = "shard 1: goes on from its checkpoint of"


@pytest.mark.long
def test_a_damaged_store_is_restored_from_the_checkpoint(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = "\n".join(crawl_with(fault.strike("damage"), tmp_path, monkeypatch))
    assert "it continues from its last checkpoint" in notes
    assert LOST in notes
    assert "it goes on elsewhere from" not in notes


@pytest.mark.parametrize(
    ("name", "sets", "says"),
    [
        ("lock", (), "state/shard-1 is held by an earlier process of the shard, which does not end"),
        ("die", ("cluster.placement='pack'",), "its process died of SIGKILL, for the 6th time"),
        (
            "err",
            ("cluster.rebalance=false",),
            "its process ended: internal error: ValueError: seven (logs/critical.log says more), for the 6th time",
        ),
    ],
)
@pytest.mark.long
def test_a_shard_that_cannot_run_goes_on_elsewhere(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sets: tuple[str, ...], says: str
) -> None:
    notes = "\n".join(crawl_with(fault.strike(name), tmp_path, monkeypatch, *sets))
    [lost] = [one for one in notes.splitlines() if "it goes on elsewhere from its last checkpoint" in one]
    assert says in lost
    assert LOST in notes


@pytest.mark.acceptance
@pytest.mark.long
def test_a_shard_whose_disk_fails_goes_on_elsewhere(
    disk: Path, fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = "\n".join(crawl_with(fault.strike("fail"), tmp_path, monkeypatch))
    assert f"the disk of {disk}" in notes
    assert "it goes on elsewhere from its last checkpoint" in notes
    assert LOST in notes


@pytest.mark.parametrize(("shards", "workers", "silent"), [(2, 3, 1), (3, 2, 1), (3, 2, 2)])
@pytest.mark.long
def test_a_crawl_is_scaled_while_a_machine_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int, workers: int, silent: int
) -> None:
    """The change is recorded, and partitions move from and to the silent shard when it goes on."""

    async def scale(crawler: ClusterCrawler, engine: Machines) -> None:
        hung = engine.shards[silent]._process
        assert hung is not None
        hung.send_signal(signal.SIGSTOP)
        while engine.coordination.silent_s(silent) is None:  # noqa: ASYNC110 - time passes
            await asyncio.sleep(0.1)
        answer = await crawler._on_scale(ScaleCrawl(workers=workers))
        assert answer == {"workers": workers, "stops": False}
        assert engine.coordination.moves.is_moving

    notes = "\n".join(crawl_with(scale, tmp_path, monkeypatch, shards=shards))
    assert f"shard {silent}: no answer for 10 s" in notes
    assert f"shard {silent}: answers again" in notes
    divided = map_in(tmp_path / "crawl")
    assert divided is not None
    assert set(divided.owners) == set(range(workers))


@pytest.mark.long
@pytest.mark.promise(
    "Several shards", "An internal error of one shard ends it alone: the others go on, and the crawl then says why."
)
def test_an_internal_error_on_one_machine_ends_its_shard_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`resume` finishes what it left, once the error is mended."""
    _, web = undisturbed(WEB, tmp_path / "calm")
    monkeypatch.setattr(engine, "MEMBER", ("-c", MEMBER))
    monkeypatch.setattr(coordination, "FAILING_S", 2.0)
    monkeypatch.setattr(shard_process, "AGAIN_S", 1.0)
    fault = tmp_path / "errs-on-here"
    fault.touch()
    with SimwebProcess(web, tmp_path / "web") as served:
        crawler = ClusterCrawler([], output=tmp_path / "crawl", config=config_of(served, tmp_path / "crawl", 2))
        with pytest.raises(CrawlFailedError, match=r"^shard 1: its process ended: internal error: ValueError: seven "):
            asyncio.run(asyncio.wait_for(crawler.run(), 100))
        done = len(Harvest(tmp_path / "crawl").rows)
        assert crawler.status()["state"] == "failed"
        fault.unlink()
        assert asyncio.run(asyncio.wait_for(ClusterCrawler.resume(tmp_path / "crawl").run(), 100)) == "finished"
    found = Harvest(tmp_path / "crawl")
    assert differences(found, Harvest(tmp_path / "calm/crawl")) == []
    assert 0 < done < len(found.rows)
