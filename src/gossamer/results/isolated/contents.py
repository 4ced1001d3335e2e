"""Contents: finds the main contents of archived pages in several processes, and returns them in order.

Each question is of a few pages. The processes take turns, and two questions wait in each, so that none idles while
answers are used; questions are so short that both fit into a socket, so that none is stuck behind an unread answer.
"""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.results.export.bodies import ArchivedPage, MarkdownPage, Means, PageText, RecordBodies
from gossamer.results.export.mirror import write_files
from gossamer.results.export.opening import export_means
from gossamer.world.alarm import ProcessorLimit
from gossamer.world.loop import calm_collector
from gossamer.world.pool import parts_of
from gossamer.world.process import child_environment, limit_data, processors
from gossamer.world.workers import NICENESS

PAGES_AT_ONCE = 16
QUESTION_BYTES_MAX = 24_000
"""Of the addresses in a question, beyond its first: a socket holds 64 KiB and more."""
WAITING = 2
"""Questions that wait in each process."""
PROCESS_BYTES = 128 << 20
"""Memory of a process, at most in ordinary crawls; an export has no more of them than fit into its limit beside …"""
OWN_BYTES = 160 << 20
"""… its own process, while it uses what they find."""
MEMORY_BYTES_MAX = 4 << 30
CPU_S_MAX = 1_200.0
"""Processor time of one question: pages of the largest size take seconds each."""


class ContentQuestion(msgspec.Struct, array_like=True, frozen=True):
    """Pages whose contents are to be found."""

    config_file: str
    warc_folder: str
    pages: list[ArchivedPage]
    work: tuple[str, ...] = ("markdown",)
    """The work to do: find contents as `markdown` or `text` alone, with or without the `visible` text,
    that alone, or write `files` of a mirror to a folder, with names from a database.
    """


class ContentAnswer(msgspec.Struct, array_like=True, frozen=True):
    """Contents of the pages of a question, or the error that ended it."""

    found: list[Any] = []
    """For each page the fields of a `MarkdownPage` or `PageText`; None where there is none."""
    error: str = ""
    is_damage: bool = False


_question = msgspec.msgpack.Decoder(ContentQuestion).decode
_answer = msgspec.msgpack.Decoder(ContentAnswer).decode


class _Finder(NamedTuple):
    process: subprocess.Popen[bytes]
    connection: Connection


