"""Inputs: what is no file, what has no end, and pipes."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from gossamer.config.gather import configure, mistakes
from gossamer.config.lists import hosts_of, patterns_of, read_forgotten, read_text, whitelist_of
from gossamer.config.seeds import domain_seeds, file_seeds, local_names
from gossamer.features.identity.keys import read_keys
from gossamer.features.requests import read_requests
from gossamer.model.errors import ConfigError
from gossamer.stages.fetch.credentials import reveal
from gossamer.stages.resolve.answers import HostsFile
from gossamer.world import inputs
from gossamer.world.inputs import input_lines, open_input, read_input

READERS: dict[str, Callable[[Path], object]] = {
    "seeds": lambda path: list(file_seeds(path, ("http",))),
    "domains": lambda path: list(domain_seeds(path)),
    "requests": lambda path: list(read_requests(path)),
    "patterns": patterns_of,
    "excluded hosts": hosts_of,
    "whitelist": whitelist_of,
    "forgotten": read_forgotten,
    "hosts": lambda path: HostsFile(str(path)),
    "private hosts": local_names,
    "configuration": configure,
    "check": mistakes,
    "cookies": read_text,
    "secret": lambda path: reveal(f"file:{path}", "websub.secret"),
    "keys": read_keys,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["pipe", "device", "directory"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / "input"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(ConfigError, match="input"):
        READERS[name](path)


@pytest.mark.parametrize("name", ["seeds", "domains", "requests", "patterns", "excluded hosts", "whitelist"])
def test_a_line_without_end_is_read_only_to_its_bound(tmp_path: Path, name: str) -> None:
    path = tmp_path / "input"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # A terabyte of zeros, which take no room on the disk.
    with pytest.raises(ConfigError, match=r"line 1\b.*longer than"):
        READERS[name](path)


@pytest.mark.parametrize("name", ["configuration", "hosts", "private hosts", "cookies", "keys", "forgotten"])
def test_a_file_without_end_is_read_only_to_its_bound(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "input"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="more than"):
        READERS[name](path)


def test_an_empty_device_is_an_empty_file() -> None:
    assert read_input(Path(os.devnull)) == b""


def test_a_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"12345")
    assert read_input(path, 5) == b"12345"
    with pytest.raises(OSError, match="more than") as error:
        read_input(path, 4)
    assert error.value.errno == errno.EFBIG


def test_lines_have_their_breaks() -> None:
    assert list(input_lines(BytesIO(b"a\n\nbcd"), 3)) == [b"a\n", b"\n", b"bcd"]
    with pytest.raises(OSError, match="line 2 is longer than 3 bytes"):
        list(input_lines(BytesIO(b"a\nbcde"), 3))


def test_a_pipe_is_read_to_its_end_where_it_is_permitted(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"http://a.example/\n" * 10_000,))
    writer.start()
    with open_input(path, pipes=True) as file:
        assert file.read() == b"http://a.example/\n" * 10_000
    writer.join()


def test_a_pipe_that_nothing_writes_to_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "WRITER_S_MAX", 0.0)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with open_input(path, pipes=True) as file, pytest.raises(OSError, match="no program writes to this pipe"):
        file.read()
