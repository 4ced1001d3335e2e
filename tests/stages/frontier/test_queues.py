"""Queues: first in, first out within a level, over epochs and deaths; and what is passed leaves the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.model.links import Link
from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.index import LevelBias
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions, politeness
from gossamer.stages.frontier.queues import BLOCK_URLS_MAX, Queues
from gossamer.stages.frontier.record import (
    RECORD_VERSION,
    HostRecord,
    QueuedUrl,
    QueueEntry,
    decode_record,
    encode_record,
    host_prefix,
)
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.world.dice import Dice
from tests.stages.frontier.names import T0, named

PREFIX = host_prefix(7, "a.example")
WINDOW = 16


class OneHost:
    """A host's queues over the epochs of one store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.made = 0
        self.open()

    def open(self) -> None:
        self.store = Store(self.directory / "store", 1 << 20, 1 << 20)
        self.epochs = Epochs(self.store)
        self.queues = Queues(self.epochs, LevelBias(2.0, Dice(1)), FrontierOptions(), Namer().name)
        data = self.store.get("host", PREFIX)
        record = HostRecord(RECORD_VERSION, "a.example") if data is None else decode_record(data)
        self.host = Host(record, 7, PREFIX, 1, politeness(PolitenessOptions()))

    def crash(self) -> None:
        self.store.close()
        self.open()

    def append(self, count: int, level: int = 0) -> list[str]:
        urls = [f"http://a.example/u{self.made + number}" for number in range(count)]
        self.made += count
        for url in urls:
            self.queues.append(self.host, level, Link(named(url), "anchor", 0))
        return urls

    def lend(self, now: float = T0) -> QueuedUrl | None:
        if self.host.window is None:
            self.queues.refill(self.host, now)
        return self.queues.take(self.host) if self.host.window is not None else None

    def take(self, count: int, now: float = T0) -> list[QueuedUrl]:
        items = [item for item in (self.lend(now) for _ in range(count)) if item is not None]
        self.host.leased += len(items)
        return items

    def finish(self, *items: QueuedUrl) -> None:
        for item in items:
            self.queues.finish(self.host, item)
            self.host.leased -= 1

    def drain(self) -> list[str]:
        urls = []
        while items := self.take(1):
            urls.append(items[0].url.text)
            self.finish(*items)
        return urls

    def commit(self) -> None:
        self.queues.cut(self.host)
        self.epochs.put("host", PREFIX, encode_record(self.host.record))
        self.epochs.close_at_once()

    def blocks(self) -> list[int]:
        return [int.from_bytes(key[-8:]) for key, _ in self.store.scan("queue", b"\0\0", b"\xff\xff")]

    def dues(self) -> int:
        return sum(1 for _ in self.store.scan("due", b"\0\0", b"\xff\xff"))


def due(name: object) -> str:
    return f"http://a.example/due{name}"


def urls(items: list[QueuedUrl]) -> list[str]:
    return [item.url.text for item in items]


@pytest.fixture
def one(tmp_path: Path) -> Iterator[OneHost]:
    host = OneHost(tmp_path)
    yield host
    host.store.close()


@pytest.mark.parametrize("count", [1, WINDOW, WINDOW + 1, BLOCK_URLS_MAX, BLOCK_URLS_MAX + 1, 3 * BLOCK_URLS_MAX + 5])
@pytest.mark.parametrize("death", [False, True])
def test_urls_come_in_the_order_in_which_they_were_put(one: OneHost, count: int, death: bool) -> None:
    put = one.append(count)
    one.commit()
    if death:
        one.crash()

    assert one.drain() == put
    one.commit()
    assert one.blocks() == []


def test_order_holds_over_epochs(one: OneHost) -> None:
    put = []
    for count in (3, 70, 1, 1, 64, 5):
        put += one.append(count)
        one.commit()
    assert one.blocks() == [0, 3, 67, 73, 74, 75, 139]

    assert one.drain() == put


def test_a_block_may_grow_while_it_is_read(one: OneHost) -> None:
    put = one.append(2)
    taken = one.take(1)
    put += one.append(3)
    taken += one.take(2)
    one.commit()
    put += one.append(2)
    taken += one.take(10)

    assert urls(taken) == put


def test_what_is_out_is_not_read_twice_and_is_there_again_after_a_death(one: OneHost) -> None:
    put = one.append(10)
    one.commit()
    assert urls(one.take(4)) == put[:4]
    one.commit()
    assert urls(one.take(10)) == put[4:]
    one.crash()

    assert one.drain() == put


def test_urls_finished_out_of_order_are_not_lent_again(one: OneHost) -> None:
    put = one.append(70)
    one.commit()
    items = one.take(70)
    one.finish(*items[1:3], items[66], *items[40:50])
    one.commit()
    one.crash()

    left = [url for number, url in enumerate(put) if number not in {1, 2, 66, *range(40, 50)}]
    assert one.host.record.urls_queued == len(left)
    assert one.drain() == left


