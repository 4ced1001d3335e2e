"""The frontier against a model, under a clock of our own: any order of events, deaths included.

The model is the world outside: it knows which requests it saw and when, and which URLs were handed in. Whatever it
asserts is a promise of `Frontier`. GOSSAMER_EXAMPLES=1000 looks further, at random.
"""

from __future__ import annotations

import copy
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from gossamer.model.links import Prerequisite, RevisitPlan
from gossamer.model.visits import Contact
from gossamer.stages.frontier.host import Lease, PrerequisiteLease, VisitLease
from gossamer.stages.frontier.options import BudgetOptions, PolitenessOptions
from gossamer.stages.frontier.origins import key_of
from tests.stages.frontier.disk import check_disk
from tests.stages.frontier.names import T0, Shard, linked, named

pytestmark = pytest.mark.promise(
    "Politeness", "No order of events, crashes included, makes a request to a host, an address or a site early."
)

DEEP = "GOSSAMER_EXAMPLES" in os.environ
SITES = {f"h{number}.{site}.test": f"{site}.test" for number, site in enumerate("aaabbcd")}
"""Registrable domain by host: one has three hosts, one two."""
HOSTS = list(SITES)
ORIGINS = ("http://{}/", "http://{}/", "https://{}/", "http://{}:81/", "https://{}:444/")
"""Of each host; most pages are of one of them."""
ADDRESSES = [f"10.0.0.{number}" for number in range(3)]
LEVELS = (0, 3, 7)
EPSILON = 1e-6
DRAIN_STEPS_MAX = 3000
OPTIONS = {
    "active_hosts_max": 3,
    "active_site_hosts_first": 2,
    "window_urls_max": 2,
    "records_cached_max": 2,
    "sleep_s_min": 5.0,
    "host_failures_max": 2,
    "host_sleep_s_first": 7.0,
    "host_sleep_s_max": 30.0,
    "host_sleeps_max": 2,
    "retry_s_first": 6.0,
    "retry_s_max": 20.0,
    "unanswered_s_max": 40.0,
    "errors_remembered_s": 150.0,
}


@dataclass
class Queued:
    """A URL as whoever handed it in sees it."""

    host: str
    level: int
    state: str = "pending"
    """pending, lent, or how it ended."""
    due: float = 0.0
    attempt: int = 1


@dataclass
class Health:
    """What an origin answered."""

    answered: bool = False
    failures: int = 0
    sleeps: int = 0
    first_failed_at: float = 0.0
    wait_until: float = 0.0
    closed: bool = False


@dataclass
class Felt:
    """What a host felt, as far as it is remembered with the epoch."""

    fetches_s: list[float] = field(default_factory=list)
    crawl_delay_s: float | None = None
    backoffs: int = 0
    closed: bool = False
    origins: dict[str, Health] = field(default_factory=dict)


