"""Pool: processes that answer requests from one queue, each when free. A request may crash its process, not ours.

A question is in memory that all processes share; a byte in the queue names its place. A process that has answered takes
the next question itself: so it does not wait for our event loop, and no question waits for a slow process. Answers come
back through a pipe from each process.
"""

import asyncio
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Generic, NamedTuple, Self, TypeVar

from gossamer.world.loop import wait_at_most
from gossamer.world.workers import START_S_MAX, STATUS_S_MAX, DiedError, OverdueError, WorkerError, end_process

FILES = "GOSSAMER_POOL"
"""Environment variable with a process's descriptors: of the queue, the questions and its progress."""
PLACES_MAX = 256
"""A byte names a place. The queue, a socket, holds as many messages."""
PLACE_BYTES = 1 << 32
"""Distance between two places. The memory is a sparse file: only written parts take memory."""
_HEAD = struct.Struct("<QQQ")
"""Head of a question: its number, and the lengths of its two parts."""
_PROGRESS = struct.Struct("<QQ")
"""Number of the question that a process took last, and how many of its steps have begun."""
_ANSWER = struct.Struct("<QQ")
"""Head of an answer: number of the question, and length."""

Answer = TypeVar("Answer")
One = TypeVar("One")


class _Outstanding(NamedTuple, Generic[Answer]):
    place: int
    read: Callable[[bytes], Answer]
    answered: asyncio.Future[Answer]


class _Process(NamedTuple):
    process: asyncio.subprocess.Process
    progress: int

    def at(self) -> tuple[int, int]:
        """Return the number of the question that the process took last (0: none), and how many of its steps began."""
        number, begun = _PROGRESS.unpack(os.pread(self.progress, _PROGRESS.size, 0).ljust(_PROGRESS.size, b"\0"))
        return number, begun


