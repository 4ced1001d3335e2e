"""The modelled disk: its store does as RocksDB does, and its files survive what those of a real disk survive."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gossamer.state.journals import Journals
from gossamer.state.redo import Range, Redo
from gossamer.state.schema import FAMILIES
from gossamer.state.store import Store
from gossamer.world import files
from gossamer.world.dice import Dice
from tests.faults.disk import ModelDisk, ModelStore, Platter

KEYS = [partition.to_bytes(2) + bytes((letter,)) for partition in (0, 1, 300) for letter in b"abc"]
BOUNDS = sorted([*KEYS, b"\0\0", b"\0\1", b"\xff\xff"])
Epoch = tuple[dict[int, dict[bytes, bytes | None]], list[Range], bool]
families = st.sampled_from([0, 1, FAMILIES.index("ready"), FAMILIES.index("meta")])
changes = st.dictionaries(
    families, st.dictionaries(st.sampled_from(KEYS), st.none() | st.binary(max_size=3), max_size=6)
)
bounds = st.tuples(st.sampled_from(BOUNDS), st.sampled_from(BOUNDS)).map(sorted)
ranges = st.lists(st.builds(lambda family, pair: (family, *pair), families, bounds), max_size=2)
epochs: st.SearchStrategy[list[Epoch]] = st.lists(st.tuples(changes, ranges, st.booleans()), min_size=1, max_size=5)


def content(store: Redo) -> dict[tuple[str, bytes], bytes]:
    """All that a store holds, its own notes too."""
    return {(family, key): value for family in FAMILIES for key, value in store.scan(family, b"", b"\xff" * 9)}


def modelled(platter: Platter) -> ModelStore:
    return ModelStore(Path(), platter, lambda _call: None, fresh=False)


def written(store: Redo, epoch: Epoch) -> None:
    changed, cleared, is_applied = epoch
    store.commit(store.epoch + 1, cleared, changed)
    if is_applied:
        store.apply(store.epoch)


@settings(max_examples=10, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(epochs=epochs)
def test_the_model_answers_as_rocksdb_does_and_keeps_the_same_over_a_death(epochs: list[Epoch]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place, platter = Path(folder, "0"), Platter()
        real = Store(place, 1 << 20, 1 << 20)
        model = modelled(platter)
        for number, epoch in enumerate(epochs, 1):
            written(real, epoch)
            written(model, epoch)
            assert content(model) == content(real)
            assert model.get_many("queue", KEYS) == real.get_many("queue", KEYS)
            assert [model.get("ready", key) for key in KEYS] == [real.get("ready", key) for key in KEYS]
            if not epoch[2]:  # A kill between a commit and its applying: the next opening applies it.
                place = Path(shutil.copytree(place, Path(folder, str(number))))
                real.close()
                real, platter = Store(place, 1 << 20, 1 << 20), platter.copy()
                model = modelled(platter)
                assert (model.epoch, content(model)) == (real.epoch, content(real))
        real.close()


@pytest.mark.heavy
@settings(max_examples=6, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(first=changes, second=changes)
@pytest.mark.long
def test_after_a_power_cut_rocksdb_is_in_a_state_that_the_model_knows(
    first: dict[int, dict[bytes, bytes | None]], second: dict[int, dict[bytes, bytes | None]]
) -> None:
    """A power cut keeps a first part of RocksDB's log: all that was synced, and some of the writes since."""
    with tempfile.TemporaryDirectory() as folder:
        real, platter = Store(Path(folder, "store"), 1 << 20, 1 << 20), Platter()
        model = modelled(platter)
        for store in (real, model):
            store.commit(1, [], first)
        log = max(Path(folder, "store").glob("*.log"))
        synced_bytes = log.stat().st_size
        for store in (real, model):
            store.apply(1)
            store._write_meta({b"\xff\xffhalf": b"of the next"})
        states = []
        for seed in range(30):
            after = modelled(platter.cut(Dice(seed)))
            states.append((after.epoch, content(after)))
        for length in range(synced_bytes, log.stat().st_size + 1, 7):
            copy = Path(folder, str(length))
            shutil.copytree(log.parent, copy)
            os.truncate(copy / log.name, length)
            cut = Store(copy, 1 << 20, 1 << 20)
            assert (cut.epoch, content(cut)) in states
            cut.close()
        real.close()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelDisk:
    (tmp_path / "life-0").mkdir()
    disk = ModelDisk(tmp_path / "life-0", Dice(1), lambda: None, lambda _call: 0)
    monkeypatch.setattr(files, "os", disk)
    return disk


