"""Assembly: a configuration becomes a shard. The one place that names concrete rooms."""

from __future__ import annotations

import difflib
import json
import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, TypeVar, cast, runtime_checkable

import msgspec

from gossamer.archive.archive import Archives, Closing
from gossamer.archive.cdxj import entries_of_tables, write_index
from gossamer.archive.follower import Follower
from gossamer.archive.tables import Tables
from gossamer.archive.warc import About, WarcArchive
from gossamer.config import Config, effective_toml
from gossamer.crawl.apart import Apart
from gossamer.crawl.commit import MANIFEST, Committer, Cuts
from gossamer.crawl.examine import Examiner
from gossamer.crawl.history import History
from gossamer.crawl.logs import Logs
from gossamer.crawl.memory import ScopeMemory
from gossamer.crawl.permit import Permit
from gossamer.crawl.pipeline import Pipeline
from gossamer.crawl.quarantine import Quarantine
from gossamer.crawl.retries import Retries
from gossamer.crawl.rooms import Rooms
from gossamer.crawl.shard import Shard
from gossamer.crawl.story import Story
from gossamer.crawl.tally import KEY as TALLY
from gossamer.crawl.tally import Tally, Totals
from gossamer.fetch.bodies import Bodies
from gossamer.fetch.decoding import BoundedDecoder
from gossamer.fetch.file import FileModule
from gossamer.fetch.ftp import FtpModule
from gossamer.fetch.gopher import GopherModule
from gossamer.fetch.headers import retry_after_s
from gossamer.fetch.http import HttpModule
from gossamer.fetch.registry import Protocols
from gossamer.frontier.facts import facts_of
from gossamer.frontier.forms import Form, frontier_of, prioritizer_of
from gossamer.frontier.host import Lease
from gossamer.frontier.politeness import politeness
from gossamer.model.errors import ConfigError
from gossamer.model.product import __version__
from gossamer.model.visits import Page, Visited
from gossamer.plugins import build, component
from gossamer.ports import ContentSeen, Filter, Prioritizer, ProcessingModule, ProtocolModule, Resolver, UrlSeen
from gossamer.process.chain import Modules, Watch
from gossamer.process.choice import Chosen, chosen
from gossamer.process.links import redirect_target
from gossamer.process.registry import MODULES, NEEDED
from gossamer.process.text import TitleAndText
from gossamer.resolve.resolver import DnsResolver
from gossamer.robots.robots import SiteRobots
from gossamer.scope.chain import Chain, scope_chain
from gossamer.scope.exclusions import ExcludedHost
from gossamer.scope.patterns import PatternSet
from gossamer.scope.roots import Roots
from gossamer.seen.content import ExactContentSeen
from gossamer.seen.groups import FOLDER as SEEN_FOLDER
from gossamer.seen.urls import POPULAR_BYTES, RocksUrlSeen
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Entry, Journals
from gossamer.state.slots import Slots
from gossamer.state.store import META_PARTITION, Store
from gossamer.url.name import Namer
from gossamer.world.alarm import Alarm
from gossamer.world.clock import Clock, WallClock
from gossamer.world.dice import Dice
from gossamer.world.process import DirectoryLock, boot_id
from gossamer.world.spill import Spills

T = TypeVar("T")

LOCK_S_MAX = 5.0
"""How long a directory is waited for: a child whose supervisor was killed lets go within that."""
JOURNAL_FOLDERS = ("warc", "state/tables")
SEEN_FORM = META_PARTITION + b"seen_form"
URL_RULES = META_PARTITION + b"url_rules"
SEEN_FORMS = {
    "memory": "gossamer.seen.memory:MemoryUrlSeen",
    "diskmerge": "gossamer.seen.diskmerge:DiskMergeUrlSeen",
    "bloom": "gossamer.seen.bloom:BloomUrlSeen",
}
"""By name, for what they import is not installed, nor paid for at every start, unless they are chosen."""