class WorkerPool:
    """Sends questions to processes that `command` starts, at most `processes_max`. A process is started when there are
    more questions than processes.

    If a process dies, or sends an unreadable answer, only the question that it had taken fails; the next question
    starts another process. A process bounds its own steps. A question fails, and its process is ended, after `limit_s`
    for each of its steps and of those of the questions before it. At most `waiting_max` questions per process are in
    the queue; more wait for a place.
    """

    def __init__(
        self,
        command: Sequence[str],
        limit_s: float,
        processes_max: int,
        waiting_max: int,
        environment: Mapping[str, str] | None = None,
        *,
        answer_bytes_max: int,
    ) -> None:
        """`environment` is that of the processes; None: ours."""
        self._command = list(command)
        self._limit_s = limit_s
        self._processes_max = processes_max
        self._turns = 1 + waiting_max
        self._environment = environment
        self._answer_bytes_max = answer_bytes_max
        self._places: asyncio.Queue[int] = asyncio.Queue()
        """Free places."""
        for place in range(min(PLACES_MAX, processes_max * self._turns)):
            self._places.put_nowait(place)
        self._asked: dict[int, _Outstanding[Any]] = {}
        self._number = 0
        self._processes: list[_Process] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._queue: tuple[socket.socket, socket.socket] | None = None
        self._memory = -1
        self.starts = 0
        """Processes started so far."""

    async def ask(
        self, head: bytes, body: bytes, read: Callable[[bytes], Answer], steps: int = 1, file: int | None = None
    ) -> Answer:
        """Ask a question of two parts, and the descriptor `file`; return what `read` makes of the answer.

        Raises:
            OverdueError: there is no answer in time.
            DiedError: the process died.
            WorkerError: the question cannot be sent, or its answer cannot be read (`read` raised ValueError).
            OSError: no process can be started.
        """
        place = await self._places.get()
        self._number += 1
        number = self._number
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[number] = _Outstanding(place, read, answered)
        try:
            self._put(number, place, head, body, file)
        except BaseException:
            self._take(number)
            raise
        try:
            self._start_one()
            async with asyncio.timeout(self._turns * (self._limit_s * steps + START_S_MAX)):
                return await answered
        except TimeoutError:
            raise OverdueError(f"took longer than {self._limit_s:g} s in its isolated process") from None
        finally:
            if number in self._asked:  # The caller has given up.
                for one in self._processes:
                    if one.at()[0] == number and one.process.returncode is None:
                        one.process.kill()

    async def close(self) -> None:
        """End all processes, and drop the questions that no caller waits for; the next question starts others."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for number in list(self._asked):
            self._take(number)
        if self._queue is not None:
            for end in self._queue:
                end.close()
            os.close(self._memory)
            self._queue = None

    def _put(self, number: int, place: int, head: bytes, body: bytes, file: int | None) -> None:
        if self._queue is None:
            self._queue = socket.socketpair()
            self._memory = _make_shared_memory()
        _write(self._memory, [_HEAD.pack(number, len(head), len(body)), head, body], place * PLACE_BYTES)
        files = [file] if file is not None else []
        try:
            socket.send_fds(self._queue[0], [bytes([place])], files, socket.MSG_DONTWAIT)
        except OSError as error:  # A process that malicious content took over can shut the queue.
            raise WorkerError(f"its processes cannot be asked: {error.strerror}") from error

    def _start_one(self) -> None:
        """Start a process if there are fewer than can be of use."""
        if len(self._tasks) < min(self._processes_max, len(self._asked)):
            task = asyncio.create_task(self._run())
            self._tasks.add(task)
            task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            self._start_one()

    async def _run(self) -> None:
        """Start a process and pass its answers on until it ends."""
        progress = -1
        try:
            progress = _make_shared_memory()
            one = _Process(await self._begin(progress), progress)
            self._processes.append(one)
            error = WorkerError("its process ended")
            try:
                error = await self._pass_on(one.process)
            finally:
                self._processes.remove(one)
                await end_process(one.process)
            self._blame(*one.at(), error)
        except OSError as error:
            self._blame(0, 0, error)
        finally:
            if progress >= 0:
                os.close(progress)

    async def _begin(self, progress: int) -> asyncio.subprocess.Process:
        self.starts += 1
        assert self._queue is not None
        files = self._queue[1].fileno(), self._memory, progress
        environment = os.environ if self._environment is None else self._environment
        os.pwrite(progress, bytes(_PROGRESS.size), 0)
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # Output of a crashing process must not reach the terminal.
            env={**environment, FILES: ",".join(map(str, files))},
            pass_fds=files,
        )

    async def _pass_on(self, process: asyncio.subprocess.Process) -> WorkerError:
        """Pass on what a process answers; return why it gives no more answers."""
        assert process.stdout is not None
        try:
            while True:
                number, length = _ANSWER.unpack(await process.stdout.readexactly(_ANSWER.size))
                if length > self._answer_bytes_max or number not in self._asked:
                    return WorkerError(f"its process answered what cannot be read: {length} bytes")
                data = await process.stdout.readexactly(length)
                asked = self._take(number)
                if asked.answered.done():
                    continue
                try:
                    asked.answered.set_result(asked.read(data))
                except ValueError as error:
                    why = WorkerError(f"its process answered what cannot be read: {error}")
                    asked.answered.set_exception(why)
                    return why
        except (asyncio.IncompleteReadError, ConnectionError):
            await wait_at_most(STATUS_S_MAX, process.wait())
            return DiedError(process.returncode)

    def _blame(self, number: int, begun: int, error: Exception) -> None:
        """Fail the question that a process had taken; if none, the first in the queue, which none would take."""
        if number == 0:
            assert self._queue is not None
            try:
                [place] = self._queue[1].recv(1, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            number = next((number for number, asked in self._asked.items() if asked.place == place), 0)
        if number not in self._asked:
            return
        asked = self._take(number)
        if isinstance(error, WorkerError):
            error.begun = begun
        if not asked.answered.done():
            asked.answered.set_exception(error)

    def _take(self, number: int) -> _Outstanding[Any]:
        """Remove a question and free its place; return the question."""
        asked = self._asked.pop(number)
        self._places.put_nowait(asked.place)
        return asked


class Question(NamedTuple):
    """A question that a process of a `WorkerPool` has taken."""

    head: bytes
    body: bytes
    file: int | None
    """A descriptor, which the taker closes."""


class PoolSeat:
    """A process's part in a `WorkerPool`: takes questions, notes how far it is, and answers."""

    def __init__(self, sink: BinaryIO) -> None:
        """`sink` is the standard output."""
        queue, self._memory, self._progress = map(int, os.environ[FILES].split(","))
        self._queue = socket.socket(fileno=queue)
        self._sink = sink
        self._number = 0

    @classmethod
    def of_process(cls) -> Self:
        """Take the seat of this process. What libraries print from now on is not taken for an answer."""
        seat = cls(sys.stdout.buffer)
        sys.stdout = sys.stderr
        return seat

    def take(self) -> Question | None:
        """Wait for the next question; return None when the pool is closed."""
        data, files, _, _ = socket.recv_fds(self._queue, 1, 1)
        if not data:
            return None
        offset = data[0] * PLACE_BYTES
        self._number, head, body = _HEAD.unpack(os.pread(self._memory, _HEAD.size, offset))
        self.note(0)
        offset += _HEAD.size
        return Question(
            os.pread(self._memory, head, offset),
            os.pread(self._memory, body, offset + head),
            files[0] if files else None,
        )

    def note(self, begun: int) -> None:
        """Note how many steps of the question have begun. 1 µs."""
        os.pwrite(self._progress, _PROGRESS.pack(self._number, begun), 0)

    def answer(self, data: bytes) -> None:
        """Answer the question."""
        self._sink.write(_ANSWER.pack(self._number, len(data)))
        left = memoryview(data)
        while left:  # Without a buffer (PYTHONUNBUFFERED), a signal cuts a write short.
            left = left[self._sink.write(left) :]
        self._sink.flush()


def parts_of(items: Iterable[One], size_of: Callable[[One], int], items_max: int, size: int) -> Iterator[list[One]]:
    """Yield items for one question after the other: `items_max` of them, or as many as exceed `size` together."""
    some: list[One] = []
    held = 0
    for item in items:
        some.append(item)
        held += size_of(item)
        if len(some) >= items_max or held > size:
            yield some
            some = []
            held = 0
    if some:
        yield some


def _make_shared_memory() -> int:
    """Return the descriptor of memory that processes share."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("gossamer-pool")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _write(descriptor: int, parts: list[bytes], offset: int) -> None:
    left = sum(map(len, parts))
    while left > 0:
        written = os.pwritev(descriptor, parts, offset)
        offset = offset + written
        left = left - written
        if left > 0:
            parts = [b"".join(parts)[written:]]
