"""Sockets: names a Unix socket at any length of its path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Linux takes 107 bytes and a terminating zero, macOS 103.
PATH_BYTES_MAX = 100


def fits(path: Path) -> bool:
    """Say whether the system takes a socket by its path."""
    return len(os.fsencode(path)) <= PATH_BYTES_MAX


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """Yield a name by which the system takes a socket, good until the end; a long one needs /proc.

    Raises:
        OSError: there is no such directory.
    """
    if fits(path):
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
