"""What the benchmarks of whole crawls share: a site of real pages, a crawl that is measured, and the table of figures.

A crawl is a command in a process of its own, and everything counts from its start to its end: processor time of the
whole process tree, wall time, the peak memory of its largest process. The server's log says what it fetched.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.acceptance.nginx import Nginx  # noqa: E402 - found by the line above

WGET_WITH_ERRORS = ("wget", 8)
"""How wget ends when a server answered 404 to anything."""
Command = Callable[[int], Sequence[str]]
"""The command of the n-th round."""


class Run(NamedTuple):
    """One whole crawl."""

    pages: frozenset[str]
    """HTML pages that the server sent, as host and path."""
    cpu_s: float
    wall_s: float
    peak_bytes: int


def measured(command: Sequence[str], nginx: Nginx) -> Run:
    """Run a command to its end and count what it and all its children took."""
    before = len(nginx.log())
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and (command[0], process.returncode) != WGET_WITH_ERRORS:
        raise SystemExit(f"{command} ended with {process.returncode}")
    sent = (one for one in nginx.log()[before:] if one.status == 200 and one.media_type == "text/html")
    pages = frozenset(one.host + one.path for one in sent)
    return Run(pages, usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss * 1024)


def held_by(pid: int) -> dict[str, float]:
    """Return what a process holds now. Raises OSError: it has ended."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {
        "descriptors": float(len(list(Path(f"/proc/{pid}/fd").iterdir()))),
        "threads": float(lines.get("Threads", 0)),
        "resident_mb": float(lines.get("VmRSS", "0 kB").split()[0]) / 1_024,
    }


def in_turns(commands: Mapping[str, Command], rounds: int, nginx: Nginx) -> dict[str, list[Run]]:
    """Run each in each round: whatever else the machine does falls on all of them."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            runs[name].append(measured(command(number), nginx))
    return runs


def figures(runs: Mapping[str, Sequence[Run]]) -> dict[str, dict[str, Any]]:
    """Return the medians of each, and Gossamer's pages per CPU-second beside each other's, round by round."""
    ours = [len(run.pages) / run.cpu_s for run in runs["Gossamer"]]
    told: dict[str, dict[str, Any]] = {}
    for name, same in runs.items():
        rates = [len(run.pages) / run.cpu_s for run in same]
        told[name] = {
            "pages": len(same[0].pages),
            "rounds": len(same),
            "cpu_s": round(median(run.cpu_s for run in same), 3),
            "cpu_s_each": [round(run.cpu_s, 3) for run in same],
            "wall_s": round(median(run.wall_s for run in same), 3),
            "pages_per_cpu_s": round(median(rates), 1),
            "gossamer_beside": round(median(our / rate for our, rate in zip(ours, rates, strict=True)), 3),
            "peak_bytes": int(median(run.peak_bytes for run in same)),
        }
    return told


def print_table(title: str, told: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the figures as a table for people."""
    print(f"\n{title}\n")
    print("| | pages | CPU s | wall s | µs CPU a page | pages per CPU-second | Gossamer beside it | peak MB |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: |")
    for name, row in told.items():
        page_us = 1e6 * row["cpu_s"] / max(1, row["pages"])
        print(
            f"| {name} | {row['pages']:,} | {row['cpu_s']:.2f} | {row['wall_s']:.2f} | {page_us:,.0f} "
            f"| {row['pages_per_cpu_s']:,.0f} | {row['gossamer_beside']:.2f} x | {row['peak_bytes'] / 1e6:.0f} |",
            flush=True,
        )


def write_json(path: Path | None, told: Mapping[str, Any]) -> None:
    """Keep the figures beside what they were taken on."""
    if path is not None:
        machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "kind": platform.machine()}
        path.write_text(json.dumps({"machine": machine, **told}, indent=2) + "\n")
