"""Rules for requests: where they hold, what they send, and that nothing of it goes elsewhere."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Reply, Request
from gossamer.options import convert
from gossamer.stages.fetch.credentials import proxy_of, redact_user_info
from gossamer.stages.fetch.digest import Challenge, Digests, authorization, best_challenge
from gossamer.stages.fetch.http import HttpModule
from gossamer.stages.fetch.options import FetchOptions, RequestOptions, Route
from gossamer.stages.fetch.rules import RequestRules
from gossamer.world.clock import WallClock
from tests.stages.fetch.conftest import Run
from tests.stages.fetch.servers import Server, reply, serving
from tests.stages.fetch.speaking import AGENT, failed, replied, speaking

SECRET = "s3cret-XYZZY"


def rules(table: dict[str, object]) -> RequestRules:
    return RequestRules(convert(RequestOptions, table).rules, "gossamer", Digests())


@asynccontextmanager
async def speaking_by(table: dict[str, object], **options: object) -> AsyncIterator[HttpModule]:
    fetch = convert(FetchOptions, options)
    module = HttpModule(fetch, AGENT, WallClock(), rules=rules(table))
    try:
        async with asyncio.timeout(60):
            yield module
    finally:
        await module.close()


def to(server: Server, path: str = "/", host: str = "a.test", scheme: str = "http") -> Request:
    return Request(f"{scheme}://{host}:{server.port}{path}", "127.0.0.1", server.port)


@pytest.mark.parametrize(
    ("where", "covered", "others"),
    [
        ("a.test", ["https://a.test/", "https://A.test./x"], ["https://b.a.test/", "https://a.test:8443/"]),
        (".a.test", ["https://a.test/", "https://b.c.a.test/"], ["https://ba.test/", "https://a.test.evil.test/"]),
        (
            "https://a.test:8443/in",
            ["https://a.test:8443/in", "https://a.test:8443/in/x", "https://a.test:8443/in?x"],
            ["https://a.test:8443/inner", "https://a.test/in", "http://a.test:8443/in", "https://x@b.test:8443/in"],
        ),
        ("http://a.test", ["http://a.test/", "http://a.test?x"], ["https://a.test/", "http://a.test:8080/"]),
    ],
)
def test_where_a_rule_holds(where: str, covered: list[str], others: list[str]) -> None:
    found = rules({where: {"bearer": SECRET}})
    for url in covered:
        rule = found.of(url)
        assert rule is not None, url
        assert rule.headers == (("Authorization", f"Bearer {SECRET}"),)
    assert [url for url in others if found.of(url) is not None] == []


def test_a_place_without_scheme_sends_secrets_over_tls_alone() -> None:
    found = rules({"a.test": {"bearer": SECRET, "query": {"k": SECRET}, "headers": {"Accept": "text/plain"}}})
    plain, secure = found.of("http://a.test/"), found.of("https://a.test/")
    assert plain is not None
    assert secure is not None
    assert plain.headers == (("Accept", "text/plain"),)
    assert plain.add_query("http://a.test/") == "http://a.test/"
    assert secure.add_query("https://a.test/?q#f") == f"https://a.test/?q&k={SECRET}#f"


def test_the_most_specific_rule_wins_value_by_value() -> None:
    found = rules({
        "https://a.test/in/": {"headers": {"x-one": "path"}, "digest": {"user": "me", "password": SECRET}},
        ".a.test": {"headers": {"X-One": "site", "X-Two": "site"}, "basic": {"user": "me", "password": SECRET}},
        "a.test": {"headers": {"X-Two": "host"}, "proxy": "http://127.0.0.1:9"},
    })  # fmt: skip
    inside, outside = found.of("https://a.test/in/x"), found.of("https://b.a.test/in/x")
    assert inside is not None
    assert outside is not None
    assert inside.headers == (("x-one", "path"), ("X-Two", "host"))
    assert (inside.digest, inside.route.proxy) == (("me", SECRET), "http://127.0.0.1:9")
    assert [name for name, _ in outside.headers] == ["X-One", "X-Two", "Authorization"]
    assert outside.digest is None


@pytest.mark.parametrize(
    "where", ["a b", "*.a.test", "https://", "ftp://a.test/", "http://me:pw@a.test/", ".co.uk", "A"]
)
def test_what_is_no_place(where: str) -> None:
    with pytest.raises(ValueError, match=r"is no place for a rule|is a public suffix"):
        convert(RequestOptions, {where: {}})


@pytest.mark.promise(
    "Politeness", "No rule hides who we are: a User-Agent contains the name that robots.txt files use."
)
def test_a_user_agent_that_hides_who_we_are_is_refused() -> None:
    rules({"a.test": {"headers": {"User-Agent": "Mozilla/5.0 (compatible; Gossamer/1; +https://a.test)"}}})
    with pytest.raises(ConfigError, match="User-Agent must contain 'gossamer'"):
        rules({"a.test": {"headers": {"user-agent": "Mozilla/5.0"}}})


@pytest.mark.promise("Operation", "Credentials reach the origin that they are for, and no other.")
def test_headers_go_to_their_place_alone_over_kept_connections(run: Run) -> None:
    async def main() -> None:
        async with serving(reply()) as server:
            table = {f"http://a.test:{server.port}/in/": {"basic": {"user": "me", "password": SECRET}}}
            async with speaking_by(table) as module:
                inside = replied(await module.fetch(to(server, "/in/")))
                outside = [replied(await module.fetch(to(server, *at))) for at in (("/",), ("/in/", "b.test"))]
            assert b"Authorization: [redacted]\r\n" in inside.request_head
            assert b"\r\nAuthorization: Basic bWU6czNjcmV0LVhZWlpZ\r\n" in server.requests[0]
            assert (inside.authenticated, [one.authenticated for one in outside]) == (True, [False, False])
            assert not [one for one in server.requests[1:] if b"uthorization" in one]

    run(main())


def test_added_parameters_are_sent_and_stand_in_no_reply(run: Run) -> None:
    async def main() -> None:
        location = f"Location: /next?a=1&key={SECRET}".encode()
        async with serving(reply(b"", location, status=b"302 Found")) as server:
            async with speaking_by({f"http://a.test:{server.port}": {"query": {"key": SECRET}}}) as module:
                answer = replied(await module.fetch(to(server, "/x?a=1#f")))
            assert server.requests[0].startswith(f"GET /x?a=1&key={SECRET} HTTP/1.1\r\n".encode())
            assert answer.url == f"http://a.test:{server.port}/x?a=1#f"
            assert answer.request_head.startswith(b"GET /x?a=1&key=[redacted] HTTP/1.1\r\n")
            assert answer.header("location") == "/next?a=1"
            assert SECRET not in repr(answer)

    run(main())


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_digest_answers_are_those_of_the_rfc(algorithm: str, response: str) -> None:
    challenge = Challenge({  # RFC 7616, section 3.9.1
        "realm": "http-auth@example.org", "qop": "auth, auth-int", "algorithm": algorithm,
        "nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
        "opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
    })  # fmt: skip
    cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    sent = authorization(challenge, "/dir/index.html", ("Mufasa", "Circle of Life"), "GET", cnonce)
    assert f'response="{response}"' in sent
    assert f"algorithm={algorithm}, " in sent
    assert ", qop=auth, nc=00000001, " in sent


def test_the_strongest_challenge_that_can_be_answered_is() -> None:
    offers = ['Basic realm="x", Digest realm="a, b", nonce="1", algorithm=MD5, Digest nonce="2", algorithm=SHA-256']
    found = best_challenge([*offers, 'Digest nonce="3", algorithm=FUTURE', 'Digest nonce="4", qop="auth-int"'])
    assert found is not None
    assert (found.nonce, found.algorithm) == ("2", "SHA-256")
    assert best_challenge(['Basic realm="x"', "Digest"]) is None


def test_no_count_of_a_nonce_is_sent_twice() -> None:
    digests, offered = Digests(), [("WWW-Authenticate", 'Digest realm="r", nonce="n", qop="auth"')]
    answers = []
    for _ in range(2):  # Two requests were under way when the server challenged both.
        assert digests.handle_challenge("http://a.test/", offered)
        answers.append(digests.answer("http://a.test/", "/", ("me", "x")))
    assert ["nc=00000001" in answers[0], "nc=00000002" in answers[1]] == [True, True]


def test_a_nonce_of_replies_that_overtook_each_other_is_no_wrong_password(run: Run) -> None:
    digests, url, login = Digests(), "http://a.test/", ("me", "x")

    def challenged(nonce: int, answer: str = "") -> bool:
        return digests.handle_challenge(url, [("WWW-Authenticate", f'Digest realm="r", nonce="n{nonce}"')], answer)

    async def main() -> None:
        async with digests.turn(url), digests.turn(url):
            assert [challenged(2), challenged(1)] == [True, True]
        async with digests.turn(url):
            assert challenged(3, digests.answer(url, "/", login))
        for newest in (4, 5):
            async with digests.turn(url):
                assert not challenged(newest, digests.answer(url, "/", login))

    run(main())


class OnceOnly:
    """A server that accepts its newest nonce alone, and that once."""

    def __init__(self, *, names_next: bool = False, password: str = SECRET) -> None:
        self.nonce = 0
        self.names_next = names_next
        self.password = password
        self.counted = {200: 0, 401: 0}

    async def answer(self, server: Server, writer: asyncio.StreamWriter, head: bytes) -> bool:
        del server
        text = head.decode()
        uri = text.split(" ")[1]
        sent = re.search(r'nonce="n(\d+)".* response="(\w+)".*cnonce="(\w+)"', text)
        is_good = sent is not None and int(sent[1]) == self.nonce and "nc=00000001" in text
        if is_good and sent is not None:
            challenge = Challenge({"realm": "r", "nonce": f"n{self.nonce}", "qop": "auth"})
            challenge.answers = 1
            expected = authorization(challenge, uri, ("me", self.password), "GET", sent[3])
            is_good = f'response="{sent[2]}"' in expected
        await asyncio.sleep(0.002)
        self.nonce += 1
        self.counted[200 if is_good else 401] += 1
        following = b'Authentication-Info: nextnonce="n%d"' % self.nonce if self.names_next else b"X-Y: z"
        challenged = b'WWW-Authenticate: Digest realm="r", nonce="n%d", qop="auth"' % self.nonce
        writer.write(reply(b"", following) if is_good else reply(b"", challenged, status=b"401 Unauthorized"))
        return True


async def visit_all(module: HttpModule, server: Server, pages: int, attempts: int) -> list[Reply]:
    """Fetch pages, eight at once, as a crawl does: a challenged request goes back to the end of the queue."""
    waiting = deque((f"/in/{i}", 1) for i in range(pages))
    got: list[Reply] = []

    async def work() -> None:
        while waiting:
            path, attempt = waiting.popleft()
            one = replied(await module.fetch(to(server, path)))
            if one.challenged and attempt <= attempts:
                waiting.append((path, attempt + 1))
            else:
                got.append(one)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(8):
            tasks.create_task(work())
    return got


@pytest.mark.parametrize("names_next", [False, True], ids=["no next nonce", "nextnonce"])
def test_a_server_that_takes_its_newest_nonce_once_is_read_by_eight_requests_at_once(
    run: Run, names_next: bool
) -> None:
    once = OnceOnly(names_next=names_next)

    async def main() -> None:
        async with serving(once.answer) as server:
            table = {f"http://a.test:{server.port}/in/": {"digest": {"user": "me", "password": SECRET}}}
            async with speaking_by(table) as module:
                got = await visit_all(module, server, 40, 16)
        assert [one.status for one in got] == [200] * 40
        assert once.counted[401] <= (30 if names_next else 40 + 30)

    run(main())


def test_a_password_that_is_wrong_ends_in_few_requests(run: Run) -> None:
    once = OnceOnly(password="another")

    async def main() -> None:
        async with serving(once.answer) as server:
            table = {f"http://a.test:{server.port}/in/": {"digest": {"user": "me", "password": SECRET}}}
            async with speaking_by(table) as module:
                got = await visit_all(module, server, 16, 16)
        assert [(one.status, one.challenged) for one in got] == [(401, False)] * 16
        assert once.counted[401] <= 16 * 3

    run(main())


def test_a_digest_challenge_is_answered_by_the_next_request(run: Run) -> None:
    challenge = b'WWW-Authenticate: Digest realm="r", nonce="n%d", qop="auth"'

    async def answer(server: Server, writer: asyncio.StreamWriter, head: bytes) -> bool:
        is_good = re.search(rb'Authorization: Digest username="me", .*nonce="n0", uri="/in/x\?y", .*nc=0000000', head)
        refused = reply(b"", challenge % (len(server.requests) - 1), status=b"401 Unauthorized")
        writer.write(reply() if is_good and len(server.requests) < 4 else refused)
        return True

    async def main() -> None:
        async with serving(answer) as server:
            table = {f"http://a.test:{server.port}/in/": {"digest": {"user": "me", "password": SECRET}}}
            async with speaking_by(table) as module:
                got = [replied(await module.fetch(to(server, "/in/x?y"))) for _ in range(4)]
                elsewhere = replied(await module.fetch(to(server, "/")))
            assert [(one.status, one.challenged) for one in got] == [
                (401, True),
                (200, False),
                (200, False),
                (401, True),
            ]
            assert b"nc=00000002" in server.requests[2]
            assert (elsewhere.status, elsewhere.challenged) == (401, False)
            assert b"uthorization" not in server.requests[4]
            assert all(b"Authorization: [redacted]" in one.request_head for one in got[1:])
            assert len(server.requests) == 5, "one request for each fetch"

    run(main())


def test_a_client_certificate_goes_to_its_place_alone(run: Run, tmp_path: Path) -> None:
    ca, mine = trustme.CA(), tmp_path / "me.pem"
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    ca.issue_cert("me@a.test").private_key_and_cert_chain_pem.write_to_path(str(mine))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("a.test", "b.test").configure_cert(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    ca.configure_trust(context)
    shown = []

    async def answer(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        shown.append(bool(writer.get_extra_info("peercert")))
        writer.write(reply())
        return True

    async def main() -> None:
        async with serving(answer, tls=context) as server:
            table = {f"https://a.test:{server.port}/in/": {"certificate": str(mine)}}
            async with speaking_by(table, ca_bundle=str(tmp_path / "ca.pem")) as module:
                for path, host in (("/", "a.test"), ("/in/", "a.test"), ("/", "a.test"), ("/in/", "b.test")):
                    got = replied(await module.fetch(to(server, path, host, "https")))
                    assert got.authenticated == shown[-1]
        assert shown == [False, True, False, False]

    run(main())


@pytest.mark.parametrize(
    ("certificate", "key", "why"),
    [
        ("missing.pem", "", r"cannot read \S+missing\.pem: No such file or directory"),
        ("text.pem", "", r"text\.pem: no PEM that can be read; name PEM files"),
        ("one.pem", "", r"one\.pem: no PEM that can be read"),
        ("one.pem", "missing.key", r"cannot read \S+missing\.key"),
        ("one.pem", "locked.key", r"one\.pem and \S+locked\.key: the key has a passphrase; .* without passphrase"),
        ("one.pem", "two.key", r"one\.pem and \S+two\.key: the key is not that of the certificate"),
    ],
)
def test_a_client_certificate_that_cannot_be_used_is_refused(
    tmp_path: Path, certificate: str, key: str, why: str
) -> None:
    (tmp_path / "text.pem").write_text("nothing here")
    for name in ("one", "two"):
        issued = trustme.CA().issue_cert(f"{name}@a.test")
        issued.cert_chain_pems[0].write_to_path(str(tmp_path / f"{name}.pem"))
        issued.private_key_pem.write_to_path(str(tmp_path / f"{name}.key"))
    key_of_one = load_pem_private_key((tmp_path / "one.key").read_bytes(), None)
    locked = key_of_one.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (tmp_path / "locked.key").write_bytes(locked)
    table = {"certificate": str(tmp_path / certificate), "certificate_key": str(tmp_path / key) if key else ""}
    with pytest.raises(ConfigError, match=r'request."a\.test": certificate: .*' + why):
        rules({"a.test": table})


def test_the_key_of_no_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'^request."a\.test": certificate_key has no certificate; name the file'):
        rules({"a.test": {"certificate_key": str(tmp_path / "one.key")}})


@asynccontextmanager
async def socks(refuses: bool = False) -> AsyncIterator[tuple[int, list[tuple[str, int]]]]:
    """Serve a SOCKS5 proxy (RFC 1928) that takes notes of where it is sent."""
    asked: list[tuple[str, int]] = []
    open_writers: list[asyncio.StreamWriter] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.append(writer)
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\x05\x00")
        *_, kind = await reader.readexactly(4)
        if kind == 1:
            host = socket.inet_ntoa(await reader.readexactly(4))
        else:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2))
        asked.append((host, port))
        writer.write(b"\x05" + (b"\x02" if refuses else b"\x00") + b"\x00\x01" + bytes(6))
        if refuses:
            writer.close()
            return
        there_reader, there = await asyncio.open_connection("127.0.0.1", port)
        open_writers.append(there)
        async with asyncio.TaskGroup() as group:
            group.create_task(pipe(reader, there))
            group.create_task(pipe(there_reader, writer))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1], asked
    finally:
        listener.close()
        for writer in open_writers:
            writer.close()


@pytest.mark.parametrize(("resolves", "host"), [(False, "127.0.0.1"), (True, "a.test")])
@pytest.mark.promise("What is fetched", "Through a proxy, too, requests go to the address that the guard has checked.")
def test_a_socks_proxy_is_sent_to_the_address_that_was_checked(run: Run, resolves: bool, host: str) -> None:
    async def main() -> None:
        async with serving(reply()) as server, socks() as (port, asked):
            table = {f"http://a.test:{server.port}": {"proxy": f"socks5://127.0.0.1:{port}"}}
            async with speaking_by(table, proxy_resolves=resolves) as module:
                assert replied(await module.fetch(to(server))).body == b"hello"
                assert replied(await module.fetch(to(server, host="b.test"))).body == b"hello"
            assert asked == [(host, server.port)], "the other host's request went without it"

    run(main())


def test_requests_with_a_client_certificate_leave_names_to_the_proxy_too(run: Run) -> None:
    async def main() -> None:
        async with speaking(proxy="socks5://127.0.0.1:1", proxy_resolves=True) as module:
            transfers = module._connections_of(Route(certificate="client.pem"))
            assert transfers.take(0.0).proxy == "socks5h://127.0.0.1:1"
            await transfers.close()

    run(main())


@pytest.mark.parametrize("password", ["p", "%40%C3%BC%20", "!$&()*+,-.;=_~"])
def test_the_password_of_a_proxy_can_be_redacted_where_it_is_accepted(password: str) -> None:
    proxy = f"http://user:{password}@proxy.test:3128"
    assert redact_user_info(proxy_of(proxy, "fetch.proxy")) == "http://[redacted]@proxy.test:3128"


@pytest.mark.parametrize("proxy", ["proxy", "proxy.test", "10.0.0.1", "[::1]"])
def test_a_proxy_without_scheme_and_port_is_kept_in_earlier_crawls_alone(proxy: str) -> None:
    """libcurl takes port 1080 for it, which few mean."""
    assert proxy_of(proxy, "fetch.proxy") == proxy
    with pytest.raises(ConfigError, match=r"^fetch\.proxy is not the URL of a proxy; write http://HOST:PORT"):
        proxy_of(proxy, "fetch.proxy", is_new=True)
    for whole in (f"{proxy}:3128", f"http://{proxy}"):
        assert proxy_of(whole, "fetch.proxy", is_new=True) == whole


@pytest.mark.parametrize("password", [*"@/?#'\" ü\n", "%00", "%0a", "%7F", "%zz", "%"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_password_of_a_proxy_that_could_not_be_redacted_is_refused_unseen(password: str, scheme: str) -> None:
    with pytest.raises(ConfigError, match=r"^fetch\.proxy is not the URL of a proxy") as refused:
        proxy_of(f"{scheme}user:se{password}cret@proxy.test:3128", "fetch.proxy")
    assert "cret" not in str(refused.value)


@asynccontextmanager
async def tunnels(tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve an HTTP proxy that answers CONNECT and passes the bytes on."""
    tasks: set[asyncio.Task[None]] = set()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        port = int((await reader.readuntil(b"\r\n\r\n")).split()[1].rpartition(b":")[2])
        writer.write(b"HTTP/1.1 200 Connection established\r\nContent-Type: text/plain\r\nX-By: proxy\r\n\r\n")
        there_reader, there = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.TaskGroup() as group:
            group.create_task(pipe(reader, there))
            group.create_task(pipe(there_reader, writer))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        yield listener.sockets[0].getsockname()[1]
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        listener.close()


