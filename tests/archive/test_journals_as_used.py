"""What the archive relies on in journals when the disk is full or a segment has just been closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.state import journals as journals_module
from gossamer.state.journals import Journals
from gossamer.state.sums import Sums


def test_what_a_full_disk_refused_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals_module, "BUFFER_BYTES_MAX", 8)
    journals = Journals(tmp_path)
    journal = journals.create("warc/a")
    journal.append(b"kept")
    full = True
    write = journal._file.write

    def refuse(data: bytes | bytearray | memoryview) -> None:
        if full:
            raise OSError(28, "No space left on device")
        write(data)

    monkeypatch.setattr(journal._file, "write", refuse)
    with pytest.raises(OSError, match="No space"):
        journal.append(b"refused!")
    assert journal.length == 4
    full = False
    assert journal.append(b"again...") == 4
    journals.cut()
    assert (tmp_path / "warc/a.open").read_bytes() == b"keptagain..."


def test_a_closed_journal_is_not_among_the_open_ones(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    first, second = journals.create("warc/1"), journals.create("warc/2")
    journals.close(first)
    assert journals.opened("warc/") == [second]


def test_a_finished_file_that_was_moved_away_is_in_no_checkpoint_and_one_that_grows_is(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    journals.create("warc/growing")
    for name in ("pages/kept", "pages/moved"):
        journals.path(name).parent.mkdir(exist_ok=True)
        journals.path(name).touch()
        journals.adopt(name, Sums(0, 0))
    journals.path("pages/moved").unlink()
    assert journals.files() == ["pages/kept", "warc/growing.open"]