@dataclass(slots=True)
class Assembled:
    """A shard with all that its owner must reach, and must close."""

    config: Config
    directory: Path
    clock: Clock
    lock: DirectoryLock
    slots: Slots
    store: Store
    epochs: Epochs
    contacts: Contacts
    journals: Journals
    archives: Archives
    follower: Follower
    namer: Namer
    roots: Roots
    exclusions: ExcludedHost
    chain: Chain
    frontier: Form
    pipeline: Pipeline[Lease]
    committer: Committer
    shard: Shard[Lease]
    tally: Tally
    story: Story
    logs: Logs
    protocols: Protocols
    resolver: Resolver
    quarantine: Quarantine
    url_seen: UrlSeen
    apart: Apart
    alarm: Alarm | None

    async def close(self) -> None:
        """Let go of everything. What was committed is safe whether this is called or not."""
        _close(self.alarm)
        await self.apart.close()
        await self.protocols.close()
        await self.resolver.close()
        self.committer.close()
        _close(self.url_seen)
        self.logs.close()
        self.journals.close_files()
        self.store.close()
        self.contacts.close()
        self.slots.close()
        self.lock.release()

    async def checkpoint(self) -> Path:
        """Make a consistent copy of the last commit by hard links, and return its directory.

        Files that still grow are shared with the crawl: copy the checkpoint (`cp -r`) before resuming it.
        """
        await self.committer.commit()
        target = self.directory / "checkpoints" / f"{self.store.epoch:08d}"
        (target / "state").mkdir(parents=True)
        self.store.checkpoint(target / "state/store")
        for name in [*self.journals.files(), "crawl.toml"]:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).hardlink_to(self.directory / name)
        return target

    def write_index(self) -> int:
        """Make `index.cdxj` anew from the finished tables. Blocks; for a thread."""
        tables = sorted((self.directory / "pages").glob("*.parquet"))
        options = self.config.archive
        return write_index(
            self.directory / "index.cdxj",
            entries_of_tables(tables),
            options.index_sort_bytes_max,
        )


def assemble(
    config: Config,
    directory: Path,
    clock: Clock | None = None,
    dice: Dice | None = None,
    lock: DirectoryLock | None = None,
) -> Assembled:
    """Open a crawl's directory and build its shard; `lock` is the directory's, where it was taken already.

    Raises:
        ConfigError: another process holds the directory, or the configuration names what does not exist. Nothing is
            held then.
        OSError: the disk does not answer.
    """
    with ExitStack() as undo:
        lock = lock if lock is not None else locked(directory)
        undo.callback(lock.release)
        shard = _assembled(config, directory, clock or WallClock(), dice or Dice(), lock, undo)
        undo.pop_all()
        return shard


