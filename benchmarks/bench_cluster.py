"""What a second worker costs: seconds of processor a page with one worker and with two on Ray, and what goes between.

    python benchmarks/bench_cluster.py [--pages 20000] [--small 1000] [--hosts 200] [--rounds 3] [--json FILE]

Two made webs of several sites on loopback, a small one and a large one, the `own` preset. Counted are the crawl's
processes with all that they started (command, child, keepers, coordinator, shards) and, apart, Ray's own daemons. What
the large crawl takes more than the small one, divided by its pages more, is what a page costs; the rest is start and
end. The web's own process is not counted, and has a processor of its own: all of the crawl shares another, whatever
its workers, for two that run at once on two threads of one core would slow each other down.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from gossamer.simweb.options import SimwebOptions
from gossamer.simweb.process import SimwebProcess

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
LOOK_S = 0.2
CRAWLS_ON, WEB_ON = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
DAEMONS = ("gcs_server", "raylet", "dashboard", "monitor.py", "DashboardAgent", "RuntimeEnvAgent", "ray::IDLE")


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def kind_of(pid: int) -> str:
    line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    if any(name in line for name in DAEMONS):
        return "daemons"
    if "gossamer.api.member" in line:
        return "shards"
    return "keepers" if "ray::" in line or "default_worker" in line else "command"


def tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


def crawl(web: SimwebProcess, folder: Path, workers: int) -> dict[str, float]:
    """Crawl and return seconds of processor by kind of process, and what was counted."""
    directory = folder / f"crawl-{workers}-{time.monotonic_ns()}"
    seeds = folder / "seeds.txt"
    seeds.write_text("\n".join(web.seeds))
    words = ["crawl", "--seeds", str(seeds), "--scope", "any", "--politeness", "own", "--allow-private", "--quiet"]
    words += ["--hosts", str(web.hosts_file), "--workers", str(workers), "-o", str(directory)]
    began = time.monotonic()
    process = subprocess.Popen(["taskset", "-c", str(CRAWLS_ON), sys.executable, "-m", "gossamer", *words])
    spent: dict[int, float] = {}
    kinds: dict[int, str] = {}
    while process.poll() is None:
        for pid in tree(process.pid):
            try:
                spent[pid], kind = cpu_of(pid), kind_of(pid)
                kinds[pid] = (
                    kind if kind != "command" or pid not in kinds else kinds[pid]
                )  # Titles go before processes.
            except OSError:
                continue
        time.sleep(LOOK_S)
    assert process.returncode == 0, "the crawl failed"
    status = subprocess.run(
        [sys.executable, "-m", "gossamer", "status", str(directory), "--json"], capture_output=True, check=True
    )
    found: dict[str, float] = dict.fromkeys(("command", "keepers", "shards", "daemons"), 0.0)
    for pid, seconds in spent.items():
        found[kinds[pid]] += seconds
    standing = directory / "state/standing.json"
    last = json.loads(standing.read_text()) if standing.exists() else {}
    found["pages"] = float(json.loads(status.stdout)["pages"])
    found["seconds"] = time.monotonic() - began
    found["bytes_between"] = float(last.get("bytes_between_shards", 0))
    return found


KINDS = ("command", "keepers", "shards", "daemons")
Rounds = dict[tuple[int, str], list[dict[str, float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rounds: Rounds = {}
    os.sched_setaffinity(0, {WEB_ON})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-cluster-")))
        webs = {
            size: stack.enter_context(
                SimwebProcess(SimwebOptions.plain(hosts=given.hosts, pages=pages, hosts_per_site=2))
            )
            for size, pages in (("small", given.small), ("large", given.pages))
        }
        for _ in range(given.rounds):
            for workers in (1, 2):
                for size, web in webs.items():
                    rounds.setdefault((workers, size), []).append(crawl(web, folder, workers))
    tell(rounds)
    if given.json:
        given.json.write_text(json.dumps({f"{workers} {size}": done for (workers, size), done in rounds.items()}))


def tell(rounds: Rounds) -> None:
    middle = {
        which: {key: statistics.median(one[key] for one in done) for key in done[0]} for which, done in rounds.items()
    }
    print("workers  pages     s   start and end, s of processor   µs of processor a page                bytes between")
    print("                        all but daemons   daemons        command keepers shards together daemons  a page")
    together = {}
    for workers in (1, 2):
        small, large = middle[workers, "small"], middle[workers, "large"]
        more = large["pages"] - small["pages"]
        each = {kind: (large[kind] - small[kind]) / more for kind in KINDS}
        first = {kind: small[kind] - each[kind] * small["pages"] for kind in KINDS}
        together[workers] = sum(each[kind] for kind in KINDS[:3])
        begun = sum(first[kind] for kind in KINDS[:3])
        print(
            f"{workers:>7} {large['pages']:>6.0f} {large['seconds']:>5.0f} {begun:>22.1f}"
            f"{first['daemons']:>10.1f} {1e6 * each['command']:>14.0f} {1e6 * each['keepers']:>7.0f} "
            f"{1e6 * each['shards']:>6.0f} {1e6 * together[workers]:>8.0f} {1e6 * each['daemons']:>7.0f} "
            f"{large['bytes_between'] / large['pages']:>7.0f}"
        )
    print(f"a page takes {together[2] / together[1]:.2f} times the processor with two workers; without Ray's daemons")


if __name__ == "__main__":
    main()
