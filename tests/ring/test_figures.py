"""Figures of report, status and metrics, each computed in a second way: from pages, links and the server's log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gossamer.lab.simweb.log import Logged
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.commands import run
from tests.ring.crawls import OWN, crawl

ANSWERED = ("fetched", "redirected", "http_error", "not_modified")


class Figures:
    """A crawl with all that its figures are computed from."""

    def __init__(self, web: SimwebProcess, directory: Path, *sets: str, **options: Any) -> None:
        self.status = crawl(web.seeds, directory, *OWN, *sets, hosts=str(web.hosts_file), **options).status
        self.requests: list[Logged] = [one for one in web.requests() if one.nth]
        self.report = json.loads(run("report", str(directory), "--json")[1])
        self.text = run("report", str(directory))[1]
        self.stopped = json.loads(run("status", str(directory), "--json")[1])
        self.pages = pq.read_table(directory / "pages").to_pylist()
        self.links = pq.read_table(directory / "links").to_pylist()
        self.seeds = len(web.seeds)
        self.checks = {one["name"]: one["count"] for one in self.report["link_checks"]}

    @property
    def submitted(self) -> int:
        """Links that may be followed, each once a page, and the seeds."""
        followed = {(one["from_url"], one["to_url"], one["link_type"]) for one in self.links if not one["nofollow"]}
        return len(followed) + self.seeds


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Figures]:
    folder = tmp_path_factory.mktemp("web")
    with SimwebProcess(SimwebOptions.plain(seed=3, hosts=8, pages=160), folder) as web:
        yield Figures(web, folder / "crawl", "scope.scope='any'")


@pytest.mark.parametrize("backend", ["rocksdb", "memory", "diskmerge", "bloom"])
def test_every_submitted_link_is_in_one_layer_of_the_duplicate_check(
    figures: Figures, tmp_path: Path, backend: str
) -> None:
    if backend == "rocksdb":
        found = figures
    else:
        with SimwebProcess(SimwebOptions.plain(seed=3, hosts=8, pages=160), tmp_path / "web") as web:
            found = Figures(web, tmp_path / "crawl", f"seen.backend='{backend}'", "scope.scope='any'")
    checks = found.checks
    assert sum(checks.values()) == found.submitted
    assert checks.get("rejected", 0) == sum(one["count"] for one in found.report["rejected"])
    keys = {one["to_key"] for one in found.links if not one["nofollow"]}
    new = len(keys | {one["key"] for one in found.pages})
    assert checks.get("disk", 0) + checks.get("memory", 0) >= new, "no table knows a URL before the eliminator"
    assert checks["admitted"] > 0.5 * found.submitted, "the first table answers most links"
    shares = {one["name"]: one["share"] for one in found.report["caches"]}
    if backend == "rocksdb":
        assert shares["eliminator"] == pytest.approx(1 - checks["disk"] / found.submitted, abs=1e-9)