def test_a_block_leaves_the_disk_when_its_last_url_is_finished(one: OneHost) -> None:
    one.append(64)
    one.commit()
    one.append(10)
    one.commit()
    items = one.take(70)
    one.finish(*items[:63])
    one.commit()
    assert one.blocks() == [0, 64]
    one.finish(items[64], items[63])
    one.commit()
    assert one.blocks() == [64]
    one.crash()
    assert len(one.drain()) == 9
    one.commit()
    assert one.blocks() == []


def test_a_block_finished_in_the_epoch_it_was_put_is_never_stored(one: OneHost) -> None:
    one.append(100)
    one.drain()
    puts = [value for value in one.epochs._open.families[0].values() if value is not None]
    one.commit()

    assert not puts
    assert one.blocks() == []
    assert not one.host.readings


def test_a_level_drained_and_filled_again_within_an_epoch(one: OneHost) -> None:
    """The new URL joins a block whose first URL is finished already: the record must name that block."""
    one.append(1)
    one.drain()
    put = one.append(2)
    one.commit()
    one.crash()

    assert one.drain() == put


def test_a_level_drained_and_filled_again_in_another_epoch(one: OneHost) -> None:
    """While another level keeps the host in memory, the cursor must not stay in a block that is gone."""
    one.append(5)
    one.commit()
    one.drain()
    one.commit()
    put = one.append(2)

    assert one.drain() == put


@pytest.mark.parametrize("death", [False, True])
def test_forgetting_the_window_loses_nothing(one: OneHost, death: bool) -> None:
    put = one.append(100)
    one.commit()
    items = one.take(20)
    one.finish(*items)
    one.queues.forget_window(one.host)
    one.commit()
    if death:
        one.crash()
    put += one.append(3)

    assert one.drain() == put[20:]


def test_levels_are_chosen_by_chance_biased_to_the_urgent(one: OneHost) -> None:
    for level in (0, 1, 2):
        one.append(BLOCK_URLS_MAX * 30, level)
    one.commit()
    seen = [0, 0, 0]
    for _ in range(60):
        one.queues.refill(one.host, T0)
        seen[one.queues.take(one.host).level] += 1
        one.host.window = None

    assert seen[0] > seen[1] > seen[2] > 0


def test_due_urls_wait_for_their_time_then_come_first(one: OneHost) -> None:
    put = one.append(3)
    for number, at in enumerate((T0 + 20, T0 + 10, T0 + 30)):
        one.queues.put_due(one.host, QueueEntry(due(number), 0, 0, "anchor", "", 2), at, number)
    assert urls(one.take(3)) == put
    assert one.lend(T0 + 9.9) is None
    assert urls(one.take(5, T0 + 10)) == [due(1)]
    assert one.host.due_next == T0 + 20
    put = one.append(1)
    assert urls(one.take(5, T0 + 30)) == [due(0), due(2), *put]


def test_a_due_url_is_out_once_and_gone_when_finished(one: OneHost) -> None:
    one.queues.put_due(one.host, QueueEntry(due(""), 0, 0, "anchor", "", 2), T0, 1)
    one.commit()
    items = one.take(2)
    assert urls(items) == [due("")]
    one.commit()
    assert one.take(2) == []
    assert one.dues() == 1
    one.finish(*items)
    assert one.host.record.urls_queued == 0
    assert not one.host.due_out
    one.commit()
    assert one.dues() == 0


def test_due_urls_survive_a_death(one: OneHost) -> None:
    for number in range(40):
        one.queues.put_due(one.host, QueueEntry(due(number), 0, 0, "anchor", "", 2), T0 + number, number)
    one.commit()
    one.finish(*one.take(5, T0 + 100))
    one.commit()
    one.crash()

    assert one.host.record.due == 35
    assert urls(one.take(50, T0 + 100)) == [due(number) for number in range(5, 40)]


def test_the_window_is_bounded(one: OneHost) -> None:
    one.append(200)
    for number in range(200):
        one.queues.put_due(one.host, QueueEntry(due(""), 0, 0, "anchor", ""), T0, number)
    for _ in range(100):
        one.queues.refill(one.host, T0)
        assert one.host.window is not None
        assert len(one.host.window) <= WINDOW
        one.queues.take(one.host)


def test_clearing_drops_all_but_counts_what_is_lent_until_it_ends(one: OneHost) -> None:
    one.append(30)
    one.append(30, level=5)
    one.commit()
    one.append(4)
    one.queues.put_due(one.host, QueueEntry(due(""), 0, 0, "anchor", ""), T0, 1)
    items = one.take(3)
    one.host.record.closed = "closed"

    assert one.queues.clear(one.host) == 62
    assert one.queues.clear(one.host) == 0, "clearing twice counts nothing twice"
    assert one.host.record.urls_queued == 3
    one.finish(items[0])
    one.commit()
    assert (one.blocks(), one.dues()) == ([], 0)
    assert one.host.record.urls_queued == 2
    one.crash()
    assert one.queues.clear(one.host) == 2, "nobody is left to end them"
    assert one.host.record.urls_queued == 0
    assert one.take(1) == []
