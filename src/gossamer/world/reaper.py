"""Reaper: a process that ends the daemons of another process, and removes their folder, also if that process is killed.

Daemons of a library may outlive their starter by a minute. `reaper_of` runs this file as a script, since it needs only
the interpreter (8 MB, a millisecond now and then).
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

LOOKS_S = (0.5, 0.5, 1.0, 1.0, 2.0, 2.0, 5.0)
"""Intervals between scans for new processes: most start at the beginning."""
LOOK_S = 15.0
SWEEPS_MAX = 50
SWEEP_S = 0.1
Family = dict[int, str]
"""Process id to start time, in the kernel's ticks: the kernel reuses ids."""


def reaper_of(folder: Path) -> subprocess.Popen[bytes]:
    """Start a reaper for this process. The reaper acts when its standard input closes: at our death at the latest.

    `folder` must be private: every process that has it in its command line, or a file in it as its standard output,
    counts as ours.
    """
    command = [sys.executable, "-I", "-S", __file__, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603 - ourselves


def main() -> None:
    """Track the processes of the folder until the process that started the reaper is gone; then end them."""
    folder = sys.argv[1]
    family: Family = {}
    looks = iter(LOOKS_S)
    while not select.select([sys.stdin], [], [], next(looks, LOOK_S))[0]:
        family |= family_of(folder)
    end(folder, family)


def end(folder: str, family: Family) -> None:
    """End these processes and those of a folder, and remove it. Takes at most 5 s."""
    for _ in range(SWEEPS_MAX):
        family |= family_of(folder)
        left = [pid for pid, begun in family.items() if begun and began(pid) == begun]
        if not left:
            break
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(SWEEP_S)  # The next sweep finds processes that they were starting.
    shutil.rmtree(folder, ignore_errors=True)


def family_of(folder: str) -> Family:
    """Return the processes with a folder in their command line or in the path of their output, and their
    descendants.
    """
    children: dict[int, list[int]] = {}
    waiting = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and len(fields := _stat(int(entry.name))) > 1:
            pid = int(entry.name)
            children.setdefault(int(fields[1]), []).append(pid)
            if pid != os.getpid() and (folder in _command(pid) or folder in _output(pid)):
                waiting.append(pid)
    found: Family = {}
    while waiting:
        pid = waiting.pop()
        found[pid] = began(pid)
        waiting += children.get(pid, [])
    return found


def began(pid: int) -> str:
    """Return when a process began; empty when there is none."""
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _output(pid: int) -> str:
    """Return the path of a process's standard output: Ray's workers change their command line, and may outlive Ray
    itself.
    """
    try:
        return str(Path(f"/proc/{pid}/fd/1").readlink())
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


if __name__ == "__main__":
    main()
