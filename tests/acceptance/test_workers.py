"""Crawls of several shards by the command line, as processes of this machine and on a Ray cluster of two nodes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gossamer.assembly.mapping import moves_in
from gossamer.cluster.partitions import PartitionMap
from gossamer.config.gather import reopen
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.options import to_table
from gossamer.url.name import Namer
from gossamer.url.site import PARTITIONS
from tests.cluster.nodes import Nodes, command_of, descendants
from tests.crash.crawls import environment
from tests.crash.harvest import Harvest, differences
from tests.ring.crawls import until
from tests.stages.archive.bucket import KEYS, Bucket

pytestmark = [pytest.mark.acceptance, pytest.mark.together, pytest.mark.timeout(300)]

WEB = SimwebOptions(
    seed=4, hosts=24, hosts_per_site=1, pages=500, latency_s=0.02, bytes_median=3_000,
    behaviours=("redirects", "robots_part", "robots_redirect_host", "nofollow", "frames", "distinct", "compressed"),
)  # fmt: skip
QUICK = ("frontier.retry_s_first=0.1", "politeness.backoff_s_first=0.1", "crawl.commit_s=0.25")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    with SimwebProcess(WEB, tmp_path_factory.mktemp("web")) as served:
        yield served


@pytest.fixture(scope="module")
def alone(web: SimwebProcess, tmp_path_factory: pytest.TempPathFactory) -> Harvest:
    """What one worker brings in."""
    directory = tmp_path_factory.mktemp("alone") / "crawl"
    done = gossamer(*crawl_of(web, directory, 1))
    assert done.returncode == 0, done.stderr
    return Harvest(directory)


def gossamer(*words: str | Path, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gossamer", *map(str, words)],
        env={**environment(), "COLUMNS": "120"}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=timeout_s,
    )  # fmt: skip


def crawl_of(web: SimwebProcess, directory: Path, workers: int, *sets: str, politeness: str = "own") -> list[str]:
    words = ["crawl", *web.seeds, "--scope", "any", "--allow-private", "--hosts", str(web.hosts_file)]
    words += ["--politeness", politeness, "--workers", str(workers), "--quiet", "-o", str(directory)]
    return words + [word for one in (*QUICK, *sets) for word in ("--set", one)]


def begun(*words: str | Path, complaints: Path = Path(os.devnull)) -> subprocess.Popen[str]:
    with complaints.open("w") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "gossamer", *map(str, words)],
            env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, text=True,
        )  # fmt: skip


def answer(*words: str | Path) -> dict[str, object]:
    done = gossamer(*words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.promise("Several shards", "A batch crawl ends with the same pages on one shard and on several.")
@pytest.mark.parametrize("workers", [3, 8])
@pytest.mark.long
def test_the_result_is_that_of_one_worker(
    web: SimwebProcess, nodes: Nodes, alone: Harvest, workers: int, tmp_path: Path
) -> None:
    done = gossamer(*crawl_of(web, tmp_path / "crawl", workers), "--cluster", nodes.address)
    assert done.returncode == 0, done.stderr
    found = Harvest(tmp_path / "crawl")
    assert differences(found, alone) == []
    assert found.faults() == []
    assert 2 * len({row["shard"] for row in found.rows}) > workers
    assert len((tmp_path / "crawl/index.cdxj").read_bytes().splitlines()) == sum(
        row["warc_offset"] is not None for row in found.rows
    )


@pytest.mark.promise("Several shards", "While one shard has more hosts ready than it can request, idle ones get some.")
@pytest.mark.long
def test_a_shard_without_work_gets_some_from_the_other(web: SimwebProcess, alone: Harvest, tmp_path: Path) -> None:
    """It is stopped in the middle of that: what moves arrives first, so that the stopped crawl can be scaled."""
    directory = tmp_path / "crawl"
    PartitionMap(1, 2, [0] * (PARTITIONS - 1) + [1]).save(directory)
    running = begun(*crawl_of(web, directory, 2, "crawl.concurrency=1", "cluster.round_s=0.1"))
    try:
        until(lambda: moves_in(directory).under_way, 90)
        assert gossamer("stop", directory).returncode == 0
        assert running.wait(60) == 130
    finally:
        running.kill()
        running.wait()
    moved = moves_in(directory)
    assert (moved.under_way, bool(moved.balanced)) == ([], True)
    for words in (["scale", directory, "--workers", "3"], ["resume", directory, "--quiet"]):
        done = gossamer(*words)
        assert done.returncode == 0, done.stderr
    found = Harvest(directory)
    assert differences(found, alone) == []
    assert found.faults() == []
    assert {0, 1} <= {row["shard"] for row in found.rows}


@pytest.mark.long
def test_two_workers_here_answer_as_one_and_leave_nothing(web: SimwebProcess, alone: Harvest, tmp_path: Path) -> None:
    """Every command, while it runs, when it has stopped, and when it is resumed."""
    directory = tmp_path / "crawl"
    slowly = ("politeness.delay_s_min=0.3", "search.enabled=true")
    running = begun(*crawl_of(web, directory, 2, *slowly, politeness="weak"))
    try:
        until(lambda: (directory / "state/control.sock").exists() or running.poll() is not None, 60)
        status = until(lambda: _pages(directory, 5), 60)
        assert status["workers"] == 2
        assert listening(set(descendants(running.pid))) <= {"127.0.0.1"}
        assert status["discovered"] == sum(int(str(status[key])) for key in ("queued", "in_flight", "terminal"))
        for shard, url in one_of_each(directory, alone).items():
            assert answer("why", directory, url)["shard"] == shard
        state = answer("why", directory, web.seeds[0])["state"]
        assert state in {"fetched", "queued", "in_flight", "due", "lent", "redirected"}
        assert gossamer("pause", directory).returncode == 0
        until(lambda: _is(directory, "paused"), 60)
        assert gossamer("seed", directory, web.seeds[0]).returncode == 0
        assert gossamer("exclude", directory, "nobody.invalid").returncode == 0
        assert gossamer("checkpoint", directory).returncode == 0
        assert len(list((directory / "checkpoints").iterdir())) == 2
        assert gossamer("unpause", directory).returncode == 0
        assert gossamer("report", directory).returncode == 0
        assert "gossamer_pages_total" in gossamer("metrics", directory).stdout
        of_it = descendants(running.pid)
        assert gossamer("stop", directory).returncode == 0
        assert running.wait(60) == 130
    finally:
        running.kill()
        running.wait()
    until(lambda: not left(of_it), 60)
    stopped = answer("status", directory)
    assert stopped["state"] == "stopped"
    assert stopped["queued"]
    assert answer("why", directory, web.seeds[0])["state"] == "fetched"
    refused = gossamer("resume", directory, "--workers", "3")
    assert (refused.returncode, "gossamer scale" in refused.stderr, refused.stderr.count("\n")) == (2, True, 1)
    assert gossamer("resume", directory, "--quiet", "--delay", "0", "--politeness", "own").returncode == 0
    found = Harvest(directory)
    assert differences(found, alone) == []
    assert found.faults() == []
    assert answer("status", directory)["state"] == "finished"
    assert answer("report", directory)["fetched"] == sum(row["outcome"] == "fetched" for row in alone.rows)
    title = next(str(row["title"]) for row in alone.rows if row["title"])
    assert answer("search", directory, title)["hits"]
    export = tmp_path / "pages.jsonl"
    assert gossamer("export", directory, "--to", "jsonl", "-o", export).returncode == 0
    assert len(export.read_bytes().splitlines()) == len(alone.rows)


@pytest.mark.long
def test_what_a_machine_left_in_s3_is_all_that_is_needed_to_go_on(
    web: SimwebProcess, alone: Harvest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended by SIGTERM, without a word; then the machine's disk is lost."""
    directory, complaints = tmp_path / "crawl", tmp_path / "complaints"
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with Bucket() as bucket:
        sets = ("state.checkpoint_uri='s3://archive/one'", bucket.sets[1], "politeness.delay_s_min=0.2")
        running = begun(*crawl_of(web, directory, 2, *sets, politeness="weak"), complaints=complaints)
        try:
            until(lambda: _pages(directory, 10) or running.poll() is not None, 60)
            running.terminate()
            assert running.wait(60) == 130
        finally:
            running.kill()
            running.wait()
        assert complaints.read_text() == ""
        assert "state.checkpoint_uri" in gossamer("scale", directory, "--workers", "3").stderr
        for lost in ("machines", "state/shard-0", "state/shard-1", "warc", "pages", "links"):
            shutil.rmtree(directory / lost)
        resumed = gossamer("resume", directory, "--quiet", "--delay", "0", "--politeness", "own")
        assert resumed.returncode == 0, resumed.stderr
    found = Harvest(directory)
    assert differences(found, alone) == []
    assert found.faults() == []
    assert len(found.rows) == len(alone.rows)


