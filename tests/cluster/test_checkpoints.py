"""Checkpoints: what is listed is there, what is not listed counts for nothing, and another machine goes on from it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gossamer.api import restoring
from gossamer.api.maintenance import verify_of
from gossamer.api.restoring import gather, restore_of, vault_of
from gossamer.assembly.home import Home
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import configure, effective_toml
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError, StoreError
from gossamer.model.product import FORGOTTEN
from gossamer.stages.archive.checkpoints import Checkpoints, ShardClaim, SnapshotFile
from gossamer.stages.archive.follower import Sealer
from gossamer.stages.archive.objectstore import ObjectStore
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.state.journals import ManifestEntry, Phase
from gossamer.state.sums import crc
from tests.cluster.crawls import config_of, crawl
from tests.faults.shards import Shards


def checkpoints(tmp_path: Path, shard: int = 3) -> Checkpoints:
    return Checkpoints(ArchiveOptions(), f"file://{tmp_path}/kept", shard)


def files(tmp_path: Path, **contents: str) -> list[SnapshotFile]:
    taken = []
    for name, content in contents.items():
        path = tmp_path / "here" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        taken.append(SnapshotFile(NAMES[name], path, grows=name == "open"))
    return taken


NAMES = {
    "table": "state/store/000012.sst",
    "current": "state/store/CURRENT",
    "log": "state/tables/pages-003-0001-000001.journal",
    "open": "warc/gossamer-003-0001-000002.warc.gz",
    "warc": "warc/gossamer-003-0001-000001.warc.gz",
}


def test_another_machine_finds_the_state_and_what_was_open(tmp_path: Path) -> None:
    async def run() -> None:
        first = checkpoints(tmp_path)
        assert await first.latest() is None
        taken = files(tmp_path, table="t", current="c", log="l", open="o", warc="w")
        await first.save(1, 7, 100.0, taken, [])
        second = checkpoints(tmp_path)
        saved = await second.latest()
        assert saved is not None
        assert (saved.epoch, second.has(NAMES["warc"]), second.has(NAMES["open"])) == (7, True, False)
        await second.restore(saved, tmp_path / "there", tmp_path / "there/state/shard-3", lambda _: False)

    asyncio.run(run())
    there = tmp_path / "there"
    assert (there / "state/shard-3/store/000012.sst").read_text() == "t"
    assert (there / "state/shard-3/tables/pages-003-0001-000001.journal").read_text() == "l"
    assert (there / "warc/gossamer-003-0001-000002.warc.gz.open").read_text() == "o"
    assert not (there / "warc/gossamer-003-0001-000001.warc.gz").exists()


def test_what_was_open_in_an_older_checkpoint_is_not_left_beside_the_finished_file(tmp_path: Path) -> None:
    """A crawl that was restored, and went on with its shards elsewhere."""
    uri = f"file://{tmp_path}/kept"
    config = configure(options={"contact": "a@example.org"}, sets=("cluster.workers=2", f"state.checkpoint_uri={uri}"))
    there, name = tmp_path / "there", "gossamer-003-0001-000002.warc.gz"

    async def run() -> None:
        own = checkpoints(tmp_path, shard=1)
        await own.save(1, 7, 100.0, files(tmp_path, current="c", open="o"), [])
        await gather(config, there)
        assert (there / "warc" / f"{name}.open").read_text() == "o"
        finished = SnapshotFile(f"warc/{name}", tmp_path / "here/open")
        await own.save(1, 8, 101.0, [*files(tmp_path, current="c", open="of"), finished][::2], [])
        await gather(config, there)

    asyncio.run(run())
    assert [path.name for path in (there / "warc").iterdir()] == [name]


def test_what_all_shards_share_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request of a large cluster would wait for the one before it."""
    uri = f"file://{tmp_path}/kept"
    config = configure(options={"contact": "a@example.org"}, sets=("cluster.workers=5", f"state.checkpoint_uri={uri}"))
    names = []
    read = ObjectStore.read

    async def counting(store: ObjectStore, name: str) -> bytes | None:
        names.append(name)
        return await read(store, name)

    monkeypatch.setattr(ObjectStore, "read", counting)
    assert asyncio.run(gather(config, tmp_path / "there")) == [None] * 5
    assert names.count(FORGOTTEN) == 1
    assert len(names) == 1 + 5


