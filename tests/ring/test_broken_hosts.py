"""Hosts that refuse, stall or keep their robots.txt to themselves: the crawl ends by itself, and others do not wait."""

from __future__ import annotations

import asyncio
import http.server
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trustme

from gossamer import Crawler
from gossamer.api.status import status_of, why_of
from gossamer.config import configure
from gossamer.engine import watchdogs
from gossamer.lab.simweb.judge import Promise, judge
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.results.report.report import summary
from gossamer.results.report.text import as_text
from tests.answering import Answering, free_port, serving
from tests.rates import rates
from tests.ring.crawls import BRIEF, Crawled, crawl, states

PROMISE = Promise(delay_s_min=0.1, factor=10, delay_s_max=0.5, address_delay_s=0.01)
POLITE = (*BRIEF, "politeness.delay_s_min=0.1", "politeness.delay_s_max=0.5", "politeness.address_delay_s=0.01")


@contextmanager
def silent() -> Iterator[int]:
    """Listen, and never accept: connections are made by the kernel and nobody answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


@contextmanager
def untrusted(host: str) -> Iterator[tuple[int, list[int]]]:
    """Serve by HTTPS, with a certificate that nobody we know has signed; give the port and who came."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert(host).configure_cert(context)
    came: list[int] = []

    class Counting(http.server.ThreadingHTTPServer):
        def finish_request(self, request: object, address: object) -> None:
            assert isinstance(request, socket.socket)
            came.append(1)
            with suppress(OSError):  # Who does not trust us hangs up.
                context.wrap_socket(request, server_side=True).close()

    server = Counting(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    with serving(server):
        yield server.server_port, came


def ends_of(crawled: Crawled, urls: list[str]) -> set[str]:
    """Return how URLs ended, those without a row included."""
    return set(states(crawled.directory, urls).values())


def test_a_host_that_refuses_connections_is_given_up(tmp_path: Path) -> None:
    port = free_port()
    urls = [f"http://127.0.0.1:{port}/{number}" for number in range(30)]
    crawled = crawl(tuple(urls), tmp_path / "crawl", *POLITE, "robots.obey=false")
    assert crawled.end == "finished"
    ends = ends_of(crawled, urls)
    assert ends == {"connect_error", "host_closed"} or ends == {"host_closed"}
    assert crawled.status["terminal"] == crawled.status["discovered"] == 30
    attempts = sum(row["outcome"] != "host_closed" for row in crawled.rows)
    assert attempts <= 4 * 3 + 3, "four failures, two sleeps with four each: not three attempts for each of thirty URLs"


def test_with_robots_txt_a_host_that_refuses_ends_as_unreachable(tmp_path: Path) -> None:
    port = free_port()
    urls = [f"http://127.0.0.1:{port}/{number}" for number in range(30)]
    crawled = crawl(tuple(urls), tmp_path / "crawl", *POLITE)
    assert crawled.end == "finished"
    assert ends_of(crawled, urls) <= {"robots_unreachable", "host_closed"}
    assert crawled.status["terminal"] == crawled.status["discovered"] == 30


def test_a_host_whose_certificate_is_refused_is_given_up_and_all_say_why(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    patient = ("robots.robots_wait_max_s=1000", "frontier.host_failures_max=50")
    with SimwebProcess(SimwebOptions.plain(hosts=1, pages=3), tmp_path / "web") as web, untrusted("bad.test") as bad:
        hosts.write_text(web.hosts_file.read_text() + "\n127.0.0.1 bad.test\n")
        port, came = bad
        urls = [f"https://bad.test:{port}/{number}" for number in range(5)]
        crawled = crawl((*web.seeds, *urls), tmp_path / "crawl", *POLITE, *patient, hosts=str(hosts))
    assert crawled.end == "finished"
    assert len(came) == 5, "by default"
    for url in urls:
        told = why_of(crawled.directory, url)
        assert told["state"] == "robots_unreachable"
        assert str(told["reason"]).startswith(f"could not fetch https://bad.test:{port}/robots.txt (5 attempts): ")
        assert "certificate" in str(told["reason"])
    assert "certificate" in as_text(summary(crawled.directory), 200)


def test_a_host_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with silent() as port:
        urls = [f"http://127.0.0.1:{port}/{number}" for number in range(12)]
        crawled = crawl(
            tuple(urls), tmp_path / "crawl", *POLITE, "robots.obey=false", "fetch.request_s_max=0.2",
            "frontier.host_failures_max=2", "frontier.host_sleeps_max=1",
        )  # fmt: skip
    assert crawled.end == "finished"
    assert ends_of(crawled, urls) <= {"timeout", "host_closed"}
    assert {row["outcome"] for row in crawled.rows} == {"timeout", "host_closed"}
    assert crawled.status["terminal"] == crawled.status["discovered"] == 12


@pytest.mark.acceptance
@pytest.mark.paced
def test_broken_hosts_slow_nobody_else(tmp_path: Path) -> None:
    """Robots that fail for ever or never answer, names at which nobody listens, pages that hang."""
    behaviours = ("robots_500", "robots_stall", "away", "hangs", "robots_allow")
    shares = {"robots_500": 0.1, "robots_stall": 0.1, "away": 0.2, "hangs": 0.2, "robots_allow": 0.6}
    options = SimwebOptions(
        seed=4, hosts=20, pages=200, behaviours=behaviours, shares=shares, zipf_exponent=0.1, links_per_page=8,
        latency_s=0.002, drip_s=0.2,
    )  # fmt: skip
    with SimwebProcess(options, tmp_path / "web") as simweb:
        crawled = crawl(simweb.seeds, tmp_path / "crawl", *POLITE, hosts=str(simweb.hosts_file), scope="any")
    log, web = simweb.requests(), simweb.web
    walked = Truth(web).walk(simweb.seeds)
    assert crawled.end == "finished"
    assert walked.differences(crawled.ends(walked), web) == []
    assert judge(log, PROMISE, web) == []
    sound = [
        rate.utilisation
        for name, rate in rates(log, PROMISE, web).items()
        if (host := web.host(name)) is not None and host.robots == "robots_allow" and "hangs" not in host.behaviors
    ]
    assert len(sound) >= 5
    assert sorted(sound)[len(sound) // 2] > 0.8


def test_a_closed_host_says_why_and_stays_closed_after_resume(tmp_path: Path) -> None:
    port = free_port()
    urls = [f"http://127.0.0.1:{port}/{number}" for number in range(10)]
    crawled = crawl(tuple(urls), tmp_path / "crawl", *POLITE, "robots.obey=false", "frontier.host_sleeps_max=0")
    told = why_of(crawled.directory, urls[-1])
    assert told["state"] == "host_closed"
    assert "never answered" in str(told["reason"])
    before = len(crawled.rows)
    again = crawl((), tmp_path / "crawl", resuming=True)
    assert again.end == "finished"
    assert len(again.rows) == before


class Proxy(Answering):
    def get(self) -> None:
        if self.path.endswith("/robots.txt"):
            self.answer(404)
        else:
            self.answer(200, self.path.encode())


@pytest.mark.promise("Operation", "While its proxy is dead, a crawl waits, says so, and gives up no URL.")
def test_no_url_is_spent_while_the_proxy_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdogs, "PROXY_AGAIN_S", 0.5)
    port = free_port()
    sets = (
        *BRIEF, f"fetch.proxy=http://127.0.0.1:{port}", "watch.look_s=0.1", "politeness.backoff_s_first=0.1",
        "frontier.attempts_max=1", "frontier.unanswered_failures_max=1",
    )  # fmt: skip
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 a.test b.test\n")
    urls = ("http://a.test/", "http://b.test/")
    config = configure(options={"allow_private": True, "hosts": str(hosts)}, sets=sets, seeds=urls)
    crawler = Crawler(output=tmp_path / "crawl", config=config)
    notes: list[str] = []
    crawler.on_note(notes.append)

    async def main() -> str:
        crawling = asyncio.create_task(crawler.run())
        while "Failed to connect" not in str(crawler.status().get("waiting")):  # noqa: ASYNC110 - for its own time
            await asyncio.sleep(0.05)
        while "'proxy'" not in str(crawler.status()["alarms"]):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.5)  # Several attempts, each of which would have ended every URL.
        assert crawler.status()["outcomes"] == {}
        with serving(http.server.ThreadingHTTPServer(("127.0.0.1", port), Proxy)):
            return await crawling

    assert asyncio.run(asyncio.wait_for(main(), 60)) == "finished"
    assert crawler.status()["outcomes"] == {"fetched": 2}
    assert notes[0].startswith("waiting for the proxy: Failed to connect to ")


@pytest.mark.promise(
    "Operation",
    "A batch crawl ends when its proxy has been dead for `crawl.patience_s`, or for 30 s from the start; its URLs stay "
    "queued.",
)
@pytest.mark.parametrize(("patience_s", "first_s"), [(1, 600.0), (600, 1.0)])
def test_a_crawl_ends_when_its_proxy_has_been_dead_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience_s: int, first_s: float
) -> None:
    monkeypatch.setattr("gossamer.engine.loop.PROXY_FIRST_S", first_s)
    proxy = f"fetch.proxy=http://127.0.0.1:{free_port()}"
    sets = (*BRIEF, proxy, "watch.look_s=0.1", f"crawl.patience_s={patience_s}")
    crawled = crawl(("http://127.0.0.1/",), tmp_path / "crawl", *sets)
    assert crawled.end == "patience"
    assert crawled.rows == []
    [awaited] = status_of(tmp_path / "crawl")["awaited"]
    assert awaited["reason"].startswith("Failed to connect to ")
    assert why_of(tmp_path / "crawl", "http://127.0.0.1/")["state"] == "queued"
