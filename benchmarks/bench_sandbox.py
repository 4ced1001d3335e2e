"""What the sandbox costs: `python benchmarks/bench_sandbox.py [PAIRS]` crawls one made web in turn with and without it.

Prints the processor seconds of both commands of each pair, and the median of their ratios.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess

PAGES = 2_000
CRAWL_S_MAX = 120.0


def processor_s(web: SimwebProcess, directory: Path, sandbox: str) -> float:
    """Return the processor time of a crawl's processes."""
    command = [
        sys.executable, "-m", "gossamer", "crawl", *web.seeds, "--hosts", str(web.hosts_file), "-o", str(directory),
        "--politeness", "own", "--allow-private", "--scope", "any", "--quiet", "--max-pages", str(PAGES),
        "--set", f"process.sandbox={sandbox}", "--set", "crawl.concurrency=16",
    ]  # fmt: skip
    before = os.times()
    subprocess.run(command, check=True, timeout=CRAWL_S_MAX)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with SimwebProcess(SimwebOptions.plain(seed=1, hosts=16, pages=PAGES), folder / "web") as web:
            for number in range(pairs):
                order = ("on", "off") if number % 2 else ("off", "on")
                took = {one: processor_s(web, folder / f"{number}-{one}", one) for one in order}
                ratios.append(took["on"] / took["off"])
                print(f"on {took['on']:.2f} s  off {took['off']:.2f} s  {ratios[-1] - 1:+.1%}", flush=True)
    print(f"median {median(ratios) - 1:+.1%} of {pairs} pairs")


if __name__ == "__main__":
    main()
