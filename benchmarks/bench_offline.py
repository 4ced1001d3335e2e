"""Taking in a segment: time and memory for each URL, until it is in the frontier on disk; nothing is fetched.

A segment of a million made-up URLs of ten thousand sites, by `--urls` and `--sites`. With `--hosts-store` hosts are
looked up in a store of what others learned.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import time
from pathlib import Path

from gossamer.api.feeding import Feeding
from gossamer.assembly.building import assemble
from gossamer.config import configure
from gossamer.model.links import Link
from gossamer.results.offline.segment import SegmentInfo, SegmentWriter
from gossamer.url.name import Namer
from gossamer.url.url import Url

CHUNK = 8_192


def make_segment(path: Path, urls: int, sites: int) -> None:
    """Write a segment of sites with equally many pages, as the builder sorts them."""
    namer = Namer()
    fronts = [namer.name(f"https://www.site{number:07d}.example/") for number in range(sites)]
    known = sorted((url for url in fronts if url is not None), key=lambda url: (url.partition, url.site))
    with SegmentWriter(path, SegmentInfo(made_by="a benchmark")) as writer:
        held: list[Link] = []
        for front in known:
            pages = namer.names([f"{front.text}articles/2026/page-{page}.html" for page in range(urls // sites)])
            held += [Link(page, "anchor", 3, 0, front.text) for page in pages if isinstance(page, Url)]
            if len(held) >= CHUNK:
                writer.write_links(held, [3] * len(held), [1] * len(held))
                held = []
        writer.write_links(held, [3] * len(held), [1] * len(held))


async def take_in(path: Path, work: Path, *, hosts_store: bool) -> dict[str, float]:
    """Take the segment in and commit it; return what it took."""
    options: dict[str, object] = {"mode": "offline", "contact": "me@example.org", "segment": [str(path)]}
    if hosts_store:
        options["hosts_store"] = str(work / "hosts")
    shard = assemble(configure(options=options), work / "crawl")
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, began_cpu = time.perf_counter(), time.process_time()
    await Feeding(shard).take(path)
    await shard.kept.committer.commit()
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    taken = shard.ring.frontier.counts.pending
    await shard.close()
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "urls": taken, "took_s": took_s, "cpu_s": cpu_s, "us_a_url": 1e6 * cpu_s / max(taken, 1),
        "peak_mib": peak_kib / 1024, "more_mib": (peak_kib - before_kib) / 1024,
    }  # fmt: skip


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--sites", type=int, default=10_000)
    parser.add_argument("--hosts-store", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="offline-") as folder:
        path = Path(folder) / "one.parquet"
        make_segment(path, given.urls, given.sites)
        found = asyncio.run(take_in(path, Path(folder), hosts_store=given.hosts_store))
        found["segment_bytes_a_url"] = path.stat().st_size / max(found["urls"], 1)
    for name, value in found.items():
        print(f"{name:>20} {value:12,.1f}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
