"""Guard: the parent of one browser. It ends the browser with all its processes when the crawler is gone or closes it,
or when they take too much memory.

Run as a file, for it needs nothing but the interpreter: `browser.py` says how. Its input is closed at the crawler's
death at the latest. Its output is one line for each look: the processor seconds and the memory of the browser so far.
"""

import ctypes
import os
import resource
import select
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

LOOK_S = 0.2
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
FILE_BYTES_MAX = 256 << 20
"""Of each file that the browser writes."""
TICKS_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
OUT_OF_MEMORY = 90
"""Exit status where the browser took too much memory."""
PROBE = "probe"
NO_ENTRY = 2
"""As the first argument: say by the exit status whether a user may have namespaces, change the root in them as Chromium
does, which the system call filter of a container can forbid, and enter a folder (2: not)."""
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Guard a browser: arguments are its folder, memory, user and group (-1: ours), descriptors, and command."""
    if sys.argv[1] == PROBE:
        become(*map(int, sys.argv[2:4]))
        if not os.access(sys.argv[4], os.X_OK):
            os._exit(NO_ENTRY)
        os._exit(_libc.unshare(CLONE_NEWUSER) != 0 or _libc.chroot(b"/") != 0)
    folder, memory_bytes, user, group, reads, writes, *command = sys.argv[1:]
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
    leave_network()
    if int(user) >= 0:
        os.chown(folder, int(user), int(group))
    browser = start_browser(command, int(reads), int(writes), int(user), int(group))
    os.close(int(reads))
    os.close(int(writes))
    status = OUT_OF_MEMORY if watch(browser, int(memory_bytes)) else 0
    end_all()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(status)


def become(user: int, group: int) -> None:
    """Become another user for good; a negative one stands for the user that this is."""
    if user >= 0:
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)


def leave_network() -> None:
    """Move to a network namespace without any interface. Where the system refuses, the browser has its dead proxy."""
    user = os.getuid()
    group = os.getgid()
    if user == 0:
        _libc.unshare(CLONE_NEWNET)
    elif _libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0:
        with suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def start_browser(command: list[str], reads: int, writes: int, user: int, group: int) -> int:
    """Start the browser, its pipe at 3 and 4. It alone becomes another user: the guard removes what only we may."""
    guard = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        reads, writes = os.dup(reads), os.dup(writes)  # None of them is 3 or 4 where another one must go.
        while min(reads, writes) < 5:
            reads, writes = os.dup(reads), os.dup(writes)
        os.dup2(reads, 3)
        os.dup2(writes, 4)
        os.closerange(5, 256)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        become(user, group)
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == guard:
            os.execv(command[0], command)  # noqa: S606 - no shell is wanted
    finally:
        os._exit(127)


def watch(browser: int, memory_bytes: int) -> bool:
    """Wait until the browser ends or has to; return whether it took too much memory."""
    seconds: dict[int, float] = {}
    while not select.select([0], [], [], LOOK_S)[0]:
        held = 0
        for pid in family():
            used = usage_of(pid)
            if used is not None:
                seconds[pid], held = used[0], held + used[1]
        with suppress(OSError):
            os.write(1, f"{sum(seconds.values()):.2f} {held}\n".encode())
        if held > memory_bytes:
            return True
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == browser:
                return False
            if pid == 0:
                break
    return False


def family() -> list[int]:
    """Return the processes that descend from this one: an orphan among them becomes its child."""
    found = []
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += (more := [int(child) for child in (task / "children").read_text().split()])
                waiting += more
    return found


def usage_of(pid: int) -> tuple[float, int] | None:
    """Return the processor seconds of a process, and the memory that is its own."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (OSError, ValueError):
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS_S, (int(resident) - int(shared)) * PAGE_BYTES


def end_all() -> None:
    """Kill every process of the browser, also those that begin meanwhile."""
    while pids := family():
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        select.select([], [], [], 0.01)


if __name__ == "__main__":
    main()
