"""Simulation: builds a web and its shards, lets time pass until the crawl is done, and tells how it went.

A shard is the ring's driver in simulated time: it looks up, fetches and processes in a model, and decides nothing.
"""

import heapq
import tempfile
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import NamedTuple

from gossamer.engine.ring import RingStep
from gossamer.lab.simulate import costs
from gossamer.lab.simulate.components import Components
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.result import Ended, Milestones, Sample, Samples, Simulated, result_of
from gossamer.lab.simulate.web import ModelHost, ModelWeb, population, synthetic
from gossamer.model.links import Link
from gossamer.model.visits import Failure, Located, Reply
from gossamer.stages.frontier.host import Lease, PrerequisiteLease, VisitLease
from gossamer.stages.frontier.workbench import HOST_BYTES

Event = Callable[[float], None]


class Events:
    """A queue of events by time; equal times in the order of their asking. About 1 µs each."""

    def __init__(self, now: float) -> None:
        self.now = now
        self._heap: list[tuple[float, int, Event]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, instant: float, event: Event) -> None:
        """Schedule an event at an instant that is not past."""
        assert instant >= self.now, "an event in the past"
        heapq.heappush(self._heap, (instant, next(self._order), event))

    @property
    def next_at(self) -> float:
        """When the next event comes; there must be one."""
        return self._heap[0][0]

    def step(self) -> None:
        """Let the next event happen."""
        self.now, _, event = heapq.heappop(self._heap)
        event(self.now)


class SimulatedCounters:
    """Counts since the start, of what was simulated; nothing is scaled here."""

    __slots__ = ("_full", "_since", "_used", "discovered", "full_s", "hosts_active", "pages", "requests", "used_s")

    def __init__(self) -> None:
        self.pages = 0
        self.requests = 0
        """Of pages, of robots.txt, and in vain."""
        self.discovered = 0
        self.hosts_active = 0
        """Hosts with URLs that are not finished."""
        self.full_s = 0.0
        """Time in which every slot was in use."""
        self.used_s = 0.0
        """Integral over time of the share of slots in use."""
        self._since = 0.0
        self._full = False
        self._used = 0.0

    def pass_to(self, now: float, *, full: bool, used: float) -> None:
        """Note how the slots are from now on."""
        if self._since:
            span_s = now - self._since
            self.used_s += span_s * self._used
            self.full_s += span_s if self._full else 0.0
        self._since = now
        self._full = full
        self._used = used


DAY_S = 86_400.0
"""How long an address is good for."""
WAKE_S_MIN = 1e-3
"""The least time until a shard looks at the frontier again that had nothing."""


class Shared(NamedTuple):
    """Parts that all shards of a simulation share."""

    options: SimulateOptions
    web: ModelWeb
    events: Events
    send: Callable[[int, list[Link], float], None]
    """Takes links to another shard, by its number, at an instant."""
    fetched: Callable[[float], None]
    """Takes the instant of each page."""


