"""What a second worker costs: seconds of processor a page with one worker and with two on Ray, and what goes between.

    python benchmarks/bench_cluster.py [--pages 20000] [--hosts 200] [--rounds 3] [--json FILE]

A made web of several sites on loopback, the `own` preset. Counted are the crawl's processes with all that they started
(command, child, keepers, coordinator, shards) and, apart, Ray's own daemons. Start and end are in it: the more pages,
the less they weigh. The web's own process is not counted.
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
from pathlib import Path

from gossamer.simweb.options import SimwebOptions
from gossamer.simweb.process import SimwebProcess

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
LOOK_S = 0.2
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
    return "keepers" if "ray::" in line else "command"


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
    process = subprocess.Popen([sys.executable, "-m", "gossamer", *words])
    spent: dict[int, float] = {}
    kinds: dict[int, str] = {}
    while process.poll() is None:
        for pid in tree(process.pid):
            try:
                spent[pid], kinds[pid] = cpu_of(pid), kind_of(pid)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    options = SimwebOptions.plain(hosts=given.hosts, pages=given.pages, hosts_per_site=2)
    table: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as name, SimwebProcess(options) as web:
        for _ in range(given.rounds):
            for workers, done in table.items():
                done.append(crawl(web, Path(name), workers))
    print("workers  pages   s    µs of processor a page: command keepers shards  all but daemons  daemons  bytes/page")
    totals = {}
    for workers, rounds in table.items():
        middle = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        pages = middle["pages"]
        each = {key: 1e6 * middle[key] / pages for key in ("command", "keepers", "shards", "daemons")}
        totals[workers] = each["command"] + each["keepers"] + each["shards"]
        print(
            f"{workers:>7}  {pages:>6.0f} {middle['seconds']:>4.0f} {each['command']:>33.0f} {each['keepers']:>7.0f} "
            f"{each['shards']:>6.0f} {totals[workers]:>16.0f} {each['daemons']:>8.0f} "
            f"{middle['bytes_between'] / pages:>11.0f}"
        )
    print(f"two workers take {totals[2] / totals[1]:.2f} times the processor of one, a page; without Ray's daemons")
    if given.json:
        given.json.write_text(json.dumps({str(workers): rounds for workers, rounds in table.items()}))


if __name__ == "__main__":
    main()
