"""Building: a configuration becomes a shard. Each function builds one of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec.structs import replace

from gossamer.assembly.archives import archives_of
from gossamer.assembly.features import FeatureParts, features_of
from gossamer.assembly.frontiers import frontier_for
from gossamer.assembly.home import Home, Setup, lock_directory, refuse_half_scaled
from gossamer.assembly.integrity import refuse_half_forgotten, require_division
from gossamer.assembly.kept import DurableState, durable_state_of, storage_of
from gossamer.assembly.modules import choose_modules, examiner_of, prioritizer_of
from gossamer.assembly.parts import (
    budget_of,
    close,
    content_seen_of,
    copies_of,
    crawl_options_of,
    explainers_of,
    isolation_of,
    judges_again,
    politeness_of,
    quarantine_of,
    resolver_of,
    retries_of,
    url_seen_of,
    with_scope_in_force,
)
from gossamer.assembly.permits import earlier_of, forget_filter_of, scope_of
from gossamer.assembly.protocols import protocol_modules
from gossamer.assembly.revisits import frontier_options_of, politeness_for_mode, scope_options
from gossamer.assembly.ring import CrawlRing
from gossamer.assembly.schemes import namer_of, without_robots
from gossamer.assembly.values import Controls, Outputs, Shard
from gossamer.config import Config
from gossamer.config.live import Settings
from gossamer.engine.commit import Committer, Cuts, Storage
from gossamer.engine.counters import CrawlCounters, Telemetry, Totals
from gossamer.engine.explain import Explainer, Lookups
from gossamer.engine.history import PageHistory, UrlMemory
from gossamer.engine.logs import Logs
from gossamer.engine.loop import CrawlLoop
from gossamer.engine.optional import NoOthers
from gossamer.engine.pending_scope import PendingScope, ScopeMemory
from gossamer.engine.pipeline import Pipeline
from gossamer.engine.stages import BatchEnding, Stages
from gossamer.engine.watchdogs import Brakes, Resources, Watchdogs
from gossamer.features.permit import Exclusions
from gossamer.model.counters import Counters
from gossamer.model.pages import EpochRow
from gossamer.model.product import __version__
from gossamer.stages.archive.archive import Archives
from gossamer.stages.archive.uploads import uploads_of
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.process.choice import Chosen
from gossamer.stages.robots.robots import SiteRobots, record_of
from gossamer.state.epoch import Epochs, load
from gossamer.state.journals import Journals
from gossamer.state.schema import TOTALS
from gossamer.state.slots import ShardSlots
from gossamer.url.name import Namer
from gossamer.world.alarm import WALL_FACTOR, OverrunAlarm
from gossamer.world.clock import Clock, WallClock
from gossamer.world.dice import Dice
from gossamer.world.machine import ThisMachine
from gossamer.world.process import DirectoryLock, dies_with_parent
from gossamer.world.spill import Spills

if TYPE_CHECKING:
    from gossamer.assembly.exchanging import Membership
    from gossamer.cluster.exchange import Exchange


PAGE_SHARE = 0.5
"""Share of `crawl.process_s_max` after which a page's modules are interrupted: the rest is for those that remain."""
STALLED = "state/stalled.json"
"""Stack of the event loop, while it is stalled."""


@runtime_checkable
class Growing(Protocol):
    """A part of a shard that keeps a part of an epoch in memory."""

    @property
    def memory_bytes(self) -> int: ...


def assemble(
    config: Config,
    directory: Path,
    clock: Clock | None = None,
    dice: Dice | None = None,
    lock: DirectoryLock | None = None,
    *,
    shard: int = 0,
    shards: int = 1,
    opening_min: int = 0,
) -> Shard:
    """Open a crawl's directory and build its shard, or shard number `shard` of `shards`. `lock` is the lock of the
    directory, or of the shard's state, if the caller holds it. The shard's incarnation is at least `opening_min`.
    Raises ConfigError: another process holds the directory, or the configuration names something that does not exist.
    Nothing stays open then; OSError: the disk does not answer.
    """
    undo = ExitStack()
    closes = AsyncExitStack()
    closes.callback(undo.close)
    with ExitStack() as failed:
        failed.callback(undo.close)
        home = Home(directory, shard, shards)
        if lock is not None:
            undo.callback(lock.release)
        refuse_half_scaled(directory)
        refuse_half_forgotten(directory)
        if lock is None:
            lock = lock_directory(directory, state=home.state)
            undo.callback(lock.release)
        if not opening_min:  # Otherwise the caller has also looked for the state in checkpoints.
            home.require_state()
        assembled = _assemble(Setup(config, home, clock or WallClock(), dice or Dice(), undo, closes), opening_min)
        failed.pop_all()
    return assembled


