"""A documentation site behind nginx, crawled by Gossamer, by Scrapy as shipped, and by the floor (floor.py).

    python benchmarks/bench_real_site.py [--rounds N] [--hosts N] [--json FILE]

Each in a process of its own, in turns, on the same site, and everything counts from its start to its end: processor
time of the whole process tree, wall time, the peak memory of its largest process. Medians over the rounds. The server's
log says what each fetched; where they did not fetch the same pages the comparison fails.

Scrapy stores nothing; Gossamer and the floor write WARC and tables. `--hosts N` serves the site at N addresses of
loopback at once: start-up weighs less then.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.acceptance.nginx import Nginx  # noqa: E402 - found by the line above

SITE = Path("/usr/share/doc/python3-doc/html")
RATIO_MIN = 6.0
"""Pages per CPU-second beside Scrapy as shipped: what was promised."""


class Run(NamedTuple):
    """One whole crawl."""

    pages: frozenset[str]
    """HTML pages that the server sent, as host and path."""
    cpu_s: float
    wall_s: float
    peak_bytes: int


def measured(command: list[str], nginx: Nginx) -> Run:
    """Run a command to its end and count what it and all its children took."""
    before = len(nginx.log())
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    sent = (one for one in nginx.log()[before:] if one.status == 200 and one.media_type == "text/html")
    pages = frozenset(one.host + one.path for one in sent)
    return Run(pages, usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss * 1024)


def commands(seeds: list[str], directory: Path) -> dict[str, Callable[[int], list[str]]]:
    """Return what is measured: a name, and the command of the n-th round."""
    python = sys.executable
    options = ["--politeness", "own", "--allow-private", "--quiet"]
    return {
        "Gossamer": lambda n: [python, "-m", "gossamer", "crawl", *seeds, "-o", f"{directory}/crawl-{n}", *options],
        "floor": lambda n: [python, str(HERE / "floor.py"), f"{directory}/floor-{n}", *seeds],
        "Scrapy": lambda _: [python, str(HERE / "scrapy_spider.py"), *seeds],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as temporary,
        Nginx(SITE, Path(temporary) / "nginx", addresses=given.hosts) as nginx,
    ):
        ways = commands([f"{origin}/" for origin in nginx.origins], Path(temporary))
        runs: dict[str, list[Run]] = {name: [] for name in ways}
        for n in range(given.rounds):
            for name, command in ways.items():
                runs[name].append(measured(command(n), nginx))
    told = figures(runs)
    print_table(told)
    if given.json:
        told["machine"] = {"cpus": os.cpu_count(), "python": platform.python_version(), "kind": platform.machine()}
        given.json.write_text(json.dumps(told, indent=2) + "\n")
    if len({run.pages for same in runs.values() for run in same}) > 1:
        raise SystemExit("they did not fetch the same pages")
    if told["beside"]["Scrapy"] < RATIO_MIN:
        raise SystemExit(f"less than {RATIO_MIN:.0f} times Scrapy")


def figures(runs: dict[str, list[Run]]) -> dict[str, dict[str, object]]:
    """Return the medians of each, and Gossamer's pages per CPU-second beside the others'."""
    told: dict[str, dict[str, object]] = {}
    rates = {}
    for name, same in runs.items():
        pages = len(same[0].pages)
        cpu_s = median(run.cpu_s for run in same)
        rates[name] = pages / cpu_s
        told[name] = {
            "pages": pages,
            "rounds": len(same),
            "cpu_s": round(cpu_s, 3),
            "cpu_s_each": [round(run.cpu_s, 3) for run in same],
            "wall_s": round(median(run.wall_s for run in same), 3),
            "pages_per_cpu_s": round(rates[name], 1),
            "peak_bytes": int(median(run.peak_bytes for run in same)),
        }
    told["beside"] = {name: round(rates["Gossamer"] / rate, 2) for name, rate in rates.items() if name != "Gossamer"}
    return told


def print_table(told: dict[str, dict[str, object]]) -> None:
    print("|          | pages | CPU s | wall s | pages per CPU-second | peak MB |")
    print("| -------- | ----: | ----: | -----: | -------------------: | ------: |")
    for name, row in told.items():
        if name != "beside":
            peak_mb = int(str(row["peak_bytes"])) / 1e6
            print(
                f"| {name:<8} | {row['pages']:>5} | {row['cpu_s']:>5.2f} | {row['wall_s']:>6.2f} "
                f"| {row['pages_per_cpu_s']:>20} | {peak_mb:>7.0f} |"
            )
    beside = told["beside"]
    print(f"pages per CPU-second: {beside['Scrapy']} times Scrapy's, {beside['floor']} of the floor's")


if __name__ == "__main__":
    main()
