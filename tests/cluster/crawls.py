"""Crawls of several shards in one loop, against a made web."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

from gossamer.assembly.building import assemble
from gossamer.assembly.mapping import map_in, moves_in
from gossamer.config import Config, configure, effective_toml
from gossamer.lab.simweb.process import SimwebProcess
from tests.faults.shards import Shards, Wire, ends_of
from tests.ring.crawls import OWN

WORKERS = (
    "crawl.commit_s=0.1",
    "cluster.resend_s=0.4",
    "cluster.address_term_s=2.0",
    "cluster.address_turn_s=0.3",
    "fetch.connect_s_max=20.0",
    "fetch.request_s_max=20.0",
)
"""Servers here always answer. On a busy machine a brief limit would end requests and have pages asked for twice."""

BACKENDS = (
    ("seen.backend='memory'",),
    ("seen.backend='bloom'", "seen.log_urls_max=100", "seen.false_positive_rate=1e-9", "seen.expected_urls=2000"),
    (
        "seen.backend='diskmerge'", "seen.front_urls_max=40", "seen.popular_urls_max=8", "seen.held_urls_max=30",
        "seen.filter_bits=2", "seen.expected_urls=20",
    ),
)  # fmt: skip
"""With bounds so small that most URLs are in files when partitions move, and many links wait for their answer."""


def config_of(
    simweb: SimwebProcess, directory: Path, shards: int, *sets: str, seeds: tuple[str, ...] = (), **options: object
) -> Config:
    """Return the configuration of a crawl of a made web by so many shards."""
    given = {
        "allow_private": True,
        "hosts": str(simweb.hosts_file),
        "output": str(directory),
        "scope": "any",
        **options,
    }
    every = (*OWN, *WORKERS, f"cluster.workers={shards}", *sets)
    return configure(options=given, sets=every, seeds=seeds or simweb.seeds)


def crawl(
    config: Config, directory: Path, shards: int, meddle: Callable[[Shards], object] | None = None, **wire: float
) -> tuple[dict[str, str], Shards]:
    """Crawl to the end; return how each key ended."""
    running = Shards(config, directory, shards, assemble, Wire(random.Random(7), **wire))  # type: ignore[arg-type]
    return finished(running, meddle), running


def finished(running: Shards, meddle: Callable[..., object] | None = None) -> dict[str, str]:
    """Have shards crawl to the end; return how each key ended."""
    assert asyncio.run(running.run(meddle)) == "finished"
    return ends_of(running.config, running.directory, running.shards)


def begun(config: Config, directory: Path, shards: int, pages: int, of_each: int = 0, *, paused: bool = False) -> None:
    """Crawl until these numbers of pages are there, in all and of each shard, and stop, `paused` or not."""

    async def enough(running: Shards) -> None:
        reports = running.reports()
        found = sum(report.pages + report.pages_under_way for report in reports)
        # A page under way may not be one in the end.
        if found >= pages and min(report.pages for report in reports) >= of_each:
            running.coordination.pause(paused=paused)
            await running.stop()

    assert asyncio.run(_running(config, directory, shards).run(enough)) == "stopped"


def ended(config: Config, directory: Path, shards: int) -> dict[str, str]:
    """Crawl to the end; return how each key ended."""
    return finished(_running(config, directory, shards))


def is_divided(directory: Path, shards: int) -> bool:
    """Say whether all partitions are where they are to be, and each of the first `shards` shards has some."""
    found = map_in(directory)
    assert found is not None
    return not moves_in(directory).is_moving and set(found.owners) == set(range(shards))


def _running(config: Config, directory: Path, shards: int) -> Shards:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "crawl.toml").write_text(effective_toml(config))
    return Shards(config, directory, shards, assemble)
