"""Those who look on: one message a second for all of them, few at once, gone when they do not read or leave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.config.sections import ConsoleOptions
from gossamer.console import connections, events, server
from gossamer.console.access import Access
from gossamer.console.events import EventFeed
from gossamer.console.operations import Bounds
from gossamer.console.server import serve_app
from gossamer.console.service import OWN_SHARE, Service
from gossamer.console.serving import console_app
from gossamer.model import status
from gossamer.model.standing import Lasting

HOSTILE = "\n\nevent: status\ndata: {}\n\n<script>"
TOKEN = "t" * 32
STREAMS_MAX = ConsoleOptions().connections_max // 4
ASK = b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


LASTING = Lasting("docs.example", 4_000, 4_200.0, 4_000.0, "4,000 URLs take long")


class Desk:
    """A crawl that counts what it is asked."""

    def __init__(self) -> None:
        self.directory = Path("crawl")
        self.callbacks = None
        self.asked: list[dict[str, object]] = []
        self.state = "running"
        self.filler = ""
        self.mistakes: list[Exception] = []

    async def ask(self, request: dict[str, object]) -> dict[str, object]:
        self.asked.append(request)
        if self.state == "starting" and request["verb"] != "status":
            return {"ok": False, "error": "it is starting", "kind": "conflict"}
        answers: dict[object, object] = {
            "status": {
                "state": self.state,
                "pages": 1,
                "title": HOSTILE + self.filler,
                "course": [[1.0, 2.0, 3.0]],
                "hosts": {},
                "lasting": [msgspec.structs.asdict(LASTING)] if request.get("detail") else [],
            },
            "recent": {"last": 7, "pages": [], "errors": [], "left_out": 0},
            "course": {"points": []},
            "about": {"name": "crawl"},
        }
        return {"ok": True, "result": answers[request["verb"]]}

    def log_error(self, error: Exception) -> None:
        self.mistakes.append(error)

    def count(self, verb: str) -> int:
        return sum(request["verb"] == verb for request in self.asked)


class Reader:
    """One who looks on."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def event(self) -> tuple[str, Any]:
        """Return name and value of the next event."""
        while not (line := await self.reader.readline()).startswith(b"event: "):
            assert line, "it ended"
        data = await self.reader.readline()
        return line[7:-1].decode(), json.loads(data.removeprefix(b"data: "))

    async def until(self, name: str) -> Any:
        while (found := await self.event())[0] != name:
            pass
        return found[1]


@asynccontextmanager
async def looking(desk: Desk, readers: int = 1) -> AsyncIterator[list[Reader]]:
    async with serving(desk) as address:
        found = [await came(address) for _ in range(readers)]
        yield found
        for reader in found:
            reader.writer.close()
    assert desk.mistakes == []


@asynccontextmanager
async def serving(desk: Desk) -> AsyncIterator[str]:
    options = ConsoleOptions(request_s_max=60.0)
    async with Service(options.connections_max, OWN_SHARE) as service:
        app = console_app(desk, Access(TOKEN, True, Bounds(1_000, 60.0)), service)
        async with serve_app(app, options, 0, service) as address:
            yield address


async def came(address: str, token: str = "") -> Reader:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]), limit=1 << 20)
    writer.write(
        ASK.replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n") if token else ASK
    )
    return Reader(reader, writer)


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(240):
            await work

    asyncio.run(bounded())


def test_who_comes_hears_what_was_and_then_what_is() -> None:
    async def scenario() -> None:
        async with looking(Desk()) as [reader]:
            assert [(await reader.event())[0] for _ in range(4)] == ["about", "course", "recent", "status"]
            name, told = await reader.event()
            assert name == "status"
            assert told["status"]["title"] == HOSTILE, "what strangers wrote ends no event"
            assert "course" not in told["status"]
            assert (told["health"]["level"], told["health"]["says"]) == ("good", "running well")
            assert told["recent"]["last"] == 7

    run(scenario())


@pytest.mark.promise("Console", "All viewers together cost one message a second, and no viewer costs nothing.")
def test_a_second_is_made_once_for_all_and_not_at_all_for_nobody() -> None:
    async def scenario() -> None:
        desk = Desk()
        async with looking(desk, readers=0):
            await asyncio.sleep(0)
        assert desk.asked == []
        async with looking(desk, readers=6) as readers:
            begun = asyncio.get_running_loop().time()
            for _ in range(3):
                await asyncio.gather(*(reader.until("status") for reader in readers))
            made = desk.count("status")
            lasted_s = asyncio.get_running_loop().time() - begun
        assert made <= lasted_s / events.TICK_S + 2
        assert desk.count("about") == 6
        assert {request["after"] for request in desk.asked if "after" in request} == {7}, "each attempt is told once"
        asked = len(desk.asked)
        await asyncio.sleep(1.2 * events.TICK_S)
        assert len(desk.asked) == asked, "nobody is here any more"

    run(scenario())


def test_while_it_starts_it_is_reported_so_and_the_rest_later() -> None:
    async def scenario() -> None:
        desk = Desk()
        desk.state = "starting"
        async with looking(desk) as [reader]:
            name, told = await reader.event()
            assert (name, told["status"]["state"]) == ("status", "starting")
            desk.state = "running"
            assert await reader.until("about") == {"name": "crawl"}

    run(scenario())


