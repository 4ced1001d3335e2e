"""Reads: questions to the archives of crawls, answered by a separate process. What a hostile page does to it, and the
memory that a large table takes, do not reach the process that asks.
"""

from __future__ import annotations

import base64
import hmac
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from gossamer.model import verbs
from gossamer.model.archived import Compared, Comparison, HostHistory, ItemList, PageVersions
from gossamer.world.process import child_environment
from gossamer.world.workers import DiedError, OverdueError, WorkerError, Workers, send_framed

READ_S_MAX = 50.0
"""For one question, from the moment in which the process begins with it."""
READ_CPU_S_MAX = 40.0
"""Of a processor, for one question."""
MEMORY_BYTES_MAX = 2 << 30
"""Data of the process; a table that needs more goes to temporary files."""
WAITING_MAX = 24
"""Questions that wait for the process, the one under way included; more are refused. A page with its images asks many
at once.
"""
IDLE_S_MAX = 15.0
"""Idle time after which the process ends, since its memory belongs to the crawl."""
REPLAY_BYTES_MAX = 8 << 20
"""Of one archived page, or of something that it shows."""
ANSWER_BYTES_MAX = REPLAY_BYTES_MAX + (4 << 20)


class ReplayPlace(msgspec.Struct, array_like=True, frozen=True):
    """An archived version, and where its content is: names of WARC files, offsets, lengths."""

    crawl: str
    url: str
    at: int
    """Microseconds since 1970."""
    media_type: str
    place: tuple[str, int, int]
    original: tuple[str, int, int] | None = None


class ReadVersions(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """Which attempts there are at a page."""

    crawl: str
    url: str
    secret: bytes


class ReadItems(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """A part of the items."""

    kind: str
    limit: int
    offset: int


class ReadHost(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """How requests to a host ended."""

    host: str


class ReadComparison(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """What another crawl, the earlier one, has otherwise."""

    earlier: str
    change: Compared
    limit: int
    offset: int


class ReadReplay(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """An archived version as a browser shows it. Addresses in it become paths that `secret` signs."""

    place: ReplayPlace
    secret: bytes


class Replayed(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """Content that a browser can show, without scripts."""

    media_type: str
    body: bytes


class ReadFailed(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """Why there is no answer, in one line."""

    says: str
    is_missing: bool = False


Question = ReadVersions | ReadItems | ReadHost | ReadComparison | ReadReplay


class ArchiveQuestion(msgspec.Struct, array_like=True, frozen=True):
    """What the process is given."""

    directory: str
    question: Question


_encode = msgspec.msgpack.Encoder().encode
_MAC_BYTES = 18
"""A multiple of three, so that its text has no padding."""
Answer = TypeVar("Answer", bound=msgspec.Struct)


def sealed(secret: bytes, place: ReplayPlace) -> str:
    """Return a path that only one who knows `secret` can make: it leads to this version and to nothing else."""
    data = _encode(place)
    return base64.urlsafe_b64encode(_mac(secret, data) + data).decode().rstrip("=")


def unsealed(secret: bytes, path: str) -> ReplayPlace | None:
    """Return what a path leads to; None for one that was not made with `secret`."""
    try:
        found = base64.urlsafe_b64decode(path + "=" * (-len(path) % 4))
    except ValueError:
        return None
    mac, data = found[:_MAC_BYTES], found[_MAC_BYTES:]
    return msgspec.msgpack.decode(data, type=ReplayPlace) if hmac.compare_digest(mac, _mac(secret, data)) else None


def _mac(secret: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, data, "sha256")[:_MAC_BYTES]


class Reads:
    """Reads archives, one question at a time. The process starts with the first question."""

    def __init__(self) -> None:
        self._workers = Workers(
            (sys.executable, "-P", "-m", "gossamer.isolated", "read"),
            READ_S_MAX,
            1,
            child_environment(),
            answer_bytes_max=ANSWER_BYTES_MAX,
            idle_s_max=IDLE_S_MAX,
        )
        self._waiting = 0

    async def versions(self, directory: Path, question: ReadVersions) -> PageVersions:
        """Return the attempts at a page. Raises as `replay`."""
        return await self._asked(directory, question, PageVersions)

    async def items(self, directory: Path, question: ReadItems) -> ItemList:
        """Return a part of the items of a crawl. Raises as `replay`."""
        return await self._asked(directory, question, ItemList)

    async def host(self, directory: Path, question: ReadHost) -> HostHistory:
        """Return how requests to a host ended, over time. Raises as `replay`."""
        return await self._asked(directory, question, HostHistory)

    async def comparison(self, directory: Path, question: ReadComparison) -> Comparison:
        """Return what differs between an earlier crawl and the one in `directory`. Raises as `replay`."""
        return await self._asked(directory, question, Comparison)

    async def replay(self, directory: Path, question: ReadReplay) -> Replayed:
        """Return an archived page as a browser shows it.

        Raises:
            ConflictError: the files of the crawl do not have it, or are damaged.
            MissingError: nothing has this name.
            BusyError: too many questions wait.
            FailedError: the process died of the question.
            VerbTimeoutError: the process took too long.
        """
        return await self._asked(directory, question, Replayed)

    async def close(self) -> None:
        """End the process."""
        await self._workers.close()

    async def _asked(self, directory: Path, question: Question, kind: type[Answer]) -> Answer:
        if self._waiting >= WAITING_MAX:
            raise verbs.BusyError(f"{WAITING_MAX} reads of archives wait already; try again in some seconds")
        self._waiting += 1
        try:
            data = _encode(ArchiveQuestion(str(directory), question))
            found = await self._workers.ask(partial(send_framed, data=data), partial(_read, kind=kind))
        except WorkerError as error:
            is_slow = isinstance(error, DiedError) and error.returncode == -signal.SIGPROF
            if is_slow or isinstance(error, OverdueError):
                raise verbs.VerbTimeoutError(
                    f"reading the archive took longer than {READ_S_MAX:g} s; use the command line for large crawls"
                ) from None
            raise verbs.FailedError(f"reading the archive failed: {error}") from None
        finally:
            self._waiting -= 1
        if isinstance(found, ReadFailed):
            raise (verbs.MissingError if found.is_missing else verbs.ConflictError)(found.says)
        return found


def _read(data: bytes, kind: type[Answer]) -> Answer | ReadFailed:
    """Return an answer: behind its first byte, which says whether it is one."""
    try:
        if data[:1] == b"!":
            return msgspec.msgpack.decode(data[1:], type=ReadFailed)
        return msgspec.msgpack.decode(data[1:], type=kind)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