def _assembled(
    config: Config, directory: Path, clock: Clock, dice: Dice, lock: DirectoryLock, undo: ExitStack
) -> Assembled:
    state, now = directory / "state", clock.now()
    slots = _held(Slots(state), undo)
    store = _held(Store(state / "store", config.state.cache_bytes, config.state.write_buffer_bytes), undo)
    contacts = _held(Contacts(state, boot_id(), now), undo)
    epochs, journals = Epochs(store), Journals(directory)
    undo.callback(journals.close_files)
    journals.recover(_stored(store, MANIFEST, list[Entry], []), JOURNAL_FOLDERS)
    totals = _stored(store, TALLY, Totals, Totals())
    totals.incarnation += 1
    tally, logs = Tally(totals, config.crawl), _held(Logs(directory / "logs", clock), undo)

    namer = _namer(config, epochs)
    roots, exclusions = Roots(config.scope.scope), ExcludedHost()
    chain = scope_chain(config.scope, roots, exclusions, _filters(config))
    memory = ScopeMemory(epochs, roots, exclusions, chain.counts)
    rules = politeness(config.politeness)
    prioritizer = _prioritizer(config)
    frontier = frontier_of(store, epochs, contacts, rules, config, prioritizer, namer.name, dice, now)
    url_seen, history = _url_seen(config, epochs, journals), History(epochs)
    undo.callback(_close, url_seen)
    agent = config.operator.user_agent(__version__)
    alarm = Alarm.set(config.process.module_s_max)
    undo.callback(_close, alarm)
    modules, spills = chosen_modules(config, alarm), Spills(state / "spill", config.archive.digests)
    archives, follower = _archives(config, journals, directory, agent, totals.incarnation, modules)
    protocols, resolver = protocol_modules(config, agent, clock, spills), _resolver(config, clock, archives)
    quarantine, apart = _quarantine(config, directory, epochs, slots), _apart(config, directory, modules.apart)
    rooms = Rooms(
        namer=namer,
        chain=chain,
        roots=roots,
        url_seen=url_seen,
        prioritizer=prioritizer,
        sink=frontier,
        source=frontier,
        hosts=frontier.control,
        resolver=resolver,
        permit=Permit(exclusions, SiteRobots(epochs, config.robots, namer.name, dice), obey=config.robots.obey),
        protocols=protocols,
        content_seen=_content_seen(config, epochs),
        examiner=examiner(config, modules.inside, clock, slots, spills),
        quarantine=quarantine,
        redirect_target=lambda reply: redirect_target(reply.url, reply.headers),
        retry_after_s=retry_after_s,
        archive=archives,
        digest_algorithm=config.archive.digests,
        history=history,
        apart=apart,
        watcher=frontier if frontier.watches_links else None,
        beyond=memory.beyond if config.scope.scope != "any" else None,
    )
    pipeline = Pipeline(rooms, _retries(config, dice), config.crawl, clock, logs, tally)
    cuts: list[Cuts] = [frontier, memory, *([url_seen] if isinstance(url_seen, Cuts) else [])]
    committer = Committer(epochs, journals, contacts, archives, cuts, tally, logs, clock)
    committer.on_epoch = slots.note_epoch

    def crowding() -> float:
        waiting = (frontier.memory_bytes + epochs.memory_bytes) / config.crawl.epoch_bytes_max
        return max(float(contacts.crowded), waiting)

    shard = Shard(frontier, pipeline, committer, tally, crowding, config.crawl, config.limits, clock)
    story = Story(namer, chain, url_seen, history, frontier.facts, frontier.lent)
    return Assembled(
        config, directory, clock, lock, slots, store, epochs, contacts, journals, archives, follower, namer, roots,
        exclusions, chain, frontier, pipeline, committer, shard, tally, story, logs, protocols, resolver, quarantine,
        url_seen, apart, alarm,
    )  # fmt: skip


@dataclass(slots=True)
class Opened:
    """The state of a crawl that does not run, to be read and closed."""

    lock: DirectoryLock
    store: Store
    totals: Totals
    rejected: dict[str, int]
    story: Story
    url_seen: UrlSeen

    def close(self) -> None:
        _close(self.url_seen)
        self.store.close()
        self.lock.release()


def open_stopped(config: Config, directory: Path) -> Opened:
    """Open a crawl's state for questions. Contacts are left alone: the next run must find them as they are.

    Raises:
        ConfigError: another process holds the directory, or the configuration does not fit the crawl.
    """
    with ExitStack() as undo:
        lock = locked(directory)
        undo.callback(lock.release)
        store = _held(Store(directory / "state/store", config.state.cache_bytes, config.state.write_buffer_bytes), undo)
        epochs = Epochs(store)
        namer = _namer(config, epochs)
        roots, exclusions = Roots(config.scope.scope), ExcludedHost()
        chain = scope_chain(config.scope, roots, exclusions, _filters(config))
        ScopeMemory(epochs, roots, exclusions, chain.counts)
        journals = Journals(directory)
        manifest = _stored(store, MANIFEST, list[Entry], [])
        journals.recover(
            entry for entry in manifest if entry.name.startswith(SEEN_FOLDER)
        )  # The others stay as they are.
        url_seen = _url_seen(config, epochs, journals)
        undo.callback(_close, url_seen)
        facts = partial(facts_of, epochs, budget=config.budget)
        story = Story(namer, chain, url_seen, History(epochs), facts, lambda _: False)
        totals = _stored(store, TALLY, Totals, Totals())
        undo.pop_all()
        return Opened(lock, store, totals, chain.counts, story, url_seen)


