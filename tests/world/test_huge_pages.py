"""What the process holds moves into large pages where the kernel has them, and nothing else changes."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.api.engine import MEMBER
from gossamer.cli.start import CHILD
from gossamer.world import huge_pages
from gossamer.world.allocators import FRUGAL
from gossamer.world.huge_pages import PAGE_BYTES, REFUSED_MAX, HugePages, Mapping, mappings


@pytest.fixture(autouse=True)
def plenty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has all the time it needs."""
    monkeypatch.setattr(huge_pages, "SHARE_MAX", 1_000.0)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)


SPAN_BYTES = 16 * PAGE_BYTES
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def mapped(memory: mmap.mmap) -> Mapping:
    """Return the mapping that holds a piece of memory: the kernel may have joined it with its neighbours."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return next(one for one in mappings() if one.begin <= address < one.end)


def gather_all(pages: HugePages) -> None:
    """Let it have as many rounds as it needs: each has its bound."""
    while pages._seen_bytes == 0:
        pages.gather()


def have_huge_pages() -> bool:
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    release = tuple(int(part) for part in Path("/proc/sys/kernel/osrelease").read_text().split(".")[:2])
    return enabled.exists() and "[never]" not in enabled.read_text() and release >= (6, 1)


@pytest.mark.promise("Bounds", "Moving memory into huge pages does not change its content.")
def test_what_is_held_moves_into_large_pages_and_stays_what_it_was() -> None:
    memory = mmap.mmap(-1, SPAN_BYTES, flags=PRIVATE)
    memory.madvise(mmap.MADV_NOHUGEPAGE)  # Else the kernel might have begun with large ones.
    for at in range(0, SPAN_BYTES, mmap.PAGESIZE):
        memory[at : at + 8] = at.to_bytes(8)
    assert mapped(memory).huge_bytes == 0
    memory.madvise(mmap.MADV_HUGEPAGE)
    pages = HugePages()
    moved: set[int] = set()
    collapse = pages._collapse

    def note(begin: int, length: int) -> bool:
        assert collapse is not None
        is_moved = collapse(begin, length)
        if is_moved:
            moved.add(begin)
        return is_moved

    pages._collapse = note if collapse is not None else None
    gather_all(pages)
    if have_huge_pages():
        held = mapped(memory)
        ours = [begin for begin in moved if held.begin <= begin < held.end]
        # A kernel whose memory is in pieces may refuse some of them.
        assert ours
        assert held.huge_bytes >= len(ours) * PAGE_BYTES
    assert all(memory[at : at + 8] == at.to_bytes(8) for at in range(0, SPAN_BYTES, mmap.PAGESIZE))


@pytest.mark.heavy
@pytest.mark.long
def test_memory_that_was_asked_for_and_is_not_used_stays_unused() -> None:
    sparse, dense = (mmap.mmap(-1, SPAN_BYTES, flags=PRIVATE) for _ in range(2))
    for memory, step in ((sparse, 4), (dense, 1)):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for at in range(0, SPAN_BYTES, step * mmap.PAGESIZE):
            memory[at] = 1
    dense.madvise(mmap.MADV_HUGEPAGE)  # So that they are two mappings.
    pages = HugePages()
    asked: list[int] = []
    pages._collapse = lambda begin, _: asked.append(begin) is None
    gather_all(pages)

    assert mapped(sparse).held_bytes < mapped(sparse).end - mapped(sparse).begin
    assert not any(mapped(sparse).begin <= begin < mapped(sparse).end for begin in asked)
    assert any(mapped(dense).begin <= begin < mapped(dense).end for begin in asked)


def test_who_has_not_grown_is_left_alone() -> None:
    pages = HugePages()
    gather_all(pages)
    asked: list[int] = []
    pages._collapse = lambda begin, _: asked.append(begin) is None
    pages.gather()
    assert asked == []
    memory = mmap.mmap(-1, SPAN_BYTES, flags=PRIVATE)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    memory[:] = b"\1" * SPAN_BYTES
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    pages.gather()
    assert any(address <= begin < address + SPAN_BYTES for begin in asked)


def test_a_mapping_that_the_kernel_will_not_move_is_not_tried_page_by_page() -> None:
    memory = mmap.mmap(-1, SPAN_BYTES, flags=PRIVATE)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    memory[:] = b"\1" * SPAN_BYTES
    pages = HugePages()
    asked: list[int] = []
    pages._collapse = lambda begin, _: asked.append(begin) is not None
    gather_all(pages)
    held = mapped(memory)

    # A round that was out of time begins with the same ones again.
    assert len({begin for begin in asked if held.begin <= begin < held.end}) == REFUSED_MAX + 1


def test_it_takes_a_hundredth_of_the_time_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    now = [1.0]
    monkeypatch.setattr(huge_pages.time, "process_time", lambda: now[0])
    pages = HugePages()
    rounds: list[float] = []
    pages._collapse = lambda _begin, _length: True
    pages._gather = rounds.append
    pages.gather()
    assert not rounds, "1 s has 0.01 s to give, and that is no round"
    now[0] = 2.5
    pages.gather()
    assert len(rounds) == 1
    pages._spent_s = 0.02
    pages.gather()
    assert len(rounds) == 1
    now[0] = 4.5
    pages.gather()
    assert len(rounds) == 2


def test_memory_of_an_allocator_that_has_large_pages_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", FRUGAL["GLIBC_TUNABLES"])
    pages = HugePages()
    monkeypatch.setattr(huge_pages, "mappings", lambda: pytest.fail("looked at"))
    pages.gather()


HEAP = """
held = bytearray(4 << 20)
with open("/proc/self/smaps") as maps:
    flags = maps.read().partition("[heap]")[2].partition("VmFlags:")[2].partition("\\n")[0]
