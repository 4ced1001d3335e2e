"""Ahead: other processes read and examine the captures that are imported next. They are committed in their order.

An archive is divided into stretches of records; a question is one stretch. The importing process reads and examines
the stretches that a process does not answer.
"""

import asyncio
import sys
from array import array
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from gossamer.config import Config
from gossamer.config.live import FILE
from gossamer.engine.examine import Examined, Examiner, dead
from gossamer.results.imports.capture import Capture, CapturePlace, ImportRequest, Item, Refused, Room, Skipped, Source
from gossamer.results.imports.reading import captures_of
from gossamer.world.pool import WorkerPool, parts_of
from gossamer.world.process import child_environment, processors
from gossamer.world.workers import WorkerError

RANGE_BYTES = 2 << 20
COUNTED_MAX = 100_000
"""Records in a range; the importing process counts those of one that has more."""
STRETCH_RECORDS = 32
STRETCH_BYTES = 1 << 20
"""A stretch of an archive ends after as many records, or bytes of the file, at the next member of another address."""
ANSWER_BYTES = 4 << 20
"""Bytes of bodies after which a process leaves the rest of its stretch to the importing process."""
ANSWER_BYTES_MAX = 256 << 20
PROCESS_BYTES = 96 << 20
STOP_LOOK_S = 0.25
STRETCHES_WAITING = 1
TOGETHER_MAX = 64
TOGETHER_BYTES = 1 << 20
"""Items and bytes of bodies that the importing process examines together: it stays in caches (decision 18)."""
_encode = msgspec.msgpack.Encoder(enc_hook=str).encode


class ArchiveStretch(msgspec.Struct, array_like=True, frozen=True):
    """Consecutive records of an archive."""

    source: Source
    after: CapturePlace | None = None
    until: tuple[int, int] | None = None
    """Offset of the last, and its place within the member; None: it is the last of the archive."""
    counts: bool = False
    """They are only counted, on to the first member behind `until` that is of another address."""

    def items(self, room: Room) -> Iterator[Item]:
        """Yield what its records are. Raises as `captures_of`."""
        for item in captures_of(self.source, room, self.after):
            place = (-1, 0) if isinstance(item, Refused) else (item.place.offset, item.place.within)
            if self.until is not None and place > self.until:
                return
            yield item
            if place == self.until:
                return


def ranges_of(source: Source) -> Iterator[ArchiveStretch]:
    """Yield the ranges of an archive whose records are counted at once: several where members can be searched."""
    size = source.length if source.length >= 0 else source.size
    step = RANGE_BYTES if source.packing and source.form == "warc" and not source.member else max(size, 1)
    for begin in range(0, max(size, 1), step):
        at = source.begin + begin
        after = CapturePlace(source.number, at - 1, -1, step) if begin else None
        yield ArchiveStretch(source, after, (at + step, 0) if begin + step < size else None, counts=True)


def offset_of(item: Item) -> int:
    """Return the offset of an item in the file."""
    return item.offset if isinstance(item, Refused) else item.place.offset


def together(items: Iterator[Item]) -> Iterator[list[Item]]:
    """Yield some items at a time."""
    return parts_of(
        items, lambda item: item.body_bytes if isinstance(item, Capture) else 0, TOGETHER_MAX, TOGETHER_BYTES
    )


class Borders:
    """Places to divide an archive: where members begin, not between records of one address. 16 bytes a stretch."""

    def __init__(self) -> None:
        self._places = array("q")
        self._last: Item | None = None
        self._begin = 0
        self._records = 0

    def note(self, item: Item) -> None:
        """Take the next item of the archive."""
        last = self._last
        self._last = item
        if isinstance(item, Refused) or isinstance(last, Refused):
            return
        offset = item.place.offset
        is_long = self._records >= STRETCH_RECORDS or offset - self._begin >= STRETCH_BYTES
        if last is not None and is_long and offset > last.place.offset and item.url != last.url:
            self._places.extend((last.place.offset, last.place.within))
            self._begin = offset
            self._records = 0
        self._records += 1

    def stretches(self, source: Source, after: CapturePlace | None) -> Iterator[ArchiveStretch]:
        """Yield the stretches of the archive behind a record."""
        for at in range(0, len(self._places), 2):
            until = (self._places[at], self._places[at + 1])
            if after is None or until > (after.offset, after.within):
                yield ArchiveStretch(source, after, until)
                after = CapturePlace(source.number, *until)
        yield ArchiveStretch(source, after)


class StretchQuestion(msgspec.Struct, array_like=True, frozen=True):
    """A stretch whose captures are to be examined."""

    stretch: ArchiveStretch
    request: ImportRequest
    left_out: Sequence[int] = ()


class ReadItem(msgspec.Struct, array_like=True, frozen=True):
    """An item as a process read it."""

    item: Item
    examined: Examined | None = None
    """None of what is not to be examined."""
    is_plain: bool = False
    """The examined content is the body of the capture, and is not sent twice."""

    def whole(self) -> tuple[Item, Examined | None]:
        """Return the item, and what it says."""
        if self.examined is not None and self.is_plain and isinstance(self.item, Capture):
            self.examined.content = replace(self.examined.content, body=self.item.body)
        return self.item, self.examined


class StretchAnswer(msgspec.Struct, array_like=True, frozen=True):
    """The first items of a stretch."""

    items: Sequence[ReadItem] = ()
    is_whole: bool = False
    is_suspect: bool = False
    """Processes died while they read it: its captures are examined in quarantine."""
    next: int = -1
    """Of records that are counted: offset of the first that belongs to another range; -1 if there is none."""


