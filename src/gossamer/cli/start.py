"""Start: starts the process that will crawl, and passes it the command line and the permission to crawl."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from gossamer.cli.job import CrawlJob, Spool, decode, encode, encode_line
from gossamer.world.allocators import FRUGAL, SYSTEM_ARENAS

COPIED_BYTES = 1 << 16
FORWARDED = (signal.SIGINT, signal.SIGTERM)
"""Signals that a supervisor passes on to its child."""
_DESCRIPTOR = re.compile(r"(?:.*=)?/(?:dev|proc/self)/fd/(\d+)", re.DOTALL).fullmatch
CHILD = f"""
import gc; gc.disable()
{SYSTEM_ARENAS}from gossamer.cli.child import main; main()
"""
"""The collector is off until `main`: imports leave no garbage, and searching for it takes 0.005 s."""
LEAVING_S_MAX = 5.0
"""Longest wait for the end of a child that is no longer needed."""


def environment() -> dict[str, str]:
    """Return the environment variables of a child.

    With this process's path (and `-P`) a child imports the same modules, never files of the current directory.
    """
    path = os.pathsep.join(path for path in sys.path if path)
    # numpy loads OpenBLAS, which nothing here uses: its threads would take 0.05 s of every start.
    return {"OPENBLAS_NUM_THREADS": "1", **FRUGAL, **os.environ, "PYTHONPATH": path}


def descriptors(words: Sequence[str]) -> tuple[int, ...]:
    """Return the open descriptors that words name, such as the `/dev/fd/63` of a shell, for a child to inherit."""
    found = {int(named[1]) for word in words if (named := _DESCRIPTOR(word))}
    return tuple(number for number in found if number > 2 and Path(f"/dev/fd/{number}").exists())


class ChildProcess:
    """A child that makes a job from the command line, answers with it, and waits for the permission to crawl.

    `begin` gives the permission; `close` without it ends the child. This process reads the answer without the modules
    that read configurations: only the child pays for those.
    """

    def __init__(self, words: Sequence[str], job: IO[bytes] | int = subprocess.DEVNULL) -> None:
        """`words` are the command line, and `job` is a file with its job if one was made earlier."""
        self.took_input = False
        """Whether this child has read standard input, so that another child cannot."""
        self._notes = b""
        go, self._go = os.pipe()
        self._answers, answers = os.pipe()
        # What was typed goes through the pipe: arguments of a process are readable by every user of the machine.
        ours = [sys.executable, "-P", "-c", CHILD, str(go), str(answers), str(os.getpid())]
        # As for every child of the supervisor: it unblocks these once it has handlers.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        try:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(  # noqa: S603 - ourselves
                ours,
                stdin=job,
                pass_fds=(go, answers, *descriptors(words)),
                process_group=0,  # The terminal's Ctrl-C reaches it through us alone.
                env=environment(),
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(go)
            os.close(answers)
        self._send(encode_line(words))

    @classmethod
    def again(cls, job: CrawlJob) -> Self:
        """Return a child for a job whose child died."""
        import tempfile

        # In a file, not in a pipe: nothing waits for a child that does not read.
        with tempfile.TemporaryFile() as line:
            line.write(encode(job._replace(restart=True)))
            line.seek(0)
            return cls((), line)

    def job(self) -> CrawlJob | int:
        """Wait for the answer; return the child's exit status if it refused, which it has reported."""
        process = self._process
        assert process is not None, "a child has one job"
        with os.fdopen(os.dup(self._answers), "rb") as answers:
            for line in answers:
                answer = decode(line)
                if isinstance(answer, CrawlJob):
                    return answer
                assert isinstance(answer, Spool), "it answers nothing else"
                self.took_input = True
                with Path(answer.file).open("wb") as copy:
                    while some := sys.stdin.buffer.read(COPIED_BYTES):
                        copy.write(some)
                self._say_go()
        return process.wait()

    def begin(self) -> subprocess.Popen[bytes]:
        """Allow the child to crawl, and hand it over to the caller."""
        process = self._process
        self._process = None
        assert process is not None, "a child has one job"
        self._say_go()
        os.close(self._go)
        self._go = -1
        os.set_blocking(self._answers, False)
        return process

    def loading(self) -> str:
        """Return the component that the child was importing when it last said so; empty if it was none."""
        with suppress(BlockingIOError):
            while some := os.read(self._answers, COPIED_BYTES):
                self._notes = (self._notes + some)[-COPIED_BYTES:]
        said = self._notes.decode("utf-8", "replace").split("\0")
        return said[-2] if len(said) > 1 else ""

    def close(self) -> None:
        """End a child before it crawls. It removes the files of its checks itself."""
        process = self._process
        self._process = None
        self._close_pipes()
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(LEAVING_S_MAX)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()

    def _say_go(self) -> None:
        self._send(b"\n")

    def _send(self, line: bytes) -> None:
        rest = memoryview(line)
        with suppress(BrokenPipeError):  # It died early: its supervisor will see that.
            while rest:
                rest = rest[os.write(self._go, rest) :]

    def _close_pipes(self) -> None:
        for descriptor in (self._go, self._answers):
            if descriptor >= 0:
                os.close(descriptor)
        self._go = -1
        self._answers = -1
