"""Strategies: which URLs enter the queues, and when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gossamer.model.links import Link
from gossamer.model.visits import Contact
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.options import PolitenessOptions
from gossamer.stages.frontier.strategy import Strategy
from gossamer.url.url import Url
from tests.stages.frontier.names import T0, Shard, linked, named


class OneByOne(Strategy):
    """Queues a URL when the one before is finished, and notes the events that it gets."""

    watches_links = True

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self.held: list[tuple[Link, int]] = []
        self.finished: list[tuple[str, str]] = []
        self.pages: list[str] = []
        self.cuts: list[float] = []

    def hold(self, link: Link, level: int, now: float) -> bool:
        self.held.append((link, level))
        return True

    def linked(self, page: Url, links: Sequence[Link]) -> None:
        self.pages.append(page.text)

    def can_offer(self) -> bool:
        return bool(self.held) and not self._frontier.counts.pending

    def offer(self, now: float) -> None:
        if self.can_offer():
            self._frontier.queue(*self.held.pop(0), now)

    def finish(self, url: Url, outcome: str) -> None:
        self.finished.append((url.text, outcome))

    @property
    def hosts(self) -> int:
        return 5

    def cut(self, now: float) -> None:
        self.cuts.append(now)


def test_a_strategy_decides_what_is_queued_and_hears_of_its_end(tmp_path: Path) -> None:
    shard = Shard(tmp_path, PolitenessOptions(preset="own"))
    frontier = shard.open(T0)
    assert not frontier.watches_links
    strategy = OneByOne(frontier)
    frontier.strategy = strategy
    assert frontier.watches_links
    for number in range(2):
        frontier.add(linked(f"http://a.test/{number}"), 0, T0)
    assert frontier.counts.discovered == 0
    assert (frontier.wake_at(), frontier.hosts_left, frontier.hosts_most) == (0.0, 5, 5)
    now = T0
    while (wake_at := frontier.wake_at()) is not None:
        now = max(now, wake_at)
        lease = frontier.select(now)
        if lease is None:
            continue
        assert frontier.hosts_left == 1, "the strategy offers nothing now"
        if not lease.address:
            frontier.locate(lease, "192.0.2.1", now + 1e9, now)
            continue
        assert frontier.begin(lease, now)
        frontier.ended(lease, Contact(0.01, "answered"), now)
        frontier.finish(lease, "fetched", now)
        frontier.linked(lease.url, [])
    assert strategy.finished == [("http://a.test/0", "fetched"), ("http://a.test/1", "fetched")]
    assert strategy.pages == ["http://a.test/0", "http://a.test/1"]
    assert frontier.counts.discovered == 2
    frontier.cut(now)
    assert strategy.cuts == [now]
    shard.crash()


def test_the_strategy_of_a_frontier_is_a_sweep(tmp_path: Path) -> None:
    shard = Shard(tmp_path, PolitenessOptions(preset="own"))
    frontier = shard.open(T0)
    frontier.add(linked("http://a.test/"), 0, T0)
    assert frontier.counts.pending == 1
    assert frontier.hosts_left == frontier.hosts_most == 1
    assert not frontier.is_leased(named("http://a.test/"))
    shard.crash()
