"""A crawl as processes that can be killed: its supervisor, its child, or both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from gossamer.lab.simweb.process import SimwebProcess
from tests.commands import run

Victim = Literal["child", "supervisor", "both"]
VICTIMS: tuple[Victim, ...] = ("child", "supervisor", "both")
END_S_MAX = 240.0
SOURCE = Path(__file__).parents[2] / "src"


def environment() -> dict[str, str]:
    """Return ours, with the sources of this tree first."""
    ours = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), *([ours] if ours else [])])}


class Crawl:
    """One crawl directory and the commands run on it; what they print is kept as events."""

    def __init__(self, directory: Path, arguments: Sequence[str]) -> None:
        """`arguments` are those of `gossamer crawl`, seeds included; `-o` is added."""
        self.directory = directory
        self.arguments = tuple(arguments)
        self.events: list[dict[str, object]] = []
        self.complaints = ""
        self.commands = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._child = 0

    def start(self, *changes: str) -> None:
        """Run `crawl`, or `resume` with changes once there is something to resume."""
        self.commands += 1
        if (self.directory / "crawl.toml").exists():
            command = ["resume", str(self.directory), "--json", *changes]
        else:
            command = ["crawl", *self.arguments, "-o", str(self.directory), "--json"]
        paths = [self._output(name) for name in ("out", "err")]
        with paths[0].open("wb") as out, paths[1].open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gossamer", *command],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment(),
            )  # fmt: skip
        self._child = 0

    def child(self) -> int:
        """Return the process that crawls now."""
        process = self._running()
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        found: list[str] = []
        # Between two of its lives there is none.
        until(lambda: found.extend(listed.read_text().split()) or found or process.poll() is not None)
        return int(found[0])

    def kill(self, victim: Victim) -> None:
        """End processes as `kill -9` does. What is left of the command is waited for, unless it goes on by itself."""
        process = self._running()
        child = self.child()
        if victim != "supervisor":
            os.kill(child, signal.SIGKILL)
        if victim != "child":
            process.kill()
            process.wait()
            self._collect()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command, as a terminal does."""
        self._running().send_signal(number)

    def wait(self) -> int:
        """Wait for the command and return its exit status."""
        process = self._running()
        try:
            status = process.wait(END_S_MAX)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        self._collect()
        return status

    def said(self) -> str:
        """Return what the command under way has printed so far."""
        return self._output("out").read_text()

    def finish(self) -> int:
        """Go on until the crawl ends by itself, and return the last exit status."""
        if self._process is None:
            self.start()
        return self.wait()

    @property
    def runs(self) -> bool:
        """Whether a command of ours is under way."""
        return self._process is not None and self._process.poll() is None

    def ask(self, *arguments: str) -> dict[str, object]:
        """Return what a command that answers in JSON says of the crawl."""
        status, out, err = run(arguments[0], str(self.directory), *arguments[1:], "--json")
        assert status == 0, err
        answer = json.loads(out)
        assert isinstance(answer, dict)
        return answer

    def close(self) -> None:
        """Leave nothing running."""
        if self.runs:
            self.kill("both")

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "no command runs"
        return self._process

    def _output(self, name: str) -> Path:
        return self.directory.with_name(f"{self.directory.name}.{self.commands}.{name}")

    def _collect(self) -> None:
        for line in self._output("out").read_bytes().splitlines(keepends=True):
            if line.endswith(b"}\n"):  # The last one may be cut by a kill, and the next begin in its middle.
                start = line.find(b'{"event"', 1)
                self.events.append(json.loads(line[max(start, 0) :]))
        self.complaints += self._output("err").read_text()
        self._process = None


def until(condition: Callable[[], object], most_s: float = END_S_MAX) -> None:
    """Wait for a condition, and fail when it does not come true."""
    ends_at = time.monotonic() + most_s
    while not condition():
        assert time.monotonic() < ends_at, "waited in vain"
        time.sleep(0.005)


def crawl_of(web: SimwebProcess, directory: Path, *settings: str) -> Crawl:
    """Return a crawl of a whole made web, with small epochs and no delays."""
    sets = ("crawl.commit_pages=20", "crawl.commit_s=0.1", "crawl.concurrency=16", "progress.interval_s=0.1")
    arguments = [*web.seeds, "--politeness", "own", "--allow-private", "--scope", "any", "--hosts", str(web.hosts_file)]
    for setting in (*sets, *settings):
        arguments += ["--set", setting]
    return Crawl(directory, arguments)


EPOCH_PAGES_MAX = 2 * 20 + 16
"""Most that one kill may cost with these settings: an epoch at its bound and the requests under way."""
