"""Shard: all rooms of a crawl, joined, opened and closed together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from gossamer.archive.archive import Archives, Followers
from gossamer.archive.cdxj import INDEX, entries_of_tables, write_index
from gossamer.archive.uploads import Uploads, uploads_of
from gossamer.assembly.counting import counters_of, measuring
from gossamer.assembly.exchanging import Membership, exchange_of, membership_of
from gossamer.assembly.frontiers import HostsKept, frontier_for, hosts_kept
from gossamer.assembly.home import OWNED, Home
from gossamer.assembly.integrity import lost, manifest_of, opened_store, require_sound
from gossamer.assembly.parts import (
    apart_of,
    archives_of,
    chosen_modules,
    close,
    content_seen_of,
    copies_of,
    crawl_options_of,
    examiner,
    filters_of,
    held,
    judges_again,
    keep_mode,
    locked,
    namer_of,
    near_seen_of,
    permit_of,
    politeness_of,
    prioritizer_of,
    protocol_modules,
    quarantine_of,
    resolver_of,
    retries_of,
    scoped,
    stored,
    traps_of,
    url_seen_of,
    watchdogs_of,
)
from gossamer.assembly.revisits import (
    enrolment_of,
    patient,
    revisiting_of,
    schedule_of,
)
from gossamer.assembly.scaling import refuse_half_scaled
from gossamer.assembly.schemes import without_robots
from gossamer.assembly.told import hints_of, hubs_of, scope_options
from gossamer.config import Config
from gossamer.config.lists import scope_lists
from gossamer.crawl.apart import WALL_FACTOR, Apart
from gossamer.crawl.commit import Committer, Cuts
from gossamer.crawl.enrolment import Enrolment
from gossamer.crawl.history import History
from gossamer.crawl.logs import Logs
from gossamer.crawl.memory import ScopeMemory
from gossamer.crawl.pipeline import Pipeline
from gossamer.crawl.quarantine import Quarantine
from gossamer.crawl.rooms import Rooms
from gossamer.crawl.shard import Shard
from gossamer.crawl.story import Story
from gossamer.crawl.tally import Tally, Totals
from gossamer.crawl.trapping import Trapping
from gossamer.crawl.watchdogs import Watchdogs
from gossamer.fetch.registry import Protocols
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.model.counters import Counters
from gossamer.model.product import __version__
from gossamer.ports import (
    Filter,
    Resolver,
    UrlSeen,
)
from gossamer.revisit.schedule import Schedule
from gossamer.revisit.state import page_facts
from gossamer.revisit.websub import Subscriptions
from gossamer.robots.robots import SiteRobots
from gossamer.scope.chain import Chain, scope_chain
from gossamer.scope.lists import ExcludedHost, Lists
from gossamer.scope.options import ScopeOptions
from gossamer.scope.roots import Roots
from gossamer.scope.traps import Trapped, Traps
from gossamer.seen.shingles import sketch
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.hosts_store import HostsStore
from gossamer.state.journals import Journals
from gossamer.state.schema import TALLY
from gossamer.state.slots import Slots
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.world.alarm import Alarm
from gossamer.world.clock import Clock, WallClock
from gossamer.world.dice import Dice
from gossamer.world.huge_pages import HugePages
from gossamer.world.machine import ThisMachine
from gossamer.world.process import DirectoryLock, boot_id
from gossamer.world.spill import Spills

PAGE_SHARE = 0.8
"""Of `crawl.process_s_max`: a module that waits for so long is interrupted."""


@dataclass(slots=True)
class Assembled:
    """A shard with all that its owner must reach, and must close."""

    config: Config
    directory: Path
    home: Home
    clock: Clock
    lock: DirectoryLock
    slots: Slots
    store: Store
    epochs: Epochs
    contacts: Contacts
    journals: Journals
    archives: Archives
    followers: Followers
    namer: Namer
    roots: Roots
    exclusions: ExcludedHost
    chain: Chain
    frontier: Frontier | WrappedFrontier
    pipeline: Pipeline
    committer: Committer
    shard: Shard
    tally: Tally
    story: Story
    history: History
    logs: Logs
    protocols: Protocols
    resolver: Resolver
    robots: SiteRobots
    quarantine: Quarantine
    url_seen: UrlSeen
    apart: Apart
    alarm: Alarm | None
    uploads: Uploads | None
    trapping: Trapping
    traps: Traps
    revisits: Schedule | None
    enrolment: Enrolment | None
    hubs: Subscriptions | None
    dice: Dice
    chain_of: Callable[[ScopeOptions], Chain]
    """Makes the filters of other options."""
    watchdogs: Watchdogs
    hosts_kept: HostsKept | None
    membership: Membership | None
    """Its part in a crawl of several shards; None where it is alone."""

    def counters(self) -> Counters:
        """Return what DNS lookups and caches did in this process."""
        return counters_of((self.resolver, self.robots, self.url_seen, self.frontier.control))

    async def close(self) -> None:
        """Let go of everything, also where a component raises. What was committed is safe whether this is called or
        not.
        """
        async with AsyncExitStack() as last_first:
            last_first.callback(self.lock.release)
            last_first.callback(self.slots.close)
            if self.hosts_kept is not None:
                last_first.callback(self.hosts_kept.close, self.contacts)
            else:
                last_first.callback(self.contacts.close)
            last_first.callback(self.store.close)
            last_first.callback(self.journals.close_files)
            last_first.callback(self.logs.close)
            last_first.callback(close, self.url_seen)
            last_first.callback(self.committer.close)
            last_first.push_async_callback(self.resolver.close)
            last_first.push_async_callback(self.protocols.close)
            last_first.push_async_callback(self.apart.close)
            if self.alarm is not None:
                last_first.callback(self.alarm.close)
            last_first.callback(self.watchdogs.close)

    async def checkpoint(self) -> Path:
        """Make a consistent copy of the last commit by hard links, and return its directory.

        Files that still grow are shared with the crawl: copy the checkpoint (`cp -r`) before resuming it.
        """
        await self.committer.commit()
        target = self.directory / "checkpoints" / f"{self.store.epoch:08d}"
        if self.home.shards > 1:
            target = target.with_name(f"shard-{self.home.shard}-{target.name}")  # Each has epochs of its own.
        copy = Home(target, self.home.shard, self.home.shards)
        copy.state.mkdir(parents=True)
        self.store.checkpoint(copy.store)
        journals = copy.journals()
        for name in [*self.journals.files(), "crawl.toml"]:
            journals.path(name).parent.mkdir(parents=True, exist_ok=True)
            journals.path(name).hardlink_to(self.journals.path(name))
        return target

    def require_tables(self) -> None:
        """Raise DamagedError where a finished file of `pages` is missing or has another length than was written."""
        require_sound(self.directory, lost(self.config, self.home, self.journals.finals("pages/")))

    def write_index(self) -> int:
        """Make `index.cdxj` anew from the finished tables. Blocks; for a thread.

        Raises:
            DamagedError: a table lacks a file, or one is damaged; the index is left as it is.
        """
        self.require_tables()
        tables = sorted((self.directory / "pages").glob("*.parquet"))
        options = self.config.archive
        return write_index(
            self.directory / INDEX,
            entries_of_tables(tables),
            options.index_sort_bytes_max,
        )


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
) -> Assembled:
    """Open a crawl's directory and build its shard, or one of its `shards`; `lock` is that of the directory, or of
    the shard's state, where it was taken already. Its incarnation is `opening_min` at least.

    Raises:
        ConfigError: another process holds the directory, or the configuration names what does not exist. Nothing is
            held then.
        OSError: the disk does not answer.
    """
    with ExitStack() as undo:
        refuse_half_scaled(directory)
        home = Home(directory, shard, shards)
        lock = lock if lock is not None else locked(directory, state=home.state)
        undo.callback(lock.release)
        if not opening_min:  # Else it was looked for in checkpoints, too.
            home.require_state()
        clock = clock or WallClock()
        kept = _kept(config, home, clock, opening_min, undo)
        assembled = _assembled(config, home, kept, clock, dice or Dice(), lock, undo)
        undo.pop_all()
        return assembled


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a crawl keeps on disk, opened."""

    slots: Slots
    store: Store
    contacts: Contacts
    epochs: Epochs
    journals: Journals
    tally: Tally
    logs: Logs
    hosts: HostsKept | None

    @property
    def host_store(self) -> HostsStore | None:
        """What is remembered of hosts from crawl to crawl."""
        return self.hosts.store if self.hosts is not None else None


