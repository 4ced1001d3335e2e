"""Listed requests: each is sent once with its method and body, archived whole, and not repeated after a crash."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.features.requests import read_requests
from gossamer.model.errors import ConfigError
from gossamer.url.name import Namer
from tests.answering import Answering
from tests.ring.crawls import OWN, command_line, crawl, rows, until


class Api(ThreadingHTTPServer):
    """Answers each request with what it was sent. It may refuse, redirect or keep one waiting by its path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.root = f"http://127.0.0.1:{self.server_address[1]}"
        self.sent: list[tuple[str, str, bytes, str | None]] = []
        self.go_on = threading.Event()

    def of(self, path: str) -> list[tuple[str, bytes]]:
        return [(method, body) for method, at, body, _ in self.sent if at == path]


class Answer(Answering):
    def get(self) -> None:
        api = self.server
        assert isinstance(api, Api)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        api.sent.append((self.command, self.path, body, self.headers["Content-Type"]))
        if self.path == "/robots.txt":
            self.answer(200, b"User-agent: *\nDisallow: /closed$\n", media_type="text/plain")
        elif self.path == "/slow":
            api.go_on.wait(60)
            self.answer(200, b"<p>slow")
        elif self.path == "/busy":
            self.answer(503)
        elif self.path.startswith("/to"):
            self.answer(int(self.path[4:]), b"", ("Location", "/landing"))
        else:
            self.answer(200, f"<title>{self.command} {len(body)}</title><a href=/next>x</a>".encode())


for method in ("POST", "PUT", "QUERY"):
    setattr(Answer, f"do_{method}", Answer.get)


@contextmanager
def api() -> Iterator[Api]:
    with Api() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.go_on.set()
        server.shutdown()
        thread.join()


def write(directory: Path, *lines: dict[str, object]) -> str:
    file = directory / "requests.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"seeds.requests_file={file}"


def test_each_request_is_sent_once_and_archived_whole(tmp_path: Path) -> None:
    with api() as server:
        query = {"url": f"{server.root}/graphql", "method": "POST", "body": {"query": "{ pages }"}}
        requests = write(
            tmp_path, query, {**query, "body": {"query": "{ more }"}}, query,
            {"url": f"{server.root}/graphql"},
            {"url": f"{server.root}/form", "method": "POST", "body": "a=1&b=%26", "headers": {"X-Own": "yes"}},
            {"url": f"{server.root}/closed", "method": "POST", "body": "x"},
            {"url": f"{server.root}/empty", "method": "PUT"},
        )  # fmt: skip
        done = crawl((), tmp_path / "crawl", *OWN, requests)
        assert done.end == "finished", done.critical()
    json_type, form_type = "application/json", "application/x-www-form-urlencoded"
    assert sorted((one for one in server.sent if one[0] != "GET"), key=str) == [
        ("POST", "/form", b"a=1&b=%26", form_type),
        ("POST", "/graphql", b'{"query":"{ more }"}', json_type),
        ("POST", "/graphql", b'{"query":"{ pages }"}', json_type),
        ("PUT", "/empty", b"", None),
    ]
    assert server.of("/graphql").count(("GET", b"")) == 1
    assert server.of("/next") == [("GET", b"")], "links of answers are followed"
    found = {str(row["url"]): row for row in done.rows}
    assert f"{server.root}/graphql" in found
    assert len([url for url in found if url.startswith(f"{server.root}/graphql#request=POST:")]) == 2
    assert [row["outcome"] for url, row in found.items() if "/closed" in url] == ["robots_denied"]
    unpacked = b"".join(gzip.decompress(file.read_bytes()) for file in (tmp_path / "crawl/warc").glob("*.gz"))
    assert b'\r\nContent-Length: 20\r\n\r\n{"query":"{ more }"}\r\n\r\nWARC/1.1' in unpacked
    assert unpacked.count(f"WARC-Target-URI: {server.root}/graphql\r\n".encode()) == 9, "three visits of three records"
    keys = [line.split(b" ")[0] for line in (tmp_path / "crawl/index.cdxj").read_bytes().splitlines()]
    assert sum(key.endswith(b"/graphql") for key in keys) == 1, "answers to other requests are not replayed for a GET"
    assert sum(b"/graphql?__wb_method=post&__wb_post_data=" in key for key in keys) == 2
    assert b"#request=" not in unpacked.replace(b"via: ", b"").split(b"configuration:")[0]


