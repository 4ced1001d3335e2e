"""Figures of report, status and metrics, each computed in a second way: from pages, links and the server's log."""

from __future__ import annotations

import json
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest

from gossamer.api.metrics import metrics_of
from gossamer.lab.simweb.log import Logged
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.commands import run
from tests.ring.crawls import OWN, crawl

ANSWERED = ("fetched", "redirected", "http_error", "not_modified")


class Figures:
    """A crawl with all that its figures are computed from."""

    def __init__(self, web: SimwebProcess, directory: Path, *sets: str, **options: Any) -> None:
        self.directory = directory
        before_s = time.process_time()
        self.status = crawl(web.seeds, directory, *OWN, *sets, hosts=str(web.hosts_file), **options).status
        self.process_s = time.process_time() - before_s
        web.stop()  # Its log is complete then.
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
        with SimwebProcess(SimwebOptions.plain(seed=3, hosts=8, pages=60), tmp_path / "web") as web:
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


def test_figures_of_report_status_and_metrics_agree_with_pages_links_and_the_servers_log(figures: Figures) -> None:
    report = figures.report
    status = figures.stopped
    fetched = [one for one in figures.pages if one["outcome"] == "fetched"]
    metrics = {one.split(" ")[0]: float(one.split(" ")[1]) for one in _lines(metrics_of(status))}

    def agree(expected: float, *found: float) -> None:
        assert found == pytest.approx([expected] * len(found))

    agree(len(figures.pages), report["attempts"], report["attempts_counted"], status["attempts"])
    agree(len(fetched), report["fetched"], status["pages"], metrics["gossamer_pages_total"])
    agree(len({one["key"] for one in figures.pages}), report["urls"], status["discovered"], status["terminal"])
    agree(len(figures.links), report["links"], sum(one["count"] for one in report["link_types"]))
    hosts = {one.host for one in figures.requests}
    agree(len(hosts), report["hosts"], report["hosts_answered"], status["hosts_known"])
    robots = [one for one in figures.requests if one.path == "/robots.txt"]
    agree(len(figures.requests), report["cost"]["requests"], status["cost"]["requests"])
    agree(len(figures.requests), metrics["gossamer_requests_total"], len(robots) + report["attempts"])
    received = sum(one.sent_bytes for one in figures.requests)
    agree(received, report["wire_bytes"], status["wire_bytes"], metrics["gossamer_received_bytes_total"])
    decoded = sum(one["body_bytes"] for one in figures.pages)
    agree(decoded, report["body_bytes"], status["body_bytes"], metrics["gossamer_content_bytes_total"])
    agree(decoded / len(fetched), report["body_bytes_mean"])
    agree(sum(bool(one["truncated"]) for one in fetched) / len(fetched), report["truncated_share"])
    local = [one for one in figures.links if urlsplit(one["from_url"])[:2] == urlsplit(one["to_url"])[:2]]
    agree(len(local) / len(figures.links), report["local_links_share"])
    types = Counter(one["media_type"] for one in fetched)
    assert types == {one["name"]: one["count"] for one in report["media_types"]} == status["media_types"]
    depths = Counter(str(one["depth"]) for one in figures.pages)
    assert depths == {one["name"]: one["count"] for one in report["depths"]}
    times = sorted(one["fetch_s"] for one in figures.pages)
    agree(sum(times) / len(times), report["fetch_s"]["mean"])
    agree(times[-1], report["fetch_s"]["max"])
    begun = min(one["fetched_at"].timestamp() for one in figures.pages)
    ended = max(one["fetched_at"].timestamp() + one["fetch_s"] for one in figures.pages)
    lasted = ended - begun
    assert report["duration_s"] == pytest.approx(lasted, abs=1e-6), "wall times are exact to 0.24 µs"
    agree(report["crawling_s"], status["elapsed_s"])
    agree(len(fetched) / report["crawling_s"], report["pages_per_s"])


def _lines(metrics: bytes) -> list[str]:
    return [line for line in metrics.decode().splitlines() if line and not line.startswith("#")]


def test_a_crawl_says_what_it_took_of_its_machine_and_for_a_million_pages(figures: Figures) -> None:
    cost = figures.report["cost"]
    spent_s = sum(cost["cpu_s"].values())
    assert 0.4 * figures.process_s < spent_s < figures.process_s, "most of it, without start and end of the process"
    assert min(cost["cpu_s"][stage] for stage in ("fetch", "parse", "store")) > 0
    assert cost["cpu_s_each"] == pytest.approx(spent_s / figures.report["fetched"])
    held = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert 20e6 < cost["memory_bytes_max"] < 1.5 * held
    million = {one["name"]: one for one in cost["million_pages"]}
    assert million["this crawl"]["core_hours"] == pytest.approx(1e6 * cost["cpu_s_each"] / 3600)
    assert million["nielsen2012, 80 cores"]["core_hours"] == pytest.approx(20 * 4 * (39 + 25 / 60) / 250.113669)
    assert million["nielsen2012, 80 cores"]["price"] == 2.32
    assert million["mercator2001, 8 cores"]["core_hours"] == pytest.approx(4 * 2 * 17 * 24 / 891)
    sets = ("machine.price_per_hour=32", "machine.price_per_gb_month=3")
    given = [word for one in sets for word in ("--price", one)]
    listed = json.loads(run("report", str(figures.directory), "--json", *given)[1])["cost"]
    # Now, for each command leaves other logs of its store.
    files = [path for path in figures.directory.rglob("*") if path.is_file()]
    assert listed["disk_bytes"] == pytest.approx(512 * sum(path.stat().st_blocks for path in files))
    scale = 1e6 / figures.report["fetched"]
    price = scale * (2.0 * spent_s / 3600 + 3.0 * listed["disk_bytes"] / 1e9)
    assert listed["million_pages"][0]["price"] == pytest.approx(price)
    assert "a million pages take" in figures.text


@pytest.mark.parametrize("wrong", ["machine.price_per_hours=1", "machine.price_per_hour=-1", "machine.price_per_hour"])
def test_a_wrong_price_is_one_line(figures: Figures, wrong: str) -> None:
    status, out, err = run("report", str(figures.directory), "--price", wrong)
    assert (status, out) == (2, "")
    assert "machine.price_per_hour" in err
    assert len(err.splitlines()) == 1


def test_each_rejected_link_has_a_line_with_its_filter_where_that_is_wanted(tmp_path: Path) -> None:
    with SimwebProcess(SimwebOptions.plain(seed=3, hosts=4, pages=40), tmp_path / "web") as web:
        found = Figures(web, tmp_path / "crawl", "logs.levels={scope = 'debug'}")
    lines = [json.loads(line) for line in (tmp_path / "crawl/logs/info.log").read_text().splitlines()]
    rejected = [one for one in lines if one["event"] == "link_rejected"]
    assert Counter(one["filter"] for one in rejected) == found.stopped["rejected"]
    assert rejected[0]["package"] == "scope"
    assert {(one["referrer"], one["url"]) for one in rejected} <= {
        (one["from_url"], one["to_url"]) for one in found.links
    }
