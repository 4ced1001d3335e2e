"""Directory: a crawl that lies somewhere: asked by its socket while it runs, and by its files while it does not."""

from __future__ import annotations

import asyncio
import importlib
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from gossamer.console import line
from gossamer.model import verbs
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.report.figures import Past

KEPT_S = 2.0
"""How long a stopped crawl's status is not read again, whatever happens: opening its store takes a while."""
PASSING = ("starting", "stopping")
UNSETTLED = (-1, -1)
Stamp = tuple[int, int]
"""Of the files that change whenever somebody has opened it: while they do not, its status does not."""
TURN_S_MAX = 60.0


class Directory:
    """Answers for the crawl in a directory."""

    def __init__(self, directory: Path, note: Callable[[str], None]) -> None:
        """Answer for the crawl in `directory`; `note` takes sentences about mistakes of ours."""
        self._directory = directory
        self._note = note
        self._status: tuple[float, Stamp, dict[str, object]] | None = None
        self._turn = asyncio.Lock()
        self._past: asyncio.Future[Past] | None = None
        self._ran = False

    @property
    def directory(self) -> Path:
        """Where the crawl lies."""
        return self._directory

    @property
    def callbacks(self) -> None:
        """Nothing: hubs call the process that crawls."""
        return

    def failed(self, error: Exception) -> None:
        """Tell of a mistake of ours."""
        self._note("".join(traceback.format_exception(error)))

    async def ask(self, request: dict[str, object]) -> dict[str, object]:
        """Return the crawl's own answer while it runs; else what its files say, or that it does not run."""
        try:
            answer = await line.ask(self._directory, request)
            self._ran, self._status, self._past = True, None, None
        except line.NobodyError:
            try:
                answer = {"ok": True, "result": await self._stopped(request)}
            except verbs.RefusedError as refused:
                answer = {"ok": False, "error": str(refused), "kind": refused.kind}
            except CrawlFailedError as damaged:
                answer = {"ok": False, "error": str(damaged), "kind": "failed"}
            except Exception as error:  # noqa: BLE001 - a question goes not without an answer
                self.failed(error)
                answer = {"ok": False, "error": f"{type(error).__name__}: {error}", "kind": "failed"}
        return answer

    # ---- inside

    async def _stopped(self, request: Mapping[str, object]) -> object:
        name = str(request.get("verb"))
        asked = verbs.read(name, {field: value for field, value in request.items() if field != "verb"})
        async with asyncio.timeout(TURN_S_MAX):
            async with self._turn:
                match asked:
                    case verbs.StatusOf():
                        told = await self._told()
                        return {**told, "hosts": (await self._gone()).hosts} if asked.detail else told
                    case verbs.HostsOf():
                        return _hosts(await self._gone(), asked.n)
                    case verbs.RecentOf():
                        return _recent(await self._gone(), asked)
                    case verbs.Why():
                        return await self._read(lambda directory: _api().why_of(directory, asked.url))
                    case verbs.Release():
                        released = await self._read(lambda directory: _api().release_of(directory, asked.name))
                        self._status = None
                        return released
                if name == "course":
                    return {"points": (await self._gone()).points}
                if name == "about":
                    return await self._read(lambda directory: _api().about_of(directory))
        if name == "metrics":
            from gossamer.api.metrics import metrics_of  # noqa: PLC0415 - paid for by who asks

            return {"metrics": metrics_of(await self._told()).decode()}
        raise verbs.ConflictError(f"no crawl runs in {self._directory}; gossamer resume {self._directory} continues it")

    async def _told(self) -> dict[str, object]:
        now, stamp = asyncio.get_running_loop().time(), _stamp(self._directory)
        if self._status is None or (now - self._status[0] > KEPT_S and self._status[1] != stamp):
            told = await self._status_now()
            self._past = None
            # A process that lets go of it may leave no trace of that.
            stamp = UNSETTLED if told["state"] in PASSING else _stamp(self._directory)
            self._status = (now, stamp, told)
        return self._status[2]

    async def _status_now(self) -> dict[str, object]:
        try:
            return await asyncio.to_thread(lambda: _api().status_of(self._directory))
        except CrawlFailedError as damaged:
            return {"state": "failed", "waiting_for": str(damaged)}
        except ConfigError as error:
            if not (self._directory / "crawl.toml").exists():
                raise verbs.MissingError(str(error)) from error
            # A process holds it, and cannot be asked: it begins, or makes its files before it goes.
            return {"state": PASSING[self._ran], "waiting_for": str(error)}

    async def _gone(self) -> Past:
        """Return what its tables tell, read once after each run: seconds for each ten million pages, in a thread.

        Whoever gives up waiting leaves it to be read: the next to ask has it.
        """
        await self._told()
        if self._past is None or (self._past.done() and self._past.exception() is not None):
            read = lambda: cast("Past", _report().past(self._directory))  # noqa: E731
            self._past = asyncio.get_running_loop().run_in_executor(None, read)
        return await asyncio.shield(self._past)

    async def _read(self, read: Callable[[Path], dict[str, object]]) -> dict[str, object]:
        try:
            return await asyncio.to_thread(read, self._directory)
        except ConfigError as error:
            raise verbs.ConflictError(str(error)) from error


def _stamp(directory: Path) -> Stamp:
    found = []
    for name in ("state/lock", "crawl.toml"):
        try:
            found.append((directory / name).stat().st_mtime_ns)
        except OSError:
            found.append(0)
    return found[0], found[1]


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


def _api() -> ModuleType:
    """Return what knows stores: half a second to import, in a thread, when somebody first asks."""
    return importlib.import_module("gossamer.api")


def _report() -> ModuleType:
    return importlib.import_module("gossamer.report.past")
