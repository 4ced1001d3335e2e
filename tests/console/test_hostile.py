"""What hostile callers send to the console of a running crawl: it answers them, and the crawl goes on."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.console.conftest import QUICK, Commands, until

QUERIES = (
    "(" * 5_000, ")" * 5_000, "[" * 2_000, "{" * 5_000, "(" * 300, "(a " * 60, "OR " * 1_000, "a* " * 1_000, '"',
    '"a b',
    "\0", "a\0b", "[* TO *]", "text:[* TO *]", "title:[a TO z]", "x" * 8_000, "x" * 15_000, "fox~99999999",
    '"a b"~4294967295',
    "a^1e308", "a" + "^2" * 500, "nofield:x", "key:x", "position:x", "at:[2000 TO x]", "\U0001f98a" * 100,
    "\u202eoof", "-a",
    "*", "text:*", "NOT " * 500 + "a", "-" * 2_000, "+" * 2_000, ":" * 2_000, "\\" * 2_000, "/" * 100,
    "text:/((a*)*)*b/",
    "text: IN [" + "a " * 900 + "]", "'" * 2_000, "a AND", "AND OR NOT", "a:b:c:d", "text:>a", "<" * 100, "^" * 2_000,
    "~" * 2_000, "#" * 100, "日本語" * 300, "a" * 41,
    "",
)  # fmt: skip


def descendants(process: int) -> dict[int, bytes]:
    """Return the processes below one, with their command lines."""
    found = {}
    waiting = [process]
    while waiting:
        try:
            text = "".join(path.read_text() for path in Path(f"/proc/{waiting.pop()}/task").glob("*/children"))
        except OSError:
            continue
        for child in map(int, text.split()):
            try:
                found[child] = Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:
                continue
            waiting.append(child)
    return found


def shards(process: int) -> set[int]:
    return {child for child, words in descendants(process).items() if b"gossamer.results.isolated" not in words}


def search_processes(process: int) -> set[int]:
    return {child for child, words in descendants(process).items() if b"gossamer.results.isolated\0search" in words}


@pytest.mark.heavy
@pytest.mark.promise("Console", "No search query ends the process that receives it.")
@pytest.mark.parametrize("served_by", ["the crawl", "gossamer serve", "a server of many crawls"])
@pytest.mark.long
def test_hostile_queries_end_neither_the_console_nor_the_crawl(run: Commands, web: str, served_by: str) -> None:
    assert len(set(QUERIES)) >= 50
    own, crawling = run.served(
        "crawl", web, "-o", "crawls/one", "--serve", "0", "--allow-private", "--delay", "0.05",
        "--set", "search.enabled=true", "--set", "search.commit_s=0.2", *QUICK,
    )  # fmt: skip
    call, serving, prefix = own, crawling, "/api/"
    if served_by == "gossamer serve":
        call, serving = run.served("serve", "crawls/one", "--port", "0")
    elif served_by == "a server of many crawls":
        call, serving = run.served("serve", "--folder", "crawls", "--port", "0")
        prefix = "/api/crawls/one/"

    def search(query: str) -> int:
        return call.get(f"{prefix}search?q={quote(query)}&n=3").status

    until(lambda: search("words") == 200 and call.get(f"{prefix}search?q=words").json["total"])
    begun, pages = shards(crawling.pid), own.status()["pages"]
    late = 0
    for query in QUERIES:
        answer = call.get(f"{prefix}search?q={quote(query)}")
        if answer.status == 504:  # A busy machine may need longer than a search may take, once.
            late += 1
            answer = call.get(f"{prefix}search?q={quote(query)}")
        assert answer.status in (200, 400, 422, 0)
        assert answer.status == 200 or query == "x" * 15_000 or answer.error
    for number in (signal.SIGSEGV, signal.SIGKILL):
        for process in search_processes(serving.pid):
            os.kill(process, number)
        until(lambda: search("words") == 200)
    told = call.get(f"{prefix}console").json
    assert told["search_failures"] <= 2 + late
    assert told["search_processes"] <= 4
    assert told["searches"] > len(QUERIES) / 2
    assert b"gossamer_console_search_failures_total" in call.get("/metrics").body
    until(lambda: own.status()["pages"] > pages)
    assert shards(crawling.pid) == begun, "the crawl was started again"
    own.post("/api/set", values={"limits.max_pages": own.status()["pages"] + 5})
    _, err = crawling.communicate(timeout=60)
    assert crawling.returncode == 0
    assert "died" not in err
    assert "Traceback" not in err


@pytest.mark.heavy
def test_the_command_says_in_one_line_what_is_wrong_with_a_query(run: Commands, web: str) -> None:
    crawl = run.start(
        "crawl", web, "-o", "crawl", "--quiet", "--allow-private", "--delay", "0", "--max-pages", "5",
        "--set", "search.enabled=true", *QUICK,
    )  # fmt: skip
    assert crawl.wait(60) == 0
    for query in QUERIES[::7]:
        status, out, err = run("search", "crawl", "--json", "--", query)
        assert status in (0, 2)
        assert bool(out) == (status == 0)
        assert err.count("\n") == (status == 2), err


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.heavy
def test_hostile_requests_are_refused_one_by_one(run: Commands, web: str) -> None:
    call, crawling = run.served(
        "crawl", web, "-o", "crawl", "--serve", "0", "--allow-private", "--delay", "0.05", *QUICK
    )
    begun = shards(crawling.pid)
    hosts = ("", "\0", "a/b", "http://[", "a" * 8_192, "a." * 130 + "a", "\U0001f98a" * 300, "[::1")
    bodies = {
        "/api/host": [b'{"host": %s, "values": {"delay_s": 1}}' % f'"{host}"'.encode() for host in hosts],
        "/api/exclude": [b'{"hosts": ["%s"]}' % host.encode() for host in hosts],
        "/api/seed": [DEEP, b'{"urls": ' + DEEP + b"}", b'{"urls": ["http://["]}', b'{"urls": ["data:,x"]}'],
        "/api/set": [
            b'{"values": {"scope.exclude": ' + DEEP + b"}}",
            b'{"values": {"scope.exclude": ["' + b"(" * 5_000 + b'"]}}',
            b'{"values": {"scope.exclude": ["x' + b".{0,1000}" * 30 + b'"]}}',
            b'{"assignments": ["scope.exclude=' + b"[" * 3_000 + b'"]}',
            b'{"assignments": ["a=' + b"{a=" * 2_000 + b'"]}',
            b'{"values": {"crawl.concurrency": 1' + b"0" * 50_000 + b"}}", b"\xff\xfe", b'{"values": {"\\ud800": 1}}',
        ],
        "/api/release": [b'{"name": "' + b"(" * 8_000 + b'"}'],
    }  # fmt: skip
    for path, refused in bodies.items():
        for body in refused:
            answer = call("POST", path, body, token=call.token)
            assert answer.status in (400, 413, 422), (path, body[:60], answer.body[:200])
            assert answer.error
    for url in (
        "http://[",
        "\ud800",
        "\0",
        "http://" + "a." * 3_000,
        "http://a/" + "../" * 1_000,
        "http://a/" + "%" * 3_000,
    ):
        answer = call.get(f"/api/why?url={quote(url.encode('utf-8', 'surrogatepass'))}")
        assert answer.status in (200, 422)
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(120)
        line.connect(f"/proc/self/fd/{os.open(run.directory / 'crawl/state', os.O_PATH)}/control.sock")
        for request in (DEEP, b'{"verb": "status", "x": ' + DEEP + b"}", b'{"a":' * 200_000, b"\xff\xfe", b"\0", b""):
            line.sendall(request + b"\n")
            assert b'"ok":false' in line.recv(1 << 16)
    pages = call.status()["pages"]
    until(lambda: call.status()["pages"] > pages)
    assert shards(crawling.pid) == begun
    assert not (run.directory / "crawl/logs/critical.log").read_bytes()
    call.post("/api/set", values={"limits.max_pages": call.status()["pages"] + 5})
    assert crawling.wait(60) == 0
