"""A crawl of ten thousand pages holds no more at its end than it did before: a leak of one thing a page would show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = 10_000
MEMORY_RATIO_MAX = 1.3
"""Of the last tenth to the third: caches fill up to their bounds, 10 to 15 % here."""
CPU_RATIO_MAX = 1.5
"""Of a page in the last three tenths to one in the three before: 1.0, but for what other programs do to the processor's
caches.
"""
SPARE = 8
"""Descriptors, threads or tasks that come and go."""
TASKS_MAX = 200
"""With requests under way in the default number; one task a page would be thousands."""


@pytest.mark.acceptance
@pytest.mark.timeout(400)
@pytest.mark.long
def test_what_a_crawl_holds_does_not_grow_with_its_pages(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    benchmark = Path(__file__).parents[2] / "benchmarks/bench_growth.py"
    command = [sys.executable, str(benchmark), "--soak", "--pages", str(PAGES), "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(figures.read_text())["soak"]
    assert (len(rows), rows[-1]["pages"]) == (10, PAGES)
    third, last = rows[2], rows[-1]
    for kind in ("descriptors", "threads"):
        assert last[kind] <= third[kind] + SPARE, done.stdout
    assert max(row["tasks"] for row in rows) <= TASKS_MAX, done.stdout
    assert last["resident_mb"] <= MEMORY_RATIO_MAX * third["resident_mb"], done.stdout
    late, before = (sum(row["page_us"] for row in rows[at : at + 3]) for at in (7, 4))
    assert late <= CPU_RATIO_MAX * before, done.stdout
