"""The control socket: every request has an answer, whatever it is."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.cli.control import ask
from gossamer.engine.control import REQUEST_BYTES_MAX, SOCKET, ControlSocket
from gossamer.engine.logs import Logs
from gossamer.model.verbs import RefusedError
from gossamer.world.clock import WallClock

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    if request.param == "asyncio":
        return asyncio.run
    return pytest.importorskip("uvloop").run


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    logs = Logs(tmp_path / "logs", WallClock())
    yield logs
    logs.close()


async def echo(request: dict[str, object]) -> object:
    return request


async def refuse(_: dict[str, object]) -> object:
    raise RefusedError("not today")


async def fail(_: dict[str, object]) -> object:
    raise KeyError("ours")


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, directory: Path) -> Client:
        while True:  # `served` has the deadline.
            with suppress(OSError):
                return cls(*await asyncio.open_unix_connection(str(directory / SOCKET)))
            await asyncio.sleep(0.002)

    async def raw(self, line: bytes) -> dict[str, Any]:
        self.writer.write(line)
        answer: dict[str, Any] = msgspec.json.decode(await self.reader.readline())
        return answer

    async def ask(self, **request: object) -> dict[str, Any]:
        return await self.raw(msgspec.json.encode(request) + b"\n")

    def close(self) -> None:
        self.writer.close()


def served(directory: Path, logs: Logs, work: Callable[[Path], Coroutine[Any, Any, None]]) -> Coroutine[Any, Any, None]:
    """Serve in `directory` while `work` goes on."""

    directory.mkdir(parents=True, exist_ok=True)

    async def serving() -> None:
        control = ControlSocket(directory, {"echo": echo, "refuse": refuse, "fail": fail, "why": echo}, logs)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            server = group.create_task(control.serve())
            await work(directory)
            server.cancel()

    return serving()


def test_a_verb_is_answered_with_its_result_as_often_as_asked(tmp_path: Path, run: Run, logs: Logs) -> None:
    async def work(directory: Path) -> None:
        client = await Client.to(directory)
        for number in range(3):
            answer = await client.ask(verb="echo", number=number)
            assert answer == {"ok": True, "result": {"verb": "echo", "number": number}}
        client.close()

    run(served(tmp_path, logs, work))


@pytest.mark.promise("Operation", "The control socket answers every request, and only its owner can open it.")
@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"not json\n", "not a JSON object"),
        (b"[1, 2]\n", "not a JSON object"),
        (b"\xff\xfe\n", "not a JSON object"),
        (b"\n", "not a JSON object"),
        (b"{}\n", "no verb None; there are: echo, refuse, fail, why"),
        (b'{"verb": "dance"}\n', "no verb 'dance'; there are: echo, refuse, fail, why"),
        (b'{"verb": ["echo"]}\n', "no verb"),
        (b'{"verb": "refuse"}\n', "not today"),
        (b'{"verb": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "not a JSON object: maximum recursion depth"),
        (b'{"a":' * 100_000 + b"\n", "not a JSON object: maximum recursion depth"),
        (b"\xff\xfe\x00\n", "not a JSON object"),
    ],
)
def test_a_bad_request_is_answered_with_what_is_wrong_and_the_connection_stays_open(
    tmp_path: Path, logs: Logs, line: bytes, error: str
) -> None:
    async def work(directory: Path) -> None:
        client = await Client.to(directory)
        answer = await client.raw(line)
        assert answer["ok"] is False
        assert error in answer["error"]
        assert (await client.ask(verb="echo"))["ok"]
        client.close()

    asyncio.run(served(tmp_path, logs, work))


def test_a_verb_that_fails_is_answered_and_logged(tmp_path: Path, run: Run, logs: Logs) -> None:
    async def work(directory: Path) -> None:
        client = await Client.to(directory)
        answer = await client.ask(verb="fail")
        assert answer["ok"] is False
        assert "KeyError" in answer["error"]
        assert (await client.ask(verb="echo"))["ok"]
        client.close()

    run(served(tmp_path, logs, work))
    (line,) = (tmp_path / "logs/critical.log").read_bytes().splitlines()
    assert msgspec.json.decode(line)["verb"] == "fail"


def test_two_clients_do_not_wait_for_each_other(tmp_path: Path, run: Run, logs: Logs) -> None:
    async def work(directory: Path) -> None:
        first, second = await Client.to(directory), await Client.to(directory)
        first.writer.write(b'{"verb": "ech')
        assert (await second.ask(verb="echo", who=2))["result"]["who"] == 2
        assert (await first.raw(b'o", "who": 1}\n'))["result"]["who"] == 1
        first.close()
        second.close()

    run(served(tmp_path, logs, work))


@pytest.mark.promise("Operation", "The control socket answers every request, and only its owner can open it.")
def test_only_its_owner_may_open_the_socket(tmp_path: Path, run: Run, logs: Logs) -> None:
    async def work(directory: Path) -> None:
        (await Client.to(directory)).close()
        assert stat.S_IMODE((directory / SOCKET).stat().st_mode) == 0o600

    run(served(tmp_path, logs, work))


def test_it_leaves_no_socket_behind_and_takes_the_place_of_an_old_one(tmp_path: Path, run: Run, logs: Logs) -> None:
    (tmp_path / SOCKET).write_bytes(b"of a crawl that was killed")

    async def work(directory: Path) -> None:
        client = await Client.to(directory)
        assert (await client.ask(verb="echo"))["ok"]
        client.close()

    run(served(tmp_path, logs, work))
    assert not (tmp_path / SOCKET).exists()


def test_a_client_that_sits_there_does_not_hold_up_the_end(tmp_path: Path, run: Run, logs: Logs) -> None:
    clients = []

    async def work(directory: Path) -> None:
        client = await Client.to(directory)
        assert (await client.ask(verb="echo"))["ok"]
        clients.append(client)

    async def all_of_it() -> None:
        await served(tmp_path, logs, work)
        assert await clients[0].reader.read() == b""
        clients[0].close()

    run(all_of_it())


def test_a_verb_that_outlasts_the_server_is_answered_to_no_one(tmp_path: Path, run: Run, logs: Logs) -> None:
    asked = asyncio.Event()
    ended = asyncio.Event()
    errors: list[dict[str, Any]] = []

    async def last(_: dict[str, object]) -> object:
        asked.set()
        await ended.wait()
        return "too late"

    async def all_of_it() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
        serving = asyncio.create_task(ControlSocket(tmp_path, {"last": last}, logs).serve())
        client = await Client.to(tmp_path)
        client.writer.write(b'{"verb": "last"}\n')
        await asked.wait()
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        ended.set()
        assert await client.reader.read() == b""
        client.close()
        await asyncio.sleep(0)  # The answer's task ends.

    run(all_of_it())
    assert errors == []


def test_a_directory_of_any_depth_has_its_socket(tmp_path: Path, run: Run, logs: Logs) -> None:
    deep = tmp_path / ("d" * 80) / ("e" * 80)
    assert len(os.fsencode(deep)) > 108

    async def work(directory: Path) -> None:
        state = directory.parent
        while not (directory / SOCKET).exists():  # noqa: ASYNC110 - `served` has the deadline
            await asyncio.sleep(0.002)
        answer = await asyncio.to_thread(ask, state, "why", {"url": "http://a.test/"})
        assert answer == {"verb": "why", "url": "http://a.test/"}

    run(served(deep / "state", logs, work))


def test_a_request_without_end_is_let_go(tmp_path: Path, logs: Logs) -> None:
    async def work(directory: Path) -> None:
        client = await Client.to(directory)
        client.writer.write(b"x" * (REQUEST_BYTES_MAX * 2 + 10))
        with suppress(OSError):
            await client.writer.drain()
            assert await client.reader.read() == b""
        client.close()
        other = await Client.to(directory)
        assert (await other.ask(verb="echo"))["ok"]
        other.close()

    asyncio.run(served(tmp_path, logs, work))
