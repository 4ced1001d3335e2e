"""What the frontier and the duplicate test cost per URL: µs of CPU, all threads, commits included.

    python benchmarks/frontier_hot_path.py [URLS…]

Each URL is offered, queued, lent, begun, ended and finished. Hosts are 2,000, URLs fall to them by Zipf's law; half of
the URLs are known before the first visit, the others are found on the way, beside ten known ones each. Time is
simulated: it jumps to the next turn. A second line that costs much more per URL than the first is a wrong exponent.
"""

from __future__ import annotations

import cProfile
import itertools
import pstats
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from gossamer.frontier.frontier import Frontier
from gossamer.frontier.host import Lease
from gossamer.frontier.options import FrontierOptions, PolitenessOptions, Preset
from gossamer.frontier.politeness import politeness
from gossamer.model.links import Link
from gossamer.model.visits import Contact
from gossamer.seen.urls import NEW, RocksUrlSeen
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice

HOSTS = 2_000
LINKS = 50
"""Links offered in one call, as of a page."""
KNOWN_PER_NEW = 10
CONCURRENCY = 256
COMMIT_URLS = 2_000
BOOT = bytes(16)
STAGES = ("offer", "add", "select", "request", "finish", "commit")


class Meter:
    """CPU time by stage."""

    def __init__(self) -> None:
        self.spent_s = dict.fromkeys(STAGES, 0.0)
        self._since = 0.0

    def start(self) -> None:
        self._since = time.process_time()

    def stop(self, stage: str) -> None:
        now = time.process_time()
        self.spent_s[stage] += now - self._since
        self._since = now


class Crawl:
    """A shard's state without a crawl around it."""

    def __init__(self, directory: Path, preset: Preset, urls: int) -> None:
        self.now = 1_700_000_000.0
        self.store = Store(directory / "store")
        self.epochs = Epochs(self.store)
        self.contacts = Contacts(directory, BOOT, self.now)
        self.seen = RocksUrlSeen(self.epochs, 200_000)
        self.namer = Namer()
        self.frontier = Frontier(
            self.store, self.epochs, self.contacts, politeness(PolitenessOptions(preset=preset)), FrontierOptions(),
            self.namer.name, Dice(1), self.now,
        )  # fmt: skip
        self.meter = Meter()
        self.found = self.links(urls)
        self.out: list[Lease] = []
        self.finished = 0
        self.urls = urls

    def links(self, urls: int) -> Iterator[list[Url | None]]:
        """Pages' links: new ones, by Zipf's law over hosts, among known ones."""
        dice = random.Random(1)
        weights = list(itertools.accumulate(1 / rank for rank in range(1, HOSTS + 1)))
        made = [0] * HOSTS
        left = urls
        while left:
            texts = []
            for host in dice.choices(range(HOSTS), cum_weights=weights, k=min(LINKS // KNOWN_PER_NEW, left)):
                made[host] += 1
                texts.append(f"https://www.host-{host}.example/library/part-{made[host] % 40}/page-{made[host]}.html")
                known = (dice.randrange(made[host]) + 1 for _ in range(KNOWN_PER_NEW - 1))
                texts += [f"https://www.host-{host}.example/library/part-{n % 40}/page-{n}.html" for n in known]
                left -= 1
            yield self.namer.names(texts)

    def discover(self) -> int:
        """Take in one page's links; return how many were new."""
        urls = [url for url in next(self.found, []) if url is not None]
        if not urls:
            return 0
        self.meter.start()
        answers = self.seen.offer(urls, [1] * len(urls), [0] * len(urls))
        self.meter.stop("offer")
        new = [Link(url, "anchor", 1) for url, answer in zip(urls, answers, strict=True) if answer == NEW]
        self.meter.start()
        for link in new:
            self.frontier.add(link, 1, self.now)
        self.meter.stop("add")
        return len(new)

    def visit(self) -> None:
        """Lend what may be lent now, and bring some of it to its end."""
        frontier, meter = self.frontier, self.meter
        meter.start()
        lent = []
        while len(self.out) + len(lent) < CONCURRENCY and (lease := frontier.select(self.now)) is not None:
            if lease.address:
                lent.append(lease)
            else:
                frontier.locate(lease, f"10.0.{len(lease.url.host)}.{lease.url.host}", self.now + 3600, self.now)
        meter.stop("select")
        for lease in lent:
            frontier.begin(lease, self.now)
        self.out += lent
        if not self.out:
            wake_at = frontier.wake_at()
            assert wake_at is not None
            self.now = wake_at
            return
        self.now += 0.005
        ending, self.out = self.out[:LINKS], self.out[LINKS:]
        for lease in ending:
            frontier.ended(lease, Contact(0.02, "answered"), self.now)
        meter.stop("request")
        for lease in ending:
            frontier.finish(lease, "fetched", self.now)
        meter.stop("finish")
        self.finished += len(ending)

    def commit(self) -> None:
        self.meter.start()
        self.frontier.cut(self.now)
        number, ended = self.epochs.cut(), self.contacts.ended_since_commit
        self.epochs.commit(number)
        self.epochs.apply(number)
        self.epochs.settle()
        self.contacts.committed(ended)
        self.meter.stop("commit")

    def run(self) -> None:
        known = since_commit = 0
        while self.finished < self.urls:
            while known < self.urls and (known < self.urls // 2 or known - self.finished < self.urls // 2):
                new = self.discover()
                known += new
                since_commit += new
                if since_commit >= COMMIT_URLS:
                    self.commit()
                    since_commit = 0
            before = self.finished
            self.visit()
            since_commit += self.finished - before
            if since_commit >= COMMIT_URLS:
                self.commit()
                since_commit = 0
        self.commit()
        assert self.frontier.counts.pending == 0
        self.store.close()
        self.contacts.close()


def measure(preset: Preset, urls: int) -> str:
    with tempfile.TemporaryDirectory() as directory:
        crawl = Crawl(Path(directory), preset, urls)
        crawl.run()
        each = {stage: spent_s / urls * 1e6 for stage, spent_s in crawl.meter.spent_s.items()}
        rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        row = [f"{preset:8}", f"{urls:9,}", *(f"{each[stage]:8.1f}" for stage in STAGES)]
        return " ".join([*row, f"{sum(each.values()):8.1f}", f"{rss_mib:8.0f}"])


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:] if argument.isdigit()] or [20_000, 200_000]
    print(" ".join([f"{'preset':8}", f"{'URLs':>9}", *(f"{stage:>8}" for stage in STAGES), "     all", " max MiB"]))
    presets: tuple[Preset, ...] = ("own", "polite")
    for preset in presets:
        for urls in sizes:
            if "--profile" in sys.argv:
                profile = cProfile.Profile()
                profile.runcall(measure, preset, urls)
                pstats.Stats(profile).sort_stats("tottime").print_stats("gossamer|built-in|method", 40)
            else:
                print(measure(preset, urls), flush=True)


if __name__ == "__main__":
    main()
