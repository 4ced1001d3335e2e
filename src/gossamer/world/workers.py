"""Workers: how a process that answers questions for ours can fail, and how it is ended."""

import asyncio
from contextlib import suppress

END_S_MAX = 5.0
"""Time within which a killed process is gone."""
_PIECE_BYTES = 1 << 16
START_S_MAX = 10.0
"""Time that a process may take to start and to import its modules, on a busy machine."""
STATUS_S_MAX = 1.0
"""Time between the end of a process's output and its exit status."""
NICENESS = 10
"""Priority of a process that answers, below that of crawls."""


class WorkerError(Exception):
    """A question failed; the text says why, in one line."""

    begun = 0
    """Steps of the question that had begun, if the process notes them (`world.pool`)."""


class OverdueError(WorkerError):
    """The worker did not answer in time."""


class DiedError(WorkerError):
    """The worker died."""

    def __init__(self, returncode: int | None) -> None:
        """Take the exit status, negative for a signal; None: unknown."""
        super().__init__(f"its process died ({_exit_cause(returncode)})")
        self.returncode = returncode


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Kill a process and wait until it is gone; unread output is dropped.

    asyncio stops reading a pipe with too much unread output, and then never notices its end: `wait` for a killed
    process waited forever (CPython 3.11, gh-119710). So its pipes are read to their end first. If a child of the
    process holds them open, waiting ends after `END_S_MAX`.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    with suppress(TimeoutError):
        async with asyncio.timeout(END_S_MAX):
            for pipe in (process.stdout, process.stderr):
                while pipe is not None and await pipe.read(_PIECE_BYTES):
                    pass
            await process.wait()


def _exit_cause(returncode: int | None) -> str:
    if returncode is None:
        return "unknown"
    return f"signal {-returncode}" if returncode < 0 else f"exit status {returncode}"
