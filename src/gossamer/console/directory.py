"""Directory: a crawl as the console sees it, and one in a directory: by its socket while it runs, else by its files."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from gossamer import api
from gossamer.api.asking import NotRunningError, ask_crawl
from gossamer.model import verbs
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.model.product import LOCK
from gossamer.model.words import shell_word
from gossamer.results.report.figures import Past
from gossamer.world.files import Stamp, stamp_of
from gossamer.world.process import MAINTENANCE, DirectoryLock

if TYPE_CHECKING:
    from gossamer.api.callbacks import Callbacks, MentionReceiver

ANSWER_S_MAX = 75.0
"""Longest wait for an answer: a crawl answers or refuses within 60 s."""
KEPT_S = 2.0
"""Least interval between reads of a stopped crawl's status: opening its store takes a while."""
HELD_S = 0.2
"""Time for which a process that has the crawl holds its lock; readers hold it for less."""
PASSING = ("starting", "stopping")
CrawlStamp = tuple[Stamp, Stamp]
"""Identifies a state of the files that change each time the crawl is opened: while it is equal, so is the status."""
UNSETTLED: CrawlStamp = ((-1, -1, -1), (-1, -1, -1))
TURN_S_MAX = 60.0


class CrawlHandle(Protocol):
    """A crawl that answers requests, whether it runs or not, in this process or another."""

    @property
    def directory(self) -> Path:
        """Its directory."""
        ...

    async def ask(self, request: dict[str, object], /) -> dict[str, object]:
        """Answer as the control socket does: `ok` with `result`, or `error` with its `kind`. Never raises."""
        ...

    def log_error(self, error: Exception, /) -> None:
        """Note an internal error in its log."""
        ...

    @property
    def callbacks(self) -> Callbacks | None:
        """Receiver of requests from hubs; None before the crawl runs, after it, and without subscriptions."""
        ...

    @property
    def mentions(self) -> MentionReceiver | None:
        """Receiver of notices of links; None before the crawl runs, after it, and where it accepts none."""
        ...


