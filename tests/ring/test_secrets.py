"""Credentials go to the origin that they are for, and no output shows them."""

from __future__ import annotations

import gzip
import json
import re
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.config import configure, effective_toml
from gossamer.config.gather import reopen, reopen_text
from gossamer.config.secret import holds_secrets, redact
from gossamer.config.sections import Config, key_of, keys, sections
from gossamer.model.errors import ConfigError
from gossamer.options import keys_of
from tests.answering import Answering, serving
from tests.commands import run
from tests.ring.crawls import OWN, Crawled, command_line, crawl, until

BEARER, COOKIE, PASSWORD, INLINE = "b3arer-XYZZY", "c00kie-PLUGH", "pr0xy-FROTZ", "inl1ne-GNUSTO"
SECRETS = (BEARER, COOKIE, PASSWORD, INLINE)


class Site(ThreadingHTTPServer):
    """A site whose pages link to each other and to the other site, and whose requests are kept."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.port = self.server_address[1]
        self.links: list[str] = []
        self.asked: list[tuple[str, dict[str, str]]] = []


class Page(Answering):
    def get(self) -> None:
        site = self.server
        assert isinstance(site, Site)
        site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if self.path == "/robots.txt":
            self.answer(404)
        elif self.path == "/away":
            self.answer(302, b"", ("Location", site.links[0]))
        else:
            self.answer(200, "".join(f'<a href="{link}">x</a>' for link in site.links).encode())


@contextmanager
def sites() -> Iterator[tuple[Site, Site]]:
    """Serve two sites that link to each other, under two names."""
    ours, theirs = Site(), Site()
    here, there = f"http://ours.test:{ours.port}", f"http://theirs.test:{theirs.port}"
    ours.links = [
        f"{there}/landing",
        *(f"{here}/{n}" for n in range(8)),
        f"{here}/away",
        *(f"{there}/{n}" for n in range(8)),
    ]
    theirs.links = [f"{here}/back", *(f"{there}/{n}" for n in range(8))]
    with serving(ours, theirs):
        yield ours, theirs


@pytest.fixture
def names(tmp_path: Path) -> str:
    file = tmp_path / "hosts"
    file.write_text("127.0.0.1 ours.test theirs.test\n")
    return str(file)


def contents(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file of a crawl, compressed ones unpacked too, but for the one that only its owner can read."""
    for path in sorted(directory.rglob("*")):
        if not path.is_file() or stat.S_IMODE(path.stat().st_mode) == 0o600:
            continue
        data = path.read_bytes()
        yield str(path), data
        if path.suffix == ".gz":
            yield f"{path} unpacked", gzip.decompress(data)
        elif path.suffix == ".parquet":
            yield f"{path} as rows", json.dumps(pq.read_table(path).to_pylist(), default=str).encode()


def shown_in(directory: Path) -> list[str]:
    return [place for place, data in contents(directory) for secret in SECRETS if secret.encode() in data]


@pytest.mark.promise("Operation", "Credentials reach the origin that they are for, and no other.")
def test_headers_of_an_origin_go_there_and_nowhere_else(
    tmp_path: Path, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_COOKIE", COOKIE)
    with sites() as (ours, theirs):
        origin = f"http://ours.test:{ours.port}"
        crawled = crawl(
            (f"{origin}/",), tmp_path / "crawl", *OWN, f"resolve.hosts_file={names}", "crawl.concurrency=4",
            f'request.{origin}={{headers = {{Cookie = "env:SITE_COOKIE", X-Tenant = "{INLINE}"}}}}',
            'fetch.headers={"X-Everywhere" = "yes"}', scope="any",
        )  # fmt: skip
        assert crawled.end == "finished"
        assert {path for path, _ in ours.asked} >= {"/robots.txt", "/", "/7", "/away", "/back"}
        assert {path for path, _ in theirs.asked} >= {"/robots.txt", "/landing", "/7"}
        assert {(sent.get("cookie"), sent.get("x-tenant")) for _, sent in ours.asked} == {(COOKIE, INLINE)}
        assert {(sent.get("cookie"), sent.get("x-tenant")) for _, sent in theirs.asked} == {(None, None)}
        assert {sent.get("x-everywhere") for _, sent in [*ours.asked, *theirs.asked]} == {"yes"}
    assert not shown_in(tmp_path / "crawl")
    assert stat.S_IMODE((tmp_path / "crawl/crawl.toml").stat().st_mode) == 0o600
    text = (tmp_path / "crawl/crawl.toml").read_text()
    assert COOKIE not in text, "a reference stays one"
    assert INLINE in text, "what resume needs"
    requests = b"".join(gzip.decompress(file.read_bytes()) for file in (tmp_path / "crawl/warc").glob("*.gz"))
    assert b"Cookie: [redacted]\r\n" in requests
    assert b"X-Tenant: [redacted]\r\n" in requests


def test_a_credential_for_all_requests_goes_to_the_only_seeds_origin(tmp_path: Path, names: str) -> None:
    with sites() as (ours, theirs):
        crawled = crawl(
            (f"http://me:{PASSWORD}@ours.test:{ours.port}/",), tmp_path / "crawl", *OWN, f"resolve.hosts_file={names}",
            f'fetch.headers={{Authorization = "Bearer {BEARER}"}}', scope="any",
        )  # fmt: skip
        assert crawled.end == "finished"
        assert {sent.get("authorization") for _, sent in ours.asked} == {f"Bearer {BEARER}"}
        assert {sent.get("authorization") for _, sent in theirs.asked} == {None}
        assert PASSWORD not in (tmp_path / "crawl/crawl.toml").read_text()
        again = crawl((), tmp_path / "crawl", resuming=True)
        assert again.end == "finished"
    assert not shown_in(tmp_path / "crawl")


def test_of_several_seeds_none_is_guessed(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"fetch.headers: Authorization is a credential.*request.*http://a.test.* headers = "
    ):
        crawl(
            ("http://a.test/", "http://b.test/"),
            tmp_path / "crawl",
            'fetch.headers={Authorization = "x"}',
            contact="a@b.c",
        )


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("env:NO_SUCH_VARIABLE", "the environment variable NO_SUCH_VARIABLE is not set"),
        ("file:/no/such/file", "cannot read /no/such/file"),
    ],
)
def test_a_reference_that_names_nothing_is_one_line(tmp_path: Path, value: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=f"fetch.proxy: {complaint}"):
        crawl(("http://a.test/",), tmp_path / "crawl", f"fetch.proxy={value}", contact="a@b.c")


