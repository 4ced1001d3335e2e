from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from email.utils import parsedate_to_datetime

import pytest

from gossamer.lab.simweb.behaviors.replies import HANGING
from gossamer.lab.simweb.hosts import WebHost
from gossamer.lab.simweb.judge import Promise, judge
from gossamer.lab.simweb.process import SimwebProcess


@contextmanager
def client(process: SimwebProcess, host: WebHost, timeout_s: float = 60) -> Iterator[socket.socket]:
    with closing(socket.create_connection((host.address, process.port), timeout=timeout_s)) as one:
        yield one


def ask(host: WebHost, path: str, *lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/{version}", f"Host: {host.name}:1", *lines, "", "")).encode()


def raw(process: SimwebProcess, host: WebHost, path: str, *lines: str, method: str = "GET") -> bytes:
    with client(process, host) as one:
        one.sendall(ask(host, path, "Connection: close", *lines, method=method))
        return b"".join(iter(lambda: one.recv(65_536), b""))


def get(process: SimwebProcess, host: WebHost, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    with closing(http.client.HTTPConnection(host.address, process.port, timeout=60)) as connection:
        connection.request("GET", path, headers={"Host": host.name, **headers})
        reply = connection.getresponse()
        return reply, reply.read()


def having(process: SimwebProcess, behavior: str) -> WebHost:
    return next(host for host in process.web.hosts if behavior in host.behaviors)


def hanging(process: SimwebProcess, manner: str) -> tuple[WebHost, str]:
    hosts = [host for host in process.web.hosts if "hangs" in host.behaviors]
    return hosts[[kind for kind, _ in HANGING].index(manner)], f"/hangs/{manner}"  # type: ignore[arg-type]


def test_bytes_are_those_that_the_web_makes(running: SimwebProcess) -> None:
    for host in running.web.hosts[:8]:
        for path in ("/", "/about/p1.html", "/nothing/here"):
            answer = running.web.page(host.name, path)
            reply, body = get(running, host, path)
            assert (reply.status, body) == (answer.status, answer.body)


def test_a_connection_is_kept_and_requests_may_queue_on_it(running: SimwebProcess) -> None:
    host = running.web.hosts[0]
    with client(running, host) as one:
        one.sendall(ask(host, "/") + ask(host, "/nothing/1") + ask(host, "/", "Connection: close", method="HEAD"))
        data = b"".join(iter(lambda: one.recv(65_536), b""))
    assert [data.count(line) for line in (b"HTTP/1.1 200", b"HTTP/1.1 404", b"Connection: close")] == [2, 1, 1]
    assert data.endswith(b"\r\n\r\n")


def test_a_request_may_come_in_pieces(running: SimwebProcess) -> None:
    host = running.web.hosts[0]
    with client(running, host) as one:
        for byte in ask(host, "/", "Connection: close"):
            one.sendall(bytes((byte,)))
        assert one.recv(12) == b"HTTP/1.1 200"


def test_http_1_0_closes_and_absolute_targets_name_their_host(running: SimwebProcess) -> None:
    host, other = running.web.hosts[0], running.web.hosts[1]
    with client(running, host) as one:
        one.sendall(ask(other, f"http://{host.name}/", version="1.0"))
        data = b"".join(iter(lambda: one.recv(65_536), b""))
    assert data.endswith(running.web.page(host.name, "/").body)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 421),
        (b"GET / HTTP/1.1\r\nHost: nobody.test\r\n\r\n", 421),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 413),
        (b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, 431),
    ],
)
def test_what_is_no_request_for_us(running: SimwebProcess, request_bytes: bytes, status: int) -> None:
    with client(running, running.web.hosts[0]) as one:
        one.sendall(request_bytes)
        assert int(one.recv(65_536).split()[1]) == status


def test_gzip_is_for_those_who_take_it(running: SimwebProcess) -> None:
    host = next(host for host in running.web.hosts if host.compressed)
    assert get(running, host, "/")[0].headers["Content-Encoding"] is None
    reply, body = get(running, host, "/", **{"Accept-Encoding": "br, gzip;q=0.5"})
    assert reply.headers["Content-Encoding"] == "gzip"
    assert body[:2] == b"\x1f\x8b"


