"""Ahead: other processes read and examine the captures that are imported next. They are committed in their order.

An archive is divided into stretches of records; a question is one stretch. What a process does not answer, the
importing process reads and examines itself.
"""

from __future__ import annotations

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
from gossamer.model.links import SEED
from gossamer.results.imports.capture import (
    LINK_TYPE,
    Capture,
    CapturePlace,
    ImportRequest,
    Item,
    Refused,
    Room,
    Skipped,
    Source,
)
from gossamer.results.imports.reading import captures_of
from gossamer.url.name import Namer
from gossamer.world.pool import WorkerPool
from gossamer.world.process import child_environment, processors
from gossamer.world.workers import WorkerError

STRETCH_RECORDS = 64
STRETCH_BYTES = 1 << 20
"""A stretch of an archive ends after as many records, or bytes of the file, at the next member of another address."""
ANSWER_BYTES = 4 << 20
"""Bytes of bodies after which a process leaves the rest of its stretch to the importing process."""
ANSWER_BYTES_MAX = 256 << 20
PROCESS_BYTES = 96 << 20
"""Memory of a process, about."""
STRETCHES_WAITING = 1
"""Stretches that wait for each process."""
_encode = msgspec.msgpack.Encoder(enc_hook=str).encode


class Stretch(msgspec.Struct, array_like=True, frozen=True):
    """Consecutive records of an archive."""

    source: Source
    after: CapturePlace | None = None
    """Place of the record before the first."""
    until: tuple[int, int] | None = None
    """Offset of the last, and its place within the member; None: it is the last of the archive."""

    def items(self, room: Room) -> Iterator[Item]:
        """Yield what its records are. Raises as `captures_of`."""
        for item in captures_of(self.source, room, self.after):
            place = (-1, 0) if isinstance(item, Refused) else (item.place.offset, item.place.within)
            if self.until is not None and place > self.until:
                return
            yield item
            if place == self.until:
                return


class Borders:
    """Places between which an archive can be divided: at the beginning of a member, and not between the records of one
    address, which belong together. 16 bytes a stretch.
    """

    def __init__(self) -> None:
        self._places = array("q")
        self._last: Capture | Skipped | None = None
        self._begin = 0
        self._records = 0

    def note(self, item: Item) -> None:
        """Take the next item of the archive."""
        if isinstance(item, Refused):
            self._last = None
            return
        last = self._last
        offset = item.place.offset
        is_long = self._records >= STRETCH_RECORDS or offset - self._begin >= STRETCH_BYTES
        if last is not None and is_long and offset > last.place.offset and item.url != last.url:
            self._places.extend((last.place.offset, last.place.within))
            self._begin = offset
            self._records = 0
        self._records += 1
        self._last = item

    def stretches(self, source: Source, after: CapturePlace | None) -> Iterator[Stretch]:
        """Yield the stretches of the archive behind a record."""
        for at in range(0, len(self._places), 2):
            until = (self._places[at], self._places[at + 1])
            if after is None or until > (after.offset, after.within):
                yield Stretch(source, after, until)
                after = CapturePlace(source.number, *until)
        yield Stretch(source, after)


class StretchQuestion(msgspec.Struct, array_like=True, frozen=True):
    """A stretch whose captures are to be examined."""

    stretch: Stretch
    request: ImportRequest
    seeds: Sequence[str]
    """Keys of the seeds."""
    left_out: Sequence[int] = ()
    """Indexes of items of which a process died."""


class ReadItem(msgspec.Struct, array_like=True, frozen=True):
    """An item as a process read it: one of the first three."""

    capture: Capture | None = None
    refused: Refused | None = None
    skipped: Skipped | None = None
    examined: Examined | None = None
    """None of a capture that is not to be examined."""
    is_plain: bool = False
    """The examined content is the body of the capture, and is not sent twice."""

    def item(self) -> tuple[Item, Examined | None]:
        """Return the item, and what it says."""
        item = self.capture or self.refused or self.skipped
        assert item is not None, "one of them is set"
        examined = self.examined
        if examined is not None and self.capture is not None and self.is_plain:
            examined.content = replace(examined.content, body=self.capture.body)
        return item, examined


class StretchAnswer(msgspec.Struct, array_like=True, frozen=True):
    """The first items of a stretch."""

    items: Sequence[ReadItem] = ()
    is_whole: bool = False
    """They are all of it."""
    is_suspect: bool = False
    """Processes died while they read it: its captures are examined in processes of their own."""


class _EncodedAnswer(msgspec.Struct, array_like=True, frozen=True):
    """A `StretchAnswer` whose items are encoded."""

    items: Sequence[msgspec.Raw]
    is_whole: bool


_question = msgspec.msgpack.Decoder(StretchQuestion).decode
_answer = msgspec.msgpack.Decoder(StretchAnswer).decode


