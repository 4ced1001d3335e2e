"""The index of hosts with work: one entry each, found by a seek, in memory nothing that grows with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.index import ON_WORKBENCH, HostIndex, LevelBias
from gossamer.stages.frontier.options import PolitenessOptions, politeness
from gossamer.stages.frontier.record import RECORD_VERSION, HostRecord, host_prefix
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.site import PARTITIONS
from gossamer.world.dice import Dice
from tests.stages.frontier.names import T0

POLITE = politeness(PolitenessOptions())


def host(name: str, partition: int = 7) -> Host:
    return Host(HostRecord(RECORD_VERSION, name), partition, host_prefix(partition, name), 1, POLITE)


class Disk:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.open()

    def open(self) -> list[tuple[int, str]]:
        self.store = Store(self.directory / "store", 1 << 20, 1 << 20)
        self.epochs = Epochs(self.store)
        dice = Dice(1)
        self.index = HostIndex(self.epochs, dice, LevelBias(2.0, dice))
        return self.index.load(self.store)

    def reopen(self) -> list[tuple[int, str]]:
        self.store.close()
        return self.open()

    def commit(self) -> None:
        self.epochs.close_at_once()

    def entries(self) -> int:
        return sum(1 for family in ("ready", "sleep") for _ in self.epochs.scan(family, b"\0\0", b"\xff\xff"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path)
    yield disk
    disk.store.close()


def woken(disk: Disk, now: float, hosts: dict[str, Host]) -> list[str]:
    names = []
    while (found := disk.index.wake(now)) is not None:
        names.append(found[1])
        disk.index.enter_workbench(hosts[found[1]])
    return names


def test_a_host_has_one_entry_wherever_it_goes(disk: Disk) -> None:
    one = host("a")
    for move in (
        lambda: disk.index.enter_ready(one, 3),
        lambda: disk.index.enter_ready(one, 0),
        lambda: disk.index.enter_sleep(one, T0 + 5),
        lambda: disk.index.enter_sleep(one, T0 + 5),
        lambda: disk.index.enter_workbench(one),
        lambda: disk.index.enter_workbench(one),
    ):
        move()
        assert disk.entries() == 1
        assert disk.epochs.get(one.record.index_family, one.record.index_key) == b""
        disk.commit()
    disk.index.leave(one)
    disk.index.leave(one)
    assert disk.entries() == 0
    assert (one.record.index_family, one.record.index_key) == ("", b"")


def test_sleepers_wake_in_time_and_in_order(disk: Disk) -> None:
    hosts = {name: host(name, partition) for partition, name in enumerate(("c", "a", "b", "late"))}
    for name, at in (("c", 3.0), ("a", 1.0), ("b", 2.5), ("late", 100.0)):
        disk.index.enter_sleep(hosts[name], T0 + at)

    assert disk.index.next_wake_at() == T0 + 1
    assert woken(disk, T0 + 0.9, hosts) == []
    assert woken(disk, T0 + 2.5, hosts) == ["a", "b"]
    assert disk.index.next_wake_at() == T0 + 3
    assert woken(disk, T0 + 50, hosts) == ["c"]
    assert disk.index.next_wake_at() == T0 + 100


@pytest.mark.parametrize("death", [False, True])
def test_sleepers_of_one_partition_wake_one_after_the_other(disk: Disk, death: bool) -> None:
    hosts = {f"h{number}": host(f"h{number}") for number in range(20)}
    for number, one in enumerate(hosts.values()):
        disk.index.enter_sleep(one, T0 + (number * 7) % 20)
    if death:
        disk.commit()
        disk.reopen()

    for second in range(20):
        assert woken(disk, T0 + second, hosts) == [f"h{number}" for number in range(20) if (number * 7) % 20 == second]
    assert disk.index.next_wake_at() is None


@pytest.mark.parametrize("death", [False, True])
def test_instants_that_no_microsecond_meets_are_found_again(disk: Disk, death: bool) -> None:
    hosts = {f"h{number}": host(f"h{number}", number) for number in range(200)}
    at = {name: 1700 * T0 + number / 7e5 for number, name in enumerate(hosts)}
    for name, one in hosts.items():
        disk.index.enter_sleep(one, at[name])
    if death:
        disk.commit()
        disk.reopen()
    names = []
    while (wake_at := disk.index.next_wake_at()) is not None:
        found = woken(disk, wake_at, hosts)
        assert found, "at the time that it named somebody wakes"
        assert all(wake_at >= at[name] for name in found)
        names += found

    assert names == list(hosts)


def test_sleeping_often_takes_no_memory(disk: Disk) -> None:
    long, one = host("long"), host("a")
    disk.index.enter_sleep(long, T0 + 1e6)
    for number in range(3 * PARTITIONS):
        disk.index.enter_sleep(one, T0 + number)
        assert disk.index.wake(T0 + number) == (7, "a")
        disk.index.enter_workbench(one)

    assert len(disk.index._alarms) <= 2 * PARTITIONS + 1
    assert disk.index.wake(T0 + 1e6) == (7, "long")


def test_drawing_finds_every_ready_host(disk: Disk) -> None:
    hosts = {f"h{number}": host(f"h{number}", number % 5) for number in range(50)}
    for number, one in enumerate(hosts.values()):
        disk.index.enter_ready(one, number % 3)
    disk.commit()
    disk.reopen()
    drawn = []
    while (found := disk.index.draw()) is not None:
        drawn.append(found[1])
        disk.index.enter_workbench(hosts[found[1]])

    assert sorted(drawn) == sorted(hosts)
    assert not disk.index.has_ready


def test_drawing_is_biased_to_urgent_levels(disk: Disk) -> None:
    levels = {f"h{number}": number % 3 for number in range(300)}
    for name, level in levels.items():
        disk.index.enter_ready(host(name, int(name[1:]) % 50), level)
    seen: Counter[int] = Counter()
    for _ in range(700):
        found = disk.index.draw()
        assert found is not None
        seen[levels[found[1]]] += 1

    assert seen[0] > 1.5 * seen[1] > 1.5 * 1.5 * seen[2] > 0


@pytest.mark.parametrize("family", ["ready", "waiting"])
def test_drawing_is_by_chance_within_a_level(disk: Disk, family: str) -> None:
    for number in range(64):
        one = host(f"h{number}.example.org")
        if family == "ready":
            disk.index.enter_ready(one, 0)
        else:
            disk.index.enter_waiting(one, "example.org", 0)
    draws = [
        disk.index.draw() if family == "ready" else disk.index.next_waiting(7, "example.org") for _ in range(1_000)
    ]
    drawn = Counter(draws)

    assert len(drawn) > 45
    assert max(drawn.values()) < 150, "the chances of hosts and of draws are spread over the same range"


def test_a_start_names_who_was_on_the_bench_and_finds_the_others(disk: Disk) -> None:
    active = [(partition, f"b{number}") for partition in (0, 7, 4095) for number in range(3)]
    for partition, name in active:
        disk.index.enter_workbench(host(name, partition))
    for partition in (7, 8):
        for level in (0, 3, 7):
            disk.index.enter_ready(host(f"r{partition}{level}", partition), level)
    disk.index.enter_sleep(host("s1", 0), T0 + 9)
    disk.index.enter_sleep(host("s2", 4095), T0 + 5)
    disk.commit()

    assert sorted(disk.reopen()) == sorted(active)
    ready = {level: sorted(partitions.listed) for level, partitions in disk.index._ready.items()}
    assert ready == {0: [7, 8], 3: [7, 8], 7: [7, 8]}
    assert disk.index.next_wake_at() == T0 + 5
    assert disk.index._wakes.keys() == {0, 4095}


def test_nothing_is_drawn_or_woken_where_nobody_is(disk: Disk) -> None:
    disk.index.enter_workbench(host("a"))

    assert disk.index.draw() is None
    assert disk.index.wake(T0 * 10) is None
    assert disk.index.next_wake_at() is None
    assert host("a").record.index_key == b""
    assert ON_WORKBENCH not in disk.index._ready
