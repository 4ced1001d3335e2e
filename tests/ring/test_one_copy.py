"""One copy of each finished file in the stores, and no local WARC file that a saved checkpoint lists."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer import Crawler
from gossamer.api import forget_of, verify_of
from gossamer.api.restoring import restore_of
from gossamer.config import Config, configure
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError, CrawlFailedError
from tests.crash.crawls import environment
from tests.crash.harvest import Harvest
from tests.ring.crawls import OWN, Crawled

WEB = SimwebOptions.plain(seed=4, hosts=6, pages=150, bytes_median=4000)
SETS = (
    *OWN,
    "crawl.commit_s=0.05",
    "archive.warc_segment_bytes_max=60_000",
    "archive.store_keep_warc=false",
    "crawl.concurrency=2",
    "state.checkpoint_s=0.1",
)
STORES = pytest.mark.parametrize("stores", ["checkpoints", "both", "shared"])


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    with SimwebProcess(WEB, tmp_path_factory.mktemp("web")) as simweb:
        yield simweb


def sets_of(stores: str, folder: Path) -> tuple[str, ...]:
    """Return the settings of a crawl with checkpoints alone, with two places, or with one place for both."""
    checkpoints = f"state.checkpoint_uri='file://{folder}/checkpoints'"
    archive = "checkpoints" if stores == "shared" else "archive"
    return (*SETS, checkpoints, *([] if stores == "checkpoints" else [f"archive.store='file://{folder}/{archive}'"]))


def config_of(web: SimwebProcess, *sets: str) -> Config:
    options = {"allow_private": True, "hosts": str(web.hosts_file), "scope": "any"}
    return configure(options=options, sets=sets, seeds=web.seeds)


def crawl(web: SimwebProcess, directory: Path, *sets: str) -> Crawled:
    return Crawled(directory, end=asyncio.run(Crawler(output=directory, config=config_of(web, *sets)).run()))


def stored(folder: Path) -> Counter[str]:
    """Return how often the stores have each finished file."""
    paths = [path for store in ("checkpoints", "archive") for path in (folder / store).glob("*/*-*.*")]
    return Counter(f"{path.parent.name}/{path.name}" for path in paths)


def check(folder: Path, stores: str, reference: Harvest) -> None:
    """Local WARC files are gone, the stores have each file once, and what is restored is the whole crawl."""
    assert list((folder / "crawl/warc").iterdir()) == []
    assert verify_of(folder / "crawl", deep=True).damage == ()
    assert set(stored(folder).values()) == {1}
    uri = f"file://{folder}/checkpoints"
    restore_of([uri], folder / "lean")
    assert not (folder / "lean/warc").exists()
    restore_of([uri], folder / "back", ["archive.store_keep_warc=true"])
    found = Harvest(folder / "back")
    assert found.faults() == []
    assert found.records == reference.records
    assert verify_of(folder / "back", deep=True).damage == ()
    names = {path.name for path in (folder / "back/warc").iterdir()}
    assert len(names) > 3, stores
    assert {Path(name).name for name in stored(folder) if name.startswith("warc/")} == names


@pytest.fixture(scope="module")
def reference(web: SimwebProcess, tmp_path_factory: pytest.TempPathFactory) -> Harvest:
    directory = tmp_path_factory.mktemp("reference") / "crawl"
    crawl(web, directory, *OWN)
    return Harvest(directory)


@pytest.mark.heavy
@STORES
@pytest.mark.promise(
    "Files and exports", "A checkpoint elsewhere refers to files that an object store has: each exists once."
)
@pytest.mark.long
def test_each_file_is_stored_once_and_leaves_the_disk(
    web: SimwebProcess, reference: Harvest, tmp_path: Path, stores: str
) -> None:
    assert crawl(web, tmp_path / "crawl", *sets_of(stores, tmp_path)).end == "finished"
    check(tmp_path, stores, reference)


DIES = """
import asyncio, os, sys
from pathlib import Path
from gossamer import Crawler
from gossamer.config import configure
from gossamer.stages.archive.objectstore import ObjectStore
from gossamer.state.journals import Journals, Phase

step, hosts, directory, seeds, *sets = sys.argv[1:]

