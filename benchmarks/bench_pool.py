"""What processes for isolated modules and what workers add to a crawl with text: pages a second, and who is at work.

    python benchmarks/bench_pool.py [--kind postgresql] [--variants NAME…] [--rounds 3] [--json FILE]

The same crawl of a kind of site (kinds.py) behind nginx, in turns: modules for text in the crawl's process, in one
isolated process, in two, and with two workers; and without text, links inside or in a process. Pages a second
are counted from the first request, by the server's log, to the last commit, by the table `epochs`; processor time is
that of the process tree by kind of process, looked at several times a second. What other programs take from the
machine falls on all variants of a round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from bench_cluster import DAEMONS, cpu_of, tree
from crawls import Nginx
from kinds import KINDS

LOOK_S = 0.2
HOSTS = 4
TEXT, LINKS = ("main_text", "markdown"), ("links", "title_and_text")


class Variant(NamedTuple):
    """How a site is crawled."""

    modules: Sequence[str] = TEXT
    isolated: Sequence[str] = ()
    processes: int = 1
    workers: int = 1


VARIANTS = {
    "inside": Variant(),
    "pool of 1": Variant(isolated=TEXT),
    "pool of 2": Variant(isolated=TEXT, processes=2),
    "workers 2": Variant(workers=2),
    "no text": Variant(modules=()),
    "no text, links in a pool": Variant(modules=(), isolated=LINKS),
}
ROLES = ("crawl", "pool", "daemons")


def role_of(pid: int) -> str:
    line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    if any(name in line for name in DAEMONS):
        return "daemons"
    return "pool" if "gossamer.results.isolated" in line else "crawl"


def words(one: Variant, nginx: Nginx, directory: Path) -> list[str]:
    """Return the command of a crawl."""
    said = ["crawl", *(f"{origin}/" for origin in nginx.origins), "-o", str(directory), "--quiet"]
    said += ["--politeness", "own", "--allow-private", "--workers", str(one.workers)]
    said += [
        "--set",
        f"process.modules={json.dumps(one.modules)}",
        "--set",
        f"process.isolated={json.dumps(one.isolated)}",
    ]
    said += ["--set", f"process.isolated_processes={one.processes}"]
    return [sys.executable, "-m", "gossamer", *said]


def committed_at(directory: Path) -> float:
    """Return when the last commit was durable."""
    tables = [pq.read_table(file, columns=["committed_at"]) for file in (directory / "epochs").glob("*.parquet")]
    return max(at.timestamp() for table in tables for at in table.column(0).to_pylist())


def crawl(command: Sequence[str], nginx: Nginx, directory: Path) -> dict[str, float]:
    """Crawl; return pages, their rate, and milliseconds of processor a page by role."""
    before = len(nginx.log())
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    spent: dict[int, tuple[str, float]] = {}
    while process.poll() is None:
        for pid in tree(process.pid):
            try:
                known, role = spent.get(pid, ("crawl", 0.0))[0], role_of(pid)
                spent[pid] = role if role != "crawl" else known, cpu_of(pid)  # An ending process has no name.
            except OSError:
                continue
        time.sleep(LOOK_S)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    log = nginx.log()[before:]
    pages = sum(one.status == 200 and one.media_type == "text/html" for one in log)
    sums = {role: sum(s for one, s in spent.values() if one == role) for role in ROLES}
    return {
        "pages": pages,
        "wall_s": time.monotonic() - began,
        "pages_per_s": pages / (committed_at(directory) - min(one.began_at for one in log)),
        **{f"{role}_ms": 1e3 * seconds / pages for role, seconds in sums.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, default="postgresql")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in given.variants}
    with tempfile.TemporaryDirectory(prefix="bench-pool-") as temporary:
        at = Path(temporary)
        (at / "site").mkdir()
        KINDS[given.kind].make(at / "site")
        with Nginx(at / "site", at / "nginx", addresses=given.hosts, server=KINDS[given.kind].server) as nginx:
            for number in range(given.rounds):
                for name, done in runs.items():
                    directory = at / f"{name}-{number}"
                    command = words(VARIANTS[name], nginx, directory)
                    done.append(crawl(command, nginx, directory))
    tell(runs)
    if given.json:
        given.json.write_text(json.dumps(runs, indent=2) + "\n")


def tell(runs: dict[str, list[dict[str, float]]]) -> None:
    """Write medians, and the rates beside those of the first variant, round by round."""
    base = next(iter(runs.values()))
    print(f"| | pages | wall s | pages a second | beside {next(iter(runs))} | ms of the crawl a page | of the pool |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for name, rounds in runs.items():
        middle = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        beside = statistics.median(
            one["pages_per_s"] / other["pages_per_s"] for one, other in zip(rounds, base, strict=True)
        )
        print(
            f"| {name} | {middle['pages']:.0f} | {middle['wall_s']:.1f} | {middle['pages_per_s']:.0f} "
            f"| {beside:.2f} | {middle['crawl_ms']:.2f} | {middle['pool_ms']:.2f} |"
        )


if __name__ == "__main__":
    main()
