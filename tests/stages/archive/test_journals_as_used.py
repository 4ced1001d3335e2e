"""What the archive relies on in journals when the disk is full or a segment has just been closed."""

from __future__ import annotations

import resource
import signal
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


def test_a_write_that_ends_half_way_leaves_no_part_of_itself(tmp_path: Path) -> None:
    """The system refuses what is beyond the largest file that it allows: the beginning of a write is done before."""
    journals = Journals(tmp_path)
    journal = journals.create("warc/a")
    journal.append(b"kept")
    journal.flush()
    journal.append(b"half of this")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            journal.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (tmp_path / "warc/a.open").read_bytes() == b"kept"
    journals.cut()
    assert (tmp_path / "warc/a.open").read_bytes() == b"kepthalf of this"


def test_a_file_that_was_dropped_after_the_cut_stays_until_the_next_commit(tmp_path: Path) -> None:
    """A crash before that finds it in the manifest."""
    journals = Journals(tmp_path)
    journals.path("pages/1").parent.mkdir()
    journals.path("pages/1").touch()
    journals.adopt("pages/1", Sums(0, 0))
    committed = journals.cut()
    journals.drop("pages/1")
    journals.settle(committed)
    assert journals.path("pages/1").exists()
    journals.settle(journals.cut())
    assert not journals.path("pages/1").exists()


def test_a_closed_journal_is_not_among_the_open_ones(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    first, second = journals.create("warc/1"), journals.create("warc/2")
    journals.close(first)
    assert journals.open_journals("warc/") == [second]


def test_a_finished_file_that_was_moved_away_is_in_no_checkpoint_and_one_that_grows_is(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    journals.create("warc/growing")
    for name in ("pages/kept", "pages/moved"):
        journals.path(name).parent.mkdir(exist_ok=True)
        journals.path(name).touch()
        journals.adopt(name, Sums(0, 0))
    journals.path("pages/moved").unlink()
    assert journals.files(journals.cut()) == ["pages/kept", "warc/growing.open"]
