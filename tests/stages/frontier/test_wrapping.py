"""Components written for `WrappedFrontier`, the base class before `Strategy`, keep working."""

from __future__ import annotations

from pathlib import Path

from gossamer.model.links import Link
from gossamer.model.visits import Contact
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease
from gossamer.stages.frontier.options import PolitenessOptions
from gossamer.stages.frontier.wrapping import WrappedFrontier
from tests.stages.frontier.names import T0, Shard, linked, named


class LastFirst(WrappedFrontier):
    """As the documentation had it, and with methods that it did not name."""

    def __init__(self, gates: Frontier) -> None:
        super().__init__(gates)
        self._queues: list[tuple[Link, int]] = []  # A name that `Frontier` uses, too.
        self.begun = 0

    def add(self, link: Link, level: int, now: float) -> None:
        self._queues.append((link, level))

    def select(self, now: float) -> Lease | None:
        while self._queues and not self.gates.counts.pending:
            super().add(*self._queues.pop(), now)
        return self.gates.select(now)

    def wake_at(self) -> float | None:
        return 0.0 if self._queues and not self.counts.pending else super().wake_at()

    def begin(self, lease: Lease, now: float) -> bool:
        self.begun += 1
        return super().begin(lease, now)


def test_a_wrapped_frontier_overrides_what_it_defines_and_passes_the_rest_on(tmp_path: Path) -> None:
    shard = Shard(tmp_path, PolitenessOptions(preset="own"))
    gates = shard.open(T0)
    frontier = LastFirst(gates)
    for number in range(3):
        frontier.add(linked(f"http://a.test/{number}"), 0, T0)
    assert frontier.counts.discovered == 0
    fetched = []
    now = T0
    while (wake_at := frontier.wake_at()) is not None:
        now = max(now, wake_at)
        lease = frontier.select(now)
        if lease is None:
            continue
        if not lease.address:
            frontier.locate(lease, "192.0.2.1", now + 1e9, now)
            continue
        assert frontier.begin(lease, now)
        assert frontier.is_leased(lease.url)
        frontier.ended(lease, Contact(0.01, "answered"), now)
        fetched.append(lease.url.text)
        frontier.finish(lease, "fetched", now)
    assert fetched == ["http://a.test/2", "http://a.test/1", "http://a.test/0"]
    assert frontier.begun == 3
    assert frontier.hosts_most == 1
    assert not frontier.watches_links
    assert frontier.facts(named("http://a.test/")) == gates.facts(named("http://a.test/"))
    frontier.cut(now)
    shard.crash()


def test_every_public_name_of_the_frontier_is_passed_on() -> None:
    missing = [name for name in vars(Frontier) if not name.startswith("_") and name not in vars(WrappedFrontier)]
    assert not missing
