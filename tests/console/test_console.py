"""The console's own promises: bounds on who calls, and how slowly; nothing for whom it does not know."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from gossamer.config.sections import ConsoleOptions
from gossamer.console.access import Access, access_of
from gossamer.console.connections import PIECE_BYTES
from gossamer.console.operations import Bounds
from gossamer.console.server import serve_app
from gossamer.console.service import CRAWL_SHARE, OWN_SHARE, Service
from gossamer.console.serving import console_app
from gossamer.model.errors import ConfigError
from gossamer.world.loop import BURST_S

HOOK = "/websub/known"
TOKEN = "t" * 32


class Taken:
    """One notification, as it came in."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self.update = crawl.body.extend

    async def end(self) -> bool:
        self._crawl.ended += 1
        return bool(self._crawl.right)


class Crawl:
    """A crawl that notes what it is told."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.ended = 0
        self.right: bool | None = True
        self.failures: list[str] = []
        self.questions: list[dict[str, str]] = []
        self.is_running = True

    @property
    def directory(self) -> Path:
        return Path("/nonexistent/crawl")

    async def ask(self, request: dict[str, object]) -> dict[str, object]:
        if self.right is None:
            raise ValueError("broken")
        return {"ok": True, "result": {"state": "running", "pages": 3, "title": "<script>"}}

    def log_error(self, error: Exception) -> None:
        self.failures.append(str(error))

    @property
    def callbacks(self) -> Crawl | None:
        return self if self.is_running else None

    def intent(self, token: str, query: Mapping[str, str]) -> tuple[int, str]:
        self.questions.append({"token": token, **dict(query)})
        return (200, query.get("hub.challenge", "")) if token == "known" else (404, "no\n")

    def notification(self, token: str, signature: str) -> Taken | None:
        return Taken(self) if token == "known" else None


@asynccontextmanager
async def console(crawl: Crawl, request_s_max: float = 60.0, connections_max: int = 8) -> AsyncIterator[int]:
    options = ConsoleOptions(connections_max=connections_max, request_s_max=request_s_max)
    async with Service(connections_max, OWN_SHARE) as service:
        app = console_app(crawl, Access(TOKEN, True, Bounds(2_000, request_s_max), 1_000, "crawls.example"), service)
        async with serve_app(app, options, 0, service) as address:
            assert address.startswith("http://127.0.0.1:")
            yield int(address.rpartition(":")[2])


async def said(port: int, data: bytes) -> bytes:
    """Return all that is answered until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        async with asyncio.timeout(240):
            return await reader.read()
    except ConnectionError:
        return b""  # It was ended while it was still speaking.
    finally:
        writer.close()


def request(line: str, *headers: str, body: bytes = b"", host: str = "localhost") -> bytes:
    length = [f"Content-Length: {len(body)}"] if body else []
    return (
        "\r\n".join([f"{line} HTTP/1.1", f"Host: {host}", "Connection: close", *length, *headers, "", ""]).encode()
        + body
    )


def ask(crawl: Crawl, *requests: bytes, **bounds: object) -> list[bytes]:
    async def run() -> list[bytes]:
        async with console(crawl, **bounds) as port:  # type: ignore[arg-type]
            return [await said(port, one) for one in requests]

    return asyncio.run(run())


def statuses(answers: list[bytes]) -> list[int]:
    return [int(answer.split(b" ", 2)[1]) for answer in answers]


def test_the_status_is_json_for_this_machines_own_names_alone() -> None:
    names = ("localhost", "127.0.0.1:99", "[::1]:99", "LOCALHOST:1", "127.0.0.2", "[::1]")
    good = ask(Crawl(), *(request("GET /api/status", host=name) for name in names))
    assert statuses(good) == [200] * 6
    head, _, body = good[0].partition(b"\r\n\r\n")
    assert json.loads(body)["pages"] == 3
    assert b"content-type: application/json" in head.lower()
    assert b"server:" not in head.lower()
    others = (
        "evil.example", "", "127.0.0.1.evil.example", "127.0.0.1:80@evil.example", "localhost:1@x", "[::1]x",
        "[::1]:1@x", "[::1]:1:2", "::1", "127.0.0.1:80:80", "localhost:x", "localhost:123456", "user@localhost",
        "[::1%25x]", "[localhost]", "localhost/", "localhost\t:1", "0x7f.1", "2130706433", "127.1",
    )  # fmt: skip
    assert statuses(ask(Crawl(), *(request("GET /api/status", host=name) for name in others))) == [421] * len(others)


