"""A crawl on a disk whose syncs take long, with a heart on the event loop: run with the shim preloaded."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import uvloop

import gossamer.api.crawler as crawler_module
from gossamer import Crawler
from gossamer.assembly.building import assemble
from gossamer.assembly.values import Shard
from gossamer.config import Config, configure

BEAT_S = 0.01


class Beats(msgspec.Struct):
    """What the heart counted."""

    commits: int = 0
    commit_s: float = 0.0
    while_committing: int = 0
    """Beats while an epoch was being made durable."""
    stalls: int = 0
    """Times that the loop stood still for most of one sync's length."""
    pages: int = 0


async def crawl(crawler: Crawler, beats: Beats, stall_s: float) -> None:
    """Crawl, and beat until that is over."""
    committing: list[float] = []

    def opened(config: Config, directory: Path, **more: Any) -> Shard:
        shard = assemble(config, directory, **more)
        journals, committer = shard.kept.storage.journals, shard.kept.committer
        sync, on_epoch = journals.sync, committer.on_epoch
        assert on_epoch is not None

        def begins() -> None:
            committing.append(time.monotonic())
            sync()

        def ends(number: int) -> None:
            began = committing.pop()
            if crawler.status()["state"] == "running":
                beats.commits += 1
                beats.commit_s += time.monotonic() - began
            on_epoch(number)

        journals.sync = begins  # type: ignore[method-assign]
        committer.on_epoch = ends
        return shard

    crawler_module.assemble = opened
    running = asyncio.create_task(crawler.run())
    # Opening and closing a crawl wait for the disk: only what lies between is to be without a pause.
    while not (crawler.status()["state"] == "running" or running.done()):  # noqa: ASYNC110 - it says so to nobody
        await asyncio.sleep(BEAT_S)
    last = time.monotonic()
    while not running.done():
        await asyncio.sleep(BEAT_S)
        now = time.monotonic()
        if crawler.status()["state"] == "running":
            beats.while_committing += bool(committing)
            beats.stalls += now - last > stall_s
        last = now
    await running
    beats.pages = int(str(crawler.status()["pages"]))


def main() -> None:
    """`slow_disk DIRECTORY HOSTS_FILE STALL_S SEED…`: prints the beats as JSON."""
    directory, hosts_file, stall_s, *seeds = sys.argv[1:]
    config = configure(
        options={"politeness": "own", "allow_private": True, "hosts": hosts_file, "scope": "any"},
        sets=(
            "crawl.commit_pages=10",
            "crawl.concurrency=4",
            "crawl.commit_s=0.1",
            "archive.warc_segment_bytes_max=50000",
        ),
        seeds=seeds,
    )
    beats = Beats()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(crawl(Crawler(seeds, output=directory, config=config), beats, float(stall_s)))
    os.write(1, msgspec.json.encode(beats))


if __name__ == "__main__":
    main()
