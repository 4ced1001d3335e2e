"""Jobs killed at a chosen step, as `kill -9` does it: a program that does one after another, and its other end.

A step is anything that changes the disk by way of Python: a file opened for writing, renamed, removed, cut, a directory
made or removed. Each job runs in a fork of the program, so that killing it costs no new imports.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CHANGES = frozenset(("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"))


class Steps:
    """Counts what changes the disk, and ends this process at the one asked for."""

    def __init__(self, fatal: int) -> None:
        self.count = 0
        self.fatal = fatal
        sys.addaudithook(self._audit)

    def step(self, half: Callable[[], object] | None = None) -> None:
        """Count one; at the fatal one do half of it."""
        self.count += 1
        if self.count == self.fatal:
            if half is not None:
                half()
            os.kill(os.getpid(), signal.SIGKILL)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[1], str) and arguments[1] not in ("r", "rb")
        if event in CHANGES or writes:
            self.step()


def answer(run: Callable[[dict[str, Any], Steps], None]) -> None:
    """Do one job a line of the standard input, and say of each `done`, `killed`, or what went wrong.

    `run` begins to count when it has its `Steps`; how many it took stands in the file that the job names."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                job = json.loads(line)
                steps = Steps(job["fatal"])
                run(job, steps)
                taken = steps.count
                steps.fatal = 0
                Path(job["answer"]).write_text(str(taken))
            except BaseException:  # noqa: BLE001 - the parent tells it
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print("killed" if killed else "done" if status == 0 else f"failed {status}", flush=True)


class Forks:
    """The program, as the one who gives it jobs has it."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program

    def __call__(self, **job: Any) -> str:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(job) + "\n")
        self._program.stdin.flush()
        return self._program.stdout.readline().strip()


@contextmanager
def forks(module: str) -> Iterator[Forks]:
    """Run a module that answers, until the end. Bytecode that a first job writes would be steps that others lack."""
    program = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", module],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    with program:  # Whatever a test ends with, no later test finds what this one left.
        try:
            yield Forks(program)
            program.communicate(timeout=60)
        finally:
            program.kill()
