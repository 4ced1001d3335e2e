"""Two shards in one process, with stores of their own, and a site whose partition moves between them."""

from __future__ import annotations

from pathlib import Path

from gossamer.assembly.values import Shard
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import Config, configure
from gossamer.model.links import Link
from gossamer.world.clock import WallClock
from tests.cluster.arrived import take_arrived

SITE = "big.example"


def config_of_two(folder: Path, *sets: str) -> Config:
    """Return the configuration of two shards in a folder, and write down how they divide the partitions."""
    PartitionMap.even(2).save(folder)
    return configure(
        options={"contact": "a@example.org", "scope": "any", "output": str(folder)},
        sets=("cluster.workers=2", *sets), seeds=[f"https://{SITE}/"],
    )  # fmt: skip


def partition_of(shard: Shard) -> int:
    """Return the partition of the site."""
    named = shard.ring.urls.namer.name(f"https://{SITE}/")
    assert named is not None
    return named.partition


def discover(shard: Shard, begin: int, end: int) -> None:
    """Have a shard discover pages of the site, by their numbers."""
    found = shard.ring.urls.namer.names([f"https://{SITE}/a/page-{number}" for number in range(begin, end)])
    shard.ring.pipeline.discovery.discover([Link(url, "anchor", 1) for url in found if url is not None])


def carry(giver: Shard, taker: Shard) -> None:
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
            take_arrived(receiver.membership.exchange)
