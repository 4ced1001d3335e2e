"""Replies that browsers read and libcurl refuses are read after a second request."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from gossamer.model.visits import Failure, Reply, Request
from gossamer.stages.archive.records import response_head
from gossamer.stages.fetch.http import HttpModule
from tests.stages.fetch.conftest import Run
from tests.stages.fetch.servers import Server, always, reply, serving
from tests.stages.fetch.speaking import failed, replied, speaking

BODY = b"<title>x</title>"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
PAGE = b"%x\r\n" % len(BODY) + BODY + b"\r\n"


def to(server: Server, **more: object) -> Request:
    return Request(url=f"http://example.test:{server.port}/", ip="127.0.0.1", port=server.port, **more)  # type: ignore[arg-type]


async def fetch_twice(module: HttpModule, request: Request) -> Reply | Failure:
    """Fetch as a crawl does: once more where the first failure asks for it."""
    first = await module.fetch(request)
    if isinstance(first, Failure) and first.again:
        return await module.fetch(request)
    return first


ODD = {
    "no colon": OK + b"PHP Warning  undefined index in line 3\r\n" + LENGTH,
    "comment": OK + b"A: b\r\n<!-- cached -->\r\n" + LENGTH,
    "second status line": OK + OK + LENGTH,
    "wrapped without indentation": OK + b"X-A: a;\r\nb=c\r\n" + LENGTH,
    "folded first line": OK + b" folded\r\n" + LENGTH,
    "NUL in a value": OK + b"X-A: a\0b\r\n" + LENGTH,
    "HTTP/1.2": b"HTTP/1.2 200 OK\r\n" + LENGTH,
    "HTTP/1.10": b"HTTP/1.10 200 OK\r\n" + LENGTH,
    "HTTP/2": b"HTTP/2 200 OK\r\n" + LENGTH,
    "HTTP/7.1": b"HTTP/7.1 200 OK\r\n" + LENGTH,
    "two spaces": b"HTTP/1.1  200 OK\r\n" + LENGTH,
    "no version": b"HTTP 200 OK\r\n" + LENGTH,
    "ICY": b"ICY 200 OK\r\n" + LENGTH,
    "empty line before": b"\r\n" + OK + LENGTH,
    "many empty lines before": b"\r\n" * 9 + OK + LENGTH,
    "space before": b" " + OK + LENGTH,
    "bytes before": b"xx\r\n" + OK + LENGTH,
    "interim replies": b"HTTP/1.1 100 C\r\nbad\r\n\r\nHTTP/1.1 103 E\r\n\r\n" + OK + LENGTH,
    "odd lines, LF": (OK + b"bad\r\n" + LENGTH).replace(b"\r\n", b"\n"),
    "many headers": OK + b"X: y\r\n" * 6000 + LENGTH,
    "a length that is no number": OK + b"Content-Length: abc\r\n\r\n" + BODY,
    "an empty length": OK + b"Content-Length:\r\n\r\n" + BODY,
    "unknown transfer coding": OK + b"Transfer-Encoding: none\r\n\r\n" + BODY,
    "two Locations": OK + b"Location: /a\r\nLocation: /b\r\n" + LENGTH,
    "no last line break": CHUNKED + PAGE + b"0\r\n",
    "trailer without colon": CHUNKED + PAGE + b"0\r\nno colon\r\n\r\n",
    "space before a size": CHUNKED + b" " + PAGE + b"0\r\n\r\n",
    "zeros before a size": CHUNKED + b"0" * 20 + PAGE + b"0\r\n\r\n",
    "small chunks and extensions": CHUNKED + b"".join(b"1 ;x=y\n%c\n" % one for one in BODY) + b"0\r\n",
}


@pytest.mark.parametrize("name", ODD)
def test_what_browsers_read_is_read_after_a_second_request(run: Run, name: str) -> None:
    async def main() -> None:
        async with serving(always(ODD[name], stay=False)) as server, speaking(head_bytes_max=50_000) as module:
            first = failed(await module.fetch(to(server)))
            assert first.again
            assert len(server.requests) == 1
            answer = replied(await module.fetch(to(server)))
            assert (answer.status, answer.body, answer.truncated) == (200, BODY, "")
            assert answer.request_head == server.requests[1]
            later = replied(await module.fetch(to(server)))
            assert (later.body, len(server.requests)) == (BODY, 3), "later requests go there at once"
            assert later.wire_bytes >= len(BODY)

    run(main())


REFUSED = {
    "different lengths": (OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "different Content-Length"),
    "no status line": (b"hello, this is no HTTP, and is longer than a status line\r\n\r\n", "no status line"),
    "no number": (b"HTTP/1.1 abc OK\r\n\r\n", "no status line"),
    "a coding of the transfer": (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "not requested: gzip"),
    "no chunks": (CHUNKED + b"hello\r\n", "a chunk without a size"),
    "a bad chunk": (CHUNKED + PAGE + b"zz\r\n", "a chunk without a size"),
    "a chunk too long": (CHUNKED + b"2\r\nabc\r\n", "no line end after a chunk"),
    "no last chunk": (CHUNKED + PAGE, "the last chunk is missing"),
    "a head that ends": (b"HTTP/1.2 200 OK\r\nA: b\r\n", "closed within the head"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_second_refusal_says_what_is_wrong_and_asks_for_no_third(run: Run, name: str) -> None:
    raw, says = REFUSED[name]

    async def main() -> None:
        async with serving(always(raw, stay=False)) as server, speaking() as module:
            assert failed(await module.fetch(to(server))).again
            failure = failed(await module.fetch(to(server)))
            assert failure.outcome == "protocol_error"
            assert says in failure.error
            assert not failure.again
            assert len(server.requests) == 2

    run(main())


def test_the_archive_gets_the_head_as_it_came(run: Run) -> None:
    async def main() -> None:
        async with serving(always(ODD["no colon"], stay=False)) as server, speaking() as module:
            answer = replied(await fetch_twice(module, to(server)))
            assert response_head(answer) == ODD["no colon"][: -len(BODY)]
        raw = OK + b"bad\r\nTransfer-Encoding: chunked\r\n\r\n" + PAGE + b"0\r\n\r\n"
        async with serving(always(raw, stay=False)) as server, speaking() as module:
            answer = replied(await fetch_twice(module, to(server)))
            head = OK + b"bad\r\nX-Archive-Orig-Transfer-Encoding: chunked\r\n\r\n"
            assert response_head(answer) == head

    run(main())


@pytest.mark.parametrize(
    ("rest", "options", "says"),
    [
        (LENGTH, {"head_bytes_max": 256}, "headers exceed 256 bytes"),
        (b"X: " + b"y" * 300 + b"\r\n" + LENGTH, {"head_bytes_max": 256}, "headers exceed 256 bytes"),
        (b"\r\n", {"low_speed_s": 1, "low_speed_bytes_s": 1000}, "low_speed_bytes_s"),
        (b"\r\n", {"request_s_max": 0.3}, "request_s_max"),
    ],
    ids=["head", "long line", "slow", "time"],
)
def test_limits_hold(run: Run, rest: bytes, options: dict[str, object], says: str) -> None:
    async def answer(server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        if len(server.requests) == 1:
            writer.write(OK + b"bad\r\n\r\n")
            return False
        writer.write(OK + (b"bad\r\n" * 50 if b"X" not in rest and rest is LENGTH else b"") + rest.replace(LENGTH, b""))
        if rest is LENGTH:
            writer.write(b"A: b\r\n" * 50)
        await writer.drain()
        return True

    async def main() -> None:
        async with serving(answer) as server, speaking(**options) as module:
            assert failed(await module.fetch(to(server))).again
            assert says in failed(await module.fetch(to(server))).error

    run(main())


def test_a_body_is_cut_at_its_bound_and_unwanted_types_are_not_read(run: Run) -> None:
    async def main() -> None:
        raw = OK + b"bad\r\nContent-Type: image/png\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000
        async with serving(always(raw, stay=False)) as server, speaking() as module:
            assert failed(await module.fetch(to(server))).again
            answer = replied(await module.fetch(to(server, body_bytes_max=1000)))
            assert (answer.body, answer.truncated) == (b"x" * 1000, "length")
            answer = replied(await module.fetch(to(server, media_types=("text/html",))))
            assert (answer.body, answer.truncated) == (b"", "unspecified")

    run(main())


def test_a_flood_of_framing_is_ended(run: Run) -> None:
    async def main() -> None:
        raw = (
            OK
            + b"bad\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n" * 60_000
        )
        async with serving(always(raw, stay=False)) as server, speaking() as module:
            assert failed(await module.fetch(to(server))).again
            assert failed(await module.fetch(to(server))).outcome == "too_large"

    run(main())


def test_cancelling_ends_the_connection(run: Run) -> None:
    async def answer(server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(OK + b"bad\r\n\r\n" if len(server.requests) == 1 else OK)
        return len(server.requests) > 1

    async def main() -> None:
        async with serving(answer) as server, speaking() as module:
            assert failed(await module.fetch(to(server))).again
            await server.hung_up.wait()
            server.hung_up.clear()
            server.arrived.clear()
            task = asyncio.create_task(module.fetch(to(server)))
            await server.arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(60):
                await server.hung_up.wait()

    run(main())


def test_a_post_is_not_sent_again_and_its_body_goes_out(run: Run) -> None:
    async def main() -> None:
        async with serving(always(ODD["no colon"], stay=False)) as server, speaking() as module:
            post = to(server, method="POST", body=b"a=b")
            assert not failed(await module.fetch(post)).again
            assert replied(await module.fetch(post)).body == BODY
            assert b"Content-Length: 3\r\n" in server.requests[1]

    run(main())


@pytest.mark.parametrize("codings", [b"gzip", b"gzip\r\nX: y"])
def test_the_length_of_the_page_before_its_compression_cuts_nothing(run: Run, codings: bytes) -> None:
    page = gzip.compress(BODY * 100)
    head = b"Content-Encoding: " + codings + b"\r\nContent-Length: %d\r\n\r\n" % len(BODY * 100)

    async def main() -> None:
        async with serving(always(OK + head + page, stay=False)) as server, speaking() as module:
            answer = replied(await module.fetch(to(server)))
            assert (answer.body, answer.truncated, len(server.requests)) == (page, "", 1)
            assert b"X-Archive-Orig-Content-Length: 1600\r\n" in response_head(answer)
        async with serving(always(OK + head + page[:-3], stay=False)) as server, speaking() as module:
            assert failed(await module.fetch(to(server))).outcome == "protocol_error"

    run(main())


def test_a_kept_connection_that_closes_is_no_lost_attempt(run: Run) -> None:
    async def once_a_connection(server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        if len(server.requests) % 2 == 0 and server.connections == 1:
            return False
        writer.write(reply())
        return True

    async def main() -> None:
        async with serving(once_a_connection) as server, speaking() as module:
            replied(await module.fetch(to(server)))
            assert failed(await module.fetch(to(server))).again
            replied(await module.fetch(to(server)))
            assert server.connections == 2

    run(main())