@pytest.mark.promise("Console", "Through a proxy at `console.public_url`, every request needs the token.")
@pytest.mark.parametrize(
    ("line", "headers", "status"),
    [
        ("GET /", {}, 200),
        ("GET /api/status", {}, 401),
        ("GET /metrics", {}, 401),
        ("GET /api/status", {"Authorization": f"Bearer {TOKEN}"}, 200),
        ("POST /api/pause", {"Authorization": f"Bearer {TOKEN}", "Origin": "https://crawls.example"}, 200),
        ("POST /api/pause", {"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}, 403),
        ("POST /api/pause", {"Authorization": f"Bearer {TOKEN}", "Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_a_proxy_passes_on_what_has_the_token(line: str, headers: dict[str, str], status: int) -> None:
    fields = [f"{name}: {value}" for name, value in {"Content-Type": "application/json", **headers}.items()]
    body = b"{}" if line.startswith("POST") else b""
    assert statuses(ask(Crawl(), request(line, *fields, body=body, host="Crawls.example"))) == [status]


def test_the_name_of_the_proxy_is_that_of_the_public_url(tmp_path: Path) -> None:
    for url, host in (("https://Crawls.example:8443/a", "crawls.example:8443"), ("", "")):
        assert access_of(tmp_path, ConsoleOptions(public_url=url)).public_host == host


def test_what_is_not_there_or_not_allowed() -> None:
    lines = ("GET /nothing", "GET /api/", "POST /api/status", "DELETE /websub/known", "GET /websub/", "GET /websub/a/b")
    asked = [request(line, f"Authorization: Bearer {TOKEN}") for line in lines]
    assert statuses(ask(Crawl(), *asked)) == [404, 404, 405, 405, 404, 404]


def test_a_browser_gets_a_page_where_there_is_none_and_a_program_json() -> None:
    accepts = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
    lines = ("GET /nothing", "GET /<b>x</b>/", "GET /api/nothing")
    pages = ask(Crawl(), *(request(line, f"Authorization: Bearer {TOKEN}", accepts) for line in lines))
    assert statuses(pages) == [404, 404, 404]
    assert b"<h1>404</h1>" in pages[0]
    assert b"content-security-policy: default-src 'self'" in pages[0].lower()
    assert b"<b>" not in pages[1]
    assert json.loads(pages[2].partition(b"\r\n\r\n")[2])["error"].startswith("there is nothing here")


def test_hubs_come_under_any_name_and_their_challenge_is_text() -> None:
    crawl = Crawl()
    (answer,) = ask(crawl, request(f"GET {HOOK}?hub.challenge=%3Cb%3E&hub.mode=subscribe", host="public.example"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b"<b>"
    assert b"content-type: text/plain" in head.lower()
    assert b"nosniff" in head
    assert crawl.questions == [{"token": "known", "hub.challenge": "<b>", "hub.mode": "subscribe"}]


def test_a_notification_is_taken_in_pieces_and_a_wrong_one_is_answered_alike() -> None:
    crawl = Crawl()
    chunked = (
        b"POST /websub/known HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"4\r\nnews\r\n1\r\n!\r\n0\r\n\r\n"
    )
    right = ask(crawl, request(f"POST {HOOK}", body=b"news"), chunked)
    crawl.right = False
    wrong = ask(crawl, request(f"POST {HOOK}", body=b"news"))
    assert statuses(right + wrong) == [204, 204, 204]
    assert bytes(crawl.body) == b"newsnews!news"
    assert crawl.ended == 3


def test_too_much_is_refused_whatever_was_announced() -> None:
    crawl = Crawl()
    lie = b"POST /websub/known HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    answers = ask(
        crawl,
        request(f"POST {HOOK}", body=b"x" * 1_001),
        lie + b"500\r\n" + b"x" * 0x500 + b"\r\n0\r\n\r\n",
        b"POST /websub/known HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\nx",
        request("POST /websub/unknown", body=b"x"),
    )
    assert statuses(answers) == [413, 413, 413, 410]
    assert crawl.ended == 0
    assert len(crawl.body) <= 1_000


def test_a_mistake_of_ours_is_noted_and_ends_one_answer() -> None:
    crawl = Crawl()
    crawl.right = None
    assert statuses(ask(crawl, request("GET /api/status"), request("GET /nothing"))) == [500, 404]
    assert crawl.failures == ["broken"]


def test_before_and_after_the_crawl_hubs_are_reported_to_come_again() -> None:
    crawl = Crawl()
    crawl.is_running = False
    (answer,) = ask(crawl, request(f"POST {HOOK}", body=b"news"))
    assert statuses([answer]) == [503]
    assert b"retry-after" in answer.lower()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"GET /api/st", b"POST /websub/known HTTP/1.1\r\nHost: x\r\n", b"\r\n\r\n",
        b"POST /websub/known HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nn",
    ],
)  # fmt: skip
def test_who_never_ends_is_ended(data: bytes) -> None:
    crawl = Crawl()
    (answer,) = ask(crawl, data, request_s_max=0.2)
    assert answer == b"" or statuses([answer])[0] in (400, 408)
    assert crawl.ended == 0


def test_the_longest_address_that_is_documented_is_taken() -> None:
    address = "%F0%9F%A6%8A" * 8_192
    assert statuses(ask(Crawl(), request(f"GET /api/why?url={address}"))) == [200]


def test_nonsense_is_refused_and_heads_have_a_bound() -> None:
    nonsense = ask(
        Crawl(), b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET / HTTP/9.9\r\nConnection: close\r\n\r\n", b"GET\r\n\r\n"
    )
    assert all(status >= 400 for status in statuses(nonsense))
    (long,) = ask(Crawl(), b"GET /api/status HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000 + b"\r\n\r\n")
    assert b"200 OK" not in long


def test_a_new_connection_takes_the_place_of_one_that_has_waited_longest() -> None:
    async def run() -> None:
        async with console(Crawl(), request_s_max=120.0, connections_max=3) as port:
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            assert statuses([await said(port, request("GET /api/status"))]) == [200]
            assert await idle[0][0].read() == b""
            idle[1][1].write(request("GET /api/status"))
            assert statuses([await idle[1][0].read()]) == [200]
            for _, writer in idle:
                writer.close()

    asyncio.run(run())


STARTED = b"POST /api/pause HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SLOW = {
    "silent": b"",
    "slow heads": b"GET /api/status HTTP/1.1\r\nHost: loc",
    "slow bodies": STARTED + f"Authorization: Bearer {TOKEN}\r\nContent-Length: 1000\r\n\r\n{{".encode(),
    "slow chunks": STARTED + f"Authorization: Bearer {TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{{".encode(),
    "unread streams": b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "unread answers": b"GET /static/uplot-1.6.32.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20,
    "idle after an answer": b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "pipelined": b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20,
}


@pytest.mark.heavy
@pytest.mark.promise("Console", "No client keeps others out or takes more than its share of the crawl's event loop.")
@pytest.mark.parametrize("data", SLOW.values(), ids=SLOW)
def test_no_readers_keep_others_out(data: bytes) -> None:
    """Two hundred connections that take or give nothing, and readers that come before and after them."""

    async def run() -> None:
        # No deadline passes meanwhile: it is the bounds that make room.
        async with console(Crawl(), request_s_max=600.0, connections_max=32) as port:
            early, early_writer = await asyncio.open_connection("127.0.0.1", port)
            early_writer.write(request("GET /api/status"))
            hostile = []
            for _ in range(200):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(data)
                hostile.append(writer)
            answers = await asyncio.gather(*(said(port, request("GET /api/status")) for _ in range(10)))
            answers += [
                await said(port, request(f"GET {path}")) for path in ("/", "/static/main.js", "/static/style.css")
            ]
            assert statuses([await early.read(), *answers]) == [200] * 14
            stream, watcher = await asyncio.open_connection("127.0.0.1", port)
            watcher.write(
                b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n" + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
            )
            assert b" 200 " in await asyncio.wait_for(stream.readline(), 240)
            told = json.loads((await said(port, request("GET /api/console"))).partition(b"\r\n\r\n")[2])
            assert told["connections"] <= 32
            assert told["streams"] <= 8
            for writer in (*hostile, early_writer, watcher):
                writer.transport.abort()

    asyncio.run(asyncio.wait_for(run(), 240))


class Steps:
    """An application that counts how often the loop turns while it takes a body."""

    def __init__(self) -> None:
        self.pieces: list[int] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (message := await receive()).get("more_body"):
            self.pieces.append(len(message["body"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def test_chunks_of_one_byte_are_parsed_a_few_at_a_time() -> None:
    async def run() -> list[int]:
        app = Steps()
        async with Service(8, OWN_SHARE) as service, serve_app(app, ConsoleOptions(), 0, service) as address:
            head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            body = b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"
            answer = await said(int(address.rpartition(":")[2]), head + body)
        assert statuses([answer]) == [204]
        return app.pieces

    pieces = asyncio.run(run())
    assert sum(pieces) >= 19_800
    assert max(pieces) <= PIECE_BYTES


@pytest.mark.promise("Console", "No client keeps others out or takes more than its share of the crawl's event loop.")
def test_a_flood_of_requests_gets_its_share_of_the_loop_and_no_more() -> None:
    async def flood(port: int) -> None:
        while True:
            await said(port, request("GET /api/status").replace(b"Connection: close\r\n", b"") * 20 + request("GET /"))

    async def run() -> None:
        options = ConsoleOptions(connections_max=32, request_s_max=60.0)
        async with Service(options.connections_max, CRAWL_SHARE) as service:
            app = console_app(Crawl(), Access(TOKEN, True, Bounds(2_000, 60.0)), service)
            async with serve_app(app, options, 0, service) as address:
                port = int(address.rpartition(":")[2])
                clock = asyncio.get_running_loop().time
                began = clock()
                floods = [asyncio.create_task(flood(port)) for _ in range(8)]
                while service.share.spent_s < 3 * BURST_S:
                    assert statuses([await said(port, request("GET /api/status"))]) == [200]
                lasted_s = clock() - began
                for task in floods:
                    task.cancel()
                await asyncio.gather(*floods, return_exceptions=True)
                # What was spent is paid for by waiting, but for a burst at the beginning.
                assert service.share.spent_s >= 3 * BURST_S
                assert lasted_s >= (2 * BURST_S) / CRAWL_SHARE * 0.9

    asyncio.run(asyncio.wait_for(run(), 240))


def test_requests_beyond_a_bound_are_reported_to_come_again() -> None:
    class Slow(Crawl):
        def __init__(self) -> None:
            super().__init__()
            self.goes_on = asyncio.Event()

        async def ask(self, request: dict[str, object]) -> dict[str, object]:
            if request["verb"] == "hosts":
                await self.goes_on.wait()
            return await super().ask(request)

    async def run() -> None:
        crawl = Slow()
        async with console(crawl, request_s_max=120.0, connections_max=32) as port:
            asked = [asyncio.create_task(said(port, request("GET /api/hosts"))) for _ in range(8)]
            done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            while len(done) < 4:
                more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                done |= more
            assert statuses([task.result() for task in done]) == [503] * 4
            assert all(b"retry-after: 1" in task.result().lower() for task in done)
            assert statuses([await said(port, request("GET /api/status"))]) == [200]
            crawl.goes_on.set()
            assert statuses([await task for task in waiting]) == [200] * 4
            told = json.loads((await said(port, request("GET /api/console"))).partition(b"\r\n\r\n")[2])
            assert told["requests_busy"] == 4

    asyncio.run(asyncio.wait_for(run(), 240))


def test_a_port_that_is_taken_is_the_operators_to_mend() -> None:
    async def run(port: int) -> None:
        async with Service(1, OWN_SHARE) as service:
            app = console_app(Crawl(), Access(TOKEN, True, Bounds(1, 1.0)), service)
            async with serve_app(app, ConsoleOptions(), port, service):
                raise AssertionError

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}: Address already in use; name another"):
            asyncio.run(run(port))
