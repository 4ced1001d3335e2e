"""One domain of many hosts on three workers: the pages of one worker, from all of them, politely."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.test_workers import answer, crawl_of, gossamer
from tests.cluster.test_split_sites import SPLIT, least_gap_s
from tests.crash.harvest import Harvest, differences

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

WORKERS = 3
DELAY_S = 0.05
WEB = SimwebOptions(
    seed=4, hosts=26, hosts_per_site=26, names_per_address=2, pages=100, latency_s=0.01, bytes_median=2_000,
    links_per_page=10, behaviours=("redirects", "robots_part", "nofollow", "frames", "compressed"),
)  # fmt: skip


@pytest.mark.promise("Several shards", "The hosts of a site in `url.split_sites` are divided among the shards.")
@pytest.mark.long
def test_one_domain_is_fetched_by_all_workers_and_its_delay_holds(tmp_path: Path) -> None:
    with SimwebProcess(WEB, tmp_path / "web-1") as web:
        done = gossamer(*crawl_of(web, tmp_path / "alone", 1))
        assert done.returncode == 0, done.stderr
        port = web.port
    with SimwebProcess(replace(WEB, port=port), tmp_path / "web-3") as web:
        sets = (SPLIT, "politeness.per_site=1", f"politeness.site_delay_s={DELAY_S}")
        done = gossamer(*crawl_of(web, tmp_path / "crawl", WORKERS, *sets), timeout_s=240.0)
        assert done.returncode == 0, done.stderr
        log = web.requests()
    found = Harvest(tmp_path / "crawl")
    assert differences(found, Harvest(tmp_path / "alone")) == []
    assert found.faults() == []
    assert {row["shard"] for row in found.rows} == set(range(WORKERS))
    assert least_gap_s(log) >= DELAY_S
    status = answer("status", tmp_path / "crawl")
    assert not any("nothing to fetch" in str(warning) for warning in status["warnings"])  # type: ignore[attr-defined]
    shown = answer("why", tmp_path / "crawl", str(found.rows[0]["url"]))
    assert (shown["state"], shown["shard"]) == (found.rows[0]["outcome"], found.rows[0]["shard"])
