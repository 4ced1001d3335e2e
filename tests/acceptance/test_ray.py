"""What users of Ray expect of a program on their cluster: runtime environments, placement, resources."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.test_workers import answer, begun, crawl_of, gossamer
from tests.answering import free_port
from tests.cluster.nodes import KEEPER, SHARD, Nodes, command_of
from tests.crash.crawls import environment
from tests.crash.harvest import Harvest
from tests.ring.crawls import until

pytestmark = [pytest.mark.acceptance, pytest.mark.together, pytest.mark.timeout(300)]

WEB = SimwebOptions.plain(seed=4, hosts=12, hosts_per_site=1, pages=120, bytes_median=2_000)
MODULE = """
import os
from pathlib import Path

import message

class Where:
    name = "where"

    def wants(self, media_type):
        return True

    def process(self, page, findings):
        findings.columns["said"] = message.TEXT + os.environ["SAID"]
        findings.columns["folder"] = str(Path(message.__file__).parent)
"""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    with SimwebProcess(WEB, tmp_path_factory.mktemp("web")) as served:
        yield served


def crawl(
    web: SimwebProcess, nodes: Nodes, directory: Path, *sets: str, workers: int = 2
) -> subprocess.CompletedProcess[str]:
    return gossamer(*crawl_of(web, directory, workers, *sets), "--cluster", nodes.address)


def machines(directory: Path) -> list[str]:
    """Return where each shard crawled."""
    standing = json.loads((directory / "state/standing.json").read_text())
    return [str(shard["node"]) for shard in standing["shards"]]


@pytest.mark.promise("Several shards", "Shards on Ray run in the runtime environment that the operator names.")
@pytest.mark.long
def test_a_component_of_a_runtime_environment_runs_on_every_machine(
    web: SimwebProcess, nodes: Nodes, tmp_path: Path
) -> None:
    """Files that no machine has on its path: Ray brings them."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/where.py").write_text(MODULE)
    (tmp_path / "mine/message.py").write_text("TEXT = 'good '\n")
    (tmp_path / "mine/runtime.yaml").write_text("working_dir: .\nenv_vars: {SAID: morning}\n")
    sets = [f"cluster.runtime_env='{tmp_path}/mine/runtime.yaml'", "process.modules=['links', 'where:Where']"]
    done = crawl(web, nodes, tmp_path / "crawl", *sets, "cluster.placement='strict_spread'")
    assert done.returncode == 0, done.stderr
    rows = [row for row in Harvest(tmp_path / "crawl").rows if row["outcome"] == "fetched"]
    assert {row["said"] for row in rows} == {"good morning"}
    assert all("_ray_pkg_" in str(row["folder"]) for row in rows)
    assert {row["shard"] for row in rows} == {0, 1}
    assert len(set(machines(tmp_path / "crawl"))) == 2


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("working_dir: [", "cluster.runtime_env: "),
        ("working_dir: nowhere", "nowhere"),
        ("conda: no-such-environment", "cluster.runtime_env: Ray cannot set it up"),
    ],
)
@pytest.mark.long
def test_a_wrong_runtime_environment_is_one_line(
    web: SimwebProcess, nodes: Nodes, tmp_path: Path, held: str, said: str
) -> None:
    (tmp_path / "runtime.yaml").write_text(held)
    done = crawl(web, nodes, tmp_path / "crawl", f"cluster.runtime_env='{tmp_path}/runtime.yaml'")
    assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr


@pytest.mark.long
def test_a_service_that_has_another_tmp_is_one_line(web: SimwebProcess, nodes: Nodes, tmp_path: Path) -> None:
    """PrivateTmp of systemd hides Ray's sockets: Ray would end the process with its stack."""
    words = crawl_of(web, tmp_path / "crawl", 2, f"cluster.address='{nodes.address}'")
    hide = f'mount --make-rprivate / && mount -t tmpfs none "{nodes.folder}" && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", hide, "sh", sys.executable, "-m", "gossamer", *words],
        env=environment(), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "its sockets are not here; a service with PrivateTmp needs `ray start --temp-dir`" in done.stderr


