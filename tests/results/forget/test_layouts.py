"""`gossamer forget` over the layouts of stores: no file and no object keeps a byte of a page, wherever copies are."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from gossamer import Crawler
from gossamer.api import forget_of, verify_of
from gossamer.api.restoring import begin_copies, checkpoint_of, restore_of, vault_of
from gossamer.assembly.building import assemble
from gossamer.assembly.home import Home
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import Config, configure, effective_toml
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from tests.cluster.crawls import WORKERS
from tests.crash.forks import forks
from tests.faults.shards import Shards
from tests.further import with_further
from tests.results.forget import marks
from tests.results.forget.crawls import AGAIN, BATCH
from tests.results.forget.site import GONE, MARKS, Site
from tests.ring.crawls import rows


class Layout(NamedTuple):
    """Where a crawl keeps what."""

    store: str
    """Object store of finished files: `none`, `kept` (WARC files stay here too), `away` (they do not), `same` (nor
    here, and the place is that of the checkpoints).
    """
    checkpoints: str
    """`none`, `here` (in the crawl's directory), `there` (in an object store), `both`."""
    shards: int = 1
    end: str = "finished"
    """`finished` or `stopped`, with queued pages."""
    search: bool = True


LAYOUTS = [
    Layout(*one)
    for one in product(
        ("none", "kept", "away"), ("none", "here", "there", "both"), (1, 2), ("finished", "stopped"), (True, False)
    )
]
LAYOUTS += [Layout("same", "there", shards) for shards in (1, 2)]
FIRST = Layout("away", "both")
KILLS = 8
"""Of about fifty changes of the disk behind the first that a store sees."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    one = Site()
    with one.serving():
        yield one


def config_of(site: Site, folder: Path, layout: Layout) -> Config:
    sets = [*(AGAIN if layout.end == "stopped" else BATCH), f"search.enabled={str(layout.search).lower()}"]
    sets.append("archive.warc_segment_bytes_max=60_000")
    if layout.store != "none":
        archive = folder / ("elsewhere" if layout.store == "same" else "archive")
        sets.append(f"archive.store='{archive.as_uri()}'")
        sets.append(f"archive.store_keep_warc={str(layout.store == 'kept').lower()}")
    if layout.checkpoints in ("there", "both"):
        sets += [f"state.checkpoint_uri='{(folder / 'elsewhere').as_uri()}'", "state.checkpoint_s=0.2"]
    if layout.shards > 1:
        sets += [*WORKERS, f"cluster.workers={layout.shards}"]
    options = {"allow_private": True, "hosts": str(site.hosts_file(folder)), "scope": "any"}
    seeds = tuple(site.url(name) for name in ("gone.test/", "third.test/", "kept.test/"))
    return configure(options=options, sets=sets, seeds=seeds)


async def crawl_alone(config: Config, directory: Path, layout: Layout) -> None:
    crawler = Crawler(output=directory, config=config)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(crawler.run())
        while int(str(crawler.status().get("pages", 0))) < 20:  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(0.02)
        with pytest.raises(ConfigError, match=r"is in use by another crawl; .* ends it"):
            await asyncio.to_thread(forget_of, directory, GONE)
        if layout.checkpoints in ("here", "both"):
            assert (await crawler.ask({"verb": "checkpoint"}))["ok"]
        if layout.end == "stopped":
            crawler.stop()
    assert running.result() == layout.end


def crawl_in_shards(config: Config, directory: Path, layout: Layout) -> None:
    """Crawl with shards that make checkpoints as their processes do."""
    directory.mkdir()
    (directory / "crawl.toml").write_text(effective_toml(config))
    PartitionMap.even(layout.shards).save(directory)
    asyncio.run(begin_copies(config, directory))
    taken: set[int] = set()

    async def check(running: Shards) -> None:
        for number, member in running.members.items():
            if number in taken or member.assembled is None or sum(one.pages for one in running.reports()) < 20:
                continue
            taken.add(number)
            vault = None
            if config.state.checkpoint_uri:
                vault = vault_of(config, Home(directory, number, layout.shards), "")
                await vault.save(member.assembled)
            if layout.checkpoints in ("here", "both"):
                await checkpoint_of(member.assembled, vault)
        if len(taken) == layout.shards and layout.end == "stopped":
            await running.stop()

    assert asyncio.run(Shards(config, directory, layout.shards, assemble).run(check)) == layout.end
    assert len(taken) == layout.shards


def crawl(site: Site, folder: Path, layout: Layout) -> Path:
    folder.mkdir(exist_ok=True)
    config, directory = config_of(site, folder, layout), folder / "crawl"
    if layout.shards > 1:
        crawl_in_shards(config, directory, layout)
    else:
        asyncio.run(crawl_alone(config, directory, layout))
    return directory


def left(folder: Path) -> list[str]:
    """Return the places of marks in the crawl, in its checkpoints and in all stores."""
    crawls = [folder / "crawl", *(folder / "crawl/checkpoints").glob("*")]
    found = marks.found(folder, MARKS)
    shards = reopen(folder / "crawl/crawl.toml").cluster.workers
    # A checkpoint of one shard of several holds the store of that shard alone.
    stores = crawls if shards == 1 else crawls[:1]
    return found + [one for each in stores for one in marks.found_in_stores(each, MARKS)]


def require_clean(folder: Path, layout: Layout) -> None:
    assert left(folder) == []
    assert [one.says() for one in verify_of(folder / "crawl", deep=True).damage] == []
    if layout.checkpoints in ("there", "both"):
        back = folder / f"back-{len(list(folder.glob('back-*')))}"
        restore_of([(folder / "elsewhere").as_uri()], back)
        damage = [one.says() for one in verify_of(back, deep=True).damage]
        assert [one for one in damage if "search" not in one and "index" not in one] == []
        assert {row["host"] for row in rows(back / "pages")} <= {"kept.test", "third.test"}


@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.parametrize("layout", with_further(FIRST, *[(one,) for one in LAYOUTS if one != FIRST]), ids=str)
def test_no_layout_of_stores_keeps_a_byte_of_a_page(site: Site, tmp_path: Path, layout: Layout) -> None:
    """Also after a second removal, of other pages, which finds what the first has left of files and objects."""
    directory = crawl(site, tmp_path, layout)
    assert marks.found(tmp_path, MARKS)
    forget_of(directory, GONE)
    require_clean(tmp_path, layout)
    forget_of(directory, "third.test")
    require_clean(tmp_path, layout)
    forget_of(directory, GONE)
    require_clean(tmp_path, layout)
    found = rows(directory / "pages")
    assert {row["host"] for row in found} == {"kept.test"}
    archive = {"none": "crawl", "same": "elsewhere"}.get(layout.store, "archive")
    for name in {row["warc_file"] for row in found} - {None, ""}:
        assert (tmp_path / archive / "warc" / name).stat().st_size, "what kept pages need is there"


class _InterruptedError(Exception):
    """Stands for a kill between two steps."""


@pytest.mark.heavy
@pytest.mark.long
def test_a_removal_that_ended_before_its_stores_is_finished_by_the_same_command(site: Site, tmp_path: Path) -> None:
    layout = Layout("away", "there")
    directory = crawl(site, tmp_path, layout)

    def note(step: str) -> None:
        if step.startswith("replace the checkpoint"):
            raise _InterruptedError

    with pytest.raises(_InterruptedError):
        forget_of(directory, GONE, note=note)
    assert marks.found(tmp_path / "elsewhere", MARKS)
    with pytest.raises(ConfigError, match="was interrupted; `gossamer forget"):
        asyncio.run(Crawler.resume(directory).run())
    forget_of(directory, GONE)
    require_clean(tmp_path, layout)


@pytest.mark.heavy
@pytest.mark.long
def test_a_kill_while_stores_are_changed_leaves_nothing_of_a_page(site: Site, tmp_path: Path) -> None:
    layout = Layout("away", "both")
    folder, pristine = tmp_path / "crawled", tmp_path / "pristine"
    directory = crawl(site, folder, layout)
    shutil.copytree(folder, pristine)
    notes = tmp_path / "notes"
    job = {"directory": str(directory), "pattern": GONE, "notes": str(notes), "answer": str(tmp_path / "answer")}
    with forks("tests.results.forget.killing") as program:
        notes.write_text("")
        assert program(fatal=0, **job) == "done"
        begins = [int(line.split()[0]) for line in notes.read_text().splitlines() if "send the" in line]
        last = int((tmp_path / "answer").read_text())
        assert last > begins[0] + 10
        for fatal in range(begins[0] + 1, last + 1, max(1, (last - begins[0]) // KILLS)):
            shutil.rmtree(folder)
            shutil.copytree(pristine, folder)
            assert program(fatal=fatal, **job) == "killed", fatal
            assert program(fatal=0, **job) == "done", fatal
            require_clean(folder, layout)
            shutil.rmtree(folder / "back-0")
