"""A wildcard-DNS farm and an innocent site at one address, over real sockets: shares of the address, and the end."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import cast

import pytest

from gossamer.api.status import why_of
from gossamer.lab.simweb.server import answer
from tests.answering import Answering, serving
from tests.ring.crawls import crawl

pytestmark = pytest.mark.promise(
    "Order and fairness", "Sites with queued URLs at one address get equal turns there, with any number of hosts each."
)

PAGES = 250
FARM_TEXT = "This garden shop sells seeds, bulbs and tools for every season and sends them within two days. " * 3


class Server(ThreadingHTTPServer):
    daemon_threads = True


@contextmanager
def names() -> Iterator[str]:
    """Serve DNS for any name; give the server's address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        door.bind(("127.0.0.1", 0))

        def serve() -> None:
            while (asked := door.recvfrom(2048))[0] != b"end":
                reply = answer(asked[0], lambda _: "127.0.0.1")
                if reply is not None:
                    door.sendto(reply, asked[1])

        thread = Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{door.getsockname()[1]}"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"end", door.getsockname())
        thread.join()


class Web:
    """A farm whose every page names ten hosts more, and a site of one host with `PAGES` pages."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        """Host of each request, in order."""
        web = self

        class Handler(Answering):
            def get(self) -> None:
                host = (self.headers["Host"] or "").partition(":")[0]
                web.asked.append(host)
                if self.path == "/robots.txt":
                    self.answer(404)
                elif host.endswith("innocent.test"):
                    number = int(self.path.strip("/") or 0)
                    to = [f"/{n}" for n in (2 * number + 1, 2 * number + 2) if n < PAGES]
                    self.answer(200, linking(to, words(number)))
                else:
                    dice = random.Random(host)
                    hosts = ["".join(dice.choices("abcdefghij", k=8)) for _ in range(10)]
                    self.answer(200, linking([f"http://{one}.farm.test:{web.port}/" for one in hosts], FARM_TEXT))

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port


def words(number: int) -> str:
    dice = random.Random(number)
    return " ".join("".join(dice.choices("abcdefghij", k=6)) for _ in range(60))


def linking(to: list[str], text: str) -> bytes:
    return f"<!doctype html><p>{text}</p>{''.join(f'<a href={one}>{one}</a> ' for one in to)}".encode()


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    with serving(made.server):
        yield made


@pytest.mark.heavy
@pytest.mark.long
def test_a_farm_leaves_its_neighbour_half_of_the_address_and_ends(web: Web, tmp_path: Path) -> None:
    seeds = (f"http://www.innocent.test:{web.port}/", f"http://farm.test:{web.port}/")
    with names() as server:
        done = crawl(
            seeds, tmp_path / "c", "crawl.commit_s=0.25", "politeness.delay_s_min=0", "politeness.delay_factor=0",
            "politeness.address_delay_s=0.002", f"resolve.servers=['{server}']", "resolve.timeout_s=5",
            scope="any", contact="crawl@example.org",
        )  # fmt: skip
    assert done.end == "finished", "the farm ends"
    outcomes = done.outcomes
    innocent = [key for key, outcome in outcomes.items() if "innocent" in key and outcome == "fetched"]
    assert len(innocent) == PAGES

    is_innocent = [host.endswith("innocent.test") for host in web.asked]
    last = max(at for at, one in enumerate(is_innocent) if one)
    first_of_farm = is_innocent.index(False)
    contested = is_innocent[first_of_farm + 20 : last + 1]
    if len(contested) - sum(contested) < sum(contested):  # The farm was cut off before the site was through.
        contested = contested[: max(at for at, one in enumerate(contested) if not one) + 1]
    assert sum(contested) >= 0.9 * len(contested) / 2, "nine tenths of equal turns"

    farm_hosts = {host for host in web.asked if host.endswith("farm.test")}
    assert len(farm_hosts) < 600
    assert any("*.farm.test/** is a trap" in note for note in done.notes)
    assert "*.farm.test/** is a trap" in str(cast("list[str]", done.status["traps"])[0])
    told = why_of(tmp_path / "c", f"http://other.farm.test:{web.port}/")
    assert (told["state"], told["rule"]) == ("rejected", "trapped")
    assert "*.farm.test" in str(told["reason"])
    assert done.critical() == ""
