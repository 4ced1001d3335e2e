"""What the frontier and the duplicate test cost per URL, and how much memory they take: at 1 M URLs and at 100 M.

    python benchmarks/bench_frontier.py [--urls N,N,…] [--until N] [--minutes N] [--seen FORM] [--rate P]
        [--budget MIB] [--preset PRESET] [--visits-s N] [--directory DIR] [--json FILE] [--log FILE]

A trace of pages, generated, no network: each has 60 links, 80 % of them to its own host; hosts follow Zipf's law and
number one for every 50 URLs. On average 6 links of a page are new (IRLbot met 6.5 on a page of 62.5), so *a URL* is
one new URL with ten offered links. Each URL is offered, queued, lent, begun, ended and finished, through the real
store with its commits; pages are offered and visited in turn until all URLs are found, and then the rest is drained.
Time is simulated: it jumps to the next turn.

Counted is the CPU time of all threads (compaction included) but what the generator used. The stages of visits are told
from one visit in `VISITS_A_SAMPLE`: to ask for the thread's time costs about as much as to end a request. `pace` is
the CPU time of a fixed piece of work, taken at every commit: where it is longer, others used the machine, and all CPU
times are too.
Each size runs in a process of its own, in a control group whose memory limit is the budget; the kernel counts files
that it keeps in memory there too.

With `--directory` a run whose process was killed goes on at its last commit, as a crawl does, when the same command is
given again. Figures are those of all its processes together. The trace begins again at most `LOGGED_URLS` URLs earlier:
what is found there is known already, and costs only its offers.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import pickle
import random
import resource
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from math import inf, log1p
from pathlib import Path
from typing import NamedTuple, TextIO

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.options import convert

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.bounded import run_within

from gossamer.config import Config
from gossamer.config.footprint import fit_budget
from gossamer.engine.links import LINKS_AT_ONCE
from gossamer.model.links import Link
from gossamer.model.visits import Contact
from gossamer.ports import HELD, NEW
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease
from gossamer.stages.frontier.hosts import HostRecords
from gossamer.stages.frontier.options import PolitenessOptions, Preset, politeness
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.stages.seen.bloom import BloomUrlSeen
from gossamer.stages.seen.diskmerge import DiskMergeUrlSeen
from gossamer.stages.seen.popular import POPULAR_BYTES
from gossamer.stages.seen.urls import RocksUrlSeen
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals, ManifestEntry
from gossamer.state.schema import MANIFEST, META_PARTITION
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice
from gossamer.world.loop import COLLECTOR_THRESHOLDS

URLS_PER_HOST = 50
OWN_LINKS, OTHER_LINKS = 48, 12
OWN_NEW = 5
NAVIGATION = 30
"""Pages of a host that all its other pages name."""
CONCURRENCY = 256
COMMIT_VISITS = 2_000
PAGES_A_TURN = 50
FIRST_AT = 1_700_000_000.0
VISITS_S = 10_000.0
"""Visits in a second of simulated time, at the most. What rests for a second is in memory meanwhile."""
RATE = 1e-3
"""New URLs that `--seen bloom` may take for known ones: two bytes a URL."""
LOGGED_URLS = 1_000_000
LOGGED_S = 120.0
STARTED = time.monotonic()
VISITS_A_SAMPLE = 16
BOOT = bytes(16)
STAGES = ("offer", "add", "select", "request", "finish", "commit")
PROGRESS = META_PARTITION + b"benchmark"
"""Key of the counts of a run, which are in each commit."""
TRACE = "trace.pickle"


def _reading_s() -> float:
    """Return what it takes to read the thread's time once."""
    since = time.thread_time()
    for _ in range(999):
        time.thread_time()
    return (time.thread_time() - since) / 1_000


