"""Watchdogs: monitor the crawl and its machine, and react to problems by the brakes of the shard.

Each check takes about 0.2 ms with 300 open files. A problem becomes an alarm, with a sentence for people, in `status`,
as a metric, once in `info.log` and once on the terminal. Reactions are undone automatically when the cause is gone.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence, Sized
from math import inf
from pathlib import Path

import msgspec

from gossamer.engine.commit import Committer
from gossamer.engine.counters import Telemetry
from gossamer.engine.options import AUTO_MAX, WatchOptions
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.model.status import Alarm
from gossamer.world.alarm import Pulse
from gossamer.world.files import GONE
from gossamer.world.machine import Disk, ThisMachine

BEAT_S = 0.1
"""Interval of the event loop's heartbeats."""
LAGS_KEPT = 600
"""Number of heartbeats over which the longest lag is reported: a minute."""
STALL_SHOWN_S = 60.0
"""Time for which a stall stays an alarm after its end."""
DISK_MARGIN = 1.25
"""The crawl goes on when the free space is this multiple of the minimum."""
DISK_TREND_S = 600.0
"""Time over which the rate is measured at which a disk fills."""
DISK_SOON_S = 6 * 3600.0
"""A disk that is full sooner than this, at that rate, raises an alarm."""
PROXY_AGAIN_S = 30.0
"""Pause after a failure of the proxy; then it is tried again."""
UNANSWERED_MIN = 20
UNANSWERED_S = 30.0
"""The alarm `answers` begins after this number of requests in a row without a byte, over this time."""
CALM = 0.9
"""An alarm clears when its value falls to this share of the limit."""
MEMORY_CALM = 0.95
"""The same for memory: most of a small budget is the program itself, which does not shrink."""
REQUESTS_MIN = 8
"""Lower bound of concurrent requests when memory or open files are short."""
OWN_BYTES_AT_START = 192 << 20
"""Memory of a crawl's own process at first. More belongs to a program that embeds the crawl, which cannot free it."""
FILES_OF_OUR_OWN = 640
"""Open files in addition to those of requests: up to 512 of the store, and journals, pipes and name servers."""
FILES_A_REQUEST = 3
"""Open files per request: a socket, a file for a body too large for memory, one of a page that waits to be read."""


def files_of(concurrency: int) -> int:
    """Return how many open files a crawl may need."""
    return FILES_OF_OUR_OWN + FILES_A_REQUEST * concurrency


def fitting_requests(most: int) -> int:
    """Return how many requests at once, and connections, `most` open files permit."""
    return (most - FILES_OF_OUR_OWN) // FILES_A_REQUEST


def require_files(most: int, concurrency: int) -> None:
    """Check that the system's limit of open files is enough for a crawl, if necessary with fewer concurrent requests.
    Raises ConfigError: the limit is too low even for one request.
    """
    if most < files_of(1):
        raise ConfigError(
            f"the system allows {most:,} open files, and a crawl needs {files_of(1):,} or more: raise the limit "
            f"(ulimit -Hn, ulimit -n {files_of(concurrency)})"
        )


class Gauges(msgspec.Struct):
    """Values of the last check."""

    loop_lag_s: float = 0.0
    """How late the last heartbeat of the event loop was."""
    loop_lag_s_max: float = 0.0
    """The largest lag in the last minute."""
    stalls: int = 0
    """How often the loop stalled for longer than `watch.stall_s`, in this process."""
    disks: list[dict[str, object]] = msgspec.field(default_factory=list)
    """Per file system: path, free_bytes, total_bytes."""
    open_files: int = 0
    open_files_max: int = 0
    memory_bytes: int = 0
    """Memory of the process tree."""
    memory_budget_bytes: int = 0
    clock_shift_s: float = 0.0
    """By how much the system's clock was set forward since this process began, in seconds."""
    clock_jumps: int = 0


class Resources(msgspec.Struct, frozen=True):
    """The crawl's directories, and its memory budget."""

    directory: Path
    """The crawl's directory. Open files in it could still be written long after it is removed."""
    paths: Sequence[Path]
    """Directories that the crawl writes to, including its own."""
    stalled: Path
    """A file that exists while the event loop is stalled, with the loop's stack."""
    memory_budget_bytes: int
    own_process: bool = False
    """Whether all memory of this process belongs to the crawl."""


