"""A shard whose state is gone is told in one line, before anything is touched."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.api.cluster import ClusterCrawler
from gossamer.api.shards import STANDING, require_states, save_status
from gossamer.assembly.building import assemble
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError
from tests.cluster.crawls import begun, config_of
from tests.crash.crawls import environment

SHARDS = 2


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of two shards that both have pages."""
    directory = tmp_path_factory.mktemp("two") / "crawl"
    with SimwebProcess(SimwebOptions.plain(seed=7, hosts=10, pages=300), directory.parent / "web") as simweb:
        begun(config_of(simweb, directory, SHARDS), directory, SHARDS, pages=200, of_each=1)
    assert {path.name[9:12] for path in (directory / "warc").iterdir()} == {"000", "001"}
    return directory


@pytest.fixture
def crawl(stopped: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "crawl"))


def held(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def refused(directory: Path) -> str:
    """Resume, and return the line that says why not; nothing may have changed."""
    before = held(directory)
    with pytest.raises(ConfigError) as error:
        asyncio.run(ClusterCrawler.resume(directory).run())
    assert held(directory) == before
    return str(error.value)


@pytest.mark.promise("Crash safety", "A crawl or shard that lost its state never starts again over its files.")
@pytest.mark.parametrize("unfinished", [False, True])
def test_a_shard_that_lost_its_state_is_one_line_and_nothing_is_touched(crawl: Path, *, unfinished: bool) -> None:
    shutil.rmtree(crawl / "state/shard-1/store")
    if unfinished:  # As after a death: nothing of it has its name yet.
        shutil.rmtree(crawl / "pages")
        for file in (crawl / "warc").glob("*-001-*"):
            file.rename(file.with_name(file.name + ".open"))
    line = refused(crawl)
    assert f"{crawl} holds what was crawled but not the state of shard 1 ({crawl}/state/shard-1/store)" in line
    assert "\n" not in line
    with pytest.raises(ConfigError, match="not the state of shard 1"):
        assemble(ClusterCrawler.resume(crawl).config, crawl, shard=1, shards=SHARDS)


@pytest.mark.heavy
def test_the_command_says_so_too(crawl: Path) -> None:
    shutil.rmtree(crawl / "state")
    before = held(crawl)
    done = subprocess.run(
        [sys.executable, "-m", "gossamer", "resume", str(crawl), "--quiet"],
        env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "not the state of shard 0" in done.stderr
    assert done.stderr.count("\n") == 1
    assert held(crawl) == before


def test_a_shard_that_had_urls_and_no_page_yet_is_missed_too(crawl: Path) -> None:
    shards = [{"shard": number, "queued": 7} for number in range(SHARDS)]
    save_status(crawl, {"state": "stopped", "shards": shards})
    for file in [*crawl.glob("warc/*-001-*"), *crawl.glob("pages/*-001-*")]:
        file.unlink()
    shutil.rmtree(crawl / "state/shard-1")
    assert "not the state of shard 1" in refused(crawl)


def test_a_shard_that_never_began_begins(crawl: Path) -> None:
    for file in [*crawl.glob("warc/*-001-*"), *crawl.glob("pages/*-001-*")]:
        file.unlink()
    shutil.rmtree(crawl / "state/shard-1")
    save_status(crawl, {"state": "stopped", "shards": [{"queued": 7}, {"state": "starting"}]})
    require_states(ClusterCrawler.resume(crawl).config, crawl)
    (crawl / STANDING).unlink()
    require_states(ClusterCrawler.resume(crawl).config, crawl)


def test_what_checkpoints_hold_may_be_gone_here(crawl: Path) -> None:
    shutil.rmtree(crawl / "state")
    resumed = ClusterCrawler.resume(crawl).config
    elsewhere = replace(resumed.state, checkpoint_uri="s3://bucket/crawl")
    require_states(replace(resumed, state=elsewhere), crawl)
