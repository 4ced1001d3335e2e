"""Tasks: calls a function for several numbers on a Ray cluster. Ray starts a task again whose machine was lost."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import ray
import ray.exceptions

from gossamer.cluster.job import reach
from gossamer.cluster.options import ClusterOptions
from gossamer.cluster.ray import connect
from gossamer.model.errors import ConfigError, CrawlFailedError

LOOK_S = 0.5
HEAD_S_MAX = 15.0
"""Time for which the head may be away before the tasks are given up."""
TRIES_MAX = 20
"""Times that a task starts again whose machine or process was lost."""
Note = Callable[[int, int], None]
"""Notes how much of a task is done, and of how much."""


class ProgressActor:
    """Keeps the progress of each task that has begun."""

    def __init__(self) -> None:
        self._noted: dict[int, tuple[int, int]] = {}

    def note(self, number: int, done: int, rows: int) -> list[tuple[int, int]]:
        """Note the progress of a task, if `number` is one; return that of all."""
        if number >= 0:
            self._noted[number] = (done, rows)
        return list(self._noted.values())


def run_tasks(
    work: Callable[[int, Note], bytes], numbers: Sequence[int], options: ClusterOptions, progress: Note
) -> Iterator[bytes]:
    """Call `work`, which all machines can import, for each number on the cluster at `options.address`. Each takes one
    processor. Yield results as they come. When the caller leaves, also by Ctrl-C, all tasks end.

    Raises:
        ConfigError: there is no such cluster, or it has no free processor.
        CrawlFailedError: the head was lost, or a task died too often.
        Exception: the first that a task raised.
    """
    connect(options, f"gossamer-{secrets.token_hex(4)}")
    remote: Any = ray.remote
    noted = remote(ProgressActor).options(num_cpus=0, max_restarts=-1).remote()
    task = remote(_do).options(num_cpus=1, max_retries=TRIES_MAX, scheduling_strategy="SPREAD")
    pending = [task.remote(work, number, noted) for number in numbers]
    try:
        heard_at = starts_at = time.monotonic()
        while pending:
            for one in ray.wait(pending, timeout=LOOK_S)[0]:
                pending.remove(one)
                yield ray.get(one)
            with suppress(OSError):
                reach(options.address)
                heard_at = time.monotonic()
            if time.monotonic() - heard_at > HEAD_S_MAX:
                raise CrawlFailedError(f"the head of the Ray cluster at {options.address} is gone; repeat the command")
            with suppress(ray.exceptions.RayError):  # The machine of the notes was lost.
                known = ray.get(noted.note.remote(-1, 0, 0), timeout=LOOK_S)
                if rows := sum(rows for _, rows in known):
                    progress(sum(done for done, _ in known), rows)
                if not known and time.monotonic() - starts_at > options.start_s_max:
                    raise ConfigError("--cluster: Ray has no machine with a free processor; add one, or wait for it")
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise CrawlFailedError(f"a task died again and again ({' '.join(str(error).split())[:200]})") from error
    finally:
        for one in pending:
            with suppress(Exception):
                ray.cancel(one, force=True)
        ray.shutdown()


def _do(work: Callable[[int, Note], bytes], number: int, noted: Any) -> bytes:
    next_at = 0.0

    def note(done: int, rows: int) -> None:
        nonlocal next_at
        if done == rows or time.monotonic() >= next_at:
            next_at = time.monotonic() + LOOK_S
            noted.note.remote(number, done, rows)

    note(0, 0)
    return work(number, note)
