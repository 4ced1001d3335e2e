"""Pages on their way to their reader: after the commit, in order, within bounds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gossamer.engine.delivery import Delivery
from gossamer.model.pages import PageRow, Visited
from gossamer.model.visits import Content, Reply
from tests.engine.ring import url_of


def visited(number: int, size: int = 0) -> Visited:
    url = url_of(f"http://a.example/{number}")
    reply = Reply(url.text, 200, (), b"x" * size, "", 0.0, 0.0, size) if size else None
    content = Content(b"y" * size) if size else None
    return Visited(url, PageRow(url.text, url.key, url.host, url.site, 0.0, "fetched"), reply, content=content)


def numbers(visits: list[Visited | None]) -> list[int | None]:
    return [int(one.row.url.rpartition("/")[2]) if one is not None else None for one in visits]


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_nothing_is_read_before_its_commit_and_all_in_order() -> None:
    async def scenario() -> None:
        delivery = Delivery()
        delivery.add(visited(1))
        delivery.add(visited(2))
        reader = asyncio.create_task(delivery.next())
        await asyncio.sleep(0)
        assert not reader.done()
        closing = delivery.take()
        delivery.add(visited(3))
        await asyncio.sleep(0)
        assert not reader.done()
        await delivery.release(closing)
        assert numbers([await reader, await delivery.next()]) == [1, 2]
        await delivery.release(delivery.take())
        delivery.end()
        assert numbers([await delivery.next(), await delivery.next(), await delivery.next()]) == [3, None, None]

    run(scenario())


@pytest.mark.promise("Bounds", "What waits for a commit or for a reader is bounded.")
def test_it_is_full_by_number_and_by_bytes_until_somebody_reads() -> None:
    async def scenario(delivery: Delivery, size: int) -> None:
        room = []
        delivery.on_room = lambda: room.append(delivery.pages)
        for number in range(10):
            assert not delivery.full
            delivery.add(visited(number, size))
        assert delivery.full
        await delivery.release(delivery.take())
        assert delivery.full
        assert not delivery.filling
        await delivery.next()
        assert not delivery.full
        assert room == [9]

    run(scenario(Delivery(pages_max=10), 0))
    run(scenario(Delivery(bytes_max=2_000), 100))


def test_an_early_commit_is_due_when_much_of_it_is_in_the_open_epoch() -> None:
    delivery = Delivery(pages_max=8)
    delivery.add(visited(1))
    assert not delivery.filling
    delivery.add(visited(2))
    assert delivery.filling
    delivery.take()
    assert not delivery.filling


def test_when_the_reader_has_left_nothing_is_held() -> None:
    async def scenario() -> None:
        delivery = Delivery(pages_max=2)
        room = []
        delivery.on_room = lambda: room.append(True)
        delivery.add(visited(1, 100))
        closing = delivery.take()
        delivery.add(visited(2, 100))
        assert delivery.full
        delivery.drop()
        assert room
        delivery.add(visited(3, 100))
        await delivery.release(closing)
        assert (delivery.pages, delivery.held_bytes, delivery.full, delivery.take()) == (0, 0, False, [])

    run(scenario())
