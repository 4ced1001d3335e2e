"""Counting: counters of all components, gathered for status and the table of commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

import msgspec

from gossamer.frontier.frontier import Frontier
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.model.counters import Counters
from gossamer.model.visits import EpochRow
from gossamer.revisit.schedule import Schedule


@runtime_checkable
class Countable(Protocol):
    """A component that counts; one of an operator's own need not."""

    def count(self, into: Counters) -> None: ...


def counters_of(stages: Iterable[object]) -> Counters:
    """Return what all of them counted since the process began."""
    found = Counters()
    for room in stages:
        if isinstance(room, Countable):
            room.count(found)
    return found


def measuring(
    counters: Callable[[], Counters], frontier: Frontier | WrappedFrontier, schedule: Schedule | None
) -> Callable[[EpochRow], EpochRow]:
    """Return what completes the row of a commit. Some microseconds; with revisits a pass over the calendar."""
    before = Counters()

    def measured(row: EpochRow) -> EpochRow:
        nonlocal before
        now, counts = counters(), frontier.counts
        came, before = now.since(before), now
        due = schedule.state.due.before(row.committed_at) if schedule is not None else 0
        return msgspec.structs.replace(
            row, queued=counts.pending, hosts_with_work=counts.working, due=due, counters=came
        )

    return measured
