"""Politeness over a whole crawl of some thousand pages, its process killed again and again; the figures are printed."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from statistics import quantiles

import pytest

from gossamer.lab.simweb.judge import Promise, judge
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from tests.rates import rates
from tests.ring.crawls import BRIEF, command_line, rows
from tests.ring.test_politeness import BACKOFF_S, commits_of, early_after_backoff, robots_asked_again

pytestmark = [pytest.mark.acceptance, pytest.mark.paced]

PROMISE = Promise(delay_s_min=0.3, factor=10, delay_s_max=1.2, address_delay_s=0.01)
KEYS = (
    *BRIEF,
    "politeness.delay_s_min=0.3",
    "politeness.delay_s_max=1.2",
    "politeness.address_delay_s=0.01",
    "crawl.commit_s=1.0",
)
WEB = SimwebOptions(
    seed=11, hosts=60, pages=7_000, zipf_exponent=0.2, links_per_page=20, latency_s=0.005, slow_s_median=0.05,
    crawl_delay_s=0.5, retry_after_s=2, drip_s=0.2, oversized_bytes=12_000_000, bomb_bytes=30_000_000,
    shares={"slow": 0.1, "hangs": 0.05},
)  # fmt: skip
KILLS = 12
BETWEEN_S = (1.7, 0.6, 2.3, 1.1, 0.4, 1.9)
REQUESTS_MIN = 50
"""Hosts with fewer requests in the undisturbed part are too short a sample for a rate."""


@pytest.mark.long
def test_a_large_crawl_that_is_killed_breaks_no_promise_and_wastes_no_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kills: list[float] = []
    with SimwebProcess(WEB, tmp_path / "web") as simweb, command_line(tmp_path / "crawl") as running:
        running.crawl(simweb.seeds, *KEYS, hosts=str(simweb.hosts_file), scope="any")
        for number in range(KILLS):
            if number % 3 == 0:
                running.until_commit()
            time.sleep(BETWEEN_S[number % len(BETWEEN_S)])
            kills.append(running.kill_child())
        assert running.wait(480) == 0, running.errors.read_text()
    log = simweb.requests()
    web = simweb.web
    violations = [one for one in judge(log, PROMISE, web, restarts=kills) if one.kind != "repeated"]
    undisturbed = rates(log, PROMISE, web, restarts=kills, since=kills[-1] + 3.0)
    hosts = [host for host in undisturbed.values() if host.achieved >= REQUESTS_MIN]
    utilisation = sorted(host.utilisation for host in hosts)
    deciles = quantiles(utilisation, n=10)
    walked = Truth(web).walk(simweb.seeds)
    outcomes = {str(row["key"]): str(row["outcome"]) for row in rows(tmp_path / "crawl/pages")}
    differences = [
        line
        for line in walked.differences(outcomes, web)
        if not line.startswith("missing") or not walked.pages[line.split()[1]].allows("host_closed")
    ]
    with capsys.disabled():
        lasted_s = max(one.ended_at for one in log) - min(one.contact_at for one in log)
        print(
            f"\npoliteness: {len(log)} requests to {len({one.host for one in log})} hosts on "
            f"{len(web.addresses)} addresses in {lasted_s:.0f} s, {KILLS} kills; {len(outcomes)} URLs, "
            f"{sum(end == 'fetched' for end in outcomes.values())} pages; {len(violations)} violations "
            f"{dict(Counter(one.kind for one in violations))}; utilisation of {len(hosts)} hosts: median "
            f"{deciles[4]:.3f}, 10th percentile {deciles[0]:.3f}, least {utilisation[0]:.3f}"
        )
    assert violations == []
    assert early_after_backoff(log, BACKOFF_S) == []
    assert robots_asked_again(log, kills, commits_of(tmp_path / "crawl")) == []
    assert differences == []
    assert utilisation[0] >= 0.9
