"""Isolation: processing modules in processes of their own, which may hang, grow or die without harm to the crawl, and
use the processors that the crawl's own process leaves.

A question is one page for all its isolated modules: a head, then the page's content; the answer is what they found.
Both are framed by their length, so that a process answers many.
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
from gossamer.process.chain import Modules, Processed
from gossamer.world.alarm import ProcessorLimit
from gossamer.world.workers import DiedError, OverdueError, Progress, WorkerError, Workers, frame_from, framed

WALL_FACTOR = 10.0
"""Limit of a module's wall time, as a multiple of its processor time: a busy machine runs other work meanwhile."""
ANSWER_BYTES_MAX = 64 << 20
"""A process with a longer answer is killed."""
PAGES_WAITING_MAX = 2
"""Pages for each process whose content is decoded and waits for it: with less, processes wait for the event loop."""
_PIECE_BYTES = 1 << 20


class PageSoFar(msgspec.Struct, array_like=True, frozen=True):
    """What modules inside found of a page that another module may read or replace."""

    title: str
    text: str
    text_method: str
    charset: str


class WorkerQuestion(msgspec.Struct, array_like=True, frozen=True):
    """The head of a question; `body_bytes` bytes of content follow it."""

    url: str
    media_type: str
    charset: str
    headers: tuple[tuple[str, str], ...]
    link_type: str
    body_bytes: int
    found: PageSoFar
    left_out: list[int]
    """Places of modules that are not to run: they ended a process."""


class WorkerAnswer(msgspec.Struct, array_like=True, frozen=True):
    """What the modules found, and what went wrong."""

    findings: Findings
    errors: tuple[ModuleError, ...]
    ran: tuple[str, ...]


_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
_decode_question = msgspec.msgpack.Decoder(WorkerQuestion).decode
_decode_answer = msgspec.msgpack.Decoder(WorkerAnswer).decode
Choose = Callable[[str, str], Sequence[ProcessingModule]]
"""Returns the modules for a media type and the type of the link to the page, in order."""


