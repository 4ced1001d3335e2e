"""Sockets in directories of any depth."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gossamer.world.sockets import PATH_BYTES_MAX, fits, reachable


@pytest.mark.parametrize("depth", [0, 12])
def test_a_socket_is_bound_and_reached_however_deep_it_lies(tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath(*["deeper and deeper"] * depth)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "s"
    assert fits(path) == (len(str(path)) <= PATH_BYTES_MAX)
    with socket.socket(socket.AF_UNIX) as door, socket.socket(socket.AF_UNIX) as line:
        with reachable(path) as name:
            door.bind(name)
        door.listen()
        with reachable(path) as name:
            line.connect(name)
    assert path.is_socket()


def test_where_there_is_no_directory_nobody_is_reached(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), reachable(tmp_path / "none" / ("x" * PATH_BYTES_MAX)):
        pass
