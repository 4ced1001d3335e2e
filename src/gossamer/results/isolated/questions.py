"""Questions: a separate process answers one at a time, and may crash, hang or fill its memory without further harm."""

import asyncio
import signal
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, TypeVar

import msgspec

from gossamer.model import verbs
from gossamer.model.errors import ConfigError, CrawlFailedError, DamagedError
from gossamer.world.workers import DiedError, OverdueError, Worker, WorkerError, answer_frames, send_framed

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
_encode = msgspec.msgpack.Encoder().encode


class Questions:
    """Asks a process, which starts with the first question."""

    def __init__(self, bounds: AnswerBounds) -> None:
        self._bounds = bounds
        self._worker = Worker(
            (sys.executable, "-P", "-m", "gossamer.results.isolated", bounds.kind),
            bounds.answer_s_max,
            answer_bytes_max=bounds.answer_bytes_max,
            idle_s_max=bounds.idle_s_max,
        )
        self._waiting = 0
        self._failed_at: deque[float] = deque(maxlen=FAILURES_MAX)
        self.asked = 0
        self.failures = 0
        """Questions at which the process died, hung or answered nonsense."""
        self.last_failure = ""

    @property
    def starts(self) -> int:
        """How many processes there have been."""
        return self._worker.starts

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
            found = await self._worker.ask(partial(send_framed, data=_encode(question)), partial(_read, kind=kind))
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
        await self._worker.close()

    def _failure(self, error: WorkerError) -> verbs.RefusedError:
        bounds = self._bounds
        if isinstance(error, OverdueError):
            return verbs.VerbTimeoutError(f"{bounds.name} took longer than {bounds.answer_s_max:g} s; {bounds.advice}")
        if isinstance(error, DiedError) and error.returncode == -signal.SIGPROF:
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


def answer_questions(
    source: BinaryIO, sink: BinaryIO, bounds: AnswerBounds, kind: type[Question], answer: Callable[[Question], Answer]
) -> None:
    """Answer questions of a kind until the input ends, within limits that the kernel keeps."""
    decode = msgspec.msgpack.Decoder(kind).decode

    def answer_frame(frame: bytes) -> bytes:
        try:
            return b"=" + _encode(answer(decode(frame)))
        except verbs.RefusedError as error:
            return b"!" + _encode(Refusal(str(error), error.kind))
        except (ConfigError, CrawlFailedError, DamagedError, OSError) as error:
            return b"!" + _encode(Refusal(str(error), verbs.ConflictError.kind))

    answer_frames(source, sink, answer_frame, bounds.processor_s_max, bounds.memory_bytes_max)


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
