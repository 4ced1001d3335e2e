"""A crawl whose number of shards changes while it runs, and of which nothing is left then but its checkpoints."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.test_scale_kill import RUNNING, has_ordered, has_pages, repeated, set_delay, slow_crawl
from tests.acceptance.test_workers import begun, crawl_of, gossamer, left
from tests.cluster.crawls import is_divided
from tests.cluster.nodes import descendants
from tests.cluster.test_scale import opened
from tests.crash.harvest import Harvest, differences
from tests.ring.crawls import until

ROUNDS = int(os.environ.get("GOSSAMER_SCALINGS", "1"))
DICE_SEED = int(os.environ.get("GOSSAMER_SCALINGS_SEED", "7"))

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(240 * ROUNDS + 120),
    pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing."),
]


@pytest.mark.long
def test_a_crawl_that_is_restored_from_its_checkpoints_alone_knows_what_moved(tmp_path: Path) -> None:
    """From two shards to five, then to three; at some moment of each change all of it is lost."""
    dice = random.Random(DICE_SEED)
    with SimwebProcess(RUNNING, tmp_path / "web") as web:
        once = gossamer(*crawl_of(web, tmp_path / "alone", 1))
        assert once.returncode == 0, once.stderr
        alone = Harvest(tmp_path / "alone")
        for number in range(ROUNDS):
            directory, store = tmp_path / f"crawl-{number}", f"file://{tmp_path}/checkpoints-{number}"
            sets = (f"state.checkpoint_uri='{store}'", "state.checkpoint_s=3")
            with slow_crawl(web, directory, 2, *sets) as (running, complaints):
                until(partial(has_pages, directory, 10), 90)
                until(partial(have_checkpoints, tmp_path / f"checkpoints-{number}"), 90)
                order_and_lose(directory, 5, running, dice)
                assert complaints.read_text() == ""
            with restored(store, directory) as (running, complaints):
                ordered(directory, 5)
                order_and_lose(directory, 3, running, dice)
                assert complaints.read_text() == ""
            with restored(store, directory) as (running, complaints):
                ordered(directory, 3)
                set_delay(directory, 0)
                assert running.wait(120) == 0, complaints.read_text()
            found = Harvest(directory)
            assert differences(found, alone) == []
            assert found.faults() == []
            assert opened(directory).cluster.workers == 5, "two have no partitions, and their state is in checkpoints"


def have_checkpoints(store: Path) -> bool:
    """Return whether each of two shards has a checkpoint."""
    return all((store / f"shard-{shard}/latest.json").exists() for shard in range(2))


def order_and_lose(directory: Path, shards: int, running: subprocess.Popen[str], dice: random.Random) -> None:
    """Order another number of shards; then kill all processes of the crawl and remove its directory."""
    after_s = dice.uniform(0.0, 8.0)
    print(f"{time.monotonic():.1f} {directory.name} to {shards}, lost after {after_s:.1f} s")
    repeated(directory, shards)
    time.sleep(after_s)
    of_it = {running.pid, *descendants(running.pid)}
    for pid in of_it:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    running.wait()
    until(lambda: not left(of_it), 60)
    shutil.rmtree(directory)


def ordered(directory: Path, shards: int) -> None:
    """Wait until partitions are where they were ordered to be; order it again if no copy of the order was made."""
    until(lambda: has_ordered(directory, shards) or repeated(directory, shards), 90)
    until(lambda: is_divided(directory, shards), 90)


@contextmanager
def restored(store: str, directory: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    for words in (("restore", store, "-o", directory), ("verify", directory)):
        done = gossamer(*words)
        assert done.returncode == 0, done.stderr
    complaints = directory.with_name(f"{directory.name}-complaints")
    running = begun("resume", directory, "--quiet", complaints=complaints)
    try:
        yield running, complaints
    finally:
        running.kill()
        running.wait()
