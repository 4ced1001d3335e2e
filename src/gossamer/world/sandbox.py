"""Sandbox: permanently drops rights of this process and of all that it starts: by Linux's Landlock for files, signals
and abstract sockets, by seccomp for sockets.
"""

import ctypes
import errno
import os
import platform
import stat
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

LANDLOCK_MIN = 2
"""The first version (Linux 5.19) in which files can be renamed and linked from one folder to another."""
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_MAKE_SYM = 1 << 12
_MAKE_CHAR = 1 << 6
_MAKE_BLOCK = 1 << 11
_TRUNCATE = 1 << 14
_READ = _READ_FILE | _READ_DIR | _EXECUTE
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
"""The rights that a rule for a single file can name."""
_FILES_BITS = {2: 14, 3: 15, 4: 15, 5: 16}
"""Rights on files by Landlock's version: how many of the lowest bits exist."""
_TCP = 0b11
_SCOPES = 0b11
_SET_NO_NEW_PRIVS = 38
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_MODE_FILTER = 1
_TSYNC = 1
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""Number of the architecture in seccomp, and number of socket(2)."""
_IO_URING_SETUP = 425
"""io_uring can create sockets too."""
_CAPABILITIES_3 = 0x20080522
_KEPT = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 10
_SYS_ADMIN = 1 << 21
"""Capabilities that are kept: CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID, NET_BIND_SERVICE."""
_ALLOW = 0x7FFF0000
_ERROR = 0x00050000
_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_RETURN = 0x06
AF_UNIX = 1


class Rights(NamedTuple):
    """Files that a process may still open. A folder includes everything below it; a missing path is ignored."""

    reads: Sequence[str] = ()
    """To read and execute."""
    writes: Sequence[str] = ()
    """To read, write, create, rename and remove; not to execute, nor to create symbolic links or devices."""
    scratch: Sequence[str] = ()
    """As `writes`, with symbolic links."""
    administers: bool = False
    """Whether root keeps CAP_SYS_ADMIN, which browsers need to make namespaces."""


def landlock_version() -> int:
    """Return the version of Landlock; 0 if it is missing or too old."""
    if not sys.platform.startswith("linux"):
        return 0
    found = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return found if found >= LANDLOCK_MIN else 0


def confine(rights: Rights) -> tuple[str, ...]:
    """Let this process open only what `rights` names; return what the kernel enforces from now on. Only for a process
    with one thread: other threads would keep their rights. Takes 1 ms. Raises OSError: the kernel refuses; the rights
    are unchanged then.
    """
    version = landlock_version()
    handled = _file_rights(version)
    everything = handled & ~(_EXECUTE | _MAKE_CHAR | _MAKE_BLOCK)
    rules = [(path, _READ) for path in rights.reads]
    rules += [(path, everything & ~_MAKE_SYM) for path in rights.writes]
    rules += [(path, everything) for path in rights.scratch]
    _restrict(handled, 0, _SCOPES if version >= 6 else 0, rules)
    if os.geteuid() == 0:
        _drop_capabilities(_KEPT | _SYS_ADMIN if rights.administers else _KEPT)
    enforced = ["files", *(["truncation"] if version >= 3 else []), *(["devices"] if version >= 5 else [])]
    return (*enforced, *(("signals", "abstract_sockets") if version >= 6 else ()))


def confine_worker(folder: str | None) -> None:
    """Cut a process with one thread off from the network, and let it write only in `folder`, which is made if it does
    not exist; None: anywhere. Rights that the kernel cannot restrict stay: these processes have other limits as well.
    """
    version = landlock_version()
    written = 0 if folder is None or not version else _file_rights(version) & ~_READ
    rules = [(folder, written & ~(_MAKE_CHAR | _MAKE_BLOCK)), (os.devnull, _WRITE_FILE)] if folder and written else []
    try:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        if written or version >= 4:
            _restrict(written, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0, rules)
        refuse_sockets()
    except OSError:
        return


def refuse_sockets(family: int | None = None) -> bool:
    """Make socket(2) fail in all threads of this process; with `family` only for that address family. Return whether
    this worked. Open sockets stay open, and socketpair(2) still works.
    """
    machine = platform.machine()
    if not sys.platform.startswith("linux") or machine not in _MACHINES:
        return False
    number, socket = _MACHINES[machine]
    failed = _ERROR | errno.EACCES
    unknown = _ERROR | errno.ENOSYS
    # The lower half of the first argument: both architectures are little-endian.
    kind = [(_LOAD, 0, 0, 16), (_EQUAL, 1, 0, family), (_RETURN, 0, 0, _ALLOW)] if family is not None else []
    program = [
        (_LOAD, 0, 0, 4), (_EQUAL, 1, 0, number), (_RETURN, 0, 0, unknown),  # Another architecture, such as 32 bits.
        (_LOAD, 0, 0, 0), (_AT_LEAST, 0, 1, 1 << 30), (_RETURN, 0, 0, unknown),  # x32.
        (_EQUAL, 0, 1, _IO_URING_SETUP), (_RETURN, 0, 0, unknown),
        (_EQUAL, 1, 0, socket), (_RETURN, 0, 0, _ALLOW),
        *kind, (_RETURN, 0, 0, failed),
    ]  # fmt: skip
    return _apply_filter(program)


def _apply_filter(program: Sequence[tuple[int, int, int, int]]) -> bool:
    """Apply a seccomp program to all threads of this process; return whether the kernel accepted it."""
    code = b"".join(struct.pack("=HBBI", *one) for one in program)
    held = ctypes.create_string_buffer(code, len(code))
    description = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(held)))
    libc = _libc()
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return bool(libc.syscall(_SECCOMP[platform.machine()], _MODE_FILTER, _TSYNC, description) == 0)


def threads() -> int:
    """Return how many threads this process has; 1 if the system does not tell."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 1


def _file_rights(version: int) -> int:
    return (1 << _FILES_BITS.get(version, _FILES_BITS[5])) - 1


def _restrict(files: int, network: int, scopes: int, rules: Iterable[tuple[str, int]]) -> None:
    libc = _libc()
    # The kernel accepts fields that it does not know if they are zero.
    described = struct.pack("=QQQ", files, network, scopes)
    ruleset = _check(libc.syscall(_CREATE_RULESET, described, ctypes.c_size_t(len(described)), 0))
    try:
        for path, rights in rules:
            _allow(libc, ruleset, path, rights)
        _check(libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _check(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _drop_capabilities(kept: int) -> None:
    """Drop root's capabilities that defeat a sandbox, such as to load kernel modules or read any process's memory."""
    libc = _libc()
    header = struct.pack("=Ii", _CAPABILITIES_3, 0)
    held = ctypes.create_string_buffer(24)
    _check(libc.capget(header, held))
    permitted = struct.unpack("=6I", held.raw)
    mask = (kept & 0xFFFFFFFF,) * 3 + (kept >> 32,) * 3
    _check(libc.capset(header, struct.pack("=6I", *(one & most for one, most in zip(permitted, mask, strict=True)))))


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
        rule = struct.pack("=Qi", rights if is_folder else rights & _OF_FILES, opened)
        _check(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(opened)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
