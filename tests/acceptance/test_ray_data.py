"""Ray Data reads what a crawl on a Ray cluster wrote: tables, and bodies by the program of the documentation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.test_workers import crawl_of, gossamer
from tests.api.test_docs import ROOT, fenced
from tests.api.test_iterating import PANDAS
from tests.cluster.nodes import Nodes
from tests.crash.harvest import Harvest

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

WEB = SimwebOptions(
    seed=4, hosts=12, hosts_per_site=1, pages=120, bytes_median=2_000, behaviours=("redirects", "copies", "compressed")
)  # fmt: skip
ITEMS = '[extract.note.fields]\nname = "title"\n'
COUNT = """
import json, os
import ray
read = lambda name: ray.data.read_parquet(os.path.abspath(f"crawl/{name}"))
print(json.dumps({name: read(name).count() for name in ("pages", "links", "items/note")}))
"""


@pytest.mark.promise("Files and exports", "Ray Data reads the tables of a crawl, and bodies from its WARC files.")
@pytest.mark.long
def test_ray_data_reads_tables_and_bodies(nodes: Nodes, tmp_path: Path) -> None:
    assert PANDAS.is_dir(), "pandas is missing: `make pandas` installs it beside the environment"
    (tmp_path / "items.toml").write_text(ITEMS)
    with SimwebProcess(WEB, tmp_path / "web") as web:
        words = [*crawl_of(web, tmp_path / "crawl", 2), "--cluster", nodes.address, "-c", tmp_path / "items.toml"]
        done = gossamer(*words)
        assert done.returncode == 0, done.stderr
    (tmp_path / "crawl/pages/pages-000-0009-000001.parquet.open").write_bytes(b"it grows")
    harvest = Harvest(tmp_path / "crawl")
    counts = json.loads(said_by(COUNT, nodes, tmp_path)[-1])
    assert (counts["pages"], counts["links"]) == (len(harvest.rows), harvest.links.total())
    assert counts["items/note"] == sum(1 for row in harvest.rows if row["title"])
    [program] = [one for one in fenced((ROOT / "docs/reference/output.md").read_text()) if "ray_pages.py" in one]
    first, *bodies = said_by(program, nodes, tmp_path)
    assert first == f"{counts['pages']} {counts['links']}"
    archived = [row for row in harvest.rows if row["warc_type"] == "response"]
    assert len({row["shard"] for row in archived}) == 2
    assert sorted(bodies) == sorted(f"{row['url']} {row['body_bytes']}" for row in archived)


def said_by(program: str, nodes: Nodes, folder: Path) -> list[str]:
    """Return what a program prints that runs beside the crawl; its runtime environment has pandas."""
    path = os.pathsep.join([str(PANDAS), *filter(None, sys.path)])
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    environment |= {"PYTHONPATH": path, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    # The cluster is of loopback alone: Ray would look for it at this machine's other address.
    start = "import ray\nfrom ray._private import ray_constants\nray_constants.ENABLE_RAY_CLUSTER = False\n"
    start += f"ray.init({nodes.address!r}, runtime_env={{'env_vars': {{'PYTHONPATH': {path!r}}}}})\n"
    done = subprocess.run(
        [sys.executable, "-c", start + program], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout.splitlines()