def dies(owner, name, when, after=False):
    method = getattr(owner, name)
    counted = [0]
    def counts(*arguments):
        counted[0] += when(*arguments)
        return counted[0] == (1 if "removal" in step else 2)
    async def waits(*arguments, **options):
        fatal = counts(*arguments)
        if fatal and not after:
            os._exit(9)
        found = await method(*arguments, **options)
        if fatal:
            os._exit(9)
        return found
    def goes(*arguments, **options):
        fatal = counts(*arguments)
        if fatal and not after:
            os._exit(9)
        found = method(*arguments, **options)
        if fatal:
            os._exit(9)
        return found
    setattr(owner, name, waits if asyncio.iscoroutinefunction(method) else goes)

is_list = lambda store, name, data: name.endswith("latest.json")
leaves = lambda journals, committed: any(
    entry.phase >= Phase.AWAY and entry.name in journals._leaving for entry in committed
)
sends = lambda store, source, name: name.startswith("warc/")
{
    "before the upload": lambda: dies(ObjectStore, "copy", sends),
    "after the upload": lambda: dies(ObjectStore, "copy", sends, after=True),
    "before the list": lambda: dies(ObjectStore, "write", is_list),
    "after the list": lambda: dies(ObjectStore, "write", is_list, after=True),
    "after the release": lambda: dies(Journals, "mark", lambda *call: call[-1] >= Phase.AWAY, after=True),
    "before the removal": lambda: dies(Journals, "settle", leaves),
    "after the removal": lambda: dies(Journals, "settle", leaves, after=True),
}[step]()
options = {"allow_private": True, "hosts": hosts, "scope": "any"}
config = configure(options=options, sets=sets, seeds=seeds.split())
asyncio.run(Crawler(output=Path(directory), config=config).run())
"""
"""A crawl that ends when it comes to a step, as if it were killed there."""
STEPS = (
    "before the upload",
    "after the upload",
    "before the list",
    "after the list",
    "after the release",
    "before the removal",
    "after the removal",
)


@pytest.mark.heavy
@pytest.mark.long
@STORES
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_between_two_steps_loses_and_doubles_nothing(
    web: SimwebProcess, reference: Harvest, tmp_path: Path, stores: str, step: str
) -> None:
    sets = sets_of(stores, tmp_path)
    arguments = [step, str(web.hosts_file), str(tmp_path / "crawl"), " ".join(web.seeds), *sets]
    done = subprocess.run([sys.executable, "-c", DIES, *arguments], env=environment(), timeout=60)
    assert done.returncode == 9, "it was over before it could be killed"
    assert asyncio.run(Crawler.resume(tmp_path / "crawl").run()) == "finished"
    check(tmp_path, stores, reference)


@pytest.mark.heavy
@STORES
@pytest.mark.long
def test_forgotten_pages_leave_all_copies(web: SimwebProcess, tmp_path: Path, stores: str) -> None:
    crawl(web, tmp_path / "crawl", *sets_of(stores, tmp_path))
    url = sorted(row["url"] for row in Crawled(tmp_path / "crawl").rows if row["outcome"] == "fetched")[40]
    forget_of(tmp_path / "crawl", str(url))
    assert list((tmp_path / "crawl/warc").iterdir()) == []
    restore_of([f"file://{tmp_path}/checkpoints"], tmp_path / "back", ["archive.store_keep_warc=true"])
    assert verify_of(tmp_path / "back", deep=True).damage == ()
    assert url not in {target for target, _ in Harvest(tmp_path / "back").records}
    for store in ("checkpoints", "archive"):
        for path in (tmp_path / store).glob("warc/*"):
            unpacked = subprocess.run(["zcat", path], stdout=subprocess.PIPE, check=True, timeout=60).stdout
            assert f"WARC-Target-URI: {url}\r\n".encode() not in unpacked


def test_another_place_does_not_lack_what_only_the_former_has(web: SimwebProcess, tmp_path: Path) -> None:
    crawl(web, tmp_path / "crawl", *sets_of("checkpoints", tmp_path))
    elsewhere = {"state.checkpoint_uri": f"file://{tmp_path}/elsewhere"}
    with pytest.raises(CrawlFailedError, match=r"warc/gossamer-.* set state\.checkpoint_uri to its former value"):
        asyncio.run(Crawler.resume(tmp_path / "crawl", settings=elsewhere).run())


def test_warc_files_that_no_store_would_have_are_not_removed(web: SimwebProcess, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"archive\.store_keep_warc: no store has the WARC files"):
        crawl(web, tmp_path / "crawl", *OWN, "archive.store_keep_warc=false")