def test_what_is_over_is_seldom_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "OVER_S", 3_600.0)
    feeds: list[EventFeed] = []
    begin = EventFeed.__init__

    def note(feed: EventFeed, *arguments: Any) -> None:
        feeds.append(feed)
        begin(feed, *arguments)

    monkeypatch.setattr(EventFeed, "__init__", note)

    async def scenario() -> None:
        desk = Desk()
        desk.state = "finished"
        async with looking(desk, 2) as [first, second]:
            assert (await first.until("status"))["status"]["state"] == "finished"
            assert (await second.until("status"))["status"]["state"] == "finished"
            await first.until("still")
            assert desk.count("status") == 2
            assert [request["detail"] for request in desk.asked if request["verb"] == "status"] == [True, True]
            desk.state = "running"
            feeds[0]._again_at = 0.0  # The time has passed.
            while (await first.until("status"))["status"]["state"] != "running":
                pass
            assert (await first.until("status"))["status"]["hosts"] == {}

    run(scenario())


def test_hosts_are_looked_at_as_seldom_as_their_cost_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "DETAIL_COST_MAX", 1e-9)  # After one look no other is cheap enough.

    async def scenario() -> None:
        desk = Desk()
        told = EventFeed(desk, Service(64, OWN_SHARE).counts)
        first = await told._make_message()
        assert b'"hosts"' in first
        for _ in range(5):
            message = await told._make_message(after_silence=False)
            assert b'"hosts"' in message
            assert b"docs.example" in message
        assert [request["detail"] for request in desk.asked if request["verb"] == "status"] == [True] + [False] * 5

    run(scenario())


def test_a_crawl_that_does_not_answer_is_reported_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAKING_S_MAX", 0.1)

    class Standing(Desk):
        goes_on = asyncio.Event()

        async def ask(self, request: dict[str, object]) -> dict[str, object]:
            if request["verb"] == "status":
                await self.goes_on.wait()
            return await super().ask(request)

    async def scenario() -> None:
        desk = Standing()
        async with looking(desk, 2) as [first, second]:
            told = asyncio.create_task(first.until("status"))
            assert await second.until("silent") == {"says": "the crawl does not answer"}
            desk.goes_on.set()
            assert (await told)["status"]["state"] == "running"
            assert (await second.until("status"))["status"]["state"] == "running"

    run(scenario())


def test_a_crawl_that_is_gone_is_reported_with_the_reason() -> None:
    class Gone(Desk):
        async def ask(self, request: dict[str, object]) -> dict[str, object]:
            return {"ok": False, "error": "crawl holds no crawl", "kind": "missing"}

    async def scenario() -> None:
        async with looking(Gone(), 1) as [only]:
            assert await only.until("silent") == {"says": "crawl holds no crawl"}

    run(scenario())


def test_a_stream_beyond_the_bound_waits_a_moment_and_then_takes_the_place_of_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "STAY_S_MIN", 3_600.0)

    async def scenario() -> None:
        async with serving(Desk()) as address:
            readers = [await came(address) for _ in range(STREAMS_MAX)]
            for reader in readers:
                await reader.until("status")
            late = await came(address)
            head = await late.reader.readuntil(b"\r\n\r\n")
            assert b" 503 " in head
            assert b"close one" in await late.reader.readuntil(b"}")
            monkeypatch.setattr(events, "STAY_S_MIN", 0.0)
            newest = await came(address)
            await newest.until("status")
            assert (await readers[0].reader.read()).endswith(b"0\r\n\r\n"), "the oldest ended as it should"
            await readers[1].until("status")
            for reader in (*readers, late, newest):
                reader.writer.close()

    run(scenario())


def test_a_stream_with_the_token_gives_way_to_none_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STAY_S_MIN", 3_600.0)

    async def scenario() -> None:
        async with serving(Desk()) as address:
            readers = [await came(address) for _ in range(STREAMS_MAX)]
            operators = [await came(address, TOKEN) for _ in range(STREAMS_MAX)]
            for reader in operators:
                await reader.until("status")
            for reader in readers:
                await reader.reader.read()
            monkeypatch.setattr(events, "STAY_S_MIN", 0.0)
            late = await came(address)
            assert b" 503 " in await late.reader.readuntil(b"\r\n\r\n")
            for reader in (*readers, *operators, late):
                reader.writer.close()

    run(scenario())


@pytest.mark.promise("Console", "A slow viewer delays neither the crawl nor other viewers.")
def test_who_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "TICK_S", 0.01)
    monkeypatch.setattr(events, "SEND_S_MAX", 2.0)  # Of the quick one, too, on a busy machine.
    monkeypatch.setattr(connections, "READ_S_MAX", 2.0)

    async def scenario() -> None:
        desk = Desk()
        desk.filler = "x" * 200_000
        async with looking(desk, 2) as [slow, quick]:
            slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
            for left in (2, 1):
                while len(server_side(desk)) != left:
                    await quick.until("status")

    def server_side(desk: Desk) -> list[object]:
        return [task for task in asyncio.all_tasks() if "run_asgi" in repr(task.get_coro())]

    run(scenario())


def test_a_server_that_ends_ends_its_streams_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STOP_S", 3_600.0)

    async def scenario() -> None:
        desk = Desk()
        async with serving(desk) as address:
            reader = await came(address)
            await reader.until("status")
            desk.state = "finished"
        rest = await reader.reader.read()
        assert rest.endswith(b"0\r\n\r\n"), "ended as it should be, not broken off"
        assert b'"state":"finished"' in rest, "the page does not keep a state that is over"
        reader.writer.close()

    run(scenario())
