"""The fakes keep the promises of what they stand for."""

from __future__ import annotations

import asyncio

import pytest

from gossamer.model.visits import Failure, Reply, Request
from gossamer.testing import FakeClock, FakeWeb, FixedResolver, MemoryArchive, check_archive, page, reply
from gossamer.world.clock import Clock

ROOT = "http://a.example/"


def fetch(web: FakeWeb, url: str = ROOT, **bounds: int) -> Reply | Failure:
    return asyncio.run(web.fetch(Request(url, "127.0.0.1", 80, **bounds)))


def test_sleeping_takes_no_time_and_moves_the_clock() -> None:
    clock = FakeClock(100.0)
    as_port: Clock = clock
    assert as_port.now() == 100.0

    asyncio.run(clock.sleep_until(100_000.0))
    assert clock.now() == 100_000.0
    asyncio.run(clock.sleep_until(5.0))
    assert clock.now() == 100_000.0
    clock.advance(1.5)
    assert clock.now() == 100_001.5
    with pytest.raises(AssertionError):
        clock.advance(-1)


def test_a_sleeper_gives_way_to_the_others() -> None:
    clock, order = FakeClock(), list[str]()

    async def sleeper(name: str) -> None:
        order.append(name)
        await clock.sleep_until(clock.now() + 1)
        order.append(name)

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(sleeper("a"))
            group.create_task(sleeper("b"))

    asyncio.run(both())
    assert order == ["a", "b", "a", "b"]


def test_a_page_is_given_with_address_times_and_sizes() -> None:
    clock = FakeClock(50.0)
    web = FakeWeb({ROOT: page("/x", title="Home & <more>")}, clock=clock, fetch_s=0.25)

    result = fetch(web)

    assert isinstance(result, Reply)
    assert (result.url, result.ip, result.started_at, result.fetch_s) == (ROOT, "127.0.0.1", 50.0, 0.25)
    assert b'href="/x"' in result.body
    assert b"<title>Home &amp; &lt;more&gt;" in result.body
    assert result.wire_bytes > len(result.body)
    assert result.header("content-type") == "text/html"


def test_what_is_not_there_is_a_404() -> None:
    result = fetch(FakeWeb())
    assert isinstance(result, Reply)
    assert result.status == 404


def test_answers_come_one_after_the_other_and_the_last_stays() -> None:
    web = FakeWeb({ROOT: [Failure("timeout", "slow"), reply(status=503), page()]})

    results = [fetch(web) for _ in range(4)]

    assert [r.outcome if isinstance(r, Failure) else r.status for r in results] == ["timeout", 503, 200, 200]
    assert web.counts[ROOT] == 4
    assert [request.url for request in web.requests] == [ROOT] * 4


def test_a_function_answers_and_an_exception_is_raised() -> None:
    web = FakeWeb({ROOT: lambda request: page(title=request.ip), ROOT + "bad": KeyError("ours")})

    result = fetch(web)
    assert isinstance(result, Reply)
    assert b"127.0.0.1" in result.body
    with pytest.raises(KeyError):
        fetch(web, ROOT + "bad")


def test_a_body_is_cut_at_its_bound() -> None:
    result = fetch(FakeWeb({ROOT: reply(b"0123456789")}), body_bytes_max=4)
    assert isinstance(result, Reply)
    assert (result.body, result.truncated) == (b"0123", "length")


def test_held_requests_wait_and_are_counted() -> None:
    async def scenario() -> None:
        web = FakeWeb({ROOT: page()})
        web.held = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(web.fetch(Request(ROOT, "127.0.0.1", 80)))
            await asyncio.sleep(0)
            assert web.in_flight == 3
            web.held.set()
        assert (web.in_flight, web.in_flight_max) == (0, 3)

    asyncio.run(scenario())


def test_nobody_fetches_after_the_end() -> None:
    web = FakeWeb({ROOT: page()})
    asyncio.run(web.close())
    asyncio.run(web.close())
    with pytest.raises(AssertionError):
        fetch(web)


def test_the_resolver_answers_from_its_table_and_remembers() -> None:
    gone = Failure("dns_error", "no such name")
    resolver = FixedResolver({"a": "127.0.0.2", "b": ("127.0.0.3", "::1"), "gone": gone})

    assert resolver.cached("a") is None
    located = asyncio.run(resolver.resolve("b"))
    assert not isinstance(located, Failure)
    assert located.addresses == ("127.0.0.3", "::1")
    assert resolver.cached("b") == located
    assert asyncio.run(resolver.resolve("gone")) == gone
    assert resolver.cached("gone") is None
    other = asyncio.run(resolver.resolve("other"))
    assert not isinstance(other, Failure)
    assert other.addresses == ("127.0.0.1",)
    assert resolver.counts == {"b": 1, "gone": 1, "other": 1}


def test_the_archive_is_one() -> None:
    check_archive(MemoryArchive)
