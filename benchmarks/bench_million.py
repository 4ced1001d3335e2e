"""A million pages over four shards on two machines of a Ray cluster, while processes and machines are killed.

    python benchmarks/bench_million.py [--hosts 90] [--shards 4] [--kill-s 30] [--seed 1] [--json FILE]

Nginx serves a tree of 11,111 small pages on each host (ten children to a page, five levels), each with a link to the
same page of the next host. Every `--kill-s` seconds a shard, the process that keeps it, the coordinator or, every
seventh time, a whole machine is killed; 0 kills nothing. What each minute held is printed: pages, and of
the largest shard memory, descriptors, threads. At the end every page must be archived exactly once.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
from crawls import Nginx, held_by, write_json
from fastwarc.warc import ArchiveIterator, WarcRecordType
from tests.cluster.nodes import SHARD, Chaos, Nodes

from gossamer.api.asking import NotRunningError
from gossamer.cli.control import ask
from gossamer.model.errors import ConfigError

LEVELS = 5
MINUTE_S = 60.0
LOOK_S = 1.0
TURNS = ("shard", "keeper", "shard", "coordinator", "shard", "keeper", "node")
WORDS = "Of all that is written here, this much is the same on every page. " * 6
Row = dict[str, float]


def server(hosts: int) -> str:
    """Return directives of a finite tree: the address of a page is its path from the root, in digits."""
    children = "".join(f"<li><a href='/p/${{at}}{n}.html'>part {n} of $at</a>" for n in range(10))
    next_host = "".join(
        f"if ($server_addr = 127.0.0.{n}) {{ set $next 127.0.0.{n % hosts + 1}; }}\n" for n in range(1, hosts + 1)
    )
    page = (
        "add_header Content-Type text/html; "
        f'return 200 "<!doctype html><title>$server_addr $at</title><p>$server_addr $at $at. {WORDS}'
        "<a href='http://$next:$server_port$uri'>the next</a>"
    )
    return (
        f"default_type text/html; set $at ''; set $next ''; {next_host}"
        f'location = / {{ set $children "{children}"; {page}<ul>$children</ul>"; }}\n'
        f'location ~ "^/p/(?<path>[0-9]{{1,{LEVELS - 2}}})[.]html$" '
        f'{{ set $at $path; set $children "{children}"; {page}<ul>$children</ul>"; }}\n'
        f'location ~ "^/p/(?<path>[0-9]{{{LEVELS - 1}}})[.]html$" {{ set $at $path; {page}"; }}\n'
        "location / { return 404; }"
    )


def held(nodes: Nodes, directory: Path) -> Row:
    """Return what the crawl has done, and what its shards hold now."""
    row = dict.fromkeys(("pages", "queued", "shards", "resident_mb", "descriptors", "threads"), 0.0)
    with suppress(ConfigError, NotRunningError):
        status = ask(directory, "status")
        if isinstance(status, dict) and "pages" in status:
            row |= {"pages": float(status["pages"]), "queued": float(status["queued"])}
    for pid in nodes.everywhere(SHARD):
        with suppress(OSError):  # It has ended.
            row |= {kind: max(row[kind], count) for kind, count in held_by(pid).items()}
            row["shards"] += 1
    return row


def crawl(nginx: Nginx, folder: Path, given: argparse.Namespace) -> tuple[list[Row], Counter[str], float]:
    """Crawl to the end and return what each minute held (of shards: the most of one), the kills, and the seconds."""
    rows: list[Row] = []
    with Nodes() as nodes:
        for _ in range(given.nodes):
            nodes.add()
        command = [
            sys.executable, "-m", "gossamer", "crawl", *(f"{origin}/" for origin in nginx.origins),
            "-o", f"{folder}/crawl", "--politeness", "own", "--allow-private", "--quiet",
            "--workers", str(given.shards), "--cluster", nodes.address,
            "--set", f"state.checkpoint_uri='file://{folder}/checkpoints'",
            "--set", "state.checkpoint_s=30", "--set", "scope.traps=false", "--set", "cluster.tenure_s=10",
        ]  # fmt: skip
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
        crawling = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
        chaos = Chaos(nodes, random.Random(given.seed))
        began, next_at, kill_at = time.monotonic(), MINUTE_S, given.kill_s
        print("| minute | pages | queued | shards | MB of one | descriptors | threads |")
        print("| --: | --: | --: | --: | --: | --: | --: |", flush=True)
        while crawling.poll() is None:
            time.sleep(LOOK_S)
            elapsed_s = time.monotonic() - began
            is_due = given.kill_s and elapsed_s >= kill_at
            if is_due and chaos.try_to_kill(TURNS[chaos.killed.total() % len(TURNS)]):
                kill_at = elapsed_s + given.kill_s
            if elapsed_s >= next_at:
                rows.append(held(nodes, folder / "crawl"))
                print(
                    f"| {next_at / MINUTE_S:.0f} | " + " | ".join(f"{one:,.0f}" for one in rows[-1].values()) + " |",
                    flush=True,
                )
                next_at += MINUTE_S
        if crawling.returncode:
            raise SystemExit(f"the crawl ended with {crawling.returncode}")
        return rows, chaos.killed, time.monotonic() - began


def archived(directory: Path) -> Iterator[str]:
    """Give the address of every response and revisit in the archives."""
    for file in sorted((directory / "warc").glob("*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, WarcRecordType.response | WarcRecordType.revisit, parse_http=False):
                yield record.headers["WARC-Target-URI"]


def verdict(directory: Path, nginx: Nginx) -> dict[str, Any]:
    """Compare what is archived and listed with the web: every page once."""
    tree = {"/"} | {f"/p/{n:0{level}}.html" for level in range(1, LEVELS) for n in range(10**level)}
    pages = {origin + path for origin in nginx.origins for path in tree}
    counts = Counter(url for url in archived(directory) if not url.endswith("/robots.txt"))
    rows = ds.dataset(directory / "pages", format="parquet").to_table(columns=["url", "status"])
    listed = rows.filter(pc.equal(rows["status"], 200))["url"]
    return {
        "pages": len(pages),
        "archived": sum(counts.values()),
        "missing": len(pages - counts.keys()),
        "beyond": len(counts.keys() - pages),
        "twice": sum(count - 1 for count in counts.values()),
        "listed": len(listed),
        "listed_once": len(pc.unique(listed)),
        "requests": sum(1 for _ in (nginx.at / "access.log").open()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=90)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--kill-s", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="million-") as name:
        root = Path(name) / "root"
        root.mkdir()
        with Nginx(root, Path(name) / "nginx", server=server(given.hosts), addresses=given.hosts) as nginx:
            rows, killed, took_s = crawl(nginx, Path(name), given)
            found = verdict(Path(name) / "crawl", nginx)
    print(f"{took_s:,.0f} s; killed: {dict(killed)}; {found}")
    write_json(given.json, {"minutes": rows, "killed": killed, "seconds": took_s, **found})
    if found["missing"] or found["twice"] or found["beyond"] or found["listed_once"] != found["pages"]:
        raise SystemExit("not every page was archived exactly once")


if __name__ == "__main__":
    main()
