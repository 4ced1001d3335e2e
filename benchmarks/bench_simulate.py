"""Predictions of `gossamer simulate`, written before the runs, and what real crawls of the same synthetic webs then do.

    python benchmarks/bench_simulate.py [--seeds N…] [--presets NAME…] [--keep DIRECTORY]
    python benchmarks/bench_simulate.py --units     what a page costs a real crawl: the defaults of machine.cpu_us_per_…
    python benchmarks/bench_simulate.py --cost     what simulating costs: µs of CPU a simulated page

Each preset describes a synthetic web (hosts, sizes, delays, who is slow, who asks for a Crawl-delay) and a politeness;
the simulation is given the same seed as the web. The real crawl is `gossamer crawl` against that web on loopback with
the same politeness, every host's front page a seed. Politeness limits both, so what is compared does not depend on the
machine: pages, requests, and the time until half, nine tenths and all of the pages are
fetched, by the server's own log.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
from msgspec.structs import replace

import gossamer
from gossamer.lab.simulate.arguments import options_of
from gossamer.lab.simulate.presets import PRESETS
from gossamer.lab.simulate.simulation import simulate
from gossamer.lab.simweb.log import Logged
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.options import to_table
from gossamer.results.report.report import summary

SYNTHETIC = ("simweb-even", "simweb-uneven")
TOLERANCE = 0.15
DRAWS = 5
CRAWL_S_MAX = 900
FIGURES = ("pages", "requests", "half_s", "nine_tenths_s", "time_s", "pages_per_s")


class Told(msgspec.Struct, frozen=True):
    """What is compared."""

    preset: str
    seed: int
    pages: float
    requests: float
    half_s: float
    nine_tenths_s: float
    time_s: float
    pages_per_s: float


def predicted(preset: str, seed: int, *sets: str) -> Told:
    """Return what the simulation says: the median over several draws of what the web leaves to chance.

    Where one slow host ends last, a single draw of its fifty latencies may be a quarter off their mean.
    """
    options = options_of(preset, {"seed": seed}, sets)
    results = [simulate(replace(options, seed=100 * seed + draw)) for draw in range(DRAWS)]
    return Told(preset, seed, **{name: median(getattr(one, name) for one in results) for name in FIGURES})


def real(preset: str, seed: int, directory: Path, *sets: str) -> Told:
    """Crawl the web that the preset describes, and return what its servers saw."""
    options = options_of(preset, {"seed": seed}, sets)
    assert options.simweb is not None
    with SimwebProcess(options.simweb, directory / "web") as simweb:
        seeds = directory / "seeds.txt"
        seeds.write_text("\n".join(simweb.web.fronts) + "\n")
        said = options.politeness
        keys = [f"politeness.{key}={json.dumps(value)}" for key, value in to_table(said).items() if key != "preset"]
        command = [sys.executable, "-m", "gossamer", "crawl", "--seeds", str(seeds), "-o", str(directory / "crawl")]
        command += ["--hosts", str(simweb.hosts_file), "--allow-private", "--quiet", "--politeness", said.preset]
        command += [word for key in keys for word in ("--set", key)]
        environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parent.parent)}
        subprocess.run(command, env=environment, check=True, timeout=CRAWL_S_MAX)
    return measured(preset, seed, list(simweb.requests()))


def measured(preset: str, seed: int, log: list[Logged]) -> Told:
    """Return the same figures from a server's log."""
    began = min(one.contact_at for one in log)
    ends = sorted(one.ended_at - began for one in log if one.status == 200 and one.path != "/robots.txt")
    pages = len(ends)
    half, nine_tenths = ends[round(pages * 0.5) - 1], ends[round(pages * 0.9) - 1]
    last = max(one.ended_at for one in log) - began
    return Told(preset, seed, pages, len(log), half, nine_tenths, last, pages / last)


def compare(before: Told, after: Told) -> Iterator[tuple[str, float, float, float]]:
    """Yield each figure's name, prediction, measurement, and their ratio."""
    for name in FIGURES:
        told, was = getattr(before, name), getattr(after, name)
        yield name, told, was, was / told


