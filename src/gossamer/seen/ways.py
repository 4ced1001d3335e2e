"""Ways: how far a URL is from the seeds, as one small number."""

from __future__ import annotations

DEPTH_MAX = 0xFFFF
HOPS_MAX = 0xFF


def way_of(depth: int, hops: int) -> int:
    """Return depth and hops as one number below 2**24; what is too long to count stays at the most."""
    return min(depth, DEPTH_MAX) << 8 | min(hops, HOPS_MAX)


def least_of(one: int, other: int) -> int:
    """Return the least depth and the least hops of two ways, each for itself."""
    return min(one | HOPS_MAX, other | HOPS_MAX) & ~HOPS_MAX | min(one & HOPS_MAX, other & HOPS_MAX)


def depth_and_hops(way: int) -> tuple[int, int]:
    """Return what `way_of` was given."""
    return way >> 8, way & HOPS_MAX