def test_a_reference_to_a_file_is_relative_to_the_file_that_has_it(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        '[request."http://a.test"]\nheaders = {Cookie = "file:cookie"}\ncertificate = "me.pem"\n'
    )
    config = configure(tmp_path / "a.toml")
    [(where, rule)] = config.request.rules.items()
    assert (where, rule.headers) == ("http://a.test", {"Cookie": f"file:{tmp_path}/cookie"})
    assert rule.certificate == f"{tmp_path}/me.pem"
    assert not holds_secrets(config)


@contextmanager
def proxy() -> Iterator[tuple[int, list[bytes]]]:
    """Serve a proxy that takes notes of each request's head and answers 200 to CONNECT and all else."""
    heads: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(peer,), daemon=True).start()

    def answer(peer: socket.socket) -> None:
        data = b""
        with peer:
            while some := peer.recv(65_536):
                data += some
                while b"\r\n\r\n" in data:
                    head, _, data = data.partition(b"\r\n\r\n")
                    heads.append(head)
                    body = b"" if head.startswith(b"CONNECT") else b"<p>by the proxy</p>"
                    length = b"" if head.startswith(b"CONNECT") else b"Content-Length: %d\r\n" % len(body)
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + length + b"\r\n" + body)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1], heads
    finally:
        listener.close()


def test_through_a_proxy_requests_go_to_the_address_that_was_checked(tmp_path: Path, names: str) -> None:
    with proxy() as (port, heads):
        crawled = crawl(
            ("http://ours.test/",), tmp_path / "crawl", *OWN, f"resolve.hosts_file={names}", "robots.obey=false",
            f"fetch.proxy=http://me:{PASSWORD}@127.0.0.1:{port}", "fetch.proxy_resolves=false",
            'fetch.headers={Authorization = "Bearer ' + BEARER + '"}',
        )  # fmt: skip
    assert crawled.outcomes == {"http://ours.test/": "fetched"}
    tunnel, request = heads
    assert tunnel.startswith(b"CONNECT 127.0.0.1:80 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic " in tunnel
    assert BEARER.encode() not in tunnel, "what is for the server is not for the proxy"
    assert request.startswith(b"GET / HTTP/1.1\r\nHost: ours.test\r\n")
    assert b"Proxy-Authorization" not in request
    assert not shown_in(tmp_path / "crawl")


@pytest.mark.heavy
@pytest.mark.promise("Operation", "No output shows credentials.")
def test_commands_and_the_process_list_show_no_secret(tmp_path: Path, names: str) -> None:
    with sites() as (ours, _), command_line(tmp_path / "crawl") as running:
        secret = (
            f'fetch.headers={{Authorization = "Bearer {BEARER}"}}',
            f'request.http://theirs.test/={{headers = {{X-Tenant = "{INLINE}"}}}}',
            f"fetch.proxy=http://me:{PASSWORD}@127.0.0.1:9",
            "crawl.patience_s=2",
        )
        running.crawl((f"http://ours.test:{ours.port}/",), *OWN, f"resolve.hosts_file={names}", *secret)
        process = running.process
        assert process is not None
        until((tmp_path / "crawl/crawl.toml").exists)
        family = [process.pid, running.child]
        listed = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in family if pid)
        assert listed.count(b"gossamer") >= 1
        assert not [name for name in SECRETS if name.encode() in listed]
        running.wait()
    for words in (["config", "show"], ["status", "--json"], ["report", "--json"], ["why"]):
        words = [*words, str(tmp_path / "crawl")] + ([f"http://ours.test:{ours.port}/"] if words == ["why"] else [])
        status, out, err = run(*words)
        assert status == 0, err
        assert not [name for name in SECRETS if name in out + err]
    assert not shown_in(tmp_path / "crawl")
    assert PASSWORD not in running.errors.read_text()


