"""The ring with real rooms, store and files, but for the web, its names and the time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from gossamer.engine.commit import Committer, Storage
from gossamer.engine.copies import CopyMarks, NearCopies
from gossamer.engine.counters import CrawlCounters, Telemetry, Totals
from gossamer.engine.examine import Examiner
from gossamer.engine.explain import Explainer, Lookups
from gossamer.engine.history import PageHistory, PageRecord, UrlMemory
from gossamer.engine.logs import Logs
from gossamer.engine.loop import CrawlLoop
from gossamer.engine.middleware import Middlewares
from gossamer.engine.optional import BrowserRendering, Hints, NoOthers
from gossamer.engine.options import CrawlOptions, LimitsOptions
from gossamer.engine.pending_scope import ScopeMemory
from gossamer.engine.pipeline import Pipeline
from gossamer.engine.quarantine import Quarantine
from gossamer.engine.ring import Retries
from gossamer.engine.stages import BatchEnding, Stages
from gossamer.engine.traps import Trapping, watch_key
from gossamer.features.isolation import IsolatedModules
from gossamer.features.permit import Exclusions, RobotsTxt, Usage
from gossamer.model.links import SEED_ARGUMENT, Link
from gossamer.model.pages import Page, PageRow
from gossamer.options import convert
from gossamer.ports import VisitMiddleware
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.hosts import HostRecords
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions, politeness
from gossamer.stages.frontier.priority import BreadthFirst, FrontierRules
from gossamer.stages.process.chain import Modules, Processed, Slices
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.robots.documents import SiteDocuments
from gossamer.stages.robots.options import RobotsOptions
from gossamer.stages.robots.robots import SiteRobots, record_of
from gossamer.stages.scope.chain import scope_chain
from gossamer.stages.scope.lists import NO_LISTS, ExcludedHost, Lists
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.roots import Roots
from gossamer.stages.scope.traps import Trapped, Traps
from gossamer.stages.seen.content import ExactContentSeen, NearContentSeen
from gossamer.stages.seen.shingles import sketch
from gossamer.stages.seen.urls import RocksUrlSeen
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals
from gossamer.state.slots import ShardSlots, Suspect
from gossamer.state.store import Store
from gossamer.testing import FakeClock, FakeWeb, FixedResolver, MemoryArchive
from gossamer.testing.fakes import Answers
from gossamer.url.name import Namer
from gossamer.url.options import UrlOptions
from gossamer.url.url import Url
from gossamer.world.clock import Clock
from gossamer.world.dice import Dice
from tests.stages.process.pages import standard_modules

T = TypeVar("T")
STEPS_MAX = 5_000


def url_of(text: str) -> Url:
    url = Namer().name(text)
    assert url is not None, text
    return url


def at_once(look: Callable[[Page], Processed]) -> Callable[[Page], Slices]:
    def sliced(page: Page) -> Slices:
        yield from ()
        return look(page)

    return sliced


class Ring:
    """A shard in `directory`. Times in its options are those of a clock that moves when nothing else does."""

    def __init__(
        self,
        directory: Path,
        pages: Mapping[str, Answers] | None = None,
        *,
        obey: bool = False,
        scope: Mapping[str, object] | None = None,
        frontier: Mapping[str, object] | None = None,
        crawl: Mapping[str, object] | None = None,
        limits: Mapping[str, object] | None = None,
        robots: Mapping[str, object] | None = None,
        polite: Mapping[str, object] | None = None,
        url: Mapping[str, object] | None = None,
        lists: Lists = NO_LISTS,
        accused: Sequence[Suspect] = (),
        command: Sequence[str] = (sys.executable, "-c", "raise SystemExit(1)"),
        clock: Clock | None = None,
        look: Callable[[Page], Processed] | None = None,
        near: str = "",
        purpose: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.fake_clock = FakeClock()
        self.clock: Clock = clock or self.fake_clock
        self.options = convert(CrawlOptions, crawl or {})
        dice = Dice(1)
        self.web = FakeWeb(pages, clock=self.clock)
        self.resolver = FixedResolver()
        self.archive = MemoryArchive()
        self.store = Store(directory / "store", 1 << 20, 1 << 20)
        self.contacts = Contacts(directory, b"boot" * 4, self.clock.now())
        self.slots = ShardSlots(directory)
        self.epochs = Epochs(self.store)
        self.journals = Journals(directory)
        self.counters = CrawlCounters(Totals(), self.options)
        self.logs = Logs(directory / "logs", self.clock)
        url_options = convert(UrlOptions, url or {})
        self.namer = Namer(url_options.canonicalizer(), split=url_options.split_sites)
        split = self.namer.split
        scope_options = convert(ScopeOptions, {"scope": "any", **(scope or {})})
        self.roots, self.exclusions = Roots(scope_options.scope, scope_options.seed_redirects), ExcludedHost()
        self.traps = Traps(scope_options, lambda part, host: self.epochs.get("content", watch_key(part, host, split)))
        self.chain = scope_chain(scope_options, self.roots, self.exclusions, [Trapped(self.traps)], lists)
        self.trapping = Trapping(self.traps, self.epochs, sketch, self.counters, split)
        rules = politeness(convert(PolitenessOptions, {"preset": "own", **(polite or {})}))
        frontier_options = convert(FrontierOptions, frontier or {})
        self.frontier = Frontier(
            HostRecords(self.store, self.epochs, self.contacts),
            FrontierRules(rules, frontier_options, split=split),
            self.namer.name,
            dice,
            self.clock.now(),
        )
        self.url_seen, self.history = RocksUrlSeen(self.epochs, 1_000), PageHistory(self.epochs)
        self.urls = UrlMemory(self.namer, self.url_seen, self.history)
        process = ProcessOptions()
        self.robots = SiteRobots(self.epochs, convert(RobotsOptions, robots or {}), self.namer.name, dice)
        documents = SiteDocuments(self.epochs, RobotsOptions(), self.namer.name, self.robots, purpose)
        exclusions = Exclusions(self.exclusions)
        control, name = self.frontier.control, self.namer.name
        usage = Usage(self.robots, documents, control, exclusions.excludes, purpose, obeys=obey)
        robots_txt = RobotsTxt(
            self.robots,
            control,
            name,
            exclusions.excludes,
            lambda prerequisite, why: self.logs.info("robots", url=prerequisite.url.text, error=why),
        )
        self.features: list[VisitMiddleware] = [exclusions, self.trapping, *([robots_txt] if obey else []), usage]
        self.quarantine = Quarantine(self.epochs, accused, command, self.options.process_s_max)
        content_seen = ExactContentSeen(self.epochs, "site" if self.options.process_copies else "shard")
        near_seen = NearContentSeen(self.epochs, near) if near else None
        modules = Modules(standard_modules(process), process)
        sliced = modules.process_in_slices if look is None else at_once(look)
        self.memory = memory = ScopeMemory(
            self.epochs, self.roots, self.exclusions, self.chain.counts, alone=True, grows=True
        )
        self.stages: Stages = Stages(
            namer=self.namer,
            chain=self.chain,
            roots=self.roots,
            url_seen=self.url_seen,
            prioritizer=BreadthFirst(),
            frontier=self.frontier,
            resolver=self.resolver,
            excludes=exclusions.excludes,
            robots=self.robots,
            middlewares=Middlewares(self.features),
            protocols=self.web,
            content_seen=content_seen,
            examiner=Examiner(BoundedDecoder(FetchOptions()), sliced, self.clock, self.slots),
            quarantine=self.quarantine,
            archive=self.archive,
            digest_algorithm="sha1",
            history=self.history,
            copies=CopyMarks(
                content_seen, NearCopies(near_seen, sketch) if near_seen is not None else None, self.urls,
                follow=self.options.follow_copies, every=False, process=self.options.process_copies,
            ),
            trapping=self.trapping,
            pending_scope=memory.pending_scope,
            exchange=NoOthers(),
            hints=Hints(),
            isolated=IsolatedModules((), lambda _type, _link: (), 1.0, 1, None),
            rendering=BrowserRendering(),
            ending=BatchEnding(self.urls, self.chain, self.frontier, BreadthFirst()),
        )  # fmt: skip
        storage = Storage(self.store, self.epochs, self.journals, self.contacts, self.slots)
        self.telemetry = Telemetry(self.clock, self.logs, self.counters)
        self.committer = Committer(storage, self.archive, self.telemetry)
        for one in (self.frontier, memory, self.trapping):
            self.committer.join(one)
        self._retries = Retries(
            frontier_options.attempts_max, frontier_options.retry_s_first, frontier_options.retry_s_max, dice
        )
        self.limits = convert(LimitsOptions, limits or {})
        self.pipeline = self.joined()
        self.lookups = Lookups(self.frontier.facts, self.frontier.is_leased, partial(record_of, self.epochs))
        self.explainer = Explainer(self.urls, self.chain, self.lookups)

    def with_feature(self, feature: VisitMiddleware, **stages: object) -> Pipeline:
        """Join the rooms to a ring with one more feature."""
        self.features.append(feature)
        return self.joined(middlewares=Middlewares(self.features), **stages)

    def joined(self, **stages: object) -> Pipeline:
        """Join the rooms to a ring, some of them replaced."""
        self.stages = msgspec.structs.replace(self.stages, **stages)  # type: ignore[arg-type]
        self.pipeline = Pipeline(self.stages, self._retries, self.options, self.clock, self.logs, self.counters)
        return self.pipeline

    def shard(self) -> CrawlLoop:
        return CrawlLoop(self.frontier, self.pipeline, self.committer, self.telemetry, self.options, self.limits)

    def seed(self, *addresses: str) -> None:
        for address in addresses:
            url = self.namer.name(address)
            assert url is not None, address
            self.roots.add_seed(url)
            self.pipeline.discovery.discover([Link(url, "seed", 0, seed=SEED_ARGUMENT)])

    async def turns(self, until: float | None = None) -> None:
        """Carry leases through, one at a time, until none is left; time passes when all gates are closed."""
        for _ in range(STEPS_MAX):
            now = self.clock.now()
            lease = self.frontier.select(now)
            if lease is not None:
                work = self.pipeline.lease(lease, now)
                if work is not None:
                    await work
                if self.counters.fatal_error is not None:
                    return
                continue
            wake_at = self.frontier.wake_at()
            if wake_at is None or (until is not None and wake_at > until):
                return
            await self.clock.sleep_until(wake_at)
        raise AssertionError("it does not end")

    def crawl(self, *seeds: str, until: float | None = None) -> None:
        self.seed(*seeds)
        asyncio.run(self.turns(until))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(work)

    @property
    def rows(self) -> list[PageRow]:
        return [visited.row for visited in self.archive.added]

    @property
    def outcomes(self) -> dict[str, str]:
        return {row.url: row.outcome for row in self.rows}

    def record(self, address: str) -> PageRecord:
        return self.history.get(url_of(address))

    def log(self, name: str) -> list[dict[str, Any]]:
        self.logs.flush()
        lines = (self.directory / "logs" / name).read_bytes().splitlines()
        return [msgspec.json.decode(line) for line in lines]

    def adds_up(self) -> bool:
        """Say whether every URL that was discovered is queued or ended."""
        counts = self.frontier.counts
        return counts.discovered == counts.pending + sum(counts.terminal.values())

    def close(self) -> None:
        self.committer.close()
        self.logs.close()
        self.journals.close_files()
        self.contacts.close()
        self.slots.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