class ContentProcesses(AbstractContextManager["ContentProcesses"]):
    """As many processes as there are processors, started when they are needed. Use as a context, for one export."""

    def __init__(self, config_file: Path, bytes_max: int, *, markdown: bool = True, visible: bool = False) -> None:
        """`markdown` says whether contents are needed as Markdown too, `visible` whether the visible text is."""
        self._work = ("markdown" if markdown else "text", *(("visible",) if visible else ()))
        self._config_file = config_file
        self._processes_max = max(1, min(processors(), (bytes_max - OWN_BYTES) // PROCESS_BYTES))
        self._processes: list[_Finder] = []

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        for one in self._processes:
            one.process.kill()
        for one in self._processes:
            one.process.wait()
            one.connection.close()
        self._processes.clear()

    def contents_of(self, warc_folder: Path, pages: Iterable[ArchivedPage]) -> Iterator[MarkdownPage | None]:
        """Return the contents of pages in their order. Reads some hundred pages ahead. Raises ConfigError: a WARC file
        is not here; DamagedError: a record is not what was written, or a process died of a page.
        """
        for one in self._ask(self._work, warc_folder, pages):
            found = MarkdownPage(*one) if one is not None else None
            yield found._replace(visible=PageText(*found.visible)) if found and found.visible else found

    def texts_of(self, warc_folder: Path, pages: Iterable[ArchivedPage]) -> Iterator[PageText | None]:
        """Return the visible texts of pages likewise."""
        return (PageText(*one) if one is not None else None for one in self._ask(("visible",), warc_folder, pages))

    def write_files(self, warc_folder: Path, pages: Iterable[ArchivedPage], out: Path, names: Path) -> Iterator[None]:
        """Write pages as files of a mirror likewise; what was returned is written."""
        return self._ask(("files", str(out), str(names)), warc_folder, pages)

    def _ask(self, work: tuple[str, ...], warc_folder: Path, pages: Iterable[ArchivedPage]) -> Iterator[Any]:
        asked: deque[tuple[Connection, ContentQuestion]] = deque()
        for number, some in enumerate(parts_of(pages, _bytes_of, PAGES_AT_ONCE, QUESTION_BYTES_MAX)):
            if len(asked) >= WAITING * self._processes_max:
                yield from _read_answer(*asked.popleft())
            question = ContentQuestion(str(self._config_file), str(warc_folder), some, work)
            connection = self._connection(number % self._processes_max)
            with suppress(ConnectionError):  # It died; which page it died of is known when its answers are read.
                connection.send_bytes(msgspec.msgpack.encode(question))
            asked.append((connection, question))
        while asked:
            yield from _read_answer(*asked.popleft())
        self._end()  # Their memory is for what is made of the contents.

    def _connection(self, number: int) -> Connection:
        if number == len(self._processes):
            ours, theirs = Pipe()
            with theirs:
                process = subprocess.Popen(  # noqa: S603 - ourselves
                    (sys.executable, "-P", "-m", "gossamer.results.isolated", "contents", str(theirs.fileno())),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env=child_environment(),
                    process_group=0,  # Ctrl-C is for us.
                )
            self._processes.append(_Finder(process, ours))
        return self._processes[number].connection


def _bytes_of(page: ArchivedPage) -> int:
    return len(page.url.encode()) + len(page.file)


def _read_answer(connection: Connection, question: ContentQuestion) -> Iterator[Any]:
    try:
        answer = _answer(connection.recv_bytes())
    except (EOFError, OSError, msgspec.MsgspecError) as error:
        raise DamagedError(
            f"a process died of one of the {len(question.pages)} pages from {question.pages[0].url} on; nothing was "
            "made: leave the page out with --where, such as \"url <> '...'\""
        ) from error
    if answer.error:
        raise (DamagedError if answer.is_damage else ConfigError)(answer.error)
    yield from answer.found


def _find(means: Means, question: ContentQuestion) -> Iterator[object]:
    warc_folder = Path(question.warc_folder)
    match question.work:
        case ("files", out, names_file):
            yield from write_files(means, warc_folder, question.pages, Path(out), Path(names_file))
        case (*_, "visible"):
            from gossamer.results.search.build import text_in_page  # noqa: PLC0415 - this work needs gossamer[search]

            alone = len(question.work) == 1
            with RecordBodies(warc_folder, means.decode) as bodies:
                for page in map(bodies.page, question.pages):
                    text = text_in_page(means, page) if page is not None else None
                    yield text if alone or page is None else means.content_of(page)._replace(visible=text).as_sent()
        case _:
            for one in means.contents(warc_folder, question.pages):
                yield None if one is None else one.as_sent()


def answer_contents(descriptor: int) -> None:
    """Answer until the other end of a socket is closed. A question that takes more than `CPU_S_MAX` ends this process
    by SIGPROF.
    """
    calm_collector()
    os.nice(NICENESS)
    limit_data(MEMORY_BYTES_MAX)
    limit = ProcessorLimit(CPU_S_MAX)
    known: dict[tuple[str, bool], Means] = {}
    connection = Connection(descriptor)
    while True:
        try:
            question = _question(connection.recv_bytes())
        except EOFError:
            return
        limit.begin()
        key = (question.config_file, "text" not in question.work)
        if key not in known:
            known[key] = export_means(reopen(Path(question.config_file)), markdown=key[1])
        try:
            answer = ContentAnswer(list(_find(known[key], question)))
        except (ConfigError, DamagedError) as error:
            answer = ContentAnswer(error=str(error), is_damage=isinstance(error, DamagedError))
        limit.end()
        connection.send_bytes(msgspec.msgpack.encode(answer))
