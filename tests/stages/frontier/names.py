"""What the frontier's tests have in common: names, and a shard's state in a directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gossamer.model.links import Link
from gossamer.ports import Prioritizer
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import VisitLease
from gossamer.stages.frontier.hosts import HostRecords
from gossamer.stages.frontier.options import BudgetOptions, FrontierOptions, PolitenessOptions, politeness
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice

T0 = 1_000_000.0
_namer = Namer()


def named(text: str) -> Url:
    url = _namer.name(text)
    assert url is not None
    return url


def linked(text: str) -> Link:
    return Link(named(text), "anchor", 1)


class Shard:
    """The state of a shard: opened, committed, and lost at any moment."""

    def __init__(
        self,
        directory: Path,
        rules: PolitenessOptions,
        seed: int = 1,
        budget: BudgetOptions | None = None,
        prioritizer: Prioritizer | None = None,
        **options: Any,
    ) -> None:
        self.directory = directory
        self.budget = budget or BudgetOptions()
        self.prioritizer = prioritizer
        self.options = FrontierOptions(**options)
        self.rules = politeness(rules)
        self.dice = Dice(seed)
        self._cut: tuple[int, int] | None = None

    def open(self, now: float, boot: bytes = b"b" * 16, travelling: Sequence[tuple[int, int]] = ()) -> Frontier:
        self.store = Store(self.directory / "store", 1 << 20, 1 << 20)
        self.epochs = Epochs(self.store)
        self.contacts = Contacts(self.directory, boot, now)
        if self.contacts.recovered.lacks_earlier(self.store.epoch, 1):  # As `assembly` does.
            self.contacts.note_missing_file(now)
        self._cut = None
        self.frontier = Frontier(
            HostRecords(self.store, self.epochs, self.contacts, travelling=travelling),
            FrontierRules(self.rules, self.options, self.budget, self.prioritizer),
            _namer.name,
            self.dice,
            now,
        )
        return self.frontier

    def cut(self, now: float) -> None:
        self.frontier.cut(now)
        self._cut = self.epochs.cut(), self.contacts.ended_since_commit

    def commit(self) -> None:
        """Make durable what was cut."""
        assert self._cut is not None
        self.epochs.commit(self._cut[0])

    def settle(self) -> None:
        """Apply what was committed."""
        assert self._cut is not None
        self.epochs.apply(self._cut[0])
        self.epochs.settle()
        self.contacts.on_commit(self._cut[1])
        self._cut = None

    def commit_all(self, now: float) -> None:
        self.cut(now)
        self.commit()
        self.settle()

    def crash(self) -> None:
        """Lose all that is in memory."""
        self.store.close()
        self.contacts.close()


def begin_next(frontier: Frontier, now: float) -> tuple[VisitLease, float] | None:
    """Begin the next request, after locating its host; return its lease and when it begins, or None at the end."""
    while (wake_at := frontier.wake_at()) is not None:
        now = max(now, wake_at)
        lease = frontier.select(now)
        if lease is None:
            continue
        if lease.address:
            assert lease.is_visit
            assert frontier.begin(lease, now)
            return lease, now
        frontier.locate(lease, "127.0.0.1", now + 1e9, now)
    return None