def locked(directory: Path, wait_s: float = LOCK_S_MAX) -> DirectoryLock:
    """Take a crawl's directory for whoever asks, alone. Blocks for `wait_s` at most.

    Raises:
        ConfigError: it is in use.
    """
    lock = DirectoryLock(directory / "state/lock")
    if not lock.acquire(wait_s):
        lock.release()
        raise ConfigError(
            f"{directory} is in use by another crawl; `gossamer status {directory}` asks it, "
            f"`gossamer stop {directory}` ends it"
        )
    return lock


def protocol_modules(config: Config, agent: str, clock: Clock, spills: Spills | None = None) -> Protocols:
    """Return the module of each scheme: ours, and those that the configuration names."""
    bodies = Bodies(config.fetch, spills)
    http, ftp = HttpModule(config.fetch, agent, clock, bodies), FtpModule(config.fetch, agent, clock, bodies)
    modules: dict[str, ProtocolModule] = {"http": http, "https": http, "ftp": ftp, "ftps": ftp}
    modules["gopher"] = GopherModule(config.fetch, agent, clock, bodies)
    modules["file"] = FileModule(config.fetch, agent, clock, bodies)
    for scheme, name in config.components.protocols.items():
        made = build(name, f"components.protocols.{scheme}", options=config.fetch, agent=agent, clock=clock)
        modules[scheme] = cast("ProtocolModule", made)
    return Protocols(modules)


def examiner(
    config: Config, modules: Modules, clock: Clock, slots: Slots | None, spills: Spills | None = None
) -> Examiner:
    """Return the stage that decodes and processes; without slots for a process of its own."""
    return Examiner(BoundedDecoder(config.fetch, spills), modules.process, clock, slots)


def chosen_modules(config: Config, watch: Watch | None = None) -> Chosen:
    """Return the processing modules that the configuration names, made.

    Raises:
        ConfigError: there is no such module, or what it needs is not installed.
    """

    def made(name: str, key: str) -> ProcessingModule:
        if name in MODULES:
            needed = NEEDED.get(name)
            if needed is not None and find_spec(needed) is None:
                raise ConfigError(f"{key}: {name} needs {needed}; pip install 'gossamer[modules]'")
            return cast("ProcessingModule", build(MODULES[name], key, options=config.process))
        near = difflib.get_close_matches(name, MODULES, n=1)
        if near and ":" not in name:
            raise ConfigError(f"{key}: no module {name!r}; did you mean {near[0]}?")
        found = component(name, key)
        is_made = hasattr(found, "process") and not isinstance(found, type)
        module = found if is_made else build(name, key)
        if not hasattr(module, "process"):
            raise ConfigError(f"{key}: {name} has no process(page, findings); see docs/processing.md")
        return cast("ProcessingModule", module)

    return chosen(config.process, made, embeds=config.scope.embeds, watch=watch)


def text_of(visited: Visited, config: Config) -> str:
    """Return a page's visible text."""
    reply, content = visited.reply, visited.content
    if reply is None or content is None:
        return ""
    options = config.process.model_copy(update={"text": True})
    page = Page(reply.url, reply.media_type, reply.charset, reply.headers, content.body, content.file)
    return Modules([TitleAndText(options)], options).process(page).findings.text


def _quarantine(config: Config, directory: Path, epochs: Epochs, slots: Slots) -> Quarantine:
    limit_s = config.crawl.process_s_max
    return Quarantine(epochs, slots.take_suspects(), _isolated(directory), limit_s, _environment())


def _apart(config: Config, directory: Path, modules: Modules) -> Apart:
    options = config.process
    command = (*_isolated(directory), "modules")
    return Apart(command, modules.chosen, options.module_s_max, options.isolated_processes, _environment())


def _isolated(directory: Path) -> tuple[str, ...]:
    return sys.executable, "-m", "gossamer.isolated", str(directory / "crawl.toml")


def _environment() -> dict[str, str]:
    # Whom we start must find the modules that we found, from wherever we were started.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}


