"""Checkpoints that an attacker prepared: nothing is written outside the new directory."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from gossamer.api import verify_of
from gossamer.api.restoring import restore_of
from gossamer.assembly.home import Home
from gossamer.assembly.integrity import open_store
from gossamer.config import configure, effective_toml
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.results.export.bodies import ArchivedPage, RecordBodies, RecordPlace
from gossamer.state.journals import ManifestEntry, Phase
from gossamer.state.schema import FAMILIES, MANIFEST
from tests.model.test_paths import OUTSIDE

DATA = b"written by a stranger\n"


def store_with(folder: Path, *names: str, key: str = "shard-0/evil") -> str:
    """Write a store of checkpoints whose newest lists files of these names; return its URI."""
    (folder / "shard-0").mkdir(parents=True)
    (folder / "shard-0/evil").write_bytes(DATA)
    (folder / "crawl.toml").write_text(effective_toml(configure(seeds=("http://a.example/",))))
    digest = hashlib.sha256(DATA).hexdigest()
    parts = [{"name": name, "key": key, "length": len(DATA), "sha256": digest, "grows": False} for name in names]
    saved = {"opening": 1, "number": 1, "epoch": 1, "at": 0.0, "parts": parts}
    (folder / "shard-0/latest.json").write_text(json.dumps(saved))
    return folder.as_uri()


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [*(one for one in OUTSIDE if "\udc80" not in one), "crawl.toml", "logs/x", ".hid/x"])
def test_a_checkpoint_with_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    uri = store_with(tmp_path / "store", "warc/1", name)
    before = files(tmp_path)
    with pytest.raises(ConfigError, match=r"latest\.json lists a file .*: no crawl wrote this"):
        restore_of([uri], tmp_path / "a/b/back")
    assert files(tmp_path) == before


@pytest.mark.parametrize(("first", "then"), [("warc/1", "warc/1"), ("warc/a", "warc/A"), ("warc/é", "warc/e\u0301")])
def test_a_checkpoint_that_names_a_file_twice_is_refused(tmp_path: Path, first: str, then: str) -> None:
    with pytest.raises(ConfigError, match="twice: no crawl wrote this"):
        restore_of([store_with(tmp_path / "store", first, then)], tmp_path / "back")
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("key", ["../store/shard-0/evil", "/etc/passwd", ""])
def test_an_object_with_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match="no crawl wrote this"):
        restore_of([store_with(tmp_path / "store", "warc/1", key=key)], tmp_path / "back")


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff\xfe", b'{"opening": "x"}'])
def test_a_list_of_files_that_cannot_be_read_is_one_line(tmp_path: Path, text: bytes) -> None:
    uri = store_with(tmp_path / "store", "warc/1")
    (tmp_path / "store/shard-0/latest.json").write_bytes(text)
    with pytest.raises(ConfigError, match=r"latest.json cannot be read \("):
        restore_of([uri], tmp_path / "back")


@pytest.mark.parametrize("text", ["", "# a comment\n", "[seeds]\nurls = []\n"])
def test_a_configuration_that_was_emptied_in_the_store_is_refused(tmp_path: Path, text: str) -> None:
    uri = store_with(tmp_path / "store", "warc/1")
    (tmp_path / "store/crawl.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"crawl\.toml (is empty|ends early)"):
        restore_of([uri], tmp_path / "back")
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("links", [{"a": ".", "b": "."}, {"a": "../other"}, {"x": "warc", "y": "warc"}])
def test_links_of_a_copied_checkpoint_lead_to_no_folder_twice(tmp_path: Path, links: dict[str, str]) -> None:
    source = tmp_path / "checkpoint"
    with closing(open_store(configure(), Home(source))):
        pass
    (source / "warc").mkdir()
    (source / "warc/1").write_bytes(DATA)
    (source / "crawl.toml").write_text(effective_toml(configure(seeds=("http://a.example/",))))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/back").symlink_to("../checkpoint")
    for name, target in links.items():
        (source / name).symlink_to(target)
    with pytest.raises(ConfigError, match="which is copied already: remove it"):
        restore_of([str(source)], tmp_path / "back")
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("phase", list(Phase))
def test_a_state_whose_manifest_names_files_elsewhere_is_refused(tmp_path: Path, phase: Phase) -> None:
    """To cut, rename or remove them is what a start does with files of its manifest."""
    outside, crawl = tmp_path / "outside", tmp_path / "crawl"
    outside.write_bytes(DATA)
    (tmp_path / "outside.open").write_bytes(DATA)
    with closing(open_store(configure(), Home(crawl))) as store:
        entries = [ManifestEntry("warc/../../outside", phase, 1)]
        store.commit(store.epoch + 1, [], {FAMILIES.index("meta"): {MANIFEST: msgspec.msgpack.encode(entries)}})
        store.apply(store.epoch)
    (crawl / "crawl.toml").write_text(effective_toml(configure(seeds=("http://a.example/",))))
    with pytest.raises(DamagedError, match="outside the crawl's folders: no crawl wrote this state"):
        verify_of(crawl)
    assert outside.read_bytes() == DATA
    assert (tmp_path / "outside.open").read_bytes() == DATA


@pytest.mark.parametrize("name", ["../outside.warc", "/etc/hostname", "..", "a/b.warc", "a\0b", ""])
def test_a_row_that_names_a_file_elsewhere_is_not_read(tmp_path: Path, name: str) -> None:
    with RecordBodies(tmp_path, lambda _: pytest.fail("it was read")) as bodies, pytest.raises(DamagedError):
        bodies.page(ArchivedPage(RecordPlace(name, 0, 1), None, "http://a.example/"))