@pytest.mark.heavy
@pytest.mark.promise(
    "Crash safety", "A request that is not idempotent is sent at most once, also after crashes and failures."
)
@pytest.mark.parametrize(("idempotent", "times", "end"), [(False, 1, "not_repeated"), (True, 2, "fetched")])
def test_a_request_that_was_sent_is_not_repeated_after_a_crash(
    tmp_path: Path, idempotent: bool, times: int, end: str
) -> None:
    with api() as server, command_line(tmp_path / "crawl") as running:
        line = {"url": f"{server.root}/slow", "method": "POST", "body": "order=1", "idempotent": idempotent}
        running.crawl((f"{server.root}/page",), *OWN, "fetch.request_s_max=30.0", write(tmp_path, line))
        until(lambda: server.of("/slow"))
        running.until_commit()
        running.kill_child()
        server.go_on.set()
        assert running.wait() == 0
        assert server.of("/slow") == [("POST", b"order=1")] * times
    found = [row for row in rows(tmp_path / "crawl/pages") if "/slow" in str(row["url"])]
    assert [row["outcome"] for row in found] == [end]


def test_failures_and_redirects_do_not_repeat_it(tmp_path: Path) -> None:
    with api() as server:
        paths = ["/busy", "/to/303", "/to/307"]
        requests = write(tmp_path, *({"url": server.root + path, "method": "POST", "body": "x=1"} for path in paths))
        again = {"url": f"{server.root}/busy", "method": "QUERY", "body": "x=2"}
        with (tmp_path / "requests.jsonl").open("a") as file:
            file.write(json.dumps(again))
        done = crawl((), tmp_path / "crawl", *OWN, requests)
        assert done.end == "finished", done.critical()
        assert server.of("/busy").count(("POST", b"x=1")) == 1
        assert server.of("/busy").count(("QUERY", b"x=2")) == 3, "it is idempotent"
        assert server.of("/landing") == [("GET", b"")], "303 says so; 307 asks for the same request elsewhere"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "truncated"),
        ('{"url": "http://a.test/", "verb": "POST"}', "unknown field `verb`"),
        ('{"url": "http://a.test/", "method": "post"}', "no method 'post'"),
        ('{"url": "a.test"}', "has no scheme"),
        ('{"url": "ftp://a.test/"}', "scheme 'ftp'"),
        ('{"url": "http://a.test/", "headers": {"Host": "x"}}', "header 'Host' cannot be sent"),
        ('{"url": "http://a.test/", "method": "POST", "body": "%s"}' % ("x" * (1 << 20) + "x"), "is the most"),
    ],
)
def test_a_line_that_is_no_request_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    (tmp_path / "list").write_text('{"url": "http://a.test/"}\n\n' + line)
    with pytest.raises(ConfigError, match=rf"list line 3: .*{complaint}"):
        list(read_requests(tmp_path / "list"))


def test_keys_are_stable_and_those_of_plain_requests_unchanged(tmp_path: Path) -> None:
    lines = [{"url": "http://A.test:80/x"}, {"url": "http://a.test/x", "method": "POST", "body": "a"}]
    write(tmp_path, *lines)
    (plain, _), (posted, sent) = read_requests(tmp_path / "requests.jsonl")
    assert plain == "http://a.test/x"
    assert posted == "http://a.test/x#request=POST:fb0624f5efdaf1358409a0bc92f0b21c"
    url, other = Namer().name(posted), Namer().name(plain)
    assert url is not None
    assert other is not None
    assert (url.key, url.host, url.partition) == (posted, other.host, other.partition)
    assert url.fingerprint != other.fingerprint
    assert (sent.method, sent.body, sent.idempotent) == ("POST", b"a", False)
