"""Lives: what every trial does with the processes of its world, whether they are of one shard or of several."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from typing import Any
from uuid import UUID

import msgspec

from gossamer.assembly import integrity, kept
from gossamer.assembly.values import Shard
from gossamer.config import Config
from gossamer.engine import loop
from gossamer.stages.archive import archive, logs, warc
from gossamer.stages.frontier.record import decode_entry
from gossamer.stages.seen import bloom, diskmerge, held
from gossamer.state import journals, redo
from gossamer.state.redo import DamagedStoreError
from gossamer.state.schema import PARTITIONED
from gossamer.state.store import Store
from gossamer.world import files
from gossamer.world.dice import Dice
from gossamer.world.machine import ThisMachine
from tests.faults.loop import HERE, SimulatedLoop
from tests.faults.recount import Files, wrong_state
from tests.faults.schedule import is_uneven
from tests.faults.web import SETS as SETS_OF_LOGIN
from tests.faults.web import hash_of
from tests.faults.world import BUSY_S, DELAYS_S, Fault, Killed, Kind, Machine, World

IDLE_S = 10.0
"""Between two looks of a loop that has nothing to do: no decision depends on it."""
OPTIONS = {"allow_private": True, "scope": "any", "contact": "a@example.org"}
SETS = (
    "components.protocols={http = 'tests.faults.world:SimulatedHttp'}",
    "components.resolver='tests.faults.world:SimulatedResolver'",
    f"politeness.delay_s_min={DELAYS_S[0]}",
    "politeness.delay_factor=0.0",
    "frontier.attempts_max=12",
    "frontier.retry_s_first=5.0",
    "frontier.retry_s_max=60.0",
    "frontier.host_failures_max=50",
    "robots.retry_first_s=5.0",
    "robots.retry_s_max=60.0",
    "robots.robots_wait_max_s=80_000.0",  # Clocks are set.
    "politeness.delay_s_max=120.0",  # That of every host after a power cut.
    f"politeness.backoff_s_first={BUSY_S}",
    f"politeness.backoff_s_max={2 * BUSY_S}",
    "crawl.patience_s=80_000.0",
    "crawl.commit_s=30.0",
    "crawl.commit_pages=5",
)
SETS_OF_SHARDS = (
    "politeness.per_address=1",
    "cluster.address_term_s=5.0",
    "crawl.request_s_max=9.0",
    "fetch.request_s_max=10.0",
    "crawl.commit_s=10.0",
)
SETS_OF_REVISITS = (
    "crawl.mode='continuous'",
    "revisit.interval_s_mean=200.0",
    "revisit.interval_s_min=20.0",
    "revisit.interval_s_max=1000.0",
    "revisit.failed_s_first=30.0",
    "revisit.max_age_s={'/1' = 300.0, '/1?2$' = 200.0}",
)
OTHER_PROMISES = "revisit.max_age_s={'/1?2$' = 200.0, '/1' = 300.0}"
"""The same in another order."""

VARIED = (
    ("frontier.active_hosts_max=1", "frontier.window_urls_max=1"),
    ("robots.cache_hosts_max=1", "seen.popular_bytes_max=1"),
    (
        "archive.warc_segment_bytes_max=20000",
        "archive.table_segment_rows_max=30",
        "archive.table_segment_s_max=20.0",
        "archive.table_frame_rows_max=3",
    ),
    ("budget.host_pages=4", "frontier.priority='in_links'", "frontier.priority='best_first'"),
)
"""What half of the seeds change, at most one of each row: bounds so small that they are met, and other orders."""
BACKENDS = (
    (
        "seen.backend='diskmerge'",
        "seen.front_urls_max=5",
        "seen.popular_urls_max=2",
        "seen.held_urls_max=8",
        "seen.filter_bits=2",
        "seen.expected_urls=5",
    ),
    ("seen.backend='bloom'", "seen.log_urls_max=10", "seen.expected_urls=20000", "seen.false_positive_rate=1e-12"),
    ("seen.backend='memory'",),
)
"""A quarter of the seeds find out in another way whether a URL was seen."""


def sets_of(seed: int, shards: int = 1) -> tuple[str, ...]:
    """Return the settings of the crawl of a seed."""
    dice = Dice(seed + 4)
    found = list(SETS)
    if dice.below(2):
        found += [row[at] for row in VARIED if (at := dice.below(2 * len(row))) < len(row)]
        if not dice.below(2):
            found += BACKENDS[dice.below(len(BACKENDS))]
    return tuple(found)


def sets_for(world: World, *, is_covered: bool) -> tuple[str, ...]:
    """Return the settings of all shards of a world."""
    covered = ("state.checkpoint_uri='file:///checkpoints'",) if is_covered else ()
    address = f"politeness.address_delay_s={world.address_delay_s}", f"politeness.delay_s_min={world.delay_s}"
    uneven = ("crawl.concurrency=1",) if is_uneven(world.seed) else ()
    # With one host in memory, each has up to 64 turns before the next one, and no trial would end in time.
    revisits = (*SETS_OF_REVISITS, "frontier.active_hosts_max=3") if world.changes else ()
    login = SETS_OF_LOGIN if world.session is not None else ()
    workers = f"cluster.workers={world.shards}"
    several = (*SETS_OF_SHARDS, *revisits, *login, *address, workers, *covered, *uneven)
    return (*sets_of(world.seed, world.shards), *several)


SLACK_S = 1e-3
"""Instants in keys are rounded."""
Place = tuple[object, str, object]
"""What holds a name, the name, and the value that it gets."""


class Trial(msgspec.Struct):
    """How it went."""

    seed: int
    faults: list[Fault]
    happened: list[Fault] = []
    steps: int = 0
    requests: int = 0
    broken: list[str] = []
    balanced: int = 0
    """Moves from a shard that was behind to one that was free."""
    trace: str = ""
    """Digest of every request with its time: equal for equal seeds."""

    def record_totals(self, world: World) -> Trial:
        """Record the faults that happened, the steps, the requests, and a digest of the log."""
        self.happened += [fault for fault, until in world.troubles.items() if until < inf]
        self.steps, self.requests = world.steps, len(world.log)
        self.trace = hashlib.sha256(repr(sorted(world.log)).encode()).hexdigest()[:16]
        return self


def check_books(machine: Machine, assembled: Shard, config: Config) -> None:
    """Have the state counted again at each commit, its files looked for, and the hosts in memory compared with their
    bound. Watchdogs do not run: they look at the real machine.
    """
    assembled.controls.watchdogs.run = _nothing  # type: ignore[method-assign]
    committer = assembled.kept.committer
    frontier = assembled.ring.frontier
    storage = assembled.kept.storage
    owners = assembled.membership.exchange.partitions.owners if assembled.membership is not None else ()
    # Each host may wait for a prerequisite of another one, which is there for that.
    hosts_max = config.frontier.active_hosts_max * (1 + machine.world.shards)
    files_of = Files(storage)
    machine.world.faulty += _too_soon(machine, storage.store)
    note = committer.on_epoch
    assert note is not None

    def check(epoch: int) -> None:
        if frontier.active_hosts > hosts_max:
            machine.world.faulty.append(f"commit {epoch}: {frontier.active_hosts} hosts in memory, {hosts_max} allowed")
        machine.world.faulty += [
            f"commit {epoch} of shard {machine.number}: {one}"
            for one in (*wrong_state(storage.store, machine.number, owners), *files_of.wrong())
        ]
        note(epoch)

    committer.on_epoch = check


async def _nothing() -> None:
    """Replace watchdogs."""


def _too_soon(machine: Machine, store: Store) -> Iterator[str]:
    """Yield the URLs that may be tried again sooner than at the start of the process before, as a start finds them."""
    behind_s = machine.wall_offset_s()
    retries = {
        key[:2] + key[-8:]: int.from_bytes(key[-16:-8]) / 1e6 - behind_s
        for key, value in store.scan("due", *PARTITIONED)
        if not decode_entry(value).revisit
    }
    for key, before in machine.retries.items() if machine.retries is not None else ():
        if (at := retries.get(key, inf)) < before - SLACK_S:
            yield f"a URL that was to wait until {before:.0f} s may be tried again {before - at:.3f} s sooner"
    machine.retries = retries


@contextmanager
def in_world(*, is_real: bool, also: Iterable[Place] = ()) -> Iterator[None]:
    """Have the crawl use the world's disk, clock and store, and commits of several chunks; `also` has more changes."""
    places: list[Place] = [
        (files, "os", _Current()),
        (kept, "boot_id", lambda: HERE.get().boot_id()),
        (ThisMachine, "wall_offset_s", lambda _machine: HERE.get().wall_offset_s()),
        (journals, "BUFFER_BYTES_MAX", 4096),
        (redo, "PART_OPERATIONS_MAX", 10),
        (redo, "SLICE_OPERATIONS_MAX", 25),
        (redo, "give_way", lambda: None),
        (asyncio, "TaskGroup", _OrderedGroup),
        (warc, "uuid", _Identifiers),  # By chance, the length of compressed records would differ from run to run.
        (logs, "_OPTIONS", None),
        (archive, "FOLLOW_S", IDLE_S),
        (bloom, "ThreadPoolExecutor", _Executor),
        (diskmerge, "ThreadPoolExecutor", _Executor),
        (held, "READS_MAX", 3),
        (held, "PART_LINKS_MAX", 3),
        (loop, "IDLE_S_MAX", IDLE_S),
        *also,
    ]
    if not is_real:
        places.append((integrity, "Store", lambda *given, **_named: HERE.get().disk.open_store(*given)))
    before = [getattr(holder, name) for holder, name, _ in places]
    # A kill is an interrupt. Where shells have it ignored, as in the background, it would be a component's mistake.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for holder, name, value in places:
            setattr(holder, name, value)
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for (holder, name, _), value in zip(places, before, strict=True):
            setattr(holder, name, value)


