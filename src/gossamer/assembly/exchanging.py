"""Exchanging: connects a shard to the others: links, messages, reports and orders."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, cast

from gossamer.assembly.home import Setup
from gossamer.cluster.addresses import Addresses
from gossamer.cluster.exchange import Exchange, ShardRun
from gossamer.cluster.frames import MovePart, Welcome
from gossamer.cluster.lease_server import Terms
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.places import Move
from gossamer.cluster.reports import Orders, ShardReport
from gossamer.engine.commit import Committer, Storage
from gossamer.engine.counters import Telemetry
from gossamer.engine.loop import bound
from gossamer.engine.pending_scope import PendingScope
from gossamer.model.links import Link, Prerequisite, TravellingWalker
from gossamer.model.visits import Failure, Reply
from gossamer.stages.frontier.options import politeness
from gossamer.stages.frontier.walk import RandomWalk
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.loop import wait_at_most

if TYPE_CHECKING:
    from gossamer.assembly.moving import PartitionMoves
    from gossamer.assembly.ring import CrawlRing
    from gossamer.features.render.rendering import PageResources


def exchange_of(
    setup: Setup, storage: Storage, namer: Namer, opening: int, partitions: PartitionMap | None
) -> Exchange:
    """Return a shard's exchange with the others. Call it before the frontier reads contacts."""
    config = setup.config
    home = setup.home
    store = storage.store
    clock = setup.clock
    partitions = partitions or PartitionMap.even(home.shards)
    rules = politeness(config.politeness)
    cluster = config.cluster
    # What a dead shard requested last may have been at a split site, too.
    delay_s = max(rules.address_delay_s, rules.site_delay_s if config.url.split_sites else 0.0)
    # A checkpoint has no contacts: where they are missing, the state is older than the last, until the first commit.
    rolled_back = storage.contacts.recovered.lacks_earlier(store.epoch, opening)
    start = ShardRun(home.shard, opening, rolled_back, needs_cover=bool(config.state.checkpoint_uri))
    exchange = Exchange(start, partitions, storage.epochs, cluster, namer, clock)
    exchange.addresses = Addresses(
        home.shard,
        home.shards,
        Terms(cluster.address_term_s, cluster.address_turn_s, config.crawl.request_s_max, delay_s),
        clock.now(),
        is_new=not (store.epoch or rolled_back),
        added=exchange.places.shards - home.shards,
    )
    return exchange