@pytest.mark.parametrize("over_tls", [False, True])
def test_a_reply_through_a_tunnel_is_the_servers_not_the_proxys(run: Run, tmp_path: Path, over_tls: bool) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").configure_cert(context)

    async def main() -> None:
        missing = reply(b"gone", b"Content-Type: text/html", status=b"404 Not Found")
        async with serving(missing) as server, tunnels(context if over_tls else None) as port:
            proxy = f"{'https' if over_tls else 'http'}://localhost:{port}"
            table = {f"http://a.test:{server.port}": {"proxy": proxy}}
            async with speaking_by(table, proxy_resolves=False, ca_bundle=str(tmp_path / "ca.pem")) as module:
                answers = [replied(await module.fetch(to(server))) for _ in range(2)]
            for answer in answers:
                assert (answer.status, answer.media_type, answer.body) == (404, "text/html", b"gone")
                assert answer.header("x-by") is None
            assert server.connections == 1

    run(main())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_tls_that_fails_behind_a_proxy_over_tls_is_the_sites(run: Run, tmp_path: Path, host: str) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").configure_cert(context)

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(plain, "127.0.0.1")
        at = server.sockets[0].getsockname()[1]
        async with server, tunnels(context) as port:
            given = {"proxy": f"https://{host}:{port}", "ca_bundle": str(tmp_path / "ca.pem")}
            async with speaking(proxy_resolves=False, **given) as module:
                failure = failed(await module.fetch(Request(url=f"https://a.test:{at}/", ip="127.0.0.1", port=at)))
            # The proxy's certificate is that of `localhost`: by its address it is the proxy whose TLS fails.
            assert (failure.outcome, failure.by_proxy) == ("tls_error", host != "localhost"), failure.error

    run(main())


def test_a_proxy_that_refuses_is_a_failure_and_nothing_goes_around_it(run: Run) -> None:
    async def main() -> None:
        async with serving(reply()) as server, socks(refuses=True) as (port, asked):
            table = {f"http://a.test:{server.port}": {"proxy": f"socks5h://127.0.0.1:{port}"}}
            async with speaking_by(table, proxy_resolves=False) as module:
                assert failed(await module.fetch(to(server))).outcome == "connect_error"
            assert asked == [("127.0.0.1", server.port)]
            assert server.requests == []

    run(main())


@pytest.mark.parametrize("general", ["", "http://127.0.0.1:2"])
def test_a_proxy_that_fails_says_whether_requests_get_through_on_another_route(run: Run, general: str) -> None:
    async def main() -> None:
        async with serving(reply()) as server:
            table = {f"http://a.test:{server.port}": {"proxy": "http://127.0.0.1:1"}}
            async with speaking_by(table, proxy=general) as module:
                first = failed(await module.fetch(to(server)))
                await module.fetch(to(server, host="b.test"))
                second = failed(await module.fetch(to(server)))
            assert [(one.by_proxy, one.others_pass) for one in (first, second)] == [(True, False), (True, not general)]

    run(main())
