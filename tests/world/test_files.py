"""Files: room that is kept for what is mapped."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.world.files import reserve

SIZE_BYTES = 1 << 20


def reserved(path: Path) -> Path:
    with path.open("wb") as file:
        reserve(file.fileno(), SIZE_BYTES)
        file.write(b"head")
    return path


def test_room_is_kept_and_is_zeros(tmp_path: Path) -> None:
    path = reserved(tmp_path / "file")
    assert path.stat().st_blocks * 512 >= SIZE_BYTES
    assert path.read_bytes() == b"head".ljust(SIZE_BYTES, b"\0")


def test_where_the_system_cannot_reserve_zeros_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.posix_fallocate")
    path = reserved(tmp_path / "file")
    assert path.read_bytes() == b"head".ljust(SIZE_BYTES, b"\0")
