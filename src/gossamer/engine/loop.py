"""Loop: leads the visits of a shard: it starts them, closes epochs and detects the end of the crawl."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from math import inf
from typing import Any, Literal

from gossamer.engine.commit import Committer, ignore
from gossamer.engine.counters import Telemetry
from gossamer.engine.options import CrawlOptions, LimitsOptions
from gossamer.engine.pipeline import Pipeline
from gossamer.engine.watchdogs import Brakes
from gossamer.model.standing import Lasting
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease
from gossamer.world.loop import wait_at_most

End = Literal["finished", "limit", "low_water", "patience", "stopped"]
"""`patience`: finished, except for URLs that wait for longer than `crawl.patience_s`."""
Companion = Callable[[], Coroutine[Any, Any, None]]
LEASES_A_PASS_MAX = 256
"""Visits that are started before the event loop handles its sockets again."""
LEASES_S_MAX = 0.1
"""The same in seconds: to read a robots.txt with thousands of rules from disk takes about this long."""
EPOCH_SPAN_MAX = 2
"""Limit of an epoch, as a multiple of the visits or bytes at which a commit is due."""
HELD_COMMIT_S = 30.0
"""Interval of commits while no visit may start and none is in flight."""
TIME_GRACE_SHARE = 0.1
TIME_GRACE_S_MIN = 1.0
"""Time for visits in flight to end when limits.max_time_s is reached: a share of that limit, at most crawl.stop_s."""
AWAITED_MAX = 10
"""Hosts that are reported when a crawl ends although they have URLs."""
IDLE_S_MAX = 1.0
"""Longest sleep between checks for changes."""
BEHIND_S = 0.5
"""A shard with all its requests in flight for this long is behind: normally one ends and the next begins earlier."""
FULL_SHARE = 0.9
"""Share of the permitted requests that counts as all of them: some have always just ended."""
PROXY_FIRST_S = 30.0
"""How long a proxy may be dead through which nothing came yet: that is a mistake rather than an outage."""
DRAIN_POLL_S = 0.2
"""Interval of checks while waiting for visits in flight."""


class CrawlLoop:
    """Runs until nothing is left, a limit is reached or it is stopped; then everything is committed."""

    def __init__(
        self,
        frontier: Frontier,
        pipeline: Pipeline,
        committer: Committer,
        telemetry: Telemetry,
        options: CrawlOptions,
        limits: LimitsOptions,
    ) -> None:
        self._frontier = frontier
        self._pipeline = pipeline
        self._committer = committer
        self._counters = telemetry.counters
        self._options = options
        self._limit(limits)
        self._clock = clock = telemetry.clock
        self._in_flight: dict[asyncio.Task[None], tuple[Lease, float]] = {}
        """Leases in flight, each with its start."""
        first = options.concurrency_of(telemetry.counters.totals.concurrency)
        self.brakes = brakes = Brakes(first, self._in_flight, frontier.shrink)
        self._wake = brakes.changed
        self._commit_now = brakes.commit_now
        self.visits = 0
        """Visits in flight, each of which may become a page."""
        self.stop_order: Literal["", "drain", "now"] = ""
        """How the operator ordered the crawl to stop."""
        self._early: End | Literal[""] = ""
        self._over = False
        self._leave_at = inf
        """Time from which visits in flight are abandoned; they stay queued."""
        self.commit = pipeline.commit = committer.commit
        pipeline.documents.is_late = self.is_late
        pipeline.documents.undivided = committer.undivided
        self._started_at = clock.now()
        self.paused = False
        self.state = "starting"
        self._more_to_come: Callable[[], bool] = bool
        self.quota = inf
        """For one of several shards: total pages that it may have fetched for now. Then it waits, and does not end."""
        self.receiving: Callable[[], int] = int
        """Returns the length of all bodies in flight so far."""
        self.may_begin: Callable[[float], bool] = lambda _: True
        """For one of several shards: returns whether its lease is still valid."""
        self.on_stop: Callable[[float], None] = ignore
        """Called with the time of a command to stop."""
        self.on_pause: Callable[[bool], None] = ignore
        """Called when a pause begins or ends, with whether it begins."""
        self._crowding = 0.0
        """How much waited for a commit at the last check."""
        self._spare_at = self._started_at
        """When it last waited although more requests could go out; inf: it does."""
        self.activity = 0
        """Grows with every leased visit."""

    @property
    def in_flight(self) -> int:
        """Leases in flight."""
        return len(self._in_flight)

    def stop(self, *, now: bool = False) -> None:
        """Start no more visits and end; wait for those in flight, or with `now` abandon them."""
        self.stop_order = "now" if now else self.stop_order or "drain"
        if self.state == "running":
            self.state = "stopping"
        self.on_stop(self._clock.now())
        self._wake.set()

    def end_early(self, end: End) -> None:
        """End with the given reason, after visits in flight are finished; the rest is saved."""
        self._early = end
        self._wake.set()

    @property
    def requests(self) -> int:
        """Leases in flight that count for `concurrency`. Lookups do not: name servers that answer late, or never, would
        keep hosts waiting whose addresses are known. Nor do pages that wait to be read, up to that number: those of
        other hosts may be read at once.
        """
        return (
            len(self._in_flight) - self._pipeline.lookups - min(self._pipeline.documents.parked, self.brakes.unread_max)
        )

    @property
    def adapts(self) -> bool:
        """Whether the crawl finds by itself how many requests at once are useful."""
        return self._options.concurrency == "auto"

    @property
    def is_crowded(self) -> bool:
        """Whether a host is ready for a request while nearly all permitted requests are under way."""
        is_full = self.requests >= FULL_SHARE * self.brakes.concurrency
        return is_full and not self.blocker and self._wake_at <= self._clock.now()

    @property
    def nothing_to_do(self) -> bool:
        """Whether nothing is in flight, no queued URL becomes ready within `crawl.patience_s`, and no link is held."""
        return self._is_idle and not self._pipeline.discovery.links_held

    @property
    def _is_idle(self) -> bool:
        return not self._in_flight and (self._wake_at == inf or self.out_of_patience)

    @property
    def _wake_at(self) -> float:
        """When the next queued URL becomes ready; infinity: none will."""
        return bound(self._frontier.wake_at())

    @property
    def out_of_patience(self) -> bool:
        """Whether everything left waits for longer than `crawl.patience_s`, or has waited that long for the proxy."""
        patience_s = bound(self._options.patience_s)
        wake_at = self._wake_at
        if self._options.mode == "continuous" or inf in (patience_s, wake_at):
            return False
        if self.brakes.cut_off_since is not None and not self.paused:
            if not self._counters.totals.wire_bytes and self.quota == inf:  # With a quota, other shards may use it.
                patience_s = min(patience_s, PROXY_FIRST_S)
            return self._clock.now() - self.brakes.cut_off_since > patience_s
        return not (self.paused or self.brakes.held) and wake_at - self._clock.now() > patience_s

    def pause(self) -> None:
        """Start no more visits until `unpause`."""
        self.paused = True
        self.on_pause(True)

    def unpause(self) -> None:
        self.paused = False
        self.on_pause(False)
        self._wake.set()

    @property
    def under_way(self) -> list[tuple[Lease, float]]:
        """Return the leases in flight with their starts, the oldest first."""
        return list(self._in_flight.values())

    @property
    def blocker(self) -> str:
        """Why no visit may start although the crawl is not paused, for people; empty if one may."""
        return self._pages_full or self._requests_blocked(self._clock.now())

    @property
    def _pages_full(self) -> str:
        """Return why no further page may be fetched; empty if one may."""
        # Each visit in flight may become a page, so the limit is never exceeded. Neither an epoch that a slow disk
        # keeps open, nor pages without a reader, may grow without bound.
        pages = self._counters.totals.pages + self.visits
        if pages >= self._pages_max:
            return "what is in flight: it may reach limits.max_pages"
        if pages >= self.quota:
            return "the coordinator: its part of limits.max_pages is used up"
        return "the reader of the pages" if self._counters.delivery.full else ""

    def _requests_blocked(self, now: float) -> str:
        """Return why no request at all may start; empty if one may."""
        if not self.may_begin(now):
            return "the coordinator: this shard must not begin anything without a word from it"
        if self._counters.in_epoch >= EPOCH_SPAN_MAX * self._options.commit_pages or self._crowding >= EPOCH_SPAN_MAX:
            return f"a commit ({self._committer.stage or 'it begins'})"
        return ""

    @property
    def is_behind(self) -> bool | None:
        """Whether this shard has too much work: for some time, hosts that have their turn had to wait for the end of a
        request or a commit. False if more requests could go out; None if something else prevents requests.
        """
        now = self._clock.now()
        if self.paused or self.brakes.held or self.stop_order or self._pages_full:
            return None
        if not self.may_begin(now):
            return None
        if now - self._spare_at < BEHIND_S:
            return False
        return True if self._wake_at <= now else None

    def lasting(self) -> list[Lasting]:
        """Return the hosts that will outlast all others; none where there is no end. 1 µs per host in memory."""
        urls_s, _ = self._counters.rates(self._clock.now())
        return self._frontier.lasting_hosts(urls_s) if self._options.mode != "continuous" else []

    def reconfigure(self, options: CrawlOptions, limits: LimitsOptions) -> None:
        """Apply new options."""
        self._options = options
        self._limit(limits)
        if not self.adapts:
            self.brakes.why = ""
            self.brakes.reconfigure(options.concurrency_max)
        self._commit_now.set()  # The commit task waits for the old interval.

    def _limit(self, limits: LimitsOptions) -> None:
        self._pages_max = bound(limits.max_pages)
        self._bytes_max = bound(limits.max_bytes)
        self._time_s_max = bound(limits.max_time_s)

    def commit_soon(self) -> None:
        """Request a commit without waiting for it."""
        self._commit_now.set()

    def stir(self) -> None:
        """Wake the loop: there may be something new to fetch."""
        self._wake.set()

    async def commit_if_large(self) -> None:
        """Commit if the open epoch is large, for callers that add thousands of links."""
        if self._committer.crowding() >= 1:
            await self._committer.commit()

    async def run(self, companions: Sequence[Companion] = (), more_to_come: Callable[[], bool] = bool) -> End:
        """Crawl. `companions` run concurrently and are cancelled at the end; an empty frontier is not the end while
        `more_to_come` returns True. Raises OSError: the disk failed; the committed state is safe; Exception: there were
        too many internal errors.
        """
        self._more_to_come = more_to_come
        self.state = "running"
        self._counters.totals.ended = ""
        self._counters.totals.awaited = []
        self._counters.totals.lasting = []
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._commit_often())
                beside = [group.create_task(companion()) for companion in companions]
                end = await self._run_until_over(group)
                await self._drain()
                for task in beside:
                    task.cancel()
                self._over = True  # Not cancelled, since a running commit must also deliver its pages.
                self._commit_now.set()
        except BaseExceptionGroup as errors:
            raise first_of(errors) from errors
        self._counters.totals.ended = end
        self._counters.totals.awaited = self._frontier.next_hosts(AWAITED_MAX) if end == "patience" else []
        self._counters.totals.lasting = self.lasting()
        await self._committer.commit()
        self._counters.raise_fatal()
        self.state = "finished" if end in {"finished", "limit"} else "stopped"
        return end

    async def _run_until_over(self, group: asyncio.TaskGroup) -> End:
        while True:
            self._counters.raise_fatal()
            if self.stop_order or self._counters.failure is not None:
                return "stopped"
            if self._early:
                return self._early
            self._crowding = self._committer.crowding()
            if self._counters.in_epoch and self._crowding >= 1:
                self._commit_now.set()
            if self._limit_reached():
                return "limit"
            taken_back = self._take_back()
            if (not (self.paused or self.brakes.held) and self._start_visits(group)) or taken_back:
                await asyncio.sleep(0)
                continue
            if end := self._end_by_itself():
                return end
            await self._sleep()

    def _end_by_itself(self) -> End | Literal[""]:
        """Return how the crawl ends because nothing is left to do; empty if something is."""
        if self._options.mode == "continuous" or self._in_flight or self.paused or self._more_to_come():
            return ""
        if self._pipeline.discovery.links_held:
            return ""
        self._frontier.control.prerequisites_only = False  # Rendering has ended.
        if self._wake_at == inf:
            return "finished"
        return "patience" if self.out_of_patience else ""

    def _take_back(self) -> int:
        """Queue held links whose answers have come; if there is nothing else to do, also those of small batches."""
        if not self._pipeline.discovery.links_held or self._requests_blocked(self._clock.now()):
            return 0
        taken_back = self._pipeline.take_back(idle=self._is_idle)
        self.activity += bool(taken_back)
        return taken_back

    def _start_visits(self, group: asyncio.TaskGroup) -> int:
        """Start visits while there are leases and free requests; return how many leases were handled."""
        started = 0
        now = self._clock.now()
        most = self.brakes.concurrency
        # A page that is rendered waits for prerequisite fetches, so it must not prevent them.
        browsers = self._pipeline.stages.rendering
        rendering = browsers.visits
        prerequisites_only = rendering > 0 and bool(browsers.is_full or self._pages_full)
        self._frontier.control.prerequisites_only = prerequisites_only
        most += rendering
        self._pipeline.concurrency = most
        self._pipeline.locate_more(now)
        if self._requests_blocked(now):
            return 0
        epoch_max = EPOCH_SPAN_MAX * self._options.commit_pages
        while started < LEASES_A_PASS_MAX and self.requests < most and self._counters.in_epoch < epoch_max:
            if not prerequisites_only and self._pages_full:
                break
            at = self._clock.now()
            # A suspended process may have lost its lease in the middle of a pass.
            if not self.may_begin(at) or (started and at - now > LEASES_S_MAX):
                break
            lease = self._frontier.select(now)
            if lease is None:
                break
            started += 1
            self.activity += 1
            work = self._pipeline.lease(lease, now)
            if work is not None:
                task = group.create_task(work)
                self._in_flight[task] = lease, now
                self.visits += lease.is_visit
                task.add_done_callback(self._on_task_done)
        return started

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        lease, _ = self._in_flight.pop(task)
        self._counters.last_at = self._clock.now()
        self.visits -= lease.is_visit
        if self._counters.in_epoch >= self._options.commit_pages or self._counters.delivery.filling:
            self._commit_now.set()
        self._wake.set()  # The loop also checks how much waits for a commit, once for all visits that end together.

    def _limit_reached(self) -> bool:
        totals = self._counters.totals
        return (
            totals.pages >= self._pages_max
            or self.bytes_used_up()
            or (self._time_s_max < inf and self.elapsed_s() >= self._time_s_max)
        )

    def bytes_used_up(self) -> bool:
        """Return whether no more bytes may be received. It costs 0.2 µs, for each piece of a body."""
        return self._bytes_max < inf and self._counters.totals.wire_bytes + self.receiving() >= self._bytes_max

    def is_late(self) -> bool:
        """Whether fetched pages are no longer processed. Checked before each page, since many large pages may be ready
        at once, and the loop does not run until they are done.
        """
        limit_s = self._time_s_max
        if limit_s < inf:
            grace_s = min(self._options.stop_s, max(TIME_GRACE_S_MIN, TIME_GRACE_SHARE * limit_s))
            if self.elapsed_s() >= limit_s + grace_s:
                return True
        return self.stop_order == "now" or (self._leave_at < inf and self._clock.now() >= self._leave_at)

    def elapsed_s(self) -> float:
        """Return the seconds of crawling over all runs."""
        return self._committer.elapsed_s()

    async def _sleep(self) -> None:
        self._wake.clear()
        wait_s = min(max(self._wake_at - self._clock.now(), 0.0), IDLE_S_MAX)
        rendering = self._pipeline.stages.rendering.visits
        is_blocked = bool(self._requests_blocked(self._clock.now()) if rendering else self.blocker)
        is_full = self.requests >= self.brakes.concurrency + rendering
        may_start = not (is_full or is_blocked or self.paused or self.brakes.held)
        has_spare = may_start and wait_s > 0.0 and not self._pipeline.documents.parked
        if not may_start:
            wait_s = IDLE_S_MAX
        if has_spare:
            self._spare_at = inf
        if self._time_s_max < inf:
            wait_s = min(wait_s, max(self._time_s_max - self.elapsed_s(), 0.0))
        await wait_at_most(wait_s, self._wake.wait())
        if has_spare:
            self._spare_at = self._clock.now()

    async def _drain(self) -> None:
        """Wait for visits in flight, for a bounded time, unless the stop is immediate."""
        self.state = "stopping"
        deadline = self._leave_at = self._clock.now() + self._options.stop_s
        while self._in_flight and not self.is_late():
            self._wake.clear()
            await wait_at_most(min(DRAIN_POLL_S, max(0.0, deadline - self._clock.now())), self._wake.wait())
        for task in self._in_flight:
            task.cancel()

    async def _commit_often(self) -> None:
        while not self._over:
            # Each commit takes disk space, so a held crawl without changes commits rarely.
            is_idle = self.brakes.held and not (self._in_flight or self._counters.in_epoch)
            pause_s = max(HELD_COMMIT_S, self._options.commit_s) if is_idle else self._options.commit_s
            await wait_at_most(pause_s, self._commit_now.wait())
            self._commit_now.clear()
            await self._committer.commit()
            self._wake.set()


def bound(limit: float | None) -> float:
    """Return a limit as a number; infinity for none."""
    return inf if limit is None else limit


def first_of(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group, which is clearer for people than the group."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
