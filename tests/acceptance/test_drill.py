"""A drill: machines are lost and come back, and the head of a cluster is killed; the crawl goes on without a person."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.test_workers import crawl_of, gossamer
from tests.crash.crawls import environment
from tests.crash.harvest import Harvest, differences

ROOT = Path(__file__).parents[2]
DELAY_S = 1.0
SETTINGS = (
    "politeness.delay_factor=0.0", "crawl.commit_s=0.25", "crawl.request_s_max=2.0", "frontier.retry_s_first=5.0",
    "memory.budget_bytes='200MiB'", "state.checkpoint_s=5",
)  # fmt: skip
"""The servers share the machine with all of the cluster: where it stalls, three attempts must outlast that (some 20 s).
"""
SECONDS = float(os.environ.get("GOSSAMER_DRILL_S", "0"))
"""How long faults go on after those that are named: an hour in `make nightly`."""
WEB = SimwebOptions.plain(
    hosts=16, hosts_per_site=1, names_per_address=1, pages=int(3_500 + 17 * SECONDS), latency_s=0.02,
    bytes_median=2_000, zipf_exponent=0.1,
)  # fmt: skip
NOTICED_S = 20.0
MOVES_S = {"headless": 60.0}
"""Goals: within which a fault shows in the status, and all sites move again; other than 30 s where leases have to end
after the head was given up and started again.
"""
BUSY = 3.0
"""By which factor the machine of these tests may exceed the goals of the drill: it has two processors for all of it."""


@pytest.mark.acceptance
@pytest.mark.paced
@pytest.mark.long
@pytest.mark.timeout(600 + 2 * SECONDS)
@pytest.mark.promise(
    "Several shards",
    "A crawl goes on by itself when its cluster's head is killed, and returns to machines that come back.",
)
def test_a_crawl_survives_the_loss_of_machines_and_of_its_head(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SimwebProcess(WEB, tmp_path / "web") as web:
        once = gossamer(*crawl_of(web, tmp_path / "alone", 1), timeout_s=120 + SECONDS / 4)
        assert once.returncode == 0, once.stderr
        options = replace(WEB, port=web.port)
    alone = Harvest(tmp_path / "alone")
    folder = Path(tempfile.mkdtemp(prefix="gd-"))  # The paths of Ray's sockets must be short.
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", "--mount", sys.executable, "-m", "tests.cluster.drill", str(folder)]
    command += [str(tmp_path / "shared"), json.dumps(SETTINGS), msgspec.json.encode(options).decode(), str(DELAY_S)]
    command += [str(SECONDS), "lost", "returned", "headless", *(["cut", "full", "grown"] if SECONDS else [])]
    source = {**environment(), "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=580 + 2 * SECONDS, env=source, check=False
        )
        lines = [line[:500] for line in done.stderr.splitlines()]
        assert done.returncode == 0, "\n".join(lines[-60:])
        told = json.loads(done.stdout.splitlines()[-1])
        found = Harvest(folder / "crawl")
        with capsys.disabled():
            print(f"\ndrill: {told}, {len(found.rows)} pages")
        assert told["status"] == 0, told["errors"]
        assert told["broken"] == []
        assert max(told["directories"]) == 1, "a machine that joins again keeps its directory"
        assert "(raylet)" not in told["errors"]
        differing = differences(found, alone)
        assert not differing, "\n".join(differing[:20])
        assert found.faults() == []
        for fault in told["faults"]:
            assert (fault["noticed_s"] or 0.0) <= BUSY * NOTICED_S, fault
            assert fault["moves_s"] <= BUSY * MOVES_S.get(fault["fault"], 30.0), fault
    finally:
        shutil.rmtree(folder, ignore_errors=True)
