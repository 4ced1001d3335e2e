"""Frontier: queues links, leases visits, and takes these back."""

from collections.abc import Sequence

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.model.links import NOT_SEED, SEED_FILE, Link, RevisitPlan
from gossamer.model.standing import Awaited, HostFacts, Lasting, Standing
from gossamer.model.visits import Contact
from gossamer.stages.frontier.budgets import Ledger
from gossamer.stages.frontier.host import Host, Lease, PrerequisiteLease, VisitLease
from gossamer.stages.frontier.hosts import HOST_BYTES, HostRecords, HostTable
from gossamer.stages.frontier.index import HostIndex, LevelBias
from gossamer.stages.frontier.limits import SharedGates, Sites, make_shared_gates
from gossamer.stages.frontier.load import RequestLoad
from gossamer.stages.frontier.options import BudgetOptions, FrontierOptions
from gossamer.stages.frontier.origins import free_at, key_of, queue_of, settle, tidy
from gossamer.stages.frontier.overview import NextTurn, facts_of, lasting_hosts, next_hosts, next_turn, overview
from gossamer.stages.frontier.politeness import Politeness
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.stages.frontier.queues import Queues
from gossamer.stages.frontier.record import QueuedUrl, QueueEntry, decode_record
from gossamer.stages.frontier.scheduler import HostControl, Scheduler
from gossamer.stages.frontier.set_back import follow_clock
from gossamer.stages.frontier.strategy import SWEEP
from gossamer.stages.frontier.tokens import Leases
from gossamer.stages.frontier.workbench import Workbench
from gossamer.state.schema import FRONTIER_COUNTS, PARTITIONED
from gossamer.url.url import NameUrl, Url
from gossamer.world.dice import Dice

SHARE_OLD_MAX = 0.9
"""Share of a host's permitted visits for old pages if no new URLs wait; the rest is for retries and robots.txt."""


