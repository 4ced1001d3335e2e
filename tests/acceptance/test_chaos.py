"""Chaos: shards, coordinator and whole machines are killed at random moments, and a network falls apart."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from gossamer.lab.simweb.judge import Promise, judge, repeats
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.cluster.nodes import Chaos, Nodes
from tests.crash.crawls import environment
from tests.crash.harvest import Harvest, differences

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(700),
    pytest.mark.promise(
        "Several shards",
        "Killed shards, coordinators and machines, and lost or repeated messages, change no final page.",
    ),
]

PACED = pytest.mark.paced
"""Shards are replaced after 3 s of silence, and a machine at its limit is silent for longer."""
KILLS = 21
SHARDS = 4
DELAY_S = 0.1
CHECKPOINT_S = 1.5
TENURE_S = 3.0
WEB = SimwebOptions.plain(
    hosts=32, hosts_per_site=1, names_per_address=2, pages=1_200, latency_s=0.02, bytes_median=2_000, zipf_exponent=0.1
)  # fmt: skip
SETTINGS = (
    f"politeness.delay_s_min={DELAY_S}", f"politeness.delay_s_max={DELAY_S}", "politeness.delay_factor=0.0",
    "crawl.commit_s=0.25", f"cluster.tenure_s={TENURE_S}", "cluster.round_s=0.25", "cluster.answer_s_max=1.0",
    "cluster.resend_s=1.0", "cluster.address_term_s=2.0", "cluster.address_turn_s=0.3",
    f"state.checkpoint_s={CHECKPOINT_S}", "crawl.request_s_max=2.0", "frontier.retry_s_first=0.1",
    "memory.budget_bytes='200MiB'", "cluster.start_s_max=100",
)  # fmt: skip


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Harvest, SimwebOptions]:
    """What an undisturbed crawl of one worker brings in, and the web with its port held fast."""
    folder = tmp_path_factory.mktemp("calm")
    with SimwebProcess(WEB, folder / "web") as web:
        fast = ("--politeness", "own")
        crawling = started(web, folder / "crawl", *fast, "--workers", "1", settings=("crawl.commit_s=0.25",))
        assert crawling.wait(100) == 0
        return Harvest(folder / "crawl"), replace(WEB, port=web.port)


def started(
    web: SimwebProcess, directory: Path, *words: str, settings: tuple[str, ...] = SETTINGS
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "gossamer", "crawl", *web.seeds, "--scope", "any", "--allow-private", "--quiet"]
    command += ["--hosts", str(web.hosts_file), "-o", str(directory), *words]
    command += [word for one in settings for word in ("--set", one)]
    with directory.with_suffix(".errors").open("wb") as errors:
        return subprocess.Popen(
            command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
        )


TURNS = ("shard", "keeper", "coordinator", "shard", "node", "keeper", "shard")


@pytest.mark.long
@PACED
def test_killed_shards_coordinators_and_machines_change_nothing(
    calm: tuple[Harvest, SimwebOptions], nodes: Nodes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    undisturbed, options = calm
    dice = random.Random(3)
    chaos = Chaos(nodes, dice)
    began = time.monotonic()
    with SimwebProcess(options, tmp_path / "web") as web:
        uri = f"state.checkpoint_uri='file://{tmp_path}/checkpoints'"
        words = ("--workers", str(SHARDS), "--cluster", nodes.address)
        crawling = started(web, tmp_path / "crawl", *words, settings=(*SETTINGS, uri))
        try:
            wait_for_pages(web, 50, crawling)
            for number in range(KILLS):
                chaos.kill(TURNS[number % len(TURNS)])
                time.sleep(dice.uniform(0.1, 1.2))
                assert crawling.poll() is None, f"over before the kill {number + 1}: {errors_of(tmp_path)}"
            status = crawling.wait(150)
        finally:
            crawling.kill()
            crawling.wait()
        asked = web.requests()
        again = sum(count - 1 for count in repeats(asked, web.web).values())
        promise = Promise(delay_s_min=DELAY_S, factor=0.0, delay_s_max=DELAY_S)
        broken = [one for one in judge(asked, promise, web.web) if one.kind != "repeated"]
    found = Harvest(tmp_path / "crawl")
    with capsys.disabled():
        print(
            f"\nchaos: {chaos.killed}, {len(found.rows)} pages, {again} fetched again, {time.monotonic() - began:.0f} s"
        )
    assert status == 0, errors_of(tmp_path)
    assert sum(chaos.killed.values()) == KILLS
    assert differences(found, undisturbed) == []
    assert found.faults() == []
    assert broken == []


def wait_for_pages(web: SimwebProcess, pages: int, crawling: subprocess.Popen[bytes], limit_s: float = 180.0) -> None:
    ends_at = time.monotonic() + limit_s
    while len(web.requests()) < pages:
        assert crawling.poll() is None, f"it ended with {crawling.returncode}"
        assert time.monotonic() < ends_at, "it does not crawl"
        time.sleep(0.1)


def errors_of(folder: Path) -> str:
    return (folder / "crawl.errors").read_text()[-3_000:]


@pytest.mark.long
@PACED
def test_a_network_that_falls_apart_loses_nothing_and_visits_nothing_twice(
    calm: tuple[Harvest, SimwebOptions], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two machines, two cuts: one too short to be taken for a loss, one longer than a tenure."""
    undisturbed, options = calm
    folder = Path(tempfile.mkdtemp(prefix="gp-"))
    uri = f"state.checkpoint_uri='file://{folder}/checkpoints'"
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", sys.executable, "-m", "tests.cluster.partition", str(folder)]
    command += [json.dumps([*SETTINGS, uri]), msgspec.json.encode(options).decode(), str(DELAY_S)]
    root = Path(__file__).parents[2]
    source = {**environment(), "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=330, env=source, check=False)
        assert done.returncode == 0, done.stderr[-3_000:]
        told = json.loads(done.stdout.splitlines()[-1])
        found = Harvest(folder / "crawl")
        with capsys.disabled():
            print(f"\npartition: {told}, {len(found.rows)} pages")
        assert told["status"] == 0, told["errors"]
        shards, left = told["kept"]
        assert left == shards > 0
        shards, left = told["cut_off"]
        assert left == 0 < shards
        assert differences(found, undisturbed) == []
        assert found.faults() == []
        assert told["broken"] == []
        # Archived once; asked for again is only what the machine that was cut off did since its last checkpoint.
        assert told["again"] <= (CHECKPOINT_S + TENURE_S) / DELAY_S * options.hosts / 2 < len(found.rows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.long
@pytest.mark.promise(
    "Crash safety", "Killing any process of a crawl at any moment loses no discovered URL and archives no page twice."
)
def test_two_minutes_of_faults_of_every_kind_change_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Real servers and disks; `make chaos` goes on for an hour."""
    words = ["--seconds", "110", "--seed", "1", "--keep", str(tmp_path / "chaos")]
    command = [sys.executable, "-m", "tests.acceptance.chaos", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=650, env=environment(), check=False)
    with capsys.disabled():
        print(f"\nchaos: {done.stdout.splitlines()[-1:]}")
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-3_000:]
    assert done.stdout.count("; ok") >= 2
