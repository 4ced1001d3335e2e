"""Allocators: how the native libraries of a process take memory and give it back."""

from __future__ import annotations

FRUGAL = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(8 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(8 << 20),
}
"""Variables with which a crawl holds 30 MiB less: Arrow's own allocator and glibc's arenas, one for each thread, keep
what was freed. Thresholds of 1 MiB would hold 8 MiB less still and cost 0.9 s of 7.5 s for 3,394 pages: memory is given
back and taken again by page faults (94,000 instead of 43,000)."""
