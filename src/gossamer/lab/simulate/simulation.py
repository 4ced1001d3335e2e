"""Simulation: builds a web and its shards, lets time pass until the crawl is done, and tells how it went."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from gossamer.lab.simulate.components import Components
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.result import Ended, Simulated, result_of
from gossamer.lab.simulate.samples import Milestones, Sample, Samples
from gossamer.lab.simulate.shard import Events, Shared, SimulatedShard
from gossamer.lab.simulate.web import ModelWeb, population, synthetic
from gossamer.model.links import Link
from gossamer.stages.frontier.workbench import HOST_BYTES

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

    About 0.2 ms for each page that is simulated (`pages_simulated`). `progress` receives from time to time the share
    of the pages that is done; the store is in a temporary directory below `directory`.

    Raises:
        ConfigError: a part has no simulation.
        OSError: the disk refuses.
    """
    with (
        tempfile.TemporaryDirectory(prefix="gossamer-simulate-", dir=directory) as folder,
        closing(Simulation(options, Path(folder))) as simulation,
    ):
        simulation.run(progress)
        return simulation.result()


def scale_of(options: SimulateOptions) -> tuple[int, int]:
    """Return the scale, and how many of the shards are simulated.

    By default, all shards are simulated if the crawl is small enough; else one shard represents all, with one host in
    `scale`. A host costs at least as much as a page: it is in memory, in the queue if its front page is a seed, and its
    robots.txt is requested before any of its pages.
    """
    if options.simweb is not None or options.web.giant_pages:
        return 1, options.shards_simulated or options.shards
    web = options.web
    pages = min(options.pages or web.pages, web.pages)
    work = max(pages, web.hosts)
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
        self._ended: Ended = "finished"
        self._shards: list[SimulatedShard] = []
        shared = Shared(options, self._web, self._events, self._send, self._count_page)
        for number in range(simulated):
            components = Components(
                options, directory / f"{number:04}", self._scale, self._web.name_url, options.seed + number, STARTS_AT
            )
            self._shards.append(SimulatedShard(number, self._scale, components, shared))

    def run(self, progress: Progress | None = None) -> None:
        """Let time pass until the pages are fetched, no URL is left, or the time is over."""
        options = self._options
        events = self._events
        samples = self._samples
        for host in self._web.seeds():
            self._shards[host.shard].arrive([Link(host.url(self._web.find(host)), "seed", 0)], STARTS_AT)
        for shard in self._shards:
            shard.lend(STARTS_AT)
        wanted = options.pages / self._whole_scale if options.pages is not None else float("inf")
        whole = min(wanted, float(sum(host.pages for host in self._web.hosts)))
        ends_at = STARTS_AT + (options.time_s_max or float("inf"))
        while events and self._milestones.pages < wanted and events.next_at <= ends_at:
            while events.next_at - STARTS_AT >= samples.due_s:
                samples.add(self._sample(samples.due_s))
                if progress is not None:
                    progress(self._milestones.pages / whole)
            events.step()
        if self._milestones.pages >= wanted:
            self._ended = "pages"
        elif events:
            self._ended = "time"
            events.now = ends_at
        samples.taken.append(self._sample(events.now - STARTS_AT))

    def result(self) -> Simulated:
        """Return how it went."""
        return result_of(
            self._options, self._samples.taken, self._ended, self._scale, len(self._shards), self._milestones,
        )  # fmt: skip

    def close(self) -> None:
        """Close the stores."""
        for shard in self._shards:
            shard.components.close()

    def _count_page(self, now: float) -> None:
        self._milestones.count_page(now - STARTS_AT)

    def _send(self, shard: int, links: list[Link], at: float) -> None:
        receiver = self._shards[shard]

        def arrive(now: float) -> None:
            receiver.arrive(links, now)
            receiver.lend(now)

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
