"""Exports killed at a chosen step, as `kill -9` does it: run as a program, it answers for one export after another.

A step is anything that changes the disk: a file opened for writing, renamed, removed, cut, a directory made, bytes
appended. Each export runs in a fork of this process, so that killing it costs no new imports.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from gossamer.archive.views import export as views
from gossamer.archive.views import work
from gossamer.archive.views.means import Means
from gossamer.fetch.decoding import BoundedDecoder
from gossamer.fetch.options import FetchOptions
from gossamer.model.visits import Page
from gossamer.world.files import AppendFile

CHANGES = frozenset(("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"))


class Steps:
    """Counts what changes the disk, and ends this process at the one asked for."""

    def __init__(self, fatal: int) -> None:
        self.count = 0
        self.fatal = fatal
        write = AppendFile.write

        def counted(file: AppendFile, data: Any) -> None:
            self.step(lambda: os.write(file._fd, bytes(data)[: len(data) // 2]))
            write(file, data)

        AppendFile.write = counted  # type: ignore[method-assign]
        sys.addaudithook(self._audit)

    def step(self, half: Any = None) -> None:
        """Count one; at the fatal one do half of it."""
        self.count += 1
        if self.count == self.fatal:
            if half is not None:
                half()
            os.kill(os.getpid(), signal.SIGKILL)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGES or (event == "open" and isinstance(arguments[1], str) and arguments[1][:1] in "wa+xr+"):
            if event == "open" and arguments[1] in ("r", "rb"):
                return
            self.step()


def characters(page: Page) -> str:
    return page.body.decode("utf-8", "replace")


def run(job: dict[str, Any]) -> None:
    """Make one export, and write how many steps it took."""
    work.CHECKPOINT_BYTES = job["checkpoint_bytes"]
    for module in list(sys.modules.values()):
        for name in (
            "BATCH_ROWS",
            "CHECKPOINT_BYTES",
            "SEGMENT_BYTES_MAX",
            "PAGES_A_CHECKPOINT",
            "MEMORY_BYTES_MIN",
            "FILE_ROWS_MAX",
        ):
            if str(getattr(module, "__name__", "")).startswith("gossamer.archive.views") and hasattr(module, name):
                setattr(module, name, job[name.lower()])
    means = Means(BoundedDecoder(FetchOptions()), characters, characters)
    steps = Steps(job["fatal"])
    crawl = views.Crawl(Path(job["crawl"]), running=False, now=1_767_225_600.0)
    views.export(crawl, job["to"], Path(job["target"]), means, memory_bytes_max=job["memory_bytes_max"])
    Path(job["answer"]).write_text(str(steps.count))


def main() -> None:
    """Answer for one job a line: `done`, `killed`, or what went wrong."""
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
