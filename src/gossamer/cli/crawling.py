"""Crawling: `crawl` and `resume`: a child reads and checks what was typed and crawls, supervised from here.

Nothing here imports what reads command lines and configurations, or crawls: all that would be paid for a second time.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from pathlib import Path

from gossamer.cli.exits import Exit, complain
from gossamer.cli.job import Job
from gossamer.cli.start import Started
from gossamer.cli.supervisor import Patience, Slots, Supervisor, death
from gossamer.state import slots
from gossamer.world.wall import WallTime

SIMWEB = "simweb.json"
"""In the directory of a crawl of a synthetic web: what that web is made from, so that `resume` can serve it again."""


def carried_out(words: Sequence[str]) -> int:
    """Have a child read a command line, check it and crawl, restarted as often as it takes; return the exit status.

    What the operator can mend it says in one line; nothing was started then, and nothing is left behind.
    """
    for restarts in count():
        with closing(Started(words)) as child:
            job = child.job()
            if isinstance(job, Job):
                is_simweb = job.resume and (Path(job.directory) / SIMWEB).exists()
                return _beside_simweb(job, child) if is_simweb else supervised(job, child)
        if job >= 0:
            return job
        how = f"the crawl's process {death(job)} before it began"
        if child.took_input:
            complain(f"{how}; nothing was started, and what was on standard input is gone: give it again")
            return Exit.FAILED
        if restarts >= Patience().restarts_max:
            complain(f"{how}, for the {restarts + 1}th time; nothing was started")
            return Exit.FAILED
        complain(f"{how}; it is begun anew")
    raise AssertionError("that has no end")


def _beside_simweb(job: Job, child: Started) -> int:
    """Run a job while the synthetic web that its crawl began with serves again."""
    from gossamer.cli.demo import simweb_again  # Nothing else has a use for it.
    from gossamer.model.errors import ConfigError

    try:
        with simweb_again(Path(job.directory) / SIMWEB):
            return supervised(job, child)
    except ConfigError as error:
        complain(str(error))
        return Exit.REFUSED


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
        return Started.again(asked).begin()

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
    from gossamer.cli.words import obeys_escapes

    if obeys_escapes(sys.stdout):
        sys.stdout.write("\x1b[?25h")
        sys.stdout.flush()
