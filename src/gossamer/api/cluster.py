"""Cluster: a crawl of several shards in Python. A `ClusterCrawler` runs one crawl, once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast

import msgspec
from msgspec.structs import replace

from gossamer.api import growing
from gossamer.api.base import BaseCrawler, config_for
from gossamer.api.cluster_queries import ClusterQueries, ClusterSetting, every_shard
from gossamer.api.engine import EngineCalls, have_stopped, hear_signals_as_before, no_machine, no_room, plan_of, start
from gossamer.api.given import directory_of, with_options
from gossamer.api.looking import merge_answers
from gossamer.api.low_water import bring_seeds
from gossamer.api.page import NOT_ENTERED, CrawledPage
from gossamer.api.restoring import begin_copies, check_vault, gather
from gossamer.api.shards import check_several, last_status, map_of, require_states, save_status
from gossamer.api.status import end_text
from gossamer.api.verbs import accept_fields, require_restart
from gossamer.assembly.home import homes, lock_directory, refuse_maintained
from gossamer.assembly.integrity import require_files
from gossamer.assembly.modules import text_of
from gossamer.cluster.aggregate import combine, with_earlier
from gossamer.cluster.coordination import CoordinatorRecord, node_of
from gossamer.cluster.job import address_in, address_of_job, reach
from gossamer.cluster.local import LocalEngine
from gossamer.cluster.partitions import RECORD_FILE
from gossamer.cluster.spreading import machines_for
from gossamer.config import Config, effective_toml
from gossamer.config.flags import Options
from gossamer.config.live import save, with_workers
from gossamer.engine.control import ControlSocket, Verb
from gossamer.engine.counters import Point, Timeline
from gossamer.engine.logs import Logs
from gossamer.engine.loop import End
from gossamer.model.errors import ConfigError, CrawlFailedError, HeadLostError, NoClusterError
from gossamer.model.status import read_status
from gossamer.model.verbs import VERBS, ConflictError, Nothing, ScaleCrawl, Seed, StopCrawl, VerbRequest
from gossamer.stages.archive.cdxj import write_index_of
from gossamer.state import slots
from gossamer.world.clock import WallClock
from gossamer.world.files import make_directory, write_whole

if TYPE_CHECKING:
    from gossamer.api.engine import Engine
    from gossamer.api.following import CommittedPages
    from gossamer.cluster.job import ClusterPlan

LOOK_S = 0.25
"""Interval of status requests to the coordinator."""
DEAD_S = 20.0
"""Time for which Ray must report the coordinator as dead before it is given up; Ray restarts it whenever it can."""
HEAD_S = 15.0
"""Time without an answer, or a connection, after which the head of a cluster is given up."""
COORDINATOR_S = 60.0
"""Time within which the head, where it accepts connections, restarts a coordinator, on a busy machine too."""
HEAD_LOOK_S = 1.0
"""Interval of attempts to reach the head of a cluster that was lost."""
REFUSAL_S = 0.5
REFUSALS_MAX = 3
"""Connections in a row that the head's machine refuses, each `REFUSAL_S` after the last: its Ray has ended."""
PLACE_S = 20.0
"""Longest wait of a stop for shards that have not begun: the cluster may have no machine for them."""
KEEP_S = 2.0
"""Interval of writes of the crawl's status to disk."""


