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
    known = json.loads((BENCHMARKS / "guard.json").read_text())
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(BENCHMARKS / "bench_crawl.py"), "--kinds", *known]
    done = subprocess.run([*command, "--json", str(figures)], capture_output=True, check=False, text=True, timeout=600)
    assert figures.is_file(), done.stderr
    measured = json.loads(figures.read_text())
    ratios = {}
    for kind in known:
        of_kind = measured[kind]
        assert of_kind["Gossamer"]["pages"] == of_kind["floor"]["pages"] > 400
        ratios[kind] = min(of_kind["Gossamer"]["cpu_s_each"]) / min(of_kind["floor"]["cpu_s_each"])
    dearer = {kind: ratio for kind, ratio in ratios.items() if ratio > REGRESSION_MAX * known[kind]}
    assert not dearer, f"times the floor: {dearer}; when they were last measured: {known}"
