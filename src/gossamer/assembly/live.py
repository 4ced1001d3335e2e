"""Live: parts of a running shard: changes of live keys, counters of its components, and watchdogs."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from gossamer.assembly.parts import budget_of, crawl_options_of, judges_again, politeness_of, retries_of
from gossamer.assembly.revisits import frontier_options_of, politeness_for_mode, scope_options
from gossamer.assembly.ring import CrawlRing
from gossamer.config import Config
from gossamer.engine.commit import Committer
from gossamer.engine.counters import Telemetry
from gossamer.engine.watchdogs import Brakes, Resources, Watchdogs
from gossamer.model.counters import Counters
from gossamer.model.pages import EpochRow
from gossamer.stages.frontier.frontier import Frontier
from gossamer.state.epoch import Epochs
from gossamer.world.dice import Dice
from gossamer.world.machine import ThisMachine
from gossamer.world.process import dies_with_parent

STALLED = "state/stalled.json"
"""Stack of the event loop, while it is stalled."""


def reconfigure(
    ring: CrawlRing, telemetry: Telemetry, watchdogs: Watchdogs, epochs: Epochs, dice: Dice, old: Config, config: Config
) -> None:
    """Replace the configuration `old` by one that differs only in live keys. Call this between two epochs."""
    scope = ring.scope
    if config.scope != old.scope:
        scope.chain.adopt(scope.chain_of(scope_options(config)))
        ring.pipeline.judges_again = judges_again(scope.chain, epochs)
    telemetry.counters.reconfigure(config.crawl)
    ring.pipeline.reconfigure(retries_of(config, dice), config.crawl)
    telemetry.logs.reconfigure(config.logs)
    scope.chain.on_rejected = telemetry.logs.on_rejected
    watchdogs.reconfigure(config.watch)
    ring.loop.reconfigure(crawl_options_of(config), config.limits)
    rules = politeness_for_mode(politeness_of(config), config)
    ring.frontier.reconfigure(rules, frontier_options_of(config), budget_of(config), telemetry.clock.now())


@runtime_checkable
class Countable(Protocol):
    """A component that counts. The operator's components need not."""

    def count(self, into: Counters) -> None: ...


def counters_of(stages: Iterable[object]) -> Counters:
    """Return the counts of all components since the process began."""
    found = Counters()
    for room in stages:
        if isinstance(room, Countable):
            room.count(found)
    return found


def measuring(
    counters: Callable[[], Counters], frontier: Frontier, count_due: Callable[[float], int] | None
) -> Callable[[EpochRow], EpochRow]:
    """Return what completes the row of a commit, in some microseconds; with revisits, by a pass over the calendar."""
    before = Counters()

    def measure(row: EpochRow) -> EpochRow:
        nonlocal before
        now = counters()
        came = now.since(before)
        before = now
        queue = frontier.counts
        due = count_due(row.committed_at) if count_due is not None else 0
        return msgspec.structs.replace(row, queued=queue.pending, hosts_with_work=queue.working, due=due, counters=came)

    return measure


def watchdogs_of(
    config: Config, folder: Path, brakes: Brakes, committer: Committer, telemetry: Telemetry, *, alone: bool
) -> Watchdogs:
    """Return the watchdogs; without `alone` our parent process serves other shards too."""
    paths = [folder / name for name in (".", "warc", "state", "state/spill", "search", "pages")]
    resources = Resources(folder, paths, folder / STALLED, config.memory.budget_bytes, own_process=dies_with_parent())
    return Watchdogs(brakes, committer, ThisMachine(supervised=alone), resources, config.watch, telemetry)