@pytest.mark.promise("Several shards", "Ray places shards as `cluster.placement` says, where their resources are.")
@pytest.mark.long
def test_shards_are_packed_on_the_machine_that_has_what_they_need(
    web: SimwebProcess, nodes: Nodes, tmp_path: Path
) -> None:
    nodes.add(resources={"crawler": 2}, num_cpus=2)
    sets = ("cluster.cpus=1", "cluster.memory_bytes=1000000", "cluster.resources={crawler = 1}")
    found = {}
    for placement in ("pack", "spread"):
        done = crawl(web, nodes, tmp_path / placement, *sets, f"cluster.placement='{placement}'")
        assert done.returncode == 0, done.stderr
        found[placement] = machines(tmp_path / placement)
    assert len(set(found["pack"])) == 1
    assert found["pack"] == found["spread"]


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (("cluster.placement='strict_spread'",), "cluster.placement = strict_spread; each needs CPU 0.001"),
        (("cluster.resources={balloon = 1}",), "each needs CPU 0.001, balloon 1"),
        (("cluster.cpus=0.9", "cluster.placement='pack'"), "cluster.placement = pack; each needs CPU 0.9"),
    ],
)
@pytest.mark.long
def test_a_placement_that_is_refused_is_one_line(
    web: SimwebProcess, nodes: Nodes, tmp_path: Path, sets: tuple[str, ...], said: str
) -> None:
    done = crawl(web, nodes, tmp_path / "crawl", *sets, "cluster.start_s_max=5", workers=8)
    assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (1, True, 1), done.stderr
    assert "Ray has no machine for shards 0, 1" in done.stderr
    assert json.loads((tmp_path / "crawl/state/standing.json").read_text())["pages"] == 0


@pytest.mark.promise("Several shards", "Ray exports pages, bytes, queue and failures of each shard for Prometheus.")
@pytest.mark.long
def test_rays_metrics_are_those_of_the_status(web: SimwebProcess, tmp_path: Path) -> None:
    directory, port = tmp_path / "crawl", free_port()
    with Nodes(metrics_report_interval_ms=500) as nodes:
        nodes.add(metrics_export_port=port)
        slowly = ("politeness.delay_s_min=0.5",)
        running = begun(*crawl_of(web, directory, 2, *slowly, politeness="weak"), "--cluster", nodes.address)
        try:
            until(lambda: sum(exported(port, "gossamer_pages").values()) > 10 or running.poll() is not None, 90)
            assert gossamer("pause", directory).returncode == 0
            until(lambda: exported(port, "gossamer_pages") == stood(directory, "pages"), 60)
            until(lambda: answer("status", directory)["in_flight"] == 0, 60)
            # Each comes with the next report of its shard.
            until(lambda: exported(port, "gossamer_received_bytes") == stood(directory, "wire_bytes"), 60)
            until(lambda: exported(port, "gossamer_queued_urls") == stood(directory, "queued"), 60)
            status = answer("status", directory)
            assert status["state"] == "paused"
            outcomes = status["outcomes"]
            assert isinstance(outcomes, dict)
            failed = sum(outcomes.values()) - sum(outcomes.get(one, 0) for one in ("fetched", "redirected"))
            until(lambda: sum(exported(port, "gossamer_failed_attempts").values()) == failed, 60)
        finally:
            running.kill()
            running.wait()


@pytest.mark.long
def test_nothing_of_a_crawl_outlives_the_ray_of_its_machine(web: SimwebProcess, tmp_path: Path) -> None:
    """As when the system kills it for its memory, or it ends itself after its machine was cut off for a while."""
    directory = tmp_path / "crawl"
    with Nodes() as nodes:
        lost = nodes.add()
        slowly = ("politeness.delay_s_min=0.5",)
        running = begun(*crawl_of(web, directory, 2, *slowly, politeness="weak"), "--cluster", nodes.address)
        try:
            until(lambda: len(nodes.processes(lost, SHARD)) == 2 or running.poll() is not None, 90)
            left = [pid for name in (SHARD, KEEPER) for pid in nodes.processes(lost, name)]
            assert len(left) == 4
            os.kill(nodes.raylets[lost], signal.SIGKILL)
            until(lambda: not any(command_of(pid) for pid in left), 60)
        finally:
            running.kill()
            running.wait()


def exported(port: int, name: str) -> dict[str, float]:
    """Return a metric that a node's Ray exports, by shard."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
            lines = reply.read().decode().splitlines()
    except (URLError, OSError):
        return {}
    found = {}
    for line in lines:
        if line.startswith(f"ray_{name}{{") and (shard := re.search(r'shard="(\d+)"', line)):
            assert 'crawl="crawl"' in line
            found[shard[1]] = float(line.rpartition(" ")[2])
    return found


def stood(directory: Path, key: str) -> dict[str, float]:
    """Return a count of the status, by shard."""
    shards = answer("status", directory)["shards"]
    assert isinstance(shards, list)
    return {str(shard["shard"]): float(shard[key]) for shard in shards}
