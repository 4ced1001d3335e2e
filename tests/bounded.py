"""Footprint: a program run within a bound of memory that the kernel enforces, and how much it took."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from gossamer.world.machine import processes_below, resident

GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class BoundedRun:
    """How a bounded program ended."""

    status: int
    output: str
    means: str
    """What held it: `cgroup v2`, `cgroup v1` or `RLIMIT_DATA`."""
    peak_bytes: int
    """Most memory at once, with the files that the kernel kept in memory for it where a group counted; 0: unknown."""


def run_within(
    memory_bytes: int, command: Sequence[str], env: Mapping[str, str] | None = None, timeout_s: float = 600.0
) -> BoundedRun:
    """Run a command that may use so much memory, children included, and return how it ended. Blocks.

    A control group of its own (below ours, so that every bound on us holds too) counts all that the kernel keeps for
    it. Where groups cannot be made the bound is on the data segment of each process, which counts less.

    Raises:
        subprocess.TimeoutExpired: it took too long, and was ended.
    """
    group = _Group.made(memory_bytes)
    try:
        done = subprocess.run(
            command,
            env=env,
            timeout=timeout_s,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            preexec_fn=group.enter if group is not None else lambda: _limit_data(memory_bytes),
        )
        means = group.means if group is not None else "RLIMIT_DATA"
        return BoundedRun(done.returncode, done.stdout, means, group.peak_bytes() if group is not None else 0)
    finally:
        if group is not None:
            group.remove()


def run_measured(
    command: Sequence[str], env: Mapping[str, str] | None = None, timeout_s: float = 600.0
) -> tuple[int, int]:
    """Run a command; return its exit status and the most memory that its process tree held at any look. Blocks.

    Counted is the RSS of the largest process, so that what it shares with the rest of the machine counts in full, and
    the PSS of the others. There are some 20 looks a second.

    Raises:
        subprocess.TimeoutExpired: it took too long, and was ended.
    """
    peak_bytes = 0
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + timeout_s
        try:
            while process.poll() is None:
                if time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired(command, timeout_s)
                held = [resident(pid) for pid in {process.pid, *processes_below(process.pid)}]
                largest = max(held)
                held.remove(largest)
                peak_bytes = max(peak_bytes, largest.rss_bytes + sum(one.pss_bytes for one in held))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)
        finally:
            process.kill()  # Its children end with it.
        return process.wait(), peak_bytes


class _Group:
    """A control group for one run."""

    def __init__(self, path: Path, version: int) -> None:
        self._path = path
        self.means = f"cgroup v{version}"
        self._peak = "memory.peak" if version == 2 else "memory.max_usage_in_bytes"

    @classmethod
    def made(cls, memory_bytes: int) -> _Group | None:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                version, root, bound = 1, GROUPS / "memory", "memory.limit_in_bytes"
            elif not controllers and "memory" in _controllers(GROUPS / path.lstrip("/")):
                version, root, bound = 2, GROUPS, "memory.max"
            else:
                continue
            group = root / path.lstrip("/") / f"gossamer-{uuid4().hex}"
            try:
                group.mkdir()
                (group / bound).write_text(str(memory_bytes))
            except OSError:
                if group.is_dir():
                    group.rmdir()
                continue
            return cls(group, version)
        return None

    def enter(self) -> None:
        (self._path / "cgroup.procs").write_text(str(os.getpid()))

    def peak_bytes(self) -> int:
        peak = self._path / self._peak
        return int(peak.read_text()) if peak.exists() else 0

    def remove(self) -> None:
        self._path.rmdir()


def _controllers(group: Path) -> list[str]:
    # Those that children of the group may use.
    file = group / "cgroup.subtree_control"
    return file.read_text().split() if file.exists() else []


def _limit_data(memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