def _assemble(setup: Setup, opening_min: int) -> Shard:
    storage = storage_of(setup)
    totals = load(storage.store, TOTALS, Totals)
    totals.incarnation = max(totals.incarnation + 1, opening_min)
    logs = setup.undo.enter_context(closing(Logs(setup.home.logs, setup.clock, setup.config.logs)))
    telemetry = Telemetry(setup.clock, logs, CrawlCounters(totals, setup.config.crawl))
    modules = _modules(setup)
    outputs = outputs_of(setup, storage.journals, telemetry.counters, modules)
    kept = durable_state_of(setup, storage, telemetry, outputs.archives)
    ring, membership = ring_of(setup, kept, telemetry, outputs.archives, modules)
    controls = controls_of(setup, kept, ring, telemetry, alone=membership is None)
    return Shard(kept, ring, outputs, controls, membership, setup.closing)


# ---- what is written


def outputs_of(setup: Setup, journals: Journals, counters: CrawlCounters, modules: Chosen) -> Outputs:
    """Return the writers of the crawl's output files."""
    config = setup.config
    archives, followers = archives_of(config, setup.home, journals, counters.totals.incarnation, modules, setup.clock)
    archive = config.archive
    if config.state.checkpoint_uri:  # Local files stay until a checkpoint lists them: see `Vault`.
        archive = replace(archive, store_keep_warc=True)
    uploads = uploads_of(archive, journals, setup.dice, counters.note)
    return Outputs(config, setup.home, journals, archives, followers, uploads)


# ---- the ring


