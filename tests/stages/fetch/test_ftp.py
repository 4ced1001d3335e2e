from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Request
from gossamer.options import convert
from gossamer.stages.fetch.ftp import FtpModule, place
from gossamer.stages.fetch.options import FetchOptions
from gossamer.testing.conformance import check_protocol_module
from gossamer.world.clock import WallClock
from tests.stages.fetch.conftest import Run
from tests.stages.fetch.ftp_server import FtpServer, ftp_server
from tests.stages.fetch.listening import listening
from tests.stages.fetch.speaking import AGENT, failed, replied

BODY = bytes(range(256)) * 40


def module_with(**options: object) -> FtpModule:
    return FtpModule(convert(FetchOptions, options), AGENT, WallClock())


@asynccontextmanager
async def speaking(**options: object) -> AsyncIterator[FtpModule]:
    module = module_with(**options)
    try:
        async with asyncio.timeout(60):
            yield module
    finally:
        await module.close()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    (root / "one dir" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "one dir" / "ä;type=a#?%.bin").write_bytes(BODY)
    (root / "lines.txt").write_bytes(b"a\r\nb\nc\n")
    (root / "nothing.txt").touch()
    return root


@pytest.fixture(scope="module")
def server(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FtpServer]:
    with ftp_server(tree, tmp_path_factory.mktemp("ftp")) as running:
        yield running


def to(port: int, path: str, *, scheme: str = "ftp", host: str = "example.test", most: int = 0) -> Request:
    return Request(f"{scheme}://{host}:{port}{path}", "127.0.0.1", port, body_bytes_max=most)


NAME = "/one%20dir/%C3%A4%3Btype=a%23%3F%25.bin"


def test_it_keeps_the_contract_of_a_protocol_module(run: Run, server: FtpServer) -> None:
    base = f"ftp://127.0.0.1:{server.port}"
    served = {base + NAME: BODY, base + "/lines.txt": b"a\r\nb\nc\n", base + "/nothing.txt": b""}

    async def main() -> None:
        await check_protocol_module(module_with, served)

    run(main())


def test_a_file_comes_byte_for_byte_with_the_servers_code(run: Run, server: FtpServer) -> None:
    async def main() -> None:
        async with speaking() as module:
            answer = replied(await module.fetch(to(server.port, NAME)))
            assert (answer.status, answer.body, answer.truncated) == (226, BODY, "")
            assert answer.media_type == "application/octet-stream"
            text = replied(await module.fetch(to(server.port, "/lines.txt;type=a")))
            assert (text.body, text.media_type, text.request_head) == (b"a\r\nb\nc\n", "text/plain", b"")

    run(main())


def test_a_question_mark_is_part_of_a_name(run: Run, server: FtpServer) -> None:
    async def main() -> None:
        async with speaking() as module:
            assert replied(await module.fetch(to(server.port, NAME.replace("%3F", "?")))).body == BODY
            assert failed(await module.fetch(to(server.port, "/lines.txt?x=1"))).outcome == "http_error"

    run(main())


@pytest.mark.parametrize(("command", "mark"), [("LIST", b"drwx"), ("MLSD", b"type=dir;")])
def test_a_directory_is_its_listing_as_sent(run: Run, server: FtpServer, command: str, mark: bytes) -> None:
    async def main() -> None:
        async with speaking(ftp_listing=command) as module:
            for path in ("/", ""):
                answer = replied(await module.fetch(to(server.port, path)))
                assert (answer.status, answer.media_type) == (226, "text/x-ftp-listing")
                assert mark in answer.body
                assert answer.body.count(b"\n") == 4
            assert replied(await module.fetch(to(server.port, "/empty/"))).body == b""
            assert replied(await module.fetch(to(server.port, "/lines.txt"))).body == b"a\r\nb\nc\n"

    run(main())


def test_a_refusal_is_reported_in_the_servers_words_and_harms_nothing(run: Run, server: FtpServer) -> None:
    async def main() -> None:
        async with speaking() as module:
            for path in ("/missing.txt", "/one%20dir", "/missing/", "/missing/deeper/file"):
                failure = failed(await module.fetch(to(server.port, path)))
                assert (failure.outcome, failure.retry, failure.host_level) == ("http_error", False, False)
                assert failure.error.startswith("FTP 550 ")
                hint = failure.error.endswith("; it is requested again as a directory")
                assert hint == failure.again == (path in ("/one%20dir", "/missing/deeper/file"))
                assert replied(await module.fetch(to(server.port, "/lines.txt"))).body

    run(main())


