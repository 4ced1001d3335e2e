"""How long hosts are left alone whose partition moves while a crawl goes from two shards to three.

    python benchmarks/bench_scale.py

24 hosts of a synthetic web, each with an address of its own, are crawled with 0.25 s between two requests; without and
with checkpoints in a directory. A host's pause is the time between its last request by one shard and its first one by
the other, as the table `pages` has them; beside it are the longest times between two requests of one shard.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections import defaultdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.acceptance.test_scale_kill import has_pages
from tests.acceptance.test_workers import begun, crawl_of, gossamer
from tests.cluster.crawls import is_divided
from tests.ring.crawls import until

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess

WEB = SimwebOptions(
    seed=4, hosts=24, hosts_per_site=1, names_per_address=1, pages=7_000, latency_s=0.01, zipf_exponent=0.0
)  # fmt: skip
PAGES_BEFORE = 250


class Gaps(NamedTuple):
    """Seconds between two requests of a host."""

    moved: list[float]
    others: list[float]


def main() -> None:
    """Print a row without and one with checkpoints."""
    print(
        "| checkpoints | hosts that moved | pause, median, s | without the longest | longest | others, 99 % | longest |"
    )
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for is_covered in (False, True):
        with tempfile.TemporaryDirectory(prefix="gossamer-scale-") as folder:
            moved, others = gaps(Path(folder), is_covered=is_covered)
        print(
            f"| {'yes' if is_covered else 'no'} | {len(moved)} | {statistics.median(moved):.2f} | {moved[-2]:.2f} | "
            f"{moved[-1]:.2f} | {others[len(others) * 99 // 100]:.2f} | {others[-1]:.2f} |", flush=True,
        )  # fmt: skip


def gaps(folder: Path, *, is_covered: bool) -> Gaps:
    """Scale a crawl, stop it, and return its gaps since shortly before, in order."""
    directory = folder / "crawl"
    sets = [f"state.checkpoint_uri='file://{folder}/checkpoints'", "state.checkpoint_s=600"] if is_covered else []
    with SimwebProcess(WEB, folder / "web") as web:
        words = crawl_of(web, directory, 2, "politeness.delay_s_min=0.25", *sets, politeness="weak")
        running = begun(*words, complaints=folder / "complaints")
        try:
            until(partial(has_pages, directory, PAGES_BEFORE), 120)
            since = time.time() - 5.0
            gossamer("scale", directory, "--workers", "3", "--quiet")
            until(partial(is_divided, directory, 3), 120)
            time.sleep(3.0)
            gossamer("stop", directory)
            running.wait(60)
        finally:
            running.kill()
            running.wait()
    return found_in(directory, since)


def found_in(directory: Path, since: float) -> Gaps:
    """Return the gaps between requests of one host since an instant."""
    hosts = defaultdict(list)
    for path in (directory / "pages").glob("*.parquet"):
        for row in pq.read_table(path, columns=["host", "fetched_at"]).to_pylist():
            hosts[row["host"]].append((row["fetched_at"].timestamp(), path.name.split("-")[1]))
    pairs = [pair for visits in hosts.values() for pair in pairwise(sorted(visits)) if pair[0][0] > since]
    moved = sorted(after[0] - before[0] for before, after in pairs if before[1] != after[1])
    return Gaps(moved, sorted(after[0] - before[0] for before, after in pairs if before[1] == after[1]))


if __name__ == "__main__":
    main()
