"""Answers of name servers that hold for no time at all: each serves the request for which it was asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.server import answer
from gossamer.lab.simweb.web import Web
from tests.ring.crawls import BRIEF, crawl

pytestmark = pytest.mark.promise(
    "Bounds", "An answer of a name server serves the request that it was looked up for, however short its TTL."
)

FAMILIES = 2
"""Questions for one lookup."""
SETTINGS = tuple(one for one in BRIEF if not one.startswith("resolve."))


class NameServer:
    """Answers for a synthetic web with a TTL of 0, and counts."""

    def __init__(self) -> None:
        self.web: Web | None = None
        self.queries = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.server = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def serve(self) -> None:
        while True:
            query, client = self._socket.recvfrom(512)
            if not query:
                return
            assert self.web is not None
            self.queries += 1
            reply = answer(query, self.web.address, lambda _: 0)
            if reply is not None:
                self._socket.sendto(reply, client)

    def end(self) -> None:
        self._socket.sendto(b"", self._socket.getsockname())

    def close(self) -> None:
        self._socket.close()


@contextmanager
def name_server() -> Iterator[NameServer]:
    server = NameServer()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server
    server.end()
    thread.join()
    server.close()


@pytest.mark.parametrize(
    "more", [("politeness.preset='own'",), ("politeness.preset='weak'", "politeness.address_delay_s=0.05")]
)
def test_pages_are_fetched_and_queries_are_bounded_by_requests(tmp_path: Path, more: tuple[str, ...]) -> None:
    options = SimwebOptions.plain(hosts=4, pages=40, names_per_address=4, links_per_page=5)
    with SimwebProcess(options, tmp_path / "web") as simweb, name_server() as server:
        server.web = simweb.web
        crawled = crawl(
            simweb.seeds, tmp_path / "c", *SETTINGS, *more, "resolve.ttl_s_min=0", "limits.max_time_s=100",
            dns=(server.server,), scope="any", contact="me@example.org",
        )  # fmt: skip
    requests = len(simweb.requests())  # All of them are logged once the server has ended.
    assert crawled.end == "finished"
    assert set(crawled.outcomes.values()) == {"fetched"}
    assert (
        len(crawled.outcomes) == sum(host.pages for host in simweb.web.hosts) + len(simweb.web.hosts[0].behaviors) + 1
    )
    assert server.queries <= FAMILIES * (requests + len(simweb.web.hosts))