def ring_of(
    setup: Setup, kept: DurableState, telemetry: Telemetry, archives: Archives, modules: Chosen
) -> tuple[CrawlRing, Membership | None]:
    """Return the crawl loop, joined to the commits, and its membership in a crawl of several shards."""
    config = setup.config
    clock = setup.clock
    storage = kept.storage
    counters = telemetry.counters
    epochs = storage.epochs
    namer = namer_of(config, epochs)
    exchange = _exchange(setup, storage, namer, counters.totals.incarnation)
    others = exchange or NoOthers()
    if storage.contacts.recovered.lacks_earlier(storage.store.epoch, counters.totals.incarnation):
        storage.contacts.note_missing_file(clock.now())  # All hosts wait: before the frontier reads the contacts.
    forgotten = forget_filter_of(config, setup.home.directory, clock)
    scope = scope_of(config, epochs, counters, (forgotten, earlier_of(config, setup.undo)))
    grows = with_scope_in_force(config).scope.scope != "any"
    memory = ScopeMemory(epochs, scope.roots, scope.exclusions, scope.chain.counts, alone=exchange is None, grows=grows)
    prioritizer = prioritizer_of(config)
    travelling = exchange.places.travelling if exchange is not None else ()
    frontier = frontier_for(setup, storage, prioritizer, namer, travelling)
    urls = UrlMemory(namer, url_seen_of(config, epochs, storage.journals), PageHistory(epochs))
    setup.undo.callback(close, urls.url_seen)
    resolver = resolver_of(config, clock, archives)
    robots = SiteRobots(
        epochs, config.robots, namer.name, setup.dice, storage.hosts,
        without=without_robots(config), is_elsewhere=scope.chain.is_elsewhere,
    )  # fmt: skip
    robots.allow_for(frontier.counts.absences)
    exclusions = Exclusions(scope.exclusions, forgotten)
    content_seen = content_seen_of(config, epochs)
    spills = Spills(setup.home.state / "spill", config.archive.digests)
    examiner = examiner_of(config, modules.inside, clock, storage.slots, spills)
    quarantine = quarantine_of(config, setup.home.directory, epochs, storage.slots)
    features = features_of(FeatureParts(
        setup, storage, telemetry, namer, frontier, scope.chain, exclusions, scope.trapping, robots, examiner,
        quarantine, archives, others,
    ))  # fmt: skip
    recrawl = features.recrawl
    protocols = protocol_modules(config, config.operator.user_agent(__version__), clock, spills)
    isolated = isolation_of(config, setup.home.directory, modules.isolated)
    stages = Stages(
        namer=namer, chain=scope.chain, roots=scope.roots, url_seen=urls.url_seen, prioritizer=prioritizer,
        frontier=frontier, resolver=resolver, excludes=exclusions.excludes, robots=robots,
        middlewares=features.middlewares, protocols=protocols, content_seen=content_seen, examiner=examiner,
        quarantine=quarantine, archive=archives, digest_algorithm=config.archive.digests, history=urls.history,
        copies=copies_of(config, epochs, content_seen, urls), trapping=scope.trapping, isolated=isolated,
        hints=features.hints, pending_scope=memory.pending_scope, exchange=others, rendering=features.rendering,
        ending=recrawl.revisiting if recrawl is not None else BatchEnding(urls, scope.chain, frontier, prioritizer),
    )  # fmt: skip
    for one in (resolver, protocols, isolated):
        setup.closing.push_async_callback(one.close)
    pipeline = _pipeline(stages, setup, telemetry, epochs)
    _join(kept, (frontier, memory, scope.trapping, urls.url_seen, *features.durable))
    _watch_growth(config, kept, (frontier, epochs, exchange, *features.durable))
    counted = (resolver, robots, pipeline.discovery, urls.url_seen, frontier.control)
    _count(kept, counters, counted, frontier, recrawl.schedule.state.due.before if recrawl is not None else None)
    loop = CrawlLoop(frontier, pipeline, kept.committer, telemetry, crawl_options_of(config), config.limits)
    loop.receiving = lambda: protocols.bodies.received_bytes
    protocols.bodies.at_limit = loop.bytes_used_up
    _note_orders(loop, kept.storage.slots)
    ring = CrawlRing(loop, pipeline, frontier, scope, urls, features)
    return ring, _membership(exchange, ring, kept, telemetry, memory.pending_scope)


def _pipeline(stages: Stages, setup: Setup, telemetry: Telemetry, epochs: Epochs) -> Pipeline:
    config = setup.config
    counters = telemetry.counters
    pipeline = Pipeline(stages, retries_of(config, setup.dice), config.crawl, setup.clock, telemetry.logs, counters)
    pipeline.judges_again = judges_again(stages.chain, epochs)
    stages.chain.on_rejected = telemetry.logs.on_rejected
    counters.parse_s = lambda: pipeline.documents.loop_share.spent_s
    return pipeline


def _exchange(setup: Setup, storage: Storage, namer: Namer, opening: int) -> Exchange | None:
    """Return a shard's exchange with the others; None if it is alone. Raises ConfigError: see `exchange_of`."""
    partitions = require_division(setup.home)
    if setup.home.shards == 1:
        return None
    from gossamer.assembly.exchanging import exchange_of  # noqa: PLC0415 - a crawl of one shard has no use for it

    return exchange_of(setup, storage, namer, opening, partitions)


def _count(
    kept: DurableState,
    counters: CrawlCounters,
    parts: Sequence[object],
    frontier: Frontier,
    count_due: Callable[[float], int] | None,
) -> None:
    """Connect the counters of a shard's parts to its status and tables."""
    counters.pending = lambda: frontier.counts.pending
    counters.dns_and_caches = partial(counters_of, (*parts, counters))
    kept.committer.measure = measuring(counters.dns_and_caches, frontier, count_due)


def _note_orders(loop: CrawlLoop, slots: ShardSlots) -> None:
    """Have stops and pauses noted for the next start. A shard that was paused stays so until its crawler, or the
    coordinator of several, orders otherwise.
    """
    loop.on_stop = slots.note_stop
    loop.on_pause = slots.note_pause
    loop.paused = slots.is_paused