class _Identifiers:
    """Those of a process, instead of random ones."""

    @staticmethod
    def uuid4() -> UUID:
        machine = HERE.get()
        return UUID(int=hash_of(machine.world.seed, f"{machine.number} {machine.life}") << 80)


class _Executor:
    """Threads of their own that write files: what they have to do is done when the seed says so."""

    def __init__(self, *_: object, **__: object) -> None:
        self._begun: list[_WorkOfAThread] = []

    def submit(self, function: Callable[..., object], *arguments: object) -> _WorkOfAThread:
        self._begun.append(_WorkOfAThread(partial(function, *arguments)))
        return self._begun[-1]

    def shutdown(self, *, wait: bool) -> None:
        for work in self._begun if wait else ():
            work.exception()


class _WorkOfAThread(Future[Any]):
    def __init__(self, function: Callable[[], object]) -> None:
        super().__init__()
        self._function = function

    def done(self) -> bool:
        """Say whether the work is done; by chance, do it first."""
        if not super().done() and HERE.get().world.dice.below(2):
            self._do()
        return super().done()

    def result(self, timeout: float | None = None) -> Any:
        self.exception()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if not super().done():
            self._do()
        return super().exception(timeout)

    def _do(self) -> None:
        try:
            self.set_result(self._function())
        except Exception as error:  # noqa: BLE001 - it is the waiter's
            self.set_exception(error)