class StretchReader:
    """Reads and examines stretches, in a process of its own."""

    def __init__(self, room: Room, examiner: Examiner, namer: Namer) -> None:
        self._room = room
        self._examiner = examiner
        self._namer = namer

    def answer(self, data: bytes, note: Callable[[int], None]) -> bytes:
        """Answer a question. `note` is called with the number of an item, from 1 on, before it is examined."""
        question = _question(data)
        seeds = frozenset(question.seeds)
        encoded: list[msgspec.Raw] = []
        size = 0
        for number, item in enumerate(question.stretch.items(self._room), 1):
            if size > ANSWER_BYTES or (isinstance(item, Capture) and item.file is not None):
                return _encode(_EncodedAnswer(encoded, is_whole=False))
            read = ReadItem(refused=item) if isinstance(item, Refused) else ReadItem(skipped=item)  # type: ignore[arg-type]
            if isinstance(item, Capture):
                size += len(item.body)
                read = ReadItem(item)
                if item.is_document and not question.request.why_unwanted(item):
                    note(number)
                    read = ReadItem(item, examined=dead())
                    if number - 1 not in question.left_out:
                        read = self._examine(item, seeds)
            try:
                encoded.append(msgspec.Raw(_encode(read)))
            except UnicodeEncodeError:  # Lone surrogates, which escapes of some page made.
                encoded.append(msgspec.Raw(_encode(replace(read, examined=None))))
        return _encode(_EncodedAnswer(encoded, is_whole=True))

    def _examine(self, capture: Capture, seeds: frozenset[str]) -> ReadItem:
        url = self._namer.name(capture.url)
        kind = SEED if url is not None and url.key in seeds else LINK_TYPE
        try:
            examined = self._examiner.examine(capture.reply(), 0, kind)
        except Exception:  # noqa: BLE001 - the importing process finds and reports the same error
            return ReadItem(capture)
        if examined.content.file is not None:
            return ReadItem(capture)
        is_plain = examined.content.body == capture.body
        if is_plain:
            examined.content = replace(examined.content, body=b"")
        return ReadItem(capture, examined=examined, is_plain=is_plain)


class AskedStretch(NamedTuple):
    """A stretch, and the task that brings its answer."""

    stretch: Stretch
    answered: asyncio.Task[StretchAnswer] | None


class Ahead:
    """Has processes read and examine stretches, as many ahead as there are processes and places for them."""

    def __init__(self, config: Config, directory: Path, *, is_on: bool) -> None:
        """There is a process for each processor, as far as half of the memory goes; without `is_on` none."""
        self._processes = min(processors(), config.memory.budget_bytes // 2 // PROCESS_BYTES) if is_on else 0
        self._waiting_max = self._processes * (1 + STRETCHES_WAITING)
        self._pool = WorkerPool(
            (sys.executable, "-P", "-m", "gossamer.results.isolated", str(directory / FILE), "captures"),
            config.crawl.process_s_max,
            max(1, self._processes),
            STRETCHES_WAITING,
            child_environment(),
            answer_bytes_max=ANSWER_BYTES_MAX,
        )

    async def answers(
        self, stretches: Iterator[Stretch], request: ImportRequest, seeds: Sequence[str]
    ) -> AsyncGenerator[tuple[Stretch, StretchAnswer], None]:
        """Yield stretches in their order, with what processes read of them."""
        asked: deque[AskedStretch] = deque()
        try:
            while True:
                for stretch in islice(stretches, max(1, self._waiting_max) - len(asked)):
                    task = None
                    if self._processes and is_readable_alone(stretch.source):
                        task = asyncio.create_task(self._ask(StretchQuestion(stretch, request, seeds)))
                    asked.append(AskedStretch(stretch, task))
                if not asked:
                    return
                first = asked.popleft()
                yield first.stretch, StretchAnswer() if first.answered is None else await first.answered
        finally:
            tasks = [one.answered for one in asked if one.answered is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """End the processes."""
        await self._pool.close()

    async def _ask(self, question: StretchQuestion) -> StretchAnswer:
        """Return the answer, without the findings of captures of which a process died."""
        left_out: list[int] = []
        while True:
            try:
                data = _encode(replace(question, left_out=left_out))
                return await self._pool.ask(data, b"", _read_answer, STRETCH_RECORDS)
            except WorkerError as error:
                index = error.begun - 1
                if index < 0 or index in left_out:
                    return StretchAnswer(is_suspect=True)
                left_out.append(index)


def is_readable_alone(source: Source) -> bool:
    """Say whether another process can read a part of an archive: it has no network, and unpacks no package."""
    return source.form in ("warc", "arc") and not source.member and "://" not in source.place


def _read_answer(data: bytes) -> StretchAnswer:
    try:
        return _answer(data)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