class Meter:
    """CPU time by stage: this thread's; and all threads', but for the generator's share."""

    def __init__(self) -> None:
        self.spent_s = dict.fromkeys(STAGES, 0.0)
        self.generator_s = 0.0
        self._all_since = time.process_time()
        self._since = 0.0
        self._times = 1
        self._dice = random.Random(2)
        self._passed_over = VISITS_A_SAMPLE
        self._reading_s = _reading_s()

    def start(self) -> None:
        self._times = 1
        self._since = time.thread_time()

    def start_one_of(self, count: int) -> None:
        """Begin to measure one time in so many, for all of them."""
        if self._passed_over:
            self._passed_over -= 1
            self._times = 0
        else:
            self._passed_over = int(self._dice.expovariate(-log1p(-1 / count)))
            self._times = count
            self._since = time.thread_time()

    def stop(self, stage: str) -> None:
        if self._times:
            now = time.thread_time()
            self.spent_s[stage] += (now - self._since - self._reading_s) * self._times
            self._since = now

    def generated(self) -> None:
        now = time.thread_time()
        self.generator_s += now - self._since
        self._since = now

    @property
    def all_s(self) -> float:
        return time.process_time() - self._all_since - self.generator_s

    def resume(self, spent_s: dict[str, float], all_s: float) -> None:
        """Count on from what earlier processes of the run have spent."""
        self.spent_s = spent_s
        self._all_since = time.process_time() - all_s


def pace_us() -> float:
    """Return the CPU time of a fixed piece of work: the same program takes longer on a machine that others use too."""
    since = time.thread_time()
    for number in range(2_000):
        xxh3_64_intdigest(f"{number}".encode())
    return (time.thread_time() - since) * 1e6


class Trace:
    """Pages' links. Hosts by Zipf's law with exponent 1."""

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts
        self._dice = random.Random(1)
        self._made = array("I", bytes(4 * hosts))

    def page(self) -> list[Link]:
        """Return a page's links."""
        host, made, dice = self._host(), self._made, self._dice
        start, site, partition = _start(host)
        known = made[host]
        made[host] = known + OWN_NEW
        numbers = list(range(min(known, NAVIGATION)))
        numbers += [int(dice.random() * known) for _ in range(OWN_LINKS - OWN_NEW - len(numbers))] if known else []
        numbers += range(known, known + OWN_NEW)
        name = "www." + site
        urls = [_url(start, name, site, partition, number) for number in numbers]
        for _ in range(OTHER_LINKS - 1):
            host = self._host()
            start, site, partition = _start(host)
            made[host] = made[host] or 1
            urls.append(_url(start, "www." + site, site, partition, 0))
        host = self._host()
        start, site, partition = _start(host)
        urls.append(_url(start, "www." + site, site, partition, made[host]))
        made[host] += 1
        return [Link(url, "anchor", 1, 0, urls[0].text) for url in urls]

    def _host(self) -> int:
        # The inverse of the distribution function, with the sum over hosts taken for the integral.
        return int((self._hosts + 1) ** self._dice.random()) - 1


def _start(host: int) -> tuple[str, str, int]:
    site = f"host-{host}.example"
    return f"https://www.{site}/library/part-", site, xxh3_64_intdigest(site.encode()) % 4096


def _url(start: str, name: str, site: str, partition: int, number: int) -> Url:
    text = f"{start}{number % 40}/page-{number}.html"
    return Url(text, text, xxh3_64_intdigest(text.encode()), name, site, partition)


class Progress(msgspec.Struct):
    """What a run has counted, beside what the frontier counts itself."""

    now: float
    offered: int
    held_ever: int
    spent_s: dict[str, float]
    all_s: float
    wall_s: float
    starts: int


class Stop(NamedTuple):
    """What ends a run before all is drained. It ends with a commit and its figures."""

    urls: int
    """Found."""
    wall_s: float
    cpu_s: float

    def reason(self, urls: int, cpu_s: float) -> str:
        """Return which of them has come to pass; nothing while none has."""
        if urls >= self.urls:
            return "until"
        if time.monotonic() - STARTED >= self.wall_s:
            return "minutes"
        return "cpu_s" if cpu_s >= self.cpu_s else ""


