"""What a change saves: crawls by two versions of the package at once, on one core, so that both meet the same load.

    python benchmarks/bench_pairs.py [--kind KIND] [--pairs N] OLD NEW

OLD and NEW are folders that hold the package `gossamer`, such as `src` of two worktrees. The ratio of their processor
seconds varies by 0.005 beside a dozen busy processes, where crawls in turns (bench_crawl.py) vary by 0.08.
"""

from __future__ import annotations

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, pstdev

from bench_crawl import nginx_for
from kinds import KINDS


def pair(folders: list[Path], seeds: list[str], options: tuple[str, ...], first: int) -> list[float]:
    """Crawl with both at once, one of them started first; return the processor seconds of each."""
    with tempfile.TemporaryDirectory() as temporary:
        places: dict[int, int] = {}
        for at in (first, 1 - first):
            command = [sys.executable, "-m", "gossamer", "crawl", *seeds, "-o", f"{temporary}/{at}", *options]
            environment = {**os.environ, "PYTHONPATH": str(folders[at])}
            places[subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL).pid] = at
        took_s = [0.0, 0.0]
        for _ in folders:
            pid, status, usage = os.wait3(0)
            if status:
                raise SystemExit(f"the crawl with {folders[places[pid]]} failed")
            took_s[places[pid]] = usage.ru_utime + usage.ru_stime
        return took_s


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=[name for name, kind in KINDS.items() if not kind.tls], default="light")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args()
    folders = [given.old.resolve(), given.new.resolve()]
    for folder in folders:
        compileall.compile_dir(folder, quiet=1)
    options = ("--politeness", "own", "--allow-private", "--quiet", *KINDS[given.kind].options)
    with tempfile.TemporaryDirectory() as temporary:
        server, _ = nginx_for(KINDS[given.kind], Path(temporary))
        with server as nginx:
            seeds = [f"{origin}/" for origin in nginx.origins]
            cores = sorted(os.sched_getaffinity(0))
            found: list[list[float]] = []
            for number in range(given.pairs):
                os.sched_setaffinity(0, {cores[number // 2 % len(cores)]})
                found.append(pair(folders, seeds, options, number % 2))
                print(f"{found[-1][0]:.2f} {found[-1][1]:.2f} {found[-1][1] / found[-1][0]:.3f}", flush=True)
    ratios = [new / old for old, new in found]
    old_s, new_s = (median(one) for one in zip(*found, strict=True))
    print(f"old {old_s:.2f} s, new {new_s:.2f} s, ratio {median(ratios):.3f}, deviation {pstdev(ratios):.3f}")


if __name__ == "__main__":
    main()
