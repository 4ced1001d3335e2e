"""Reaper: what a process that was killed has left, ends; what others started does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.world.reaper import began, end
from tests.ring.crawls import until

DAEMON = """
import subprocess, sys, time
started = subprocess.Popen(["sleep", "60"])
# As Ray's workers do it: nothing in the command tells whose this is, and who started it is gone.
renamed = "echo $$; exec sleep 60 >" + sys.argv[1] + "/output"
worker = subprocess.Popen(["sh", "-c", 'sh -c "$0" & exit', renamed], stdout=subprocess.PIPE)
print(started.pid, int(worker.stdout.readline()), flush=True)
worker.wait()
time.sleep(60)
"""
PARENT = """
import subprocess, sys, time
from pathlib import Path
from gossamer.world.reaper import reaper_of
daemon_code, folder = sys.argv[1], Path(sys.argv[2], "daemons")
reaper_of(folder)
daemon = subprocess.Popen([sys.executable, "-c", daemon_code, str(folder)], stdout=subprocess.PIPE)
print(daemon.pid, daemon.stdout.readline().decode().strip(), subprocess.Popen(["sleep", "60"]).pid, flush=True)
sys.stdin.readline()
time.sleep(60)
"""


@pytest.mark.promise(
    "Several shards", "A crawl on Ray that ends or is killed leaves no process and no file outside its directory."
)
def test_daemons_of_a_killed_process_end_and_their_folder_goes(tmp_path: Path) -> None:
    folder = tmp_path / "daemons"
    folder.mkdir()
    command = [sys.executable, "-c", PARENT, DAEMON, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        daemon, nested, orphan, other = map(int, parent.stdout.readline().split())
        born = began(other)
        assert all(map(began, (daemon, nested, orphan, other)))
        parent.kill()
    until(lambda: not folder.exists(), 30)
    # Killed they are; who reaps them does so in its own time.
    until(lambda: not any(map(began, (daemon, nested, orphan))), 30)
    assert began(other) == born
    subprocess.run(["kill", "-9", str(other)], check=True)


def test_what_a_process_and_its_reaper_left_is_ended_later(tmp_path: Path) -> None:
    folder = tmp_path / "daemons"
    folder.mkdir()
    with (folder / "output").open("wb") as output, subprocess.Popen(["sleep", "60"], stdout=output) as left:
        end(str(folder), {})
        assert left.wait(10) == -9
    assert not folder.exists()
