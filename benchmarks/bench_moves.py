"""How long a partition is paused when it moves between two running shards, by the URLs that it has.

    python benchmarks/bench_moves.py [--urls 100 1000 10000 100000] [--continuous] [--backend diskmerge]

Two shards in one process, with RocksDB. All URLs are of one site and wait; nothing is in flight, as after the drain.
The pause is the time from the last URL that the giver may request (the begin of the commit in which the partition is
frozen) to the first one that the receiver may request, with the commits of both, and without the way between machines.
In a continuous crawl each URL was also visited once.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from gossamer.assembly.building import assemble
from gossamer.assembly.values import Shard
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.places import Move
from gossamer.model.pages import Sight
from gossamer.world.clock import WallClock

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.cluster.pairs import SITE, carry, config_of_two, discover, partition_of

LINKS_AT_ONCE = 500


class Row(NamedTuple):
    """A move."""

    keys: int
    pause_s: float
    whole_s: float
    commits: int
    longest_s: float


async def main() -> None:
    """Print a row for each number of URLs."""
    parser = argparse.ArgumentParser(description="Move one partition between two shards; print the pause.")
    parser.add_argument("--urls", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--continuous", action="store_true", help="the crawl visits pages again")
    parser.add_argument("--backend", default="rocksdb", help="seen.backend")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print("| URLs | keys | pause, s | whole move, s | commits of the giver | longest of them, s |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for urls in given.urls:
        with tempfile.TemporaryDirectory(prefix="gossamer-moves-") as folder:
            row = await moved(Path(folder), urls, "continuous" if given.continuous else "batch", given.backend)
            print(
                f"| {urls:,} | {row.keys:,} | {row.pause_s:.3f} | {row.whole_s:.2f} | {row.commits} | "
                f"{row.longest_s:.3f} |", flush=True,
            )  # fmt: skip


async def moved(folder: Path, urls: int, mode: str, backend: str) -> Row:
    """Move a partition with this number of URLs."""
    config = config_of_two(folder, f"crawl.mode={mode}", f"seen.backend={backend}")
    shards = [assemble(config, folder, shard=number, shards=2) for number in range(2)]
    partition = partition_of(shards[0])
    sender = PartitionMap.even(2).owner(partition)
    giver, taker = shards[sender], shards[1 - sender]
    try:
        for begin in range(0, urls, LINKS_AT_ONCE):
            discover(giver, begin, min(begin + LINKS_AT_ONCE, urls))
            visited(giver, begin, min(begin + LINKS_AT_ONCE, urls))
            await giver.ring.loop.relieve()
        for shard in (giver, taker, giver, taker):
            await shard.kept.committer.commit()
            carry(giver, taker)
        return await timed(giver, taker, Move(1, partition, partition + 1, sender, 1 - sender))
    finally:
        for shard in shards:
            await shard.close()


def visited(shard: Shard, begin: int, end: int) -> None:
    """Note a visit of pages of the site in a continuous crawl, by their numbers."""
    found = shard.ring.urls.namer.names([f"https://{SITE}/a/page-{number}" for number in range(begin, end)])
    recrawl = shard.ring.features.recrawl
    if recrawl is None:
        return
    for url in found:
        assert url is not None
        recrawl.schedule.note_visit(Sight(url, "fetched", WallClock().now(), 200, 1, permitted_per_s=1.0))


async def timed(giver: Shard, taker: Shard, move: Move) -> Row:
    """Move a partition, with a commit of each shard in turn."""
    assert giver.membership is not None
    assert taker.membership is not None
    moves, places = giver.membership.moves, taker.membership.exchange.places
    keys = sum(1 for _ in giver.kept.storage.epochs.scan("queue", *bounds(move)))
    keys += sum(1 for _ in giver.kept.storage.epochs.scan("seen", *bounds(move)))
    began, frozen_at, commits, longest_s = time.perf_counter(), 0.0, 0, 0.0
    while not places.has(move.first):
        moves.order([move])
        at = time.perf_counter()
        frozen_at = frozen_at or at * bool(giver.ring.frontier.frozen)
        await giver.kept.committer.commit()
        commits, longest_s = commits + 1, max(longest_s, time.perf_counter() - at)
        frozen_at = frozen_at or at * (move.first in giver.ring.frontier.frozen or not giver_has(giver, move))
        carry(giver, taker)
        if not places.has(move.first):
            await taker.kept.committer.commit()
            carry(giver, taker)
    assert taker.ring.frontier.select(WallClock().now() + 60.0) is not None
    now = time.perf_counter()
    return Row(keys, now - frozen_at, now - began, commits, longest_s)


def giver_has(giver: Shard, move: Move) -> bool:
    """Say whether the giver has the partition still."""
    assert giver.membership is not None
    return giver.membership.exchange.places.has(move.first)


def bounds(move: Move) -> tuple[bytes, bytes]:
    """Return the first key of a move's partitions, and the first one behind them."""
    return move.first.to_bytes(2), move.end.to_bytes(2)


if __name__ == "__main__":
    asyncio.run(main())
