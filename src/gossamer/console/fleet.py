"""Fleet: the crawls that a server runs, each in separate processes, as `gossamer crawl` or `resume` runs it.

They go on running when the server dies; the next server finds them again. A crawl that died with the server, as when
the machine went down, is resumed. Only an orderly shutdown of the server ends them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gossamer.config.gather import reopen
from gossamer.config.toml import as_assignments
from gossamer.console.crawl import ConsoleCrawl
from gossamer.console.directory import Directory
from gossamer.console.folder import READING_S_MAX, Folder, TargetState
from gossamer.console.schedule import FORMS, read_schedule
from gossamer.console.service import Service
from gossamer.model.archived import OFFSET_MAX, ROWS_MAX, Compared, Comparison
from gossamer.model.errors import ConfigError
from gossamer.model.health import NOTHING_FETCHED
from gossamer.model.status import is_resumable
from gossamer.model.verbs import ConflictError, MissingError, RefusedError, Text, VerbRequest
from gossamer.results.isolated.reads import ReadComparison
from gossamer.world.process import birth_of, child_environment

LOOK_S = 0.5
"""Interval of checks of a crawl that another server began."""
STOP_S_MAX = 150.0
"""Longest wait for the end of crawls when the server ends."""
DEATHS_MAX = 5
"""Deaths in a row after which a crawl is left alone; each of its own restarts is its supervisor's business."""
LIVED_S = 60.0
"""A death after this time does not count as one in a row."""
ENDING_S_MAX = 20.0
"""A crawl whose end was requested is begun again once its process is gone, if that takes no longer."""
STARTING_S_MAX = 10.0
"""A request to begin a crawl is answered once the crawl has a process, and after this long without."""
STATUS_S_MAX = 5.0
UNANSWERED = f"its status could not be read within {STATUS_S_MAX:g} s"
READ_AT_ONCE_MAX = 2
"""Stores of stopped crawls that a list opens at once: the server answers others meanwhile."""
LIST_S_MAX = 1.0
"""Longest wait for the status of all crawls of a list: each that does not run takes a look into its store."""
SCHEDULE_LOOK_S = 5.0
"""Interval of checks for crawls that are due."""
NAME_CHARACTERS_MAX = 48
"""Characters of a crawl's name in the names of its runs, which end in a time."""
ENDED_WELL = (0, 4, 130)
ENDED_BY_ITSELF = ("finished", "limit", "low_water", "patience")


class New(VerbRequest, frozen=True):
    """A crawl to be made."""

    name: Annotated[Text, Meta(description="Letters, digits, '.', '_' and '-'; its directory in the folder.")]
    config: Annotated[
        dict[str, dict[str, Any] | str],
        Meta(description="The content of a configuration file: sections, keys and values."),
    ]
    start: Annotated[bool, Meta(description="Start it at once.")] = True
    when: Annotated[str, Meta(max_length=200, description="When it runs again, as for schedule.")] = ""


class ResumeRequest(VerbRequest, frozen=True):
    """How a crawl is resumed."""

    values: Annotated[
        dict[str, Any], Meta(description="Dotted keys and values that change; null: as if never set.")
    ] = msgspec.field(default_factory=dict)


class ScheduleRequest(VerbRequest, frozen=True):
    """When a crawl runs again."""

    when: Annotated[
        str, Meta(max_length=200, description=f"In the local time of the server: {FORMS}; empty: no longer.")
    ]


class DeleteRequest(VerbRequest, frozen=True):
    """Which crawl is deleted."""

    name: Annotated[Text, Meta(description="The name of the crawl once more, as a confirmation.")]


class ComparisonOf(VerbRequest, frozen=True):
    """With which earlier crawl, and which pages to list."""

    earlier: Annotated[Text, Meta(description="Name of the earlier crawl.")]
    change: Annotated[Compared, Meta(description="List pages that are new, gone or changed.")] = "changed"
    n: Annotated[int, Meta(ge=1, le=ROWS_MAX, description="Maximum number of pages.")] = 20
    offset: Annotated[int, Meta(ge=0, le=OFFSET_MAX, description="Leave out as many of the first.")] = 0


class CrawlSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One crawl of the folder."""

    name: str
    state: Annotated[
        str, Meta(description="created, reading, starting, running, paused, stopping, finished, stopped, failed.")
    ]
    runs: Annotated[bool, Meta(description="It is to run: a restarted server resumes it.")]
    begun: Annotated[bool, Meta(description="It was started before: resume continues it, else start begins it.")] = True
    resumable: Annotated[bool, Meta(description="It does not run, and something is left: resume continues it.")] = False
    pages: int = 0
    queued: int = 0
    pages_s: float = 0.0
    waiting_for: str = ""
    ended: Annotated[str, Meta(description="How its last run ended, for people: limit of 100 pages reached.")] = ""
    problem: Annotated[str, Meta(description="Why it failed, or cannot be read.")] = ""
    schedule: Annotated[str, Meta(description="When it runs again, each time as a new crawl.")] = ""
    due_at: Annotated[float | None, Meta(description="Unix time of the next such run.")] = None
    last_run: Annotated[str, Meta(description="Name of the newest of these runs.")] = ""
    skipped: Annotated[str, Meta(description="Why the last scheduled time brought no run.")] = ""


class CrawlSummaries(msgspec.Struct, frozen=True, kw_only=True):
    """The crawls of the folder."""

    crawls: tuple[CrawlSummary, ...]
    running: int
    crawls_max: Annotated[int, Meta(description="How many run at once at most.")]
    zone: Annotated[str, Meta(description="Time zone of the schedules, the server's.")] = ""
    unlisted: Annotated[tuple[str, ...], Meta(description="Folders with crawls that no crawl can be called.")] = ()


class _StoppedCrawl(Directory):
    """A crawl of the folder; the process that keeps it running must know that it is stopped."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        super().__init__(fleet.folder.path / name, fleet.note)
        self._fleet = fleet
        self._name = name

    async def ask(self, request: dict[str, object]) -> dict[str, object]:
        is_end = request.get("verb") == "stop" and not request.get("again")
        if is_end and self._fleet.runs(self._name):
            return await self._fleet.stop(self._name, request, super().ask)
        if not self._fleet.folder.is_begun(self._name):
            is_starting = self._fleet.runs(self._name)
            says = "is starting; try again in a moment" if is_starting else "was never begun; start begins it"
            return {"ok": False, "error": f"{self._name!r} {says}", "kind": "conflict"}
        return await super().ask(request)


class _Entry:
    """State of a crawl in the server's memory."""

    def __init__(self, name: str, crawl: ConsoleCrawl, target: TargetState) -> None:
        self.crawl = crawl
        self.target = target
        """As it is on disk, or is about to be."""
        self.keeping = asyncio.Lock()
        self.process: asyncio.subprocess.Process | None = None
        self.attending: asyncio.Task[None] | None = None
        self.has_process = asyncio.Event()
        """Set when a process was started since the last request."""
        self.deaths = 0
        self.is_leaving = False
        """It is being deleted."""
        self.problem = ""
        self.asking: asyncio.Task[dict[str, object]] | None = None
        """Asks for its status."""
        self.reading: asyncio.Task[None] | None = None
        """Reads `summary` for a list."""
        self.summary: CrawlSummary | None = CrawlSummary(name=name, state="reading", runs=target.runs)
        """As it was last; None once it is removed."""

    @property
    def is_attended(self) -> bool:
        """Whether it runs, or is about to."""
        return self.attending is not None and not self.attending.done()