def test_a_directory_without_a_slash_is_listed_by_the_request_that_its_failure_asks_for(
    run: Run, server: FtpServer
) -> None:
    async def main() -> None:
        async with speaking() as module:
            assert failed(await module.fetch(to(server.port, "/one%20dir"))).again
            listed = replied(await module.fetch(to(server.port, "/one%20dir")))
            assert (listed.media_type, b"deep" in listed.body) == ("text/x-ftp-listing", True)
            assert failed(await module.fetch(to(server.port, "/missing"))).again
            failure = failed(await module.fetch(to(server.port, "/missing")))
            assert (failure.outcome, failure.again) == ("http_error", False)

    run(main())


@pytest.mark.parametrize("refusal", ["500 what", "502 no", "522 use another"])
def test_a_server_that_refuses_sizes_and_epsv_is_read(run: Run, tmp_path: Path, refusal: str) -> None:
    names = ["550 none", "500 what", "502 no", "504 no", "450 busy", "213 x", "213 -1", "213 2"]
    for name in names:
        (tmp_path / f"{name}.txt").write_bytes(b"all")

    async def main() -> None:
        with ftp_server(tmp_path, tmp_path / "log", sizes="by name", refusal=refusal) as server:
            async with speaking() as module:
                for name in names:
                    reply = replied(await module.fetch(to(server.port, f"/{name.replace(' ', '%20')}.txt")))
                    assert (reply.status, reply.body, reply.truncated) == (226, b"all", "")
                failure = failed(await module.fetch(to(server.port, "/550%20missing.txt")))
                assert (failure.outcome, failure.retry) == ("http_error", False)
                assert failure.error.startswith("FTP 550 ")
            assert server.asked("RETR") == server.asked("SIZE") == [f"{name}.txt" for name in [*names, "550 missing"]]
            assert len(server.asked("USER")) == 1

    run(main())


def test_a_file_shorter_than_the_size_that_was_named_is_not_taken_for_whole(run: Run, tmp_path: Path) -> None:
    (tmp_path / "213 8.txt").write_bytes(b"half")

    async def main() -> None:
        with ftp_server(tmp_path, tmp_path / "log", sizes="by name") as server:
            async with speaking() as module:
                failure = failed(await module.fetch(to(server.port, "/213%208.txt")))
                assert (failure.outcome, failure.retry) == ("protocol_error", True)

    run(main())


def test_the_control_connection_is_used_again(run: Run, tree: Path, tmp_path: Path) -> None:
    async def main() -> None:
        with ftp_server(tree, tmp_path) as own:
            async with speaking() as module:
                for path in ("/", "/lines.txt", NAME, "/empty/"):
                    replied(await module.fetch(to(own.port, path)))
            assert own.asked("USER") == ["anonymous"]
            assert own.asked("PASS") == ["test@example.test"]

    run(main())


def test_logins_come_from_a_file_and_from_no_url(run: Run, tree: Path, tmp_path: Path) -> None:
    logins = tmp_path / "logins"
    logins.write_text(
        "machine example.test login ann password s3cret\nmachine other.test login ann password wrong\n"
        "default login ann password s3cret\n"
    )

    async def main() -> None:
        with ftp_server(tree, tmp_path, user="ann", password="s3cret") as own:
            async with speaking(logins_file=str(logins)) as module:
                assert replied(await module.fetch(to(own.port, "/lines.txt"))).body
                assert replied(await module.fetch(to(own.port, "/lines.txt", host="x:y@EXAMPLE.test"))).body
                for host in ("other.test", "third.test", "ann:s3cret@third.test"):
                    failure = failed(await module.fetch(to(own.port, "/lines.txt", host=host)))
                    assert (failure.outcome, failure.retry) == ("http_error", False)
                    assert failure.error.startswith("FTP 530 ")
                    assert "s3cret" not in failure.error + repr(module._logins)
            assert set(own.asked("USER")) == {"ann", "anonymous"}

    run(main())