class IsolatedModules:
    """Asks processes that `command` starts, `processes_max` at once; each is started when first needed.

    A module that takes more than `limit_s` of processor time (of which its process ends by SIGPROF) or `WALL_FACTOR`
    times that of any time, or that dies, costs its process and says so in one line. The page's other modules are asked
    again; other pages wait for none but a free process. A page costs the copies of its content and its findings
    through pipes: 0.05 ms for 100 KB (docs/decisions/0018-speed.md).

    At most `PAGES_WAITING_MAX` pages for each process wait for it with their content decoded. Enter before a page is
    decoded.
    """

    def __init__(
        self,
        command: Sequence[str],
        chosen: Choose,
        limit_s: float,
        processes_max: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`chosen` names the modules in the order in which the processes know them."""
        self._chosen = chosen
        self._limit_s = limit_s
        self._places = asyncio.Semaphore(processes_max * (1 + PAGES_WAITING_MAX))
        self._workers = Workers(
            command, WALL_FACTOR * limit_s, processes_max, environment, answer_bytes_max=ANSWER_BYTES_MAX
        )

    def wants(self, media_type: str, link_type: str = "") -> bool:
        """Say whether any module is for such a page."""
        return bool(self._chosen(media_type, link_type))

    @property
    def is_full(self) -> bool:
        """Whether the next page has to wait before it is decoded."""
        return self._places.locked()

    async def enter(self) -> None:
        """Wait until one more page may be decoded: first come, first served."""
        await self._places.acquire()

    def leave(self) -> None:
        """A page that entered is done, or needs no process."""
        self._places.release()

    async def look(self, page: Page, findings: Findings) -> Processed:
        """Add to the findings what the modules see; return that with what went wrong, and the modules."""
        chosen = self._chosen(page.media_type, page.link_type)
        found = PageSoFar(findings.title, findings.text, findings.text_method, findings.charset)
        errors: list[ModuleError] = []
        left_out: list[int] = []
        while places := [place for place in range(len(chosen)) if place not in left_out]:
            question = WorkerQuestion(
                page.url, page.media_type, page.charset, page.headers, page.link_type, page.body_bytes, found, left_out
            )
            try:
                answer = await self._workers.ask(
                    partial(_send, question=question, page=page), _read_answer, parts=len(places)
                )
            except WorkerError as error:
                culprit = places[max(0, min(error.begun, len(places)) - 1)]
                errors.append(self._error(chosen[culprit].name, error))
                left_out.append(culprit)
            else:
                merge(findings, answer.findings)
                names = dict.fromkeys((*(module.name for module in chosen), *answer.ran))
                return Processed(findings, (*errors, *answer.errors), tuple(names))
        return Processed(findings, tuple(errors), tuple(module.name for module in chosen))

    async def close(self) -> None:
        """End all processes."""
        await self._workers.close()

    def _error(self, module: str, error: WorkerError) -> ModuleError:
        match error:
            case OverdueError():
                return ModuleError(module, str(error), "timeout")
            case DiedError(returncode=returncode) if returncode == -signal.SIGPROF:
                return ModuleError(module, f"took more than {self._limit_s:g} s of processor time", "timeout")
            case DiedError(returncode=returncode) if returncode == -signal.SIGALRM:
                wall_s = WALL_FACTOR * self._limit_s
                return ModuleError(module, f"took longer than {wall_s:g} s in its isolated process", "timeout")
            case DiedError():
                return ModuleError(module, str(error), "died")
        return ModuleError(module, str(error), "failed")


def merge(findings: Findings, more: Findings) -> None:
    """Add what isolated modules found to what others did. They were told of the title, the text and the encoding, so
    theirs stand.
    """
    findings.links.extend(more.links)
    findings.title, findings.charset = more.title, more.charset
    findings.text, findings.text_method = more.text, more.text_method
    findings.nofollow = findings.nofollow or more.nofollow
    findings.noindex = findings.noindex or more.noindex
    findings.statements.extend(more.statements)
    findings.columns.update(more.columns)
    findings.announcement = more.announcement or findings.announcement
    findings.fields += more.fields
    findings.invalid += more.invalid
    for table, rows in more.rows.items():
        findings.rows.setdefault(table, []).extend(rows)


class LimitedModules:
    """Bounds each module in a process of `IsolatedModules`, and notes there how many of a page's have begun."""

    def __init__(self, limit_s: float) -> None:
        self._limit = ProcessorLimit(limit_s, WALL_FACTOR * limit_s)
        self._progress = Progress.ours()
        self._begun = 0

    def begin(self) -> None:
        self._begun += 1
        self._progress.set(self._begun)
        self._limit.begin()

    def end(self) -> None:
        self._limit.end()

    def restart(self) -> None:
        """Begin another page."""
        self._begun = 0


def answer_questions(
    source: BinaryIO,
    sink: BinaryIO,
    modules: Modules,
    limits: LimitedModules,
    large: Callable[[BinaryIO, int], LargeBody],
    memory_bytes_max: int,
) -> None:
    """Serve a process that `command` starts until its input ends. `large` writes a body of this many bytes to disk.
    `limits` watches the modules.
    """
    while (head := frame_from(source)) is not None:
        question = _decode_question(head)
        file = large(source, question.body_bytes) if question.body_bytes > memory_bytes_max else None
        if file is None:
            body = source.read(question.body_bytes)
        else:
            with file.open() as reader:
                body = reader.read(memory_bytes_max)
        page = Page(
            question.url, question.media_type, question.charset, question.headers, body, file, question.link_type
        )
        found = question.found
        findings = Findings(title=found.title, text=found.text, text_method=found.text_method, charset=found.charset)
        limits.restart()
        seen = modules.process(page, findings, question.left_out)
        sink.write(framed(_encode(WorkerAnswer(seen.findings, seen.errors, seen.ran))))
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
