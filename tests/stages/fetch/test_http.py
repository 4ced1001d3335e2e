from __future__ import annotations

import asyncio
import gzip
import io
import socket
import threading
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import brotli
import pytest
from msgspec import structs

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Request
from gossamer.options import convert
from gossamer.stages.fetch.bodies import BodyMemory
from gossamer.stages.fetch.driver import Driver
from gossamer.stages.fetch.ftp import FtpModule
from gossamer.stages.fetch.gopher import GopherModule
from gossamer.stages.fetch.http import HttpModule
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.fetch.transfer import Transfer
from gossamer.world.clock import WallClock
from tests.stages.fetch.conftest import Run
from tests.stages.fetch.servers import Answer, Server, always, never, reply, serving
from tests.stages.fetch.speaking import AGENT, failed, replied, speaking


def to(server: Server, path: str = "/", **more: object) -> Request:
    return Request(url=f"http://example.test:{server.port}{path}", ip="127.0.0.1", port=server.port, **more)  # type: ignore[arg-type]


def test_a_reply_is_what_was_sent(run: Run) -> None:
    async def main() -> None:
        raw = reply(b"hello", b"Content-Type: Text/HTML; charset=Latin1", b"X-Odd: \xe9 ", b"x-odd: 2")
        async with serving(raw) as server, speaking() as module:
            before = WallClock().now()
            answer = replied(await module.fetch(to(server, "/a?b#c")))
            assert (answer.status, answer.reason, answer.http_version) == (200, "OK", "1.1")
            assert answer.body == b"hello"
            assert answer.headers == (
                ("Content-Length", "5"),
                ("Content-Type", "Text/HTML; charset=Latin1"),
                ("X-Odd", "\xe9"),
                ("x-odd", "2"),
            )
            assert (answer.media_type, answer.charset) == ("text/html", "Latin1")
            assert answer.wire_bytes == len(raw)
            assert answer.truncated == ""
            assert answer.ip == "127.0.0.1"
            assert answer.url.endswith("/a?b#c")
            assert 0 < answer.fetch_s < 30
            assert -1 < answer.started_at - before < 30

    run(main())


def test_replies_are_counted_that_come_before_libcurl_watches_their_connection(run: Run) -> None:
    """A server on this machine may answer while libcurl is still sending: none of 300 replies counts as nothing."""
    raw = reply(b"")

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while connection.recv(65_536):
                connection.sendall(raw)

    async def main(port: int) -> None:
        async with speaking() as module:
            request = Request(f"http://example.test:{port}/", "127.0.0.1", port)
            assert {replied(await module.fetch(request)).wire_bytes for _ in range(300)} == {len(raw)}

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        run(main(listener.getsockname()[1]))
        thread.join()


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "?q=1", "/a/../b/./c", "/%7Eu/%41?x=%7e", "/|{}^`'\"<>[]\\", "/a?b=|{}?&&;//", "//a//b", "/#f", "?a#b",
        "/%e4%bd%a0", "/a%2fb?c=%e4", "/%2e%2E/%zz%",
    ],
)  # fmt: skip
def test_the_url_goes_out_as_written_and_the_request_head_is_what_went(run: Run, path: str) -> None:
    async def main() -> None:
        async with serving(reply()) as server, speaking() as module:
            answer = replied(await module.fetch(to(server, path)))
            assert server.requests == [answer.request_head]
            target = path.partition("#")[0]
            target = target if target.startswith("/") else "/" + target
            assert answer.request_head.startswith(
                f"GET {target} HTTP/1.1\r\nHost: example.test:{server.port}\r\n".encode()
            )

    run(main())


def test_a_handle_that_sent_a_target_of_its_own_sends_the_next_one_as_written(run: Run) -> None:
    async def main() -> None:
        async with serving(reply()) as server, speaking() as module:
            for path in ("/%e4", "/other?a=b", "/%E4#x"):
                answer = replied(await module.fetch(to(server, path)))
                assert server.requests[-1] == answer.request_head
                assert answer.request_head.startswith(f"GET {path.partition('#')[0]} HTTP/1.1\r\n".encode())
            assert server.connections == 1

    run(main())


def test_the_request_head_with_every_kind_of_header(run: Run) -> None:
    async def main() -> None:
        extra = (("If-None-Match", '"x"'), ("accept", "text/plain"), ("X-Empty", ""), ("X-Bytes", "a=\xe9"))
        async with serving(reply()) as server, speaking(headers={"From": "a@b.test"}) as module:
            answers = [replied(await module.fetch(to(server, headers=headers))) for headers in ((), extra, (), extra)]
            assert server.requests == [answer.request_head for answer in answers]
            assert (
                server.requests[0]
                == server.requests[2]
                == (
                    f"GET / HTTP/1.1\r\nHost: example.test:{server.port}\r\nUser-Agent: {AGENT}\r\n"
                    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
                    "Accept-Language: en,*;q=0.5\r\nAccept-Encoding: gzip, br\r\nFrom: a@b.test\r\n\r\n"
                ).encode()
            )
            assert b"\r\naccept: text/plain\r\n" in server.requests[1]
            assert b"\r\nAccept: " not in server.requests[1]
            assert b"\r\nX-Empty:\r\nX-Bytes: a=\xe9\r\n" in server.requests[1]

    run(main())


@pytest.mark.parametrize(
    ("codings", "offered"), [((), "identity"), (("zstd", "br"), "zstd, br"), (("deflate",), "deflate")]
)
def test_content_codings_are_offered_as_configured(run: Run, codings: tuple[str, ...], offered: str) -> None:
    async def main() -> None:
        async with serving(reply()) as server, speaking(content_codings=codings) as module:
            replied(await module.fetch(to(server)))
            assert f"\r\nAccept-Encoding: {offered}\r\n".encode() in server.requests[0]

    run(main())


def test_credentials_in_a_link_are_not_sent(run: Run) -> None:
    async def main() -> None:
        async with serving(reply()) as server, speaking() as module:
            url = f"http://user:secret@example.test:{server.port}/x"
            answer = replied(await module.fetch(Request(url=url, ip="127.0.0.1", port=server.port)))
            assert server.requests == [answer.request_head]
            assert b"uthorization" not in server.requests[0]
            assert b"secret" not in server.requests[0]

    run(main())


@pytest.mark.parametrize(
    "url",
    [
        "http://a$b.test/",
        "http://a.test/\xfc",
        "http://a.test/a b",
        "http://a.test/\n",
        "ftp://a.test/",
        "rubbish",
        "http://",
    ],
)
def test_a_url_that_cannot_be_sent_is_unsupported(run: Run, url: str) -> None:
    async def main() -> None:
        async with serving(reply()) as server, speaking() as module:
            failure = failed(await module.fetch(Request(url=url, ip="127.0.0.1", port=server.port)))
            assert failure.outcome in ("unsupported", "protocol_error")
            assert not failure.retry
            assert not failure.host_level
            assert server.connections == 0
            replied(await module.fetch(to(server)))

    run(main())


def test_one_connection_serves_many_requests(run: Run) -> None:
    async def main() -> None:
        async with serving(reply()) as server, speaking() as module:
            for _ in range(5):
                replied(await module.fetch(to(server)))
            assert len(server.requests) == 5
            assert server.connections == 1

    run(main())


