"""What a second worker costs: seconds of processor a page with one worker and with two on Ray, and what goes between.

    python benchmarks/bench_cluster.py [--pages 20000] [--hosts 200] [--rounds 3] [--json FILE]

A made web of several sites on loopback, the `own` preset. Counted are the crawl's processes with all that they started
(command, child, keepers, coordinator, shards) and, apart, Ray's own daemons. What is spent between a fifth and nine
tenths of the pages is what a page costs; the rest is start and end, and told apart. The web's own process is not
counted, and has a processor of its own: all of the crawl shares another, whatever its workers, for two that run at once
on two threads of one core would slow each other down.
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

from gossamer.cli.control import NoCrawlRunsError, ask
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError

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


KINDS = ("command", "keepers", "shards", "daemons")
Spent = dict[str, float]
FROM, TO = 0.2, 0.9
"""Of all pages: between these a page's cost is measured."""


class Watch:
    """What a process and all that it starts have spent."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._spent: dict[int, float] = {}
        self._kinds: dict[int, str] = {}

    def look(self) -> Spent:
        for pid in tree(self._root):
            try:
                self._spent[pid], kind = cpu_of(pid), kind_of(pid)
            except OSError:
                continue
            self._kinds[pid] = kind if kind != "command" else self._kinds.get(pid, kind)  # A title goes first.
        sums = dict.fromkeys(KINDS, 0.0)
        for pid, seconds in self._spent.items():
            sums[self._kinds.get(pid, "command")] += seconds
        return sums


def crawl(web: SimwebProcess, folder: Path, workers: int) -> dict[str, float]:
    """Crawl and return seconds of processor by kind of process, and what was counted."""
    directory = folder / f"crawl-{workers}-{time.monotonic_ns()}"
    seeds = folder / "seeds.txt"
    seeds.write_text("\n".join(web.seeds))
    words = ["crawl", "--seeds", str(seeds), "--scope", "any", "--politeness", "own", "--allow-private", "--quiet"]
    words += ["--hosts", str(web.hosts_file), "--workers", str(workers), "-o", str(directory)]
    began = time.monotonic()
    process = subprocess.Popen(["taskset", "-c", str(CRAWLS_ON), sys.executable, "-m", "gossamer", *words])
    watch = Watch(process.pid)
    samples: list[tuple[float, Spent]] = []
    while process.poll() is None:
        samples.append((pages_of(directory), watch.look()))
        time.sleep(LOOK_S)
    assert process.returncode == 0, "the crawl failed"
    status = subprocess.run(
        [sys.executable, "-m", "gossamer", "status", str(directory), "--json"], capture_output=True, check=True
    )
    standing = directory / "state/standing.json"
    last = json.loads(standing.read_text()) if standing.exists() else {}
    pages = float(json.loads(status.stdout)["pages"])
    first, *_, late = [sample for sample in samples if FROM * pages <= sample[0] <= TO * pages]
    each = {kind: (late[1][kind] - first[1][kind]) / (late[0] - first[0]) for kind in KINDS}
    rest = {f"{kind}_once_s": samples[-1][1][kind] - each[kind] * pages for kind in KINDS}
    between = float(last.get("bytes_between_shards", 0)) / pages
    return {"pages": pages, "seconds": time.monotonic() - began, "bytes_between": between, **each, **rest}


def pages_of(directory: Path) -> float:
    """Return the pages so far."""
    try:
        answer = ask(directory, "status")
    except (ConfigError, NoCrawlRunsError):
        return 0.0
    return float(answer["pages"]) if isinstance(answer, dict) else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rounds: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    os.sched_setaffinity(0, {WEB_ON})
    options = SimwebOptions.plain(hosts=given.hosts, pages=given.pages, hosts_per_site=2)
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as name, SimwebProcess(options) as web:
        for _ in range(given.rounds):
            for workers, done in rounds.items():
                done.append(crawl(web, Path(name), workers))
    tell(rounds)
    if given.json:
        given.json.write_text(json.dumps(rounds))


def tell(rounds: dict[int, list[dict[str, float]]]) -> None:
    print("workers  pages     s   start and end, s of processor   µs of processor a page                 bytes between")
    print("                        all but daemons   daemons        command keepers shards together daemons  a page")
    together = {}
    for workers, done in rounds.items():
        middle = {key: statistics.median(one[key] for one in done) for key in done[0]}
        together[workers] = sum(middle[kind] for kind in KINDS[:3])
        once_s = sum(middle[f"{kind}_once_s"] for kind in KINDS[:3])
        print(
            f"{workers:>7} {middle['pages']:>6.0f} {middle['seconds']:>5.0f} {once_s:>22.1f}"
            f"{middle['daemons_once_s']:>10.1f} {1e6 * middle['command']:>14.0f} {1e6 * middle['keepers']:>7.0f} "
            f"{1e6 * middle['shards']:>6.0f} {1e6 * together[workers]:>8.0f} {1e6 * middle['daemons']:>7.0f} "
            f"{middle['bytes_between']:>7.0f}"
        )
    print(f"a page takes {together[2] / together[1]:.2f} times the processor with two workers; without Ray's daemons")


if __name__ == "__main__":
    main()
