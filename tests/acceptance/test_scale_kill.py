"""`gossamer scale` killed at any step goes on where it was, and nothing of the crawl is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest

import gossamer as package
from gossamer.api import scale_crawl
from gossamer.assembly.building import assemble
from gossamer.assembly.home import homes
from gossamer.assembly.integrity import open_store
from gossamer.cluster.coordination import CoordinatorRecord
from gossamer.cluster.partitions import RECORD_FILE
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.model.errors import ConfigError
from gossamer.state.schema import PARTITIONED
from tests.acceptance.test_workers import answer, crawl_of, gossamer
from tests.acceptance.test_workers import begun as begun_command
from tests.cluster.crawls import BACKENDS, begun, config_of, ended, is_divided
from tests.cluster.nodes import command_of, descendants
from tests.cluster.test_scale import WEB, asked_twice, opened
from tests.crash.harvest import Harvest, differences
from tests.faults.recount import wrong_sums
from tests.faults.shards import Shards
from tests.ring.crawls import until

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.promise(
        "Several shards",
        "A killed change of the number of shards can be continued; until it is complete, the crawl does not run.",
    ),
]

RUNNING = SimwebOptions(
    seed=4, hosts=24, hosts_per_site=1, pages=300, latency_s=0.02, bytes_median=3_000,
    behaviours=("redirects", "robots_part", "nofollow", "distinct"),
)  # fmt: skip
CHANGING = SimwebOptions.plain(
    seed=4, hosts=24, hosts_per_site=1, pages=90, latency_s=0.01, bytes_median=3_000, changing_share=0.7,
    change_s_median=6.0, names_per_address=1,
)  # fmt: skip
AGAIN = (
    "crawl.mode='continuous'", "politeness.delay_s_min=0.3", "revisit.interval_s_min=1", "revisit.interval_s_mean=8",
    "revisit.interval_s_max=20", "revisit.max_age_s={'1.html' = 15.0}",
)  # fmt: skip
SCALE = "import sys; from gossamer.api import scale_crawl; print(scale_crawl(sys.argv[1], int(sys.argv[2])).after)"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", [(), *BACKENDS], ids=("rocksdb", "memory", "bloom", "diskmerge"))
@pytest.mark.long
def test_a_scaling_that_is_killed_goes_on_where_it_was(tmp_path: Path, backend: tuple[str, ...]) -> None:
    """Killed at eighteen moments from the first step to the last; the crawl refuses to run meanwhile."""
    directory = tmp_path / "crawl"
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 4, *backend)
        begun(config, directory, 4, pages=250)
        kills = refused = 0
        for shards in (7, 2):
            for calls in (1, 3, 6, 12, 25, 45, 70, 100, 140):
                status = _killed_after(directory, shards, calls)
                kills += status == -signal.SIGKILL
                if (directory / "state/scaling.json").exists():
                    refused += 1
                    with pytest.raises(ConfigError, match=f"gossamer scale .* --workers {shards}"):
                        Shards(opened(directory), directory, 4, assemble).check()
                    with pytest.raises(ConfigError, match="is being divided"):
                        scale_crawl(directory, shards + 1)
            assert scale_crawl(directory, shards).after == shards
            config = opened(directory)
        assert kills >= 10
        assert refused >= 8
        ends = ended(config, directory, 2)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        assert asked_twice(simweb) == {}


def _killed_after(directory: Path, shards: int, calls: int) -> int:
    """Scale in a process that kills itself at its n-th write: of a store's commit or apply, a file, a rename."""
    script = f"""
import os, signal, sys
from pathlib import Path
from gossamer.state import store
from gossamer.assembly import scaling
left = {calls}
def counted(function):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return call
store.Store.commit = counted(store.Store.commit)
store.Store.apply = counted(store.Store.apply)
scaling.write_whole = counted(scaling.write_whole)
Path.rename, Path.unlink, Path.rmdir = counted(Path.rename), counted(Path.unlink), counted(Path.rmdir)
{SCALE}
"""
    environment = os.environ | {"PYTHONPATH": str(Path(package.__file__).parents[1])}
    command = [sys.executable, "-c", script, str(directory), str(shards)]
    return subprocess.run(command, env=environment, check=False, capture_output=True).returncode


ROUNDS = int(os.environ.get("GOSSAMER_SCALINGS", "3"))
"""Of the test below; 25 are 50 changes of the number of shards."""
DICE_SEED = int(os.environ.get("GOSSAMER_SCALINGS_SEED", "7"))
VICTIMS = ("command", "crawl", "moving crawl", "shards", "none")


