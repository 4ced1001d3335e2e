"""Files: room that is kept for what is mapped, and sockets in directories of any depth."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from gossamer.world.files import NO_ROOM, SOCKET_PATH_BYTES_MAX, reserve, socket_name, unwritable

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


@pytest.mark.parametrize("depth", [0, 12])
def test_a_socket_is_bound_and_reached_however_deep_it_lies(tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath(*["deeper and deeper"] * depth)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as door, socket.socket(socket.AF_UNIX) as line:
        with socket_name(path) as name:
            door.bind(name)
        door.listen()
        with socket_name(path) as name:
            line.connect(name)
    assert path.is_socket()


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "the disk of crawl is full (no space left on device); nothing is lost: make room there"),
        (errno.EROFS, "the disk of crawl cannot be written (read-only file system); nothing is lost: mend it"),
    ],
)
def test_a_disk_that_takes_no_more_is_named_with_the_remedy(number: int, says: str) -> None:
    assert number in NO_ROOM
    assert unwritable(OSError(number, "x"), Path("crawl")) == says


def test_where_there_is_no_directory_nobody_is_reached(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), socket_name(tmp_path / "none" / ("x" * SOCKET_PATH_BYTES_MAX)):
        pass
