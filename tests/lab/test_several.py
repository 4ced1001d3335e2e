"""Deterministic fault tests of several shards: kills, power cuts, older checkpoints, frames that are lost and late."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.further import all_faults_of
from tests.faults.schedule import is_uneven, scalings_of
from tests.faults.trial import run, trial_of_several
from tests.faults.world import Fault, World

SEEDS = range(1, 23)
MOVED_TRIALS = BALANCED_TRIALS = 12
TRACE = """
import sys, tempfile
from pathlib import Path
from tests.faults.trial import trial_of_several
for seed in (4, 6, 14):
    found = trial_of_several(seed, Path(tempfile.mkdtemp()))
    print(found.trace, len(found.happened), found.requests, found.broken)
"""


@pytest.mark.heavy
@pytest.mark.promise(
    "Several shards", "Killed shards, coordinators and machines, and lost or repeated messages, change no final page."
)
@pytest.mark.promise(
    "Several shards", "One shard at a time sends requests to an address, and its delays hold for all shards."
)
@pytest.mark.long
def test_shards_that_die_and_lose_frames_keep_every_promise() -> None:
    trials = [run(seed, None, trial_of_several) for seed in SEEDS]
    assert {one.seed: one.broken for one in trials if one.broken} == {}
    assert min(one.requests for one in trials) > 20
    happened = [fault for one in trials for fault in one.happened]
    assert {fault.kind for fault in happened} >= {
        "kill",
        "full",
        "write",
        "fsync",
        "frames",
        "cut",
        "coordinator",
        "scale",
    }
    assert sum(fault.restored for fault in happened) >= len(SEEDS) // 4
    assert sum(fault.power for fault in happened) >= len(SEEDS) // 4


@pytest.mark.heavy
@pytest.mark.long
def test_a_seed_decides_everything_whatever_the_hash_seed() -> None:
    traces = {
        subprocess.run(
            [sys.executable, "-c", TRACE], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True, timeout=120,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(traces) == 1
    assert traces.pop().count("[]") == 3


@pytest.mark.heavy
def test_without_faults_the_shards_share_addresses_and_sites_are_on_each() -> None:
    found = run(33, [], trial_of_several)
    world = World(33, 3)
    hosts = {url.split("/")[2] for url in world.site.pages}
    assert (found.happened, found.broken) == ([], [])
    assert len({world.address(host) for host in hosts}) < len(hosts)
    assert world.site.robots, "a robots.txt that another shard fetches"


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
@pytest.mark.long
def test_partitions_move_while_shards_die_and_go_back_to_older_checkpoints() -> None:
    """Seeds in which the number of shards changes, up to three times, from one to four."""
    seeds = [seed for seed in range(100, 150) if any(fault.kind == "scale" for fault in all_faults_of(seed))]
    trials = [run(seed, None, trial_of_several) for seed in seeds[:MOVED_TRIALS]]
    assert {one.seed: one.broken for one in trials if one.broken} == {}
    happened = [fault for one in trials for fault in one.happened]
    assert sum(fault.kind == "scale" for fault in happened) >= MOVED_TRIALS
    assert sum(fault.kind == "kill" for fault in happened) >= MOVED_TRIALS // 4


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "While one shard has more hosts ready than it can request, idle ones get some.")
@pytest.mark.long
def test_partitions_go_to_idle_shards_while_shards_die() -> None:
    """Seeds in which one shard has nearly all, and the number of shards stays."""
    seeds = [seed for seed in range(200, 440) if is_uneven(seed) and not scalings_of(seed)]
    trials = [run(seed, None, trial_of_several) for seed in seeds[:BALANCED_TRIALS]]
    assert {one.seed: one.broken for one in trials if one.broken} == {}
    assert sum(one.balanced > 0 for one in trials) >= BALANCED_TRIALS // 4
    assert sum(fault.kind == "kill" for one in trials for fault in one.happened) >= BALANCED_TRIALS // 4


FOUND = {
    "the name of a shard's directory was not synced, and all that it had went with a power cut": (
        13,
        [Fault("kill", 40, 12, in_disk=True, power=True, jump_s=0.0, shard=0)],
    ),
    "two processes of a shard had one opening, and the second heard nothing from the others": (
        11,
        [Fault("kill", 1, 110, in_disk=False, power=False, jump_s=1761.0, shard=0)],
    ),
    "a machine that was lost before its first checkpoint sent other links under the numbers of the lost ones": (
        5,
        [Fault("kill", 4, 15, in_disk=True, power=True, jump_s=-80.0, shard=0, restored=True)],
    ),
    "a process that followed a lost machine died before it committed, and the next one took up the lost numbers": (
        5,
        [
            Fault("kill", 8, 15, in_disk=True, power=False, jump_s=0.0, shard=0, restored=True),
            Fault("kill", 8, 25, in_disk=False, power=False, jump_s=0.0, shard=0),
        ],
    ),
    "a restarted owner of an address did not wait for the delay of a lease that had run out meanwhile": (
        12083,
        [
            Fault("kill", 1, 34, in_disk=True, power=False, jump_s=149.46789717339755, shard=2),
            Fault("kill", 1, 17, in_disk=True, power=False, jump_s=0.0, shard=2),
            Fault("kill", 13, 9, in_disk=True, power=True, jump_s=565.1158722429846, shard=1),
        ],
    ),
    "a clock that was set back changed what was known of hosts that were on their way from another shard": (
        9450090,
        [
            Fault("scale", 16, 3, False, False, 0.0),
            Fault("write", 3, 37, in_disk=True, power=False, jump_s=0.0, shard=2),
            Fault("kill", 5, 20, in_disk=True, power=False, jump_s=-545.9245181526248, shard=2),
        ],
    ),
    "machines that were lost before their first checkpoint did not wait for the delay of hosts requested before": (
        4,
        [Fault("kill", 2, 3, False, False, 0.0, shard=shard, restored=True) for shard in range(2)],
    ),
    "a continuous crawl ended while all its pages waited for an address that another shard had": (
        42,
        [Fault("cut", 0, 0, in_disk=False, power=False, jump_s=700.0, shard=1, when="lonely")],
    ),
}
"""Seeds and faults by what they found."""


@pytest.mark.heavy
@pytest.mark.parametrize(("seed", "faults"), FOUND.values(), ids=FOUND)
def test_what_was_found_once_does_not_come_back(seed: int, faults: list[Fault], tmp_path: Path) -> None:
    found = trial_of_several(seed, tmp_path, faults)
    assert (found.happened, found.broken) == (faults, [])
