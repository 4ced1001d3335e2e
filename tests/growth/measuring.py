"""Measuring: how the processor time of a reader grows with its input."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import log2
from typing import NamedTuple

EXPONENT_MAX = 1.4
"""Linear readers have at most 1.2 on a busy machine, quadratic ones 1.9."""
ENOUGH_S = 0.005
"""Shorter times are noise: the input grows until the largest run takes as long, or has `BYTES_MAX`."""
BYTES_FIRST, BYTES_MAX = 4_096, 131_072
REPEATS = 3
PLAIN_S = 1.0
"""What takes as long is not measured again: noise is short."""
TRIES = 5
"""A suspected growth is measured again, each time twice as often: other processes can disturb few runs, hardly all."""

Read = Callable[[bytes], object]


class Growth(NamedTuple):
    """The largest input, its time, and the exponent of the time's growth, 0 where the time is too short to matter."""

    size: int
    seconds: float
    exponent: float


def growth(read: Read, shape: Callable[[int], bytes], bytes_max: int = BYTES_MAX, tries: int = TRIES) -> Growth:
    """Measure a reader at n/4, n/2 and n bytes of a shape; of suspected growth return the least of some tries."""
    size = BYTES_FIRST
    while (seconds := _seconds(partial(read, shape(size)), REPEATS, ENOUGH_S)) < ENOUGH_S and size < bytes_max:
        size *= 2
    if seconds < ENOUGH_S:
        return Growth(size, seconds, 0.0)
    found = [_growth(read, shape, size, REPEATS)]
    while found[-1].exponent > EXPONENT_MAX and len(found) < tries:
        found.append(_growth(read, shape, size, REPEATS << len(found)))
    return min(found, key=lambda one: one.exponent)


def is_linear(
    prepare: Callable[[int], Callable[[], object]],
    size: int,
    times: int = 8,
    factor: float = 30.0,
    floor_s: float = 0.001,
) -> bool:
    """Return whether a run of `times` the size takes less than `factor` times the processor time of one of the size,
    which counts as `floor_s` seconds at least.

    Other processes only add to a time: of the small size the least of some runs counts, and the large one is run again
    only where it took too long.
    """
    with _uncollected():
        bound_s = factor * max(_seconds(prepare(size), REPEATS), floor_s)
        large = prepare(times * size)
        return any(_seconds(large, 1) < bound_s for _ in range(REPEATS))


def _growth(read: Read, shape: Callable[[int], bytes], size: int, repeats: int) -> Growth:
    with _uncollected():
        first_s, second_s = (_seconds(partial(read, shape(part)), repeats) for part in (size // 4, size // 2))
        # What takes less has no exponent that matters, so it is not run again.
        enough_s = max(first_s * 4**EXPONENT_MAX, second_s * 2**EXPONENT_MAX)
        last_s = _seconds(partial(read, shape(size)), repeats, enough_s)
    # Over both steps, so that a jump of the caches at one size is no growth; and where the last step is milder, that.
    return Growth(size, last_s, min(log2(last_s / first_s) / 2, log2(last_s / second_s)))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector from reading all objects of the process in the largest run alone."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _seconds(run: Callable[[], object], repeats: int, enough_s: float = 0.0) -> float:
    """Return the least time of some runs, which end with one that takes less than `enough_s`."""
    least = float("inf")
    for _ in range(repeats):
        began = time.thread_time()
        run()
        least = min(least, time.thread_time() - began)
        if least > PLAIN_S or least < enough_s:
            break
    return max(least, 1e-7)
