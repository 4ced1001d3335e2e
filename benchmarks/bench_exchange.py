"""Bench of the exchange: what links between shards cost, in processor's time and in bytes, as shards grow in number.

    python benchmarks/bench_exchange.py [--pages N] [--shards 2,4,16,64] [--json FILE]

One shard sends pages' links to N - 1 others, through outbox, commit, frames, inbox and the duplicate test, in one
process, each with a real store. The duplicate test, which one shard would ask too, is told apart. Pages have 61 links
of which four in ten lead to other hosts, half of those to pages that many name.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from tests.cluster.arrived import take_arrived

from gossamer.cluster.coordination import Coordination, Limits, ShardAnswer
from gossamer.cluster.exchange import Exchange, ShardRun
from gossamer.cluster.options import ClusterOptions
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.reports import ShardReport
from gossamer.model.links import Link, Prerequisite
from gossamer.model.visits import Failure, Reply
from gossamer.stages.seen.urls import RocksUrlSeen
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.canonical import Canonicalizer
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.clock import WallClock

LINKS_PER_PAGE = 61
FOREIGN = 0.4
POPULAR = 0.5
PAGES_AN_EPOCH = 1_000


class Ring:
    """Takes links as a shard's ring does, up to the queue."""

    def __init__(self, epochs: Epochs) -> None:
        self.seen = RocksUrlSeen(epochs, 1 << 16)
        self.new = 0
        self.test_s = 0.0
        """Spent in the duplicate test, which one shard would ask too."""

    def discover(self, links: Sequence[Link]) -> None:
        began = time.process_time()
        depths, hops = [link.depth for link in links], [link.hops for link in links]
        self.new += sum(answer == 1 for answer in self.seen.offer([link.url for link in links], depths, hops))
        self.test_s += time.process_time() - began

    def widen_by_remote_seed(self, seed: Url, target: Url, kind: int) -> None: ...

    def note_remote_link(self, source: int, site: str, partition: int) -> None: ...

    def run_for_another(self, prerequisite: Prerequisite) -> bool:
        raise AssertionError(prerequisite)

    def prerequisite_answered(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes) -> None: ...

    def on_failure(self, what: str, error: Exception) -> None:
        raise AssertionError(what) from error

    def on_loss(self, what: str) -> None:
        raise AssertionError(what)


class Member:
    """One shard: a store and its exchange."""

    def __init__(self, number: int, partitions: PartitionMap, directory: Path, namer: Namer) -> None:
        self.store = Store(directory / str(number), 8 << 20, 8 << 20)
        self.epochs = Epochs(self.store)
        self.ring = Ring(self.epochs)
        self.exchange = Exchange(
            ShardRun(number, 1), partitions, self.epochs, ClusterOptions(), namer, WallClock(),
        )  # fmt: skip
        self.exchange.attach(self.ring, _nothing)

    def commit(self) -> None:
        self.exchange.cut(0.0)
        number = self.epochs.close_at_once()
        self.exchange.on_commit(number)


async def _nothing() -> None: ...


def measure(shards: int, pages: int) -> dict[str, float]:
    """Return what `pages` pages of the first shard cost."""
    dice, namer, partitions = random.Random(1), Namer(Canonicalizer()), PartitionMap.even(shards)
    with tempfile.TemporaryDirectory() as directory:
        members = [Member(number, partitions, Path(directory), namer) for number in range(shards)]
        sender = members[0]
        spent = {"own": 0.0, "commit": 0.0, "frames": 0.0, "take": 0.0, "receive commit": 0.0}
        links = foreign = 0
        named = (f"www.site{number}.example" for number in range(97 * shards))
        homes = [host for host in named if _is_of(host, partitions, namer)]

        def timed(name: str, began: float) -> None:
            spent[name] += time.process_time() - began

        for begin in range(0, pages, PAGES_AN_EPOCH):
            numbers = range(begin, min(begin + PAGES_AN_EPOCH, pages))
            batch = [_page(page, homes[page % len(homes)], dice, namer) for page in numbers]
            links += sum(map(len, batch))
            began = time.process_time()
            ours = sum([len(sender.exchange.own(page)) for page in batch])
            timed("own", began)
            foreign += sum(map(len, batch)) - ours
            began = time.process_time()
            sender.commit()
            timed("commit", began)
            _carry(members, timed)
        channels = list(sender.exchange._outbox.channels.values())  # noqa: SLF001
        new = sum(member.ring.new for member in members)
        for member in members:
            member.store.close()
    test_s = sum(member.ring.test_s for member in members)
    spent["take"] -= test_s
    total = sum(spent.values())
    sent = sum(channel.links for channel in channels)
    return {
        "shards": shards,
        "foreign links a page": foreign / pages,
        "sent a page": sent / pages,
        "bytes a link sent": sum(channel.bytes for channel in channels) / max(1, sent),
        "links a batch": sent / max(1, sum(channel.last for channel in channels)),
        "new": new,
        **{f"{name}, us a page": value / pages * 1e6 for name, value in spent.items()},
        "(duplicate test, us a page)": test_s / pages * 1e6,
        "us a page": total / pages * 1e6,
        "us a foreign link": total / max(1, foreign) * 1e6,
    }


