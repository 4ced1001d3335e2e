"""URLs that wait for a time of their own, and what the host's turn is meanwhile."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gossamer.model.links import Link, RevisitPlan
from gossamer.model.visits import Contact
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.hosts import HostRecords
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions, politeness
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.canonical import Canonicalizer
from gossamer.url.name import Namer
from gossamer.world.dice import Dice
from tests.stages.frontier.names import T0, Shard, begin_next, linked


@pytest.mark.promise("Order and fairness", "A crawl ends when every host has nothing left.")
def test_a_host_whose_due_urls_are_all_lent_is_not_waited_for(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    namer = Namer(Canonicalizer())
    gate = politeness(PolitenessOptions(preset="own"))
    contacts = Contacts(tmp_path, b"boot", 0.0)
    frontier = Frontier(
        HostRecords(store, Epochs(store), contacts), FrontierRules(gate, FrontierOptions()), namer.name, Dice(), 1.0
    )
    url = namer.name("http://h.test/")
    assert url is not None
    frontier.add(Link(url, "seed", 0), 0, 1.0)
    lease = frontier.select(1.0)
    assert lease is not None
    frontier.locate(lease, "127.0.0.1", 1e9, 1.0)
    for now, due in ((1.0, 5.0), (5.0, 9.0)):
        lease = frontier.select(now)
        assert lease is not None
        frontier.begin(lease, now)
        assert frontier.wake_at() is None
        frontier.ended(lease, Contact(0.1, "answered"), now)
        assert frontier.wake_at() is None
        frontier.retry(lease, RevisitPlan(url, due, 2, 0), now)
        assert frontier.wake_at() == due
    contacts.close()
    store.close()


def test_a_new_url_does_not_wait_for_a_retry_that_is_due_later(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    namer = Namer(Canonicalizer())
    contacts = Contacts(tmp_path, b"boot", 0.0)
    gate = politeness(PolitenessOptions(preset="polite"))
    frontier = Frontier(
        HostRecords(store, Epochs(store), contacts), FrontierRules(gate, FrontierOptions()), namer.name, Dice(), 1.0
    )
    first, second = namer.names(["http://h.test/1", "http://h.test/2"])
    assert first is not None
    assert second is not None
    frontier.add(Link(first, "seed", 0), 0, 1.0)
    lease = frontier.select(1.0)
    assert lease is not None
    frontier.locate(lease, "127.0.0.1", 1e9, 1.0)
    lease = frontier.select(1.0)
    assert lease is not None
    frontier.begin(lease, 1.0)
    frontier.ended(lease, Contact(0.1, "answered"), 1.1)
    frontier.retry(lease, RevisitPlan(first, 60.0, 2, 0), 1.1)
    assert frontier.wake_at() == 60.0

    frontier.add(Link(second, "anchor", 1), 1, 1.2)

    wake_at = frontier.wake_at()
    assert wake_at is not None
    assert wake_at <= 2.2
    lease = frontier.select(wake_at)
    assert lease is not None
    assert lease.url == second
    contacts.close()
    store.close()


@pytest.mark.promise("Order and fairness", "A host that does not answer for a while costs no page all its attempts.")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_other_urls_come_before_a_retry_while_the_host_does_not_answer(tmp_path: Path, scheme: str) -> None:
    shard = Shard(tmp_path, PolitenessOptions(delay_s_min=1.0), window_urls_max=1, host_failures_max=3)
    frontier = shard.open(T0)
    for number in range(20):
        frontier.add(linked(f"{scheme}://h.test/{number}"), 0, T0)
    attempts: Counter[str] = Counter()
    now = T0
    while (begun := begin_next(frontier, now)) is not None:
        lease, now = begun
        attempts[lease.url.text] += 1
        is_silent = 2 < sum(attempts.values()) <= 13
        now += 2.0 if is_silent else 0.05
        if is_silent:
            frontier.ended(lease, Contact(2.0, "failed"), now)
            attempt = attempts[lease.url.text] + 1
            frontier.retry(lease, RevisitPlan(lease.url, now + 0.1, attempt, 0), now)
        else:
            frontier.ended(lease, Contact(0.05, "answered"), now)
            frontier.finish(lease, "fetched", now)
    shard.crash()

    assert len(attempts) == 20
    assert sum(attempts.values()) == 20 + 11
    assert max(attempts.values()) == 2


def test_a_url_that_fails_alone_is_tried_again_in_its_time(tmp_path: Path) -> None:
    """The others answer, so that they do not delay its next attempt."""
    shard = Shard(tmp_path, PolitenessOptions(delay_s_min=1.0), window_urls_max=1)
    frontier = shard.open(T0)
    for number in range(9):
        frontier.add(linked(f"http://h.test/{number}"), 0, T0)
    requested: list[str] = []
    now = T0
    while requested.count("http://h.test/0") < 3:
        begun = begin_next(frontier, now)
        assert begun is not None
        lease, now = begun
        requested.append(lease.url.text)
        now += 0.05
        if lease.url.text.endswith("/0"):
            frontier.ended(lease, Contact(0.05, "failed"), now)
            frontier.retry(lease, RevisitPlan(lease.url, now + 0.1, requested.count(lease.url.text) + 1, 0), now)
        else:
            frontier.ended(lease, Contact(0.05, "answered"), now)
            frontier.finish(lease, "fetched", now)
    shard.crash()

    assert [text[-1] for text in requested] == ["0", "1", "0", "2", "0"]
