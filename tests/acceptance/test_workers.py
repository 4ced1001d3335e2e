"""Crawls of several shards by the command line, on a Ray of their own and on a cluster of two nodes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.simweb.options import SimwebOptions
from gossamer.simweb.process import SimwebProcess
from tests.cluster.nodes import Nodes
from tests.crash.crawls import environment
from tests.crash.harvest import Harvest, differences

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

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
def nodes() -> Iterator[Nodes]:
    with Nodes() as cluster:
        cluster.add()
        cluster.add()
        yield cluster


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


def crawl_of(web: SimwebProcess, directory: Path, workers: int, *sets: str) -> list[str]:
    words = ["crawl", *web.seeds, "--scope", "any", "--allow-private", "--hosts", str(web.hosts_file)]
    words += ["--politeness", "own", "--workers", str(workers), "--quiet", "-o", str(directory)]
    return words + [word for one in (*QUICK, *sets) for word in ("--set", one)]


def test_the_result_of_three_workers_is_that_of_one(
    web: SimwebProcess, nodes: Nodes, alone: Harvest, tmp_path: Path
) -> None:
    done = gossamer(*crawl_of(web, tmp_path / "crawl", 3), "--cluster", nodes.address)
    assert done.returncode == 0, done.stderr
    found = Harvest(tmp_path / "crawl")
    assert differences(found, alone) == []
    assert found.faults() == []
    assert len({row["shard"] for row in found.rows}) > 1
    assert len((tmp_path / "crawl/index.cdxj").read_bytes().splitlines()) == sum(
        row["warc_offset"] is not None for row in found.rows
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cluster", "127.0.0.1:9"), "no Ray cluster there"),
        (("--set", "state.checkpoint_uri=file:///proc/nowhere"), "state.checkpoint_uri"),
        (("--set", "cluster.work_directory=/tmp"), "state.checkpoint_uri"),
        (("--set", "frontier.hosts_min=3"), "frontier.hosts_min"),
        (("--set", "frontier.form=walk"), "frontier.form"),
    ],
)
def test_a_mistake_is_one_line(web: SimwebProcess, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = gossamer(*crawl_of(web, tmp_path / "crawl", 2), *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "crawl").exists()


def test_without_ray_the_line_says_how_to_get_it(web: SimwebProcess, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util, sys\nfind = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'ray' else find(name, package)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "gossamer", *crawl_of(web, tmp_path / "crawl", 2)],
        env={**environment(), "PYTHONPATH": os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == ("gossamer: --workers 2: more than one worker runs on Ray; pip install 'gossamer[cluster]'\n")
