"""Imports that are killed at any moment give the same tables once they are repeated."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import run
from tests.crash.forks import Forks, forks
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
PROCESS_ONE_IN = 5
"""Number of kills of the command as users start it; the others are of forks, which import no modules."""
BY_TIMER = f"failed {int(signal.SIGPROF)}"


@pytest.fixture(scope="module")
def fork() -> Iterator[Forks]:
    with forks("tests.results.imports.killing") as program:
        yield program


@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("start", [("-m", "gossamer"), ("-c", START)], ids=["one process", "several"])
def test_kills_leave_the_same_tables(fork: Forks, tmp_path: Path, start: tuple[str, str]) -> None:
    records = site(600)
    archives = [write_warc(tmp_path / f"{part}.warc.gz", records[part * 200 : part * 200 + 200]) for part in range(3)]
    words = [*map(str, archives), *COMMITS_OFTEN, "-o"]
    whole = tmp_path / "whole"
    began = time.monotonic()
    subprocess.run([sys.executable, *start, "import", *words, whole], check=True, capture_output=True)
    took_s = time.monotonic() - began
    killed = tmp_path / "killed"

    def do_in_fork(directory: Path, cpu_s: float) -> str:
        answer = str(tmp_path / "answer")
        return fork(words=[*words, str(directory)], reads_ahead=start[0] == "-c", cpu_s=cpu_s, fatal=0, answer=answer)

    assert do_in_fork(tmp_path / "again", 1e6) == "done"
    took_cpu_s = int((tmp_path / "answer").read_text()) / 1e6
    kills = 0
    while kills < KILLS:
        share = (kills + 0.5) / KILLS  # From the start to the time at which files are finished.
        if kills % PROCESS_ONE_IN == PROCESS_ONE_IN - 1:
            was_killed = kill_process([sys.executable, *start, "import", *words, str(killed)], share * took_s)
        else:
            ended = do_in_fork(killed, share * took_cpu_s)
            assert ended in (BY_TIMER, "done")
            was_killed = ended == BY_TIMER
        if was_killed:
            kills += 1
        else:
            require_same(killed, whole)
            shutil.rmtree(killed)
            took_s *= 0.9  # The part that earlier runs had left took less.
            took_cpu_s *= 0.9
    do_import(killed, *archives, *COMMITS_OFTEN)
    require_same(killed, whole)


def kill_process(command: list[str], after_s: float) -> bool:
    """Kill a command after some time; return False if it ended before."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    assert process.returncode == 0
    return False


def require_same(killed: Path, whole: Path) -> None:
    """Require the tables of an undisturbed import."""
    for table, columns in (("pages", "*"), ("links", "*")):
        assert rows(killed, columns, table) == rows(whole, columns, table)
    assert run("verify", str(killed), "--deep")[0] == 0