class Fleet:
    """Starts, stops and finds crawls."""

    def __init__(
        self, folder: Folder, crawls_max: int, note: Callable[[str], None], group: asyncio.TaskGroup, service: Service,
        wall: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        """Run crawls of `folder`, looked after in `group`; `note` takes sentences for people, `wall` says the time."""
        self._wall = wall
        self._service = service
        self.folder = folder
        self._group = group
        self.note = note
        self._crawls_max = crawls_max
        self._entries: dict[str, _Entry] = {}
        self._is_ending = False
        self._scheduling: asyncio.Task[None] | None = None
        self._some = asyncio.Semaphore(READ_AT_ONCE_MAX)

    def crawl(self, name: str) -> ConsoleCrawl:
        """Return a crawl. Raises MissingError: there is none of this name."""
        return self._entry(name).crawl

    def find_again(self) -> None:
        """Attend to what was to run when the last server ended: what runs still, and what is to be resumed, as far as
        the bound allows. From now on, start what is due by its schedule.
        """
        self._scheduling = self._group.create_task(self._keep_schedules())
        self._group.create_task(asyncio.to_thread(self.folder.sweep))
        wanted = {name: entry for name in self.folder.names() if (entry := self._entry(name)).target.runs}
        held = {name: self.folder.is_held(name, entry.target) for name, entry in wanted.items()}
        for name in sorted(wanted, key=lambda name: not held[name]):
            if held[name] or self._running() < self._crawls_max:
                self._attend(name, None)
            else:
                wanted[name].problem = f"not resumed: {self._crawls_max} crawls run already (console.crawls_max)"
                self.note(f"{name}: {wanted[name].problem}")

    async def create(self, new: New) -> CrawlSummary:
        """Make a crawl, and start it if that is wanted. Raises RefusedError: name, configuration or schedule are no
        good; ConflictError: the name is taken, or too many run.
        """
        if new.start:
            self._require_room()
        if new.when.strip():
            read_schedule(new.when)
        try:
            await asyncio.to_thread(self.folder.create, new.name, new.config)
        except OSError as error:
            raise ConflictError(f"cannot write to {self.folder.path}: {error.strerror}") from error
        await self.schedule(new.name, ScheduleRequest(new.when))
        return await (self.start(new.name) if new.start else self.summary(new.name))

    async def start(self, name: str) -> CrawlSummary:
        """Start a crawl that was made and never begun. Raises ConflictError: it was, or too many run."""
        self.folder.directory(name)
        if self.folder.is_begun(name):
            raise ConflictError(f"{name!r} was begun already; resume continues it")
        await self._begin(name, self._starting(name))
        return await self.summary(name)

    async def resume(self, name: str, again: ResumeRequest) -> CrawlSummary:
        """Continue a crawl that does not run. Raises ConflictError: it runs, was never begun, or too many run."""
        self.folder.directory(name)
        entry = self._entry(name)
        if entry.is_attended and entry.target.runs:  # It may not have begun yet.
            raise ConflictError(f"{name!r} runs already")
        if not self.folder.is_begun(name):
            raise ConflictError(f"{name!r} was never begun; start begins it")
        try:
            sets = as_assignments(again.values)
            await asyncio.to_thread(reopen, self.folder.path / name / "crawl.toml", sets=sets)
        except ConfigError as error:
            raise RefusedError(str(error).replace("--set: ", "").replace("--set ", "")) from error
        await self._begin(name, self._resuming(name, sets))
        return await self.summary(name)

    async def schedule(self, name: str, asked: ScheduleRequest) -> CrawlSummary:
        """Set when a crawl runs again, each time as a new crawl. Raises RefusedError: the text says no schedule."""
        entry = self._entry(name)
        when = " ".join(asked.when.split())
        entry.target.due_at = read_schedule(when).next_after(self._wall()) if when else 0.0
        entry.target.schedule = when
        entry.target.skipped = ""
        await self._keep(name, entry)
        return await self.summary(name)

    async def delete(self, name: str, asked: DeleteRequest) -> CrawlSummaries:
        """Delete a crawl that does not run, with all its files, and return the others. Raises RefusedError: its name is
        not confirmed; ConflictError: it runs, or is read.
        """
        entry = self._entry(name)
        if asked.name != name:
            raise RefusedError(f"the name is {name!r}, and {asked.name!r} is confirmed: nothing is deleted")
        if entry.is_attended:
            raise ConflictError(f"{name!r} runs; stop it first")
        entry.is_leaving = True
        try:
            if own := [task for task in (entry.reading, entry.asking) if task is not None]:
                await asyncio.wait(own, timeout=READING_S_MAX)
            async with entry.keeping:
                await asyncio.to_thread(self.folder.delete, name)
        finally:
            entry.is_leaving = False
        self._entries.pop(name, None)
        self._group.create_task(asyncio.to_thread(self.folder.sweep))
        self.note(f"{name} is deleted")
        return await self.summaries()

    async def stop(
        self, name: str, request: dict[str, object], ask: Callable[[dict[str, object]], Any]
    ) -> dict[str, object]:
        """End a crawl, which is then not resumed. One that cannot answer requests yet gets a signal."""
        answer: dict[str, object] = await ask(request)
        if answer.get("kind") in ("invalid", "refused"):
            return answer
        entry = self._entry(name)
        entry.target.runs = False
        await self._keep(name, entry)
        if not answer.get("ok"):
            self._signal(entry)
            answer = {"ok": True, "result": {"state": "stopping"}}
        return answer

    def runs(self, name: str) -> bool:
        """Return whether a crawl runs, or is about to."""
        entry = self._entry(name)
        return entry.is_attended or self.folder.is_held(name, entry.target)

    async def summary(self, name: str) -> CrawlSummary:
        """Return the state of a crawl."""
        entry = self._entry(name)
        problem = "" if entry.is_attended else entry.problem
        if not self.folder.is_begun(name):
            state = "starting" if entry.is_attended else "failed" if problem else "created"
            return CrawlSummary(
                name=name, state=state, runs=entry.target.runs, begun=False, problem=problem, **_plan(entry.target)
            )
        status: Mapping[str, Any] = {}
        with suppress(TimeoutError):
            async with asyncio.timeout(STATUS_S_MAX):
                if entry.asking is None or entry.asking.done():
                    entry.asking = asyncio.create_task(entry.crawl.handle.ask({"verb": "status"}))
                answer = await asyncio.shield(entry.asking)  # It goes on for who asks next.
                status = answer.get("result") or {"state": "failed", "waiting_for": str(answer.get("error", ""))}  # type: ignore[assignment]
        if not status:
            status = {"state": "running" if entry.is_attended else "reading"}
            problem = UNANSWERED
        state = str(status.get("state", "running"))
        seeds = status.get("seeds") or {}
        if state == "finished" and seeds.get("count") and not seeds.get("any_fetched"):
            status = {**status, "ended_says": NOTHING_FETCHED}
        if state == "failed":  # It waits for nothing: that is why it failed, or cannot be read.
            problem = problem or str(status.get("waiting_for", ""))
            status = {**status, "waiting_for": ""}
        if entry.is_attended and state in ("stopped", "finished"):
            state = "starting" if entry.target.runs else "stopping"
            status = {**status, "waiting_for": "", "ended_says": ""}  # Of the run before, or of one that is not over.
        return CrawlSummary(
            name=name, state=state, runs=entry.target.runs, resumable=is_resumable({**status, "state": state}),
            pages=status.get("pages", 0), queued=status.get("queued", 0), pages_s=status.get("pages_s", 0.0),
            waiting_for=str(status.get("waiting_for") or ""), ended=str(status.get("ended_says", "")),
            problem=problem, **_plan(entry.target),
        )  # fmt: skip

    async def summaries(self) -> CrawlSummaries:
        """Return all crawls. What takes longer than `LIST_S_MAX` is read on for the next list."""
        names = await asyncio.to_thread(self.folder.names)
        unlisted = tuple(await asyncio.to_thread(self.folder.unlisted, names))
        listed: list[_Entry] = []
        for name in names:
            with suppress(MissingError):  # It has just been removed.
                entry = self._entry(name)
                listed.append(entry)
                if not entry.is_leaving and (entry.reading is None or entry.reading.done()):
                    entry.reading = self._group.create_task(self._read_summary(name, entry))
        if reading := [entry.reading for entry in listed if entry.reading is not None]:
            await asyncio.wait(reading, timeout=LIST_S_MAX)
        now = datetime.now().astimezone()
        name_of_zone = now.tzname()
        zone = "UTC" if name_of_zone == "UTC" else f"{name_of_zone}, UTC{now.isoformat()[-len('+00:00') :]}"
        return CrawlSummaries(
            crawls=tuple(entry.summary for entry in listed if entry.summary is not None),
            running=self._running(), crawls_max=self._crawls_max, zone=zone, unlisted=unlisted,
        )  # fmt: skip

    async def compare(self, name: str, asked: ComparisonOf) -> Comparison:
        """Compare a crawl with an earlier one. Raises as `Reads.read`, and MissingError: there is no such crawl."""
        directory = self.folder.directory(name)
        earlier = self.folder.directory(asked.earlier)
        question = ReadComparison(str(earlier), asked.change, asked.n, asked.offset)
        return await self._service.reads.read(directory, question, Comparison)

    async def end(self, hurried: asyncio.Event) -> None:
        """End all crawls with everything saved; the next server of the folder resumes them."""
        self._end_looks()
        attended = {name: entry for name, entry in self._entries.items() if entry.is_attended}
        for entry in attended.values():
            self._signal(entry)
        clock = asyncio.get_running_loop().time
        ends_by = clock() + STOP_S_MAX
        is_hurried = False
        while clock() < ends_by and (left := {n: e for n, e in attended.items() if e.is_attended}):
            if hurried.is_set() and not is_hurried:
                is_hurried = True
                for entry in left.values():
                    self._signal(entry)
            await asyncio.wait([e.attending for e in left.values() if e.attending is not None], timeout=LOOK_S)
        for name, entry in attended.items():
            if entry.attending is not None and not entry.attending.done():
                self.note(f"{name} has not ended; it goes on, and the next server finds it")
                entry.attending.cancel()

    def leave(self) -> None:
        """Stop supervising the crawls. They continue; the next server finds them."""
        self._end_looks()
        for entry in self._entries.values():
            if entry.attending is not None:
                entry.attending.cancel()

    # ---- inside

    def _entry(self, name: str) -> _Entry:
        self.folder.directory(name)
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = _Entry(
                name, ConsoleCrawl(_StoppedCrawl(self, name), self._service), self.folder.target(name)
            )
        return entry

    async def _read_summary(self, name: str, entry: _Entry) -> None:
        try:
            # What runs answers at once, and does not wait behind what does not.
            async with nullcontext() if entry.is_attended else self._some:
                entry.summary = await self.summary(name)
        except MissingError:
            entry.summary = None
        except Exception as error:  # noqa: BLE001 - one crawl that cannot be read is not the end of the others
            says = f"{type(error).__name__}: {error}"
            runs = entry.target.runs
            entry.summary = CrawlSummary(name=name, state="failed", runs=runs, resumable=True, problem=says)

    def _end_looks(self) -> None:
        self._is_ending = True
        for look in (self._scheduling, *(entry.reading for entry in self._entries.values())):
            if look is not None:
                look.cancel()

    async def _keep_schedules(self) -> None:
        """Start what is due. A schedule that fell due while no server ran, once or more often, is started once."""
        while True:
            for name in await asyncio.to_thread(self.folder.names):
                with suppress(MissingError):  # It has just been removed.
                    entry = self._entry(name)
                    if self._is_due(entry.target):
                        await self._run_again(name, entry)
            await asyncio.sleep(SCHEDULE_LOOK_S)

    def _is_due(self, target: TargetState) -> bool:
        """Return whether a crawl is due. A wrong clock may have set it too late: then it is corrected."""
        now = self._wall()
        if target.due_at <= now:
            return target.due_at > 0
        with suppress(RefusedError):  # There may be none.
            schedule = read_schedule(target.schedule)
            following = schedule.next_after(now)
            # Not the next time: a clock that goes back a little starts no second run.
            if target.due_at > schedule.next_after(following):
                target.due_at = following
        return False

    async def _run_again(self, name: str, entry: _Entry) -> None:
        """Start a crawl that is due as a new one, unless it or its run before is not over."""
        target = entry.target
        if self._running() >= self._crawls_max:
            target.skipped = f"waits: {self._crawls_max} crawls run already (console.crawls_max)"
            return  # Until one of them ends.
        target.skipped = ""
        again = f"{name[:NAME_CHARACTERS_MAX]}.{datetime.fromtimestamp(target.due_at):%Y-%m-%d-%H%M}"  # noqa: DTZ006
        target.due_at = 0.0
        try:
            target.due_at = read_schedule(target.schedule).next_after(self._wall())
            known = await asyncio.to_thread(self.folder.names)
            if running := [one for one in (name, target.last_run) if one in known and self.runs(one)]:
                raise ConflictError(f"{running[0]!r} was not over")
            await asyncio.to_thread(self.folder.repeat, name, again)
            target.last_run = again
            await self._keep(name, entry)  # Before the start: a server that dies now does not start it twice.
            await self.start(again)
        except (RefusedError, OSError) as error:
            target.skipped = f"the run {again} was skipped: {error}"
            self.note(f"{name}: {target.skipped}")
        with suppress(OSError):  # A full disk ends no server; the next one that finds it due runs it late.
            await self._keep(name, entry)

    def _running(self) -> int:
        return sum(entry.is_attended for entry in self._entries.values())

    def _require_room(self) -> None:
        if self._running() >= self._crawls_max:
            raise ConflictError(f"{self._crawls_max} crawls run already (console.crawls_max); stop one first")

    async def _keep(self, name: str, entry: _Entry) -> None:
        """Write the present target state to disk, after any write in progress."""
        async with entry.keeping:
            await asyncio.to_thread(self.folder.keep, name, msgspec.structs.replace(entry.target))

    def _starting(self, name: str) -> tuple[str, ...]:
        file = self.folder.config_file(name)
        return ("crawl", "--config", str(file), "--output", str(self.folder.path / name), "--quiet")

    def _resuming(self, name: str, sets: Iterable[str] = ()) -> tuple[str, ...]:
        given = [word for text in sets for word in ("--set", text)]
        return ("resume", str(self.folder.path / name), "--quiet", *given)

    async def _begin(self, name: str, arguments: tuple[str, ...]) -> None:
        entry = self._entry(name)
        if self._is_ending or entry.is_leaving:
            raise ConflictError("the server is ending" if self._is_ending else f"{name!r} is being deleted")
        if entry.attending is not None and not entry.target.runs:  # Its end was requested; that takes a moment.
            await asyncio.wait((entry.attending,), timeout=ENDING_S_MAX)
            if entry.is_attended:
                raise ConflictError(f"{name!r} is still ending; try again in a moment")
        held = not entry.is_attended and await asyncio.to_thread(self.folder.is_held, name, entry.target, READING_S_MAX)
        if held or entry.is_attended:
            raise ConflictError(f"{name!r} runs already")
        self._require_room()
        entry.problem = ""
        entry.deaths = 0
        entry.target.runs = True
        entry.has_process.clear()
        attending = self._attend(name, arguments)
        # Who has our answer may leave, and a server on standard input leaves with its client.
        started = asyncio.ensure_future(entry.has_process.wait())
        try:
            await asyncio.wait((attending, started), timeout=STARTING_S_MAX, return_when=asyncio.FIRST_COMPLETED)
        finally:
            started.cancel()

    def _attend(self, name: str, arguments: tuple[str, ...] | None) -> asyncio.Task[None]:
        """Begin to run a crawl with `arguments`, or to look after one that may run already."""
        attending = self._entry(name).attending = self._group.create_task(self._supervise(name, arguments))
        return attending

    async def _supervise(self, name: str, arguments: tuple[str, ...] | None) -> None:
        entry = self._entry(name)
        try:
            await self._lives(name, entry, arguments)
        except Exception as error:  # noqa: BLE001 - one crawl that cannot be run is not the end of the others
            entry.problem = f"{type(error).__name__}: {error}"
            self.note(f"{name}: {entry.problem}")

    async def _lives(self, name: str, entry: _Entry, arguments: tuple[str, ...] | None) -> None:
        """Run a crawl, again and again if it dies, until it is over."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            status = await self._adopt(name) if arguments is None else await self._one_life(name, entry, arguments)
            if self._is_ending and entry.target.runs:
                return
            if status in ENDED_WELL or not entry.target.runs:
                break
            if status is not None and status > 0:
                entry.problem = self.folder.complaint(name) or f"it ended with status {status}"
                break
            # It died, or its server did and then it did: its supervisor would have begun it again.
            entry.deaths = entry.deaths + 1 if arguments is not None and clock() - began < LIVED_S else 0
            if entry.deaths >= DEATHS_MAX:
                entry.problem = f"it was killed {entry.deaths} times in a row"
                break
            self.note(f"{name}: {'' if arguments is None else 'its process is gone; '}it is resumed")
            arguments = self._resuming(name) if self.folder.is_begun(name) else self._starting(name)
        if entry.problem:
            self.note(f"{name}: {entry.problem}")
        entry.target = msgspec.structs.replace(entry.target, runs=False, pid=0, born=0)
        await self._keep(name, entry)

    async def _one_life(self, name: str, entry: _Entry, arguments: tuple[str, ...]) -> int | None:
        await self._keep(name, entry)
        environment = child_environment()
        with self.folder.complaint_file(name).open("wb") as complaints:
            entry.process = process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "gossamer", *arguments,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=complaints,
                env=environment, cwd=self.folder.path,
                start_new_session=True,  # What ends us does not end it.
            )  # fmt: skip
        entry.target.pid = process.pid
        entry.target.born = birth_of(process.pid)
        await self._keep(name, entry)
        entry.has_process.set()
        if self._is_ending or not entry.target.runs:  # Its end was requested while it had no process.
            self._signal(entry)
        return await process.wait()

    async def _adopt(self, name: str) -> int | None:
        """Wait for the end of a crawl that another server began, and return its status: None if it is to go on."""
        ran = False
        while await asyncio.to_thread(self.folder.is_held, name, self._entry(name).target):
            ran = True
            await asyncio.sleep(LOOK_S)
        if not self.folder.is_begun(name):
            return None
        answer = await self._entry(name).crawl.handle.ask({"verb": "status"})
        status = answer.get("result")
        how = status.get("ended") if isinstance(status, Mapping) else ""
        # If it ran until now, its end was requested; else the last server ended it when it ended.
        return 0 if how in ENDED_BY_ITSELF or (ran and how) else None

    def _signal(self, entry: _Entry) -> None:
        target = entry.target
        with suppress(ProcessLookupError):
            if entry.process is not None and entry.process.returncode is None:
                entry.process.send_signal(signal.SIGTERM)
            elif target.born and birth_of(target.pid) == target.born:
                os.kill(target.pid, signal.SIGTERM)


def _plan(one: TargetState) -> dict[str, Any]:
    return {"schedule": one.schedule, "due_at": one.due_at or None, "last_run": one.last_run, "skipped": one.skipped}
