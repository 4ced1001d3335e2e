"""What is too large for memory: written once, read many times, gone with its last holder."""

from __future__ import annotations

import gc
import hashlib
import os
from contextlib import suppress
from pathlib import Path

import pytest

from gossamer.world import spill as module
from gossamer.world.spill import Spills


@pytest.mark.parametrize("named", [False, True], ids=["O_TMPFILE", "unlinked"])
def test_it_is_read_as_often_as_wanted(tmp_path: Path, named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if named:
        monkeypatch.delattr(module.os, "O_TMPFILE")
    data = os.urandom(300_000)
    spill = Spills(tmp_path / "new", "sha256").make()
    for start in range(0, len(data), 70_000):
        spill.write(data[start : start + 70_000])
    assert list((tmp_path / "new").iterdir()) == [], "it has no name"
    assert spill.size == len(data)
    assert spill.digest == hashlib.sha256(data).digest()
    one, other = spill.open(), spill.open()
    assert one.read(1000) == data[:1000]
    assert other.read() == data
    assert one.read(10) == data[1000:1010]
    assert one.seek(-5, 2) == len(data) - 5
    assert one.read() == data[-5:]
    assert one.seek(3) == 3
    assert one.seek(4, 1) == 7
    assert (one.tell(), one.read(2)) == (7, data[7:9])


def test_the_file_goes_when_nobody_holds_it(tmp_path: Path) -> None:
    spill = Spills(tmp_path, "sha1").make()
    spill.write(b"x" * 10)
    reader = spill.open()
    del spill
    assert reader.read() == b"x" * 10, "a reader holds it"
    assert held(tmp_path)
    del reader
    gc.collect()
    assert not held(tmp_path)


def held(folder: Path) -> list[str]:
    """Return the files in a folder, removed ones too, that this process has open."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # Another thread closed it.
            links.append(str(descriptor.readlink()))
    return [link for link in links if link.startswith(str(folder))]