class SimulatedShard:
    """One shard: a slot for each request at once, a processor, a link to the network, and the real components."""

    def __init__(self, number: int, scale: float, components: Components, shared: Shared) -> None:
        """Build a shard whose hosts each represent `scale` hosts of a real shard."""
        self.counters = SimulatedCounters()
        self.components = components
        self._number = number
        self._options = options = shared.options
        self._web = web = shared.web
        self._events = shared.events
        self._send = shared.send
        self._fetched = shared.fetched
        self._frontier = components.frontier
        self._ring = components.ring(self._refuse)
        self.slots = max(1, round(options.machine.concurrency / scale))
        self.out = 0
        """Slots in use."""
        # One page here represents `scale` pages, so the link and the cores are slower by that factor.
        mean_bytes = options.web.page_bytes_mean
        self._cpu_exchange_s = costs.cpu_exchange_s(options.web, options.exchange, options.shards)
        self._exchange_bytes = costs.exchange_bytes(options.web, options.exchange, options.shards)
        page_s = costs.cpu_page_s(mean_bytes, options.web, options.machine) + self._cpu_exchange_s
        self.cpu = costs.Capacity(costs.shard_cores(options) / scale, page_s)
        wire_bytes = mean_bytes * options.web.wire_share + costs.REQUEST_BYTES
        self.network = costs.Capacity(costs.shard_bytes_per_s(options) / scale, wire_bytes)
        of_others = max(1e-9, 1 - options.web.same_host_share)
        self._foreign_share = costs.foreign_share(options.web, options.shards) / of_others
        self._alone = web.shards == 1
        self.wake_at = float("inf")
        """When it looks at the frontier next."""

    # ---- links in

    def arrive(self, links: list[Link], now: float) -> None:
        """Take links that another shard found, or that are seeds."""
        for link in self.components.discover(links, now):
            self.counters.discovered += 1
            host = self._web.host(link.url.host)
            if not host.closed:
                self.counters.hosts_active += not host.pending
                host.pending += 1

    # ---- visits out

    def begin_visits(self, now: float) -> None:
        """Begin the visits that may begin now; schedule a wake-up for when more may."""
        while self.out < self.slots:
            lease = self._frontier.select(now)
            if lease is None:
                break
            self._begin(lease, now)
        self.counters.pass_to(now, full=self.out >= self.slots, used=self.out / self.slots)
        if self.out >= self.slots:
            return  # The end of a visit calls again.
        if (wake_at := self._frontier.wake_at()) is not None:
            at = max(wake_at, now + WAKE_S_MIN)
            if at < self.wake_at:
                self.wake_at = at
                self._events.at(at, self._wake)

    def _wake(self, now: float) -> None:
        if now >= self.wake_at:
            self.wake_at = float("inf")
            self.begin_visits(now)

    def _begin(self, lease: Lease, now: float) -> None:
        step = self._ring.decide(lease, now)
        if step is RingStep.RESOLVE:
            self.out += 1
            self._events.at(now + self._options.web.lookup_s, lambda at: self._on_lookup(lease, at))
        elif step is RingStep.FETCH and self._ring.begin(lease, now):
            self._fetch(lease, self._web.host(lease.url.host), now)

    def _on_lookup(self, lease: Lease, now: float) -> None:
        self.out -= 1
        self._ring.on_resolved(lease, Located((self._web.host(lease.url.host).address,), now + DAY_S), now)
        self.begin_visits(now)

    def _fetch(self, lease: Lease, host: ModelHost, now: float) -> None:
        self.out += 1
        self.counters.requests += 1
        if host.dead:
            wait_s = self._options.web.connect_s_max
            result = Failure("connect_error", "no answer", retry=True, host_level=True, fetch_s=wait_s)
            self._events.at(now + wait_s, lambda at: self._on_failure(lease, host, result, now, at))
            return
        page_bytes = self._web.page_bytes() if isinstance(lease, VisitLease) else 0.0
        fetch_s = self._web.fetch_s(host)
        wire_bytes = page_bytes * self._options.web.wire_share + costs.REQUEST_BYTES
        if page_bytes:
            wire_bytes += self._exchange_bytes
        fetch_s = max(fetch_s, self.network.wait_s(wire_bytes, now))
        self._events.at(now + fetch_s, lambda at: self._on_reply(lease, host, page_bytes, now, at))

    # ---- the ends of a visit

    def _on_failure(self, lease: Lease, host: ModelHost, result: Failure, started: float, now: float) -> None:
        self.cpu.wait_s(costs.cpu_request_s(self._options.web, self._options.machine), now)
        self._ring.on_fetched(lease, result, started, now)
        if isinstance(lease, PrerequisiteLease):
            self._ring.answer(lease.prerequisite, b"", result, now)
        else:
            again = self.components.retries.after(lease.visit, result.error, now) if result.retry else None
            if again is not None:
                self._frontier.retry(lease, again, now)
            else:
                self._finish(lease, host, result.outcome, now)
        if not host.closed and self._frontier.facts(lease.url).closed:
            host.closed = True
            self.counters.hosts_active -= host.pending > 0
            host.pending = 0
        self._leave(now)

    def _on_reply(self, lease: Lease, host: ModelHost, page_bytes: float, started: float, now: float) -> None:
        body = host.robots_txt if isinstance(lease, PrerequisiteLease) else b""
        is_error = not body if isinstance(lease, PrerequisiteLease) else self._web.is_error()
        status = 404 if is_error else 200
        reply = Reply(lease.url.text, status, (), body, lease.address, started, now - started, wire_bytes=0)
        self._ring.on_fetched(lease, reply, started, now)
        if isinstance(lease, PrerequisiteLease):
            self.cpu.wait_s(costs.cpu_request_s(self._options.web, self._options.machine), now)
            self._ring.answer(lease.prerequisite, body, reply, now)
            self._leave(now)
            return
        if is_error:
            cpu_s = costs.cpu_request_s(self._options.web, self._options.machine)
        else:
            cpu_s = costs.cpu_page_s(page_bytes, self._options.web, self._options.machine) + self._cpu_exchange_s
        if wait_s := self.cpu.wait_s(cpu_s, now):
            self._events.at(now + wait_s, lambda at: self._finish_page(lease, host, at, is_error=is_error))
        else:
            self._finish_page(lease, host, now, is_error=is_error)

    def _finish_page(self, lease: VisitLease, host: ModelHost, now: float, *, is_error: bool) -> None:
        self._finish(lease, host, "http_error" if is_error else "fetched", now)
        if not is_error:
            self.counters.pages += 1
            self._fetched(now)
            self._discover(lease, host, now)
        self._leave(now)

    def _refuse(self, lease: VisitLease, failure: Failure, now: float) -> None:
        self._finish(lease, self._web.host(lease.url.host), failure.outcome, now)

    def _finish(self, lease: VisitLease, host: ModelHost, outcome: str, now: float) -> None:
        self._frontier.finish(lease, outcome, now)
        if host.pending:
            host.pending -= 1
            self.counters.hosts_active -= not host.pending
        self.components.count_visit(now)

    def _discover(self, lease: VisitLease, host: ModelHost, now: float) -> None:
        visit = lease.visit
        here: list[Link] = []
        away: dict[int, list[Link]] = {}
        for target, number in self._web.links(host, self._options.known_links):
            link = Link(target.url(number), "anchor", visit.depth + 1, 0, visit.url.text)
            if target is host or not self._is_foreign(target):
                here.append(link)
            else:
                away.setdefault(target.shard, []).append(link)
        if here:
            self.arrive(here, now)
        for shard, links in away.items():
            self._send(shard, links, now + self._options.exchange.delay_s)

    def _is_foreign(self, target: ModelHost) -> bool:
        if self._alone:  # It represents all shards: links from others come to it as its links go to others.
            return self._web.lot() < self._foreign_share
        return target.shard != self._number

    def _leave(self, now: float) -> None:
        self.out -= 1
        self.begin_visits(now)


