"""Isolation: runs processing modules in separate processes, which may hang, grow or crash without harm to the crawl,
and which use the other processors.

A question is one page for all its isolated modules: a head and the page's content. The answer is their findings.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence

import msgspec

from gossamer.model.modules import ModuleError
from gossamer.model.pages import Findings, Page
from gossamer.ports import ProcessingModule
from gossamer.stages.process.chain import Modules, Processed
from gossamer.world.alarm import WALL_FACTOR, ProcessorLimit
from gossamer.world.pool import PoolSeat, Question, WorkerPool
from gossamer.world.spill import Spill
from gossamer.world.workers import DiedError, OverdueError, WorkerError

ANSWER_BYTES_MAX = 64 << 20
"""A process with a longer answer is killed."""
PAGES_WAITING_MAX = 2
"""Decoded pages that may wait for each process, so that a free process has the next page at once."""


class WorkerQuestion(msgspec.Struct, array_like=True, frozen=True):
    """The head of a question, which comes before the page's content."""

    page: Page
    """Without its content."""
    file_bytes: int
    """Size of content that is too large for memory, of which the process gets a descriptor; else 0."""
    file_digest: bytes
    found: Findings
    """Of modules in our process: what an isolated module may read or replace."""
    left_out: list[int]
    """Indexes of modules that are not to run, because they ended a process."""


_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
_decode_question = msgspec.msgpack.Decoder(WorkerQuestion).decode
_decode_answer = msgspec.msgpack.Decoder(Processed).decode
Choose = Callable[[str, str], Sequence[ProcessingModule]]
"""Returns the modules for a media type and the type of the link to the page, in order."""


class IsolatedModules:
    """Runs modules in processes that `command` starts, at most `processes_max`; each is started when first needed.

    A module that takes more than `limit_s` of processor time (SIGPROF then ends its process), or `WALL_FACTOR` times
    that of wall time, or that crashes, ends its process and is reported in one line. The page's other modules run
    again; other pages wait only for a free process. At most `PAGES_WAITING_MAX` decoded pages wait for each process:
    call `enter` before a page is decoded. docs/decisions/0018-speed.md has the cost.
    """

    def __init__(
        self, command: Sequence[str], chosen: Choose, limit_s: float, processes_max: int, env: Mapping[str, str] | None
    ) -> None:
        """`chosen` returns the modules in the same order as in the processes."""
        self._chosen = chosen
        self._limit_s = limit_s
        self._places = asyncio.Semaphore(processes_max * (1 + PAGES_WAITING_MAX))
        self._pool = WorkerPool(
            command, WALL_FACTOR * limit_s, processes_max, PAGES_WAITING_MAX, env, answer_bytes_max=ANSWER_BYTES_MAX
        )

    def wants(self, media_type: str, link_type: str = "") -> bool:
        """Return whether any module is for such a page."""
        return bool(self._chosen(media_type, link_type))

    @property
    def is_full(self) -> bool:
        """Whether the next page has to wait before it is decoded."""
        return self._places.locked()

    async def enter(self) -> None:
        """Wait until one more page may be decoded: first come, first served."""
        await self._places.acquire()

    def leave(self) -> None:
        """Note that a page that entered is done, or needs no process."""
        self._places.release()

    async def process(self, page: Page, findings: Findings) -> Processed:
        """Add the modules' findings to `findings`; return them with the errors and the modules that ran."""
        chosen = self._chosen(page.media_type, page.link_type)
        found = Findings(
            title=findings.title, text=findings.text, text_method=findings.text_method, charset=findings.charset
        )
        errors: list[ModuleError] = []
        left_out: list[int] = []
        while places := [place for place in range(len(chosen)) if place not in left_out]:
            try:
                answer = await self._ask(page, found, left_out, len(places))
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
        await self._pool.close()

    async def _ask(self, page: Page, found: Findings, left_out: list[int], steps: int) -> Processed:
        file = page.file
        assert file is None or isinstance(file, Spill)
        size, digest = (file.size, file.digest) if file is not None else (0, b"")
        question = WorkerQuestion(msgspec.structs.replace(page, body=b"", file=None), size, digest, found, left_out)
        descriptor = file.fileno() if file is not None else None
        return await self._pool.ask(_encode(question), page.body, _decode_answer, steps, descriptor)

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
    """Merge the findings of isolated modules into those of others. Isolated modules know the title, the text and the
    encoding that others found, so theirs take precedence.
    """
    findings.links.extend(more.links)
    findings.title = more.title
    findings.charset = more.charset
    findings.text = more.text
    findings.text_method = more.text_method
    findings.nofollow = findings.nofollow or more.nofollow
    findings.noindex = findings.noindex or more.noindex
    findings.statements.extend(more.statements)
    findings.columns.update(more.columns)
    findings.announcement = more.announcement or findings.announcement
    findings.fields += more.fields
    findings.matched += more.matched
    findings.invalid += more.invalid
    for table, rows in more.rows.items():
        findings.rows.setdefault(table, []).extend(rows)


class LimitedModules:
    """Limits each module in a process of `IsolatedModules`, and notes how many of a page's modules have begun."""

    def __init__(self, limit_s: float, seat: PoolSeat) -> None:
        self._limit = ProcessorLimit(limit_s, WALL_FACTOR * limit_s)
        self._seat = seat
        self._begun = 0

    def begin(self, spent_s: float = 0.0) -> None:
        self._limit.begin()

    def resume(self) -> None:
        self._begun += 1
        self._seat.note(self._begun)
        self._limit.begin()

    def end(self) -> None:
        self._limit.end()

    def pause(self) -> float:
        self._limit.end()
        return 0.0

    def answer_questions(self, modules: Modules) -> None:
        """Answer questions until the pool closes. `modules` call `begin` and `end` around each module."""
        while (question := self._seat.take()) is not None:
            self._begun = 0
            self._seat.answer(_encode(_process(question, modules)))


def _process(question: Question, modules: Modules) -> Processed:
    head = _decode_question(question.head)
    file = None
    if question.file is not None:
        file = Spill.from_descriptor(question.file, head.file_bytes, head.file_digest)
    return modules.process(msgspec.structs.replace(head.page, body=question.body, file=file), head.found, head.left_out)