class Brakes:
    """Holds of a shard's visits, and limits of concurrent requests, each by its holder."""

    def __init__(self, concurrency: int, in_flight: Sized, shrink: Callable[[], None]) -> None:
        """`in_flight` are the leases in flight; `shrink` keeps fewer hosts in memory."""
        self.held: dict[str, str] = {}
        """Reasons for which no visits start, for people, by holder."""
        self.cut_off_since: float | None = None
        """Time since which no request gets past the proxy; None: they do."""
        self._ceilings: dict[str, int] = {}
        """Limits of concurrent requests by holder."""
        self._configured = concurrency
        self.why = ""
        """Why this many requests are permitted, if `crawl.concurrency` is `auto`."""
        self.concurrency = concurrency
        """Limit of concurrent requests: as configured, or less if a resource is short."""
        self.unread_max = concurrency
        """Limit of pages that wait to be read and do not count as requests. Short memory does not lower it, since they
        keep no more there than `fetch.bodies_memory_bytes_max`; other hosts would wait until all of them are read."""
        self.in_flight = in_flight
        self.shrink = shrink
        self.changed = asyncio.Event()
        """Wakes the loop of the shard."""
        self.commit_now = asyncio.Event()

    def hold(self, who: str, why: str) -> None:
        """Start no more visits until `release(who)`; visits in flight are finished, and commits go on."""
        self.held[who] = why

    def release(self, who: str) -> None:
        """End the hold of `who`."""
        if who in self.held:
            del self.held[who]
            self.commit_now.set()
            self.changed.set()

    @property
    def ceiling(self) -> int:
        """The least limit that a holder has set."""
        return min(self._ceilings.values(), default=AUTO_MAX)

    def throttle(self, who: str, most: int) -> None:
        """Limit concurrent requests to `most` on behalf of `who`, until `unthrottle(who)`."""
        self._ceilings[who] = max(1, most)
        self.reconfigure(self._configured)

    def unthrottle(self, who: str) -> None:
        """Remove the limit of `who`."""
        self._ceilings.pop(who, None)
        self.reconfigure(self._configured)

    def reconfigure(self, concurrency: int) -> None:
        """Apply a new limit from the configuration."""
        self._configured = concurrency
        self.concurrency = min((concurrency, *self._ceilings.values()))
        self.unread_max = min((concurrency, *(most for who, most in self._ceilings.items() if who != "memory")))
        self.changed.set()


