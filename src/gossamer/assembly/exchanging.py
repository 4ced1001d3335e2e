"""Exchanging: a shard among others, joined to them: what it sends, takes, reports and is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gossamer.assembly.home import Home
from gossamer.cluster.addresses import Addresses
from gossamer.cluster.exchange import Exchange
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.reports import Orders, Report
from gossamer.config import Config
from gossamer.crawl.beyond import Beyond
from gossamer.crawl.commit import Committer
from gossamer.crawl.logs import Logs
from gossamer.crawl.pipeline import Pipeline
from gossamer.crawl.shard import Shard
from gossamer.crawl.tally import Tally
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.politeness import politeness
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.model.visits import Errand, Failure, Reply
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.clock import Clock


def exchange_of(
    config: Config,
    home: Home,
    store: Store,
    epochs: Epochs,
    contacts: Contacts,
    opening: int,
    namer: Namer,
    clock: Clock,
) -> Exchange | None:
    """Return a shard's door to the others; None where it is alone. To be made before the frontier takes in `contacts`.

    Raises:
        ConfigError: the configuration asks for what several shards cannot do, or for another number of them.
    """
    partitions = PartitionMap.load(home.directory)
    divided = partitions.shards if partitions is not None else 1 if Home(home.directory).is_there else home.shards
    if divided != home.shards:
        raise ConfigError(
            f"{home.directory} is divided among {divided} shards, not {home.shards}; "
            f"`gossamer scale {home.directory} --workers {home.shards}` moves what must move"
        )
    if home.shards == 1:
        return None
    if config.frontier.form == "walk":
        raise ConfigError("frontier.form = 'walk' walks in one shard: leave out --workers")
    if config.components.frontier:
        raise ConfigError("components.frontier is for one shard: leave out --workers")
    partitions = partitions or PartitionMap.even(home.shards)
    rules, cluster = politeness(config.politeness), config.cluster
    addresses = Addresses(
        home.shard,
        home.shards,
        term_s=cluster.address_term_s,
        turn_s=cluster.address_turn_s,
        request_s_max=config.crawl.request_s_max,
        rest_s=rules.address_delay_s,
        now=clock.now(),
        is_new=not store.epoch,
    )
    # A checkpoint has no contacts: where there are none beside a store, it is an older state than the last.
    rolled_back = contacts.recovered.missing and store.epoch > 0
    needs_cover = bool(config.state.checkpoint_uri)
    return Exchange(
        home.shard, opening, partitions, epochs, cluster, namer, clock, rolled_back=rolled_back,
        needs_cover=needs_cover, addresses=addresses,
    )  # fmt: skip


class Membership:
    """One shard of several: answers the coordinator's rounds, and does what it is told."""

    def __init__(
        self,
        exchange: Exchange,
        shard: Shard,
        pipeline: Pipeline,
        frontier: Frontier,
        beyond: Beyond | None,
        tally: Tally,
        logs: Logs,
        clock: Clock,
    ) -> None:
        self.exchange = exchange
        self._shard = shard
        self._pipeline = pipeline
        self._frontier = frontier
        self._beyond = beyond
        self._tally = tally
        self._logs = logs
        self._clock = clock
        self.seeding: Callable[[], bool] = lambda: False
        """Says whether seeds are still to come."""
        self._cut_activity = self._committed_activity = -1
        self._pages_cut = self._pages_committed = tally.totals.pages
        self._bytes_cut = self._bytes_committed = tally.totals.wire_bytes
        self._serial = 0
        self.over = False
        """The coordinator said that all is over."""
        exchange.attach(self, shard.relieve)
        addresses = exchange.addresses
        assert addresses is not None
        self._shared = frontier.share_addresses(addresses)
        if self._shared is not None:
            addresses.listen(self._opened, self._shared.shut, self._outgoing)

    def join(self, committer: Committer) -> None:
        """Have a part in every commit."""
        committer.join(self)
        before = committer.on_epoch

        def committed(epoch: int) -> None:
            if before is not None:
                before(epoch)
            self.committed(epoch)

        committer.on_epoch = committed

    # ---- the coordinator's side

    def report(self) -> Report:
        """Return how this shard stands."""
        exchange, shard, totals = self.exchange, self._shard, self._tally.totals
        seeding, awaits = self.seeding(), shard.out_of_patience
        passive = (
            shard.nothing_to_do
            and exchange.idle
            and not seeding
            and (awaits or not self._frontier.counts.pending)
            and self._committed_activity == self._activity
        )
        seeds = self._beyond is not None and (self._beyond.seeds_open or exchange.has_seeds)
        return Report(
            exchange.shard,
            exchange.opening,
            passive,
            self._activity,
            exchange.incarnation,
            exchange.sent(),
            exchange.taken(),
            seeding or seeds,
            self._beyond.activity if self._beyond is not None else 0,
            exchange.seeds_sent(),
            self._pages_committed,
            totals.pages - self._pages_committed + shard.visits,
            self._bytes_committed,
            self._serial,
            awaits,
        )

    def obey(self, orders: Orders) -> None:
        """Do what the coordinator says. Orders may come twice or late: an older quota is no order."""
        if orders.quota_serial >= self._serial:
            self._shard.quota, self._serial = orders.quota, orders.quota_serial
        if self._beyond is not None:
            self._beyond.set_final(final=orders.scope_final)
        if orders.paused != self._shard.paused:
            (self._shard.pause if orders.paused else self._shard.unpause)()
        if orders.end == "stopped":
            self._shard.stop()
        elif orders.end:
            self.over = True
            self._shard.end_early(orders.end)
        self._shard.stir()

    def more_to_come(self) -> bool:
        """Say whether there may be work yet: a shard among others does not end by itself."""
        return not self.over

    # ---- the epoch

    def cut(self, now: float) -> None:
        """Note where this epoch ends."""
        self.exchange.cut(now)
        self._cut_activity = self._activity if not self._shard.in_flight else -1
        self._pages_cut, self._bytes_cut = self._tally.totals.pages, self._tally.totals.wire_bytes

    def committed(self, epoch: int) -> None:
        """Note that it is durable."""
        self._committed_activity = self._cut_activity
        self._pages_committed, self._bytes_committed = self._pages_cut, self._bytes_cut
        self.exchange.committed(epoch)

    # ---- the ring (`exchange.Ring`)

    def discover(self, links: Sequence[Link]) -> None:
        self._pipeline.discover(links)
        self._shard.stir()

    def widen_from_afar(self, seed: Url, target: Url, kind: int) -> None:
        self._pipeline.widen_from_afar(seed, target, kind)

    def linked_from_afar(self, source: int, site: str, partition: int) -> None:
        self._frontier.linked_from_afar(source, site, partition)

    def run_for_another(self, errand: Errand) -> bool:
        started = self._frontier.control.run_errand(errand, self._clock.now())
        self._shard.stir()
        return started

    def errand_answered(self, errand: Errand, result: Reply | Failure, body: bytes) -> None:
        self._pipeline.errands.answer(errand, body, result, self._clock.now())
        self._shard.stir()

    def failed(self, what: str, error: Exception) -> None:
        self._logs.critical("internal_error", error, url=what)
        self._tally.failed(error, self._clock.now())

    def lost(self, what: str) -> None:
        self._logs.critical("exchange", error_text=what)
        self._tally.note(what)

    # ---- inside

    @property
    def _activity(self) -> int:
        return self.exchange.activity + self._shard.activity

    def _outgoing(self) -> None:
        self.exchange.on_outgoing()

    def _opened(self, address: str, rest_until: float) -> None:
        assert self._shared is not None
        self._shared.open(address, rest_until)
        self._shard.stir()


def membership_of(
    exchange: Exchange | None,
    shard: Shard,
    pipeline: Pipeline,
    frontier: Frontier | WrappedFrontier,
    beyond: Beyond | None,
    tally: Tally,
    logs: Logs,
    clock: Clock,
    committer: Committer,
) -> Membership | None:
    """Return a shard's part in a crawl of several; None where it is alone."""
    if exchange is None or not isinstance(frontier, Frontier):
        return None
    membership = Membership(exchange, shard, pipeline, frontier, beyond, tally, logs, clock)
    membership.join(committer)
    return membership
