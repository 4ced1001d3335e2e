"""The commands as processes, with fakes in the place of what crawls."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gossamer
from tests import commands

FAKES = Path(__file__).parent / "fakes"
DEADLINE_S = 100.0


def until(condition: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
    """Wait for a condition, and fail when it does not come true."""
    ends_at = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < ends_at, "waited in vain"
        time.sleep(0.01)


class Gossamer:
    """Runs `python -m gossamer` in a directory of its own."""

    deadline_s = DEADLINE_S
    python = sys.executable

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: list[subprocess.Popen[str]] = []
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(FAKES), str(Path(gossamer.__file__).parent.parent)]),
            "COLUMNS": "100",
        }

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(  # type: ignore[call-overload]
            [self.python, "-m", "gossamer", *arguments],
            cwd=self.directory,
            env=self.environment,
            text=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )
        self.started.append(process)
        assert isinstance(process, subprocess.Popen)
        return process

    def __call__(self, *arguments: str, text: str | None = None) -> tuple[int, str, str]:
        stdin = subprocess.DEVNULL if text is None else subprocess.PIPE
        process = self.start(*arguments, stdin=stdin)
        out, err = process.communicate(text, timeout=self.deadline_s)
        return process.returncode, out, err

    def mistake(self, *arguments: str) -> str:
        """Run what must be refused, and return the one line that says why."""
        status, out, err = self(*arguments)
        assert (status, out) == (2, "")
        assert err.startswith("gossamer: ")
        assert err.count("\n") == 1
        return err


class Real(Gossamer):
    """Runs commands without the fakes: those that crawl or serve as processes, all others in this one."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.environment["PYTHONPATH"] = str(Path(gossamer.__file__).parent.parent)

    def __call__(self, *arguments: str, text: str | None = None) -> tuple[int, str, str]:
        if text is not None or arguments[0] in {"crawl", "resume", "demo", "conformance"}:
            return super().__call__(*arguments, text=text)
        with contextlib.chdir(self.directory):
            return commands.run(*arguments)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Gossamer]:
    gossamer = Gossamer(tmp_path)
    yield gossamer
    for process in gossamer.started:
        process.kill()
        process.communicate()