def test_hangs_are_as_declared(running: SimwebProcess) -> None:
    host, path = hanging(running, "stall")
    with client(running, host, timeout_s=0.3) as one:
        one.sendall(ask(host, path))
        with pytest.raises(TimeoutError):
            one.recv(1)
    host, path = hanging(running, "drip")
    with client(running, host) as one:
        one.sendall(ask(host, path))
        assert b"Content-Length: 100000000" in one.recv(1_000)
        assert set(b"".join(one.recv(1_000) for _ in range(3))) == set(b".")
    data = raw(running, *hanging(running, "cut"))
    assert len(data.partition(b"\r\n\r\n")[2]) * 2 == int(data.partition(b"Content-Length: ")[2].split()[0])
    assert raw(running, *hanging(running, "empty")) == b""
    assert not raw(running, *hanging(running, "garbage")).startswith(b"HTTP")
    with pytest.raises(ConnectionResetError):
        raw(running, *hanging(running, "reset"))


def test_framings_and_sizes(running: SimwebProcess) -> None:
    host = having(running, "bodies")
    body = running.web.page(host.name, "/bodies/chunked").body
    assert b"Transfer-Encoding: chunked" in raw(running, host, "/bodies/chunked")
    assert raw(running, host, "/bodies/chunked", method="HEAD").endswith(b"\r\n\r\n")
    assert get(running, host, "/bodies/chunked")[1] == body
    assert b"Content-Length" not in raw(running, host, "/bodies/until-close")
    assert len(get(running, host, "/bodies/oversized")[1]) == running.web.options.oversized_bytes


def test_pages_heal_and_ask_for_a_pause(fresh: SimwebProcess) -> None:
    host = having(fresh, "errors")
    pause_s = fresh.web.options.retry_after_s
    assert [get(fresh, host, "/errors/500-once")[0].status for _ in range(3)] == [500, 200, 200]
    assert [get(fresh, host, "/errors/500")[0].status for _ in range(2)] == [500, 500]
    reply, _ = get(fresh, host, "/errors/503-seconds")
    assert (reply.status, reply.headers["Retry-After"]) == (503, str(pause_s))
    before = time.time()
    reply, _ = get(fresh, host, "/errors/503-date")
    asked_for = parsedate_to_datetime(reply.headers["Retry-After"]).timestamp()
    assert before + pause_s - 1 <= asked_for <= time.time() + pause_s + 1
    fresh.stop()
    asked = [one.retry_at for one in fresh.requests() if one.retry_at]
    assert len(asked) == 2
    assert asked[1] == asked_for


def test_the_log_holds_every_request_with_its_times(fresh: SimwebProcess) -> None:
    host = fresh.web.hosts[0]
    before = time.time()
    with client(fresh, host) as one:
        for path in ("/robots.txt", "/", "/nothing"):
            one.sendall(ask(host, path, "User-Agent: me/1"))
            one.recv(400_000)
    stalled, path = hanging(fresh, "stall")
    with client(fresh, stalled) as left, client(fresh, host) as silent:
        left.sendall(ask(stalled, path))
        get(fresh, host, "/nothing/else")
        fresh.stop()
        assert silent.recv(1) == b""
    log = fresh.requests()
    assert [(one.path, one.status, one.nth, one.whole) for one in log[:4]] == [
        ("/robots.txt", 200, 1, True), ("/", 200, 2, True), ("/nothing", 404, 3, True), ("/nothing/else", 404, 1, True),
    ]  # fmt: skip
    assert {(one.path, one.status, one.nth, one.whole) for one in log[4:]} == {
        (path, 0, 1, False), ("-", 0, 0, False),
    }  # fmt: skip
    assert {one.agent for one in log[:3]} == {"me/1"}
    assert {one.address for one in log[:3]} == {host.address}
    for one in log:
        assert before - 1 < one.opened_at <= one.started_at <= one.ended_at < time.time() + 1
    ends = [one.ended_at for one in log]
    assert ends == sorted(ends)


def test_a_sequential_client_is_clean_in_the_judges_eyes(fresh: SimwebProcess) -> None:
    hosts = [host for host in fresh.web.hosts if host.robots in ("robots_404", "robots_allow") and not host.slow]
    for host in hosts:
        get(fresh, host, "/robots.txt")
        get(fresh, host, "/")
    fresh.stop()
    log = fresh.requests()
    assert len(log) == 2 * len(hosts)
    none = Promise(delay_s_min=0, factor=0, delay_s_max=0)
    assert judge(log, none, fresh.web) == []
    assert {violation.kind for violation in judge(log, Promise(delay_s_min=60), fresh.web)} == {"gap_host"}


def test_slow_hosts_answer_late(fresh: SimwebProcess) -> None:
    host = next(host for host in fresh.web.hosts if host.slow)
    get(fresh, host, "/")
    fresh.stop()
    (one,) = fresh.requests()
    assert one.ended_at - one.started_at >= fresh.web.page(host.name, "/").delay_s * 0.9
