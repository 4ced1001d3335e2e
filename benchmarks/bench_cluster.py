"""Cost of several shards: processor time a page, start and memory, with one worker, two here, and two on Ray.

    python benchmarks/bench_cluster.py [--pages 20000] [--hosts 200] [--rounds 3] [--only one,two,ray] [--json FILE]

A synthetic web of several sites on loopback, the `own` preset. Counted are the crawl's processes with all that they
start (command, child, shards) and for `ray` a Ray on loopback that is started for each crawl: its daemons, and the
parents of the shards and the coordinator, which run there. A page costs what is spent between a fifth and nine tenths
of the pages; the rest is start and end. `waits` is the time that the shards were ready to run and had no processor:
server and crawl share the processors, so it says what the figures beside it are worth. The web's own process is not
counted, and has a processor for itself: the crawl shares another, whatever its workers. With a FILE that has rounds of
earlier runs, medians are those of all.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from gossamer.api.asking import NotRunningError
from gossamer.cli.control import ask
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
LOOK_S = 0.1
CRAWLS_ON, WEB_ON = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
DAEMONS = (
    "gcs_server",
    "raylet",
    "dashboard",
    "monitor.py",
    "DashboardAgent",
    "RuntimeEnvAgent",
    "ray::IDLE",
    "HEAD =",
)
RAY = """
HEAD = "a Ray on loopback, until standard input ends"
import sys, ray
from ray._private import ray_constants
ray_constants.ENABLE_RAY_CLUSTER = False
ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=80 << 20, log_to_driver=False)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""
WORKERS = {"one": 1, "two": 2, "four": 4, "ray": 2}
KINDS = ("command", "keepers", "shards", "daemons")
Spent = dict[str, float]
FROM, TO = 0.2, 0.9
"""Of all pages: between these a page's cost is measured."""


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def waiting_of(pid: int) -> float:
    """Return the seconds that a process was ready to run and had no processor."""
    return 1e-9 * sum(int(one.read_text().split()[1]) for one in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def pss_of(pid: int) -> float:
    """Return a process's memory in MB; what several share counts in parts."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000


def kind_of(pid: int) -> str:
    line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    if any(name in line for name in DAEMONS):
        return "daemons"
    if "gossamer.api.member" in line:
        return "shards"
    return "keepers" if "ray::" in line or "default_worker" in line else "command"


def tree(roots: Sequence[int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = []
    waiting = [*roots]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


class Watch:
    """What processes and all that they start have spent."""

    def __init__(self, roots: Sequence[int]) -> None:
        self._roots = roots
        self._spent: dict[int, float] = {}
        self._waited: dict[int, float] = {}
        self._kinds: dict[int, str] = {}
        self.pss_mb: dict[str, float] = {}
        """By kind of process, the most at any look."""

    def look(self) -> Spent:
        held = dict.fromkeys(KINDS, 0.0)
        for pid in tree(self._roots):
            try:
                self._spent[pid], kind = cpu_of(pid), kind_of(pid)
            except OSError:
                continue
            self._kinds[pid] = kind if kind != "command" else self._kinds.get(pid, kind)  # A title goes first.
            with suppress(OSError, StopIteration):
                self._waited[pid] = waiting_of(pid)
                held[self._kinds[pid]] += pss_of(pid)
        self.pss_mb = {kind: max(held[kind], self.pss_mb.get(kind, 0.0)) for kind in KINDS}
        sums = dict.fromkeys((*KINDS, "waits"), 0.0)
        for pid, seconds in self._spent.items():
            sums[self._kinds.get(pid, "command")] += seconds
            # One shard runs in the command's child, and is all that waits there.
            sums["waits"] += self._waited.get(pid, 0.0)
        return sums


@contextmanager
def ray_here() -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    with subprocess.Popen(
        ["taskset", "-c", str(CRAWLS_ON), sys.executable, "-c", RAY],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


def crawl(web: SimwebProcess, folder: Path, name: str) -> dict[str, float]:
    """Crawl and return seconds of processor by kind of process, and what was counted."""
    if name != "ray":
        return crawl_on(web, folder, WORKERS[name], (), [])
    began = time.monotonic()
    with ray_here() as ray:
        assert ray.stdout is not None
        address = ray.stdout.readline().strip()
        found = crawl_on(web, folder, WORKERS[name], ("--cluster", address), [ray.pid])
        found["first_page_s"] += time.monotonic() - began - found["seconds"]
        return found


def crawl_on(
    web: SimwebProcess, folder: Path, workers: int, where: Sequence[str], beside: list[int]
) -> dict[str, float]:
    directory = folder / f"crawl-{workers}-{time.monotonic_ns()}"
    seeds = folder / "seeds.txt"
    seeds.write_text("\n".join(web.seeds))
    words = ["crawl", "--seeds", str(seeds), "--scope", "any", "--politeness", "own", "--allow-private", "--quiet"]
    words += ["--hosts", str(web.hosts_file), "--workers", str(workers), "-o", str(directory), *where]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}
    began = time.monotonic()
    command = ["taskset", "-c", str(CRAWLS_ON), sys.executable, "-m", "gossamer", *words]
    process = subprocess.Popen(command, env=environment)
    watch = Watch([process.pid, *beside])
    samples: list[tuple[float, Spent]] = []
    first_page_s = 0.0
    while process.poll() is None:
        samples.append((pages_of(directory), watch.look()))
        first_page_s = first_page_s or (time.monotonic() - began) * bool(samples[-1][0])
        time.sleep(LOOK_S)
    seconds = time.monotonic() - began
    assert process.returncode == 0, "the crawl failed"
    status = subprocess.run(
        [sys.executable, "-m", "gossamer", "status", str(directory), "--json"], capture_output=True, check=True
    )
    standing = directory / "state/standing.json"
    last = json.loads(standing.read_text()) if standing.exists() else {}
    pages = float(json.loads(status.stdout)["pages"])
    first, *_, late = [sample for sample in samples if FROM * pages <= sample[0] <= TO * pages]
    each = {kind: (late[1][kind] - first[1][kind]) / (late[0] - first[0]) for kind in (*KINDS, "waits")}
    rest = {f"{kind}_once_s": samples[-1][1][kind] - each[kind] * pages for kind in KINDS}
    held = {f"{kind}_mb": watch.pss_mb[kind] for kind in KINDS}
    between = float(last.get("bytes_between_shards", 0)) / pages
    return {
        "pages": pages, "seconds": seconds, "first_page_s": first_page_s, "bytes_between": between,
        **each, **rest, **held,
    }  # fmt: skip


def pages_of(directory: Path) -> float:
    """Return the pages so far."""
    try:
        answer = ask(directory, "status")
    except (ConfigError, NotRunningError):
        return 0.0
    return float(answer["pages"]) if isinstance(answer, dict) else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="one,two,ray")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rounds: dict[str, list[dict[str, float]]] = {}
    if given.json and given.json.exists():
        rounds = json.loads(given.json.read_text())
    os.sched_setaffinity(0, {WEB_ON})
    options = SimwebOptions.plain(hosts=given.hosts, pages=given.pages, hosts_per_site=2)
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as name, SimwebProcess(options) as web:
        for _ in range(given.rounds):
            for one in given.only.split(","):
                rounds.setdefault(one, []).append(crawl(web, Path(name), one))
    tell(rounds)
    if given.json:
        given.json.write_text(json.dumps(rounds))


def tell(rounds: dict[str, list[dict[str, float]]]) -> None:
    print("       rounds  first   start and end, CPU s  µs of CPU a page                                    PSS, MB")
    print(
        "               page s  crawl        daemons  command keepers shards together (least, most) waits  all  shards"
    )
    together: dict[str, float] = {}
    for one, done in rounds.items():
        middle = {key: statistics.median(each[key] for each in done) for key in done[0]}
        sums = [1e6 * sum(each[kind] for kind in KINDS[:3]) for each in done]
        together[one] = statistics.median(sums)
        once_s = statistics.median(sum(each[f"{kind}_once_s"] for kind in KINDS[:3]) for each in done)
        print(
            f"{one:<6} {len(done):>6} {middle['first_page_s']:>7.1f} {once_s:>6.1f} {middle['daemons_once_s']:>14.1f} "
            f"{1e6 * middle['command']:>8.0f} {1e6 * middle['keepers']:>7.0f} {1e6 * middle['shards']:>6.0f} "
            f"{together[one]:>8.0f} ({min(sums):.0f}, {max(sums):.0f}) {1e6 * middle['waits']:>6.0f} "
            f"{sum(middle[f'{kind}_mb'] for kind in KINDS):>5.0f} {middle['shards_mb']:>6.0f}"
        )
    for one, cost in together.items():
        if one != "one" and "one" in together:
            print(f"{one}: a page takes {cost / together['one']:.2f} times the processor of one worker")


if __name__ == "__main__":
    main()