class Directory:
    """Answers for the crawl in a directory."""

    callbacks = mentions = None
    """Hubs, and notices of links, go to the process that crawls."""

    def __init__(self, directory: Path, note: Callable[[str], None]) -> None:
        """Answer for the crawl in `directory`; `note` takes sentences about internal errors."""
        self.directory = directory
        self._note = note
        self._status: tuple[float, CrawlStamp, dict[str, object]] | None = None
        self._turn = asyncio.Lock()
        self._past: asyncio.Future[Past] | None = None
        self._ran = False

    def log_error(self, error: Exception) -> None:
        """Report an internal error."""
        self._note("".join(traceback.format_exception(error)))

    async def ask(self, request: dict[str, object]) -> dict[str, object]:
        """Return the crawl's own answer while it runs; else an answer from its files, or that it does not run."""
        try:
            answer = await ask_crawl(self.directory, request, ANSWER_S_MAX)
            self._ran = True
            self._status = None
            self._past = None
        except NotRunningError:
            try:
                answer = {"ok": True, "result": await self._answer_stopped(request)}
            except verbs.RefusedError as refused:
                answer = {"ok": False, "error": str(refused), "kind": refused.kind}
            except CrawlFailedError as damaged:
                answer = {"ok": False, "error": str(damaged), "kind": "failed"}
            except Exception as error:  # noqa: BLE001 - every request is answered
                self.log_error(error)
                answer = {"ok": False, "error": f"{type(error).__name__}: {error}", "kind": "failed"}
        return answer

    # ---- inside

    async def _answer_stopped(self, request: Mapping[str, object]) -> object:
        name = str(request.get("verb"))
        asked = verbs.read(name, {field: value for field, value in request.items() if field != "verb"})
        async with asyncio.timeout(TURN_S_MAX):
            async with self._turn:
                match asked:
                    case verbs.StatusOf():
                        status = await self._current()
                        return {**status, "hosts": (await self._past_figures()).hosts} if asked.detail else status
                    case verbs.HostsOf():
                        return _hosts(await self._past_figures(), asked.n)
                    case verbs.RecentOf():
                        return _recent(await self._past_figures(), asked)
                    case verbs.Why():
                        return await self._read(lambda directory: api.why_of(directory, asked.url))
                    case verbs.Release():
                        released = await self._read(lambda directory: api.release_of(directory, asked.name))
                        self._status = None
                        return released
                if name == "course":
                    return {"points": (await self._past_figures()).points}
                if name == "about":
                    return await self._read(lambda directory: api.about_of(directory))  # noqa: PLW0108 - imports
        if name == "metrics":
            from gossamer.api.metrics import metrics_of  # noqa: PLC0415 - paid for by who asks

            return {"metrics": metrics_of(await self._current()).decode()}
        raise verbs.ConflictError(
            f"no crawl runs in {self.directory}; gossamer resume {shell_word(self.directory)} continues it"
        )

    async def _current(self) -> dict[str, object]:
        now = asyncio.get_running_loop().time()
        stamp = stamp_of_crawl(self.directory)
        if self._status is None or (now - self._status[0] > KEPT_S and self._status[1] != stamp):
            status = await self._status_now()
            self._past = None
            # A process that lets go of it may leave no trace of that.
            stamp = UNSETTLED if status["state"] in PASSING else stamp_of_crawl(self.directory)
            self._status = (now, stamp, status)
        return self._status[2]

    async def _status_now(self, *, again: bool = False) -> dict[str, object]:
        try:
            status = await asyncio.to_thread(lambda: api.status_of(self.directory))
            is_supervised = await asyncio.to_thread(_is_supervised, self.directory)
            return api.starting_status(self.directory) if is_supervised else status
        except CrawlFailedError as damaged:
            return {"state": "failed", "waiting_for": str(damaged)}
        except ConfigError as error:
            if not (self.directory / "crawl.toml").exists():
                raise verbs.MissingError(str(error)) from error
            if not await asyncio.to_thread(DirectoryLock.is_held, self.directory / LOCK, HELD_S):
                # A process may have released the lock in between.
                return {"state": "failed", "waiting_for": str(error)} if again else await self._status_now(again=True)
            # A process holds it, and cannot be asked: it begins, or makes its files before it goes.
            return {"state": PASSING[self._ran], "waiting_for": str(error)}

    async def _past_figures(self) -> Past:
        """Return the figures of its tables, read once after each run: seconds per ten million pages, in a thread.

        A request that gives up waiting does not stop the read: the next request gets the result.
        """
        await self._current()
        if self._past is None or (self._past.done() and self._past.exception() is not None):
            self._past = asyncio.get_running_loop().run_in_executor(None, _past_of, self.directory)
        return await asyncio.shield(self._past)

    async def _read(self, read: Callable[[Path], dict[str, object]]) -> dict[str, object]:
        try:
            return await asyncio.to_thread(read, self.directory)
        except ConfigError as error:
            raise verbs.ConflictError(str(error)) from error


def _is_supervised(directory: Path) -> bool:
    """Return whether a supervisor is about to start a crawl again. Blocks."""
    return DirectoryLock.is_held(directory, HELD_S) and not DirectoryLock.is_held(directory / MAINTENANCE)


def stamp_of_crawl(directory: Path) -> CrawlStamp:
    """Return the stamp of a crawl that does not run."""
    return stamp_of(directory / LOCK), stamp_of(directory / "crawl.toml")


def _recent(past: Past, asked: verbs.RecentOf) -> dict[str, object]:
    found = {
        name: [one for one in attempts if cast("int", one["number"]) > asked.after][-asked.most :]
        for name, attempts in (("pages", past.pages), ("errors", past.errors))
    }
    last = max((cast("int", one["number"]) for one in (*past.pages, *past.errors)), default=0)
    return {"last": last, **found, "left_out": 0}


def _hosts(past: Past, most: int) -> dict[str, object]:
    cut = {name: found[:most] if isinstance(found, list) else found for name, found in past.hosts.items()}
    return {**cut, "closed": []}


def _past_of(directory: Path) -> Past:
    from gossamer.results.report.past import past  # noqa: PLC0415 - it brings what reads tables

    return past(directory)
