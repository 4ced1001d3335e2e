"""Isolation: processing modules in processes of their own, which may hang, grow or die without harm to the crawl.

A question is one page for one module: a head, then the page's content; the answer is what the module found. Both are
framed by their length, so that a process answers many.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import BinaryIO

import msgspec

from gossamer.model.modules import ModuleError
from gossamer.model.visits import Findings, LargeBody, Page
from gossamer.ports import ProcessingModule
from gossamer.process.chain import Processed
from gossamer.world.workers import DiedError, OverdueError, WorkerError, Workers, frame_from, framed

WALL_FACTOR = 10.0
"""Limit of a module's wall time, as a multiple of its processor time: a busy machine runs other work meanwhile."""
ANSWER_BYTES_MAX = 64 << 20
"""A process with a longer answer is killed."""
_PIECE_BYTES = 1 << 20


class WorkerQuestion(msgspec.Struct, array_like=True, frozen=True):
    """The head of a question; `body_bytes` bytes of content follow it."""

    index: int
    """Which of the modules that the media type calls for."""
    url: str
    media_type: str
    charset: str
    headers: tuple[tuple[str, str], ...]
    body_bytes: int


class WorkerAnswer(msgspec.Struct, array_like=True, frozen=True):
    """What a module found, and what went wrong."""

    findings: Findings
    errors: list[ModuleError]


_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
_decode_question = msgspec.msgpack.Decoder(WorkerQuestion).decode
_decode_answer = msgspec.msgpack.Decoder(WorkerAnswer).decode


class IsolatedModules:
    """Asks processes that `command` starts, `processes_max` at once; each is started when first needed.

    A module that takes more than `limit_s` of processor time (of which its process ends by SIGPROF) or `WALL_FACTOR`
    times that of any time, or that dies, costs its process and says so in one line; other pages wait for none but a
    free process. A page costs the copy of its content through a pipe, about 0.2 ms and 1 ms a MB.
    """

    def __init__(
        self,
        command: Sequence[str],
        chosen: Callable[[str], Sequence[ProcessingModule]],
        limit_s: float,
        processes_max: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`chosen` names the modules for a media type, in the order in which the processes know them."""
        self._chosen = chosen
        self._limit_s = limit_s
        self._workers = Workers(
            command, WALL_FACTOR * limit_s, processes_max, environment, answer_bytes_max=ANSWER_BYTES_MAX
        )

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
            question = WorkerQuestion(index, page.url, page.media_type, page.charset, page.headers, page.body_bytes)
            try:
                answer = await self._workers.ask(partial(_send, question=question, page=page), _read_answer)
            except WorkerError as error:
                errors.append(self._error(module.name, error))
            else:
                errors += answer.errors
                merge(findings, answer.findings)
        return errors

    async def close(self) -> None:
        """End all processes."""
        await self._workers.close()

    def _error(self, module: str, error: WorkerError) -> ModuleError:
        match error:
            case OverdueError():
                return ModuleError(module, str(error), "timeout")
            case DiedError(returncode=returncode) if returncode == -signal.SIGPROF:
                return ModuleError(module, f"took more than {self._limit_s:g} s of processor time", "timeout")
            case DiedError():
                return ModuleError(module, str(error), "died")
        return ModuleError(module, str(error), "failed")


def merge(findings: Findings, more: Findings) -> None:
    """Add what one module found to what others did."""
    findings.links.extend(more.links)
    findings.title = findings.title or more.title
    findings.text = more.text or findings.text  # As in one process, the later module's.
    findings.text_method = more.text_method or findings.text_method
    findings.charset = findings.charset or more.charset
    findings.nofollow = findings.nofollow or more.nofollow
    findings.noindex = findings.noindex or more.noindex
    findings.statements.extend(more.statements)
    findings.columns.update(more.columns)
    findings.announcement = findings.announcement or more.announcement
    findings.fields += more.fields
    findings.invalid += more.invalid
    for table, rows in more.rows.items():
        findings.rows.setdefault(table, []).extend(rows)


def answer_questions(
    source: BinaryIO,
    sink: BinaryIO,
    look: Callable[[int, Page], Processed],
    large: Callable[[BinaryIO, int], LargeBody],
    memory_bytes_max: int,
) -> None:
    """Serve a process that `command` starts until its input ends. `large` writes a body of this many bytes to disk."""
    while (head := frame_from(source)) is not None:
        question = _decode_question(head)
        file = large(source, question.body_bytes) if question.body_bytes > memory_bytes_max else None
        if file is None:
            body = source.read(question.body_bytes)
        else:
            with file.open() as reader:
                body = reader.read(memory_bytes_max)
        page = Page(question.url, question.media_type, question.charset, question.headers, body, file)
        seen = look(question.index, page)
        sink.write(framed(_encode(WorkerAnswer(seen.findings, list(seen.errors)))))
        sink.flush()


async def _send(writer: asyncio.StreamWriter, question: WorkerQuestion, page: Page) -> None:
    writer.write(framed(_encode(question)))
    if page.file is None:
        writer.write(page.body)
        await writer.drain()
    else:
        with page.open() as reader:
            while piece := reader.read(_PIECE_BYTES):
                writer.write(piece)
                await writer.drain()


def _read_answer(data: bytes) -> WorkerAnswer:
    try:
        return _decode_answer(data)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
