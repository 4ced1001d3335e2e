"""A crawl of an innocent host beside hostile ones, and how much of what politeness permits the innocent one had."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from gossamer import Crawler
from gossamer.config import configure
from gossamer.lab.simweb.behaviors import PAGED
from gossamer.lab.simweb.hosts import WebHost
from gossamer.lab.simweb.judge import Promise
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.rates import HostRate, rates
from tests.ring.crawls import Crawled

PACE_MIN = 0.9
"""Share of the turns that politeness permits which an innocent host has beside any others, on a quiet machine."""
LAG_S_P99_MAX = 0.1
"""Of a hundred looks at the event loop 99 are no later than this, on a quiet machine."""
PROBE_S = 0.005
PAGES = 24
DELAY_S = 1.0
"""Of the preset `polite`."""
SETTINGS = (
    "politeness.preset='polite'",
    "politeness.delay_factor=0",
    "politeness.address_delay_s=0",
    "fetch.request_s_max=5.0",
    "fetch.connect_s_max=3.0",
    "frontier.attempts_max=2",
    "frontier.retry_s_first=0.2",
    "frontier.retry_s_max=1.0",
    "frontier.host_failures_max=3",
    "frontier.host_sleep_s_first=0.5",
    "frontier.host_sleep_s_max=1.0",
    "robots.retry_first_s=0.2",
    "robots.robots_wait_max_s=4.0",
    "resolve.timeout_s=1.0",
    "resolve.ttl_s_min=0",
)


@dataclass
class Beside:
    """What a crawl showed."""

    innocent: HostRate
    hosts: tuple[WebHost, ...]
    hostile: int
    """Requests to all other hosts."""
    lags_s: list[float]
    """How late the event loop was, each time that it was looked at; sorted."""
    crawled: Crawled

    @property
    def lag_s_p99(self) -> float:
        """Return what 99 of 100 looks at the loop stayed below."""
        return self.lags_s[len(self.lags_s) * 99 // 100]


def beside(directory: Path, behaviours: Sequence[str], hostile: int, *more: str, delay_s: float = DELAY_S) -> Beside:
    """Crawl an innocent host beside `hostile` ones, each of which shows all these behaviours."""
    return beside_web(directory, hostile_web(behaviours, hostile), *more, delay_s=delay_s)


def hostile_web(behaviours: Sequence[str], hostile: int) -> SimwebOptions:
    """Return a web of an innocent host, the first, and of `hostile` ones, each at an address of its own."""
    return SimwebOptions(
        hosts=hostile + 1, pages=(hostile + 1) * PAGES, zipf_exponent=0.0, names_per_address=1, links_per_page=10,
        same_host_share=1.0, behaviours=tuple(behaviours), shares=dict.fromkeys(behaviours, 1.0), drip_s=0.2,
    )  # fmt: skip


def beside_web(directory: Path, options: SimwebOptions, *more: str, delay_s: float = DELAY_S) -> Beside:
    """Crawl all hosts of a web of which the first is innocent."""
    with SimwebProcess(options, directory / "web") as simweb:
        web = simweb.web
        innocent = web.hosts[0]
        pages = [f"{web.front(host)}{name}/" for host in web.hosts[1:] for name in host.behaviors if name in PAGED]
        seeds = (*web.fronts, *pages)
        config = configure(
            options={"allow_private": True, "dns": (simweb.dns,), "contact": "me@example.org", "scope": "host"},
            sets=(*SETTINGS, f"politeness.delay_s_min={delay_s}", *more), seeds=seeds,
        )  # fmt: skip
        crawler = Crawler(output=directory / "c", config=config)
        crawled = Crawled(directory / "c")
        crawled.end, lags_s = asyncio.run(crawl_and_look(crawler))
        simweb.stop()
        log = simweb.requests()
    rate = rates(log, Promise(delay_s_min=delay_s, factor=0.0), simweb.web)[innocent.name]
    return Beside(rate, web.hosts, sum(one.host != innocent.name for one in log), lags_s, crawled)


async def crawl_and_look(crawler: Crawler) -> tuple[str, list[float]]:
    """Crawl; return how it ended, and how late the event loop was each time that it was looked at, sorted."""
    lags_s: list[float] = []

    async def probe() -> None:
        while True:
            at = perf_counter()
            await asyncio.sleep(PROBE_S)
            lags_s.append(perf_counter() - at - PROBE_S)

    probing = asyncio.create_task(probe())
    try:
        return await crawler.run(), sorted(lags_s)
    finally:
        probing.cancel()