def cuts(disk: ModelDisk) -> list[dict[str, bytes]]:
    """What is left by many power cuts, each on its own."""
    found = []
    for number in range(40):
        root = disk.root.with_name(f"cut-{number}")
        disk.cut(root).let_go()
        found.append({str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()})
    return found


def test_what_was_synced_survives_and_what_was_not_may(disk: ModelDisk) -> None:
    file = files.AppendFile(disk.root / "one")
    file.write(b"synced")
    file.sync()
    files.sync_directory(disk.root)
    file.write(b", and more")
    left = cuts(disk)
    assert {one["one"][:6] for one in left} == {b"synced"}
    assert {b"synced", b"synced, and more", b"synced" + bytes(10)} < {one["one"] for one in left}
    file.close()
    disk.let_go()


def test_a_name_that_was_not_synced_may_be_missing_and_one_that_was_deleted_be_back(disk: ModelDisk) -> None:
    files.write_whole(disk.root / "old", b"old")
    (disk.root / "old").unlink()
    (disk.root / "new").write_bytes(b"new")
    left = cuts(disk)
    assert {"old"} in [set(one) for one in left]
    assert {"new"} in [set(one) for one in left]
    assert {one["old"] for one in left if "old" in one} == {b"old"}
    assert b"" in {one.get("new") for one in left}
    disk.let_go()


def test_a_directory_made_durable_is_there_with_those_above_it(disk: ModelDisk) -> None:
    files.make_directory(disk.root / "a/b")
    files.write_whole(disk.root / "a/b/file", b"x")
    assert all(one == {"a/b/file": b"x"} for one in cuts(disk))
    disk.let_go()


def test_a_killed_process_leaves_what_it_wrote_and_the_next_power_cut_takes_what_nobody_synced(disk: ModelDisk) -> None:
    (disk.root / "file").write_bytes(b"written")
    killed = disk.copy_after_kill(disk.root.with_name("life-1"))
    assert (killed.root / "file").read_bytes() == b"written"
    left = cuts(killed)
    assert {} in left
    assert {"file": b"written"} in left
    killed.let_go()
    disk.let_go()


def test_a_refused_write_leaves_a_part_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "life-0").mkdir()
    disk = ModelDisk(tmp_path / "life-0", Dice(3), lambda: None, lambda call: 28 if call == "write" else 0)
    monkeypatch.setattr(files, "os", disk)
    file = files.AppendFile(disk.root / "one")
    with pytest.raises(OSError, match="No space left"):
        file.write(b"12345678")
    assert b"12345678".startswith((disk.root / "one").read_bytes())
    file.close()
    disk.let_go()


def test_files_in_a_directory_that_a_killed_process_made_survive_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process was killed before it synced the name of the directory. Found by trial 9400110 of several shards."""
    for seed in range(8):
        disk = ModelDisk(tmp_path / f"{seed}", Dice(seed), lambda: None, lambda _call: 0)
        monkeypatch.setattr(files, "os", disk)
        (disk.root / "warc").mkdir(parents=True)
        journals = Journals(disk.root)
        journals.create("warc/a").append(b"committed")
        journals.cut()
        journals.sync()
        after = disk.cut(tmp_path / f"{seed}-after")
        assert (after.root / "warc/a.open").read_bytes() == b"committed"
        journals.close_files()
        after.let_go()
        disk.let_go()