class Membership:
    """One shard of several: reports to the coordinator, and carries out its orders."""

    def __init__(
        self, exchange: Exchange, ring: CrawlRing, moves: PartitionMoves, telemetry: Telemetry, pending: PendingScope
    ) -> None:
        self.exchange = exchange
        self._ring = ring
        self._loop = loop = ring.loop
        self._pipeline = ring.pipeline
        self._frontier = frontier = ring.frontier
        self._reputation = frontier.ledger.reputation
        if self._reputation is not None:
            self._reputation.others = exchange
        self._walk = frontier.strategy if isinstance(frontier.strategy, RandomWalk) else None
        if self._walk is not None:
            self._walk.others = exchange
        self._pending_scope = pending
        self._clock = telemetry.clock
        self._logs = telemetry.logs
        self._counters = counters = telemetry.counters
        self.seeding: Callable[[], bool] = lambda: False
        """Says whether seeds are still to come."""
        self._cut_activity = -1
        self._committed_activity = -1
        self._pages_cut = counters.totals.pages
        self._pages_committed = counters.totals.pages
        self._bytes_cut = counters.totals.wire_bytes
        self._bytes_committed = counters.totals.wire_bytes
        self._serial = 0
        self.over = False
        """Whether the coordinator has ended the crawl."""
        self._ordered: Sequence[Move] = ()
        self._survey: int | None = None
        self._weigh = False
        self.moves = moves
        exchange.attach(self, loop.commit_if_large)
        addresses = exchange.addresses
        assert addresses is not None
        self._shared = frontier.share_gates(addresses, exchange.shard / exchange.partitions.shards)
        if self._shared is not None:
            addresses.listen(self._on_open, self._shared.shut, lambda: self.exchange.on_outgoing())  # noqa: PLW0108 - it is set later

    def join(self, committer: Committer) -> None:
        """Take part in every commit."""
        committer.join(self)
        before = committer.on_epoch

        def on_commit(epoch: int) -> None:
            before(epoch)
            self.committed(epoch)

        committer.on_epoch = on_commit

    # ---- the coordinator's side

    def report(self) -> ShardReport:
        """Return this shard's report."""
        exchange = self.exchange
        loop = self._loop
        totals = self._counters.totals
        seeding = self.seeding()
        is_out_of_patience = loop.out_of_patience
        # Another shard may have the address, and then nothing is ready here.
        is_continuous = self._ring.features.recrawl is not None
        queued = self._frontier.counts.pending or (is_continuous and self._frontier.hosts_left)
        passive = (
            loop.nothing_to_do
            and exchange.idle
            and not seeding
            and (is_out_of_patience or not queued)
            and self._committed_activity == self._activity
        )
        seeds = self._pending_scope.seeds_open or (self._pending_scope.grows and exchange.has_seeds)
        moves = self.moves.frontier
        requests_s, requests = moves.requests(self._clock.now(), by_partition=self._weigh)
        return ShardReport(
            exchange.shard,
            exchange.opening,
            passive=passive,
            activity=self._activity,
            incarnation=exchange.incarnation,
            sent=exchange.last_sent(),
            taken=exchange.last_taken(),
            seeds_open=seeding or seeds,
            seeds_activity=self._pending_scope.activity,
            seeds_sent=exchange.seeds_sent(),
            pages=self._pages_committed,
            pages_under_way=totals.pages - self._pages_committed + loop.visits,
            wire_bytes=self._bytes_committed,
            quota_serial=self._serial,
            awaits=is_out_of_patience,
            hosts_left=None if seeding else self._frontier.hosts_left,
            urls=self._frontier.counts.discovered,
            serial=exchange.places.serial,
            settled=exchange.places.safe_versions(self._ordered),
            behind=loop.is_behind,
            waiting=moves.survey(self._survey) if self._survey is not None else None,
            requests_s=requests_s,
            requests=requests,
        )

    def obey(self, orders: Orders) -> None:
        """Follow orders of the coordinator. They may come twice or late: an older quota is ignored."""
        if orders.quota_serial >= self._serial:
            self._loop.quota = bound(orders.quota)
            self._serial = orders.quota_serial
        self._pending_scope.set_final(final=orders.scope_final)
        self._follow(orders)
        if orders.paused != self._loop.paused:
            if orders.paused:
                self._loop.pause()
            else:
                self._loop.unpause()
        if orders.end == "stopped":
            self._loop.stop()
        elif orders.end:
            self.over = True
            self._loop.end_early(orders.end)
        self._loop.stir()

    async def send_frames(
        self, send: Callable[[int, bytes], None], flush: Callable[[], Awaitable[None]], wait_s_max: float
    ) -> None:
        """Pass the frames for other shards to `send`, and call `flush` after each batch, until cancelled. Frames that
        were not confirmed become due again, so look for some every `wait_s_max` at the latest.
        """
        news = asyncio.Event()
        self.exchange.on_outgoing = news.set
        while True:
            for to, frame in self.exchange.outgoing(self._clock.now()):
                send(to, frame)
            await flush()
            await wait_at_most(wait_s_max, news.wait())
            news.clear()

    def more_to_come(self) -> bool:
        """Return whether there may be work yet: a shard among others does not end by itself."""
        return not self.over

    # ---- the epoch

    def cut(self, now: float) -> None:
        """Note where this epoch ends."""
        self.moves.cut(now)
        self.exchange.cut(now)
        self._cut_activity = self._activity if not self._loop.in_flight else -1
        self._pages_cut = self._counters.totals.pages
        self._bytes_cut = self._counters.totals.wire_bytes

    def committed(self, epoch: int) -> None:
        """Note that the epoch is durable."""
        self._committed_activity = self._cut_activity
        self._pages_committed = self._pages_cut
        self._bytes_committed = self._bytes_cut
        self.exchange.on_commit(epoch)
        if self.moves.is_copying:
            self._loop.commit_soon()  # The rest of what moves must not wait.

    # ---- what the exchange delivers (`exchange.LinkReceiver`)

    def discover(self, links: Sequence[Link]) -> None:
        self._pipeline.discover_remote_links(links)
        self._loop.stir()

    def widen_by_remote_seed(self, seed: Url, target: Url, kind: int) -> None:
        self._pipeline.discovery.widen_by_remote_seed(seed, target, kind)

    def note_remote_link(self, source: int, site: str, partition: int) -> None:
        if self._reputation is not None:
            self._reputation.note_remote_link(source, site, partition)

    def receive_cash(self, host: str, partition: int, amount: float) -> None:
        if self._reputation is not None:
            self._reputation.receive_cash(host, partition, amount)

    def take_walker(self, walker: TravellingWalker) -> None:
        if self._walk is not None:
            self._walk.arrive(walker, self._clock.now())
            self._loop.stir()

    def note_walked_hosts(self, shard: int, hosts: int) -> None:
        if self._walk is not None:
            self._walk.note_hosts(shard, hosts)
            self._loop.stir()

    def take_part(self, part: MovePart) -> None:
        self.moves.take(part, self._clock.now())

    def on_welcome(self, welcome: Welcome) -> None:
        scope = self._ring.scope
        scope.roots.absorb(welcome.roots)
        scope.exclusions.load(welcome.excluded)
        self._pending_scope.widen_all(scope.chain, self._ring.urls.namer)
        self.discover(self._pending_scope.take_regained())

    def run_for_another(self, prerequisite: Prerequisite) -> bool:
        if not prerequisite.is_about_origin:
            resources = cast("PageResources", self._ring.features.middlewares.of("rendering"))
            resources.serve(prerequisite, self.exchange.answer_prerequisite)
            return True
        started = self._frontier.control.run_prerequisite(prerequisite, self._clock.now())
        self._loop.stir()
        return started

    def prerequisite_answered(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes) -> None:
        self._pipeline.prerequisites.answer(prerequisite, body, result, self._clock.now())
        self._loop.stir()

    def on_failure(self, what: str, error: Exception) -> None:
        self._logs.critical("internal_error", error, url=what)
        self._counters.count_error(error, self._clock.now())

    def on_loss(self, what: str) -> None:
        self._logs.critical("exchange", what)
        self._counters.note(what)

    # ---- inside

    def _follow(self, orders: Orders) -> None:
        """Apply an order about partitions: where they are, which shards there are, and which to hand over."""
        places = self.exchange.places
        for to in places.to_welcome(orders.shards):
            if to != self.exchange.shard:
                scope = self._ring.scope
                self.exchange.send(to, Welcome(scope.roots.dump(), scope.exclusions.dump()))
        if places.learn(orders.places, orders.known, orders.serial):
            self.exchange.readdress()
        self._ordered = orders.moves
        self._survey = orders.survey
        self._weigh = orders.weigh
        # Until all seeds are added, a restart adds them again, each where its partition is by then; and pages of an
        # earlier batch crawl get their due times where they are.
        recrawl = self._ring.features.recrawl
        stays = self.seeding() or (recrawl is not None and not recrawl.enrolment.is_over)
        stays = stays or self._clock.now() < self.moves.frontier.earliest_move_at
        self.moves.order(() if stays else orders.moves)

    @property
    def _activity(self) -> int:
        return self.exchange.activity + self._loop.activity

    def _on_open(self, address: str, delay_until: float) -> None:
        assert self._shared is not None
        self._shared.open(address, delay_until)
        self._loop.stir()
