"""How long a partition is paused when it moves between two running shards, by the URLs that it has.

    python benchmarks/bench_moves.py [--urls 100 1000 10000 100000]

Two shards in one process, with RocksDB. All URLs are of one site and wait; nothing is in flight, as after the drain.
Measured is the time from the commit that begins the move to the first URL that the receiver may request, with the
commits of both, and without the way between machines.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
import time
from pathlib import Path

from gossamer.assembly.building import assemble
from gossamer.assembly.values import Assembled
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.places import Move
from gossamer.config import configure
from gossamer.model.links import Link
from gossamer.world.clock import WallClock

SITE = "big.example"
LINKS_AT_ONCE = 500


async def main() -> None:
    """Print a row for each number of URLs."""
    parser = argparse.ArgumentParser(description="Move one partition between two shards; print the pause.")
    parser.add_argument("--urls", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    logging.disable(logging.CRITICAL)
    print("| URLs | keys | pause, s | commits of the giver | µs a key |\n| ---: | ---: | ---: | ---: | ---: |")
    for urls in parser.parse_args().urls:
        with tempfile.TemporaryDirectory(prefix="gossamer-moves-") as folder:
            keys, pause_s, commits = await moved(Path(folder), urls)
            print(f"| {urls:,} | {keys:,} | {pause_s:.3f} | {commits} | {pause_s / keys * 1e6:.1f} |", flush=True)


async def moved(folder: Path, urls: int) -> tuple[int, float, int]:
    """Return the keys of a partition with this number of URLs, the seconds of its move and the commits that gave it."""
    config = configure(
        options={"contact": "a@example.org", "scope": "any", "output": str(folder)},
        sets=("cluster.workers=2", "memory.huge_pages=false"), seeds=[f"https://{SITE}/"],
    )  # fmt: skip
    PartitionMap.even(2).save(folder)
    shards = [assemble(config, folder, shard=number, shards=2) for number in range(2)]
    namer = shards[0].ring.urls.namer
    named = namer.name(f"https://{SITE}/")
    assert named is not None
    partition = named.partition
    sender = PartitionMap.even(2).owner(partition)
    giver, taker = shards[sender], shards[1 - sender]
    try:
        for begin in range(0, urls, LINKS_AT_ONCE):
            found = namer.names([f"https://{SITE}/a/page-{number}" for number in range(begin, begin + LINKS_AT_ONCE)])
            links = [Link(url, "anchor", 1) for url in found[: urls - begin] if url is not None]
            giver.ring.pipeline.discovery.discover(links)
            await giver.ring.loop.relieve()
        for shard in (giver, taker, giver, taker):
            await shard.kept.committer.commit()
            carry(giver, taker)
        return await timed(giver, taker, Move(1, partition, partition + 1, sender, 1 - sender))
    finally:
        for shard in shards:
            await shard.close()


async def timed(giver: Assembled, taker: Assembled, move: Move) -> tuple[int, float, int]:
    assert giver.membership is not None
    assert taker.membership is not None
    keys = sum(1 for _ in giver.kept.storage.epochs.scan("queue", *bounds(move)))
    keys += sum(1 for _ in giver.kept.storage.epochs.scan("seen", *bounds(move)))
    began, commits = time.perf_counter(), 0
    giver.membership.moves.order([move])
    while not taker.membership.exchange.places.has(move.first):
        await giver.kept.committer.commit()
        commits += 1
        carry(giver, taker)
        if not taker.membership.exchange.places.has(move.first):
            await taker.kept.committer.commit()
    assert taker.ring.frontier.select(WallClock().now() + 60.0) is not None
    pause_s = time.perf_counter() - began
    return keys, pause_s, commits


def bounds(move: Move) -> tuple[bytes, bytes]:
    """Return the first key of a move's partitions, and the first one behind them."""
    return move.first.to_bytes(2), move.end.to_bytes(2)


def carry(giver: Assembled, taker: Assembled) -> None:
    """Let frames go to and fro until there are none."""
    now, went = WallClock().now(), True
    while went:
        went = False
        for sender, receiver in ((giver, taker), (taker, giver)):
            assert sender.membership is not None
            assert receiver.membership is not None
            for _, frame in list(sender.membership.exchange.outgoing(now)):
                went = True
                receiver.membership.exchange.take(frame, now)
            receiver.membership.exchange.take_arrived()


if __name__ == "__main__":
    asyncio.run(main())
