from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from gossamer.model.visits import Request
from gossamer.options import convert
from gossamer.stages.fetch.gopher import GopherModule, item_of
from gossamer.stages.fetch.options import FetchOptions
from gossamer.testing.conformance import check_protocol_module
from gossamer.world.clock import WallClock
from tests.stages.fetch.conftest import Run
from tests.stages.fetch.listening import listening
from tests.stages.fetch.speaking import AGENT, failed, replied

MENU = b"iWelcome\tfake\t(NULL)\t0\r\n0About\t/about.txt\thost.test\t70\r\n.\r\n"


def module_with(**options: object) -> GopherModule:
    return GopherModule(convert(FetchOptions, options), AGENT, WallClock())


@asynccontextmanager
async def speaking(**options: object) -> AsyncIterator[GopherModule]:
    module = module_with(**options)
    try:
        async with asyncio.timeout(60):
            yield module
    finally:
        await module.close()


class Hole:
    """A Gopher server that answers selectors from a table, and keeps what it was asked."""

    def __init__(self, answers: Mapping[bytes, bytes], *, stalls: bool = False) -> None:
        self.answers = answers
        self.stalls = stalls
        self.asked: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            self.asked.append(line)
            missing = b"3no such thing\t\terror.host\t1\r\n.\r\n"
            writer.write(self.answers.get(line.removesuffix(b"\r\n"), missing))
            await writer.drain()
            if self.stalls:
                await reader.read()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def digging(answers: Mapping[bytes, bytes], *, stalls: bool = False) -> AsyncIterator[Hole]:
    hole = Hole(answers, stalls=stalls)
    async with listening(hole.serve) as port:
        hole.port = port
        yield hole


def to(hole: Hole, path: str, most: int = 0) -> Request:
    return Request(f"gopher://host.test:{hole.port}{path}", "127.0.0.1", hole.port, body_bytes_max=most)


def test_it_keeps_the_contract_of_a_protocol_module(run: Run) -> None:
    async def main() -> None:
        async with digging({b"": MENU, b"/b.bin": bytes(range(256)) * 99, b"/empty": b""}) as hole:
            base = f"gopher://127.0.0.1:{hole.port}"
            served = {base + "/": MENU, base + "/9/b.bin": bytes(range(256)) * 99, base + "/0/empty": b""}
            await check_protocol_module(module_with, served)

    run(main())


@pytest.mark.parametrize(
    ("path", "selector", "media_type"),
    [
        ("", b"", "application/gopher-menu"),
        ("/", b"", "application/gopher-menu"),
        ("/1", b"", "application/gopher-menu"),
        ("/1/a%20b", b"/a b", "application/gopher-menu"),
        ("/7/find", b"/find", "application/gopher-menu"),
        ("/0/about.html", b"/about.html", "text/plain"),
        ("/habout", b"about", "text/html"),
        ("/g/x", b"/x", "image/gif"),
        ("/I/x.png", b"/x.png", "image/png"),
        ("/I/x", b"/x", "application/octet-stream"),
        ("/9/x.tar.gz", b"/x.tar.gz", "application/gzip"),
        ("/5/x.zip", b"/x.zip", "application/zip"),
        ("/9/%C3%A4?x=%E4", b"/\xc3\xa4?x=\xe4", "application/octet-stream"),
    ],
)
def test_a_selector_goes_out_and_its_item_type_says_what_comes(
    run: Run, path: str, selector: bytes, media_type: str
) -> None:
    async def main() -> None:
        async with digging({selector: b"some\x00thing"}) as hole, speaking() as module:
            answer = replied(await module.fetch(to(hole, path)))
            assert (answer.status, answer.body, answer.media_type) == (200, b"some\x00thing", media_type)
            assert hole.asked == [selector + b"\r\n"]

    run(main())


def test_a_refusal_is_reported_in_the_servers_words(run: Run) -> None:
    async def main() -> None:
        text = b"3 is the number of items\r\n"
        async with (
            digging({b"/x": text, b"/menu": b"3not here\t\terror.host\t1\r\n" + MENU}) as hole,
            speaking() as module,
        ):
            failure = failed(await module.fetch(to(hole, "/0/missing")))
            assert (failure.outcome, failure.error, failure.retry) == ("http_error", "Gopher: no such thing", False)
            assert replied(await module.fetch(to(hole, "/0/x"))).body == text
            assert replied(await module.fetch(to(hole, "/1/menu"))).body.endswith(MENU)

    run(main())


def test_a_hole_that_stalls_is_left_in_time(run: Run) -> None:
    async def main() -> None:
        async with digging({b"/begun": b"begun", b"/silent": b""}, stalls=True) as hole:
            async with speaking(request_s_max=1.0) as module:
                reply = replied(await module.fetch(to(hole, "/0/begun")))
                assert (reply.body, reply.truncated) == (b"begun", "time")
                failure = failed(await module.fetch(to(hole, "/0/silent")))
                assert (failure.outcome, failure.retry, failure.host_level) == ("timeout", True, True)
            async with speaking(body_bytes_max=3) as module:
                reply = replied(await module.fetch(to(hole, "/0/begun")))
                assert (reply.body, reply.truncated) == (b"beg", "length")

    run(main())


def test_a_proxy_is_not_gone_around(run: Run) -> None:
    async def main() -> None:
        async with digging({}) as hole, speaking(proxy="http://127.0.0.1:1") as module:
            assert failed(await module.fetch(to(hole, "/"))).outcome == "unsupported"
            assert hole.asked == []

    run(main())


@pytest.mark.parametrize(
    "url",
    ["gopher://h.test/_HELO%0d%0aMAIL", "gopher://h.test/0a%09b", "gopher://h.test/0%00", "gopher:///0/x",
     "gopher://h.test?x", "gopher://h.test/0/ü", "gopher://h.test/0a b", "ftp://h.test/"],
)  # fmt: skip
def test_selectors_that_could_say_something_else_are_not_sent(run: Run, url: str) -> None:
    assert item_of(url) is None

    async def main() -> None:
        async with speaking() as module:
            assert failed(await module.fetch(Request(url, "127.0.0.1", 1))).outcome == "unsupported"

    run(main())


def test_a_url_is_taken_apart() -> None:
    assert item_of("GOPHER://me:pw@h.test:7070/0a/b%20c#d") == ("gopher://h.test:7070/0a/b%20c", "0", "a/b%20c")
