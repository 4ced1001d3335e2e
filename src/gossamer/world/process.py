"""Process: facts about this process: its boot, its parent, its lock on a directory."""

import ctypes
import errno
import fcntl
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Folder with the limits of this process: in a container, those of the container."""
PR_SET_PDEATHSIG = 1
PR_GET_PDEATHSIG = 2
NOT_OURS = frozenset((errno.EROFS, errno.EACCES, errno.EPERM))
"""Errors that prevent writing a file but not reading it."""
MAINTENANCE = Path("state/maintenance")
"""Lock, in a crawl's directory, of a command that has the crawl stop and start again."""


def boot_id() -> bytes:
    """Return 16 bytes that change with each boot of the machine; zeros if the system has none."""
    try:
        return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)


def processors(groups: Path = CONTROL_GROUPS) -> int:
    """Return the processors that this process may use, in a container at most the quota of its control group."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for names in ("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"):  # Version 2, and 1.
        with suppress(OSError, ValueError, ZeroDivisionError):
            used_us, period_us = " ".join((groups / name).read_text() for name in names).split()
            if int(used_us) > 0:  # `max` and -1: no quota.
                found = max(1, min(found, round(int(used_us) / int(period_us))))
    return found


def usable_bytes(groups: Path = CONTROL_GROUPS) -> int:
    """Return the memory that this process may use: the machine's, in a container at most its control group's limit."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in "memory.max", "memory/memory.limit_in_bytes":  # Version 2, and 1.
        with suppress(OSError, ValueError):  # `max`: no limit.
            found = min(found, int((groups / name).read_text()))
    return found


def child_environment() -> dict[str, str]:
    """Return the environment for a child: ours, extended so that Python finds the same modules."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}


def die_with_parent(parent_pid: int) -> None:
    """Let the kernel kill this process when its parent ends for any reason (Linux; elsewhere nothing happens).

    Otherwise a shard would go on crawling without its supervisor.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent_pid:
            # The parent ended before the call.
            os.kill(os.getpid(), signal.SIGKILL)


def dies_with_parent() -> bool:
    """Return whether the kernel kills this process with its parent, which is then its supervisor. False if unknown."""
    if not sys.platform.startswith("linux"):
        return False
    sent = ctypes.c_int(0)
    return ctypes.CDLL(None).prctl(PR_GET_PDEATHSIG, ctypes.byref(sent), 0, 0, 0) == 0 and sent.value == signal.SIGKILL


def hide_arguments(is_secret: Callable[[str], object]) -> None:
    """Overwrite the secret arguments of this process where other processes can read them (Linux: /proc/PID/cmdline).

    Until this call they can be read. Does nothing on other systems than Linux.
    """
    try:
        words = Path("/proc/self/cmdline").read_bytes().split(b"\0")
        start = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[45])
        shown = b"\0".join(b"x" * len(word) if is_secret(os.fsdecode(word)) else word for word in words)
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(shown)
    except (OSError, ValueError, IndexError):
        return


def birth_of(pid: int) -> int:
    """Return when a process began, in ticks since boot; 0 if it has ended or the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0
    state, *fields = text.rpartition(")")[2].split()
    return int(fields[18]) if state not in "ZX" else 0


class DirectoryLock:
    """One process at a time in a directory; the kernel releases the lock when its holder dies."""

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        """Open the lock's file, and make it if it is missing; with `reading` a file that cannot be written is enough. A
        directory can be locked itself: nothing is written. Raises OSError: the file cannot be made or written.
        """
        self.writable = not path.is_dir()
        """Whether this process may write to the lock's directory, as far as known."""
        if not self.writable:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if reading and os.geteuid() == 0 != path.parent.stat().st_uid:
                raise PermissionError(errno.EPERM, "files of root would shut out the owner of the crawl", str(path))
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if not reading or error.errno not in NOT_OURS:
                raise
            self.writable = False
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def acquire(self, wait_s: float) -> bool:
        """Take the lock and return whether that succeeded; wait up to `wait_s` for a holder about to end. Blocks."""
        taken = _try_lock(self._fd, fcntl.LOCK_EX, wait_s)
        if taken and self.writable:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, str(os.getpid()).encode(), 0)
        return taken

    def release(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @staticmethod
    def is_held(path: Path, wait_s: float = 0.0) -> bool:
        """Return whether a process holds a lock for `wait_s` or longer; readers are brief. Blocks; changes nothing."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return False
        try:
            return not _try_lock(descriptor, fcntl.LOCK_SH, wait_s)
        finally:
            os.close(descriptor)


def is_open(directory: Path) -> bool:
    """Return whether a process of this user has a file open in a directory, as far as the system tells. Reads /proc."""
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # Another user's, or of a process that has ended.
            if descriptor.readlink().is_relative_to(directory):
                return True
    return False


def _try_lock(descriptor: int, kind: int, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True


def limit_memory(most_bytes: int) -> None:
    """Limit the address space of this process, so that a page cannot use up the machine's memory."""
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))


def limit_data(most_bytes: int) -> None:
    """Limit the memory that this process allocates, not counting mapped files, and turn off core dumps."""
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