class ClusterCrawler(BaseCrawler):
    """A crawl of `cluster.workers` shards, run once: use it as `async with` and iterate over its pages, or await `run`.
    The shards are processes of this machine, or of a Ray cluster (`cluster.address`).

    Pages come after the commit that holds them, in each shard's order, and each once, however often a shard dies. They
    are read from the crawl's files: a slow reader does not delay the crawl, and `body` is empty for pages without a
    WARC record of their own, such as exact copies. After `resume`, pages of earlier runs do not come.
    """

    @with_options
    def __init__(
        self,
        seeds: Iterable[str] | str = (),
        *,
        output: str | Path = "crawl",
        config: Config | None = None,
        resuming: bool = False,
        **options: Unpack[Options],
    ) -> None:
        """Prepare a crawl, as `Crawler` does; `workers=4` says how many shards it has. Raises ConfigError: a mistake
        that the operator can fix, in one line.
        """
        directory = directory_of(output, "output")
        config = config_for(directory, seeds, config, (), options, resuming=resuming)
        config = growing.with_added_shards(config, directory)
        check_several(config)
        map_of(config, directory)
        self._begin(directory, config)
        self._cluster = replace(config.cluster, address=config.cluster.address or address_of_job(os.environ))
        self._resuming = resuming
        self._calls = EngineCalls()
        self._begun: ClusterPlan | None = None
        """The plan by which the first shards were started."""
        self._is_head_lost = False
        self._reached_at = 0.0
        """When the head last accepted a connection."""
        self._is_placed = False
        self._starts_by = 0.0
        """Whether all shards have answered from a machine, and the time by which they must."""
        self._one_at_a_time = asyncio.Lock()
        """Held while shards make a checkpoint, or partitions are ordered to move, or the configuration is written."""
        self._status = combine([{"state": "starting"}] * config.cluster.workers)
        self._stop: Literal["", "drain", "now"] = ""
        self._timeline = Timeline()
        self._warned = False
        self._following: CommittedPages | None = None
        self._wants_seeds = False
        """Whether few hosts are left, and more seeds are requested."""
        self._is_copied = True
        """Whether all moves of partitions are beside the shards' checkpoints, if there are any."""

    @classmethod
    def resume(cls, directory: str | Path, *, config: Config | None = None, **options: Unpack[Options]) -> Self:
        """Prepare to continue a crawl. Raises ConfigError: `directory` holds no crawl, or a command works on it."""
        return cls((), output=directory, config=config, resuming=True, **options)

    def status(self, *, detail: bool = False) -> dict[str, Any]:
        """Return counts, rates and state; `shards` has those of each shard, `detail` adds rates over time."""
        return {**self._status, "course": self._timeline.rates()} if detail else self._status

    def stop(self, *, now: bool = False, again: bool = False) -> None:
        """End the crawl: finish what is in flight and commit; with `now`, commit and go; with `again`, start again."""
        self._stop = "now" if now else self._stop or "drain"
        self.starts_again = again

    async def run(self) -> End:
        """Crawl until nothing is left anywhere, a limit is reached or `stop` is called; return which of these it was.
        Raises ConfigError: the engine cannot be started, or a shard names a mistake; CrawlFailedError: a shard cannot
        go on.
        """
        self._require_loop()
        make_directory(self.directory)
        if self._resuming:
            require_states(self.config, self.directory)
            with suppress(ConfigError):  # It was not stopped in order, or ended before it began.
                self._status = with_earlier(self._status, last_status(self.directory))
        refuse_maintained(self.directory)
        lock = lock_directory(self.directory)
        logs = self._logs = Logs(self.directory / "logs", WallClock())
        try:
            await check_vault(self.config)
            if self._resuming:
                await asyncio.to_thread(require_files, self.config, self.directory)
            if self._following is not None:
                await asyncio.to_thread(self._following.skip)
            self._begun = await self._write_down()
            if (engine := await self._start(self._begun)) is None:
                return "stopped"
            self._calls.engine = engine
            self._has_run = True
            if self._cluster.address:
                hear_signals_as_before()
            try:
                save(self.config, self.directory)
                end = await self._lead(engine, logs)
            finally:
                self._calls.engine = None
                if self._is_head_lost and not isinstance(engine, LocalEngine):
                    engine.abandon()
                else:
                    await asyncio.to_thread(engine.close)
        finally:
            with suppress(OSError):
                save_status(self.directory, self._status)
            self._logs = None
            logs.close()
            lock.release()
        self.config = await asyncio.to_thread(growing.leave_idle, self.directory, self.config)
        return end

    # ---- as a context, and an iterator over pages

    async def __aenter__(self) -> Self:
        self._require_loop()
        if self.config.state.checkpoint_uri:
            raise ConfigError(
                "state.checkpoint_uri: shards keep their pages on their own machines, so a program cannot iterate over "
                "them; leave it out, or await `run` and read `Tables`"
            )
        from gossamer.api.following import CommittedPages  # noqa: PLC0415 - other crawls read no archive

        self._following = CommittedPages(self.config, homes(self.directory, self.config.cluster.workers))
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._following is not None
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            self._following.close()

    async def __aiter__(self) -> AsyncIterator[CrawledPage]:
        if self._following is None or self._task is None:
            raise ConfigError(NOT_ENTERED)
        is_over = False
        while not is_over:
            is_over = self._task.done()
            while visits := await asyncio.to_thread(self._following.next):
                for visited in visits:
                    yield CrawledPage(visited, partial(text_of, config=self.config))
            await asyncio.wait([self._task], timeout=LOOK_S)
        self._was_raised = True
        await self._task

    # ---- inside

    async def _lead(self, engine: Engine, logs: Logs) -> End:
        """Lead the crawl to its end beside what serves it. Of several errors the first one is raised."""
        config = self.config
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(self._serve(logs))]
                if self._cluster.address:
                    beside.append(group.create_task(self._watch_head()))
                if config.state.checkpoint_uri:
                    copying = growing.keep_copies(engine, config, self.directory, lambda: self._is_copied, self._tell)
                    beside.append(group.create_task(copying))
                if config.frontier.more_seeds_command:
                    beside.append(group.create_task(self._keep_seeded()))
                end = await self._until_over(engine)
                await self._make_views()
                for task in beside:
                    task.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return end

    async def _serve(self, logs: Logs) -> None:
        """Answer requests on the control socket until cancelled."""
        verbs = self._verbs()
        with self._asking.open(verbs, logs):
            await ControlSocket(self.directory / "state", verbs, logs).serve()

    async def _write_down(self) -> ClusterPlan:
        """Write the files that shards and coordinator read, before any is started; return the plan for their start."""
        make_directory(self.directory / "state")
        # What was moved while the crawl ran before becomes the map that it is started with.
        partitions = map_of(self.config, self.directory)
        partitions.save(self.directory)
        slots.note_end(self.directory / "state")
        path = self.directory / RECORD_FILE
        former: dict[int, str] = {}
        is_abrupt = False
        if path.exists():  # What ended the run before does not end this one.
            kept = msgspec.json.decode(path.read_bytes(), type=CoordinatorRecord)
            kept.had_hosts = kept.had_hosts and kept.end != "low_water"  # This run fetches the remainder.
            kept.paused = kept.paused and self.stays_paused
            kept.end = ""
            kept.hurried = False
            kept.held = False
            kept.seeds_over = False
            kept.limits = None
            former = {shard: address_in(node_of(holder)) for shard, holder in kept.holders.items()}
            is_abrupt = not kept.closed
            if kept.closed:  # No shard uses its quota any more, and the limit may be another one.
                kept.shares = []
            write_whole(path, msgspec.json.encode(kept))
        await begin_copies(self.config, self.directory)
        stays = not self._cluster.rebalance or growing.keeps_partitions(self.config) or self._following is not None
        plan = plan_of(self.config, self._cluster, self.directory, partitions, balances=not stays)
        former = {shard: address for shard, address in former.items() if address and shard < plan.shards}
        return msgspec.structs.replace(plan, former=former, is_abrupt=is_abrupt)

    async def _start(self, plan: ClusterPlan) -> Engine | None:
        """Start the engine. A resumed crawl waits for the head of its cluster; None: it was stopped meanwhile."""
        clock = WallClock()
        ends_at = clock.now() + (self.config.cluster.head_s_max if self._resuming else 0.0)
        while not self._stop:
            try:
                return await asyncio.to_thread(start, plan, self._cluster, lambda: self._stop)
            except NoClusterError as error:
                if clock.now() > ends_at:
                    raise
                if not self._status["waiting_for"]:
                    self._tell(f"{error}; the crawl waits for it")
                    self._status["waiting_for"] = f"the Ray cluster at {self._cluster.address}"
                    await asyncio.to_thread(save_status, self.directory, self._status)
            await asyncio.sleep(HEAD_LOOK_S)
        return None

    async def _keep_seeded(self) -> None:
        """Bring more seeds when few hosts are left, as long as some of them are new."""
        is_new = True
        while True:
            await asyncio.sleep(LOOK_S)
            if self._wants_seeds and not self._stop:
                is_new = is_new and await bring_seeds(self.config, self.directory, self._add_seeds, self._tell)
                with suppress(ConflictError):  # The coordinator is restarting, and will request them again.
                    await self._calls.call("note_seeds" if is_new else "end_seeds")
                    self._wants_seeds = False

    async def _add_seeds(self, request: Seed) -> object:
        while True:
            with suppress(ConflictError):
                return await self._for_all("seed")(request)
            await asyncio.sleep(LOOK_S)  # The coordinator is restarting.

    async def _until_over(self, engine: Engine) -> End:
        clock = WallClock()
        heard_at = kept_at = clock.now()
        self._starts_by = heard_at + self._place_s_max()
        # A shard that was killed ends cleanly only after it began.
        waits_until = heard_at + PLACE_S if self._cluster.address else self._starts_by
        asked = ""
        began = False
        is_silent = False
        while True:
            if self._stop != asked:
                with suppress(ConnectionError):
                    await growing.settle(engine, self.directory, lambda: self._stop == "drain")
                    await engine.call("end", end="stopped", hurried=self._stop == "now")
                    asked = self._stop
            gives_up = self._stop == "now" or (self._stop and clock.now() > waits_until)
            try:
                standing = await engine.standing()
            except ConnectionError as error:
                if not began and gives_up:
                    return "stopped"
                self._require_patience(error, clock.now() - heard_at, began=began)
                if began:
                    self._note_silence(clock.now() - heard_at, first=not is_silent)
                    is_silent = True
                await asyncio.sleep(LOOK_S)
                continue
            if is_silent:
                is_silent = False
                self._tell("The coordinator answers again.")
            heard_at = clock.now()
            began = True
            self._take(standing, heard_at)
            await self._start_departed(engine, standing["departed"])
            if standing["is_over"]:
                return self._end_of(standing)
            self._is_placed = self._is_placed or not (missing := no_machine(self._status))
            if not self._is_placed and gives_up and have_stopped(self._status):
                return "stopped"
            if not self._is_placed and heard_at > self._starts_by:
                raise CrawlFailedError(no_room(missing, self._cluster))
            if not self._is_placed and self._cluster.address:
                wanted = f"{len(missing)} of {self.config.cluster.workers} shards have none"
                self._status["waiting_for"] = f"machines of the Ray cluster: {wanted}"
            if heard_at - kept_at > KEEP_S:
                kept_at = heard_at
                await asyncio.to_thread(save_status, self.directory, self._status)
            await asyncio.sleep(LOOK_S)

    def _place_s_max(self) -> float:
        """Return how long Ray may take to place shards; after an interruption, their machines may come late."""
        options = self.config.cluster
        is_abrupt = self._begun is not None and self._begun.is_abrupt
        return max(options.start_s_max, options.head_s_max) if is_abrupt else options.start_s_max

    async def _start_departed(self, engine: Engine, departed: Iterable[tuple[int, str]]) -> None:
        if isinstance(engine, LocalEngine):
            return
        for shard, machine in departed:
            assert self._begun is not None
            plan = msgspec.structs.replace(self._begun, config=effective_toml(self.config))
            with suppress(ConnectionError):  # The next status has it again.
                await engine.move(plan, shard, machine, self._cluster)

    def _require_patience(self, error: ConnectionError, age_s: float, *, began: bool) -> None:
        """Raise CrawlFailedError when the coordinator, silent for `age_s`, is given up."""
        on_cluster = began and bool(self._cluster.address)
        limit_s = DEAD_S if isinstance(error, ConnectionAbortedError) else self.config.cluster.start_s_max
        if on_cluster:
            limit_s = COORDINATOR_S if WallClock().now() - self._reached_at <= HEAD_S else HEAD_S
        if age_s <= limit_s:
            return
        if on_cluster:
            raise self._lose_head() from error
        asks = "; has every machine the same RAY_AUTH_MODE?" if self._cluster.address else ""
        how = "come back" if began else f"begin{asks}"
        raise CrawlFailedError(f"the coordinator does not {how} ({error})") from error

    async def _watch_head(self) -> None:
        """Give the head up when its machine refuses connections, sooner than when it is silent."""
        refusals = 0
        while refusals < REFUSALS_MAX:
            await asyncio.sleep(REFUSAL_S)
            try:
                await asyncio.to_thread(reach, self._cluster.address)
                self._reached_at = WallClock().now()
                refusals = 0
            except (OSError, ValueError) as error:
                refusals = refusals + 1 if isinstance(error, ConnectionRefusedError) else 0
        raise self._lose_head()

    def _lose_head(self) -> HeadLostError:
        """Note that the head is given up, and return the error that says so."""
        self._is_head_lost = True
        return HeadLostError(f"the head of the Ray cluster at {self._cluster.address} is gone")

    def _note_silence(self, age_s: float, *, first: bool) -> None:
        if first:
            self._tell("The coordinator does not answer: the shards crawl on, and it is started again.")
        self._status["waiting_for"] = f"the coordinator; these figures are {age_s:.0f} s old"

    def _take(self, standing: Mapping[str, Any], now: float) -> None:
        """Store the status from the coordinator for later requests, and report its changes to listeners."""
        self._status = with_earlier(standing["status"], self._status)
        self._is_copied = standing["is_copied"]
        self._wants_seeds = standing["wants_seeds"]
        if not self._one_at_a_time.locked():
            self._count(len(cast("list[object]", self._status["shards"])))
        number = cast("Mapping[str, Any]", self._status).get
        pending = number("queued", 0) + number("in_flight", 0)
        self._timeline.add(Point(now, number("pages", 0), number("attempts", 0), number("wire_bytes", 0), pending))
        for note in standing["notes"]:
            self._tell(note)
        if (warnings := self._status["warnings"]) and not self._warned:
            self._warned = True
            for warning in cast("list[str]", warnings):
                self._tell(f"Warning: {warning}")

    def _count(self, shards: int) -> None:
        """Store the coordinator's number of shards: a command that was killed may have added some."""
        if shards != self.config.cluster.workers:
            self.config = with_workers(self.config, shards)
            growing.write_number(self.directory, shards)
            # A cluster has to find room for them too.
            self._is_placed = False
            self._starts_by = WallClock().now() + self._place_s_max()

    def _end_of(self, standing: Mapping[str, Any]) -> End:
        if standing["failure"]:
            self._status["state"] = "failed"
            raise ConfigError(standing["failure"]) if standing["refused"] else CrawlFailedError(standing["failure"])
        end = cast("End", standing["end"])
        state = "finished" if end in {"finished", "limit"} else "stopped"
        for shard in cast("list[dict[str, object]]", self._status["shards"]):
            shard["state"] = state
        self._status |= {"state": state, "ended": end, "waiting_for": ""}
        self._status["ended_says"] = end_text(read_status({**self._status, "shards": []}))
        return end

    async def _make_views(self) -> None:
        """Copy here the files that shards left elsewhere, and make the views of all shards."""
        if self.config.state.checkpoint_uri and self.config.cluster.gather:
            await gather(self.config, self.directory)
        await asyncio.to_thread(write_index_of, self.directory, self.config.archive.index_sort_bytes_max)

    # ---- what can be asked

    def _verbs(self) -> dict[str, Verb]:
        queries = ClusterQueries(self.directory, lambda: self.config, self._calls, self.status, self._timeline)
        setting = ClusterSetting(self.directory, lambda: self.config, self._calls, self._one_at_a_time, self._configure)
        own: dict[str, Callable[..., Awaitable[object]]] = {
            "pause": self._pause,
            "unpause": partial(self._pause, paused=False),
            "stop": self._on_stop,
            "scale": self._on_scale,
            "checkpoint": self._on_checkpoint,
        }
        for answers in (queries, setting):
            own |= {name: getattr(answers, name) for name in VERBS if hasattr(answers, name)}
        # All other verbs go to each shard.
        return accept_fields({name: own.get(name) or self._for_all(name) for name in VERBS})

    def _soon(self, state: str) -> dict[str, object]:
        """Return the last status with the state that the shards are changing to; a stopping crawl stays `stopping`."""
        return {**self._status, "state": "stopping" if self._stop else state, "waiting": None, "waiting_for": ""}

    async def _pause(self, _: Nothing, *, paused: bool = True) -> object:
        await self._calls.call("pause", paused=paused)
        return self._soon("paused" if paused else "running")

    async def _on_stop(self, request: StopCrawl) -> object:
        require_restart(request)
        self.stop(now=request.now, again=request.again)
        return self._soon("stopping")

    async def _on_scale(self, request: ScaleCrawl) -> object:
        shards = request.workers
        if shards == 1 or growing.stops_to_scale(self.config) or self._following is not None:
            return {"workers": shards, "stops": True}
        async with self._one_at_a_time:
            engine = self._calls.require()
            # Before any of them counts: what is restarted now finds all of them.
            added = range(len(engine.shards), shards)
            present = await asyncio.to_thread(growing.begin_shards, self.directory, added)
            assert self._begun is not None
            plan = msgspec.structs.replace(self._begun, config=effective_toml(present))
            machines = machines_for(len(added), cast("list[Mapping[str, Any]]", self._status.get("machines", [])))
            await asyncio.to_thread(engine.grow, plan, machines)
            await self._calls.call("scale", shards=shards)
            self._count(max(shards, self.config.cluster.workers))
        return {"workers": shards, "stops": False}

    async def _on_checkpoint(self, request: Nothing) -> object:
        """Make a checkpoint of each shard. They are consistent only if no partition moves meanwhile."""
        async with self._one_at_a_time:
            growing.require_arrived(self.directory, ordered=True)
            await self._calls.call("hold", held=True)
            try:
                await growing.wait_for_moves(self.directory)
                return await self._for_all("checkpoint")(request)
            finally:
                with suppress(ConflictError):
                    await self._calls.call("hold", held=False)

    def _for_all(self, name: str) -> Callable[[VerbRequest], Awaitable[object]]:
        async def answer(request: VerbRequest) -> object:
            if name == "seed":
                await self._calls.call("note_seeds")
            return merge_answers(await self._calls.ask(name, request, every_shard(self.config), some=name == "release"))

        return answer
