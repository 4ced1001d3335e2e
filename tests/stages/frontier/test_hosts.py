"""Hosts in memory: bounded, and never two of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.model.links import Prerequisite
from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.hosts import DELAYS_MOVED_MAX, EVICTIONS_MAX, HostTable
from gossamer.stages.frontier.options import PolitenessOptions, politeness
from gossamer.stages.frontier.record import RECORD_VERSION, HostRecord, encode_record
from gossamer.state.contacts import Recovered
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from tests.stages.frontier.names import T0, named

POLITE = politeness(PolitenessOptions())


class CountingEpochs(Epochs):
    """Counts how often records are read from disk."""

    reads = 0

    def get(self, family: str, key: bytes) -> bytes | None:
        self.reads += 1
        return super().get(family, key)


@pytest.fixture
def epochs(tmp_path: Path) -> Iterator[CountingEpochs]:
    store = Store(tmp_path / "store")
    yield CountingEpochs(store)
    store.close()


def hosts_of(epochs: Epochs, cached_max: int, recovered: Recovered | None = None) -> HostTable:
    return HostTable(epochs, POLITE, recovered or Recovered({}, {}), cached_max, None)


def save(hosts: HostTable) -> None:
    for _ in hosts.cut():
        pass


@pytest.mark.parametrize("use", ["on_workbench", "dirty", "out", "leased", "prerequisites", "parked"])
def test_what_is_in_use_is_never_evicted(epochs: CountingEpochs, use: str) -> None:
    """Two objects of one host would lend to it twice at once."""
    hosts = hosts_of(epochs, 2)
    host = hosts.get("used", 1)
    if use == "dirty":
        hosts.touch(host)
    elif use == "prerequisites":
        url = named("http://used/robots.txt")
        host.prerequisites = [Prerequisite(url, url)]
    else:
        setattr(host, use, True)
    for number in range(100):
        hosts.get(f"other{number}", 1)

    assert hosts.get("used", 1) is host
    assert len(hosts._hosts) <= 3


def test_a_host_that_was_just_given_is_not_the_one_that_leaves(epochs: CountingEpochs) -> None:
    hosts = hosts_of(epochs, 2)
    for name in ("a", "b", "c"):
        hosts.touch(hosts.get(name, 1))
    new = hosts.get("new", 1)

    assert hosts.get("new", 1) is new


def test_the_least_recently_used_leaves(epochs: CountingEpochs) -> None:
    hosts = hosts_of(epochs, 3)
    for name in ("a", "b", "c", "a", "d"):
        hosts.get(name, 1)
    epochs.reads = 0
    hosts.get("a", 1)
    assert epochs.reads == 0
    hosts.get("b", 1)
    assert epochs.reads == 1


def test_records_survive_eviction(epochs: CountingEpochs) -> None:
    hosts = hosts_of(epochs, 2)
    hosts.get("a", 1).record.requests = 7
    hosts.touch(hosts.get("a", 1))
    save(hosts)
    for number in range(10):
        hosts.get(f"h{number}", 1)
    epochs.reads = 0
    assert hosts.get("a", 1).record.requests == 7
    assert epochs.reads == 1


def test_the_number_in_memory_is_bounded_once_they_are_clean(epochs: CountingEpochs) -> None:
    hosts = hosts_of(epochs, 100)
    for number in range(1000):
        hosts.touch(hosts.get(f"h{number}", 1))
    assert len(hosts._hosts) == 1000, "what is dirty cannot leave"
    save(hosts)
    for number in range(1000):
        hosts.get(f"later{number}", 1)
    assert len(hosts._hosts) <= 110


def test_a_crowd_that_must_stay_is_not_walked_for_each_newcomer(
    epochs: CountingEpochs, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = hosts_of(epochs, 100)
    asked = 0

    def counted(host: Host) -> bool:
        nonlocal asked
        asked += 1
        return not (host.on_workbench or host.dirty)

    monkeypatch.setattr(Host, "idle", property(counted))
    for number in range(100):
        hosts.get(f"busy{number}", 1).on_workbench = True
    for number in range(1000):
        hosts.touch(hosts.get(f"h{number}", 1))
    assert asked <= EVICTIONS_MAX * 1000


def test_recovered_contacts_hold_a_host_back(epochs: CountingEpochs) -> None:
    fingerprint = hosts_of(epochs, 10).get("a", 1).fingerprint
    hosts = hosts_of(epochs, 10, Recovered({fingerprint: T0 + 5}, {}))

    assert hosts.get("a", 1).record.delay_until == T0 + 5
    assert hosts.get("b", 1).record.delay_until == 0.0


def test_the_longest_recovered_delays_move_and_none_becomes_shorter(epochs: CountingEpochs) -> None:
    giver = hosts_of(epochs, 10, Recovered({number: T0 + number for number in range(DELAYS_MOVED_MAX + 10)}, {}))
    delays = giver.remaining_delays(T0 + 3)
    assert delays == {number: number - 3.0 for number in range(10, DELAYS_MOVED_MAX + 10)}

    taker = hosts_of(epochs, 10, Recovered({20: T0 + 100}, {}))
    taker.learn_delays(delays, T0)
    assert taker.remaining_delays(T0) == delays | {20: 100.0}


@pytest.mark.promise(
    "Politeness",
    "Delays of hosts and addresses survive any crash; a host whose past is unknown waits its longest delay.",
)
def test_when_nobody_knows_every_host_rests_its_longest(epochs: CountingEpochs) -> None:
    """Also one whose first request was in the epoch that was lost: its record knows of none."""
    slow = HostRecord(RECORD_VERSION, "slow", requests=3, crawl_delay_s=200.0)
    late = HostRecord(RECORD_VERSION, "late", requests=3, delay_until=T0 + 5000)
    for record in (slow, late):
        host = hosts_of(epochs, 10).get(record.name, 1)
        epochs.put("host", host.prefix, encode_record(record))
    hosts = hosts_of(epochs, 10, Recovered({}, {}, unknown_at=T0))

    assert hosts.get("slow", 1).record.delay_until == T0 + 200
    assert hosts.get("late", 1).record.delay_until == T0 + 5000
    assert hosts.get("first", 1).record.delay_until == T0 + 60
    assert hosts.unknown_until == T0 + 60


def test_a_cut_writes_each_dirty_record_once(epochs: CountingEpochs) -> None:
    hosts = hosts_of(epochs, 10)
    for name in ("a", "b"):
        host = hosts.get(name, 1)
        host.record.requests += 1
        hosts.touch(host)
        hosts.touch(host)
    assert [host.name for host in hosts.cut()] == ["a", "b"]
    assert epochs.size == 2
    assert not list(hosts.cut())
