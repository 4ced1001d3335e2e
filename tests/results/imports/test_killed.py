"""Imports that are killed at any moment give the same tables once they are repeated."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import run
from tests.results.imports.archives import do_import, rows, site, write_warc

KILLS = 20
COMMITS_OFTEN = ("--set", "crawl.commit_s=0.02")


START = """
import sys
from gossamer.results.imports import ahead, importing
importing.AHEAD_BYTES_MIN = 0
ahead.STRETCH_RECORDS = 20
from gossamer.cli.main import status_of_command
sys.exit(status_of_command(sys.argv[1:]))
"""
"""A start of the command with which small archives are read ahead, too."""


@pytest.mark.heavy
@pytest.mark.timeout(600)  # Forty starts of processes, on a machine that may be busy.
@pytest.mark.parametrize("start", [("-m", "gossamer"), ("-c", START)], ids=["one process", "several"])
def test_kills_leave_the_same_tables(tmp_path: Path, start: tuple[str, str]) -> None:
    records = site(1_200)
    archives = [write_warc(tmp_path / f"{part}.warc.gz", records[part * 400 : part * 400 + 400]) for part in range(3)]
    command = [sys.executable, *start, "import", *map(str, archives), *COMMITS_OFTEN, "-o"]
    whole = tmp_path / "whole"
    began = time.monotonic()
    subprocess.run([*command, whole], check=True, capture_output=True)
    took_s = time.monotonic() - began
    killed = tmp_path / "killed"
    kills = 0
    while kills < KILLS:
        process = subprocess.Popen([*command, killed], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:  # From the start of the interpreter to the time at which files are finished.
            process.wait(took_s * (kills + 0.5) / KILLS)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
        else:
            assert process.returncode == 0
            require_same(killed, whole)
            shutil.rmtree(killed)
            took_s *= 0.9  # The part that earlier runs had left took less.
    do_import(killed, *archives, *COMMITS_OFTEN)
    require_same(killed, whole)


def require_same(killed: Path, whole: Path) -> None:
    """Require the tables of an undisturbed import."""
    for table, columns in (("pages", "*"), ("links", "*")):
        assert rows(killed, columns, table) == rows(whole, columns, table)
    assert run("verify", str(killed), "--deep")[0] == 0