@pytest.mark.timeout(240 * ROUNDS + 180)
@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
@pytest.mark.long
def test_a_running_crawl_is_divided_where_it_runs(tmp_path: Path) -> None:
    """From two shards to five, then to three; the command, a shard, its parent, the coordinator or the whole crawl is
    killed meanwhile.
    """
    with SimwebProcess(RUNNING, tmp_path / "web") as web:
        once = gossamer(*crawl_of(web, tmp_path / "alone", 1))
        assert once.returncode == 0, once.stderr
        alone, dice = Harvest(tmp_path / "alone"), random.Random(DICE_SEED)
        victims = iter([one for _ in range(ROUNDS) for one in dice.sample(VICTIMS, len(VICTIMS))])
        ways: list[tuple[str, bool]] = []
        for number in range(ROUNDS):
            directory = tmp_path / f"crawl-{number}"
            backend = ((), *BACKENDS)[number % 4]
            with slow_crawl(web, directory, 2, *backend) as (running, complaints):
                for pages, shards in ((10, 5), (50, 3)):
                    until(partial(has_pages, directory, pages), 90)
                    victim = next(victims)
                    ways.append((victim, scaled_with_a_kill(directory, shards, running.pid, victim, dice)))
                assert running.poll() is None, complaints.read_text()
                set_delay(directory, 0)
                assert running.wait(120) == 0, complaints.read_text()
            found = Harvest(directory)
            assert differences(found, alone) == []
            assert found.faults() == []
            assert opened(directory).cluster.workers == 3
            assert len(list((directory / "state").glob("shard-*"))) == 3, "those that gave all away are removed"
        print(ways)
        assert all(live for _, live in ways), "a command that finds no crawl, or one that starts again, stops none"


@pytest.mark.timeout(300)
@pytest.mark.long
def test_a_killed_crawl_that_is_stopped_before_its_shards_begin_ends_cleanly(tmp_path: Path) -> None:
    """It waits for them: otherwise a repeated `gossamer scale` stopped it each time and found it unclean."""
    directory = tmp_path / "crawl"
    with SimwebProcess(RUNNING, tmp_path / "web") as web:
        with slow_crawl(web, directory, 2) as (running, complaints):
            until(partial(has_pages, directory, 10), 90)
            kill_all(running.pid)
            until(lambda: gossamer("stop", directory).returncode == 0, 60)
            assert running.wait(120) == 130, complaints.read_text()
        scaled = gossamer("scale", directory, "--workers", "3", "--quiet")
        assert scaled.returncode == 0, scaled.stderr


@pytest.mark.timeout(300)
@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
@pytest.mark.long
def test_a_running_crawl_of_one_shard_is_divided_where_it_runs(tmp_path: Path) -> None:
    """As it is by default: with a sandbox it ends (tests/crash/test_sandbox.py)."""
    directory = tmp_path / "crawl"
    with SimwebProcess(RUNNING, tmp_path / "web") as web:
        with slow_crawl(web, directory, 1) as (running, complaints):
            until(partial(has_pages, directory, 10), 90)
            assert gossamer("scale", directory, "--workers", "2", "--quiet").returncode == 0
            set_delay(directory, 0)
            assert running.wait(120) == 0, complaints.read_text()
        assert Harvest(directory).faults() == []
        assert opened(directory).cluster.workers == 2


@pytest.mark.timeout(400)
@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
@pytest.mark.long
def test_a_continuous_crawl_is_divided_where_it_runs(tmp_path: Path) -> None:
    """From two shards to three and back; processes of shards, their parents or the coordinator are killed meanwhile."""
    directory, dice = tmp_path / "crawl", random.Random(DICE_SEED)
    with SimwebProcess(CHANGING, tmp_path / "web") as web:
        with slow_crawl(web, directory, 2, *AGAIN) as (running, complaints):
            until(partial(has_visits, directory, 150), 120)
            for shards in (3, 2):
                assert scaled_with_a_kill(directory, shards, running.pid, "shards", dice), complaints.read_text()
                until(partial(has_visits, directory, visits_of(directory) + 100), 120)
            assert running.poll() is None, complaints.read_text()
            assert gossamer("stop", directory).returncode == 0
            assert running.wait(120) == 130, complaints.read_text()
        moved = moved_pages(directory)
        assert len(moved) > 5, "pages were visited in one shard, and then in another one"
        for url in moved[:5]:
            said = answer("why", directory, url)["revisits"]
            assert isinstance(said, dict)
            visits = [row for row in Harvest(directory).rows if row["url"] == url and row["status"] in (200, 304)]
            assert said["visits"] == len(visits) > 1, "its history came along"
        verified = gossamer("verify", directory)
        assert verified.returncode == 0, verified.stdout + verified.stderr
        homes_left = homes(directory, opened(directory).cluster.workers)
        known: Counter[bytes] = Counter()
        for home in homes_left:
            with closing(open_store(opened(directory), home)) as store:
                assert wrong_sums(store) == []
                known.update(key for key, _ in store.scan("revisit", *PARTITIONED))
        assert len(homes_left) == 2
        assert len(known) > 40
        assert set(known.values()) == {1}, "each page is in one shard"


