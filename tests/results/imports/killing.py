"""Imports that die when they have had some time of the processor, each in a fork (`tests.crash.forks`)."""

from __future__ import annotations

import signal
import sys
import time
from typing import Any

import gossamer.cli.importing  # noqa: F401 - what an import imports, once for all forks
from gossamer.results.imports import ahead, importing
from tests.commands import run
from tests.crash.forks import Steps, answer


def do_import(job: dict[str, Any], steps: Steps) -> None:
    """Import, in processes that read ahead where the job says so; answer the microseconds of the processor.

    The kernel ends the fork by SIGPROF, in the middle of native code too.
    """
    if job["reads_ahead"]:
        importing.AHEAD_BYTES_MIN = 0
        ahead.STRETCH_RECORDS = 20
    signal.setitimer(signal.ITIMER_PROF, job["cpu_s"])
    status, _, err = run("import", *job["words"])
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    if status != 0:
        sys.exit(err)
    steps.count = round(1e6 * time.process_time())


if __name__ == "__main__":
    answer(do_import)