@pytest.mark.parametrize("text", ["machine", "bogus a.test login ann", None])
def test_a_file_of_logins_that_cannot_be_read_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "logins").write_text(text)
    with pytest.raises(ConfigError, match=r"fetch\.logins_file: .*logins"):
        module_with(logins_file=str(tmp_path / "logins"))


def test_ftps_is_tls_from_the_first_byte(run: Run, tree: Path, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("example.test").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))

    async def main() -> None:
        with ftp_server(tree, tmp_path, certificate=str(tmp_path / "server.pem")) as own:
            async with speaking(ca_bundle=str(tmp_path / "ca.pem")) as module:
                for _ in range(2):
                    assert replied(await module.fetch(to(own.port, NAME, scheme="ftps"))).body == BODY
                    assert b"lines.txt" in replied(await module.fetch(to(own.port, "/", scheme="ftps"))).body
                failure = failed(await module.fetch(to(own.port, "/", scheme="ftps", host="other.test")))
                assert (failure.outcome, failure.host_level) == ("tls_error", True)
            assert own.asked("PROT") == ["P"]
            async with speaking() as module:
                assert failed(await module.fetch(to(own.port, "/", scheme="ftps"))).outcome == "tls_error"

    run(main())


def test_a_body_is_cut_at_its_bound(run: Run, server: FtpServer) -> None:
    async def main() -> None:
        async with speaking(body_bytes_max=1000) as module:
            for most in (0, 10):
                answer = replied(await module.fetch(to(server.port, NAME, most=most)))
                assert (answer.status, answer.body, answer.truncated) == (226, BODY[: most or 1000], "length")

    run(main())


def test_too_many_connections_speak_of_the_host(run: Run, tree: Path, tmp_path: Path) -> None:
    async def main() -> None:
        with ftp_server(tree, tmp_path, max_cons="2") as own:
            async with speaking() as first, speaking() as second:
                replied(await first.fetch(to(own.port, "/lines.txt")))
                failure = failed(await second.fetch(to(own.port, "/lines.txt")))
                assert (failure.outcome, failure.retry, failure.host_level) == ("http_error", True, True)
                assert failure.error.startswith("FTP 421 ")

    run(main())


# ---- servers that mean ill


Script = Callable[[str], bytes | None]


