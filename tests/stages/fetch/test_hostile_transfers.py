"""Transfers made to do harm: each has a bounded share of the loop, and every byte that it receives is counted."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pycurl
import pytest
import trustme

from gossamer.model.visits import Failure, Reply, Request
from gossamer.stages.fetch import transfer as transfers
from gossamer.stages.fetch.bodies import BodyMemory
from gossamer.stages.fetch.ftp import FtpModule
from gossamer.stages.fetch.gopher import GopherModule
from gossamer.stages.fetch.http import HttpModule, _settings
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.fetch.transfer import CALLS_A_TURN_MAX, FRAMING_BYTES_MIN, Transfer
from gossamer.world.clock import WallClock
from gossamer.world.spill import BUFFER_BYTES, Spills
from tests.stages.fetch.conftest import Run
from tests.stages.fetch.listening import listening
from tests.stages.fetch.servers import Answer, Server, pause, reply, serving
from tests.stages.fetch.speaking import AGENT, failed, replied, speaking

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
FIN = 1
"""Linux counts the end of a connection as a byte."""
SOCKETS_BYTES_MAX = 16 << 20
"""What the kernel may hold of a connection on loopback, both ends together, before anything is noticed."""


def to(server: Server, scheme: str = "http", **more: object) -> Request:
    return Request(url=f"{scheme}://example.test:{server.port}/", ip="127.0.0.1", port=server.port, **more)  # type: ignore[arg-type]


def endless(beginning: bytes, again: bytes) -> Answer:
    """Send a beginning, and then the same again for as long as the client takes it."""

    async def answer(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(beginning)
        while not writer.is_closing():
            writer.write(again)
            await writer.drain()
        return False

    return answer


class Watched(Transfer):
    """Counts the pieces of a body that are taken, by the turn of the loop in which they came."""

    calls: Counter[int]
    turn: Callable[[], int]

    def take_body(self, piece: bytes) -> int | None:
        answer = super().take_body(piece)
        Watched.calls[Watched.turn()] += answer != pycurl.WRITEFUNC_PAUSE
        return answer


@pytest.mark.heavy
@pytest.mark.promise("Bounds", "Each transfer has a bounded share of the event loop.")
@pytest.mark.parametrize("spilled", [False, True])
def test_a_body_of_single_bytes_comes_whole_in_small_turns(run: Run, tmp_path: Path, spilled: bool) -> None:
    size = 150_000

    async def main() -> None:
        turns = 0
        options = FetchOptions(body_memory_bytes_max=BUFFER_BYTES) if spilled else FetchOptions()
        bodies = BodyMemory(options, Spills(tmp_path, "sha1"))
        Watched.calls, Watched.turn = Counter(), lambda: turns
        async with serving(CHUNKED + b"1\r\nx\r\n" * size + b"0\r\n\r\n") as server:
            module = HttpModule(options, AGENT, WallClock(), bodies)
            module._transfers._make = lambda: Watched(options, _settings(options), bodies)
            fetching = asyncio.create_task(module.fetch(to(server)))
            while not fetching.done():
                turns += 1
                await asyncio.sleep(0)
            answer = replied(fetching.result())
            assert (answer.body_bytes, answer.truncated) == (size, "")
            content = answer.file.open().read() if answer.file is not None else answer.body
            assert content == b"x" * size
            assert (answer.file is not None) == spilled
            assert answer.wire_bytes == len(CHUNKED) + 6 * size + 5
            # On a slow machine the pause may end in the same turn: libcurl then gives the piece again that it kept.
            assert max(Watched.calls.values()) <= CALLS_A_TURN_MAX + 1
            assert bodies.held_bytes == 0
            await module.close()

    run(main())


def test_pieces_of_ordinary_size_are_never_paused_for(run: Run) -> None:
    async def main() -> None:
        body = b"x" * 1000
        raw = CHUNKED + b"%x\r\n%b\r\n" % (len(body), body) * 9_000 + b"0\r\n\r\n"
        async with serving(raw) as server, speaking() as module:
            paused = []
            module._transfers._driver.grinds = paused.append  # type: ignore[method-assign]
            assert replied(await module.fetch(to(server))).body == body * 9_000
            assert paused == []

    run(main())


def test_memory_is_counted_as_it_is(run: Run) -> None:
    async def main() -> None:
        options = FetchOptions()
        bodies = BodyMemory(options)
        transfer = Transfer(options, (), bodies)
        transfer.body_bytes_max = 1 << 30
        for _ in range(1_500):
            transfer.take_body(b"x" * 10)
        assert len(transfer.body) == 15_000
        assert 15_000 <= bodies.held_bytes < 20_000
        transfer.close()
        assert bodies.held_bytes == 0

    run(main())


FLOODS = {
    "chunk extension": (CHUNKED + b"5;", b"a" * 50_000),
    "quoted chunk extension": (CHUNKED + b'5;a="', b"a" * 50_000),
    "chunk extension after content": (CHUNKED + b"5\r\nhello\r\n5;", b"a" * 50_000),
    "chunk extensions": (CHUNKED, b"1;" + b"a" * 5_000 + b"\r\nx\r\n"),
    "folded header": (b"HTTP/1.1 200 OK\r\nX: a\r\n", b" \r\n" * 20_000),
    "interim replies": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000),
    "early hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" * 1_000),
    "header lines": (b"HTTP/1.1 200 OK\r\n", b"a:\r\n" * 10_000),
    "one header line": (b"HTTP/1.1 200 OK\r\nX: ", b"a" * 50_000),
    "trailers": (CHUNKED + b"1\r\nx\r\n0\r\n", b"a:\r\n" * 10_000),
    "status line": (b"HTTP/1.1 200 ", b"a" * 50_000),
    "chunk size": (CHUNKED, b"0" * 50_000),
    "empty lines": (b"", b"\r\n" * 20_000),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_what_has_no_content_ends_soon_and_is_counted(run: Run, flood: str) -> None:
    async def main() -> None:
        async with serving(endless(*FLOODS[flood])) as server, speaking() as module:
            failure = failed(await module.fetch(to(server)))
            assert failure.outcome in ("too_large", "protocol_error"), failure
            assert not failure.host_level
            assert len(FLOODS[flood][0]) < failure.wire_bytes < SOCKETS_BYTES_MAX
            await server.hung_up.wait()
            if "extension" in flood or "folded" in flood:
                assert failure.wire_bytes > FRAMING_BYTES_MIN
                assert (failure.outcome, failure.retry) == ("too_large", False)
            if "content" in flood:
                assert failure.came is not None
                assert (failure.came.body, failure.came.truncated) == (b"hello", "length")

    run(main())


def test_a_flood_ends_where_the_kernel_does_not_count(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "COUNTED", False)

    async def main() -> None:
        raw = reply(b"hello")
        async with serving(raw) as server, speaking() as module:
            assert replied(await module.fetch(to(server))).wire_bytes == len(raw)
        async with serving(endless(*FLOODS["chunk extension"])) as server, speaking() as module:
            failure = failed(await module.fetch(to(server)))
            assert failure.outcome == "too_large"
            assert FRAMING_BYTES_MIN < failure.wire_bytes < SOCKETS_BYTES_MAX

    run(main())


@pytest.mark.promise("Bounds", "Each transfer has a bounded share of the event loop.")
def test_floods_leave_the_loop_to_others(run: Run) -> None:
    """Beside many floods a request needs few turns of the loop; libcurl's own turns stay as long as one transfer's."""

    async def main() -> None:
        options = FetchOptions()
        async with (
            serving(endless(CHUNKED, b"1\r\nx\r\n" * 10_000)) as grinding,
            serving(endless(*FLOODS["chunk extension"])) as flooding,
            serving(reply()) as innocent,
            speaking() as module,
        ):
            driver = module._transfers._driver
            grinders = [asyncio.create_task(module.fetch(to(grinding))) for _ in range(4)]
            floods = [asyncio.create_task(module.fetch(to(flooding))) for _ in range(4)]
            rounds = 0
            while rounds < 30 or len(driver._grinding) + (driver._turn_of is not None) < 4:
                replied(await module.fetch(to(innocent)))
                await asyncio.sleep(0.01)
                rounds += 1
            await asyncio.wait(floods)  # They grind too, until they have sent too much.
            assert len(driver._grinding) + (driver._turn_of is not None) == 4, "each waits for its turn"
            for grinder in grinders:
                grinder.cancel()
            await asyncio.wait(grinders)
            assert not driver._under_way
            assert not driver._grinding
            replied(await module.fetch(to(innocent)))
        assert options.low_speed_bytes_s > 0

    run(main())


def test_a_transfer_that_grinds_ends_with_its_time(run: Run) -> None:
    async def main() -> None:
        async with serving(endless(CHUNKED, b"1\r\nx\r\n" * 10_000)) as server, speaking(request_s_max=0.5) as module:
            answer = replied(await module.fetch(to(server)))
            assert answer.truncated == "time"
            assert answer.body.strip(b"x") == b""
            assert answer.wire_bytes > 6 * len(answer.body)

    run(main())


def test_a_server_that_drips_framing_is_ended_by_low_speed(run: Run) -> None:
    async def drip(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(CHUNKED + b"5;")
        while not writer.is_closing():
            writer.write(b"x" * 5_000)
            await asyncio.sleep(0.02)
        return False

    async def main() -> None:
        async with serving(drip) as server, speaking(low_speed_bytes_s=1_000, low_speed_s=1) as module:
            failure = failed(await module.fetch(to(server)))
            assert (failure.outcome, failure.retry, failure.host_level) == ("timeout", True, True)
            assert failure.wire_bytes > 10_000
            await server.hung_up.wait()

    run(main())


@pytest.mark.promise("Bounds", "Every byte that a transfer receives is counted and bounded.")
@pytest.mark.parametrize("stay", [True, False])
def test_every_byte_of_a_reply_is_counted_once(run: Run, stay: bool) -> None:
    framed = CHUNKED + b"5;note=made\r\nhello\r\n0\r\nTrailer: x\r\n\r\n"

    async def answer(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" + framed)
        return stay

    async def main() -> None:
        async with serving(answer) as server, speaking() as module:
            for _ in range(3):
                answered = replied(await module.fetch(to(server, fresh=not stay)))
                assert answered.body == b"hello"
                assert len(framed) + 28 <= answered.wire_bytes <= len(framed) + 28 + FIN
            assert server.connections == (1 if stay else 3)

    run(main())


def test_a_reply_that_breaks_off_is_counted(run: Run) -> None:
    async def answer(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(CHUNKED + b"5;" + b"a" * 30_000)
        return False

    async def main() -> None:
        async with serving(answer) as server, speaking() as module:
            received = failed(await module.fetch(to(server))).wire_bytes
            assert len(CHUNKED) + 30_002 <= received <= len(CHUNKED) + 30_002 + FIN

    run(main())


def _tls(*protocols: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(protocols)
    trustme.CA().issue_cert("example.test").configure_cert(context)
    return context


def test_tls_is_counted_and_each_request_of_h2_for_itself(run: Run) -> None:
    context = _tls()

    async def main() -> None:
        async with serving(reply(), tls=context) as server, speaking(verify_tls=False) as module:
            first = replied(await module.fetch(to(server, "https")))
            second = replied(await module.fetch(to(server, "https")))
            assert first.wire_bytes > second.wire_bytes > len(reply()), "a handshake, and records"
            assert server.connections == 1

    run(main())


def _frame(kind: int, payload: bytes, flags: int = 0, stream: int = 0) -> bytes:
    """Return a frame of HTTP/2 (RFC 9113, section 4.1)."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