def _kept(config: Config, home: Home, clock: Clock, opening_min: int, undo: ExitStack) -> _Kept:
    slots = held(Slots(home.state), undo)
    store = held(opened_store(config, home), undo)
    manifest = manifest_of(store)
    require_sound(home.directory, lost(config, home, manifest))
    hosts = hosts_kept(config)
    if hosts is not None:
        held(hosts, undo)
    if hosts is not None:
        contacts = hosts.contacts(home.state, clock.now())
    else:
        contacts = Contacts(home.state, boot_id(), clock.now(), ThisMachine().wall_offset_s())
    held(contacts, undo)
    journals = home.journals()
    undo.callback(journals.close_files)
    journals.recover(manifest, OWNED)
    totals = stored(store, TALLY, Totals, Totals())
    totals.incarnation = max(totals.incarnation + 1, opening_min)
    logs = held(Logs(home.logs, clock, config.logs), undo)
    epochs = Epochs(store)
    keep_mode(config, epochs)
    return _Kept(slots, store, contacts, epochs, journals, Tally(totals, config.crawl), logs, hosts)


def _assembled(
    config: Config, home: Home, kept: _Kept, clock: Clock, dice: Dice, lock: DirectoryLock, undo: ExitStack
) -> Assembled:
    directory = home.directory
    slots, store, epochs, journals, tally = kept.slots, kept.store, kept.epochs, kept.journals, kept.tally
    namer, asked = namer_of(config, epochs), scoped(config)
    exchange = exchange_of(config, home, store, epochs, kept.contacts, tally.totals.incarnation, namer, clock)
    roots, exclusions, traps = Roots(asked.scope.scope), ExcludedHost(), traps_of(config, epochs)
    chain_of = _chains(roots, exclusions, [*filters_of(config), Trapped(traps)], scope_lists(asked))
    chain = chain_of(scope_options(config))
    memory = ScopeMemory(epochs, roots, exclusions, chain.counts, alone=exchange is None)
    trapping = Trapping(traps, epochs, sketch, tally)
    rules, prioritizer = patient(politeness_of(config), config), prioritizer_of(config)
    states = (store, epochs, kept.contacts, kept.host_store)
    frontier = frontier_for(config, states, rules, prioritizer, namer, dice, clock.now())
    revisiting = revisiting_of(config, schedule := schedule_of(config, epochs, frontier, dice), frontier)
    url_seen, history = url_seen_of(config, epochs, journals), History(epochs)
    content_seen, near_seen = content_seen_of(config, epochs), near_seen_of(config, epochs)
    undo.callback(close, url_seen)
    alarm = _alarm(config, undo)
    modules, spills = chosen_modules(config, alarm), Spills(home.state / "spill", config.archive.digests)
    archives, followers = archives_of(config, journals, directory, home.shard, tally.totals.incarnation, modules, clock)
    protocols = protocol_modules(config, config.operator.user_agent(__version__), clock, spills)
    resolver = resolver_of(config, clock, archives)
    quarantine, apart = quarantine_of(config, directory, epochs, slots), apart_of(config, directory, modules.apart)
    robots = SiteRobots(epochs, config.robots, namer.name, dice, kept.host_store, without=without_robots(config))
    rooms = Rooms(
        namer=namer, chain=chain, roots=roots, url_seen=url_seen, prioritizer=prioritizer,
        frontier=frontier, resolver=resolver,
        permit=(permit := permit_of(config, exclusions, robots, trapping)),
        protocols=protocols,
        content_seen=content_seen,
        examiner=examiner(config, modules.inside, clock, slots, spills),
        quarantine=quarantine,
        archive=archives,
        digest_algorithm=config.archive.digests,
        history=history,
        copies=copies_of(config, content_seen, near_seen, history, url_seen, namer),
        trapping=trapping,
        apart=apart,
        revisiting=revisiting,
        hints=hints_of(config, epochs, namer, schedule),
        # A hub's host is another shard's, whose gates it must pass.
        hubs=(hubs := hubs_of(config, epochs, namer, permit, clock.now()) if exchange is None else None),
        beyond=memory.beyond if asked.scope.scope != "any" else None,
        exchange=exchange,
    )  # fmt: skip
    pipeline = Pipeline(rooms, retries_of(config, dice), config.crawl, clock, kept.logs, tally)
    pipeline.judges_again = judges_again(chain, epochs)
    cuts, growing = (frontier, memory, trapping, url_seen, schedule), (frontier, epochs, schedule, exchange)
    committer, crowding = _committing(config, kept, archives, cuts, growing, clock)
    shard = Shard(frontier, pipeline, committer, tally, crowding, crawl_options_of(config), config.limits, clock)
    tally.pending = lambda: frontier.counts.pending
    membership = membership_of(exchange, shard, pipeline, frontier, rooms.beyond, tally, kept.logs, clock, committer)
    watchdogs = watchdogs_of(
        config, directory, clock, shard, committer, tally, kept.logs, frontier.shrink, alone=membership is None
    )
    story = Story(namer, chain, url_seen, history, frontier.facts, frontier.lent, partial(page_facts, epochs))
    committer.measure = measuring((resolver, robots, url_seen, frontier.control), frontier, schedule)
    return Assembled(
        config, directory, home, clock, lock, slots, store, epochs, kept.contacts, journals, archives, followers,
        namer, roots, exclusions, chain, frontier, pipeline, committer, shard, tally, story, history, kept.logs,
        protocols, resolver, robots, quarantine, url_seen, apart, alarm, uploads_of(config.archive, journals, dice,
        tally.note), trapping, traps, schedule, enrolment_of(config, (store, epochs), namer, revisiting, clock, dice),
        hubs, dice, chain_of, watchdogs, kept.hosts, membership,
    )  # fmt: skip


