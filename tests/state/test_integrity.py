"""Checksums of journals, a store whose blocks or log were damaged, and contacts that are not what was written."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from zlib import crc32

import pytest

from gossamer.state import contacts as contacts_module
from gossamer.state.contacts import Contacts, Delay
from gossamer.state.journals import Journals, ManifestEntry, Phase, differs, lacking
from gossamer.state.redo import DamagedStoreError
from gossamer.state.schema import FAMILIES
from gossamer.state.store import Store
from gossamer.state.sums import Sums, crc_of, sums_of
from gossamer.world.files import GoneError

BOOT, NOW = b"b" * 16, 1_000_000.0


def committed(journals: Journals) -> list[ManifestEntry]:
    manifest = journals.cut()
    journals.sync()
    journals.settle(manifest)
    return manifest


def test_the_manifest_has_the_checksum_of_what_was_written(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    journal = journals.create("warc/one")
    journal.append(b"first")
    [entry] = committed(journals)
    assert (entry.length, entry.crc) == (5, crc32(b"first"))
    journal.append(b"x" * 3_000_000)  # Written before the commit, in part.
    journal.append(b"last")
    [entry] = committed(journals)
    assert entry.crc == crc32(b"first" + b"x" * 3_000_000 + b"last")
    journals.close(journal)
    [entry] = committed(journals)
    assert entry.phase == Phase.CLOSED
    assert not differs(entry, journals.path("warc/one"))
    journals.close_files()


@pytest.mark.parametrize("moved", [True, False])
def test_a_file_that_is_moved_or_removed_while_it_is_written_fails_the_commit(tmp_path: Path, *, moved: bool) -> None:
    journals = Journals(tmp_path)
    journal = journals.create("warc/one")
    committed(journals)
    journal.append(b"lost without a word")
    file = tmp_path / "warc" / "one.open"
    if moved:
        file.parent.rename(tmp_path / "elsewhere")
    else:
        file.unlink()
    journals.cut()
    with pytest.raises(GoneError, match=r"one\.open is gone"):
        journals.sync()
    journals.close_files()


def test_the_checksum_goes_on_after_a_restart_and_after_a_rewind(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    journal = journals.create("warc/one")
    journal.append(b"kept")
    manifest = committed(journals)
    journal.append(b"lost with the process")
    journal.flush()
    journals.close_files()
    again = Journals(tmp_path)
    again.recover(manifest)
    [journal] = again.open_journals("warc/")
    journal.append(b" and half")
    at = journal.length
    journal.append(b"y" * 2_000_000)
    journal.rewind(at)
    journal.append(b" whole")
    [entry] = committed(again)
    again.close_files()
    assert (tmp_path / "warc/one.open").read_bytes() == b"kept and half whole"
    assert entry.crc == crc32(b"kept and half whole")


@pytest.mark.promise(
    "Crash safety", "`gossamer verify` finds and names every missing or changed file of the last commit."
)
def test_files_that_are_missing_cut_or_longer_are_reported(tmp_path: Path) -> None:
    names = {"sound": b"1234", "missing": None, "cut": b"12", "longer": b"123456"}
    for name, data in names.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
    (tmp_path / "growing.open").write_bytes(b"123456")
    manifest = [ManifestEntry(name, Phase.FINAL, 4) for name in names]
    manifest += [
        ManifestEntry("growing", Phase.OPEN, 4),
        ManifestEntry("elsewhere", Phase.AWAY, 4),
        ManifestEntry("closed", Phase.CLOSED, 4),
    ]
    found = {entry.name: what for entry, _, what in lacking(manifest, lambda name: tmp_path / name)}
    assert found == {
        "missing": "is missing",
        "cut": "has 2 bytes, 4 were written",
        "longer": "has 6 bytes, 4 were written",
        "closed": "is missing",
    }


def test_sums_are_those_of_a_file_or_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"ab" * 1_000_000)
    assert sums_of(path, 4) == Sums(4, crc32(b"abab"), hashlib.sha256(b"abab").hexdigest())
    assert crc_of(path) == crc32(b"ab" * 1_000_000)
    with pytest.raises(OSError, match="ends 1 bytes early"):
        crc_of(path, 2_000_001)


def filled(path: Path) -> None:
    store = Store(path, 1 << 20, 1 << 20)
    for epoch in range(1, 6):
        store.commit(epoch, [], {3: {bytes(2) + os.urandom(8): os.urandom(200) for _ in range(2_000)}})
        store.apply(epoch)
    store.close()
    Store(path, 1 << 20, 1 << 20).close()  # What the log held becomes tables.


def flip(path: Path, share: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 4
    path.write_bytes(data)


def test_a_block_that_cannot_be_read_does_not_look_like_the_end(tmp_path: Path) -> None:
    filled(tmp_path / "store")
    flip(max((tmp_path / "store").glob("*.sst"), key=lambda path: path.stat().st_size))
    store = Store(tmp_path / "store", 1 << 20, 1 << 20)
    with pytest.raises(DamagedStoreError, match="cannot read the store: Corruption"):
        list(store.scan(FAMILIES[3], bytes(2), b"\xff" * 4))
    with pytest.raises(DamagedStoreError):
        store.check()
    store.close()


def test_a_sound_store_is_read_whole(tmp_path: Path) -> None:
    filled(tmp_path / "store")
    store = Store(tmp_path / "store", 1 << 20, 1 << 20, writable=False, strict=True)
    assert store.check() == 10_002
    store.close()


def test_contacts_that_were_damaged_have_everything_wait(tmp_path: Path) -> None:
    contacts = Contacts(tmp_path, BOOT, NOW)
    ticket = contacts.begin(7, 8, NOW, Delay(1.0, 1.0, 5.0))
    contacts.end(ticket, 7, 8, NOW + 30.0, NOW + 10.0, NOW)
    contacts.begin(9, 10, NOW, Delay(1.0, 1.0, 5.0))
    contacts.close()
    path = tmp_path / contacts_module.FILE
    sound = path.read_bytes()
    assert contacts_module.faults(sound) == []
    for at in (0, 20, contacts_module._UNDER_WAY_AT + 3, contacts_module._ENDED_AT + 17, len(sound) // 2):
        data = bytearray(sound)
        data[at] ^= 1
        path.write_bytes(data)
        assert contacts_module.faults(data) == [at // contacts_module.SLOT_BYTES * contacts_module.SLOT_BYTES]
        again = Contacts(tmp_path, BOOT, NOW + 1.0)
        assert again.recovered.damaged == 1
        assert again.recovered.unknown_at == NOW + 1.0
        again.close()
    path.write_bytes(sound)
    again = Contacts(tmp_path, BOOT, NOW + 1.0)
    assert (again.recovered.damaged, again.recovered.unknown_at) == (0, 0.0)
    assert set(again.recovered.hosts) == {7, 9}
    again.close()
