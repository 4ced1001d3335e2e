"""`ray job submit`: a crawl as a job of a Ray cluster, its log, its exit status, its stop, and its resume."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.test_ray import WEB
from tests.acceptance.test_workers import answer, crawl_of
from tests.answering import free_port
from tests.cluster.nodes import Nodes, command_of, descendants
from tests.crash.crawls import environment
from tests.crash.harvest import Harvest, differences
from tests.ring.crawls import until

pytestmark = [pytest.mark.acceptance, pytest.mark.together, pytest.mark.timeout(300)]

UNHURRIED = '{"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": "60"}}'
RAY = str(Path(sys.executable).with_name("ray"))
MODULE = """
class Where:
    name = "where"

    def wants(self, media_type):
        return True

    def process(self, page, findings):
        findings.columns["folder"] = __file__
"""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    with SimwebProcess(WEB, tmp_path_factory.mktemp("web")) as served:
        yield served


class Jobs:
    """The cluster's job server; jobs get the files of a folder."""

    def __init__(self, port: int, nodes: Nodes, folder: Path) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.nodes = nodes
        self._folder = folder
        (folder / "where.py").write_text(MODULE)

    def ray(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `ray job …`."""
        given = {key: value for key, value in environment().items() if not key.startswith("RAY_")}
        given |= {"RAY_API_SERVER_ADDRESS": self.address, "RAY_AUTH_MODE": "disabled"}
        return subprocess.run(
            [RAY, "job", *words], env=given, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100
        )

    def submit(self, *words: str | Path, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Submit a command of Gossamer."""
        command = [sys.executable, "-m", "gossamer", *map(str, words)]
        return self.ray("submit", "--working-dir", str(self._folder), *options, "--", *command)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    port = free_port()
    with Nodes(dashboard_port=port) as nodes:
        nodes.add()
        nodes.add()
        found = Jobs(port, nodes, tmp_path_factory.mktemp("files"))
        until(lambda: found.ray("submit", "--", "true").returncode == 0, 90)
        yield found


@pytest.mark.promise("Several shards", "`ray job submit` runs a crawl, and `ray job stop` ends it; nothing is lost.")
@pytest.mark.long
def test_a_job_crawls_stops_and_resumes(web: SimwebProcess, jobs: Jobs, tmp_path: Path) -> None:
    own = ("process.modules=['links', 'where:Where']",)
    words = [word for word in crawl_of(web, tmp_path / "whole", 2, *own) if word != "--quiet"]
    done = jobs.submit(*words, options=("--submission-id", "whole"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Output: {tmp_path / 'whole'}" in jobs.ray("logs", "whole").stdout
    whole = Harvest(tmp_path / "whole")
    assert {row["shard"] for row in whole.rows} == {0, 1}
    assert all("_ray_pkg_" in str(row["folder"]) for row in whole.rows if row["outcome"] == "fetched")

    slowly = (*own, "politeness.delay_s_min=0.5")
    words = [word for word in crawl_of(web, tmp_path / "crawl", 2, *slowly, politeness="weak") if word != "--quiet"]
    given = ("--no-wait", "--submission-id", "crawl-1", "--runtime-env-json", UNHURRIED)
    begun = jobs.submit(*words, options=given)
    assert begun.returncode == 0, begun.stdout + begun.stderr
    until(lambda: len(web.requests()) > 150, 90)
    of_it = [pid for raylet in jobs.nodes.raylets for pid in descendants(raylet) if "gossamer" in command_of(pid)]
    assert jobs.ray("stop", "crawl-1").returncode == 0
    assert "was stopped" in jobs.ray("status", "crawl-1").stdout
    until(lambda: not [pid for pid in of_it if command_of(pid)], 60)
    assert answer("status", tmp_path / "crawl")["state"] == "stopped"
    assert f"gossamer resume {tmp_path / 'crawl'}" in jobs.ray("logs", "crawl-1").stdout, "it ended in order"

    resumed = jobs.submit("resume", tmp_path / "crawl", "--delay", "0", "--politeness", "own")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    found = Harvest(tmp_path / "crawl")
    assert differences(found, whole) == []
    assert found.faults() == []


@pytest.mark.long
def test_a_mistake_is_in_the_log_of_the_job(web: SimwebProcess, jobs: Jobs, tmp_path: Path) -> None:
    done = jobs.submit(*crawl_of(web, tmp_path / "crawl", 2, "state.checkpoint_uri=file:///proc/nowhere"))
    assert done.returncode == 1
    assert "state.checkpoint_uri" in done.stdout
    assert not list(tmp_path.iterdir())