def _namer(config: Config, epochs: Epochs) -> Namer:
    """Return what names addresses, by the rules that this crawl began with: what it knows stands under their keys."""
    rules = json.dumps(config.url.model_dump(), sort_keys=False).encode()
    begun = epochs.get("meta", URL_RULES)
    if begun is None:
        epochs.put("meta", URL_RULES, rules)
    elif begun != rules:
        raise ConfigError("this crawl began with other rules in the section [url] and keeps them; set them back")
    return Namer(config.url.canonicalizer())


def _filters(config: Config) -> list[Filter]:
    return [cast("Filter", build(name, "components.filters")) for name in config.components.filters]


def _retries(config: Config, dice: Dice) -> Retries:
    options = config.frontier
    return Retries(options.attempts_max, options.retry_s_first, options.retry_s_max, dice)


def _prioritizer(config: Config) -> Prioritizer:
    name, own = config.components.prioritizer, prioritizer_of(config.frontier, PatternSet)
    return cast("Prioritizer", build(name, "components.prioritizer")) if name else own


def _url_seen(config: Config, epochs: Epochs, journals: Journals) -> UrlSeen:
    name, form = config.components.url_seen, config.seen.form
    if name:
        return cast("UrlSeen", build(name, "components.url_seen", epochs=epochs))
    begun = epochs.get("meta", SEEN_FORM)
    if begun is None:
        begun = b"rocksdb" if epochs.number > 1 else form.encode()  # Crawls without the word had no choice.
        epochs.put("meta", SEEN_FORM, begun)
    if begun != form.encode():
        raise ConfigError(f"seen.form: this crawl began with {begun.decode()!r} and keeps it; set it back")
    if form == "rocksdb":
        return RocksUrlSeen(epochs, config.seen.popular_bytes_max // POPULAR_BYTES)
    given = {"epochs": epochs} if form == "memory" else {"epochs": epochs, "journals": journals, "options": config.seen}
    return cast("UrlSeen", build(SEEN_FORMS[form], "seen.form", **given))


def _content_seen(config: Config, epochs: Epochs) -> ContentSeen:
    name = config.components.content_seen
    if name:
        return cast("ContentSeen", build(name, "components.content_seen", epochs=epochs))
    return ExactContentSeen(epochs, config.seen.content_scope)


def _resolver(config: Config, clock: Clock, archives: Archives) -> Resolver:
    name = config.components.resolver
    if name:
        return cast("Resolver", build(name, "components.resolver", options=config.resolve, clock=clock))
    told = partial(archives.add_prerequisite, via="", link_type="dns") if config.archive.warc_dns else None
    return DnsResolver(config.resolve, clock, told)


def _archives(
    config: Config, journals: Journals, directory: Path, agent: str, incarnation: int, modules: Chosen
) -> tuple[Archives, Follower]:
    about = About(
        software=f"gossamer/{__version__}",
        user_agent=agent,
        robots="RFC 9309" if config.robots.obey else "ignore",
        operator=config.operator.contact,
        is_part_of=directory.resolve().name,
        configuration=effective_toml(config),
    )
    warc = WarcArchive(config.archive, journals, about, 0, incarnation)
    follower = Follower(journals)
    follower.sweep()
    more = [
        cast("Closing", build(name, "components.archives", journals=journals, directory=directory))
        for name in config.components.archives
    ]
    tables = Tables(config.archive, journals, 0, incarnation, modules.columns, modules.tables)
    return Archives([warc, tables, *more]), follower


@runtime_checkable
class _Closable(Protocol):
    def close(self) -> None: ...


def _close(thing: object) -> None:
    if isinstance(thing, _Closable):
        thing.close()


C = TypeVar("C", bound=_Closable)


def _held(thing: C, undo: ExitStack) -> C:
    undo.callback(thing.close)
    return thing


def _stored(store: Store, key: bytes, kind: type[T], default: T) -> T:
    value = store.get("meta", key)
    return default if value is None else msgspec.msgpack.decode(value, type=kind)