print("hg" in flags.split())
"""
ARENAS = """
few = [object() for _ in range(100_000)]  # Of several arenas.
with open("/proc/self/maps") as maps:
    ends = [int(at, 16) for line in maps if "[heap]" in line for at in line.split()[0].split("-")]
print(sum(ends[0] <= id(one) < ends[-1] for one in few) > 50_000)
"""
ISOLATED = """
import sys
from gossamer.results.isolated import __main__ as isolated
sys.argv[1:] = ["contents"]
isolated.main()
"""
"""It answers questions up to the end of its input, which is empty."""
REPLACED = """
import sys
from gossamer.world.allocators import use_system_arenas
early = [object() for _ in range(300_000)]
use_system_arenas()
for _ in range(5):
    late = [object() for _ in range(300_000)]
    del late
del early
sys._debugmallocstats()
"""
"""What was allocated before is freed by a function that does not know it, unless it is held."""


def run(program: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter with some environment variables."""
    inherited = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    source = str(Path(huge_pages.__file__).parents[2])
    command = [sys.executable, "-c", program]
    given = inherited | environment | {"PYTHONPATH": source}
    return subprocess.run(
        command, env=given, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60
    )


def test_the_heap_of_a_crawl_has_large_pages_from_the_start_and_holds_pythons_objects() -> None:
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    libc, _, release = os.confstr("CS_GNU_LIBC_VERSION").partition(" ") if hasattr(os, "confstr") else ("", "", "0")
    if not enabled.exists() or "[madvise]" not in enabled.read_text() or libc != "glibc" or release < "2.35":
        pytest.skip("glibc of at least 2.35 asks for them only where the kernel leaves it to programs")
    assert run(HEAP, {}).stdout.split() == ["False"]
    assert run(HEAP, FRUGAL).stdout.split() == ["True"]
    for start in (CHILD.replace("; main()", ""), MEMBER[1].replace("; main()", ""), ISOLATED):
        assert run(f"{start}{HEAP}{ARENAS}", FRUGAL).stdout.split() == ["True", "True"], start


def test_memory_of_the_interpreter_is_returned_to_where_it_is_from() -> None:
    done = run(REPLACED, FRUGAL)
    assert done.returncode == 0, done.stderr
    reclaimed = next(line for line in done.stderr.splitlines() if line.startswith("# arenas reclaimed"))
    assert int(reclaimed.split()[-1]) >= 5
