"""Machine: resources of this machine: memory and files of the crawl's processes, disks, the wall clock."""

import ctypes
import os
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gossamer.world.clock import steady_s
from gossamer.world.process import dies_with_parent

SUPERVISOR_BYTES = 32 << 20
"""Most memory that a supervisor holds when it starts a crawl. If another program starts the crawl through our code, its
memory above this is not counted."""
_PAGE_BYTES = resource.getpagesize()
_DESCRIPTORS = Path("/proc/self/fd" if sys.platform.startswith("linux") else "/dev/fd")


class Disk(NamedTuple):
    """A file system, and its free space for this process."""

    device: int
    free_bytes: int
    total_bytes: int


class Resident(NamedTuple):
    """The memory of a process."""

    rss_bytes: int
    pss_bytes: int
    """Proportional set size: a page that several processes share counts as a fraction for each."""


class ThisMachine:
    """The machine that this process runs on.

    Memory is that of the process tree: this process (RSS), its supervisor, and processes started below it since then
    (PSS, so that shared libraries count once). On Linux reading it takes about 0.1 ms, and 1 ms more for each other
    process; elsewhere only this process counts.
    """

    def __init__(self, *, supervised: bool = False) -> None:
        """With `supervised` the parent counts too if the kernel ends this process with it: it is the supervisor."""
        self._supervisor = {os.getppid()} if supervised and dies_with_parent() else set()
        self._not_crawls_bytes = sum(max(0, resident(pid).pss_bytes - SUPERVISOR_BYTES) for pid in self._supervisor)
        self._not_ours = frozenset(processes_below(os.getpid()))

    def disk(self, path: Path) -> Disk:
        """Return the file system that a path is on. A few microseconds. Raises OSError when it does not answer."""
        found = os.statvfs(path)
        return Disk(path.stat().st_dev, found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)

    def memory_bytes(self) -> int:
        """Return the memory that this process, its supervisor and the processes below it hold."""
        others = processes_below(os.getpid()) - self._not_ours | self._supervisor
        held = _resident_bytes() + sum(resident(pid).pss_bytes for pid in others)
        return max(0, held - self._not_crawls_bytes)

    def give_memory_back(self) -> None:
        """Return freed memory to the operating system."""
        if sys.platform.startswith("linux"):
            if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
                trim(0)

    def open_files(self) -> int:
        """Return how many files, sockets and pipes are open."""
        return sum(1 for _ in os.scandir(_DESCRIPTORS))

    def open_files_max(self) -> int:
        """Return the limit of open files."""
        return _limit_of(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    def raise_open_files(self, wanted: int) -> int:
        """Raise the limit of open files as far towards `wanted` as the system allows; return the limit."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            except (OSError, ValueError):
                return _limit_of(soft)
        return self.open_files_max()

    def wall_offset_s(self) -> float:
        """Return the seconds by which the wall clock is ahead of the monotonic clock."""
        return time.time() - steady_s()


def disk_bytes(directory: Path) -> int:
    """Return the disk space of the files below a directory, each once. About 2 µs a file; those that vanish count 0."""
    sizes: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                found = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - a Path costs more
                sizes[found.st_dev, found.st_ino] = 512 * found.st_blocks
    return sum(sizes.values())


def processes_below(pid: int) -> set[int]:
    """Return the ids of all descendants of a process; empty if the system does not tell."""
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        below = _children(waiting.pop()) - found
        found |= below
        waiting += below
    return found


def _children(pid: int) -> set[int]:
    found: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - as below
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123 - each second
                found.update(map(int, file.read().split()))
    return found


def _resident_bytes() -> int:
    try:
        return _rss_bytes("self")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most << 10


def _rss_bytes(pid: int | str) -> int:
    with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123 - each second, and a Path costs more
        return int(file.read().split()[1]) * _PAGE_BYTES


def resident(pid: int) -> Resident:
    """Return the memory of a process; zeros if it has ended or the system does not tell. 1 ms for 100 MiB.

    For a process outside our sandbox the system tells only the RSS, which is returned for both.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123
            found = {line[:4]: int(line.split()[1]) << 10 for line in file if line.startswith((b"Rss:", b"Pss:"))}
    except PermissionError:
        with suppress(OSError):
            return Resident(*[_rss_bytes(pid)] * 2)
        found = {}
    except OSError:
        found = {}
    return Resident(found.get(b"Rss:", 0), found.get(b"Pss:", 0))


def _limit_of(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