@asynccontextmanager
async def scripted(answer: Script, greeting: bytes = b"220 ready\r\n") -> AsyncIterator[int]:
    """An FTP server that says what it is told to: None is silence."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(greeting)
            while line := await reader.readline():
                said = answer(line.decode().strip())
                if said is not None:
                    writer.write(said)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with listening(serve) as port:
        yield port


def polite(line: str) -> bytes | None:
    answers = {"USER": b"331 go on\r\n", "PASS": b"230 in\r\n", "PWD": b'257 "/"\r\n', "TYPE": b"200 ok\r\n"}
    return answers.get(line.split(" ", maxsplit=1)[0], b"500 what\r\n")


def test_data_never_comes_from_another_address_than_the_checked_one(run: Run) -> None:
    async def main() -> None:
        strangers = 0

        async def stranger(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal strangers
            strangers += 1
            writer.close()

        async with listening(stranger, "127.0.0.2") as port:

            def answer(line: str) -> bytes | None:
                if line == "PASV":
                    return b"227 Entering Passive Mode (127,0,0,2,%d,%d)\r\n" % divmod(port, 256)
                return polite(line)

            async with scripted(answer) as own, speaking() as module:
                failed(await module.fetch(to(own, "/secret")))
        assert strangers == 0

    run(main())


def test_no_socket_is_opened_but_to_the_address_of_the_request(run: Run) -> None:
    async def main() -> None:
        async with speaking() as module, scripted(polite) as port:
            transfer = module._transfers.take(0.0)
            transfer.aim(to(port, "/x"), [], 10, f"ftp://127.0.0.1:{port}/x")
            transfer.ip = "127.0.0.3"
            end = await module._transfers.run(transfer)
            assert end != (0, "")
            assert transfer.stopped == "connecting to 127.0.0.1"
            module._transfers.finish(transfer, Failure("timeout", "x"))

    run(main())


@pytest.mark.parametrize("silent_at", ["", "USER", "PASS", "PWD", "EPSV"])
def test_a_server_that_falls_silent_is_left_in_time(run: Run, silent_at: str) -> None:
    def answer(line: str) -> bytes | None:
        return None if line.startswith(silent_at or " ") else polite(line)

    async def main() -> None:
        greeting = b"220 ready\r\n" if silent_at else b""
        async with scripted(answer, greeting) as port, speaking(request_s_max=0.3) as module:
            failure = failed(await module.fetch(to(port, "/x")))
            assert (failure.outcome, failure.retry, failure.host_level) == ("timeout", True, True)

    run(main())


def _sends_from(port: int) -> Script:
    """Answer as a server that begins a transfer from a port, and does not conclude it."""

    def answer(line: str) -> bytes | None:
        if line == "EPSV":
            return b"229 here (|||%d|)\r\n" % port
        return b"150 it comes\r\n" if line.startswith("RETR") else polite(line)

    return answer


def test_data_that_stalls_is_kept_and_marked(run: Run) -> None:
    async def main() -> None:
        async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"begun")
            await reader.read()
            writer.close()

        async with listening(stall) as port, scripted(_sends_from(port)) as own, speaking(request_s_max=1.0) as module:
            reply = replied(await module.fetch(to(own, "/x")))
            assert (reply.status, reply.body, reply.truncated) == (226, b"begun", "time")

    run(main())


def test_a_server_that_does_not_conclude_its_transfers_blocks_nothing_for_long(run: Run) -> None:
    """libcurl waits for that reply within a call, for up to a minute."""

    async def main() -> None:
        async def short(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"all of it")
            writer.close()

        async with listening(short) as port, scripted(_sends_from(port)) as own, speaking(request_s_max=3.0) as module:
            failure = failed(await module.fetch(to(own, "/x")))
            assert (failure.outcome, failure.retry, failure.host_level) == ("timeout", True, True)
            assert failure.error == "the server sent its data, and no reply on its control connection for 1 s"

    run(main())


@pytest.mark.parametrize(
    ("greeting", "outcome"),
    [(b"HTTP/1.1 400 no\r\n\r\n", "timeout"), (b"220-" + b"x" * 500 + b"\r\n", "too_large"), (b"\xff\x00\r\n", "")],
)
def test_what_is_no_ftp_is_a_failure(run: Run, greeting: bytes, outcome: str) -> None:
    async def main() -> None:
        async with scripted(polite, greeting * 3) as port, speaking(request_s_max=1, head_bytes_max=256) as module:
            failure = failed(await module.fetch(to(port, "/x")))
            assert failure.outcome == (outcome or failure.outcome)

    run(main())


def test_an_environment_with_a_proxy_changes_nothing(
    run: Run, server: FtpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ftp_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:1")

    async def main() -> None:
        async with speaking() as module:
            assert replied(await module.fetch(to(server.port, "/lines.txt"))).body
        async with speaking(proxy="http://127.0.0.1:1") as module:
            failure = failed(await module.fetch(to(server.port, "/lines.txt")))
            assert (failure.outcome, failure.error) == ("unsupported", "FTP does not go through fetch.proxy")

    run(main())


@pytest.mark.parametrize(
    "url",
    ["ftp://h.test/%0d%0aDELE%20x", "ftp://h.test/a%00", "ftp://h.test/%7F/", "ftp:///x", "ftp://h.test/ü", "http://h/",
     "ftp://h.test/x;type=d", "ftp://h.test:x/", "ftp://h.test/a b"],
)  # fmt: skip
def test_urls_that_cannot_be_asked_for(run: Run, url: str) -> None:
    assert place(url) is None

    async def main() -> None:
        async with speaking() as module:
            assert failed(await module.fetch(Request(url, "127.0.0.1", 1))).outcome == "unsupported"

    run(main())


def test_a_url_is_taken_apart() -> None:
    assert place("FTP://me:p@w@h.test:2121/a%20b/c?d#e") == ("h.test", "ftp://h.test:2121/a%20b/c%3Fd", "c%3Fd")
    assert place("ftps://[::1]") == ("[::1]", "ftps://[::1]/", "")
    assert place("ftp://h.test/d/;TYPE=I") == ("h.test", "ftp://h.test/d/", "")
