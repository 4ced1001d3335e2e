"""Workers: a process that answers one question after another. A question may crash its process without harm to ours.

Questions and answers are frames: eight bytes of length, then that many bytes.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import BinaryIO, TypeVar

from gossamer.world.alarm import ProcessorLimit
from gossamer.world.loop import wait_at_most
from gossamer.world.process import child_environment, limit_data

LENGTH_BYTES = 8
END_S_MAX = 5.0
"""Time within which a killed process is gone."""
_PIECE_BYTES = 1 << 16
START_S_MAX = 10.0
"""Time that a process may take to start and to import its modules, on a busy machine."""
STATUS_S_MAX = 1.0
"""Time between the end of a process's output and its exit status."""
NICENESS = 10

Read = TypeVar("Read")
Send = Callable[[asyncio.StreamWriter], Awaitable[None]]


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


class Worker:
    """Sends questions to a process that `command` starts when it is first needed.

    A process that does not answer within `limit_s`, dies, or sends an unreadable answer is killed; the next question
    starts another. One without a question for `idle_s_max` ends. Questions wait for each other.
    """

    def __init__(
        self, command: Sequence[str], limit_s: float, *, answer_bytes_max: int, idle_s_max: float | None = None
    ) -> None:
        self._command = list(command)
        self._limit_s = limit_s
        self._answer_bytes_max = answer_bytes_max
        self._idle_s_max = idle_s_max
        self._turn = asyncio.Lock()
        self._idle: asyncio.subprocess.Process | None = None
        self._ending: asyncio.TimerHandle | None = None
        self.starts = 0
        """Processes started so far."""

    async def ask(self, send: Send, read: Callable[[bytes], Read]) -> Read:
        """Ask the question that `send` writes; return what `read` makes of the answer.

        Raises:
            OverdueError: there is no answer within `limit_s`.
            DiedError: the process died.
            WorkerError: the answer cannot be read (`read` raised ValueError).
        """
        async with self._turn:
            process = self._idle
            self._idle = None
            began = process is None or process.returncode is not None
            if process is None or began:
                process = await self._begin()
            keep = False
            try:
                async with asyncio.timeout(self._limit_s + (START_S_MAX if began else 0.0)):
                    data = await self._exchange(process, send)
                found = read(data)
                keep = True
            except TimeoutError:
                raise OverdueError(f"took longer than {self._limit_s:g} s in its isolated process") from None
            except (asyncio.IncompleteReadError, ConnectionError):
                await wait_at_most(STATUS_S_MAX, process.wait())
                raise DiedError(process.returncode) from None
            except ValueError as error:
                raise WorkerError(f"its process answered what cannot be read: {error}") from error
            finally:
                if keep:
                    self._idle = process
                    self._end_when_idle()
                else:
                    await end_process(process)
            return found

    async def close(self) -> None:
        """End the process."""
        if self._ending is not None:
            self._ending.cancel()
        if self._idle is not None:
            await end_process(self._idle)
            self._idle = None

    async def _begin(self) -> asyncio.subprocess.Process:
        self.starts += 1
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # Last words of a dying process are not for the terminal.
            env=child_environment(),
        )

    async def _exchange(self, process: asyncio.subprocess.Process, send: Send) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        await send(process.stdin)
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
        if length > self._answer_bytes_max:
            raise ValueError(f"{length} bytes")
        return await process.stdout.readexactly(length)

    def _end_when_idle(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
        if self._idle_s_max is not None:
            self._ending = asyncio.get_running_loop().call_later(self._idle_s_max, self._end_idle)

    def _end_idle(self) -> None:
        """Close the input of the idle process, so that it ends by itself."""
        if self._idle is not None:
            assert self._idle.stdin is not None
            self._idle.stdin.close()
            self._idle = None


async def send_framed(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send a question of one frame."""
    writer.write(make_frame(data))
    await writer.drain()


def answer_frames(
    source: BinaryIO, sink: BinaryIO, answer: Callable[[bytes], bytes], processor_s_max: float, memory_bytes_max: int
) -> None:
    """Answer questions of one frame each until the input ends, at a lower priority than crawls. A question that takes
    more than `processor_s_max` of processor time ends the process by SIGPROF.
    """
    os.nice(NICENESS)
    limit_data(memory_bytes_max)
    limit = ProcessorLimit(processor_s_max)
    while (frame := frame_from(source)) is not None:
        limit.begin()
        answered = answer(frame)
        limit.end()
        sink.write(make_frame(answered))
        sink.flush()


def make_frame(data: bytes) -> bytes:
    """Return data as a frame."""
    return len(data).to_bytes(LENGTH_BYTES) + data


def frame_from(source: BinaryIO) -> bytes | None:
    """Return the content of the next frame; None at the end of the input. Blocks."""
    head = source.read(LENGTH_BYTES)
    return source.read(int.from_bytes(head)) if head else None


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
