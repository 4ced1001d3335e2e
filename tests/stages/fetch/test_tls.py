"""HTTP over TLS: certificates, names, and h2."""

from __future__ import annotations

import asyncio
import ctypes.util
import gzip
import socket
import ssl
import struct
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import h2.config
import h2.connection
import h2.errors
import h2.events
import msgspec
import pytest
import trustme

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Reply, Request
from gossamer.stages.fetch import driver
from gossamer.stages.fetch.http import HttpModule
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.clock import WallClock
from tests.stages.fetch import key_updates
from tests.stages.fetch.conftest import Run
from tests.stages.fetch.listening import listening
from tests.stages.fetch.servers import Server, pause, reply, serving
from tests.stages.fetch.speaking import AGENT, failed, replied, speaking


class Authority(NamedTuple):
    bundle: str
    context: ssl.SSLContext
    h2_context: ssl.SSLContext


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    ca = trustme.CA()
    bundle = tmp_path_factory.mktemp("tls") / "ca.pem"
    ca.cert_pem.write_to_path(str(bundle))
    contexts = []
    for protocols in (["http/1.1"], ["h2", "http/1.1"]):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("example.test").configure_cert(context)
        context.set_alpn_protocols(protocols)
        contexts.append(context)
    return Authority(str(bundle), *contexts)


def to(server: Server, host: str = "example.test", path: str = "/") -> Request:
    return Request(url=f"https://{host}:{server.port}{path}", ip="127.0.0.1", port=server.port)


def test_a_trusted_server_for_its_own_name(run: Run, authority: Authority) -> None:
    async def main() -> None:
        async with serving(reply(), tls=authority.context) as server, speaking(ca_bundle=authority.bundle) as module:
            for _ in range(2):
                answer = replied(await module.fetch(to(server)))
                assert (answer.body, answer.http_version) == (b"hello", "1.1")
                assert server.requests[-1] == answer.request_head
            assert server.connections == 1

    run(main())


def test_another_name_is_refused(run: Run, authority: Authority) -> None:
    async def main() -> None:
        async with serving(reply(), tls=authority.context) as server, speaking(ca_bundle=authority.bundle) as module:
            failure = failed(await module.fetch(to(server, "other.test")))
            assert (failure.outcome, failure.retry, failure.host_level) == ("tls_error", False, True)
            assert server.requests == []

    run(main())


def test_an_unknown_authority_is_refused_unless_allowed(run: Run, authority: Authority) -> None:
    async def main() -> None:
        async with serving(reply(), tls=authority.context) as server:
            async with speaking() as module:
                assert failed(await module.fetch(to(server))).outcome == "tls_error"
            async with speaking(verify_tls=False) as module:
                assert replied(await module.fetch(to(server, "other.test"))).body == b"hello"

    run(main())


