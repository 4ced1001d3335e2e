"""Checkpoints of a crawl of one shard elsewhere, and the way back from them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer import Crawler
from gossamer.api.maintenance import verify_of
from gossamer.api.restoring import Vault, restore_of
from gossamer.api.status import status_of
from gossamer.assembly.values import Shard
from gossamer.config import Config, configure, effective_toml
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError, CrawlFailedError, StoreError
from gossamer.stages.archive.objectstore import ObjectStore
from gossamer.world.process import DirectoryLock
from tests.further import with_further
from tests.ring.crawls import OWN, Crawled
from tests.stages.archive.bucket import KEYS, NAME, Bucket

WEB = SimwebOptions.plain(seed=4, hosts=4, pages=300, bytes_median=3000)
SETS = (*OWN, "crawl.commit_s=0.05", "crawl.concurrency=2", "archive.warc_segment_bytes_max=60_000")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    with SimwebProcess(WEB, tmp_path_factory.mktemp("web")) as simweb:
        yield simweb


@pytest.fixture(params=with_further("s3", "file"))
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    """Where checkpoints go, as settings: a directory, or a bucket of a real S3 server."""
    if request.param == "file":
        yield (f"state.checkpoint_uri='file://{tmp_path}/elsewhere'",)
        return
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with Bucket() as bucket:
        yield (f"state.checkpoint_uri='s3://{NAME}/checkpoints'", bucket.sets[1])


def uri_of(place: tuple[str, ...]) -> str:
    return place[0].split("'")[1]


def config_of(web: SimwebProcess, *sets: str) -> Config:
    options = {"allow_private": True, "hosts": str(web.hosts_file), "scope": "any"}
    return configure(options=options, sets=(*SETS, *sets), seeds=web.seeds)


def crawl(web: SimwebProcess, directory: Path, *sets: str) -> Crawled:
    crawler = Crawler(output=directory, config=config_of(web, *sets))
    return Crawled(directory, end=asyncio.run(crawler.run()))


@pytest.mark.heavy
@pytest.mark.long
def test_a_machine_that_is_lost_costs_what_was_done_since_the_last_checkpoint(
    web: SimwebProcess, place: tuple[str, ...], tmp_path: Path
) -> None:
    reference = crawl(web, tmp_path / "reference")

    async def until_lost() -> int:
        pages = 0
        # A crawl is ahead of its reader by two commits at most, however slow the disk is.
        ahead = config_of(web, *place, "crawl.commit_pages=10")
        async with Crawler(output=tmp_path / "crawl", config=ahead) as crawler:
            async for _ in crawler:
                pages += 1
                if pages == 20:
                    answer = await crawler.ask({"verb": "checkpoint"})
                    assert answer["ok"], answer
                    result = answer["result"]
                    assert isinstance(result, dict)
                    assert result["uri"] == uri_of(place)
                if pages == 40:
                    crawler.stop(now=True)  # As if the machine went: no last checkpoint is made.
        return pages

    assert asyncio.run(until_lost()) >= 40
    shutil.rmtree(tmp_path / "crawl")
    said = restore_of([uri_of(place)], tmp_path / "back", place[1:])
    assert f"{tmp_path / 'back'} is restored from {uri_of(place)}: commit " in said
    assert verify_of(tmp_path / "back", deep=True).damage == ()
    restored = status_of(tmp_path / "back")
    assert 20 <= int(str(restored["pages"])) < len(reference.rows)
    resumed = Crawler.resume(tmp_path / "back")
    assert asyncio.run(resumed.run()) == "finished"
    found = Crawled(tmp_path / "back")
    assert found.outcomes == reference.outcomes
    assert len(found.rows) == len({row["url"] for row in found.rows}), "no page is archived twice"
    assert verify_of(tmp_path / "back", deep=True).damage == ()
    # What it did since is safe again, and the machine that was lost does not come back beside it.
    said = restore_of([uri_of(place)], tmp_path / "again", place[1:])
    assert Crawled(tmp_path / "again").outcomes == reference.outcomes


@pytest.mark.promise("Several shards", "A crawl goes on while the store of its checkpoints fails.")
def test_a_crawl_goes_on_while_the_store_of_its_checkpoints_refuses(
    web: SimwebProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"file://{tmp_path}/elsewhere"
    crawler = Crawler(output=tmp_path / "crawl", config=config_of(web, f"state.checkpoint_uri='{uri}'"))
    copy = ObjectStore.copy
    notes: list[str] = []
    saves: list[object] = []

    async def refuse(store: ObjectStore, source: Path | bytes, name: str, *, overwrite: bool = False) -> str:
        if len(saves) == 1:
            raise StoreError("your credentials have expired", lasting=True)
        return await copy(store, source, name, overwrite=overwrite)

    async def ask_twice() -> None:
        crawler.on_note(notes.append)
        async with crawler:
            async for _ in crawler:
                if len(saves) < 2:
                    saves.append(None)
                    answer = await crawler.ask({"verb": "checkpoint"})
                    assert answer["ok"] is (len(saves) == 2)

    monkeypatch.setattr(ObjectStore, "copy", refuse)
    asyncio.run(ask_twice())
    assert [note for note in notes if "checkpoints" in note] == [
        "checkpoints fail: your credentials have expired; the crawl goes on, and a lost machine costs more",
        "checkpoints work again",
    ]
    assert crawler.status()["state"] == "finished"
    assert f"restored from {uri}" in restore_of([uri], tmp_path / "back")


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_stop_waits_for_the_last_checkpoint_for_a_bounded_time(
    web: SimwebProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_stopped: bool
) -> None:
    """The store takes each file, but slowly: an end that was not ordered waits for it."""
    uri = f"file://{tmp_path}/elsewhere"
    sets = (f"state.checkpoint_uri='{uri}'", "archive.store_wait_s=0.3")
    crawler = Crawler(output=tmp_path / "crawl", config=config_of(web, *sets))
    save = Vault.save
    was_cut = False

    async def slow(vault: Vault, shard: Shard) -> None:
        nonlocal was_cut
        if is_stopped:
            crawler.stop()
        try:
            await asyncio.sleep(1.0 if not is_stopped else 60.0)
        except asyncio.CancelledError:
            was_cut = True
            raise
        await save(vault, shard)

    monkeypatch.setattr(Vault, "save", slow)
    if is_stopped:
        with pytest.raises(CrawlFailedError, match=r"could not be written to file:.*takes longer than 0 s; gossamer"):
            asyncio.run(crawler.run())
        monkeypatch.setattr(Vault, "save", save)
        assert asyncio.run(Crawler.resume(tmp_path / "crawl").run()) == "finished"
    else:
        assert asyncio.run(crawler.run()) == "finished"
    assert was_cut == is_stopped
    assert f"restored from {uri}" in restore_of([uri], tmp_path / "back")


def test_no_crawl_takes_the_place_of_anothers_checkpoints(web: SimwebProcess, tmp_path: Path) -> None:
    uri = f"state.checkpoint_uri='file://{tmp_path}/elsewhere'"
    assert crawl(web, tmp_path / "one", uri).end == "finished"
    listed = {path: path.read_bytes() for path in (tmp_path / "elsewhere").rglob("*.json")}
    with pytest.raises(ConfigError, match="holds checkpoints of another crawl") as refused:
        crawl(web, tmp_path / "other", uri)
    assert "gossamer restore" in str(refused.value)
    assert {path: path.read_bytes() for path in listed} == listed
    # Its own directory goes on, a copy of it that ran later shuts it out.
    assert asyncio.run(Crawler.resume(tmp_path / "one").run()) == "finished"
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    assert asyncio.run(Crawler.resume(tmp_path / "copy").run()) == "finished"
    with pytest.raises(ConfigError, match="a copy of this one that ran later"):
        asyncio.run(Crawler.resume(tmp_path / "one").run())


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_fetched(
    web: SimwebProcess, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"state\.checkpoint_uri: "):
        crawl(web, tmp_path / "crawl", f"state.checkpoint_uri='file://{tmp_path}/file/below'")
    assert not (tmp_path / "crawl/warc").exists()
    for uri in ("nobody://bucket", "s3://user:secret@bucket"):
        with pytest.raises(ConfigError, match=r"state\.checkpoint_uri: "):
            restore_of([uri], tmp_path / "restored")


@pytest.mark.heavy
def test_a_checkpoint_in_the_crawls_directory_is_restored_as_a_copy(web: SimwebProcess, tmp_path: Path) -> None:
    async def made() -> str:
        async with Crawler(output=tmp_path / "crawl", config=config_of(web)) as crawler:
            pages = 0
            async for _ in crawler:
                pages += 1
                if pages == 20:
                    answer = await crawler.ask({"verb": "checkpoint"})
                    assert isinstance(answer["result"], dict)
                    checkpoint = str(answer["result"]["checkpoint"])
        return checkpoint

    checkpoint = asyncio.run(made())
    said = restore_of([checkpoint], tmp_path / "back")
    assert said == f"{tmp_path / 'back'} is a copy of the checkpoint {checkpoint}"
    assert asyncio.run(Crawler.resume(tmp_path / "back").run()) == "finished"
    assert Crawled(tmp_path / "back").outcomes == Crawled(tmp_path / "crawl").outcomes
    assert verify_of(tmp_path / "crawl", deep=True).damage == (), "the copy shares nothing with the checkpoint"
    with pytest.raises(ConfigError, match="is not empty"):
        restore_of([checkpoint], tmp_path / "back")


def test_a_crawl_that_runs_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "crawl/state").mkdir(parents=True)
    (tmp_path / "crawl/crawl.toml").write_text("")
    lock = DirectoryLock(tmp_path / "crawl/state/lock")
    assert lock.acquire(0.0)
    with pytest.raises(ConfigError, match="is a crawl that runs, not a checkpoint"):
        restore_of([str(tmp_path / "crawl")], tmp_path / "back")
    lock.release()
    assert not (tmp_path / "back").exists()


def test_a_restored_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "checkpoint/state/store").mkdir(parents=True)
    (tmp_path / "checkpoint/crawl.toml").write_text(effective_toml(Config()))
    (tmp_path / "checkpoint/state/store/CURRENT").write_text("x")
    (tmp_path / "checkpoint/state/gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="state/gone"):
        restore_of([str(tmp_path / "checkpoint")], tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_what_is_no_checkpoint_is_reported(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(ConfigError, match="holds no checkpoint"):
        restore_of([str(tmp_path / "none")], tmp_path / "back")
    with pytest.raises(ConfigError, match="there is no checkpoint at file://"):
        restore_of([f"file://{tmp_path}/none"], tmp_path / "back")
    with pytest.raises(ConfigError, match="there is no checkpoint at file://"):
        restore_of([f"file://{tmp_path}/mis%20spelled"], tmp_path / "back")
    (tmp_path / "half").mkdir()
    (tmp_path / "half/crawl.toml").write_text(effective_toml(Config()))
    with pytest.raises(ConfigError, match=r"^these checkpoints hold no state of a crawl; name the directories"):
        restore_of([str(tmp_path / "half")], tmp_path / "back")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["half", "none"]
