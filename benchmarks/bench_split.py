"""Bench of split sites: how much faster several shards fetch the hosts of one domain than one shard does.

    python benchmarks/bench_split.py [--hosts N] [--shards 1,4] [--per-site N] [--slots N] [--json FILE]

Each host has an address of its own and two requests: robots.txt and a page. The server takes 0.25 s for each, and a
shard has `--slots` requests out at once, so the pace of a shard is bounded by these and not by the processor that all
shards share here: they run in one event loop. `--per-site 0` is without a limit of the site.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from gossamer import Crawler
from gossamer.assembly.building import assemble
from gossamer.config import configure
from gossamer.lab.simweb.log import Logged
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faults.shards import Shards, Wire

LATENCY_S = 0.25
DELAY_S_MAX = 0.002
"""Of a frame between two shards."""
SITE = "d000.test"
SETS = ("politeness.preset='weak'", "crawl.commit_s=0.5", f'url.split_sites=["{SITE}"]', "discovery.sitemaps='never'")


def measure(hosts: int, shards: int, per_site: int, slots: int) -> dict[str, float]:
    """Crawl a domain of `hosts` hosts; return what the server saw."""
    web = SimwebOptions.plain(
        hosts=hosts, hosts_per_site=hosts, names_per_address=1, pages=hosts, zipf_exponent=0, latency_s=LATENCY_S,
        bytes_median=500, links_per_page=2,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name, SimwebProcess(web) as simweb:
        directory = Path(name) / "crawl"
        sets = (*SETS, f"politeness.per_site={per_site}", f"crawl.concurrency={slots}", f"cluster.workers={shards}")
        config = configure(
            options={"allow_private": True, "hosts": str(simweb.hosts_file), "output": str(directory), "scope": "any"},
            sets=sets,
            seeds=simweb.web.fronts,
        )
        if shards == 1:
            asyncio.run(Crawler(output=directory, config=config).run())
        else:
            running = Shards(config, directory, shards, assemble, Wire(random.Random(1), delay_s_max=DELAY_S_MAX))
            ended = asyncio.run(running.run(within_s=600.0))
            assert ended == "finished", ended
        log = simweb.requests()
    took_s = max(one.ended_at for one in log) - min(one.contact_at for one in log)
    return {
        "shards": shards,
        "requests": len(log),
        "seconds": took_s,
        "requests a second": len(log) / took_s,
        "most at once": most_at_once(log),
    }


def most_at_once(log: Sequence[Logged]) -> int:
    """Return how many requests were at the server at once."""
    steps = sorted([(one.contact_at, 1) for one in log] + [(one.ended_at, -1) for one in log])
    return max(accumulate(step for _, step in steps))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--shards", default="1,4")
    parser.add_argument("--per-site", type=int, default=0)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    counts = [int(shards) for shards in options.shards.split(",")]
    found = [measure(options.hosts, shards, options.per_site, options.slots) for shards in counts]
    for row in found:
        row["times the first"] = row["requests a second"] / found[0]["requests a second"]
    for name in found[0]:
        print(f"{name:<20}" + "".join(f"{row[name]:>12,.2f}" for row in found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