_question = msgspec.msgpack.Decoder(StretchQuestion).decode
_answer = msgspec.msgpack.Decoder(StretchAnswer).decode


class StretchReader(NamedTuple):
    """Reads and examines stretches in a separate process."""

    room: Room
    examiner: Examiner

    def answer(self, data: bytes, note: Callable[[int], None]) -> bytes:
        """Answer a question. `note` is called with the number of an item, from 1 on, before it is examined."""
        question = _question(data)
        if question.stretch.counts:
            return _encode(self._count(question))
        encoded: list[msgspec.Raw] = []
        size = 0
        for some in together(question.stretch.items(self.room)):
            read: list[ReadItem] = []
            for number, item in enumerate(some, len(encoded) + 1):
                if isinstance(item, Capture):
                    size += item.body_bytes
                    if item.file is not None or size > ANSWER_BYTES:
                        return _encode(([*encoded, *map(_encode_item, read)], False))
                read.append(self._read(question, number, item, note))
            encoded += map(_encode_item, read)
        return _encode((encoded, True))

    def _count(self, question: StretchQuestion) -> StretchAnswer:
        stretch = question.stretch
        room = replace(self.room, counts=True, heads=bool(question.request.statuses))
        items: list[ReadItem] = []
        last: Capture | Skipped | None = None
        for item in captures_of(stretch.source, room, stretch.after):
            if len(items) == COUNTED_MAX:
                return StretchAnswer()
            if not isinstance(item, Refused):
                offset = item.place.offset
                behind = offset - stretch.until[0] if stretch.until is not None else -1
                if last is not None and offset > last.place.offset and behind >= 0:
                    is_other = item.url != last.url or behind > RANGE_BYTES  # At worst, all is read twice.
                    if is_other:
                        return StretchAnswer(items, True, next=offset)
                last = item
            items.append(ReadItem(replace(item, headers=()) if isinstance(item, Capture) else item))
        return StretchAnswer(items, True)

    def _read(self, question: StretchQuestion, number: int, item: Item, note: Callable[[int], None]) -> ReadItem:
        if not (isinstance(item, Capture) and item.may_be_page) or question.request.why_unwanted(item):
            return ReadItem(item)
        note(number)
        if number in question.left_out:
            return ReadItem(item, dead())
        try:
            examined = self.examiner.examine(item.reply(), 0, item.link_type)
        except Exception:  # noqa: BLE001 - the importing process finds and reports the same error
            return ReadItem(item)
        content = examined.content
        is_plain = content.body == item.body
        if is_plain:
            examined.content = replace(content, body=b"")
        return ReadItem(item, examined if content.file is None else None, is_plain)


def _encode_item(read: ReadItem) -> msgspec.Raw:
    try:
        return msgspec.Raw(_encode(read))
    except UnicodeEncodeError:  # Lone surrogates, which escapes of some page made.
        return msgspec.Raw(_encode(ReadItem(read.item)))


class Ahead:
    """Reads and examines stretches in separate processes, as many ahead as there are processes and places for them."""

    def __init__(self, config: Config, directory: Path, *, is_on: bool) -> None:
        """Have a process for each processor, within half of the memory; none without `is_on`, and for one processor."""
        cores = processors()
        self._processes = min(cores, config.memory.budget_bytes // 2 // PROCESS_BYTES) if is_on and cores > 1 else 0
        self._pool = WorkerPool(
            (sys.executable, "-P", "-m", "gossamer.results.isolated", str(directory / FILE), "captures"),
            config.crawl.process_s_max, max(1, self._processes), STRETCHES_WAITING, child_environment(),
            answer_bytes_max=ANSWER_BYTES_MAX,
        )  # fmt: skip

    async def answers(
        self, stretches: Iterator[ArchiveStretch], request: ImportRequest, stop: asyncio.Event
    ) -> AsyncGenerator[tuple[ArchiveStretch, StretchAnswer], None]:
        """Yield stretches in their order, with what processes read of them, until `stop` is set."""
        asked: deque[tuple[ArchiveStretch, asyncio.Task[StretchAnswer]]] = deque()
        try:
            while True:
                for stretch in islice(stretches, max(1, self._processes * (1 + STRETCHES_WAITING)) - len(asked)):
                    asked.append((stretch, asyncio.create_task(self._ask(StretchQuestion(stretch, request)))))
                if not asked:
                    return
                first, answered = asked[0]
                # A page may hang for long. Another thread may set the event.
                while not (answered.done() or stop.is_set()):
                    await asyncio.wait([answered], timeout=STOP_LOOK_S)
                if stop.is_set():
                    return
                asked.popleft()
                yield first, answered.result()
        finally:
            for _, task in asked:
                task.cancel()

    async def close(self) -> None:
        """End the processes."""
        await self._pool.close()

    async def _ask(self, question: StretchQuestion) -> StretchAnswer:
        """Return the answer, without the findings of captures of which a process died."""
        source = question.stretch.source
        # A process has no network, and unpacks no package.
        if not self._processes or source.form == "har" or source.member or "://" in source.place:
            return StretchAnswer()
        left_out: list[int] = []
        while True:
            try:
                encoded = _encode(replace(question, left_out=left_out))
                return await self._pool.ask(encoded, b"", _answer, STRETCH_RECORDS)
            except OSError:  # No process can be started.
                return StretchAnswer()
            except WorkerError as error:
                if error.begun in (0, *left_out):
                    return StretchAnswer(is_suspect=True)
                left_out.append(error.begun)