@pytest.mark.promise("Operation", "No output shows credentials.")
@pytest.mark.parametrize("mistake", ["request.http://a.test", "request", "proxy"])
def test_a_mistake_about_a_secret_does_not_repeat_it(mistake: str) -> None:
    with pytest.raises(ConfigError) as found:
        configure(sets=[f'{mistake}="{INLINE}"'])
    assert INLINE not in str(found.value)


SUSPICIOUS = re.compile(r"header|token|secret|passw|credential|proxy|login|cookie|auth|key", re.IGNORECASE)
HARMLESS = {
    "archive.store_secrets_file": "a path",
    "fetch.logins_file": "a path",
    "identity.key_file": "a path",
    "robots.product_token": "the name by which robots.txt files address the crawler",
    "websub.secret": "when hubs are given one: https or always",
}
"""Keys whose names suggest a secret and whose values are none."""


def test_every_key_that_may_hold_a_secret_is_marked() -> None:
    suspicious = {
        f"{section}.{key}"
        for section, model in sections().items()
        for key, field in keys_of(model).items()
        if SUSPICIOUS.search(key) and field.type in (str, dict[str, str], dict[str, dict[str, str]])
    }
    assert all(key_of(key).secret for key in suspicious - HARMLESS.keys())
    assert HARMLESS.keys() <= set(keys())


def test_what_is_shown_of_a_secret() -> None:
    headers = {"Authorization": "Bearer x", "Accept": "y", "Cookie": "env:NAME"}
    assert redact("fetch.headers", headers) == {"Authorization": "[redacted]", "Accept": "y", "Cookie": "env:NAME"}
    assert redact("fetch.proxy", "http://u:p@h:1") == "http://[redacted]@h:1"
    assert redact("scope.exclude", ("http://u:p@h/",)) == ("http://[redacted]@h/",)
    assert redact("archive.store", "s3://bucket/a@b") == "s3://bucket/a@b"
    assert redact("archive.store_options", {"region": "r", "secret_access_key": "s"}) == {
        "region": "r",
        "secret_access_key": "[redacted]",
    }
    assert not holds_secrets(Config())


def test_what_is_shown_of_rules_and_logins() -> None:
    rule = (
        'headers = {X-Own = "a", User-Agent = "gossamer b", Cookie = "env:C"}, basic = {user = "me", password = "d"}, '
        'query = {k = "e"}, certificate = "/f", proxy = "socks5://g:h@i:1"'
    )
    login = 'url = "http://a.test/l", fields = {name = "j", password = "env:K"}, token = "t"'
    config = configure(sets=[f"request.http://a.test/={{{rule}}}", f"login.app={{{login}}}"])
    assert redact("request.http://a.test/", config.value("request.http://a.test/")) == {
        "headers": {"X-Own": "[redacted]", "User-Agent": "gossamer b", "Cookie": "env:C"},
        "basic": {"user": "me", "password": "[redacted]"},
        "query": {"k": "[redacted]"},
        "certificate": "/f",
        "proxy": "socks5://[redacted]@i:1",
    }
    shown = {"name": "[redacted]", "password": "env:K"}
    assert redact("login.app", config.value("login.app")) == {"url": "http://a.test/l", "fields": shown, "token": "t"}
    assert holds_secrets(config)
    assert reopen_text(effective_toml(config), "crawl.toml").request == config.request
    references = configure(sets=['request.http://a.test/={bearer = "env:T"}'])
    assert not holds_secrets(references)


def test_an_effective_configuration_keeps_what_resume_needs(tmp_path: Path, names: str) -> None:
    with sites() as (ours, _):
        kept: Crawled = crawl(
            (f"http://ours.test:{ours.port}/",), tmp_path / "crawl", *OWN, f"resolve.hosts_file={names}",
            f'fetch.headers={{Authorization = "Bearer {BEARER}"}}',
        )  # fmt: skip
    assert reopen(kept.directory / "crawl.toml").fetch.headers == {"Authorization": f"Bearer {BEARER}"}