@pytest.mark.promise("Several shards", "A crawl goes on where another carrier stopped it: one machine, or Ray.")
@pytest.mark.long
def test_a_crawl_goes_from_one_machine_to_a_cluster_and_back(
    web: SimwebProcess, nodes: Nodes, alone: Harvest, tmp_path: Path
) -> None:
    directory = tmp_path / "crawl"
    words = (*crawl_of(web, directory, 2, "politeness.delay_s_min=0.2", politeness="weak"), "--cluster", "")
    complaints = tmp_path / "complaints"
    running = begun(*words, complaints=complaints)
    for pages, carrier in ((10, nodes.address), (60, "")):
        try:
            until(lambda: _pages(directory, pages) or running.poll() is not None, 60)  # noqa: B023 - called at once
            stopped = gossamer("stop", directory)
            assert stopped.returncode == 0, (stopped.stderr, running.poll(), complaints.read_text())
            assert running.wait(60) == 130
        finally:
            running.kill()
            running.wait()
        if carrier:
            running = begun("resume", directory, "--cluster", carrier, complaints=complaints)
    resumed = gossamer("resume", directory, "--quiet", "--cluster", "", "--delay", "0", "--politeness", "own")
    assert resumed.returncode == 0, resumed.stderr
    found = Harvest(directory)
    assert differences(found, alone) == []
    assert found.faults() == []


