"""Components: the parts of one simulated shard, all of them those of a crawl, in a directory, and their commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.engine.middleware import Middlewares, Prerequisites
from gossamer.engine.optional import NoOthers
from gossamer.engine.ring import Retries, Ring
from gossamer.features.permit import Exclusions, RobotsTxt
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.model.extras import require
from gossamer.model.links import Link
from gossamer.model.visits import Failure
from gossamer.ports import NEW, Prioritizer
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import VisitLease
from gossamer.stages.frontier.hosts import HostRecords
from gossamer.stages.frontier.options import FrontierOptions, politeness
from gossamer.stages.frontier.priority import BreadthFirst, FrontierRules
from gossamer.stages.robots.options import RobotsOptions
from gossamer.stages.robots.robots import SiteRobots
from gossamer.stages.scope.lists import ExcludedHost
from gossamer.stages.seen.diskmerge import DiskMergeUrlSeen
from gossamer.stages.seen.options import SeenOptions
from gossamer.stages.seen.urls import MemoryUrlSeen, RocksUrlSeen
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals
from gossamer.state.store import Store
from gossamer.url.url import NameUrl
from gossamer.world.dice import Dice

if TYPE_CHECKING:
    from gossamer.stages.seen.bloom import BloomUrlSeen

    Seen = RocksUrlSeen | MemoryUrlSeen | DiskMergeUrlSeen | BloomUrlSeen

BOOT = bytes(16)
STORE_BYTES = 32 << 20
"""Cache, and write buffer, of a simulated shard's store."""
POPULAR_URLS_MAX = 200_000
"""Of each shard: many of them share this process, and what is answered does not depend on it."""


class StoredShard:
    """The store of one simulated shard in a new directory, its epochs, its contacts and its records of hosts."""

    def __init__(self, directory: Path, now: float) -> None:
        directory.mkdir(parents=True)
        self._store = Store(directory / "store", STORE_BYTES, STORE_BYTES)
        self._epochs = Epochs(self._store)
        self._contacts = Contacts(directory, BOOT, now)
        self._hosts = HostRecords(self._store, self._epochs, self._contacts)

    def close_epoch(self) -> None:
        """Close the epoch as a crawl does, with the disk's part in this thread."""
        ended = self._contacts.ended_since_commit
        self._epochs.close_at_once()
        self._contacts.on_commit(ended)

    def close(self) -> None:
        """Close the files."""
        self._store.close()
        self._contacts.close()


class Components(StoredShard):
    """Ring, frontier, politeness, robots.txt, eliminator, contacts and epochs of a crawl; their driver is simulated."""

    def __init__(
        self, options: SimulateOptions, directory: Path, scale: float, name_url: NameUrl, seed: int, now: float
    ) -> None:
        """Make an empty shard that represents `scale` times its content."""
        super().__init__(directory, now)
        dice = Dice(seed)
        self.options = scale_frontier(options.frontier, scale)
        self._journals = Journals(directory)
        self._journals.recover(())
        self._seen = _url_seen(scale_seen(options.seen, scale), self._epochs, self._journals)
        self._prioritizer: Prioritizer = BreadthFirst()
        rules = FrontierRules(politeness(options.politeness), self.options)
        self.frontier = Frontier(self._hosts, rules, name_url, dice, now)
        robots = SiteRobots(self._epochs, RobotsOptions(), name_url, dice)
        excludes = Exclusions(ExcludedHost()).excludes
        control = self.frontier.control
        robots_txt = RobotsTxt(robots, control, name_url, excludes, lambda *_: None)  # Failures go into no log.
        self._middlewares = Middlewares([robots_txt] if options.web.robots else [])
        self._prerequisites = Prerequisites(self._middlewares, control, excludes, lambda _: None, NoOthers())
        asked = options.frontier
        self.retries = Retries(asked.attempts_max, asked.retry_s_first, asked.retry_s_max, dice)
        self._visits = 0
        self._commit_visits = options.commit_visits

    def ring(self, refuse: Callable[[VisitLease, Failure, float], None]) -> Ring:
        """Return the ring that decides about leases. No address is known before it was looked up."""
        return Ring(self.frontier, self._middlewares, self._prerequisites, lambda _host: None, refuse)

    def discover(self, links: Sequence[Link], now: float) -> list[Link]:
        """Offer links to the eliminator, which answers at once; queue the new ones and return them."""
        answers = self._seen.offer(
            [link.url for link in links], [link.depth for link in links], [link.hops for link in links]
        )
        new = [link for link, answer in zip(links, answers, strict=True) if answer == NEW]
        for link in new:
            self.frontier.add(link, self._prioritizer.level(link), now)
        return new

    def count_visit(self, now: float) -> None:
        """Count a finished visit; commit after enough of them."""
        self._visits += 1
        if self._visits >= self._commit_visits or self._contacts.is_crowded:
            self.commit(now)

    def commit(self, now: float) -> None:
        """Commit what has changed."""
        self._visits = 0
        self.frontier.cut(now)
        if not isinstance(self._seen, RocksUrlSeen):
            self._seen.cut(now)
        manifest = self._journals.cut()
        self.close_epoch()
        self._journals.settle(manifest)

    def close(self) -> None:
        """Close the files."""
        if not isinstance(self._seen, RocksUrlSeen | MemoryUrlSeen):
            self._seen.close()
        super().close()


def scale_frontier(options: FrontierOptions, scale: float) -> FrontierOptions:
    """Return what a shard that holds one host in `scale` keeps in memory; its times stay as they are."""
    bounds = ("active_hosts_max", "active_hosts_first", "active_hosts_bytes_max", "records_cached_max")
    return replace(options, **{name: max(1, round(getattr(options, name) / scale)) for name in bounds})


def scale_seen(options: SeenOptions, scale: float) -> SeenOptions:
    """Return what an eliminator is made for that is offered one URL in `scale`; none of it changes an exact answer."""
    bounds = {"expected_urls": options.expected_urls, "front_urls_max": options.front_urls_max}
    changes = {name: max(1, round(value / scale)) for name, value in bounds.items()}
    return replace(options, **(changes | {"popular_urls_max": min(options.popular_urls_max, POPULAR_URLS_MAX)}))


def _url_seen(options: SeenOptions, epochs: Epochs, journals: Journals) -> Seen:
    if options.backend == "memory":
        return MemoryUrlSeen(epochs)
    if options.backend == "rocksdb":
        return RocksUrlSeen(epochs, POPULAR_URLS_MAX)
    if options.backend == "diskmerge":
        return DiskMergeUrlSeen(epochs, journals, options)
    require("rbloom", "seen.backend=bloom")
    from gossamer.stages.seen.bloom import BloomUrlSeen  # noqa: PLC0415 - it needs an extra

    return BloomUrlSeen(epochs, journals, options)
