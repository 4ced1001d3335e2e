"""What the command line says to those who ask for several workers in vain."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.simweb.options import SimwebOptions
from gossamer.simweb.process import SimwebProcess
from tests.crash.crawls import environment

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