def _alarm(config: Config, undo: ExitStack) -> Alarm | None:
    limit_s = config.process.module_s_max
    # Rather than have the supervisor end the process for it.
    alarm = Alarm.set(limit_s, min(WALL_FACTOR * limit_s, PAGE_SHARE * config.crawl.process_s_max))
    return held(alarm, undo) if alarm is not None else None


def _committing(
    config: Config,
    kept: _Kept,
    archives: Archives,
    rooms: Sequence[object],
    growing: Sequence[_Growing | None],
    clock: Clock,
) -> tuple[Committer, Callable[[], float]]:
    """Return who closes epochs, with those of the rooms that have something to give, and how full the open one is."""
    cuts, those = [room for room in rooms if isinstance(room, Cuts)], [one for one in growing if one is not None]
    memory = HugePages() if config.memory.huge_pages else None
    committer = Committer(
        kept.epochs, kept.journals, kept.contacts, archives, cuts, kept.tally, kept.logs, clock, kept.host_store, memory
    )
    committer.on_epoch = kept.slots.note_epoch
    committer.on_durable = archives.add_epoch
    return committer, partial(_crowding, kept.contacts, those, config.crawl.epoch_bytes_max)


def _chains(
    roots: Roots, exclusions: ExcludedHost, more: Sequence[Filter], lists: Lists
) -> Callable[[ScopeOptions], Chain]:
    """Return what makes chains that share what the crawl has learned."""
    exclusions.set_listed(lists.excluded_hosts)

    def chain_of(options: ScopeOptions) -> Chain:
        read = msgspec.structs.replace(lists, excluded_hosts=exclusions.listed)  # It may have been read again.
        return scope_chain(options, roots, exclusions, more, read)

    return chain_of


def _crowding(contacts: Contacts, growing: Sequence[_Growing], bytes_max: int) -> float:
    """Return how full an epoch is: from 1 on it must close."""
    return max(float(contacts.crowded), sum(one.memory_bytes for one in growing) / bytes_max)


class _Growing(Protocol):
    @property
    def memory_bytes(self) -> int: ...