class Frontier:
    """Promises: each added URL is leased to one visit at a time until it is finished, and no URL is lost. No host or
    address gets more concurrent requests than politeness allows, and no request is early, even after a crash.

    A lease's life: `select` → (`locate` and back, if its host must be resolved) → `begin` → `ended` → `finish` or
    `retry`; or `return_lease` instead of the last two. The time is an argument of each call. `FrontierMoves` alone
    uses `hosts`, `index` and `scheduler`.
    """

    def __init__(self, records: HostRecords, rules: FrontierRules, name_url: NameUrl, dice: Dice, now: float) -> None:
        store = records.store
        epochs = records.epochs
        contacts = records.contacts
        remembered = records.remembered
        politeness = rules.politeness
        options = rules.options
        share_new = rules.share_new
        self.politeness = politeness
        self._options = options
        self._share_new = share_new
        self._dice = dice
        self._epochs = epochs
        self._contacts = contacts
        self._remembered = remembered
        is_new = contacts.recovered.missing and not store.epoch
        if (first := next(store.scan("host", *PARTITIONED), None)) is not None:
            decode_record(first[1])  # Refuses a crawl of another version now, not during a visit.
        self.counts = follow_clock(epochs, now, records.travelling)
        bias = rules.bias or LevelBias(options.level_bias, dice)
        self.hosts = HostTable(epochs, politeness, contacts.recovered, options.records_cached_max, remembered)
        coin = None if share_new is None else lambda: dice.uniform(0.0, 1.0) < share_new
        self._queues = Queues(epochs, bias, options, name_url, coin or bool)
        self.counts.levels = self._queues.by_level = self.counts.levels or self._queues.by_level
        self._workbench = workbench = Workbench(politeness.per_address, politeness.per_site, politeness.site_delay_s)
        self._shared: SharedGates | None = None
        self.index = index = HostIndex(epochs, dice, bias)
        index.hosts = self.counts.working
        index.deferred.hosts = self.counts.deferred
        index.hosts_most = max(index.hosts, self.counts.most)
        self.ledger = ledger = Ledger(epochs, rules, now, remembered)
        self._rules = rules
        self._budgets = ledger.budgets
        self._resumed_at = 0.0 if is_new else now
        sites_delayed_until = now + politeness.site_delay_s if self._resumed_at else 0.0
        self._sites = sites = Sites(
            workbench, index, sites_delayed_until, options, ledger.linking, index.sites_waiting(store)
        )
        self.scheduler = Scheduler(
            self.hosts, self._queues, index, workbench, self.counts, options, sites,
            ledger.budgets, ledger.host_level, coin,
        )  # fmt: skip
        self.control = HostControl(self.hosts, self.scheduler, contacts, politeness, options.errors_remembered_s)
        self.strategy = SWEEP
        self.frozen: set[int] = set()
        """Partitions of which no URL is leased: they move to another shard."""
        self.load = RequestLoad(now)
        self._leased: set[int] = set()
        self._aside: list[Host] = []
        """Hosts whose turn came while only prerequisite fetches were leased; at most as many as on the workbench."""
        active = index.load(store, records.travelling)
        for begin, end in records.travelling:
            self.scheduler.forget(begin, end)
            ledger.forget(begin, end)
        for partition, name in active:
            self.scheduler.resume(self.hosts.get(name, partition), now)

    def reconfigure(self, politeness: Politeness, options: FrontierOptions, budget: BudgetOptions, now: float) -> None:
        """Apply new options. A longer delay applies at once to hosts in memory, counted from the end of the last
        request; a running delay never becomes shorter.
        """
        before = self.politeness
        self.politeness = politeness
        self._options = options
        hosts = self.hosts.reconfigure(politeness)
        self.ledger.reconfigure(budget, hosts, now)
        self._budgets = self.ledger.budgets
        self.scheduler.reconfigure(options, self._budgets)
        self.control.reconfigure(politeness)
        self._workbench.reconfigure(politeness.per_address)
        self._workbench.delay_sites(before.site_delay_s, politeness.site_delay_s, now)
        for host in hosts:
            was = before.of(host.name)
            record = host.record
            if was.has_own_gate != host.rules.has_own_gate or was.per_host != host.rules.per_host:
                self._workbench.settle(host, None)  # It gets a new place before its next request.
            more_s = host.rules.delay_s(record.fetches_s, record.crawl_delay_s)
            more_s -= was.delay_s(record.fetches_s, record.crawl_delay_s)
            if record.requests and more_s > 0.0 and not record.reason and record.delay_until + more_s > now:
                self.control.prolong(host, record.delay_until + more_s, now)
            else:
                self.scheduler.schedule(host, now)

    @property
    def memory_bytes(self) -> int:
        """Approximate memory of changes that wait for the next `cut`: added URLs and changed hosts."""
        return self._queues.fresh_bytes + self.hosts.dirty * HOST_BYTES + self.ledger.memory_bytes

    @property
    def active_hosts(self) -> int:
        """Hosts in memory with work."""
        return len(self.scheduler.active)

    @property
    def hosts_left(self) -> int:
        """Hosts with URLs that are not finished, in memory or on disk, or hosts at which the strategy continues."""
        return (self.strategy.hosts if self.strategy.can_offer() else 0) or self.index.hosts

    def gives_up_next(self, lease: Lease) -> bool:
        """Return whether an origin that never answered has its last attempt; for a continuous crawl, its second one."""
        one = lease.host.record.origin(lease.origin)
        return one is not None and one.failures >= self._options.unanswered_failures_max - 1

    @property
    def hosts_most(self) -> int:
        """Maximum of `hosts_left` since `reset_hosts_most`, over all runs."""
        return max(self.index.hosts_most, self.strategy.hosts)

    def reset_hosts_most(self) -> None:
        """Reset `hosts_most`."""
        self.index.hosts_most = self.index.hosts

    def share_gates(self, leases: Leases, first: float) -> SharedGates | None:
        """From now on, lease addresses and gates of split sites from the lease server; `first`: see `SiteLimits`."""
        self._shared = make_shared_gates(self._workbench, leases, self._rules, first)
        if self._shared is not None:
            self._sites.share(self._rules.split, self._shared)
        return self._shared

    def shrink(self) -> None:
        """Keep fewer hosts in memory, which is short. Their number grows again when requests wait for hosts."""
        self.scheduler.size.shrink()

    # ---- links in

    def add(self, link: Link, level: int, now: float) -> None:
        """Queue a URL that was not seen before, unless the strategy holds it. About 3 µs."""
        if self.strategy is SWEEP or not self.strategy.hold(link, level, now):
            self.queue(link, level, now)

    def queue(self, link: Link, level: int, now: float) -> None:
        """Queue a URL; for strategies."""
        self.counts.discovered += 1
        self.counts.pending += 1
        host = self.hosts.get(link.url.host, link.url.partition)
        if host.record.closed:
            self.counts.end("host_closed")
            return
        number = level if host.record.origins is None else queue_of(host.record, level, link.url)
        self._queues.append(host, number, link)
        self.hosts.touch(host)
        self.scheduler.bring(host, level, now)

    def standing(self, url: Url) -> Standing:
        """Return the figures of a URL's host, for a prioritizer."""
        return self.ledger.standing(self.hosts.get(url.host, url.partition))

    def linked(self, page: Url, links: Sequence[Link]) -> None:
        """Process the links of a page that was just finished, for reputation and strategy."""
        if self.ledger.reputation is not None:
            host = self.hosts.get(page.host, page.partition)
            self.ledger.reputation.count_links(page, links, host.record.urls_queued)
        self.strategy.linked(page, links)

    @property
    def watches_links(self) -> bool:
        """Whether `linked` needs to be called."""
        return self.strategy.watches_links or self.ledger.reputation is not None

    def retry(self, lease: VisitLease, again: RevisitPlan, now: float) -> None:
        """Queue a leased URL again: for another attempt, or for the next hop of a redirect with the same key."""
        host = lease.host
        old = self._take_back(lease)
        entry = QueueEntry(
            again.url.text, old.depth, again.hops, old.link_type, old.referrer, again.attempt, old.seed, again.error,
            old.revisit,
        )  # fmt: skip
        target = host if again.url.host == host.name else self.hosts.get(again.url.host, again.url.partition)
        self._queues.finish(host, old)
        self.hosts.touch(host)
        if target.record.closed:
            if not old.revisit:
                self.counts.end("host_closed")
        else:
            self._queues.put_due(target, entry, again.at, again.url.fingerprint)
            self.hosts.touch(target)
            self.scheduler.bring(target, 0, now)
        self.scheduler.schedule(host, now)

    # ---- visits out

    def select(self, now: float) -> Lease | None:
        """Lease the next visit; None if no gate is open before `wake_at`."""
        if self.strategy is not SWEEP:
            self.strategy.offer(now)
        scheduler = self.scheduler
        prerequisites_only = self.control.prerequisites_only
        while self._aside and not prerequisites_only:
            scheduler.schedule(self._aside.pop(), now)
        while True:
            if len(scheduler.active) < scheduler.size.hosts and not prerequisites_only:
                scheduler.fill(now)  # In each iteration: a host without a URL for now makes room for another.
            host = self._workbench.take(now)
            if host is None:
                if prerequisites_only or not scheduler.widen(now):
                    return None
            elif host.partition in self.frozen:
                pass
            elif prerequisites_only and host.prerequisites is None:
                self._aside.append(host)  # Until queued URLs are leased again.
            elif (lease := self._lease(host, now)) is not None:
                return lease
            elif not prerequisites_only:
                scheduler.schedule(host, now)

    def wake_at(self) -> float | None:
        """Return when `select` may return a lease again; None if only the end of a visit can change that."""
        if self._aside and not self.control.prerequisites_only:
            return 0.0
        if self.strategy is not SWEEP and self.strategy.can_offer():
            return 0.0
        instants = [at for at in (self._workbench.next_at(), self.scheduler.wake_at()) if at is not None]
        return min(instants) if instants else None

    def locate(self, lease: Lease, address: str, until: float, now: float) -> None:
        """Take back a lease without an address, now that its host is resolved; the URL is leased again in its turn."""
        own = lease.host.name if lease.host.rules.has_own_gate else ""
        fingerprint = xxh3_64_intdigest(f"{address} {own}".encode() if own else address.encode())
        delay_until = self._contacts.recovered.addresses.get(fingerprint, 0.0)
        if self._resumed_at and not own:
            delay_until = max(delay_until, self._resumed_at + self.politeness.address_delay_s)
        place = self._workbench.place(address, fingerprint, delay_until, own, lease.host.rules.per_host)
        self._workbench.settle(lease.host, place)
        if self._shared is not None:
            self._shared.lease_address(place, now)
        lease.host.located_until = until
        lease.host.address_unused = True
        self.return_lease(lease, now)

    def begin(self, lease: Lease, now: float) -> bool:
        """Note that the request goes out now. The note survives the death of the process.

        False if the gate of the host or origin has closed since `select` (another of its requests ended with
        Retry-After, or failed, or it was closed): then the caller returns the lease.
        """
        assert lease.place is not None
        assert not lease.refusal, "a URL that is refused is not requested"
        record = lease.host.record
        if record.closed or record.delay_until > now:
            return False
        if lease.is_visit and not lease.is_probe and free_at(lease.host, lease.origin) > now:
            return False
        if self._shared is not None and not self._shared.begin(lease, now):
            return False
        lease.host.address_unused = False
        delay = lease.host.rules.delay_to_come(record.fetches_s, record.crawl_delay_s)
        lease.ticket = self._contacts.begin(lease.host.fingerprint, lease.place.fingerprint, now, delay)
        return True

    def ended(self, lease: Lease, contact: Contact | None, now: float) -> None:
        """Release the gates of a lease. `contact` is None if no request was made."""
        assert not lease.is_ended, "a lease was returned twice"
        lease.is_ended = True
        host = lease.host
        place = lease.place
        host.out -= 1
        if lease.is_probe and host.probing is not None:
            host.probing = host.probing - {lease.origin} or None
        if contact is not None:
            if self._budgets is not None:
                self._budgets.spend(host, contact, page=lease.is_visit)
            jitter = self._dice.uniform(0.0, 1.0) if contact.kind == "busy" else 0.0
            is_robots = not lease.is_visit and lease.prerequisite.is_about(lease.url)
            settle(
                host, lease.origin, contact, now, self._options, jitter,
                no_answers=not self.counts.answers, is_robots=is_robots, absences=self.counts.absences,
            )  # fmt: skip
            self.counts.answers += contact.kind in ("answered", "busy")
            host.contacted = True
            self.load.note(host.partition, now)
            self.scheduler.size.note_delay(host.record.delay_until - now)
            host.note_contact(lease.address, contact.kind)
            if contact.kind == "failed":
                self.scheduler.note_closed(host, lease.origin)
            self.hosts.touch(host)
        if place is not None:
            shared = contact is not None and place.name == place.address
            delay_until = now + self.politeness.address_delay_s if shared else 0.0
            site_delay_until = now + self.politeness.site_delay_s if contact is not None else 0.0
            if lease.ticket >= 0:
                self._contacts.end(
                    lease.ticket, host.fingerprint, place.fingerprint, host.record.delay_until, delay_until, now
                )
                lease.ticket = -1
                if self._shared is not None:
                    self._shared.end(lease, delay_until, site_delay_until)
            self._workbench.release(place, delay_until)
            lease.place = None
            if lease.site is not None:
                self._workbench.release_site(lease.site, site_delay_until)
                lease.site = None
        if host.record.closed:
            self.scheduler.close(host, now)
        self.scheduler.schedule(host, now)

    def finish(self, lease: VisitLease, outcome: str, now: float) -> None:
        """Remove a leased URL from its queue, with this epoch."""
        host = lease.host
        item = self._take_back(lease)
        self._queues.finish(host, item)
        if not item.revisit:
            self.counts.end(outcome)
        self._sites.count_outcome(host, outcome)
        self.hosts.touch(host)
        if host.window is None or host.turn_at is None or host.turn_at - now > self._options.sleep_s_min:
            self.scheduler.schedule(host, now)  # Otherwise it has its turn already, which does not change.
        if self.strategy is not SWEEP:
            self.strategy.finish(lease.url, outcome)

    def drop(self, lease: VisitLease, now: float) -> None:
        """Dequeue a URL that is finished but was queued again with a more urgent level: it counts only once."""
        host = lease.host
        self.ended(lease, None, now)
        self._queues.finish(host, self._take_back(lease))
        self.counts.pending -= 1
        self.counts.discovered -= 1
        self.hosts.touch(host)
        self.scheduler.schedule(host, now)

    # ---- visits again

    def finish_until(self, lease: VisitLease, outcome: str, at: float, now: float) -> None:
        """Remove a leased URL from its queue, with this epoch; it is due for a revisit at `at`."""
        old = lease.visit
        entry = QueueEntry(lease.url.text, old.depth, 0, old.link_type, old.referrer, 1, old.seed, "", revisit=True)
        if not lease.host.record.closed:
            self._queues.put_due(lease.host, entry, at, lease.url.fingerprint)
        self.finish(lease, outcome, now)

    def schedule_revisit(self, url: Url, depth: int, referrer: str, at: float, now: float, link_type: str = "") -> bool:
        """Schedule a revisit at `at` of a URL that was finished permanently; False if its host is closed."""
        host = self.hosts.get(url.host, url.partition)
        if host.record.closed:
            return False
        seed = SEED_FILE if link_type == "seed" else NOT_SEED
        entry = QueueEntry(url.text, depth, 0, link_type, referrer, 1, seed, "", revisit=True)
        self._queues.put_due(host, entry, at, url.fingerprint)
        self.scheduler.await_url(host, at, now)
        return True

    def move_revisit(self, url: Url, at: float, to: float, now: float) -> bool:
        """Move the revisit of a URL from `at` to `to`; False if it no longer waits."""
        host = self.hosts.get(url.host, url.partition)
        if host.record.closed or not self._queues.move_due(host, url.fingerprint, at, to):
            return False
        self.scheduler.await_url(host, to, now)
        return True

    def revisits_per_s(self, url: Url) -> float:
        """Return how many visits per second politeness leaves for old pages of a URL's host."""
        host = self.hosts.get(url.host, url.partition)
        record = host.record
        has_new = record.urls_queued - record.revisits > host.leased - host.revisits_leased
        share = 1.0 - (self._share_new or 0.0) if has_new else SHARE_OLD_MAX
        return share * self.politeness.visits_per_s(record.fetches_s, record.crawl_delay_s)

    def return_lease(self, lease: Lease, now: float) -> None:
        """Take back an unused lease: no request was made."""
        host = lease.host
        if lease.is_visit:
            item = self._take_back(lease)
            if not host.record.closed:
                self._queues.put_back(host, item)
            else:
                self._queues.finish(host, item)
                if not item.revisit:
                    self.counts.end("host_closed")
                self.hosts.touch(host)
        else:
            host.prerequisites = [lease.prerequisite, *(host.prerequisites or ())]
        self.ended(lease, None, now)

    # ---- reports

    def facts(self, url: Url) -> HostFacts:
        """Return the facts of a URL's host, for `why`."""
        host = self.hosts.get(url.host, url.partition)
        site_gate = self._workbench.site_gate(host.site) if host.site is not None else ""
        budget = self.ledger.options
        budgets = self._budgets
        usage = budgets.facts(url) if budgets is not None and budget.is_set else None
        return facts_of(self._epochs, url, host, site_gate, budget, usage)

    def is_leased(self, url: Url) -> bool:
        """Return whether a URL is leased now."""
        return url.fingerprint in self._leased

    @property
    def closings(self) -> list[tuple[str, str]]:
        """The last hosts that were closed in this process, and why."""
        return list(self.scheduler.closings)

    def overview(self, now: float, most: int) -> dict[str, object]:
        """Return hosts that are active, slow or failing, for people."""
        return overview(self.scheduler.active.values(), self.hosts.in_memory(), now, most)

    def lasting_hosts(self, urls_s: float) -> list[Lasting]:
        """Return the hosts that will outlast all others; the crawl fetches `urls_s` URLs a second."""
        return lasting_hosts(self.scheduler.active.values(), self.counts.pending, urls_s)

    def next_hosts(self, most: int) -> list[Awaited]:
        """Return up to `most` of the hosts that can be requested later, the earliest first."""
        return next_hosts(self.scheduler.active.values(), self.index, self.hosts, most)

    def next_turn(self) -> NextTurn | None:
        """Return when the next host may be requested, which one, and why not earlier. For an idle crawl's status."""
        return next_turn(self.scheduler.active.values(), self.index, self.hosts, has_sites=self._workbench.has_sites)

    # ---- the epoch

    def cut(self, now: float) -> None:
        """Put all changes into the open epoch: records, new URLs, counts."""
        if self._remembered is not None:
            self._remembered.now = now
        for host in self.hosts.cut():
            if host.readings:
                self._queues.cut(host)
            if host.record.origins is not None:
                tidy(host)
            if self._remembered is not None and host.contacted:
                self._remembered.keep(host.record, host.partition)
            if host.is_new:
                self.counts.hosts += 1
                host.is_new = False
        self._queues.fresh_bytes = 0
        self.scheduler.size.fit(now)
        forgotten = self._workbench.forget_undelayed(now)
        if self._shared is not None:
            self._shared.leave(forgotten)
        self.ledger.cut()
        self.counts.working = self.index.hosts
        self.counts.deferred = self.index.deferred.hosts
        self.counts.most = self.index.hosts_most
        self.counts.cut_at = now
        self._epochs.put("meta", FRONTIER_COUNTS, msgspec.msgpack.encode(self.counts))
        self.strategy.cut(now)

    # ---- inside

    def _lease(self, host: Host, now: float) -> Lease | None:
        if host.place is not None and host.located_until <= now and not host.address_unused:
            self._workbench.settle(host, None)
        place = host.place
        address = place.address if place is not None else ""
        lease: Lease
        if host.prerequisites is not None:
            prerequisite = host.next_prerequisite()
            url = prerequisite.url
            lease = PrerequisiteLease(host, url, key_of(url), address, prerequisite=prerequisite)
        elif host.parked or (self._budgets is not None and self._budgets.verdict(host)):
            return None
        else:
            found = self._queues.next(host, now)
            if host.record.origins is not None:
                self.hosts.touch(host)
            if found is None:
                return None
            item = found.item
            lease = VisitLease(host, item.url, found.origin, address, visit=item)
            if found.refusal or found.is_probe:
                lease.refusal = found.refusal
                lease.is_probe = found.is_probe
                host.probing = {found.origin, *(host.probing or ())} if found.is_probe else host.probing
            host.leased += 1
            host.turns += 1
            host.revisits_leased += item.revisit
            self._leased.add(item.url.fingerprint)
            if self._budgets is not None:
                self._budgets.count_leased(host, 1)
        host.out += 1
        if place is not None:
            lease.place = place
            lease.site = host.site if self._workbench.has_sites else None
            self._workbench.occupy(place, lease.site)
        if host.out < host.most and place is not None:
            self.scheduler.schedule(host, now)  # Otherwise it gets no turn until this lease is returned.
        return lease

    def _take_back(self, lease: VisitLease) -> QueuedUrl:
        """Note that a lease's URL was returned; return the URL."""
        assert not lease.is_finished, "a URL was returned twice"
        lease.is_finished = True
        lease.host.leased -= 1
        lease.host.revisits_leased -= lease.visit.revisit
        self._leased.discard(lease.url.fingerprint)
        if self._budgets is not None:
            self._budgets.count_leased(lease.host, -1)
        return lease.visit
