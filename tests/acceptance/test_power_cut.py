"""A power cut at writes and syncs of a small crawl: what was committed is there, and the crawl ends right."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.power import Cut, Series
from tests.acceptance.shims import preloaded
from tests.sampled import FIRST_STEP, STEP

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(900),
    pytest.mark.promise(
        "Crash safety", "After a crash of the process or the machine, each commit is there whole or not at all."
    ),
]

WORKERS = 2
CUTS_MIN = 250
"""So many operations the crawl has at least; fewer would mean that the shim does not see them."""
WEB = SimwebOptions.plain(hosts=1, pages=7, bytes_median=500, links_per_page=4)


@pytest.mark.parametrize(
    ("keep", "twice"),
    [
        pytest.param(0, False, id="all-dropped", marks=pytest.mark.long),
        pytest.param(500, True, id="half-kept-and-cut-again"),
    ],
)
def test_recovery_is_right_after_a_cut_at_any_operation(
    tmp_path: Path, keep: int, twice: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    with SimwebProcess(WEB, tmp_path / "web") as web:
        workers = [
            started(Series(str(tmp_path), web.seeds, str(web.hosts_file), first, WORKERS * STEP, keep, twice))
            for first in range(FIRST_STEP + 1, FIRST_STEP + 1 + WORKERS * STEP, STEP)
        ]
        cuts = [cut for worker in workers for cut in finished(worker)]
    died = sorted(cut.n for cut in cuts if cut.died)
    with capsys.disabled():
        print(
            f"\npower cuts: {len(died)} of {len(cuts)}, a second one in the recovery of "
            f"{sum(cut.died_again for cut in cuts)}, {time.monotonic() - began:.0f} s"
        )
    assert [cut for cut in cuts if cut.faults] == []
    wanted = list(range(FIRST_STEP + 1, CUTS_MIN + 1, STEP))
    assert died[: len(wanted)] == wanted


def test_what_was_not_synced_is_dropped(tmp_path: Path) -> None:
    """The shim itself: kept are synced bytes, bytes of an earlier life, and nothing else."""
    (tmp_path / "old").write_bytes(b"1234")
    code = """
import ctypes, os, sys
ctypes.CDLL(None).shim_arm(ctypes.c_long(8), sys.argv[1].encode(), ctypes.c_long(0))
new, old = (os.open(os.path.join(sys.argv[1], name), os.O_RDWR | os.O_CREAT) for name in ("new", "old"))
os.posix_fallocate(new, 0, 100)
os.write(new, b"12"); os.fsync(new); os.write(new, b"34"); os.pwrite(old, b"5678", 4); os.fdatasync(old)
os.rename(os.path.join(sys.argv[1], "new"), os.path.join(sys.argv[1], "named"))
os.write(old, b"x")
os.write(old, b"never")
"""
    died = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=preloaded())
    assert died.returncode == -9
    assert (tmp_path / "named").read_bytes() == b"12"
    assert (tmp_path / "old").read_bytes() == b"x2345678"


def started(series: Series) -> subprocess.Popen[bytes]:
    """Start a worker on its share of the operations."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.acceptance.power"], env=preloaded(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdin is not None
    worker.stdin.write(msgspec.json.encode(series))
    worker.stdin.close()
    return worker


def finished(worker: subprocess.Popen[bytes]) -> list[Cut]:
    """Return what a worker saw."""
    assert worker.stdout is not None
    with worker.stdout as lines:
        cuts = [msgspec.json.decode(line, type=Cut) for line in lines]
    assert worker.wait(60) == os.EX_OK
    return cuts
