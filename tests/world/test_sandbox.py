"""What a process that confined itself may open: each in a process of its own, for nothing gives the rights back."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gossamer.world.sandbox import landlock_version, threads

SOURCE = Path(__file__).parents[2] / "src"
HEAD = """
import errno, os, socket, sys
from pathlib import Path
from gossamer.world.sandbox import AF_UNIX, Rights, confine, confine_worker, refuse_sockets
folder = Path(sys.argv[1])

def fails(*numbers):
    class Failing:
        def __enter__(self): pass
        def __exit__(self, kind, error, trace):
            assert error is not None, "it worked"
            assert getattr(error, "errno", None) in numbers, error
            return True
    return Failing()
"""


def run(code: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code, str(folder)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert landlock_version(), "this kernel cannot show it"
    for name in ("read", "write", "scratch", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return tmp_path


def test_each_folder_has_its_rights(folder: Path) -> None:
    run(
        """
enforced = confine(Rights([*sys.path, str(folder / "read"), str(folder / "gone")], [str(folder / "write")],
    [str(folder / "scratch")]))
assert enforced[0] == "files"
assert (folder / "read/file").read_text() == "read"
with fails(errno.EACCES):
    (folder / "read/file").write_text("x")
with fails(errno.EACCES):
    (folder / "other/file").read_text()
with fails(errno.EACCES):
    os.listdir(folder)
(folder / "write/file").write_text("x")
(folder / "write/made").mkdir()
(folder / "write/file").rename(folder / "write/made/file")
os.link(folder / "write/made/file", folder / "write/linked")
(folder / "write/linked").unlink()
with fails(errno.EACCES):
    (folder / "write/way").symlink_to(folder / "other")
(folder / "scratch/way").symlink_to(folder / "other")
with fails(errno.EACCES):
    (folder / "scratch/way").rename(folder / "write/way")
with fails(errno.EACCES):
    (folder / "scratch/way/file").read_text()
with fails(errno.EACCES, errno.EXDEV):
    (folder / "other/file").rename(folder / "write/stolen")
""",
        folder,
    )


def test_a_single_file_can_be_named(folder: Path) -> None:
    run(
        """
confine(Rights([*sys.path, str(folder / "read/file")], [str(folder / "write/file")]))
assert (folder / "read/file").read_text() == "read"
(folder / "write/file").write_text("x")
with fails(errno.EACCES):
    (folder / "write/other").write_text("x")
""",
        folder,
    )


def test_a_worker_has_no_network_and_writes_only_where_it_may(folder: Path) -> None:
    run(
        """
confine_worker(str(folder / "scratch"))
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with fails(errno.EACCES):
            socket.socket(family, kind)
socket.socketpair()[0].close()
assert (folder / "other/file").read_text() == "other"
with fails(errno.EACCES):
    (folder / "other/file").write_text("x")
with fails(errno.EACCES):
    (folder / "other/file").unlink()
(folder / "scratch/file").write_text("x")
(folder / "scratch/way").symlink_to(folder / "other")
open(os.devnull, "w").close()
""",
        folder,
    )


def test_sockets_of_one_family_are_refused_in_all_threads(folder: Path) -> None:
    run(
        """
import queue, threading
wanted, found = queue.Queue(), queue.Queue()
def tries():
    wanted.get()
    try:
        found.put(socket.socket(socket.AF_UNIX))
    except OSError as error:
        found.put(error.errno)
thread = threading.Thread(target=tries)
thread.start()
assert refuse_sockets(AF_UNIX)
wanted.put(None)
assert found.get() == errno.EACCES
thread.join()
socket.socket(socket.AF_INET).close()
socket.socketpair()[0].close()
with fails(errno.EACCES):
    socket.socket(socket.AF_UNIX)
""",
        folder,
    )


def test_root_keeps_no_right_that_leads_around_it(folder: Path) -> None:
    run(
        """
confine(Rights([*sys.path, "/proc"]))
fields = dict(line.split(":\\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\\t" in line)
kept = int(fields["CapEff"], 16)
assert kept & ~0b10011101011 == 0, fields["CapEff"]
assert int(fields["CapPrm"], 16) == kept
""",
        folder,
    )


def test_threads_are_counted() -> None:
    before, gone = threads(), threading.Event()
    other = threading.Thread(target=gone.wait, args=(30.0,))
    other.start()
    assert threads() == before + 1
    gone.set()
    other.join()
