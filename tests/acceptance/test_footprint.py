"""One value sets memory: the same crawl within 192 MiB and within 4 GiB, enforced by the kernel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.world.allocators import FRUGAL
from tests.bounded import run_measured, run_within
from tests.crash.crawls import environment
from tests.crash.harvest import Harvest

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]

LEAST, SMALL, LARGE = 192 << 20, 256 << 20, 4 << 30
WEB = SimwebOptions.plain(hosts=300, pages=2_500, latency_s=0.005, bytes_median=20_000)
SEEDS = 150_000
SEEDING = """
import asyncio, sys
from pathlib import Path
from gossamer.api.seeding import Seeding
from gossamer.assembly.building import assemble
from gossamer.config import configure
from gossamer.world.clock import WallClock

async def main():
    directory = Path(sys.argv[1])
    config = configure(options={"memory": sys.argv[3], "seeds": sys.argv[2]})
    shard = assemble(config, directory)
    seeding = Seeding(shard)
    task = asyncio.ensure_future(seeding.run())
    while seeding.busy():
        assert not task.done(), task.exception()
        await asyncio.sleep(0.1)
    task.cancel()
    await shard.kept.committer.commit()
    print(shard.ring.frontier.counts.discovered, shard.kept.storage.store.epoch)
    await shard.close()

asyncio.run(main())
"""

PROGRAM = """
import asyncio, sys
from gossamer import Crawler

async def main():
    directory, hosts, *seeds = sys.argv[1:]
    options = {"allow_private": True, "hosts": hosts, "scope": "any", "memory": "192MiB", "politeness": "own"}
    async with Crawler(seeds, output=directory, **options) as crawler:
        print(len([None async for _ in crawler]))

asyncio.run(main())
"""


@pytest.mark.promise("Bounds", "The memory budget does not change which pages are fetched.")
@pytest.mark.long
def test_the_same_pages_whatever_the_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finals = []
    with SimwebProcess(WEB, tmp_path / "web") as web:
        for budget in (LEAST, LARGE):
            directory = tmp_path / f"crawl-{budget}"
            command = [
                sys.executable, "-m", "gossamer", "crawl", *web.seeds, "-o", str(directory), "--quiet",
                "--politeness", "own", "--allow-private", "--scope", "any", "--hosts", str(web.hosts_file),
                "--memory", f"{budget >> 20}MiB",
            ]  # fmt: skip
            done = run_within(budget, command, environment(), timeout_s=150)
            assert done.status == 0, done.output
            finals.append(Harvest(directory).finals)
            assert Harvest(directory).faults() == []
            runs = told(directory)["runs"]
            assert runs == 1, "nobody killed it: it kept within its budget by itself"
            with capsys.disabled():
                print(f"\n{budget >> 20} MiB by {done.means}: {done.peak_bytes >> 20} MiB at the most")
    assert len(finals[0]) > WEB.pages
    assert finals[0] == finals[1]


@pytest.mark.long
def test_a_crawl_in_a_programs_own_process_keeps_within_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SimwebProcess(WEB, tmp_path / "web") as web:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "crawl"), str(web.hosts_file), *web.seeds]
        inherited = {name: value for name, value in environment().items() if name not in FRUGAL}
        done = run_within(LEAST, command, inherited, timeout_s=150)
    assert done.status == 0, done.output
    assert int(done.output) > WEB.pages
    assert done.peak_bytes < 0.9 * LEAST, "with Arrow's own allocator it is as much as the kernel lets it be"
    with capsys.disabled():
        print(f"\n192 MiB in a program: {done.peak_bytes >> 20} MiB at the most by {done.means}")


OWN = "own.py"
MODULE = """
from gossamer import processing_module
from gossamer.model.pages import Findings, Page

@processing_module("text/html", columns={"length": "int"})
def length(page: Page, findings: Findings) -> None:
    findings.columns["length"] = len(page.body)
"""
HELD = {
    "heavy pages": ("192MiB", SimwebOptions.plain(hosts=100, pages=1_500, latency_s=0.005, bytes_median=150_000), ()),
    "many hosts": ("256MiB", SimwebOptions.plain(hosts=1_500, pages=5_000, latency_s=0.005, bytes_median=8_000), ()),
    "search, an isolated module and the console": (
        "384MiB",
        SimwebOptions.plain(hosts=100, pages=1_500, latency_s=0.005, bytes_median=20_000),
        (
            "search.enabled=true",
            "console.port=0",
            f"process.modules=['{OWN}:length']",
            f"process.isolated=['{OWN}:length']",
        ),
    ),
    "main text in two processes": (
        "384MiB",
        SimwebOptions.plain(hosts=100, pages=500, latency_s=0.005, bytes_median=60_000),
        (
            "process.modules=['main_text', 'markdown']",
            "process.isolated=['main_text', 'markdown']",
            "process.isolated_processes=2",
        ),
    ),
}


@pytest.mark.promise("Bounds", "One value sets the memory of the process tree.")
@pytest.mark.parametrize("name", HELD)
@pytest.mark.long
def test_the_process_tree_keeps_within_the_budget(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget, options, sets = HELD[name]
    (tmp_path / "own.py").write_text(MODULE)
    sets = tuple(one.replace(OWN, str(tmp_path / OWN)) for one in sets)
    with SimwebProcess(options, tmp_path / "web") as web:
        command = [
            sys.executable, "-m", "gossamer", "crawl", *web.seeds, "-o", str(tmp_path / "crawl"), "--quiet",
            "--politeness", "own", "--allow-private", "--scope", "any", "--hosts", str(web.hosts_file),
            "--memory", budget, *(part for one in sets for part in ("--set", one)),
        ]  # fmt: skip
        status, peak_bytes = run_measured(command, environment(), timeout_s=300)

    with capsys.disabled():
        print(f"\n{name}: {peak_bytes >> 20} MiB of {budget} at the most")
    assert status == 0
    assert len(Harvest(tmp_path / "crawl").finals) > options.pages
    assert told(tmp_path / "crawl")["runs"] == 1
    assert 140 << 20 < peak_bytes <= int(budget.removesuffix("MiB")) << 20


@pytest.mark.long
def test_seeds_by_the_hundred_thousand_do_not_wait_in_memory(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("".join(f"http://www.host-{number}.example/\n" for number in range(SEEDS)))
    (tmp_path / "crawl").mkdir()
    command = [sys.executable, "-c", SEEDING, str(tmp_path / "crawl"), str(seeds), "256MiB"]

    done = run_within(SMALL, command, environment(), timeout_s=300)

    assert done.status == 0, done.output
    discovered, epochs = map(int, done.output.split())
    assert discovered == SEEDS
    assert epochs > 5, "it was committed on the way, because of its bytes alone"


def told(directory: Path) -> dict[str, object]:
    command = [sys.executable, "-m", "gossamer", "status", str(directory), "--json"]
    found = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, timeout=60)
    status: dict[str, object] = json.loads(found.stdout)
    return status
