"""Fuzz the targets for a time: each in turn, beginning with another one every hour.

python -m tests.fuzz [--seconds N] [TARGET ...]
"""

from __future__ import annotations

import argparse
import sys
import time

from hypothesis import HealthCheck, Phase, settings

from tests.fuzz.targets import TARGETS

EXAMPLES = 200
HOUR_S = 3600


def main() -> int:
    """Run targets until the time is over; a failure shows its smallest example."""
    parser = argparse.ArgumentParser(description="Fuzz what reads bytes.")
    parser.add_argument("--seconds", type=float, default=120.0, help="for how long")
    parser.add_argument("targets", nargs="*", help="all, where none is named")
    given = parser.parse_args()
    names = given.targets or list(TARGETS)
    deep = settings(
        max_examples=EXAMPLES, deadline=None, derandomize=False, database=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    tests = [deep(TARGETS[name]) for name in names]
    turn, runs, ends_at = int(time.time() // HOUR_S) * 7, 0, time.monotonic() + given.seconds
    while time.monotonic() < ends_at:
        tests[(turn + runs) % len(names)]()
        runs += 1
    print(f"{runs} runs of {EXAMPLES} examples, over {min(runs, len(names))} of {len(names)} targets: nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
