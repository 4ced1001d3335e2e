"""Huge pages: moves the memory of this process to pages of 2 MiB instead of 4 KiB.

A crawl accesses a few bytes here and there in hundreds of megabytes, and a processor caches the addresses of some 2,000
pages (TLB): with small pages nearly every access reads the page tables first. The interpreter allocates memory one MiB
at a time, so it never gets a huge page by itself, and the kernel's background scan makes only a few a minute.
"""

import ctypes
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

PAGE_BYTES = 2 << 20
GROWTH_BYTES = 16 << 20
"""Growth of the process's memory before it is examined again."""
GATHER_S_MIN = 0.02
GATHER_S_MAX = 0.1
"""A pass begins when it may take at least the first, and ends after the second; a page takes 2 ms."""
SHARE_MAX = 0.01
"""Share of the process's time: the cost pays off over minutes, so a crawl of seconds spends none."""
REFUSED_MAX = 4
"""Pages the kernel may refuse before the rest of their mapping waits: a refusal costs a search for free memory."""
HELD_SHARE_MIN = 7 / 8
"""Share of a mapping that must be in use: a huge page also fills its gaps, which must cost almost no memory."""
_COLLAPSE = 25
"""MADV_COLLAPSE, Linux 6.1."""
_MAPS = Path("/proc/self/smaps")
_HELD = Path("/proc/self/statm")
_is_ours = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0 *(?:\[heap\])?\n"
    rb"(?:[A-Z].*\n)*?Rss: +(\d+) kB\n(?:[A-Z].*\n)*?AnonHugePages: +(\d+) kB\n",
    re.MULTILINE,
).finditer

Collapse = Callable[[int, int], bool]


class Mapping(NamedTuple):
    """One private range of this process's memory."""

    begin: int
    end: int
    held_bytes: int
    huge_bytes: int
    """The part of `held_bytes` that is in pages of 2 MiB already."""


class HugePages:
    """Moves memory to huge pages. Takes at most an eighth more memory, and `SHARE_MAX` of the process's time.

    Does nothing on a system without the call, and where the allocator has such pages from the start (`FRUGAL`).
    """

    def __init__(self) -> None:
        self._collapse = _collapse()
        self._seen_bytes = 0
        self._spent_s = 0.0

    def gather(self) -> None:
        """Move memory allocated since the last call into huge pages. Blocks, but releases the interpreter lock.

        10 µs when there is nothing to do; else 2 ms, plus 2 ms for each page.
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
            first = -(-mapping.begin // PAGE_BYTES)
            last = mapping.end // PAGE_BYTES
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
    """Yield the writable, private, anonymous mappings of at least 2 MiB."""
    for found in _is_ours(_MAPS.read_bytes()):
        begin = int(found[1], 16)
        end = int(found[2], 16)
        if end - begin >= PAGE_BYTES:
            yield Mapping(begin, end, int(found[3]) << 10, int(found[4]) << 10)


def _collapse() -> Collapse | None:
    """Return a function that asks for huge pages at an address and returns success; None: there is no use for it."""
    has_them = "malloc.hugetlb" in os.environ.get("GLIBC_TUNABLES", "")
    if has_them or not sys.platform.startswith("linux") or not _MAPS.exists():
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return lambda begin, length: madvise(begin, length, _COLLAPSE) == 0
