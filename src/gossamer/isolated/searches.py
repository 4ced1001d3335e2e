"""Searches: questions to full-text indexes, answered by a separate process that may crash without harm to ours."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import deque
from functools import partial
from pathlib import Path

import msgspec

from gossamer.archive.search.folder import indexes_of, no_index
from gossamer.archive.search.question import QueryError, SearchQuestion
from gossamer.model import verbs
from gossamer.model.extras import missing
from gossamer.world.process import child_environment
from gossamer.world.workers import DiedError, OverdueError, WorkerError, Workers, send_framed

QUERY_S_MAX = 8.0
"""For one query, from the moment in which the process begins with it."""
QUERY_CPU_S_MAX = 5.0
"""Of a processor, for one query."""
MEMORY_BYTES_MAX = 512 << 20
"""Data of the search process. The index is mapped from its files and does not count."""
WAITING_MAX = 16
"""Queries that wait for the process, the one under way included; more are refused."""
IDLE_S_MAX = 30.0
"""Idle time after which a search process ends, since its memory belongs to the crawl."""
FAILURES_MAX = 5
FAILURES_S = 60.0
"""After `FAILURES_MAX` failures of the search process within this time, no other is started."""
ANSWER_BYTES_MAX = 8 << 20


class SearchRequest(msgspec.Struct, array_like=True, frozen=True):
    """What the search process is given."""

    folders: tuple[str, ...]
    question: SearchQuestion


class SearchAnswer(msgspec.Struct, array_like=True, frozen=True):
    """What it returns: an answer, or what is wrong with the query or the index."""

    found: verbs.SearchResults | None = None
    query_error: str = ""
    config_error: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SearchAnswer).decode


class Searches:
    """Searches in any crawl's index, one query at a time. The process starts with the first query."""

    def __init__(self) -> None:
        self._workers = Workers(
            (sys.executable, "-P", "-m", "gossamer.isolated", "search"),
            QUERY_S_MAX,
            1,
            child_environment(),
            answer_bytes_max=ANSWER_BYTES_MAX,
            idle_s_max=IDLE_S_MAX,
        )
        self._waiting = 0
        self._failed_at: deque[float] = deque(maxlen=FAILURES_MAX)
        self.queries = 0
        self.failures = 0
        """Queries at which the process died, hung or answered nonsense."""
        self.last_failure = ""

    @property
    def starts(self) -> int:
        """How many search processes there have been."""
        return self._workers.starts

    async def search(
        self, directory: Path, query: str, *, limit: int = 10, host: str = "", site: str = "", language: str = ""
    ) -> verbs.SearchResults:
        """Return the pages of a crawl that answer a query best.

        Raises:
            RefusedError: the query passes a bound or cannot be run.
            ConflictError: tantivy is missing; there is no index, or it cannot be read.
            BusyError: too many queries wait, or the process failed too often within the last minute.
            FailedError: the process died of the query.
            OverdueError: the process took too long.
        """
        if (reason := missing("tantivy", "search")) is not None:
            raise verbs.ConflictError(reason)
        question = SearchQuestion(query, limit, host, site, language)
        try:
            question.check()
        except QueryError as error:
            raise verbs.RefusedError(str(error)) from error
        folders = indexes_of(directory)
        if not folders:
            raise verbs.ConflictError(no_index(directory))
        if self._waiting >= WAITING_MAX:
            raise verbs.BusyError(f"{WAITING_MAX} queries wait already; try again in some seconds")
        self._require_health()
        self._waiting += 1
        self.queries += 1
        try:
            answered = await self._asked(SearchRequest(tuple(map(str, folders)), question))
        finally:
            self._waiting -= 1
        if answered.query_error:
            raise verbs.RefusedError(answered.query_error)
        if answered.found is None:
            raise verbs.ConflictError(answered.config_error)
        return answered.found

    async def close(self) -> None:
        """End the process."""
        await self._workers.close()

    async def _asked(self, asked: SearchRequest) -> SearchAnswer:
        try:
            return await self._workers.ask(partial(send_framed, data=_encode(asked)), _read)
        except WorkerError as error:
            self.failures += 1
            self.last_failure = str(error)
            self._failed_at.append(_now())
            if isinstance(error, OverdueError):
                raise verbs.VerbTimeoutError(
                    f"the search took longer than {QUERY_S_MAX:g} s; simplify the query"
                ) from None
            if isinstance(error, DiedError) and error.returncode == -signal.SIGPROF:
                raise verbs.VerbTimeoutError(
                    f"the search took more than {QUERY_CPU_S_MAX:g} s of processor time; simplify the query"
                ) from None
            raise verbs.FailedError(
                f"the search failed: {error}; simplify the query. If every query fails, "
                "rebuild the index with `gossamer search DIR --build`"
            ) from None

    def _require_health(self) -> None:
        failed_at = self._failed_at
        if len(failed_at) == FAILURES_MAX and (left_s := failed_at[0] + FAILURES_S - _now()) > 0:
            raise verbs.BusyError(
                f"searching is off for {left_s:.0f} s: its process failed {FAILURES_MAX} times within a minute "
                f"(last: {self.last_failure})"
            )


def _now() -> float:
    return asyncio.get_running_loop().time()


def _read(data: bytes) -> SearchAnswer:
    try:
        return _decode(data)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