@pytest.mark.parametrize("through_proxy", [False, True])
def test_no_request_waits_for_a_connection(run: Run, *, through_proxy: bool) -> None:
    """A request that is permitted goes out at once: its permission would be old when a connection is free."""

    async def main() -> None:
        requests = asyncio.Barrier(6)

        async def answer(_server: Server, writer: asyncio.StreamWriter, head: bytes) -> bool:
            if head.startswith(b"CONNECT"):
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                return True
            await requests.wait()
            writer.write(reply())
            return True

        async with serving(answer) as server:
            proxy = f"http://127.0.0.1:{server.port}" if through_proxy else ""
            async with speaking(connections_per_host=2, proxy=proxy) as module:
                for result in await asyncio.gather(*(module.fetch(to(server)) for _ in range(requests.parties))):
                    replied(result)

    run(main())


def test_connections_kept_to_one_address_are_bounded(run: Run) -> None:
    """Many names at one address are many connections; no more than the configured number are kept."""

    async def main() -> None:
        writers: list[asyncio.StreamWriter] = []

        async def answer(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
            writers.append(writer)
            writer.write(reply())
            return True

        async with serving(answer) as server, speaking(connections_per_host=2) as module:
            for k in range(6):
                named = structs.replace(to(server), url=f"http://h{k}.example:{server.port}/")
                replied(await module.fetch(named))
            assert server.connections == 6
            async with asyncio.timeout(60):
                await asyncio.gather(*(writer.wait_closed() for writer in writers[:4]))
            assert not any(writer.is_closing() for writer in writers[4:])

    run(main())


def test_the_environments_proxy_is_ignored(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving(reply(b"proxy")) as proxy, serving(reply(b"site")) as server:
            for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            async with speaking() as module:
                assert replied(await module.fetch(to(server))).body == b"site"
            assert proxy.connections == 0

    run(main())


def test_a_configured_proxy_is_used(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setenv("no_proxy", "*")
        async with (
            serving(reply(b"proxy")) as proxy,
            speaking(proxy=f"http://127.0.0.1:{proxy.port}", proxy_resolves=True) as module,
        ):
            request = Request(url="http://example.test/x", ip="127.0.0.9", port=80)
            assert replied(await module.fetch(request)).body == b"proxy"
            assert proxy.requests[0].startswith(b"GET http://example.test/x HTTP/1.1\r\n")

    run(main())


@pytest.mark.parametrize("resolves", [True, False])
def test_a_proxy_that_does_not_let_us_in_is_no_answer_of_the_site(run: Run, *, resolves: bool) -> None:
    refusal = reply(b"<html>", b'Proxy-Authenticate: Basic realm="proxy"', status=b"407 Proxy Authentication Required")

    async def main() -> None:
        async with (
            serving(refusal) as proxy,
            speaking(proxy=f"http://u:wrong@127.0.0.1:{proxy.port}", proxy_resolves=resolves) as module,
        ):
            failure = failed(await module.fetch(Request(url="http://example.test/robots.txt", ip="127.0.0.9", port=80)))
            assert (failure.outcome, failure.retry, failure.host_level) == ("connect_error", True, True)
            assert failure.error == "the proxy did not accept the user name and password (HTTP 407)"
            assert failure.by_proxy

    run(main())


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "socks5h://u:secret@127.0.0.1:1/", "http://proxy.invalid:1"])
def test_a_proxy_that_cannot_be_reached_is_to_blame(run: Run, proxy: str) -> None:
    async def main() -> None:
        async with speaking(proxy=proxy) as module:
            failure = failed(await module.fetch(Request(url="http://example.test/", ip="127.0.0.9", port=80)))
            assert (failure.outcome, failure.by_proxy) == ("connect_error", True)
            expected = ("Failed to connect to the proxy 127.0.0.1:1 after", "Could not resolve proxy: proxy.invalid")
            assert failure.error.startswith(expected)

    run(main())


@pytest.mark.parametrize(
    ("proxy", "answers", "by_proxy", "error"),
    [
        ("socks5://", [b"\5\xff"], True, "the proxy accepts none of the ways to log in that were offered; it may "),
        ("socks5://a:wrong@", [b"\5\2", b"\1\1"], True, "the proxy did not accept the user name and password (SOCKS5)"),
        ("socks5://", [b"HTTP/1.1 400 Bad Request"], True, "the proxy does not speak SOCKS5 on this port"),
        ("socks5://", [b""], True, ""),
        ("socks5://", [b"\5\0", b"\5\4\0\1\0\0\0\0\0\0"], False, "the proxy does not reach 127.0.0.9: host un"),
        ("socks5://", [b"\5\0", b"\5\2\0\1\0\0\0\0\0\0"], False, "the proxy does not reach 127.0.0.9: its rules"),
    ],
    ids=["not let in", "wrong password", "speaks HTTP", "closed", "host unreachable", "forbidden"],
)  # fmt: skip
def test_a_socks_proxy_that_does_not_reach_the_host_is_not_to_blame(
    run: Run, proxy: str, answers: list[bytes], error: str, *, by_proxy: bool
) -> None:
    async def socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.read(300)
            writer.write(answer)
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(socks, "127.0.0.1")
        port = server.sockets[0].getsockname()[1]
        async with server, speaking(proxy=f"{proxy}127.0.0.1:{port}") as module:
            failure = failed(await module.fetch(Request(url="http://example.test/", ip="127.0.0.9", port=80)))
            assert (failure.outcome, failure.by_proxy) == ("connect_error", by_proxy)
            assert failure.error.startswith(error)

    run(main())


@pytest.mark.parametrize(
    ("scheme", "answer", "by_proxy"),
    [
        ("https", None, True),
        ("socks5", None, True),
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", True),
        ("https", b"", True),
        ("socks5", b"\5\0", False),
        ("http", None, False),
    ],
    ids=["hangs in TLS", "no greeting", "no TLS", "closes", "looks for the host", "perhaps looks for the host"],
)
def test_a_proxy_that_accepts_and_does_not_greet_is_to_blame(
    run: Run, scheme: str, answer: bytes | None, *, by_proxy: bool
) -> None:
    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer is None:
            await reader.read()
        await reader.read(2_000)
        writer.write(answer or b"")
        if answer == b"\5\0":
            await reader.read()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(proxy, "127.0.0.1")
        at = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, speaking(proxy=at, connect_s_max=0.3) as module:
            failure = failed(await module.fetch(Request(url="https://example.test/", ip="127.0.0.9", port=443)))
            assert failure.by_proxy == by_proxy, failure.error
            assert "server" not in failure.error

    run(main())


def test_a_proxy_that_is_silent_for_all_hosts_that_answered_is_to_blame(run: Run) -> None:
    """One that looks for dead hosts is as silent for them, but not for others."""

    async def main() -> None:
        is_mute = False

        async def answer(_server: Server, writer: asyncio.StreamWriter, head: bytes) -> bool:
            if is_mute or b"dead" in head:
                await asyncio.sleep(60)
            writer.write(reply())
            return True

        async def blamed(*names: str) -> list[bool]:
            requests = [Request(url=f"http://{name}.test/", ip="127.0.0.9", port=80) for name in names]
            results = await asyncio.gather(*(module.fetch(request) for request in requests))
            return [isinstance(result, Failure) and result.by_proxy for result in results]

        async with serving(answer) as proxy:
            at = f"http://u:secret@127.0.0.1:{proxy.port}"
            async with speaking(proxy=at, proxy_resolves=True, request_s_max=2.0) as module:
                assert not any(await blamed(*(f"dead{number}" for number in range(8))))
                assert not any(await blamed("a", "b", "c", "d", "e"))
                is_mute = True
                assert not any(await blamed("a", "b", "c", "d"))
                assert await blamed("dead1") == [False]
                assert await blamed("e") == [True]
                assert await blamed("f") == [True]
                failure = failed(await module.fetch(Request(url="http://a.test/", ip="127.0.0.9", port=80)))
                assert failure.error == f"the proxy does not answer any more (127.0.0.1:{proxy.port}), for no host"
                is_mute = False
                assert await blamed("e") == [False]
                assert await blamed("dead2") == [False]

    run(main())


def test_a_proxy_that_closes_kept_connections_without_a_word_gets_new_ones(run: Run) -> None:
    async def main() -> None:
        async def answer(server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
            if len(server.requests) - server.connections > closed:
                writer.close()  # The second request on a connection.
                return False
            writer.write(reply())
            return True

        closed = 0
        async with serving(answer) as proxy:
            at = f"http://127.0.0.1:{proxy.port}"
            async with speaking(proxy=at, proxy_resolves=True) as module:
                for number in range(3):
                    replied(await module.fetch(Request(url="http://a.test/", ip="127.0.0.9", port=80)))
                    url = f"http://b.test/{number}"  # Another one each time: a repetition gets a new connection.
                    failure = failed(await module.fetch(Request(url=url, ip="127.0.0.9", port=80)))
                    assert failure.error == "the kept connection closed without an answer"
                    closed = number + 1
                for _ in range(4):
                    replied(await module.fetch(Request(url="http://c.test/", ip="127.0.0.9", port=80)))
                assert proxy.connections == 7

    run(main())


def test_a_proxy_that_refuses_one_tunnel_is_not_to_blame(run: Run) -> None:
    async def main() -> None:
        async with (
            serving(reply(status=b"502 Bad Gateway")) as proxy,
            speaking(proxy=f"http://127.0.0.1:{proxy.port}") as module,
        ):
            failure = failed(await module.fetch(Request(url="http://example.test/", ip="127.0.0.9", port=80)))
            assert (failure.outcome, failure.by_proxy) == ("connect_error", False)

    run(main())


def test_a_site_itself_may_answer_407(run: Run) -> None:
    async def main() -> None:
        async with serving(reply(status=b"407 Odd")) as server, speaking() as module:
            assert replied(await module.fetch(to(server))).status == 407

    run(main())


def test_a_connection_astray_is_ended_before_anything_is_sent() -> None:
    transfer = Transfer(FetchOptions())
    transfer.aim(Request(url="http://example.test/", ip="127.0.0.1", port=80), [], 1)
    assert transfer._before_request("127.0.0.2", "127.0.0.1", 80, 1) == 1
    assert transfer.stopped == "connected to 127.0.0.2"
    transfer.forget()
    transfer.aim(Request(url="http://example.test/", ip="0:0:0:0:0:0:0:1", port=80), [], 1)
    assert transfer._before_request("::1", "::1", 80, 1) == 0
    transfer.close()


def test_bytes_of_a_kept_connection_belong_to_the_transfer_that_uses_it() -> None:
    """libcurl gives a connection to the next transfer before it says that the last one has ended."""
    ends = ("127.0.0.1", "127.0.0.1", 80, 1)
    driver = Driver(FetchOptions())
    first = Transfer(FetchOptions())
    second = Transfer(FetchOptions())
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as server,
    ):
        driver.note_connection(first, client.fileno())
        driver.note_request(first, ends)
        server.sendall(bytes(1_000))
        driver.note_request(second, ends)
        server.sendall(bytes(500))
        for transfer in (first, second):
            transfer.count()
            transfer.end()
    assert (first.wire_bytes, second.wire_bytes) == (1_000, 500)
    first.close()
    second.close()


def test_another_address_of_the_same_name_gets_its_own_connection(run: Run) -> None:
    async def main() -> None:
        async with serving(reply(b"one")) as one, speaking() as module:
            assert replied(await module.fetch(to(one))).body == b"one"
            listener = await asyncio.start_server(Server(always(reply(b"two"))).serve, "127.0.0.2", one.port)
            async with listener:
                request = Request(url=f"http://example.test:{one.port}/", ip="127.0.0.2", port=one.port)
                answer = replied(await module.fetch(request))
                assert (answer.body, answer.ip) == (b"two", "127.0.0.2")
                assert replied(await module.fetch(to(one))).body == b"one"

    run(main())


def test_ipv6(run: Run) -> None:
    async def main() -> None:
        async with serving(reply(), host="::1") as server, speaking() as module:
            for host in ("example.test", "[::1]"):
                request = Request(url=f"http://{host}:{server.port}/", ip="::1", port=server.port)
                answer = replied(await module.fetch(request))
                assert answer.ip == "::1"
                assert server.requests[-1] == answer.request_head

    run(main())


BODY = bytes(range(256)) * 1000


def chunked(body: bytes, size: int = 777) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x;ext=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\nTrailer-Field: x\r\n\r\n"


@pytest.mark.parametrize("bound", [1, 100, 255_999, 256_000, 256_001])
@pytest.mark.parametrize("framing", ["length", "chunks", "close"])
@pytest.mark.parametrize("where", ["options", "request"])
def test_a_body_is_cut_exactly_at_its_bound(run: Run, bound: int, framing: str, where: str) -> None:
    raw = {
        "length": reply(BODY),
        "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(BODY),
        "close": b"HTTP/1.1 200 OK\r\n\r\n" + BODY,
    }[framing]

    async def main() -> None:
        options: dict[str, object] = {"body_bytes_max": bound} if where == "options" else {"body_bytes_max": 7}
        more: dict[str, object] = {} if where == "options" else {"body_bytes_max": bound}
        async with serving(always(raw, stay=framing != "close")) as server, speaking(**options) as module:
            answer = replied(await module.fetch(to(server, **more)))
            assert answer.body == BODY[:bound]
            assert answer.truncated == ("length" if bound < len(BODY) else "")
            assert answer.status == 200
            assert answer.wire_bytes > bound
            # The handle that was stopped serves the next request as any other.
            assert replied(await module.fetch(to(server, **more))).body == BODY[:bound]

    run(main())


def test_an_endless_body_is_cut(run: Run) -> None:
    async def endless(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            await writer.drain()
        return False

    async def main() -> None:
        async with serving(endless) as server, speaking(body_bytes_max=1_000_000) as module:
            answer = replied(await module.fetch(to(server)))
            assert (len(answer.body), answer.truncated) == (1_000_000, "length")
            await server.hung_up.wait()

    run(main())


def test_content_codings_are_left_alone(run: Run) -> None:
    async def main() -> None:
        body = b"\x1f\x8b not gzip at all"
        async with serving(reply(body, b"Content-Encoding: gzip")) as server, speaking() as module:
            assert replied(await module.fetch(to(server))).body == body

    run(main())


def test_a_body_of_a_type_that_is_not_wanted_stays_with_the_server(run: Run) -> None:
    """An endless film: the transfer ends after the headers, and the server sees us go."""

    async def film(server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4; x=y\r\n\r\n")
        while not writer.transport.is_closing():
            writer.write(b"\0" * 65_536)
            await writer.drain()
        return False

    async def main() -> None:
        async with serving(film) as server, speaking(body_bytes_max=1 << 30) as module:
            answer = replied(await module.fetch(to(server, media_types=("text/html", "image/*"))))
            assert (answer.status, answer.media_type, answer.truncated) == (200, "video/mp4", "unspecified")
            assert answer.body == b""
            assert ("Content-Type", "video/mp4; x=y") in answer.headers
            async with asyncio.timeout(60):
                await server.hung_up.wait()

    run(main())


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Type: text/html; charset=x", b"200 OK"),
        (b"Content-Type: TEXT/HTML", b"200 OK"),
        (b"Content-Type: image/png", b"200 OK"),
        (b"X: y", b"200 OK"),
        (b"Content-Type: video/mp4", b"404 Not Found"),
        (b"Content-Type: video/mp4", b"301 Moved Permanently"),
    ],
)
def test_a_body_is_read_where_it_is_wanted_or_no_document(run: Run, head: bytes, status: bytes) -> None:
    async def main() -> None:
        async with serving(reply(b"hello", head, status=status)) as server, speaking() as module:
            for _ in range(2):
                answer = replied(await module.fetch(to(server, media_types=("text/html", "image/*"))))
                assert (answer.body, answer.truncated) == (b"hello", "")
            assert server.connections == 1
            unwanted = replied(await module.fetch(to(server, media_types=("audio/*",))))
            again = replied(await module.fetch(to(server)))
            assert again.body == b"hello"
            assert (unwanted.truncated == "") == (b"200" not in status or head == b"X: y")

    run(main())


def test_headers_are_bounded(run: Run) -> None:
    async def main() -> None:
        fits = reply(b"x", *(b"X-%d: %s" % (i, b"y" * 80) for i in range(10)))
        long = reply(b"x", *(b"X-%d: %s" % (i, b"y" * 80) for i in range(100)))
        line = reply(b"x", b"X: " + b"y" * 200_000)
        async with speaking(head_bytes_max=1000) as module:
            async with serving(fits) as server:
                replied(await module.fetch(to(server)))
            for raw in (long, line):
                async with serving(raw) as server:
                    failure = failed(await module.fetch(to(server)))
                    assert failure.outcome == "too_large"
                    assert not failure.retry

    run(main())


def test_heads_that_browsers_accept_are_accepted(run: Run) -> None:
    async def main() -> None:
        cookies = reply(b"x", *(b"Set-Cookie: c%d=%s" % (i, b"y" * 1_000) for i in range(220)))
        policy = reply(b"x", b"Content-Security-Policy: " + b"https://a.example " * 5_000)
        async with speaking() as module:
            for raw in (cookies, policy):
                async with serving(raw) as server:
                    assert replied(await module.fetch(to(server))).body == b"x"

    run(main())


CUT_HEADS = (
    b"HTTP/1.1 200 OK\r\n ", b"HTTP/1.1 200 OK\r\nX: a\r\n ", b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\t",
    b"HTTP/1.1 200 OK\r\nX: a\r\n", b"HTTP/1.1 200 OK\r\nX: abc", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n ",
)  # fmt: skip


def breaking_off(begun: bytes, *, closes: bool) -> Answer:
    """Begin a head, and then close the connection, or send nothing more."""

    async def answer(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(begun)
        await writer.drain()
        if not closes:
            await asyncio.Event().wait()
        return False

    return answer


@pytest.mark.parametrize("begun", CUT_HEADS)
def test_a_head_that_breaks_off_is_no_page_and_leaves_nothing_to_the_next_reply(run: Run, begun: bytes) -> None:
    """libcurl 8.23 keeps the beginning of a line that may be folded for the handle's next reply, from any host."""

    async def main() -> None:
        async with speaking(request_s_max=1) as module, serving(reply(b"hello", b"X: own")) as other:
            for closes, outcome in ((True, "protocol_error"), (False, "timeout")):
                async with serving(breaking_off(begun, closes=closes)) as server:
                    failure = failed(await module.fetch(to(server)))
                    assert (failure.outcome, failure.retry) == (outcome, True)
                found = replied(await module.fetch(to(other)))
                assert (found.status, found.body, dict(found.headers)["X"]) == (200, b"hello", "own")

    run(main())


def test_a_redirect_whose_head_breaks_off_counts(run: Run) -> None:
    async def main() -> None:
        head = b"HTTP/1.1 302 Found\r\nLocation: /next\r\n"
        async with speaking() as module, serving(breaking_off(head, closes=True)) as server:
            found = replied(await module.fetch(to(server)))
            assert (found.status, dict(found.headers)["Location"]) == (302, "/next")

    run(main())


def test_endless_headers_are_ended(run: Run) -> None:
    async def endless(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while not writer.is_closing():
            writer.write(b"X-Again: and again\r\n" * 100)
            await writer.drain()
        return False

    async def main() -> None:
        async with serving(endless) as server, speaking() as module:
            assert failed(await module.fetch(to(server))).outcome == "too_large"
            await server.hung_up.wait()

    run(main())


def test_a_server_that_never_answers(run: Run) -> None:
    async def main() -> None:
        async with serving(never) as server, speaking(request_s_max=0.2) as module:
            failure = failed(await module.fetch(to(server)))
            assert (failure.outcome, failure.retry, failure.host_level) == ("timeout", True, True)
            assert failure.fetch_s >= 0.2
            assert failure.ip == "127.0.0.1"

    run(main())


def test_should_libcurl_lose_count_of_time_we_have_not(run: Run) -> None:
    async def main() -> None:
        async with serving(never) as mute, serving(reply()) as server, speaking() as module:
            module._transfers._deadline_s = 0.1
            failure = failed(await module.fetch(to(mute)))
            assert (failure.outcome, failure.host_level) == ("internal_error", False)
            await mute.hung_up.wait()
            module._transfers._deadline_s = 60
            replied(await module.fetch(to(server)))

    run(main())


def test_time_that_runs_out_in_the_body_cuts_it(run: Run) -> None:
    async def stuck(server: Server, writer: asyncio.StreamWriter, head: bytes) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        return await never(server, writer, head)

    async def main() -> None:
        async with serving(stuck) as server, speaking(request_s_max=1.0) as module:
            answer = replied(await module.fetch(to(server)))
            assert (answer.body, answer.truncated, answer.status) == (b"half", "time", 200)

    run(main())


@pytest.mark.parametrize(
    ("sent", "truncated"),
    [
        ("Content-Range: bytes 0-4/5", ""),
        ("X-Range: none", ""),
        ("Content-Type: multipart/byteranges; boundary=b", "unspecified"),
        ("Content-Range: bytes 0-4/9", "unspecified"),
        ("Content-Range: bytes 4-8/9", "unspecified"),
        ("Content-Range: bytes 0-4/*", "unspecified"),
        ("Content-Range: nonsense", "unspecified"),
    ],
)
def test_a_part_that_was_not_asked_for_is_not_taken_for_the_whole(run: Run, sent: str, truncated: str) -> None:
    async def main() -> None:
        head = f"HTTP/1.1 206 Partial Content\r\n{sent}\r\nContent-Length: 5\r\n\r\n"
        async with serving(always(head.encode() + b"whole", stay=False)) as server, speaking() as module:
            answer = replied(await module.fetch(to(server)))
            assert (answer.body, answer.truncated) == (b"whole", truncated)

    run(main())


@pytest.mark.parametrize("lines", [b"Transfer-Encoding: identity\r\nContent-Length: 5", b"Content-Length : 5"])
def test_a_length_counts_that_libcurl_does_not_read(run: Run, lines: bytes) -> None:
    """A coding that is none, and a space before the colon, which browsers ignore (Chromium's HeadersIterator)."""
    head = b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n\r\n"

    async def main() -> None:
        async with (
            serving(always(head + b"whole", stay=True)) as server,
            speaking(request_s_max=600.0, low_speed_s=600) as module,
        ):
            answer = replied(await module.fetch(to(server)))
            assert (answer.body, answer.truncated) == (b"whole", "")

    run(main())


def test_time_that_runs_out_in_the_head_is_a_failure(run: Run) -> None:
    async def stuck(server: Server, writer: asyncio.StreamWriter, head: bytes) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-")
        await writer.drain()
        return await never(server, writer, head)

    async def main() -> None:
        async with serving(stuck) as server, speaking(request_s_max=0.2) as module:
            assert failed(await module.fetch(to(server))).outcome == "timeout"

    run(main())


async def _drip(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x")
        await asyncio.sleep(0.2)
    return False


def test_a_server_that_drips_is_ended_by_low_speed(run: Run) -> None:
    async def main() -> None:
        async with serving(_drip) as server, speaking(low_speed_bytes_s=100, low_speed_s=1) as module:
            answer = replied(await module.fetch(to(server)))
            assert answer.truncated == "time"
            assert answer.body.strip(b"x") == b""
            await server.hung_up.wait()

    run(main())


def test_a_server_that_says_nothing_gave_no_answer(run: Run) -> None:
    async def main() -> None:
        async with serving(never) as server, speaking(low_speed_s=1) as module:
            failure = failed(await module.fetch(to(server)))
            assert (failure.outcome, failure.error) == ("timeout", "no answer within 1 s, by fetch.low_speed_s")

    run(main())


async def _drip_slowly(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not writer.is_closing():
        writer.write(b"x")
        await asyncio.sleep(0.2)
    return False


@pytest.mark.promise(
    "Order and fairness", "Hosts that answer slowly or never hold half of the requests at most for long."
)
@pytest.mark.parametrize("kind", ["head", "body", "silent", "handshake"])
def test_slow_servers_keep_half_of_the_requests(run: Run, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The oldest are ended; they can be sent again."""
    monkeypatch.setattr("gossamer.stages.fetch.driver.LAG_S", 0.5)

    async def main() -> None:
        answer = {"head": _drip_slowly, "body": _drip, "silent": never, "handshake": never}[kind]
        async with serving(answer) as server, speaking() as module:
            request = to(server, concurrency=6)
            if kind == "handshake":
                request = structs.replace(request, url=request.url.replace("http:", "https:"))
            slow = {asyncio.create_task(module.fetch(request)) for _ in range(6)}
            ended = 0
            while ended < 3:  # Those that begin late, on a busy machine, are not slow at the same look.
                done, slow = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
                for failure in map(asyncio.Task.result, done):
                    assert isinstance(failure, Failure)
                    assert (failure.outcome, failure.retry, failure.host_level) == ("timeout", True, True)
                    assert failure.error.startswith("less than 1000 bytes a second for ")
                ended += len(done)
                if ended < 3:
                    slow |= {asyncio.create_task(module.fetch(request)) for _ in done}
            assert len(slow) >= 3
            await asyncio.sleep(0.7)
            assert not any(task.done() for task in slow)
            for task in slow:
                task.cancel()

    run(main())


def test_slow_servers_of_several_protocols_keep_half_of_the_requests(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each protocol alone has fewer than that."""
    monkeypatch.setattr("gossamer.stages.fetch.driver.LAG_S", 0.5)
    options, clock = FetchOptions(), WallClock()
    shared = BodyMemory(options)

    async def main() -> None:
        modules = {
            "http": HttpModule(options, AGENT, clock, shared),
            "gopher": GopherModule(options, AGENT, clock, shared),
            "ftp": FtpModule(options, AGENT, clock, shared),
        }
        async with serving(never) as server:
            request = to(server, concurrency=6)
            slow = [
                asyncio.create_task(module.fetch(structs.replace(request, url=request.url.replace("http", scheme))))
                for scheme, module in modules.items()
                for _ in range(2)
            ]
            await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0.7)
            ended = [failed(task.result()) for task in slow if task.done()]
            assert 1 <= len(ended) <= 3
            assert {failure.outcome for failure in ended} == {"timeout"}
            for task in slow:
                task.cancel()
            for module in modules.values():
                await module.close()

    run(main())


@pytest.mark.parametrize(("requests", "concurrency"), [(2, 2), (4, 8), (4, 0)], ids=["few", "room", "last attempts"])
def test_slow_servers_have_their_time_where_nobody_waits(
    run: Run, monkeypatch: pytest.MonkeyPatch, requests: int, concurrency: int
) -> None:
    monkeypatch.setattr("gossamer.stages.fetch.driver.LAG_S", 0.3)

    async def main() -> None:
        async with serving(never) as mute, speaking() as module:
            slow = [asyncio.create_task(module.fetch(to(mute, concurrency=concurrency))) for _ in range(requests)]
            await asyncio.sleep(1.0)
            assert not any(task.done() for task in slow)
            for task in slow:
                task.cancel()

    run(main())


def test_quick_requests_are_not_ended_for_slow_ones(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.stages.fetch.driver.LAG_S", 0.5)

    async def flows(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 750000\r\n\r\n")
        for _ in range(15):  # Quick enough for a machine that stops for some seconds.
            writer.write(bytes(50_000))
            await asyncio.sleep(0.1)
        return False

    async def main() -> None:
        async with serving(never) as mute, serving(flows) as quick, speaking() as module:
            first = asyncio.create_task(module.fetch(to(quick, concurrency=4)))
            slow = [asyncio.create_task(module.fetch(to(mute, concurrency=4))) for _ in range(3)]
            assert replied(await first).body == bytes(750_000)
            assert [task.done() for task in slow] == [True, False, False]
            for task in slow:
                task.cancel()

    run(main())


def test_slow_servers_hold_up_nobody(run: Run) -> None:
    async def main() -> None:
        async with serving(never) as mute, serving(_drip) as slow, serving(reply()) as quick, speaking() as module:
            stuck = [asyncio.create_task(module.fetch(to(server))) for server in (mute, slow) for _ in range(3)]
            await mute.arrived.wait()
            await slow.arrived.wait()
            answers = await asyncio.gather(*(module.fetch(to(quick)) for _ in range(50)))
            assert [replied(answer).body for answer in answers] == [b"hello"] * 50
            assert not any(task.done() for task in stuck)
            for task in stuck:
                task.cancel()
            await asyncio.wait(stuck)

    run(main())


def test_nobody_listens(run: Run) -> None:
    async def main() -> None:
        with socket.socket() as unheard:
            unheard.bind(("127.0.0.1", 0))
            port = unheard.getsockname()[1]
            async with speaking() as module:
                failure = failed(await module.fetch(Request(url="http://example.test/", ip="127.0.0.1", port=port)))
                assert (failure.outcome, failure.retry, failure.host_level) == ("connect_error", True, True)

    run(main())


@contextmanager
def full() -> Iterator[int]:
    """Listen at a port whose connections are never taken up."""
    with socket.socket() as server, ExitStack() as waiting:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(server.getsockname())
        yield server.getsockname()[1]


def test_a_connection_that_is_never_taken_up(run: Run) -> None:
    async def main() -> None:
        with full() as port:
            async with speaking(connect_s_max=0.2) as module:
                failure = failed(await module.fetch(Request(url="http://example.test/", ip="127.0.0.1", port=port)))
                assert (failure.outcome, failure.retry, failure.host_level) == ("timeout", True, True)
                assert failure.fetch_s < 60  # of the 120 that a request may take

    run(main())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_without_an_answer_is_left_early_if_there_are_others(run: Run, scheme: str) -> None:
    async def main() -> None:
        with full() as port:
            async with speaking(connect_s_max=1.0) as module:
                request = Request(url=f"{scheme}://example.test/", ip="127.0.0.1", port=port, has_others=True)
                failure = failed(await module.fetch(request))
                assert (failure.outcome, failure.retry, failure.host_level) == ("connect_error", True, True)
                assert failure.error == "no connection within 0.25 s"
                assert failure.has_others
                assert failure.fetch_s == 0.25

    run(main())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_only_host_of_a_crawl_is_left_early_if_it_sends_no_byte(run: Run, scheme: str) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            async with speaking(connect_s_max=40.0) as module:
                at = f"{scheme}://example.test/"
                port = mute.getsockname()[1]
                request = Request(at, "127.0.0.1", port, has_others=True, first_byte_share=0.01)
                failure = failed(await module.fetch(request))
                assert (failure.outcome, failure.retry, failure.host_level) == ("timeout", True, True)
                assert failure.error == "no answer within 0.4 s, by fetch.connect_s_max"

    run(main())


def test_a_byte_is_an_answer_of_the_only_host(run: Run) -> None:
    async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        await asyncio.sleep(2.0)
        writer.write(b"Content-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(slow, "127.0.0.1", 0)
        async with server, speaking(connect_s_max=1.0) as module:
            port = server.sockets[0].getsockname()[1]
            request = Request("http://example.test/", "127.0.0.1", port, has_others=True, first_byte_share=1.0)
            assert replied(await module.fetch(request)).body == b"ok"

    run(main())


def test_an_address_with_a_slow_handshake_is_not_left_early(run: Run) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            async with speaking(connect_s_max=1.0) as module:
                port = mute.getsockname()[1]
                request = Request(url="https://example.test/", ip="127.0.0.1", port=port, has_others=True)
                assert failed(await module.fetch(request)).outcome == "timeout"

    run(main())


@pytest.mark.parametrize(
    ("raw", "outcome"),
    [
        (b"", "protocol_error"),
        (b"hello, this is HTTP/0.9\r\n", "protocol_error"),
        (b"HTTP/7.1 200 OK\r\n\r\n", "protocol_error"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "protocol_error"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "protocol_error"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "protocol_error"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -7\r\n\r\nx", "protocol_error"),
        (b"\x16\x03\x01\x02\x00\x01", "protocol_error"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: bogus\r\n\r\nx", "protocol_error"),
    ],
)
def test_servers_that_speak_otherwise(run: Run, raw: bytes, outcome: str) -> None:
    async def main() -> None:
        async with serving(always(raw, stay=False)) as server, speaking() as module:
            assert failed(await module.fetch(to(server))).outcome == outcome
            assert len(server.requests) == 1

    run(main())


@pytest.mark.promise(
    "Files and exports", "A reply that breaks off is archived, marked as truncated and never treated as a page."
)
@pytest.mark.parametrize(
    ("rest", "came", "truncated"),
    [
        (b"Content-Length: 10\r\n\r\nshort", b"short", "disconnect"),
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", b"short", "disconnect"),
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nzz\r\n", b"short", "unspecified"),
        (b"Content-Length: 10\r\n\r\n", None, ""),
        (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", None, ""),
    ],
)
def test_what_came_before_the_server_broke_off_is_there(
    run: Run, rest: bytes, came: bytes | None, truncated: str
) -> None:
    async def main() -> None:
        raw = b"HTTP/1.1 203 Half\r\nContent-Type: text/plain\r\n" + rest
        async with serving(always(raw, stay=False)) as server, speaking() as module:
            failure = failed(await module.fetch(to(server)))
            assert (failure.outcome, failure.retry, failure.host_level) == ("protocol_error", True, False)
            if came is None:
                assert failure.came is None
                return
            half = failure.came
            assert half is not None
            assert (half.body, half.truncated, half.status) == (came, truncated, 203)
            assert (half.media_type, half.wire_bytes > len(came), half.ip) == ("text/plain", True, "127.0.0.1")
            assert half.request_head.startswith(b"GET / HTTP/1.1\r\n")

    run(main())


@pytest.mark.promise(
    "What is fetched",
    "A redirect is followed although its body breaks off, and a page that ends with its end tag is read although its "
    "length is wrong or its last chunk is missing.",
)
@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 100\r\n\r\nshort", b"short"),
        (b"HTTP/1.1 307 Found\r\nLocation: /x\r\nContent-Length: 100\r\n\r\n", b""),
        (b"HTTP/1.1 301 Moved\r\nLocation: /x\r\nTransfer-Encoding: chunked\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n<html>x</html>\r\n", b"<html>x</html>\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n<html>x</html>\r\n", b"<html>x</html>"),
    ],
)
def test_what_shows_its_end_is_whole_although_its_length_says_otherwise(run: Run, raw: bytes, body: bytes) -> None:
    async def main() -> None:
        async with serving(always(raw, stay=False)) as server, speaking() as module:
            answered = replied(await module.fetch(to(server)))
            assert answered.body == body
            assert len(server.requests) == 1

    run(main())


def test_a_redirect_whose_body_never_comes_is_followed(run: Run) -> None:
    async def main() -> None:
        raw = b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 100\r\n\r\n"
        async with serving(always(raw)) as server, speaking(low_speed_s=1) as module:
            answered = replied(await module.fetch(to(server)))
            assert (answered.status, answered.header("location"), answered.truncated) == (302, "/x", "time")

    run(main())


@pytest.mark.parametrize(
    ("head", "status", "reason", "headers"),
    [
        (b"HTTP/1.1 200\r\nA: b\r\n\r\n", 200, "", (("A", "b"),)),
        (b"HTTP/1.1 200 \r\n\r\n", 200, "", ()),
        (b"HTTP/1.0 404 Not  Found \xe9\r\n\r\n", 404, "Not  Found \xe9", ()),
        (b"HTTP/1.1 200 OK\nA: b\nB:c\n\n", 200, "OK", (("A", "b"), ("B", "c"))),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n  c\r\n\td\r\nE:\r\n\r\n", 200, "OK", (("A", "b c d"), ("E", ""))),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\n", 200, "OK", (("A", "b"),)),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 299 Odd\r\n\r\n", 299, "Odd", ()),
        (b"HTTP/1.1 301 Moved\r\nLocation: /other\r\n\r\n", 301, "Moved", (("Location", "/other"),)),
    ],
)
def test_heads_of_all_kinds(
    run: Run, head: bytes, status: int, reason: str, headers: tuple[tuple[str, str], ...]
) -> None:
    async def main() -> None:
        async with serving(always(head + b"body", stay=False)) as server, speaking() as module:
            answer = replied(await module.fetch(to(server)))
            assert (answer.status, answer.reason, answer.headers, answer.body) == (status, reason, headers, b"body")
            assert len(server.requests) == 1

    run(main())


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"])
@pytest.mark.parametrize("after", [b"", b"\x00\x00\x00\x04\x00\x00\x00\x00\x00", reply(b"more")])
def test_switching_protocols_ends_a_reply_at_once(run: Run, before: bytes, after: bytes) -> None:
    """It was not requested, and the server waits for what the other protocol would send."""

    async def main() -> None:
        raw = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
        async with serving(always(before + raw + after)) as server, speaking(low_speed_s=600) as module:
            answer = replied(await module.fetch(to(server)))
            assert (answer.status, answer.body, answer.truncated) == (101, b"", "")
            assert (await module.fetch(to(server))) is not None
            assert server.connections == 2

    run(main())


def test_trailers_are_no_headers(run: Run) -> None:
    async def main() -> None:
        for body in (b"abc", b""):
            raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body)
            async with serving(raw) as server, speaking() as module:
                answer = replied(await module.fetch(to(server)))
                assert (answer.body, answer.headers) == (body, (("Transfer-Encoding", "chunked"),))

    run(main())


XHTML_PAGE = (
    b"<?xml version='1.0'?>\n<!-- a -- b ><?p q?>\n-->"
    b"<!DOCTYPE html PUBLIC '-//WAPFORUM//DTD XHTML Mobile 1.0//EN' 'x.dtd' [<!ENTITY a 'b'>]>\n"
    b"<html xmlns='http://www.w3.org/1999/xhtml'><body><a href='x'>y</a></body></html>"
)


@pytest.mark.parametrize(
    ("headers", "body", "media_type"),
    [
        ((), b"\r\n <!DocType html>x", "text/html"),
        ((b"Content-Type: text",), b"<title>x</title>", "text/html"),
        ((), b"<!-- x --><a href=y>", "text/html"),
        ((), b"<?xml version='1.0'?><urlset/>", "text/xml"),
        ((), b"%PDF-1.4", "application/pdf"),
        ((), b"<articles>", ""),
        ((), b"hello <html>", ""),
        ((), b"", ""),
        ((b"Content-Type: text/plain",), b"<html>", "text/plain"),
        ((b"Content-Type: */*",), b"<html>", "text/html"),
        ((b"Content-Type: unknown/unknown; charset=utf-8",), b"<html>", "text/html"),
        ((b"Content-Type: Application/Unknown",), b"<p>", "text/html"),
        ((b"Content-Type: application/unknown",), b"hello", "application/unknown"),
        ((b"Content-Type: application/xhtml; charset=utf-8",), b"<!doctype html>", "text/html"),
        ((b"Content-Type: httpd/unix-directory",), b"<html>", "text/html"),
        ((b"Content-Type: text/htm",), b"hello", "text/htm"),
        ((b"Content-Type: application/octet-stream",), b"<html>", "application/octet-stream"),
        ((b"Content-Type: application/xml",), XHTML_PAGE, "application/xhtml+xml"),
        ((b"Content-Type: text/xml; charset=utf-8",), b"\xef\xbb\xbf" + XHTML_PAGE, "application/xhtml+xml"),
        ((b"Content-Type: application/vnd.wap.xhtml+xml",), b"<html>", "application/xhtml+xml"),
        ((b"Content-Type: text/xml", b"Content-Encoding: gzip"), gzip.compress(XHTML_PAGE), "application/xhtml+xml"),
        ((), XHTML_PAGE, "application/xhtml+xml"),
        ((b"Content-Type: text/xml",), b"<urlset><html>", "text/xml"),
        ((b"Content-Type: text/xml",), b"<!-- <html> --><rss>", "text/xml"),
        ((b"Content-Type: text/xml",), b"<html5/>", "text/xml"),
        ((b"Content-Type: image/svg+xml",), b"<html>", "image/svg+xml"),
        ((b"Content-Encoding: gzip",), gzip.compress(b"<html>" + b" <p>" * 50_000, mtime=0), "text/html"),
        ((b"Content-Encoding: gzip, br",), brotli.compress(gzip.compress(b"<html>", mtime=0)), "text/html"),
        ((b"Content-Encoding: gzip",), b"<html>", "text/html"),
        ((b"Content-Encoding: odd",), b"<html>", "text/html"),
    ],
)
def test_a_body_without_a_type_is_what_it_begins_as(
    run: Run, headers: tuple[bytes, ...], body: bytes, media_type: str
) -> None:
    async def main() -> None:
        async with serving(reply(body, *headers)) as server, speaking() as module:
            assert replied(await module.fetch(to(server))).media_type == media_type

    run(main())


TYPES = "[Content_Types].xml"
OFFICE = "application/vnd.openxmlformats-officedocument."
OPEN_TEXT = "application/vnd.oasis.opendocument.text"


def packed(*names: str, text: str = "x") -> bytes:
    """Return an archive with files of these names."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, text)
    return file.getvalue()


@pytest.mark.parametrize(
    ("sent", "body", "media_type"),
    [
        ("application/octet-stream", b"%PDF-1.4", "application/pdf"),
        ("binary/octet-stream", b"%PDF-1.4", "application/pdf"),
        ("application/x-pdf", b"%PDF-1.4", "application/pdf"),
        ("application/x-pdf", b"PDF", "application/x-pdf"),
        ("text/plain", b"%PDF-1.4", "text/plain"),
        ("application/msword", b"{\\rtf1 x}", "application/rtf"),
        ("application/msword", b"\xd0\xcf\x11\xe0", "application/msword"),
        ("application/zip", packed(TYPES, "word/document.xml"), OFFICE + "wordprocessingml.document"),
        ("application/force-download", packed(TYPES, "xl/workbook.xml"), OFFICE + "spreadsheetml.sheet"),
        ("", packed("_rels/.rels", TYPES, "ppt/presentation.xml"), OFFICE + "presentationml.presentation"),
        ("application/zip", packed("word/document.xml"), "application/zip"),
        ("application/zip", packed(TYPES, "words/x", "a/word/x"), "application/zip"),
        ("application/zip", packed("mimetype", text="application/epub+zip"), "application/epub+zip"),
        ("application/octet-stream", packed("mimetype", text=OPEN_TEXT), OPEN_TEXT),
        ("application/zip", packed("mimetype", text="text/html"), "application/zip"),
    ],
)
def test_a_document_whose_type_may_be_any_files_is_what_it_begins_as(
    run: Run, sent: str, body: bytes, media_type: str
) -> None:
    async def main() -> None:
        for content, headers in (body, ()), (gzip.compress(body), (b"Content-Encoding: gzip",)):
            sent_type = (b"Content-Type: " + sent.encode(),) if sent else ()
            async with serving(reply(content, *sent_type, *headers)) as server, speaking() as module:
                assert replied(await module.fetch(to(server))).media_type == media_type

    run(main())


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj<</Length 9>>stream\nx\x01\0\x02"


@pytest.mark.parametrize(
    ("sent", "body", "media_type"),
    [
        ("text/plain", PNG, "image/png"),
        ("text/html", PNG, "image/png"),
        ("text/html; charset=utf-8", b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        ("text/html", PDF, "application/pdf"),
        ("text/plain", PDF, "application/pdf"),
        ("text/html", packed(TYPES, "word/document.xml"), OFFICE + "wordprocessingml.document"),
        ("text/plain", packed("a.txt"), "application/zip"),
        ("text/plain", b"RIFF\0\0\0\0WAVE", "application/octet-stream"),
        ("text/plain", b"\0\0\0\x20ftypisom", "application/octet-stream"),
        ("text/plain", b"MZ is the signature of a program", "text/plain"),
        ("text/html", b"<p>\0\0\0a", "text/html"),
        ("text/html", b"GIF89a is a format", "text/html"),
        ("text/plain", b"a\x08a of nroff\0", "text/plain"),
        ("text/plain", "plain words".encode("utf-16-le"), "text/plain"),
        ("text/plain", "\ufeff\u0100\u0200 words".encode("utf-16"), "text/plain"),
        ("text/csv", PNG, "text/csv"),
    ],
)
def test_a_file_that_is_no_text_is_not_read_as_one(run: Run, sent: str, body: bytes, media_type: str) -> None:
    async def main() -> None:
        async with serving(reply(body, b"Content-Type: " + sent.encode())) as server, speaking() as module:
            assert replied(await module.fetch(to(server))).media_type == media_type
        if sent == "text/plain":
            coded = reply(gzip.compress(body), b"Content-Type: text/plain", b"Content-Encoding: gzip")
            async with serving(coded) as server, speaking() as module:
                assert replied(await module.fetch(to(server))).media_type == media_type

    run(main())


def test_a_stylesheet_without_a_type_is_known_by_its_name(run: Run) -> None:
    async def read_as(path: str, body: bytes, *headers: bytes) -> str:
        async with serving(reply(body, *headers)) as server, speaking() as module:
            return replied(await module.fetch(to(server, path))).media_type

    async def main() -> None:
        assert await read_as("/a.css?v=1", b"a{}") == "text/css"
        assert await read_as("/a.css", b"<!doctype html>") == "text/html"
        assert await read_as("/a.css", b"a{}", b"Content-Type: text/plain") == "text/plain"
        assert await read_as("/css?a.css", b"a{}") == ""

    run(main())


def test_cookies_are_not_kept(run: Run) -> None:
    async def main() -> None:
        async with serving(reply(b"", b"Set-Cookie: a=b; Path=/")) as server, speaking() as module:
            for _ in range(2):
                replied(await module.fetch(to(server)))
            assert server.requests[0] == server.requests[1]

    run(main())


def test_one_permitted_request_is_never_two(run: Run) -> None:
    """libcurl would ask again on a fresh connection, at once and unseen, when a kept one closes without an answer."""

    async def hang_up_on_the_second(server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        if len(server.requests) == 2:
            return False
        writer.write(reply())
        return True

    async def main() -> None:
        async with serving(hang_up_on_the_second) as server, speaking() as module:
            replied(await module.fetch(to(server)))
            failure = failed(await module.fetch(to(server)))
            assert (failure.outcome, failure.retry, failure.host_level) == ("connect_error", True, False)
            assert len(server.requests) == 2
            replied(await module.fetch(to(server)))
            assert len(server.requests) == 3
            assert server.connections == 2, "connecting is contact too"

    run(main())


def test_another_attempt_does_not_fail_for_further_kept_connections(run: Run) -> None:
    async def main() -> None:
        served: set[asyncio.StreamWriter] = set()
        both = asyncio.Event()

        async def once_a_connection(server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
            if writer in served:
                return False
            served.add(writer)
            if len(server.requests) == 6:
                both.set()
            await both.wait()
            writer.write(reply())
            return True

        async with serving(once_a_connection) as server, speaking() as module:
            for answer in await asyncio.gather(*(module.fetch(to(server)) for _ in range(6))):
                replied(answer)
            assert failed(await module.fetch(to(server))).outcome == "connect_error"
            replied(await module.fetch(to(server, fresh=True)))
            assert server.connections == 7

    run(main())


@pytest.mark.parametrize(("helps", "ends", "repeated"), [(True, True, 1), (False, True, 1), (False, False, 0)])
def test_a_bad_request_over_a_kept_connection_is_sent_again_over_a_new_one(
    run: Run, helps: bool, ends: bool, repeated: int
) -> None:
    """Where that helps, each request of the host gets a new connection; where it does not, no other is repeated. One
    that leaves the connection open says that the page is bad.
    """

    async def main() -> None:
        served: set[asyncio.StreamWriter] = set()

        async def one_a_connection(server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
            is_bad = writer in served if helps else len(server.requests) > 1
            served.add(writer)
            bad = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n" + b"Connection: close\r\n" * ends + b"\r\n"
            writer.write(bad if is_bad else reply())
            return not (is_bad and ends)

        async with serving(one_a_connection) as server, speaking() as module:
            replied(await module.fetch(to(server)))
            for _ in range(repeated):
                failure = failed(await module.fetch(to(server)))
                assert (failure.again, failure.host_level) == (True, False)
                assert failure.came is not None
                assert failure.came.status == 400
            for _ in range(3):
                assert replied(await module.fetch(to(server))).status == (200 if helps else 400)
            assert server.connections == (4 if ends else 1)

    run(main())


def test_a_connection_whose_end_was_announced_is_not_used_again(run: Run) -> None:
    async def main() -> None:
        async with serving(reply(b"hello", b"Connection: close")) as server, speaking() as module:
            for _ in range(3):
                replied(await module.fetch(to(server)))
            assert server.connections == 3

    run(main())


def test_cancelling_ends_the_transfer(run: Run) -> None:
    async def main() -> None:
        async with serving(never) as mute, serving(reply()) as server, speaking() as module:
            task = asyncio.create_task(module.fetch(to(mute)))
            await mute.arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            answers = await asyncio.gather(*(module.fetch(to(server)) for _ in range(5)))
            assert [replied(answer).body for answer in answers] == [b"hello"] * 5
            await mute.hung_up.wait()

    run(main())


def test_a_timeout_around_a_fetch_is_a_cancelling(run: Run) -> None:
    async def main() -> None:
        async with serving(never) as mute, speaking() as module:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await module.fetch(to(mute))
            await mute.hung_up.wait()

    run(main())


def test_closing_ends_what_is_under_way_with_a_value(run: Run) -> None:
    async def main() -> None:
        async with serving(never) as mute, speaking() as module:
            task = asyncio.create_task(module.fetch(to(mute)))
            await mute.arrived.wait()
            await module.close()
            assert failed(await task).outcome == "internal_error"
            with pytest.raises(AssertionError):
                await module.fetch(to(mute))

    run(main())


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"Host": "x"}},
        {"headers": {"X": "a\r\nb"}},
        {"headers": {"X Y": "a"}},
        {"accept": "a\nb"},
        {"ca_bundle": "/no/such"},
    ],
)
def test_what_cannot_be_sent_or_read_is_the_operators(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        HttpModule(convert(FetchOptions, options), AGENT, WallClock())


def test_a_form_goes_out_by_post_and_the_next_request_is_a_get_again(run: Run) -> None:
    form = b"hub.mode=subscribe&a=%26"
    typed = (("Content-Type", "application/x-www-form-urlencoded"),)

    async def main() -> None:
        async with serving(reply()) as server, speaking() as module:
            answer = replied(await module.fetch(to(server, "/hub", headers=typed, method="POST", body=form)))
            replied(await module.fetch(to(server, "/page")))
            posted, got = server.requests
            assert posted == answer.request_head
            assert posted.startswith(b"POST /hub HTTP/1.1\r\nHost: ")
            assert b"Content-Type: application/x-www-form-urlencoded\r\n" in posted
            assert b"Content-Length: 24\r\n" in posted
            # This server reads heads: what came between them is the form.
            assert got.startswith(form + b"GET /page HTTP/1.1\r\n")
            assert b"Content-" not in got

    run(main())
