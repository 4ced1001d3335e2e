"""Every behaviour of the synthetic web, hostile ones and traps too, crawled as people would: each row is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.lab.simweb.behaviors import BEHAVIORS

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.promise("What is fetched", "Traps are cut off, and no other page of their host."),
]
RUN_S_MAX = 240
"""About 25 s on an idle machine."""
RSS_BYTES_MAX = 700 << 20
"""A page of 10 GB decoded, and one of 100,000 links, are among those that are read."""


@pytest.mark.long
def test_every_behaviour_is_met(tmp_path: Path) -> None:
    code = (
        "import resource, sys; from gossamer.cli.main import status_of_command as run\n"
        "status = run(sys.argv[1:])\n"
        "print('rss', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024); sys.exit(status)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, "conformance", "-o", str(tmp_path / "run")],
        capture_output=True, text=True, timeout=RUN_S_MAX, check=False,
    )  # fmt: skip
    lines = run.stdout.splitlines()
    assert [line for line in lines if line.endswith("WRONG")] == [], run.stderr
    assert [line.split()[0] for line in lines[1:-1]] == [each.name for each in BEHAVIORS]
    assert run.returncode == 0
    assert int(lines[-1].split()[1]) < RSS_BYTES_MAX
    assert (tmp_path / "run/logs/critical.log").read_text() == ""
    rows = [row for file in sorted((tmp_path / "run/pages").glob("*")) for row in pq.read_table(file).to_pylist()]
    trapped = [row for row in rows if row["outcome"] == "trapped"]
    assert trapped
    assert all("is a trap (score " in row["error"] for row in trapped)