class Watchdogs:
    """Checks everything every `watch.look_s` seconds until cancelled."""

    def __init__(
        self,
        brakes: Brakes,
        committer: Committer,
        machine: ThisMachine,
        resources: Resources,
        options: WatchOptions,
        telemetry: Telemetry,
    ) -> None:
        self._brakes = brakes
        self._committer = committer
        self._machine = machine
        self._resources = resources
        self._options = options
        self._clock = telemetry.clock
        self._pulse = Pulse(resources.stalled, self._clock, options.stall_s)
        self._counters = telemetry.counters
        self._note = telemetry.counters.note
        self._logs = telemetry.logs
        self._lags: deque[float] = deque(maxlen=LAGS_KEPT)
        self.on_beat: Callable[[float], object] = float
        """Called with the time of each heartbeat of the event loop, and with infinity when these end."""
        self._alarms: dict[str, Alarm] = {}
        self._disk_mark: tuple[float, dict[str, int]] = (-inf, {})
        """When the free space of the disks was noted, and how much it was, by their paths."""
        self._stalled_at = 0.0
        self._offset_s = machine.wall_offset_s()
        self._offset_first_s = self._offset_s
        self._others_bytes = 0 if resources.own_process else max(0, machine.memory_bytes() - OWN_BYTES_AT_START)
        self.gauges = Gauges(memory_budget_bytes=resources.memory_budget_bytes)

    @property
    def alarms(self) -> list[Alarm]:
        """Current alarms, the oldest first."""
        return sorted(self._alarms.values(), key=lambda alarm: alarm.since)

    def reconfigure(self, options: WatchOptions) -> None:
        """Apply new options."""
        self._options = options
        self._pulse.stall_s = options.stall_s

    async def run(self) -> None:
        """Watch until cancelled."""
        self._pulse.start()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat())
            while True:
                self.check()
                await asyncio.sleep(self._options.look_s)

    def close(self) -> None:
        """Stop watching, within half a second."""
        self._pulse.close()

    def check(self) -> None:
        """Check everything once."""
        now = self._clock.now()
        self._check_loop(now)
        self._check_commit(now)
        self._check_disks(now)
        self._check_proxy(now)
        self._check_answers(now)
        self._check_files(now)
        self._check_clock(now)
        self._check_memory(now)
        self._check_logs(now)

    def limit_requests(self, most: int, concurrency: int) -> None:
        """Limit concurrent requests to what the system's limit of open files permits, at least one."""
        needed = files_of(concurrency)
        if most >= needed:
            return
        fitting = fitting_requests(most)
        self._brakes.throttle("open_files_allowed", fitting)
        self._note(
            f"the system allows {most:,} open files: {fitting} requests at once instead of {concurrency}; "
            f"ulimit -n {needed} allows them all"
        )

    # ---- the watchdogs

    async def _beat(self) -> None:
        before = self._clock.now()
        try:
            while True:
                self._pulse.beat(before)
                self.on_beat(before)
                await asyncio.sleep(BEAT_S)
                now = self._clock.now()
                self.note_lag(now - before - BEAT_S, now)
                before = now
        finally:
            self.on_beat(inf)

    def note_lag(self, lag_s: float, now: float) -> None:
        """Note how late a heartbeat was."""
        self._lags.append(lag_s)
        self.gauges.loop_lag_s = max(lag_s, 0.0)
        if lag_s < self._options.stall_s:
            return
        self.gauges.stalls += 1
        self._stalled_at = now
        stack = self._pulse.take_stack()
        where = "logs/critical.log says where" if stack else "the process was stopped, or the machine was too busy"
        if stack:
            self._logs.critical("loop_stalled", lag_s=lag_s, stack=stack)
        self._raise("loop", now, f"the event loop stalled for {lag_s:.1f} s; {where}")

    def _check_loop(self, now: float) -> None:
        self.gauges.loop_lag_s_max = max((0.0, *self._lags))
        if now - self._stalled_at > STALL_SHOWN_S:
            self._clear("loop")

    def _check_commit(self, now: float) -> None:
        committer = self._committer
        lasts_s = now - committer.began_at
        if committer.stage and lasts_s >= self._options.commit_s_max:
            self._raise(
                "commit", committer.began_at, f"a commit takes long: {lasts_s:.0f} s so far, {committer.stage}; "
                "fetched pages wait for it, and no fetch starts while many wait",
            )  # fmt: skip
        else:
            self._clear("commit")

    def _check_disks(self, now: float) -> None:
        found: dict[int, tuple[str, Disk]] = {}
        for path in self._resources.paths:
            try:
                disk = self._machine.disk(path)
            except OSError as error:
                if path == self._resources.directory and isinstance(error, FileNotFoundError):
                    raise DamagedError(f"{path} {GONE}; where it was moved to, gossamer resume continues") from error
                continue  # Not created yet, or removed: a write there reports the error.
            found.setdefault(disk.device, (str(path), disk))
        least = self._options.disk_free_bytes_min
        enough = least * DISK_MARGIN if "disk" in self._alarms else least
        self.gauges.disks = [
            {"path": path, "free_bytes": disk.free_bytes, "total_bytes": disk.total_bytes}
            for path, disk in found.values()
        ]
        self._check_disk_trend(now, {path: disk.free_bytes for path, disk in found.values()})
        full = [(path, disk) for path, disk in found.values() if disk.free_bytes < enough]
        if not full:
            self._brakes.release("disk")
            self._clear("disk")
            return
        place, disk = full[0]
        says = (
            f"room on the disk of {place}: {disk.free_bytes / 1e6:,.0f} MB are left, and the crawl keeps "
            f"{least / 1e6:,.0f} MB free (watch.disk_free_bytes_min); it goes on by itself from "
            f"{least * DISK_MARGIN / 1e6:,.0f} MB on"
        )
        self._brakes.hold("disk", says)
        self._raise("disk", now, f"paused for want of {says}")

    def _check_disk_trend(self, now: float, free: dict[str, int]) -> None:
        """Name the disk that is full first, while there is time to free it."""
        began, before = self._disk_mark
        if now - began < DISK_TREND_S:
            return
        self._disk_mark = now, free
        least = self._options.disk_free_bytes_min
        used = {path: before[path] - left for path, left in free.items() if left < before.get(path, 0)}
        left_s = {path: (free[path] - least) / many * (now - began) for path, many in used.items()}
        path = min(left_s, key=left_s.__getitem__, default="")
        if not path or left_s[path] > DISK_SOON_S:
            self._clear("disk_soon")
            return
        says = (
            f"the disk of {path} is filling: {free[path] / 1e9:,.1f} GB are left, about {left_s[path] / 60:,.0f} "
            "minutes at the rate of the last ten; archive.store_keep_warc = false with a store frees it, or add space"
        )
        self._raise("disk_soon", now, says)

    def _check_proxy(self, now: float) -> None:
        counters = self._counters
        is_recent = now - counters.proxy_failed_at < PROXY_AGAIN_S
        is_last = counters.proxy_failed_at > counters.answered_at
        self._brakes.cut_off_since = counters.proxy_failing_since if is_last else None
        if not counters.proxy_error or not (is_recent or is_last):
            self._brakes.release("proxy")
            self._clear("proxy")
            return
        says = f"the proxy: {counters.proxy_error}; no URL is given up for it, and the crawl tries it again by itself"
        if is_recent and is_last and not counters.others_pass:  # Rules can send some hosts by another route.
            self._brakes.hold("proxy", says)
        else:
            self._brakes.release("proxy")
        self._raise("proxy", now, f"waiting for {says}")

    def _check_answers(self, now: float) -> None:
        counters = self._counters
        if counters.unanswered < UNANSWERED_MIN or now - counters.unanswered_since < UNANSWERED_S:
            self._clear("answers")
            return
        self._raise(
            "answers", now, f"no answer to the last {counters.unanswered:,} requests: see that the network works, and "
            "the proxy if there is one (fetch.proxy)",
        )  # fmt: skip

    def _check_files(self, now: float) -> None:
        gauges = self.gauges
        machine = self._machine
        gauges.open_files = machine.open_files()
        gauges.open_files_max = machine.open_files_max()
        most = gauges.open_files_max * self._options.files_share_max
        if gauges.open_files > most:
            fewer = max(REQUESTS_MIN, self._brakes.concurrency * 3 // 4)
            self._brakes.throttle("open_files", fewer)
            self._raise(
                "open_files", now, f"{gauges.open_files:,} files are open of {gauges.open_files_max:,} that the system "
                f"allows (ulimit -n): {fewer} requests at once until there are fewer",
            )  # fmt: skip
        elif gauges.open_files < most * CALM:
            self._brakes.unthrottle("open_files")
            self._clear("open_files")

    def _check_memory(self, now: float) -> None:
        gauges = self.gauges
        gauges.memory_bytes = max(0, self._machine.memory_bytes() - self._others_bytes)
        cost = self._counters.totals.cost
        cost.memory_bytes_max = max(cost.memory_bytes_max, gauges.memory_bytes)
        most = gauges.memory_budget_bytes * self._options.memory_share_max
        if gauges.memory_bytes < most * (MEMORY_CALM if "memory" in self._alarms else 1.0):
            self._brakes.unthrottle("memory")
            self._clear("memory")
            return
        fewer = max(REQUESTS_MIN, min(self._brakes.concurrency, max(len(self._brakes.in_flight), 1)) // 2)
        self._brakes.throttle("memory", fewer)
        self._brakes.shrink()
        self._raise(
            "memory", now, f"{gauges.memory_bytes / 1e6:,.0f} MB of memory are in use of {most / 1e6:,.0f} MB "
            f"(memory.budget_bytes): {fewer} requests at once, fewer hosts in memory and earlier commits until there "
            "is less",
        )  # fmt: skip
        self._brakes.commit_now.set()
        self._machine.give_memory_back()

    def _check_logs(self, now: float) -> None:
        if self._logs.error:
            self._raise("logs", now, f"lines of the log are lost: {self._logs.error}")
        else:
            self._clear("logs")

    def _check_clock(self, now: float) -> None:
        gauges = self.gauges
        offset_s = self._machine.wall_offset_s()
        if abs(offset_s - self._offset_s) > self._options.clock_jump_s_min:
            gauges.clock_jumps += 1
            self._clear("clock")  # Another jump raises a new alarm.
        self._offset_s = offset_s
        gauges.clock_shift_s = shift_s = offset_s - self._offset_first_s
        if abs(shift_s) <= self._options.clock_jump_s_min:
            self._clear("clock")
            return
        way = "forward" if shift_s > 0 else "back"
        self._raise(
            "clock", now, f"the system's clock was set {way} by {abs(shift_s):,.0f} s; the crawl keeps its own time, "
            "and requests no host earlier or later because of it",
        )  # fmt: skip

    # ---- inside

    def _raise(self, name: str, since: float, says: str) -> None:
        if name in self._alarms:
            self._alarms[name] = Alarm(name, self._alarms[name].since, says)
            return
        self._alarms[name] = Alarm(name, since, says)
        self._logs.info("alarm", alarm=name, says=says)
        self._note(says)

    def _clear(self, name: str) -> None:
        if name not in self._alarms:
            return
        gone = self._alarms.pop(name)
        if name != "loop":
            self._logs.info("alarm_over", alarm=name, since=gone.since)
            self._note(f"over: {gone.says.partition(':')[0].partition(';')[0]}")
