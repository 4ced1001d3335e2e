"""The guard of a browser, with other processes in its place: they end with it, and not later."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gossamer.features.render import guard

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")
FAMILY = """
import os, subprocess, sys, time
from pathlib import Path
if os.fork() == 0:
    os.setsid()  # As the helpers of a browser do, which outlive it.
    time.sleep(600)
Path(sys.argv[1]).write_text(str(os.getpid()))
data = os.read(3, 5)
os.write(4, data.upper())
kept = bytearray(int(sys.argv[2]))
kept[::4096] = b"x" * len(kept[::4096])
time.sleep(float(sys.argv[3]))
"""


class Guarded:
    """A guard with a process that stands for a browser, and what it says."""

    def __init__(self, folder: Path, memory_bytes: int, *arguments: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.told = folder.with_suffix(".pid")
        theirs_in, self.send = os.pipe()
        self.receive, theirs_out = os.pipe()
        command = (str(folder), str(memory_bytes), "-1", "-1", str(theirs_in), str(theirs_out))
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, *command, sys.executable, "-c", FAMILY, str(self.told),
             *arguments, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(theirs_in, theirs_out), start_new_session=True,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)

    def family(self) -> list[int]:
        """Return all processes that have the folder in their command."""
        found = []
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                try:
                    if str(self.folder).encode() in (process / "cmdline").read_bytes().split(b"\0"):
                        found.append(int(process.name))
                except OSError:
                    continue
        return found

    def wait(self) -> int:
        return self.process.wait(timeout=60)

    def close(self) -> None:
        for descriptor in (self.send, self.receive):
            os.close(descriptor)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.wait()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Callable[..., Guarded]]:
    every: list[Guarded] = []

    def begin(memory_bytes: int = 1 << 30, held: int = 0, lasts_s: float = 600) -> Guarded:
        made = Guarded(tmp_path / "folder", memory_bytes, str(held), str(lasts_s))
        every.append(made)
        os.write(made.send, b"hello")
        assert os.read(made.receive, 5) == b"HELLO"
        return made

    yield begin
    for one in every:
        one.close()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_closed_input_ends_the_browser_with_all_its_processes(guarded: Callable[..., Guarded]) -> None:
    one = guarded()
    until(lambda: len(one.family()) == 3)
    assert one.process.stdin is not None
    one.process.stdin.close()
    assert one.wait() == 0
    assert one.family() == []
    assert not one.folder.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root has browsers run as another user")
def test_no_folder_is_left_where_only_we_may_remove_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    reads, writes = os.pipe()
    command = [sys.executable, "-I", "-S", guard.__file__, str(folder), str(1 << 30), "65534", "65534"]
    process = subprocess.Popen(
        [*command, str(reads), str(writes), "/usr/bin/env", "sh", "-c", "id -u >&4"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=(reads, writes),
    )  # fmt: skip
    try:
        assert os.read(reads, 10) == b"65534\n"
        assert process.wait(timeout=60) == 0
        assert not folder.exists()
    finally:
        process.kill()
        process.communicate()
        os.close(reads)
        os.close(writes)


def test_a_browser_that_ends_takes_its_processes_along(guarded: Callable[..., Guarded]) -> None:
    one = guarded(lasts_s=0)
    assert one.wait() == 0
    assert one.family() == []


def test_too_much_memory_ends_it_and_the_status_says_so(guarded: Callable[..., Guarded]) -> None:
    one = guarded(memory_bytes=64 << 20, held=128 << 20)
    assert one.wait() == guard.OUT_OF_MEMORY
    assert one.family() == []


def test_each_line_tells_processor_seconds_and_memory(guarded: Callable[..., Guarded]) -> None:
    one = guarded(held=32 << 20)
    assert one.process.stdout is not None
    lines = [one.process.stdout.readline().split()]
    while int(lines[-1][1]) < 32 << 20:  # It may have begun before the memory was used.
        lines.append(one.process.stdout.readline().split())
    assert float(lines[-1][0]) >= float(lines[0][0]) >= 0
    one.process.kill()  # Its browser asks the kernel to end with it.
    one.wait()
    browser = int(one.told.read_text())
    until(lambda: browser not in one.family())
    for left in one.family():
        with suppress(ProcessLookupError):  # It has just ended.
            os.kill(left, 9)
