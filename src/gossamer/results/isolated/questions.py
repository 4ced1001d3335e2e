"""Questions: a separate process answers one at a time, and may crash, hang or fill its memory without further harm."""

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from gossamer.model import verbs
from gossamer.model.errors import ConfigError, CrawlFailedError, DamagedError
from gossamer.world.alarm import ProcessorLimit
from gossamer.world.pool import PoolSeat, WorkerPool
from gossamer.world.process import child_environment, limit_data
from gossamer.world.workers import NICENESS, DiedError, OverdueError, WorkerError

FAILURES_MAX = 5
FAILURES_S = 60.0
"""After `FAILURES_MAX` failures of the process within this time, no other is started."""

Question = TypeVar("Question", bound=msgspec.Struct)
Answer = TypeVar("Answer", bound=msgspec.Struct)


class AnswerBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a process that answers, and its name in errors."""

    kind: str
    """The argument with which it is started."""
    name: str
    plural: str
    """Of its questions."""
    advice: str
    """Advice about a question that takes too long."""
    remedy: str = ""
    """Remedy for one that ends the process; begins with its punctuation."""
    answer_s_max: float
    """For one question, from the moment in which the process begins with it."""
    processor_s_max: float
    """Of a processor, for one question."""
    memory_bytes_max: int
    """Data of the process. Files that it maps do not count."""
    waiting_max: int
    """Questions that wait for the process, the one under way included; more are refused."""
    idle_s_max: float
    """Idle time after which the process ends, since its memory belongs to the crawl."""
    answer_bytes_max: int


class Refusal(msgspec.Struct, array_like=True, frozen=True):
    """Why there is no answer, in one line."""

    says: str
    kind: verbs.Kind


_REFUSALS = {error.kind: error for error in (verbs.RefusedError, verbs.ConflictError, verbs.MissingError)}


class Questions:
    """Asks a process, which starts with the first question."""

    def __init__(self, bounds: AnswerBounds) -> None:
        self._bounds = bounds
        self._pool = WorkerPool(
            (sys.executable, "-P", "-m", "gossamer.results.isolated", bounds.kind),
            bounds.answer_s_max, 1, 0, child_environment(), answer_bytes_max=bounds.answer_bytes_max,
        )  # fmt: skip
        self._turn = asyncio.Lock()
        self._ending: asyncio.Task[None] | None = None
        """Ends the process when it is idle for long."""
        self._waiting = 0
        self._failed_at: deque[float] = deque(maxlen=FAILURES_MAX)
        self.asked = 0
        self.failures = 0
        """Questions at which the process died, hung or answered nonsense."""
        self.last_failure = ""

    @property
    def starts(self) -> int:
        """How many processes there have been."""
        return self._pool.starts

    async def ask(self, question: msgspec.Struct, kind: type[Answer]) -> Answer:
        """Return the answer, a `kind`.

        Raises:
            RefusedError, ConflictError, MissingError: what the process raised.
            BusyError: too many questions wait, or the process failed too often within the last minute.
            FailedError: the process died of the question.
            VerbTimeoutError: the process took too long.
        """
        if self._waiting >= self._bounds.waiting_max:
            raise verbs.BusyError(f"{self._waiting} {self._bounds.plural} wait already; try again in some seconds")
        self._require_health()
        self._waiting += 1
        self.asked += 1
        try:
            async with self._turn:
                found = await self._ask(question, kind)
        except WorkerError as error:
            self.failures += 1
            self.last_failure = str(error)
            self._failed_at.append(_now())
            raise self._failure(error) from None
        finally:
            self._waiting -= 1
        if isinstance(found, Refusal):
            raise _REFUSALS[found.kind](found.says)
        return found

    async def close(self) -> None:
        """End the process."""
        self._stay()
        await self._pool.close()

    async def _ask(self, question: msgspec.Struct, kind: type[Answer]) -> Answer | Refusal:
        """Ask the process, which is ended if it fails, or if the answer is no longer awaited."""
        self._stay()
        is_answered = False
        try:
            found = await self._pool.ask(b"", msgspec.msgpack.encode(question), partial(_read, kind=kind))
            is_answered = True
        finally:
            if is_answered:
                self._ending = asyncio.create_task(self._end_idle())
            else:
                await self._pool.close()
        return found

    def _stay(self) -> None:
        if self._ending is not None:
            self._ending.cancel()

    async def _end_idle(self) -> None:
        await asyncio.sleep(self._bounds.idle_s_max)
        async with self._turn:
            await self._pool.close()

    def _failure(self, error: WorkerError) -> verbs.RefusedError:
        bounds = self._bounds
        status = error.returncode if isinstance(error, DiedError) else 0
        if isinstance(error, OverdueError) or status == -signal.SIGALRM:
            return verbs.VerbTimeoutError(f"{bounds.name} took longer than {bounds.answer_s_max:g} s; {bounds.advice}")
        if status == -signal.SIGPROF:
            return verbs.VerbTimeoutError(
                f"{bounds.name} took more than {bounds.processor_s_max:g} s of processor time; {bounds.advice}"
            )
        return verbs.FailedError(f"{bounds.name} failed: {error}{bounds.remedy}")

    def _require_health(self) -> None:
        failed_at = self._failed_at
        if len(failed_at) == FAILURES_MAX and (left_s := failed_at[0] + FAILURES_S - _now()) > 0:
            raise verbs.BusyError(
                f"{self._bounds.name} is off for {left_s:.0f} s: its process failed {FAILURES_MAX} times within a "
                f"minute (last: {self.last_failure})"
            )


def answer_questions(bounds: AnswerBounds, kind: type[Question], answer: Callable[[Question], Answer]) -> None:
    """Answer questions of a kind until the pool closes, within limits that the kernel keeps."""
    decode = msgspec.msgpack.Decoder(kind).decode
    seat = PoolSeat.of_process()
    os.nice(NICENESS)
    limit_data(bounds.memory_bytes_max)
    limit = ProcessorLimit(bounds.processor_s_max, bounds.answer_s_max)
    while (question := seat.take()) is not None:
        limit.begin()
        try:
            answered = b"=" + msgspec.msgpack.encode(answer(decode(question.body)))
        except verbs.RefusedError as error:
            answered = b"!" + msgspec.msgpack.encode(Refusal(str(error), error.kind))
        except (ConfigError, CrawlFailedError, DamagedError, OSError) as error:
            answered = b"!" + msgspec.msgpack.encode(Refusal(str(error), verbs.ConflictError.kind))
        limit.end()
        seat.answer(answered)


def _read(data: bytes, kind: type[Answer]) -> Answer | Refusal:
    """Return an answer: behind its first byte, which says whether it is one."""
    try:
        if data[:1] == b"!":
            return msgspec.msgpack.decode(data[1:], type=Refusal)
        return msgspec.msgpack.decode(data[1:], type=kind)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def _now() -> float:
    return asyncio.get_running_loop().time()