def test_what_did_not_change_is_not_sent_again_and_what_is_not_needed_goes(tmp_path: Path) -> None:
    async def run() -> None:
        one = checkpoints(tmp_path)
        await one.save(1, 7, 100.0, files(tmp_path, table="t", current="c", warc="w"), [])
        sent = (tmp_path / "kept/shard-3/0001/store/000012.sst").stat().st_mtime_ns
        saved = await one.save(1, 8, 101.0, files(tmp_path, table="t", current="d"), [NAMES["warc"]])
        assert (tmp_path / "kept/shard-3/0001/store/000012.sst").stat().st_mtime_ns == sent
        assert {part.name for part in saved.parts} == {NAMES["table"], NAMES["current"], NAMES["warc"]}
        assert not (tmp_path / "kept/shard-3/0001/000001/store/CURRENT").exists()
        assert (tmp_path / "kept/shard-3/0001/000002/store/CURRENT").read_text() == "d"

    asyncio.run(run())


def test_a_table_of_the_same_name_in_a_later_opening_is_another(tmp_path: Path) -> None:
    async def run() -> None:
        lost = checkpoints(tmp_path)
        await lost.save(1, 7, 100.0, files(tmp_path, current="c"), [])
        key = "shard-3/0001/store/000012.sst"
        (tmp_path / "kept/shard-3/0001/store").mkdir(exist_ok=True)
        (tmp_path / "kept" / key).write_text("of a checkpoint that never was")
        after = checkpoints(tmp_path)
        await after.latest()
        saved = await after.save(2, 8, 101.0, files(tmp_path, table="mine", current="c"), [])
        assert {part.key for part in saved.parts if part.name == NAMES["table"]} == {"shard-3/0002/store/000012.sst"}

    asyncio.run(run())


def test_what_a_lost_machine_sent_and_nobody_lists_is_removed(tmp_path: Path) -> None:
    async def run() -> int:
        one = checkpoints(tmp_path)
        await one.claim(ShardClaim(1, "here"))
        await one.save(1, 7, 100.0, files(tmp_path, current="c", warc="w"), [])
        for name in ("gossamer-003-0001-000009.warc.gz", "gossamer-013-0001-000009.warc.gz"):
            (tmp_path / "kept/warc" / name).write_text("sent, and not listed")
        after = checkpoints(tmp_path)
        await after.latest()
        return await after.sweep()

    assert asyncio.run(run()) == 1
    left = {path.name for path in (tmp_path / "kept/warc").iterdir()}
    assert left == {"gossamer-003-0001-000001.warc.gz", "gossamer-013-0001-000009.warc.gz"}
    assert (tmp_path / "kept/shard-3/claim.json").exists()


def test_a_shard_that_comes_back_to_a_machine_finds_none_of_its_former_files_there(tmp_path: Path) -> None:
    """One that grew here was finished elsewhere: here it is longer, and its shard would take it for damaged."""
    uri = f"file://{tmp_path}/kept"
    config = configure(options={"contact": "a@example.org"}, sets=("cluster.workers=2", f"state.checkpoint_uri={uri}"))
    name = "gossamer-001-0001-000002.warc.gz"
    here = tmp_path / "here"
    stale = ["warc/" + name, "pages/pages-001-0001-000001.parquet", "items/book/items.book-001-0001-000001.parquet"]
    others = ["warc/gossamer-000-0001-000001.warc.gz"]

    async def run() -> None:
        for machine in ("there", "here"):
            Home(tmp_path / machine, 1, 2).state.mkdir(parents=True)
        await vault_of(config, Home(tmp_path / "there", 1, 2), "there").open()
        own = checkpoints(tmp_path, shard=1)
        (tmp_path / "there/finished").write_bytes(b"abc")
        finished = SnapshotFile("warc/" + name, tmp_path / "there/finished")
        await own.save(1, 7, 100.0, [*files(tmp_path, current="c"), finished], [])
        await vault_of(config, Home(here, 1, 2), "here").open()

    for path in (*stale, *others):
        (here / path).parent.mkdir(parents=True, exist_ok=True)
        (here / path).write_bytes(b"abcd")
    asyncio.run(run())
    assert [path for path in (*stale, *others) if (here / path).exists()] == others
    journals = Home(here, 1, 2).journals()
    journals.recover([ManifestEntry("warc/" + name, Phase.CLOSED, 3, crc=crc(b"abc"))])
    sealing = Sealer(journals).next()
    assert sealing is not None
    assert sealing.make() == ""