class Crawl:
    """A shard's state without a crawl around it."""

    def __init__(
        self,
        directory: Path,
        preset: Preset,
        form: str,
        urls: int,
        stop: Stop,
        budget_bytes: int,
        log: TextIO,
        visits_s: float = VISITS_S,
        rate: float = RATE,
    ) -> None:
        seen = {"backend": form, "expected_urls": urls, "false_positive_rate": rate}
        config = fit_budget(convert(Config, {"memory": {"budget_bytes": budget_bytes}, "seen": seen}))
        self.store = Store(directory / "store", config.state.cache_bytes, config.state.write_buffer_bytes)
        self.epochs = Epochs(self.store)
        last = self.store.get("meta", PROGRESS)
        done = msgspec.msgpack.decode(last, type=Progress) if last else Progress(FIRST_AT, 0, 0, {}, 0.0, 0.0, 0)
        self.now, self.offered, self.held_ever, self.starts = done.now, done.offered, done.held_ever, done.starts + 1
        self.contacts = Contacts(directory, BOOT, self.now)
        self.journals = Journals(directory)
        manifest = self.store.get("meta", MANIFEST)
        self.journals.recover(msgspec.msgpack.decode(manifest, type=list[ManifestEntry]) if manifest else ())
        self.seen: RocksUrlSeen | DiskMergeUrlSeen | BloomUrlSeen
        if form == "diskmerge":
            self.seen = DiskMergeUrlSeen(self.epochs, self.journals, config.seen)
        elif form == "bloom":
            self.seen = BloomUrlSeen(self.epochs, self.journals, config.seen)
        else:
            self.seen = RocksUrlSeen(self.epochs, config.seen.popular_bytes_max // POPULAR_BYTES)
        self.namer = Namer()
        self.frontier = Frontier(
            HostRecords(self.store, self.epochs, self.contacts),
            FrontierRules(politeness(PolitenessOptions(preset=preset)), config.frontier),
            self.namer.name, Dice(1), self.now,
        )  # fmt: skip
        self.directory = directory
        self.epoch_bytes_max = config.crawl.epoch_bytes_max
        self.paces_us: list[float] = []
        self.meter = Meter()
        self.trace = Trace(max(urls // URLS_PER_HOST, 10))
        if last:
            self.meter.resume(done.spent_s, done.all_s)
            self.trace = pickle.loads((directory / TRACE).read_bytes())
        self.out: list[Lease] = []
        self.known = self.frontier.counts.discovered
        self.finished = self.known - self.frontier.counts.pending
        self.ended = ""
        """Why it ends early."""
        self.urls = urls
        self.turn_s = PAGES_A_TURN / visits_s
        self.stop = stop
        self.log = log
        self._since_commit = 0
        self._logged = 0
        self._logged_at = time.monotonic()
        self._began = self._logged_at - done.wall_s
        if not last:
            self.save()

    def discover(self) -> None:
        """Take in the links of some pages."""
        self.meter.start()
        pages = [self.trace.page() for _ in range(PAGES_A_TURN)]
        self.meter.generated()
        if isinstance(self.seen, DiskMergeUrlSeen):
            answers = [self.seen.offer_or_hold(links) for links in pages]
        else:
            answers = [self._offer(links) for links in pages]
        self.meter.stop("offer")
        for links, answered in zip(pages, answers, strict=True):
            self._add(links, answered)
        self.meter.stop("add")
        self.offered += sum(map(len, pages))
        self.held_ever += sum(answered.count(HELD) for answered in answers)
        del links
        pages.clear()
        self.meter.generated()

    def take_back(self, *, idle: bool) -> None:
        """Queue held links whose answers have come."""
        if not isinstance(self.seen, DiskMergeUrlSeen) or not self.seen.links_held:
            return
        self.meter.start()
        links = self.seen.release(LINKS_AT_ONCE, self.namer.name, idle=idle)
        answers = self._offer(links)
        self.meter.stop("offer")
        self._add(links, answers)
        self.meter.stop("add")

    def _offer(self, links: list[Link]) -> Sequence[int]:
        return self.seen.offer([link.url for link in links], [1] * len(links), [0] * len(links))

    def _add(self, links: list[Link], answers: Sequence[int]) -> None:
        for link, answer in zip(links, answers, strict=True):
            if answer == NEW:
                self.frontier.add(link, 1, self.now)
                self.known += 1

    def visit(self) -> None:
        """Lend what may be lent now, and bring some of it to its end."""
        frontier, meter = self.frontier, self.meter
        meter.start_one_of(VISITS_A_SAMPLE)
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
        self.now += self.turn_s
        ending, self.out = self.out[:PAGES_A_TURN], self.out[PAGES_A_TURN:]
        for lease in ending:
            frontier.ended(lease, Contact(0.02, "answered"), self.now)
        meter.stop("request")
        for lease in ending:
            frontier.finish(lease, "fetched", self.now)
        meter.stop("finish")
        self.finished += len(ending)
        self._since_commit += len(ending)

    def commit(self) -> None:
        self.meter.start()
        self.frontier.cut(self.now)
        if not isinstance(self.seen, RocksUrlSeen):
            self.seen.cut(self.now)
        manifest = self.journals.cut()
        self.journals.sync()
        self.epochs.put("meta", MANIFEST, msgspec.msgpack.encode(manifest))
        wall_s = time.monotonic() - self._began
        progress = Progress(
            self.now, self.offered, self.held_ever, self.meter.spent_s, self.meter.all_s, wall_s, self.starts
        )
        self.epochs.put("meta", PROGRESS, msgspec.msgpack.encode(progress))
        ended = self.contacts.ended_since_commit
        self.epochs.close_at_once()
        self.journals.settle(manifest)
        self.contacts.on_commit(ended)
        self._since_commit = 0
        self.meter.stop("commit")
        self.paces_us.append(pace_us())
        self.meter.generated()

    def run(self) -> None:
        while not self.ended and (self.known < self.urls or self.finished < self.known or self.held):
            is_full = False
            is_idle = self.known >= self.urls and self.finished == self.known
            self.take_back(idle=is_idle)
            if self.known < self.urls:
                self.discover()
                # Without new URLs an epoch has no more than its visits.
                is_full = self.frontier.memory_bytes + self.epochs.memory_bytes > self.epoch_bytes_max
            if self.known > self.finished:
                self.visit()
            else:
                is_full = True  # Held links are compared between commits.
            if is_full or self._since_commit >= COMMIT_VISITS:
                self.commit()
                self.ended = self.stop.reason(self.known, self.meter.all_s)
                done, now = self.known + self.finished, time.monotonic()
                if done - self._logged >= LOGGED_URLS or now - self._logged_at >= LOGGED_S:
                    self._logged, self._logged_at = done, now
                    self.save()
                    self.tell()
        self.commit()
        counts = self.frontier.counts
        assert self.known == counts.discovered
        assert counts.pending == self.known - self.finished
        assert self.ended or not counts.pending
        self.tell()

    def save(self) -> None:
        """Keep how far the trace is. Its links were offered in commits before this."""
        self.meter.start()
        fresh = self.directory / f"{TRACE}.new"
        fresh.write_bytes(pickle.dumps(self.trace))
        fresh.replace(self.directory / TRACE)
        self.meter.generated()

    @property
    def held(self) -> int:
        return self.seen.links_held if isinstance(self.seen, DiskMergeUrlSeen) else 0

    def tell(self) -> None:
        print(json.dumps(self.figures()), file=self.log, flush=True)

    def figures(self) -> dict[str, float]:
        meter, done = self.meter, max(self.known, 1)
        return {
            "urls": self.known,
            "finished": self.finished,
            "held": self.held,
            "held_ever": self.held_ever,
            "offered": self.offered,
            "hosts": self.frontier.counts.hosts,
            "cpu_us": round(meter.all_s / done * 1e6, 2),
            "background_us": round((meter.all_s - sum(meter.spent_s.values())) / done * 1e6, 2),
            **{f"{stage}_us": round(spent_s / done * 1e6, 2) for stage, spent_s in meter.spent_s.items()},
            "pace_us": round(sum(self.paces_us) / max(len(self.paces_us), 1), 1),
            "cpu_s": round(meter.all_s, 1),
            "wall_s": round(time.monotonic() - self._began, 1),
            "starts": self.starts,
            "rss_mib": _rss_bytes() >> 20,
            "rss_max_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
            "disk_mib": _disk_bytes(self.directory) >> 20,
        }

    def close(self) -> None:
        if not isinstance(self.seen, RocksUrlSeen):
            self.seen.close()
        self.store.close()
        self.contacts.close()


def _disk_bytes(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # Compaction took it away meanwhile.
            total += path.stat().st_size
    return total


def _rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(
    directory: Path, preset: Preset, form: str, urls: int, stop: Stop, budget_bytes: int, log: TextIO,
    visits_s: float, rate: float,
) -> dict[str, float]:  # fmt: skip
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)  # As in a crawl's process.
    crawl = Crawl(directory, preset, form, urls, stop, budget_bytes, log, visits_s, rate)
    try:
        crawl.run()
        return crawl.figures()
    finally:
        crawl.close()


def show(rows: list[dict[str, float]]) -> None:
    columns = [*(f"{stage}_us" for stage in STAGES), "background_us", "cpu_us", "pace_us", "rss_max_mib", "disk_mib"]
    heads = [name.removesuffix("_us").replace("_mib", "") for name in columns]
    print("µs of CPU per new URL, by stage; MiB")
    print(" ".join([f"{'URLs':>11}", *(f"{head:>10}" for head in heads), " per offered"]))
    for row in rows:
        per_offered = row["cpu_s"] / row["offered"] * 1e6
        cells = " ".join(f"{row[name]:10.1f}" for name in columns)
        print(f"{row['urls']:11,} {cells} {per_offered:12.2f}", flush=True)


@contextlib.contextmanager
def told(log: Path | None) -> Iterator[None]:
    """Print how far the run is as its log grows."""
    if log is None:
        yield
        return
    over = threading.Event()
    log.touch()

    def follow() -> None:
        with log.open() as rows:
            rows.seek(0, os.SEEK_END)
            while not over.wait(1.0):
                for row in map(json.loads, rows):
                    print(
                        f"{row['wall_s']:8,.0f} s  {row['urls']:>11,} found {row['finished']:>11,} finished "
                        f"{row['cpu_us']:6.1f} µs  RSS {row['rss_mib']} MiB  disk {row['disk_mib']:,} MiB",
                        flush=True,
                    )  # fmt: skip

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", default="100000,1000000", help="sizes to run, by commas")
    parser.add_argument("--until", type=int, default=1 << 62, help="stop when so many are found, undrained")
    parser.add_argument("--minutes", type=float, default=inf, help="stop each size after so long, drained or not")
    parser.add_argument("--cpu-s", type=float, default=inf, help="the same in seconds of CPU, the generator's left out")
    parser.add_argument("--seen", choices=("rocksdb", "diskmerge", "bloom"), default="rocksdb", help="seen.backend")
    parser.add_argument("--rate", type=float, default=RATE, help="seen.false_positive_rate of bloom")
    parser.add_argument("--budget", type=int, default=512, help="memory in MiB")
    parser.add_argument("--preset", default="polite")
    parser.add_argument("--visits-s", type=float, default=VISITS_S, help="visits in a simulated second, at the most")
    parser.add_argument("--directory", type=Path, help="where the state is kept, of one size; a killed run goes on")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--log", type=Path, help="a line of JSON for each million URLs found or finished")
    parser.add_argument("--inside", action="store_true", help="measure in this process")
    given = parser.parse_args()
    sizes = [int(size) for size in given.urls.split(",")]
    if given.inside:
        stop = Stop(given.until, given.minutes * 60, given.cpu_s)
        with (
            given.log.open("a") if given.log else Path(os.devnull).open("w") as log,
            contextlib.nullcontext(given.directory) if given.directory else tempfile.TemporaryDirectory() as directory,
        ):
            row = measure(
                Path(directory), given.preset, given.seen, sizes[0], stop, given.budget << 20, log, given.visits_s,
                given.rate,
            )  # fmt: skip
            print(json.dumps(row))
        return
    if given.directory:
        if len(sizes) > 1:
            parser.error("--directory: one size, as in --urls 1000000")
        given.directory.mkdir(parents=True, exist_ok=True)
    rows = []
    for size in sizes:
        command = [sys.executable, __file__, "--inside", "--urls", str(size), "--budget", str(given.budget)]
        command += ["--preset", given.preset, "--until", str(given.until), "--seen", given.seen]
        command += ["--visits-s", str(given.visits_s), "--minutes", str(given.minutes), "--cpu-s", str(given.cpu_s)]
        command += ["--rate", str(given.rate)]
        command += ["--log", str(given.log)] if given.log else []
        command += ["--directory", str(given.directory)] if given.directory else []
        with told(given.log):
            # Freed memory goes back instead of lying in arenas of threads.
            ran = run_within(given.budget << 20, command, {**os.environ, "MALLOC_ARENA_MAX": "2"}, timeout_s=604_800)
        assert ran.status == 0, ran.output
        rows.append({**json.loads(ran.output.splitlines()[-1]), "held_mib": ran.peak_bytes >> 20})
        print(f"{size:,} URLs held to {given.budget} MiB by {ran.means}, {ran.peak_bytes >> 20} MiB at the most")
    show(rows)
    ratio = rows[-1]["cpu_us"] / rows[0]["cpu_us"]
    print(f"each of {rows[-1]['urls']:,.0f} URLs costs {ratio:.2f} times as much as each of {rows[0]['urls']:,.0f}")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
