"""Huge pages: what this process holds, in pages of 2 MiB instead of 4 KiB.

A crawl touches hundreds of megabytes in no order, a few bytes here and a few there, and a processor knows by heart
where some 2,000 pages are: with small pages nearly every touch asks the kernel's tables first. The interpreter takes
its memory a MiB at a time, so it never gets a large page by itself, and the kernel's own round makes a few a minute.
"""

from __future__ import annotations

import ctypes
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

PAGE_BYTES = 2 << 20
GROWTH_BYTES = 16 << 20
"""What the process holds has grown by so much before it is looked at again."""
GATHER_S_MIN, GATHER_S_MAX = 0.02, 0.1
"""What is left after the second waits for the next time, 2 ms a page; for less than the first it is not begun."""
SHARE_MAX = 0.01
"""Of the process's time: it pays for itself over minutes, and a crawl of seconds has none of it to give."""
REFUSED_MAX = 4
"""Pages of one mapping that the kernel refuses before the rest of it waits too: it looks for room each time."""
HELD_SHARE_MIN = 7 / 8
"""Of a mapping: a page of 2 MiB holds the gaps too, and those are to cost next to nothing."""
_COLLAPSE = 25
"""MADV_COLLAPSE, Linux 6.1."""
_MAPS, _HELD = Path("/proc/self/smaps"), Path("/proc/self/statm")
_is_ours = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0 *(?:\[heap\])?\n"
    rb"(?:[A-Z].*\n)*?Rss: +(\d+) kB\n(?:[A-Z].*\n)*?AnonHugePages: +(\d+) kB\n",
    re.MULTILINE,
).finditer

Collapse = Callable[[int, int], bool]


class Mapping(NamedTuple):
    """One stretch of memory that belongs to us alone."""

    begin: int
    end: int
    held_bytes: int
    huge_bytes: int
    """Of these, in pages of 2 MiB already."""


class HugePages:
    """Promises: only moves memory; takes at most an eighth more memory, and `SHARE_MAX` of the time.

    Does nothing on a system without the call.
    """

    def __init__(self) -> None:
        self._collapse = _collapse()
        self._seen_bytes = 0
        self._spent_s = 0.0

    def gather(self) -> None:
        """Move what came since the last time into large pages. For a thread that may wait: the interpreter goes on.

        10 µs when there is nothing to do; else 2 ms, and as much again for each page.
        """
        if self._collapse is None:
            return
        spare_s = SHARE_MAX * time.process_time() - self._spent_s
        if spare_s < GATHER_S_MIN:
            return
        began = time.thread_time()
        self._gather(time.monotonic() + min(GATHER_S_MAX, spare_s))
        self._spent_s += time.thread_time() - began

    def _gather(self, until: float) -> None:
        assert self._collapse is not None
        held_bytes = int(_HELD.read_text().split()[1]) * 4096
        self._seen_bytes = min(self._seen_bytes, held_bytes)
        if held_bytes - self._seen_bytes < GROWTH_BYTES:
            return
        for mapping in mappings():
            if mapping.held_bytes < HELD_SHARE_MIN * (mapping.end - mapping.begin):
                continue
            first, last = -(-mapping.begin // PAGE_BYTES), mapping.end // PAGE_BYTES
            if mapping.huge_bytes >= (last - first) * PAGE_BYTES:
                continue
            refused = 0
            for page in range(first, last):
                refused += not self._collapse(page * PAGE_BYTES, PAGE_BYTES)
                if refused > REFUSED_MAX:
                    break
                if time.monotonic() > until:
                    return
        self._seen_bytes = held_bytes


def mappings() -> Iterator[Mapping]:
    """Yield the stretches of 2 MiB and more that can be written, belong to us alone and to no file."""
    for found in _is_ours(_MAPS.read_bytes()):
        begin, end = int(found[1], 16), int(found[2], 16)
        if end - begin >= PAGE_BYTES:
            yield Mapping(begin, end, int(found[3]) << 10, int(found[4]) << 10)


def _collapse() -> Collapse | None:
    """Return a function that has the kernel move the memory at an address to one large page, and returns whether it
    did.
    """
    if not sys.platform.startswith("linux") or not _MAPS.exists():
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return lambda begin, length: madvise(begin, length, _COLLAPSE) == 0