@pytest.mark.parametrize("was_there", [True, False])
def test_a_shard_that_died_waits_for_a_store_that_refuses_it_where_it_was_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, was_there: bool
) -> None:
    """The crawl would end. A machine where it never was is refused at once: another one may have credentials."""
    uri = f"file://{tmp_path}/kept"
    config = configure(options={"contact": "a@example.org"}, sets=("cluster.workers=2", f"state.checkpoint_uri={uri}"))
    home = Home(tmp_path / "here", 1, 2)
    home.state.mkdir(parents=True)
    if was_there:
        home.store.mkdir()
        (home.store / "CURRENT").touch()
    read = ObjectStore.read
    refusals = 0

    async def refuse(store: ObjectStore, name: str) -> bytes | None:
        nonlocal refusals
        refusals += 1
        if refusals < 3:
            raise StoreError("your credentials have expired", refused=True)
        return await read(store, name)

    monkeypatch.setattr(ObjectStore, "read", refuse)
    monkeypatch.setattr(restoring, "RETRY_S", 0.0)
    vault = vault_of(config, home, "here")
    if was_there:
        assert asyncio.run(vault.open()) == 1
    else:
        with pytest.raises(ConfigError, match=r"state\.checkpoint_uri: your credentials have expired"):
            asyncio.run(vault.open())
        assert refusals == 1


def test_what_is_not_as_it_was_saved_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        one = checkpoints(tmp_path)
        saved = await one.save(1, 7, 100.0, files(tmp_path, table="t", current="c"), [])
        (tmp_path / "kept/shard-3/0001/store/000012.sst").write_text("x")
        with pytest.raises(StoreError, match="not what was saved"):
            await one.restore(saved, tmp_path / "there", tmp_path / "there/state", lambda _: True)
        assert not (tmp_path / "there/state/store").exists()

    asyncio.run(run())


def test_a_place_that_is_none_is_the_operators_mistake() -> None:
    with pytest.raises(ConfigError, match="no object store"):
        Checkpoints(ArchiveOptions(), "https://example.org/", 0)


@pytest.mark.promise("Several shards", "Checkpoints of all shards in the crawl's directory restore it.")
@pytest.mark.heavy
def test_checkpoints_of_all_shards_are_restored_together(tmp_path: Path) -> None:
    made: list[str] = []

    async def save(running: Shards) -> None:
        shards = [member.assembled for member in running.members.values() if member.assembled is not None]
        if not made and sum(report.pages for report in running.reports()) > 30 and len(shards) == 2:
            made.extend([str(await shard.kept.checkpoint()) for shard in shards])

    with SimwebProcess(SimwebOptions.plain(seed=7, hosts=10, pages=200), tmp_path / "web") as simweb:
        directory = tmp_path / "crawl"
        config = config_of(simweb, directory, 2)
        PartitionMap.even(2).save(directory)
        (directory / "crawl.toml").write_text(effective_toml(config))
        ends, _ = crawl(config, directory, 2, save)
        assert verify_of(directory).damage == ()
        for some in (made[:1], made[:1] * 2, [*made, made[0]]):
            with pytest.raises(ConfigError, match="name the directories that one `gossamer checkpoint` made"):
                restore_of(some, tmp_path / "back")
        restore_of(made, tmp_path / "back")
        assert verify_of(tmp_path / "back", deep=True).damage == ()
        assert PartitionMap.load(tmp_path / "back") == PartitionMap.even(2)
        again, _ = crawl(config_of(simweb, tmp_path / "back", 2), tmp_path / "back", 2)
    assert again == ends
