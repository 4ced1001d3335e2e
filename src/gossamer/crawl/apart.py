"""Apart: processing modules that run in processes of their own, which may hang, grow or die without harm to the crawl.

A question is one page for one module: a head, then the page's content; the answer is what the module found. Both are
framed by their length, so that a process answers many.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, Literal, Protocol

import msgspec

from gossamer.model.modules import ModuleError
from gossamer.model.visits import Findings, LargeBody, Page

START_S_MAX = 10.0
"""What a process takes to begin and to import its modules, on a busy machine: no page's fault."""
WALL_FACTOR = 10.0
"""A module may take so many times its processor time of any time: on a busy machine others run meanwhile."""
ANSWER_BYTES_MAX = 64 << 20
"""A longer answer is none: the process is ended."""
_PIECE_BYTES = 1 << 20
_LENGTH_BYTES = 8


class Question(msgspec.Struct, array_like=True, frozen=True):
    """The head of a question; `body_bytes` bytes of content follow it."""

    index: int
    """Which of the modules that the media type calls for."""
    url: str
    media_type: str
    charset: str
    headers: tuple[tuple[str, str], ...]
    body_bytes: int


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """What a module found, and what went wrong."""

    findings: Findings
    errors: list[ModuleError]


class _Ended(msgspec.Struct, frozen=True):
    """There is no answer, and why."""

    kind: Literal["failed", "timeout", "died"]
    how: str


class Named(Protocol):
    """A module as far as we must know it."""

    name: str


_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
_decode_question = msgspec.msgpack.Decoder(Question).decode
_decode_answer = msgspec.msgpack.Decoder(Answer).decode


class Apart:
    """Asks processes that `command` starts, `processes_max` at once; each is started when first needed.

    A module that takes more than `limit_s` of processor time (of which its process ends by SIGPROF) or `WALL_FACTOR`
    times that of any time, or that dies, costs its process and says so in one line; other pages wait for none but a
    free process. A page costs the copy of its content through a pipe, about 0.2 ms and 1 ms a MB.
    """

    def __init__(
        self,
        command: Sequence[str],
        chosen: Callable[[str], Sequence[Named]],
        limit_s: float,
        processes_max: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`chosen` names the modules for a media type, in the order in which the processes know them."""
        self._command = list(command)
        self._chosen = chosen
        self._limit_s = limit_s
        self._environment = environment
        self._free = asyncio.Semaphore(processes_max)
        self._idle: list[asyncio.subprocess.Process] = []

    def wants(self, media_type: str) -> bool:
        """Say whether any module is for such a page."""
        return bool(self._chosen(media_type))

    def names(self, media_type: str) -> list[str]:
        """Return the modules for such a page, in order."""
        return [module.name for module in self._chosen(media_type)]

    async def look(self, page: Page, findings: Findings) -> list[ModuleError]:
        """Add to the findings what the modules see; return what went wrong in them."""
        errors: list[ModuleError] = []
        for index, module in enumerate(self._chosen(page.media_type)):
            question = Question(index, page.url, page.media_type, page.charset, page.headers, page.body_bytes)
            async with self._free:
                answer = await self._asked(question, page)
            if isinstance(answer, _Ended):
                errors.append(ModuleError(module.name, answer.how, answer.kind))
            else:
                errors += answer.errors
                merge(findings, answer.findings)
        return errors

    async def close(self) -> None:
        """End all processes."""
        while self._idle:
            await _end(self._idle.pop())

    async def _asked(self, question: Question, page: Page) -> Answer | _Ended:
        began = not self._idle
        process = await self._begin() if began else self._idle.pop()
        keep = False
        try:
            async with asyncio.timeout(WALL_FACTOR * self._limit_s + (START_S_MAX if began else 0.0)):
                data = await _exchange(process, question, page)
            answer = _decode_answer(data)
            keep = True
        except TimeoutError:
            return _Ended("timeout", f"took longer than {WALL_FACTOR * self._limit_s:g} s in its isolated process")
        except (asyncio.IncompleteReadError, ConnectionError):
            with suppress(TimeoutError):  # The status comes a moment after the pipe has closed.
                async with asyncio.timeout(1.0):
                    await process.wait()
            if process.returncode == -signal.SIGPROF:
                return _Ended("timeout", f"took more than {self._limit_s:g} s of processor time")
            return _Ended("died", f"its process died ({_ended_by(process.returncode)})")
        except (msgspec.MsgspecError, ValueError) as error:
            return _Ended("failed", f"its process answered what cannot be read: {error}")
        finally:
            if keep:
                self._idle.append(process)
            else:
                await _end(process)
        return answer

    async def _begin(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # What it says in dying is not for the terminal.
            env=self._environment,
        )


def merge(findings: Findings, more: Findings) -> None:
    """Add what one module found to what others did."""
    findings.links.extend(more.links)
    findings.title = findings.title or more.title
    findings.text = more.text or findings.text  # As in one process, the later module's.
    findings.text_method = more.text_method or findings.text_method
    findings.charset = findings.charset or more.charset
    findings.nofollow = findings.nofollow or more.nofollow
    findings.noindex = findings.noindex or more.noindex
    findings.columns.update(more.columns)
    findings.announcement = findings.announcement or more.announcement
    for table, rows in more.rows.items():
        findings.rows.setdefault(table, []).extend(rows)


class Answers(Protocol):
    """What all modules of a process made of a page."""

    @property
    def findings(self) -> Findings: ...

    @property
    def errors(self) -> Sequence[ModuleError]: ...


def answer_questions(
    source: BinaryIO,
    sink: BinaryIO,
    look: Callable[[int, Page], Answers],
    large: Callable[[BinaryIO, int], LargeBody],
    memory_bytes_max: int,
) -> None:
    """Answer for a process that `command` starts, until nobody asks any more. `large` takes so many bytes to disk."""
    while head := source.read(_LENGTH_BYTES):
        question = _decode_question(source.read(int.from_bytes(head)))
        file = large(source, question.body_bytes) if question.body_bytes > memory_bytes_max else None
        if file is None:
            body = source.read(question.body_bytes)
        else:
            with file.open() as reader:
                body = reader.read(memory_bytes_max)
        page = Page(question.url, question.media_type, question.charset, question.headers, body, file)
        seen = look(question.index, page)
        data = _encode(Answer(seen.findings, list(seen.errors)))
        sink.write(len(data).to_bytes(_LENGTH_BYTES) + data)
        sink.flush()


async def _exchange(process: asyncio.subprocess.Process, question: Question, page: Page) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    head = _encode(question)
    process.stdin.write(len(head).to_bytes(_LENGTH_BYTES) + head)
    if page.file is None:
        process.stdin.write(page.body)
        await process.stdin.drain()
    else:
        with page.open() as reader:
            while piece := reader.read(_PIECE_BYTES):
                process.stdin.write(piece)
                await process.stdin.drain()
    length = int.from_bytes(await process.stdout.readexactly(_LENGTH_BYTES))
    if length > ANSWER_BYTES_MAX:
        raise ValueError(f"{length} bytes")
    return await process.stdout.readexactly(length)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    await process.wait()


def _ended_by(returncode: int | None) -> str:
    if returncode is None:
        return "unknown"
    return f"signal {-returncode}" if returncode < 0 else f"exit status {returncode}"