@pytest.mark.long
def test_a_limit_of_pages_is_that_of_all_workers(web: SimwebProcess, nodes: Nodes, tmp_path: Path) -> None:
    done = gossamer(*crawl_of(web, tmp_path / "crawl", 3), "--cluster", nodes.address, "--max-pages", "100")
    assert done.returncode == 0, done.stderr
    assert sum(row["outcome"] == "fetched" for row in Harvest(tmp_path / "crawl").rows) == 100


@pytest.mark.promise(
    "Several shards",
    "Values set while a crawl runs hold for all shards, also for one that dies later; limits hold for all together.",
)
@pytest.mark.long
def test_what_is_set_holds_for_all_workers_together(web: SimwebProcess, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    words = crawl_of(web, directory, 2, "politeness.delay_s_min=0.5", "limits.max_pages=400", politeness="weak")
    with begun(*words, complaints=tmp_path / "complaints") as running:
        try:
            until(lambda: _pages(directory, 1) or running.poll() is not None, 60)
            setting = [begun("host", directory, "h0001.d001.test", one) for one in ("delay_s=0.25", "per_host=2")]
            assert [one.wait(60) for one in setting] == [0, 0]
            assert gossamer("set", directory, "politeness.delay_s_min=0.1", "seen.backend=bloom").returncode == 2
            assert gossamer("set", directory, "politeness.delay_s_min=0.2").returncode == 0
            for victim in [pid for pid in descendants(running.pid) if "gossamer.api.member" in command_of(pid)]:
                os.kill(victim, signal.SIGKILL)
            until(lambda: "restarting" not in gossamer("set", directory, "limits.max_pages=250").stderr, 60)
            assert running.wait(120) == 0, (tmp_path / "complaints").read_text()
        finally:
            running.kill()
    assert sum(row["outcome"] == "fetched" for row in Harvest(directory).rows) == 250
    config = reopen(directory / "crawl.toml")
    assert (config.limits.max_pages, config.politeness.delay_s_min, config.seen.backend) == (250, 0.2, "rocksdb")
    assert to_table(config.host.overrides["h0001.d001.test"]) == {"delay_s": 0.25, "per_host": 2}


@pytest.mark.promise("Several shards", "A crawl of several shards that ends or is killed leaves no process.")
@pytest.mark.long
def test_a_killed_crawl_leaves_no_process(web: SimwebProcess, tmp_path: Path) -> None:
    running = begun(*crawl_of(web, tmp_path / "crawl", 2, "politeness.delay_s_min=1", politeness="weak"))
    try:
        until(lambda: _pages(tmp_path / "crawl", 1) or running.poll() is not None, 60)
        of_it = descendants(running.pid)
        assert any("gossamer.api.member" in command_of(pid) for pid in of_it)
    finally:
        running.kill()
        running.wait()
    until(lambda: not left(of_it), 60)


@pytest.mark.long
def test_a_cluster_without_a_machine_for_shards_is_named_and_can_be_stopped(web: SimwebProcess, tmp_path: Path) -> None:
    with Nodes() as head_alone:
        directory = tmp_path / "crawl"
        words = (*crawl_of(web, directory, 2), "--cluster", head_alone.address)
        done = gossamer(*words, "--set", "cluster.start_s_max=2")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert "Ray has no machine for shards 0, 1" in done.stderr
        running = begun("resume", directory, "--set", "cluster.start_s_max=100")
        try:
            until(lambda: _is(directory, "starting"), 60)
            assert gossamer("stop", directory).returncode == 0
            assert running.wait(60) == 130
        finally:
            running.kill()
            running.wait()
        head_alone.add()
        assert gossamer("resume", directory).returncode == 0
    assert answer("status", directory)["state"] == "finished"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cluster", "127.0.0.1:9"), "no Ray cluster there"),
        (("--set", "cluster.runtime_env=/proc/version"), "set cluster.address"),
        (("--set", "state.checkpoint_uri=file:///proc/nowhere"), "state.checkpoint_uri"),
        (("--set", "cluster.work_directory=/tmp"), "state.checkpoint_uri"),
        (("--set", "crawl.mode=continuous", "--set", "websub.callback_url=https://me.example/", "--serve"), "websub"),
    ],
)
@pytest.mark.long
def test_a_mistake_is_one_line(web: SimwebProcess, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = gossamer(*crawl_of(web, tmp_path / "crawl", 2), *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "crawl").exists()


@pytest.mark.promise("Several shards", "More seeds are requested when few hosts are left in all shards.")
@pytest.mark.long
def test_a_command_brings_seeds_to_all_shards(web: SimwebProcess, alone: Harvest, tmp_path: Path) -> None:
    fronts = web.web.fronts
    (tmp_path / "seeds").write_text("\n".join(["no address", *fronts[1:], ""]))
    (tmp_path / "more.sh").write_text(f"head -n 9 {tmp_path}/seeds; sed -i 1,9d {tmp_path}/seeds")
    words = crawl_of(web, tmp_path / "crawl", 2, f"frontier.more_seeds_command=['sh', '{tmp_path}/more.sh']")
    words = [word for word in words if word not in web.seeds and word != "--quiet"]
    done = gossamer(*words, fronts[0], "--scope", "host")
    assert done.returncode == 0, done.stderr
    assert "1 of 9 more seeds refused" in done.stderr + done.stdout
    assert "there are no more seeds" in done.stderr + done.stdout
    found = Harvest(tmp_path / "crawl")
    assert {str(row["url"]) for row in found.rows} >= set(fronts)
    assert found.faults() == []


def one_of_each(directory: Path, harvest: Harvest) -> dict[int, str]:
    """Return a URL of each shard."""
    divided = PartitionMap.load(directory)
    assert divided is not None
    names = [named for row in harvest.rows if (named := Namer().name(str(row["url"]))) is not None]
    found = {divided.owner(named.partition): named.text for named in names}
    assert len(found) == divided.shards
    return found


def _pages(directory: Path, least: int) -> dict[str, object]:
    with suppress(AssertionError):
        status = answer("status", directory)
        if status["state"] == "running" and int(str(status["pages"])) >= least and status.get("shards"):
            return status
    return {}


def _is(directory: Path, state: str) -> bool:
    return answer("status", directory)["state"] == state


def listening(pids: set[int]) -> set[str]:
    """Return the addresses at which processes listen."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            inodes |= {str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                word = fields[1].partition(":")[0][-8:]
                found.add(socket.inet_ntoa(bytes.fromhex(word)[::-1]))
    return found


def left(pids: Collection[int]) -> list[str]:
    """Return which of these processes are there still."""
    return [command for pid in pids if (command := command_of(pid))]