STARTS_AT = 1_700_000_000.0
"""Any instant of wall time: delays are stored as wall times, and 0 would be before all of them."""
SLOTS_MIN = 2
"""A shard is not simulated with fewer requests at once when the scale is ours to choose."""
BENCHED_MIN = 50
"""Nor with fewer hosts on its workbench."""
HOSTS_MIN = 200
"""Nor with fewer hosts in all."""
Progress = Callable[[float], None]


def simulate(options: SimulateOptions, progress: Progress | None = None, directory: Path | None = None) -> Simulated:
    """Simulate a crawl to its end and return how it went.

    About 0.2 ms for each page that is simulated (`pages_simulated`). `progress` receives from time to time the share of
    the pages that is done; the store is in a temporary directory below `directory`. Raises ConfigError: a part has no
    simulation; OSError: the disk refuses.
    """
    with (
        tempfile.TemporaryDirectory(prefix="gossamer-simulate-", dir=directory) as folder,
        closing(Simulation(options, Path(folder))) as simulation,
    ):
        return simulation.run(progress)


def scale_of(options: SimulateOptions) -> tuple[int, int]:
    """Return the scale, and how many of the shards are simulated.

    By default, all shards are simulated if the crawl is small enough; else one shard represents all, with one host in
    `scale`. A host costs at least as much as a page: it is in memory, in the queue if its front page is a seed, and its
    robots.txt is requested before any of its pages.
    """
    if options.simweb is not None or options.web.giant_pages:
        return 1, options.shards_simulated or options.shards
    web = options.web
    work = max(min(options.pages or web.pages, web.pages), web.hosts)
    fits = work <= options.pages_simulated
    simulated = options.shards_simulated or (options.shards if fits or options.scale == 1 else 1)
    if options.scale is not None:
        return options.scale, simulated
    wanted = max(1, round(work * simulated / options.shards / options.pages_simulated))
    bench = options.frontier
    coarsest = min(
        options.machine.concurrency // SLOTS_MIN,
        min(bench.active_hosts_max, bench.active_hosts_bytes_max // HOST_BYTES) // BENCHED_MIN,
        web.hosts // options.shards // HOSTS_MIN,
    )
    return max(1, min(wanted, coarsest)), simulated


def beyond_of(options: SimulateOptions) -> str:
    """Return a warning if many more pages are simulated than `pages_simulated`; else an empty text."""
    scale, simulated = scale_of(options)
    pages = min(options.pages or options.web.pages, options.web.pages) * simulated / options.shards / scale
    if options.scale is not None or pages <= 2 * options.pages_simulated:
        return ""
    return (
        f"about {round(pages, -3):,.0f} pages are simulated, not {options.pages_simulated:,}: a smaller sample has too "
        f"few hosts or requests at once; --scale K with K above {scale} simulates fewer, less exactly"
    )


class Simulation:
    """A modelled web, simulated shards, and the time that passes between them."""

    def __init__(self, options: SimulateOptions, directory: Path) -> None:
        """Build everything and offer the seeds."""
        self._options = options
        scale, simulated = scale_of(options)
        if options.simweb is not None:
            hosts = synthetic(options.simweb, options.web, simulated)
        else:
            # One shard of many holds a part of the hosts, and of these one in `scale` is simulated.
            whole = max(1, round(scale * options.shards / simulated))
            hosts = population(options.web, options.seed, whole, simulated)
        self._web = ModelWeb(options.web, hosts, options.seed, simulated)
        self._whole_scale = 1.0 if options.simweb is not None else max(1.0, options.web.hosts / len(hosts))
        """Hosts of the web that each host represents."""
        self._scale = self._whole_scale * simulated / options.shards
        """Hosts of its shard that each host represents."""
        self._events = Events(STARTS_AT)
        self._samples = Samples()
        self._milestones = Milestones()
        self._shards: list[SimulatedShard] = []
        shared = Shared(
            options, self._web, self._events, self._send, lambda now: self._milestones.count_page(now - STARTS_AT)
        )
        for number in range(simulated):
            components = Components(
                options, directory / f"{number:04}", self._scale, self._web.name_url, options.seed + number, STARTS_AT
            )
            self._shards.append(SimulatedShard(number, self._scale, components, shared))

    def run(self, progress: Progress | None) -> Simulated:
        """Let time pass until the pages are fetched, no URL is left, or the time is over, and return how it went."""
        options = self._options
        events = self._events
        samples = self._samples
        for host in self._web.seeds():
            self._shards[host.shard].arrive([Link(host.url(self._web.find(host)), "seed", 0)], STARTS_AT)
        for shard in self._shards:
            shard.begin_visits(STARTS_AT)
        wanted = options.pages / self._whole_scale if options.pages is not None else float("inf")
        whole = min(wanted, float(sum(host.pages for host in self._web.hosts)))
        ends_at = STARTS_AT + (options.time_s_max or float("inf"))
        while events and self._milestones.pages < wanted and events.next_at <= ends_at:
            while events.next_at - STARTS_AT >= samples.due_s:
                samples.add(self._sample(samples.due_s))
                if progress is not None:
                    progress(self._milestones.pages / whole)
            events.step()
        ended: Ended = "finished"
        if self._milestones.pages >= wanted:
            ended = "pages"
        elif events:
            ended = "time"
            events.now = ends_at
        samples.taken.append(self._sample(events.now - STARTS_AT))
        return result_of(options, samples.taken, ended, self._scale, len(self._shards), self._milestones)

    def close(self) -> None:
        """Close the stores."""
        for shard in self._shards:
            shard.components.close()

    def _send(self, shard: int, links: list[Link], at: float) -> None:
        receiver = self._shards[shard]

        def arrive(now: float) -> None:
            receiver.arrive(links, now)
            receiver.begin_visits(now)

        self._events.at(at, arrive)

    def _sample(self, at_s: float) -> Sample:
        shards = self._shards
        scale = self._whole_scale
        now = STARTS_AT + at_s
        for shard in shards:
            shard.counters.pass_to(now, full=shard.out >= shard.slots, used=shard.out / shard.slots)
        counters = [shard.counters for shard in shards]
        return Sample(
            at_s=at_s,
            pages=scale * sum(one.pages for one in counters),
            requests=scale * sum(one.requests for one in counters),
            discovered=scale * sum(one.discovered for one in counters),
            hosts_active=scale * sum(one.hosts_active for one in counters),
            hosts_benched=scale * sum(shard.components.frontier.active_hosts for shard in shards),
            hosts_known=scale * self._web.hosts_found,
            pending=scale * sum(shard.components.frontier.counts.pending for shard in shards),
            wire_bytes=scale * sum(shard.network.work_done(now) for shard in shards),
            cpu_s=scale * sum(shard.cpu.work_done(now) for shard in shards),
            used_s=sum(one.used_s for one in counters) / len(shards),
            full_s=sum(one.full_s for one in counters) / len(shards),
        )