DATA, HEADERS, SETTINGS, PING, CONTINUATION = 0, 1, 4, 6, 9
PADDED, END_HEADERS, END_STREAM = 0x8, 0x4, 0x1
OK = b"\x88"
"""Status 200, as HPACK has it (RFC 7541, appendix A)."""
H2_FLOODS = {
    "padding": (_frame(HEADERS, OK, END_HEADERS, 1), _frame(DATA, b"\xff" + bytes(255), PADDED, 1)),
    "pings": (b"", _frame(PING, bytes(8))),
    "settings": (b"", _frame(SETTINGS, b"")),
    "continuations": (_frame(HEADERS, OK, 0, 1), _frame(CONTINUATION, b"", 0, 1)),
}
"""What comes once on a connection of HTTP/2, and what comes again and again; neither holds content."""


@pytest.mark.parametrize("flood", H2_FLOODS)
def test_frames_of_h2_without_content_end_soon_and_are_counted(run: Run, flood: str) -> None:
    context = _tls("h2")
    once, again = H2_FLOODS[flood]

    async def answer(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(_frame(SETTINGS, b""))
        await pause()  # The request comes right behind the preface that was read.
        writer.write(once)
        while not writer.is_closing():
            writer.write(again * 500)
            await writer.drain()
        return False

    async def main() -> None:
        async with serving(answer, tls=context) as server, speaking(verify_tls=False) as module:
            failure = failed(await module.fetch(to(server, "https")))
            assert failure.outcome in ("too_large", "protocol_error", "connect_error"), failure
            assert 0 < failure.wire_bytes < SOCKETS_BYTES_MAX

    run(main())


def test_what_a_kept_connection_receives_between_requests_is_not_charged_to_the_next(run: Run) -> None:
    context, pings, sent = _tls("h2"), _frame(PING, bytes(8)) * 200, asyncio.Event()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(24)  # The preface.
        writer.write(_frame(SETTINGS, b""))
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readexactly(9):
                await reader.readexactly(int.from_bytes(head[:3]))
                stream = int.from_bytes(head[5:])
                if head[3] == HEADERS:
                    writer.write(_frame(HEADERS, OK, END_HEADERS, stream))
                    writer.write(_frame(DATA, b"hello", END_STREAM, stream))
                    await pause()  # By now the answer was read.
                    writer.write(pings)
                    await writer.drain()
                    sent.set()
        writer.close()

    async def main() -> None:
        async with listening(speak, tls=context) as port, speaking(verify_tls=False) as module:
            request = Request(f"https://example.test:{port}/", "127.0.0.1", port)
            first = replied(await module.fetch(request))
            await sent.wait()
            await pause()
            second = replied(await module.fetch(request))
            assert (first.body, second.body) == (b"hello", b"hello")
            assert 0 < second.wire_bytes < len(pings) / 4 < first.wire_bytes + len(pings)

    run(main())


def test_a_connection_with_the_descriptor_of_a_closed_one_is_counted_from_its_beginning(run: Run) -> None:
    replies = [reply(b"x" * length, b"Connection: close") for length in (9_000, 500)]

    async def answer(server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(replies[len(server.requests) - 1])
        return False

    async def main() -> None:
        async with serving(answer) as server, speaking() as module:
            for expected in replies:
                received = replied(await module.fetch(to(server))).wire_bytes
                assert len(expected) <= received <= len(expected) + FIN
            assert server.connections == 2

    run(main())


async def _nothing_but_lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0)
    while not writer.is_closing():
        writer.write(b"220-and again\r\n" * 1_000)
        await writer.drain()
    await reader.read(1)


async def _one_line(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220-")
    while not writer.is_closing():
        writer.write(b"a" * 50_000)
        await writer.drain()
    await reader.read(1)


@pytest.mark.parametrize("flood", [_nothing_but_lines, _one_line])
def test_a_control_connection_without_end_is_ended(run: Run, flood: Callable[..., object]) -> None:
    async def main() -> None:
        module = FtpModule(FetchOptions(), AGENT, WallClock())
        async with listening(flood) as port:  # type: ignore[arg-type]
            request = Request(f"ftp://example.test:{port}/x", "127.0.0.1", port)
            failure = failed(await module.fetch(request))
            assert failure.outcome in ("too_large", "protocol_error"), failure
            assert 0 < failure.wire_bytes < SOCKETS_BYTES_MAX
            await module.close()

    run(main())


def test_gopher_is_cut_and_counted(run: Run) -> None:
    async def hole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 50_000)
            await writer.drain()

    async def main() -> None:
        module = GopherModule(FetchOptions(body_bytes_max=100_000), AGENT, WallClock())
        async with listening(hole) as port:
            request = Request(f"gopher://example.test:{port}/0x", "127.0.0.1", port)
            answer: Reply | Failure = await module.fetch(request)
            assert isinstance(answer, Reply)
            assert (answer.body_bytes, answer.truncated) == (100_000, "length")
            assert 100_000 <= answer.wire_bytes < SOCKETS_BYTES_MAX
            await module.close()

    run(main())
