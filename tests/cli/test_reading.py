"""Looking at a crawl that may not be written: somebody else's, or one on a disk that is mounted to be read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.world.process import DirectoryLock
from tests.cli.conftest import Gossamer

CAP_DAC_OVERRIDE, PR_CAPBSET_DROP = 1, 24
AS_ANYBODY = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl({PR_CAPBSET_DROP}, {CAP_DAC_OVERRIDE}, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Modes of files hold for root too, once it has let go of its right to pass them by."""
FOLDER, FILE = 0o555, 0o444


def real(directory: Path) -> Gossamer:
    run = Gossamer(directory)
    run.environment["PYTHONPATH"] = run.environment["PYTHONPATH"].partition(os.pathsep)[2]  # Without the fakes.
    return run


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A finished crawl that nobody may write."""
    page = tmp_path / "page.html"
    page.write_text("<title>Here</title>")
    status, _, err = real(tmp_path)(
        "crawl", page.as_uri(), "--allow-private", "-o", "crawl", "--quiet", "--set", "scope.schemes=['file']",
        "--set", f"fetch.file_roots=['{tmp_path}']", "--set", "search.enabled=true",
    )  # fmt: skip
    assert (status, err) == (0, "")
    for folder, _, files in os.walk(tmp_path / "crawl"):
        for file in files:
            Path(folder, file).chmod(FILE)
        Path(folder).chmod(FOLDER)
    tmp_path.chmod(FOLDER)
    return tmp_path


def as_anybody(directory: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", AS_ANYBODY, "-m", "gossamer", *arguments],
        cwd=directory, env=real(directory).environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_what_only_looks_needs_not_write(kept: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    url = (kept / "page.html").as_uri()
    status, out, err = as_anybody(kept, "status", "crawl", "--json")
    assert (status, err) == (0, "")
    assert (json.loads(out)["state"], json.loads(out)["pages"]) == ("finished", 1)
    status, out, err = as_anybody(kept, "why", "crawl", url)
    assert (status, err) == (0, "")
    assert "fetched" in out
    status, out, err = as_anybody(kept, "report", "crawl", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["fetched"] == 1
    target = tmp_path_factory.mktemp("elsewhere") / "pages.csv"
    assert as_anybody(kept, "export", "crawl", "--to", "csv", "-o", str(target), "--quiet")[0] == 0
    assert url in target.read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("resume", "crawl", "--quiet"),
        ("search", "crawl", "--build"),
        ("search", "crawl", "here"),
        ("export", "crawl", "--to", "csv", "-o", "pages.csv"),
        ("scale", "crawl", "--workers", "2"),
    ],
)
def test_what_must_write_says_in_one_line_that_it_cannot(kept: Path, arguments: tuple[str, ...]) -> None:
    status, _, err = as_anybody(kept, *arguments)
    assert status == 2
    assert err.startswith("gossamer: ")
    assert err.count("\n") == 1
    assert "Permission denied" in err or "written" in err


def test_a_lock_that_is_read_is_a_lock(kept: Path) -> None:
    path = kept / "crawl/state/lock"
    held = DirectoryLock(path, reading=True)
    assert held.acquire(0.0)
    other = DirectoryLock(path, reading=True)
    assert not other.acquire(0.0)
    held.release()
    assert other.acquire(0.0)
    other.release()
