"""Builds killed at a chosen step, as `kill -9` does it: run as a program, it answers for one build after another.

A step is anything that changes the disk by way of Python: a file opened for writing, renamed, removed, a directory made
or removed. Each build runs in a fork of this process, so that killing it costs no new imports.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from gossamer.assembly.building import judge_of
from gossamer.config import configure
from gossamer.offline import build as building
from gossamer.offline import steps
from gossamer.offline.steps import Wish

CHANGES = frozenset(("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"))


class Steps:
    """Counts what changes the disk, and ends this process at the one asked for."""

    def __init__(self, fatal: int) -> None:
        self.count = 0
        self.fatal = fatal
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[1], str) and arguments[1] not in ("r", "rb")
        if event in CHANGES or writes:
            self.count += 1
            if self.count == self.fatal:
                os.kill(os.getpid(), signal.SIGKILL)


def run(job: dict[str, Any]) -> None:
    """Make one build, and write how many steps it took."""
    steps.BASE_BYTES, steps.BUFFER_BYTES_MIN = 1 << 40, job["buffer_bytes"]
    wish = Wish(per_host=job["per_host"], parts=job["parts"], retries=1)
    known = Path(job["known"]) if job["known"] else None
    order = building.Order(
        tuple(map(Path, job["places"])), Path(job["target"]), known, job["bloom"], sets=tuple(job["sets"]), wish=wish
    )
    counted = Steps(job["fatal"])
    building.build(order)
    Path(job["answer"]).write_text(str(counted.count))


def warm() -> None:
    """Pay once for what every build needs; nothing that has threads."""
    judge_of(configure(None)).namer.name("http://www.example.co.uk/")


def main() -> None:
    """Answer for one job a line: `done`, `killed`, or what went wrong."""
    warm()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                run(json.loads(line))
            except BaseException:  # noqa: BLE001 - the parent tells it
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print("killed" if killed else "done" if status == 0 else f"failed {status}", flush=True)


if __name__ == "__main__":
    main()
