"""A host that leaves the bench takes its turn at its address with it."""

from __future__ import annotations

import pytest

from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.options import PolitenessOptions, politeness
from gossamer.stages.frontier.record import HostRecord
from gossamer.stages.frontier.workbench import Workbench

POLITE = politeness(PolitenessOptions())


def host(name: str) -> Host:
    return Host(HostRecord(1, name), 0, name.encode(), hash(name), POLITE)


@pytest.mark.promise("Order and fairness", "A crawl ends when every host has nothing left.")
def test_a_withdrawn_turn_is_not_waited_for() -> None:
    workbench = Workbench(1)
    early, late = host("early"), host("late")
    place = workbench.place("127.0.0.1", 1, 0.0)
    for one, at in ((early, 10.0), (late, 20.0)):
        workbench.settle(one, place)
        workbench.offer(one, at)
    assert workbench.next_at() == 10.0
    workbench.withdraw(early)
    assert workbench.next_at() == 20.0
    workbench.withdraw(late)
    assert workbench.next_at() is None
    assert workbench.take(30.0) is None