def _carry(members: list[Member], timed: object) -> None:
    """Let frames go to and fro until nobody has any: what is sent, taken, committed, confirmed and dropped."""
    assert callable(timed)
    now = time.time()
    for _ in range(6):
        began = time.process_time()
        frames = [(to, frame) for member in members for to, frame in member.exchange.outgoing(now)]
        timed("frames", began)
        if not frames:
            return
        began = time.process_time()
        for to, frame in frames:
            members[to].exchange.take(frame, now)
        for member in members[1:]:
            take_arrived(member.exchange)
        timed("take", began)
        began = time.process_time()
        for member in members[1:]:
            member.commit()
        timed("receive commit", began)


def _is_of(host: str, partitions: PartitionMap, namer: Namer) -> bool:
    url = namer.name(f"https://{host}/")
    return url is not None and partitions.owner(url.partition) == 0


def _page(page: int, host: str, dice: random.Random, namer: Namer) -> list[Link]:
    texts = []
    for number in range(LINKS_PER_PAGE):
        if dice.random() >= FOREIGN:
            texts.append(f"https://{host}/section/{page}/page-{number}.html")
        elif dice.random() < POPULAR:
            texts.append(f"https://popular{dice.randrange(500)}.example/")
        else:
            other = dice.randrange(20_000)
            texts.append(f"https://www.other{other}.example/articles/2024/{dice.randrange(1_000_000)}.html")
    referrer = f"https://{host}/section/{page}.html"
    return [Link(url, "anchor", 3, 0, referrer) for url in namer.names(texts) if url is not None]


def coordinated(shards: int, times: int = 20) -> float:
    """Return the milliseconds of processor that a round of reports takes of the coordinator, with what travels."""
    channels = dict.fromkeys(range(shards), 12_345)
    taken = dict.fromkeys(range(shards), (1, 12_345))
    status: dict[str, object] = {f"count_{number}": 1_234_567 for number in range(60)}  # As many as a shard reports.
    answers = [
        msgspec.msgpack.encode(
            ShardAnswer(
                shard=number, state="running", node="a node", holder="a process", renews=True, status=status,
                report=ShardReport(number, 1, True, 99, 1, {k: v for k, v in channels.items() if k != number}, taken),
            )
        )
        for number in range(shards)
    ]  # fmt: skip
    coordination = Coordination(PartitionMap.even(shards), Limits(10**9), 20.0, 0.0, None, lambda _: None)
    began = time.process_time()
    for number in range(times):
        for shard in range(shards):
            msgspec.msgpack.encode(coordination.look(shard))
        coordination.process_round(
            [msgspec.msgpack.decode(answer, type=ShardAnswer) for answer in answers], float(number)
        )
        coordination.status()
    return (time.process_time() - began) / times * 1e3


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=4_000)
    parser.add_argument("--shards", default="2,4,16,64")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = [measure(int(shards), options.pages) for shards in options.shards.split(",")]
    for row in found:
        row["coordinator, ms a round"] = coordinated(int(row["shards"]))
    for name in found[0]:
        print(f"{name:<28}" + "".join(f"{row[name]:>12,.2f}" for row in found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
