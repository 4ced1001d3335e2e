"""Ways: how far a URL is from the seeds, for whole columns: depth and hops as one number below 2**24."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

DEPTH_MAX = 0xFFFF
HOPS_MAX = 0xFF
WAY_BITS = 24
WAY_MASK = (1 << WAY_BITS) - 1
FARTHEST = WAY_MASK
"""The way to what nothing leads to."""

Column = npt.NDArray[Any]


def way_of(depth: Column, hops: Column) -> npt.NDArray[np.uint32]:
    """Return depths and hops as one number each; what is too long to count stays at the most."""
    depths = np.clip(depth, 0, DEPTH_MAX).astype(np.uint32)
    return depths << np.uint32(8) | np.clip(hops, 0, HOPS_MAX).astype(np.uint32)


def depth_of(way: Column) -> npt.NDArray[np.int64]:
    """Return the depths."""
    return (way >> np.uint32(8)).astype(np.int64) & DEPTH_MAX


def hops_of(way: Column) -> npt.NDArray[np.int64]:
    """Return the hops."""
    return way.astype(np.int64) & HOPS_MAX


def least(way: Column, starts: npt.NDArray[np.intp]) -> npt.NDArray[np.uint32]:
    """Return for each group the least depth and the least hops of its ways, each for itself."""
    if not len(starts):
        return np.empty(0, np.uint32)
    return way_of(np.minimum.reduceat(depth_of(way), starts), np.minimum.reduceat(hops_of(way), starts))


def least_of_both(one: Column, other: Column) -> npt.NDArray[np.uint32]:
    """Return the least depth and the least hops of two columns of ways."""
    return way_of(np.minimum(depth_of(one), depth_of(other)), np.minimum(hops_of(one), hops_of(other)))