class _OrderedGroup(asyncio.TaskGroup):
    """A group that cancels its tasks in the order in which they began: that of a set would differ from run to run."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks: Any = _Ordered()


class _Ordered(dict[object, None]):
    def add(self, one: object) -> None:
        self[one] = None

    def discard(self, one: object) -> None:
        self.pop(one, None)


class _Current:
    """The disk of the life that is lived."""

    def __getattr__(self, name: str) -> object:
        return getattr(HERE.get().disk, name)


def unwind(loop: SimulatedLoop) -> None:
    """Close what a killed crawl holds. Its directory is not read any more."""
    for task in asyncio.all_tasks(loop):
        task.cancel()
    while left := asyncio.all_tasks(loop):
        with suppress(Killed):  # Groups of tasks pass it on.
            loop.run_until_complete(_wait_for(left))
    while loop.threads:
        with suppress(Killed):
            loop.threads[0].go_on()
    loop.close()


async def _wait_for(tasks: Collection[asyncio.Task[object]]) -> None:
    await asyncio.wait(tasks)


OF_THE_WEB: tuple[Kind, ...] = ("dns", "reset")
"""Faults that end no process."""
TROUBLE_S_MAX = 120.0


def web_faults(world: World, faults: Iterable[Fault]) -> list[Fault]:
    """Have the faults of the web happen; return the others."""
    world.troubles.update({fault: inf for fault in faults if fault.kind in OF_THE_WEB})
    return [fault for fault in faults if fault.kind not in OF_THE_WEB]


def is_of(fault: Fault | None, error: BaseException | None) -> bool:
    """Say whether a fault of a disk makes a crawl end with this error."""
    is_disk = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO)
    return fault is not None and is_disk and not isinstance(error, DamagedStoreError)
