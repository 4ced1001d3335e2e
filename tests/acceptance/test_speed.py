"""A crawl costs no more than it did, beside the floor: whatever the machine, both run on it in turns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.acceptance, pytest.mark.alone]

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
REGRESSION_MAX = 1.15


def test_a_crawl_costs_no_more_beside_the_floor_than_it_did(tmp_path: Path) -> None:
    """The least of three rounds each: what else the machine does only ever adds."""
    known = json.loads((BENCHMARKS / "guard.json").read_text())["crawl_to_floor"]
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(BENCHMARKS / "bench_crawl.py"), "--hosts", "2", "--connections", "keep-alive"]
    done = subprocess.run([*command, "--json", str(figures)], capture_output=True, check=False, text=True, timeout=300)
    assert figures.is_file(), done.stderr
    told = json.loads(figures.read_text())["keep-alive"]
    assert told["Gossamer"]["pages"] == told["floor"]["pages"] > 3_000
    ratio = min(told["Gossamer"]["cpu_s_each"]) / min(told["floor"]["cpu_s_each"])
    assert ratio < REGRESSION_MAX * known, f"{ratio:.2f} times the floor, {known} when it was last measured"
