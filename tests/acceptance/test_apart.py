"""A crawl on machines that share nothing but an object store and a narrow wire."""

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
WEB = SimwebOptions.plain(
    hosts=32, hosts_per_site=1, names_per_address=2, pages=1_200, latency_s=0.02, bytes_median=2_000, zipf_exponent=0.1
)  # fmt: skip
DELAY_S, CHECKPOINT_S, TENURE_S = 0.3, 3.0, 5.0
SETTINGS = (
    f"politeness.delay_s_min={DELAY_S}", f"politeness.delay_s_max={DELAY_S}", "politeness.delay_factor=0.0",
    "crawl.commit_s=0.25", "crawl.request_s_max=2.0", "frontier.retry_s_first=0.1", "memory.budget_bytes='200MiB'",
    f"cluster.tenure_s={TENURE_S}", "cluster.round_s=0.25", "cluster.resend_s=1.0", "cluster.address_term_s=3.0",
    "cluster.address_turn_s=0.3", f"state.checkpoint_s={CHECKPOINT_S}",
)  # fmt: skip


@pytest.mark.acceptance
@pytest.mark.paced
@pytest.mark.timeout(600)
@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
@pytest.mark.promise(
    "Several shards", "Machines need no common file system: an object store is enough, and the loss of one is no loss."
)
@pytest.mark.long
def test_machines_that_share_an_object_store_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two shards become four, a machine is lost with all it held, four become three."""
    with SimwebProcess(WEB, tmp_path / "web") as web:
        once = gossamer(*crawl_of(web, tmp_path / "alone", 1))
        assert once.returncode == 0, once.stderr
        options = replace(WEB, port=web.port)
    alone = Harvest(tmp_path / "alone")
    folder = Path(tempfile.mkdtemp(prefix="ga-"))  # The paths of Ray's sockets must be short.
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", sys.executable, "-m", "tests.cluster.apart", str(folder)]
    command += [str(tmp_path / "shared"), json.dumps(SETTINGS), msgspec.json.encode(options).decode(), str(DELAY_S)]
    source = {**environment(), "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=source, check=False)
        assert done.returncode == 0, done.stderr[-3_000:]
        told, found = json.loads(done.stdout.splitlines()[-1]), Harvest(folder / "crawl")
        with capsys.disabled():
            print(f"\napart: {told}, {len(found.rows)} pages")
        assert told["status"] == 0, told["errors"]
        assert told["there"]
        assert told["lost"]
        assert told["broken"] == []
        assert differences(found, alone) == []
        assert found.faults() == []
    finally:
        shutil.rmtree(folder, ignore_errors=True)