def _membership(
    exchange: Exchange | None, ring: CrawlRing, kept: DurableState, telemetry: Telemetry, pending_scope: PendingScope
) -> Membership | None:
    """Return a shard's membership in a crawl of several shards; None if there is only one."""
    if exchange is None:
        return None
    from gossamer.assembly.exchanging import Membership  # noqa: PLC0415 - as in `_exchange`
    from gossamer.assembly.moving import PartitionMoves  # noqa: PLC0415

    moves = PartitionMoves(exchange, ring, ring.frontier, kept.storage.epochs, pending_scope)
    membership = Membership(exchange, ring, moves, telemetry, pending_scope)
    membership.join(kept.committer)
    return membership


def _join(kept: DurableState, components: Sequence[object]) -> None:
    """Join those components to the commits that have state to cut."""
    for component in components:
        if isinstance(component, Cuts):
            kept.committer.join(component)


def _watch_growth(config: Config, kept: DurableState, components: Sequence[object]) -> None:
    """Make commits come early when the components hold much in memory."""
    growing = [one for one in components if isinstance(one, Growing)]
    contacts = kept.storage.contacts
    bytes_max = config.crawl.epoch_bytes_max

    def crowding() -> float:
        return max(float(contacts.is_crowded), sum(one.memory_bytes for one in growing) / bytes_max)

    kept.committer.crowding = crowding


# ---- the controls


def controls_of(setup: Setup, kept: DurableState, ring: CrawlRing, telemetry: Telemetry, *, alone: bool) -> Controls:
    """Return the controls of the crawl; without `alone` the machine's other shards have the same parent process."""
    config = setup.config
    epochs = kept.storage.epochs
    frontier = ring.frontier
    watchdogs = watchdogs_of(config, setup.home.directory, ring.loop.brakes, kept.committer, telemetry, alone=alone)
    watchdogs.on_beat = kept.storage.slots.note_beat
    setup.closing.callback(watchdogs.close)
    lookups = Lookups(frontier.facts, frontier.is_leased, partial(record_of, epochs), explainers_of(config, epochs))
    explainer = Explainer(ring.urls, ring.scope.chain, lookups)
    settings = Settings(config, partial(reconfigure, ring, telemetry, watchdogs, epochs, setup.dice))
    return Controls(settings, telemetry, watchdogs, explainer)


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


def counters_of(components: Iterable[object]) -> Counters:
    """Return the counts of all components since the process began."""
    found = Counters()
    for component in components:
        if isinstance(component, Countable):
            component.count(found)
    return found


def measuring(
    counters: Callable[[], Counters], frontier: Frontier, count_due: Callable[[float], int] | None
) -> Callable[[EpochRow], EpochRow]:
    """Return a function that completes the row of a commit, in some µs; with revisits, by a pass over the calendar."""
    before = Counters()

    def measure(row: EpochRow) -> EpochRow:
        nonlocal before
        now = counters()
        came = now.since(before)
        before = now
        queue = frontier.counts
        due = count_due(row.committed_at) if count_due is not None else 0
        return replace(row, queued=queue.pending, hosts_with_work=queue.working, due=due, counters=came)

    return measure


def watchdogs_of(
    config: Config, folder: Path, brakes: Brakes, committer: Committer, telemetry: Telemetry, *, alone: bool
) -> Watchdogs:
    """Return the watchdogs; without `alone` our parent process serves other shards too."""
    paths = [folder / name for name in (".", "warc", "state", "state/spill", "search", "pages")]
    resources = Resources(folder, paths, folder / STALLED, config.memory.budget_bytes, own_process=dies_with_parent())
    return Watchdogs(brakes, committer, ThisMachine(supervised=alone), resources, config.watch, telemetry)


# ---- inside


def _modules(setup: Setup) -> Chosen:
    """Return the processing modules, each watched by a separate alarm if it has a time limit."""
    config = setup.config
    limit_s = setup.config.process.module_s_max
    # The limit must be reached before the supervisor ends the process.
    alarm = OverrunAlarm.set(limit_s, min(WALL_FACTOR * limit_s, PAGE_SHARE * config.crawl.process_s_max))
    return choose_modules(config, setup.undo.enter_context(closing(alarm)) if alarm is not None else None)
