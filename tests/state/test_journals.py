"""Journals: what a start makes of the files that the manifest names, and of those that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.state.journals import Journals, ManifestEntry, Phase, lacking
from gossamer.world.files import GoneError

PHASES = {phase.name.lower(): phase for phase in Phase}


def manifest() -> list[ManifestEntry]:
    return [ManifestEntry(f"warc/{name}", phase, 4) for name, phase in PHASES.items()]


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / "warc").iterdir()}


def test_a_start_cuts_renames_and_removes_what_the_manifest_says_and_keeps_all_else(tmp_path: Path) -> None:
    (tmp_path / "warc").mkdir()
    for name, phase in PHASES.items():
        working = ".open" if phase <= Phase.CLOSED else ""
        (tmp_path / f"warc/{name}{working}").write_bytes(b"1234 lost")
    for name in ("stray.open", "stray"):
        (tmp_path / "warc" / name).write_bytes(b"")
    journals = Journals(tmp_path)
    journals.recover(manifest(), owned=["warc"])
    assert files_of(tmp_path) == {
        "open.open": b"1234",
        "closed": b"1234",
        "final": b"1234 lost",
        "uploaded": b"1234 lost",
        "stray": b"",
    }
    phases = {entry.name.removeprefix("warc/"): entry.phase for entry in journals.cut()}
    assert phases == PHASES | {"closed": Phase.FINAL}
    journals.close_files()


def test_without_a_directory_of_its_own_a_start_removes_no_file_that_it_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "warc").mkdir()
    (tmp_path / "warc/stray.open").write_bytes(b"")
    Journals(tmp_path).recover([])
    assert files_of(tmp_path) == {"stray.open": b""}


def test_what_is_missing_is_named_as_it_should_be_found(tmp_path: Path) -> None:
    missing = {entry.name: path.name for entry, path, what in lacking(manifest(), lambda name: tmp_path / name)}
    assert missing == {
        "warc/open": "open.open",
        "warc/closed": "closed.open",
        "warc/final": "final",
        "warc/uploaded": "uploaded",
    }


def test_a_directory_that_is_moved_meanwhile_is_named_by_the_commit(tmp_path: Path) -> None:
    (tmp_path / "warc").mkdir()
    (tmp_path / "warc/one.open").write_bytes(b"1234")
    journals = Journals(tmp_path)
    journals.recover([ManifestEntry("warc/one", Phase.CLOSED, 4)], owned=["warc"])
    (tmp_path / "warc").rename(tmp_path / "elsewhere")
    with pytest.raises(GoneError, match="warc is gone"):
        journals.sync()


def test_closing_in_a_directory_that_was_moved_adds_no_other_error(tmp_path: Path) -> None:
    (tmp_path / "warc").mkdir()
    (tmp_path / "warc/one.open").write_bytes(b"1234")
    journals = Journals(tmp_path)
    journals.recover([ManifestEntry("warc/one", Phase.CLOSED, 4)], owned=["warc"])
    (tmp_path / "warc").rename(tmp_path / "elsewhere")
    journals.close_files()
    assert (tmp_path / "elsewhere/one").read_bytes() == b"1234"
