"""An innocent host's pages beside N hostile hosts: how much of the pace that politeness permits it keeps.

    python benchmarks/bench_hostile.py [--hosts N …]

Each hostile host serves chunks of one byte, and chunk extensions, folded headers, interim replies, header lines and
trailers without end (the behavior `floods` of the synthetic web). The innocent host is asked once a second. Its
pace is the share of its permitted turns that it had, by the server's log. Fails below 90 % of the pace without hostile
hosts. The machine must be quiet.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.ring.beside import LAG_S_P99_MAX, PACE_MIN, beside


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[0, 1, 4, 16])
    given = parser.parse_args()
    print("hostile hosts  innocent requests  a second  pace  beside alone  hostile requests  lag p99  lag max")
    alone, failed = 0.0, False
    for hosts in given.hosts:
        with tempfile.TemporaryDirectory() as directory:
            seen = beside(Path(directory), ("floods",) if hosts else (), hosts)
        pace = seen.innocent.utilisation
        alone = alone or pace
        failed |= pace < PACE_MIN * alone or seen.lag_s_p99 > LAG_S_P99_MAX
        print(
            f"{hosts:13}  {seen.innocent.requests:17}  {seen.innocent.achieved_per_s:8.2f}  {pace:4.0%}"
            f"  {pace / alone:12.0%}  {seen.hostile:16}"
            f"  {seen.lag_s_p99 * 1e3:4.0f} ms  {seen.lags_s[-1] * 1e3:4.0f} ms",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