@pytest.mark.parametrize("content", ["nothing here", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_bundle_without_certificates_is_refused(tmp_path: Path, content: str) -> None:
    (empty := tmp_path / "empty.pem").write_text(content)
    with pytest.raises(ConfigError, match=r"fetch\.ca_bundle: .*empty\.pem holds no certificate in PEM"):
        HttpModule(FetchOptions(ca_bundle=str(empty)), AGENT, WallClock())


def test_an_old_protocol_is_refused(run: Run, authority: Authority) -> None:
    async def main() -> None:
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("example.test").configure_cert(old)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        async with serving(reply(), tls=old) as server, speaking(tls_min="1.3", verify_tls=False) as module:
            assert failed(await module.fetch(to(server))).outcome == "tls_error"

    run(main())


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize(("version", "name"), [(ssl.TLSVersion.TLSv1, "1.0"), (ssl.TLSVersion.TLSv1_1, "1.1")])
def test_the_oldest_version_to_accept_is_accepted(run: Run, version: ssl.TLSVersion, name: str) -> None:
    async def main() -> None:
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        old.set_ciphers("ALL:@SECLEVEL=0")
        ca = trustme.CA()
        ca.issue_cert("example.test").configure_cert(old)
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = version
        with ca.cert_pem.tempfile() as bundle:
            async with serving(reply(), tls=old) as server:
                async with speaking(tls_min=name, ca_bundle=bundle) as module:
                    replied(await module.fetch(to(server)))
                async with speaking(ca_bundle=bundle) as module:
                    assert failed(await module.fetch(to(server))).outcome == "tls_error"

    run(main())


def test_plain_text_where_tls_was_asked_for(run: Run) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 this is not the protocol that you are looking for\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        listener = await asyncio.start_server(greet, "127.0.0.1", 0)
        async with listener, speaking() as module:
            port = listener.sockets[0].getsockname()[1]
            failure = failed(await module.fetch(Request(url="https://example.test/", ip="127.0.0.1", port=port)))
            assert (failure.outcome, failure.retry, failure.host_level) == ("tls_error", False, True)
            assert "does not speak TLS" in failure.error

    run(main())


BROKEN_H2 = {
    b"/upgrade": ("upgrade", "h2,h2c"),
    b"/connection": ("connection", "keep-alive"),
    b"/coding": ("transfer-encoding", "chunked"),
    b"/capitals": ("X-Capitals", "1"),
    b"/longer": ("content-length", "8000"),
    b"/shorter": ("content-length", "5"),
}
"""By path: a header that a reply over HTTP/2 must not have, as servers send behind others (Apache httpd, IIS)."""


_LONG = [("content-length", "9")]
_PACKED = gzip.compress(b"whole")
RESET_H2: dict[bytes, tuple[bytes, list[tuple[str, str]], bool]] = {
    b"/long": (b"all of it", _LONG, True),
    b"/page": (b"<p>all of it</p></html>", [], True),
    b"/packed": (_PACKED, [("content-encoding", "gzip")], True),
    b"/short": (b"all of", _LONG, False),
    b"/shortest": (b"</html>", _LONG, False),
    b"/packed-short": (_PACKED[:-1], [("content-encoding", "gzip")], False),
    b"/unknown": (b"all of it?", [], False),
}
"""By path: a body after which the server resets the stream in place of its end, its headers, and whether it is whole.
Proxies do so when the server behind them closes its connection late (HTTP/2 stream was not closed cleanly: CANCEL).
"""


class H2Server:
    """Answers each h2 request with its path, in frames as h2 allows."""

    def __init__(self) -> None:
        self.requests: list[dict[bytes, bytes]] = []
        self.connections = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if writer.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            await reader.readuntil(b"\r\n\r\n")
            writer.write(reply())
            await writer.drain()
            writer.close()
            return
        config = h2.config.H2Configuration(
            client_side=False, header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False
        )
        state = h2.connection.H2Connection(config)
        state.initiate_connection()
        writer.write(state.data_to_send())
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                for event in state.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        self._answer(state, event)
                writer.write(state.data_to_send())
                await writer.drain()
        writer.close()

    def _answer(self, state: h2.connection.H2Connection, event: h2.events.RequestReceived) -> None:
        headers = dict(event.headers or ())
        stream_id = event.stream_id
        assert stream_id is not None
        self.requests.append(headers)
        if headers[b":path"] == b"/reset":
            state.reset_stream(stream_id)
            return
        if headers[b":path"] == b"/required":
            state.reset_stream(stream_id, h2.errors.ErrorCodes.HTTP_1_1_REQUIRED)
            return
        body = headers[b":path"] * 1000
        if reset := RESET_H2.get(headers[b":path"]):
            state.send_headers(stream_id, [(":status", "200"), ("content-type", "text/html"), *reset[1]])
            state.send_data(stream_id, reset[0])
            state.reset_stream(stream_id, h2.errors.ErrorCodes.CANCEL)
            return
        if broken := BROKEN_H2.get(headers[b":path"]):
            state.send_headers(stream_id, [(":status", "200"), ("content-type", "text/html"), broken])
            state.send_data(stream_id, body, end_stream=True)
            return
        state.send_headers(stream_id, [(":status", "103"), ("link", "</x>")])
        state.send_headers(
            stream_id,
            [(":status", "200"), ("content-type", "text/plain;charset=utf-8"), ("x-two", "1"), ("x-two", "2")],
        )
        for at in range(0, len(body), 10_000):
            state.send_data(stream_id, body[at : at + 10_000])
        state.send_headers(stream_id, [("x-trailer", "1")], end_stream=True)


def test_h2(run: Run, authority: Authority) -> None:
    async def main() -> None:
        server = H2Server()
        listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=authority.h2_context)
        server.port = listener.sockets[0].getsockname()[1]
        async with speaking(ca_bundle=authority.bundle) as module:
            for path in ("/a", "/b?c=|", "/%e4%bd"):
                url = f"https://example.test:{server.port}{path}"
                answer = replied(await module.fetch(Request(url=url, ip="127.0.0.1", port=server.port)))
                assert (answer.status, answer.http_version, answer.reason) == (200, "2", "")
                assert answer.body == path.encode() * 1000
                assert answer.headers == (("content-type", "text/plain;charset=utf-8"), ("x-two", "1"), ("x-two", "2"))
                assert (answer.media_type, answer.charset) == ("text/plain", "utf-8")
                assert answer.request_head.startswith(
                    f"GET {path} HTTP/2\r\nHost: example.test:{server.port}\r\n".encode()
                )
                sent = server.requests[-1]
                assert sent[b":path"] == path.encode()
                assert sent[b":authority"] == f"example.test:{server.port}".encode()
                fields = answer.request_head.split(b"\r\n")[2:-2]
                assert {tuple(f.split(b": ", 1)) for f in fields} == {
                    (name.title(), value) for name, value in sent.items() if not name.startswith(b":")
                }
            assert server.connections == 1
            url = f"https://example.test:{server.port}/reset"
            for _ in range(3):
                failure = failed(await module.fetch(Request(url=url, ip="127.0.0.1", port=server.port)))
                assert (failure.outcome, failure.retry, failure.host_level) == ("protocol_error", True, False)
                answer = replied(await module.fetch(Request(url=f"{url}s", ip="127.0.0.1", port=server.port)))
                assert answer.http_version == "2", "what resets one stream may not speak HTTP/1.1"
        listener.close()

    run(main())


@asynccontextmanager
async def fetching_h2(authority: Authority) -> AsyncIterator[Callable[[str], Awaitable[Reply | Failure]]]:
    """Give a fetch of a path of a server that speaks HTTP/2."""
    listener = await asyncio.start_server(H2Server().serve, "127.0.0.1", 0, ssl=authority.h2_context)
    port = listener.sockets[0].getsockname()[1]
    async with listener, speaking(ca_bundle=authority.bundle) as module:
        yield lambda path: module.fetch(Request(url=f"https://example.test:{port}{path}", ip="127.0.0.1", port=port))


def test_a_page_that_requires_http_1_1_is_fetched_where_others_come_over_h2(run: Run, authority: Authority) -> None:
    async def main() -> None:
        async with fetching_h2(authority) as fetch:
            assert replied(await fetch("/a")).http_version == "2"
            assert failed(await fetch("/required")).again, "a kept connection may have closed for another reason"
            assert failed(await fetch("/required")).error == "the server refused the request over HTTP/2"
            assert replied(await fetch("/required")).http_version == "1.1"

    run(main())


@pytest.mark.parametrize("path", RESET_H2)
def test_a_body_that_is_whole_counts_although_its_stream_is_reset(run: Run, authority: Authority, path: bytes) -> None:
    async def main() -> None:
        async with fetching_h2(authority) as fetch:
            body, _, is_whole = RESET_H2[path]
            if not is_whole:
                assert failed(await fetch(path.decode())).outcome == "protocol_error"
                return
            for _ in range(3):  # After two failures the host would be requested over HTTP/1.1.
                answer = replied(await fetch(path.decode()))
                assert (answer.body, answer.truncated, answer.http_version) == (body, "", "2")

    run(main())


@pytest.mark.parametrize("path", BROKEN_H2)
def test_a_reply_that_breaks_the_rules_of_h2_is_fetched_over_http_1_1(
    run: Run, authority: Authority, path: bytes
) -> None:
    async def main() -> None:
        async with fetching_h2(authority) as fetch:
            assert replied(await fetch("/robots.txt")).http_version == "2"
            failure = failed(await fetch(path.decode()))
            assert (failure.outcome, failure.again, failure.host_level) == ("protocol_error", True, False)
            assert replied(await fetch(path.decode())).http_version == "1.1"

    run(main())


def _frame(kind: int, payload: bytes, stream: int) -> bytes:
    """Return a frame of HTTP/2 (RFC 9113, section 4.1)."""
    return len(payload).to_bytes(3) + bytes((kind, 0)) + stream.to_bytes(4) + payload


SETTINGS = _frame(4, b"", 0)
OF_STREAMS = {
    "internal error": SETTINGS + _frame(3, (2).to_bytes(4), 1),
    "refused stream": SETTINGS + _frame(3, (7).to_bytes(4), 1),
    "HTTP/1.1 required": SETTINGS + _frame(3, (13).to_bytes(4), 1),
    "going away": SETTINGS + _frame(7, bytes(8), 0),
}
H2_FAILURES = {
    **OF_STREAMS,
    "data without headers": SETTINGS + _frame(0, b"data", 1),
    "HTTP/1.1 after all": reply(),
    "settings alone": SETTINGS,
    "nothing": b"",
}
"""What servers say that negotiated HTTP/2 and do not answer in it."""


@pytest.mark.parametrize("case", H2_FAILURES)
def test_a_host_whose_h2_fails_is_fetched_over_http_1_1(run: Run, authority: Authority, case: str) -> None:
    async def fail(writer: asyncio.StreamWriter) -> None:
        writer.write(H2_FAILURES[case])
        await writer.drain()
        await pause()

    failure = _falls_back(run, authority, fail, failures=2 if case in OF_STREAMS else 1)
    assert "kept connection" not in failure.error
    assert "libcurl" not in failure.error


def test_a_server_that_resets_a_connection_for_h2_is_fetched_over_http_1_1(run: Run, authority: Authority) -> None:
    async def fail(writer: asyncio.StreamWriter) -> None:
        reset(writer)

    assert "reset" in _falls_back(run, authority, fail).error


@pytest.mark.parametrize("limits", [{"low_speed_s": 1}, {"request_s_max": 1.0}])
def test_a_host_that_opens_no_stream_of_h2_is_fetched_over_http_1_1(
    run: Run, authority: Authority, limits: dict[str, float]
) -> None:
    async def fail(writer: asyncio.StreamWriter) -> None:
        writer.write(_frame(4, (3).to_bytes(2) + bytes(4), 0))  # SETTINGS_MAX_CONCURRENT_STREAMS: 0
        await writer.wait_closed()

    assert _falls_back(run, authority, fail, **limits).outcome == "timeout"


def test_h2_that_begins_otherwise_is_not_waited_for(run: Run, authority: Authority) -> None:
    async def fail(writer: asyncio.StreamWriter) -> None:
        writer.write(reply())
        await writer.wait_closed()

    failure = _falls_back(run, authority, fail, connect_s_max=600.0, request_s_max=600.0)
    assert (failure.outcome, failure.error) == ("protocol_error", "the server negotiated HTTP/2 and does not speak it")


def _falls_back(
    run: Run,
    authority: Authority,
    fail: Callable[[asyncio.StreamWriter], Awaitable[None]],
    failures: int = 1,
    **options: object,
) -> Failure:
    """Have a server fail in HTTP/2, check that the requests after some failures go over HTTP/1.1, and return the last
    failure.
    """

    async def answer(_server: Server, writer: asyncio.StreamWriter, head: bytes) -> bool:
        if not head.startswith(b"PRI "):
            writer.write(reply())
            return True
        await pause()  # The request comes right behind the preface that was read.
        await fail(writer)
        return False

    async def main() -> Failure:
        async with (
            serving(answer, tls=authority.h2_context) as server,
            speaking(ca_bundle=authority.bundle, **{"connect_s_max": 1.0, **options}) as module,
        ):
            for _ in range(failures):
                failure = failed(await module.fetch(to(server)))
                assert failure.retry
            for path in ("/", "/other"):
                request = msgspec.structs.replace(to(server, path=path), fresh=True)
                assert replied(await module.fetch(request)).http_version == "1.1"
            return failure

    return run(main())


def reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.promise("Bounds", "A server that floods its connection with messages of TLS does not hold up the others.")
@pytest.mark.skipif(ctypes.util.find_library("ssl") is None, reason="the flood is sent by OpenSSL")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere what was received is still read")
def test_a_flood_of_key_updates_is_ended(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "TURN_S_MAX", 0.01)
    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    ca.issue_cert("example.test").private_key_and_cert_chain_pem.write_to_path(tmp_path / "own.pem")

    async def main() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            key_updates.__file__,
            tmp_path / "own.pem",
            tmp_path / "waits",
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        async with speaking(ca_bundle=str(tmp_path / "ca.pem")) as module:
            request = Request(url=f"https://example.test:{port}/", ip="127.0.0.1", port=port)
            fetching = asyncio.create_task(module.fetch(request))
            await process.stdout.readline()
            while not (tmp_path / "waits").exists():
                time.sleep(0.01)  # noqa: ASYNC251 - so that much waits to be read
            failure = failed(await fetching)
        assert failure.error == "the server floods the connection with messages of TLS"
        assert (failure.outcome, failure.retry) == ("protocol_error", False)
        await process.wait()

    run(main())


UNCLOSED = {
    "until the end": (b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>all of it", "<p>all of it"),
    "redirect": (b"HTTP/1.0 302 Found\r\nLocation: /b\r\n\r\n", ""),
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<p>part", None),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n<p>part\r\n", None),
    "head": (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", None),
    "nothing": (b"", None),
}
"""What comes before a server closes the connection without the end of TLS, and the body if that is whole."""


@pytest.mark.parametrize("case", UNCLOSED)
def test_a_body_that_ends_with_its_connection_needs_no_end_of_tls(run: Run, authority: Authority, case: str) -> None:
    data, body = UNCLOSED[case]

    async def answer(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(data)
        writer.transport.abort()  # Without close_notify.
        return False

    async def main() -> None:
        async with serving(answer, tls=authority.context) as server, speaking(ca_bundle=authority.bundle) as module:
            result = await module.fetch(to(server))
            if body is not None:
                answered = replied(result)
                assert (answered.body.decode(), answered.truncated) == (body, "")
                return
            failure = failed(result)
            assert (failure.outcome, failure.retry) == ("connect_error", True)
            assert failure.error == "the server closed the connection early"
            assert (failure.came.truncated if failure.came else "") == ("disconnect" if b"<p>" in data else "")

    run(main())


def _bare(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", "Content-Type: text/html", "Connection: close", *lines, "", ""]).encode()


PACKED = gzip.compress(b"<p>all of it")
RESETS = {
    "end tag": (_bare() + b"<HTML>all of it</HTML>\n<!-- 0.1 s -->\n", True),
    "no end": (_bare() + b"<p>it may be all", False),
    "comments that are made to cost": (_bare() + b"<html></html>" + b"<!---->" * 140 + b"x", False),
    "end of a part": (_bare() + b"<iframe srcdoc='<html></html>'>", False),
    "coded": (_bare("Content-Encoding: gzip") + PACKED, True),
    "within a code": (_bare("Content-Encoding: gzip") + PACKED[:-1], False),
    "code by another name": (_bare("Content-Encoding: pied-piper") + PACKED, True),
    "unknown code": (_bare("Content-Encoding: pied-piper") + PACKED[1:], False),
    "length": (_bare("Content-Length: 500") + b"<html></html>", False),
    "redirect": (b"HTTP/1.0 302 Found\r\nLocation: /b\r\n\r\n", True),
    "nothing": (_bare(), False),
}
"""What comes before a server resets its connection, and whether that is the whole."""


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("case", RESETS)
def test_a_body_whose_connection_is_reset_is_whole_where_it_shows_its_end(
    run: Run, authority: Authority, case: str, secure: bool
) -> None:
    data, is_whole = RESETS[case]

    async def answer(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(data)
        await pause()  # A reset discards what the client has not read.
        reset(writer)
        return False

    async def main() -> None:
        async with (
            serving(answer, tls=authority.context if secure else None) as server,
            speaking(ca_bundle=authority.bundle) as module,
        ):
            request = to(server)
            if not secure:
                request = msgspec.structs.replace(request, url=request.url.replace("https", "http"))
            result = await module.fetch(request)
            body = data.partition(b"\r\n\r\n")[2]
            if is_whole:
                answered = replied(result)
                assert (answered.body, answered.truncated) == (body, "")
                return
            failure = failed(result)
            assert (failure.outcome, failure.retry) == ("connect_error", True)
            assert (failure.came.body if failure.came else b"", failure.came is None) == (body, not body)
            assert failure.came is None or failure.came.truncated == "disconnect"
            assert failure.host_level == (failure.came is None), "a host that began its answer does answer"

    run(main())


def test_h2_can_be_switched_off(run: Run, authority: Authority) -> None:
    async def main() -> None:
        async with (
            serving(reply(), tls=authority.h2_context) as server,
            speaking(ca_bundle=authority.bundle, http_versions="1.1") as module,
        ):
            answer: Reply = replied(await module.fetch(to(server)))
            assert answer.http_version == "1.1"

    run(main())


def test_plain_http_where_tls_was_asked_for_says_so_and_is_not_asked_again(run: Run) -> None:
    """As nginx and Apache answer a handshake on a port for http."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        listener = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with listener, speaking() as module:
            port = listener.sockets[0].getsockname()[1]
            failure = failed(await module.fetch(Request(url="https://example.test/", ip="127.0.0.1", port=port)))
            assert (failure.outcome, failure.retry) == ("tls_error", False)
            assert failure.error.startswith("the server speaks plain HTTP on this port, not TLS")

    run(main())


def test_another_protocol_where_http_was_asked_for_says_so(run: Run) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        listener = await asyncio.start_server(greet, "127.0.0.1", 0)
        async with listener, speaking() as module:
            port = listener.sockets[0].getsockname()[1]
            failure = failed(await module.fetch(Request(url="http://example.test/", ip="127.0.0.1", port=port)))
            assert (failure.outcome, failure.retry) == ("protocol_error", False)
            assert "does not speak HTTP on this port" in failure.error

    run(main())


async def old_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: list[bytes]) -> None:
    """Answer a ClientHello with a ServerHello of TLS 1.2 without renegotiation_info, and note what follows."""
    hello = await reader.read(65536)
    if hello[:1] != b"\x16":
        return
    body = b"\x03\x03" + bytes(32) + b"\x00\xc0\x2f\x00" + b"\x00\x06\x00\x0b\x00\x02\x01\x00"
    message = b"\x02" + len(body).to_bytes(3, "big") + body
    writer.write(b"\x16\x03\x03" + len(message).to_bytes(2, "big") + message)
    seen.append(await reader.read(100))


ALERT_40 = b"\x15\x03\x03\x00\x02\x02\x28"


def test_a_server_without_secure_renegotiation_is_accepted(run: Run) -> None:
    async def main() -> None:
        seen: list[bytes] = []
        async with listening(lambda reader, writer: old_server(reader, writer, seen)) as port:
            request = Request(url=f"https://example.test:{port}/", ip="127.0.0.1", port=port)
            async with speaking(request_s_max=1.0) as module:
                failure = failed(await module.fetch(request))
                assert (failure.outcome, failure.again) == ("timeout", False)
        assert seen == [b""]

    run(main())


REFUSED = """
import asyncio
import sys

from gossamer.model.visits import Request
from tests.stages.fetch.speaking import failed, speaking


async def main(port):
    async with speaking(tls_legacy_renegotiation=False) as module:
        request = Request(url=f"https://example.test:{port}/", ip="127.0.0.1", port=port)
        failure = failed(await module.fetch(request))
        assert "fetch.tls_legacy_renegotiation = true permits it" in failure.error
        assert (failure.outcome, failure.retry, failure.again) == ("tls_error", False, False)


asyncio.run(main(int(sys.argv[1])))
"""
"""In another process: what one crawl permits holds for all of a process."""


def test_a_server_without_secure_renegotiation_is_refused_if_a_key_says_so(run: Run) -> None:
    async def main() -> None:
        seen: list[bytes] = []
        async with listening(lambda reader, writer: old_server(reader, writer, seen)) as port:
            refusing = await asyncio.create_subprocess_exec(sys.executable, "-c", REFUSED, str(port))
            async with asyncio.timeout(60):
                assert await refusing.wait() == 0
        assert seen == [ALERT_40]

    run(main())
