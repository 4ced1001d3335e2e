"""Frontier: takes links, lends visits, takes them back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.frontier.bench import Bench
from gossamer.frontier.facts import facts_of
from gossamer.frontier.health import settle
from gossamer.frontier.host import Host, Item, Lease
from gossamer.frontier.hosts import Hosts
from gossamer.frontier.index import HostIndex
from gossamer.frontier.options import FrontierOptions
from gossamer.frontier.politeness import SAMPLES, Politeness
from gossamer.frontier.queues import NEVER, Queues
from gossamer.frontier.record import LEVELS, Entry
from gossamer.model.links import Link
from gossamer.model.visits import Again, Contact, Errand, HostFacts
from gossamer.state.contacts import Contacts, Rest
from gossamer.state.epoch import Epochs
from gossamer.state.store import META_PARTITION, Store
from gossamer.url.url import Url
from gossamer.world.dice import Dice

COUNTS_KEY = META_PARTITION + b"frontier"


class Counts(msgspec.Struct):
    """`discovered = pending + the sum of terminal` at every commit; `pending` is what is queued or under way."""

    discovered: int = 0
    pending: int = 0
    terminal: dict[str, int] = msgspec.field(default_factory=dict)
    hosts: int = 0
    """Hosts with a record."""


class Frontier:
    """Promises: what is added is lent, once, until it is finished; never two requests at once to a host or address
    beyond what politeness allows, never one early, also after a crash; nothing added is lost.

    A lease's life: `select` → (`locate` and back, when its host must be looked up) → `begin` → `ended` → `finish` or
    `retry`; or `give_back` instead of the last two. Time is given with each call.
    """

    def __init__(
        self,
        store: Store,
        epochs: Epochs,
        contacts: Contacts,
        politeness: Politeness,
        options: FrontierOptions,
        name_url: Callable[[str], Url | None],
        dice: Dice,
        now: float,
    ) -> None:
        self.politeness = politeness
        self._epochs = epochs
        self._contacts = contacts
        self._options = options
        self._name_url = name_url
        self._dice = dice
        is_new = contacts.recovered.missing and not store.epoch
        if contacts.recovered.missing and not is_new:
            contacts.lost(now)
        self._hosts = Hosts(epochs, politeness, contacts.recovered, options.records_cached_max)
        self._queues = Queues(epochs, dice, options.level_bias, options.window_urls_max)
        self._index = HostIndex(epochs, dice)
        self._bench = Bench(politeness.per_address)
        self._weights = [options.level_bias ** (LEVELS - 1 - level) for level in range(LEVELS)]
        self._benched: dict[str, Host] = {}
        self._resumed_at = 0.0 if is_new else now
        counts = store.get("meta", COUNTS_KEY)
        self.counts = Counts() if counts is None else msgspec.msgpack.decode(counts, type=Counts)
        self._lent: set[int] = set()
        self.under_way = 0
        """Leases with an address that are not ended."""
        for partition, name in self._index.load(store):
            self._resume(self._hosts.get(name, partition), now)

    @property
    def benched(self) -> int:
        """Hosts in memory with work."""
        return len(self._benched)

    # ---- links in

    def add(self, link: Link, level: int, now: float) -> None:
        """Queue a URL that was not seen before. About 3 µs."""
        self.counts.discovered += 1
        self._enqueue(_entry_of(link), link.url, level, now)

    def _enqueue(self, entry: Entry, url: Url, level: int, now: float) -> None:
        host = self._hosts.get(url.host, url.partition)
        if host.record.closed:
            self._count("host_closed", 1)
            return
        self.counts.pending += 1
        self._queues.append(host, level, entry)
        self._hosts.touch(host)
        self._bring(host, level, now)

    def retry(self, lease: Lease, again: Again, now: float) -> None:
        """Let a lent URL wait and be lent again: another attempt, or the next hop of a redirect within one key."""
        host, item = lease.host, self._returned(lease)
        old = item.entry
        entry = Entry(
            again.url.text, old.depth, again.hops, old.link_type, old.referrer, again.attempt, old.seed, again.error
        )
        target = host if again.url.host == host.name else self._hosts.get(again.url.host, again.url.partition)
        self._queues.finish(host, item)
        self._hosts.touch(host)
        if target.record.closed:
            self._count_end("host_closed")
        else:
            self._queues.put_due(target, entry, again.at, again.url.fingerprint)
            self._hosts.touch(target)
            self._bring(target, 0, now)
        self._schedule(host, now)

    # ---- visits out

    def select(self, now: float) -> Lease | None:
        """Lend the visit whose turn it is, or None when no gate is open before `wake_at`."""
        while True:
            if len(self._benched) < self._options.bench_hosts_max:
                self._fill_bench(now)  # Each time: a host that turns out to have nothing now makes room for another.
            host = self._bench.take(now)
            if host is None:
                return None
            lease = self._lend(host, now)
            if lease is not None:
                return lease
            self._schedule(host, now)

    def wake_at(self) -> float | None:
        """Return when `select` may have something again; None when only the end of a visit can bring it."""
        instants = [at for at in (self._bench.next_at(), self._next_wake_at()) if at is not None]
        return min(instants) if instants else None

    def locate(self, lease: Lease, address: str, until: float, now: float) -> None:
        """Give back a lease that lacked an address, now that its host's is known; it is lent again in its turn."""
        fingerprint = xxh3_64_intdigest(address.encode())
        rest_until = self._contacts.recovered.addresses.get(fingerprint, 0.0)
        if self._resumed_at:
            rest_until = max(rest_until, self._resumed_at + self.politeness.address_delay_s)
        self._bench.settle(lease.host, self._bench.place(address, fingerprint, rest_until))
        lease.host.located_until = until
        self.give_back(lease, now)

    def begin(self, lease: Lease, now: float) -> bool:
        """Note that the request goes out now; survives the death of the process.

        False when the host's gate closed since the visit was lent (another of its requests ended with Retry-After, or
        it was closed): the lease is to be given back.
        """
        assert lease.place is not None
        record = lease.host.record
        if record.closed or record.rest_until > now:
            return False
        with_this_one = [*record.fetches_s[1 - SAMPLES :], 0.0]
        longest_s = self.politeness.longest_rest_s(record.crawl_delay_s)
        rest = Rest(
            # Others of its requests that end meanwhile change the mean.
            self.politeness.rest_s(with_this_one, record.crawl_delay_s) if self.politeness.per_host == 1 else longest_s,
            self.politeness.rest_growth(len(with_this_one)),
            longest_s,
        )
        lease.ticket = self._contacts.begin(lease.host.fingerprint, lease.place.fingerprint, now, rest)
        return True

    def ended(self, lease: Lease, contact: Contact | None, now: float) -> None:
        """Give the gates back. `contact` is None when no request was made."""
        assert not lease.is_ended, "a lease was given back twice"
        lease.is_ended = True
        host, place = lease.host, lease.place
        host.out -= 1
        if contact is not None:
            settle(host.record, contact, now, self.politeness, self._options, self._dice.uniform(0.0, 1.0))
            if contact.kind == "failed":
                host.located_until = 0.0  # Another of its addresses may answer.
            self._hosts.touch(host)
        if place is not None:
            self.under_way -= 1
            rest_until = now + self.politeness.address_delay_s if contact is not None else 0.0
            if lease.ticket >= 0:
                self._contacts.end(
                    lease.ticket, host.fingerprint, place.fingerprint, host.record.rest_until, rest_until
                )
                lease.ticket = -1
            self._bench.release(place, rest_until)
            lease.place = None
        if host.record.closed:
            self._close(host, now)
        self._schedule(host, now)

    def finish(self, lease: Lease, outcome: str, now: float) -> None:
        """Take a lent URL off its queue for good, with this epoch."""
        host = lease.host
        self._queues.finish(host, self._returned(lease))
        self._count_end(outcome)
        self._hosts.touch(host)
        self._schedule(host, now)

    def give_back(self, lease: Lease, now: float) -> None:
        """Take a lease back as if it had not been lent: no request was made."""
        host = lease.host
        if lease.item is not None:
            item = self._returned(lease)
            if not host.record.closed:
                host.window.appendleft(item)
            else:
                self._queues.finish(host, item)
                self._count_end("host_closed")
                self._hosts.touch(host)
        if lease.errand is not None:
            host.errands.appendleft(lease.errand)
        self.ended(lease, None, now)

    # ---- what is asked of a host from outside

    def run_errand(self, errand: Errand, now: float) -> bool:
        """Have a request made that no queue holds, through the gates of its host; False when that host is closed."""
        host = self._hosts.get(errand.url.host, errand.url.partition)
        if host.record.closed:
            return False
        host.errands.append(errand)
        self._activate(host, now)
        self._schedule(host, now)
        return True

    def park(self, url: Url, now: float) -> None:
        """Lend nothing of a host but errands: it waits for its robots.txt."""
        host = self._hosts.get(url.host, url.partition)
        host.parked = True
        self._schedule(host, now)

    def unpark(self, url: Url, now: float) -> None:
        """Lend a host's URLs again."""
        host = self._hosts.get(url.host, url.partition)
        host.parked = False
        if host.record.queued:
            self._bring(host, 0, now)
        self._schedule(host, now)

    def rest(self, url: Url, until: float, reason: str, now: float) -> None:
        """Leave a host alone until an instant."""
        host = self._hosts.get(url.host, url.partition)
        host.record.reason = reason
        self._prolong(host, until)
        self._schedule(host, now)

    def set_crawl_delay(self, url: Url, delay_s: float | None, now: float) -> None:
        """Obey a Crawl-delay; one that is too long closes the host.

        It counts from now: that of robots.txt itself was a request too, and ended a moment ago.
        """
        host = self._hosts.get(url.host, url.partition)
        record = host.record
        if record.crawl_delay_s == delay_s:
            return
        record.crawl_delay_s = delay_s
        self._hosts.touch(host)
        if delay_s is not None and delay_s > self.politeness.crawl_delay_s_max:
            self.close(url, f"its Crawl-delay of {delay_s:.0f} s is more than we wait", now)
            return
        self._prolong(host, now + (delay_s or 0.0))
        self._schedule(host, now)

    def close(self, url: Url, reason: str, now: float) -> None:
        """End all URLs of a host, those to come included, with the outcome `host_closed`."""
        host = self._hosts.get(url.host, url.partition)
        host.record.closed = reason
        self._hosts.touch(host)
        self._close(host, now)
        self._schedule(host, now)

    def facts(self, url: Url) -> HostFacts:
        """Return what is known of a URL's host, for `why`."""
        return facts_of(self._epochs, url, self._hosts.get(url.host, url.partition))

    def lent(self, url: Url) -> bool:
        """Say whether a URL is in somebody's hands now."""
        return url.fingerprint in self._lent

    def next_turn(self) -> tuple[float, str] | None:
        """Return when the next host may be asked, and which and why not before; for `status` when nothing happens."""
        hosts = [host for host in self._benched.values() if host.turn_at is not None]
        if not hosts:
            wake_at = self._index.next_wake_at()
            return (wake_at, "a sleeping host") if wake_at is not None else None
        first = min(hosts, key=lambda host: host.turn_at or 0.0)
        return first.turn_at or 0.0, f"{first.name} ({first.record.reason or 'politeness'})"

    # ---- the epoch

    def cut(self, now: float) -> None:
        """Give the open epoch all that changed: records, new URLs, counts."""
        for host in self._hosts.cut():
            self._queues.cut(host)
            self.counts.hosts += host.is_new
            host.is_new = False
        self._bench.forget_rested(now)
        self._epochs.put("meta", COUNTS_KEY, msgspec.msgpack.encode(self.counts))

    # ---- inside

    def _lend(self, host: Host, now: float) -> Lease | None:
        if host.place is not None and host.located_until <= now:
            self._bench.settle(host, None)
        errand = host.errands.popleft() if host.errands else None
        item = None if errand is not None or host.parked else self._next_item(host, now)
        if errand is None and item is None:
            return None
        url = errand.url if errand is not None else self._name_url(item.entry.url) if item is not None else None
        assert url is not None
        place = host.place
        lease = Lease(host, item, errand, url, place.address if place is not None else "")
        host.out += 1
        if item is not None:
            host.lent += 1
            self._lent.add(url.fingerprint)
        if place is not None:
            lease.place = place
            self.under_way += 1
            self._bench.occupy(place)
        self._schedule(host, now)
        return lease

    def _prolong(self, host: Host, until: float) -> None:
        """Let a host rest for longer than its last request said; survives the death of the process."""
        self._hosts.touch(host)
        if until > host.record.rest_until:
            host.record.rest_until = until
            self._contacts.prolong(host.fingerprint, until)

    def _returned(self, lease: Lease) -> Item:
        """Note that a lease's URL came back."""
        assert lease.item is not None, "an errand has no URL to give back"
        assert not lease.is_finished, "a URL was given back twice"
        lease.is_finished = True
        lease.host.lent -= 1
        self._lent.discard(lease.url.fingerprint)
        return lease.item

    def _next_item(self, host: Host, now: float) -> Item | None:
        if not host.window or (host.record.due and host.due_next <= now):
            self._queues.refill(host, now)
        return host.window.popleft() if host.window else None

    def _schedule(self, host: Host, now: float) -> None:
        """Give a host on the bench its next turn, or let it leave when it has none for long."""
        if not host.on_bench:
            return
        if host.out >= (self.politeness.per_host if host.place is not None else 1):
            self._bench.withdraw(host)
            return
        record = host.record
        at: float | None = None
        if host.errands or (not host.parked and (host.window or self._queues.has_unread(host))):
            at = record.rest_until
        elif record.due and host.due_next < NEVER and not (host.parked or record.closed):
            at = max(record.rest_until, host.due_next)
        if at is None:
            self._bench.withdraw(host)
            if not (host.out or host.parked or record.queued):
                self._retire(host)
                self._index.leave(host)
                self._hosts.touch(host)
        elif at - now > self._options.sleep_s_min and not (host.out or host.lent or host.errands or host.parked):
            self._retire(host)
            self._index.enter_sleep(host, at)
            self._hosts.touch(host)
        elif host.turn_at != at:
            self._bench.offer(host, at)

    def _bring(self, host: Host, level: int, now: float) -> None:
        """See that a host with new work is on the bench or in the index."""
        if host.on_bench:
            if host.turn_at is None or host.turn_at > host.record.rest_until:
                self._schedule(host, now)
        elif host.record.rest_until - now > self._options.sleep_s_min:
            if not host.record.index_key or self._index.sleeps_past(host, host.record.rest_until):
                self._index.enter_sleep(host, host.record.rest_until)
                self._hosts.touch(host)
        elif self.benched < self._options.bench_hosts_max:
            self._activate(host, now)
        elif host.record.index_family != "ready" or level < host.record.index_key[2]:
            self._index.enter_ready(host, level)
            self._hosts.touch(host)

    def _fill_bench(self, now: float) -> None:
        while self.benched < self._options.bench_hosts_max:
            found = self._index.wake(now) or self._index.draw(self._weights)
            if found is None:
                return
            self._activate(self._hosts.get(found[1], found[0]), now)

    def _activate(self, host: Host, now: float) -> None:
        if host.on_bench:
            return
        host.on_bench = True
        self._benched[host.name] = host
        self._index.enter_bench(host)
        self._hosts.touch(host)
        self._bench.settle(host, host.place)
        self._schedule(host, now)

    def _resume(self, host: Host, now: float) -> None:
        """Put a host back that was on the bench when the process before us ended."""
        self._hosts.touch(host)
        if host.record.closed:
            self._close(host, now)
        elif self.benched < self._options.bench_hosts_max:
            self._activate(host, now)
        elif host.record.queued:
            self._index.enter_ready(host, min(host.record.levels, default=0))
        else:
            self._index.leave(host)  # It was there for an errand, and that is forgotten.

    def _retire(self, host: Host) -> None:
        host.on_bench = False
        self._benched.pop(host.name, None)
        if not host.lent:
            self._queues.forget_window(host)
        self._bench.settle(host, None)

    def _close(self, host: Host, now: float) -> None:
        errands, host.errands = host.errands, deque()
        host.parked = False
        for errand in errands:
            self.unpark(errand.origin, now)  # Whoever waited asks again, and is told that this host is closed.
        if not host.on_bench:
            self._index.leave(host)
        dropped = self._queues.clear(host)
        self.counts.pending -= dropped
        if dropped:
            self._count("host_closed", dropped)

    def _count_end(self, outcome: str) -> None:
        self.counts.pending -= 1
        self._count(outcome, 1)

    def _count(self, outcome: str, urls: int) -> None:
        self.counts.terminal[outcome] = self.counts.terminal.get(outcome, 0) + urls

    def _next_wake_at(self) -> float | None:
        if self.benched >= self._options.bench_hosts_max:
            return None
        return 0.0 if self._index.has_ready else self._index.next_wake_at()


def _entry_of(link: Link) -> Entry:
    return Entry(link.url.text, link.depth, link.hops, link.link_type, link.referrer, seed=link.seed)