def check(presets: list[str], seeds: list[int], directory: Path) -> float:
    """Predict, write the predictions down, run, compare; return the worst deviation."""
    file = directory / "predictions.json"
    predictions = [predicted(preset, seed) for preset in presets for seed in seeds]
    file.write_bytes(msgspec.json.format(msgspec.json.encode(predictions), indent=1))
    print(f"predictions written to {file} at {time.strftime('%H:%M:%S')}, before any run")
    worst = 0.0
    print(f"{'preset':<15}{'seed':>5}  {'':<14}{'predicted':>11}{'real':>11}{'ratio':>8}")
    for before in predictions:
        after = real(before.preset, before.seed, directory / f"{before.preset}-{before.seed}")
        for name, told, was, ratio in compare(before, after):
            worst = max(worst, abs(ratio - 1.0))
            print(
                f"{before.preset:<15}{before.seed:>5}  {name:<14}{told:>11,.1f}{was:>11,.1f}{ratio:>8.3f}", flush=True
            )
    print(f"worst deviation {worst:.1%}, {TOLERANCE:.0%} allowed")
    return worst


def cost() -> None:
    """Print what a simulated page costs, with few and with many hosts."""
    print(f"{'preset':<15}{'pages':>10}{'CPU s':>8}{'µs/page':>9}")
    for preset in ("mercator2001", "irlbot2007", "web2025"):
        for pages in (10_000, 40_000):
            options = options_of(preset, {"pages_simulated": pages})
            began = time.process_time()
            result = simulate(options)
            spent = time.process_time() - began
            done = result.pages_simulated
            print(f"{preset:<15}{done:>10,}{spent:>8.1f}{spent / done * 1e6:>9.0f}", flush=True)


def units() -> None:
    """Fit the processor's time of a request, a thousand bytes and a link to real crawls of synthetic webs."""
    rows = []
    print(f"{'kB/page':>9}{'links':>7}{'pages':>8}{'CPU s':>8}{'µs/page':>9}")
    for size, links in ((2_000, 8), (4_000, 30), (40_000, 30), (90_000, 30), (40_000, 200)):
        simweb = SimwebOptions.plain(
            hosts=8, pages=3_000, bytes_median=size, bytes_sigma=0.1, links_per_page=links, names_per_address=1
        )
        pages, kilobytes, found, spent = crawled(simweb)
        start = crawled(replace(simweb, pages=8))[3]
        rows.append((1.0, kilobytes / pages, found / pages, (spent - start) / pages * 1e6))
        print(f"{rows[-1][1]:>9.1f}{rows[-1][2]:>7.1f}{pages:>8}{spent - start:>8.2f}{rows[-1][3]:>9.0f}", flush=True)
    table = np.array(rows)
    (page, kb, link), *_ = np.linalg.lstsq(table[:, :3], table[:, 3], rcond=None)
    print(f"fit: {page:.0f} µs a page + {kb:.1f} µs/kB + {link:.1f} µs/link")


def crawled(simweb: SimwebOptions) -> tuple[int, float, int, float]:
    """Crawl a synthetic web without delays; return its pages, their kB decoded, links, and the processor's time."""
    with tempfile.TemporaryDirectory() as folder, SimwebProcess(simweb, Path(folder) / "web") as served:
        directory = Path(folder) / "crawl"
        command = [sys.executable, "-m", "gossamer", "crawl", served.seeds[0], "-o", str(directory), "--quiet"]
        command += ["--hosts", str(served.hosts_file), "--allow-private", "--politeness", "own", "--scope", "any"]
        environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parent.parent)}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(command, env=environment)
        process.wait(CRAWL_S_MAX)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = summary(directory)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return report.fetched, report.body_bytes / 1e3, report.links, spent


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--presets", nargs="+", default=list(SYNTHETIC), choices=[*PRESETS])
    parser.add_argument("--keep", type=Path, help="keep predictions and crawls here")
    parser.add_argument("--units", action="store_true")
    parser.add_argument("--cost", action="store_true")
    given = parser.parse_args()
    if given.units:
        units()
        return 0
    if given.cost:
        cost()
        return 0
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
        return int(check(given.presets, given.seeds, given.keep) > TOLERANCE)
    with tempfile.TemporaryDirectory() as directory:
        return int(check(given.presets, given.seeds, Path(directory)) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