@dataclass
class Remembered:
    """What a commit keeps."""

    urls: dict[str, Queued] = field(default_factory=dict)
    felt: dict[str, Felt] = field(default_factory=lambda: {host: Felt() for host in HOSTS})
    ordered: dict[str, dict[int, list[str]]] = field(default_factory=lambda: {host: {} for host in HOSTS})
    spent: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Requests for URLs by budget round and host, and by round and site."""
    answers: int = 0


class FrontierMachine(RuleBasedStateMachine):
    asked = PolitenessOptions(preset="polite", backoff_s_first=4.0, crawl_delay_s_max=40.0, retry_after_s_max=90.0)
    active_hosts_first = 1000
    budget: BudgetOptions | None = None

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.now = T0
        self.boot = 0
        self.made = 0
        self.known = Remembered()
        self.cut_known: Remembered | None = None
        self.durable = Remembered()
        self.leases: list[Lease] = []
        """Lent and not ended."""
        self.begun: dict[int, float] = {}
        """By the lease's id."""
        self.unfinished: list[Lease] = []
        """Ended, with a URL that is not given back."""
        self.parked: set[str] = set()
        self.prerequisites: dict[str, list[str]] = {host: [] for host in HOSTS}
        """Origins that wait for a prerequisite at a host."""
        self.host_not_before = dict.fromkeys(HOSTS, 0.0)
        """The rest that our own reckoning promises, counted from what the host felt: no death shortens it."""
        self.host_asked_until = dict.fromkeys(HOSTS, 0.0)
        """Retry-After, back-off, sleeps and Crawl-delay: no death of the process shortens it."""
        self.address_not_before = dict.fromkeys(ADDRESSES, 0.0)
        self.site_not_before = dict.fromkeys(SITES.values(), 0.0)
        self.located_until = dict.fromkeys(HOSTS, 0.0)
        """How long the address that was found may be used."""
        self.address_unused: set[str] = set()
        """Hosts looked up and not requested since: an address serves one request, however short its TTL."""
        self.last_end = dict.fromkeys(HOSTS, 0.0)
        self.disordered: set[str] = set()
        self.troubled: set[str] = set()
        """Hosts of which an origin failed, or may be set aside for another reason: others overtake its URLs."""
        self.steps_since_crash = 0
        self.dice = random.Random(1)

    @initialize(seed=st.integers(0, 1000))
    def start(self, seed: int) -> None:
        self.shard = Shard(
            self.directory, self.asked, seed, self.budget, active_hosts_first=self.active_hosts_first, **OPTIONS
        )
        self.frontier = self.shard.open(self.now, bytes([self.boot]) * 16)
        self.politeness = self.shard.rules
        self.dice = random.Random(seed)

    def teardown(self) -> None:
        try:
            if hasattr(self, "frontier") and sys.exc_info()[0] is None:
                self.drain()
        finally:
            if hasattr(self, "frontier"):
                self.shard.crash()
            shutil.rmtree(self.directory)

    # ---- links in

    @rule(
        host=st.sampled_from(HOSTS),
        level=st.sampled_from(LEVELS),
        count=st.sampled_from([1, 1, 2, 5]),
        origins=st.lists(st.sampled_from(ORIGINS), min_size=1, max_size=3),
    )
    def add(self, host: str, level: int, count: int, origins: list[str]) -> None:
        for number in range(count):
            self.made += 1
            origin = origins[number % len(origins)]
            text = origin.format(host) + str(self.made)
            if ":" in key_of(named(text)):
                self.troubled.add(host)
            queued = self.known.urls[text] = Queued(host, level)
            self.frontier.add(linked(text), level, self.now)
            if self.known.felt[host].closed:
                queued.state = "host_closed"
            else:
                self.known.ordered[host].setdefault(level, []).append(text)

    # ---- visits out

    @rule()
    def select(self) -> None:
        self.take()

    def take(self) -> Lease | None:
        lease = self.frontier.select(self.now)
        if lease is None:
            self.check_wake_at()
            return None
        host = lease.url.host
        out = [other for other in self.leases if other.url.host == host]
        # What is asked of the resolver is no request.
        at_once = 1 if self.known.felt[host].crawl_delay_s else self.politeness.per_host
        assert len(out) < at_once or not lease.address
        assert lease.address or lease.refusal or all(other.address for other in out), (
            "a host is looked up once at a time"
        )
        if lease.address:
            self.check_gates(host, lease.address)
        assert not self.known.felt[host].closed
        if isinstance(lease, VisitLease):
            self.check_origin(lease)
            self.check_turn(lease)
            if lease.refusal:
                self.frontier.ended(lease, None, self.now)
                self.frontier.finish(lease, "host_closed", self.now)
                self.known.urls[lease.url.text].state = "host_closed"
                return self.take()
        else:
            self.prerequisites[host].remove(lease.prerequisite.origin.host)
        self.leases.append(lease)
        return lease

    def health(self, host: str, key: str) -> Health:
        return self.known.felt[host].origins.setdefault(key, Health())

    def check_origin(self, lease: Lease) -> None:
        """An origin that fails is requested in its time, one URL at once; one that was given up is not."""
        host, key = lease.url.host, key_of(lease.url)
        is_new = key not in self.known.felt[host].origins
        health = self.health(host, key)
        if health.closed and self.now >= health.wait_until:
            health.closed, health.failures, health.sleeps, health.first_failed_at = False, 0, 0, 0.0
        if ":" in key and is_new:
            health.wait_until = self.now
        assert bool(lease.refusal) == health.closed
        if not health.closed:
            assert self.now >= health.wait_until - EPSILON
            assert lease.is_probe == bool(health.wait_until)
            probes = [other for other in self.leases if other.is_probe and other.url.host == host]
            assert key not in [key_of(other.url) for other in probes]

    def check_gates(self, host: str, address: str) -> None:
        assert self.now >= self.free_at(host) - EPSILON
        assert self.now < self.located_until[host] or host in self.address_unused
        if self.politeness.per_address:
            assert sum(other.address == address for other in self.leases) < self.politeness.per_address
            assert self.now >= self.address_not_before[address] - EPSILON
        if self.politeness.per_site:
            site = SITES[host]
            assert sum(bool(o.address) and SITES[o.url.host] == site for o in self.leases) < self.politeness.per_site
        assert self.now >= self.site_not_before[SITES[host]] - EPSILON

    def free_at(self, host: str) -> float:
        return max(self.host_not_before[host], self.host_asked_until[host])

    def check_turn(self, lease: Lease) -> None:
        text, host = lease.url.text, lease.url.host
        queued = self.known.urls[text]
        assert queued.state == "pending"
        assert host not in self.parked
        assert self.now >= queued.due
        assert lease.visit.attempt == queued.attempt
        if not queued.due and host not in self.disordered | self.troubled:
            waiting = [
                other
                for other in self.known.ordered[host][queued.level]
                if self.known.urls[other].state == "pending" and not self.known.urls[other].due
            ]
            assert waiting[0] == text, "first in, first out"
        queued.state = "lent"

    def check_wake_at(self) -> None:
        """`select` gave nothing: either a later instant is named, or only an event from outside can bring something."""
        wake_at = self.frontier.wake_at()
        if wake_at is not None:
            assert wake_at > self.now
            self.check_nobody_waits_longer(wake_at)
        elif not (self.leases or self.unfinished or self.parked):
            assert not [text for text, queued in self.known.urls.items() if queued.state == "pending"]

    def check_nobody_waits_longer(self, wake_at: float) -> None:
        """Who is on the bench with a URL that may be fetched has the turn that the gates allow, not a later one."""
        if self.leases or self.budget is not None:
            return
        waiting = {
            queued.host
            for text, queued in self.known.urls.items()
            if queued.state == "pending" and not queued.due and self.is_well(queued.host, key_of(named(text)))
        }
        for name in waiting - self.parked:
            host = self.frontier.hosts.get(name, named(f"http://{name}/").partition)
            if host.record.index_family == "sleep":
                wakes_at = int.from_bytes(host.record.index_key[2:10]) / 1e6
                assert wakes_at <= host.record.delay_until + EPSILON, "what answers does not wait for what does not"
        for host in self.frontier.scheduler.active.values():
            if host.name in waiting and not host.parked:
                gates = [gate.delay_until for gate in (host.record, host.place, host.site) if gate is not None]
                assert wake_at <= max(gates) + EPSILON

    def is_well(self, host: str, key: str) -> bool:
        health = self.known.felt[host].origins.get(key)
        return health is None or not (health.wait_until or health.closed)

    def some(self, leases: list[Lease], choice: float) -> Lease:
        return leases[int(choice * len(leases))]

    @precondition(lambda self: any(not lease.address for lease in self.leases))
    @rule(
        choice=st.floats(0, 0.999),
        address=st.sampled_from(ADDRESSES),
        lasts_s=st.sampled_from([0.5, 20.0, 1e6]),
        found=st.sampled_from([True, True, True, False]),
    )
    def locate(self, choice: float, address: str, lasts_s: float, found: bool) -> None:
        lease = self.some([lease for lease in self.leases if not lease.address], choice)
        self.leases.remove(lease)
        if found:
            self.returned(lease)
            self.located_until[lease.url.host] = self.now + lasts_s
            self.address_unused.add(lease.url.host)
            self.frontier.locate(lease, address, self.now + lasts_s, self.now)
        else:
            self.frontier.ended(lease, Contact(0.0, "failed", error="no such name"), self.now)
            self.feel(lease, Contact(0.0, "failed"), None)
            self.charge(lease)
            self.after(lease)

    @precondition(lambda self: any(lease.address and id(lease) not in self.begun for lease in self.leases))
    @rule(choice=st.floats(0, 0.999))
    def begin(self, choice: float) -> None:
        lease = self.some([lease for lease in self.leases if lease.address and id(lease) not in self.begun], choice)
        self.send(lease)

    def send(self, lease: Lease) -> bool:
        """Send the request, unless the host's gate has closed since it was lent: then give it back."""
        host = lease.url.host
        if self.frontier.begin(lease, self.now):
            assert not self.known.felt[host].closed
            assert self.now >= self.free_at(host) - EPSILON
            self.begun[id(lease)] = self.now
            self.address_unused.discard(host)
            return True
        self.leases.remove(lease)
        self.returned(lease)
        self.disordered.add(host)
        self.frontier.return_lease(lease, self.now)
        return False

    @precondition(lambda self: self.begun)
    @rule(
        choice=st.floats(0, 0.999),
        fetch_s=st.sampled_from([0.0, 0.01, 0.3, 4.0, 30.0]),
        kind=st.sampled_from(["answered", "answered", "answered", "busy", "failed", "left"]),
        retry_after_s=st.sampled_from([None, None, 3.0, 60.0, 91.0]),
    )
    def end(self, choice: float, fetch_s: float, kind: str, retry_after_s: float | None) -> None:
        lease = self.some([lease for lease in self.leases if id(lease) in self.begun], choice)
        self.now = max(self.now, self.begun[id(lease)] + fetch_s)
        self.leases.remove(lease)
        contact = Contact(
            self.now - self.begun.pop(id(lease)),
            kind,  # type: ignore[arg-type]
            retry_after_s if kind == "busy" else None,
        )
        self.frontier.ended(lease, contact, self.now)
        self.feel(lease, contact, lease.address)
        self.charge(lease)
        self.after(lease)

    @precondition(lambda self: any(lease.address and id(lease) not in self.begun for lease in self.leases))
    @rule(choice=st.floats(0, 0.999), back=st.booleans())
    def make_no_request(self, choice: float, back: bool) -> None:
        lease = self.some([lease for lease in self.leases if lease.address and id(lease) not in self.begun], choice)
        self.leases.remove(lease)
        if back:
            self.returned(lease)
            if self.politeness.per_host > 1:
                self.disordered.add(lease.url.host)
            self.frontier.return_lease(lease, self.now)
        else:
            self.frontier.ended(lease, None, self.now)
            self.after(lease)

    def returned(self, lease: Lease) -> None:
        if isinstance(lease, VisitLease):
            queued = self.known.urls[lease.url.text]
            queued.state = "host_closed" if self.known.felt[queued.host].closed else "pending"
        elif self.known.felt[lease.url.host].closed:
            self.parked.discard(lease.prerequisite.origin.host)
        else:
            self.prerequisites[lease.url.host].append(lease.prerequisite.origin.host)

    def charge(self, lease: Lease) -> None:
        """A request for a URL was made: nobody takes more than a round's budget, however many are out at once."""
        if self.budget is None or isinstance(lease, PrerequisiteLease):
            return
        host = lease.url.host
        number = self.frontier.ledger.round
        spent = self.known.spent
        for name, most in ((host, self.budget.host_pages), (SITES[host], self.budget.site_pages)):
            spent[number, name] += 1
            assert most is None or spent[number, name] <= most

    def after(self, lease: Lease) -> None:
        """The gates are given back; the URL still has to be."""
        assert lease.is_ended
        if isinstance(lease, VisitLease):
            assert not lease.is_finished
            self.unfinished.append(lease)

    @precondition(lambda self: self.unfinished)
    @rule(
        choice=st.floats(0, 0.999),
        outcome=st.sampled_from(["fetched", "fetched", "http_error", "again", "again"]),
        wait_s=st.sampled_from([0.0, 1.0, 4.0, 12.0, 200.0]),
    )
    def finish(self, choice: float, outcome: str, wait_s: float) -> None:
        lease = self.some(self.unfinished, choice)
        self.unfinished.remove(lease)
        queued = self.known.urls[lease.url.text]
        if outcome != "again":
            self.frontier.finish(lease, outcome, self.now)
            queued.state = outcome
        else:
            again = RevisitPlan(lease.url, self.now + wait_s, lease.visit.attempt + 1, 0, "error")
            self.frontier.retry(lease, again, self.now)
            queued.state = "host_closed" if self.known.felt[queued.host].closed else "pending"
            queued.due, queued.attempt = again.at, again.attempt
        assert lease.is_finished

    @rule(turns=st.integers(1, 12), seed=st.integers(0, 10_000))
    def work(self, turns: int, seed: int) -> None:
        """A while of a crawl's everyday: what is lent is looked up, asked for and given back, in some order."""
        dice = random.Random(seed)
        for _ in range(turns):
            lease = self.take() if len(self.leases) < 5 else None
            if lease is None and not self.leases:
                self.wait_until_wake_at()
            if any(not lease.address for lease in self.leases):
                self.locate(dice.random(), dice.choice(ADDRESSES), dice.choice([5.0, 1e6]), dice.random() < 0.95)
            for lease in list(self.leases):
                if lease.address and id(lease) not in self.begun:
                    self.send(lease)
            if self.begun and dice.random() < 0.7:
                kind = dice.choices(["answered", "busy", "failed"], [8, 1, 1])[0]
                self.end(dice.random(), dice.choice([0.01, 0.1, 2.0]), kind, dice.choice([None, 5.0]))
            if self.unfinished and dice.random() < 0.8:
                self.finish(dice.random(), dice.choice(["fetched", "fetched", "again"]), dice.choice([0.0, 20.0]))

    # ---- what the host felt

    def feel(self, lease: Lease, contact: Contact, address: str | None) -> None:
        host = lease.url.host
        felt, rules = self.known.felt[host], self.politeness
        is_delayed = max(self.host_not_before[host], self.host_asked_until[host]) > self.now
        health = self.health(host, key_of(lease.url))
        if contact.fetch_s and (contact.kind != "failed" or health.answered):
            felt.fetches_s = [*felt.fetches_s, contact.fetch_s][-5:]
        if address is not None:
            self.address_not_before[address] = self.now + rules.address_delay_s
            self.site_not_before[SITES[host]] = self.now + rules.site_delay_s
            self.last_end[host] = self.now
            self.host_not_before[host] = max(self.host_not_before[host], self.now + self.delay_s(felt))
        asked_s = 0.0
        if contact.kind in ("answered", "busy"):
            self.known.felt[host].origins[key_of(lease.url)] = Health(answered=True)
            self.known.answers += 1
        if contact.kind == "answered":
            felt.backoffs = 0
        elif contact.kind == "busy":
            if not (felt.backoffs and is_delayed):
                felt.backoffs += 1
            asked_s = contact.retry_after_s or rules.backoff_s_first * 2 ** (felt.backoffs - 1)
            felt.closed = felt.closed or (asked_s > rules.retry_after_s_max and contact.retry_after_s is not None)
            asked_s = min(asked_s, rules.retry_after_s_max)  # It closes; a death may undo that, but not the rest.
        elif contact.kind == "failed":
            self.troubled.add(host)
            self.fail(health, is_robots=isinstance(lease, PrerequisiteLease) and lease.prerequisite.origin.host == host)
        self.host_asked_until[host] = max(self.host_asked_until[host], self.now + asked_s)
        self.close_urls(host)

    def fail(self, health: Health, *, is_robots: bool) -> None:
        """What becomes of an origin that failed, written anew."""
        if health.wait_until > self.now:
            return
        health.failures += 1
        health.first_failed_at = health.first_failed_at or self.now
        failed_s, wait_s = self.now - health.first_failed_at, 0.0
        if health.answered:
            if health.failures % OPTIONS["host_failures_max"]:
                return
            health.sleeps += 1
            health.closed = health.closed or health.sleeps > OPTIONS["host_sleeps_max"]
            wait_s = min(OPTIONS["host_sleep_s_first"] * 2 ** (health.sleeps - 1), OPTIONS["host_sleep_s_max"])
        elif (not self.known.answers or not is_robots) and health.failures >= 5:
            health.closed = True
        elif not is_robots:
            health.closed = health.closed or failed_s >= OPTIONS["unanswered_s_max"]
            wait_s = min(OPTIONS["retry_s_first"] * 2 ** (health.failures - 1), OPTIONS["retry_s_max"])
            wait_s = min(wait_s, max(OPTIONS["unanswered_s_max"] - failed_s, 0.0))
        if health.closed:
            wait_s = OPTIONS["errors_remembered_s"]
        health.wait_until = max(health.wait_until, self.now + wait_s)

    def delay_s(self, felt: Felt) -> float:
        """The presets' promise, written anew: a multiple of the mean of the last fetches, up to five, within bounds."""
        rules = self.politeness
        mean_s = sum(felt.fetches_s) / max(1, len(felt.fetches_s))
        return max(rules.delay_s_min, min(rules.delay_factor * mean_s, rules.delay_s_max), felt.crawl_delay_s or 0.0)

    def close_urls(self, host: str) -> None:
        if self.known.felt[host].closed:
            for queued in self.known.urls.values():
                if queued.host == host and queued.state == "pending":
                    queued.state = "host_closed"
            self.parked -= {host, *self.prerequisites[host]}
            self.prerequisites[host].clear()

    # ---- from outside

    @rule(origin=st.sampled_from(HOSTS), host=st.sampled_from(HOSTS))
    def run_prerequisite(self, origin: str, host: str) -> None:
        prerequisite = Prerequisite(named(f"http://{origin}/"), named(f"http://{host}/robots.txt"))
        closed, health = self.known.felt[host].closed, self.known.felt[host].origins.get("http", Health())
        delay_until = self.frontier.hosts.get(host, named(f"http://{host}/").partition).record.delay_until
        may = not closed and (host == origin or (health.wait_until <= self.now and delay_until <= self.now + 300.0))
        assert self.frontier.control.run_prerequisite(prerequisite, self.now) == may
        if may:
            self.prerequisites[host].append(origin)

    @rule(host=st.sampled_from(HOSTS))
    def park(self, host: str) -> None:
        self.frontier.control.park(named(f"http://{host}/"), self.now)
        self.parked.add(host)

    @precondition(lambda self: self.parked)
    @rule(choice=st.floats(0, 0.999))
    def unpark(self, choice: float) -> None:
        host = sorted(self.parked)[int(choice * len(self.parked))]
        self.frontier.control.unpark(named(f"http://{host}/"), self.now)
        self.parked.discard(host)

    @rule(host=st.sampled_from(HOSTS), origin=st.sampled_from(ORIGINS), wait_s=st.sampled_from([0.5, 8.0, 100.0]))
    def hold(self, host: str, origin: str, wait_s: float) -> None:
        url = named(origin.format(host))
        self.frontier.control.hold(url, self.now + wait_s, "because", self.now)
        if not self.known.felt[host].closed:
            health = self.health(host, key_of(url))
            health.wait_until = max(health.wait_until, self.now + wait_s)
            self.troubled.add(host)

    @rule(host=st.sampled_from(HOSTS), origin=st.sampled_from(ORIGINS))
    def release(self, host: str, origin: str) -> None:
        url = named(origin.format(host))
        self.frontier.control.release(url, self.now)
        health = self.known.felt[host].origins.get(key_of(url))
        if health is not None and not health.closed:
            health.wait_until = min(health.wait_until, self.now)

    @rule(host=st.sampled_from(HOSTS), delay_s=st.sampled_from([None, 3.0, 20.0, 41.0]))
    def set_crawl_delay(self, host: str, delay_s: float | None) -> None:
        felt = self.known.felt[host]
        changed, felt.crawl_delay_s = felt.crawl_delay_s != delay_s, delay_s
        self.frontier.control.set_crawl_delay(named(f"http://{host}/"), delay_s, self.now)
        too_long = (delay_s or 0) > self.politeness.crawl_delay_s_max
        if delay_s is not None and self.last_end[host] and not too_long:
            self.host_asked_until[host] = max(self.host_asked_until[host], self.last_end[host] + delay_s)
        if changed and too_long:
            felt.closed = True
            self.close_urls(host)

    @precondition(lambda self: self.made > 20)
    @rule(host=st.sampled_from(HOSTS))
    def close(self, host: str) -> None:
        self.frontier.control.close(named(f"http://{host}/"), "it asked for it", self.now)
        self.known.felt[host].closed = True
        self.close_urls(host)

    # ---- time, commits, deaths

    @rule(seconds=st.sampled_from([0.01, 0.5, 3.0, 30.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def wait_until_wake_at(self) -> None:
        wake_at = self.frontier.wake_at()
        if wake_at is not None:
            self.now = max(self.now, wake_at)

    @precondition(lambda self: self.cut_known is None)
    @rule()
    def cut(self) -> None:
        self.check_counts()
        self.shard.cut(self.now)
        self.cut_known = copy.deepcopy(self.known)

    @precondition(lambda self: self.cut_known is not None)
    @rule(crashes=st.sampled_from([False, False, False, True]))
    def commit(self, crashes: bool) -> None:
        assert self.cut_known is not None
        self.shard.commit()
        self.durable, self.cut_known = self.cut_known, None
        if crashes:
            self.die(False)
        else:
            self.shard.settle()

    @precondition(lambda self: self.cut_known is None)
    @rule()
    def commit_all(self) -> None:
        self.check_counts()
        self.shard.commit_all(self.now)
        self.durable = copy.deepcopy(self.known)
        check_disk(self.shard.store, self.frontier)

    @precondition(lambda self: self.made > self.steps_since_crash + 8)
    @rule(reboots=st.sampled_from([False, False, True]), away_s=st.sampled_from([0.0, 0.0, 2.0]))
    def crash(self, reboots: bool, away_s: float) -> None:
        self.die(reboots, away_s)

    def die(self, reboots: bool, away_s: float = 0.0) -> None:
        for lease in self.leases:
            if id(lease) in self.begun:
                # The host sees its connection end now, after a request as long as this.
                felt = copy.copy(self.known.felt[lease.url.host])
                # One that closed the host, in an epoch that is lost, is obeyed as the longest that we wait.
                felt.crawl_delay_s = felt.crawl_delay_s and min(felt.crawl_delay_s, self.politeness.crawl_delay_s_max)
                lasted_s = self.now - self.begun[id(lease)]
                felt.fetches_s = [*felt.fetches_s, lasted_s][-5:]
                delay_until = self.now + self.delay_s(felt)
                self.host_not_before[lease.url.host] = max(self.host_not_before[lease.url.host], delay_until)
                self.last_end[lease.url.host] = self.now
                self.address_not_before[lease.address] = self.now + self.politeness.address_delay_s
                self.site_not_before[SITES[lease.url.host]] = self.now + self.politeness.site_delay_s
        self.known, self.cut_known = copy.deepcopy(self.durable), None
        for queued in self.known.urls.values():
            if queued.state == "lent":
                queued.state = "host_closed" if self.known.felt[queued.host].closed else "pending"
        self.leases, self.begun, self.unfinished = [], {}, []
        self.prerequisites = {host: [] for host in HOSTS}
        self.parked, self.disordered, self.steps_since_crash = set(), set(), self.made
        if reboots:
            self.boot += 1
            # A request of the lost epoch is nowhere written; our own longest rest is all that can be kept.
            self.host_asked_until = dict.fromkeys(HOSTS, 0.0)
            for host in HOSTS:
                longest = self.politeness.longest_delay_s(self.known.felt[host].crawl_delay_s)
                self.host_not_before[host] = min(self.host_not_before[host], self.now + longest)
        self.shard.crash()
        self.now += away_s
        self.frontier = self.shard.open(self.now, bytes([self.boot]) * 16)
        check_disk(self.shard.store)

    @precondition(lambda self: self.cut_known is None and self.made > self.steps_since_crash + 4)
    @rule()
    def stop_and_reopen(self) -> None:
        """An orderly end: what was under way is given back, all is committed, and a new process goes on at once."""
        for lease in list(self.leases):
            self.conclude(lease)
        while self.unfinished:
            self.finish(0.0, "fetched", 0.0)
        self.commit_all()
        counts = copy.deepcopy(self.frontier.counts)
        self.die(False)
        assert self.frontier.counts == counts

    # ---- the end

    def check_counts(self) -> None:
        states = Counter("pending" if q.state == "lent" else q.state for q in self.known.urls.values())
        pending = states.pop("pending", 0)
        assert self.frontier.counts.pending == pending
        assert {name: count for name, count in self.frontier.counts.terminal.items() if count} == dict(states)
        assert self.frontier.counts.discovered == len(self.known.urls)

    def drain(self) -> None:
        """Let everything come to its end, as the corridor would."""
        if self.cut_known is not None:
            self.commit(crashes=False)
        for host in sorted(self.parked):
            self.frontier.control.unpark(named(f"http://{host}/"), self.now)
        self.parked.clear()
        for lease in list(self.leases):
            self.conclude(lease)
        while self.unfinished:
            self.finish(0.0, "fetched", 0.0)
        for _ in range(DRAIN_STEPS_MAX):
            lease = self.take()
            if lease is not None:
                self.conclude(lease)
                if self.unfinished:
                    self.finish(0.0, "fetched", 0.0)
                continue
            wake_at = self.frontier.wake_at()
            if wake_at is None:
                break
            self.now = wake_at
        else:
            raise AssertionError("it does not come to an end")
        self.check_counts()
        assert self.frontier.counts.pending == 0
        assert self.frontier.active_hosts == 0
        self.commit_all()
        assert not list(self.shard.store.scan("queue", b"\0\0", b"\xff\xff"))
        assert not list(self.shard.store.scan("ready", b"\0\0", b"\xff\xff"))
        assert not list(self.shard.store.scan("sleep", b"\0\0", b"\xff\xff"))
        assert not list(self.shard.store.scan("deferred", b"\0\0", b"\xff\xff"))

    def conclude(self, lease: Lease) -> None:
        if not lease.address:
            self.leases.remove(lease)
            self.returned(lease)
            self.located_until[lease.url.host] = self.now + 1e6
            self.address_unused.add(lease.url.host)
            self.frontier.locate(lease, self.dice.choice(ADDRESSES), self.now + 1e6, self.now)
            return
        if id(lease) not in self.begun and not self.send(lease):
            return
        started = self.begun.pop(id(lease))
        self.leases.remove(lease)
        self.now = max(self.now, started + 0.2)
        contact = Contact(self.now - started, "answered")
        self.frontier.ended(lease, contact, self.now)
        self.feel(lease, contact, lease.address)
        self.charge(lease)
        self.after(lease)


class OwnMachine(FrontierMachine):
    """Several requests at once to one host, and no gate per address."""

    asked = PolitenessOptions(preset="own", backoff_s_first=4.0, crawl_delay_s_max=40.0, retry_after_s_max=90.0)


class PairMachine(FrontierMachine):
    """Two at once, with a delay, and three per address: the host's own gate closes first."""

    asked = PolitenessOptions(
        preset="polite", per_host=2, per_address=3, backoff_s_first=4.0, crawl_delay_s_max=40.0, retry_after_s_max=90.0
    )


class SiteMachine(FrontierMachine):
    """One at once to a site, which rests too; a bench that begins with one host and grows."""

    asked = PolitenessOptions(
        preset="polite", delay_s_min=0.5, delay_factor=1.0, per_address=0, per_site=1, site_delay_s=2.0,
        backoff_s_first=4.0, crawl_delay_s_max=40.0, retry_after_s_max=90.0,
    )  # fmt: skip
    active_hosts_first = 1


class CompanyMachine(FrontierMachine):
    """Two at once to a site, which rests too, and several to a host: the site's gate alone holds them back."""

    asked = PolitenessOptions(
        preset="own", per_site=2, site_delay_s=1.0, backoff_s_first=4.0, crawl_delay_s_max=40.0, retry_after_s_max=90.0
    )
    active_hosts_first = 1


class BudgetMachine(FrontierMachine):
    """Several at once to a host, and two requests a round to each; the hosts of a site share three."""

    asked = PolitenessOptions(preset="own", backoff_s_first=4.0, crawl_delay_s_max=40.0, retry_after_s_max=90.0)
    budget = BudgetOptions(host_pages=2, site_pages=3)


class RoundMachine(FrontierMachine):
    """Rounds that end by the clock as well."""

    budget = BudgetOptions(host_pages=1, round_s=15.0)
    active_hosts_first = 1


def _settings(examples: int) -> settings:
    return settings(
        deadline=None,
        derandomize=not DEEP,
        max_examples=int(os.environ.get("GOSSAMER_EXAMPLES", examples)),
        stateful_step_count=100 if DEEP else 60,
        suppress_health_check=list(HealthCheck),
    )


class TestPolite(FrontierMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = _settings(25)


@pytest.mark.heavy
@pytest.mark.long
class TestPoliteFurther(FrontierMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = _settings(100)


@pytest.mark.heavy
@pytest.mark.long
class TestOwn(OwnMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = _settings(50)


@pytest.mark.heavy
@pytest.mark.long
class TestPair(PairMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = _settings(50)


@pytest.mark.heavy
@pytest.mark.long
class TestSite(SiteMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = _settings(40)


@pytest.mark.heavy
@pytest.mark.long
class TestCompany(CompanyMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = _settings(30)


@pytest.mark.heavy
@pytest.mark.long
class TestBudget(BudgetMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = _settings(40)


@pytest.mark.heavy
class TestRound(RoundMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = _settings(30)


def test_a_host_without_work_is_not_kept_waiting_for_its_site_after_a_restart() -> None:
    """It was in memory for a prerequisite fetch, which no restart remembers."""
    machine = PairMachine()
    machine.start(seed=1)
    for host, count in (("h1.a.test", 5), ("h0.a.test", 1)):
        machine.add(count=count, host=host, level=0, origins=["http://{}/"])
    machine.run_prerequisite(host="h2.a.test", origin="h0.a.test")
    machine.stop_and_reopen()
    machine.commit_all()
    machine.teardown()