def visits_of(directory: Path) -> int:
    done = gossamer("status", directory, "--json")
    revisits = json.loads(done.stdout).get("revisits") if done.returncode == 0 else None
    return int(revisits["visits"]) if revisits else 0


def has_visits(directory: Path, visits: int) -> bool:
    return visits_of(directory) >= visits


def moved_pages(directory: Path) -> list[str]:
    """Return the pages that were fetched by one shard, and later by another one."""
    shards: dict[str, set[object]] = {}
    for row in Harvest(directory).rows:
        shards.setdefault(str(row["url"]), set()).add(row["shard"])
    return sorted(url for url, found in shards.items() if len(found) > 1)


def scaled_with_a_kill(directory: Path, shards: int, supervisor: int, victim: str, dice: random.Random) -> bool:
    """Change the number of shards of a crawl that runs, with kills on the way; repeated as the command says. Return
    whether partitions moved while the crawl ran.
    """
    after_s = dice.uniform(0.0, 3.0)
    before = record_of(directory).moves.serial
    print(f"{time.monotonic():.1f} {directory.name} to {shards}, {victim} killed after {after_s:.1f} s")
    command = begun_command("scale", directory, "--workers", str(shards), "--quiet")
    time.sleep(after_s)
    if victim == "command":
        command.kill()
    elif victim == "crawl":
        kill_all(supervisor)
    command.wait(120)
    if victim == "moving crawl":
        time.sleep(dice.uniform(0.0, 5.0))
        kill_all(supervisor)
    elif victim == "shards":
        for _ in range(3):
            kill_one(supervisor, dice)
            time.sleep(dice.uniform(0.0, 1.0))
    until(lambda: has_ordered(directory, shards) or repeated(directory, shards), 90)
    until(lambda: is_divided(directory, shards), 90)
    return record_of(directory).moves.serial > before


def repeated(directory: Path, shards: int) -> bool:
    done = gossamer("scale", directory, "--workers", str(shards), "--quiet")
    print(f"{time.monotonic():.1f}", done.stderr.strip())
    return has_ordered(directory, shards)


def has_ordered(directory: Path, shards: int) -> bool:
    moves = record_of(directory).moves
    return moves.wanted == shards or is_divided(directory, shards)


@contextmanager
def slow_crawl(
    web: SimwebProcess, directory: Path, shards: int, *sets: str
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Run a crawl that waits two seconds between requests; yield its process and the file of its complaints."""
    complaints = directory.with_name(f"{directory.name}-complaints")
    words = crawl_of(web, directory, shards, "politeness.delay_s_min=2.0", *sets, politeness="weak")
    running = begun_command(*words, complaints=complaints)
    try:
        yield running, complaints
    finally:
        running.kill()
        running.wait()


def record_of(directory: Path) -> CoordinatorRecord:
    """Return what the coordinator keeps; nothing where the command found no process and the crawl stopped for it."""
    with suppress(FileNotFoundError):
        return msgspec.json.decode((directory / RECORD_FILE).read_bytes(), type=CoordinatorRecord)
    return CoordinatorRecord()


def kill_all(supervisor: int) -> None:
    """Kill the process that runs the whole crawl; the supervisor starts another."""
    for child in children_of(supervisor):
        os.kill(child, signal.SIGKILL)


KILLED = ("gossamer.api.member", "gossamer.cli.child")
"""What the command lines hold of a shard, and of the process that carries its frames and has the coordinator."""


def kill_one(supervisor: int, dice: random.Random) -> None:
    """Kill the process of a shard, or the parent of all, which the supervisor starts again."""
    wanted = dice.choice(KILLED)
    found = [pid for pid in sorted(descendants(supervisor)) if wanted in command_of(pid)]
    if found:
        with suppress(ProcessLookupError):
            os.kill(dice.choice(found), signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def has_pages(directory: Path, pages: int) -> bool:
    done = gossamer("status", directory, "--json")
    return done.returncode == 0 and json.loads(done.stdout)["pages"] >= pages


def set_delay(directory: Path, seconds: float) -> None:
    until(lambda: gossamer("set", directory, f"politeness.delay_s_min={seconds}").returncode == 0, 60)
