"""What the four forms of the duplicate URL eliminator cost as they grow: time an offer, memory, disk.

    python benchmarks/bench_seen.py [--urls N] [--forms FORM…] [--rate P] [--keep DIRECTORY]

Each form grows in a process of its own, in pages of 61 links whose hosts fall into one partition for four links of
five, with a real commit (fsync included) every 10,000 new URLs. At each size it is asked for URLs that it knows, chosen
evenly from all, which is the worst case for any cache, and for the navigation of one site, which is the usual one.
"new" is the offer alone; "commit" is what the epoch takes for each new URL and "behind" what other threads do meanwhile
(merges, RocksDB's compactions). All times are processor time, so that a busy machine does not show. RAM is what the
process grew by; "ever" is its peak.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from xxhash import xxh3_64_intdigest

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.stages.seen.opened import FORMS, Opened

from gossamer.stages.seen.options import SeenOptions
from gossamer.url.url import Url

PAGE_LINKS = 61
COMMIT_URLS = 10_000
ASKED = 61 * 1_000
STORE_BYTES = 64 << 20
HEAD = (
    f"{'form':<10}{'URLs':>12}{'new µs':>9}{'commit µs':>11}{'behind µs':>11}{'known µs':>10}"
    f"{'popular µs':>12}{'RAM MB':>9}{'ever':>7}{'disk MB':>9}{'open s':>8}"
)


def url(number: int) -> Url:
    """Return the n-th URL; its address and host do not matter here, so they are not made."""
    page, link = divmod(number, PAGE_LINKS)
    place = page if link % 5 else number
    partition = xxh3_64_intdigest(place.to_bytes(8, "little"), 1) % 4096
    return Url("", "", xxh3_64_intdigest(number.to_bytes(8, "little")), "", "", partition)


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def disk_bytes(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # A compaction took it away meanwhile.
            total += path.stat().st_blocks * 512
    return total


class Growth:
    """One form on its way."""

    def __init__(self, form: str, directory: Path, options: SeenOptions) -> None:
        self.form, self.directory, self.options = form, directory, options
        self.opened = Opened(form, directory, options, STORE_BYTES)
        self.base_bytes = rss_bytes()
        self.urls = 0
        self.offer_s = self.commit_s = self.behind_s = 0.0
        self.dice = random.Random(1)

    def grow(self, size: int) -> None:
        """Offer new URLs up to `size`."""
        self.offer_s = self.commit_s = 0.0
        waiting, behind = 0, time.process_time() - time.thread_time()
        while self.urls < size:
            count = min(PAGE_LINKS, size - self.urls)
            batch = [url(number) for number in range(self.urls, self.urls + count)]
            self.offer_s += self.timed(batch)
            self.urls += count
            waiting += count
            if waiting >= COMMIT_URLS or self.urls == size:
                began = time.thread_time()
                self.opened.commit()
                self.commit_s += time.thread_time() - began
                waiting = 0
        self.opened.wait()
        self.behind_s = time.process_time() - time.thread_time() - behind

    def timed(self, batch: list[Url]) -> float:
        zeros = [0] * len(batch)
        began = time.thread_time()
        self.opened.seen.offer(batch, zeros, zeros)
        return time.thread_time() - began

    def known_us(self) -> float:
        numbers = [self.dice.randrange(self.urls) for _ in range(ASKED)]
        return self.asked_us([[url(n) for n in numbers[at : at + PAGE_LINKS]] for at in range(0, ASKED, PAGE_LINKS)])

    def popular_us(self) -> float:
        return self.asked_us([[url(number) for number in range(PAGE_LINKS)]] * (ASKED // PAGE_LINKS))

    def asked_us(self, pages: list[list[Url]]) -> float:
        return sum(map(self.timed, pages)) / ASKED * 1e6

    def line(self, before: int) -> str:
        grown = self.urls - before
        known, popular = self.known_us(), self.popular_us()
        ram, ever = rss_bytes() - self.base_bytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self.opened.crash()
        began = time.process_time()
        self.opened = Opened(self.form, self.directory, self.options, STORE_BYTES)
        open_s = time.process_time() - began
        return (
            f"{self.form:<10}{self.urls:>12,}{self.offer_s / grown * 1e6:>9.2f}{self.commit_s / grown * 1e6:>11.2f}"
            f"{self.behind_s / grown * 1e6:>11.2f}{known:>10.2f}{popular:>12.2f}{ram / 1e6:>9.0f}{ever / 1e6:>7.0f}"
            f"{disk_bytes(self.directory) / 1e6:>9.0f}{open_s:>8.2f}"
        )


def sizes(urls: int) -> list[int]:
    """Return where to measure: 1, 2, 5, 10, … up to `urls`."""
    steps = [digit * 10**power for power in range(5, 10) for digit in (1, 2, 5)]
    return [step for step in steps if urls // 20 <= step < urls] + [urls]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.one:
        print(HEAD, flush=True)
        for form in given.forms:
            with tempfile.TemporaryDirectory(dir=given.keep) as directory:
                one = [sys.executable, __file__, "--one", "--urls", str(given.urls), "--forms", form]
                subprocess.run([*one, "--rate", str(given.rate), "--keep", directory], check=True)
        return
    options = SeenOptions(expected_urls=given.urls, false_positive_rate=given.rate)
    growth = Growth(given.forms[0], given.keep, options)
    for size in sizes(given.urls):
        before = growth.urls
        growth.grow(size)
        print(growth.line(before), flush=True)
    growth.opened.crash()


if __name__ == "__main__":
    main()
