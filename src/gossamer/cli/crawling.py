"""Crawling: `crawl` and `resume`: a child checks everything that was typed and crawls, supervised from here.

Nothing here imports the configuration or what crawls: this process would pay for both a second time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from gossamer.cli.ends import FAILED, complain
from gossamer.cli.job import Job, Order
from gossamer.cli.start import Started
from gossamer.cli.supervisor import Slots, Supervisor, death
from gossamer.state import slots
from gossamer.world.wall import WallTime


def crawl(
    seeds: Sequence[str],
    file: Path | None,
    options: Mapping[str, object],
    sets: Sequence[str],
    *,
    or_resume: bool = False,
) -> int:
    """Start a crawl in a new directory and return its exit status; with `or_resume` continue what is there already.

    What the operator can mend is said in one line; nothing was started then, and nothing is left behind.
    """
    return carried_out(
        Order(
            command="crawl",
            seeds=tuple(seeds),
            file=None if file is None else str(file),
            options=dict(options),
            sets=tuple(sets),
            or_resume=or_resume,
            parent=os.getpid(),
        )
    )


def resume(directory: Path, options: Mapping[str, object], sets: Sequence[str]) -> int:
    """Continue the crawl in a directory, with changes, and return its exit status; mistakes are said as by `crawl`."""
    return carried_out(
        Order(command="resume", directory=str(directory), options=dict(options), sets=tuple(sets), parent=os.getpid())
    )


def carried_out(order: Order) -> int:
    """Have a child check an order and crawl, restarted as often as it takes, and return the exit status."""
    with Started(order) as child:
        job = child.job()
        if isinstance(job, Job):
            return supervised(job, child)
    if job < 0:
        complain(f"the crawl's process {death(job)} before it began; nothing was started")
        return FAILED
    return job


def supervised(job: Job, child: Started) -> int:
    """Run a job in a child, restarted as often as it takes, and return the exit status."""
    directory = Path(job.directory)
    state, clock = directory / "state", WallTime()
    started_at = clock.now()
    before = _effective(directory)

    def start_again(restarts: int) -> subprocess.Popen[bytes]:
        nonlocal started_at
        started_at = clock.now()
        if not restarts:
            return child.begin()
        # Where its child has written what it runs with, that holds, and with it what was changed since.
        asked = _as_written(job) if _effective(directory) != before else job
        return Started(msgspec.structs.replace(asked, parent=os.getpid(), restart=True)).begin()

    watched = Slots(
        accuse=lambda: slots.accuse(state, started_at),
        overdue=lambda: slots.overdue(state, clock.now(), job.process_s_max, started_at),
        progress=lambda: slots.progress(state),
    )
    status = Supervisor(start_again, watched, complain).run()
    show_cursor()
    return status


def _as_written(job: Job) -> Job:
    from gossamer.cli.checking import job_as_written  # Reads a configuration: after a death alone.

    return job_as_written(job)


def _effective(directory: Path) -> str | None:
    """Return what `crawl.toml` says; None where there is none yet."""
    file = directory / "crawl.toml"
    return file.read_text(encoding="utf-8") if file.exists() else None


def show_cursor() -> None:
    """Give the terminal its cursor back: a child that died in a live view could not."""
    if sys.stdout.isatty():
        sys.stdout.write("\x1b[?25h")
        sys.stdout.flush()
