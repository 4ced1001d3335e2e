"""Origins: what does not answer on one port or under one scheme costs the host's other pages nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

from gossamer.api.status import why_of
from tests.answering import Answering, free_port, serving
from tests.ring.crawls import BRIEF, Crawled, crawl
from tests.ring.test_broken_hosts import silent

pytestmark = pytest.mark.promise(
    "Politeness",
    "An origin that does not answer takes at most a tenth of its host's time from the host's other origins.",
)

PAGES = 12
DELAY_S = 0.1
POLITE = (*BRIEF, f"politeness.delay_s_min={DELAY_S}", "politeness.delay_s_max=0.2", "politeness.address_delay_s=0.0")


class Website:
    """A site on loopback whose first page links to all others, and to what `extra` says."""

    def __init__(self, extra: tuple[str, ...], robots: int = 404) -> None:
        self.came: list[tuple[float, str]] = []
        site = self

        class Pages(Answering):
            def get(self) -> None:
                if self.path == "/robots.txt":
                    self.answer(robots)
                    return
                site.came.append((0.0, self.path))
                links = "".join(f'<a href="/{number}">{number}</a>' for number in range(PAGES))
                # Dead links first: nothing of the host may wait for them.
                dead = "".join(f'<a href="{url}">dead</a>' for url in extra)
                self.answer(200, f"<title>{self.path}</title>{dead}{links if self.path == '/' else ''}".encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.port = self.server.server_port

    @property
    def paths(self) -> set[str]:
        return {path for _, path in self.came}


@contextmanager
def website(*extra: str, robots: int = 404) -> Iterator[Website]:
    site = Website(extra, robots)
    with serving(site.server):
        yield site


def crawled_from(site: Website, directory: Path, *sets: str, scope: str = "any") -> Crawled:
    return crawl((f"http://127.0.0.1:{site.port}/",), directory / "crawl", *POLITE, *sets, scope=scope)


ALL = {"/", *(f"/{number}" for number in range(PAGES))}


def check_innocent(crawled: Crawled, site: Website) -> None:
    """All pages that are there were fetched, and none of them waited for what does not answer. For tests of a pace: a
    machine at its limit makes all gaps longer.
    """
    assert crawled.end == "finished"
    assert site.paths == ALL
    rows = [row for row in crawled.rows if row["outcome"] == "fetched"]
    assert len(rows) == PAGES + 1
    ends = [row["fetched_at"].timestamp() for row in rows]  # type: ignore[attr-defined]
    gaps = sorted(after - before for before, after in pairwise(ends))
    assert gaps[len(gaps) // 2] < 4 * DELAY_S, "the median of the gaps is the polite one"


@pytest.mark.acceptance
@pytest.mark.paced
@pytest.mark.parametrize("scope", ["any", "domain"])
@pytest.mark.parametrize("robots", ["true", "false"])
def test_links_to_a_dead_port_of_the_host_end_by_name_and_nothing_waits_for_them(
    tmp_path: Path, scope: str, robots: str
) -> None:
    port = free_port()
    dead = [f"http://127.0.0.1:{port}/{number}" for number in range(20)]
    with website(*dead) as site:
        crawled = crawled_from(site, tmp_path, f"robots.obey={robots}", scope=scope)
    check_innocent(crawled, site)
    ends = {row["url"]: row for row in crawled.rows}
    for url in dead:
        assert ends[url]["outcome"] in {"connect_error", "robots_unreachable", "host_closed"}
        if ends[url]["outcome"] != "connect_error":
            assert f"http://127.0.0.1:{port}" in str(ends[url]["error"])
    assert crawled.status["discovered"] == crawled.status["terminal"] == PAGES + 1 + len(dead)


@pytest.mark.acceptance
@pytest.mark.paced
def test_https_where_only_http_works_and_http_where_nothing_answers(tmp_path: Path) -> None:
    with (
        silent() as mute,
        website("https://127.0.0.1:{0}/a".replace("{0}", str(free_port())), f"http://127.0.0.1:{mute}/") as site,
    ):
        crawled = crawled_from(site, tmp_path, "fetch.request_s_max=1.0", "fetch.connect_s_max=1.0")
    check_innocent(crawled, site)
    assert {row["outcome"] for row in crawled.rows} == {"fetched", "robots_unreachable"}


@pytest.mark.acceptance
@pytest.mark.paced
def test_https_to_the_port_where_http_works(tmp_path: Path) -> None:
    """The same port under two schemes: two origins."""
    with website() as site:
        seeds = (f"http://127.0.0.1:{site.port}/", f"https://127.0.0.1:{site.port}/secure")
        crawled = crawl(seeds, tmp_path / "crawl", *POLITE, scope="any")
    check_innocent(crawled, site)
    ended = next(row for row in crawled.rows if str(row["url"]).startswith("https"))
    assert ended["outcome"] in {"robots_unreachable", "host_closed", "tls_error"}
    assert f"https://127.0.0.1:{site.port}" in str(ended["error"])


@pytest.mark.acceptance
@pytest.mark.paced
def test_a_page_that_names_a_thousand_dead_ports_costs_no_more_than_a_few(tmp_path: Path) -> None:
    dead = [f"http://127.0.0.1:{port}/" for port in range(1, 1001) if port != 80]
    with website(*dead) as site:
        crawled = crawled_from(site, tmp_path)
    check_innocent(crawled, site)
    outcomes = {str(row["url"]): str(row["outcome"]) for row in crawled.rows}
    assert {outcomes[url] for url in dead} <= {"robots_unreachable", "host_closed"}
    refused = [row for row in crawled.rows if "other ports of 127.0.0.1 have not answered" in str(row["error"])]
    assert len(refused) >= 999 - 10


def test_why_names_the_state_of_the_origin(tmp_path: Path) -> None:
    port = free_port()
    with website(f"http://127.0.0.1:{port}/a", f"http://127.0.0.1:{port}/b") as site:
        crawled = crawled_from(site, tmp_path, "robots.obey=false", "frontier.attempts_max=9")
    told = why_of(crawled.directory, f"http://127.0.0.1:{port}/b")
    state = told["host_state"]
    assert isinstance(state, dict)
    origin = state["origin"]
    assert (origin["origin"], origin["state"]) == (f"http://127.0.0.1:{port}", "closed")
    assert origin["failures"] == 5
    assert "(5 attempts)" in origin["reason"]
    assert origin["first_failed_at"] < origin["next_at"]
